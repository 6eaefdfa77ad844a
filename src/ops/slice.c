/* slice.c -- looks at a part of the elements: narrow, slice, select, split. */
#include "ops/look.h"
#include <string.h>
#include <tern/ops.h>

/* One dim cut to count elements from start by step, or (count -1) to one element, the dim going. */
typedef struct part {
    tern_look look;
    int dim;
    int64_t start, step, count;
} part;

static tern_tensor *cut(tern_tensor *x, int dim, int64_t start, int64_t step, int64_t count);

/* zeros of the input's shape around dout: the adjoint of a cut, whose own adjoint is the cut. */
typedef struct around {
    part part;
    tern_shape shape;
} around;

static tern_status around_infer(tern_call *call)
{
    const around *a = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = a->shape;
    return TERN_OK;
}

static tern_status around_forward(tern_call *call)
{
    const around *a = call->attributes;
    tern_tensor *y = call->out[0], *x = call->in[0];
    size_t size = tern_dtype_size(y->dtype);
    int64_t stride[TERN_MAX_DIMS];
    int n = 0;
    if (y->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_block_zero(y->storage->block, 0, (size_t)y->numel * size));
    for (int i = 0; i < y->ndim; i++)
        if (i != a->part.dim || a->part.count >= 0)
            stride[n++] = i == a->part.dim ? y->stride[i] * a->part.step : y->stride[i];
    tern_shape shape = tern_shape_of(x);
    tern_tensor *inside =
        tern_tensor_alias(y, &shape, stride, a->part.start * y->stride[a->part.dim]);
    tern_status status = inside ? tern_hook_copy(inside, x) : TERN_ERR_MEMORY;
    tern_release(inside);
    return status;
}

static tern_status around_backward(tern_gradient *g)
{
    const part *p = &((const around *)g->attributes)->part;
    g->din[0] = cut(g->dout[0], p->dim, p->start, p->step, p->count);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op around_op = {.name = "slice_backward",
                                  .infer = around_infer,
                                  .forward = around_forward,
                                  .backward = around_backward};

static tern_status cut_backward(tern_gradient *g)
{
    around a = {.part = *(const part *)g->attributes, .shape = g->in_shape[0]};
    memset(&a.part.look, 0, sizeof a.part.look);
    tern_tensor *dy = g->dout[0];
    g->din[0] = tern_apply(&around_op, &dy, 1, &a, sizeof a);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op cut_op = {
    .name = "slice", .view = true, .infer = tern_look_infer, .backward = cut_backward};

static tern_tensor *cut(tern_tensor *x, int dim, int64_t start, int64_t step, int64_t count)
{
    part p = {
        .look.shape = tern_shape_of(x), .dim = dim, .start = start, .step = step, .count = count};
    memcpy(p.look.stride, x->stride, sizeof p.look.stride);
    p.look.offset = start * x->stride[dim];
    if (count >= 0) {
        p.look.shape.dims[dim] = count;
        p.look.stride[dim] *= step;
    } else {
        size_t after = sizeof(int64_t) * (size_t)(x->ndim - dim - 1);
        memmove(p.look.shape.dims + dim, p.look.shape.dims + dim + 1, after);
        memmove(p.look.stride + dim, p.look.stride + dim + 1, after);
        p.look.shape.ndim--;
    }
    return tern_apply(&cut_op, &x, 1, &p, sizeof p);
}

/* The checks that narrow, slice and select share. */
static bool has_dim(tern_tensor *x, int dim, int *d, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return false;
    }
    if (x->ndim == 0) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: cannot be applied to a 0-dim tensor.", function);
        return false;
    }
    return tern_wrap_dim(dim, x->ndim, d, function) == TERN_OK;
}

tern_tensor *tern_narrow(tern_tensor *x, int dim, int64_t start, int64_t length)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_narrow"))
        return NULL;
    int64_t size = x->shape[d], from = start < 0 ? start + size : start;
    if (length < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_narrow: narrow(): length must be non-negative (%lld)",
                              (long long)length);
    if (from < 0 || from > size || length > size - from)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_narrow: start (%lld) + length (%lld) exceeds dimension size "
                              "(%lld).",
                              (long long)start, (long long)length, (long long)size);
    return cut(x, d, from, 1, length);
}

tern_tensor *tern_slice(tern_tensor *x, int dim, int64_t start, int64_t end, int64_t step)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_slice"))
        return NULL;
    if (step <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_slice: slice step must be positive (%lld)",
                              (long long)step);
    int64_t size = x->shape[d];
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = start < 0 ? 0 : start > size ? size : start;
    end = end < start ? start : end > size ? size : end;
    return cut(x, d, start, step, (end - start) / step + ((end - start) % step != 0));
}

tern_tensor *tern_select(tern_tensor *x, int dim, int64_t index)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_select"))
        return NULL;
    int64_t size = x->shape[d];
    if (index < -size || index >= size)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_select: index %lld is out of bounds for dimension %d with size "
                              "%lld",
                              (long long)index, d, (long long)size);
    return cut(x, d, index < 0 ? index + size : index, 1, -1);
}

/* ---- several parts at once
 * --------------------------------------------------------------------------- */

int tern_split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_split"))
        return -1;
    if (size <= 0) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_split: split expects split_size be positive, but got "
                  "split_size=%lld",
                  (long long)size);
        return -1;
    }
    int64_t n = x->shape[d] ? (x->shape[d] + size - 1) / size : 1;
    if (n > capacity || !pieces) {
        tern_fail(TERN_ERR_ARGUMENT, "tern_split: %lld pieces do not fit into %d places",
                  (long long)n, pieces ? capacity : 0);
        return -1;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t left = x->shape[d] - i * size;
        pieces[i] = cut(x, d, i * size, 1, left < size ? left : size);
        if (!pieces[i])
            return -1;
        if (pieces[i]->history)
            pieces[i]->history->multi_view = true;
    }
    return (int)n;
}

int tern_chunk(tern_tensor *x, int chunks, int dim, tern_tensor **pieces, int capacity)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_chunk"))
        return -1;
    if (chunks <= 0) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_chunk: chunk expects `chunks` to be greater than 0, got: %d", chunks);
        return -1;
    }
    int64_t size = (x->shape[d] + chunks - 1) / chunks;
    return tern_split(x, size ? size : 1, dim, pieces, capacity);
}
