/* view.c -- views of the same elements: with another shape, with permuted dims, expanded.
 *
 * A view has the storage of x, and its own shape, strides and offset: element i is at
 * offset + sum i[d] stride[d]. Its gradient is the inverse: a reshape, the inverse permutation, a
 * sum over the expanded dims. */
#include "tensor/op.h"
#include <stdio.h>
#include <string.h>
#include <tern/ops.h>

static tern_status valid_ndim(const tern_shape *shape, const char *function)
{
    if (shape->ndim >= 0 && shape->ndim <= TERN_MAX_DIMS)
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE, "%s: a tensor has at most %d dims, not %d", function,
                     TERN_MAX_DIMS, shape->ndim);
}

/* Sets the one result of a view, with the dtype and offset of x, and returns it. */
static tern_result *begin_view(tern_call *call)
{
    tern_result *r = &call->result[0];
    call->n_out = 1;
    r->dtype = call->in[0]->dtype;
    r->offset = call->in[0]->offset;
    return r;
}

/* ---- reshaping --------------------------------------------------------------------------- */

/* Checks that the number of elements of an empty view's shape does not overflow. */
static tern_status countable(const tern_shape *shape, const char *op)
{
    char function[TERN_FUNCTION_BYTES];
    snprintf(function, sizeof function, "tern_%s", op);
    return tern_shape_numel(shape, function) < 0 ? TERN_ERR_SHAPE : TERN_OK;
}

/* Sets shape to wanted with -1 replaced by the remaining size, for numel elements. */
static tern_status complete(const tern_shape *wanted, int64_t numel, tern_shape *shape,
                            const char *op)
{
    int missing = -1;
    int64_t product = 1;
    bool fits = true;
    *shape = *wanted;
    for (int d = 0; d < wanted->ndim; d++) {
        int64_t n = wanted->dims[d];
        if (n < -1)
            return tern_fail(TERN_ERR_SHAPE, "tern_%s: invalid shape dimension %lld", op,
                             (long long)n);
        if (n == -1 && missing >= 0)
            return tern_fail(TERN_ERR_SHAPE, "tern_%s: only one dimension can be inferred", op);
        if (n == -1)
            missing = d;
        else
            fits = !__builtin_mul_overflow(product, n, &product) && fits;
    }
    if (fits && missing >= 0 && product == 0 && numel == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: cannot reshape tensor of 0 elements into shape %s because the "
                         "unspecified dimension size -1 can be any value and is ambiguous",
                         op, TERN_SHAPE_TEXT(wanted));
    if (missing >= 0 && fits && product > 0 && numel % product == 0) {
        shape->dims[missing] = numel / product;
        return numel ? TERN_OK : countable(shape, op);
    }
    if (missing < 0 && fits && product == numel)
        return numel ? TERN_OK : countable(shape, op);
    return tern_fail(TERN_ERR_SHAPE, "tern_%s: shape '%s' is invalid for input of size %lld", op,
                     TERN_SHAPE_TEXT(wanted), (long long)numel);
}

/* Sets the strides with which `shape` has the elements of x in order, or returns false if there are
 * none. Dims of x that are contiguous with each other form a run; whole dims of `shape` must cover
 * each run. */
static bool view_strides(const tern_tensor *x, const tern_shape *shape, int64_t *stride)
{
    if (x->numel == 0) {
        tern_dense_strides(shape, stride);
        return true;
    }
    int v = shape->ndim - 1;
    int64_t run = 1, step = x->ndim ? x->stride[x->ndim - 1] : 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        run *= x->shape[d];
        if (d > 0 && (x->shape[d - 1] == 1 || x->stride[d - 1] == run * step))
            continue;
        int64_t used = 1;
        for (; v >= 0 && (used < run || shape->dims[v] == 1); v--) {
            stride[v] = used * step;
            used *= shape->dims[v];
        }
        if (used != run)
            return false;
        run = 1;
        step = d > 0 ? x->stride[d - 1] : step;
    }
    for (; v >= 0; v--)
        stride[v] = step;
    return true;
}

/* The result is a view; where no strides exist for it, an error. */
static tern_status view_infer(tern_call *call)
{
    const tern_shape *wanted = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = begin_view(call);
    TERN_TRY(complete(wanted, x->numel, &r->shape, call->op->name));
    if (!view_strides(x, &r->shape, r->stride))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: view size is not compatible with input tensor's size and stride "
                         "(at least one dimension spans across two contiguous subspaces). Use "
                         "tern_reshape instead (%s as %s)",
                         call->op->name, TERN_TENSOR_TEXT(x), TERN_SHAPE_TEXT(wanted));
    return TERN_OK;
}

