/* batch_norm.h -- what the kernels of batch norm share, those of norm.cl and those of fused.cl with relu behind them, so that
 * both sum in one order. */
#ifndef TERN_BATCH_NORM_H
#define TERN_BATCH_NORM_H
#define NORM_WEIGHT           1
#define NORM_BIAS             2
#define NORM_RUNNING_MEAN     4 /* to be brought up to date */
#define NORM_RUNNING_VARIANCE 8
#define NORM_FIXED            16 /* mean and variance do not depend on x */
#define NORM_COUNTED          32 /* one batch more */

/* A channel's elements: n stretches of `size`. Where lanes are many they take all of it at once, four elements a load and four
 * loads before the first is used where that can be: a channel's one group has to keep its part of a GPU's memory busy. */
#if TERN_CHUNKS
#define NORM_STRETCHES(k, row)                                                                     \
    for (idx k = 0, row = c * (idx)size; k < (idx)n; k++, row += (idx)(channels * size))
#define NORM_STRETCH(j)     LANES(j, size)
#define NORM_PLACE(row, j)  ((row) + (j))
#define NORM_BEGIN_(aligned)
#define NORM_FOURS_(DECLARE, LOAD, USE)
#else
#include "float4.h"
/* GPUs divide 64 bits in some hundred instructions, 32 in twenty. */
#define NORM_IMAGE_(j, size)   (narrow ? (idx)((u32)(j) / (u32)(size)) : (j) / (idx)(size))
#define NORM_STRETCHES(k, row) for (idx k = 0, row = c * (idx)size; k < 1; k++)
#define NORM_STRETCH(j)                                                                            \
    for (idx j = 4 * quads + (idx)LID, j##_n = (idx)(n * size); j < j##_n; j += LSIZE)
#define NORM_PLACE(row, j) ((row) + (j) + NORM_IMAGE_(j, size) * (idx)((channels - 1) * size))
#define NORM_BEGIN_(aligned)                                                                       \
    const i32 narrow = n * size < 0x7fffffff;                                                      \
    const idx quads = TERN_CAT(NORM_QUADS, IN_SET(FLOAT4, TERN_T))(aligned);
#define NORM_QUADS_0(aligned) 0
#define NORM_QUADS_1(aligned) ((size & 3) == 0 && (aligned) ? (idx)(n * size / 4) : 0)
/* LOAD loads what begins at place[u]; then USE has it. The last quad stands for those beyond it, unused. */
#define NORM_FOURS_(DECLARE, LOAD, USE)                                                            \
    TERN_CAT(NORM_FOURS, IN_SET(FLOAT4, TERN_T))(DECLARE, LOAD, USE)
#define NORM_FOURS_0(DECLARE, LOAD, USE)
#define NORM_FOURS_1(DECLARE, LOAD, USE)                                                           \
    for (idx q = (idx)LID; q < quads; q += 4 * LSIZE) {                                            \
        idx place[4];                                                                              \
        DECLARE                                                                                    \
        UNROLL for (i32 u = 0; u < 4; u++)                                                         \
        {                                                                                          \
            idx quad = q + u * LSIZE < quads ? q + u * LSIZE : quads - 1;                          \
            place[u] = c * (idx)size + 4 * quad +                                                  \
                       NORM_IMAGE_(quad, size / 4) * (idx)((channels - 1) * size);                 \
            LOAD                                                                                   \
        }                                                                                          \
        UNROLL for (i32 u = 0; u < 4; u++)                                                         \
        {                                                                                          \
            if (q + u * LSIZE < quads) {                                                           \
                USE                                                                                \
            }                                                                                      \
        }                                                                                          \
    }
#endif

/* One of the running statistics goes on towards a new value. */
#define NORM_RUN(flag, running, value)                                                             \
    if ((what & (flag)) != 0)                                                                      \
        running = (1 - momentum) * running + momentum * (value);

/* The first channel counts the batch. */
#define NORM_COUNT(c)                                                                              \
    if ((what & NORM_COUNTED) != 0 && (c) == 0)                                                    \
        counts[0] += 1;

/* The kernels' bodies. STORE writes v to element `at`, STORE4 v4 to the four from `at` on, where `aligned` holds. DY is what
 * came in for `at`; LOAD_DY4 loads it with others, and DY4 is that of element e of quad u. */
#define BATCH_NORM_(aligned, STORE, STORE4)                                                        \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    NORM_BEGIN_(ALIGNED4(xs) && (aligned))                                                         \
    GROUPS(c, channels)                                                                            \
    {                                                                                              \
        ACC mean = 0, squares = 0;                                                                 \
        NORM_FOURS_(REAL x4[4][4];, LOAD4(x4[u], xs + place[u], 0);                                \
                    , EACH4(e) mean += x4[u][e];)                                                  \
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
        NORM_FOURS_(REAL x4[4][4];, LOAD4(x4[u], xs + place[u], 0);, EACH4(e) {                    \
            ACC d = x4[u][e] - mean;                                                               \
            squares += d * d;                                                                      \
        })                                                                                         \
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
        ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;                                   \
        ACC b = (what & NORM_BIAS) != 0 ? bs[c] : 0;                                               \
        if (LID == 0) {                                                                            \
            means[c] = mean;                                                                       \
            rstds[c] = rstd;                                                                       \
            NORM_RUN(NORM_RUNNING_MEAN, running_means[c], mean)                                    \
            NORM_RUN(NORM_RUNNING_VARIANCE, running_variances[c], squares / (ACC)(n * size - 1))   \
            NORM_COUNT(c)                                                                          \
        }                                                                                          \
        NORM_FOURS_(REAL x4[4][4]; REAL v4[4];, LOAD4(x4[u], xs + place[u], 0);                    \
                    , EACH4(e) v4[e] = (x4[u][e] - mean) * w + b; STORE4)                          \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            SIMD NORM_STRETCH(j)                                                                   \
            {                                                                                      \
                idx at = NORM_PLACE(row, j);                                                       \
                ACC v = (LD(xs, at) - mean) * w + b;                                               \
                STORE                                                                              \
            }                                                                                      \
        }                                                                                          \
    }
