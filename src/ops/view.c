/* view.c -- other looks at the same elements: shapes, orders of dims, repeated dims. */
#include "ops/look.h"
#include <string.h>
#include <tern/ops.h>

tern_status tern_look_infer(tern_call *call)
{
    const tern_look *l = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = l->shape;
    memcpy(call->result[0].stride, l->stride, sizeof l->stride);
    call->result[0].offset = call->in[0]->offset + l->offset;
    return TERN_OK;
}

/* ---- the same elements in another shape --------------------------------------------------------
 */

static tern_status view_backward(tern_gradient *g)
{
    g->din[0] = tern_reshape(g->dout[0], g->in_shape[0]);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op view_op = {
    .name = "view", .view = true, .infer = tern_look_infer, .backward = view_backward};

/* Work out a -1 in shape. */
static tern_status complete(const tern_tensor *x, tern_shape *shape, const char *function)
{
    int unknown = -1;
    int64_t known = 1;
    if (shape->ndim < 0 || shape->ndim > TERN_MAX_DIMS)
        return tern_shape_numel(shape, function) < 0 ? tern_last_status() : TERN_OK;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dims[i] == -1 && unknown >= 0)
            return tern_fail(TERN_ERR_SHAPE, "%s: only one dimension can be inferred", function);
        if (shape->dims[i] < -1)
            return tern_fail(TERN_ERR_SHAPE, "%s: invalid shape dimension %lld", function,
                             (long long)shape->dims[i]);
        if (shape->dims[i] == -1)
            unknown = i;
        else if (__builtin_mul_overflow(known, shape->dims[i], &known))
            known = -1; /* fits nothing */
    }
    if (unknown >= 0 && known == 0 && x->numel == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: cannot reshape tensor of 0 elements into shape %s because the "
                         "unspecified dimension size -1 can be any value and is ambiguous",
                         function, TERN_SHAPE_TEXT(shape));
    bool fits = unknown >= 0 ? known > 0 && x->numel % known == 0 : known == x->numel;
    if (!fits)
        return tern_fail(TERN_ERR_SHAPE, "%s: shape '%s' is invalid for input of size %lld",
                         function, TERN_SHAPE_TEXT(shape), (long long)x->numel);
    if (unknown >= 0)
        shape->dims[unknown] = x->numel / known;
    return TERN_OK;
}

/* Strides for shape over x's elements without a copy: each run of x's dims that lies without gaps
 * is cut anew. False where a dim of shape would span two runs. */
static bool restride(const tern_tensor *x, const tern_shape *shape, int64_t *stride)
{
    if (x->contiguous || x->numel == 0) {
        tern_dense_strides(shape, stride);
        return true;
    }
    int d = shape->ndim - 1;
    int64_t run = 1, step = x->ndim ? x->stride[x->ndim - 1] : 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        run *= x->shape[i];
        bool ends = i == 0 || (x->shape[i - 1] != 1 && x->stride[i - 1] != run * step);
        if (!ends)
            continue;
        int64_t cut = 1;
        while (d >= 0 && (cut < run || shape->dims[d] == 1)) {
            stride[d] = cut * step;
            cut *= shape->dims[d--];
        }
        if (cut != run)
            return false;
        if (i > 0)
            step = x->stride[i - 1];
        run = 1;
    }
    return d < 0;
}

static tern_tensor *viewed(tern_tensor *x, tern_shape shape, bool may_copy, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (complete(x, &shape, function) != TERN_OK)
        return NULL;
    tern_look l = {.shape = shape};
    if (restride(x, &shape, l.stride))
        return tern_apply(&view_op, &x, 1, &l, sizeof l);
    if (!may_copy)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: view size is not compatible with input tensor's size and stride "
                              "(at least one dimension spans across two contiguous subspaces). Use "
                              "tern_reshape instead.",
                              function);
    tern_dense_strides(&shape, l.stride);
    x = tern_clone(x);
    return tern_apply(&view_op, &x, 1, &l, sizeof l);
}

tern_tensor *tern_view(tern_tensor *x, tern_shape shape)
{
    return viewed(x, shape, false, "tern_view");
}

tern_tensor *tern_reshape(tern_tensor *x, tern_shape shape)
{
    return viewed(x, shape, true, "tern_reshape");
}

