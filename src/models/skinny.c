/* skinny.c -- products of a few rows with codes of 8 and 4 bits, by AVX2 or NEON:
 * tern_linear_packed is for every processor and device, and a compiler makes twice as many
 * instructions of it. Rows of bfloat16 are multiplied as integers of 16 bits, steps of their
 * neighbours' largest, in half of the instructions again: of that one they have 15 digits where
 * bfloat16 has 8. */
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
    bool dots; /* of bytes, by one instruction */
    /* x in blocks of so many: integers, and for each block what they are multiplied by and the part
     * of their sum that each lane of a vector adds up to; or NULLs. */
    int64_t block;
    int16_t *whole;
    float *steps, *shares;
} product;

enum { AHEAD = 2 }; /* rows of codes, of which processors do not find the next tiles' in time */
#ifdef __aarch64__
#include "models/skinny_neon.h"
#else
#include "models/skinny_avx2.h"
#endif

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
                 .nibbles = l->type == TERN_QUANTIZE_INT4,
                 .dots = tern_cpu_has(TERN_CPU_DOTPROD)};
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
