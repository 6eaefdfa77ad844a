/* variance.c -- var and std in two passes: the mean first, then the squared deviations from it.
 *
 *   var = sum (x - mean)^2 / max(n - correction, 0),   std = sqrt(var)
 *
 * The sum of squares minus the square of the sum would need one pass, but loses all digits if the
 * mean is large. */
#include "ops/reduce/reduction.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/ops.h>

typedef struct var_attributes {
    tern_shape shape;
    double correction;
    uint32_t mask;
} var_attributes;

enum { VAR, STD };

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

/* Computes the roots of variances. Where the squares overflow or underflow, the variances are
 * recomputed from scaled numbers. */
static tern_status root_of(tern_tensor *out, const tern_tensor *variances,
                           const tern_reduction_view *f, double freedom)
{
    static const tern_kernel_ref kernel = {"reduce", "std_root"};
    return TERN_LAUNCH(
        out->storage->place, &kernel, out->dtype, tern_teams(f->outer * f->inner, f->n, 4),
        tern_arg_out(out), tern_arg_in(variances), tern_arg_in(f->x), tern_arg_i64(f->outer),
        tern_arg_i64(f->n), tern_arg_i64(f->inner), tern_arg_real(out->dtype, freedom));
}

/* Computes the variance, or with `root` the standard deviation. The mean is stored, so that the
 * second pass subtracts it from each element before squaring. */
static tern_status var_into(tern_tensor *out, tern_tensor *x, const var_attributes *at, bool root)
{
    tern_reduction_view f;
    tern_place *place = x->storage->place;
    tern_tensor *mean = tern_tensor_new(&at->shape, x->dtype, place, "tern_var");
    tern_tensor *var = root ? tern_tensor_new(&at->shape, x->dtype, place, "tern_std") : out;
    tern_status status =
        mean && var ? tern_reduction_begin(&f, x, at->mask, false) : tern_last_status();
    if (mean && var && status == TERN_OK) {
        const double rest = (double)f.n - at->correction, freedom = rest > 0 ? rest : 0;
        status = tern_reduction_sum(&f, mean, (double)f.n);
        if (status == TERN_OK)
            status = tern_reduction_deviations(&f, var, mean, freedom);
        if (status == TERN_OK && root)
            status = root_of(out, var, &f, freedom);
        tern_reduction_end(&f);
    }
    tern_release(mean);
    tern_release(root ? var : NULL);
    return status;
}

static tern_status var_forward(tern_call *call)
{
    const var_attributes *at = call->attributes;
    tern_tensor *x = call->in[0], *out = call->out[0];
    tern_status status = TERN_OK;
    const bool root = call->op->variant == STD;
    if (out->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_fill_(out, tern_scalar_real(NAN)) ? TERN_OK : tern_last_status();
    if (x->dtype == TERN_F32 || x->dtype == TERN_F64) {
        status = var_into(out, x, at, root);
    } else { /* half precision: both passes and the root in float32 */
        tern_shape shape = tern_shape_of(x);
        tern_tensor *wide = tern_tensor_new(&shape, TERN_F32, call->place, "tern_var");
        tern_tensor *result = tern_tensor_new(&at->shape, TERN_F32, call->place, "tern_var");
        status = wide && result ? tern_copy_elements(wide, x) : tern_last_status();
        if (status == TERN_OK)
            status = var_into(result, wide, at, root);
        if (status == TERN_OK)
            status = tern_copy_elements(out, result);
        tern_release(wide);
        tern_release(result);
    }
    return status;
}

/* dx = 2 (x - mean) / (n - correction) dvar; dvar = dstd / (2 std), 0 where std is 0. Half
 * precision is computed in float32, since every deviation would contain the mean's rounding
 * error. */
static tern_status var_backward(tern_gradient *g)
{
    const var_attributes *at = g->attributes;
    const tern_shape *shape = &g->in_shape[0];
    tern_dtype dtype = g->in[0]->dtype, wide = dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    double freedom = (double)tern_masked_count(shape, at->mask) - at->correction;
    tern_tensor *x = tern_to_dtype(g->in[0], wide), *dvar = tern_to_dtype(g->dout[0], wide);
    if (g->op->variant == STD) {
        tern_tensor *std = tern_to_dtype(g->out[0], wide);
        tern_tensor *zero = tern_eq_scalar(std, tern_scalar_int(0));
        dvar = tern_div(dvar, tern_mul_scalar(std, tern_scalar_int(2)));
        dvar = tern_masked_fill(dvar, zero, tern_scalar_int(0));
    }
    tern_tensor *mean = tern_sum_masked(x, at->mask, &at->shape);
    mean = tern_div_scalar(mean, tern_scalar_real((double)tern_masked_count(shape, at->mask)));
    tern_tensor *deviation = tern_sub(x, mean ? tern_expand_masked(mean, shape, at->mask) : NULL);
    dvar = tern_mul_scalar(dvar, tern_scalar_real(2 / freedom));
    tern_tensor *dx = tern_mul(deviation, dvar ? tern_expand_masked(dvar, shape, at->mask) : NULL);
    g->din[0] = tern_to_dtype(dx, dtype);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op var_op = {.name = "var",
                               .names =
                                   TERN_NAMES(TERN_DIMS_FIELD(var_attributes, "dims", mask),
                                              TERN_FIELD(var_attributes, "correction", correction)),
                               .saves = TERN_SAVE_IN(0),
                               .variant = VAR,
                               .infer = var_infer,
                               .forward = var_forward,
                               .backward = var_backward};
static const tern_op std_op = {.name = "std",
                               .names =
                                   TERN_NAMES(TERN_DIMS_FIELD(var_attributes, "dims", mask),
                                              TERN_FIELD(var_attributes, "correction", correction)),
                               .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                               .variant = STD,
                               .infer = var_infer,
                               .forward = var_forward,
                               .backward = var_backward};

static tern_tensor *variance(const tern_op *op, tern_tensor *x, const tern_shape *dims,
                             double correction, bool keepdim, const char *function)
{
    var_attributes at = {.correction = correction};
    if (tern_reduction_of(x, dims, keepdim, &at.mask, &at.shape, function) != TERN_OK)
        return NULL;
    return tern_apply(op, &x, 1, &at, sizeof at);
}

static const tern_shape all = {0};

tern_tensor *tern_var(tern_tensor *x, double correction)
{
    return variance(&var_op, x, &all, correction, false, "tern_var");
}

tern_tensor *tern_var_dim(tern_tensor *x, tern_shape dims, double correction, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return variance(&var_op, x, &dims, correction, keepdim, __func__);
}

tern_tensor *tern_std(tern_tensor *x, double correction)
{
    return variance(&std_op, x, &all, correction, false, "tern_std");
}

tern_tensor *tern_std_dim(tern_tensor *x, tern_shape dims, double correction, bool keepdim)
{
    TERN_NAMED_IN_ERRORS;
    return variance(&std_op, x, &dims, correction, keepdim, __func__);
}
