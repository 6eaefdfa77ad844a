/* skinny.c -- products of a few rows with codes of 8 and 4 bits, by AVX2: tern_linear_packed is for
 * every processor and device, and a compiler makes twice as many instructions of it. Rows of
 * bfloat16 are multiplied as integers of 16 bits, steps of their neighbours' largest, in half of
 * the instructions again: of that one they have 15 digits where bfloat16 has 8. */
#include "models/skinny.h"
#include "models/wide.h"
#include <stdlib.h>
#include <string.h>

#ifdef WIDE
typedef struct product {
    float *y;
    const float *x;
    const uint8_t *codes;
    const float *scales, *zeros;
    int64_t rows, outs, ins, groups;
    bool nibbles;
    /* x in blocks of so many: integers, and for each block what they are multiplied by and an
     * eighth of their sum; or NULLs. */
    int64_t block;
    int16_t *whole;
    float *steps, *eighths;
} product;

/* Rows of codes are behind each other, and those of the tiles to come wanted in time: processors do
 * not find them in time. */
enum { AHEAD = 2 };
WIDE_INLINE void fetch_ahead(const uint8_t *codes, int64_t row, int k, int64_t at)
{
    _mm_prefetch((const char *)codes + k * (AHEAD * row + at), _MM_HINT_T0);
}

WIDE_INLINE __m128i eight_at(const uint8_t *codes)
{
    return _mm_loadl_epi64((const __m128i *)codes);
}

/* A group of `size` codes of k rows of the weight, `row` bytes apart, times n rows of x: of 4 bits
 * byte j has element j in its low half and j + size / 2 in the high one. codes and x: at the
 * group's first element, the former `at` from its row's. n and k are constants where this is
 * used. */
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

