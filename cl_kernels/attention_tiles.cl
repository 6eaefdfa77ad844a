/* attention_tiles.cl -- attention in one pass, for devices with work-groups: nothing of the size of
 * the scores is written (Dao et al. 2022). A group has TILE_ROWS queries (or keys) and goes through
 * the others TILE_COLS at a time: their scores are a product of tiles in local memory, and each
 * query's maximum and sum run along.
 *
 * A product adds A (TILE_ROWS, TILE_COLS) B (TILE_COLS, TILE_COLS) to sums of which each of
 * TILE_ITEMS items keeps eight in registers, at SUM_ROW and SUM_COL; a lane has LANE_ITEMS of them.
 * Matrices wider than a tile are taken in TILE_COLS columns at a time, up to TERN_ATTENTION_WIDEST.
 * The host has these kernels by name alone. */
#if TERN_HOST && !TERN_STANDIN
#undef KERNEL_
#define KERNEL_ DEVICE_KERNEL_
#endif
#undef TERN_BLOCKS
#define TERN_BLOCKS 1
#if IS_FLOAT && !IS_WIDE
#include "philox.h"
#ifndef UNROLL
#define UNROLL
#endif

#define TILE_ROWS (TERN_WG < 256 ? 32 : 64)
#define TILE_COLS 32
#define TILE_PARTS (TERN_ATTENTION_WIDEST / TILE_COLS)
#define TILE_ITEMS (TILE_ROWS * TILE_COLS / 8)
#define LANE_ITEMS (TILE_ITEMS / TERN_WG)
#define EACH_ITEM(u, t)                                                                            \
    UNROLL for (i32 u = 0, t = LID; u < LANE_ITEMS; u++, t += TERN_WG)
#define EACH_SUM(e)      UNROLL for (i32 e = 0; e < 8; e++)
#define EACH_PART(c, n)  UNROLL for (i32 c = 0; c < TILE_PARTS && c * TILE_COLS < (i32)(n); c++)

/* Halves on tensor cores: a warp has 16 rows and two times 8 columns, tiles are of halves, and B
 * lies by columns. Elsewhere they are of f32. *_LD: from row to row, so that lanes that load
 * together meet no bank twice. */
