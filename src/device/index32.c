/* index32.c -- decides which launches use indices of 32 bits. */
#include "device/index32.h"
#include "types_host.h"
#include <string.h>

#include "shapes.h"

int64_t tern_index32_limit = INT64_C(1) << 30;

/* The number of i64 words of structs that are all i64: their sizes may belong to no tensor. For
 * other structs the tensors decide. */
static const uint8_t words_of[TERN_TYPES] = {
#define X(T) [TERN_TYPE_##T] = sizeof(T) / sizeof(int64_t)
    X(tern_gemm_shape), X(tern_columns),      X(tern_conv_shape),
    X(tern_pool_shape), X(tern_sample_shape), X(tern_rotary),
#undef X
};

static bool is_small(int64_t value)
{
    return value < tern_index32_limit && value > -tern_index32_limit;
}

static bool is_small_struct(const tern_arg *arg)
{
    int64_t word;
    for (size_t i = 0; i < words_of[arg->type]; i++) {
        memcpy(&word, (const char *)arg->value.data + i * sizeof word, sizeof word);
        if (!is_small(word))
            return false;
    }
    return true;
}

/* Returns whether a struct's index has at most TERN_ND_LOW dims: kernels with indices of 32 bits
 * take no more (cl_kernels/nd_index.h). */
static bool has_low_dims(const tern_arg *arg)
{
    const void *data = arg->value.data;
    switch (arg->type) {
    case TERN_TYPE_tern_nd_index:
        return ((const tern_nd_index *)data)->ndim <= TERN_ND_LOW;
    case TERN_TYPE_tern_transposition:
        return ((const tern_transposition *)data)->planes.ndim <= TERN_ND_LOW;
    case TERN_TYPE_tern_scatter_shape:
        return ((const tern_scatter_shape *)data)->nd.ndim <= TERN_ND_LOW;
    default:
        return true;
    }
}

bool tern_fits_index32(const tern_arg *args, int n, int64_t count)
{
    bool small = is_small(count);
    for (int i = 0; small && i < n; i++) {
        const tern_arg *a = &args[i];
        if (a->buffer)
            small = a->bytes == 0 || is_small((int64_t)(a->buffer->bytes / a->bytes));
        else if (a->by_reference)
            small = is_small_struct(a) && has_low_dims(a);
        else if (a->type == TERN_TYPE_i64)
            small = is_small(a->value.i64);
    }
    return small;
}

/* Returns whether rows of tensor k begin at multiples of n elements, a power of two. */
static bool begins_at(const tern_nd_index *w, int k, i64 n)
{
    i64 all = w->inner;
    for (int d = 0; d < w->ndim; d++)
        all |= w->stride[k][d];
    return w->rows == 1 || (all & (n - 1)) == 0;
}

/* Sets shift and factor for the division by n = dim[d]: shift is the least with n <= 2^shift, and
 * factor is 2^(31 + shift) / n rounded up, which is below 2^32. For q below 2^31 the quotient
 * q factor / 2^(31 + shift) is less than 1 / n above q / n, so both have the same whole part. */
static void set_quotient(tern_nd_index *w, int d)
{
    u64 n = (u64)w->dim[d];
    u32 shift = 0;
    if (n < 1 || n > INT32_MAX)
        return; /* there are no rows, or the index needs 64 bits */
    while (((u64)1 << shift) < n)
        shift++;
    w->factor[d] = (u32)((((u64)1 << (31 + shift)) + n - 1) / n);
    w->shift[d] = shift;
}

void tern_nd_index_derive(tern_nd_index *w, int n)
{
    w->fours = 0;
    for (int k = 0; k < n; k++)
        w->fours |= (i16)(begins_at(w, k, 4) << k | begins_at(w, k, 8) << (4 + k));
    for (int d = 1; d < w->ndim && d < TERN_ND_LOW; d++)
        set_quotient(w, d);
}
