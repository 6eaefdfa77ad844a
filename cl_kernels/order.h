/* order.h -- numbers as integers in the same order, for the largest, the smallest and sorting. */
#ifndef TERN_ORDER_H
#define TERN_ORDER_H
/* Integers in the order of the numbers: flip -1 turns the order round, NaN is the largest either
 * way, zeros are equal: that of -0 is made 0 as an integer, since compilers take x + 0 for x.
 * tern_unorder is the way back. */
INLINE i32 tern_order_f32(f32 v, i32 flip)
{
    u32 u = f32_bits(v);
    u = u == 0x80000000u ? 0u : u;
    i32 key = (i32)(u ^ ((0u - (u >> 31)) >> 1)) ^ flip;
    return v != v ? 0x7fffffff : key;
}
INLINE f32 tern_unorder_f32(i32 key, i32 flip)
{
    u32 u = (u32)(key ^ flip);
    return f32_from_bits(u ^ ((0u - (u >> 31)) >> 1));
}
#if TERN_F64
INLINE i64 tern_order_f64(f64 v, i32 flip)
{
    u64 u = f64_bits(v);
    u = u == (u64)1 << 63 ? 0 : u;
    i64 key = (i64)(u ^ (((u64)0 - (u >> 63)) >> 1)) ^ (i64)flip;
    return v != v ? 0x7fffffffffffffff : key;
}
INLINE f64 tern_unorder_f64(i64 key, i32 flip)
{
    u64 u = (u64)(key ^ (i64)flip);
    return f64_from_bits(u ^ (((u64)0 - (u >> 63)) >> 1));
}
#endif
#define tern_order_i32(v, flip)   ((v) ^ (flip))
#define tern_unorder_i32(v, flip) ((v) ^ (flip))
#define tern_order_i64(v, flip)   ((v) ^ (i64)(flip))
#define tern_unorder_i64(v, flip) ((v) ^ (i64)(flip))
#define KEY_f32   i32
#define KEY_f64   i64
#define KEY_i32   i32
#define KEY_i64   i64
#define LEAST_i32 (-2147483647 - 1)
#define LEAST_i64 (-9223372036854775807 - 1)
#define KEY       TERN_CAT(KEY, REAL)
#define LEAST     TERN_CAT(LEAST, KEY)
#endif
