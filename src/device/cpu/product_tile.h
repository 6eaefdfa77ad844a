/* product_tile.h -- matrix products for REAL in tiles of registers; the kernel that uses all of
 * this.
 *
 * A is read where it lies, one number at a time for a whole row of the tile. B is read in panels
 * two registers wide: where it lies if it has dense rows and the panel is full, else from a packed
 * copy. */

/* What happens to a tile when its sums are complete; columns of it are real. */
typedef struct NAME(finish_) {
    REAL alpha, beta;
    const REAL *bias;
    idx columns;
} NAME(finish_);

INLINE void NAME(store_)(REAL *c, VEC sum, idx from, const NAME(finish_) * f)
{
    idx n = f->columns - from;
    VEC v = sum * f->alpha;
    if (n >= LANE) {
        if (f->bias)
            v += NAME(load_)(f->bias + from);
        if (f->beta != 0)
            v += NAME(load_)(c + from) * f->beta;
        *(VEC *)(c + from) = v;
    } else {
        if (f->bias)
            v += NAME(load_some_)(f->bias + from, n);
        if (f->beta != 0)
            v += NAME(load_some_)(c + from, n) * f->beta;
        NAME(store_some_)(c + from, v, n);
    }
}

/* All of a tile: one function for tiles of every shape, because its cases are many. */
static __attribute__((noinline)) void NAME(store_tile_)(REAL *c, idx c_row, VEC (*sums)[2],
                                                        const NAME(finish_) * f, int rows, int wide)
{
    for (int r = 0; r < rows; r++, c += c_row) {
        NAME(store_)(c, sums[r][0], 0, f);
        if (wide > 1)
            NAME(store_)(c, sums[r][1], LANE, f);
    }
}

INLINE void NAME(tile_)(idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row,
                        REAL *c, idx c_row, const NAME(finish_) * f, const int rows, const int wide)
{
    VEC acc[ROWS][2] = {{{0}}};
    for (idx p = 0; p < k; p++, a += a_col, b += b_row) {
        VEC b0 = NAME(load_)(b), b1 = wide > 1 ? NAME(load_)(b + LANE) : b0;
        UNROLL
        for (int r = 0; r < rows; r++) {
            REAL x = a[r * a_row];
            acc[r][0] += b0 * x;
            if (wide > 1)
                acc[r][1] += b1 * x;
        }
    }
    VEC sums[ROWS][2]; /* so that acc has no address and stays in registers */
    UNROLL
    for (int r = 0; r < rows; r++) {
        sums[r][0] = acc[r][0];
        sums[r][1] = acc[r][1];
    }
    NAME(store_tile_)(c, c_row, sums, f, rows, wide);
}

INLINE void NAME(strip_)(idx rows, idx k, const REAL *a, idx a_row, idx a_col, const REAL *b,
                         idx b_row, REAL *c, idx c_row, const NAME(finish_) * f, const int wide)
{
    idx i = 0;
    for (; i + ROWS <= rows; i += ROWS)
        NAME(tile_)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, ROWS, wide);
    if (ROWS > 4 && i + 4 <= rows) {
        NAME(tile_)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 4, wide);
        i += 4;
    }
    if (i + 2 <= rows) {
        NAME(tile_)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 2, wide);
        i += 2;
    }
    if (i < rows)
        NAME(tile_)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 1, wide);
}

/* ---- packing ----------------------------------------------------------------------------- */

/* Rows that lie dense: whole registers as long as they end before `end`. */
INLINE void NAME(pack_rows_)(REAL *panel, const REAL *b, idx row, idx depth, idx columns, idx width,
                             const REAL *end)
{
    for (idx p = 0; p < depth; p++, panel += width, b += row) {
        if (end - b >= width) {
            for (idx j = 0; j < width; j += LANE)
                *(VEC *)(panel + j) = NAME(load_)(b + j);
        } else {
            for (idx j = 0; j < width; j++)
                panel[j] = j < columns ? b[j] : 0;
        }
    }
}

typedef REAL NAME(quad_) __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));

/* Columns that lie dense: squares of 16-byte registers are turned. */
INLINE void NAME(pack_columns_)(REAL *panel, const REAL *b, idx col, idx depth, idx columns,
                                idx width)
{
    idx full = columns / QUADS * QUADS, deep = depth / QUADS * QUADS;
    for (idx j = 0; j < full; j += QUADS) {
        for (idx p = 0; p < deep; p += QUADS) {
            NAME(quad_) in[QUADS], out[QUADS] = {{0}};
            for (int q = 0; q < QUADS; q++)
                in[q] = *(const NAME(quad_) *)(b + (j + q) * col + p);
            for (int q = 0; q < QUADS; q++)
                for (int s = 0; s < QUADS; s++)
                    out[q][s] = in[s][q];
            for (int q = 0; q < QUADS; q++)
                *(NAME(quad_) *)(panel + (p + q) * width + j) = out[q];
        }
        for (idx p = deep; p < depth; p++)
            for (int q = 0; q < QUADS; q++)
                panel[p * width + j + q] = b[(j + q) * col + p];
    }
    for (idx p = 0; p < depth; p++)
        for (idx j = full; j < width; j++)
            panel[p * width + j] = j < columns ? b[j * col + p] : 0;
}

