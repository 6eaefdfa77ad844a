/* sgd_adam.cl -- SGD, Adam and AdamW, which most trainings wait for, in halves too. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT

/* d = g + decay p;  b = momentum b + (1 - dampening) d, but d at first;  p -= lr b
 * (Sutskever et al. 2013, as PyTorch has it). */
RULE1(sgd, momentum_buffer)
{
    REAL lr = o->lr, momentum = o->momentum, decay = o->weight_decay, sign = o->sign;
    REAL fresh = t == 1 ? C(1.0) : o->fresh;
    i32 nesterov = o->nesterov != 0;
    if (momentum_buffer == 0) {
        SIMD LANES(j, n)
        {
            EACH_
            ST(ps, j, p - lr * g);
        }
    } else {
        SIMD LANES(j, n)
        {
            EACH_
            REAL b = momentum * momentum_buffer[j] + fresh * g; /* it is zero at first */
            momentum_buffer[j] = b;
            g = nesterov ? g + momentum * b : b;
            ST(ps, j, p - lr * g);
        }
    }
}

ONE_MINUS_POWER

/* Kingma & Ba 2015; Loshchilov & Hutter 2019; Reddi et al. 2018 for the maximum. */
RULE3(adam, exp_avg, exp_avg_sq, max_exp_avg_sq)
{
    MOMENTS_
    REAL step = lr / K(one_minus_power)(o->log_beta1, t);
    REAL scale = sqrt(K(one_minus_power)(o->log_beta2, t));
    i32 amsgrad = max_exp_avg_sq != 0;
    if (!amsgrad)
        max_exp_avg_sq = exp_avg_sq;
    SIMD LANES(j, n)
    {
        EACH_
        REAL m = exp_avg[j] * beta1 + fresh1 * g;
        REAL v = exp_avg_sq[j] * beta2 + fresh2 * g * g;
        REAL old = max_exp_avg_sq[j], top = amsgrad && v <= old ? old : v; /* a NaN in v stays */
        exp_avg[j] = m;
        exp_avg_sq[j] = v;
        max_exp_avg_sq[j] = top;
        ST(ps, j, p * shrink - step * m / (sqrt(top) / scale + eps));
    }
}

OPTIMIZER_KERNEL(sgd)
OPTIMIZER_KERNEL(adam)
#endif
