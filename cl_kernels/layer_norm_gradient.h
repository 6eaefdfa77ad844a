/* layer_norm_gradient.h -- the body of layer norm's gradient in one reading, of fused.cl. */
#ifndef TERN_LAYER_NORM_GRADIENT_H
#define TERN_LAYER_NORM_GRADIENT_H
#include "float4.h"

/* Columns that each lane has in registers, in vectors where there are loads of such and all lies at
 * places for them: of short rows as in float4.h, of others, which a group has to itself, fours. */
#if TERN_SHORT_ROWS
enum { norm_team = TERN_ROW_LANES, norm_held = 8 };
#define NORM_WIDTH_         ROW_WIDTH
#define NORM_PAST_(p)       ROW_PAST(p)
#define NORM_VECTOR_(T)     ROW_OF_(ROW_VECTOR, T)
#define NORM_GET_(T)        ROW_OF_(ROW_GET, T)
#define NORM_SPREAD_(T)     ROW_OF_(ROW_SPREAD8, T)
#define NORM_STORE_(T)      ROW_OF_(ROW_STORE8, T)
#define NORM_SUM2_(s, t, k) s = TEAM_SUM(s, scratch); t = TEAM_SUM(t, scratch);
#define NORM_LONG_(text)
#define NORM_SHORT_(text)   text
#else
enum { norm_team = TERN_WG, norm_held = (TERN_NORM_WIDE / 4 + TERN_WG - 1) / TERN_WG * 4 };
#define NORM_WIDTH_         4
#define NORM_PAST_(p)       !ALIGNED4(p)
#define NORM_VECTOR_(T)     TERN_CAT(FOUR, T)
#define NORM_GET_(T)        TERN_CAT(GET4, T)
#define NORM_SPREAD_(T)     TERN_CAT(SPREAD4, T)
#define NORM_STORE_(T)      TERN_CAT(STORE4, T)
#define NORM_SUM2_(s, t, k) GROUP_SUM2(s, t, scratch, (i32)(k) & 1)
#define NORM_LONG_(text)    text
#define NORM_SHORT_(text)
#endif
#if TERN_CHUNKS
#define NORM_UNROLL_
#else
#define NORM_UNROLL_ UNROLL
#endif
#define NORM_UNITS_ (norm_held / NORM_WIDTH_)
/* What is for vectors alone; whether they fit. */
#define NORM_BY_VECTORS_(text)   TERN_CAT(NORM_BY_VECTORS, BY_FOURS)(text)
#define NORM_BY_VECTORS_0(text)
#define NORM_BY_VECTORS_1(text)  text
#define NORM_FITS_(fits)         TERN_CAT(NORM_FITS, BY_FOURS)(fits)
#define NORM_FITS_0(fits)        0
#define NORM_FITS_1(fits)        (fits)
#define NORM_HELD_(c)            NORM_UNROLL_ for (i32 c = 0; c < norm_held; c++)
/* Each vector u of the lane's, number q of the row; each number c of its columns, j of the row,
 * those of no vectors and all. */
#define NORM_EACH_VECTOR_(u, q, text)                                                              \
    NORM_UNROLL_ for (i32 u = 0; u < NORM_UNITS_; u++)                                             \
    {                                                                                              \
        const idx q = lane + u * norm_team;                                                        \
        if (NORM_WIDTH_ * q < (idx)n) {                                                            \
            text                                                                                   \
        }                                                                                          \
    }
#define NORM_EACH_(c, j, J, text)                                                                  \
    NORM_UNROLL_ for (i32 c = 0; c < norm_held; c++)                                               \
    {                                                                                              \
        const idx j = J;                                                                           \
        if (j < (idx)n) {                                                                          \
            text                                                                                   \
        }                                                                                          \
    }
#define NORM_EACH_LONE_(c, j, text) NORM_EACH_(c, j, lane + c * norm_team, text)
#define NORM_EACH_COLUMN_(c, j, text)                                                              \
    if (!fit)                                                                                      \
        NORM_EACH_LONE_(c, j, text)                                                                \
    NORM_BY_VECTORS_(if (fit) NORM_EACH_(c, j,                                                     \
        NORM_WIDTH_ * (lane + c / NORM_WIDTH_ * norm_team) + c % NORM_WIDTH_, text))

/* The gradients of norm_layer.cl in one reading, for rows of up to TERN_NORM_WIDE elements: dx of
 * `len` rows each, and their sums dw and db as (parts, n). A group has `len` rows, of which its
 * teams take turns. Each lane has its own columns of dw and db. what: 1 there is w, 4 the mean
 * counts as 0, 8 dx is added to what came before, 16 it is noted in half precision too. X: of what
 * has x's type. */
