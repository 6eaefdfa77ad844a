/* product_vector.h -- matrix times vector: y = alpha M x + beta y + bias, with M and x in the type
 * of memory and y as REAL. */

/* A strided vector: element i is at[i * step]; `at` NULL means zeros. */
typedef struct K(strided) {
    const STO *at;
    idx step;
} K(strided);

#if IS_HALF
/* Loads the first n numbers of a row, zeros after them, as load_some of product_tile.h does. */
static __attribute__((noinline)) VEC K(load_some)(const STO *p, idx n)
{
    REAL s[LANE] = {0};
    for (idx i = 0; i < n; i++)
        s[i] = LD(p, i);
    return FN(load)(s);
}
#endif

/* Computes dot products of contiguous rows with x; processors do not prefetch the next rows. */
INLINE void K(dots)(const STO *m, idx row, idx k, const REAL *x, REAL *sums, const int rows)
{
    VEC acc[4];
    idx p = 0;
    UNROLL
    for (int r = 0; r < rows; r++)
        acc[r] = (VEC){0};
    for (; p + LANE <= k; p += LANE) {
        UNROLL
        for (int i = 0; i < rows * (int)(LANE * sizeof(STO)) / 64; i++)
            __builtin_prefetch((const char *)(m + rows * (row + p)) + 64 * i);
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r] += K(load)(m + r * row + p) * FN(load)(x + p);
    }
    if (p < k) {
        const VEC rest = FN(load_some)(x + p, k - p);
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r] += K(load_some)(m + r * row + p, k - p) * rest;
    }
    UNROLL
    for (int r = 0; r < rows; r++)
        sums[r] = FN(sum)(acc[r]);
}

/* Computes the same for any number of rows. */
INLINE void K(many_dots)(const STO *m, idx row, idx k, const REAL *x, REAL *sums, idx rows)
{
    idx i = 0;
    for (; i + 4 <= rows; i += 4)
        K(dots)(m + i * row, row, k, x, sums + i, 4);
    for (; i < rows; i++)
        K(dots)(m + i * row, row, k, x, sums + i, 1);
}

/* Multiplies vectors * LANE rows of a matrix with contiguous columns: sums[i] = sum of m[i + p col]
 * x[p step]. */
INLINE void K(columns)(const STO *m, idx col, idx k, FN(strided) x, REAL *sums, const int vectors)
{
    VEC acc[4] = {{0}};
    for (idx p = 0; p < k; p++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            acc[v] += K(load)(m + p * col + v * LANE) * x.at[p * x.step];
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        *(VEC *)(sums + v * LANE) = acc[v];
}

/* Multiplies the last rows, fewer than LANE: whole registers are read as long as they end inside
 * the matrix. */
INLINE void K(last_columns)(const STO *m, idx col, idx k, FN(strided) x, REAL *sums, idx rows)
{
    idx inside = col > 0 ? k - (LANE - rows + col - 1) / col : 0;
    inside = inside > 0 ? inside : 0;
    K(columns)(m, col, inside, x, sums, 1);
    for (idx p = inside; p < k; p++)
        for (idx i = 0; i < rows; i++)
            sums[i] += LD(m, i + p * col) * x.at[p * x.step];
}

#if !IS_HALF
/* Stores n sums, scaled by alpha, plus beta y and the bias, if there is one. */
static void K(put_all)(REAL *y, idx y_step, const REAL *sums, idx n, REAL alpha, REAL beta,
                       const REAL *bias, idx bias_step)
{
    static const REAL none = 0;
    if (!bias) {
        bias = &none;
        bias_step = 0;
    }
    _Pragma(
        "omp simd if(0)") /* few numbers, any steps: one loop instead of a version for each case */
        for (idx i = 0; i < n; i++)
    {
        REAL v = alpha * sums[i] + bias[i * bias_step];
        y[i * y_step] = beta == 0 ? v : v + beta * y[i * y_step];
    }
}
#endif

/* Computes rows first..last of y = alpha M x + beta y + bias. M has contiguous rows or columns. */
static void K(matrix_vector)(const STO *m, idx row, idx col, idx k, K(strided) x, REAL *y,
                             idx y_step, FN(strided) bias, REAL alpha, REAL beta, idx first,
                             idx last)
{
    REAL copy[ROW_DEPTH], sums[4 * LANE];
    const idx most = col == 1 ? ROW_DEPTH : DEPTH; /* rows are read from end to end */
    for (idx p0 = 0; p0 < k; p0 += most) {
        idx depth = k - p0 < most ? k - p0 : most;
        FN(strided) xp = {copy, 1};
        const STO *mp = m + p0 * col;
#if !IS_HALF
        if (col != 1 || x.step == 1)
            xp = (FN(strided)){x.at + p0 * x.step, x.step};
        else
#endif
            for (idx p = 0; p < depth; p++)
                copy[p] = LD(x.at, (p0 + p) * x.step);
        for (idx i = first, n; i < last; i += n) {
            const STO *mi = mp + i * row;
            n = tern_smaller(last - i, 4 * LANE);
            if (col == 1)
                K(many_dots)(mi, row, depth, xp.at, sums, n);
            else if (n == 4 * LANE)
                K(columns)(mi, col, depth, xp, sums, 4);
            else if (n >= LANE)
                K(columns)(mi, col, depth, xp, sums, (int)((n = LANE) / LANE));
            else
                K(last_columns)(mi, col, depth, xp, sums, n);
            FN(put_all)
            (y + i * y_step, y_step, sums, n, alpha, p0 ? 1 : beta,
             p0 || !bias.at ? NULL : bias.at + i * bias.step, bias.step);
        }
    }
}
