/* reduce.c -- sum, mean, var, std, and gradients summed to the shape they were broadcast from. */
#include "ops/fold.h"
#include <math.h>
#include <tern/ops.h>

/* ---- launches
 * -------------------------------------------------------------------------------------------- */

/* One sum: rows and columns kernels for elements in, for parts of them, and for results of parts.
 */
typedef struct sum_kernels {
    tern_kernel_ref rows, columns;
} sum_kernels;
static const sum_kernels sum_whole = {{"reduce", "sum_rows"}, {"reduce", "sum_columns"}};
static const sum_kernels sum_part = {{"reduce", "sum_rows_part"}, {"reduce", "sum_columns_part"}};
static const sum_kernels sum_merge = {{"reduce", "sum_rows_merge"},
                                      {"reduce", "sum_columns_merge"}};
static const sum_kernels deviations = {{"reduce", "deviation_rows"},
                                       {"reduce", "deviation_columns"}};

static tern_status launch_sum(const sum_kernels *kernels, tern_dtype dtype, const tern_fold *f,
                              const tern_tensor *out, const tern_tensor *shift, double divisor)
{
    tern_arg args[] = {tern_arg_tensor(out),   tern_arg_tensor(f->x),
                       tern_arg_tensor(shift), tern_arg_i64(f->outer),
                       tern_arg_i64(f->n),     tern_arg_i64(f->parts),
                       tern_arg_i64(f->len),   tern_arg_real(dtype, divisor),
                       tern_arg_i64(f->inner), tern_arg_i64(f->folded)};
    bool rows = f->inner == 1;
    int64_t work = f->outer * f->n * f->inner / f->groups + 64;
    return tern_launch(out->storage->place, rows ? &kernels->rows : &kernels->columns, dtype,
                       tern_groups(f->groups, work), args, rows ? 8 : 10);
}

/* The type that sums of dtype are kept in. */
static tern_dtype kept_in(tern_dtype dtype)
{
    return dtype == TERN_F64 ? dtype : tern_dtype_is_floating_point(dtype) ? TERN_F32 : TERN_I64;
}

/* out = the sum over f's middle, divided. first is sum_whole, or deviations from shift. */
static tern_status sum_fold(const sum_kernels *first, tern_fold *f, tern_tensor *out,
                            const tern_tensor *shift, double divisor)
{
    tern_dtype dtype = f->x->dtype, kept = kept_in(dtype);
    if (f->parts == 1)
        return launch_sum(first, dtype, f, out, shift ? shift : out, divisor);
    bool half = dtype == TERN_F16 || dtype == TERN_BF16;
    tern_shape shape = {1, {f->outer * f->parts * f->inner}};
    tern_tensor *partial = tern_tensor_new(&shape, kept, out->storage->place, "tern_sum");
    if (!partial)
        return tern_last_status();
    tern_status status =
        launch_sum(half ? &sum_part : first, dtype, f, partial, shift ? shift : partial, 1);
    tern_fold rest = tern_fold_rest(f, partial);
    if (status == TERN_OK)
        status = launch_sum(half ? &sum_merge : &sum_whole, half ? dtype : kept, &rest, out, out,
                            divisor);
    tern_release(partial);
    return status;
}

/* ---- sum and mean
 * -------------------------------------------------------------------------------------- */

typedef struct sum_attributes {
    tern_shape shape; /* of the result */
    uint32_t mask;
} sum_attributes;

/* What tells sum and mean apart. */
typedef struct sum_kind {
    bool mean;
} sum_kind;
static const sum_kind sum_is = {false}, mean_is = {true};

static tern_status sum_infer(tern_call *call)
{
    const sum_attributes *at = call->attributes;
    const sum_kind *kind = call->op->data;
    tern_dtype dtype = call->in[0]->dtype;
    bool floating = tern_dtype_is_floating_point(dtype);
    if (kind->mean && !floating)
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
    tern_fold f;
    TERN_TRY(tern_fold_begin(&f, x, mask));
    tern_status status = sum_fold(&sum_whole, &f, out, NULL, divisor);
    tern_fold_end(&f);
    return status;
}

