/* skinny_avx2.h -- the tiles of skinny.c by AVX2. */
WIDE_INLINE void fetch_ahead(const uint8_t *codes, int64_t row, int k, int64_t at)
{
    _mm_prefetch((const char *)codes + k * (AHEAD * row + at), _MM_HINT_T0);
}

WIDE_INLINE __m128i eight_at(const uint8_t *codes)
{
    return _mm_loadl_epi64((const __m128i *)codes);
}

/* Multiplies a group of `size` codes of k rows of the weight, `row` bytes apart, with n rows of x.
 * With 4 bits, byte j holds element j in its low half and element j + size / 2 in the high half.
 * codes and x point to the group's first element, `at` bytes after the start of the row of codes. n
 * and k are constants at every call. */
WIDE_INLINE void group_of(const product *p, const uint8_t *codes, int64_t row, int64_t at,
                          const float *x, const __m256 *zero, int64_t size, int k, int n,
                          __m256 sums[][WIDE_SUMS])
{
    const __m256i low = _mm256_set1_epi32(15);
    if (!p->nibbles) {
        for (int64_t j = 0; j < size; j += 8) {
            fetch_ahead(codes - at, row, k, at + j);
            WIDE_EACH(c, k)
            {
                __m256 w = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight_at(codes + c * row + j)));
                WIDE_EACH(r, n)
                sums[c][r] = _mm256_fmadd_ps(w, _mm256_loadu_ps(x + r * p->ins + j), sums[c][r]);
            }
        }
        return;
    }
    for (int64_t j = 0; j < size / 2; j += 8) {
        fetch_ahead(codes - at, row, k, at + j);
        WIDE_EACH(c, k)
        {
            __m256i code = _mm256_cvtepu8_epi32(eight_at(codes + c * row + j));
            __m256 a = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(code, low)), zero[c]);
            __m256 b = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(code, 4)), zero[c]);
            WIDE_EACH(r, n)
            {
                const float *from = x + r * p->ins + j;
                sums[c][r] = _mm256_fmadd_ps(a, _mm256_loadu_ps(from), sums[c][r]);
                sums[c][r] = _mm256_fmadd_ps(b, _mm256_loadu_ps(from + size / 2), sums[c][r]);
            }
        }
    }
}

/* ---- rows of bfloat16 ------------------------------------------------------------------------ */

/* Converts a block of x to integers; returns false if a value is not finite or too large, or if the
 * largest is nearly 0. */
WIDE static bool round_block(const float *x, int64_t size, int16_t *whole, float *step,
                             float *share)
{
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 most = _mm256_setzero_ps();
    for (int64_t j = 0; j < size; j += 8) /* compared as integers, because a NaN is then the
                                             largest */
        most = _mm256_castsi256_ps(_mm256_max_epu32(
            _mm256_castps_si256(most),
            _mm256_castps_si256(_mm256_and_ps(_mm256_loadu_ps(x + j), magnitude))));
    float lanes[8], largest = 0;
    _mm256_storeu_ps(lanes, most);
    for (int i = 0; i < 8; i++) {
        if (!(lanes[i] < 1e30f))
            return false;
        largest = lanes[i] > largest ? lanes[i] : largest;
    }
    if (largest < 1e-30f && largest > 0)
        return false;
    const __m256 by = _mm256_set1_ps(largest > 0 ? 32767 / largest : 0);
    __m256i sum = _mm256_setzero_si256();
    for (int64_t j = 0; j < size; j += 16) {
        __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + j), by));
        __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + j + 8), by));
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(a, b));
        _mm256_storeu_si256((__m256i *)(whole + j),
                            _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xd8));
    }
    *step = largest / 32767;
    *share = wide_sum(_mm256_cvtepi32_ps(sum)) / 8;
    return true;
}

WIDE_INLINE __m256i sixteen_at(const uint8_t *codes, bool nibbles)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)codes);
    return nibbles ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}

/* Computes the sums of a block; the arguments are those of group_of. */
WIDE_INLINE void block_sums(const product *p, const uint8_t *codes, int64_t row, int64_t at,
                            const int16_t *x, int form, int k, int n, __m256i sums[][WIDE_SUMS])
{
    const bool nibbles = form & NIBBLES;
    const int64_t bytes = nibbles ? p->block / 2 : p->block;
    const __m256i low = _mm256_set1_epi16(15);
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = _mm256_setzero_si256();
    for (int64_t j = 0; j < bytes; j += 16) {
        fetch_ahead(codes, row, k, at + j);
        WIDE_EACH(c, k)
        {
            const __m256i code = sixteen_at(codes + c * row + at + j, nibbles);
            const __m256i a = nibbles ? _mm256_and_si256(code, low) : code;
            const __m256i b = nibbles ? _mm256_srli_epi16(code, 4) : code;
            WIDE_EACH(r, n)
            {
                const int16_t *from = x + r * p->ins + j;
                __m256i y = _mm256_madd_epi16(a, _mm256_loadu_si256((const __m256i *)from));
                if (nibbles)
                    y = _mm256_add_epi32(
                        y,
                        _mm256_madd_epi16(b, _mm256_loadu_si256((const __m256i *)(from + bytes))));
                sums[c][r] = _mm256_add_epi32(sums[c][r], y);
            }
        }
    }
}

/* ---- four outputs of one row of integers with codes of 4 bits -------------------------------- */

enum { CHUNK = 32 }; /* number of blocks whose factors are computed together */

/* Computes the factors of n blocks of four outputs, starting with block `group`, and subtracts
 * their zeros from the sums. */
