/* float4.h -- four elements of f32, f16 or bf16 at a time, in 16 or 8 bytes, where a prelude has
 * LOAD4_ and STORE4_ of them (TERN_FLOAT4): LOAD4(v, p, i) takes elements 4 i to 4 i + 3 of p to
 * v[0..4) as REAL; likewise eight at a time. */
#ifndef TERN_FLOAT4_H
#define TERN_FLOAT4_H
#define LOAD4(v, p, i)  TERN_CAT(LOAD4, TERN_T)(v, p, i)
#define STORE4(p, i, v) TERN_CAT(STORE4, TERN_T)(p, i, v)
#define EACH4(e)        UNROLL for (i32 e = 0; e < 4; e++)
/* Whether p is where a load of four may be. */
#define ALIGNED4(p) (((u64)(p) & (4 * sizeof *(p) - 1)) == 0)

/* Units of EACH elements, 4 or 1, whose loads may be under way: UNIT_LOAD(v, p) loads those from
 * element `at` of p on, UNIT_OF(v, e) is one of them. They stay as they lie in memory until
 * then, where that saves registers. */
#if TERN_RAW4
#define UNIT_WORD          STO
#define UNIT_OF(v, e)      LD(v, e)
#define UNIT_LOAD(v, p)                                                                            \
    TERN_CAT(UNIT_LOAD, IN_SET(FLOAT4, TERN_T))(v, p)                                              \
        v[0] = (p)[at];
#define UNIT_LOAD_0(v, p)
#define UNIT_LOAD_1(v, p)                                                                          \
    if (EACH == 4) {                                                                               \
        RAW4(v, (p) + at, 0);                                                                      \
    } else
#else
#define UNIT_WORD       REAL
#define UNIT_OF(v, e)   v[e]
#define UNIT_LOAD(v, p) NORM_LOAD_(v, p)
#endif

/* ---- rows by vectors of 16 bytes ----
 * BY_FOURS: there are loads of four of TERN_T. A vector is ROW_WIDTH elements: 16 bytes of TERN_T.
 * ROW_VECTORS(p, n, fits) cuts a team's row (collectives.h) of n elements at p: `left` of them,
 * before the first place for such a load and at the end, go one by one, and `vectors` between them,
 * none unless `fits`: all that is read and written lies as p does. A lane loads row_kept vectors
 * before it uses the first, and has them at hand afterwards; `again` says that the row has more of
 * them and is read again. A short row (TERN_SHORT_ROWS) never has. IN(X) lists what is read:
 * X(name, type, p). ROW_EACH(first, IN, BEGIN, BODY, END, LAST) does BODY for each element j, which
 * is e of its vector, BEGIN and END (ROW_WIDTH q from head on) about each vector; BEGIN and LAST
 * about one alone, where e is 0. */
