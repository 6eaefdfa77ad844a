/* adam_variants.cl -- Adamax, NAdam, RAdam and LAMB: Adam's two moments, used in other ways. Halves
 * are computed as f32. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

ONE_MINUS_POWER

/* Adam with the largest gradient instead of v (Kingma & Ba 2015, section 7.1). */
RULE2(adamax, exp_avg, exp_inf)
{
    MOMENTS_
    REAL step = lr / K(one_minus_power)(o->log_beta1, t);
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = exp_avg[j] * beta1 + fresh1 * g;
        REAL old = exp_inf[j] * beta2, top = (g < 0 ? -g : g) + eps;
        top = old > top || old != old ? old : top;
        exp_avg[j] = m;
        exp_inf[j] = top;
        ps[j] = p * shrink - step * m / top;
    }
}

/* Adam with Nesterov's momentum (Dozat 2016). The momentum of step i is beta1 (1 - e^(q i) / 2);
 * the product of t of them is beta1^t exp(-sum over k of 2^-k / k (e^(q k) + ... + e^(q k t))), by
 * the series of log(1 - x): each sum in brackets is geometric. q = o->log_decay. */
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
RULE2(nadam, exp_avg, exp_avg_sq)
{
    MOMENTS_
    REAL q = o->log_decay, product = K(momenta)(o->log_beta1, q, t);
    REAL mu = beta1 * (C(1.0) - C(0.5) * exp((REAL)t * q));
    REAL next = beta1 * (C(1.0) - C(0.5) * exp((REAL)(t + 1) * q));
    REAL by_g = lr * (C(1.0) - mu) / (C(1.0) - product);
    REAL by_m = lr * next / (C(1.0) - product * next);
    REAL scale = sqrt(K(one_minus_power)(o->log_beta2, t));
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = exp_avg[j] * beta1 + fresh1 * g;
        REAL v = exp_avg_sq[j] * beta2 + fresh2 * g * g;
        REAL below = sqrt(v) / scale + eps;
        exp_avg[j] = m;
        exp_avg_sq[j] = v;
        ps[j] = p * shrink - by_g * g / below - by_m * m / below;
    }
}

/* Adam that starts as SGD until v is worth something (Liu et al. 2020): with l = -log beta2 and y =
 * t l the length of the average is rho = rho_inf - 2 t / (e^y - 1), by its series while y is small,
 * which begins with rho_start = rho_inf - 2 / l. */
INLINE REAL K(radam_length)(REAL rho_inf, REAL start, REAL y, i64 t)
{
    REAL z = y * y, beta_t = exp(-y), series = C(1.0568380277374986e-09) -
        z * C(2.6765073061369358e-11);
    series = C(1.6534391534391535e-06) - z * (C(4.17535139757362e-08) - z * series);
    series = C(0.002777777777777778) - z * (C(6.613756613756614e-05) - z * series);
    series = y * (C(0.16666666666666666) - z * series);
    return y < C(0.5) ? start + (REAL)t * (C(1.0) - series)
                      : rho_inf - C(2.0) * (REAL)t * beta_t / (C(1.0) - beta_t);
}
RULE2(radam, exp_avg, exp_avg_sq)
{
    MOMENTS_
    REAL inf = o->rho_inf, rho = K(radam_length)(inf, o->rho_start, -(REAL)t * o->log_beta2, t);
    REAL step = lr / K(one_minus_power)(o->log_beta1, t);
    REAL scale = sqrt(K(one_minus_power)(o->log_beta2, t));
    i32 adapts = rho > C(5.0);
    if (adapts)
        step *= scale * sqrt((rho - C(4.0)) * (rho - C(2.0)) * inf /
                             ((inf - C(4.0)) * (inf - C(2.0)) * rho));
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = exp_avg[j] * beta1 + fresh1 * g;
        REAL v = exp_avg_sq[j] * beta2 + fresh2 * g * g;
        REAL below = adapts ? sqrt(v) + eps : C(1.0);
        exp_avg[j] = m;
        exp_avg_sq[j] = v;
        ps[j] = p * shrink - step * m / below;
    }
}

OPTIMIZER_KERNEL(adamax)
OPTIMIZER_KERNEL(nadam)
OPTIMIZER_KERNEL(radam)

