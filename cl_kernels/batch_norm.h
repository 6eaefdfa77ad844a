/* batch_norm.h -- what the kernels of batch norm share, those of norm.cl and those with
 * relu behind them, so that both sum in one order. Relu's gradient is a mask, which is relu's
 * result, or is found in x again: where (x - mean) w + b is not above 0. */
#ifndef TERN_BATCH_NORM_H
#define TERN_BATCH_NORM_H
#include "chain_slots.h"
#include "norm_again.h"
#define NORM_WEIGHT           1
#define NORM_BIAS             2
#define NORM_RUNNING_MEAN     4 /* to be brought up to date */
#define NORM_RUNNING_VARIANCE 8
#define NORM_FIXED            16 /* mean and variance do not depend on x */
#define NORM_COUNTED          32 /* one batch more */
#define NORM_PIECES           TERN_NORM_PIECES
#define NORM_RELU             128
#define NORM_GIVEN            256 /* running statistics, instead of those of x */
#define NORM_UNREAD           TERN_NORM_UNREAD

/* v where it is stored, as far as its sign goes: a half below the least rounds to 0. Relu of that,
 * and whether relu's gradient is 0. */
#define NORM_SIGNED_(v)                                                                            \
    TERN_CAT(NORM_SIGNED, DTYPE_FIELD(CODE, TERN_ROW_(TERN_T)))(v)
#define NORM_SIGNED_PLAIN(v) (v)
#define NORM_SIGNED_F16(v)                                                                         \
    ((v) <= C(2.98023223876953125e-8) && (v) >= C(-2.98023223876953125e-8) ? 0 : (v))
#define NORM_SIGNED_BF16(v) f32_from_bits((u32)tern_f32_to_bf16(v) << 16)
#define NORM_RELU_OF_(v)    (NORM_SIGNED_(v) < 0 ? 0 : (v))
#define NORM_IS_OFF_(v)     (NORM_SIGNED_(v) <= 0)

#if TERN_HOST && !defined(TERN_STANDIN) /* whose threads share channels */
#define NORM_PARTS   1
#define NORM_ENDS_() 1
#else
#define NORM_PARTS   (idx) parts
#define NORM_ENDS_() ((what & NORM_PIECES) == 0)
#endif
/* A channel's elements are n slices of `size`. A group has one of the `parts` of them, elements
 * `from` to `to`. Of several parts a first launch writes what each adds up to, two numbers in
 * `pieces`; in the second each group puts those of its channel together, in their order, and goes
 * on with its own part. */
#define NORM_PART_OF_(g)                                                                           \
    const idx c = (g) / NORM_PARTS, all = (idx)(n * size);                                         \
    const idx len = ((all + NORM_PARTS - 1) / NORM_PARTS + 3) & ~(idx)3;                           \
    const idx from = NORM_CUT_((g) - c * NORM_PARTS), to = NORM_CUT_((g) - c * NORM_PARTS + 1);    \
    const i32 joins = NORM_PARTS > 1 && NORM_ENDS_(), ends = NORM_ENDS_();
#define NORM_CUT_(k) ((k) * len < all ? (k) * len : all)
/* Where the channel begins, and from the end of a slice to the next. */
#define NORM_FIRST (c * (idx)size)
#define NORM_GAP   ((idx)(channels - 1) * (idx)size)

/* So many more numbers, whose mean is m and whose squares about it add up to s (Chan et al.
 * 1979). */
#define NORM_MEET_(more, m, s)                                                                     \
    {                                                                                              \
        const ACC both = count + (more);                                                           \
        const ACC share = (more) / both;                                                           \
        const ACC d = (m)-mean; /* no commas: macros take this on */                               \
        mean += d * share;                                                                         \
        squares += (s) + d * d * count * share;                                                    \
        count = both;                                                                              \
    }

#if TERN_CHUNKS
#define NORM_BEGIN_(aligned)
/* Runs of elements that lie side by side. */
#define NORM_RUNS_(at, run)                                                                        \
    for (idx left = to - from, inside = from % (idx)size,                                          \
             at = NORM_FIRST + from + from / (idx)size * NORM_GAP, run;                            \
         left > 0 && (run = NORM_LESS_((idx)size - inside, NORM_LESS_(left, 1024)), 1);            \
         left -= run, inside += run, at += run + (inside == (idx)size ? NORM_GAP : 0),             \
             inside = inside == (idx)size ? 0 : inside)
