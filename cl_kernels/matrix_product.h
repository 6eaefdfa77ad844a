/* matrix_product.h -- what a group does with tiles in local memory, for the kernels that fill them,
 * gemm_matrix.cl and convolution_matrix.cl: an item holds 64 sums of MATRIX_ROWS x MATRIX_COLS.
 * They go to the result by way of local memory, one quarter after the other, where items have
 * eight neighbours each. */
#undef MATRIX_SUB_X
#undef MATRIX_SUB_Y
#undef MATRIX_X
#undef MATRIX_Y
#undef MATRIX_HIGH
#undef MATRIX_TILE_WORDS
#undef MATRIX_LOCAL_WORDS
#undef C_STEP
#undef STORE_QUARTER
#undef MATRIX_CLEAR_SUMS
#undef MATRIX_MULTIPLY_TILES
#undef MATRIX_QUARTER
#undef MATRIX_QUARTER_ROW
#undef IS_AT_16
/* What a sub-group has of C: 64 sums a lane; in rows and columns, and in tiles. */
#define MATRIX_SUB_X (MATRIX_LANES >= 32 ? 64 : 32)
#define MATRIX_SUB_Y (MATRIX_LANES == 64 ? 64 : MATRIX_LANES >= 16 ? 32 : 16)
#define MATRIX_X     (MATRIX_SUB_X / 16)
#define MATRIX_Y     (MATRIX_SUB_Y / MATRIX_N)
/* A quarter of C is so many rows of each sub-group's; the gap from row to row spreads what is
 * stored over the banks. */
#define MATRIX_HIGH (MATRIX_SUB_X / 4)
#define C_STEP      (MATRIX_COLS + 4)
#define MATRIX_TILE_WORDS (MATRIX_DEPTH / MATRIX_IN_WORD) /* of a row of an operand */
#define MATRIX_LOCAL_WORDS                                                                         \
    ((MATRIX_ROWS + MATRIX_COLS) * MATRIX_TILE_WORDS > MATRIX_ROWS / 4 * C_STEP                    \
         ? (MATRIX_ROWS + MATRIX_COLS) * MATRIX_TILE_WORDS                                         \
         : MATRIX_ROWS / 4 * C_STEP)

/* Eight numbers in a row as float32, and back; they lie at a multiple of 16 bytes. wide: they are
 * float32 in memory. */
#if MATRIX_WIDE || MATRIX_IS_TF32
INLINE void K(matrix_load8_wide)(f32 *v, const GLOBAL f32 *from)
{
    MATRIX_EACH(h, 2)
    {
        matrix_four w = ((const GLOBAL matrix_four *)from)[h];
        v[4 * h] = f32_from_bits(w.x), v[4 * h + 1] = f32_from_bits(w.y);
        v[4 * h + 2] = f32_from_bits(w.z), v[4 * h + 3] = f32_from_bits(w.w);
    }
}
INLINE void K(matrix_store8_wide)(GLOBAL f32 *to, const f32 *v)
{
    MATRIX_EACH(h, 2)
    {
        matrix_four w;
        w.x = f32_bits(v[4 * h]), w.y = f32_bits(v[4 * h + 1]);
        w.z = f32_bits(v[4 * h + 2]), w.w = f32_bits(v[4 * h + 3]);
        ((GLOBAL matrix_four *)to)[h] = w;
    }
}
#endif
#if !MATRIX_IS_TF32
INLINE void K(matrix_load8)(f32 *v, const GLOBAL STO *from)
{
    matrix_four w = *(const GLOBAL matrix_four *)from;
    v[0] = matrix_low(w.x), v[1] = matrix_high(w.x), v[2] = matrix_low(w.y);
    v[3] = matrix_high(w.y), v[4] = matrix_low(w.z), v[5] = matrix_high(w.z);
    v[6] = matrix_low(w.w), v[7] = matrix_high(w.w);
}
INLINE void K(matrix_store8)(GLOBAL STO *to, const f32 *v)
{
    matrix_four w;
    w.x = matrix_pair(v[0], v[1]), w.y = matrix_pair(v[2], v[3]);
    w.z = matrix_pair(v[4], v[5]), w.w = matrix_pair(v[6], v[7]);
    *(GLOBAL matrix_four *)to = w;
}
#endif
#define IS_AT_16(p) ((u64)(p) % 16 == 0)

/* In a kernel: matrix_sums sums[MATRIX_X][MATRIX_Y] of the sub-group's rows from sub_x *
 * MATRIX_SUB_X and columns from y0 on; tiles ta and tb of the operands, or tc, a quarter of the
 * result, in the same local memory of MATRIX_LOCAL_WORDS words. */
#define MATRIX_CLEAR_SUMS                                                                          \
    MATRIX_EACH(r, MATRIX_X)                                                                       \
    MATRIX_EACH(s, MATRIX_Y)                                                                       \
    MATRIX_EACH(e, MATRIX_SUMS) sums[r][s].v[e] = 0;
#define MATRIX_MULTIPLY_TILES                                                                      \
    MATRIX_EACH(d, MATRIX_TILE_WORDS / 8)                                                          \
    {                                                                                              \
        matrix_b y[MATRIX_Y];                                                                      \
        MATRIX_STEP();                                                                             \
        MATRIX_EACH(s, MATRIX_Y)                                                                   \
        y[s] = matrix_load_b(tb, y0 + s * MATRIX_N, d * 8, MATRIX_TILE_WORDS);                     \
        MATRIX_EACH(r, MATRIX_X)                                                                   \
        {                                                                                          \
            matrix_a x =                                                                           \
                matrix_load_a(ta, sub_x * MATRIX_SUB_X + r * 16, d * 8, MATRIX_TILE_WORDS);        \
            MATRIX_EACH(s, MATRIX_Y) matrix_multiply(&sums[r][s], &x, &y[s]);                      \
        }                                                                                          \
    }

/* Quarter t of the sums into local memory. The numbers of sums must be constants, which a loop
 * with as much in it would not leave them with all compilers. */
#define STORE_QUARTER(t)                                                                           \
    MATRIX_EACH(s, MATRIX_Y)                                                                       \
    MATRIX_EACH(e, MATRIX_SUMS)                                                                    \
    {                                                                                              \
        const i32 row = MATRIX_ROW(e) - (t)*MATRIX_HIGH % 16;                                      \
        if (MATRIX_HIGH == 16 || (row >= 0 && row < MATRIX_HIGH))                                  \
            tc[(sub_x * MATRIX_HIGH + row) * C_STEP + y0 + s * MATRIX_N +                          \
               MATRIX_COLUMN(MATRIX_PLACE(e))] = sums[(t)*MATRIX_X / 4][s].v[e];                   \
    }
#define MATRIX_QUARTER(t)                                                                          \
    MATRIX_BARRIER();                                                                              \
    if (t == 0)                                                                                    \
        STORE_QUARTER(0)                                                                           \
    else if (t == 1)                                                                               \
        STORE_QUARTER(1)                                                                           \
    else if (t == 2)                                                                               \
        STORE_QUARTER(2)                                                                           \
    else                                                                                           \
        STORE_QUARTER(3)                                                                           \
    MATRIX_BARRIER();
/* Row l of the quarter is this one of the tile. */
#define MATRIX_QUARTER_ROW(t, l)                                                                   \
    ((l) / MATRIX_HIGH * MATRIX_SUB_X + (t)*MATRIX_HIGH + (l) % MATRIX_HIGH)