/* ---- LAMB: Adam's direction as long as the parameter (You et al. 2020) -------------------------
 * In two launches: lamb_norms moves the moments and sums squares, lamb steps. A tensor's sums are
 * {number of chunks, (of p, of the direction) for each chunk}. */

#define DIRECTION_(m, v, p) ((m) / bias1 / (sqrt(v) / scale + eps) + decay * (p))
#define LAMB_BODY_(FIND, PART)                                                                     \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(steps);                                                                               \
        BASE(values);                                                                              \
        BASE(skip);                                                                                \
        BASE(faults);                                                                              \
        LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                        \
        idx all = faults[0] != 0 || skip[0] != 0 ? 0 : (idx)n;                                     \
        GROUPS(c, all)                                                                             \
        {                                                                                          \
            FIND(c)                                                                                \
            i64 at = chunks[c].first;                                                              \
            idx count = gs != 0 ? (idx)chunks[c].count : 0;                                        \
            i64 t = steps[c] + 1;                                                                  \
            const GLOBAL K(lamb_values) *o = (const GLOBAL K(lamb_values) *)values;                \
            REAL eps = o->eps, decay = o->weight_decay,                                            \
                bias1 = K(one_minus_power)(o->log_beta1, t);                                       \
            REAL scale = sqrt(K(one_minus_power)(o->log_beta2, t)), of_p = 0, of_u = 0;            \
            PART                                                                                   \
        }                                                                                          \
    }
#define LAMB_TOTALS_                                                                               \
    of_p = GROUP_SUM(of_p, scratch);                                                               \
    of_u = GROUP_SUM(of_u, scratch);

#define LAMB_NORMS_                                                                                \
    REAL sign = o->sign;                                                                           \
    SIMD_SUM2(of_p, of_u) LANES(j, count)                                                          \
    {                                                                                              \
        REAL p = ps[at + j], g = sign * gs[at + j];                                                \
        REAL m = as[at + j] * o->beta1 + o->fresh1 * g,                                            \
            v = bs[at + j] * o->beta2 + o->fresh2 * g * g;                                         \
        REAL u = DIRECTION_(m, v, p);                                                              \
        as[at + j] = m;                                                                            \
        bs[at + j] = v;                                                                            \
        of_p += p * p;                                                                             \
        of_u += u * u;                                                                             \
    }                                                                                              \
    LAMB_TOTALS_                                                                                   \
    idx k = (idx)(at / TERN_FOREACH_CHUNK);                                                        \
    LANES(j, count > 0)                                                                            \
    {                                                                                              \
        cs[1 + 2 * k] = of_p;                                                                      \
        cs[2 + 2 * k] = of_u;                                                                      \
        if (c + 1 == (idx)n || chunks[c + 1].row != chunks[c].row)                                 \
            cs[0] = (REAL)(k + 1);                                                                 \
    }
#define LAMB_STEP_                                                                                 \
    idx pieces = count > 0 ? (idx)cs[0] : 0;                                                       \
    LANES(j, pieces)                                                                               \
    {                                                                                              \
        of_p += cs[1 + 2 * j];                                                                     \
        of_u += cs[2 + 2 * j];                                                                     \
    }                                                                                              \
    LAMB_TOTALS_                                                                                   \
    REAL step = of_p > 0 && of_u > 0 ? o->lr * sqrt(of_p) / sqrt(of_u) : o->lr;                    \
    SIMD LANES(j, count)                                                                           \
    {                                                                                              \
        REAL p = ps[at + j];                                                                       \
        ps[at + j] = p - step * DIRECTION_(as[at + j], bs[at + j], p);                             \
    }                                                                                              \
    BARRIER();                                                                                     \
    LANES(j, count > 0) steps[c] = t;

#define LAMB_NORMS_BODY_(NAME, FIND) LAMB_BODY_(FIND, LAMB_NORMS_)
#define LAMB_STEP_BODY_(NAME, FIND)  LAMB_BODY_(FIND, LAMB_STEP_)
OPTIMIZER_FORMS(lamb_norms, LAMB_NORMS_BODY_)
OPTIMIZER_FORMS(lamb, LAMB_STEP_BODY_)

#undef DIRECTION_
#undef LAMB_BODY_
#undef LAMB_TOTALS_
#undef LAMB_NORMS_
#undef LAMB_STEP_
#undef LAMB_NORMS_BODY_
#undef LAMB_STEP_BODY_
#endif
