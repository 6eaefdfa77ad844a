/* rmsprop_adagrad.cl -- RMSprop, Adagrad and Adadelta, which measure each element's gradients. Halves are
 * computed as f32. h begins with {lr, weight decay}. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

/* h = {.., alpha, 1 - alpha, eps, momentum} (Tieleman & Hinton 2012; centered: Graves 2013). */
RULE(rmsprop)
{
    REAL lr = h[0], decay = h[1], alpha = h[2], fresh = h[3], eps = h[4], momentum = h[5];
    REAL sign = SIGN_;
    i32 centered = (flags & TERN_OPTIM_CENTERED) != 0, has_momentum = momentum > 0;
    if (!centered)
        bs = as; /* read, and written back as it was */
    if (!has_momentum)
        cs = as;
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = as[j] * alpha + fresh * g * g;
        REAL mean = centered ? bs[j] * alpha + fresh * g : C(0.0);
        REAL d = g / (sqrt(v - mean * mean) + eps);
        REAL b = has_momentum ? momentum * cs[j] + d : v;
        bs[j] = centered ? mean : v;
        cs[j] = b;
        as[j] = v;
        ps[j] = p - lr * (has_momentum ? b : d);
    }
}

/* h = {.., lr decay, first value, eps} (Duchi, Hazan, Singer 2011). */
RULE(adagrad)
{
    REAL lr = h[0] / (C(1.0) + (REAL)(t - 1) * h[2]), decay = h[1], eps = h[4], sign = SIGN_;
    REAL first = t == 1 ? h[3] : C(0.0);
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = as[j] + first + g * g;
        as[j] = v;
        ps[j] = p - lr * g / (sqrt(v) + eps);
    }
}

/* h = {.., rho, 1 - rho, eps} (Zeiler 2012). */
RULE(adadelta)
{
    REAL lr = h[0], decay = h[1], rho = h[2], fresh = h[3], eps = h[4], sign = SIGN_;
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = as[j] * rho + fresh * g * g, w = bs[j];
        REAL d = sqrt(w + eps) / sqrt(v + eps) * g;
        as[j] = v;
        bs[j] = w * rho + fresh * d * d;
        ps[j] = p - lr * d;
    }
}

OPTIMIZER(rmsprop)
OPTIMIZER(adagrad)
OPTIMIZER(adadelta)
#endif
