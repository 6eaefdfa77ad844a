/* unfold_dim.c -- sliding windows along a dim as a view.
 *
 * y[.., w, .., k] = x[.., w step + k, ..]: the new dim has the stride of x, the old dim step times
 * that stride. An element may be in several windows: the gradient is fold's sum of windows. */
#include "ops/convolution/unfold.h"
#include "base/checked.h"
#include <string.h>
#include <tern/ops.h>

typedef struct windows_attributes {
    int dim;
    int64_t size, step;
} windows_attributes;

/* The result has (n - size) / step + 1 windows; a scalar has one window of one element. */
static tern_status windows_infer(tern_call *call)
{
    const windows_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_result *r = &call->result[0];
    call->n_out = 1;
    r->dtype = x->dtype;
    r->offset = x->offset;
    r->shape = tern_shape_of(x);
    memcpy(r->stride, x->stride, sizeof *x->stride * (size_t)x->ndim);
    int64_t n = x->ndim ? x->shape[at->dim] : 1, stride = x->ndim ? x->stride[at->dim] : 1;
    if (x->ndim) {
        r->shape.dims[at->dim] = (n - at->size) / at->step + 1;
        r->stride[at->dim] = tern_size_mul(stride, at->step);
    }
    r->shape.dims[x->ndim] = at->size;
    r->stride[x->ndim] = stride;
    r->shape.ndim++;
    return TERN_OK;
}

/* Folds the gradients of the windows, as columns, into rows of dx. */
static tern_status windows_backward(tern_gradient *g)
{
    const windows_attributes *at = g->attributes;
    const tern_shape *own = &g->in_shape[0];
    if (own->ndim == 0) {
        g->din[0] = tern_reshape(g->dout[0], *own);
        return g->din[0] ? TERN_OK : tern_last_status();
    }
    tern_window w = {
        .ndim = 1, .kernel = {at->size}, .stride = {at->step}, .padding = {0}, .dilation = {1}};
    /* (..., windows, ..., size) -> (1, others * size, windows) */
    tern_tensor *dy = tern_movedim(g->dout[0], TERN_DIMS(at->dim), TERN_DIMS(-1));
    int64_t others = 1, n = own->dims[at->dim];
    for (int d = 0; d < own->ndim; d++)
        others *= d == at->dim ? 1 : own->dims[d];
    int64_t count = (n - at->size) / at->step + 1;
    dy = dy ? tern_reshape(dy, TERN_SHAPE(1, others * at->size, count)) : NULL;
    tern_tensor *dx =
        at->size ? tern_columns_sum(dy, &w, &n) : tern_new_zeros(dy, TERN_SHAPE(1, others, n));
    tern_shape rows = {.ndim = 0};
    for (int d = 0; d < own->ndim; d++)
        if (d != at->dim)
            rows.dims[rows.ndim++] = own->dims[d];
    rows.dims[rows.ndim++] = n;
    dx = tern_reshape(dx, rows);
    g->din[0] = dx ? tern_movedim(dx, TERN_DIMS(-1), TERN_DIMS(at->dim)) : NULL;
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op windows_op = {.name = "unfold_dim",
                                   .view = TERN_VIEW_ONE,
                                   .infer = windows_infer,
                                   .backward = windows_backward};

tern_tensor *tern_unfold_dim(tern_tensor *x, int dim, int64_t size, int64_t step)
{
    windows_attributes at = {.size = size, .step = step};
    if (!x)
        tern_fail_argument_null("tern_unfold_dim", "x");
    if (!x || tern_wrap_dim(dim, x->ndim, &at.dim, "tern_unfold_dim") != TERN_OK)
        return NULL;
    int64_t most = x->ndim ? x->shape[at.dim] : 1;
    if (size < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_unfold_dim: size is %lld but must be >= 0",
                              (long long)size);
    if (size > most)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_unfold_dim: maximum size for tensor at dimension %d is %lld "
                              "but size is %lld",
                              at.dim, (long long)most, (long long)size);
    if (step <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_unfold_dim: step is %lld but must be > 0",
                              (long long)step);
    if (x->ndim == TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_unfold_dim: a tensor has at most %d dims, not %d",
                              TERN_MAX_DIMS, TERN_MAX_DIMS + 1);
    return tern_apply(&windows_op, &x, 1, &at, sizeof at);
}
