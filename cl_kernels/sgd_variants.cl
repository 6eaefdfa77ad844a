/* sgd_variants.cl -- Rprop, ASGD and the end of Muon: steps along the gradient, taken in other
 * ways. Halves are computed as f32. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

/* Riedmiller & Braun 1993. */
RULE2(rprop, prev, step_size)
{
    REAL less = o->etaminus, more = o->etaplus, sign = o->sign, decay = 0;
    REAL low = o->step_size_min, high = o->step_size_max;
    REAL first = t == 1 ? o->lr : C(0.0);
    SIMD LANES(j, n)
    {
        EACH_
        REAL turn = g * prev[j], step = step_size[j] + first;
        step *= turn > 0 ? more : turn < 0 ? less : C(1.0);
        step = step < low ? low : step;
        step = step > high ? high : step;
        g = turn < 0 ? C(0.0) : g;
        prev[j] = g;
        step_size[j] = step;
        ps[j] = p - (g > 0 ? step : g < 0 ? -step : C(0.0));
    }
}

/* Polyak & Juditsky 1992: ax is the average. */
RULE1(asgd, ax)
{
    REAL decay = o->weight_decay, lambda = o->lambd, sign = o->sign, before = (REAL)(t - 1);
    REAL lr = t == 1 ? o->lr : o->lr / pow(C(1.0) + lambda * o->lr * before, o->alpha);
    REAL weight = before - o->t0 > 1 ? C(1.0) / (before - o->t0) : C(1.0);
    SIMD LANES(j, n)
    {
        EACH_
        p = p * (C(1.0) - lambda * lr) - lr * g;
        ax[j] = weight == 1 ? p : ax[j] + (p - ax[j]) * weight;
        ps[j] = p;
    }
}

/* The end of a step of Muon, which made two columns before: the new momentum, the direction made of
 * it. */
RULE3(muon, momentum_buffer, new_buffer, direction)
{
    REAL lr = o->lr, shrink = C(1.0) - lr * o->weight_decay;
    SIMD LANES(j, n)
    {
        momentum_buffer[j] = new_buffer[j];
        ps[j] = ps[j] * shrink - lr * direction[j];
    }
}

OPTIMIZER_KERNEL(rprop)
OPTIMIZER_KERNEL(asgd)
OPTIMIZER_KERNEL(muon)
#endif
