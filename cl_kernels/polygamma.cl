/* polygamma.cl -- derivatives of digamma by the Hurwitz zeta function. */
#if IS_FLOAT

/* root^s zeta(s, q), zeta(s, q) = sum (q + k)^-s over k >= 0, for whole s > 2 and q > 0: ten terms,
 * and of the rest, with w = q + 10, the series of Euler and Maclaurin
 *   w^(1 - s) / (s - 1) + w^-s / 2 + sum B_2i / (2i)! s (s + 1) .. (s + 2i - 2) w^(1 - s - 2i).
 * ZETA_TERM adds B_2i / (2i)! times the rest of term i, and makes that of the next. */
#define ZETA_TERM(FACTOR, I)                                                                       \
    sum += (FACTOR)*t;                                                                             \
    t *= (s + (2 * (I)-1)) * v * ((s + 2 * (I)) * v);
FUNCTION REAL K(zeta)(REAL s, REAL q, REAL root)
{
    REAL sum = 0, w = q, last, t, v;
    ROLLED for (i32 k = 0; k < 10; k++)
    {
        sum += pow(w / root, -s);
        w += 1;
    }
    last = pow(w / root, -s);
    v = 1 / w;
    t = last * s * v;
    sum += last != 0 ? last * w / (s - 1) + C(0.5) * last : 0;
    ZETA_TERM(C(8.33333333333333333e-2), 1)
    ZETA_TERM(C(-1.38888888888888889e-3), 2)
    ZETA_TERM(C(3.30687830687830688e-5), 3)
    ZETA_TERM(C(-8.26719576719576720e-7), 4)
    ZETA_TERM(C(2.08767569878680990e-8), 5)
    ZETA_TERM(C(-5.28419013868749318e-10), 6)
    ZETA_TERM(C(1.33825365306846788e-11), 7)
    ZETA_TERM(C(-3.38968029632258287e-13), 8)
    ZETA_TERM(C(8.58606205627784456e-15), 9)
    return sum;
}
#undef ZETA_TERM

/* ys = scale root^s zeta(s, xs). Left of 0, with f = x less the whole number below it, the terms
 * are f, f + 1, .. and f - 1, f - 2, .. up to x: zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 -
 * x)). Poles are infinite. */
KERNEL6(K(polygamma), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, count), (ARG, REAL, s),
        (ARG, REAL, root), (ARG, REAL, scale))
{
    BASE(ys);
    BASE(xs);
    ITEMS(i, count)
    {
        REAL x = LD(xs, i), r = x - FN(tern_round)(x), y;
        if (x > 0 && x - x == 0) {
            y = K(zeta)(s, x, root);
        } else if (x - x == 0 && r != 0) {
            REAL odd = s - 2 * FN(tern_floor)(C(0.5) * s);
            REAL above = K(zeta)(s, r < 0 ? 1 + r : r, root);
            REAL below = K(zeta)(s, r < 0 ? -r : 1 - r, root), rest = K(zeta)(s, 1 - x, root);
            REAL most = above > below ? above : below; /* infinite near a pole */
            y = odd != 0 ? above - below + rest : above + below - rest;
            y = most - most == 0 ? y : (odd != 0 && r < 0 ? -most : most);
        } else { /* 0, a pole, -inf; NaN; inf */
            y = x == x ? (x < 1 ? (REAL)(-MINUS_INF) : 0) : x;
        }
        ST(ys, i, scale * y);
    }
}
#endif
