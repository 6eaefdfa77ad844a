/* norm.cl -- batch norm of x (n, channels, size), a group for each channel or for a part of one.
 * Collectives stand outside of branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#if IS_FLOAT
#include "batch_norm.h"
NORM_AGAIN_FUNCTION(K(batch_norm_again), STO, LD)

/* y = (x - mean) / sqrt(var + eps) w + b over each channel; mean and 1 / sqrt(...) are kept. */
KERNEL17(K(batch_norm), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (OUT, ACC, running_means), (OUT, ACC, running_variances), (OUT, i64, counts),
         (OUT, ACC, pieces), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, bs), (ARG, i64, n),
         (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps), (ARG, REAL, momentum),
         (ARG, i64, parts), (ARG, i32, what))
{
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
    BATCH_NORM_(K(batch_norm_again), CHAIN_ALIGNED4(ys), CHAIN_PUT(ys, at, v),
                CHAIN_PUT_UNIT(ys, at, v4))
}

/* With h = (x - mean) rstd: dw = sum dy h, db = sum dy, and
 * dx = w rstd (dy - db / m - h dw / m), m elements a channel; NORM_FIXED: dx = w rstd dy. */
KERNEL14(K(batch_norm_gradient), (OUT, STO, dxs), (OUT, ACC, dws), (OUT, ACC, dbs),
         (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, means),
         (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, i64, parts),
         (ARG, i32, what))
{
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    CHAIN_BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    BATCH_NORM_GRADIENT_(1, , CHAIN_GET(PASS, dys, at), CHAIN_GET_LOAD(PASS, d4[u], dys), d4[u][e])
}

/* The same two where size is 1: groups take tiles of the channels, which lie side by side, or one
 * of the `parts` of a tile's rows, as in batch_norm.h. */
#define TILE 64
#define FLAT_PART_OF_(g)                                                                           \
    const idx tile = (g) / (idx)parts, part = (g) - tile * (idx)parts, left = tile * TILE;         \
    const idx width = (idx)channels - left < TILE ? (idx)channels - left : TILE;                   \
    const idx len = ((idx)n + (idx)parts - 1) / (idx)parts;                                        \
    const idx from = FLAT_CUT_(part), to = FLAT_CUT_(part + 1);                                    \
    const i32 ends = (what & NORM_PIECES) == 0, joins = parts > 1 && ends;
#define FLAT_CUT_(k)   ((k) * len < (idx)n ? (k) * len : (idx)n)
#define FLAT_PIECE_(k) (2 * ((left + j) * (idx)parts + (k)))
/* V of the part's rows added to `sum`, as sums of sums. */
#define ROWS_(sum, V)                                                                              \
    for (idx first = from; first < to; first += 1024) {                                            \
        idx last = first + 1024 < to ? first + 1024 : to;                                          \
        SIMD LANES(j, width)                                                                       \
        {                                                                                          \
            some[j] = 0;                                                                           \
        }                                                                                          \
        for (idx k = first; k < last; k++) {                                                       \
            SIMD LANES(j, width)                                                                   \
            {                                                                                      \
                some[j] += (V);                                                                    \
            }                                                                                      \
        }                                                                                          \
        SIMD LANES(j, width)                                                                       \
        {                                                                                          \
            sum[j] += some[j];                                                                     \
        }                                                                                          \
    }
KERNEL17(K(batch_norm_flat), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (OUT, ACC, running_means), (OUT, ACC, running_variances), (OUT, i64, counts),
         (OUT, ACC, pieces), (IN, STO, xs),
         (IN, ACC, ws), (IN, ACC, bs), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size),
         (ARG, REAL, eps),
         (ARG, REAL, momentum), (ARG, i64, parts), (ARG, i32, what))
{
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
    LOCAL_ARRAY(ACC, origin, TILE);
    LOCAL_ARRAY(ACC, middle, TILE);
    LOCAL_ARRAY(ACC, w, TILE);
    LOCAL_ARRAY(ACC, some, TILE);
    GROUPS(g, (channels + TILE - 1) / TILE * parts)
    {
        FLAT_PART_OF_(g)
        SIMD LANES(j, width)
        {
            origin[j] = LD(xs, left + j);
            middle[j] = 0;
            w[j] = 0;
        }
        if (joins) {
            LANES(j, width)
            {
                ACC count = 0, mean = 0, squares = 0;
                for (idx k = 0; k < (idx)parts; k++) {
                    const ACC more = (ACC)(FLAT_CUT_(k + 1) - FLAT_CUT_(k));
                    if (more > 0)
                        NORM_MEET_(more, pieces[FLAT_PIECE_(k)], pieces[FLAT_PIECE_(k) + 1])
                }
                middle[j] = mean;
                w[j] = squares;
            }
        } else {
            ROWS_(middle, LD(xs, k * (idx)channels + left + j) - origin[j])
            SIMD LANES(j, width)
            {
                middle[j] = middle[j] / (ACC)(to - from);
            }
            ROWS_(w, (LD(xs, k * (idx)channels + left + j) - origin[j] - middle[j]) *
                         (LD(xs, k * (idx)channels + left + j) - origin[j] - middle[j]))
        }
        LANES(j, width)
        {
            idx c = left + j;
            ACC mean = origin[j] + middle[j], squares = w[j],
                rstd = 1 / sqrt(squares / (ACC)n + eps);
            if (NORM_LOST_(rstd) && ends)
                K(batch_norm_again)(xs, c, (idx)n, 1, (idx)channels - 1, 1, eps, &mean, &rstd);
            if (!ends) {
                pieces[FLAT_PIECE_(part)] = middle[j];
                pieces[FLAT_PIECE_(part) + 1] = squares;
            } else if (part == 0) {
                means[c] = mean;
                rstds[c] = rstd;
                NORM_RUN(NORM_RUNNING_MEAN, running_means[c], mean)
                NORM_RUN(NORM_RUNNING_VARIANCE, running_variances[c], squares / (ACC)(n - 1))
                NORM_COUNT(c)
            }
            middle[j] = mean;
            w[j] = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;
            some[j] = (what & NORM_BIAS) != 0 ? bs[c] : 0;
        }
        for (idx k = ends ? from : to; k < to; k++) {
            idx row = k * (idx)channels + left;
            SIMD LANES(j, width)
            {
                ST(ys, row + j, (LD(xs, row + j) - middle[j]) * w[j] + some[j]);
            }
        }
    }
}

