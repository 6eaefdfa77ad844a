/* attention_matrix_gradient.cl -- the gradients of attention on matrix units: see
 * attention_matrix.h. With ds = p (dp - delta), dp = do v' through dropout, and delta the sum of
 * do out of each query: dq = scale ds k, dk = scale ds' q and dv = p' do. */
#include "attention_matrix.h"
#undef N
#undef TILE
#undef PARAMETERS
#undef IN_BRANCH
#undef BEHIND_BRANCH
#define N    (OTHERS_AT_ONCE / 16)
#define TILE (OTHERS_AT_ONCE * WORDS)
/* What dropout leaves of dp is chosen in a branch. Intel's compiler keeps sums in memory that are
 * read before it, and AMD's spills registers if they are read behind it. */
#if MATRIX_IS_XE
#define IN_BRANCH(dp)     1
#define BEHIND_BRANCH(dp) (dp)
#else
#define IN_BRANCH(dp)     (dp)
#define BEHIND_BRANCH(dp) 1
#endif
#define GRADIENT_BEGIN                                                                             \
    BASE(dqs);                                                                                     \
    BASE(dks);                                                                                     \
    BASE(dvs);                                                                                     \
    BASE(deltas);                                                                                  \
    BASE(qs);                                                                                      \
    BASE(ks);                                                                                      \
    BASE(vs);                                                                                      \
    BASE(outs);                                                                                    \
    BASE(douts);                                                                                   \
    BASE(lses);                                                                                    \
    BASE(numbers);                                                                                 \
    BASE(bools);                                                                                   \
    BASE(state);                                                                                   \
    ATTENTION_SIZES

#if MATRIX_PASS == 1
/* The delta of a query. */
INLINE f32 K(attention_delta)(const GLOBAL STO *out, const GLOBAL STO *dout, idx out_col,
                              idx dout_col, i32 width)
{
    f32 sum = 0;
#if MATRIX_ODD == 0
    for (i32 c = 0; c < width; c += 8) {
        u32 a[4], b[4];
        K(matrix_eight)(a, out + c, width - c);
        K(matrix_eight)(b, dout + c, width - c);
        MATRIX_EACH(e, 4)
        {
            sum = MULTIPLY_ADD(matrix_low(a[e]), matrix_low(b[e]), sum);
            sum = MULTIPLY_ADD(matrix_high(a[e]), matrix_high(b[e]), sum);
        }
    }
#else
    for (i32 c = 0; c < width; c++)
        sum = MULTIPLY_ADD(LD(out, c * out_col), LD(dout, c * dout_col), sum);
#endif
    return sum;
}