#define NORM_KEPT_(T)                                                                              \
    ACC next_mean = 0, next_rstd = 0;                                                              \
    REAL w[norm_held];                                                                             \
    NORM_HELD_(c) w[c] = 1;                                                                        \
    NORM_BY_VECTORS_(NORM_VECTOR_(TERN_T) dy_k[NORM_UNITS_]; NORM_VECTOR_(T) x_k[NORM_UNITS_];     \
                     NORM_VECTOR_(T) b_k[NORM_UNITS_];)
#define NORM_NEXT_(T, r, at)                                                                       \
    NORM_BY_VECTORS_(if (fit) NORM_EACH_VECTOR_(u, q,                                              \
        NORM_GET_(TERN_T)(dy_k[u], dys + (at), q);                                                 \
        NORM_GET_(T)(x_k[u], xs + (at), q);))                                                      \
    next_mean = means[r];                                                                          \
    next_rstd = rstds[r];
/* A lane of a long row keeps w and has its next row on its way, and what came before early: one of
 * a short row would spill, and there are others to wait for theirs. */
#define NORM_TAKE_W_(u, T, LDX)                                                                    \
    if ((what & 1) != 0 && !fit)                                                                   \
        NORM_UNROLL_ for (i32 e = 0; e < NORM_WIDTH_; e++)                                         \
            if (lane + (NORM_WIDTH_ * u + e) * norm_team < (idx)n)                                 \
                w[NORM_WIDTH_ * u + e] = LDX((ws + lane), (NORM_WIDTH_ * u + e) * norm_team);      \
    NORM_BY_VECTORS_(if ((what & 1) != 0 && fit && NORM_WIDTH_ * (lane + u * norm_team) < (idx)n) {\
        NORM_VECTOR_(T) w_k;                                                                       \
        NORM_GET_(T)(w_k, ws, lane + u * norm_team);                                               \
        NORM_SPREAD_(T)((w + NORM_WIDTH_ * u), w_k);                                               \
    })
#define NORM_GET_BEFORE_(T) if ((what & 8) != 0) NORM_GET_(T)(b_k[u], befores + at, q);
/* The sums of all teams, a lane's own where a team is the group. */
#if TERN_SHORT_ROWS
#define NORM_PARTS_(to, of)                                                                        \
    NORM_EACH_COLUMN_(c, j, sums[own * (idx)n + j] = of[c];)                                       \
    BARRIER();                                                                                     \
    LANES(j, n)                                                                                    \
    {                                                                                              \
        ACC sum = 0;                                                                               \
        for (idx k = 0; k < teams; k++)                                                            \
            sum += sums[k * (idx)n + j];                                                           \
        to[g * (idx)n + j] = sum;                                                                  \
    }                                                                                              \
    BARRIER();
