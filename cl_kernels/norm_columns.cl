/* norm_columns.cl -- batch norm of x (n, channels), whose channels lie side by side: of two dims,
 * or channels_last; and of any with relu behind it. For devices with work-groups; the host
 * has these kernels by name alone.
 *
 * A group has a tile of the channels and one of the `parts` of the rows: its lanes lie side by side
 * along the channels, four of them each where that can be, and the next lanes have the next row.
 * What a lane, then the group, then all parts add up to is put together always in one order. */
#if TERN_HOST && !TERN_STANDIN
#undef KERNEL_
#define KERNEL_ DEVICE_KERNEL_
#endif
#undef TERN_BLOCKS
#define TERN_BLOCKS 3
#if IS_FLOAT
#include "batch_norm.h"
NORM_AGAIN_FUNCTION(K(columns_again), STO, LD)

#if TERN_CHUNKS
#define COLUMN_NORM_()                                                                             \
    BATCH_NORM_(K(columns_again), 1, CHAIN_PUT(ys, at, v) if ((what & NORM_RELU) != 0)             \
        ST(zs, at, NORM_RELU_OF_(v));, )
#define COLUMN_MASKED_GRADIENT_()                                                                  \
    BATCH_NORM_GRADIENT_(1, , CHAIN_GET(PASS, dys, at) *                                           \
        ((what & NORM_RELU) != 0 && LD(masks, at) <= 0 ? 0 : 1), , )
#define COLUMN_RELU_GRADIENT_()                                                                    \
    BATCH_NORM_GRADIENT_(1, const ACC b = (what & NORM_BIAS) != 0 ? bs[c] : 0;                     \
        , NORM_IS_OFF_((LD(xs, at) - mean) * w + b) ? LD(dys, at) * 0 : LD(dys, at), , )
#else

#undef COLUMN_AHEAD
#undef COLUMN_AHEAD_BACK
/* rows that a lane has under way before it uses the first, and those of two or three tensors */
#if IS_HALF
#define COLUMN_AHEAD      8
#define COLUMN_AHEAD_BACK 3
#else
#define COLUMN_AHEAD      4
#define COLUMN_AHEAD_BACK 2
#endif
#ifndef COLUMN_TILE
#define COLUMN_TILE   (TERN_WG < 32 ? TERN_WG : 32)
#define COLUMN_MOST   TERN_CAT(COLUMN_MOST, IN_SET(FLOAT4, TERN_T)) /* channels of a lane */
#define COLUMN_MOST_0 1
#define COLUMN_MOST_1 4

/* `rows` rows of `lanes` lanes; this one has the rows first, first + rows, ... and `each` channels
 * from `left + across` on. */
#define COLUMN_BEGIN_(aligned)                                                                     \
    LOCAL_ARRAY(ACC, pile, 2 * COLUMN_MOST *TERN_WG);                                              \
    LOCAL_ARRAY(ACC, third, COLUMN_TILE);                                                          \
    const i32 each = COLUMN_MOST == 4 && (channels & 3) == 0 && (aligned) ? 4 : 1;                 \
    const idx tiles = ((idx)channels + COLUMN_TILE - 1) / COLUMN_TILE;                             \
    const idx len = ((idx)n + (idx)parts - 1) / (idx)parts;                                        \
    const i32 ends = (what & NORM_PIECES) == 0, joins = parts > 1 && ends != 0;
#define COLUMN_CUT_(k) ((k) * len < (idx)n ? (k) * len : (idx)n)
#define COLUMN_PART_OF_(g)                                                                         \
    const idx part = (g) / tiles, left = ((g)-part * tiles) * COLUMN_TILE;                         \
    const i32 width = (idx)channels - left < COLUMN_TILE ? (i32)((idx)channels - left)             \
        : COLUMN_TILE;                                                                             \
    const i32 lanes = width / each, rows = LSIZE / lanes, down = LID / lanes;                      \
    const i32 across = (LID - down * lanes) * each, held = COLUMN_MOST * TERN_WG;                  \
    const i32 works = down < rows;                                                                 \
    const idx from = COLUMN_CUT_(part), to = COLUMN_CUT_(part + 1);                                \
    const idx first = works && from + down < to ? from + down : to;
#define COLUMN_HAS_(u) (k + (u)*rows < to)

