/* layer_norm_gradient.h -- the body of layer norm's gradient in one reading, of fused.cl. */
#ifndef TERN_LAYER_NORM_GRADIENT_H
#define TERN_LAYER_NORM_GRADIENT_H
#include "float4.h"

/* Quads of a row of up to TERN_NORM_WIDE elements that each lane keeps in registers: `held` of all
 * lanes, 0 where there are no loads of four. Lane q % LSIZE has quad q. */
#if TERN_FLOAT4 && !TERN_CHUNKS
#define MOST_HELD                         ((TERN_NORM_WIDE / 4 + TERN_WG - 1) / TERN_WG)
#define HELD_(n, fits)                    TERN_CAT(HELD, IN_SET(FLOAT4, TERN_T))(n, fits)
#define HELD_QUADS_(declare)              TERN_CAT(HELD_QUADS, IN_SET(FLOAT4, TERN_T))(declare)
#define EACH_QUAD_(u, q, text)            TERN_CAT(EACH_QUAD, IN_SET(FLOAT4, TERN_T))(u, q, text)
#define HELD_0(n, fits)                   0
#define HELD_1(n, fits)                   ((fits) ? (idx)((n) / 4) : 0)
#define HELD_QUADS_0(declare)
#define HELD_QUADS_1(declare)             declare
#define EACH_QUAD_0(u, q, text)
#define EACH_QUAD_1(u, q, text)                                                                    \
    UNROLL for (i32 u = 0; u < MOST_HELD; u++)                                                     \
    {                                                                                              \
        const idx q = (idx)LID + u * LSIZE;                                                        \
        if (q < held) {                                                                            \
            text                                                                                   \
        }                                                                                          \
    }
#else
#define HELD_(n, fits) 0
#define HELD_QUADS_(declare)
#define EACH_QUAD_(u, q, text)
#endif

/* The gradients of norm_layer.cl in one reading, for rows of up to TERN_NORM_WIDE elements: dx of
 * `len` rows each, and their sums dw and db as (parts, n). Each lane has its own columns of dw and
 * db, and quads of the next row on their way. what: 1 there is w, 4 the mean counts as 0, 8 dx is
 * added to what came before, 16 it is noted in half precision too. X: of what has x's type. */
#define QUADS_OF_(T, r)                                                                            \
    TERN_CAT(GET4, TERN_T)(dy_k[u], dys + (r) * (idx)n, q);                                        \
    TERN_CAT(GET4, T)(x_k[u], xs + (r) * (idx)n, q);
