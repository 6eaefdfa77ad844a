/* unique.c -- equals among elements: searchsorted, unique, bincount, histc. */
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

/* ---- searchsorted: inputs bounds (n) or (*, n), values ----------------------------------- */

typedef struct search_attributes {
    bool right;
} search_attributes;

static tern_status search_infer(tern_call *call)
{
    const tern_tensor *bounds = call->in[0], *values = call->in[1];
    bool fits = bounds->ndim == 1 || bounds->ndim == values->ndim;
    for (int d = 0; fits && bounds->ndim > 1 && d + 1 < bounds->ndim; d++)
        fits = bounds->shape[d] == values->shape[d];
    if (bounds->ndim == 0 || !fits)
        return tern_fail(
            TERN_ERR_SHAPE,
            "tern_searchsorted: boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            "boundaries tensor %s and input value tensor %s",
            TERN_TENSOR_TEXT(bounds), TERN_TENSOR_TEXT(values));
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_I64, .shape = tern_shape_of(values)};
    return TERN_OK;
}

static tern_status search_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"sort", "sort_search"};
    const search_attributes *at = call->attributes;
    const tern_tensor *bounds = call->in[0], *values = call->in[1], *y = call->out[0];
    int64_t n = bounds->shape[bounds->ndim - 1];
    int64_t m = values->ndim ? values->shape[values->ndim - 1] : 1;
    if (y->numel == 0)
        return TERN_OK;
    tern_arg args[] = {tern_arg_tensor(y),
                       tern_arg_tensor(bounds->numel ? bounds : values),
                       tern_arg_tensor(values),
                       tern_arg_i64(y->numel),
                       tern_arg_i64(n),
                       tern_arg_i64(m),
                       tern_arg_i32(bounds->ndim == 1),
                       tern_arg_i32(at->right)};
    return tern_launch(call->place, &kernel, values->dtype, tern_items_of(y->numel, 16), args, 8);
}

static const tern_op search_op = {.name = "searchsorted",
                                  .promotion = TERN_PROMOTE_SAME,
                                  .not_differentiable = true,
                                  .infer = search_infer,
                                  .forward = search_forward};

tern_tensor *tern_searchsorted(tern_tensor *boundaries, tern_tensor *values, tern_side side)
{
    search_attributes at = {side == TERN_SIDE_RIGHT};
    if (!boundaries || !values) {
        tern_fail_argument_null("tern_searchsorted", boundaries ? "values" : "boundaries");
        return NULL;
    }
    if (tern_check_enum("tern_searchsorted", "side", (int)side, TERN_SIDE_RIGHT, "tern_side") !=
        TERN_OK)
        return NULL;
    tern_tensor *in[] = {tern_contiguous(boundaries), tern_contiguous(values)};
    return tern_apply(&search_op, in, 2, &at, sizeof at);
}

tern_tensor *tern_bucketize(tern_tensor *values, tern_tensor *boundaries, bool right)
{
    if (boundaries && boundaries->ndim != 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_bucketize: boundaries tensor must be 1 dimension, but got "
                              "dim(%d)",
                              boundaries->ndim);
    return tern_searchsorted(boundaries, values, right ? TERN_SIDE_RIGHT : TERN_SIDE_LEFT);
}

/* ---- unique ------------------------------------------------------------------------------ */

/* Which run of equals each element of the non-empty sequence is in, from 0. */
static tern_tensor *runs_of(tern_tensor *x)
{
    tern_shape one = {1, {1}};
    tern_tensor *changes = tern_ne(tern_narrow(x, 0, 1, x->numel - 1), /**/
                                   tern_narrow(x, 0, 0, x->numel - 1));
    tern_tensor *first = tern_zeros(one, TERN_BOOL, tern_device(x));
    return tern_cumsum(tern_cat((tern_tensor *[]){first, changes}, 2, 0), 0);
}

static tern_status unique_of_none(const tern_tensor *x, tern_unique_result *out)
{
    tern_shape none = {1, {0}};
    out->output = tern_new_empty(x, none);
    out->inverse = tern_empty(tern_shape_of(x), TERN_I64, tern_device(x));
    out->counts = tern_empty(none, TERN_I64, tern_device(x));
    return out->output && out->inverse && out->counts ? TERN_OK : tern_last_status();
}

static tern_status unique(tern_tensor *x, bool sorted, tern_unique_result *out)
{
    tern_shape shape = tern_shape_of(x), flat = {1, {x->numel}};
    tern_values_indices both = {0};
    tern_tensor *elements = tern_reshape(x, flat), *sequence = elements;
    if (x->numel == 0)
        return unique_of_none(x, out);
    if (sorted) {
        TERN_TRY(tern_sort(elements, 0, false, &both));
        sequence = both.values;
    }
    tern_tensor *runs = sequence ? runs_of(sequence) : NULL;
    if (!runs)
        return tern_last_status();
    int64_t last;
    TERN_TRY(tern_copy_to_host(tern_select(runs, 0, -1), &last, sizeof last));
    tern_tensor *numbers = tern_arange(0, (double)last + 1, 1, TERN_I64, tern_device(x));
    tern_tensor *starts = tern_searchsorted(runs, numbers, TERN_SIDE_LEFT);
    tern_unique_result r = {
        .output = tern_index_select(sequence, 0, starts),
        .counts = tern_sub(tern_searchsorted(runs, numbers, TERN_SIDE_RIGHT), starts),
    };
    r.inverse =
        tern_reshape(sorted ? tern_searchsorted(r.output, elements, TERN_SIDE_LEFT) : runs, shape);
    if (!r.output || !r.counts || !r.inverse)
        return tern_last_status();
    *out = r;
    return TERN_OK;
}

