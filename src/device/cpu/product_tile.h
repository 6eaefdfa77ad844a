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

/* Loads the first n lanes only; the compiler makes the conditions into masks. */
INLINE VEC K(load_some)(const REAL *p, idx n)
{
    REAL s[LANE];
    SIMD for (i32 i = 0; i < (i32)LANE; i++) s[i] = i < (i32)n ? p[i] : 0;
    return *(VEC *)s;
}

INLINE void K(store_some)(REAL *p, VEC v, idx n)
{
    REAL s[LANE];
    *(VEC *)s = v;
    SIMD for (i32 i = 0; i < (i32)LANE; i++)
    {
        if (i < (i32)n)
            p[i] = s[i];
    }
}

/* How the sums of a tile become C: `columns` columns of the tile are stored. */
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

/* Stores a tile. Tiles of every shape share this function, because it has many cases. */
static __attribute__((noinline)) void K(store_tile)(REAL *c, idx c_row, VEC (*sums)[2],
                                                    const K(finish) * f, int rows, int wide)
{
    for (int r = 0; r < rows; r++, c += c_row) {
        K(store)(c, sums[r][0], 0, f);
        if (wide > 1)
            K(store)(c, sums[r][1], LANE, f);
    }
}

#if BY_LANES
/* Adds X, a lane of a register, times row Q of B to acc. */
#define TILE_LANES(Q, X)                                                                           \
    do {                                                                                           \
        VEC b0 = K(load)(b + (Q)*b_row), b1 = wide > 1 ? K(load)(b + (Q)*b_row + LANE) : b0;       \
        UNROLL                                                                                     \
        for (int r = 0; r < rows; r++) {                                                           \
            acc[r][0] += b0 * (X);                                                                 \
            if (wide > 1)                                                                          \
                acc[r][1] += b1 * (X);                                                             \
        }                                                                                          \
    } while (0)

/* Adds to the sums of a tile, and returns the number of p that were added: whole registers if the
 * rows of A are contiguous, all if the columns are. */
INLINE idx K(tile_lanes)(idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row,
                         VEC (*acc)[2], const int rows, const int wide)
{
    idx p = 0;
    if (a_col == 1)
        for (; p + LANE <= k; p += LANE, a += LANE, b += LANE * b_row) {
            VEC x[ROWS];
            UNROLL
            for (int r = 0; r < rows; r++)
                x[r] = K(load)(a + r * a_row);
            UNROLL
            for (int q = 0; q < LANE; q++)
                TILE_LANES(q, x[r][q]);
        }
    else if (a_row == 1 && rows == ROWS)
        for (; p < k; p++, a += a_col, b += b_row) {
            VEC x[ROWS / LANE + 1];
            UNROLL
            for (int r = 0; r < rows / LANE; r++)
                x[r] = K(load)(a + r * LANE);
            TILE_LANES(0, x[r / LANE][r % LANE]);
        }
    return p;
}
#undef TILE_LANES
#endif

