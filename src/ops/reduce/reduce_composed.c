/* reduce_composed.c -- reductions composed of others: without NaN, counts, pairs of results. */
#include "ops/reduce/reduction.h"
#include <tern/ops.h>

/* ---- without NaN ------------------------------------------------------------------------- */

/* Returns x with NaN replaced by 0, which does not change sums and gets no gradient. */
static tern_tensor *without_nan(tern_tensor *x)
{
    if (!x || !tern_dtype_is_floating_point(x->dtype))
        return x;
    return tern_masked_fill(x, tern_isnan(x), tern_scalar_int(0));
}

tern_tensor *tern_nansum_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_COMPOSED("nansum_dim", NONE, &x);
    return tern_sum_dim(without_nan(x), dims, keepdim);
}

tern_tensor *tern_nansum(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nansum_dim(x, TERN_SHAPE_SCALAR, false);
}

tern_tensor *tern_nanmean_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_COMPOSED("nanmean_dim", NONE, &x);
    if (x && !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_nanmean: nanmean(): expected input to have floating point dtype but got %s",
            tern_dtype_name(x->dtype));
    /* Half precision is computed in float32: sums and counts may overflow in half precision. */
    tern_tensor *wide = x && x->dtype != TERN_F64 ? tern_to_dtype(x, TERN_F32) : x;
    tern_tensor *count = tern_sum_dim(tern_logical_not(tern_isnan(wide)), dims, keepdim);
    tern_tensor *mean = tern_div(tern_nansum_dim(wide, dims, keepdim), count);
    return x ? tern_to_dtype(mean, x->dtype) : mean;
}

tern_tensor *tern_nanmean(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nanmean_dim(x, TERN_SHAPE_SCALAR, false);
}

/* ---- counts ------------------------------------------------------------------------------ */

tern_tensor *tern_count_nonzero_dim(tern_tensor *x, tern_shape dims)
{
    TERN_NAMED_IN_ERRORS;
    return tern_sum_dim(tern_ne_scalar(x, tern_scalar_int(0)), dims, false);
}

tern_tensor *tern_count_nonzero(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_count_nonzero_dim(x, TERN_SHAPE_SCALAR);
}

/* ---- pairs ------------------------------------------------------------------------------- */

static tern_status pair(tern_tensor *first, tern_tensor *second, tern_tensor *out[2])
{
    if (!first || !second)
        return tern_last_status();
    out[0] = first;
    out[1] = second;
    return TERN_OK;
}

#define WITH_MEAN(NAME)                                                                            \
    tern_status tern_##NAME##_mean(tern_tensor *x, double correction, tern_tensor *out[2])         \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        if (!x || !out)                                                                            \
            return tern_fail_argument_null("tern_" #NAME "_mean", x ? "out" : "x");                \
        return pair(tern_##NAME(x, correction), tern_mean(x), out);                                \
    }                                                                                              \
    tern_status tern_##NAME##_mean_dim(tern_tensor *x, tern_shape dims, double correction,         \
                                       bool keepdim, tern_tensor *out[2])                          \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        if (!x || !out)                                                                            \
            return tern_fail_argument_null("tern_" #NAME "_mean_dim", x ? "out" : "x");            \
        return pair(tern_##NAME##_dim(x, dims, correction, keepdim),                               \
                    tern_mean_dim(x, dims, keepdim), out);                                         \
    }
WITH_MEAN(var)
WITH_MEAN(std)

tern_status tern_aminmax(tern_tensor *x, tern_tensor *out[2])
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !out)
        return tern_fail_argument_null(__func__, x ? "out" : "x");
    if (x->numel == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_aminmax: aminmax(): cannot compute aminmax over an empty dimension "
                         "as the operation has no identity.");
    return pair(tern_amin(x, TERN_SHAPE_SCALAR, false), tern_amax(x, TERN_SHAPE_SCALAR, false),
                out);
}

tern_status tern_aminmax_dim(tern_tensor *x, int dim, bool keepdim, tern_tensor *out[2])
{
    TERN_NAMED_IN_ERRORS;
    if (!x || !out)
        return tern_fail_argument_null(__func__, x ? "out" : "x");
    if (x->ndim == 0 && keepdim) /* PyTorch returns shape (1) */
        x = tern_unsqueeze(x, 0);
    return pair(tern_amin(x, TERN_SHAPE(dim), keepdim), tern_amax(x, TERN_SHAPE(dim), keepdim),
                out);
}
