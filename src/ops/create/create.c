/* create.c -- new tensors: filled, from data of the host, sequences, like another tensor. */
#include "device/place.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/tensor.h"
#include <float.h>
#include <math.h>
#include <tern/ops.h>

/* Returns a new tensor in the open scope with undefined elements, or NULL. */
static tern_tensor *make(const tern_shape *shape, tern_dtype dtype, const char *device,
                         const char *function)
{
    if (dtype == TERN_DTYPE_DEFAULT)
        dtype = tern_default_real();
    if (tern_dtype_size(dtype) == 0)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: %d is not a dtype", function, (int)dtype);
    tern_place *place = tern_place_find(device, function);
    if (!place || tern_shape_numel(shape, function) < 0)
        return NULL;
    return tern_scoped_from(tern_tensor_new(shape, dtype, place, function), function);
}

/* Returns the dtype that PyTorch infers from a number: the default dtype, int64 or bool. */
static tern_dtype dtype_of(tern_scalar value)
{
    return value.kind == TERN_SCALAR_REAL  ? tern_default_real()
           : value.kind == TERN_SCALAR_INT ? TERN_I64
                                           : TERN_BOOL;
}

/* Writes a single number on the cpu without a kernel, as items of data sets often are; returns
 * false if it cannot. */
static bool put_number(const tern_tensor *x, tern_scalar value)
{
    if (x->numel != 1 || !x->storage->place->synchronous || tern_thread.graph ||
        tern_thread.mode.trace)
        return false;
    void *to = x->storage->block->buffer.host;
    if (x->dtype == TERN_I64 && value.kind == TERN_SCALAR_INT)
        *(int64_t *)to = value.value.integer;
    else if (x->dtype == TERN_F32 && value.kind == TERN_SCALAR_REAL &&
             !(isfinite(value.value.real) &&
               fabs(value.value.real) > FLT_MAX)) /* which is an error */
        *(float *)to = (float)value.value.real;
    else
        return false;
    return true;
}

/* Writes the initial elements of a new tensor. They are no in-place change, so the version is set
 * back to 0. */
static tern_tensor *first_fill(tern_tensor *x, tern_scalar value, const char *function)
{
    if (x && put_number(x, value))
        return x;
    TERN_NAMED_AS(function);
    if (!x || !tern_fill_(x, value))
        return NULL;
    atomic_store(&x->storage->version, 0);
    return x;
}

/* Returns a new tensor filled with value, in dtype or in the dtype of value. */
static tern_tensor *filled(const tern_shape *shape, tern_scalar value, tern_dtype dtype,
                           const char *device, const char *function)
{
    tern_tensor *x =
        make(shape, dtype == TERN_DTYPE_DEFAULT ? dtype_of(value) : dtype, device, function);
    return first_fill(x, value, function);
}

tern_tensor *tern_empty(tern_shape shape, tern_dtype dtype, const char *device)
{
    return make(&shape, dtype, device, "tern_empty");
}

/* PyTorch's default for zeros and ones is float32, hence the real scalars. */
tern_tensor *tern_zeros(tern_shape shape, tern_dtype dtype, const char *device)
{
    return filled(&shape, tern_scalar_real(0), dtype, device, "tern_zeros");
}

tern_tensor *tern_ones(tern_shape shape, tern_dtype dtype, const char *device)
{
    return filled(&shape, tern_scalar_real(1), dtype, device, "tern_ones");
}

tern_tensor *tern_full(tern_shape shape, tern_scalar value, tern_dtype dtype, const char *device)
{
    return filled(&shape, value, dtype, device, "tern_full");
}

tern_tensor *tern_tensor_scalar(tern_scalar value, tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    tern_shape shape = {0};
    return filled(&shape, value, dtype, device, __func__);
}

/* Returns a copy of dense data in row-major order. */
tern_tensor *tern_from_data(const void *data, tern_shape shape, tern_dtype dtype,
                            const char *device)
{
    if (!data && tern_shape_numel(&shape, "tern_from_data") != 0) {
        tern_fail_argument_null("tern_from_data", "data");
        return NULL;
    }
    dtype = dtype == TERN_DTYPE_DEFAULT ? TERN_F32 : dtype; /* the type of *data, not a choice */
    tern_tensor *x = make(&shape, dtype, device, "tern_from_data");
    if (!x || x->numel == 0)
        return x;
    size_t bytes = (size_t)x->numel * tern_dtype_size(x->dtype);
    return tern_block_write(x->storage->block, 0, data, bytes) == TERN_OK ? x : NULL;
}

