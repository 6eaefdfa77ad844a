/* read.c -- elements back to the host. */
#include "tensor/tensor.h"
#include <math.h>
#include <string.h>
#include <tern/ops/copy.h>

tern_status tern_copy_to_host(const tern_tensor *x, void *data, size_t bytes)
{
    if (!x || (!data && x->numel))
        return tern_fail_argument_null("tern_copy_to_host", x ? "data" : "x");
    size_t own = (size_t)x->numel * tern_dtype_size(x->dtype);
    if (bytes != own)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_copy_to_host: a %s tensor of shape %s has %zu bytes, not %zu",
                         tern_dtype_name(x->dtype), TERN_TENSOR_TEXT(x), own, bytes);
    if (own == 0)
        return TERN_OK;
    if (x->contiguous)
        return tern_block_read(x->storage->block, (size_t)x->offset * tern_dtype_size(x->dtype),
                               data, bytes);
    tern_shape shape = tern_shape_of(x);
    tern_tensor *dense = tern_tensor_new(&shape, x->dtype, x->storage->place, "tern_copy_to_host");
    if (!dense)
        return tern_last_status();
    tern_status status = tern_hook_copy(dense, x);
    if (status == TERN_OK)
        status = tern_block_read(dense->storage->block, 0, data, bytes);
    tern_release(dense);
    return status;
}

static float from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    float v = exponent == 31 ? (mantissa ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
                             : ldexpf((float)mantissa, -24);
    return h & 0x8000 ? -v : v;
}

tern_scalar tern_element(const void *data, tern_dtype dtype, int64_t i)
{
    const char *p = (const char *)data + (size_t)i * tern_dtype_size(dtype);
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
        uint16_t u16;
        uint8_t u8;
        uint32_t bits;
    } v;
    memcpy(&v, p, tern_dtype_size(dtype));
    switch (dtype) {
    case TERN_F32:
        return tern_scalar_real((double)v.f32);
    case TERN_F64:
        return tern_scalar_real(v.f64);
    case TERN_F16:
        return tern_scalar_real((double)from_f16(v.u16));
    case TERN_BF16:
        v.bits = (uint32_t)v.u16 << 16;
        return tern_scalar_real((double)v.f32);
    case TERN_I32:
        return tern_scalar_int(v.i32);
    case TERN_I64:
        return tern_scalar_int(v.i64);
    case TERN_U8:
        return tern_scalar_int(v.u8);
    default:
        return tern_scalar_bool(v.u8 != 0);
    }
}

static bool one(const tern_tensor *x, const char *function, tern_scalar *value)
{
    char bytes[8];
    if (!x) {
        tern_fail_argument_null(function, "x");
        return false;
    }
    if (x->numel != 1) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: only one element tensors can be converted to scalars (shape %s)", function,
                  TERN_TENSOR_TEXT(x));
        return false;
    }
    size_t size = tern_dtype_size(x->dtype);
    if (tern_block_read(x->storage->block, (size_t)x->offset * size, bytes, size) != TERN_OK)
        return false;
    *value = tern_element(bytes, x->dtype, 0);
    return true;
}

double tern_item(const tern_tensor *x)
{
    tern_scalar value;
    return one(x, "tern_item", &value) ? tern_scalar_to_real(value) : NAN;
}

int64_t tern_item_int(const tern_tensor *x)
{
    tern_scalar value;
    return one(x, "tern_item_int", &value) ? tern_scalar_to_int(value) : 0;
}