#if TERN_FLOAT4 && !TERN_CHUNKS
#define BY_FOURS IN_SET(FLOAT4, TERN_T)
#else
#define BY_FOURS 0
#endif
#define ROW_WIDTH   TERN_CAT(ROW_WIDTH, IS_HALF)
#define ROW_WIDTH_0 4
#define ROW_WIDTH_1 8
/* Vectors that a lane has, and where registers are scarce. */
#define ROW_MOST     TERN_CAT(ROW_MOST, IS_HALF)
#define ROW_HALF_    TERN_CAT(ROW_HALF, IS_HALF)
#if TERN_SHORT_ROWS
#define ROW_MOST_0 2
#define ROW_MOST_1 1
#define ROW_HALF_0 2
#define ROW_HALF_1 1
#define ROW_AGAIN_ 0
#define ROW_PASSES_(c) for (idx c = tern_lane, once_ = 1; once_ != 0; once_ = 0)
#else
#define ROW_MOST_0 8
#define ROW_MOST_1 4
#define ROW_HALF_0 4
#define ROW_HALF_1 2
#define ROW_AGAIN_ (vectors > row_kept * tern_team)
#define ROW_PASSES_(c) for (idx c = tern_lane; c < vectors; c += row_kept * tern_team)
#endif
/* How many elements p is past a place for a vector. */
#define ROW_PAST(p) ((i32)((u64)(p) / sizeof *(p)) & (ROW_WIDTH - 1))
#define ROW_OF_(NAME, T) TERN_CAT(TERN_CAT(NAME, IS_HALF), T)
#define ROW_VECTOR_0_f32    FOUR_f32
#define ROW_VECTOR_0_f16    FOUR_f16
#define ROW_VECTOR_0_bf16   FOUR_bf16
#define ROW_VECTOR_1_f32    EIGHT_f32
#define ROW_VECTOR_1_f16    EIGHT_f16
#define ROW_VECTOR_1_bf16   EIGHT_bf16
#define ROW_GET_0_f32       GET4_f32
#define ROW_GET_0_f16       GET4_f16
#define ROW_GET_0_bf16      GET4_bf16
#define ROW_GET_1_f32       GET8_f32
#define ROW_GET_1_f16       GET8_f16
#define ROW_GET_1_bf16      GET8_bf16
#define ROW_GATHER_0_f32    GATHER4_f32
#define ROW_GATHER_1_f16    GATHER8_f16
#define ROW_GATHER_1_bf16   GATHER8_f16
#define ROW_SAME_0_f32      SAME4_f32
#define ROW_SAME_1_f16      SAME8_f16
#define ROW_SAME_1_bf16     SAME8_f16
#define ROW_SPREAD8_0_f32   SPREAD4_f32
#define ROW_SPREAD8_0_f16   SPREAD4_f16
#define ROW_SPREAD8_0_bf16  SPREAD4_bf16
#define ROW_SPREAD8_1_f32   SPREAD8_f32
#define ROW_SPREAD8_1_f16   SPREAD8_f16
#define ROW_SPREAD8_1_bf16  SPREAD8_bf16
#define ROW_STORE8_0_f32    STORE4_f32
#define ROW_STORE8_0_bool   STORE4_bool
#define ROW_STORE8_1_f32    STORE8_f32
#define ROW_STORE8_1_f16    STORE8_f16
#define ROW_STORE8_1_bf16   STORE8_bf16
#define ROW_STORE8_1_bool   STORE8_bool
/* Vector q of p as T, from v[0..ROW_WIDTH). */
#define ROW_STORE(T, p, q, v) ROW_OF_(ROW_STORE8, T)(p, q, v)
#define EACH_OF_ROW(e)        UNROLL for (i32 e = 0; e < ROW_WIDTH; e++)
#define ROW_VECTORS(p, n, fits)                                                                    \
    enum { row_kept = ROW_MOST };                                                                  \
    const idx row_n = TERN_HAS_ROW_ ? (idx)(n) : 0;                                                \
    const idx past_ = (fits) ? -ROW_PAST(p) & (ROW_WIDTH - 1) : row_n;                             \
    const idx head = past_ < row_n ? past_ : row_n, vectors = (row_n - head) / ROW_WIDTH,          \
        left = row_n - ROW_WIDTH * vectors;                                                        \
    const i32 again = ROW_AGAIN_;                                                                  \
    i32 back = 0; /* the last are the first */
#define ROW_KEEP_(x, T, p)   ROW_OF_(ROW_VECTOR, T) x##_k[row_kept];
#define ROW_LOAD_(x, T, p)   ROW_OF_(ROW_GET, T)(x##_k[u], (p) + head, q);
#define ROW_SPREAD_(x, T, p) f32 x##_v[ROW_WIDTH]; ROW_OF_(ROW_SPREAD8, T)(x##_v, x##_k[u]);
#define ROW_TAKE_(x, T, p)   const f32 x = x##_v[e];
#define ROW_ONE_(x, T, p)    const f32 x = LD_OF(T, p, j);
/* A vector of what all rows have in common, as weights; `even`: they lie as p does. */
#define ROW_SIDE(even, to, T, p)                                                                   \
    {                                                                                              \
        if (even) {                                                                                \
            ROW_OF_(ROW_VECTOR, T) side_;                                                          \
            ROW_OF_(ROW_GET, T)(side_, (p) + head, q);                                             \
            ROW_OF_(ROW_SPREAD8, T)(to, side_);                                                    \
        } else                                                                                     \
            EACH_OF_ROW(e) to[e] = LD_OF(T, p, head + ROW_WIDTH * q + e);                          \
    }