#define LAYER_NORM_GRADIENT_(fits, LDX, STX, T, ALSO, ALSO4)                                       \
    BASE(dxs);                                                                                     \
    BASE(dws);                                                                                     \
    BASE(dbs);                                                                                     \
    BASE(dys);                                                                                     \
    BASE(xs);                                                                                      \
    BASE(ws);                                                                                      \
    BASE(befores);                                                                                 \
    BASE(means);                                                                                   \
    BASE(rstds);                                                                                   \
    LOCAL_ARRAY(ACC, dw, TERN_NORM_WIDE);                                                          \
    LOCAL_ARRAY(ACC, db, TERN_NORM_WIDE);                                                          \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    const idx held = HELD_(n, (n & 3) == 0 && ALIGNED4(dys) && ALIGNED4(xs) && ALIGNED4(ws) &&     \
        ALIGNED4(befores) && ALIGNED4(dxs) && (fits));                                             \
    GROUPS(g, (rows + len - 1) / len)                                                              \
    {                                                                                              \
        idx end = (g + 1) * (idx)len;                                                              \
        end = end < (idx)rows ? end : (idx)rows;                                                   \
        BARRIER();                                                                                 \
        LANES(j, held ? 0 : n)                                                                     \
        {                                                                                          \
            dw[j] = 0;                                                                             \
            db[j] = 0;                                                                             \
        }                                                                                          \
        BARRIER();                                                                                 \
        ACC next_mean = means[g * (idx)len], next_rstd = rstds[g * (idx)len];                      \
        HELD_QUADS_(REAL w4[MOST_HELD][4]; REAL dw4[MOST_HELD][4]; REAL db4[MOST_HELD][4];         \
                    TERN_CAT(FOUR, TERN_T) dy_k[MOST_HELD]; TERN_CAT(FOUR, T) x_k[MOST_HELD];      \
                        TERN_CAT(FOUR, T) b_k[MOST_HELD];)                                         \
        EACH_QUAD_(u, q, EACH4(e) {                                                                \
            w4[u][e] = 1;                                                                          \
            dw4[u][e] = 0;                                                                         \
            db4[u][e] = 0;                                                                         \
        } QUADS_OF_(T, g * (idx)len) if ((what & 1) != 0) TERN_CAT(LOAD4, T)(w4[u], ws, q);)       \
        for (idx r = g * (idx)len; r < end; r++) {                                                 \
            idx at = r * (idx)n;                                                                   \
            ACC mean = next_mean, rstd = next_rstd, s = 0, t = 0;                                  \
            HELD_QUADS_(REAL x4[MOST_HELD][4]; REAL d4[MOST_HELD][4];)                             \
            EACH_QUAD_(u, q, TERN_CAT(SPREAD4, TERN_T)(d4[u], dy_k[u]);                            \
                TERN_CAT(SPREAD4, T)(x4[u], x_k[u]);                                               \
                       if ((what & 8) != 0) TERN_CAT(GET4, T)(b_k[u], befores + at, q);)           \
            if (r + 1 < end) {                                                                     \
                EACH_QUAD_(u, q, QUADS_OF_(T, r + 1))                                              \
                next_mean = means[r + 1];                                                          \
                next_rstd = rstds[r + 1];                                                          \
            }                                                                                      \
            EACH_QUAD_(u, q, EACH4(e) {                                                            \
                ACC dy = d4[u][e];                                                                 \
                ACC h = (x4[u][e] - mean) * rstd;                                                  \
                ACC v = dy * w4[u][e];                                                             \
                s += v;                                                                            \
                t += v * h;                                                                        \
                dw4[u][e] += dy * h;                                                               \
                db4[u][e] += dy;                                                                   \
            })                                                                                     \
            for (idx j = 4 * held + LID; j < (idx)n; j += LSIZE) {                                 \
                ACC dy = LD(dys, at + j), h = (LDX(xs, at + j) - mean) * rstd;                     \
                ACC v = (what & 1) != 0 ? dy * LDX(ws, j) : dy;                                    \
                s += v;                                                                            \
                t += v * h;                                                                        \
                dw[j] += dy * h;                                                                   \
                db[j] += dy;                                                                       \
            }                                                                                      \
            GROUP_SUM2(s, t, scratch, (i32)r & 1)                                                  \
            s = (what & 4) != 0 ? 0 : s / (ACC)n;                                                  \
            t /= (ACC)n;                                                                           \
            EACH_QUAD_(u, q, REAL b4[4]; EACH4(e) b4[e] = 0;                                       \
                if ((what & 8) != 0) TERN_CAT(SPREAD4, T)(b4, b_k[u]);                             \
                       EACH4(e) b4[e] += rstd * (d4[u][e] * w4[u][e] - s -                         \
                           (x4[u][e] - mean) * rstd * t);                                          \
                       TERN_CAT(STORE4, T)(dxs + at, q, b4); ALSO4)                                \
            for (idx j = 4 * held + LID; j < (idx)n; j += LSIZE) {                                 \
                ACC dy = LD(dys, at + j), h = (LDX(xs, at + j) - mean) * rstd;                     \
                ACC v = (what & 1) != 0 ? dy * LDX(ws, j) : dy;                                    \
                ACC dx = rstd * (v - s - h * t);                                                   \
                dx = (what & 8) != 0 ? LDX(befores, at + j) + dx : dx;                             \
                STX(dxs, at + j, dx);                                                              \
                ALSO                                                                               \
            }                                                                                      \
        }                                                                                          \
        EACH_QUAD_(u, q, EACH4(e) {                                                                \
            dws[g * (idx)n + 4 * q + e] = dw4[u][e];                                               \
            dbs[g * (idx)n + 4 * q + e] = db4[u][e];                                               \
        })                                                                                         \
        BARRIER();                                                                                 \
        LANES(j, held ? 0 : n)                                                                     \
        {                                                                                          \
            dws[g * (idx)n + j] = dw[j];                                                           \
            dbs[g * (idx)n + j] = db[j];                                                           \
        }                                                                                          \
    }

#endif
