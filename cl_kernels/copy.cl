/* copy.cl -- copies with conversion and any strides, transposed, where a mask holds; fills. */
#include "float4.h"

/* y = x converted from another type: one kernel for each source. Floats go to integers by
 * truncation; NaN, infinities and what does not fit become the smallest value (of int32 for int32,
 * else of int64, then cut), as x86 does. */
#define TERN_TO_INT_(v, T, SMALLEST, LIMIT) ((v) > -(LIMIT) && (v) < (LIMIT) ? (T)(v) : (SMALLEST))
#undef TRUNCATED
#if !IS_WHOLE
#define TRUNCATED(v) v
#elif IS_I32
#define TRUNCATED(v) TERN_TO_INT_(v, i32, (-2147483647 - 1), 2147483648.0f)
#else
#define TRUNCATED(v) TERN_TO_INT_(v, i64, (-9223372036854775807 - 1), 9223372036854775808.0f)
#endif

#define COPY_VECTORS(S)  TERN_CAT(TERN_CAT(COPY_VECTORS, BY_FOURS), IN_SET(FLOAT4, S))(S)
#define COPY_VECTORS_0_0(S)
#define COPY_VECTORS_0_1(S)
#define COPY_VECTORS_1_0(S)
#define COPY_VECTORS_1_1(S)                                                                        \
    if (w.form == TERN_ND_UNIT && FLAT_FITS(ys) && FLAT_FITS(xs) && FLAT_ND_FITS(w, 0) &&          \
        FLAT_ND_FITS(w, 1)) {                                                                      \
        const idx vectors = inner / ROW_WIDTH;                                                     \
        FLAT_VECTORS(w.rows, vectors)                                                              \
        {                                                                                          \
            FLAT_TWO(S, x)                                                                         \
            idx at[2];                                                                             \
            FLAT_LOADED(r, j)                                                                      \
            {                                                                                      \
                ND_INDEX2(w, r, yo, xo)                                                            \
                FLAT_GET(S, x, xs + xo, j);                                                        \
                at[u] = yo + ROW_WIDTH * j;                                                        \
            }                                                                                      \
            FLAT_USED(q)                                                                           \
            {                                                                                      \
                FLAT_VALUES(S, v, x)                                                               \
                ROW_STORE(TERN_T, ys + at[0], 0, v);                                               \
                at[0] = at[1];                                                                     \
            }                                                                                      \
        }                                                                                          \
        FLAT_SKIP(ys) FLAT_SKIP(xs) inner -= ROW_WIDTH * vectors;                                  \
    }
/* The host's higher instruction sets leave float64 and whole numbers to half precision, which
 * hardly anybody copies, to the lowest. */
#undef SET_COPIED
#if IS_HALF && defined(TERN_LOWEST) && !TERN_LOWEST
#define SET_COPIED (1, 0, 1, 0, 1, 1)
#else
#define SET_COPIED SET_EXISTING
#endif
#define COPY_FROM(S)     TERN_CAT(COPY_FROM, IN_SET(COPIED, S))(S,                                 \
    TERN_CAT(CONVERT, IN_SET(FLOATS, S)))
