/* shift.c -- the order of frequencies: fftshift and ifftshift, fftfreq and rfftfreq. */
#include "ops/create/table.h"
#include <math.h>
#include <tern/ops.h>

/* Returns x rolled by half of each dim, rounded down, or with `back` by the inverse. */
static tern_tensor *shifted(const char *name, tern_tensor *x, tern_shape dims, bool back)
{
    tern_shape shifts = {0};
    if (!tern_given(x, name, "x"))
        return NULL;
    if (dims.ndim < 0 || dims.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: a list of %d dims", name, dims.ndim);
    if (dims.ndim == 0)
        for (dims.ndim = 0; dims.ndim < x->ndim; dims.ndim++)
            dims.dims[dims.ndim] = dims.ndim;
    shifts.ndim = dims.ndim;
    for (int i = 0; i < dims.ndim; i++) {
        int d;
        if (tern_wrap_dim(dims.dims[i], x->ndim, &d, name) != TERN_OK)
            return NULL;
        shifts.dims[i] = (x->ndim ? x->shape[d] + back : 0) / 2;
    }
    return dims.ndim ? tern_roll(x, shifts, dims) : tern_clone(x);
}

tern_tensor *tern_fft_fftshift(tern_tensor *x, tern_shape dims)
{
    TERN_NAMED_IN_ERRORS;
    return shifted(__func__, x, dims, false);
}

tern_tensor *tern_fft_ifftshift(tern_tensor *x, tern_shape dims)
{
    TERN_NAMED_IN_ERRORS;
    return shifted(__func__, x, dims, true);
}

/* Returns count numbers k / (n d), with k reduced by n from index `negative` on. */
static tern_tensor *frequencies(const char *name, int64_t n, int64_t count, int64_t negative,
                                double d, tern_dtype dtype, const char *device)
{
    tern_shape shape = {1, {count}};
    if (n < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %lld frequencies are not possible", name,
                              (long long)n);
    if (dtype && !tern_dtype_is_floating_point(dtype))
        return tern_fail_null(TERN_ERR_DTYPE, "%s: a floating point dtype is expected, not %s",
                              name, tern_dtype_name(dtype));
    double *data = tern_table_alloc(name, &shape);
    for (int64_t k = 0; data && k < count; k++)
        data[k] = (double)(k < negative ? k : k - n) / ((double)n * d);
    return tern_table_done(data, &shape, dtype, device);
}

tern_tensor *tern_fft_fftfreq(int64_t n, double d, tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return frequencies(__func__, n, n, n / 2 + n % 2, d, dtype, device);
}

tern_tensor *tern_fft_rfftfreq(int64_t n, double d, tern_dtype dtype, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return frequencies(__func__, n, n / 2 + 1, n, d, dtype, device);
}
