/* dialect.h -- what kernels are written in, after a prelude made the types and loop forms.
 *
 * A kernel is KERNELn(K(name), parameter, ...) { BASE(x); ... } with parameters
 *   (OUT, T, x)   elements of T that the kernel writes (and may read)
 *   (IN, T, x)    elements of T that it reads
 *   (ARG, T, n)   a value: i32 i64 u64 f32 REAL or a struct of shapes.h
 * BASE(x) comes first, for every OUT and IN: it moves x to its first element.
 *
 * The file is read once for each element type TERN_T (f32 f64 f16 bf16 i32 i64 u8 bool):
 *   STO   what lies in memory          LD(p, i), ST(p, i, v)   load and store as REAL
 *   REAL  what is computed in          C(0.5)                  a constant of that type
 *   K(n)  the kernel's name: n_f32     exp(x) log(x) ...       math of that type, see math.cl */

/* INLINE is part of what calls it; a FUNCTION is large, and the host's compiler has the choice. */
#ifndef FUNCTION
#define FUNCTION INLINE
#endif

/* A short loop that a compiler would unroll, at the price of registers. */
#ifndef ROLLED
#define ROLLED
#endif

#define TERN_CAT_(a, b) a##_##b
#define TERN_CAT(a, b)  TERN_CAT_(a, b)
#define K(n)            TERN_CAT(n, TERN_T)
#define STO             TERN_CAT(STORED, TERN_T)
#define REAL            TERN_CAT(MATH, TERN_T)
#define ACC             TERN_CAT(SUM, TERN_T)
#define C(x)            TERN_CAT(C, TERN_CAT(MATH, TERN_T))(x)
#define LD(p, i)        TERN_CAT(LD, TERN_T)(p, i)
#define ST(p, i, v)     TERN_CAT(ST, TERN_T)(p, i, v)
#define FN(f)           TERN_CAT(f, TERN_CAT(MATH, TERN_T))

/* What lies in memory, what it is computed in, what sums of it are kept in. */
#define STORED_f32  f32
#define STORED_f64  f64
#define STORED_f16  u16
#define STORED_bf16 u16
#define STORED_i32  i32
#define STORED_i64  i64
#define STORED_u8   u8
#define STORED_bool u8

#define MATH_f32  f32
#define MATH_f64  f64
#define MATH_f16  f32
#define MATH_bf16 f32
#define MATH_i32  i32
#define MATH_i64  i64
#define MATH_u8   i32
#define MATH_bool i32

#define SUM_f32  f32
#define SUM_f64  f64
#define SUM_f16  f32
#define SUM_bf16 f32
#define SUM_i32  i64
#define SUM_i64  i64
#define SUM_u8   i64
#define SUM_bool i64

#define C_f32(x) x##f
#define C_f64(x) x
#define C_i32(x) ((i32)(x))
#define C_i64(x) ((i64)(x))

/* Sets of types, for rows of elementwise.def; in a family: #if IS_FLOAT. */
#define IS_FLOAT TERN_CAT(FLOATS, TERN_T)
#define FLOATS_f32  1
#define FLOATS_f64  1
#define FLOATS_f16  1
#define FLOATS_bf16 1
#define FLOATS_i32  0
#define FLOATS_i64  0
#define FLOATS_u8   0
#define FLOATS_bool 0

/* f64; 16 bits in memory and f32 in registers. */
#define IS_WIDE TERN_CAT(WIDE, TERN_T)
#define WIDE_f32  0
#define WIDE_f64  1
#define WIDE_f16  0
#define WIDE_bf16 0
#define WIDE_i32  0
#define WIDE_i64  0
#define WIDE_u8   0
#define WIDE_bool 0

#define IS_HALF TERN_CAT(HALVES, TERN_T)
#define HALVES_f32  0
#define HALVES_f64  0
#define HALVES_f16  1
#define HALVES_bf16 1
#define HALVES_i32  0
#define HALVES_i64  0
#define HALVES_u8   0
#define HALVES_bool 0

