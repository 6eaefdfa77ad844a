/* optimizer.cl -- optimizers: one launch for all parameters of a device and type.
 *
 * NAME_chunk updates the elements of one chunk in its step t = 1, 2, ...: ps parameters, gs
 * gradients, three arrays of state, h the hyperparameters. States are REAL: f32 for f16 and bf16. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "multi_tensor.h"
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

/* ---- clipping: the sum of squares of each chunk; all chunks times one number ------------- */

INLINE ACC K(chunk_squares)(const GLOBAL STO *gs, idx n)
{
    ACC sum = 0;
    SIMD_SUM(sum) LANES(j, n)
    {
        ACC g = LD(gs, j);
        sum += g * g;
    }
    return sum;
}

INLINE void K(chunk_times)(GLOBAL STO *gs, idx n, REAL factor)
{
    SIMD LANES(j, n)
    {
        ST(gs, j, LD(gs, j) * factor);
    }
}

#define SQUARES_BODY_(NAME, FIND)                                                                  \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(sums);                                                                                \
        BASE(faults);                                                                              \
        LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                        \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            FIND(c)                                                                                \
            ACC sum = K(chunk_squares)(ps + (idx)chunks[c].first, (idx)chunks[c].count);           \
            sum = GROUP_SUM(sum, scratch);                                                         \
            LANES(j, 1) sums[c] = sum;                                                             \
        }                                                                                          \
    }
MANY6(squares, SQUARES_BODY_, (IN, tern_multi_row, rows), (IN, tern_multi_chunk, chunks), (OUT, ACC, sums),
      (IN, i64, faults), (ARG, i64, n), (ARG, i32, flags))

#define TIMES_BODY_(NAME, FIND)                                                                    \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(factor);                                                                              \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            FIND(c)                                                                                \
            K(chunk_times)(ps + (idx)chunks[c].first, (idx)chunks[c].count, factor[0]);            \
        }                                                                                          \
    }
MANY6(times, TIMES_BODY_, (IN, tern_multi_row, rows), (IN, tern_multi_chunk, chunks), (IN, REAL, factor),
      (IN, i64, faults), (ARG, i64, n), (ARG, i32, flags))

/* ---- gradients over the scale of mixed precision; *found is 1 where one is not finite ------ */

INLINE void K(chunk_unscale)(GLOBAL STO *gs, idx n, f32 scale, GLOBAL f32 *found)
{
    REAL factor = C(1.0) / (REAL)scale;
    REAL bad = 0; /* x - x is 0, but NaN for infinities and NaN */
    SIMD_SUM(bad) LANES(j, n)
    {
        REAL g = LD(gs, j);
        bad += g - g;
        ST(gs, j, g * factor);
    }
    if (bad != 0)
        found[0] = 1.0f;
}
#define UNSCALE_BODY_(NAME, FIND)                                                                  \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(scale);                                                                               \
        BASE(found);                                                                               \
        GROUPS(c, n)                                                                               \
        {                                                                                          \
            FIND(c)                                                                                \
            if (ps != 0)                                                                           \
                K(chunk_unscale)(ps + (idx)chunks[c].first, (idx)chunks[c].count, scale[0], found); \
        }                                                                                          \
    }
MANY7(unscale, UNSCALE_BODY_, (IN, tern_multi_row, rows), (IN, tern_multi_chunk, chunks), (IN, f32, scale),
      (OUT, f32, found), (IN, i64, faults), (ARG, i64, n), (ARG, i32, flags))
#endif

/* The scale after a step: it backs off after one that found something, and grows after `interval`
 * others in a row, as far as f32 reaches. */
#if IS_FLOAT && !IS_HALF && !IS_WIDE
KERNEL6(K(update_scale), (OUT, f32, scale), (OUT, i64, tracker), (IN, f32, found),
        (ARG, f32, growth), (ARG, f32, backoff), (ARG, i64, interval))
{
    BASE(scale);
    BASE(tracker);
    BASE(found);
    ITEMS(i, 1)
    {
        f32 grown = scale[0] * growth;
        i64 good = found[0] != 0 ? 0 : tracker[0] + 1;
        if (found[0] != 0)
            scale[0] *= backoff;
        else if (good == interval && grown - grown == 0)
            scale[0] = grown;
        tracker[0] = good == interval ? 0 : good;
    }
}
#endif
