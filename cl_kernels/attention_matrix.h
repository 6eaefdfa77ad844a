/* attention_matrix.h -- what attention on matrix units (attention_matrix.cl) and its gradients
 * (attention_matrix_gradient.cl) share. Operands and results are those of attention_tiles.cl;
 * nothing of the size of the scores is written.
 *
 * A sub-group has MATRIX_N columns, which are queries (of dk and dv: keys), and keeps what is
 * theirs; the others go by in local memory, for all sub-groups of a group. Scores are made with
 * the others in rows, so that a lane's sums are of its own columns: their maximum and total take
 * few exchanges, and they become the next product's B where they are. Built for:
 *
 *   MATRIX_WIDTH   32, 64, 128 or 256: of q, k and v, filled up with 0
 *   MATRIX_EXTRAS  1: masks, softcap and dropout are asked for when the kernel runs
 *   MATRIX_ODD     0 or 2, see matrix_tiles.h
 *   MATRIX_PASS    0: attention; of its gradients 1: dq, and deltas for the others; 2: dk, and dv
 *                  with it where IS_WHOLE; 3: dv, where not */
/* Of matrix.h: dq of 128 has the most sums and operands at once. */
#define MATRIX_FEW_REGISTERS (MATRIX_WIDTH > 64 && MATRIX_PASS == 1)
#include "matrix_tiles.h"
#include "matrix_chain.h"
#include "philox.h"
#undef COLUMNS
#undef PARTS
#undef WORDS
#undef IS_SMALL
#undef IS_LARGE
#undef HOLDS_TWO
#undef IS_KEPT
#undef KEYS_AT_ONCE
#undef OTHERS_AT_ONCE
#undef IS_WHOLE
#undef IS_CUT
#undef CUTS_OF_LARGE
#undef CUTS
#undef OUT_WIDTH
#undef OUT_PARTS
#undef LOCAL_WORDS
#undef HOLD
#undef COLUMN
#undef LOAD_COLUMNS
#undef EACH_PART
#undef FETCH
#undef FETCH_TURNED
#undef PUT
#undef PUT_TURNED
#undef SCORE
#undef KEPT
#undef TERN_BLOCKS
#define TERN_BLOCKS 1 /* of CUDA: no register is spilled to hold a block more */
#define IS_SMALL (MATRIX_WIDTH <= 64)
#define IS_LARGE (MATRIX_WIDTH > 128)
/* Columns of two matrices, q and dout or k and v. */
#define HOLDS_TWO (MATRIX_PASS == 1 || MATRIX_PASS == 2)
#define COLUMNS  (TERN_WG / MATRIX_LANES * MATRIX_N)
#define PARTS    (MATRIX_WIDTH / 16)
#define WORDS    (MATRIX_WIDTH / 2)
/* How it is cut, by what the vendors' compilers keep in registers (ci/isa). RDNA3's operands take
 * twice those of any other. */
#define IS_KEPT                                                                                    \
    (IS_SMALL ||                                                                                   \
     !(MATRIX_IS_XE || (MATRIX_WAY == MATRIX_RDNA3 && (IS_LARGE || MATRIX_PASS > 0)) ||            \
       (MATRIX_WAY == MATRIX_RDNA4 && IS_LARGE &&                                                  \
        (MATRIX_PASS == 1 || (MATRIX_PASS == 2 && MATRIX_EXTRAS)))) ||                             \
     (MATRIX_IS_XE && MATRIX_PASS == 3 && !IS_LARGE))
#define KEYS_AT_ONCE                                                                               \
    (MATRIX_WAY == MATRIX_RDNA3 || MATRIX_WAY == MATRIX_RDNA4 || MATRIX_IS_XE                      \
         ? (IS_SMALL && !(MATRIX_IS_XE && MATRIX_EXTRAS) ? 32 : 16)                                \
         : (IS_SMALL ? 64 : IS_LARGE && MATRIX_EXTRAS ? 16 : 32))
#define OTHERS_AT_ONCE                                                                             \
    ((MATRIX_WAY == MATRIX_CDNA && !(IS_LARGE && MATRIX_EXTRAS && MATRIX_PASS == 2)) ||            \
             (IS_SMALL && MATRIX_WAY <= MATRIX_MMA)                                                \
         ? 32                                                                                      \
         : 16)
/* dk and dv in one kernel; else one after the other, and weights are made twice. */
#define IS_WHOLE                                                                                   \
    (IS_SMALL && !MATRIX_IS_XE && !(MATRIX_WAY == MATRIX_RDNA3 && MATRIX_EXTRAS))
