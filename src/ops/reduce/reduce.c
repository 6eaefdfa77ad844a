/* reduce.c -- sums and means, and sums to a shape that was broadcast. */
#include "ops/reduce/reduction.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* ---- launches ---------------------------------------------------------------------------- */

/* The kernels of a sum, for rows, short rows and columns: kernels of elements, of parts of the
 * elements, and of the results of parts. */
typedef struct sum_kernels {
    tern_kernel_ref rows, short_rows;
    int columns; /* a value of tern_beside_kernels */
} sum_kernels;
static const sum_kernels sum_elements = {
    {"reduce", "sum_rows"}, {"reduce", "sum_short"}, TERN_BESIDE_SUM_COLUMNS};
static const sum_kernels sum_part = {.rows = {"reduce", "sum_rows_part"},
                                     .columns = TERN_BESIDE_SUM_COLUMNS_PART};
static const sum_kernels sum_merge = {.rows = {"reduce", "sum_rows_merge"},
                                      .columns = TERN_BESIDE_SUM_COLUMNS_MERGE};
static const sum_kernels deviations = {
    {"reduce", "deviation_rows"}, {"reduce", "deviation_short"}, TERN_BESIDE_DEVIATION_COLUMNS};

static tern_status launch_sum(const sum_kernels *kernels, tern_dtype dtype,
                              const tern_reduction_view *f, const tern_tensor *out,
                              const tern_tensor *shift, double divisor)
{
    tern_place *place = out->storage->place;
    if (tern_reduction_is_short(f) && kernels->short_rows.name)
        return TERN_LAUNCH(place, &kernels->short_rows, dtype, tern_items_of(f->outer, f->n),
                           tern_arg_out(out), tern_arg_in(f->x), tern_arg_optional(shift, out),
                           tern_arg_i64(f->outer), tern_arg_i64(f->n),
                           tern_arg_real(dtype, divisor));
    int64_t work = f->outer * f->n * f->inner / f->groups + 64;
    if (f->inner == 1)
        return TERN_LAUNCH(place, &kernels->rows, dtype, tern_rows(f->groups, f->len, work),
                           tern_arg_out(out), tern_arg_in(f->x), tern_arg_optional(shift, out),
                           tern_arg_i64(f->outer), tern_arg_i64(f->n), tern_arg_i64(f->parts),
                           tern_arg_i64(f->len), tern_arg_real(dtype, divisor));
    return TERN_LAUNCH(place, &tern_beside_kernels[kernels->columns], dtype,
                       tern_groups(f->groups, work), tern_arg_out(out), tern_arg_in(f->x),
                       tern_arg_optional(shift, out), tern_arg_i64(f->outer), tern_arg_i64(f->n),
                       tern_arg_i64(f->parts), tern_arg_i64(f->len), tern_arg_real(dtype, divisor),
                       tern_arg_i64(f->inner), tern_arg_i64(f->abreast));
}

/* Returns the dtype in which sums of `dtype` are computed. */
static tern_dtype kept_in(tern_dtype dtype)
{
    return dtype == TERN_F64 ? dtype : tern_dtype_is_floating_point(dtype) ? TERN_F32 : TERN_I64;
}

/* Computes out = the sum along n, divided by divisor. `first` is sum_elements, or deviations (from
 * shift). */
static tern_status run_sum(const sum_kernels *first, tern_reduction_view *f, tern_tensor *out,
                           const tern_tensor *shift, double divisor)
{
    tern_dtype dtype = f->x->dtype, kept = kept_in(dtype);
    if (f->parts == 1)
        return launch_sum(first, dtype, f, out, shift, divisor);
    bool half = tern_dtype_is_half(dtype);
    tern_shape shape = {1, {f->outer * f->parts * f->inner}};
    tern_tensor *partial = tern_tensor_new(&shape, kept, out->storage->place, "tern_sum");
    if (!partial)
        return tern_last_status();
    tern_status status = launch_sum(half ? &sum_part : first, dtype, f, partial, shift, 1);
    tern_reduction_view rest = tern_reduction_rest(f, partial);
    if (status == TERN_OK)
        status = launch_sum(half ? &sum_merge : &sum_elements, half ? dtype : kept, &rest, out,
                            NULL, divisor);
    tern_release(partial);
    return status;
}

