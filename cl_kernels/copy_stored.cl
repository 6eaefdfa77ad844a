/* copy_stored.cl -- elements of the types that are only stored, to and from a type that is computed
 * in, and those of 16 bits moved as they are. */
#ifndef TERN_STORED_ONCE
#define TERN_STORED_ONCE
#define STORAGE_SIGN_ ((u64)1 << 63)

/* float8_e4m3fn: 4 bits of exponent, no infinities, 0x7f is NaN. float8_e5m2: the upper half of
 * float16. The numbers below the smallest normal one are whole multiples of 2^-9 and 2^-16. */
INLINE f32 tern_e4m3_to_f32(u8 b)
{
    u32 a = b & 0x7fu, sign = (u32)(b & 0x80u) << 24;
    u32 small = f32_bits((f32)a * 0x1p-9f);
    u32 r = a < 8u ? small : (a << 20) + (120u << 23);
    return f32_from_bits((a == 0x7fu ? 0x7fc00000u : r) | sign);
}
INLINE f32 tern_e5m2_to_f32(u8 b)
{
    u32 a = b & 0x7fu, sign = (u32)(b & 0x80u) << 24;
    u32 small = f32_bits((f32)a * 0x1p-16f);
    u32 r = a < 4u ? small : (a << 21) + (112u << 23);
    r = a == 0x7cu ? 0x7f800000u : r;
    return f32_from_bits((a > 0x7cu ? 0x7fc00000u : r) | sign);
}

/* Round to nearest even, the adder for what is below the smallest normal number. e4m3fn takes its
 * greatest number for what is beyond it, infinities too. */
INLINE u8 tern_f32_to_e4m3(f32 f)
{
    u32 u = f32_bits(f), a = u & 0x7fffffffu;
    u32 small = f32_bits(f32_from_bits(a) + 0x1p14f) - f32_bits(0x1p14f);
    u32 r = (a + 0x7ffffu + ((a >> 20) & 1u) - (120u << 23)) >> 20;
    r = a < (121u << 23) ? small : r;
    r = a >= 0x43e00000u ? 0x7eu : r;
    return (u8)((a > 0x7f800000u ? 0x7fu : r) | ((u >> 24) & 0x80u));
}
INLINE u8 tern_f32_to_e5m2(f32 f)
{
    u32 u = f32_bits(f), a = u & 0x7fffffffu;
    u32 small = f32_bits(f32_from_bits(a) + 0x1p7f) - f32_bits(0x1p7f);
    u32 r = (a + 0xfffffu + ((a >> 21) & 1u) - (112u << 23)) >> 21;
    r = a < (113u << 23) ? small : r;
    r = a >= 0x47700000u ? 0x7cu : r;
    return (u8)((a > 0x7f800000u ? 0x7fu : r) | ((u >> 24) & 0x80u));
}
#endif

/* y = VALUE of x, for any strides. */
#define STORAGE_KERNEL(NAME, TO, FROM, VALUE)                                                      \
    KERNEL3(K(NAME), (OUT, TO, ys), (IN, FROM, xs), (ARG, tern_nd_index, w))                       \
    {                                                                                              \
        BASE(ys);                                                                                  \
        BASE(xs);                                                                                  \
        FLAT(r, w.rows, w.inner)                                                                   \
        {                                                                                          \
            ND_INDEX2(w, r, yo, xo)                                                                \
            INNER(r, j)                                                                            \
            {                                                                                      \
                FROM x = xs[xo + j * (idx)w.step[1]];                                              \
                ys[yo + j * (idx)w.step[0]] = VALUE;                                               \
            }                                                                                      \
        }                                                                                          \
    }

/* Reals from 2^63 on; what does not fit is 0 above and 2^63 below, as x86 has it. */
#define TO_U64(v)                                                                                  \
    ((v) < C(9223372036854775808.0)                                                                \
         ? ((v) >= -C(9223372036854775808.0) ? (u64)(i64)(v) : STORAGE_SIGN_)                      \
         : ((v) < C(18446744073709551616.0)                                                        \
                ? (u64)(i64)((v)-C(9223372036854775808.0)) ^ STORAGE_SIGN_                         \
                : ((v) == (v) ? (u64)0 : STORAGE_SIGN_)))

#if IS_I32
STORAGE_KERNEL(load_i8, i32, i8, (i32)x)
STORAGE_KERNEL(load_i16, i32, i16, (i32)x)
STORAGE_KERNEL(load_u16, i32, u16, (i32)x)
STORAGE_KERNEL(store_i8, i8, i32, (i8)x)
STORAGE_KERNEL(store_i16, i16, i32, (i16)x)
STORAGE_KERNEL(store_u16, u16, i32, (u16)x)
#elif IS_I64
STORAGE_KERNEL(load_u32, i64, u32, (i64)x)
STORAGE_KERNEL(store_u32, u32, i64, (u32)x)
/* In the order of uint64: the sign turned. */
STORAGE_KERNEL(order_u64, i64, u64, (i64)(x ^ STORAGE_SIGN_))
#elif IS_FLOAT && !IS_HALF
STORAGE_KERNEL(load_u64, REAL, u64, (REAL)x)
STORAGE_KERNEL(store_u64, u64, REAL, TO_U64(x))
#if !IS_WIDE
STORAGE_KERNEL(load_e4m3, f32, u8, tern_e4m3_to_f32(x))
STORAGE_KERNEL(load_e5m2, f32, u8, tern_e5m2_to_f32(x))
STORAGE_KERNEL(store_e4m3, u8, f32, tern_f32_to_e4m3(x))
STORAGE_KERNEL(store_e5m2, u8, f32, tern_f32_to_e5m2(x))
#endif
#elif IS_HALF && IS_MOVER
STORAGE_KERNEL(move, u16, u16, x)
#endif
#undef STORAGE_KERNEL
#undef TO_U64
