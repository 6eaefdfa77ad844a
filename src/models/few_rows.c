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

WIDE static inline __m128i eight_at(const uint8_t *codes)
{
    return _mm_loadl_epi64((const __m128i *)codes);
}

/* One group of `size` codes of a row: of 4 bits byte j has element j in its low half and j + size / 2 in the high one. x: at the
 * group's first element. n is a constant where this is used. */
WIDE static inline void group_of(const product *p, const uint8_t *codes, const float *x,
                                 __m256 zero, int64_t size, int n, __m256 sums[4])
{
    const __m256i low = _mm256_set1_epi32(15);
    if (!p->nibbles) {
        for (int64_t j = 0; j < size; j += 8) {
            __m256 w = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight_at(codes + j)));
            for (int r = 0; r < n; r++)
                sums[r] = _mm256_fmadd_ps(w, _mm256_loadu_ps(x + r * p->ins + j), sums[r]);
        }
        return;
    }
    for (int64_t j = 0; j < size / 2; j += 8) {
        __m256i code = _mm256_cvtepu8_epi32(eight_at(codes + j));
        __m256 a = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_and_si256(code, low)), zero);
        __m256 b = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(code, 4)), zero);
        for (int r = 0; r < n; r++) {
            const float *at = x + r * p->ins + j;
            sums[r] = _mm256_fmadd_ps(a, _mm256_loadu_ps(at), sums[r]);
            sums[r] = _mm256_fmadd_ps(b, _mm256_loadu_ps(at + size / 2), sums[r]);
        }
    }
}

WIDE static inline void row_of(const product *p, int64_t o, int64_t from, int n)
{
    const int64_t size = p->ins / p->groups, bytes = p->nibbles ? size / 2 : size;
    const uint8_t *codes = p->codes + o * p->groups * bytes;
    const float *x = p->x + from * p->ins;
    __m256 sums[4];
    for (int r = 0; r < n; r++)
        sums[r] = _mm256_setzero_ps();
    for (int64_t g = 0; g < p->groups; g++) {
        __m256 zero = p->zeros ? _mm256_set1_ps(p->zeros[o * p->groups + g]) : _mm256_set1_ps(8);
        __m256 scale = _mm256_set1_ps(p->scales[o * p->groups + g]), group[4];
        for (int r = 0; r < n; r++)
            group[r] = _mm256_setzero_ps();
        group_of(p, codes + g * bytes, x + g * size, zero, size, n, group);
        for (int r = 0; r < n; r++)
            sums[r] = _mm256_fmadd_ps(scale, group[r], sums[r]);
    }
    for (int r = 0; r < n; r++)
        p->y[(from + r) * p->outs + o] = wide_sum(sums[r]);
}

WIDE static void rows_of(const product *p, int64_t o)
{
    WIDE_ROWS(row_of, p, o);
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
    for (int64_t o = 0; o < l->out; o++)
        rows_of(&p, o);
    shape.dims[shape.ndim - 1] = l->out;
    return tern_to_dtype(tern_view(y, shape), tern_dtype_of(x));
#else
    return tern_linear_packed(x, w->codes, w->scales, w->zeros);
#endif
}
