/* sort.cl -- a stable merge sort of rows by integer keys, and what is read off sorted rows.
 *
 * sort_keys turns the elements of (outer, n, inner) into rows of keys in the order that is wanted;
 * sort_blocks orders blocks of TERN_BLOCK; each sort_merge joins pairs of sorted runs of `width`
 * into another buffer, an item making TERN_SPAN results from where a binary search says that they
 * start. Keys are i32, or i64 for what does not fit: these kernels exist for the two only. */
#undef TERN_BLOCKS
#define TERN_BLOCKS 2
#include "order.h"
#ifndef TERN_SORT_ONCE
#define TERN_SORT_ONCE
enum { TERN_BLOCK = 16, TERN_SPAN = 32 };
enum { TERN_CHOOSE_NTH = 0, TERN_CHOOSE_MEDIAN = 1, TERN_CHOOSE_NANMEDIAN = 2,
    TERN_CHOOSE_MODE = 3 };
#define MOST_i32 2147483647
#define MOST_i64 9223372036854775807
#endif

/* keys[o][i][k] = the key of xs[o][k][i]; flip -1: the other way round, NaN first. */
KERNEL6(K(sort_keys), (OUT, KEY, keys), (IN, STO, xs), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner), (ARG, i32, flip))
{
    BASE(keys);
    BASE(xs);
    ITEMS(e, outer *n *inner)
    {
        idx r = e / (idx)n, k = e - r * (idx)n, o = r / (idx)inner, i = r - o * (idx)inner;
        KEY key = FN(tern_order)(LD(xs, (o * (idx)n + k) * (idx)inner + i), 0);
        keys[e] = key ^ (KEY)flip;
    }
}

/* How many of the sorted bounds come before each value, or (right) up to and with its equals. A row
 * of n bounds for m values, or one row for all of them (shared). Beside NaN no bound counts as
 * beyond the value, as in PyTorch; ordered: NaN is the largest number. */
KERNEL9(K(sort_search), (OUT, i64, ys), (IN, STO, bounds), (IN, STO, values), (ARG, i64, total),
        (ARG, i64, n), (ARG, i64, m), (ARG, i32, shared), (ARG, i32, right), (ARG, i32, ordered))
{
    BASE(ys);
    BASE(bounds);
    BASE(values);
    ITEMS(e, total)
    {
        idx row = shared != 0 ? 0 : e / (idx)m * (idx)n, low = 0, high = (idx)n;
        const REAL value = LD(values, e);
        const KEY sought = FN(tern_order)(value, 0);
        while (low < high) {
            idx middle = (low + high) / 2;
            const REAL bound = LD(bounds, row + middle);
            i32 beyond = bound > value || (right == 0 && bound == value);
            if (ordered != 0) {
                const KEY key = FN(tern_order)(bound, 0);
                beyond = key > sought || (right == 0 && key == sought);
            }
            if (beyond)
                high = middle;
            else
                low = middle + 1;
        }
        ys[e] = low;
    }
}

#if IS_I32 || IS_I64
KERNEL5(K(sort_blocks), (OUT, STO, keys), (OUT, i64, places), (IN, STO, xs), (ARG, i64, rows),
        (ARG, i64, n))
{
    BASE(keys);
    BASE(places);
    BASE(xs);
    idx blocks = ((idx)n + TERN_BLOCK - 1) / TERN_BLOCK;
    ITEMS(b, rows *blocks)
    {
        idx r = b / blocks, first = (b - r * blocks) * TERN_BLOCK, at = r * (idx)n + first;
        idx count = (idx)n - first < TERN_BLOCK ? (idx)n - first : TERN_BLOCK;
        for (idx j = 0; j < count; j++) {
            STO key = xs[at + j];
            idx to = j;
            while (to > 0 && keys[at + to - 1] > key) {
                keys[at + to] = keys[at + to - 1];
                places[at + to] = places[at + to - 1];
                to--;
            }
            keys[at + to] = key;
            places[at + to] = first + j;
        }
    }
}