tern_tensor *tern_flatten(tern_tensor *x, int start_dim, int end_dim)
{
    int first, last;
    if (!x) {
        tern_fail_argument_null("tern_flatten", "x");
        return NULL;
    }
    if (tern_wrap_dim(start_dim, x->ndim, &first, "tern_flatten") != TERN_OK ||
        tern_wrap_dim(end_dim, x->ndim, &last, "tern_flatten") != TERN_OK)
        return NULL;
    if (first > last)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_flatten: flatten() has invalid args: start_dim cannot come "
                              "after end_dim (%d, %d)",
                              start_dim, end_dim);
    if (x->ndim == 0)
        return tern_reshape(x, (tern_shape){1, {1}});
    tern_shape shape = {0};
    int64_t product = 1;
    for (int i = 0; i < x->ndim; i++) {
        product = i > first && i <= last ? product * x->shape[i] : x->shape[i];
        if (i < first || i >= last)
            shape.dims[shape.ndim++] = product;
    }
    return tern_reshape(x, shape);
}

tern_tensor *tern_unflatten(tern_tensor *x, int dim, tern_shape sizes)
{
    int d;
    if (!x) {
        tern_fail_argument_null("tern_unflatten", "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &d, "tern_unflatten") != TERN_OK)
        return NULL;
    tern_shape part = {1, {x->ndim ? x->shape[d] : 1}};
    tern_tensor counted = {.numel = part.dims[0]};
    if (complete(&counted, &sizes, "tern_unflatten") != TERN_OK)
        return NULL;
    if (x->ndim - 1 + sizes.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_unflatten: a tensor has at most %d dims",
                              TERN_MAX_DIMS);
    tern_shape shape = {0};
    for (int i = 0; i < d; i++)
        shape.dims[shape.ndim++] = x->shape[i];
    for (int i = 0; i < sizes.ndim; i++)
        shape.dims[shape.ndim++] = sizes.dims[i];
    for (int i = d + 1; i < x->ndim; i++)
        shape.dims[shape.ndim++] = x->shape[i];
    return tern_view(x, shape);
}

tern_tensor *tern_squeeze(tern_tensor *x)
{
    tern_shape shape = {0};
    if (!x) {
        tern_fail_argument_null("tern_squeeze", "x");
        return NULL;
    }
    for (int i = 0; i < x->ndim; i++)
        if (x->shape[i] != 1)
            shape.dims[shape.ndim++] = x->shape[i];
    return tern_view(x, shape);
}

tern_tensor *tern_squeeze_dim(tern_tensor *x, int dim)
{
    int d;
    if (!x) {
        tern_fail_argument_null("tern_squeeze_dim", "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &d, "tern_squeeze_dim") != TERN_OK)
        return NULL;
    tern_shape shape = {0};
    for (int i = 0; i < x->ndim; i++)
        if (i != d || x->shape[i] != 1)
            shape.dims[shape.ndim++] = x->shape[i];
    return tern_view(x, shape);
}

tern_tensor *tern_unsqueeze(tern_tensor *x, int dim)
{
    int d;
    if (!x) {
        tern_fail_argument_null("tern_unsqueeze", "x");
        return NULL;
    }
    if (x->ndim == TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_unsqueeze: a tensor has at most %d dims",
                              TERN_MAX_DIMS);
    if (tern_wrap_dim(dim, x->ndim + 1, &d, "tern_unsqueeze") != TERN_OK)
        return NULL;
    tern_shape shape = tern_shape_of(x);
    memmove(shape.dims + d + 1, shape.dims + d, sizeof *shape.dims * (size_t)(x->ndim - d));
    shape.dims[d] = 1;
    shape.ndim++;
    return tern_view(x, shape);
}

/* ---- dims in another order
 * ------------------------------------------------------------------------ */

typedef struct order {
    tern_look look;
    tern_shape dims;
} order;

static tern_status permute_backward(tern_gradient *g)
{
    const order *o = g->attributes;
    tern_shape back = {.ndim = o->dims.ndim};
    for (int i = 0; i < back.ndim; i++)
        back.dims[o->dims.dims[i]] = i;
    g->din[0] = tern_permute(g->dout[0], back);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op permute_op = {
    .name = "permute", .view = true, .infer = tern_look_infer, .backward = permute_backward};

tern_tensor *tern_permute(tern_tensor *x, tern_shape dims)
{
    if (!x) {
        tern_fail_argument_null("tern_permute", "x");
        return NULL;
    }
    if (dims.ndim != x->ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_permute: permute(sparse_coo): number of dimensions in the "
                              "tensor input does not match the length of the desired ordering of "
                              "dimensions i.e. input.dim() = %d is not equal to len(dims) = %d",
                              x->ndim, dims.ndim);
    order o = {.look = {.shape = {.ndim = x->ndim}}, .dims = dims};
    bool seen[TERN_MAX_DIMS] = {false};
    for (int i = 0; i < x->ndim; i++) {
        int d;
        if (tern_wrap_dim(dims.dims[i], x->ndim, &d, "tern_permute") != TERN_OK)
            return NULL;
        if (seen[d])
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_permute: permute(): duplicate dims are not allowed.");
        seen[d] = true;
        o.dims.dims[i] = d;
        o.look.shape.dims[i] = x->shape[d];
        o.look.stride[i] = x->stride[d];
    }
    return tern_apply(&permute_op, &x, 1, &o, sizeof o);
}

tern_tensor *tern_transpose(tern_tensor *x, int dim0, int dim1)
{
    int a, b;
    if (!x) {
        tern_fail_argument_null("tern_transpose", "x");
        return NULL;
    }
    if (tern_wrap_dim(dim0, x->ndim, &a, "tern_transpose") != TERN_OK ||
        tern_wrap_dim(dim1, x->ndim, &b, "tern_transpose") != TERN_OK)
        return NULL;
    tern_shape dims = {.ndim = x->ndim};
    for (int i = 0; i < x->ndim; i++)
        dims.dims[i] = i == a ? b : i == b ? a : i;
    return tern_permute(x, dims);
}

tern_tensor *tern_t(tern_tensor *x)
{
    if (x && x->ndim > 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_t: t() expects a tensor with <= 2 dimensions, but self is %dD",
                              x->ndim);
    return x && x->ndim < 2 ? tern_view(x, tern_shape_of(x)) : tern_transpose(x, 0, 1);
}

/* ---- repeated dims
 * ----------------------------------------------------------------------------------- */

static tern_status expand_backward(tern_gradient *g)
{
    g->din[0] = tern_sum_to_size(g->dout[0], g->in_shape[0]);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op expand_op = {
    .name = "expand", .view = true, .infer = tern_look_infer, .backward = expand_backward};

tern_tensor *tern_expand(tern_tensor *x, tern_shape shape)
{
    if (!x) {
        tern_fail_argument_null("tern_expand", "x");
        return NULL;
    }
    int extra = shape.ndim - x->ndim;
    if (extra < 0 || shape.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_expand: expand(%s): the number of sizes provided (%d) must be "
                              "greater or equal to the number of dimensions in the tensor (%d)",
                              TERN_TENSOR_TEXT(x), shape.ndim, x->ndim);
    tern_look l = {.shape = shape};
    for (int i = 0; i < shape.ndim; i++) {
        int64_t own = i < extra ? 1 : x->shape[i - extra];
        int64_t want = shape.dims[i] == -1 && i >= extra ? own : shape.dims[i];
        if (want < 0 || (own != want && own != 1))
            return tern_fail_null(
                TERN_ERR_SHAPE,
                "tern_expand: The expanded size of the tensor (%lld) must match the existing size "
                "(%lld) at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                (long long)want, (long long)own, i, TERN_SHAPE_TEXT(&shape), TERN_TENSOR_TEXT(x));
        l.shape.dims[i] = want;
        l.stride[i] = i < extra || (own == 1 && want != 1) ? 0 : x->stride[i - extra];
    }
    if (tern_shape_numel(&l.shape, "tern_expand") < 0)
        return NULL;
    return tern_apply(&expand_op, &x, 1, &l, sizeof l);
}

tern_tensor *tern_expand_as(tern_tensor *x, const tern_tensor *other)
{
    if (!other) {
        tern_fail_argument_null("tern_expand_as", "other");
        return NULL;
    }
    return tern_expand(x, tern_shape_of(other));
}

tern_tensor *tern_broadcast_to(tern_tensor *x, tern_shape shape)
{
    return tern_expand(x, shape);
}
