/* layer_norm.h -- the body of layer norm, of norm_layer.cl and of fused.cl, where its result is
 * noted in half precision too. */
#ifndef TERN_LAYER_NORM_H
#define TERN_LAYER_NORM_H
#include "float4.h"
#include "norm_again.h"
/* AGAIN is NORM_AGAIN_FUNCTION for x. LDX loads what has x's type, BEGIN may make x's element at +
 * j first; PUT puts v to element at + j. what: 1 there is w, 2 b, 4 the mean counts as 0. The
 * mean's own rounding shows in the deviations from it, and is put right by their mean, `off`. */
#define LAYER_NORM_PUT_(V, PUT)                                                                    \
    SIMD TEAM_LANES(j, n)                                                                          \
    {                                                                                              \
        ACC v = (V);                                                                               \
        PUT                                                                                        \
    }
#define LAYER_NORM_0(AGAIN, BEGIN, LDX, PUT, T, IN, FITS, MAKE, PUT_V)                             \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    TEAMS(r, rows, n)                                                                              \
    {                                                                                              \
        idx at = r * (idx)n;                                                                       \
        ACC mean = 0, rstd = 0;                                                                    \
        RUNS(b, run, n)                                                                            \
        {                                                                                          \
            ACC some = 0;                                                                          \
            SIMD_SUM(some) TEAM_LANES(i, run)                                                      \
            {                                                                                      \
                const idx j = b + i;                                                               \
                BEGIN                                                                              \
                some += LDX(xs, at + j);                                                           \
            }                                                                                      \
            mean += some;                                                                          \
        }                                                                                          \
        mean = TEAM_SUM(mean, scratch) / (ACC)n;                                                   \
        if ((what & 4) != 0)                                                                       \
            mean = 0;                                                                              \
        ACC off = 0;                                                                               \
        RUNS(b, run, n)                                                                            \
        {                                                                                          \
            ACC some = 0, more = 0;                                                                \
            SIMD_SUM2(some, more) TEAM_LANES(j, run)                                               \
            {                                                                                      \
                ACC d = LDX(xs, at + b + j) - mean;                                                \
                some += d * d;                                                                     \
                more += d;                                                                         \
            }                                                                                      \
            rstd += some;                                                                          \
            off += more;                                                                           \
        }                                                                                          \
        off = (what & 4) != 0 ? 0 : TEAM_SUM(off, scratch) / (ACC)n;                               \
        rstd = 1 / sqrt(TEAM_SUM(rstd, scratch) / (ACC)n - off * off + eps);                       \
        mean += off;                                                                               \
        if (NORM_LOST_(rstd))                                                                      \
            AGAIN(xs, at, (idx)n, (idx)n, 0, (what & 4) == 0, eps, &mean, &rstd);                  \
        if (TEAM_LEADER) {                                                                         \
            means[r] = mean;                                                                       \
            rstds[r] = rstd;                                                                       \
        }                                                                                          \
        if ((what & 3) == 3) {                                                                     \
            LAYER_NORM_PUT_((LDX(xs, at + j) - mean) * rstd * LDX(ws, j) + LDX(bs, j), PUT)        \
        } else if ((what & 3) == 1) {                                                              \
            LAYER_NORM_PUT_((LDX(xs, at + j) - mean) * rstd * LDX(ws, j), PUT)                     \
        } else if ((what & 3) == 2) {                                                              \
            LAYER_NORM_PUT_((LDX(xs, at + j) - mean) * rstd + LDX(bs, j), PUT)                     \
        } else {                                                                                   \
            LAYER_NORM_PUT_((LDX(xs, at + j) - mean) * rstd, PUT)                                  \
        }                                                                                          \
    }
/* By vectors, with IN and T of x's type: what is read and written lies as x does if it FITS, MAKE
 * makes x, PUT_V puts y_v to vector q. */
#define NORM_IN(X)     X(x, TERN_T, xs + at)
#define NORM_IN_F32(X) X(x, f32, xs + at)
#define LAYER_NORM_1(AGAIN, BEGIN, LDX, PUT, T, IN, FITS, MAKE, PUT_V)                             \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    TEAMS(r, rows, n)                                                                              \
    {                                                                                              \
        idx at = r * (idx)n;                                                                       \
        ACC mean = 0, rstd = 0, off = 0;                                                           \
        ROW_VECTORS(xs + at, n, FITS)                                                              \
        const i32 w_even = ROW_PAST(ws + head) == 0, b_even = ROW_PAST(bs + head) == 0;            \
        MAKE IN(ROW_KEEP_)                                                                         \
        ROW_SUM(1, IN, mean, x)                                                                    \
        mean = TEAM_SUM(mean, scratch) / (ACC)n;                                                   \
        if ((what & 4) != 0)                                                                       \
            mean = 0;                                                                              \
        ROW_EACH(0, IN, ACC part = 0; ACC more = 0;, const ACC d = x - mean; part += d * d;        \
            more += d;                                                                             \
                 , rstd += part; off += more;, rstd += part; off += more;)                         \
        off = TEAM_SUM(off, scratch) / (ACC)n;                                                     \
        if ((what & 4) != 0)                                                                       \
            off = 0;                                                                               \
        rstd = 1 / sqrt(TEAM_SUM(rstd, scratch) / (ACC)n - off * off + eps);                       \
        mean += off;                                                                               \
        if (NORM_LOST_(rstd))                                                                      \
            AGAIN(xs, at, (idx)n, (idx)n, 0, (what & 4) == 0, eps, &mean, &rstd);                  \
        if (TEAM_LEADER) {                                                                         \
            means[r] = mean;                                                                       \
            rstds[r] = rstd;                                                                       \
        }                                                                                          \
        ROW_CHUNKS(0, IN, ROW_UNITS(IN, f32 y_v[ROW_WIDTH]; f32 w_v[ROW_WIDTH];                    \
            f32 b_v[ROW_WIDTH]; EACH_OF_ROW(e) {                                                   \
            w_v[e] = 1;                                                                            \
            b_v[e] = 0;                                                                            \
        } if ((what & 1) != 0) ROW_SIDE(w_even, w_v, T, ws) if ((what & 2) != 0) ROW_SIDE(b_even,  \
            b_v, T, bs)                                                                            \
                                    , y_v[e] = (x - mean) * rstd * w_v[e] + b_v[e];, PUT_V))       \
        ROW_LEFT(IN, ACC v = (x - mean) * rstd; v = (what & 1) != 0 ? v * LDX(ws, j) : v;          \
                 v = (what & 2) != 0 ? v + LDX(bs, j) : v; PUT)                                    \
    }
#define LAYER_NORM_ TERN_CAT(LAYER_NORM, BY_FOURS)
#endif