static tern_status sum_forward(tern_call *call)
{
    const sum_attributes *at = call->attributes;
    const sum_kind *kind = call->op->data;
    tern_shape shape = tern_shape_of(call->in[0]);
    return sum_into(call->out[0], call->in[0], at->mask,
                    kind->mean ? (double)tern_masked_count(&shape, at->mask) : 1);
}

static tern_status sum_backward(tern_gradient *g)
{
    const sum_attributes *at = g->attributes;
    const sum_kind *kind = g->op->data;
    tern_tensor *dout = g->dout[0];
    if (kind->mean)
        dout = tern_div_scalar(
            dout, tern_scalar_real((double)tern_masked_count(&g->in_shape[0], at->mask)));
    g->din[0] = tern_spread(dout, &g->in_shape[0], at->mask);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op sum_op = {.name = "sum",
                               .data = &sum_is,
                               .infer = sum_infer,
                               .forward = sum_forward,
                               .backward = sum_backward};
static const tern_op mean_op = {.name = "mean",
                                .data = &mean_is,
                                .infer = sum_infer,
                                .forward = sum_forward,
                                .backward = sum_backward};

tern_tensor *tern_sum_masked(tern_tensor *x, uint32_t mask, const tern_shape *shape)
{
    sum_attributes at = {*shape, mask};
    return tern_apply(&sum_op, &x, 1, &at, sizeof at);
}

static tern_tensor *reduce(const tern_op *op, tern_tensor *x, const tern_shape *dims, bool keepdim,
                           const char *function)
{
    sum_attributes at;
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (tern_dims_mask(dims, x->ndim, &at.mask, function) != TERN_OK)
        return NULL;
    tern_shape shape = tern_shape_of(x);
    at.shape = tern_masked_shape(&shape, at.mask, keepdim);
    return tern_apply(op, &x, 1, &at, sizeof at);
}

static const tern_shape all = {0};

tern_tensor *tern_sum(tern_tensor *x)
{
    return reduce(&sum_op, x, &all, false, "tern_sum");
}

tern_tensor *tern_sum_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    return reduce(&sum_op, x, &dims, keepdim, "tern_sum_dim");
}

tern_tensor *tern_mean(tern_tensor *x)
{
    return reduce(&mean_op, x, &all, false, "tern_mean");
}

tern_tensor *tern_mean_dim(tern_tensor *x, tern_shape dims, bool keepdim)
{
    return reduce(&mean_op, x, &dims, keepdim, "tern_mean_dim");
}

/* ---- sum to a shape
 * -------------------------------------------------------------------------------------- */

/* The dims of from that were added or widened when to was broadcast to it; false if it was not. */
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

tern_tensor *tern_hook_sum_to(tern_tensor *x, const tern_shape *shape)
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
    if (!x) {
        tern_fail_argument_null("tern_sum_to_size", "x");
        return NULL;
    }
    if (tern_shape_numel(&shape, "tern_sum_to_size") < 0)
        return NULL;
    return tern_hook_sum_to(x, &shape);
}

/* ---- variance and standard deviation: the mean first, then the squared deviations from it
 * ----------------- */

typedef struct var_attributes {
    tern_shape shape;
    int64_t correction;
    uint32_t mask;
} var_attributes;

/* What tells var and std apart. */
typedef struct var_kind {
    bool root;
} var_kind;
static const var_kind var_is = {false}, std_is = {true};

static tern_status var_infer(tern_call *call)
{
    const var_attributes *at = call->attributes;
    if (!tern_dtype_is_floating_point(call->in[0]->dtype))
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: std and var only support floating point dtypes, not %s",
                         call->op->name, tern_dtype_name(call->in[0]->dtype));
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = at->shape;
    return TERN_OK;
}

static tern_status var_into(tern_tensor *out, tern_tensor *x, const var_attributes *at)
{
    tern_fold f;
    tern_tensor *mean = tern_tensor_new(&at->shape, x->dtype, x->storage->place, "tern_var");
    if (!mean)
        return tern_last_status();
    tern_status status = tern_fold_begin(&f, x, at->mask);
    if (status == TERN_OK) {
        double freedom = (double)(f.n - at->correction);
        status = sum_fold(&sum_whole, &f, mean, NULL, (double)f.n);
        if (status == TERN_OK)
            status = sum_fold(&deviations, &f, out, mean, freedom > 0 ? freedom : 0);
        tern_fold_end(&f);
    }
    tern_release(mean);
    return status;
}

