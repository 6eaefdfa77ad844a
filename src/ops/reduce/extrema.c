/* extrema.c -- maxima and minima: max, min, amax, amin, argmax, argmin; all and any. */
#include "ops/reduce/reduction.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* A variant of the operations is a combination of WANT_VALUES, WANT_PLACES and SMALLEST. The first
 * three are flags of the kernels. */
enum { WANT_VALUES = 1, WANT_PLACES = 2, FROM_PLACES = 4, SMALLEST = 8 };

typedef struct extremum_attributes {
    tern_shape shape; /* shape of the results */
    uint32_t mask;
    bool all_dims; /* no dims were given */
} extremum_attributes;

/* ---- forward ----------------------------------------------------------------------------- */

static tern_status refuse_empty(const tern_call *call, const extremum_attributes *at)
{
    const tern_tensor *x = call->in[0];
    const char *name = call->op->name;
    if (x->numel == 0 && at->all_dims)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: Expected reduction dim to be specified for input.numel() == 0. "
                         "Specify the reduction dim with the 'dim' argument.",
                         name);
    for (int d = 0; d < x->ndim; d++)
        if ((at->mask >> d & 1) && x->shape[d] == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_%s: Expected reduction dim %d to have non-zero size.", name, d);
    return TERN_OK;
}

static tern_status extremum_infer(tern_call *call)
{
    const extremum_attributes *at = call->attributes;
    const int32_t variant = call->op->variant;
    TERN_TRY(refuse_empty(call, at));
    call->n_out = 0;
    if (variant & WANT_VALUES)
        call->result[call->n_out++] =
            (tern_result){.dtype = call->in[0]->dtype, .shape = at->shape};
    if (variant & WANT_PLACES)
        call->result[call->n_out++] = (tern_result){.dtype = TERN_I64, .shape = at->shape};
    return TERN_OK;
}

static tern_status launch_extremum(int32_t variant, const tern_reduction_view *f,
                                   const tern_tensor *values, const tern_tensor *places,
                                   const tern_tensor *from)
{
    static const tern_kernel_ref rows = {"reduce", "extremum_rows"},
                                 columns = {"reduce", "extremum_columns"};
    static const tern_kernel_ref short_rows = {"reduce", "extremum_short"};
    int32_t what =
        (values ? WANT_VALUES : 0) | (places ? WANT_PLACES : 0) | (from ? FROM_PLACES : 0);
    const tern_tensor *any = values ? values : places; /* passed in place of the absent output */
    int32_t flip = variant & SMALLEST ? -1 : 0;
    tern_arg value = values ? tern_arg_out(values) : tern_arg_unused(any);
    tern_arg index = places ? tern_arg_out(places) : tern_arg_unused(any);
    tern_place *place = any->storage->place;
    if (tern_reduction_is_short(f) && !from)
        return TERN_LAUNCH(place, &short_rows, f->x->dtype, tern_items_of(f->outer, f->n), value,
                           index, tern_arg_in(f->x), tern_arg_i64(f->outer), tern_arg_i64(f->n),
                           tern_arg_i32(flip), tern_arg_i32(what));
    int64_t work = f->outer * f->n * f->inner / f->groups + 64;
    if (f->inner == 1)
        return TERN_LAUNCH(place, &rows, f->x->dtype, tern_teams(f->groups, f->len, work), value,
                           index, tern_arg_in(f->x), tern_arg_optional(from, any),
                           tern_arg_i64(f->outer), tern_arg_i64(f->n), tern_arg_i64(f->parts),
                           tern_arg_i64(f->len), tern_arg_i32(flip), tern_arg_i32(what));
    return TERN_LAUNCH(place, &columns, f->x->dtype, tern_groups(f->groups, work), value, index,
                       tern_arg_in(f->x), tern_arg_optional(from, any), tern_arg_i64(f->outer),
                       tern_arg_i64(f->n), tern_arg_i64(f->parts), tern_arg_i64(f->len),
                       tern_arg_i32(flip), tern_arg_i32(what), tern_arg_i64(f->inner),
                       tern_arg_i64(f->abreast));
}

static tern_status reduce_extremum(int32_t variant, tern_reduction_view *f, tern_tensor *values,
                                   tern_tensor *places)
{
    if (f->parts == 1)
        return launch_extremum(variant, f, values, places, NULL);
    tern_place *place = f->x->storage->place;
    tern_shape shape = {1, {f->outer * f->parts * f->inner}};
    tern_tensor *part = tern_tensor_new(&shape, f->x->dtype, place, "tern_max"), *from = NULL;
    if (places)
        from = tern_tensor_new(&shape, TERN_I64, place, "tern_max");
    tern_status status = part && (from || !places) ? launch_extremum(variant, f, part, from, NULL)
                                                   : tern_last_status();
    if (status == TERN_OK) {
        tern_reduction_view rest = tern_reduction_rest(f, part);
        status = launch_extremum(variant, &rest, values, places, from);
    }
    tern_release(part);
    tern_release(from);
    return status;
}

