/* product_tile.h -- matrix products in tiles of registers, for the types that are computed in.
 *
 * A is read one number at a time for a whole row of the tile, B in panels two registers wide. */

typedef REAL K(vector) __attribute__((vector_size(VECTOR), aligned(sizeof(REAL)), may_alias));

INLINE VEC K(load)(const REAL *p)
{
    return *(const VEC *)p;
}

INLINE REAL K(sum)(VEC v)
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
INLINE VEC K(load_some)(const REAL *p, idx n)
{
    REAL s[LANE];
    SIMD for (idx i = 0; i < LANE; i++) s[i] = i < n ? p[i] : 0;
    return *(VEC *)s;
}

INLINE void K(store_some)(REAL *p, VEC v, idx n)
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
INLINE void K(put)(REAL *y, REAL sum, REAL alpha, REAL beta, const REAL *bias)
{
    REAL v = alpha * sum;
    v += bias ? *bias : 0;
    *y = beta == 0 ? v : v + beta * *y;
}

/* What happens to a tile when its sums are complete; columns of it are real. */
typedef struct K(finish) {
    REAL alpha, beta;
    const REAL *bias;
    idx columns;
} K(finish);

INLINE void K(store)(REAL *c, VEC sum, idx from, const K(finish) * f)
{
    idx n = f->columns - from;
    VEC v = sum * f->alpha;
    if (n >= LANE) {
        if (f->bias)
            v += K(load)(f->bias + from);
        if (f->beta != 0)
            v += K(load)(c + from) * f->beta;
        *(VEC *)(c + from) = v;
    } else {
        if (f->bias)
            v += K(load_some)(f->bias + from, n);
        if (f->beta != 0)
            v += K(load_some)(c + from, n) * f->beta;
        K(store_some)(c + from, v, n);
    }
}

/* All of a tile: one function for tiles of every shape, because its cases are many. */
static __attribute__((noinline)) void K(store_tile)(REAL *c, idx c_row, VEC (*sums)[2],
                                                    const K(finish) * f, int rows, int wide)
{
    for (int r = 0; r < rows; r++, c += c_row) {
        K(store)(c, sums[r][0], 0, f);
        if (wide > 1)
            K(store)(c, sums[r][1], LANE, f);
    }
}

INLINE void K(tile)(idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row, REAL *c,
                    idx c_row, const K(finish) * f, const int rows, const int wide)
{
    VEC acc[ROWS][2] = {{{0}}};
    for (idx p = 0; p < k; p++, a += a_col, b += b_row) {
        VEC b0 = K(load)(b), b1 = wide > 1 ? K(load)(b + LANE) : b0;
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
    K(store_tile)(c, c_row, sums, f, rows, wide);
}

INLINE void K(strip)(idx rows, idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row,
                     REAL *c, idx c_row, const K(finish) * f, const int wide)
{
    idx i = 0;
    for (; i + ROWS <= rows; i += ROWS)
        K(tile)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, ROWS, wide);
    if (ROWS > 4 && i + 4 <= rows) {
        K(tile)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 4, wide);
        i += 4;
    }
    if (i + 2 <= rows) {
        K(tile)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 2, wide);
        i += 2;
    }
    if (i < rows)
        K(tile)(k, a + i * a_row, a_row, a_col, b, b_row, c + i * c_row, c_row, f, 1, wide);
}

/* A strip of C as wide as the panel b: one register, or two. */
static __attribute__((noinline)) void K(strips)(idx rows, idx k, const REAL *a, idx a_row,
                                                idx a_col, const REAL *b, idx b_row, REAL *c,
                                                idx c_row, const K(finish) * f, idx width)
{
    if (width > LANE)
        K(strip)(rows, k, a, a_row, a_col, b, b_row, c, c_row, f, 2);
    else
        K(strip)(rows, k, a, a_row, a_col, b, b_row, c, c_row, f, 1);
}