#define CONVERT_0(v)     v
#define CONVERT_1        TRUNCATED
#define COPY_FROM_0(S, CONVERT)
#define COPY_FROM_1(S, CONVERT)                                                                    \
    KERNEL3(K(copy_##S), (OUT, STO, ys), (IN, STO_OF(S), xs), (ARG, tern_nd_index, w))             \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        idx inner = (idx)w.inner;                                                                  \
        COPY_VECTORS(S)                                                                            \
        FLAT(r, w.rows, inner)                                                                     \
        {                                                                                          \
            ND_INDEX2(w, r, yo, xo)                                                                \
            if (w.form == TERN_ND_UNIT) {                                                          \
                SIMD INNER(r, j)                                                                   \
                {                                                                                  \
                    REAL_OF(S) v = LD_OF(S, xs, xo + j);                                           \
                    ST(ys, yo + j, CONVERT(v));                                                    \
                }                                                                                  \
            } else {                                                                               \
                INNER(r, j)                                                                        \
                {                                                                                  \
                    REAL_OF(S) v = LD_OF(S, xs, xo + j * (idx)w.step[1]);                          \
                    ST(ys, yo + j * (idx)w.step[0], CONVERT(v));                                   \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
EACH_DTYPE(COPY_FROM)

#if IS_MOVER
/* Planes of an n by m matrix y, rows y_step apart, from x, which is the transposed, its m rows
 * x_step apart: by way of a tile, so that both sides go along their rows. */
#define TRANSPOSE_TILE TERN_TRANSPOSE_TILE
#if TERN_CHUNKS
#define TRANSPOSE_CELLS(r, c, rows, columns)                                                       \
    for (idx r = 0; r < (rows); r++)                                                               \
        SIMD for (idx c = 0; c < (columns); c++)
#else
#define TRANSPOSE_CELLS(r, c, rows, columns)                                                       \
    LANES(cell_, TRANSPOSE_TILE *TRANSPOSE_TILE)                                                   \
        for (idx r = cell_ / TRANSPOSE_TILE, c = cell_ % TRANSPOSE_TILE,                           \
            once_ = r < (rows) && c < (columns); once_; once_ = 0)
#endif
/* On GPUs 16 bytes a lane on both sides, by tiles of WORD_TILE x WORD_TILE in words of 32 bits,
 * where extents and steps are multiples of that: WORD_ELEMENTS of them are a load. A row of the
 * tile is a word longer, so that columns meet other banks. */
#undef BY_WORDS
#if BY_FOURS
#define BY_WORDS 1
enum { K(WORD_ELEMENTS) = 16 / sizeof(STO), K(WORD_LD) = TERN_WORD_TILE / (4 / sizeof(STO)) + 1 };
#define WORD_ELEMENTS K(WORD_ELEMENTS)
#define WORD_LD       K(WORD_LD)
/* Word e of a load's elements, which are one below the other from row j of a column of the tile
 * on. */
#if IS_HALF
#define COLUMN_WORD(column, j, e)                                                                  \
    ((u32)(column)[((j) + 2 * (e)) * 2 * WORD_LD] | (u32)(column)[((j) + 2 * (e) +                 \
        1) * 2 * WORD_LD] << 16)
#else
#define COLUMN_WORD(column, j, e) f32_bits((column)[((j) + (e)) * WORD_LD])
#endif
/* LOAD and then KEEP for each load of a lane, four on their way at a time: chunk c has row i and
 * elements from j on. */
#define EACH_CHUNK(rows, columns, LOAD, KEEP)                                                      \
    for (idx begin_ = LID; begin_ < WORD_CHUNKS; begin_ += 4 * TERN_WG) {                          \
        u32 v[4][4];                                                                               \
        CHUNKS_(rows, columns, LOAD)                                                               \
        CHUNKS_(rows, columns, KEEP)                                                               \
    }
#define CHUNKS_(rows, columns, DO)                                                                 \
    EACH4(u)                                                                                       \
    {                                                                                              \
        const idx c_ = begin_ + u * TERN_WG, i = c_ / WORD_ROW, j = c_ % WORD_ROW * WORD_ELEMENTS; \
        if (c_ < WORD_CHUNKS && i < (rows) && j < (columns)) {                                     \
            DO                                                                                     \
        }                                                                                          \
    }
#define WORD_ROW      (TERN_WORD_TILE / WORD_ELEMENTS)
#define WORD_CHUNKS   (TERN_WORD_TILE * WORD_ROW)
#else
#define BY_WORDS 0
#endif
KERNEL3(K(copy_transposed), (OUT, STO, ys), (IN, STO, xs), (ARG, tern_transposition, t))
{
    BASE(ys);
    BASE(xs);
#if BY_WORDS
    LOCAL_ARRAY(u32, words, TERN_WORD_TILE * WORD_LD);
    LOCAL STO *tile = (LOCAL STO *)words;
    const i32 by_words = t.together >= WORD_ELEMENTS && ((u64)ys & 15) == 0 && ((u64)xs & 15) == 0;
    const idx low = ((idx)t.n + TERN_WORD_TILE - 1) / TERN_WORD_TILE;
    const idx wide = ((idx)t.m + TERN_WORD_TILE - 1) / TERN_WORD_TILE;
    GROUPS(g, by_words ? (idx)t.planes.rows * low * wide : 0)
    {
        idx q = g / wide, left = (g - q * wide) * TERN_WORD_TILE, plane = q / low;
        idx top = (q - plane * low) * TERN_WORD_TILE, height = (idx)t.n - top,
            width = (idx)t.m - left;
        ND_INDEX2(t.planes, plane, yo, xo)
        yo += top * (idx)t.y_step + left;
        xo += left * (idx)t.x_step + top;
        EACH_CHUNK(width, height, LOAD_WORDS(v[u], xs + (xo + i * (idx)t.x_step + j));,
                   EACH4(e) words[i * WORD_LD + j * (idx)sizeof(STO) / 4 + e] = v[u][e];)
        BARRIER();
        EACH_CHUNK(height, width, EACH4(e) v[u][e] = COLUMN_WORD(tile + i, j, e);,
                   STORE_WORDS(ys + (yo + i * (idx)t.y_step + j), v[u]);)
        BARRIER();
    }
#else
    const i32 by_words = 0;
    LOCAL_ARRAY(STO, tile, TRANSPOSE_TILE * (TRANSPOSE_TILE + 1));
#endif
    idx down = ((idx)t.n + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE,
        across = ((idx)t.m + TRANSPOSE_TILE - 1) / TRANSPOSE_TILE;
    GROUPS(g, by_words ? 0 : (idx)t.planes.rows * down * across)
    {
        idx q = g / across, left = (g - q * across) * TRANSPOSE_TILE, plane = q / down;
        idx top = (q - plane * down) * TRANSPOSE_TILE, height = (idx)t.n - top,
            width = (idx)t.m - left;
        height = height < TRANSPOSE_TILE ? height : TRANSPOSE_TILE;
        width = width < TRANSPOSE_TILE ? width : TRANSPOSE_TILE;
        ND_INDEX2(t.planes, plane, yo, xo)
        yo += top * (idx)t.y_step + left;
        xo += left * (idx)t.x_step + top;
        TRANSPOSE_CELLS(j, i, width, height)
        {
            tile[j * (TRANSPOSE_TILE + 1) + i] = xs[xo + j * (idx)t.x_step + i];
        }
        BARRIER();
        TRANSPOSE_CELLS(i, j, height, width)
        {
            ys[yo + i * (idx)t.y_step + j] = tile[j * (TRANSPOSE_TILE + 1) + i];
        }
        BARRIER();
    }
}
#endif

KERNEL3(K(fill), (OUT, STO, ys), (ARG, tern_nd_index, w), (ARG, REAL, a))
{
    BASE(ys);
    FLAT(r, w.rows, w.inner)
    {
        ND_INDEX1(w, r, yo)
        if (w.form == TERN_ND_UNIT) {
            SIMD INNER(r, j)
            {
                ST(ys, yo + j, a);
            }
        } else {
            INNER(r, j)
            {
                ST(ys, yo + j * (idx)w.step[0], a);
            }
        }
    }
}

/* Matrices of n rows and m columns: y = x where low <= column - row <= high, else 0. */
KERNEL7(K(band), (OUT, STO, ys), (IN, STO, xs), (ARG, i64, rows), (ARG, i64, n), (ARG, i64, m),
        (ARG, i64, low), (ARG, i64, high))
{
    BASE(ys);
    BASE(xs);
    FLAT(r, rows, m)
    {
        i64 i = (i64)(r % (idx)n);
        INNER(r, j)
        {
            i64 diagonal = (i64)j - i;
            idx at = r * (idx)m + j;
            ST(ys, at, diagonal >= low && diagonal <= high ? LD(xs, at) : 0);
        }
    }
}

#if IS_MOVER
/* zs = cs ? xs : ys, with cs of bool. */
KERNEL5(K(where), (OUT, STO, zs), (IN, u8, cs), (IN, STO, xs), (IN, STO, ys),
        (ARG, tern_nd_index, w))
{
    BASE(zs);
    BASE(cs);
    BASE(xs);
    BASE(ys);
    FLAT(r, w.rows, w.inner)
    {
        ND_INDEX4(w, r, zo, co, xo, yo)
        if (w.form == TERN_ND_UNIT) {
            SIMD INNER(r, j)
            {
                STO x = xs[xo + j], y = ys[yo + j];
                zs[zo + j] = cs[co + j] ? x : y;
            }
        } else {
            INNER(r, j)
            {
                STO x = xs[xo + j * (idx)w.step[2]], y = ys[yo + j * (idx)w.step[3]];
                zs[zo + j * (idx)w.step[0]] = cs[co + j * (idx)w.step[1]] ? x : y;
            }
        }
    }
}
#endif
#undef COPY_FROM
#undef COPY_VECTORS_0_0
#undef COPY_VECTORS_0_1
#undef COPY_VECTORS_1_0
#undef COPY_VECTORS_1_1
#undef COPY_VECTORS
#undef TRANSPOSE_TILE
#undef TRANSPOSE_CELLS
#undef EACH_CHUNK
#undef CHUNKS_
#undef COLUMN_WORD
#undef WORD_ROW
#undef WORD_CHUNKS
#undef WORD_ELEMENTS
#undef WORD_LD

/* Rows of up to four dense tensors one behind the other: ys (rows, na + nb + nc + nd). */
#if IS_FLOAT
KERNEL10(K(cat), (OUT, STO, ys), (IN, STO, as), (IN, STO, bs), (IN, STO, cs), (IN, STO, ds),
         (ARG, i64, rows), (ARG, i64, na), (ARG, i64, nb), (ARG, i64, nc), (ARG, i64, nd))
{
    BASE(ys);
    BASE(as);
    BASE(bs);
    BASE(cs);
    BASE(ds);
    const idx a = (idx)na, b = a + (idx)nb, c = b + (idx)nc, n = c + (idx)nd;
    FLAT(r, rows, n)
    {
        INNER(r, j)
        {
            ys[r * n + j] = j < a   ? as[r * a + j]
                            : j < b ? bs[r * (b - a) + j - a]
                            : j < c ? cs[r * (c - b) + j - b]
                                    : ds[r * (n - c) + j - c];
        }
    }
}
#endif