/* Rows k, k + rows, ... of a lane, the first once more beyond the last: LOAD loads what begins at
 * `at`, then USE has all of it. */
#define COLUMN_ROWS_(UNIT, AHEAD, DECLARE, LOAD, USE)                                              \
    {                                                                                              \
        enum { EACH = UNIT, UNITS = AHEAD };                                                       \
        DECLARE                                                                                    \
        UNROLL for (i32 u = 0; u < AHEAD; u++)                                                     \
        {                                                                                          \
            const idx at = (COLUMN_HAS_(u) ? k + u * rows : k) * (idx)channels + left + across;    \
            LOAD                                                                                   \
        }                                                                                          \
        i32 loaded = 1;                                                                            \
        LOADED(loaded)                                                                             \
        if (loaded) {                                                                              \
            USE                                                                                    \
        }                                                                                          \
    }
#define COLUMN_BY_(AHEAD, DECLARE, LOAD, USE)                                                      \
    TERN_CAT(COLUMN_BY, IN_SET(FLOAT4, TERN_T))(AHEAD, DECLARE, LOAD, USE)
#define COLUMN_BY_0(AHEAD, DECLARE, LOAD, USE) COLUMN_ROWS_(1, AHEAD, DECLARE, LOAD, USE)
#define COLUMN_BY_1(AHEAD, DECLARE, LOAD, USE)                                                     \
    if (each == 4)                                                                                 \
        COLUMN_ROWS_(4, AHEAD, DECLARE, LOAD, USE)                                                 \
    else                                                                                           \
        COLUMN_ROWS_(1, AHEAD, DECLARE, LOAD, USE)
#define COLUMN_EACH_(e) UNROLL for (i32 e = 0; e < COLUMN_MOST; e++) if (e < each)
/* Over a lane's rows, and back again: those at the end were read last. */
#define COLUMN_THERE_(k, AHEAD) for (idx k = first, jump = AHEAD * rows; k < to; k += jump)
#define COLUMN_BACK_(k, AHEAD)                                                                     \
    for (idx jump = AHEAD * rows, k = first + (to - first - 1) / jump * jump;                      \
        k >= first && k < to; k -= jump)

#ifdef CHAIN_GETS
#define COLUMN_DY_WORD_       REAL
#define COLUMN_DY_OF_(v, e)   v[e]
#define COLUMN_DY_LOAD_(v, p) CHAIN_GET_LOAD(PASS, v, p)
#else
#define COLUMN_DY_WORD_       UNIT_WORD
#define COLUMN_DY_OF_(v, e)   UNIT_OF(v, e)
#define COLUMN_DY_LOAD_(v, p) UNIT_LOAD(v, p)
#endif

/* So many numbers more for each of a lane's channels: see NORM_MEET_. */
#define COLUMN_MEET_(M, S)                                                                         \
    {                                                                                              \
        const ACC d = (M)-mean[e];                                                                 \
        mean[e] += d * share;                                                                      \
        squares[e] += (S) + d * d * count * share;                                                 \
    }
/* Squares about the first of the rows, whose own distance from their mean is one of those: what is
 * taken from their sum leaves a ninth of it or more. */
#define COLUMN_MOMENTS_()                                                                          \
    COLUMN_BY_(COLUMN_AHEAD, UNIT_WORD x4[COLUMN_AHEAD][4];, UNIT_LOAD(x4[u], xs), {               \
        ACC some = 0;                                                                              \
        UNROLL for (i32 u = 0; u < COLUMN_AHEAD; u++) some += COLUMN_HAS_(u) ? 1 : 0;              \
        const ACC both = count + some;                                                             \
        const ACC share = some / both;                                                             \
        const ACC portion = 1 / some;                                                              \
        EACH_OF(e)                                                                                 \
        {                                                                                          \
            const ACC start = UNIT_OF(x4[0], e);                                                   \
            ACC m = 0;                                                                             \
            ACC s = 0;                                                                             \
            UNROLL for (i32 u = 1; u < COLUMN_AHEAD; u++)                                          \
            {                                                                                      \
                const ACC d = UNIT_OF(x4[u], e) - start;                                           \
                m += d;                                                                            \
                s += d * d;                                                                        \
            }                                                                                      \
            COLUMN_MEET_(start - origin[e] + m * portion, s - m * m * portion)                     \
        }                                                                                          \
        count = both;                                                                              \
    })