static tern_status extremum_forward(tern_call *call)
{
    const extremum_attributes *at = call->attributes;
    const int32_t variant = call->op->variant;
    if (call->in[0]->numel == 0)
        return TERN_OK;
    tern_reduction_view f;
    TERN_TRY(tern_reduction_begin(&f, call->in[0], at->mask, variant & WANT_PLACES));
    tern_tensor *values = variant & WANT_VALUES ? call->out[0] : NULL;
    tern_tensor *places = variant & WANT_PLACES ? call->out[values != NULL] : NULL;
    tern_status status = reduce_extremum(variant, &f, values, places);
    tern_reduction_end(&f);
    return status;
}

/* ---- backward ---------------------------------------------------------------------------- */

/* Distributes dy evenly among all elements that equal the result, where NaN equals NaN. */
static tern_status ties_backward(tern_gradient *g)
{
    const extremum_attributes *at = g->attributes;
    tern_tensor *x = g->in[0];
    tern_tensor *y = tern_expand_masked(g->out[0], &g->in_shape[0], at->mask);
    tern_tensor *tie =
        tern_logical_or(tern_eq(x, y), tern_logical_and(tern_isnan(x), tern_isnan(y)));
    tern_tensor *count = tie ? tern_sum_masked(tie, at->mask, &at->shape) : NULL;
    tern_tensor *share = tern_div(g->dout[0], tern_to_dtype(count, g->dout[0]->dtype));
    share = share ? tern_expand_masked(share, &g->in_shape[0], at->mask) : NULL;
    g->din[0] = tern_mul(share, tie);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* Passes dy to the element that was chosen. */
static tern_status place_backward(tern_gradient *g)
{
    const extremum_attributes *at = g->attributes;
    const tern_shape *shape = &g->in_shape[0];
    int dim = 0;
    while (dim < shape->ndim && !(at->mask >> dim & 1))
        dim++;
    if (shape->ndim == 0) {
        g->din[0] = g->dout[0];
        return TERN_OK;
    }
    tern_tensor *steps =
        tern_arange(0, (double)shape->dims[dim], 1, TERN_I64, tern_device(g->dout[0]));
    steps = steps ? tern_expand_masked(steps, shape, ~(1u << dim)) : NULL;
    tern_tensor *chosen = tern_eq(tern_expand_masked(g->out[1], shape, at->mask), steps);
    g->din[0] = tern_mul(tern_expand_masked(g->dout[0], shape, at->mask), chosen);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* ---- public functions -------------------------------------------------------------------- */

#define EXTREMUM_NAMES TERN_NAMES(TERN_DIMS_FIELD(extremum_attributes, "dims", mask))
#define TIES_OP(NAME, VARIANT)                                                                     \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .names = EXTREMUM_NAMES,                                     \
                                      .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),                 \
                                      .variant = (VARIANT),                                        \
                                      .infer = extremum_infer,                                     \
                                      .forward = extremum_forward,                                 \
                                      .backward = ties_backward}
#define PLACE_OP(NAME, VARIANT)                                                                    \
    static const tern_op NAME##_dim_op = {.name = #NAME,                                           \
                                          .names = EXTREMUM_NAMES,                                 \
                                          .saves = TERN_SAVE_OUT(1),                               \
                                          .no_grad_out = 1u << 1,                                  \
                                          .variant = (VARIANT),                                    \
                                          .infer = extremum_infer,                                 \
                                          .forward = extremum_forward,                             \
                                          .backward = place_backward}
#define ARG_OP(NAME, VARIANT)                                                                      \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .names = EXTREMUM_NAMES,                                     \
                                      .takes = TERN_TAKES_NUMBERS,                                 \
                                      .not_differentiable = true,                                  \
                                      .variant = (VARIANT),                                        \
                                      .infer = extremum_infer,                                     \
                                      .forward = extremum_forward}
TIES_OP(max, WANT_VALUES);
TIES_OP(min, WANT_VALUES | SMALLEST);
TIES_OP(amax, WANT_VALUES);
TIES_OP(amin, WANT_VALUES | SMALLEST);
PLACE_OP(max, WANT_VALUES | WANT_PLACES);
PLACE_OP(min, WANT_VALUES | WANT_PLACES | SMALLEST);
ARG_OP(argmax, WANT_PLACES);
ARG_OP(argmin, WANT_PLACES | SMALLEST);