static tern_status view_backward(tern_gradient *g)
{
    g->din[0] = tern_reshape(g->dout[0], g->in_shape[0]);
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define VIEW_OP(NAME)                                                                              \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME, .view = TERN_VIEW_ONE, .infer = view_infer, .backward = view_backward}
VIEW_OP(view);
VIEW_OP(reshape);
VIEW_OP(flatten);
VIEW_OP(unflatten);
VIEW_OP(squeeze);
VIEW_OP(unsqueeze);

/* Returns x in the wanted shape, through a dense copy where a view is not possible. */
static tern_tensor *reshaped(const tern_op *op, tern_tensor *x, const tern_shape *wanted)
{
    tern_shape shape;
    int64_t stride[TERN_MAX_DIMS];
    if (complete(wanted, x->numel, &shape, op->name) != TERN_OK)
        return NULL;
    if (!view_strides(x, &shape, stride))
        x = tern_clone(x);
    return tern_apply(op, &x, 1, wanted, sizeof *wanted);
}

tern_tensor *tern_view(tern_tensor *x, tern_shape shape)
{
    if (valid_ndim(&shape, "tern_view") != TERN_OK)
        return NULL;
    return tern_apply(&view_op, &x, 1, &shape, sizeof shape);
}

tern_tensor *tern_reshape(tern_tensor *x, tern_shape shape)
{
    if (!x)
        tern_fail_argument_null("tern_reshape", "x");
    if (!x || valid_ndim(&shape, "tern_reshape") != TERN_OK)
        return NULL;
    return reshaped(&reshape_op, x, &shape);
}

tern_tensor *tern_flatten(tern_tensor *x, int start_dim, int end_dim)
{
    int first, last;
    if (!x)
        tern_fail_argument_null("tern_flatten", "x");
    if (!x || tern_wrap_dim(start_dim, x->ndim, &first, "tern_flatten") != TERN_OK ||
        tern_wrap_dim(end_dim, x->ndim, &last, "tern_flatten") != TERN_OK)
        return NULL;
    if (first > last)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_flatten: start_dim cannot come after end_dim (%d, %d)",
                              start_dim, end_dim);
    tern_shape shape = {.ndim = 0};
    for (int d = 0; d < first; d++)
        shape.dims[shape.ndim++] = x->shape[d];
    int64_t n = 1;
    for (int d = first; d <= last && d < x->ndim; d++)
        n *= x->shape[d];
    shape.dims[shape.ndim++] = n;
    for (int d = last + 1; d < x->ndim; d++)
        shape.dims[shape.ndim++] = x->shape[d];
    return reshaped(&flatten_op, x, &shape);
}

/* Sets the sizes that a dim of n elements is split into, with -1 replaced by the remaining size. */
static tern_status unflattened(const tern_shape *sizes, int64_t n, int dim, tern_shape *complete)
{
    int missing = -1;
    int64_t product = 1;
    bool fits = true;
    *complete = *sizes;
    for (int d = 0; d < sizes->ndim; d++) {
        if (sizes->dims[d] == -1 && missing >= 0)
            return tern_fail(TERN_ERR_SHAPE, "tern_unflatten: only one dimension can be inferred");
        if (sizes->dims[d] == -1)
            missing = d;
        else
            fits = fits && sizes->dims[d] >= 0 &&
                   !__builtin_mul_overflow(product, sizes->dims[d], &product);
    }
    if (missing >= 0 && fits && product > 0) {
        complete->dims[missing] = n / product;
        product *= n / product;
    }
    if (!fits || product != n)
        return tern_fail(
            TERN_ERR_SHAPE,
            "tern_unflatten: Provided sizes %s don't multiply up to the size of dim %d "
            "(%lld) in the input tensor",
            TERN_SHAPE_TEXT(sizes), dim, (long long)n);
    return TERN_OK;
}

