/* unique.c -- searchsorted by bisection, and unique: the distinct values among sorted ones.
 *
 * unique: adjacent sorted elements that differ begin a run; the cumulative sum of these changes is
 * the number of each element's run, and a search for a run's number finds where the run begins and
 * ends. */
#include "ops/sort/sort.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* ---- searchsorted: inputs bounds (n) or (*, n), values ----------------------------------- */

typedef struct search_attributes {
    bool right, ordered; /* ordered: NaN is the largest number */
} search_attributes;

static tern_status search_infer(tern_call *call)
{
    const tern_tensor *bounds = call->in[0], *values = call->in[1];
    if (values->ndim == 0 && bounds->ndim > 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_searchsorted: input value can be a scalar only when boundaries "
                         "tensor dimension is 1, but we got boundaries tensor dim(%d) and input "
                         "value's dim(%d) numel(%lld)",
                         bounds->ndim, values->ndim, (long long)values->numel);
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

/* y = the number of elements in the row of bounds below the value (right: not above it). */
static tern_status search_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"sort", "sort_search"};
    const search_attributes *at = call->attributes;
    const tern_tensor *bounds = call->in[0], *values = call->in[1], *y = call->out[0];
    int64_t n = bounds->shape[bounds->ndim - 1];
    int64_t m = values->ndim ? values->shape[values->ndim - 1] : 1;
    if (y->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(
        call->place, &kernel, values->dtype, tern_items_of(y->numel, 16), tern_arg_out(y),
        bounds->numel ? tern_arg_in(bounds) : tern_arg_unused(values), tern_arg_in(values),
        tern_arg_i64(y->numel), tern_arg_i64(n), tern_arg_i64(m), tern_arg_i32(bounds->ndim == 1),
        tern_arg_i32(at->right), tern_arg_i32(at->ordered));
}

static const tern_op search_op = {.name = "searchsorted",
                                  .promotion = TERN_PROMOTE_SAME,
                                  .not_differentiable = true,
                                  .infer = search_infer,
                                  .forward = search_forward};

tern_tensor *tern_search_sorted_values(tern_tensor *sorted, tern_tensor *values)
{
    search_attributes at = {.ordered = true};
    return tern_apply(&search_op, (tern_tensor *[]){sorted, tern_contiguous(values)}, 2, &at,
                      sizeof at);
}

tern_tensor *tern_searchsorted(tern_tensor *boundaries, tern_tensor *values, tern_side side)
{
    TERN_NAMED_IN_ERRORS;
    search_attributes at = {.right = side == TERN_SIDE_RIGHT};
    if (!boundaries || !values) {
        tern_fail_argument_null(__func__, boundaries ? "values" : "boundaries");
        return NULL;
    }
    if (tern_check_enum(__func__, "side", (int)side, TERN_SIDE_RIGHT, "tern_side") != TERN_OK)
        return NULL;
    tern_tensor *in[] = {tern_contiguous(boundaries), tern_contiguous(values)};
    return tern_apply(&search_op, in, 2, &at, sizeof at);
}

tern_tensor *tern_bucketize(tern_tensor *values, tern_tensor *boundaries, bool right)
{
    TERN_NAMED_IN_ERRORS;
    if (boundaries && boundaries->ndim != 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_bucketize: boundaries tensor must be 1 dimension, but got "
                              "dim(%d)",
                              boundaries->ndim);
    return tern_searchsorted(boundaries, values, right ? TERN_SIDE_RIGHT : TERN_SIDE_LEFT);
}

/* Returns value as a tensor in the dtype of boundaries, or in float32 if value is real and
 * boundaries are not. */
static tern_tensor *number_beside(const tern_tensor *boundaries, tern_scalar value)
{
    bool real = value.kind == TERN_SCALAR_REAL && !tern_dtype_is_floating_point(boundaries->dtype);
    return tern_tensor_scalar(value, real ? TERN_F32 : boundaries->dtype, tern_device(boundaries));
}

tern_tensor *tern_searchsorted_scalar(tern_tensor *boundaries, tern_scalar value, tern_side side)
{
    TERN_NAMED_IN_ERRORS;
    return tern_searchsorted(boundaries, boundaries ? number_beside(boundaries, value) : NULL,
                             side);
}

tern_tensor *tern_bucketize_scalar(tern_scalar value, tern_tensor *boundaries, bool right)
{
    TERN_NAMED_IN_ERRORS;
    return tern_bucketize(boundaries ? number_beside(boundaries, value) : NULL, boundaries, right);
}

/* ---- unique ------------------------------------------------------------------------------ */

/* Returns for each element of x, not empty, the number of its run of equal elements, from 0. */
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
    tern_unique_result r = {
        .output = tern_new_empty(x, none),
        .inverse = tern_empty(tern_shape_of(x), TERN_I64, tern_device(x)),
        .counts = tern_empty(none, TERN_I64, tern_device(x)),
    };
    if (!r.output || !r.inverse || !r.counts)
        return tern_last_status();
    *out = r;
    return TERN_OK;
}

/* runs is the number of each element's run, 0 0 1 2 2 ..; starts is the index where each run
 * begins. Inverse indices are searched in the sorted values, as the sort has moved the elements. */
static tern_status unique(tern_tensor *x, bool sorted, tern_unique_result *out)
{
    tern_shape shape = tern_shape_of(x), flat = {1, {x->numel}};
    tern_values_indices both = {0};
    tern_tensor *elements = tern_reshape(x, flat), *sequence = elements;
    if (!elements)
        return tern_last_status();
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
    TERN_TRY(tern_hidden_read(tern_select(runs, 0, -1), &last, sizeof last, "tern_unique"));
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
    TERN_NAMED_IN_ERRORS;
    return without_gradient(x, true, out, __func__);
}

tern_status tern_unique_consecutive(tern_tensor *x, tern_unique_result *out)
{
    TERN_NAMED_IN_ERRORS;
    return without_gradient(x, false, out, __func__);
}