static tern_status var_forward(tern_call *call)
{
    const var_attributes *at = call->attributes;
    const var_kind *kind = call->op->data;
    tern_tensor *x = call->in[0], *out = call->out[0];
    tern_status status = TERN_OK;
    if (out->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_fill_(out, tern_scalar_real(NAN)) ? TERN_OK : tern_last_status();
    if (x->dtype == TERN_F32 || x->dtype == TERN_F64) {
        status = var_into(out, x, at);
    } else { /* both passes in f32 */
        tern_shape shape = tern_shape_of(x);
        tern_tensor *wide = tern_tensor_new(&shape, TERN_F32, call->place, "tern_var");
        tern_tensor *result = tern_tensor_new(&at->shape, TERN_F32, call->place, "tern_var");
        status = wide && result ? tern_hook_copy(wide, x) : tern_last_status();
        if (status == TERN_OK)
            status = var_into(result, wide, at);
        if (status == TERN_OK)
            status = tern_hook_copy(out, result);
        tern_release(wide);
        tern_release(result);
    }
    if (status == TERN_OK && kind->root && !tern_sqrt_(out))
        status = tern_last_status();
    return status;
}

/* dx = 2 (x - mean) / (n - correction) dvar; dvar = dstd / (2 std), 0 where std is 0. */
static tern_status var_backward(tern_gradient *g)
{
    const var_attributes *at = g->attributes;
    const var_kind *kind = g->op->data;
    const tern_shape *shape = &g->in_shape[0];
    double freedom = (double)(tern_masked_count(shape, at->mask) - at->correction);
    tern_tensor *x = g->in[0], *dvar = g->dout[0];
    if (kind->root) {
        tern_tensor *zero = tern_eq_scalar(g->out[0], tern_scalar_int(0));
        dvar = tern_div(dvar, tern_mul_scalar(g->out[0], tern_scalar_int(2)));
        dvar = tern_masked_fill(dvar, zero, tern_scalar_int(0));
    }
    sum_attributes as_mean = {at->shape, at->mask};
    tern_tensor *mean = tern_apply(&mean_op, &x, 1, &as_mean, sizeof as_mean);
    tern_tensor *deviation = tern_sub(x, mean ? tern_spread(mean, shape, at->mask) : NULL);
    dvar = tern_mul_scalar(dvar, tern_scalar_real(2 / freedom));
    g->din[0] = tern_mul(deviation, dvar ? tern_spread(dvar, shape, at->mask) : NULL);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op var_op = {.name = "var",
                               .saves = TERN_SAVE_IN(0),
                               .data = &var_is,
                               .infer = var_infer,
                               .forward = var_forward,
                               .backward = var_backward};
static const tern_op std_op = {.name = "std",
                               .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                               .data = &std_is,
                               .infer = var_infer,
                               .forward = var_forward,
                               .backward = var_backward};

static tern_tensor *variance(const tern_op *op, tern_tensor *x, const tern_shape *dims,
                             int64_t correction, bool keepdim, const char *function)
{
    var_attributes at = {.correction = correction};
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (tern_dims_mask(dims, x->ndim, &at.mask, function) != TERN_OK)
        return NULL;
    tern_shape shape = tern_shape_of(x);
    at.shape = tern_masked_shape(&shape, at.mask, keepdim);
    return tern_apply(op, &x, 1, &at, sizeof at);
}

tern_tensor *tern_var(tern_tensor *x, int64_t correction)
{
    return variance(&var_op, x, &all, correction, false, "tern_var");
}

tern_tensor *tern_var_dim(tern_tensor *x, tern_shape dims, int64_t correction, bool keepdim)
{
    return variance(&var_op, x, &dims, correction, keepdim, "tern_var_dim");
}

tern_tensor *tern_std(tern_tensor *x, int64_t correction)
{
    return variance(&std_op, x, &all, correction, false, "tern_std");
}

tern_tensor *tern_std_dim(tern_tensor *x, tern_shape dims, int64_t correction, bool keepdim)
{
    return variance(&std_op, x, &dims, correction, keepdim, "tern_std_dim");
}