KERNEL15(K(attention_matrix_dq), (OUT, STO, dqs), (OUT, STO, dks), (OUT, STO, dvs),
         (OUT, f32, deltas), (IN, STO, qs), (IN, STO, ks), (IN, STO, vs), (IN, STO, outs),
         (IN, STO, douts), (IN, f32, lses), (IN, STO, numbers), (IN, u8, bools), (IN, u64, state),
         (ARG, tern_attention_tiles, s), (ARG, f32, kept))
{
    GRADIENT_BEGIN
    LOCAL_ARRAY(matrix_four, scratch, LOCAL_WORDS(3 * OTHERS_AT_ONCE, 2) / 4);
    LOCAL_ARRAY(f32, own, COLUMNS);
    LOCAL u32 *tiles = (LOCAL u32 *)scratch;
    LOCAL u32 *tile_k = tiles, *tile_kt = tiles + TILE, *tile_v = tiles + 2 * TILE;
    const i32 n = (queries + COLUMNS - 1) / COLUMNS;
    {
        ATTENTION_STACK(n, n - 1 - tile)
        OTHERS(from, end, before, after, keys, queries, OTHERS_AT_ONCE)
        HOLD(columns, 0, 3 * OTHERS_AT_ONCE);
        HOLD(dcolumns, 1, 3 * OTHERS_AT_ONCE);
        MATRIX_BARRIER();
        LANES(i, COLUMNS)
        {
            f32 delta = 0;
            if (first + i < queries) {
                delta = K(attention_delta)(MATRIX_OF(out, first + i), MATRIX_OF(dout, first + i),
                                           (idx)s.out.col, (idx)s.dout.col, value_width);
                deltas[stack * queries + first + i] = delta;
            }
            own[i] = delta;
        }
        LOAD_COLUMNS(columns, q, queries - first, width);
        LOAD_COLUMNS(dcolumns, dout, queries - first, value_width);
        MATRIX_BARRIER();
        f32 base[MATRIX_PLACES], mean[MATRIX_PLACES];
        MATRIX_EACH(p, MATRIX_PLACES)
        {
            const i32 i = mine + MATRIX_COLUMN(p);
            base[p] = first + i < queries ? lses[stack * queries + first + i] * LOG2_E : 0.0f;
            mean[p] = own[i];
        }
        matrix_sums sums[OUT_PARTS];
        EMPTY(sums, OUT_PARTS)
        for (i32 at = from; at < end; at += OTHERS_AT_ONCE) {
            u32 k_held[MATRIX_HELD(OTHERS_AT_ONCE, MATRIX_WIDTH)][4];
            u32 v_held[MATRIX_HELD(OTHERS_AT_ONCE, MATRIX_WIDTH)][4];
            u32 kt_held[2 * MATRIX_PAIRS(OUT_WIDTH, OTHERS_AT_ONCE)][4];
            const i32 left = end - at;
            const GLOBAL STO *k = MATRIX_OF(k, at), *v = MATRIX_OF(v, at);
            FETCH(k_held, k, k, left, width, OTHERS_AT_ONCE)
            FETCH(v_held, v, v, left, value_width, OTHERS_AT_ONCE)
            FETCH_TURNED(kt_held, k, k, width, left, OTHERS_AT_ONCE)
            MATRIX_BARRIER();
            PUT(tile_k, k_held, k, k, left, width, OTHERS_AT_ONCE)
            PUT(tile_v, v_held, v, v, left, value_width, OTHERS_AT_ONCE)
            PUT_TURNED(tile_kt, kt_held, k, k, width, left, OTHERS_AT_ONCE)
            MATRIX_BARRIER();
            matrix_sums x[N], d[N];
            matrix_b slopes[N];
            ROWS_BY_COLUMNS(x, N, tile_k, columns)
            ROWS_BY_COLUMNS(d, N, tile_v, dcolumns)
            if (!MATRIX_EXTRAS && IS_EDGE(at, end, before, after, OTHERS_AT_ONCE)) {
                HIDE(x, N, at)
            }
            MATRIX_EACH(t, N)
            {
                MATRIX_EACH(e, MATRIX_SUMS)
                {
                    const i32 p = MATRIX_PLACE(e), j = at + t * 16 + MATRIX_ROW(e);
                    f32 score = x[t].v[e], slope = 1, dp = IN_BRANCH(d[t].v[e]);
                    if (IS_SCORED(j, p)) {
                        SCORE(score, slope, first + mine + MATRIX_COLUMN(p), j);
                        if (MATRIX_EXTRAS)
                            dp = KEPT(first + mine + MATRIX_COLUMN(p), j) ? dp * kept : 0.0f;
                    } else {
                        score = MINUS_INF;
                    }
                    dp *= BEHIND_BRANCH(d[t].v[e]);
                    x[t].v[e] = matrix_exp2(score - base[p]) * (dp - mean[p]) * slope;
                }
                slopes[t] = matrix_as_b(&x[t]);
            }
            ADD_BY_COLUMNS(sums, N, tile_kt, slopes)
        }
        STORE_COLUMNS(dq, sums, first, queries, width, s.scale)
    }
}
#else
/* Which of the two is made. */
#undef WITH_K
#undef WITH_V
#undef NAME
#define WITH_K (MATRIX_PASS == 2)
#define WITH_V (MATRIX_PASS == 3 || IS_WHOLE)
#if MATRIX_PASS == 2
#define NAME attention_matrix_dk
#else
#define NAME attention_matrix_dv
#endif
#undef NAMED
#define NAMED(n) K(n)