#undef ON_TENSOR_CORES
#undef TILE
#undef TILE_LD
#undef B_ROW
#undef B_COL
#undef SUM_ROW
#undef SUM_COL
#undef TILE_OF
#undef IN_TILE
#undef PUT
#undef TILE_ARRAY
#if TERN_TENSOR_CORES && IS_HALF
#define ON_TENSOR_CORES  1
#define TILE             STO
#define TILE_LD          40
#define B_ROW            1
#define B_COL            TILE_LD
#define SUM_ROW(t, e)    ((t) / 32 % 4 * 16 + (t) % 32 / 4 + (e) / 2 % 2 * 8)
#define SUM_COL(t, e)    ((t) / 128 * 16 + (e) / 4 * 8 + (t) % 4 * 2 + (e) % 2)
#define TILE_OF(from, i) (from)[i]
#define IN_TILE(from, i) LD(from, i)
#define PUT(to, i, v)    ST(to, i, v)
#define TILE_ARRAY(name, n) /* words, for alignment */                                            \
    LOCAL_ARRAY(u32, name##_words, (n) / 2);                                                       \
    LOCAL TILE *name = (LOCAL TILE *)name##_words;
#else
#define ON_TENSOR_CORES  0
#define TILE             f32
#define TILE_LD          33
#define B_ROW            TILE_LD
#define B_COL            1
#define SUM_ROW(t, e)    ((t) / 16 + TILE_ROWS / 4 * ((e) / 2))
#define SUM_COL(t, e)    ((t) % 16 + 16 * ((e) % 2))
#define TILE_OF(from, i) LD(from, i)
#define IN_TILE(from, i) (from)[i]
#define PUT(to, i, v)    (to)[i] = (v)
#define TILE_ARRAY(name, n) LOCAL_ARRAY(f32, name, n);
#endif
#define ROW_LD 33 /* of f32 */
#define SUMS(name)       f32 name[LANE_ITEMS][8]
/* Two halves that lie beside each other, of which the first is at an even place. */
#define TWO(p) (*(const u32 *)(p))
#define EMPTY(sums)                                                                                \
    EACH_ITEM(u, t)                                                                                \
    EACH_SUM(e) sums[u][e] = 0;

#if ON_TENSOR_CORES
INLINE void K(tile_product)(f32 *sums, i32 t, const LOCAL TILE *a, const LOCAL TILE *b)
{
    a += (t / 32 % 4 * 16 + t % 32 / 4) * TILE_LD + t % 4 * 2;
    b += (t / 128 * 16 + t % 32 / 4) * TILE_LD + t % 4 * 2;
    UNROLL for (i32 k = 0; k < TILE_COLS; k += 16)
    {
        u32 x[4], y[2];
        UNROLL for (i32 r = 0; r < 4; r++) x[r] = TWO(a + r % 2 * 8 * TILE_LD + k + r / 2 * 8);
        UNROLL for (i32 c = 0; c < 2; c++)
        {
            UNROLL for (i32 r = 0; r < 2; r++) y[r] = TWO(b + c * 8 * TILE_LD + k + r * 8);
            TERN_CAT(tern_mma, TERN_T)(sums + 4 * c, x, y);
        }
    }
}
#else
INLINE void K(tile_product)(f32 *sums, i32 t, const LOCAL f32 *a, const LOCAL f32 *b)
{
    a += t / 16 * TILE_LD;
    b += t % 16;
    for (i32 p = 0; p < TILE_COLS; p++) {
        f32 y0 = b[p * TILE_LD], y1 = b[p * TILE_LD + 16];
        UNROLL for (i32 r = 0; r < 4; r++)
        {
            f32 x = a[r * (TILE_ROWS / 4) * TILE_LD + p];
            sums[2 * r] = MULTIPLY_ADD(x, y0, sums[2 * r]);
            sums[2 * r + 1] = MULTIPLY_ADD(x, y1, sums[2 * r + 1]);
        }
    }
}
#endif
#define PRODUCT(sums)                                                                              \
    EACH_ITEM(u, t)                                                                                \
    K(tile_product)(sums[u], t, tile_a, tile_b);

/* Rows `first` and on of a matrix of `rows`, TILE_COLS of its columns from `col` on; 0 outside. */
INLINE void K(tile_load)(LOCAL TILE *to, i32 count, i32 row_step, i32 col_step,
                         const GLOBAL STO *from, i64 row, i64 column, idx first, idx rows, idx col,
                         idx columns)
{
    LANES(q, count * TILE_COLS)
    {
        i32 i = (i32)q / TILE_COLS, j = (i32)q % TILE_COLS;
        TILE x = 0;
        if (first + i < rows && col + j < columns)
            x = TILE_OF(from, (first + i) * (idx)row + (col + j) * (idx)column);
        to[i * row_step + j * col_step] = x;
    }
}
/* Into A; into B, and into B transposed. */
#define LOAD_A(x, first, rows, at, columns)                                                        \
    K(tile_load)(tile_a, TILE_ROWS, TILE_LD, 1, x##s, x##_row, x##_col, first, rows, at, columns);
#define LOAD_B(x, first, rows, at, columns)                                                        \
    K(tile_load)(tile_b, TILE_COLS, B_ROW, B_COL, x##s, x##_row, x##_col, first, rows, at, columns);
#define LOAD_BT(x, first, rows, at, columns)                                                       \
    K(tile_load)(tile_b, TILE_COLS, B_COL, B_ROW, x##s, x##_row, x##_col, first, rows, at, columns);
/* sums = rows of x by rows of y, of which ALSO has each part of the columns in B. */
#define ROWS_BY_ROWS(sums, x, x_first, x_rows, y, y_first, y_rows, columns, ALSO)                  \
    EMPTY(sums)                                                                                    \
    for (idx col = 0; col < (columns); col += TILE_COLS) {                                         \
        BARRIER();                                                                                 \
        LOAD_A(x, x_first, x_rows, col, columns)                                                   \
        LOAD_BT(y, y_first, y_rows, col, columns)                                                  \
        BARRIER();                                                                                 \
        ALSO                                                                                       \
        PRODUCT(sums)                                                                              \
    }                                                                                              \
    BARRIER();
/* wide += A by rows of y, a part of its columns after the other. */
#define ADD_TO(wide, y, y_first, y_rows, columns)                                                  \
    EACH_PART(c, columns)                                                                          \
    {                                                                                              \
        BARRIER();                                                                                 \
        LOAD_B(y, y_first, y_rows, c * TILE_COLS, columns)                                         \
        BARRIER();                                                                                 \
        EACH_ITEM(u, t)                                                                            \
        K(tile_product)(wide[u][c], t, tile_a, tile_b);                                            \
    }

#define TILES_BEGIN                                                                                \
    TILE_ARRAY(tile_a, TILE_ROWS *TILE_LD)                                                  \
    TILE_ARRAY(tile_b, TILE_COLS *TILE_LD)                                                  \
    const idx queries = (idx)s.block.queries, keys = (idx)s.block.keys;                            \
    const idx width = (idx)s.width, value_width = (idx)s.value_width;
/* What group u has: stack (b0, b1), and where its matrices begin. */
#define MOVE_TO(x) x##s += b0 * (idx)s.x.batch[0] + b1 * (idx)s.x.batch[1]
#define STACK(g, tiles)                                                                            \
    idx stack = g / (tiles), first = g % (tiles)*TILE_ROWS;                                        \
    idx b0 = stack / (idx)s.block.count[1], b1 = stack % (idx)s.block.count[1];                    \
    idx mask_at = b0 * (idx)s.block.stride[0] + b1 * (idx)s.block.stride[1];

/* Score x of query i and key j, as it is before the mask; false where it is not there or hidden. */
INLINE i32 K(tile_sees)(const tern_attention_block b, idx i, idx j)
{
    i32 there = i < (idx)b.queries && j < (idx)b.keys;
    i32 band = (b.flags & TERN_ATTENTION_BAND) == 0 ||
               (j >= i - (idx)b.before && j <= i + (idx)b.after);
    return there && band;
}
#define MASKED(x, i, j)                                                                            \
    if (!K(tile_sees)(s.block, i, j))                                                              \
        x = MINUS_INF;                                                                             \
    else {                                                                                         \
        idx place = mask_at + (i) * (idx)s.block.stride[2] + (j) * (idx)s.block.stride[3];         \
        if ((s.block.flags & TERN_ATTENTION_NUMBERS) != 0)                                         \
            x += LD(numbers, place);                                                               \
        if ((s.block.flags & TERN_ATTENTION_BOOLS) != 0 && bools[place] == 0)                      \
            x = MINUS_INF;                                                                         \
    }

/* 1 where dropout keeps the weight of query i and key j, else 0; from its number in the whole. */
INLINE i32 K(tile_keeps)(const GLOBAL u64 *state, u64 number, i32 drop)
{
    tern_words w = tern_philox(state[1] + (number >> 2), state[0]);
    u32 which = (u32)number & 3u;
    u32 word = which == 0 ? w.a : which == 1 ? w.b : which == 2 ? w.c : w.d;
    return (i32)(word >> 8) >= drop ? 1 : 0;
}
#define KEPT(i, j)                                                                                 \
    (s.block.drop == 0 ||                                                                          \
     K(tile_keeps)(state, ((u64)stack * (u64)queries + (u64)(i)) * (u64)keys + (u64)(j),           \
                   s.block.drop) != 0)

/* The first and last of `count` others that rows first..first + TILE_ROWS see: below and above a
 * row. */
#define OTHERS(from, to, below, above, count)                                                      \
    idx from = 0, to = (count);                                                                    \
    if ((s.block.flags & TERN_ATTENTION_BAND) != 0) {                                              \
        idx low = first - (idx)(below), high = first + TILE_ROWS + (idx)(above);                   \
        from = low > 0 ? low / TILE_COLS * TILE_COLS : 0;                                          \
        to = high < to ? high : to;                                                                \
    }

/* Strides of a matrix, and of that of two that a group reads, or writes. */
#define STRIDES(x) const idx x##_row = (idx)s.x.row, x##_col = (idx)s.x.col;
#define ONE_OF(T, name, x, y)                                                                      \
    T *name##s = transposed ? x##s : y##s;                                                         \
    const idx name##_row = (idx)(transposed ? s.x.row : s.y.row);                                  \
    const idx name##_col = (idx)(transposed ? s.x.col : s.y.col);

/* out = softmax(scores) v and log sum e^score of each query. Without a key both are 0. */
KERNEL10(K(attention_tiles), (OUT, STO, outs), (OUT, f32, lses), (IN, STO, qs), (IN, STO, ks),
         (IN, STO, vs), (IN, STO, numbers), (IN, u8, bools), (IN, u64, state),
         (ARG, tern_attention_tiles, s), (ARG, f32, kept))
{
    BASE(outs);
    BASE(lses);
    BASE(qs);
    BASE(ks);
    BASE(vs);
    BASE(numbers);
    BASE(bools);
    BASE(state);
    TILES_BEGIN
    STRIDES(q) STRIDES(k) STRIDES(v)
    LOCAL_ARRAY(f32, most, TILE_ROWS);
    LOCAL_ARRAY(f32, total, TILE_ROWS);
    LOCAL_ARRAY(f32, shrink, TILE_ROWS);
    LOCAL_ARRAY(f32, weights, TILE_ROWS *ROW_LD);
    const GLOBAL STO *q0s = qs, *k0s = ks, *v0s = vs;
    GLOBAL STO *out0s = outs;
    const idx tiles = (queries + TILE_ROWS - 1) / TILE_ROWS;
    GROUPS(g, s.block.count[0] * s.block.count[1] * tiles)
    {
        STACK(g, tiles)
        f32 wide[LANE_ITEMS][TILE_PARTS][8];
        SUMS(x);
        qs = q0s, ks = k0s, vs = v0s, outs = out0s;
        MOVE_TO(q), MOVE_TO(k), MOVE_TO(v), MOVE_TO(out);
        EACH_ITEM(u, t)
        UNROLL for (i32 c = 0; c < TILE_PARTS; c++)
        EACH_SUM(e) wide[u][c][e] = 0;
        BARRIER();
        LANES(i, TILE_ROWS)
        {
            most[i] = MINUS_INF;
            total[i] = 0;
        }
        OTHERS(from, to, s.block.before, s.block.after, keys)
        for (idx other = from; other < to; other += TILE_COLS) {
            ROWS_BY_ROWS(x, q, first, queries, k, other, keys, width, )
            EACH_ITEM(u, t)
            EACH_SUM(e)
            {
                idx i = first + SUM_ROW(t, e), j = other + SUM_COL(t, e);
                f32 score = x[u][e] * s.scale;
                if (s.softcap != 0)
                    score = s.softcap * tanh(score / s.softcap);
                MASKED(score, i, j)
                x[u][e] = score;
                weights[SUM_ROW(t, e) * ROW_LD + SUM_COL(t, e)] = score;
            }
            BARRIER();
            LANES(i, TILE_ROWS)
            {
                f32 m = most[i], before = m;
                for (i32 j = 0; j < TILE_COLS; j++) {
                    f32 v = weights[i * ROW_LD + j];
                    m = m > v ? m : v;
                }
                shrink[i] = m == MINUS_INF ? C(1.0) : exp_below(before - m);
                most[i] = m;
            }
            BARRIER();
            EACH_ITEM(u, t)
            EACH_SUM(e)
            {
                i32 i = SUM_ROW(t, e), j = SUM_COL(t, e);
                f32 p = x[u][e] == MINUS_INF ? C(0.0) : exp_below(x[u][e] - most[i]);
                weights[i * ROW_LD + j] = p;
                PUT(tile_a, i * TILE_LD + j, KEPT(first + i, other + j) ? p : C(0.0));
                UNROLL for (i32 c = 0; c < TILE_PARTS; c++) wide[u][c][e] *= shrink[i];
            }
            BARRIER();
            LANES(i, TILE_ROWS)
            {
                f32 z = total[i] * shrink[i];
                for (i32 j = 0; j < TILE_COLS; j++)
                    z += weights[i * ROW_LD + j];
                total[i] = z;
            }
            ADD_TO(wide, v, other, keys, value_width)
        }
        BARRIER();
        EACH_ITEM(u, t)
        EACH_PART(c, value_width)
        EACH_SUM(e)
        {
            idx i = first + SUM_ROW(t, e), j = c * TILE_COLS + SUM_COL(t, e);
            f32 z = total[SUM_ROW(t, e)];
            if (i < queries && j < value_width)
                ST(outs, i * (idx)s.out.row + j * (idx)s.out.col,
                   z == 0 ? C(0.0) : wide[u][c][e] * kept / z);
        }
        LANES(i, TILE_ROWS)
        {
            if (first + i < queries)
                lses[stack * queries + first + i] =
                    total[i] == 0 ? C(0.0) : most[i] + log(total[i]);
        }
    }
}

/* The weights of a tile of scores x, from what is kept of each query; x becomes the slope of the
 * softcap there. */
#define WEIGHTS(p, x)                                                                              \
    EACH_ITEM(u, t)                                                                                \
    EACH_SUM(e)                                                                                    \
    {                                                                                              \
        idx row = first + SUM_ROW(t, e), place_of = other + SUM_COL(t, e);                         \
        idx i = transposed ? place_of : row, j = transposed ? row : place_of;                      \
        f32 score = x[u][e] * s.scale, slope = C(1.0);                                             \
        if (s.softcap != 0) {                                                                      \
            f32 bent = tanh(score / s.softcap);                                                    \
            slope = C(1.0) - bent * bent;                                                          \
            score = s.softcap * bent;                                                              \
        }                                                                                          \
        MASKED(score, i, j)                                                                        \
        f32 at = lse[transposed ? SUM_COL(t, e) : SUM_ROW(t, e)];                                  \
        p[u][e] = score == MINUS_INF ? C(0.0) : exp_below(score - at);                             \
        x[u][e] = slope;                                                                           \
    }

/* Eight sums for the delta of each query of tile B, which has a part of dout. */
#define ADD_DELTAS                                                                                 \
    LANES(n, transposed ? 8 * TILE_COLS : 0)                                                       \
    {                                                                                              \
        idx i = n / 8;                                                                             \
        f32 sum = both[n];                                                                         \
        for (idx j = n % 8; j < TILE_COLS; j += 8)                                                 \
            if (other + i < queries && col + j < value_width)                                      \
                sum += LD(outs, (other + i) * (idx)s.out.row + (col + j) * (idx)s.out.col) *       \
                       IN_TILE(tile_b, i * B_COL + j * B_ROW);                                     \
        both[n] = sum;                                                                             \
    }

/* With ds = p (dp - delta), dp = do v' through dropout, and delta the sum of do out of each query:
 * dq = scale ds k, dk = scale ds' q and dv = p' do. A group has a tile of queries and goes through
 * the keys that they see, or, turned, a tile of keys and goes through the queries that see it: left
 * and right are the matrices of its own rows and of the others. */
KERNEL14(K(attention_tiles_gradient), (OUT, STO, dqs), (OUT, STO, dks), (OUT, STO, dvs),
         (IN, STO, qs), (IN, STO, ks), (IN, STO, vs), (IN, STO, outs), (IN, STO, douts),
         (IN, f32, lses), (IN, STO, numbers), (IN, u8, bools), (IN, u64, state),
         (ARG, tern_attention_tiles, s), (ARG, f32, kept))
{
    BASE(dqs);
    BASE(dks);
    BASE(dvs);
    BASE(qs);
    BASE(ks);
    BASE(vs);
    BASE(outs);
    BASE(douts);
    BASE(lses);
    BASE(numbers);
    BASE(bools);
    BASE(state);
    TILES_BEGIN
    LOCAL_ARRAY(f32, both, TILE_ROWS *ROW_LD);
    LOCAL_ARRAY(f32, delta, TILE_ROWS);
    LOCAL_ARRAY(f32, lse, TILE_ROWS);
    const GLOBAL STO *q0s = qs, *k0s = ks, *v0s = vs, *out0s = outs, *dout0s = douts;
    GLOBAL STO *dq0s = dqs, *dk0s = dks, *dv0s = dvs;
    const idx query_tiles = (queries + TILE_ROWS - 1) / TILE_ROWS;
    const idx tiles = query_tiles + (keys + TILE_ROWS - 1) / TILE_ROWS;
    GROUPS(g, s.block.count[0] * s.block.count[1] * tiles)
    {
        STACK(g, tiles)
        f32 wide[LANE_ITEMS][TILE_PARTS][8], wide_v[LANE_ITEMS][TILE_PARTS][8];
        SUMS(x);
        SUMS(p);
        const i32 transposed = first >= query_tiles * TILE_ROWS;
        first -= transposed ? query_tiles * TILE_ROWS : 0;
        const idx rows = transposed ? keys : queries, others = transposed ? queries : keys;
        qs = q0s, ks = k0s, vs = v0s, outs = out0s, douts = dout0s, dqs = dq0s, dks = dk0s,
            dvs = dv0s;
        MOVE_TO(q), MOVE_TO(k), MOVE_TO(v), MOVE_TO(out), MOVE_TO(dout), MOVE_TO(dq), MOVE_TO(dk),
            MOVE_TO(dv);
        ONE_OF(const GLOBAL STO, left, k, q)
        ONE_OF(const GLOBAL STO, right, q, k)
        ONE_OF(const GLOBAL STO, dleft, v, dout)
        ONE_OF(const GLOBAL STO, dright, dout, v)
        EACH_ITEM(u, t)
        UNROLL for (i32 c = 0; c < TILE_PARTS; c++)
        EACH_SUM(e) wide[u][c][e] = wide_v[u][c][e] = 0;
        BARRIER();
        LANES(i, transposed ? 0 : TILE_ROWS)
        {
            delta[i] = 0;
            lse[i] = first + i < queries ? lses[stack * queries + first + i] : C(0.0);
        }
        for (idx col = 0; col < (transposed ? 0 : value_width); col += TILE_COLS) {
            BARRIER();
            LANES(n, TILE_ROWS * TILE_COLS)
            {
                idx i = first + n / TILE_COLS, j = col + n % TILE_COLS;
                f32 product = 0;
                if (i < queries && j < value_width)
                    product = LD(outs, i * (idx)s.out.row + j * (idx)s.out.col) *
                           LD(douts, i * (idx)s.dout.row + j * (idx)s.dout.col);
                both[n / TILE_COLS * ROW_LD + n % TILE_COLS] = product;
            }
            BARRIER();
            LANES(i, TILE_ROWS)
            {
                f32 sum = delta[i];
                for (i32 j = 0; j < TILE_COLS; j++)
                    sum += both[i * ROW_LD + j];
                delta[i] = sum;
            }
        }
        OTHERS(from, to, transposed ? s.block.after : s.block.before,
            transposed ? s.block.before : s.block.after, others)
        for (idx other = from; other < to; other += TILE_COLS) {
            BARRIER();
            LANES(i, transposed ? TILE_COLS : 0)
            {
                lse[i] = other + i < queries ? lses[stack * queries + other + i] : C(0.0);
            }
            LANES(n, transposed ? 8 * TILE_COLS : 0)
            {
                both[n] = 0;
            }
            ROWS_BY_ROWS(x, left, first, rows, right, other, others, width, )
            WEIGHTS(p, x)
            EACH_ITEM(u, t)
            EACH_SUM(e)
            {
                i32 keeps = transposed && KEPT(other + SUM_COL(t, e), first + SUM_ROW(t, e));
                PUT(tile_a, SUM_ROW(t, e) * TILE_LD + SUM_COL(t, e),
                    keeps ? p[u][e] * kept : C(0.0));
            }
            ADD_TO(wide_v, dright, other, others, transposed ? value_width : 0)
            SUMS(dp);
            ROWS_BY_ROWS(dp, dleft, first, rows, dright, other, others, value_width, ADD_DELTAS)
            LANES(i, transposed ? TILE_COLS : 0)
            {
                f32 sum = 0;
                for (i32 j = 0; j < 8; j++)
                    sum += both[8 * i + j];
                delta[i] = sum;
            }
            BARRIER();
            EACH_ITEM(u, t)
            EACH_SUM(e)
            {
                i32 i = SUM_ROW(t, e), j = SUM_COL(t, e);
                i32 keeps = KEPT(transposed ? other + j : first + i,
                    transposed ? first + i : other + j);
                f32 d = keeps ? dp[u][e] * kept : C(0.0);
                PUT(tile_a, i * TILE_LD + j, p[u][e] * (d - delta[transposed ? j : i]) * x[u][e]);
            }
            ADD_TO(wide, right, other, others, width)
        }
        ONE_OF(GLOBAL STO, dx, dk, dq)
        EACH_ITEM(u, t)
        EACH_PART(c, width)
        EACH_SUM(e)
        {
            idx i = first + SUM_ROW(t, e), j = c * TILE_COLS + SUM_COL(t, e);
            if (i < rows && j < width)
                ST(dxs, i * dx_row + j * dx_col, wide[u][c][e] * s.scale);
        }
        EACH_ITEM(u, t)
        EACH_PART(c, transposed ? value_width : 0)
        EACH_SUM(e)
        {
            idx i = first + SUM_ROW(t, e), j = c * TILE_COLS + SUM_COL(t, e);
            if (i < keys && j < value_width)
                ST(dvs, i * (idx)s.dv.row + j * (idx)s.dv.col, wide_v[u][c][e]);
        }
    }
}
#endif