KERNEL14(K(batch_norm_flat_gradient), (OUT, STO, dxs), (OUT, ACC, dws), (OUT, ACC, dbs),
         (OUT, ACC, pieces), (IN, STO, dys), (IN, STO, xs), (IN, ACC, ws), (IN, ACC, means),
         (IN, ACC, rstds), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, i64, parts),
         (ARG, i32, what))
{
    BASE(dxs);
    BASE(dws);
    BASE(dbs);
    BASE(pieces);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    LOCAL_ARRAY(ACC, share, TILE);
    LOCAL_ARRAY(ACC, slope, TILE);
    LOCAL_ARRAY(ACC, mean, TILE);
    LOCAL_ARRAY(ACC, w, TILE);
    GROUPS(g, (channels + TILE - 1) / TILE * parts)
    {
        FLAT_PART_OF_(g)
        SIMD LANES(j, width)
        {
            share[j] = 0;
            slope[j] = 0;
            mean[j] = means[left + j];
        }
        for (idx k = joins ? to : from; k < to; k++) {
            idx row = k * (idx)channels + left;
            SIMD LANES(j, width)
            {
                ACC dy = LD(dys, row + j);
                share[j] += dy;
                slope[j] += dy * (LD(xs, row + j) - mean[j]);
            }
        }
        LANES(j, width)
        {
            idx c = left + j;
            for (idx k = joins ? 0 : (idx)parts; k < (idx)parts; k++) {
                slope[j] += pieces[FLAT_PIECE_(k)];
                share[j] += pieces[FLAT_PIECE_(k) + 1];
            }
            ACC rstd = rstds[c], dw = slope[j] * rstd, db = share[j];
            if (!ends) {
                pieces[FLAT_PIECE_(part)] = slope[j];
                pieces[FLAT_PIECE_(part) + 1] = db;
            } else if (part == 0) {
                dws[c] = dw;
                dbs[c] = db;
            }
            share[j] = (what & NORM_FIXED) != 0 ? 0 : db / (ACC)n;
            slope[j] = (what & NORM_FIXED) != 0 ? 0 : rstd * dw / (ACC)n;
            w[j] = (what & NORM_WEIGHT) != 0 ? ws[c] * rstd : rstd;
        }
        for (idx k = ends ? from : to; k < to; k++) {
            idx row = k * (idx)channels + left;
            SIMD LANES(j, width)
            {
                ACC d = LD(xs, row + j) - mean[j];
                ST(dxs, row + j, w[j] * (LD(dys, row + j) - share[j] - d * slope[j]));
            }
        }
    }
}

/* y by given statistics. They are kept for the way back, as above. */
KERNEL13(K(batch_norm_fixed), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds),
         (IN, ACC, running_means), (IN, ACC, running_variances), (IN, STO, xs), (IN, ACC, ws),
         (IN, ACC, bs), (ARG, i64, n), (ARG, i64, channels), (ARG, i64, size), (ARG, REAL, eps),
         (ARG, i32, what))
{
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(running_means);
    BASE(running_variances);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    ITEMS(c, channels)
    {
        means[c] = running_means[c];
        rstds[c] = 1 / sqrt(running_variances[c] + eps);
    }
    if (size == 1) {
        FLAT(r, n, channels)
        {
            INNER(r, c)
            {
                ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] : 1, b = (what & NORM_BIAS)
                    != 0 ? bs[c] : 0;
                w = w / sqrt(running_variances[c] + eps);
                ST(ys, r * (idx)channels + c, (LD(xs, r * (idx)channels + c) - running_means[c]) * w
                    + b);
            }
        }
    } else {
        FLAT(r, n *channels, size)
        {
            idx c = r % (idx)channels, row = r * (idx)size;
            ACC w = (what & NORM_WEIGHT) != 0 ? ws[c] : 1, b = (what & NORM_BIAS) != 0 ? bs[c] : 0;
            ACC mean = running_means[c];
            w = w / sqrt(running_variances[c] + eps);
            SIMD INNER(r, j)
            {
                ST(ys, row + j, (LD(xs, row + j) - mean) * w + b);
            }
        }
    }
}
#undef TILE
#undef ROWS_
#undef FLAT_PART_OF_
#undef FLAT_CUT_
#undef FLAT_PIECE_
#endif