#define NORM_LESS_(a, b) ((a) < (b) ? (a) : (b))
#define NORM_MOMENTS_()                                                                            \
    NORM_RUNS_(row, run)                                                                           \
    {                                                                                              \
        ACC s = 0;                                                                                 \
        SIMD_SUM(s) LANES(j, run)                                                                  \
        {                                                                                          \
            s += LD(xs, row + j) - origin;                                                         \
        }                                                                                          \
        mean += s;                                                                                 \
    }                                                                                              \
    count = (ACC)(to - from);                                                                      \
    mean = mean / (count > 0 ? count : 1);                                                         \
    NORM_RUNS_(row, run)                                                                           \
    {                                                                                              \
        ACC s = 0;                                                                                 \
        SIMD_SUM(s) LANES(j, run)                                                                  \
        {                                                                                          \
            ACC d = LD(xs, row + j) - origin - mean;                                               \
            s += d * d;                                                                            \
        }                                                                                          \
        squares += s;                                                                              \
    }
#define NORM_WRITE_(STORE, STORES)                                                                 \
    NORM_RUNS_(row, run)                                                                           \
    {                                                                                              \
        SIMD LANES(j, run)                                                                         \
        {                                                                                          \
            idx at = row + j;                                                                      \
            ACC v = (LD(xs, at) - mean) * w + b;                                                   \
            STORE                                                                                  \
        }                                                                                          \
    }
#define NORM_DW_DB_(DY, LOAD_DY, DYS)                                                              \
    NORM_RUNS_(row, run)                                                                           \
    {                                                                                              \
        ACC s = 0, t = 0;                                                                          \
        SIMD_SUM2(s, t) LANES(j, run)                                                              \
        {                                                                                          \
            idx at = row + j;                                                                      \
            ACC dy = (DY);                                                                         \
            s += dy;                                                                               \
            t += dy * (LD(xs, at) - mean);                                                         \
        }                                                                                          \
        db += s;                                                                                   \
        dw += t;                                                                                   \
    }
#define NORM_DX_(DY, LOAD_DY, DYS)                                                                 \
    NORM_RUNS_(row, run)                                                                           \
    {                                                                                              \
        SIMD LANES(j, run)                                                                         \
        {                                                                                          \
            idx at = row + j;                                                                      \
            ACC d = LD(xs, at) - mean;                                                             \
            ST(dxs, at, w * ((DY)-share - d * slope));                                             \
        }                                                                                          \
    }
#else
#include "float4.h"
/* Where lanes are many each goes through its part by units of four elements that lie side by side,
 * where that can be, or of one, and has four of them under way before it uses the first: a
 * channel's few groups have to keep their part of a GPU's memory busy. Which slice a unit is in
 * is found by division for the first alone. */
#define NORM_BEGIN_(aligned) const i32 fours = TERN_CAT(NORM_BY_4, IN_SET(FLOAT4, TERN_T))(aligned);
#define NORM_BY_4_0(aligned) 0
#define NORM_BY_4_1(aligned) ((size & 3) == 0 && (aligned))
#define NORM_UNITS_(DECLARE, LOAD, USE)                                                            \
    TERN_CAT(NORM_UNITS, IN_SET(FLOAT4, TERN_T))(DECLARE, LOAD, USE)
#define NORM_UNITS_0(DECLARE, LOAD, USE) NORM_UNITS_OF_(1, DECLARE, LOAD, USE)
#define NORM_UNITS_1(DECLARE, LOAD, USE)                                                           \
    if (fours != 0)                                                                                \
        NORM_UNITS_OF_(4, DECLARE, LOAD, USE)                                                      \
    else                                                                                           \
        NORM_UNITS_OF_(1, DECLARE, LOAD, USE)
/* LOAD loads what begins at `at`, then USE has it; a lane's first unit stands for those beyond its
 * last, unused. */
