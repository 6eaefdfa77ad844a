/* sgd_adam.cl -- SGD, Adam and AdamW, which most trainings wait for: one launch for all parameters of a
 * device and type.
 *
 * NAME_chunk updates the elements of one chunk in its step t = 1, 2, ...: ps parameters, gs
 * gradients, three arrays of state, h the hyperparameters. States are REAL: f32 for f16 and bf16. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT

/* h = {lr, momentum, 1 - dampening, weight decay} (Sutskever et al. 2013, as PyTorch has it):
 * d = g + decay p;  b = momentum b + (1 - dampening) d, but d at first;  p -= lr b. */
INLINE void K(sgd_chunk)(GLOBAL STO *ps, const GLOBAL STO *gs, GLOBAL REAL *bs, GLOBAL REAL *none,
                         GLOBAL REAL *nought, idx n, i64 t, const GLOBAL REAL *h, i32 flags)
{
    REAL lr = h[0], momentum = h[1], decay = h[3];
    REAL fresh = t == 1 ? C(1.0) : h[2];
    REAL sign = (flags & TERN_OPTIM_MAXIMIZE) != 0 ? C(-1.0) : C(1.0);
    if ((flags & TERN_OPTIM_MOMENTUM) == 0) {
        SIMD LANES(j, n)
        {
            REAL p = LD(ps, j), d = sign * LD(gs, j);
            d = decay != 0 ? d + decay * p : d;
            ST(ps, j, p - lr * d);
        }
    } else {
        SIMD LANES(j, n)
        {
            REAL p = LD(ps, j), d = sign * LD(gs, j);
            d = decay != 0 ? d + decay * p : d;
            REAL b = momentum * bs[j] + fresh * d; /* bs is zero at first */
            bs[j] = b;
            d = (flags & TERN_OPTIM_NESTEROV) != 0 ? d + momentum * b : b;
            ST(ps, j, p - lr * d);
        }
    }
}

ONE_MINUS_POWER

/* h = {lr, beta1, 1 - beta1, beta2, 1 - beta2, log beta1, log beta2, eps, weight decay}
 * (Kingma & Ba 2015; Loshchilov & Hutter 2019; Reddi et al. 2018 for the maximum). */
INLINE void K(adam_chunk)(GLOBAL STO *ps, const GLOBAL STO *gs, GLOBAL REAL *ms, GLOBAL REAL *vs,
                          GLOBAL REAL *tops, idx n, i64 t, const GLOBAL REAL *h, i32 flags)
{
    REAL beta1 = h[1], fresh1 = h[2], beta2 = h[3], fresh2 = h[4], eps = h[7];
    REAL lr = h[0] / K(one_minus_power)(h[5], t);
    REAL scale = sqrt(K(one_minus_power)(h[6], t));
    REAL sign = (flags & TERN_OPTIM_MAXIMIZE) != 0 ? C(-1.0) : C(1.0);
    i32 amsgrad = (flags & TERN_OPTIM_AMSGRAD) != 0;
    i32 decoupled = (flags & TERN_OPTIM_DECOUPLED) != 0;
    REAL shrink = decoupled ? C(1.0) - h[0] * h[8] : C(1.0), decay = decoupled ? C(0.0) : h[8];
    if (!amsgrad)
        tops = vs;
    SIMD LANES(j, n)
    {
        REAL p = LD(ps, j), g = sign * LD(gs, j);
        g = decay != 0 ? g + decay * p : g;
        REAL m = ms[j] * beta1 + fresh1 * g;
        REAL v = vs[j] * beta2 + fresh2 * g * g;
        REAL old = tops[j], top = amsgrad && v <= old ? old : v; /* a NaN in v stays */
        ms[j] = m;
        vs[j] = v;
        tops[j] = top;
        ST(ps, j, p * shrink - lr * m / (sqrt(top) / scale + eps));
    }
}

OPTIMIZER(sgd)
OPTIMIZER(adam)
#endif