tern_status tern_reduction_sum(tern_reduction_view *f, tern_tensor *out, double divisor)
{
    return run_sum(&sum_elements, f, out, NULL, divisor);
}

tern_status tern_reduction_deviations(tern_reduction_view *f, tern_tensor *out,
                                      const tern_tensor *mean, double divisor)
{
    return run_sum(&deviations, f, out, mean, divisor);
}

/* ---- sum and mean ------------------------------------------------------------------------ */

typedef struct sum_attributes {
    tern_shape shape; /* shape of the result */
    uint32_t mask;
} sum_attributes;

enum { SUM, MEAN };

static tern_status sum_infer(tern_call *call)
{
    const sum_attributes *at = call->attributes;
    tern_dtype dtype = call->in[0]->dtype;
    bool floating = tern_dtype_is_floating_point(dtype);
    if (call->op->variant == MEAN && !floating)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_mean: mean(): could not infer output dtype. Input dtype must be a "
                         "floating point dtype. Got: %s",
                         tern_dtype_name(dtype));
    call->n_out = 1;
    call->result[0].dtype = floating ? dtype : TERN_I64;
    call->result[0].shape = at->shape;
    return TERN_OK;
}

static tern_status sum_into(tern_tensor *out, tern_tensor *x, uint32_t mask, double divisor)
{
    if (out->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_fill_(out, tern_scalar_real(0 / divisor)) ? TERN_OK : tern_last_status();
    tern_reduction_view f;
    TERN_TRY(tern_reduction_begin(&f, x, mask, false));
    tern_status status = tern_reduction_sum(&f, out, divisor);
    tern_reduction_end(&f);
    return status;
}

static tern_status sum_forward(tern_call *call)
{
    const sum_attributes *at = call->attributes;
    tern_shape shape = tern_shape_of(call->in[0]);
    return sum_into(call->out[0], call->in[0], at->mask,
                    call->op->variant == MEAN ? (double)tern_masked_count(&shape, at->mask) : 1);
}

static tern_status sum_backward(tern_gradient *g)
{
    const sum_attributes *at = g->attributes;
    tern_tensor *dout = g->dout[0];
    if (g->op->variant == MEAN)
        dout = tern_div_scalar(
            dout, tern_scalar_real((double)tern_masked_count(&g->in_shape[0], at->mask)));
    g->din[0] = tern_expand_masked(dout, &g->in_shape[0], at->mask);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op sum_op = {.name = "sum",
                               .names = TERN_NAMES(TERN_DIMS_FIELD(sum_attributes, "dims", mask)),
                               .cast = TERN_CAST_FLOAT32,
                               .variant = SUM,
                               .infer = sum_infer,
                               .forward = sum_forward,
                               .backward = sum_backward};
static const tern_op mean_op = {.name = "mean",
                                .names = TERN_NAMES(TERN_DIMS_FIELD(sum_attributes, "dims", mask)),
                                .variant = MEAN,
                                .infer = sum_infer,
                                .forward = sum_forward,
                                .backward = sum_backward};

tern_tensor *tern_sum_masked(tern_tensor *x, uint32_t mask, const tern_shape *shape)
{
    sum_attributes at = {*shape, mask};
    return tern_apply(&sum_op, &x, 1, &at, sizeof at);
}

/* ---- expand: the gradient of sum, whose own gradient is sum -------------------------------- */

typedef struct expand_attributes {
    tern_shape shape;
    uint32_t mask;
} expand_attributes;

static tern_status expand_infer(tern_call *call)
{
    const expand_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = &call->result[0];
    int kept = 0;
    for (int d = 0; d < at->shape.ndim; d++)
        kept += !(at->mask >> d & 1);
    bool dropped = kept == x->ndim; /* without keepdim x lacks the masked dims */
    int own = dropped ? 0 : x->ndim - at->shape.ndim;
    for (int d = 0; d < at->shape.ndim; d++) {
        bool masked = at->mask >> d & 1;
        r->stride[d] = masked || own < 0 ? 0 : x->stride[own];
        own += !(dropped && masked);
    }
    call->n_out = 1;
    r->dtype = x->dtype;
    r->shape = at->shape;
    r->offset = x->offset;
    return TERN_OK;
}

static tern_status expand_backward(tern_gradient *g)
{
    const expand_attributes *at = g->attributes;
    g->din[0] = tern_sum_masked(g->dout[0], at->mask, &g->in_shape[0]);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op expand_op = {.name = "expand",
                                  .names =
                                      TERN_NAMES(TERN_DIMS_FIELD(expand_attributes, "dims", mask)),
                                  .view = TERN_VIEW_ONE,
                                  .infer = expand_infer,
                                  .backward = expand_backward};

tern_tensor *tern_expand_masked(tern_tensor *x, const tern_shape *shape, uint32_t mask)
{
    expand_attributes at = {*shape, mask};
    return tern_apply(&expand_op, &x, 1, &at, sizeof at);
}

/* ---- public functions -------------------------------------------------------------------- */

static tern_tensor *reduce(const tern_op *op, tern_tensor *x, const tern_shape *dims, bool keepdim,
                           const char *function)
{
    sum_attributes at;
    if (tern_reduction_of(x, dims, keepdim, &at.mask, &at.shape, function) != TERN_OK)
        return NULL;
    return tern_apply(op, &x, 1, &at, sizeof at);
}

static const tern_shape all = {0};

tern_tensor *tern_sum(tern_tensor *x)
{
    return reduce(&sum_op, x, &all, false, "tern_sum");
}

tern_tensor *tern_sum_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return reduce(&sum_op, x, &dims, keepdim, __func__);
}

tern_tensor *tern_mean(tern_tensor *x)
{
    return reduce(&mean_op, x, &all, false, "tern_mean");
}

tern_tensor *tern_mean_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return reduce(&mean_op, x, &dims, keepdim, __func__);
}

/* ---- sum to a shape ---------------------------------------------------------------------- */

/* Sets *mask to the dims of `from` that were added or widened when `to` was broadcast to `from`.
 * Returns false if `to` does not broadcast to `from`. */
static bool broadcast_mask(const tern_shape *from, const tern_shape *to, uint32_t *mask)
{
    int added = from->ndim - to->ndim;
    *mask = 0;
    for (int d = 0; d < from->ndim; d++) {
        if (d < added || (to->dims[d - added] == 1 && from->dims[d] != 1))
            *mask |= 1u << d;
        else if (to->dims[d - added] != from->dims[d])
            return false;
    }
    return added >= 0;
}

tern_tensor *tern_sum_to(tern_tensor *x, const tern_shape *shape)
{
    tern_shape own = tern_shape_of(x);
    uint32_t mask;
    if (tern_shape_equal(&own, shape))
        return x;
    if (!broadcast_mask(&own, shape, &mask))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_sum_to_size: size {%s} is not expandable to size {%s}.",
                              TERN_SHAPE_TEXT(shape), TERN_SHAPE_TEXT(&own));
    return tern_sum_masked(x, mask, shape);
}

tern_tensor *tern_sum_to_size(tern_tensor *x, tern_shape shape)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(x, __func__, "x"))
        return NULL;
    if (tern_shape_numel(&shape, __func__) < 0)
        return NULL;
    if (shape.ndim == 0) /* the sum of all elements: integers become int64, as by tern_sum */
        return tern_sum(x);
    return tern_sum_to(x, &shape);
}