tern_tensor *tern_from_data_typed(const void *data, tern_elements elements, tern_shape shape,
                                  tern_dtype dtype, const char *device)
{
    if (dtype == TERN_DTYPE_DEFAULT && elements > TERN_ELEMENTS_ANY)
        dtype = (tern_dtype)elements;
    const bool fits = dtype == TERN_DTYPE_DEFAULT ? elements == TERN_ELEMENTS_ANY
                                                  : tern_elements_are(elements, dtype);
    if (!fits)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_from_data: data points to %s, and dtype is %s: make it of the "
                              "pointer's type (0) and convert (tern_to_dtype), or pass a void *",
                              tern_elements_name(elements),
                              dtype == TERN_DTYPE_DEFAULT ? "not given" : tern_dtype_name(dtype));
    return tern_from_data(data, shape, dtype, device);
}

/* ---- sequences --------------------------------------------------------------------------- */

static const tern_kernel_ref sequence_kernel = {"create", "sequence"};
static const tern_kernel_ref linspace_kernel = {"create", "linspace"};
static const tern_kernel_ref eye_kernel = {"create", "eye"};

/* Runs a kernel with two numbers a and b: a + i b, or n numbers from a to b. */
static tern_tensor *sequence(tern_tensor *x, const tern_kernel_ref *kernel, tern_scalar a,
                             tern_scalar b)
{
    if (!x || x->numel == 0)
        return x;
    if (tern_dtype_is_stored(x->dtype)) {
        tern_shape shape = tern_shape_of(x);
        tern_tensor *y =
            make(&shape, tern_dtype_rows[x->dtype].math, tern_device(x), "tern_arange");
        return tern_to_dtype(sequence(y, kernel, a, b), x->dtype);
    }
    if (kernel == &sequence_kernel && x->dtype == TERN_I64 &&
        tern_writes_by_copy(x->storage->place, x->numel)) {
        int64_t each[TERN_SMALL];
        for (int64_t i = 0; i < x->numel; i++)
            each[i] = (int64_t)((uint64_t)tern_scalar_to_int(a) +
                                (uint64_t)i * (uint64_t)tern_scalar_to_int(b));
        return tern_block_write(x->storage->block, 0, each, (size_t)x->numel * sizeof *each) ==
                       TERN_OK
                   ? x
                   : NULL;
    }
    return TERN_LAUNCH(x->storage->place, kernel, x->dtype, tern_items(x->numel), tern_arg_out(x),
                       tern_arg_i64(x->numel), tern_arg_scalar(x->dtype, a),
                       tern_arg_scalar(x->dtype, b)) == TERN_OK
               ? x
               : NULL;
}

/* Returns start + i step for i < ceil((end - start) / step). Each element is computed from its
 * index and not from the previous element, so that rounding does not accumulate. */
tern_tensor *tern_arange(double start, double end, double step, tern_dtype dtype,
                         const char *device)
{
    if (!isfinite(start) || !isfinite(end) || !isfinite(step))
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_arange: unsupported range: %g -> %g", start,
                              end);
    if (dtype == TERN_DTYPE_DEFAULT)
        dtype = tern_default_real();
    bool integers = !tern_dtype_is_floating_point(dtype);
    if (dtype == TERN_I64) { /* PyTorch computes the length in integers here */
        start = trunc(start);
        end = trunc(end);
    }
    if (step == 0 || (integers && trunc(step) == 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_arange: step must be nonzero");
    if (dtype == TERN_I64)
        step = trunc(step);
    if ((step > 0 && end < start) || (step < 0 && end > start))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_arange: upper bound and larger bound inconsistent with step "
                              "sign (%g -> %g by %g)",
                              start, end, step);
    double n = ceil((end - start) / step);
    if (n > 9e15)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_arange: %g elements are too many", n);
    if (integers) {
        start = trunc(start);
        step = trunc(step);
    }
    tern_shape shape = {1, {(int64_t)n}};
    return sequence(make(&shape, dtype, device, "tern_arange"), &sequence_kernel,
                    tern_scalar_real(start), tern_scalar_real(step));
}

/* Computes an integer range in integers: above 2^53 doubles would round. */
static tern_tensor *arange_of_integers(int64_t start, int64_t end, int64_t step, const char *device)
{
    if (step == 0 || (step > 0 ? end < start : end > start))
        return tern_arange((double)start, (double)end, (double)step, TERN_I64, device);
    const uint64_t distance =
        step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end;
    const uint64_t each = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t n = distance / each + (distance % each != 0);
    if (n > (uint64_t)9e15)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_arange: %llu elements are too many",
                              (unsigned long long)n);
    tern_shape shape = {1, {(int64_t)n}};
    return sequence(make(&shape, TERN_I64, device, "tern_arange"), &sequence_kernel,
                    tern_scalar_int(start), tern_scalar_int(step));
}

