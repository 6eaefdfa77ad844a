/* quantile.c -- quantile and nanquantile: interpolation between two sorted elements.
 *
 * The rank of q among n elements is q (n - 1); with a its fraction and s the sorted elements around
 * it,
 *   y = s[low] + a (s[high] - s[low])
 * or one of the two, or their mean. */
#include "tensor/op.h"
#include <tern/ops.h>

/* Returns x with dim moved to the end, or flattened if no dim is given. */
static tern_tensor *dim_last(tern_tensor *x, const tern_optional_int *dim, int d)
{
    tern_shape order = {0};
    if (!dim->set || x->ndim == 0)
        return tern_reshape(x, TERN_SHAPE(x->numel));
    for (int i = 0; i < x->ndim; i++)
        if (i != d)
            order.dims[order.ndim++] = i;
    order.dims[order.ndim++] = d;
    return tern_permute(x, order);
}

/* Returns the rank of each q in 0 .. n - 1, (*, q), differentiable in q. Rows with NaN get the last
 * rank, whose element is NaN; with without_nan, NaN is not counted. */
static tern_tensor *ranks_of(tern_tensor *sorted, tern_tensor *q, bool without_nan)
{
    int64_t n = tern_size(sorted, -1);
    tern_tensor *ranks, *bad;
    if (without_nan) {
        tern_tensor *valid = tern_logical_not(tern_isnan(sorted));
        valid = tern_to_dtype(tern_sum_dim(valid, TERN_DIMS(-1), true), sorted->dtype);
        ranks = tern_mul(tern_sub_scalar(valid, tern_scalar_int(1)), q);
        bad = tern_lt_scalar(ranks, tern_scalar_int(0)); /* all elements are NaN */
        return tern_masked_fill(ranks, bad, tern_scalar_int(0));
    }
    bad = tern_isnan(tern_narrow(sorted, -1, n - 1, 1));
    ranks = tern_mul_scalar(q, tern_scalar_int(n - 1));
    return tern_where(bad, tern_full_like(ranks, tern_scalar_int(n - 1)), ranks);
}

/* Returns the elements at low = floor(rank) and high, the next rank if rank has a fraction,
 * combined as `how` says. */
static tern_tensor *between(tern_tensor *sorted, tern_tensor *ranks, tern_interpolation how)
{
    tern_tensor *low = tern_to_dtype(ranks, TERN_I64);
    if (how == TERN_INTERPOLATION_LOWER)
        return tern_gather(sorted, -1, low);
    tern_tensor *part = tern_sub(ranks, tern_to_dtype(low, ranks ? ranks->dtype : TERN_F32));
    tern_tensor *high = tern_add(low, tern_gt_scalar(part, tern_scalar_int(0)));
    if (!high)
        return NULL;
    if (how == TERN_INTERPOLATION_HIGHER)
        return tern_gather(sorted, -1, high);
    if (how == TERN_INTERPOLATION_NEAREST) { /* half to even */
        tern_tensor *odd = tern_bitwise_and_scalar(low, tern_scalar_int(1));
        tern_tensor *half = tern_logical_and(tern_eq_scalar(part, tern_scalar_real(0.5)), odd);
        tern_tensor *up = tern_logical_or(tern_gt_scalar(part, tern_scalar_real(0.5)), half);
        return tern_gather(sorted, -1, tern_add(low, up));
    }
    tern_tensor *a = tern_gather(sorted, -1, low), *b = tern_gather(sorted, -1, high);
    if (how == TERN_INTERPOLATION_MIDPOINT)
        part = tern_full_like(part, tern_scalar_real(0.5));
    return tern_lerp(a, b, part); /* computed from the nearer end: infinities stay */
}