#define COLUMN_PIECE_(k, e) (2 * (k) * (idx)channels + left + across + (e))
#define COLUMN_NORM_()                                                                             \
    LOCAL_ARRAY(ACC, tally, TERN_WG);                                                              \
    COLUMN_BEGIN_(ALIGNED4(xs) && CHAIN_ALIGNED4(ys) &&                                            \
                  ((what & NORM_RELU) == 0 || ALIGNED4(zs)))                                       \
    const i32 given = (what & NORM_GIVEN) != 0;                                                    \
    GROUPS(g, tiles *(idx)parts)                                                                   \
    {                                                                                              \
        COLUMN_PART_OF_(g)                                                                         \
        ACC count = 0, origin[4], mean[4], squares[4], w[4], b[4];                                 \
        COLUMN_EACH_(e)                                                                            \
        {                                                                                          \
            origin[e] = given || !works ? 0 : LD(xs, left + across + e);                           \
            mean[e] = squares[e] = 0;                                                              \
        }                                                                                          \
        if (!given && !joins) {                                                                    \
            COLUMN_THERE_(k, COLUMN_AHEAD) COLUMN_MOMENTS_()                                       \
        }                                                                                          \
        if (!given && joins && works && down < (idx)parts) {                                       \
            COLUMN_EACH_(e) w[e] = pieces[COLUMN_PIECE_(down, e)];                                 \
            COLUMN_EACH_(e) b[e] = 0;                                                              \
            for (idx k = down; k < (idx)parts; k += rows) {                                        \
                const ACC more = (ACC)(COLUMN_CUT_(k + 1) - COLUMN_CUT_(k));                       \
                count += more;                                                                     \
                COLUMN_EACH_(e)                                                                    \
                {                                                                                  \
                    const ACC d = pieces[COLUMN_PIECE_(k, e)] - w[e];                              \
                    mean[e] += more * d;                                                           \
                    b[e] += more * d * d;                                                          \
                    squares[e] += pieces[COLUMN_PIECE_(k, e) + (idx)channels];                     \
                }                                                                                  \
            }                                                                                      \
            const ACC portion = 1 / (count > 0 ? count : 1);                                       \
            COLUMN_EACH_(e)                                                                        \
            {                                                                                      \
                squares[e] += b[e] - mean[e] * mean[e] * portion;                                  \
                mean[e] = w[e] + mean[e] * portion;                                                \
            }                                                                                      \
        }                                                                                          \
        if (works) {                                                                               \
            COLUMN_EACH_(e)                                                                        \
            {                                                                                      \
                pile[down * width + across + e] = mean[e];                                         \
                pile[held + down * width + across + e] = squares[e];                               \
            }                                                                                      \
            if (across == 0)                                                                       \
                tally[down] = count;                                                               \
        }                                                                                          \
        BARRIER();                                                                                 \
        LANES(j, width)                                                                            \
        {                                                                                          \
            const idx c = left + j;                                                                \
            ACC all = 0, m = 0, s = 0;                                                             \
            for (i32 d = 0; d < rows; d++) {                                                       \
                all += tally[d];                                                                   \
                m += tally[d] * pile[d * width + j];                                               \
            }                                                                                      \
            m /= all > 0 ? all : 1;                                                                \
            for (i32 d = 0; d < rows; d++) {                                                       \
                const ACC apart = pile[d * width + j] - m;                                         \
                s += pile[held + d * width + j] + tally[d] * apart * apart;                        \
            }                                                                                      \
            if (!ends) {                                                                           \
                pieces[2 * part * (idx)channels + c] = m;                                          \
                pieces[(2 * part + 1) * (idx)channels + c] = s;                                    \
            }                                                                                      \
            m = given ? running_means[c] : LD(xs, c) + m;                                          \
            const ACC root = sqrt((given ? running_variances[c] : s / (ACC)n) + eps);              \
            ACC rstd = 1 / root, weight = (what & NORM_WEIGHT) != 0 ? ws[c] : 1;                   \
            if (NORM_LOST_(rstd) && ends && !given)                                                \
                K(columns_again)(xs, c, (idx)n, 1, (idx)channels - 1, 1, eps, &m, &rstd);          \
            if (ends && part == 0) {                                                               \
                means[c] = m;                                                                      \
                rstds[c] = rstd;                                                                   \
                NORM_RUN(NORM_RUNNING_MEAN, running_means[c], m)                                   \
                NORM_RUN(NORM_RUNNING_VARIANCE, running_variances[c], s / (ACC)(n - 1))            \
                NORM_COUNT(c)                                                                      \
            }                                                                                      \
            pile[j] = m;                                                                           \
            pile[held + j] = given ? weight / root : weight * rstd;                                \
            third[j] = (what & NORM_BIAS) != 0 ? bs[c] : 0;                                        \
        }                                                                                          \
        BARRIER();                                                                                 \
        COLUMN_EACH_(e)                                                                            \
        {                                                                                          \
            mean[e] = pile[across + e];                                                            \
            w[e] = pile[held + across + e];                                                        \
            b[e] = third[across + e];                                                              \
        }                                                                                          \
        BARRIER();                                                                                 \
        if (ends) {                                                                                \
            COLUMN_BACK_(k, COLUMN_AHEAD)                                                          \
            COLUMN_BY_(COLUMN_AHEAD, UNIT_WORD x4[UNITS][4]; REAL v4[4]; CHAIN_DECLARE             \
                       , UNIT_LOAD(x4[u], xs) CHAIN_LOAD_UNIT,                                     \
                       UNROLL for (i32 u = 0; u < UNITS; u++) if (COLUMN_HAS_(u)) {                \
                           const idx at = (k + u * rows) * (idx)channels + left + across;          \
                           EACH_OF(e) v4[e] = (UNIT_OF(x4[u], e) - mean[e]) * w[e] + b[e];         \
                           CHAIN_PUT_UNIT(ys, at, v4)                                              \
                           if ((what & NORM_RELU) != 0) {                                          \
                               EACH_OF(e) v4[e] = NORM_RELU_OF_(v4[e]);                            \
                               NORM_STORE_(zs, v4)                                                 \
                           }                                                                       \
                       })                                                                          \
        }                                                                                          \
    }