WIDE static void factors_of(const product *p, int64_t group, int64_t at, int64_t n,
                            float by[WIDE_SUMS][CHUNK], __m256 sums[WIDE_SUMS])
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 eight = _mm256_set1_ps(8);
    const int64_t later = AHEAD * WIDE_SUMS * p->groups;
    for (int64_t g = 0; g < n; g += 8) {
        const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n - g)), lanes);
        const __m256 step = _mm256_maskload_ps(p->steps + at + g, there);
        const __m256 sum = _mm256_mul_ps(_mm256_maskload_ps(p->shares + at + g, there), eight);
        for (int c = 0; c < WIDE_SUMS; c++) {
            const int64_t from = group + c * p->groups + g;
            _mm_prefetch((const char *)(p->scales + from + later), _MM_HINT_T0);
            if (p->zeros)
                _mm_prefetch((const char *)(p->zeros + from + later), _MM_HINT_T0);
            const __m256 zero = p->zeros ? _mm256_maskload_ps(p->zeros + from, there) : eight;
            const __m256 all = _mm256_mul_ps(step, _mm256_maskload_ps(p->scales + from, there));
            _mm256_storeu_ps(by[c] + g, all);
            sums[c] = _mm256_fnmadd_ps(all, _mm256_mul_ps(zero, sum), sums[c]);
        }
    }
}

/* Forces the sums to be computed one after the other: a compiler that computes all products first
 * runs out of registers. */
#define IN_TURN(SUM) __asm__("" : "+x"(SUM))

/* Adds up n blocks of `bytes`, mostly a constant at the call; ahead: address to prefetch. */
WIDE_INLINE void sum_blocks(const uint8_t *codes, int64_t row, const int16_t *x, int64_t n,
                            int64_t bytes, const uint8_t *ahead, float by[WIDE_SUMS][CHUNK],
                            __m256 sums[WIDE_SUMS])
{
    const __m256i low = _mm256_set1_epi16(15);
    __m256 all[WIDE_SUMS];
    WIDE_EACH(c, WIDE_SUMS)
    all[c] = sums[c];
    for (int64_t g = 0; g < n; g++, x += bytes) {
        __m256i block[WIDE_SUMS];
        WIDE_EACH(c, WIDE_SUMS)
        block[c] = _mm256_setzero_si256();
#pragma GCC unroll 4
        for (int64_t j = 0; j < bytes; j += 16, codes += 16, x += 16, ahead += 64) {
            const __m256i a = _mm256_loadu_si256((const __m256i *)x);
            const __m256i b = _mm256_loadu_si256((const __m256i *)(x + bytes));
            _mm_prefetch((const char *)ahead, _MM_HINT_T0);
            WIDE_EACH(c, WIDE_SUMS)
            {
                const __m256i code = sixteen_at(codes + c * row, true);
                const __m256i y = _mm256_madd_epi16(_mm256_and_si256(code, low), a);
                const __m256i z = _mm256_madd_epi16(_mm256_srli_epi16(code, 4), b);
                block[c] = _mm256_add_epi32(block[c], _mm256_add_epi32(y, z));
                IN_TURN(block[c]);
            }
        }
        WIDE_EACH(c, WIDE_SUMS)
        all[c] =
            _mm256_fmadd_ps(_mm256_broadcast_ss(by[c] + g), _mm256_cvtepi32_ps(block[c]), all[c]);
    }
    WIDE_EACH(c, WIDE_SUMS)
    sums[c] = all[c];
}

WIDE static void four_outputs(const product *p, int64_t o)
{
    const int64_t row = p->ins / 2, bytes = p->block / 2;
    const uint8_t *codes = p->codes + o * row;
    __m256 sums[WIDE_SUMS];
    float by[WIDE_SUMS][CHUNK];
    WIDE_EACH(c, WIDE_SUMS)
    sums[c] = _mm256_setzero_ps();
    for (int64_t g = 0; g < p->groups; g += CHUNK) {
        const int64_t n = p->groups - g < CHUNK ? p->groups - g : CHUNK;
        const uint8_t *from = codes + g * bytes;
        const uint8_t *ahead = codes + WIDE_SUMS * (AHEAD * row + g * bytes);
        factors_of(p, o * p->groups + g, g, n, by, sums);
        if (bytes == 32)
            sum_blocks(from, row, p->whole + g * 64, n, 32, ahead, by, sums);
        else if (bytes == 64)
            sum_blocks(from, row, p->whole + g * 128, n, 64, ahead, by, sums);
        else
            sum_blocks(from, row, p->whole + g * p->block, n, bytes, ahead, by, sums);
    }
    WIDE_EACH(c, WIDE_SUMS)
    p->y[o + c] = wide_sum(sums[c]);
}

WIDE static void from_bf16(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256i bits = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(x + i)));
        _mm256_storeu_si256((__m256i *)(y + i), _mm256_slli_epi32(bits, 16));
    }
    for (; i < n; i++) {
        const uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(y + i, &bits, sizeof bits);
    }
}

/* Rounds to nearest, ties to even. */
WIDE static void to_bf16(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 value = _mm256_loadu_ps(x + i);
        const __m256i bits = _mm256_castps_si256(value), high = _mm256_srli_epi32(bits, 16);
        const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        const __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
        const __m256i nan = _mm256_or_si256(high, _mm256_set1_epi32(64));
        const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
        const __m256i all = _mm256_blendv_epi8(_mm256_srli_epi32(up, 16), nan, is_nan);
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(all, all), 0x08);
        _mm_storeu_si128((__m128i *)(y + i), _mm256_castsi256_si128(packed));
    }
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        y[i] = (uint16_t)(x[i] != x[i] ? bits >> 16 | 64 : rounded);
    }
}
