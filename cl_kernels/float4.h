/* float4.h -- four elements of f32, f16 or bf16 at a time, in 16 or 8 bytes, where a prelude has LOAD4_ and
 * STORE4_ of them (TERN_FLOAT4): LOAD4(v, p, i) takes elements 4 i to 4 i + 3 of p to v[0..4) as REAL. */
#ifndef TERN_FLOAT4_H
#define TERN_FLOAT4_H
#define LOAD4(v, p, i)  TERN_CAT(LOAD4, TERN_T)(v, p, i)
#define STORE4(p, i, v) TERN_CAT(STORE4, TERN_T)(p, i, v)
#define EACH4(e)        UNROLL for (i32 e = 0; e < 4; e++)
/* The same element four times where it stays. */
#define LOAD4_OR_1(stays, v, p, i)                                                                 \
    if (stays) {                                                                                   \
        v[0] = LD(p, 0);                                                                           \
        v[1] = v[2] = v[3] = v[0];                                                                 \
    } else {                                                                                       \
        LOAD4(v, p, i);                                                                            \
    }

/* Whether p is where a load of four may be; whether rows of tensor k of a walk of unit steps begin at
 * multiples of four elements from there. */
#define ALIGNED4(p)         (((u64)(p) & (4 * sizeof *(p) - 1)) == 0)
#define WALK_ALIGNED4(w, k) ((w).rows == 1 || tern_row_aligned4((w).inner, (w).ndim, (w).stride[k]))
/* Past the elements that were taken. */
#define SKIP4(p) p += 4 * quads;
INLINE i32 tern_row_aligned4(i64 inner, i32 ndim, const i64 *stride)
{
    ROLLED for (i32 d = 0; d < ndim; d++)
        inner |= stride[d];
    return (inner & 3) == 0;
}
#endif
