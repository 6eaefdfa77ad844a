/* compare.c -- PyTorch's assert_close: dtype, shape, and |a - b| <= absolute + relative |b|. */
#include "cases.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* torch.testing.assert_close's defaults: (absolute, relative). */
static const struct {
    double absolute, relative;
} defaults[] = {
    [TERN_F32] = {1e-5, 1.3e-6},  [TERN_F64] = {1e-7, 1e-7}, [TERN_F16] = {1e-5, 1e-3},
    [TERN_BF16] = {1e-5, 1.6e-2}, [TERN_BOOL] = {0, 0},
};

static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    double value = exponent == 31  ? (mantissa ? (double)NAN : (double)INFINITY)
                   : exponent == 0 ? ldexp(mantissa, -24)
                                   : ldexp(mantissa + 1024, exponent - 25);
    return h & 0x8000 ? -value : value;
}

static double bfloat_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Element i of a host's array. */
static long double element(const void *data, tern_dtype dtype, int64_t i)
{
    switch (dtype) {
    case TERN_F32:
        return (long double)((const float *)data)[i];
    case TERN_F64:
        return (long double)((const double *)data)[i];
    case TERN_F16:
        return (long double)half_value(((const uint16_t *)data)[i]);
    case TERN_BF16:
        return (long double)bfloat_value(((const uint16_t *)data)[i]);
    case TERN_I32:
        return (long double)((const int32_t *)data)[i];
    case TERN_I64:
        return (long double)((const int64_t *)data)[i];
    default:
        return (long double)((const uint8_t *)data)[i];
    }
}

static bool is_close(long double a, long double b, double absolute, double relative)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (a == b || isinf(b)) /* a part of infinity is infinity: every number would be close to it */
        return a == b;
    return fabsl(a - b) <= (long double)absolute + (long double)relative * fabsl(b);
}

static void shape_text(tern_shape shape, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < shape.ndim && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "",
                                 (long long)shape.dims[i]);
}

bool parity_close_to(const tern_tensor *x, const parity_file *file, const case_result *result,
                     char *text, size_t size)
{
    const stored_tensor *expected = &file->tensor[result->tensor];
    tern_shape shape = tern_shape_of(x), wanted = expected->shape;
    tern_dtype dtype = tern_dtype_of(x);
    bool same = shape.ndim == wanted.ndim &&
                memcmp(shape.dims, wanted.dims, sizeof *shape.dims * (size_t)shape.ndim) == 0;
    if (!same || dtype != expected->dtype) {
        char mine[128], theirs[128];
        shape_text(shape, mine, sizeof mine);
        shape_text(wanted, theirs, sizeof theirs);
        snprintf(text, size, "%s (%s), expected %s (%s)", tern_dtype_name(dtype), mine,
                 tern_dtype_name(expected->dtype), theirs);
        return false;
    }
    double absolute = fmax(file->tolerance[dtype].absolute, defaults[dtype].absolute);
    absolute = fmax(absolute, 2 * result->rounding);
    double relative = fmax(file->tolerance[dtype].relative, defaults[dtype].relative);
    size_t bytes = (size_t)expected->count * tern_dtype_size(dtype);
    unsigned char *data = malloc(2 * bytes + 1), *golden = data + bytes;
    if (!data)
        abort();
    bool close = bytes == 0 || tern_copy_to_host(x, (void *)data, bytes) == TERN_OK;
    if (!close)
        snprintf(text, size, "%s", tern_last_error());
    for (size_t byte = 0, n = (size_t)expected->count; byte < tern_dtype_size(dtype); byte++)
        for (size_t i = 0; i < n; i++)
            golden[i * tern_dtype_size(dtype) + byte] = expected->data[byte * n + i];
    for (int64_t i = 0; close && i < expected->count; i++) {
        long double a = element(data, dtype, i), b = element(golden, dtype, i);
        close = is_close(a, b, absolute, relative);
        if (!close)
            snprintf(text, size, "element %lld of %lld is %.9Lg, expected %.9Lg", (long long)i,
                     (long long)expected->count, a, b);
    }
    free(data);
    return close;
}