/* A group has all columns of the result, or a part, and then as many make each score. */
#define CUTS_OF_LARGE                                                                              \
    (MATRIX_WAY == MATRIX_CDNA                 ? 1                                                 \
     : MATRIX_IS_XE                            ? 4                                                 \
     : MATRIX_WAY == MATRIX_RDNA3              ? (MATRIX_PASS == 1 ? 4 : 2)                        \
     : MATRIX_WAY != MATRIX_PLAIN && HOLDS_TWO ? 4                                                 \
                                               : 2)
#define IS_CUT                                                                                     \
    (!IS_SMALL && (MATRIX_IS_XE || (MATRIX_WAY == MATRIX_RDNA3 && MATRIX_PASS == 1)))
#define CUTS      (IS_LARGE ? CUTS_OF_LARGE : IS_CUT ? 2 : 1)
#define OUT_WIDTH (MATRIX_WIDTH / CUTS)
#define OUT_PARTS (OUT_WIDTH / 16)
/* `name` is what a lane has of the B of the group's columns: in registers, or in local memory
 * behind `rows` rows of tiles, as number `number`. */
#if IS_KEPT
#define LOCAL_WORDS(rows, matrices) (((rows) > COLUMNS ? (rows) : COLUMNS) * WORDS)
#define HOLD(name, number, rows)    matrix_b name[PARTS]
#define COLUMN(name, c)             name[c]
#define LOAD_COLUMNS(to, x, rows, depth)                                                           \
    do {                                                                                           \
        u32 held_[MATRIX_HELD(COLUMNS, MATRIX_WIDTH)][4];                                          \
        FETCH(held_, MATRIX_OF(x, first), x, rows, depth, COLUMNS)                                 \
        MATRIX_BARRIER();                                                                          \
        PUT(tiles, held_, MATRIX_OF(x, first), x, rows, depth, COLUMNS)                            \
        MATRIX_BARRIER();                                                                          \
        MATRIX_EACH(c, PARTS) to[c] = matrix_load_b(tiles, mine, c * 8, WORDS);                    \
    } while (0)
#else
#define LOCAL_WORDS(rows, matrices) (((rows) + (matrices)*COLUMNS) * WORDS)
#define HOLD(name, number, rows)    LOCAL u32 *name = tiles + ((rows) + (number)*COLUMNS) * WORDS
#define COLUMN(name, c)             matrix_load_b(name, mine, (c)*8, WORDS)
#define LOAD_COLUMNS(to, x, rows, depth)                                                           \
    do {                                                                                           \
        u32 held_[MATRIX_HELD(COLUMNS, MATRIX_WIDTH)][4];                                          \
        FETCH(held_, MATRIX_OF(x, first), x, rows, depth, COLUMNS)                                 \
        MATRIX_BARRIER();                                                                          \
        PUT(to, held_, MATRIX_OF(x, first), x, rows, depth, COLUMNS)                               \
    } while (0)
#endif
#define EMPTY(sums, n)                                                                             \
    MATRIX_EACH(t, n)                                                                              \
    MATRIX_EACH(e, MATRIX_SUMS) sums[t].v[e] = 0;
/* Where local memory has the columns and there are many the loop may stay one. */
#if IS_LARGE && !IS_KEPT && !MATRIX_ROLLED
#define EACH_PART(c) _Pragma("unroll 1") for (i32 c = 0; c < PARTS; c++)
#else
#define EACH_PART(c) MATRIX_EACH(c, PARTS)
#endif
/* sums[t] = rows of `tile`, by columns, along the width */
#define ROWS_BY_COLUMNS(sums, n, tile, columns)                                                    \
    EMPTY(sums, n)                                                                                 \
    EACH_PART(c)                                                                                   \
    {                                                                                              \
        matrix_b y_;                                                                               \
        MATRIX_STEP();                                                                             \
        y_ = COLUMN(columns, c);                                                                   \
        MATRIX_EACH(t, n)                                                                          \
        {                                                                                          \
            MATRIX_STEP();                                                                         \
            matrix_a x_ = matrix_load_a(tile, t * 16, c * 8, WORDS);                               \
            matrix_multiply(&sums[t], &x_, &y_);                                                   \
        }                                                                                          \
    }
/* sums[c] += `turned`, the width in rows and a depth of n tiles, by what became B */
#define ADD_BY_COLUMNS(sums, n, turned, columns)                                                   \
    MATRIX_EACH(c, OUT_PARTS)                                                                      \
    MATRIX_EACH(t, n)                                                                              \
    {                                                                                              \
        MATRIX_STEP();                                                                             \
        matrix_a x_ = matrix_load_a(turned, c * 16, t * 8, (n)*8);                                 \
        matrix_multiply(&sums[c], &x_, &columns[t]);                                               \
    }