KERNEL15(NAMED(NAME), (OUT, STO, dqs), (OUT, STO, dks), (OUT, STO, dvs), (OUT, f32, deltas),
         (IN, STO, qs), (IN, STO, ks), (IN, STO, vs), (IN, STO, outs), (IN, STO, douts),
         (IN, f32, lses), (IN, STO, numbers), (IN, u8, bools), (IN, u64, state),
         (ARG, tern_attention_tiles, s), (ARG, f32, kept))
{
    GRADIENT_BEGIN
    LOCAL_ARRAY(matrix_four, scratch,
                LOCAL_WORDS((1 + 2 * WITH_K + WITH_V) * OTHERS_AT_ONCE, 1 + WITH_K) / 4);
    LOCAL_ARRAY(f32, bases, OTHERS_AT_ONCE);
    LOCAL_ARRAY(f32, means, OTHERS_AT_ONCE);
    LOCAL u32 *tiles = (LOCAL u32 *)scratch;
    LOCAL u32 *tile_q = tiles, *tile_dt = tiles + TILE, *tile_d = tiles + (1 + WITH_V) * TILE;
    LOCAL u32 *tile_qt = tile_d + TILE;
    const i32 n = (keys + COLUMNS - 1) / COLUMNS;
    {
        ATTENTION_STACK(n, tile)
        OTHERS(from, end, after, before, queries, keys, OTHERS_AT_ONCE)
        HOLD(columns, 0, (1 + 2 * WITH_K + WITH_V) * OTHERS_AT_ONCE);
        LOAD_COLUMNS(columns, k, keys - first, width);
#if MATRIX_PASS == 2
        HOLD(vcolumns, 1, (1 + 2 * WITH_K + WITH_V) * OTHERS_AT_ONCE);
        LOAD_COLUMNS(vcolumns, v, keys - first, value_width);
        matrix_sums ksums[OUT_PARTS];
        EMPTY(ksums, OUT_PARTS)
#endif
        matrix_sums vsums[OUT_PARTS];
        EMPTY(vsums, OUT_PARTS)
        for (i32 at = from; at < end; at += OTHERS_AT_ONCE) {
            u32 held[MATRIX_HELD(OTHERS_AT_ONCE, MATRIX_WIDTH)][4];
            u32 turned[2 * MATRIX_PAIRS(OUT_WIDTH, OTHERS_AT_ONCE)][4];
            const i32 left = end - at;
            const GLOBAL STO *q = MATRIX_OF(q, at), *dout = MATRIX_OF(dout, at);
            const i32 has = LID < OTHERS_AT_ONCE && LID < left;
            const f32 base = has ? lses[stack * queries + at + LID] * LOG2_E : 0.0f;
            FETCH(held, q, q, left, width, OTHERS_AT_ONCE)
            if (WITH_V) {
                FETCH_TURNED(turned, dout, dout, value_width, left, OTHERS_AT_ONCE)
            }
#if MATRIX_PASS == 2
            u32 dheld[MATRIX_HELD(OTHERS_AT_ONCE, MATRIX_WIDTH)][4];
            u32 qturned[2 * MATRIX_PAIRS(OUT_WIDTH, OTHERS_AT_ONCE)][4];
            const f32 mean = has ? deltas[stack * queries + at + LID] : 0.0f;
            FETCH(dheld, dout, dout, left, value_width, OTHERS_AT_ONCE)
            FETCH_TURNED(qturned, q, q, width, left, OTHERS_AT_ONCE)
#endif
            MATRIX_BARRIER();
            PUT(tile_q, held, q, q, left, width, OTHERS_AT_ONCE)
            if (WITH_V) {
                PUT_TURNED(tile_dt, turned, dout, dout, value_width, left, OTHERS_AT_ONCE)
            }
#if MATRIX_PASS == 2
            PUT(tile_d, dheld, dout, dout, left, value_width, OTHERS_AT_ONCE)
            PUT_TURNED(tile_qt, qturned, q, q, width, left, OTHERS_AT_ONCE)
            if (LID < OTHERS_AT_ONCE)
                means[LID] = mean;
#endif
            if (LID < OTHERS_AT_ONCE)
                bases[LID] = base;
            MATRIX_BARRIER();
            matrix_sums x[N];
            matrix_b weights[N];
            ROWS_BY_COLUMNS(x, N, tile_q, columns)
            if (!MATRIX_EXTRAS && IS_EDGE(at, end, after, before, OTHERS_AT_ONCE)) {
                HIDE(x, N, at)
            }
#if MATRIX_PASS == 2
            matrix_sums d[N];
            if (MATRIX_EXTRAS)
                ROWS_BY_COLUMNS(d, N, tile_d, vcolumns)
#endif
            MATRIX_EACH(t, N)
            {
                MATRIX_EACH(e, MATRIX_SUMS)
                {
                    const i32 p = MATRIX_PLACE(e), r = t * 16 + MATRIX_ROW(e), i = at + r;
                    const i32 j = first + mine + MATRIX_COLUMN(p);
                    f32 score = x[t].v[e], slope = 1, keeps = 1;
#if MATRIX_PASS == 2
                    f32 dp = MATRIX_EXTRAS ? IN_BRANCH(d[t].v[e]) : 0;
#endif
                    (void)j;
                    if (IS_SCORED(i, p)) {
                        SCORE(score, slope, i, j);
                        keeps = KEPT(i, j) ? 1.0f : 0.0f;
#if MATRIX_PASS == 2
                        dp = keeps != 0 ? dp * kept : 0;
#endif
                    } else {
                        score = MINUS_INF;
                    }
                    const f32 w = matrix_exp2(score - bases[r]);
#if MATRIX_PASS == 2
                    if (MATRIX_EXTRAS)
                        d[t].v[e] = w * (dp * BEHIND_BRANCH(d[t].v[e]) - means[r]) * slope;
#endif
                    x[t].v[e] = w * keeps;
                }
                if (WITH_V)
                    weights[t] = matrix_as_b(&x[t]);
            }
            if (WITH_V) {
                ADD_BY_COLUMNS(vsums, N, tile_dt, weights)
            }
#if MATRIX_PASS == 2
            if (!MATRIX_EXTRAS) {
                ROWS_BY_COLUMNS(d, N, tile_d, vcolumns)
            }
            MATRIX_EACH(t, N)
            {
                MATRIX_EACH(e, MATRIX_SUMS)
                if (!MATRIX_EXTRAS)
                    d[t].v[e] = x[t].v[e] * (d[t].v[e] - means[t * 16 + MATRIX_ROW(e)]);
                weights[t] = matrix_as_b(&d[t]);
            }
            ADD_BY_COLUMNS(ksums, N, tile_qt, weights)
#endif
        }
#if MATRIX_PASS == 2
        STORE_COLUMNS(dk, ksums, first, keys, width, s.scale)
#endif
        if (WITH_V) {
            STORE_COLUMNS(dv, vsums, first, keys, value_width, kept)
        }
    }
}
#endif