INLINE void K(tile)(idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row, REAL *c,
                    idx c_row, const K(finish) * f, const int rows, const int wide)
{
    VEC acc[ROWS][2] = {{{0}}};
    if (IS_LARGE && rows == ROWS)
        UNROLL
    for (int r = 0; r < rows; r++)
        __builtin_prefetch(c + r * c_row + wide * LANE - 1, 1);
    idx p = 0;
#if BY_LANES
    if (IS_FAST) {
        p = K(tile_lanes)(k, a, a_row, a_col, b, b_row, acc, rows, wide);
        a += p * a_col;
        b += p * b_row;
    }
#endif
    for (; p < k; p++, a += a_col, b += b_row) {
        VEC b0 = K(load)(b), b1 = wide > 1 ? K(load)(b + LANE) : b0;
        UNROLL
        for (int r = 0; r < rows; r++) {
            REAL x = a[r * a_row];
            acc[r][0] += b0 * x;
            if (wide > 1)
                acc[r][1] += b1 * x;
        }
    }
    if (IS_FAST && rows == ROWS && wide > 1 &&
        f->columns >= 2 * LANE) { /* most tiles, stored directly */
        VEC bias[2] = {{0}};
        if (f->bias) {
            bias[0] = K(load)(f->bias);
            bias[1] = K(load)(f->bias + LANE);
        }
        UNROLL
        for (int r = 0; r < rows; r++) {
            VEC v0 = acc[r][0] * f->alpha + bias[0], v1 = acc[r][1] * f->alpha + bias[1];
            REAL *y = c + r * c_row;
            if (f->beta != 0) {
                v0 += K(load)(y) * f->beta;
                v1 += K(load)(y + LANE) * f->beta;
            }
            *(VEC *)y = v0;
            *(VEC *)(y + LANE) = v1;
        }
        return;
    }
    VEC sums[ROWS][2]; /* a copy, so that acc has no address and stays in registers */
    UNROLL
    for (int r = 0; r < rows; r++) {
        sums[r][0] = acc[r][0];
        sums[r][1] = acc[r][1];
    }
    K(store_tile)(c, c_row, sums, f, rows, wide);
}

/* Computes one row of tiles: `rows` rows of A times all panels of B. */
INLINE void K(strip)(idx k, const REAL *a, idx a_row, idx a_col, const REAL *b, idx b_row,
                     idx b_panel, REAL *c, idx c_row, const K(finish) * f, const int rows)
{
    K(finish) some = *f;
    for (; some.columns > 0; b += b_panel, c += 2 * LANE, some.columns -= 2 * LANE) {
        if (some.columns > LANE)
            K(tile)(k, a, a_row, a_col, b, b_row, c, c_row, &some, rows, 2);
        else
            K(tile)(k, a, a_row, a_col, b, b_row, c, c_row, &some, rows, 1);
        if (some.bias)
            some.bias += 2 * LANE;
    }
}

/* Packs A with contiguous columns for the tiles: numbers of ROWS rows at p are adjacent. */
static __attribute__((noinline)) void K(pack_left)(REAL *to, const REAL *a, idx col, idx rows,
                                                   idx depth)
{
    for (idx p = 0; p < depth; p++, a += col, to += ROWS)
        for (idx i = 0; i < rows; i += ROWS)
            __builtin_memcpy(to + i * depth, a + i, ROWS * sizeof(REAL));
}

/* Computes rows of C with f->columns columns. Panels of B are b_panel apart and as wide as a tile;
 * the last one is padded with zeros. */
static __attribute__((noinline)) void K(strips)(idx rows, idx k, const REAL *a, idx a_row,
                                                idx a_col, const REAL *b, idx b_row, idx b_panel,
                                                REAL *c, idx c_row, const K(finish) * f)
{
    REAL packed[LEFT * DEPTH] __attribute__((aligned(64)));
    const bool packs = IS_LARGE && a_row == 1 && a_col >= 2 * ROWS && f->columns > 4 * LANE;
    idx i = 0;
    for (idx ready = 0; i + ROWS <= rows; i += ROWS, a += ROWS * a_row, c += ROWS * c_row) {
        if (packs && i == ready) {
            ready = tern_smaller(i + LEFT, rows / ROWS * ROWS);
            K(pack_left)(packed, a, a_col, ready - i, k);
        }
        K(strip)
        (k, packs ? packed + i % LEFT * k : a, a_row, packs ? ROWS : a_col, b, b_row, b_panel, c,
         c_row, f, ROWS);
    }
    for (int n; i < rows; i += n, a += n * a_row, c += n * c_row) {
        if (ROWS > 4 && i + 4 <= rows)
            K(strip)(k, a, a_row, a_col, b, b_row, b_panel, c, c_row, f, n = 4);
        else if (i + 2 <= rows)
            K(strip)(k, a, a_row, a_col, b, b_row, b_panel, c, c_row, f, n = 2);
        else
            K(strip)(k, a, a_row, a_col, b, b_row, b_panel, c, c_row, f, n = 1);
    }
}
