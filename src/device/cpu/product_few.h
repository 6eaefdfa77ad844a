/* product_few.h -- a few rows of halves times a matrix whose columns are dense, such as x W': dot products of
 * both where they lie, so that W is neither packed nor turned. Registers of W are widened once for all rows. */

/* sums[r] += lanes of acc[r], eight of them: quarters of registers first, then squares of four by four. */
INLINE void K(few_sums)(REAL *sums, VEC (*acc)[8])
{
    typedef REAL quad __attribute__((vector_size(16), aligned(16), may_alias));
    quad q[8];
    UNROLL
    for (int r = 0; r < 8; r++) {
        const quad *part = (const quad *)&(*acc)[r];
        q[r] = part[0];
        UNROLL
        for (int i = 1; i < VECTOR / 16; i++)
            q[r] += part[i];
    }
    for (int r = 0; r < 8; r++)
        sums[r] += (q[r][0] + q[r][2]) + (q[r][1] + q[r][3]);
}

/* sums[i * columns + c] of rows x columns = 8 dot products; those of A are wide, FEW_ROW from row to row.
 * What is next wanted of B lies `ahead`, too far for processors to find it by themselves. */
INLINE void K(few_dots)(const REAL *wide, const STO *const *b, idx depth, idx ahead, REAL *sums,
                        const int rows, const int columns)
{
    VEC acc[8] = {{0}};
    idx p = 0;
    for (; p + LANE <= depth; p += LANE)
        UNROLL
    for (int c = 0; c < columns; c++) {
        VEC w = K(load)(b[c] + p);
        __builtin_prefetch(b[c] + ahead + p);
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r * columns + c] += FN(load)(wide + r * FEW_ROW + p) * w;
    }
    VEC kept[8]; /* so that acc has no address and stays in registers */
    UNROLL
    for (int r = 0; r < 8; r++)
        kept[r] = acc[r];
    K(few_sums)(sums, &kept);
    for (; p < depth; p++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < columns; c++)
                sums[r * columns + c] += wide[r * FEW_ROW + p] * LD(b[c], p);
}

/* Columns j0..j1 of m <= 8 rows: rows are filled up to 2, 4 or 8 by zeros, columns of the last tile by the last
 * one. */
static void K(few_rows)(const tern_host_product *g, const STO *a, const STO *b, STO *c, idx j0,
                        idx j1)
{
    const idx m = (idx)g->m, k = (idx)g->k, rows = m <= 2 ? 2 : m <= 4 ? 4 : 8, columns = 8 / rows;
    REAL wide[8 * FEW_ROW] __attribute__((aligned(64)));
    REAL sums[8 * WIDE_COLUMNS] __attribute__((aligned(64)));
    const STO *bias = g->bias;
    for (idx j = j0; j < j1; j += WIDE_COLUMNS) {
        idx n = tern_smaller(j1 - j, WIDE_COLUMNS);
        for (idx i = 0; i < 8 * WIDE_COLUMNS; i++)
            sums[i] = 0;
        for (idx p0 = 0; p0 < k; p0 += FEW_DEPTH) {
            idx depth = tern_smaller(k - p0, FEW_DEPTH);
            for (idx r = 0; r < rows; r++) {
                const STO *from = a + (r < m ? r : 0) * g->a.row + p0;
                SIMD for (idx p = 0; p < depth; p++) wide[r * FEW_ROW + p] = LD(from, p);
            }
            for (idx s = 0; s < n; s += columns) {
                REAL some[8] = {0};
                const STO *at[4];
                idx ahead = s + 2 * columns <= n ? columns * g->b.col : 0;
                for (idx q = 0; q < columns; q++)
                    at[q] = b + p0 + (j + tern_smaller(s + q, n - 1)) * g->b.col;
                if (rows == 2)
                    K(few_dots)(wide, at, depth, ahead, some, 2, 4);
                else if (rows == 4)
                    K(few_dots)(wide, at, depth, ahead, some, 4, 2);
                else
                    K(few_dots)(wide, at, depth, ahead, some, 8, 1);
                for (idx r = 0; r < m; r++)
                    for (idx q = 0; q < columns && s + q < n; q++)
                        sums[r * WIDE_COLUMNS + s + q] += some[r * columns + q];
            }
        }
        K(narrow)(g, sums, WIDE_COLUMNS, c + j, m, n, bias ? bias + j : NULL);
    }
}
