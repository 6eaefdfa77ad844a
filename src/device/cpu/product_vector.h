/* product_vector.h -- matrix times vector: y = alpha M x + beta y + bias, with M and x as they are
 * stored and y as REAL. */

/* A vector as memory holds it: element i is at[i * step]; `at` NULL means zeros. */
typedef struct K(strided) {
    const STO *at;
    idx step;
} K(strided);

/* rows dot products with x, both dense. Processors do not find the next rows by themselves. */
INLINE void K(dots)(const STO *m, idx row, idx k, const REAL *x, REAL *sums, const int rows)
{
    VEC acc[4] = {{0}};
    REAL tail[4] = {0};
    idx p = 0;
    for (; p + LANE <= k; p += LANE) {
        UNROLL
        for (int i = 0; i < rows * (int)(LANE * sizeof(STO)) / 64; i++)
            __builtin_prefetch((const char *)(m + rows * (row + p)) + 64 * i);
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r] += K(load)(m + r * row + p) * FN(load)(x + p);
    }
    for (; p < k; p++) {
        UNROLL
        for (int r = 0; r < rows; r++)
            tail[r] += LD(m, r * row + p) * x[p];
    }
    for (int r = 0; r < rows; r++)
        sums[r] = k < LANE ? tail[r] : tail[r] + FN(sum)(acc[r]);
}

/* vectors * LANE rows of a matrix whose columns are dense:
 * sums[i] = sum of m[i + p col] x[p step]. */
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

/* The last rows, fewer than LANE: whole registers are read as long as they end
 * inside the matrix. */
INLINE void K(last_columns)(const STO *m, idx col, idx k, FN(strided) x, REAL *sums, idx rows)
{
    idx inside = col > 0 ? k - (LANE - rows + col - 1) / col : 0;
    inside = inside > 0 ? inside : 0;
    K(columns)(m, col, inside, x, sums, 1);
    for (idx p = inside; p < k; p++)
        for (idx i = 0; i < rows; i++)
            sums[i] += LD(m, i + p * col) * x.at[p * x.step];
}

/* Rows first..last of y = alpha M x + beta y + bias. M has dense rows or dense columns. */
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
            idx left = last - i;
            const STO *mi = mp + i * row;
            n = 4;
            if (col == 1 && left >= 4)
                K(dots)(mi, row, depth, xp.at, sums, 4);
            else if (col == 1)
                K(dots)(mi, row, depth, xp.at, sums, (int)(n = 1));
            else if (left >= 4 * LANE)
                K(columns)(mi, col, depth, xp, sums, (int)((n = 4 * LANE) / LANE));
            else if (left >= LANE)
                K(columns)(mi, col, depth, xp, sums, (int)((n = LANE) / LANE));
            else
                K(last_columns)(mi, col, depth, xp, sums, n = left);
            for (idx r = 0; r < n; r++)
                FN(put)
            (y + (i + r) * y_step, sums[r], alpha, p0 ? 1 : beta,
             p0 || !bias.at ? NULL : bias.at + (i + r) * bias.step);
        }
    }
}