/* Outputs o .. o + k of rows from .. from + n of x. */
WIDE_INLINE void tile_of(const product *p, int64_t o, int k, int64_t from, int n)
{
    const int64_t size = p->ins / p->groups, bytes = p->nibbles ? size / 2 : size;
    const float *x = p->x + from * p->ins;
    __m256 sums[WIDE_SUMS][WIDE_SUMS], group[WIDE_SUMS][WIDE_SUMS], zero[WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = _mm256_setzero_ps();
    for (int64_t g = 0; g < p->groups; g++) {
        WIDE_EACH(c, k)
        {
            zero[c] = _mm256_set1_ps(p->zeros ? p->zeros[(o + c) * p->groups + g] : 8);
            WIDE_EACH(r, n)
            group[c][r] = _mm256_setzero_ps();
        }
        group_of(p, p->codes + (o * p->groups + g) * bytes, p->groups * bytes, g * bytes,
                 x + g * size, zero, size, k, n, group);
        WIDE_EACH(c, k)
        {
            __m256 scale = _mm256_set1_ps(p->scales[(o + c) * p->groups + g]);
            WIDE_EACH(r, n)
            sums[c][r] = _mm256_fmadd_ps(scale, group[c][r], sums[c][r]);
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]);
}

/* ---- rows of bfloat16 ------------------------------------------------------------------------ */

/* Neighbours of x that share a step; 0 where no number of whole vectors does. */
static int64_t block_of(const product *p)
{
    enum { MOST = 1024 }; /* whose sums are far from 2^31 */
    int64_t size = p->ins / p->groups;
    if (p->nibbles)
        return size % 32 == 0 && size <= MOST ? size : 0;
    return p->groups > 1 ? 0 : size % 64 == 0 ? 64 : size % 16 == 0 ? 16 : 0;
}

/* One block of x; false for one that is not finite, or whose largest is next to nothing. */
WIDE static bool round_block(const float *x, int64_t size, int16_t *whole, float *step,
                             float *eighth)
{
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    __m256 most = _mm256_setzero_ps();
    for (int64_t j = 0; j < size; j += 8) /* as integers, of which those of NaN are the largest */
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
    *eighth = wide_sum(_mm256_cvtepi32_ps(sum)) / 8;
    return true;
}

WIDE_INLINE __m256i sixteen_at(const uint8_t *codes, bool nibbles)
{
    const __m128i bytes = _mm_loadu_si128((const __m128i *)codes);
    return nibbles ? _mm256_cvtepu8_epi16(bytes) : _mm256_cvtepi8_epi16(bytes);
}

/* sums of a block, as group_of. */
WIDE_INLINE void block_sums(const product *p, const uint8_t *codes, int64_t row, int64_t at,
                            const int16_t *x, bool nibbles, int k, int n, __m256i sums[][WIDE_SUMS])
{
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

/* tile_of for rows of integers. */
WIDE_INLINE void whole_tile(const product *p, int64_t o, int k, int64_t from, int n, bool nibbles)
{
    const int64_t blocks = p->ins / p->block, row = nibbles ? p->ins / 2 : p->ins;
    const uint8_t *codes = p->codes + o * row;
    __m256 sums[WIDE_SUMS][WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = _mm256_setzero_ps();
    for (int64_t g = 0; g < blocks; g++) {
        __m256i block[WIDE_SUMS][WIDE_SUMS];
        block_sums(p, codes, row, g * row / blocks, p->whole + from * p->ins + g * p->block,
                   nibbles, k, n, block);
        WIDE_EACH(c, k)
        {
            const int64_t group = (o + c) * blocks + g;
            const float zero = !nibbles ? 0 : p->zeros ? p->zeros[group] : 8;
            WIDE_EACH(r, n)
            {
                const int64_t at = (from + r) * blocks + g;
                const __m256 step = _mm256_set1_ps(p->steps[at]);
                __m256 y = _mm256_cvtepi32_ps(block[c][r]);
                if (nibbles)
                    y = _mm256_fnmadd_ps(_mm256_set1_ps(zero), _mm256_set1_ps(p->eighths[at]), y);
                sums[c][r] = _mm256_fmadd_ps(
                    nibbles ? _mm256_mul_ps(step, _mm256_set1_ps(p->scales[group])) : step, y,
                    sums[c][r]);
            }
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]) * (nibbles ? 1 : p->scales[o + c]);
}

WIDE_INLINE void tile_of_8(const product *p, int64_t o, int k, int64_t from, int n)
{
    whole_tile(p, o, k, from, n, false);
}

WIDE_INLINE void tile_of_4(const product *p, int64_t o, int k, int64_t from, int n)
{
    whole_tile(p, o, k, from, n, true);
}

/* ---- four outputs of one row of integers with codes of 4 bits -------------------------------- */

enum { CHUNK = 32 }; /* blocks, of which is known at once what they are multiplied by */

/* What n blocks of four outputs are multiplied by, groups being that of the first; their zeros are
 * taken from the sums. */
WIDE static void factors_of(const product *p, int64_t group, int64_t at, int64_t n,
                            float by[WIDE_SUMS][CHUNK], __m256 sums[WIDE_SUMS])
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256 eight = _mm256_set1_ps(8);
    const int64_t later = AHEAD * WIDE_SUMS * p->groups;
    for (int64_t g = 0; g < n; g += 8) {
        const __m256i there = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(n - g)), lanes);
        const __m256 step = _mm256_maskload_ps(p->steps + at + g, there);
        const __m256 sum = _mm256_mul_ps(_mm256_maskload_ps(p->eighths + at + g, there), eight);
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

/* Sums are taken one after the other: a compiler that makes all products first has no registers for
 * them. */
#define IN_TURN(SUM) __asm__("" : "+x"(SUM))

/* n blocks of `bytes`, a constant where this is used for many; ahead: what is wanted next. */
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

/* Makes p's integers, in memory that the caller frees; without them where they would not do. */
static void round_rows(product *p)
{
    const int64_t size = block_of(p), blocks = size ? p->rows * p->ins / size : 0;
    if (!size)
        return;
    float *scratch = malloc((size_t)blocks * 2 * sizeof *scratch + (size_t)(p->rows * p->ins) * 2);
    int16_t *whole = scratch ? (int16_t *)(void *)(scratch + 2 * blocks) : NULL;
    for (int64_t b = 0; scratch && b < blocks; b++)
        if (!round_block(p->x + b * size, size, whole + b * size, scratch + b,
                         scratch + blocks + b)) {
            free(scratch);
            return;
        }
    p->block = size;
    p->whole = whole;
    p->steps = scratch;
    p->eighths = scratch ? scratch + blocks : NULL;
}

WIDE static void tiles_of(const product *p, int64_t o)
{
    const int left = p->outs - o < WIDE_SUMS ? (int)(p->outs - o) : WIDE_SUMS;
    if (p->whole && p->nibbles && p->rows == 1 && left == WIDE_SUMS)
        four_outputs(p, o);
    else if (!p->whole)
        WIDE_TILES(tile_of, p, o, left);
    else if (p->nibbles)
        WIDE_TILES(tile_of_4, p, o, left);
    else
        WIDE_TILES(tile_of_8, p, o, left);
}
#endif

bool skinny_takes(const quantize_layer *l, tern_tensor *x, const skinny *w)
{
#ifdef WIDE
    const bool nibbles = l->type == TERN_QUANTIZE_INT4;
    if (!w->codes || !w->scales || !tern_is_contiguous(w->codes) ||
        !tern_is_contiguous(w->scales) ||
        (w->zeros && (!tern_is_contiguous(w->zeros) || tern_dtype_of(w->zeros) != TERN_F32)) ||
        tern_dtype_of(w->scales) != TERN_F32 ||
        tern_dtype_of(w->codes) != (nibbles ? TERN_U8 : TERN_I8) || tern_is_capturing())
        return false;
    const int64_t groups = tern_size(w->scales, 1);
    return strcmp(tern_device(w->codes), "cpu") == 0 && strcmp(tern_device(x), "cpu") == 0 &&
           tern_dim(x) > 0 && tern_size(x, -1) == l->in && tern_numel(x) > 0 && groups > 0 &&
           l->in % groups == 0 && l->in / groups % (nibbles ? 16 : 8) == 0 && wide_is_here();
#else
    (void)l, (void)x, (void)w;
    return false;
#endif
}

#ifdef WIDE
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

/* To the nearest, of two the even one. */
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

static void multiply(product *p, bool whole)
{
    const int threads = tern_get_num_threads();
    (void)threads;
    if (whole)
        round_rows(p);
#pragma omp parallel for num_threads(threads) if (p->outs * p->ins >= 1 << 18)
    for (int64_t o = 0; o < p->outs; o += WIDE_SUMS)
        tiles_of(p, o);
    free(p->steps);
}

/* Rows of bfloat16 into y, without tensors of float32 on the way; false: no memory. */
static bool multiply_bf16(product *p, uint16_t *y, const uint16_t *x)
{
    const int64_t given = p->rows * p->ins, made = p->rows * p->outs;
    float *scratch = malloc((size_t)(given + made) * sizeof *scratch);
    if (!scratch)
        return false;
    from_bf16(scratch, x, given);
    p->x = scratch;
    p->y = scratch + given;
    multiply(p, true);
    to_bf16(y, p->y, made);
    free(scratch);
    return true;
}
#endif

tern_tensor *skinny_linear(const quantize_layer *l, tern_tensor *x, const skinny *w)
{
#ifdef WIDE
    const tern_dtype dtype = tern_dtype_of(x);
    const bool direct = dtype == TERN_BF16;
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim - 1] = l->out;
    tern_tensor *given = tern_contiguous(direct ? x : tern_to_dtype(x, TERN_F32));
    tern_tensor *y = given ? tern_empty(shape, direct ? dtype : TERN_F32, "cpu") : NULL;
    if (!y)
        return NULL;
    product p = {.codes = tern_data(w->codes),
                 .scales = tern_data(w->scales),
                 .zeros = w->zeros ? tern_data(w->zeros) : NULL,
                 .rows = tern_numel(x) / l->in,
                 .outs = l->out,
                 .ins = l->in,
                 .groups = tern_size(w->scales, 1),
                 .nibbles = l->type == TERN_QUANTIZE_INT4};
    if (direct)
        return multiply_bf16(&p, tern_data(y), tern_data(given))
                   ? y
                   : tern_fail_null(TERN_ERR_MEMORY, "tern_linear_packed: no memory");
    p.x = tern_data(given);
    p.y = tern_data(y);
    multiply(&p, false);
    return tern_to_dtype(y, dtype);
#else
    return tern_linear_packed(x, w->codes, w->scales, w->zeros);
#endif
}