KERNEL7(K(sort_merge), (OUT, STO, to_keys), (OUT, i64, to_places), (IN, STO, keys),
        (IN, i64, places), (ARG, i64, rows), (ARG, i64, n), (ARG, i64, width))
{
    BASE(to_keys);
    BASE(to_places);
    BASE(keys);
    BASE(places);
    idx spans = ((idx)n + TERN_SPAN - 1) / TERN_SPAN;
    ITEMS(c, rows *spans)
    {
        idx r = c / spans, from = (c - r * spans) * TERN_SPAN, row = r * (idx)n;
        idx to = from + TERN_SPAN < (idx)n ? from + TERN_SPAN : (idx)n, wide = (idx)width;
        /* the pair of runs that result `from` belongs to: [a, b) and [b, e) */
        idx a = from / (2 * wide) * (2 * wide), b = a + wide < (idx)n ? a + wide : (idx)n;
        idx e = b + wide < (idx)n ? b + wide : (idx)n, before = from - a;
        /* low of the results before are from the first run: the fewest that are not too few */
        idx low = before > e - b ? before - (e - b) : 0, high = before < b - a ? before : b - a;
        while (low < high) {
            idx middle = (low + high) / 2;
            if (keys[row + a + middle] <= keys[row + b + before - middle - 1])
                low = middle + 1;
            else
                high = middle;
        }
        idx i = a + low, j = b + before - low;
        for (idx k = from; k < to; k++) {
            idx take = i < b && (j >= e || keys[row + i] <= keys[row + j]) ? i++ : j++;
            to_keys[row + k] = keys[row + take];
            to_places[row + k] = places[row + take];
        }
    }
}

/* One place of each row: the nth; the median, the first NaN if there is one (floating: the largest
 * key is NaN); the median of the rest; the last of the first longest run of equals. */
KERNEL7(K(sort_choose), (OUT, i64, chosen), (IN, STO, keys), (IN, i64, places), (ARG, i64, rows),
        (ARG, i64, n), (ARG, i64, nth), (ARG, i32, what))
{
    BASE(chosen);
    BASE(keys);
    BASE(places);
    ITEMS(r, rows)
    {
        idx row = r * (idx)n, low = 0, high = (idx)n, at = (idx)nth;
        if (what == TERN_CHOOSE_MODE) {
            idx start = 0, longest = 0;
            for (idx k = 0; k < (idx)n; k++) {
                start = k > 0 && keys[row + k] != keys[row + k - 1] ? k : start;
                at = k - start + 1 > longest ? k : at;
                longest = k - start + 1 > longest ? k - start + 1 : longest;
            }
        } else if (what != TERN_CHOOSE_NTH) {
            while (low < high) {
                idx middle = (low + high) / 2;
                if (keys[row + middle] == TERN_CAT(MOST, STO))
                    high = middle;
                else
                    low = middle + 1;
            }
            at = what == TERN_CHOOSE_NANMEDIAN || low == (idx)n ? (low > 0 ? (low - 1) / 2 : 0)
                : low;
        }
        chosen[r] = places[row + at];
    }
}

/* order: rows of places; ys[o][k][i] = order[o][i][first + k] for the (outer, count, inner) of
 * ys. */
KERNEL7(K(sort_places), (OUT, i64, ys), (IN, i64, order), (ARG, i64, outer), (ARG, i64, n),
        (ARG, i64, inner), (ARG, i64, first), (ARG, i64, count))
{
    BASE(ys);
    BASE(order);
    ITEMS(e, outer *count *inner)
    {
        idx q = e / (idx)inner, i = e - q * (idx)inner, o = q / (idx)count, k = q - o * (idx)count;
        ys[e] = order[(o * (idx)inner + i) * (idx)n + (idx)first + k];
    }
}
#endif