/* One type of each width, for kernels that only move elements. */
#define IS_MOVER TERN_CAT(MOVERS, TERN_T)
#define MOVERS_f32  1
#define MOVERS_f64  0
#define MOVERS_f16  1
#define MOVERS_bf16 0
#define MOVERS_i32  0
#define MOVERS_i64  1
#define MOVERS_u8   1
#define MOVERS_bool 0

#define BOOLS_f32  0
#define BOOLS_f64  0
#define BOOLS_f16  0
#define BOOLS_bf16 0
#define BOOLS_i32  0
#define BOOLS_i64  0
#define BOOLS_u8   0
#define BOOLS_bool 1

#define NUMBERS_f32  1
#define NUMBERS_f64  1
#define NUMBERS_f16  1
#define NUMBERS_bf16 1
#define NUMBERS_i32  1
#define NUMBERS_i64  1
#define NUMBERS_u8   1
#define NUMBERS_bool 0

#define ALL_f32  1
#define ALL_f64  1
#define ALL_f16  1
#define ALL_bf16 1
#define ALL_i32  1
#define ALL_i64  1
#define ALL_u8   1
#define ALL_bool 1

#define WHOLES_f32  0
#define WHOLES_f64  0
#define WHOLES_f16  0
#define WHOLES_bf16 0
#define WHOLES_i32  1
#define WHOLES_i64  1
#define WHOLES_u8   1
#define WHOLES_bool 0

#define INTS_f32  0
#define INTS_f64  0
#define INTS_f16  0
#define INTS_bf16 0
#define INTS_i32  1
#define INTS_i64  1
#define INTS_u8   1
#define INTS_bool 1

/* The type of indices, for kernels of it alone. */
#define IS_I64 TERN_CAT(I64S, TERN_T)
#define I64S_f32  0
#define I64S_f64  0
#define I64S_f16  0
#define I64S_bf16 0
#define I64S_i32  0
#define I64S_i64  1
#define I64S_u8   0
#define I64S_bool 0

/* Minus infinity, for maxima to begin with. */
#define MINUS_INF     TERN_CAT(MINUS_INF, ACC)
#define MINUS_INF_f32 f32_from_bits(0xff800000u)
#define MINUS_INF_f64 f64_from_bits((u64)0xfff00000u << 32)

#define LD_f32(p, i)     ((p)[i])
#define ST_f32(p, i, v)  ((p)[i] = (v))
#define LD_f64(p, i)     ((p)[i])
#define ST_f64(p, i, v)  ((p)[i] = (v))
#define LD_i32(p, i)     ((p)[i])
#define ST_i32(p, i, v)  ((p)[i] = (i32)(v))
#define LD_i64(p, i)     ((p)[i])
#define ST_i64(p, i, v)  ((p)[i] = (i64)(v))
#define LD_u8(p, i)      ((i32)(p)[i])
#define ST_u8(p, i, v)   ((p)[i] = (u8)(v))
#define LD_bool(p, i)    ((i32)(p)[i])
#define ST_bool(p, i, v) ((p)[i] = (u8)((v) != 0))
#define LD_bf16(p, i)    f32_from_bits((u32)(p)[i] << 16)
#define ST_bf16(p, i, v) ((p)[i] = tern_f32_to_bf16(v))

/* Round to nearest even; NaN stays NaN. */
INLINE u16 tern_f32_to_bf16(f32 f)
{
    u32 u = f32_bits(f);
    u32 rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (u16)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
}

/* Record a mistake of the data: code is one of TERN_FAULT_..., a and b go into its message. */
#define FAULT(words, code, a, b)                                                                   \
    do {                                                                                           \
        (words)[1] = (i64)(a);                                                                     \
        (words)[2] = (i64)(b);                                                                     \
        (words)[0] = (code);                                                                       \
    } while (0)

#include "collectives.h"
