/* index32.c -- which launches take indices of 32 bits. */
#include "device/index32.h"
#include "types_host.h"
#include <string.h>

#include "shapes.h"

int64_t tern_index32_limit = INT64_C(1) << 30;

/* Structs that are all of i64, sizes that may be of no tensor. Of the others the tensors tell. */
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

bool tern_fits_index32(const tern_arg *args, int n, int64_t count)
{
    bool small = is_small(count);
    for (int i = 0; small && i < n; i++) {
        const tern_arg *a = &args[i];
        if (a->buffer)
            small = a->bytes == 0 || is_small((int64_t)(a->buffer->bytes / a->bytes));
        else if (a->by_reference)
            small = is_small_struct(a);
        else if (a->type == TERN_TYPE_i64)
            small = is_small(a->value.i64);
    }
    return small;
}