#define NORM_UNITS_OF_(UNIT, DECLARE, LOAD, USE)                                                   \
    {                                                                                              \
        enum { EACH = UNIT, UNITS = 4 };                                                           \
        const idx width = (idx)size / EACH, end = to / EACH;                                       \
        const idx jump = LSIZE / width, on = LSIZE - jump * width;                                 \
        const idx hop = jump * ((idx)size + NORM_GAP) + on * EACH;                                 \
        idx q = from / EACH + (idx)LID, image = q / width, inside = q - image * width;             \
        idx next = NORM_FIRST + q * EACH + image * NORM_GAP;                                       \
        for (; q < end; q += 4 * LSIZE) {                                                          \
            idx place[4];                                                                          \
            DECLARE                                                                                \
            UNROLL for (i32 u = 0; u < 4; u++)                                                     \
            {                                                                                      \
                place[u] = u == 0 || q + u * LSIZE < end ? next : place[0];                        \
                inside += on;                                                                      \
                next += inside < width ? hop : hop + NORM_GAP;                                     \
                inside = inside < width ? inside : inside - width;                                 \
            }                                                                                      \
            UNROLL for (i32 u = 0; u < 4; u++)                                                     \
            {                                                                                      \
                const idx at = place[u];                                                           \
                LOAD                                                                               \
            }                                                                                      \
            i32 loaded = 1;                                                                        \
            LOADED(loaded)                                                                         \
            UNROLL for (i32 u = 0; u < 4; u++)                                                     \
            {                                                                                      \
                const idx at = place[u];                                                           \
                if (u == 0 ? loaded : q + u * LSIZE < end) {                                       \
                    USE                                                                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define EACH_OF(e) UNROLL for (i32 e = 0; e < EACH; e++)
#define NORM_LOAD_(v, p)                                                                           \
    TERN_CAT(NORM_LOAD_4, IN_SET(FLOAT4, TERN_T))(v, p)                                            \
        v[0] = LD(p, at);
#define NORM_STORE_(p, v)                                                                          \
    TERN_CAT(NORM_STORE_4, IN_SET(FLOAT4, TERN_T))(p, v)                                           \
        ST(p, at, v[0]);
#define NORM_LOAD_4_0(v, p)
#define NORM_STORE_4_0(p, v)
#define NORM_LOAD_4_1(v, p)                                                                        \
    if (EACH == 4) {                                                                               \
        LOAD4(v, (p) + at, 0);                                                                     \
    } else
#define NORM_STORE_4_1(p, v)                                                                       \
    if (EACH == 4) {                                                                               \
        STORE4((p) + at, 0, v);                                                                    \
    } else
#define NORM_MOMENTS_()                                                                            \
    NORM_UNITS_(REAL x4[4][4];, NORM_LOAD_(x4[u], xs), {                                           \
        ACC m = 0;                                                                                 \
        ACC s = 0;                                                                                 \
        EACH_OF(e) m += x4[u][e] - origin;                                                         \
        m = m / EACH;                                                                              \
        EACH_OF(e)                                                                                 \
        {                                                                                          \
            ACC d = x4[u][e] - origin - m;                                                         \
            s += d * d;                                                                            \
        }                                                                                          \
        NORM_MEET_((ACC)EACH, m, s)                                                                \
    })
#define NORM_WRITE_(STORE, STORES)                                                                 \
    NORM_UNITS_(REAL x4[4][4]; REAL v4[4]; CHAIN_DECLARE, NORM_LOAD_(x4[u], xs) CHAIN_LOAD_UNIT,   \
                EACH_OF(e) v4[e] = (x4[u][e] - mean) * w + b; STORES)
#define NORM_DW_DB_(DY, LOAD_DY, DYS)                                                              \
    NORM_UNITS_(REAL x4[4][4]; REAL d4[4][4]; REAL m4[4][4]; CHAIN_DECLARE                         \
                , NORM_LOAD_(x4[u], xs) LOAD_DY,                                                   \
                CHAIN_GET_USE(PASS, d4[u], at) EACH_OF(e) {                                        \
                    ACC dy = (DYS);                                                                \
                    db += dy;                                                                      \
                    dw += dy * (x4[u][e] - mean);                                                  \
                })
#define NORM_DX_(DY, LOAD_DY, DYS)                                                                 \
    NORM_UNITS_(REAL x4[4][4]; REAL d4[4][4]; REAL m4[4][4]; REAL v4[4]; CHAIN_DECLARE             \
                , NORM_LOAD_(x4[u], xs) LOAD_DY,                                                   \
                CHAIN_GET_USE(PASS, d4[u], at)                                                     \
                EACH_OF(e) v4[e] = w * ((DYS)-share - (x4[u][e] - mean) * slope);                  \
                NORM_STORE_(dxs, v4))
#endif

/* One of the running statistics goes on towards a new value. */
#define NORM_RUN(flag, running, value)                                                             \
    if ((what & (flag)) != 0)                                                                      \
        running = (1 - momentum) * running + momentum * (value);

/* The first channel counts the batch. */
#define NORM_COUNT(c)                                                                              \
    if ((what & NORM_COUNTED) != 0 && (c) == 0)                                                    \
        counts[0] += 1;

/* The kernels' bodies. STORE writes v to element `at`, STORES v4 to the unit there. BEGIN is done
 * for a channel; DY is what came in for `at`; LOAD_DY loads it with others, and DYS is that of
 * element e of unit u. Means are taken relative to the channel's first element, so that one that is
 * large beside the deviations loses nothing. Each lane has its own mean and squares, by Welford's
 * way; then the group's mean is theirs, and the squares are about it. */
#define BATCH_NORM_(AGAIN, aligned, STORE, STORES)                                                 \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    NORM_BEGIN_(ALIGNED4(xs) && (aligned))                                                         \
    GROUPS(g, channels *NORM_PARTS)                                                                \
    {                                                                                              \
        NORM_PART_OF_(g)                                                                           \
        const ACC origin = LD(xs, NORM_FIRST);                                                     \
        ACC count = 0, mean = 0, squares = 0;                                                      \
        if (joins) {                                                                               \
            LANES(k, NORM_PARTS)                                                                   \
            {                                                                                      \
                const idx at = 2 * (c * NORM_PARTS + k);                                           \
                const ACC more = (ACC)(NORM_CUT_(k + 1) - NORM_CUT_(k));                           \
                if (more > 0)                                                                      \
                    NORM_MEET_(more, pieces[at], pieces[at + 1])                                   \
            }                                                                                      \
        } else {                                                                                   \
            NORM_MOMENTS_()                                                                        \
        }                                                                                          \
        const ACC those = joins ? (ACC)all : (ACC)(to - from);                                     \
        ACC m = GROUP_SUM(count * mean, scratch) / (those > 0 ? those : 1);                        \
        squares = GROUP_SUM(squares + count * (mean - m) * (mean - m), scratch);                   \
        mean = origin + m;                                                                         \
        if (LID == 0 && !ends) {                                                                   \
            pieces[2 * g] = m;                                                                     \
            pieces[2 * g + 1] = squares;                                                           \
        }                                                                                          \
        ACC rstd = 1 / sqrt(squares / (ACC)all + eps);                                             \
        if (NORM_LOST_(rstd) && ends)                                                              \
            AGAIN(xs, NORM_FIRST, all, (idx)size, NORM_GAP, 1, eps, &mean, &rstd);                 \
        ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;                                   \
        ACC b = (what & NORM_BIAS) != 0 ? bs[c] : 0;                                               \
        if (LID == 0 && ends && from == 0) {                                                       \
            means[c] = mean;                                                                       \
            rstds[c] = rstd;                                                                       \
            NORM_RUN(NORM_RUNNING_MEAN, running_means[c], mean)                                    \
            NORM_RUN(NORM_RUNNING_VARIANCE, running_variances[c], squares / (ACC)(all - 1))        \
            NORM_COUNT(c)                                                                          \
        }                                                                                          \
        if (ends) {                                                                                \
            NORM_WRITE_(STORE, STORES)                                                             \
        }                                                                                          \
    }
#define BATCH_NORM_GRADIENT_(aligned, BEGIN, DY, LOAD_DY, DYS)                                     \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    NORM_BEGIN_(ALIGNED4(xs) && CHAIN_ALIGNED4(dys) && ALIGNED4(dxs) && (aligned))                 \
    GROUPS(g, channels *NORM_PARTS)                                                                \
    {                                                                                              \
        NORM_PART_OF_(g)                                                                           \
        ACC mean = means[c], rstd = rstds[c], dw = 0, db = 0;                                      \
        const ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;                             \
        BEGIN                                                                                      \
        if (joins) {                                                                               \
            LANES(k, NORM_PARTS)                                                                   \
            {                                                                                      \
                const idx at = 2 * (c * NORM_PARTS + k);                                           \
                dw += pieces[at];                                                                  \
                db += pieces[at + 1];                                                              \
            }                                                                                      \
        } else {                                                                                   \
            enum { PASS = 0 };                                                                     \
            NORM_DW_DB_(DY, LOAD_DY, DYS)                                                          \
        }                                                                                          \
        db = GROUP_SUM(db, scratch);                                                               \
        dw = GROUP_SUM(dw, scratch);                                                               \
        if (LID == 0 && !ends) {                                                                   \
            pieces[2 * g] = dw;                                                                    \
            pieces[2 * g + 1] = db;                                                                \
        }                                                                                          \
        dw *= rstd;                                                                                \
        if (LID == 0 && ends && from == 0) {                                                       \
            dws[c] = dw;                                                                           \
            dbs[c] = db;                                                                           \
        }                                                                                          \
        ACC share = db / (ACC)all, slope = rstd * dw / (ACC)all;                                   \
        if ((what & NORM_FIXED) != 0)                                                              \
            share = slope = 0;                                                                     \
        if (ends) {                                                                                \
            enum { PASS = 1 };                                                                     \
            NORM_DX_(DY, LOAD_DY, DYS)                                                             \
        }                                                                                          \
    }
#endif
