/* batch_norm.h -- what the kernels of batch norm share, those of norm.cl and those of fused.cl with relu behind them, so that
 * both sum in one order. */
#ifndef TERN_BATCH_NORM_H
#define TERN_BATCH_NORM_H
#define NORM_WEIGHT  1
#define NORM_BIAS    2
#define NORM_RUNNING_MEAN     4 /* to be brought up to date */
#define NORM_RUNNING_VARIANCE 8
#define NORM_FIXED            16 /* mean and variance do not depend on x */
#define NORM_COUNTED          32 /* one batch more */

/* A channel's elements: n stretches of `size`. Where lanes are many they take all of it at once. */
#if TERN_CHUNKS
#define NORM_STRETCHES(k, row)                                                                          \
    for (idx k = 0, row = c * (idx)size; k < (idx)n; k++, row += (idx)(channels * size))
#define NORM_STRETCH(j)     LANES(j, size)
#define NORM_PLACE(row, j)  ((row) + (j))
#else
#define NORM_STRETCHES(k, row) for (idx k = 0, row = c * (idx)size; k < 1; k++)
#define NORM_STRETCH(j)        LANES(j, n *size)
#define NORM_PLACE(row, j)     ((row) + (j) + NORM_STRETCH_OF(j) * (idx)((channels - 1) * size))
/* GPUs divide 64 bits in some hundred instructions, 32 in twenty. */
#define NORM_STRETCH_OF(j) (narrow ? (idx)((u32)(j) / (u32)size) : (j) / (idx)size)
#endif

/* One of the running statistics goes on towards a new value. */
#define NORM_RUN(flag, running, value)                                                                  \
    if ((what & (flag)) != 0)                                                                      \
        running = (1 - momentum) * running + momentum * (value);

/* The first channel counts the batch. */
#define NORM_COUNT(c)                                                                                   \
    if ((what & NORM_COUNTED) != 0 && (c) == 0)                                                         \
        counts[0] += 1;

/* The kernels' bodies. STORE writes v to element `at`; DY is what came in for that. */
#define BATCH_NORM_(STORE)                                                                         \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    const i32 narrow = n * size < 0x7fffffff;                                                      \
    GROUPS(c, channels)                                                                            \
    {                                                                                              \
        ACC mean = 0, squares = 0;                                                                 \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            ACC s = 0;                                                                             \
            SIMD_SUM(s) NORM_STRETCH(j)                                                            \
            {                                                                                      \
                s += LD(xs, NORM_PLACE(row, j));                                                   \
            }                                                                                      \
            mean += s;                                                                             \
        }                                                                                          \
        mean = GROUP_SUM(mean, scratch) / (ACC)(n * size);                                         \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            ACC s = 0;                                                                             \
            SIMD_SUM(s) NORM_STRETCH(j)                                                            \
            {                                                                                      \
                ACC d = LD(xs, NORM_PLACE(row, j)) - mean;                                         \
                s += d * d;                                                                        \
            }                                                                                      \
            squares += s;                                                                          \
        }                                                                                          \
        squares = GROUP_SUM(squares, scratch);                                                     \
        ACC rstd = 1 / sqrt(squares / (ACC)(n * size) + eps);                                      \
        ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd, b = (what & NORM_BIAS) != 0 ? bs[c] : 0;\
        if (LID == 0) {                                                                            \
            means[c] = mean;                                                                       \
            rstds[c] = rstd;                                                                       \
            NORM_RUN(NORM_RUNNING_MEAN, running_means[c], mean)                                    \
            NORM_RUN(NORM_RUNNING_VARIANCE, running_variances[c], squares / (ACC)(n * size - 1))   \
            NORM_COUNT(c)                                                                          \
        }                                                                                          \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            SIMD NORM_STRETCH(j)                                                                   \
            {                                                                                      \
                idx at = NORM_PLACE(row, j);                                                       \
                ACC v = (LD(xs, at) - mean) * w + b;                                               \
                STORE;                                                                             \
            }                                                                                      \
        }                                                                                          \
    }
#define BATCH_NORM_GRADIENT_(DY)                                                                   \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    const i32 narrow = n * size < 0x7fffffff;                                                      \
    GROUPS(c, channels)                                                                            \
    {                                                                                              \
        ACC mean = means[c], rstd = rstds[c], dw = 0, db = 0;                                      \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            ACC s = 0, t = 0;                                                                      \
            SIMD_SUM2(s, t) NORM_STRETCH(j)                                                        \
            {                                                                                      \
                idx at = NORM_PLACE(row, j);                                                       \
                ACC dy = (DY);                                                                     \
                s += dy;                                                                           \
                t += dy * (LD(xs, at) - mean);                                                     \
            }                                                                                      \
            db += s;                                                                               \
            dw += t;                                                                               \
        }                                                                                          \
        db = GROUP_SUM(db, scratch);                                                               \
        dw = GROUP_SUM(dw, scratch) * rstd;                                                        \
        if (LID == 0) {                                                                            \
            dws[c] = dw;                                                                           \
            dbs[c] = db;                                                                           \
        }                                                                                          \
        ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;                                   \
        ACC share = db / (ACC)(n * size), slope = rstd * dw / (ACC)(n * size);                     \
        if ((what & NORM_FIXED) != 0)                                                              \
            share = slope = 0;                                                                     \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            SIMD NORM_STRETCH(j)                                                                   \
            {                                                                                      \
                idx at = NORM_PLACE(row, j);                                                       \
                ACC d = LD(xs, at) - mean;                                                         \
                ST(dxs, at, w * ((DY) - share - d * slope));                                       \
            }                                                                                      \
        }                                                                                          \
    }
#endif