#define LOG2_E 1.44269504f
#define ATTENTION_SIZES                                                                            \
    const i32 queries = (i32)s.block.queries, keys = (i32)s.block.keys;                            \
    const i32 before = (i32)s.block.before, after = (i32)s.block.after;                            \
    const i32 width = (i32)s.width, value_width = (i32)s.value_width;                              \
    const i32 flags = s.block.flags, mine = LID / MATRIX_LANES * MATRIX_N;                         \
    const i32 has_band = (flags & TERN_ATTENTION_BAND) != 0;                                       \
    const f32 in_bits = s.scale * LOG2_E;
/* A group of `n` tiles a stack: columns first to first + COLUMNS of stack (b0, b1), and of a result
 * those from `out` on. There are as many groups as tiles: around so much a loop over tiles would
 * take more registers than there are, as compilers keep there what is the same for all of them. */
#define ATTENTION_STACK(n, TILE)                                                                   \
    const i32 out = (i32)(GROUP_ID % CUTS) * OUT_WIDTH, tile = (i32)(GROUP_ID / CUTS % (n));       \
    const i32 first = (TILE)*COLUMNS;                                                              \
    const idx stack = GROUP_ID / CUTS / (n);                                                       \
    const idx b0 = stack / (idx)s.block.count[1], b1 = stack % (idx)s.block.count[1];              \
    const idx mask_at = b0 * (idx)s.block.stride[0] + b1 * (idx)s.block.stride[1];                 \
    (void)mask_at;
