/* matrix_chain.h -- from the sums of one product to the next one's operand, where they are, for
 * kernels over matrix.h: maxima and sums over rows, powers of 2, and sums as B. */
#ifndef TERN_MATRIX_CHAIN
#define TERN_MATRIX_CHAIN
#include "matrix.h"

/* Sums as B of a product, in halves: row r of theirs is the depth r. */
INLINE matrix_b matrix_as_b(const matrix_sums *sums)
{
    const f32 *c = sums->v;
    matrix_b b;
#if MATRIX_WAY == MATRIX_RDNA3 /* a lane has each second row; both of a column are to have all */
    MATRIX_EACH(e, 4)
    {
        u32 own = matrix_pair(c[2 * e], c[2 * e + 1]), other = matrix_unit_exchange(own, 16);
        u32 even = MATRIX_LANE < 16 ? own : other, odd = MATRIX_LANE < 16 ? other : own;
        b.v[2 * e] = (even & 0xffffu) | odd << 16;
        b.v[2 * e + 1] = even >> 16 | (odd & 0xffff0000u);
    }
#else
    MATRIX_EACH(e, MATRIX_B_WORDS) b.v[e] = matrix_pair(c[2 * e], c[2 * e + 1]);
#endif
    return b;
}
/* Of these words the first row of word e, in column MATRIX_COLUMN(MATRIX_PLACE(2 * (e))); and
 * whether the word is the lane's own, as one lane of each column has it so. */
#if MATRIX_WAY == MATRIX_RDNA3
#define MATRIX_WORD_ROW(e)    (2 * (e))
#define MATRIX_WORD_IS_OWN(e) ((e) / 4 == MATRIX_LANE / 16)
#else
#define MATRIX_WORD_ROW(e)    MATRIX_ROW(2 * (e))
#define MATRIX_WORD_IS_OWN(e) 1
#endif

/* v = WITH(v, w) over all lanes that have a column together. */
#ifdef MATRIX_NEAR
#define MATRIX_OVER_ROWS(v, WITH)                                                                  \
    MATRIX_UNROLL for (i32 apart_ = MATRIX_NEAR; apart_ < MATRIX_FAR; apart_ *= 2)                 \
    {                                                                                              \
        f32 theirs_ = f32_from_bits(matrix_unit_exchange(f32_bits(v), apart_));                    \
        v = WITH(v, theirs_);                                                                      \
    }
#else
#define MATRIX_OVER_ROWS(v, WITH)
#endif
#define MATRIX_SUM(a, b)  ((a) + (b))
#define MATRIX_MOST(a, b) ((a) > (b) ? (a) : (b))

/* 2^x and log2(x) as the device has them in one instruction. */
#if TERN_HOST
#define matrix_exp2(x) exp2f(x)
#define matrix_log2(x) log2f(x)
#elif defined(__OPENCL_VERSION__) && MATRIX_WAY != MATRIX_MMA
#define matrix_exp2(x) native_exp2(x)
#define matrix_log2(x) native_log2(x)
#else
INLINE f32 matrix_exp2(f32 x)
{
    f32 y;
    MATRIX_ASM("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
INLINE f32 matrix_log2(f32 x)
{
    f32 y;
    MATRIX_ASM("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#endif
#endif
