/* product_unit.h -- one unit of a matrix product, and the kernel that computes all units. */

#if IS_HALF
/* Computes C = alpha sums + beta C + bias for rows x n numbers. bias has a number for each column,
 * or is NULL. */
static __attribute__((noinline)) void K(narrow)(const tern_host_product *g, const REAL *sums,
                                                idx sums_row, STO *c, idx rows, idx n,
                                                const STO *bias)
{
    const REAL alpha = (REAL)g->alpha, beta = (REAL)g->beta;
    for (idx i = 0; i < rows; i++, sums += sums_row, c += g->c.row) {
        REAL row[WIDE_COLUMNS];
        SIMD for (idx j = 0; j < n; j++) row[j] = alpha * sums[j];
        if (bias)
            SIMD for (idx j = 0; j < n; j++) row[j] += LD(bias, j);
        if (beta != 0)
            SIMD for (idx j = 0; j < n; j++) row[j] += beta * LD(c, j);
        SIMD for (idx j = 0; j < n; j++) ST(c, j, row[j]);
    }
}

#include "product_skinny.h"

/* Widens rows x depth numbers of A; the rows of `to` are WIDE_DEPTH apart. */
static void K(widen)(REAL *to, const STO *a, idx row, idx col, idx rows, idx depth)
{
    for (idx i = 0; i < rows; i++, to += WIDE_DEPTH, a += row) {
        if (col == 1)
            SIMD for (idx p = 0; p < depth; p++) to[p] = LD(a, p);
        else
            for (idx p = 0; p < depth; p++)
                to[p] = LD(a, p * col);
    }
}

/* Computes rows i0..i1 and columns j0..j1 of one product: both factors are widened in parts that
 * stay in the caches, and the sums are narrowed once. */
static void K(block)(const tern_host_product *g, char *panels, const STO *a, const STO *b, STO *c,
                     idx i0, idx i1, idx j0, idx j1)
{
    REAL *const panel = (REAL *)(void *)panels, *const wide = panel + WIDE_DEPTH * 2 * LANE;
    REAL *const sums = wide + TERN_PRODUCT_ROWS * WIDE_DEPTH;
    _Static_assert((WIDE_DEPTH * 2 * LANE + TERN_PRODUCT_ROWS * (WIDE_DEPTH + WIDE_COLUMNS)) *
                           sizeof(REAL) <=
                       TERN_PRODUCT_PANELS,
                   "they lie in the part's panels");
    const STO *end = b + ((idx)g->k - 1) * g->b.row + (idx)g->n, *bias = g->bias;
    for (idx j = j0; j < j1; j += WIDE_COLUMNS) {
        idx n = tern_smaller(j1 - j, WIDE_COLUMNS);
        for (idx p0 = 0; p0 < (idx)g->k; p0 += WIDE_DEPTH) {
            idx depth = tern_smaller((idx)g->k - p0, WIDE_DEPTH);
            K(widen)
            (wide, a + i0 * g->a.row + p0 * g->a.col, (idx)g->a.row, (idx)g->a.col, i1 - i0, depth);
            for (idx s = 0; s < n; s += 2 * LANE) {
                idx columns = tern_smaller(n - s, 2 * LANE),
                    width = columns > LANE ? 2 * LANE : LANE;
                FN(finish) f = {1, p0 ? 1 : 0, NULL, width};
                K(pack)
                (panel, b + p0 * g->b.row + (j + s) * g->b.col, (idx)g->b.row, (idx)g->b.col, depth,
                 columns, width, end);
                FN(strips)
                (i1 - i0, depth, wide, WIDE_DEPTH, 1, panel, width, 0, sums + s, WIDE_COLUMNS, &f);
            }
        }
        K(narrow)
        (g, sums, WIDE_COLUMNS, c + i0 * g->c.row + j, i1 - i0, n, bias ? bias + j : NULL);
    }
}
#else
/* Computes rows i0..i1 and columns j0..j1 of one product. A block of B is packed for all rows, or
 * read in place if its rows are contiguous, and few products use it or its rows do not share cache
 * sets. */
