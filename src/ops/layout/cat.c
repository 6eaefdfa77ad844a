/* cat.c -- concatenation: each tensor is copied to its part of the result, and its gradient is the
 * same part of dy. */
#include "ops/copy/copy.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

enum { MOST_AT_ONCE = 4 };

static bool legacy_empty(const tern_tensor *x)
{
    return x->ndim == 1 && x->shape[0] == 0; /* PyTorch accepts it with any shape */
}

/* Returns the first tensor that determines shape and dtype. */
static const tern_tensor *pattern(tern_tensor *const *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!legacy_empty(x[i]))
            return x[i];
    return x[0];
}

/* Returns whether all tensors are channels_last; the result then is too, as in PyTorch. */
static bool all_last(tern_tensor *const *x, int n)
{
    bool one = false;
    for (int i = 0; i < n; i++) {
        one = one || tern_is_channels_last(x[i]);
        if (x[i]->ndim < 4 ||
            !tern_is_contiguous_format(x[i], (tern_memory_format)(x[i]->ndim - 3)))
            return false;
    }
    return one;
}

static tern_status cat_infer(tern_call *call)
{
    const int *dim = call->attributes;
    const tern_tensor *first = pattern(call->in, call->n_in);
    tern_shape shape = tern_shape_of(first);
    shape.dims[*dim] = 0; /* a 0-dim tensor is an error below */
    for (int i = 0; i < call->n_in; i++) {
        const tern_tensor *x = call->in[i];
        if (legacy_empty(x))
            continue;
        if (x->ndim == 0)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_cat: zero-dimensional tensor (at position %d) cannot be "
                             "concatenated",
                             i);
        if (x->ndim != first->ndim)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_cat: Tensors must have same number of dimensions: got %d and %d",
                             first->ndim, x->ndim);
        for (int d = 0; d < x->ndim; d++)
            if (d != *dim && x->shape[d] != first->shape[d])
                return tern_fail(TERN_ERR_SHAPE,
                                 "tern_cat: Sizes of tensors must match except in dimension %d. "
                                 "Expected size %lld but got size %lld for tensor number %d in the "
                                 "list.",
                                 *dim, (long long)first->shape[d], (long long)x->shape[d], i);
        shape.dims[*dim] += x->shape[*dim];
    }
    call->n_out = 1;
    call->channels_last = all_last(call->in, call->n_in);
    call->result[0].dtype = first->dtype;
    call->result[0].shape = shape;
    return tern_shape_numel(&shape, "tern_cat") < 0 ? tern_last_status() : TERN_OK;
}

/* Copies all tensors by one launch, if they are few, dense in one format, and on a device where a
 * launch costs more than the copy. *taken is whether it did. */
static tern_status cat_at_once(const tern_call *call, bool *taken)
{
    static const tern_kernel_ref kernel = {"copy", "cat"};
    const int *dim = call->attributes;
    tern_tensor *y = call->out[0], *const *x = call->in;
    tern_arg in[MOST_AT_ONCE];
    int64_t n[MOST_AT_ONCE] = {0}, rows = 1, inner = 1;
    *taken = false;
    if (call->n_in > MOST_AT_ONCE || !tern_place_is_grouped(call->place) || y->numel == 0 ||
        !tern_dtype_is_floating_point(y->dtype) || tern_dtype_is_stored(y->dtype))
        return TERN_OK;
    bool inside = false;
    for (int i = 0; i < y->ndim; i++) {
        int d = call->channels_last ? tern_channels_last_dim(i, y->ndim) : i;
        *(inside ? &inner : &rows) *= d == *dim ? 1 : y->shape[d];
        inside = inside || d == *dim;
    }
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        bool there = i < call->n_in;
        if (there && (x[i]->numel == 0 || !(call->channels_last || x[i]->contiguous)))
            return TERN_OK;
        in[i] = there ? tern_arg_in(x[i]) : tern_arg_unused(x[0]);
        n[i] = there ? x[i]->shape[*dim] * inner : 0;
    }
    *taken = true;
    return TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items(y->numel), tern_arg_out(y), in[0],
                       in[1], in[2], in[3], tern_arg_i64(rows), tern_arg_i64(n[0]),
                       tern_arg_i64(n[1]), tern_arg_i64(n[2]), tern_arg_i64(n[3]));
}