#define BATCH_NORM_GRADIENT_(aligned, DY, LOAD_DY4, DY4)                                           \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    NORM_BEGIN_(ALIGNED4(xs) && ALIGNED4(dys) && ALIGNED4(dxs) && (aligned))                       \
    GROUPS(c, channels)                                                                            \
    {                                                                                              \
        ACC mean = means[c], rstd = rstds[c], dw = 0, db = 0;                                      \
        NORM_FOURS_(REAL x4[4][4]; REAL d4[4][4]; REAL m4[4][4];                                   \
                    , LOAD4(x4[u], xs + place[u], 0); LOAD_DY4, EACH4(e) {                         \
                        ACC dy = (DY4);                                                            \
                        db += dy;                                                                  \
                        dw += dy * (x4[u][e] - mean);                                              \
                    })                                                                             \
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
        NORM_FOURS_(REAL x4[4][4]; REAL d4[4][4]; REAL m4[4][4]; REAL v4[4];                       \
                    , LOAD4(x4[u], xs + place[u], 0); LOAD_DY4, EACH4(e) {                         \
                        v4[e] = w * ((DY4)-share - (x4[u][e] - mean) * slope);                     \
                    } STORE4(dxs + place[u], 0, v4);)                                              \
        NORM_STRETCHES(k, row)                                                                     \
        {                                                                                          \
            SIMD NORM_STRETCH(j)                                                                   \
            {                                                                                      \
                idx at = NORM_PLACE(row, j);                                                       \
                ACC d = LD(xs, at) - mean;                                                         \
                ST(dxs, at, w * ((DY)-share - d * slope));                                         \
            }                                                                                      \
        }                                                                                          \
    }
#endif