tern_tensor *tern_arange_scalar(tern_scalar start, tern_scalar end, tern_scalar step,
                                tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    const bool real = start.kind == TERN_SCALAR_REAL || end.kind == TERN_SCALAR_REAL ||
                      step.kind == TERN_SCALAR_REAL;
    if (!real && (dtype == TERN_DTYPE_DEFAULT || dtype == TERN_I64))
        return arange_of_integers(tern_scalar_to_int(start), tern_scalar_to_int(end),
                                  tern_scalar_to_int(step), device);
    return tern_arange(tern_scalar_to_real(start), tern_scalar_to_real(end),
                       tern_scalar_to_real(step), dtype, device);
}

/* Returns start + i (end - start) / (steps - 1); the second half is computed from the end, so that
 * both ends are exact. */
tern_tensor *tern_linspace(double start, double end, int64_t steps, tern_dtype dtype,
                           const char *device)
{
    if (steps < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_linspace: number of steps must be non-negative (%lld)",
                              (long long)steps);
    tern_shape shape = {1, {steps}};
    return sequence(make(&shape, dtype, device, "tern_linspace"), &linspace_kernel,
                    tern_scalar_real(start), tern_scalar_real(end));
}

/* base^x for x = linspace(start, end) */
tern_tensor *tern_logspace(double start, double end, int64_t steps, double base, tern_dtype dtype,
                           const char *device)
{
    TERN_NAMED_IN_ERRORS;
    if (steps < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_logspace: number of steps must be non-negative (%lld)",
                              (long long)steps);
    bool half = tern_dtype_size(dtype) == 2; /* exponents need float32 precision */
    tern_tensor *x = tern_linspace(start, end, steps, half ? TERN_F32 : dtype, device);
    x = x ? tern_rpow_scalar(x, tern_scalar_real(base)) : NULL;
    return x && half ? tern_to_dtype(x, dtype) : x;
}

/* Returns (n, m) zeros with ones at (i, i). */
tern_tensor *tern_eye(int64_t n, int64_t m, tern_dtype dtype, const char *device)
{
    tern_shape shape = {2, {n, m}};
    if (n < 0 || m < 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_eye: %s must be greater or equal to 0, got %lld",
                              n < 0 ? "n" : "m", (long long)(n < 0 ? n : m));
    if (tern_dtype_is_stored(dtype) && tern_dtype_size(dtype) > 0)
        return tern_to_dtype(tern_eye(n, m, tern_dtype_rows[dtype].math, device), dtype);
    tern_tensor *x = make(&shape, dtype, device, "tern_eye");
    if (!x || x->numel == 0)
        return x;
    return TERN_LAUNCH(x->storage->place, &eye_kernel, x->dtype, tern_items(x->numel),
                       tern_arg_out(x), tern_arg_i64(n), tern_arg_i64(m)) == TERN_OK
               ? x
               : NULL;
}

/* ---- like another ------------------------------------------------------------------------ */

/* Returns a new tensor with the dtype and device of x, and with `shape` or that of x. */
static tern_tensor *like(const tern_tensor *x, const tern_shape *shape, const char *function)
{
    if (!tern_given(x, function, "x"))
        return NULL;
    tern_shape own = tern_shape_of(x);
    if (shape && tern_shape_numel(shape, function) < 0)
        return NULL;
    tern_tensor *y = tern_tensor_new(shape ? shape : &own, x->dtype, x->storage->place, function);
    return tern_scoped_from(y, function);
}

tern_tensor *tern_empty_like(const tern_tensor *x)
{
    return like(x, NULL, "tern_empty_like");
}

tern_tensor *tern_zeros_like(const tern_tensor *x)
{
    return first_fill(like(x, NULL, "tern_zeros_like"), tern_scalar_int(0), "tern_zeros_like");
}

tern_tensor *tern_ones_like(const tern_tensor *x)
{
    return first_fill(like(x, NULL, "tern_ones_like"), tern_scalar_int(1), "tern_ones_like");
}

tern_tensor *tern_full_like(const tern_tensor *x, tern_scalar value)
{
    return first_fill(like(x, NULL, "tern_full_like"), value, "tern_full_like");
}

tern_tensor *tern_new_empty(const tern_tensor *x, tern_shape shape)
{
    return like(x, &shape, "tern_new_empty");
}

tern_tensor *tern_new_zeros(const tern_tensor *x, tern_shape shape)
{
    return first_fill(like(x, &shape, "tern_new_zeros"), tern_scalar_int(0), "tern_new_zeros");
}

tern_tensor *tern_new_ones(const tern_tensor *x, tern_shape shape)
{
    return first_fill(like(x, &shape, "tern_new_ones"), tern_scalar_int(1), "tern_new_ones");
}

tern_tensor *tern_new_full(const tern_tensor *x, tern_shape shape, tern_scalar value)
{
    return first_fill(like(x, &shape, "tern_new_full"), value, "tern_new_full");
}
