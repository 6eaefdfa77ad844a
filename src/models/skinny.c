/* skinny.c -- products of a few rows with codes of 8 and 4 bits, by AVX2 or NEON.
 * tern_linear_packed supports every processor and device but needs twice as many instructions.
 * bfloat16 rows are multiplied as int16, in steps of the largest of their block, with half of the
 * instructions again: the int16 have 15 binary digits where bfloat16 has 8. */
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
    /* x as integers in blocks of `block` elements, or NULLs: steps are the factors of the blocks,
     * and shares the parts of a block's sum that each vector lane accumulates. */
    int64_t block;
    int16_t *whole;
    float *steps, *shares;
} product;

/* Prefetch distance in rows of codes; hardware prefetches the next tiles' codes too late. */
enum { AHEAD = 2 };
enum { NIBBLES = 1, DOTS = 2 }; /* codes of 4 bits; instructions for dot products of bytes */
#ifdef __aarch64__
#include "models/skinny_neon.h"
#else
#include "models/skinny_avx2.h"
#endif

/* Computes outputs o .. o + k of rows from .. from + n of x. */
WIDE_INLINE void tile_of(const product *p, int64_t o, int k, int64_t from, int n)
{
    const int64_t size = p->ins / p->groups, bytes = p->nibbles ? size / 2 : size;
    const float *x = p->x + from * p->ins;
    wide_f32 sums[WIDE_SUMS][WIDE_SUMS], group[WIDE_SUMS][WIDE_SUMS], zero[WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = wide_all(0);
    for (int64_t g = 0; g < p->groups; g++) {
        WIDE_EACH(c, k)
        {
            zero[c] = wide_all(p->zeros ? p->zeros[(o + c) * p->groups + g] : 8);
            WIDE_EACH(r, n)
            group[c][r] = wide_all(0);
        }
        group_of(p, p->codes + (o * p->groups + g) * bytes, p->groups * bytes, g * bytes,
                 x + g * size, zero, size, k, n, group);
        WIDE_EACH(c, k)
        {
            const wide_f32 scale = wide_all(p->scales[(o + c) * p->groups + g]);
            WIDE_EACH(r, n)
            sums[c][r] = wide_fma(sums[c][r], scale, group[c][r]);
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]);
}

/* Is tile_of for rows of integers. form: a constant of NIBBLES and DOTS. */
WIDE_INLINE void whole_tile(const product *p, int64_t o, int k, int64_t from, int n, int form)
{
    const bool nibbles = form & NIBBLES;
    const int64_t blocks = p->ins / p->block, row = nibbles ? p->ins / 2 : p->ins;
    const uint8_t *codes = p->codes + o * row;
    wide_f32 sums[WIDE_SUMS][WIDE_SUMS];
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    sums[c][r] = wide_all(0);
    for (int64_t g = 0; g < blocks; g++) {
        wide_i32 block[WIDE_SUMS][WIDE_SUMS];
        block_sums(p, codes, row, g * row / blocks, p->whole + from * p->ins + g * p->block, form,
                   k, n, block);
        WIDE_EACH(c, k)
        {
            const int64_t group = (o + c) * blocks + g;
            const float zero = !nibbles ? 0 : p->zeros ? p->zeros[group] : 8;
            WIDE_EACH(r, n)
            {
                const int64_t at = (from + r) * blocks + g;
                wide_f32 step = wide_all(p->steps[at]), y = wide_of_i32(block[c][r]);
                if (nibbles) {
                    step *= wide_all(p->scales[group]);
                    y = wide_fms(y, wide_all(zero), wide_all(p->shares[at]));
                }
                sums[c][r] = wide_fma(sums[c][r], step, y);
            }
        }
    }
    WIDE_EACH(c, k)
    WIDE_EACH(r, n)
    p->y[(from + r) * p->outs + o + c] = wide_sum(sums[c][r]) * (nibbles ? 1 : p->scales[o + c]);
}

#define WHOLE_TILE(NAME, FORM)                                                                     \
    WIDE_INLINE void NAME(const product *p, int64_t o, int k, int64_t from, int n)                 \
    {                                                                                              \
        whole_tile(p, o, k, from, n, FORM);                                                        \
    }
WHOLE_TILE(tile_of_8, 0)
WHOLE_TILE(tile_of_4, NIBBLES)
#ifdef __aarch64__
WHOLE_TILE(dots_of_8, DOTS)
WHOLE_TILE(dots_of_4, NIBBLES | DOTS)
#endif

WIDE static void tiles_of(const product *p, int64_t o)
{
    const int left = p->outs - o < WIDE_SUMS ? (int)(p->outs - o) : WIDE_SUMS;
    if (!p->whole) {
        WIDE_TILES(tile_of, p, o, left);
        return;
    }
#ifdef __aarch64__
    if (tern_cpu_has(TERN_CPU_DOTPROD)) {
        if (p->nibbles)
            WIDE_TILES(dots_of_4, p, o, left);
        else
            WIDE_TILES(dots_of_8, p, o, left);
        return;
    }
#else
    if (p->nibbles && p->rows == 1 && left == WIDE_SUMS) {
        four_outputs(p, o);
        return;
    }
#endif
    if (p->nibbles)
        WIDE_TILES(tile_of_4, p, o, left);
    else
        WIDE_TILES(tile_of_8, p, o, left);
}

/* Returns the number of neighbours of x that share a step, or 0 if no multiple of the vector size
 * fits. */
static int64_t block_of(const product *p)
{
    enum { MOST = 1024 }; /* the sums of so many products stay far below 2^31 */
    int64_t size = p->ins / p->groups;
    if (p->nibbles)
        return size % 32 == 0 && size <= MOST ? size : 0;
    return p->groups > 1 ? 0 : size % 64 == 0 ? 64 : size % 16 == 0 ? 16 : 0;
}

/* Converts x to p's integers, in memory that the caller frees; leaves p->whole NULL if a block's
 * largest value is NaN, at least 1e30 or, unless 0, below 1e-30, or without memory. */
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
    p->shares = scratch ? scratch + blocks : NULL;
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

/* Multiplies rows of bfloat16 into y without float32 tensors; returns false if memory is
 * exhausted. */
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
    (void)l;
    return tern_linear_packed(x, w->codes, w->scales, w->zeros);
#endif
}