static tern_status without_gradient(tern_tensor *x, bool sorted, tern_unique_result *out,
                                    const char *function)
{
    tern_status status = TERN_OK;
    if (!x || !out)
        return tern_fail_argument_null(function, x ? "out" : "x");
    TERN_NO_GRAD {
        status = unique(x, sorted, out);
    }
    return status;
}

tern_status tern_unique(tern_tensor *x, tern_unique_result *out)
{
    return without_gradient(x, true, out, "tern_unique");
}

tern_status tern_unique_consecutive(tern_tensor *x, tern_unique_result *out)
{
    return without_gradient(x, false, out, "tern_unique_consecutive");
}

/* ---- counts ------------------------------------------------------------------------------ */

/* How often each of 0 .. bins - 1 is among the int64 numbers; the others do not count. Sorted, not
 * added up: the same work on every device, without atomics. */
static tern_tensor *counts_of(tern_tensor *numbers, int64_t bins)
{
    tern_values_indices both;
    tern_tensor *limits = tern_arange(0, (double)bins + 1, 1, TERN_I64, tern_device(numbers));
    if (!limits || tern_sort(numbers, 0, false, &both) != TERN_OK)
        return NULL;
    tern_tensor *below = tern_searchsorted(both.values, limits, TERN_SIDE_LEFT);
    return tern_sub(tern_narrow(below, 0, 1, bins), tern_narrow(below, 0, 0, bins));
}

/* The numbers to count as int64, and how many counts there are. */
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
        x = tern_to_dtype(x, TERN_I64);
        TERN_TRY(tern_copy_to_host(tern_min(x), &low, sizeof low));
        TERN_TRY(tern_copy_to_host(tern_max(x), &high, sizeof high));
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
    int64_t bins = 0;
    tern_tensor *y = NULL;
    if (!x) {
        tern_fail_argument_null("tern_bincount", "x");
        return NULL;
    }
    TERN_NO_GRAD {
        if (check_bincount(x, weights, minlength, &bins) == TERN_OK) {
            tern_shape shape = {1, {bins}};
            x = tern_to_dtype(x, TERN_I64);
            if (!weights) {
                y = x->numel ? counts_of(x, bins) : tern_zeros(shape, TERN_I64, tern_device(x));
            } else {
                weights = tern_to_dtype(weights, weights->dtype == TERN_F32 ? TERN_F32 : TERN_F64);
                y = tern_scatter_add(tern_zeros(shape, weights->dtype, tern_device(x)), 0, x,
                                     weights);
            }
        }
    }
    return y;
}

/* The range to count in: PyTorch's, that of x where low == high, one wider where that is one
 * number. */
static tern_status histc_range(tern_tensor *x, double *low, double *high)
{
    if (*low == *high && x->numel > 0) {
        *low = tern_item(tern_min(x));
        *high = tern_item(tern_max(x));
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

static tern_tensor *histc(tern_tensor *x, int64_t bins, double low, double high)
{
    tern_shape flat = {1, {x->numel}};
    if (histc_range(x, &low, &high) != TERN_OK)
        return NULL;
    if (x->numel == 0)
        return tern_new_zeros(x, TERN_SHAPE(bins));
    x = tern_reshape(x, flat);
    tern_tensor *inside = tern_logical_and(tern_ge_scalar(x, tern_scalar_real(low)),
                                           tern_le_scalar(x, tern_scalar_real(high)));
    tern_tensor *at =
        tern_div_scalar(tern_sub_scalar(x, tern_scalar_real(low)), tern_scalar_real(high - low));
    at = tern_to_dtype(tern_mul_scalar(at, tern_scalar_int(bins)), TERN_I64);
    at = tern_clamp(at, -INFINITY, (double)(bins - 1)); /* the last one has its upper end */
    at = tern_masked_fill(at, tern_logical_not(inside), tern_scalar_int(-1));
    return tern_to_dtype(counts_of(at, bins), x->dtype);
}

tern_tensor *tern_histc(tern_tensor *x, int64_t bins, double min, double max)
{
    tern_tensor *y = NULL;
    if (!x) {
        tern_fail_argument_null("tern_histc", "x");
        return NULL;
    }
    if (tern_check_floating("tern_histc", x->dtype) != TERN_OK)
        return NULL;
    if (bins <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_histc: bins must be > 0, but got %lld",
                              (long long)bins);
    TERN_NO_GRAD {
        y = histc(x, bins, min, max);
    }
    return y;
}