static tern_status reduce(const tern_op *op, tern_tensor *x, const tern_shape *dims, bool keepdim,
                          const char *function, tern_tensor **out, int n)
{
    extremum_attributes at = {.all_dims = dims->ndim == 0};
    TERN_TRY(tern_reduction_of(x, dims, keepdim, &at.mask, &at.shape, function));
    return tern_apply_all(op, &x, 1, &at, sizeof at, out, n);
}

static tern_tensor *reduce_one(const tern_op *op, tern_tensor *x, tern_shape dims, bool keepdim,
                               const char *function)
{
    tern_tensor *out = NULL;
    return reduce(op, x, &dims, keepdim, function, &out, 1) == TERN_OK ? out : NULL;
}

static const tern_shape all_dims = {0};

static tern_shape one_dim(int dim)
{
    tern_shape dims = {1, {dim}};
    return dims;
}

#define OVER_ALL(NAME)                                                                             \
    tern_tensor *tern_##NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return reduce_one(&NAME##_op, x, all_dims, false, "tern_" #NAME);                          \
    }
#define OVER_DIMS(NAME)                                                                            \
    tern_tensor *tern_##NAME(tern_tensor *x, tern_shape dims, bool keepdim)                        \
    {                                                                                              \
        return reduce_one(&NAME##_op, x, dims, keepdim, "tern_" #NAME);                            \
    }
#define ALONG_DIM(NAME)                                                                            \
    tern_tensor *tern_##NAME##_dim(tern_tensor *x, int dim, bool keepdim)                          \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return reduce_one(&NAME##_op, x, one_dim(dim), keepdim, "tern_" #NAME "_dim");             \
    }
#define VALUES_INDICES(NAME)                                                                       \
    tern_status tern_##NAME##_dim(tern_tensor *x, int dim, bool keepdim, tern_values_indices *out) \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        tern_tensor *both[2];                                                                      \
        tern_shape dims = one_dim(dim);                                                            \
        if (!out)                                                                                  \
            return tern_fail_argument_null("tern_" #NAME "_dim", "out");                           \
        TERN_TRY(reduce(&NAME##_dim_op, x, &dims, keepdim, "tern_" #NAME "_dim", both, 2));        \
        *out = (tern_values_indices){both[0], both[1]};                                            \
        return TERN_OK;                                                                            \
    }
OVER_ALL(max)
OVER_ALL(min)
OVER_ALL(argmax)
OVER_ALL(argmin)
OVER_DIMS(amax)
OVER_DIMS(amin)
ALONG_DIM(argmax)
ALONG_DIM(argmin)
VALUES_INDICES(max)
VALUES_INDICES(min)

/* ---- all and any: the minimum and the maximum of x != 0 ---------------------------------- */

static tern_tensor *truth(const tern_op *op, tern_tensor *x, tern_shape dims, bool keepdim,
                          const char *function)
{
    uint32_t mask;
    tern_shape kept;
    if (tern_reduction_of(x, &dims, keepdim, &mask, &kept, function) != TERN_OK)
        return NULL;
    tern_shape shape = tern_shape_of(x);
    tern_dtype dtype = x->dtype == TERN_U8 ? TERN_U8 : TERN_BOOL;
    if (tern_masked_count(&shape, mask) == 0)
        return tern_full(kept, tern_scalar_bool(op == &amin_op), dtype, tern_device(x));
    if (x->dtype != TERN_BOOL)
        x = tern_ne_scalar(x, tern_scalar_int(0));
    return tern_to_dtype(reduce_one(op, x, dims, keepdim, function), dtype);
}

tern_tensor *tern_all(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return truth(&amin_op, x, all_dims, false, __func__);
}

tern_tensor *tern_any(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return truth(&amax_op, x, all_dims, false, __func__);
}

tern_tensor *tern_all_dim(tern_tensor *x, int dim, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return truth(&amin_op, x, one_dim(dim), keepdim, __func__);
}

tern_tensor *tern_any_dim(tern_tensor *x, int dim, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return truth(&amax_op, x, one_dim(dim), keepdim, __func__);
}

/* An empty list of dims reduces no dim here: each element gives a result. */
static tern_tensor *truth_over(const tern_op *op, tern_tensor *x, tern_shape dims, bool keepdim,
                               const char *function)
{
    if (!x || dims.ndim != 0)
        return truth(op, x, dims, keepdim, function);
    return tern_to_dtype(tern_ne_scalar(x, tern_scalar_int(0)),
                         x->dtype == TERN_U8 ? TERN_U8 : TERN_BOOL);
}

tern_tensor *tern_all_dims(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return truth_over(&amin_op, x, dims, keepdim, __func__);
}

tern_tensor *tern_any_dims(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return truth_over(&amax_op, x, dims, keepdim, __func__);
}
