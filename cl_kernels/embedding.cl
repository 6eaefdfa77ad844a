/* embedding.cl -- rows of a table by index, brought together bag by bag. */
#if IS_FLOAT
#ifndef TERN_BAGS_ONCE
#define TERN_BAGS_ONCE
#define BAGS_MEAN 0
#define BAGS_SUM  1
#define BAGS_MAX  2
#endif
/* ys[b] = the mean, sum (weighted, if there are weights) or maximum of the rows table[index[i]], i
 * being from offsets[b] to the next offset or, where offsets has no more, to count. The row
 * `padding` counts for nothing; no row gives 0. Of maxima, picks (bags, width) says from which row:
 * -1 from none. */
KERNEL16(K(embedding_bag), (OUT, STO, ys), (OUT, i64, picks), (IN, STO, table), (IN, i64, index),
         (IN, i64, offsets), (IN, STO, weights), (OUT, i64, fault), (ARG, i64, bags),
         (ARG, i64, width), (ARG, i64, rows), (ARG, i64, count), (ARG, i64, ends),
         (ARG, i64, padding),
         (ARG, i32, mode), (ARG, i32, weighted), (ARG, i32, code))
{
    BASE(ys);
    BASE(picks);
    BASE(table);
    BASE(index);
    BASE(offsets);
    BASE(weights);
    BASE(fault);
    FLAT(b, bags, width)
    {
        i64 from = offsets[b], to = b + 1 < (idx)ends ? offsets[b + 1] : count;
        if (from < 0 || from > count || to > count || (b == 0 && from != 0)) {
            FAULT(fault, code + 1, to > count ? to : from, count);
            from = to;
        }
        INNER(b, k)
        {
            REAL y = 0;
            i64 used = 0, pick = -1;
            for (idx i = (idx)from; i < to; i++) {
                i64 row = index[i];
                if (row < 0 || row >= rows) {
                    FAULT(fault, code, row, rows);
                } else if (row != padding) {
                    REAL x = LD(table, (idx)row * (idx)width + k);
                    if (mode == BAGS_MAX) {
                        pick = used == 0 || x > y ? row : pick;
                        y = used == 0 || x > y ? x : y;
                    } else {
                        y += weighted != 0 ? x * LD(weights, i) : x;
                    }
                    used++;
                }
            }
            if (mode == BAGS_MEAN && used > 0)
                y /= (REAL)used;
            ST(ys, b * (idx)width + k, y);
            if (mode == BAGS_MAX)
                picks[b * (idx)width + k] = pick;
        }
    }
}
#endif
