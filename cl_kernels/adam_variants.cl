/* adam_variants.cl -- Adamax, NAdam, RAdam and LAMB: Adam's two moments, used in other ways. Halves are
 * computed as f32. h begins with {lr, weight decay}. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

ONE_MINUS_POWER

/* Those with two moments: h goes on with {beta1, 1 - beta1, beta2, 1 - beta2, eps, log beta1,
 * log beta2}. Decoupled decay is taken from the parameter. */
#define MOMENTS_                                                                                   \
    REAL lr = h[0], beta1 = h[2], fresh1 = h[3], beta2 = h[4], fresh2 = h[5], eps = h[6];          \
    REAL sign = SIGN_;                                                                             \
    i32 decoupled = (flags & TERN_OPTIM_DECOUPLED) != 0;                                           \
    REAL decay = decoupled ? C(0.0) : h[1], shrink = decoupled ? C(1.0) - lr * h[1] : C(1.0);

/* Adam with the largest gradient instead of v (Kingma & Ba 2015, section 7.1). */
RULE(adamax)
{
    MOMENTS_
    REAL step = lr / K(one_minus_power)(h[7], t);
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = as[j] * beta1 + fresh1 * g;
        REAL old = bs[j] * beta2, top = (g < 0 ? -g : g) + eps;
        top = old > top || old != old ? old : top;
        as[j] = m;
        bs[j] = top;
        ps[j] = p * shrink - step * m / top;
    }
}

/* Adam with Nesterov's momentum (Dozat 2016). The momentum of step i is beta1 (1 - e^(q i) / 2); the
 * product of t of them is beta1^t exp(-sum over k of 2^-k / k (e^(q k) + ... + e^(q k t))), by the
 * series of log(1 - x): each sum in brackets is geometric. h[9] = q. */
INLINE REAL K(momenta)(REAL log_beta1, REAL q, i64 t)
{
    REAL sum = (REAL)t * log_beta1, half_power = 1;
    for (i32 k = 1; k <= (IS_WIDE ? 53 : 24); k++) {
        REAL qk = q * (REAL)k;
        REAL terms = qk == 0 ? (REAL)t
                             : exp(qk) * K(one_minus_power)(qk, t) / K(one_minus_power)(qk, 1);
        half_power *= C(0.5);
        sum -= half_power / (REAL)k * terms;
    }
    return exp(sum);
}
RULE(nadam)
{
    MOMENTS_
    REAL q = h[9], product = K(momenta)(h[7], q, t);
    REAL mu = beta1 * (C(1.0) - C(0.5) * exp((REAL)t * q));
    REAL next = beta1 * (C(1.0) - C(0.5) * exp((REAL)(t + 1) * q));
    REAL by_g = lr * (C(1.0) - mu) / (C(1.0) - product);
    REAL by_m = lr * next / (C(1.0) - product * mu * next);
    REAL scale = sqrt(K(one_minus_power)(h[8], t));
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = as[j] * beta1 + fresh1 * g;
        REAL v = bs[j] * beta2 + fresh2 * g * g;
        REAL below = sqrt(v) / scale + eps;
        as[j] = m;
        bs[j] = v;
        ps[j] = p * shrink - by_g * g / below - by_m * m / below;
    }
}

/* Adam that starts as SGD until v is worth something (Liu et al. 2020): with l = -log beta2 and y = t l
 * the length of the average is rho = rho_inf - 2 t / (e^y - 1), by its series while y is small.
 * h[9] = rho_inf, h[10] = rho_inf - 2 / l. */
INLINE REAL K(radam_length)(REAL rho_inf, REAL start, REAL y, i64 t)
{
    REAL z = y * y, beta_t = exp(-y), series = C(1.0568380277374986e-09) - z * C(2.6765073061369358e-11);
    series = C(1.6534391534391535e-06) - z * (C(4.17535139757362e-08) - z * series);
    series = C(0.002777777777777778) - z * (C(6.613756613756614e-05) - z * series);
    series = y * (C(0.16666666666666666) - z * series);
    return y < C(0.5) ? start + (REAL)t * (C(1.0) - series)
                      : rho_inf - C(2.0) * (REAL)t * beta_t / (C(1.0) - beta_t);
}
RULE(radam)
{
    MOMENTS_
    REAL inf = h[9], rho = K(radam_length)(inf, h[10], -(REAL)t * h[8], t);
    REAL step = lr / K(one_minus_power)(h[7], t);
    REAL scale = sqrt(K(one_minus_power)(h[8], t));
    i32 adapts = rho > C(5.0);
    if (adapts)
        step *= scale * sqrt((rho - C(4.0)) * (rho - C(2.0)) * inf /
                             ((inf - C(4.0)) * (inf - C(2.0)) * rho));
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = as[j] * beta1 + fresh1 * g;
        REAL v = bs[j] * beta2 + fresh2 * g * g;
        REAL below = adapts ? sqrt(v) + eps : C(1.0);
        as[j] = m;
        bs[j] = v;
        ps[j] = p * shrink - step * m / below;
    }
}

