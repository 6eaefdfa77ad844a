/* philox.h -- Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four words of 32 bits that depend
 * on the seed and a group's number alone. */
#ifndef TERN_PHILOX
#define TERN_PHILOX
typedef struct tern_words {
    u32 a, b, c, d;
} tern_words;

#define PHILOX_ROUND_                                                                              \
    {                                                                                              \
        u64 p = (u64)0xD2511F53u * c0, q = (u64)0xCD9E8D57u * c2;                                  \
        c0 = (u32)(q >> 32) ^ c1 ^ k0;                                                             \
        c2 = (u32)(p >> 32) ^ c3 ^ k1;                                                             \
        c1 = (u32)q;                                                                               \
        c3 = (u32)p;                                                                               \
        k0 += 0x9E3779B9u;                                                                         \
        k1 += 0xBB67AE85u;                                                                         \
    }
INLINE tern_words tern_philox(u64 group, u64 seed)
{
    u32 c0 = (u32)group, c1 = (u32)(group >> 32), c2 = 0, c3 = 0;
    u32 k0 = (u32)seed, k1 = (u32)(seed >> 32);
    tern_words w;
    PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_
    PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_ PHILOX_ROUND_
    w.a = c0;
    w.b = c1;
    w.c = c2;
    w.d = c3;
    return w;
}
#undef PHILOX_ROUND_
#endif
