/* product_skinny.h -- a few rows of half precision times a matrix with contiguous columns, such as
 * x W': dot products of both in place, so that W is neither packed nor transposed. Registers of W
 * are widened once for all rows. */

/* Adds the lanes of acc[r * columns + c] to sums[r * columns + c], and the products of the numbers
 * after the last whole register. */
static __attribute__((noinline)) void K(skinny_sums)(REAL *sums, VEC *acc, const REAL *wide,
                                                     const STO *const *b, idx p, idx depth,
                                                     int columns)
{
    _Pragma("GCC unroll 1") for (int r = 0; r < 8; r++) sums[r] += FN(sum)(acc[r]);
    for (; p < depth; p++)
        _Pragma("GCC unroll 1") for (int q = 0; q < 8; q++) sums[q] +=
            wide[q / columns * SKINNY_ROW + p] * LD(b[q % columns], p);
}

/* Adds rows x columns = 8 dot products to sums[r * columns + c]. The rows of A are widened and
 * SKINNY_ROW apart. The next part of B is `ahead` elements away, too far for processors to prefetch
 * it by themselves. */
INLINE void K(skinny_dots)(const REAL *wide, const STO *const *b, idx depth, idx ahead, REAL *sums,
                           const int rows, const int columns)
{
    VEC acc[8] = {{0}};
    idx p = 0;
    for (; p + LANE <= depth; p += LANE) {
        UNROLL
        for (int c = 0; c < columns; c++) {
            VEC w = K(load)(b[c] + p);
            __builtin_prefetch(b[c] + ahead + p);
            UNROLL
            for (int r = 0; r < rows; r++)
                acc[r * columns + c] += FN(load)(wide + r * SKINNY_ROW + p) * w;
        }
    }
    VEC kept[8]; /* a copy, so that acc has no address and stays in registers */
    UNROLL
    for (int r = 0; r < 8; r++)
        kept[r] = acc[r];
    K(skinny_sums)(sums, kept, wide, b, p, depth, columns);
}

/* Computes columns j0..j1 of m <= 8 rows. Rows are padded to 2, 4 or 8 with the first row, columns
 * of the last tile with the last column. */
static void K(skinny)(const tern_host_product *g, const STO *a, const STO *b, STO *c, idx j0,
                      idx j1)
{
    const idx m = (idx)g->m, k = (idx)g->k, rows = m <= 2 ? 2 : m <= 4 ? 4 : 8, columns = 8 / rows;
    REAL wide[8 * SKINNY_ROW] __attribute__((aligned(64)));
    REAL sums[8 * WIDE_COLUMNS] __attribute__((aligned(64)));
    const STO *bias = g->bias;
    for (idx j = j0; j < j1; j += WIDE_COLUMNS) {
        idx n = tern_smaller(j1 - j, WIDE_COLUMNS);
        for (idx i = 0; i < 8 * WIDE_COLUMNS; i += LANE)
            *(VEC *)(sums + i) = (VEC){0};
        for (idx p0 = 0; p0 < k; p0 += SKINNY_DEPTH) {
            idx depth = tern_smaller(k - p0, SKINNY_DEPTH);
            for (idx r = 0; r < rows; r++) {
                const STO *from = a + (r < m ? r : 0) * g->a.row + p0;
                idx p = 0;
                for (; p + LANE <= depth; p += LANE)
                    *(VEC *)(wide + r * SKINNY_ROW + p) = K(load)(from + p);
                _Pragma("GCC unroll 1") for (; p < depth; p++) wide[r * SKINNY_ROW + p] =
                    LD(from, p);
            }
            for (idx s = 0; s < n; s += columns) {
                REAL some[8] = {0};
                const STO *at[4];
                idx ahead = s + 2 * columns <= n ? columns * g->b.col : 0;
                for (idx q = 0; q < columns; q++)
                    at[q] = b + p0 + (j + tern_smaller(s + q, n - 1)) * g->b.col;
                if (rows == 2)
                    K(skinny_dots)(wide, at, depth, ahead, some, 2, 4);
                else if (rows == 4)
                    K(skinny_dots)(wide, at, depth, ahead, some, 4, 2);
                else
                    K(skinny_dots)(wide, at, depth, ahead, some, 8, 1);
                for (idx r = 0; r < m; r++)
                    for (idx q = 0; q < columns && s + q < n; q++)
                        sums[r * WIDE_COLUMNS + s + q] += some[r * columns + q];
            }
        }
        K(narrow)(g, sums, WIDE_COLUMNS, c + j, m, n, bias ? bias + j : NULL);
    }
}