OPTIMIZER(adamax)
OPTIMIZER(nadam)
OPTIMIZER(radam)

/* ---- LAMB: Adam's direction as long as the parameter (You et al. 2020) -------------------------
 * In two launches: lamb_norms moves the moments and sums squares, lamb walks. A tensor's sums are
 * {number of chunks, (of p, of the direction) for each chunk}. */

#define DIRECTION_(m, v, p) ((m) / bias1 / (sqrt(v) / scale + eps) + h[1] * (p))
#define LAMB_BODY_(FIND, PART)                                                                     \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(steps);                                                                               \
        BASE(h);                                                                                   \
        BASE(skip);                                                                                \
        BASE(faults);                                                                              \
        LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                        \
        idx all = faults[0] != 0 || skip[0] != 0 ? 0 : (idx)n;                                     \
        GROUPS(c, all)                                                                             \
        {                                                                                          \
            FIND(c)                                                                                \
            idx at = (idx)chunks[c].first, count = gs != 0 ? (idx)chunks[c].count : 0;             \
            i64 t = steps[c] + 1;                                                                  \
            REAL eps = h[6], bias1 = K(one_minus_power)(h[7], t);                                  \
            REAL scale = sqrt(K(one_minus_power)(h[8], t)), of_p = 0, of_u = 0;                    \
            PART                                                                                   \
        }                                                                                          \
    }
#define LAMB_TOTALS_                                                                               \
    of_p = GROUP_SUM(of_p, scratch);                                                               \
    of_u = GROUP_SUM(of_u, scratch);

#define LAMB_NORMS_                                                                                \
    REAL sign = SIGN_;                                                                             \
    SIMD_SUM2(of_p, of_u) LANES(j, count)                                                          \
    {                                                                                              \
        REAL p = ps[at + j], g = sign * gs[at + j];                                                \
        REAL m = as[at + j] * h[2] + h[3] * g, v = bs[at + j] * h[4] + h[5] * g * g;               \
        REAL u = DIRECTION_(m, v, p);                                                              \
        as[at + j] = m;                                                                            \
        bs[at + j] = v;                                                                            \
        of_p += p * p;                                                                             \
        of_u += u * u;                                                                             \
    }                                                                                              \
    LAMB_TOTALS_                                                                                   \
    idx k = at / TERN_FOREACH_CHUNK;                                                               \
    LANES(j, count > 0)                                                                            \
    {                                                                                              \
        cs[1 + 2 * k] = of_p;                                                                      \
        cs[2 + 2 * k] = of_u;                                                                      \
        if (c + 1 == (idx)n || chunks[c + 1].row != chunks[c].row)                                 \
            cs[0] = (REAL)(k + 1);                                                                 \
    }
#define LAMB_WALK_                                                                                 \
    idx pieces = count > 0 ? (idx)cs[0] : 0;                                                       \
    LANES(j, pieces)                                                                               \
    {                                                                                              \
        of_p += cs[1 + 2 * j];                                                                     \
        of_u += cs[2 + 2 * j];                                                                     \
    }                                                                                              \
    LAMB_TOTALS_                                                                                   \
    REAL step = of_p > 0 && of_u > 0 ? h[0] * sqrt(of_p) / sqrt(of_u) : h[0];                      \
    SIMD LANES(j, count)                                                                           \
    {                                                                                              \
        REAL p = ps[at + j];                                                                       \
        ps[at + j] = p - step * DIRECTION_(as[at + j], bs[at + j], p);                             \
    }                                                                                              \
    BARRIER();                                                                                     \
    LANES(j, count > 0) steps[c] = t;

#define LAMB_NORMS_BODY_(NAME, FIND) LAMB_BODY_(FIND, LAMB_NORMS_)
#define LAMB_WALK_BODY_(NAME, FIND)  LAMB_BODY_(FIND, LAMB_WALK_)
OPTIMIZER_FORMS(lamb_norms, LAMB_NORMS_BODY_)
OPTIMIZER_FORMS(lamb, LAMB_WALK_BODY_)

#undef MOMENTS_
#undef DIRECTION_
#undef LAMB_BODY_
#undef LAMB_TOTALS_
#undef LAMB_NORMS_
#undef LAMB_WALK_
#undef LAMB_NORMS_BODY_
#undef LAMB_WALK_BODY_
#endif
