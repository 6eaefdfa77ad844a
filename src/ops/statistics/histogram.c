/* histogram.c -- counts of numbers: bincount, histc. The numbers are sorted and each count is the
 * difference of two searches: equal results on every device, without atomic additions. */
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* Returns the number of occurrences of each of 0 .. bins - 1 in the int64 numbers; others are not
 * counted. The numbers are sorted, which needs no atomic additions. */
static tern_tensor *counts_of(tern_tensor *numbers, int64_t bins)
{
    tern_values_indices both;
    tern_tensor *limits = tern_arange(0, (double)bins + 1, 1, TERN_I64, tern_device(numbers));
    if (!numbers || !limits || tern_sort(numbers, 0, false, &both) != TERN_OK)
        return NULL;
    tern_tensor *below = tern_searchsorted(both.values, limits, TERN_SIDE_LEFT);
    return tern_sub(tern_narrow(below, 0, 1, bins), tern_narrow(below, 0, 0, bins));
}

/* Checks the arguments of bincount, and sets *bins to the number of counts. */
static tern_status check_bincount(tern_tensor *x, tern_tensor *weights, int64_t minlength,
                                  int64_t *bins)
{
    int64_t low = 0, high = -1;
    if (tern_dtype_is_floating_point(x->dtype) || x->dtype == TERN_BOOL)
        return tern_fail_dtype("tern_bincount", x->dtype);
    if (minlength < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_bincount: minlength should be >= 0, not %lld",
                         (long long)minlength);
    if (x->ndim == 1 && x->numel > 0) {
        if (!(x = tern_to_dtype(x, TERN_I64)))
            return tern_last_status();
        TERN_TRY(tern_hidden_read(tern_min(x), &low, sizeof low, "tern_bincount"));
        TERN_TRY(tern_hidden_read(tern_max(x), &high, sizeof high, "tern_bincount"));
    }
    if (x->ndim != 1 || low < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_bincount: bincount only supports 1-d non-negative integral inputs "
                         "(shape %s, smallest %lld).",
                         TERN_TENSOR_TEXT(x), (long long)low);
    if (weights && (weights->ndim != 1 || weights->numel != x->numel))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_bincount: weights should be 1-d and have the same length as input "
                         "(%s and %s)",
                         TERN_TENSOR_TEXT(weights), TERN_TENSOR_TEXT(x));
    *bins = high + 1 > minlength ? high + 1 : minlength;
    return TERN_OK;
}

tern_tensor *tern_bincount(tern_tensor *x, tern_tensor *weights, int64_t minlength)
{
    TERN_NAMED_IN_ERRORS;
    int64_t bins = 0;
    tern_tensor *y = NULL;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    TERN_NO_GRAD {
        if (check_bincount(x, weights, minlength, &bins) == TERN_OK) {
            tern_shape shape = {1, {bins}};
            x = tern_to_dtype(x, TERN_I64);
            if (!x) {
                y = NULL;
            } else if (!weights) {
                y = x->numel ? counts_of(x, bins) : tern_zeros(shape, TERN_I64, tern_device(x));
            } else {
                weights = tern_to_dtype(weights, weights->dtype == TERN_F32 ? TERN_F32 : TERN_F64);
                y = !weights ? NULL
                             : tern_scatter_add(tern_zeros(shape, weights->dtype, tern_device(x)),
                                                0, x, weights);
            }
        }
    }
    return y;
}

/* Sets the range of bins as PyTorch: the range of x where low == high, extended if that is one
 * number. */
static tern_status histc_range(tern_tensor *x, double *low, double *high)
{
    const uint64_t failures = tern_failures();
    if (*low == *high && x->numel > 0) {
        *low = tern_item(tern_min(x));
        *high = tern_item(tern_max(x));
        TERN_TRY(tern_failed_since(failures));
    }
    if (!isfinite(*low) || !isfinite(*high))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_histc: range of [%g, %g] is not finite", *low,
                         *high);
    if (*low > *high)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_histc: max must be larger than min, not %g and %g", *high, *low);
    if (*low == *high) {
        *low -= 1;
        *high += 1;
    }
    return TERN_OK;
}

/* Returns the bins of integers by integer arithmetic with truncated bounds: exact quotients. */
static tern_tensor *places_of_integers(tern_tensor *x, int64_t bins, double low, double high)
{
    if (fabs(low) > 0x1p53 || fabs(high) > 0x1p53 || (high - low) * (double)bins > 0x1p62)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_histc: a range of %g to %g in %lld bins is too large for "
                              "integers",
                              low, high, (long long)bins);
    tern_scalar from = tern_scalar_int((int64_t)low),
                width = tern_scalar_int((int64_t)(high - low));
    tern_tensor *beyond = tern_clamp(x, low, high); /* outside elements are removed later */
    return tern_floor_divide_scalar(
        tern_mul_scalar(tern_sub_scalar(beyond, from), tern_scalar_int(bins)), width);
}

/* The bin of x is floor((x - low) / (high - low) bins); the last bin includes high; elements
 * outside get -1. */
static tern_tensor *histc(tern_tensor *x, int64_t bins, double low, double high)
{
    tern_shape flat = {1, {x->numel}};
    if (histc_range(x, &low, &high) != TERN_OK)
        return NULL;
    if (x->numel == 0)
        return tern_new_zeros(x, TERN_SHAPE(bins));
    tern_dtype dtype = x->dtype;
    bool whole = !tern_dtype_is_floating_point(dtype);
    x = tern_reshape(whole ? tern_to_dtype(x, TERN_I64) : x, flat);
    tern_tensor *inside = tern_logical_and(tern_ge_scalar(x, tern_scalar_real(low)),
                                           tern_le_scalar(x, tern_scalar_real(high)));
    tern_tensor *at;
    if (whole) {
        at = places_of_integers(x, bins, low, high);
    } else {
        at = tern_div_scalar(tern_sub_scalar(x, tern_scalar_real(low)),
                             tern_scalar_real(high - low));
        at = tern_to_dtype(tern_mul_scalar(at, tern_scalar_int(bins)), TERN_I64);
    }
    at = tern_clamp(at, -INFINITY, (double)(bins - 1)); /* the last bin includes high */
    at = tern_masked_fill(at, tern_logical_not(inside), tern_scalar_int(-1));
    return at ? tern_to_dtype(counts_of(at, bins), dtype) : NULL;
}

tern_tensor *tern_histc(tern_tensor *x, int64_t bins, double min, double max)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *y = NULL;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (x->dtype == TERN_BOOL || tern_dtype_is_stored(x->dtype)) {
        tern_fail_dtype(__func__, x->dtype);
        return NULL;
    }
    if (!tern_dtype_is_floating_point(x->dtype)) {
        min = trunc(min);
        max = trunc(max);
    }
    if (bins <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_histc: bins must be > 0, but got %lld",
                              (long long)bins);
    TERN_NO_GRAD {
        y = histc(x, bins, min, max);
    }
    return y;
}
