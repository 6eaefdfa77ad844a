/* split.c -- a tensor split along one dim into views by one operation, whose gradient is one cat of
 * the gradients of the pieces. */
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops.h>

/* Pieces of `size` elements, at most TERN_MAX_OUTPUTS. */
typedef struct split_attributes {
    int dim;
    int64_t size;
} split_attributes;

/* Returns the number of pieces of `size` that cover n elements; an empty dim is one empty piece. */
static int64_t count_of(int64_t n, int64_t size)
{
    return n ? (n - 1) / size + 1 : 1;
}

/* Returns the length of piece i; the last piece may be shorter. */
static int64_t length_of(int64_t n, int64_t size, int64_t i)
{
    int64_t left = n - i * size;
    return left < size ? left : size;
}

static tern_status split_infer(tern_call *call)
{
    const split_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    int64_t n = x->shape[at->dim];
    call->n_out = (int)count_of(n, at->size);
    for (int i = 0; i < call->n_out; i++) {
        tern_result *r = &call->result[i];
        r->dtype = x->dtype;
        r->shape = tern_shape_of(x);
        r->shape.dims[at->dim] = length_of(n, at->size, i);
        for (int d = 0; d < x->ndim; d++)
            r->stride[d] = x->stride[d];
        r->offset = x->offset + i * at->size * x->stride[at->dim];
    }
    return TERN_OK;
}

/* Returns one tensor of the pieces' gradients if they are adjacent in memory, as an attention
 * writes them, else NULL. */
static tern_tensor *side_by_side(const tern_gradient *g)
{
    const split_attributes *at = g->attributes;
    const tern_tensor *first = g->dout[0];
    if (!first || g->recorded)
        return NULL;
    for (int i = 1; i < g->n_out; i++) {
        const tern_tensor *x = g->dout[i];
        if (!x || x->storage != first->storage || x->dtype != first->dtype ||
            x->offset != first->offset + i * at->size * first->stride[at->dim] ||
            memcmp(x->stride, first->stride, sizeof *x->stride * (size_t)x->ndim) != 0)
            return NULL;
    }
    return tern_scoped(tern_tensor_alias(first, &g->in_shape[0], first->stride, first->offset));
}

/* Concatenates the pieces' gradients, with zeros for a piece without gradient. */
static tern_status split_backward(tern_gradient *g)
{
    const split_attributes *at = g->attributes;
    tern_tensor *pieces[TERN_MAX_OUTPUTS], *some = NULL;
    if (g->n_out > 1 && (g->din[0] = side_by_side(g)))
        return TERN_OK;
    for (int i = 0; i < g->n_out && !some; i++)
        some = g->dout[i];
    for (int i = 0; i < g->n_out; i++) {
        tern_shape shape = g->in_shape[0];
        shape.dims[at->dim] = length_of(shape.dims[at->dim], at->size, i);
        pieces[i] = g->dout[i] ? g->dout[i] : tern_new_zeros(some, shape);
    }
    g->din[0] = g->n_out == 1 ? pieces[0] : tern_cat(pieces, g->n_out, at->dim);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op split_op = {.name = "split",
                                 .names = TERN_NAMES(TERN_FIELD(split_attributes, "dim", dim)),
                                 .view = TERN_VIEW_SEVERAL,
                                 .infer = split_infer,
                                 .backward = split_backward};

/* Fills pieces. More pieces than a node has outputs are split from larger ones, so that the
 * backward copies each element log(pieces) times, not once for each piece. */
static tern_status cut(tern_tensor *x, const split_attributes *at, tern_tensor **pieces)
{
    tern_tensor *part[TERN_MAX_OUTPUTS] = {NULL};
    split_attributes coarse = *at;
    int64_t n = x->shape[at->dim], each = 1;
    while (count_of(n, coarse.size) > TERN_MAX_OUTPUTS) {
        each *= TERN_MAX_OUTPUTS;
        coarse.size = at->size * each;
    }
    TERN_TRY(tern_apply_all(&split_op, &x, 1, &coarse, sizeof coarse, part, TERN_MAX_OUTPUTS));
    for (int64_t i = 0; i < TERN_MAX_OUTPUTS && part[i]; i++) {
        if (each == 1)
            pieces[i] = part[i];
        else
            TERN_TRY(cut(part[i], at, pieces + i * each));
    }
    return TERN_OK;
}

static int split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity,
                 const char *function)
{
    split_attributes at = {.dim = dim, .size = size ? size : 1};
    int64_t n = count_of(x->shape[dim], at.size);
    if (n > INT32_MAX || (pieces && n > capacity)) {
        tern_fail(TERN_ERR_ARGUMENT, "%s: %lld pieces do not fit into %d places", function,
                  (long long)n, capacity);
        return -1;
    }
    if (pieces && cut(x, &at, pieces) != TERN_OK)
        return -1;
    return (int)n;
}

static bool has_dim(const tern_tensor *x, int dim, int *wrapped, const char *function)
{
    if (!x) {
        tern_fail_argument_null(function, "x");
        return false;
    }
    if (x->ndim == 0) {
        tern_fail(TERN_ERR_SHAPE, "%s: expects at least a 1-dimensional tensor", function);
        return false;
    }
    return tern_wrap_dim(dim, x->ndim, wrapped, function) == TERN_OK;
}

int tern_split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity)
{
    int d;
    if (!has_dim(x, dim, &d, "tern_split"))
        return -1;
    if (size < 0) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_split: split expects split_size be non-negative, but got split_size=%lld",
                  (long long)size);
        return -1;
    }
    if (size == 0 && x->shape[d] > 0) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_split: split_size can only be 0 if dimension size is 0, but got dimension "
                  "size of %lld",
                  (long long)x->shape[d]);
        return -1;
    }
    return split(x, size, d, pieces, capacity, "tern_split");
}

int tern_chunk(tern_tensor *x, int chunks, int dim, tern_tensor **pieces, int capacity)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!has_dim(x, dim, &d, __func__))
        return -1;
    if (chunks <= 0) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_chunk: chunk expects `chunks` to be greater than 0, got: %d", chunks);
        return -1;
    }
    if (x->shape[d] > 0)
        return split(x, (x->shape[d] - 1) / chunks + 1, d, pieces, capacity, __func__);
    for (int i = 0; i < chunks && pieces; i++) /* as in PyTorch: chunks empty pieces */
        if (split(x, 0, d, pieces + i, capacity - i, __func__) < 0)
            return -1;
    return chunks;
}