#define MATRIX_OF(x, line)                                                                         \
    (x##s + b0 * (idx)s.x.batch[0] + b1 * (idx)s.x.batch[1] + (line) * (idx)s.x.row)
/* A tile of matrix x: straight, along its width; turned, with its lines as depth. */
#if IS_LARGE /* what is put is fetched then */
#define FETCH(held, from, x, rows, depth, ROWS)
#define FETCH_TURNED(held, from, x, rows, depth, DEPTH)
#define PUT(tile, held, from, x, rows, depth, ROWS)                                                \
    MATRIX_COPY(tile, from, (idx)s.x.row, (idx)s.x.col, rows, depth, ROWS, MATRIX_WIDTH)
#define PUT_TURNED(tile, held, from, x, rows, depth, DEPTH)                                        \
    MATRIX_COPY_TURNED(tile, (from) + out * (idx)s.x.col, (idx)s.x.col, (idx)s.x.row,              \
                       (rows)-out, depth, OUT_WIDTH, DEPTH)
#else
#define FETCH(held, from, x, rows, depth, ROWS)                                                    \
    MATRIX_FETCH(held, from, (idx)s.x.row, (idx)s.x.col, rows, depth, ROWS, MATRIX_WIDTH)
#define FETCH_TURNED(held, from, x, rows, depth, DEPTH)                                            \
    MATRIX_FETCH_TURNED(held, (from) + out * (idx)s.x.col, (idx)s.x.col, (idx)s.x.row,             \
                        (rows)-out, depth, OUT_WIDTH, DEPTH)
#define PUT(tile, held, from, x, rows, depth, ROWS)                                                \
    MATRIX_PUT(tile, held, from, (idx)s.x.row, (idx)s.x.col, rows, depth, ROWS, MATRIX_WIDTH)
#define PUT_TURNED(tile, held, from, x, rows, depth, DEPTH)                                        \
    MATRIX_PUT_TURNED(tile, held, (from) + out * (idx)s.x.col, (idx)s.x.col, (idx)s.x.row,         \
                      (rows)-out, depth, OUT_WIDTH, DEPTH)
#endif
/* Of `count` others a column c sees c - below to c + above with a band, and all without. Those that
 * some column of the group sees are from `from`, a multiple of STEP, to below `to`; those of the
 * lane's own ones from low[p] on, seen[p] of them. */
#define OTHERS(from, to, below, above, count, columns, STEP)                                       \
    i32 from = 0, to = (count), low[MATRIX_PLACES], seen[MATRIX_PLACES];                           \
    if (has_band) {                                                                                \
        from = first > (below) ? (first - (below)) / (STEP) * (STEP) : 0;                          \
        to = first + COLUMNS + (above) < to ? first + COLUMNS + (above) : to;                      \
    }                                                                                              \
    MATRIX_EACH(p, MATRIX_PLACES)                                                                  \
    {                                                                                              \
        const i32 c_ = first + mine + MATRIX_COLUMN(p);                                            \
        i32 high_ = has_band && c_ + (above) < (count) ? c_ + (above) + 1 : (count);               \
        low[p] = has_band && c_ > (below) ? c_ - (below) : 0;                                      \
        seen[p] = high_ > low[p] && c_ < (columns) ? high_ - low[p] : 0;                           \
    }
#define IS_SEEN(other, p) ((u32)((other)-low[p]) < (u32)seen[p])
/* Whether some column of the sub-group does not see all of STEP others. */
#define IS_EDGE(other, to, below, above, STEP)                                                     \
    ((to) - (other) < (STEP) ||                                                                    \
     (has_band && ((other) + (STEP)-1 > first + mine + (above) ||                                  \
                   (other) < first + mine + MATRIX_N - 1 - (below))))
/* With extras it is asked for each score. */
#define IS_SCORED(other, p) (!MATRIX_EXTRAS || IS_SEEN(other, p))

/* Scores of others from `at` on that a column does not see are left out. */
#define HIDE(x, n, at)                                                                             \
    MATRIX_EACH(t, n)                                                                              \
    MATRIX_EACH(e, MATRIX_SUMS)                                                                    \
    x[t].v[e] =                                                                                    \
        IS_SEEN((at) + t * 16 + MATRIX_ROW(e), MATRIX_PLACE(e)) ? x[t].v[e] : MINUS_INF;

#if MATRIX_EXTRAS
/* Of query i and key j: score x by scale, in bits, and the slope that the softcap has there. */
#define SCORE(x, slope, i, j)                                                                      \
    do {                                                                                           \
        const idx place_ = mask_at + (i) * (idx)s.block.stride[2] + (j) * (idx)s.block.stride[3];  \
        x *= s.scale;                                                                              \
        if (s.softcap != 0) {                                                                      \
            f32 bent_ = 1.0f - 2.0f / (1.0f + matrix_exp2(x * (2 * LOG2_E) / s.softcap));          \
            slope = 1.0f - bent_ * bent_;                                                          \
            x = s.softcap * bent_;                                                                 \
        }                                                                                          \
        if ((flags & TERN_ATTENTION_NUMBERS) != 0)                                                 \
            x += LD(numbers, place_);                                                              \
        x *= LOG2_E;                                                                               \
        if ((flags & TERN_ATTENTION_BOOLS) != 0 && bools[place_] == 0)                             \
            x = MINUS_INF;                                                                         \
    } while (0)
INLINE i32 K(attention_keeps)(const GLOBAL u64 *state, u64 number, i32 drop)
{
    tern_words w = tern_philox(state[1] + (number >> 2), state[0]);
    u32 which = (u32)number & 3u;
    u32 word = which == 0 ? w.a : which == 1 ? w.b : which == 2 ? w.c : w.d;
    return (i32)(word >> 8) >= drop;
}
/* Whether dropout keeps the weight of query i and key j; from its number in the whole. */
#define KEPT(i, j)                                                                                 \
    (s.block.drop == 0 ||                                                                          \
     K(attention_keeps)(state, ((u64)stack * (u64)queries + (u64)(i)) * (u64)keys + (u64)(j),      \
                        s.block.drop))
#else
#define SCORE(x, slope, i, j) x *= in_bits
#define KEPT(i, j)            1
#endif

/* Column j of `sums` is a line of x from row_ on, by FACTOR, of which p_ is its place. */
#define STORE_COLUMNS(x, sums, row_, rows, columns, FACTOR)                                        \
    MATRIX_EACH(c, OUT_PARTS)                                                                      \
    {                                                                                              \
        MATRIX_EACH(e, MATRIX_SUMS)                                                                \
        {                                                                                          \
            const i32 p_ = MATRIX_PLACE(e);                                                        \
            (void)p_;                                                                              \
            sums[c].v[e] *= (FACTOR);                                                              \
        }                                                                                          \
        matrix_b two_ = matrix_as_b(&sums[c]);                                                     \
        MATRIX_EACH(e, MATRIX_B_WORDS)                                                             \
        {                                                                                          \
            const i32 l_ = out + c * 16 + MATRIX_WORD_ROW(e);                                      \
            const i32 i_ = (row_) + mine + MATRIX_COLUMN(MATRIX_PLACE(2 * (e)));                   \
            GLOBAL STO *to_ = MATRIX_OF(x, i_) + l_ * (idx)s.x.col;                                \
            if (MATRIX_WORD_IS_OWN(e) && i_ < (rows)) {                                            \
                if (MATRIX_ODD == 0 && l_ < (columns))                                             \
                    *(GLOBAL u32 *)to_ = two_.v[e];                                                \
                if (MATRIX_ODD != 0 && l_ < (columns))                                             \
                    to_[0] = (u16)two_.v[e];                                                       \
                if (MATRIX_ODD != 0 && l_ + 1 < (columns))                                         \
                    to_[(idx)s.x.col] = (u16)(two_.v[e] >> 16);                                    \
            }                                                                                      \
        }                                                                                          \
    }