#define ROW_UNITS_(text)                                                                           \
    UNROLL for (i32 u = 0; u < row_kept; u++)                                                      \
    {                                                                                              \
        const idx q_ = c + u * tern_team, q = back ? vectors - 1 - q_ : q_;                        \
        if (q_ < vectors) {                                                                        \
            text                                                                                   \
        }                                                                                          \
    }
#define ROW_CHUNKS(first, IN, text)                                                                \
    ROW_PASSES_(c)                                                                                 \
    {                                                                                              \
        if ((first) || again) {                                                                    \
            ROW_UNITS_(IN(ROW_LOAD_))                                                              \
        }                                                                                          \
        text                                                                                       \
    }
#define ROW_UNITS(IN, BEGIN, BODY, END)                                                            \
    ROW_UNITS_(IN(ROW_SPREAD_) BEGIN EACH_OF_ROW(e) {                                              \
        const idx j = head + ROW_WIDTH * q + e;                                                    \
        IN(ROW_TAKE_)                                                                              \
        BODY                                                                                       \
    } END)
#define ROW_LEFT(IN, BODY)                                                                         \
    for (idx k_ = tern_lane; k_ < left; k_ += tern_team) {                                         \
        const idx j = k_ < head ? k_ : k_ + ROW_WIDTH * vectors;                                   \
        const i32 e = 0;                                                                           \
        IN(ROW_ONE_)                                                                               \
        BODY                                                                                       \
    }
#define ROW_EACH(first, IN, BEGIN, BODY, END, LAST)                                                \
    ROW_CHUNKS(first, IN, ROW_UNITS(IN, BEGIN, BODY, END))                                         \
    ROW_LEFT(IN, BEGIN BODY LAST)
/* s += the sum of TERM. */
#define ROW_SUM(first, IN, s, TERM)                                                                \
    ROW_EACH(first, IN, ACC part = 0;, part += (TERM);, s += part;, s += part;)
/* Powers of a row, in float32 e^(x - base) with base = m. In halves 2^(unit x - base), one
 * multiply-add and one instruction: base = unit m is rounded, but the same for every term, and
 * ROW_MISSED(m), log2 of e^m / 2^base, says by how much. Beyond 1e38, where log2(e) m might be
 * infinite, two numbers are equal or 1e30 apart, and any unit gives 1 or 0. ROW_SHRINK(before) is
 * what a sum by the base of `before` is multiplied by. */
#if IS_HALF && defined(TERN_EXP2_ROUGH)
#define ROW_UNIT_(m)      ((m) > -1e38f && (m) < 1e38f ? 1.44269504f : 0.25f)
#define ROW_BASE(m)       const f32 unit = ROW_UNIT_(m), base = (m)*unit;
#define ROW_POWER(x)      TERN_EXP2_ROUGH(TERN_FMA(x, unit, -base))
#define ROW_MISSED(m)     TERN_FMA(m, unit, -base)
#define ROW_AMENDED(v, m) ((v)*TERN_EXP2_ROUGH(-ROW_MISSED(m)))
#define ROW_SHRINK(before)                                                                         \
    (ROW_UNIT_(before) == unit ? TERN_EXP2_ROUGH((before)*unit - base) : 0)
#else
#define ROW_BASE(m)        const ACC base = m;
#define ROW_POWER(x)       exp_below((x)-base)
#define ROW_MISSED(m)      0
#define ROW_AMENDED(v, m)  (v)
#define ROW_SHRINK(before) exp_below((before)-base)
#endif
/* m becomes the row's largest x and z the sum of its ROW_POWER(x) by the ROW_BASE of m, which stays
 * declared, in one reading; of a row that is all -inf that of 0, and z is 0. KEEP may keep v, such
 * a power by that of kept_base, where the row is not read again. For a long row each lane begins
 * with its own largest, which a short one's lanes agree upon first. */
