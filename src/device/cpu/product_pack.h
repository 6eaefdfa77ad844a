/* product_pack.h -- packs panels of B in the type that is computed in. A panel has `width` numbers
 * a row, zeros after its columns. */

/* Packs B with contiguous rows, by whole registers as long as they end before `end`. */
INLINE void K(pack_rows)(REAL *panel, const STO *b, idx row, idx depth, idx columns, idx width,
                         const STO *end)
{
    for (idx p = 0; p < depth; p++, panel += width, b += row) {
        if (end - b >= width) {
            for (idx j = 0; j < width; j += LANE)
                *(VEC *)(panel + j) = K(load)(b + j);
        } else {
            for (idx j = 0; j < width; j++)
                panel[j] = j < columns ? LD(b, j) : 0;
        }
    }
}

#if IS_HALF
/* Packs B with contiguous columns: some columns are widened, and then transposed. */
INLINE void K(pack_columns)(REAL *panel, const STO *b, idx col, idx depth, idx columns, idx width)
{
    REAL wide[QUADS * DEPTH];
    for (idx j = 0; j < width; j += QUADS) {
        idx n = tern_smaller(QUADS, columns > j ? columns - j : 0);
        for (idx q = 0; q < n; q++)
            SIMD for (idx p = 0; p < depth; p++) wide[q * DEPTH + p] = LD(b, (j + q) * col + p);
        FN(turn)(panel + j, wide, DEPTH, depth, n, QUADS, width);
    }
}
#else
typedef REAL K(quad) __attribute__((vector_size(16), aligned(sizeof(REAL)), may_alias));

/* Transposes a square of 16-byte registers: panel[p][q] = b[q][p], and 0 from row n of b on. */
INLINE void K(transpose_square)(REAL *panel, const REAL *b, idx col, idx n, idx width)
{
    K(quad) in[QUADS], out[QUADS] = {{0}};
    UNROLL
    for (int q = 0; q < QUADS; q++)
        in[q] = q < n ? *(const K(quad) *)(b + q * col) : out[0];
    UNROLL
    for (int q = 0; q < QUADS; q++)
        UNROLL
    for (int s = 0; s < QUADS; s++)
        out[q][s] = in[s][q];
    UNROLL
    for (int q = 0; q < QUADS; q++)
        *(K(quad) *)(panel + q * width) = out[q];
}

/* Sets panel[p][j] = b[j][p], and 0 from `columns` to `to`, by squares. */
static __attribute__((noinline)) void K(turn)(REAL *panel, const REAL *b, idx col, idx depth,
                                              idx columns, idx to, idx width)
{
    idx deep = depth / QUADS * QUADS, squares = to / QUADS * QUADS;
    for (idx j = 0; j < squares; j += QUADS) {
        if (j + QUADS <= columns)
            for (idx p = 0; p < deep; p += QUADS)
                K(transpose_square)(panel + p * width + j, b + j * col + p, col, QUADS, width);
        else
            for (idx p = 0; p < deep; p += QUADS)
                K(transpose_square)
        (panel + p * width + j, b + j * col + p, col, columns - j, width);
        for (idx p = deep; p < depth; p++)
            for (int q = 0; q < QUADS; q++)
                panel[p * width + j + q] = j + q < columns ? b[(j + q) * col + p] : 0;
    }
    for (idx p = 0; p < depth; p++)
        for (idx j = squares; j < to; j++)
            panel[p * width + j] = j < columns ? b[j * col + p] : 0;
}

/* Packs B with contiguous columns. */
INLINE void K(pack_columns)(REAL *panel, const STO *b, idx col, idx depth, idx columns, idx width)
{
    K(turn)(panel, b, col, depth, columns, width, width);
}
#endif

INLINE void K(pack_any)(REAL *panel, const STO *b, idx row, idx col, idx depth, idx columns,
                        idx width)
{
    for (idx p = 0; p < depth; p++)
        for (idx j = 0; j < width; j++)
            panel[p * width + j] = j < columns ? LD(b, p * row + j * col) : 0;
}

/* Packs depth x columns numbers of B, from b on. B ends at `end`. */
INLINE void K(pack)(REAL *panel, const STO *b, idx row, idx col, idx depth, idx columns, idx width,
                    const STO *end)
{
    if (col == 1)
        K(pack_rows)(panel, b, row, depth, columns, width, end);
    else if (row == 1)
        K(pack_columns)(panel, b, col, depth, columns, width);
    else
        K(pack_any)(panel, b, row, col, depth, columns, width);
}
