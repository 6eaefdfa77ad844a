/* create.cl -- sequences, and ones on a diagonal. */

/* y[i] = a + i b, exactly in integers, in one rounding each in floats. */
KERNEL4(K(sequence), (OUT, STO, ys), (ARG, i64, n), (ARG, REAL, a), (ARG, REAL, b))
{
    BASE(ys);
    SIMD ITEMS(i, n)
    {
        ST(ys, i, a + (REAL)i * b);
    }
}

/* n values from a to b. Floats: the second half is counted from the end, so that both ends are
 * exact. Integers: a + i (b - a) / (n - 1), cut towards zero. */
KERNEL4(K(linspace), (OUT, STO, ys), (ARG, i64, n), (ARG, REAL, a), (ARG, REAL, b))
{
    BASE(ys);
#if IS_FLOAT
    REAL step = n > 1 ? (b - a) / (REAL)(n - 1) : 0;
    ITEMS(i, n)
    {
        ST(ys, i, 2 * i < (idx)n ? a + step * (REAL)i : b - step * (REAL)((idx)n - i - 1));
    }
#else
    i64 steps = n > 1 ? n - 1 : 1, range = (i64)b - (i64)a;
    i64 whole = range / steps, left = range % steps;
    ITEMS(i, n)
    {
        i64 part = (i64)i * left, rest = part % steps;
        i64 v = (i64)a + (i64)i * whole + part / steps; /* the value is v + rest / steps */
        v = v > 0 && rest < 0 ? v - 1 : v < 0 && rest > 0 ? v + 1 : v;
        ST(ys, i, v);
    }
#endif
}

KERNEL3(K(eye), (OUT, STO, ys), (ARG, i64, n), (ARG, i64, m))
{
    BASE(ys);
    FLAT(r, n, m)
    {
        INNER(r, j)
        {
            ST(ys, r * (idx)m + j, r == j ? 1 : 0);
        }
    }
}