static void K(block)(const tern_host_product *g, char *panels, const STO *a, const STO *b, STO *c,
                     idx i0, idx i1, idx j0, idx j1)
{
    enum { WIDTH = 2 * VECTOR / sizeof(REAL), SCRATCH = TERN_PRODUCT_PANELS / sizeof(REAL) };
    REAL *const scratch = (REAL *)(void *)panels;
    const idx row = (idx)g->b.row, col = (idx)g->b.col, rows = i1 - i0;
    const STO *end = b + ((idx)g->k - 1) * row + (idx)g->n, *bias = g->bias;
    for (idx p0 = 0; p0 < (idx)g->k; p0 += DEPTH) {
        idx depth = tern_smaller((idx)g->k - p0, DEPTH), most = SCRATCH / (depth * WIDTH) * WIDTH;
        for (idx j = j0, n; j < j1; j += n) {
            const STO *at = b + p0 * row + j * col;
            idx step = row, panel = WIDTH;
            n = tern_smaller(j1 - j, most);
            if (col == 1 && n >= WIDTH && (rows <= 2 * ROWS || row % 128 != 0)) {
                n = n / WIDTH * WIDTH;
            } else {
                panel = depth * (step = n > LANE ? WIDTH : LANE);
                for (idx s = 0; s < n; s += WIDTH)
                    K(pack)
                (scratch + s * depth, at + s * col, row, col, depth, tern_smaller(n - s, WIDTH),
                 step, end);
                at = scratch;
            }
            K(finish)
            f = {(REAL)g->alpha, p0 ? 1 : (REAL)g->beta, p0 || !bias ? NULL : bias + j, n};
            K(strips)
            (rows, depth, a + i0 * (idx)g->a.row + p0 * (idx)g->a.col, (idx)g->a.row, (idx)g->a.col,
             at, step, panel, c + i0 * (idx)g->c.row + j, (idx)g->c.row, &f);
        }
    }
}
#endif

/* Computes elements first..last of a matrix times a vector, alpha M x + beta y + bias; a step is
 * the distance between elements. */
static void K(vector_unit)(const tern_host_product *g, const STO *m, idx row, idx col, K(strided) x,
                           STO *y, idx y_step, idx bias_step, idx first, idx last)
{
    const STO *bias = g->bias;
#if IS_HALF
    REAL sums[TERN_PRODUCT_COLUMNS];
    idx n = last - first;
    K(matrix_vector)
    (m + first * row, row, col, (idx)g->k, x, sums, 1, (FN(strided)){0}, 1, 0, 0, n);
    for (idx i = 0; i < n; i++) {
        idx at = (first + i) * y_step;
        REAL v = (REAL)g->alpha * sums[i] + (bias ? LD(bias, (first + i) * bias_step) : 0);
        ST(y, at, g->beta == 0 ? v : v + (REAL)g->beta * LD(y, at));
    }
#else
    K(matrix_vector)
    (m, row, col, (idx)g->k, x, y, y_step, (K(strided)){bias, bias_step}, (REAL)g->alpha,
     (REAL)g->beta, first, last);
#endif
}

/* Computes rows i0..i1 and columns j0..j1 by the form of the product. */
static void K(unit)(const tern_host_product *g, char *panels, const STO *a, const STO *b, STO *c,
                    idx i0, idx i1, idx j0, idx j1)
{
    K(strided) row = {a, (idx)g->a.col}, column = {b, (idx)g->b.row};
    if (g->n == 1 && (g->a.col == 1 || g->a.row == 1))
        K(vector_unit)(g, a, (idx)g->a.row, (idx)g->a.col, column, c, (idx)g->c.row, 0, i0, i1);
    else if (g->m == 1 && (g->b.col == 1 || g->b.row == 1))
        K(vector_unit)(g, b, (idx)g->b.col, (idx)g->b.row, row, c, 1, 1, j0, j1);
#if IS_HALF
    else if (tern_product_is_skinny(g))
        K(skinny)(g, a, b, c, j0, j1);
#endif
    else
        K(block)(g, panels, a, b, c, i0, i1, j0, j1);
}

KERNEL1(K(product), (IN, tern_host_product, g))
{
    const idx down = (idx)g->down, across = (idx)g->across;
    GROUPS (u, g->count[0] * g->count[1] * down * across) {
        idx j = u % across, rest = u / across, i = rest % down, batch = rest / down;
        idx b0 = batch / (idx)g->count[1], b1 = batch % (idx)g->count[1];
        K(unit)
        (g, g->panels + (idx)tern_g.part * TERN_PRODUCT_PANELS,
         (const STO *)g->a.data + b0 * g->a.batch[0] + b1 * g->a.batch[1],
         (const STO *)g->b.data + b0 * g->b.batch[0] + b1 * g->b.batch[1],
         (STO *)(uintptr_t)g->c.data + b0 * g->c.batch[0] + b1 * g->c.batch[1],
         tern_product_cut((idx)g->m, TERN_PRODUCT_ROW, i, down),
         tern_product_cut((idx)g->m, TERN_PRODUCT_ROW, i + 1, down),
         tern_product_cut((idx)g->n, TERN_PRODUCT_COLUMN, j, across),
         tern_product_cut((idx)g->n, TERN_PRODUCT_COLUMN, j + 1, across));
    }
}
