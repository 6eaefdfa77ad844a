/* read.c -- copies elements to the host. */
#include "base/strict.h"
#include "device/capture.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include <math.h>
#include <string.h>
#include <tern/ops/copy.h>

/* Copies bytes of x's storage to data. In a recording, an error names the function. */
static tern_status read_bytes(const tern_tensor *x, size_t at, void *data, size_t bytes,
                              const char *function)
{
    tern_block *block = x->storage->block;
    const char **op = &tern_thread.mode.op;
    if (*op || !tern_capture_of(x->storage->place))
        return tern_block_read(block, at, data, bytes);
    *op = function + strlen("tern_");
    tern_status status = tern_block_read(block, at, data, bytes);
    *op = NULL;
    return status;
}

static tern_status copy_to_host(const tern_tensor *x, void *data, size_t bytes,
                                const char *function)
{
    if (!tern_given(x, "tern_copy_to_host", "x"))
        return tern_last_status();
    if (!data && x->numel)
        return tern_fail_argument_null("tern_copy_to_host", "data");
    size_t own = (size_t)x->numel * tern_dtype_size(x->dtype);
    if (bytes != own)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_copy_to_host: a %s tensor of shape %s has %zu bytes, not %zu",
                         tern_dtype_name(x->dtype), TERN_TENSOR_TEXT(x), own, bytes);
    if (own == 0)
        return TERN_OK;
    TERN_TRY(tern_storage_there(x, "tern_copy_to_host"));
    if (x->contiguous)
        return read_bytes(x, (size_t)x->offset * tern_dtype_size(x->dtype), data, bytes, function);
    tern_shape shape = tern_shape_of(x);
    tern_tensor *dense = tern_tensor_new(&shape, x->dtype, x->storage->place, "tern_copy_to_host");
    if (!dense)
        return tern_last_status();
    tern_status status = tern_from_ops->copy(dense, x);
    if (status == TERN_OK)
        status = read_bytes(dense, 0, data, bytes, function);
    tern_release(dense);
    return status;
}

tern_status tern_copy_to_host(const tern_tensor *x, void *data, size_t bytes)
{
    return copy_to_host(x, data, bytes, "tern_copy_to_host");
}

tern_status tern_hidden_read(const tern_tensor *x, void *data, size_t bytes, const char *function)
{
    TERN_TRY(tern_strict_check(function, "waits for values of the device"));
    return copy_to_host(x, data, bytes, function);
}

tern_status tern_copy_to_host_typed(const tern_tensor *x, void *data, tern_elements elements,
                                    size_t bytes)
{
    if (x && !tern_elements_are(elements, x->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_copy_to_host: the tensor is %s, and data points to %s: convert it "
                         "(tern_to_dtype), or pass a void *",
                         tern_dtype_name(x->dtype), tern_elements_name(elements));
    return tern_copy_to_host(x, data, bytes);
}

static float from_f16(uint16_t h)
{
    int exponent = h >> 10 & 31, mantissa = h & 1023;
    float v = exponent == 31 ? (mantissa ? NAN : INFINITY)
              : exponent     ? ldexpf((float)(1024 + mantissa), exponent - 25)
                             : ldexpf((float)mantissa, -24);
    return h & 0x8000 ? -v : v;
}

static float from_bf16(uint16_t h)
{
    union {
        uint32_t bits;
        float value;
    } v = {(uint32_t)h << 16};
    return v.value;
}

static float from_e4m3(uint8_t b)
{
    int exponent = b >> 3 & 15, mantissa = b & 7;
    float v = (b & 127) == 127 ? NAN
              : exponent       ? ldexpf((float)(8 + mantissa), exponent - 10)
                               : ldexpf((float)mantissa, -9);
    return b & 0x80 ? -v : v;
}

/* Element i of each type, by its memory format (CODE) and the kind of its scalar (SCALARS). */
#define FROM_PLAIN(v) (v)
#define FROM_TRUTH(v) ((v) != 0)
#define FROM_F16(v)   from_f16(v)
#define FROM_BF16(v)  from_bf16(v)
#define FROM_E4M3(v)  from_e4m3(v)
#define FROM_E5M2(v)  from_f16((uint16_t)((v) << 8))
#define REAL_(v)      tern_scalar_real((double)(v))
#define INT_(v)       tern_scalar_int((int64_t)(v))
#define BOOL_(v)      tern_scalar_bool(v)
#define SET_SCALARS   (REAL_, REAL_, REAL_, INT_, INT_, BOOL_)
#define ELEMENT(NAME, ROW)                                                                         \
    static tern_scalar NAME(const void *data, int64_t i)                                           \
    {                                                                                              \
        DTYPE_FIELD(STORED, ROW) v;                                                                \
        memcpy(&v, (const char *)data + (size_t)i * sizeof v, sizeof v);                           \
        return DTYPE_IN(SCALARS, ROW)(DTYPE_GLUE_(FROM, DTYPE_FIELD(CODE, ROW))(v));               \
    }
#define X(T) ELEMENT(element_##T, DTYPE_##T)
EACH_DTYPE(X)
#undef X
#define X(T) ELEMENT(element_##T, STORED_##T)
EACH_STORED(X)
#undef X

tern_scalar tern_element(const void *data, tern_dtype dtype, int64_t i)
{
    static tern_scalar (*const elements[TERN_DTYPE_END])(const void *data, int64_t i) = {
#define X(T) [DTYPE_FIELD(ENUM, DTYPE_##T)] = element_##T,
        EACH_DTYPE(X)
#undef X
#define X(T) [DTYPE_FIELD(ENUM, STORED_##T)] = element_##T,
            EACH_STORED(X)
#undef X
    };
    return elements[dtype](data, i);
}

static bool one(const tern_tensor *x, const char *function, tern_scalar *value)
{
    char bytes[8];
    if (!tern_given(x, function, "x"))
        return false;
    if (x->numel != 1) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: only one element tensors can be converted to scalars (shape %s)", function,
                  TERN_TENSOR_TEXT(x));
        return false;
    }
    size_t size = tern_dtype_size(x->dtype);
    if (tern_storage_there(x, function) != TERN_OK ||
        tern_strict_check(function, "waits for a number of the device") != TERN_OK)
        return false;
    if (read_bytes(x, (size_t)x->offset * size, bytes, size, function) != TERN_OK)
        return false;
    *value = tern_element(bytes, x->dtype, 0);
    return true;
}

double tern_item(const tern_tensor *x)
{
    tern_scalar value;
    if (!one(x, "tern_item", &value))
        return NAN;
    if (x->dtype == TERN_U64)
        return (double)(uint64_t)value.value.integer;
    const double real = tern_scalar_to_real(value);
    return isnan(real) ? NAN : real; /* no sign, which printf would write as "-nan" */
}

int64_t tern_item_int(const tern_tensor *x)
{
    tern_scalar value;
    return one(x, "tern_item_int", &value) ? tern_scalar_to_int(value) : 0;
}