#define ROW_BASE_(m) ROW_BASE((m) > MINUS_INF ? (m) : 0)
#if TERN_SHORT_ROWS
#define ROW_POWERS(IN, m, z, KEEP)                                                                 \
    ROW_EACH(1, IN, , m = ROW_LARGER(m, x);, , )                                                   \
    m = TEAM_MAX(m, scratch);                                                                      \
    const ACC kept_base = m;                                                                       \
    ROW_BASE_(m)                                                                                   \
    ROW_CHUNKS(0, IN, ROW_UNITS(IN, ACC part = 0;, const ACC v = ROW_POWER(x); part += v;          \
                                KEEP, z += part;))                                                 \
    ROW_LEFT(IN, z += ROW_POWER(x);)                                                               \
    z = TEAM_SUM(z, scratch);
#else
#define ROW_POWERS(IN, m, z, KEEP)                                                                 \
    ROW_CHUNKS(1, IN, const ACC before = m; ROW_UNITS(IN, , m = ROW_LARGER(m, x);, ) ROW_BASE_(m)  \
               z *= ROW_SHRINK(before);                                                            \
               ROW_UNITS(IN, ACC part = 0;, const ACC v = ROW_POWER(x); part += v; KEEP,           \
                         z += part;))                                                              \
    const ACC kept_base = m;                                                                       \
    ROW_LEFT(IN, const ACC before = m; m = ROW_LARGER(m, x); ROW_BASE_(m)                          \
             z = z * ROW_SHRINK(before) + ROW_POWER(x);)                                           \
    const ACC own_most = m;                                                                        \
    m = TEAM_MAX(m, scratch);                                                                      \
    ROW_BASE_(m)                                                                                   \
    z = TEAM_SUM(z * ROW_SHRINK(own_most), scratch);
#endif
/* log of the sum of e^(x - m), from z. */
#define ROW_LOG(z, m) (log(z) - ROW_MISSED(m) * C(0.6931471805599453))
/* ---- flat loops by vectors of 16 bytes ----
 * Of `vectors` vectors in each of `rows` rows a lane loads two before it uses the first:
 *
 *   FLAT_VECTORS(rows, vectors)
 *   {
 *       FLAT_TWO(T, x)                                of each tensor that is read
 *       FLAT_LOADED(r, j) { FLAT_GET(T, x, p, j); }   vector j of row r, which begins at p
 *       FLAT_USED(q) { FLAT_VALUES(T, v, x) ... }     v[0..ROW_WIDTH) of vector q, of a single row
 *   }
 *
 * FLAT_FITS(p): such a load may be at p; FLAT_ND_FITS(w, k): so do rows of tensor k of an index of
 * unit steps lie from there on. FLAT_SKIP goes past the vectors of a tensor. */
#define FLAT_FITS(p)       (ROW_PAST(p) == 0)
#define FLAT_ND_FITS(w, k) ((w).fours >> ((k) + (ROW_WIDTH & 8) / 2) & 1)
#define FLAT_SKIP(p)       p += ROW_WIDTH * vectors;
#define FLAT_VECTORS(rows, vectors)                                                                \
    for (idx tern_k = TERN_THREAD, tern_in = (vectors), tern_n = (idx)(rows)*tern_in,              \
             tern_s = TERN_THREADS;                                                                \
         tern_k < tern_n; tern_k += 2 * tern_s)
#define FLAT_LOADED(r, j)                                                                          \
    UNROLL for (i32 u = 0; u < 2; u++)                                                             \
        for (idx k_ = tern_k + u * tern_s, r = k_ < tern_in ? 0 : k_ / tern_in,                    \
                 j = k_ - r * tern_in;                                                             \
             k_ < tern_n; k_ = tern_n)
#define FLAT_USED(q)                                                                               \
    ROLLED for (idx q = tern_k; q < tern_n && q < tern_k + 2 * tern_s; q += tern_s)
#define FLAT_TWO(T, x)       ROW_OF_(ROW_VECTOR, T) x##_k[2];
#define FLAT_GET(T, x, p, j) ROW_OF_(ROW_GET, T)(x##_k[u], p, j)
#define FLAT_VALUES(T, v, x)                                                                       \
    REAL v[ROW_WIDTH];                                                                             \
    ROW_OF_(ROW_SPREAD8, T)(v, x##_k[0]);                                                          \
    x##_k[0] = x##_k[1];
#endif
