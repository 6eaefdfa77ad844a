/* norm_layer.cl -- layer norm and RMS norm: a team for each dense row of n elements. Collectives
 * stand outside of branches: some compilers lose their way otherwise. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 3
#if IS_FLOAT
#include "layer_norm.h"
NORM_AGAIN_FUNCTION(K(layer_norm_again), STO, LD)

/* y = (x - mean) / sqrt(var + eps) w + b; mean and 1 / sqrt(...) are kept. what: 1 there is w, 2 b,
 * 4 the mean counts as 0 (RMS norm). */
KERNEL10(K(layer_norm), (OUT, STO, ys), (OUT, ACC, means), (OUT, ACC, rstds), (IN, STO, xs),
         (IN, STO, ws), (IN, STO, bs), (ARG, i64, rows), (ARG, i64, n), (ARG, REAL, eps),
         (ARG, i32, what))
{
    BASE(ys);
    BASE(means);
    BASE(rstds);
    BASE(xs);
    BASE(ws);
    BASE(bs);
    LAYER_NORM_(K(layer_norm_again), , LD, ST(ys, at + j, v);, TERN_T, NORM_IN,
        ROW_PAST(xs) == ROW_PAST(ys), , ROW_STORE(TERN_T, ys + at + head, q, y_v);)
}

/* With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)), where the mean
 * counts as 0 without mean(g). */
#define NORM_SUMS_(G)                                                                              \
    RUNS(b, run, n)                                                                                \
    {                                                                                              \
        ACC some = 0, more = 0;                                                                    \
        SIMD_SUM2(some, more) TEAM_LANES(i, run)                                                   \
        {                                                                                          \
            idx j = b + i;                                                                         \
            ACC g = (G), h = (LD(xs, at + j) - mean) * rstd;                                       \
            some += g;                                                                             \
            more += g * h;                                                                         \
        }                                                                                          \
        s += some;                                                                                 \
        t += more;                                                                                 \
    }
#define NORM_DX_(G)                                                                                \
    SIMD TEAM_LANES(j, n)                                                                          \
    {                                                                                              \
        ACC g = (G), h = (LD(xs, at + j) - mean) * rstd;                                           \
        ST(dxs, at + j, rstd * (g - s - h * t));                                                   \
    }
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
KERNEL9(K(layer_norm_dx), (OUT, STO, dxs), (IN, STO, dys), (IN, STO, xs), (IN, STO, ws),
        (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, rows), (ARG, i64, n), (ARG, i32, what))
{
    BASE(dxs);
    BASE(dys);
    BASE(xs);
    BASE(ws);
    BASE(means);
    BASE(rstds);
    LOCAL_ARRAY(ACC, scratch, TERN_WG);
    TEAMS(r, rows, n)
    {
        idx at = r * (idx)n;
        ACC mean = means[r], rstd = rstds[r], s = 0, t = 0;
#if BY_FOURS
#undef NORM_DX_IN
#define NORM_DX_IN(X) X(x, TERN_T, xs + at) X(dy, TERN_T, dys + at)
#define NORM_W_ROW_   f32 w_v[ROW_WIDTH]; EACH_OF_ROW(e) w_v[e] = 1; if ((what & 1) != 0)          \
    ROW_SIDE(even, w_v, TERN_T, ws)
#define NORM_W1_      f32 w_v[1]; w_v[0] = (what & 1) != 0 ? LD(ws, j) : 1;
#define NORM_G_       const ACC g = dy * w_v[e]; const ACC h = (x - mean) * rstd;
        ROW_VECTORS(xs + at, n, ROW_PAST(xs) == ROW_PAST(dys) && ROW_PAST(xs) == ROW_PAST(dxs))
        const i32 even = ROW_PAST(ws + head) == 0;
        NORM_DX_IN(ROW_KEEP_)
        ROW_CHUNKS(1, NORM_DX_IN, ROW_UNITS(NORM_DX_IN, NORM_W_ROW_, NORM_G_ s += g; t += g * h;, ))
        ROW_LEFT(NORM_DX_IN, NORM_W1_ NORM_G_ s += g; t += g * h;)
#else
        if ((what & 1) != 0) {
            NORM_SUMS_(LD(dys, at + j) * LD(ws, j))
        } else {
            NORM_SUMS_(LD(dys, at + j))
        }
#endif
        s = TEAM_SUM(s, scratch) / (ACC)n;
        t = TEAM_SUM(t, scratch) / (ACC)n;
        if ((what & 4) != 0)
            s = 0;
#if BY_FOURS
        ROW_CHUNKS(0, NORM_DX_IN, ROW_UNITS(NORM_DX_IN, NORM_W_ROW_ f32 v[ROW_WIDTH];,
            NORM_G_ v[e] = rstd * (g - s - h * t);
                                            , ROW_STORE(TERN_T, dxs + at + head, q, v);))
        ROW_LEFT(NORM_DX_IN, NORM_W1_ NORM_G_ ST(dxs, at + j, rstd * (g - s - h * t));)
#else
        if ((what & 1) != 0) {
            NORM_DX_(LD(dys, at + j) * LD(ws, j))
        } else {
            NORM_DX_(LD(dys, at + j))
        }
#endif
    }
}
#undef NORM_SUMS_
#undef NORM_DX_

#if !TERN_ROW_LANES /* no kernel of rows */
#undef TERN_BLOCKS
#define TERN_BLOCKS 4
/* Sums over `len` rows each: dw = sum dy h, db = sum dy, as (parts, n). A group takes a tile of the
 * columns. */
KERNEL9(K(layer_norm_dw), (OUT, ACC, dws), (OUT, ACC, dbs), (IN, STO, dys), (IN, STO, xs),
        (IN, ACC, means), (IN, ACC, rstds), (ARG, i64, rows), (ARG, i64, n), (ARG, i64, len))
{
    BASE(dws);
    BASE(dbs);
    BASE(dys);
    BASE(xs);
    BASE(means);
    BASE(rstds);
    LOCAL_ARRAY(ACC, dw, 256);
    LOCAL_ARRAY(ACC, db, 256);
    idx tiles = ((idx)n + 255) / 256, parts = (idx)((rows + len - 1) / len);
    GROUPS(g, parts *tiles)
    {
        idx part = g / tiles, left = (g - part * tiles) * 256, width = (idx)n - left;
        idx end = (part + 1) * (idx)len;
        width = width < 256 ? width : 256;
        end = end < (idx)rows ? end : (idx)rows;
        SIMD LANES(j, width)
        {
            dw[j] = 0;
            db[j] = 0;
        }
        for (idx r = part * (idx)len; r < end; r++) {
            idx at = r * (idx)n + left;
            ACC mean = means[r], rstd = rstds[r];
            SIMD LANES(j, width)
            {
                ACC dy = LD(dys, at + j);
                dw[j] += dy * ((LD(xs, at + j) - mean) * rstd);
                db[j] += dy;
            }
        }
        SIMD LANES(j, width)
        {
            dws[part * (idx)n + left + j] = dw[j];
            dbs[part * (idx)n + left + j] = db[j];
        }
    }
}
#endif
#endif
