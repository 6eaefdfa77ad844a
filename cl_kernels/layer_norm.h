/* layer_norm.h -- the body of layer norm, of norm_layer.cl and of fused.cl, where its result is noted in half precision too. */
#ifndef TERN_LAYER_NORM_H
#define TERN_LAYER_NORM_H
/* LDX loads what has x's type, BEGIN may make x's element at + j first; PUT puts v to element at + j. what: 1 there is w, 2 b, 4 the mean counts as 0. The mean's own
 * rounding shows in the deviations from it, and is put right by their mean, `off`. */
#define LAYER_NORM_PUT_(V, PUT)                                                                    \
    SIMD TEAM_LANES(j, n)                                                                          \
    {                                                                                              \
        ACC v = (V);                                                                               \
        PUT                                                                                        \
    }
#define LAYER_NORM_(BEGIN, LDX, PUT)                                                                      \
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
#endif