tern_tensor *tern_unflatten(tern_tensor *x, int dim, tern_shape sizes)
{
    int d = 0;
    tern_shape shape = {.ndim = 0};
    if (!x)
        tern_fail_argument_null("tern_unflatten", "x");
    if (!x || valid_ndim(&sizes, "tern_unflatten") != TERN_OK ||
        tern_wrap_dim(dim, x->ndim, &d, "tern_unflatten") != TERN_OK)
        return NULL;
    if (sizes.ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_unflatten: sizes must be non-empty");
    shape.ndim = x->ndim + sizes.ndim - (x->ndim > 0);
    tern_shape part;
    if (unflattened(&sizes, x->ndim ? x->shape[d] : 1, d, &part) != TERN_OK ||
        valid_ndim(&shape, "tern_unflatten") != TERN_OK)
        return NULL;
    size_t after = x->ndim ? (size_t)(x->ndim - d - 1) : 0;
    memcpy(shape.dims, x->shape, sizeof *x->shape * (size_t)d);
    memcpy(shape.dims + d, part.dims, sizeof *part.dims * (size_t)part.ndim);
    memcpy(shape.dims + d + part.ndim, x->shape + d + 1, sizeof *x->shape * after);
    return tern_apply(&unflatten_op, &x, 1, &shape, sizeof shape);
}

/* Returns x without the dims of size 1 whose bit is set in `dims`. */
static tern_tensor *squeezed(tern_tensor *x, uint32_t dims)
{
    tern_shape shape = {.ndim = 0};
    for (int d = 0; d < x->ndim; d++)
        if (x->shape[d] != 1 || !(dims >> d & 1))
            shape.dims[shape.ndim++] = x->shape[d];
    return tern_apply(&squeeze_op, &x, 1, &shape, sizeof shape);
}

tern_tensor *tern_squeeze(tern_tensor *x)
{
    if (!x) {
        tern_fail_argument_null("tern_squeeze", "x");
        return NULL;
    }
    return squeezed(x, ~(uint32_t)0);
}

tern_tensor *tern_squeeze_dim(tern_tensor *x, int dim)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!x)
        tern_fail_argument_null(__func__, "x");
    if (!x || tern_wrap_dim(dim, x->ndim, &d, __func__) != TERN_OK)
        return NULL;
    return squeezed(x, (uint32_t)1 << d);
}

tern_tensor *tern_squeeze_dims(tern_tensor *x, tern_shape dims)
{
    TERN_NAMED_IN_ERRORS;
    uint32_t mask = 0;
    if (!x)
        tern_fail_argument_null(__func__, "x");
    if (!x || valid_ndim(&dims, __func__) != TERN_OK)
        return NULL;
    for (int i = 0; i < dims.ndim; i++) {
        int d;
        if (tern_wrap_dim(dims.dims[i], x->ndim, &d, __func__) != TERN_OK)
            return NULL;
        if (mask >> d & 1)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_squeeze_dims: dim %d appears multiple times in the list of "
                                  "dims",
                                  d);
        mask |= (uint32_t)1 << d;
    }
    return squeezed(x, mask);
}

tern_tensor *tern_unsqueeze(tern_tensor *x, int dim)
{
    int d;
    if (!x)
        tern_fail_argument_null("tern_unsqueeze", "x");
    if (!x || tern_wrap_dim(dim, x->ndim + 1, &d, "tern_unsqueeze") != TERN_OK)
        return NULL;
    tern_shape shape = {.ndim = x->ndim + 1};
    if (valid_ndim(&shape, "tern_unsqueeze") != TERN_OK)
        return NULL;
    for (int i = 0; i < shape.ndim; i++)
        shape.dims[i] = i == d ? 1 : x->shape[i - (i > d)];
    return tern_apply(&unsqueeze_op, &x, 1, &shape, sizeof shape);
}

/* ---- permuted dims ----------------------------------------------------------------------- */

/* Dim i of the result is dim dims[i] of x: shape and strides are permuted. */
static tern_status permute_infer(tern_call *call)
{
    const tern_shape *dims = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = begin_view(call);
    uint32_t seen = 0;
    if (dims->ndim != x->ndim)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "tern_%s: number of dimensions in the tensor input does not match the "
            "length of the desired ordering of dimensions i.e. input.dim() = %d is not "
            "equal to len(dims) = %d",
            call->op->name, x->ndim, dims->ndim);
    r->shape.ndim = x->ndim;
    for (int i = 0; i < x->ndim; i++) {
        int d;
        TERN_TRY(tern_wrap_dim(dims->dims[i], x->ndim, &d, "tern_permute"));
        if (seen >> d & 1)
            return tern_fail(TERN_ERR_ARGUMENT, "tern_%s: duplicate dims are not allowed (%s)",
                             call->op->name, TERN_SHAPE_TEXT(dims));
        seen |= 1u << d;
        r->shape.dims[i] = x->shape[d];
        r->stride[i] = x->stride[d];
    }
    return TERN_OK;
}

/* The inverse permutation: inverse[dims[i]] = i. */
static tern_status permute_backward(tern_gradient *g)
{
    const tern_shape *dims = g->attributes;
    tern_shape inverse = {.ndim = dims->ndim};
    for (int i = 0; i < dims->ndim; i++)
        inverse.dims[dims->dims[i] + (dims->dims[i] < 0 ? dims->ndim : 0)] = i;
    g->din[0] = tern_permute(g->dout[0], inverse);
    return g->din[0] ? TERN_OK : tern_last_status();
}

