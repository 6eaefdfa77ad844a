/* skinny_neon.h -- the tiles of skinny.c by NEON. bfloat16 rows are 16-bit integers here too, but
 * stored as two signed bytes, high * 256 + low, so that dot products with codes need no widening:
 * by SDOT, or by multiplication and pairwise addition. A block stores 16 high bytes, then 16 low
 * bytes, and so on. */

WIDE_INLINE void fetch_ahead(const uint8_t *codes, int64_t row, int k, int64_t at)
{
    __builtin_prefetch(codes + k * (AHEAD * row + at));
}

/* ---- rows of float32 ------------------------------------------------------------------------- */

/* Returns four codes as floats, minus the zero point. */
WIDE_INLINE float32x4_t four_of(int16x4_t codes, float32x4_t zero)
{
    return vsubq_f32(vcvtq_f32_s32(vmovl_s16(codes)), zero);
}

/* Multiplies 8 codes of a row of the weight with n rows of x and adds to sums. */
WIDE_INLINE void eight_of(const product *p, int16x8_t codes, float32x4_t zero, const float *x,
                          int n, float32x4_t *sums)
{
    const float32x4_t a = four_of(vget_low_s16(codes), zero),
                      b = four_of(vget_high_s16(codes), zero);
    WIDE_EACH(r, n)
    {
        sums[r] = vfmaq_f32(sums[r], a, vld1q_f32(x + r * p->ins));
        sums[r] = vfmaq_f32(sums[r], b, vld1q_f32(x + r * p->ins + 4));
    }
}

/* Multiplies a group of `size` codes of k rows of the weight, `row` bytes apart, with n rows of x.
 * With 4 bits, byte j holds element j in its low half and element j + size / 2 in the high half. k
 * and n are constants at every call. */
WIDE_INLINE void group_of(const product *p, const uint8_t *codes, int64_t row, int64_t at,
                          const float *x, const float32x4_t *zero, int64_t size, int k, int n,
                          float32x4_t sums[][WIDE_SUMS])
{
    const uint8x8_t low = vdup_n_u8(15);
    for (int64_t j = 0; j < (p->nibbles ? size / 2 : size); j += 8) {
        fetch_ahead(codes - at, row, k, at + j);
        WIDE_EACH(c, k)
        {
            const uint8x8_t code = vld1_u8(codes + c * row + j);
            if (!p->nibbles) {
                eight_of(p, vmovl_s8(vreinterpret_s8_u8(code)), vdupq_n_f32(0), x + j, n, sums[c]);
                continue;
            }
            eight_of(p, vreinterpretq_s16_u16(vmovl_u8(vand_u8(code, low))), zero[c], x + j, n,
                     sums[c]);
            eight_of(p, vreinterpretq_s16_u16(vmovl_u8(vshr_n_u8(code, 4))), zero[c],
                     x + j + size / 2, n, sums[c]);
        }
    }
}

/* ---- rows of bfloat16 ------------------------------------------------------------------------ */

/* Converts a block of x to integers; returns false if a value is not finite or too large, or if the
 * largest is nearly 0. */
static bool round_block(const float *x, int64_t size, int16_t *whole, float *step, float *share)
{
    const float most = 127 * 256 + 127; /* the largest integer whose high byte fits */
    float32x4_t magnitude = vdupq_n_f32(0);
    for (int64_t j = 0; j < size; j += 4) /* NaN is kept */
        magnitude = vmaxq_f32(magnitude, vabsq_f32(vld1q_f32(x + j)));
    const float largest = vmaxvq_f32(magnitude);
    if (!(largest < 1e30f) || (largest < 1e-30f && largest > 0))
        return false;
    const float by = largest > 0 ? most / largest : 0;
    int32x4_t sum = vdupq_n_s32(0);
    int8_t *to = (int8_t *)whole;
    for (int64_t j = 0; j < size; j += 16, to += 32) {
        int16x8_t two[2];
        WIDE_EACH(i, 2)
        {
            const float *at = x + j + 8 * i;
            const int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(at), by));
            const int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(at + 4), by));
            sum = vaddq_s32(sum, vaddq_s32(a, b));
            two[i] = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
        }
        /* Rounding the high byte (adding 128) makes up for the sign of the low byte, whose values
         * from 128 on are read as 256 less. */
        vst1q_s8(to, vcombine_s8(vrshrn_n_s16(two[0], 8), vrshrn_n_s16(two[1], 8)));
        vst1q_s8(to + 16, vcombine_s8(vmovn_s16(two[0]), vmovn_s16(two[1])));
    }
    *step = largest / most;
    *share = (float)vaddvq_s32(sum) / 4;
    return true;
}

/* Enables SDOT in the assembler. An .arch directive would also disable the compiler's own options,
 * so if the compiler targets an architecture that has SDOT as an extension, that extension is added
 * instead. */
#if defined(__ARM_FEATURE_DOTPROD) || defined(__ARM_FEATURE_SVE) || defined(__ARM_FEATURE_COMPLEX)
#define WITH_SDOT ".arch_extension dotprod\n\t"
#else
#define WITH_SDOT ".arch armv8.2-a+dotprod\n\t"
#endif

/* Adds dot products of neighbours to sum. */
WIDE_INLINE int32x4_t dot_of(int32x4_t sum, int8x16_t a, int8x16_t b, bool dots)
{
    if (dots)
        __asm__(WITH_SDOT "sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
    else
        sum = vpadalq_s16(vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b))),
                          vmull_high_s8(a, b));
    return sum;
}

/* Computes the sums of a block; the arguments are those of group_of. */
WIDE_INLINE void block_sums(const product *p, const uint8_t *codes, int64_t row, int64_t at,
                            const int16_t *x, int form, int k, int n, int32x4_t sums[][WIDE_SUMS])
{
    const bool nibbles = form & NIBBLES, dots = form & DOTS;
    const int64_t bytes = nibbles ? p->block / 2 : p->block;
    const uint8x16_t half = vdupq_n_u8(15);
    int32x4_t high[WIDE_SUMS][WIDE_SUMS], low[WIDE_SUMS][WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    high[c][r] = low[c][r] = vdupq_n_s32(0);
    for (int64_t j = 0; j < bytes; j += 16) {
        fetch_ahead(codes, row, k, at + j);
        WIDE_EACH(c, k)
        {
            const uint8x16_t code = vld1q_u8(codes + c * row + at + j);
            const int8x16_t a = vreinterpretq_s8_u8(nibbles ? vandq_u8(code, half) : code);
            const int8x16_t b = vreinterpretq_s8_u8(vshrq_n_u8(code, 4));
            WIDE_EACH(r, n)
            {
                const int8_t *from = (const int8_t *)(x + r * p->ins + j);
                high[c][r] = dot_of(high[c][r], a, vld1q_s8(from), dots);
                low[c][r] = dot_of(low[c][r], a, vld1q_s8(from + 16), dots);
                if (nibbles) {
                    high[c][r] = dot_of(high[c][r], b, vld1q_s8(from + 2 * bytes), dots);
                    low[c][r] = dot_of(low[c][r], b, vld1q_s8(from + 2 * bytes + 16), dots);
                }
            }
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = vaddq_s32(vshlq_n_s32(high[c][r], 8), low[c][r]);
}

static void from_bf16(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(x + i), 16)));
    for (; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(y + i, &bits, sizeof bits);
    }
}

/* Rounds to nearest, ties to even. */
static void to_bf16(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        y[i] = (uint16_t)(x[i] != x[i] ? bits >> 16 | 64 : rounded);
    }
}