INLINE void NAME(pack_any_)(REAL *panel, const REAL *b, idx row, idx col, idx depth, idx columns,
                            idx width)
{
    for (idx p = 0; p < depth; p++)
        for (idx j = 0; j < width; j++)
            panel[p * width + j] = j < columns ? b[p * row + j * col] : 0;
}

/* ---- one unit of work -------------------------------------------------------------------- */

/* Rows i0..i1 and columns j0..j1 of one product. */
static void NAME(block_)(const tern_host_product *g, const REAL *a, const REAL *b, REAL *c, idx i0,
                         idx i1, idx j0, idx j1)
{
    REAL panel[DEPTH * 2 * LANE] __attribute__((aligned(64)));
    idx row = (idx)g->b.row, col = (idx)g->b.col;
    const REAL *end = b + ((idx)g->k - 1) * row + (idx)g->n, *bias = g->bias;
    for (idx p0 = 0; p0 < (idx)g->k; p0 += DEPTH) {
        idx depth = (idx)g->k - p0 < DEPTH ? (idx)g->k - p0 : DEPTH;
        for (idx j = j0; j < j1; j += 2 * LANE) {
            idx columns = j1 - j < 2 * LANE ? j1 - j : 2 * LANE;
            idx width = columns > LANE ? 2 * LANE : LANE, step = row;
            const REAL *from = b + p0 * row + j * col, *at = from;
            if (col != 1 || columns != width) {
                if (col == 1)
                    NAME(pack_rows_)(panel, from, row, depth, columns, width, end);
                else if (row == 1)
                    NAME(pack_columns_)(panel, from, col, depth, columns, width);
                else
                    NAME(pack_any_)(panel, from, row, col, depth, columns, width);
                at = panel;
                step = width;
            }
            NAME(finish_)
            f = {(REAL)g->alpha, p0 ? 1 : (REAL)g->beta, p0 || !bias ? NULL : bias + j, columns};
            const REAL *ai = a + i0 * (idx)g->a.row + p0 * (idx)g->a.col;
            REAL *ci = c + i0 * (idx)g->c.row + j;
            if (width > LANE)
                NAME(strip_)
            (i1 - i0, depth, ai, (idx)g->a.row, (idx)g->a.col, at, step, ci, (idx)g->c.row, &f, 2);
            else NAME(strip_)(i1 - i0, depth, ai, (idx)g->a.row, (idx)g->a.col, at, step, ci,
                              (idx)g->c.row, &f, 1);
        }
    }
}

static void NAME(unit_)(const tern_host_product *g, const REAL *a, const REAL *b, REAL *c, idx i0,
                        idx i1, idx j0, idx j1)
{
    const REAL *bias = g->bias;
    idx k = (idx)g->k;
    NAME(strided_) row = {a, (idx)g->a.col}, column = {b, (idx)g->b.row};
    if (g->n == 1 && (g->a.col == 1 || g->a.row == 1))
        NAME(matrix_vector_)
    (a, (idx)g->a.row, (idx)g->a.col, k, column, c, (idx)g->c.row, (NAME(strided_)){bias, 0},
     (REAL)g->alpha, (REAL)g->beta, i0, i1);
    else if (g->m == 1 && (g->b.col == 1 || g->b.row == 1))
        NAME(matrix_vector_)(b, (idx)g->b.col, (idx)g->b.row, k, row, c, 1,
                             (NAME(strided_)){bias, 1}, (REAL)g->alpha, (REAL)g->beta, j0, j1);
    else NAME(block_)(g, a, b, c, i0, i1, j0, j1);
}

KERNEL1(NAME(product_), (IN, tern_host_product, g))
{
    idx down = ((idx)g->m + TERN_PRODUCT_ROWS - 1) / TERN_PRODUCT_ROWS;
    idx across = ((idx)g->n + TERN_PRODUCT_COLUMNS - 1) / TERN_PRODUCT_COLUMNS;
    GROUPS (u, g->count[0] * g->count[1] * down * across) {
        idx j = u % across * TERN_PRODUCT_COLUMNS, rest = u / across;
        idx i = rest % down * TERN_PRODUCT_ROWS, batch = rest / down;
        idx b0 = batch / (idx)g->count[1], b1 = batch % (idx)g->count[1];
        NAME(unit_)
        (g, (const REAL *)g->a.data + b0 * g->a.batch[0] + b1 * g->a.batch[1],
         (const REAL *)g->b.data + b0 * g->b.batch[0] + b1 * g->b.batch[1],
         (REAL *)(uintptr_t)g->c.data + b0 * g->c.batch[0] + b1 * g->c.batch[1], i,
         tern_smaller(i + TERN_PRODUCT_ROWS, (idx)g->m), j,
         tern_smaller(j + TERN_PRODUCT_COLUMNS, (idx)g->n));
    }
}
#undef VEC
#undef LANE
#undef UNROLL