#define PERMUTE_OP(NAME)                                                                           \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .names = TERN_NAMES(TERN_WHOLE(tern_shape, "dims")),         \
                                      .view = TERN_VIEW_ONE,                                       \
                                      .infer = permute_infer,                                      \
                                      .backward = permute_backward}
PERMUTE_OP(permute);
PERMUTE_OP(transpose);
PERMUTE_OP(t);

static tern_tensor *swapped(const tern_op *op, tern_tensor *x, int a, int b)
{
    tern_shape dims = {.ndim = x->ndim};
    for (int d = 0; d < x->ndim; d++)
        dims.dims[d] = d == a ? b : d == b ? a : d;
    return tern_apply(op, &x, 1, &dims, sizeof dims);
}

tern_tensor *tern_permute(tern_tensor *x, tern_shape dims)
{
    if (valid_ndim(&dims, "tern_permute") != TERN_OK)
        return NULL;
    return tern_apply(&permute_op, &x, 1, &dims, sizeof dims);
}

tern_tensor *tern_transpose(tern_tensor *x, int dim0, int dim1)
{
    int a, b;
    if (!x)
        tern_fail_argument_null("tern_transpose", "x");
    if (!x || tern_wrap_dim(dim0, x->ndim, &a, "tern_transpose") != TERN_OK ||
        tern_wrap_dim(dim1, x->ndim, &b, "tern_transpose") != TERN_OK)
        return NULL;
    return swapped(&transpose_op, x, a, b);
}

tern_tensor *tern_t(tern_tensor *x)
{
    if (!x) {
        tern_fail_argument_null("tern_t", "x");
        return NULL;
    }
    if (x->ndim > 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_t: expects a tensor with <= 2 dimensions, but self is %dD",
                              x->ndim);
    return x->ndim < 2 ? x : swapped(&t_op, x, 0, 1);
}

/* ---- expanded dims ----------------------------------------------------------------------- */

/* Sets stride 0 where a dim of size 1, or a new dim, is expanded. */
static tern_status expand_infer(tern_call *call)
{
    const tern_shape *wanted = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = begin_view(call);
    int front = wanted->ndim - x->ndim;
    if (front < 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: the number of sizes provided (%d) must be greater or equal to "
                         "the number of dimensions in the tensor (%d) (%s as %s)",
                         call->op->name, wanted->ndim, x->ndim, TERN_TENSOR_TEXT(x),
                         TERN_SHAPE_TEXT(wanted));
    r->shape.ndim = wanted->ndim;
    for (int i = 0; i < wanted->ndim; i++) {
        int64_t n = wanted->dims[i], own = i < front ? 1 : x->shape[i - front];
        if (i < front && n == -1)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_%s: The expanded size of the tensor (-1) isn't allowed in a "
                             "leading, non-existing dimension %d",
                             call->op->name, i);
        if (n == -1)
            n = own;
        if (n < 0 || (own != 1 && n != own))
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_%s: The expanded size of the tensor (%lld) must match the "
                             "existing size (%lld) at non-singleton dimension %d.  Target sizes: "
                             "%s.  Tensor sizes: %s",
                             call->op->name, (long long)n, (long long)own, i,
                             TERN_SHAPE_TEXT(wanted), TERN_TENSOR_TEXT(x));
        r->shape.dims[i] = n;
        r->stride[i] = i < front || (own == 1 && n != 1) ? 0 : x->stride[i - front];
    }
    return tern_shape_numel(&r->shape, "tern_expand") < 0 ? TERN_ERR_SHAPE : TERN_OK;
}

/* The dispatcher sums the gradient over the expanded dims. */
static tern_status expand_backward(tern_gradient *g)
{
    g->din[0] = g->dout[0];
    return TERN_OK;
}

static const tern_op expand_op = {
    .name = "expand", .view = TERN_VIEW_ONE, .infer = expand_infer, .backward = expand_backward};

tern_tensor *tern_expand(tern_tensor *x, tern_shape shape)
{
    if (valid_ndim(&shape, "tern_expand") != TERN_OK)
        return NULL;
    return tern_apply(&expand_op, &x, 1, &shape, sizeof shape);
}

tern_tensor *tern_expand_as(tern_tensor *x, const tern_tensor *other)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(other, __func__, "other"))
        return NULL;
    return tern_expand(x, tern_shape_of(other));
}

tern_tensor *tern_broadcast_to(tern_tensor *x, tern_shape shape)
{
    TERN_NAMED_IN_ERRORS;
    return tern_expand(x, shape);
}