/* x, dy and the mask of a lane's rows, and dy of unit u's element e as the mask leaves it. The mask
 * is loaded, or found again with `scale` and `shift` of a lane's channels. */
#define COLUMN_GRADIENTS_(LOAD_MASK, USE)                                                          \
    COLUMN_BY_(COLUMN_AHEAD_BACK, UNIT_WORD x4[UNITS][4]; COLUMN_DY_WORD_ d4[UNITS][4];            \
               UNIT_WORD m4[UNITS][4]; REAL v4[4]; CHAIN_DECLARE                                   \
               , UNIT_LOAD(x4[u], xs) COLUMN_DY_LOAD_(d4[u], dys) LOAD_MASK                        \
               , UNROLL for (i32 u = 0; u < UNITS; u++) if (COLUMN_HAS_(u)) {                      \
                   const idx at = (k + u * rows) * (idx)channels + left + across;                  \
                   CHAIN_GET_USE(PASS, d4[u], at) USE                                              \
               })
#define COLUMN_DY_(IS_OFF) (COLUMN_DY_OF_(d4[u], e) * ((IS_OFF) ? 0 : 1))
#define COLUMN_MASKED_GRADIENT_()                                                                  \
    COLUMN_GRADIENT_(((what & NORM_RELU) == 0 || ALIGNED4(masks)), ,                               \
                     if ((what & NORM_RELU) != 0) { UNIT_LOAD(m4[u], masks) },                     \
                     (what & NORM_RELU) != 0 && UNIT_OF(m4[u], e) <= 0)
#define COLUMN_RELU_GRADIENT_()                                                                    \
    COLUMN_GRADIENT_(1, ACC scale[4]; ACC shift[4]; COLUMN_EACH_(e) {                              \
        const idx c = works ? left + across + e : 0;                                               \
        scale[e] = (what & NORM_WEIGHT) != 0 ? ws[c] * rstds[c] : rstds[c];                        \
        shift[e] = (what & NORM_BIAS) != 0 ? bs[c] : 0;                                            \
    }, , NORM_IS_OFF_((UNIT_OF(x4[u], e) - mean[e]) * scale[e] + shift[e]))
