/* rmsprop_adagrad.cl -- RMSprop, Adagrad and Adadelta, which measure each element's gradients.
 * Halves are computed as f32. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "optimizer_rule.h"
#if IS_FLOAT && !IS_HALF

/* Tieleman & Hinton 2012; centered: Graves 2013. */
RULE3(rmsprop, square_avg, grad_avg, momentum_buffer)
{
    REAL lr = o->lr, decay = o->weight_decay, sign = o->sign;
    REAL alpha = o->alpha, fresh = o->fresh, eps = o->eps, momentum = o->momentum;
    i32 centered = grad_avg != 0, has_momentum = momentum > 0 && momentum_buffer != 0;
    if (!centered)
        grad_avg = square_avg; /* read, and written back square_avg it was */
    if (!has_momentum)
        momentum_buffer = square_avg;
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = square_avg[j] * alpha + fresh * g * g;
        REAL mean = centered ? grad_avg[j] * alpha + fresh * g : C(0.0);
        REAL d = g / (sqrt(v - mean * mean) + eps);
        REAL b = has_momentum ? momentum * momentum_buffer[j] + d : v;
        grad_avg[j] = centered ? mean : v;
        momentum_buffer[j] = b;
        square_avg[j] = v;
        ps[j] = p - lr * (has_momentum ? b : d);
    }
}

/* Duchi, Hazan, Singer 2011. */
RULE1(adagrad, sum)
{
    REAL lr = o->lr / (C(1.0) + (REAL)(t - 1) * o->lr_decay);
    REAL decay = o->weight_decay, eps = o->eps, sign = o->sign;
    REAL first = t == 1 ? o->initial_accumulator_value : C(0.0);
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = sum[j] + first + g * g;
        sum[j] = v;
        ps[j] = p - lr * g / (sqrt(v) + eps);
    }
}

/* Zeiler 2012. */
RULE2(adadelta, square_avg, acc_delta)
{
    REAL lr = o->lr, decay = o->weight_decay, sign = o->sign;
    REAL rho = o->rho, fresh = o->fresh, eps = o->eps;
    SIMD LANES(j, n)
    {
        EACH_
        REAL v = square_avg[j] * rho + fresh * g * g, w = acc_delta[j];
        REAL d = sqrt(w + eps) / sqrt(v + eps) * g;
        square_avg[j] = v;
        acc_delta[j] = w * rho + fresh * d * d;
        ps[j] = p - lr * d;
    }
}

OPTIMIZER_KERNEL(rmsprop)
OPTIMIZER_KERNEL(adagrad)
OPTIMIZER_KERNEL(adadelta)
#endif