/* Copies each input to the view of y that begins after the inputs before it. */
static tern_status cat_forward(tern_call *call)
{
    const int *dim = call->attributes;
    tern_tensor *y = call->out[0];
    int64_t at = 0;
    bool taken;
    TERN_TRY(cat_at_once(call, &taken));
    for (int i = 0; i < call->n_in && !taken; i++) {
        tern_tensor *x = call->in[i];
        if (legacy_empty(x) || x->numel == 0)
            continue;
        tern_shape shape = tern_shape_of(x);
        tern_tensor *part = tern_tensor_alias(y, &shape, y->stride, at * y->stride[*dim]);
        tern_status status = part ? tern_copy_elements(part, x) : TERN_ERR_MEMORY;
        tern_release(part);
        TERN_TRY(status);
        at += x->shape[*dim];
    }
    return TERN_OK;
}

/* dx_i = the part of dy where x_i was copied. */
static tern_status cat_backward(tern_gradient *g)
{
    const int *dim = g->attributes;
    int64_t at = 0;
    for (int i = 0; i < g->n_in; i++) {
        bool empty = g->in_shape[i].ndim == 1 && g->in_shape[i].dims[0] == 0;
        int64_t n = empty ? 0 : g->in_shape[i].dims[*dim];
        if (g->needs[i])
            g->din[i] = empty ? tern_new_zeros(g->dout[0], g->in_shape[i])
                              : tern_narrow(g->dout[0], *dim, at, n);
        if (g->needs[i] && !g->din[i])
            return tern_last_status();
        at += n;
    }
    return TERN_OK;
}

static const tern_op cat_op = {.name = "cat",
                               .names = TERN_NAMES(TERN_WHOLE(int, "dim")),
                               .stored = TERN_STORED_MOVED,
                               .cast = TERN_CAST_WIDEST,
                               .promotion = TERN_PROMOTE_SAME,
                               .infer = cat_infer,
                               .forward = cat_forward,
                               .backward = cat_backward};

/* Checks the list itself, before the dispatcher reads its members. */
static bool list(tern_tensor *const *tensors, int n, const char *function)
{
    if (!tensors || n < 1) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: expected a non-empty list of Tensors", function);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!tensors[i]) {
            tern_fail_argument_null(function, "a tensor of the list");
            return false;
        }
    return true;
}

tern_tensor *tern_cat(tern_tensor *const *tensors, int n, int dim)
{
    int d;
    if (!list(tensors, n, "tern_cat"))
        return NULL;
    const tern_tensor *first = pattern(tensors, n);
    if (legacy_empty(first))
        d = 0;
    else if (tern_wrap_dim(dim, first->ndim, &d, "tern_cat") != TERN_OK)
        return NULL;
    return tern_apply(&cat_op, tensors, n, &d, sizeof d);
}

static tern_tensor *stack_all(tern_tensor *const *tensors, int n, int dim, tern_tensor **rows)
{
    for (int i = 0; i < n; i++) {
        if (!tern_same_shape(tensors[0], tensors[i]))
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "tern_stack: stack expects each tensor to be equal size, but got "
                                  "%s at entry 0 and %s at entry %d",
                                  TERN_TENSOR_TEXT(tensors[0]), TERN_TENSOR_TEXT(tensors[i]), i);
        if (!(rows[i] = tern_unsqueeze(tensors[i], dim)))
            return NULL;
    }
    int d;
    if (tern_wrap_dim(dim, tensors[0]->ndim + 1, &d, "tern_stack") != TERN_OK)
        return NULL;
    return tern_cat(rows, n, d);
}

tern_tensor *tern_stack(tern_tensor *const *tensors, int n, int dim)
{
    TERN_NAMED_IN_ERRORS;
    if (!list(tensors, n, __func__))
        return NULL;
    tern_tensor **rows = tern_alloc(sizeof *rows * (size_t)n);
    tern_tensor *stacked = rows ? stack_all(tensors, n, dim, rows) : NULL;
    tern_free(rows);
    return stacked;
}