#define COLUMN_GRADIENT_(ALIGNED, BEGIN, LOAD_MASK, IS_OFF)                                        \
    COLUMN_BEGIN_(ALIGNED4(xs) && CHAIN_ALIGNED4(dys) && ALIGNED4(dxs) && (ALIGNED))               \
    GROUPS(g, tiles *(idx)parts)                                                                   \
    {                                                                                              \
        COLUMN_PART_OF_(g)                                                                         \
        ACC mean[4], w[4], db[4], dw[4];                                                           \
        COLUMN_EACH_(e)                                                                            \
        {                                                                                          \
            mean[e] = works ? means[left + across + e] : 0;                                        \
            db[e] = dw[e] = 0;                                                                     \
        }                                                                                          \
        BEGIN                                                                                      \
        if (!joins) {                                                                              \
            enum { PASS = 0 };                                                                     \
            COLUMN_THERE_(k, COLUMN_AHEAD_BACK) COLUMN_GRADIENTS_(LOAD_MASK, EACH_OF(e) {          \
                const ACC dy = COLUMN_DY_(IS_OFF);                                                 \
                db[e] += dy;                                                                       \
                dw[e] += dy * (UNIT_OF(x4[u], e) - mean[e]);                                       \
            })                                                                                     \
        }                                                                                          \
        for (idx k = joins && works ? down : (idx)parts; k < (idx)parts; k += rows) {              \
            COLUMN_EACH_(e)                                                                        \
            {                                                                                      \
                dw[e] += pieces[COLUMN_PIECE_(k, e)];                                              \
                db[e] += pieces[COLUMN_PIECE_(k, e) + (idx)channels];                              \
            }                                                                                      \
        }                                                                                          \
        if (works) {                                                                               \
            COLUMN_EACH_(e)                                                                        \
            {                                                                                      \
                pile[down * width + across + e] = dw[e];                                           \
                pile[held + down * width + across + e] = db[e];                                    \
            }                                                                                      \
        }                                                                                          \
        BARRIER();                                                                                 \
        LANES(j, width)                                                                            \
        {                                                                                          \
            const idx c = left + j;                                                                \
            ACC sum = 0, total = 0;                                                                \
            for (i32 d = 0; d < rows; d++) {                                                       \
                sum += pile[d * width + j];                                                        \
                total += pile[held + d * width + j];                                               \
            }                                                                                      \
            if (!ends) {                                                                           \
                pieces[2 * part * (idx)channels + c] = sum;                                        \
                pieces[(2 * part + 1) * (idx)channels + c] = total;                                \
            }                                                                                      \
            const ACC rstd = rstds[c];                                                             \
            sum *= rstd;                                                                           \
            if (ends && part == 0) {                                                               \
                dws[c] = sum;                                                                      \
                dbs[c] = total;                                                                    \
            }                                                                                      \
            pile[j] = (what & NORM_FIXED) != 0 ? 0 : rstd * sum / (ACC)n;                          \
            pile[held + j] = (what & NORM_FIXED) != 0 ? 0 : total / (ACC)n;                        \
            third[j] = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;                            \
        }                                                                                          \
        BARRIER();                                                                                 \
        COLUMN_EACH_(e)                                                                            \
        {                                                                                          \
            dw[e] = pile[across + e];                                                              \
            db[e] = pile[held + across + e];                                                       \
            w[e] = third[across + e];                                                              \
        }                                                                                          \
        BARRIER();                                                                                 \
        if (ends) {                                                                                \
            enum { PASS = 1 };                                                                     \
            COLUMN_BACK_(k, COLUMN_AHEAD_BACK) COLUMN_GRADIENTS_(LOAD_MASK,                        \
                EACH_OF(e) v4[e] = w[e] * (COLUMN_DY_(IS_OFF) - db[e] -                            \
                    (UNIT_OF(x4[u], e) - mean[e]) * dw[e]);                                        \
                NORM_STORE_(dxs, v4))                                                              \
        }                                                                                          \
    }
#endif
#endif
/* y by the batch's statistics or given ones, as batch_norm and batch_norm_fixed have it, and with
 * NORM_RELU zs = relu(ys). */
