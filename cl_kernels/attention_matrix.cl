/* attention_matrix.cl -- attention on matrix units: see attention_matrix.h. */
#include "attention_matrix.h"
#undef N
#define N (KEYS_AT_ONCE / 16)

/* out = softmax(scores) v and log sum e^score of each query. Without a key both are 0. */
KERNEL10(K(attention_matrix), (OUT, STO, outs), (OUT, f32, lses), (IN, STO, qs), (IN, STO, ks),
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
    ATTENTION_SIZES
    LOCAL_ARRAY(matrix_four, scratch, LOCAL_WORDS(2 * KEYS_AT_ONCE, 1) / 4);
    LOCAL u32 *tiles = (LOCAL u32 *)scratch;
    LOCAL u32 *tile_k = tiles, *tile_v = tiles + KEYS_AT_ONCE * WORDS;
    const i32 n = (queries + COLUMNS - 1) / COLUMNS;
    {
        ATTENTION_STACK(n, n - 1 - tile) /* those that see most with a causal mask begin */
        OTHERS(from, end, before, after, keys, queries, KEYS_AT_ONCE)
        const GLOBAL STO *k = MATRIX_OF(k, from), *v = MATRIX_OF(v, from);
        u32 k_held[MATRIX_HELD(KEYS_AT_ONCE, MATRIX_WIDTH)][4];
        u32 v_held[2 * MATRIX_PAIRS(OUT_WIDTH, KEYS_AT_ONCE)][4];
        HOLD(columns, 0, 2 * KEYS_AT_ONCE);
        LOAD_COLUMNS(columns, q, queries - first, width);
        matrix_sums sums[OUT_PARTS];
        EMPTY(sums, OUT_PARTS)
        f32 most[MATRIX_PLACES], total[MATRIX_PLACES];
        MATRIX_EACH(p, MATRIX_PLACES) most[p] = MINUS_INF, total[p] = 0;
#define FETCH_BOTH(left)                                                                           \
    FETCH(k_held, k, k, left, width, KEYS_AT_ONCE)                                                 \
    FETCH_TURNED(v_held, v, v, value_width, left, KEYS_AT_ONCE)
        FETCH_BOTH(end - from)
        for (i32 at = from; at < end; at += KEYS_AT_ONCE) {
            matrix_sums x[N];
            matrix_b weights[N];
            const i32 left = end - at;
            MATRIX_BARRIER();
            PUT(tile_k, k_held, k, k, left, width, KEYS_AT_ONCE)
            PUT_TURNED(tile_v, v_held, v, v, value_width, left, KEYS_AT_ONCE)
            MATRIX_BARRIER();
            k += KEYS_AT_ONCE * (idx)s.k.row;
            v += KEYS_AT_ONCE * (idx)s.v.row;
            if (left > KEYS_AT_ONCE) {
                FETCH_BOTH(left - KEYS_AT_ONCE)
            }
            ROWS_BY_COLUMNS(x, N, tile_k, columns)
            if (!MATRIX_EXTRAS && IS_EDGE(at, end, before, after, KEYS_AT_ONCE)) {
                HIDE(x, N, at)
            }
            MATRIX_EACH(t, MATRIX_EXTRAS ? N : 0)
            MATRIX_EACH(e, MATRIX_SUMS)
            {
                const i32 p = MATRIX_PLACE(e), j = at + t * 16 + MATRIX_ROW(e);
                f32 score = x[t].v[e], slope;
                (void)slope;
                if (IS_SEEN(j, p))
                    SCORE(score, slope, first + mine + MATRIX_COLUMN(p), j);
                else
                    score = MINUS_INF;
                x[t].v[e] = score;
            }
            const f32 unit = MATRIX_EXTRAS ? 1.0f : in_bits;
            f32 base[MATRIX_PLACES], shrink[MATRIX_PLACES];
            MATRIX_EACH(p, MATRIX_PLACES)
            {
                f32 high = MINUS_INF;
                MATRIX_EACH(t, N)
                MATRIX_EACH(e, MATRIX_SUMS)
                if (MATRIX_PLACE(e) == p)
                    high = MATRIX_MOST(high, x[t].v[e]);
                MATRIX_OVER_ROWS(high, MATRIX_MOST)
                high = MATRIX_MOST(high * unit, most[p]);
                base[p] = high == MINUS_INF ? 0.0f : high;
                shrink[p] = matrix_exp2(most[p] - base[p]);
                most[p] = high;
                total[p] *= shrink[p];
            }
            MATRIX_EACH(t, N)
            {
                MATRIX_EACH(e, MATRIX_SUMS)
                {
                    const i32 p = MATRIX_PLACE(e);
                    const f32 w = matrix_exp2(MULTIPLY_ADD(x[t].v[e], unit, -base[p]));
                    total[p] += w;
                    x[t].v[e] = KEPT(first + mine + MATRIX_COLUMN(p), at + t * 16 + MATRIX_ROW(e))
                                    ? w
                                    : 0.0f;
                }
                weights[t] = matrix_as_b(&x[t]);
            }
            MATRIX_EACH(c, OUT_PARTS)
            MATRIX_EACH(e, MATRIX_SUMS) sums[c].v[e] *= shrink[MATRIX_PLACE(e)];
            ADD_BY_COLUMNS(sums, N, tile_v, weights)
        }
#undef FETCH_BOTH
        MATRIX_EACH(p, MATRIX_PLACES)
        {
            const i32 i = first + mine + MATRIX_COLUMN(p);
            MATRIX_OVER_ROWS(total[p], MATRIX_SUM)
            if (MATRIX_ROW(0) == 0 && out == 0 && i < queries)
                lses[stack * queries + i] =
                    total[p] == 0 ? 0.0f : (most[p] + matrix_log2(total[p])) / LOG2_E;
            total[p] = total[p] == 0 ? 0.0f : kept / total[p];
        }
        STORE_COLUMNS(out, sums, first, queries, value_width, total[p_])
    }
}
