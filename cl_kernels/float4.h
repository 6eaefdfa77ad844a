/* float4.h -- four elements of f32, f16 or bf16 at a time, in 16 or 8 bytes, where a prelude has
 * LOAD4_ and STORE4_ of them (TERN_FLOAT4): LOAD4(v, p, i) takes elements 4 i to 4 i + 3 of p to
 * v[0..4) as REAL. */
#ifndef TERN_FLOAT4_H
#define TERN_FLOAT4_H
#define LOAD4(v, p, i)  TERN_CAT(LOAD4, TERN_T)(v, p, i)
#define STORE4(p, i, v) TERN_CAT(STORE4, TERN_T)(p, i, v)
#define EACH4(e)        UNROLL for (i32 e = 0; e < 4; e++)
/* The same element four times where it stays. */
#define LOAD4_OR_1(stays, v, p, i)                                                                 \
    if (stays) {                                                                                   \
        v[0] = LD(p, 0);                                                                           \
        v[1] = v[2] = v[3] = v[0];                                                                 \
    } else {                                                                                       \
        LOAD4(v, p, i);                                                                            \
    }

/* Whether p is where a load of four may be; whether rows of tensor k of an index of unit steps
 * begin at multiples of four elements from there. */
#define ALIGNED4(p)       (((u64)(p) & (4 * sizeof *(p) - 1)) == 0)
#define ND_ALIGNED4(w, k) ((w).fours >> (k) & 1)
/* Past the elements that were taken. */
#define SKIP4(p) p += 4 * quads;
/* How many elements p is past such a place. */
#define PAST4(p) ((i32)((u64)(p) / sizeof *(p)) & 3)

/* ---- rows by fours ----
 * BY_FOURS: there are loads of four of TERN_T. ROW_FOURS(p, n, fits) then cuts a team's row
 * (collectives.h) of n elements at p: `left` of them, before the first place for such a load and at
 * the end, go one by one, and `quads` fours between them, none unless `fits`: all that is read and
 * written lies as p does. A lane loads ROW_KEPT fours before it uses the first, and has them at
 * hand afterwards; `again` says that the row has more of them and is read again. IN(X) lists what
 * is read: X(name, type, p). ROW_EACH(first, IN, BEGIN, BODY, END, LAST) does BODY for each element
 * j, which is e of its four, BEGIN and END (4 q from head on) about each four; BEGIN and LAST about
 * one alone, where e is 0. */
#if TERN_FLOAT4 && !TERN_CHUNKS
#define BY_FOURS IN_SET(FLOAT4, TERN_T)
#else
#define BY_FOURS 0
#endif
enum { ROW_KEPT = 8 };
#define ROW_FOURS(p, n, fits)                                                                      \
    const idx row_n = TERN_HAS_ROW_ ? (idx)(n) : 0, past_ = (fits) ? -PAST4(p) & 3 : row_n;        \
    const idx head = past_ < row_n ? past_ : row_n, quads = (row_n - head) / 4,                    \
        left = row_n - 4 * quads;                                                                  \
    const i32 again = quads > ROW_KEPT * tern_team;                                                \
    i32 back = 0; /* the last are the first */
#define ROW_KEEP_(x, T, p)   TERN_CAT(FOUR, T) x##_k[ROW_KEPT];
#define ROW_LOAD_(x, T, p)   TERN_CAT(GET4, T)(x##_k[u], (p) + head, q);
#define ROW_SPREAD_(x, T, p) f32 x##_4[4]; TERN_CAT(SPREAD4, T)(x##_4, x##_k[u]);
#define ROW_TAKE_(x, T, p)   const f32 x = x##_4[e];
#define ROW_ONE_(x, T, p)    const f32 x = LD_OF(T, p, j);
/* Four of what all rows have in common, as weights; `even`: they lie as p does. */
#define ROW_SIDE(even, to, T, p)                                                                   \
    {                                                                                              \
        if (even)                                                                                  \
            TERN_CAT(LOAD4, T)(to, (p) + head, q);                                                 \
        else                                                                                       \
            EACH4(e) to[e] = LD_OF(T, p, head + 4 * q + e);                                        \
    }
#define ROW_UNITS_(text)                                                                           \
    UNROLL for (i32 u = 0; u < ROW_KEPT; u++)                                                      \
    {                                                                                              \
        const idx q_ = c + u * tern_team, q = back ? quads - 1 - q_ : q_;                          \
        if (q_ < quads) {                                                                          \
            text                                                                                   \
        }                                                                                          \
    }
#define ROW_CHUNKS(first, IN, text)                                                                \
    for (idx c = tern_lane; c < quads; c += ROW_KEPT * tern_team) {                                \
        if ((first) || again) {                                                                    \
            ROW_UNITS_(IN(ROW_LOAD_))                                                              \
        }                                                                                          \
        text                                                                                       \
    }
#define ROW_UNITS(IN, BEGIN, BODY, END)                                                            \
    ROW_UNITS_(IN(ROW_SPREAD_) BEGIN EACH4(e) {                                                    \
        const idx j = head + 4 * q + e;                                                            \
        IN(ROW_TAKE_)                                                                              \
        BODY                                                                                       \
    } END)
#define ROW_LEFT(IN, BODY)                                                                         \
    for (idx k_ = tern_lane; k_ < left; k_ += tern_team) {                                         \
        const idx j = k_ < head ? k_ : k_ + 4 * quads;                                             \
        const i32 e = 0;                                                                           \
        IN(ROW_ONE_)                                                                               \
        BODY                                                                                       \
    }
#define ROW_EACH(first, IN, BEGIN, BODY, END, LAST)                                                \
    ROW_CHUNKS(first, IN, ROW_UNITS(IN, BEGIN, BODY, END))                                         \
    ROW_LEFT(IN, BEGIN BODY LAST)
/* s += the sum of TERM. */
#define ROW_SUM(first, IN, s, TERM)                                                                \
    ROW_EACH(first, IN, ACC four = 0;, four += (TERM);, s += four;, s += four;)
/* The largest x, m, and the sum z of e^(x - m) in one reading. Where all is -inf so far, nothing is
 * taken from x; what KEEP does with v = e^(x - base) is of the last base, if the row is not read
 * again. */
#define ROW_BASE_(m)                                                                               \
    const ACC base = m > MINUS_INF ? m : 0;                                                        \
    z *= exp_below(before - base);
#define ROW_POWERS(IN, m, z, KEEP)                                                                 \
    ROW_CHUNKS(1, IN, const ACC before = m; ROW_UNITS(IN, , m = ROW_LARGER(m, x);, ) ROW_BASE_(m)  \
               ROW_UNITS(IN, ACC four = 0;, const ACC v = exp_below(x - base); four += v;          \
                   KEEP, z += four;))                                                              \
    const ACC kept_base = m;                                                                       \
    ROW_LEFT(IN, const ACC before = m; m = ROW_LARGER(m, x); ROW_BASE_(m) z += exp_below(x - base);)
#endif