KERNEL18(K(batch_norm_columns), (OUT, STO, zs), (OUT, STO, ys), (OUT, ACC, means),
         (OUT, ACC, rstds), (OUT, ACC, running_means), (OUT, ACC, running_variances),
         (OUT, i64, counts), (OUT, ACC, pieces), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, bs),
         (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps),
         (ARG, REAL, momentum), (ARG, i64, parts), (ARG, i32, what))
{
    BASE(zs);
    CHAIN_BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(counts);
    BASE(pieces);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    COLUMN_NORM_()
}

/* bfloat16 is widened by more instructions, and spills with three blocks' registers; so do rows in
 * front */
#if (IS_MOVER && IS_HALF) || defined CHAIN_GETS
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#endif
/* batch_norm_gradient, with NORM_RELU where what came in is relu's, whose values are the mask. */
KERNEL15(K(batch_norm_columns_gradient), (IN, STO, masks), (OUT, STO, dxs), (OUT, ACC, dws),
         (OUT, ACC, dbs), (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, i64, parts), (ARG, i32, what))
{
    BASE(masks);
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    CHAIN_BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    COLUMN_MASKED_GRADIENT_()
}

/* The same where the mask is found again, by two more numbers of each channel, for which three
 * blocks have no registers. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
KERNEL15(K(batch_norm_columns_relu_gradient), (IN, ACC, bs), (OUT, STO, dxs), (OUT, ACC, dws),
         (OUT, ACC, dbs), (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, i64, parts), (ARG, i32, what))
{
    BASE(bs);
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    COLUMN_RELU_GRADIENT_()
}

/* ---- relu behind batch norm of x (n, channels, size) ----------------------------------------- */

#undef TERN_BLOCKS
#define TERN_BLOCKS 2
/* ys as batch_norm has them, if anybody reads them, and zs = relu(ys). */
KERNEL18(K(batch_norm_relu), (OUT, STO, zs), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (OUT, ACC, running_means), (OUT, ACC, running_variances), (OUT, i64, counts),
         (OUT, ACC, pieces), (IN, STO, xs),
         (IN, ACC, ws), (IN, ACC, bs), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, REAL, eps),
         (ARG, REAL, momentum), (ARG, i64, parts), (ARG, i32, what))
{
    BASE(zs);
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(counts);
    BASE(pieces);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    BATCH_NORM_(K(columns_again), ALIGNED4(ys) && ALIGNED4(zs), if ((what & NORM_UNREAD) == 0) {
        ST(ys, at, v);
        v = LD(ys, at);
    }
                ST(zs, at, NORM_RELU_OF_(v));
                , if ((what & NORM_UNREAD) == 0) { NORM_STORE_(ys, v4) }
                EACH_OF(e) v4[e] = NORM_RELU_OF_(v4[e]); NORM_STORE_(zs, v4))
}

/* batch_norm_gradient where what came in is relu's: dy where its value, the mask, is above 0, and 0
 * dy elsewhere. */
KERNEL15(K(batch_norm_masked_gradient), (IN, STO, masks), (OUT, STO, dxs), (OUT, ACC, dws),
         (OUT, ACC, dbs), (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, i64, parts), (ARG, i32, what))
{
    BASE(masks);
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    BATCH_NORM_GRADIENT_(ALIGNED4(masks), , LD(masks, at) <= 0 ? LD(dys, at) * 0 : LD(dys, at),
                         NORM_LOAD_(d4[u], dys) NORM_LOAD_(m4[u], masks),
                             m4[u][e] <= 0 ? d4[u][e] * 0 : d4[u][e])
}

/* The same where the mask is found again. */
KERNEL15(K(batch_norm_relu_gradient), (IN, ACC, bs), (OUT, STO, dxs), (OUT, ACC, dws),
         (OUT, ACC, dbs), (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, i64, parts), (ARG, i32, what))
{
    BASE(bs);
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    BATCH_NORM_GRADIENT_(1, const ACC b = (what & NORM_BIAS) != 0 ? bs[c] : 0;
                         , NORM_IS_OFF_((LD(xs, at) - mean) * w + b) ? LD(dys, at) * 0 : LD(dys, at)
                         , NORM_LOAD_(d4[u], dys),
                             NORM_IS_OFF_((x4[u][e] - mean) * w + b) ? d4[u][e] * 0 : d4[u][e])
}
#endif
