/* sgd_variants.cl -- Rprop, ASGD and the end of Muon: steps along the gradient, taken in other ways. Halves
 * are computed as f32. h begins with {lr, weight decay}. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

/* h = {.., eta-, eta+, smallest step, largest step} (Riedmiller & Braun 1993). */
RULE(rprop)
{
    REAL less = h[2], more = h[3], low = h[4], high = h[5], sign = SIGN_, decay = 0;
    REAL first = t == 1 ? h[0] : C(0.0);
    SIMD LANES(j, n)
    {
        EACH_
        REAL turn = g * as[j], step = bs[j] + first;
        step *= turn > 0 ? more : turn < 0 ? less : C(1.0);
        step = step < low ? low : step;
        step = step > high ? high : step;
        g = turn < 0 ? C(0.0) : g;
        as[j] = g;
        bs[j] = step;
        ps[j] = p - (g > 0 ? step : g < 0 ? -step : C(0.0));
    }
}

/* h = {.., lambda, alpha, t0} (Polyak & Juditsky 1992): as is the average. */
RULE(asgd)
{
    REAL decay = h[1], lambda = h[2], sign = SIGN_, before = (REAL)(t - 1);
    REAL lr = t == 1 ? h[0] : h[0] / pow(C(1.0) + lambda * h[0] * before, h[3]);
    REAL weight = before - h[4] > 1 ? C(1.0) / (before - h[4]) : C(1.0);
    SIMD LANES(j, n)
    {
        EACH_
        p = p * (C(1.0) - lambda * lr) - lr * g;
        as[j] = weight == 1 ? p : as[j] + (p - as[j]) * weight;
        ps[j] = p;
    }
}

/* The end of a step of Muon: as the momentum, bs its new value, cs the direction made of it. */
RULE(muon)
{
    REAL lr = h[0], shrink = C(1.0) - lr * h[1];
    SIMD LANES(j, n)
    {
        as[j] = bs[j];
        ps[j] = ps[j] * shrink - lr * cs[j];
    }
}

OPTIMIZER(rprop)
OPTIMIZER(asgd)
OPTIMIZER(muon)
#endif
