/* row_functions.h -- what the rows of a .def file are in a chain (src/device/chain.h): functions of
 * one element. AS_STORED is what a number is after a store and a load, AS_STORED4 after those of
 * four elements, where a prelude has its own. */
#include "math_rows.cl"

#if IS_HALF && !defined AS_STORED_F16
/* f as float16 has it, rounded to nearest even: without memory, and without a type for it. Where
 * float16 is subnormal, the adder rounds. */
INLINE f32 tern_through_f16(f32 f)
{
    const u32 u = f32_bits(f), sign = u & 0x80000000u, a = u & 0x7fffffffu;
    const f32 small = (f32_from_bits(a) + 0.5f) - 0.5f;
    u32 r = (a + 0xfffu + ((a >> 13) & 1)) & ~(u32)0x1fffu;
    r = a < 0x38800000u ? f32_bits(small) : r >= 0x47800000u ? 0x7f800000u : r;
    r = a > 0x7f800000u ? (a | 0x400000u) & ~(u32)0x1fffu : r;
    return f32_from_bits(r | sign);
}
#define AS_STORED_F16(v) tern_through_f16(v)
#endif
#ifndef AS_STORED4
#define AS_STORED4 AS_STORED
#endif
#define AS_STORED_PLAIN(v) ((REAL)(STO)(v))
#define AS_STORED_BF16(v)  f32_from_bits((u32)tern_f32_to_bf16(v) << 16)
#define AS_STORED(v)       TERN_CAT(AS_STORED, DTYPE_FIELD(CODE, TERN_ROW_(TERN_T)))(v)

#define FUNCTION1_0(NAME, Y)
#define FUNCTION1_1(NAME, Y)                                                                       \
    INLINE REAL row_##NAME(REAL x, REAL a, REAL b)                                                 \
    {                                                                                              \
        return (Y);                                                                                \
    }
#define FUNCTION_GRADIENT_0(NAME, DX)
#define FUNCTION_GRADIENT_1(NAME, DX)                                                              \
    INLINE REAL row_##NAME##_gradient(REAL x, REAL y, REAL dy, REAL a, REAL b)                     \
    {                                                                                              \
        return (DX);                                                                               \
    }
#define FUNCTION2_0(NAME, Z)
#define FUNCTION2_1(NAME, Z)                                                                       \
    INLINE REAL row_##NAME(REAL x, REAL y)                                                         \
    {                                                                                              \
        return (Z);                                                                                \
    }                                                                                              \
    INLINE REAL row_##NAME##_scalar(REAL x, REAL y)                                                \
    {                                                                                              \
        return (Z);                                                                                \
    }
#define FUNCTION3_0(NAME, V)
#define FUNCTION3_1(NAME, V)                                                                       \
    INLINE REAL row_##NAME(REAL x, REAL y, REAL z, REAL a)                                         \
    {                                                                                              \
        return (V);                                                                                \
    }

#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    TERN_CAT(FUNCTION1, IN_SET(TYPES, TERN_T))(NAME, Y)                                            \
    TERN_CAT(FUNCTION_GRADIENT, IS_FLOAT)(NAME, DX)
#define UNARY_REAL1  UNARY
#define UNARY_REAL2  UNARY
#define UNARY_SCALAR UNARY
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY)                                      \
    TERN_CAT(FUNCTION2, IN_SET(TYPES, TERN_T))(NAME, Z)
#define TERNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, V, DX, DY, DZ)                                 \
    TERN_CAT(FUNCTION3, IN_SET(TYPES, TERN_T))(NAME, V)
#define TERNARY_SCALAR TERNARY
#define COMPARE(NAME, TYPES, RULE, Z)
#define PREDICATE(NAME, TYPES, Z)
