/* product_vector.h -- matrix times vector for REAL: y = alpha M x + beta y + bias. */
#define UNROLL _Pragma("GCC unroll 16")

typedef REAL NAME(vector_) __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));
#define VEC  NAME(vector_)
#define LANE ((idx)(VECTOR / sizeof(REAL)))

/* A vector as memory holds it: element i is at[i * step]; `at` NULL means zeros. */
typedef struct NAME(strided_) {
    const REAL *at;
    idx step;
} NAME(strided_);

INLINE VEC NAME(load_)(const REAL *p)
{
    return *(const VEC *)p;
}

INLINE REAL NAME(sum_)(VEC v)
{
    REAL s[LANE];
    *(VEC *)s = v;
    UNROLL
    for (idx half = LANE / 2; half > 0; half /= 2)
        for (idx i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

/* The first n lanes only: conditions that the compiler makes into masks. */
INLINE VEC NAME(load_some_)(const REAL *p, idx n)
{
    REAL s[LANE];
    SIMD for (idx i = 0; i < LANE; i++) s[i] = i < n ? p[i] : 0;
    return *(VEC *)s;
}

INLINE void NAME(store_some_)(REAL *p, VEC v, idx n)
{
    REAL s[LANE];
    *(VEC *)s = v;
    SIMD for (idx i = 0; i < LANE; i++)
    {
        if (i < n)
            p[i] = s[i];
    }
}

/* What becomes of a sum: alpha and beta, and bias where there is one. */
INLINE void NAME(put_)(REAL *y, REAL sum, REAL alpha, REAL beta, const REAL *bias)
{
    REAL v = alpha * sum;
    v += bias ? *bias : 0;
    *y = beta == 0 ? v : v + beta * *y;
}

/* rows dot products with x, both dense. */
INLINE void NAME(dots_)(const REAL *m, idx row, idx k, const REAL *x, REAL *sums, const int rows)
{
    VEC acc[4] = {{0}};
    REAL tail[4] = {0};
    idx p = 0;
    for (; p + LANE <= k; p += LANE) {
        UNROLL
        for (int r = 0; r < rows; r++)
            acc[r] += NAME(load_)(m + r * row + p) * NAME(load_)(x + p);
    }
    for (; p < k; p++) {
        UNROLL
        for (int r = 0; r < rows; r++)
            tail[r] += m[r * row + p] * x[p];
    }
    for (int r = 0; r < rows; r++)
        sums[r] = k < LANE ? tail[r] : tail[r] + NAME(sum_)(acc[r]);
}

/* vectors * LANE rows of a matrix whose columns are dense:
 * sums[i] = sum of m[i + p col] x[p step]. */
INLINE void NAME(columns_)(const REAL *m, idx col, idx k, NAME(strided_) x, REAL *sums,
                           const int vectors)
{
    VEC acc[4] = {{0}};
    for (idx p = 0; p < k; p++) {
        UNROLL
        for (int v = 0; v < vectors; v++)
            acc[v] += NAME(load_)(m + p * col + v * LANE) * x.at[p * x.step];
    }
    UNROLL
    for (int v = 0; v < vectors; v++)
        *(VEC *)(sums + v * LANE) = acc[v];
}

/* The last rows, fewer than LANE: whole registers are read as long as they end
 * inside the matrix. */
INLINE void NAME(last_columns_)(const REAL *m, idx col, idx k, NAME(strided_) x, REAL *sums,
                                idx rows)
{
    idx inside = col > 0 ? k - (LANE - rows + col - 1) / col : 0;
    inside = inside > 0 ? inside : 0;
    NAME(columns_)(m, col, inside, x, sums, 1);
    for (idx p = inside; p < k; p++)
        for (idx i = 0; i < rows; i++)
            sums[i] += m[i + p * col] * x.at[p * x.step];
}

/* Rows first..last of y = alpha M x + beta y + bias. M has dense rows or dense columns. */
static void NAME(matrix_vector_)(const REAL *m, idx row, idx col, idx k, NAME(strided_) x, REAL *y,
                                 idx y_step, NAME(strided_) bias, REAL alpha, REAL beta, idx first,
                                 idx last)
{
    REAL copy[DEPTH], sums[4 * LANE];
    for (idx p0 = 0; p0 < k; p0 += DEPTH) {
        idx depth = k - p0 < DEPTH ? k - p0 : DEPTH;
        NAME(strided_) xp = {x.at + p0 * x.step, x.step};
        const REAL *mp = m + p0 * col;
        if (col == 1 && x.step != 1) {
            for (idx p = 0; p < depth; p++)
                copy[p] = xp.at[p * x.step];
            xp.at = copy;
        }
        for (idx i = first, n; i < last; i += n) {
            idx left = last - i;
            const REAL *mi = mp + i * row;
            n = 4;
            if (col == 1 && left >= 4)
                NAME(dots_)(mi, row, depth, xp.at, sums, 4);
            else if (col == 1)
                NAME(dots_)(mi, row, depth, xp.at, sums, (int)(n = 1));
            else if (left >= 4 * LANE)
                NAME(columns_)(mi, col, depth, xp, sums, (int)((n = 4 * LANE) / LANE));
            else if (left >= LANE)
                NAME(columns_)(mi, col, depth, xp, sums, (int)((n = LANE) / LANE));
            else
                NAME(last_columns_)(mi, col, depth, xp, sums, n = left);
            for (idx r = 0; r < n; r++)
                NAME(put_)
            (y + (i + r) * y_step, sums[r], alpha, p0 ? 1 : beta,
             p0 || !bias.at ? NULL : bias.at + (i + r) * bias.step);
        }
    }
}
