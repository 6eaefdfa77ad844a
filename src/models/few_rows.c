/* few_rows.c -- products of a few rows with codes of 8 and 4 bits, by AVX2: tern_linear_packed is for every processor and device,
 * and a compiler makes twice as many instructions of it. */
#include "models/few_rows.h"
#include "models/wide.h"
#include <string.h>

#ifdef WIDE
typedef struct product {
    float *y;
    const float *x;
    const uint8_t *codes;
    const float *scales, *zeros;
    int64_t rows, outs, ins, groups;
    bool nibbles;
} product;

WIDE_INLINE __m128i eight_at(const uint8_t *codes)
{
    return _mm_loadl_epi64((const __m128i *)codes);
}

/* A group of `size` codes of k rows of the weight, `row` bytes apart, times n rows of x: of 4 bits byte j has element j in its low half and
 * j + size / 2 in the high one. codes and x: at the group's first element. n and k are constants where this is used. */
WIDE_INLINE void group_of(const product *p, const uint8_t *codes, int64_t row, const float *x,
                          const __m256 *zero, int64_t size, int k, int n, __m256 sums[][WIDE_SUMS])
{
    const __m256i low = _mm256_set1_epi32(15);
    if (!p->nibbles) {
        for (int64_t j = 0; j < size; j += 8)
            WIDE_EACH(c, k)
            {
                __m256 w = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight_at(codes + c * row + j)));
                WIDE_EACH(r, n)
                sums[c][r] = _mm256_fmadd_ps(w, _mm256_loadu_ps(x + r * p->ins + j), sums[c][r]);
            }
        return;
    }
    for (int64_t j = 0; j < size / 2; j += 8)
        WIDE_EACH(c, k)
        {
            __m256i code = _mm256_cvtepu8_epi32(eight_at(codes + c * row + j));
            __m256 a = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(code, low)), zero[c]);
            __m256 b = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(code, 4)), zero[c]);
            WIDE_EACH(r, n)
            {
                const float *at = x + r * p->ins + j;
                sums[c][r] = _mm256_fmadd_ps(a, _mm256_loadu_ps(at), sums[c][r]);
                sums[c][r] = _mm256_fmadd_ps(b, _mm256_loadu_ps(at + size / 2), sums[c][r]);
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
        group_of(p, p->codes + (o * p->groups + g) * bytes, p->groups * bytes, x + g * size, zero,
                 size, k, n, group);
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

WIDE static void tiles_of(const product *p, int64_t o)
{
    const int left = p->outs - o < WIDE_SUMS ? (int)(p->outs - o) : WIDE_SUMS;
    WIDE_TILES(tile_of, p, o, left);
}
#endif

bool few_rows_is(const quantize_layer *l, tern_tensor *x, const few_rows *w)
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

tern_tensor *few_rows_linear(const quantize_layer *l, tern_tensor *x, const few_rows *w)
{
#ifdef WIDE
    tern_shape shape = tern_shape_of(x);
    const int64_t rows = tern_numel(x) / l->in;
    tern_tensor *given = tern_contiguous(tern_to_dtype(x, TERN_F32));
    tern_tensor *y = given ? tern_empty(TERN_SHAPE(rows, l->out), TERN_F32, "cpu") : NULL;
    if (!y)
        return NULL;
    const product p = {.y = tern_data(y),
                       .x = tern_data(given),
                       .codes = tern_data(w->codes),
                       .scales = tern_data(w->scales),
                       .zeros = w->zeros ? tern_data(w->zeros) : NULL,
                       .rows = rows,
                       .outs = l->out,
                       .ins = l->in,
                       .groups = tern_size(w->scales, 1),
                       .nibbles = l->type == TERN_QUANTIZE_INT4};
    const int threads = tern_get_num_threads();
    (void)threads;
#pragma omp parallel for num_threads(threads) if (l->out * l->in >= 1 << 18)
    for (int64_t o = 0; o < l->out; o += WIDE_SUMS)
        tiles_of(&p, o);
    shape.dims[shape.ndim - 1] = l->out;
    return tern_to_dtype(tern_view(y, shape), tern_dtype_of(x));
#else
    return tern_linear_packed(x, w->codes, w->scales, w->zeros);
#endif
}
