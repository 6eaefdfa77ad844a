/* tril.c -- triangular parts of matrices: tril keeps column - row <= diagonal, triu >= diagonal;
 * their gradients keep the same part. */
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { LOWER, UPPER };

static const tern_kernel_ref band_kernel = {"copy", "band"};

static tern_status triangular_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    if (x->ndim < 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: expected a matrix or a batch of matrices, but got shape %s",
                         call->op->name, TERN_TENSOR_TEXT(x));
    call->n_out = 1;
    call->result[0].dtype = x->dtype;
    call->result[0].shape = tern_shape_of(x);
    return TERN_OK;
}

/* Keeps elements with low <= column - row <= high; the diagonal is one of the two bounds. */
static tern_status triangular_forward(tern_call *call)
{
    const int64_t *diagonal = call->attributes;
    bool upper = call->op->variant == UPPER;
    tern_tensor *x = call->in[0], *y = call->out[0];
    if (y->numel == 0)
        return TERN_OK;
    int64_t n = y->shape[y->ndim - 2], m = y->shape[y->ndim - 1], rows = y->numel / m;
    tern_tensor *dense = x->contiguous ? tern_keep(x) : NULL;
    if (!dense) {
        dense = tern_tensor_new(&call->result[0].shape, x->dtype, call->place, "tern_tril");
        if (!dense)
            return tern_last_status();
        tern_status copied = tern_copy_elements(dense, x);
        if (copied != TERN_OK) {
            tern_release(dense);
            return copied;
        }
    }
    tern_status status =
        TERN_LAUNCH(call->place, &band_kernel, y->dtype, tern_items(y->numel), tern_arg_out(y),
                    tern_arg_in(dense), tern_arg_i64(rows), tern_arg_i64(n), tern_arg_i64(m),
                    tern_arg_i64(upper ? *diagonal : -n), tern_arg_i64(upper ? m : *diagonal));
    tern_release(dense);
    return status;
}

/* The gradient of the elements that were set to zero is zero. */
static tern_status triangular_backward(tern_gradient *g)
{
    const int64_t *diagonal = g->attributes;
    bool upper = g->op->variant == UPPER;
    g->din[0] = upper ? tern_triu(g->dout[0], *diagonal) : tern_tril(g->dout[0], *diagonal);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op tril_op = {.name = "tril",
                                .names = TERN_NAMES(TERN_WHOLE(int64_t, "diagonal")),
                                .variant = LOWER,
                                .infer = triangular_infer,
                                .forward = triangular_forward,
                                .backward = triangular_backward};
static const tern_op triu_op = {.name = "triu",
                                .names = TERN_NAMES(TERN_WHOLE(int64_t, "diagonal")),
                                .variant = UPPER,
                                .infer = triangular_infer,
                                .forward = triangular_forward,
                                .backward = triangular_backward};

tern_tensor *tern_tril(tern_tensor *x, int64_t diagonal)
{
    return tern_apply(&tril_op, &x, 1, &diagonal, sizeof diagonal);
}

tern_tensor *tern_triu(tern_tensor *x, int64_t diagonal)
{
    return tern_apply(&triu_op, &x, 1, &diagonal, sizeof diagonal);
}