#define NORM_SUMS_ARRAY_ LOCAL_ARRAY(ACC, sums, norm_held *TERN_WG);
#else
#define NORM_PARTS_(to, of) NORM_EACH_COLUMN_(c, j, to[g * (idx)n + j] = of[c];)
#define NORM_SUMS_ARRAY_
#endif
#define LAYER_NORM_GRADIENT_(fits, LDX, STX, T, ALSO, ALSO_V)                                      \
    BASE(dxs);                                                                                     \
    BASE(dws);                                                                                     \
    BASE(dbs);                                                                                     \
    BASE(dys);                                                                                     \
    BASE(xs);                                                                                      \
    BASE(ws);                                                                                      \
    BASE(befores);                                                                                 \
    BASE(means);                                                                                   \
    BASE(rstds);                                                                                   \
    LOCAL_ARRAY(ACC, scratch, TERN_WG);                                                            \
    NORM_SUMS_ARRAY_                                                                               \
    const idx lane = LID % norm_team, own = LID / norm_team;                                       \
    enum { teams = TERN_WG / norm_team };                                                          \
    const i32 fit = NORM_FITS_(n % NORM_WIDTH_ == 0 && NORM_PAST_(dys) == 0 &&                     \
        NORM_PAST_(xs) == 0 && NORM_PAST_(ws) == 0 && NORM_PAST_(befores) == 0 &&                  \
        NORM_PAST_(dxs) == 0 && (fits));                                                           \
    GROUPS(g, (rows + len - 1) / len)                                                              \
    {                                                                                              \
        const idx first = g * (idx)len, last = first + (idx)len;                                   \
        const idx end = last < (idx)rows ? last : (idx)rows;                                       \
        REAL dw[norm_held], db[norm_held];                                                         \
        NORM_HELD_(c)                                                                              \
        {                                                                                          \
            dw[c] = 0;                                                                             \
            db[c] = 0;                                                                             \
        }                                                                                          \
        NORM_LONG_(NORM_KEPT_(T) NORM_UNROLL_ for (i32 u = 0; u < NORM_UNITS_; u++)                \
            { NORM_TAKE_W_(u, T, LDX) } NORM_NEXT_(T, first, first * (idx)n))                      \
        ROLLED for (idx k = first; k < end; k += teams) {                                          \
            const idx r = k + own;                                                                 \
            const i32 has = r < end;                                                               \
            idx at = r * (idx)n;                                                                   \
            NORM_SHORT_(LOADED(at))                                                                \
            NORM_SHORT_(NORM_KEPT_(T) if (has) { NORM_NEXT_(T, r, at) })                           \
            const ACC mean = next_mean, rstd = next_rstd;                                          \
            ACC s = 0, t = 0;                                                                      \
            REAL x[norm_held], d[norm_held];                                                       \
            NORM_HELD_(c)                                                                          \
            {                                                                                      \
                x[c] = 0;                                                                          \
                d[c] = 0;                                                                          \
            }                                                                                      \
            if (has && !fit) {                                                                     \
                NORM_EACH_LONE_(c, j, x[c] = LDX(xs, at + j); d[c] = LD(dys, at + j);)             \
            }                                                                                      \
            NORM_BY_VECTORS_(else if (has) NORM_EACH_VECTOR_(u, q,                                 \
                NORM_SPREAD_(TERN_T)((d + NORM_WIDTH_ * u), dy_k[u]);                              \
                NORM_SPREAD_(T)((x + NORM_WIDTH_ * u), x_k[u]);                                    \
                NORM_LONG_(NORM_GET_BEFORE_(T))))                                                  \
            NORM_LONG_(if (r + 1 < end) { NORM_NEXT_(T, r + 1, at + (idx)n) })                     \
            NORM_HELD_(c)                                                                          \
            {                                                                                      \
                x[c] = (x[c] - mean) * rstd;                                                       \
                dw[c] += d[c] * x[c];                                                              \
                db[c] += d[c];                                                                     \
            }                                                                                      \
            NORM_UNROLL_ for (i32 u = 0; u < NORM_UNITS_; u++)                                     \
            {                                                                                      \
                NORM_SHORT_(NORM_TAKE_W_(u, T, LDX) LOADED(at))                                    \
                NORM_UNROLL_ for (i32 e = 0; e < NORM_WIDTH_; e++)                                 \
                {                                                                                  \
                    const i32 c = NORM_WIDTH_ * u + e;                                             \
                    d[c] *= w[c];                                                                  \
                    s += d[c];                                                                     \
                    t += d[c] * x[c];                                                              \
                }                                                                                  \
            }                                                                                      \
            NORM_SUM2_(s, t, k)                                                                    \
            s = (what & 4) != 0 ? 0 : s / (ACC)n;                                                  \
            t /= (ACC)n;                                                                           \
            NORM_HELD_(c) x[c] = rstd * (d[c] - s - x[c] * t);                                     \
            NORM_BY_VECTORS_(if (has && fit) NORM_EACH_VECTOR_(u, q,                               \
                REAL v[NORM_WIDTH_]; NORM_SHORT_(NORM_GET_BEFORE_(T))                              \
                if ((what & 8) != 0) { NORM_SPREAD_(T)(v, b_k[u]); }                               \
                NORM_UNROLL_ for (i32 e = 0; e < NORM_WIDTH_; e++)                                 \
                    v[e] = (what & 8) != 0 ? v[e] + x[NORM_WIDTH_ * u + e]                         \
                                           : x[NORM_WIDTH_ * u + e];                               \
                NORM_STORE_(T)(dxs + at, q, v); ALSO_V))                                           \
            if (has && !fit)                                                                       \
                NORM_EACH_LONE_(c, j, const ACC dx = (what & 8) != 0                               \
                    ? LDX(befores, at + j) + x[c] : x[c];                                          \
                    STX(dxs, at + j, dx); ALSO)                                                    \
        }                                                                                          \
        BARRIER();                                                                                 \
        NORM_PARTS_(dws, dw)                                                                       \
        NORM_PARTS_(dbs, db)                                                                       \
    }

#endif