static tern_status check(tern_tensor *x, tern_tensor *q, const char *name)
{
    if (x->dtype != TERN_F32 && x->dtype != TERN_F64)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: %s() input tensor must be either float or double dtype, not %s",
                         name, name, tern_dtype_name(x->dtype));
    if (x->numel == 0)
        return tern_fail(TERN_ERR_SHAPE, "tern_%s: %s() input tensor must be non-empty", name,
                         name);
    if (q->ndim > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: %s() q must be a scalar or 1D tensor, but got %dD", name, name,
                         q->ndim);
    if (q->dtype != x->dtype)
        return tern_fail(
            TERN_ERR_DTYPE,
            "tern_%s: %s() q tensor must be same dtype as the input tensor (%s and %s)", name, name,
            tern_dtype_name(q->dtype), tern_dtype_name(x->dtype));
    if (q->numel == 0)
        return TERN_OK;
    double low = tern_item(tern_min(q)), high = tern_item(tern_max(q));
    if (!(low >= 0 && high <= 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_%s: %s() q values must be in the range [0, 1], not [%g, %g]", name,
                         name, low, high);
    return TERN_OK;
}

/* Returns y (*, q) as (q, *), with the reduced dims if keepdim. */
static tern_tensor *in_place_of_dim(tern_tensor *y, const tern_tensor *x, const tern_tensor *q,
                                    const tern_quantile_options *o, int d)
{
    int last = y ? y->ndim - 1 : 0;
    tern_shape order = {1, {last}};
    for (int i = 0; i < last; i++)
        order.dims[order.ndim++] = i;
    y = tern_permute(y, order);
    for (int i = 0; o->keepdim && i < (o->dim.set && x->ndim ? 1 : x->ndim); i++)
        y = tern_unsqueeze(y, d + 1);
    return tern_contiguous(q->ndim ? y : tern_squeeze_dim(y, 0));
}

static tern_tensor *quantile(tern_tensor *x, tern_tensor *q, const tern_quantile_options *options,
                             bool without_nan, const char *name)
{
    static const tern_quantile_options none;
    const tern_quantile_options *o = options ? options : &none;
    tern_values_indices sorted;
    int d = 0;
    if (!x || !q)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_%s: %s is NULL", name, x ? "q" : "x");
    if (tern_check_enum("tern_quantile", "interpolation", (int)o->interpolation,
                        TERN_INTERPOLATION_NEAREST, "tern_interpolation") != TERN_OK ||
        check(x, q, name) != TERN_OK ||
        (o->dim.set && tern_wrap_dim((int)o->dim.value, x->ndim, &d, name) != TERN_OK))
        return NULL;
    tern_tensor *rows = dim_last(x, &o->dim, d);
    if (!rows || tern_sort(rows, -1, false, &sorted) != TERN_OK)
        return NULL;
    tern_tensor *list = q->ndim ? q : tern_unsqueeze(q, 0);
    tern_tensor *y =
        between(sorted.values, ranks_of(sorted.values, list, without_nan), o->interpolation);
    return in_place_of_dim(y, x, q, o, d);
}

tern_tensor *tern_quantile(tern_tensor *x, tern_tensor *q, const tern_quantile_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return quantile(x, q, options, false, "quantile");
}

tern_tensor *tern_nanquantile(tern_tensor *x, tern_tensor *q, const tern_quantile_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return quantile(x, q, options, true, "nanquantile");
}

/* Returns q as a tensor with the dtype of x, or NULL if x is NULL; the function with a tensor q
 * reports other errors of x. */
static tern_tensor *rank_like(const tern_tensor *x, double q, const char *name)
{
    if (!x)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_%s: x is NULL", name);
    if (!(q >= 0 && q <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_%s: %s() q must be in the range [0, 1] but got %g", name, name,
                              q);
    return tern_new_full(x, (tern_shape){0}, tern_scalar_real(q));
}

tern_tensor *tern_quantile_scalar(tern_tensor *x, double q, const tern_quantile_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *rank = rank_like(x, q, "quantile");
    return rank ? quantile(x, rank, options, false, "quantile") : NULL;
}

tern_tensor *tern_nanquantile_scalar(tern_tensor *x, double q, const tern_quantile_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *rank = rank_like(x, q, "nanquantile");
    return rank ? quantile(x, rank, options, true, "nanquantile") : NULL;
}
