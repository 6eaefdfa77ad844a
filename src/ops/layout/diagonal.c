/* diagonal.c -- diagonals: as views, as matrices, their sum; indices of triangular parts.
 *
 * A step along a diagonal is a step in both dims, so its stride in a view is the sum of their
 * strides. diagonal and diag_embed are each other's gradient. */
#include "base/checked.h"
#include "base/memory.h"
#include "ops/copy/copy.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/ops.h>

/* The offset-th diagonal of dims (dim1, dim2), which are its rows and columns. */
typedef struct diagonal_attributes {
    int64_t offset;
    int dim1, dim2;
} diagonal_attributes;

/* Returns the length of the offset-th diagonal, which ends at the nearer edge. */
static int64_t length_of(int64_t rows, int64_t columns, int64_t offset)
{
    int64_t down = offset < 0 ? rows + offset : rows,
            across = offset < 0 ? columns : columns - offset;
    int64_t n = down < across ? down : across;
    return n < 0 ? 0 : n;
}

/* Sets a view of x with the diagonal as its last dim. */
static void view_diagonal(tern_result *r, const tern_tensor *x, const diagonal_attributes *at)
{
    int k = 0;
    r->dtype = x->dtype;
    r->offset = x->offset;
    for (int d = 0; d < x->ndim; d++)
        if (d != at->dim1 && d != at->dim2) {
            r->shape.dims[k] = x->shape[d];
            r->stride[k++] = x->stride[d];
        }
    int64_t n = length_of(x->shape[at->dim1], x->shape[at->dim2], at->offset);
    r->shape.dims[k] = n;
    r->stride[k] = x->stride[at->dim1] + x->stride[at->dim2];
    r->shape.ndim = k + 1;
    if (n > 0)
        r->offset +=
            at->offset < 0 ? -at->offset * x->stride[at->dim1] : at->offset * x->stride[at->dim2];
}

static tern_status diagonal_infer(tern_call *call)
{
    call->n_out = 1;
    view_diagonal(&call->result[0], call->in[0], call->attributes);
    return TERN_OK;
}

/* ---- diag_embed: zeros around a diagonal ------------------------------------------------- */

typedef struct embed_attributes {
    tern_shape whole;
    diagonal_attributes diagonal;
} embed_attributes;

static tern_status embed_infer(tern_call *call)
{
    const embed_attributes *at = call->attributes;
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = at->whole;
    return tern_shape_numel(&at->whole, "tern_diag_embed") < 0 ? tern_last_status() : TERN_OK;
}

/* Fills the output with zeros, then copies x to the view of its diagonal. */
static tern_status embed_forward(tern_call *call)
{
    const embed_attributes *at = call->attributes;
    tern_tensor *out = call->out[0];
    tern_result r;
    if (out->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_zero_elements(out));
    view_diagonal(&r, out, &at->diagonal);
    tern_tensor *diagonal = tern_tensor_alias(out, &r.shape, r.stride, r.offset);
    tern_status status = diagonal ? tern_copy_elements(diagonal, call->in[0]) : tern_last_status();
    tern_release(diagonal);
    return status;
}

static tern_status embed_backward(tern_gradient *g)
{
    const embed_attributes *at = g->attributes;
    g->din[0] =
        tern_diagonal(g->dout[0], at->diagonal.offset, at->diagonal.dim1, at->diagonal.dim2);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op embed_op = {.name = "diag_embed",
                                 .infer = embed_infer,
                                 .forward = embed_forward,
                                 .backward = embed_backward};

static tern_status diagonal_backward(tern_gradient *g)
{
    embed_attributes at = {g->in_shape[0], *(const diagonal_attributes *)g->attributes};
    g->din[0] = tern_apply(&embed_op, g->dout, 1, &at, sizeof at);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op diagonal_op = {.name = "diagonal",
                                    .view = TERN_VIEW_ONE,
                                    .infer = diagonal_infer,
                                    .backward = diagonal_backward};

/* ---- public functions -------------------------------------------------------------------- */

static tern_status two_dims(int dim1, int dim2, int ndim, diagonal_attributes *at,
                            const char *function)
{
    TERN_TRY(tern_wrap_dim(dim1, ndim, &at->dim1, function));
    TERN_TRY(tern_wrap_dim(dim2, ndim, &at->dim2, function));
    if (at->dim1 == at->dim2)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: diagonal dimensions cannot be identical %d, %d",
                         function, dim1, dim2);
    return TERN_OK;
}

tern_tensor *tern_diagonal(tern_tensor *x, int64_t offset, int dim1, int dim2)
{
    diagonal_attributes at = {.offset = offset};
    if (!x)
        tern_fail_argument_null("tern_diagonal", "x");
    if (!x || two_dims(dim1, dim2, x->ndim, &at, "tern_diagonal") != TERN_OK)
        return NULL;
    return tern_apply(&diagonal_op, &x, 1, &at, sizeof at);
}

tern_tensor *tern_diag_embed(tern_tensor *x, int64_t offset, int dim1, int dim2)
{
    embed_attributes at = {.diagonal = {.offset = offset}};
    if (!x)
        tern_fail_argument_null("tern_diag_embed", "x");
    if (!x || two_dims(dim1, dim2, x->ndim + 1, &at.diagonal, "tern_diag_embed") != TERN_OK)
        return NULL;
    if (x->ndim == 0)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_diag_embed: expects at least a 1-dimensional "
                                              "tensor");
    if (x->ndim == TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_diag_embed: a tensor has at most %d dims, not %d",
                              TERN_MAX_DIMS, TERN_MAX_DIMS + 1);
    int64_t n = offset < 0 ? tern_size_sub(x->shape[x->ndim - 1], offset)
                           : tern_size_add(x->shape[x->ndim - 1], offset);
    at.whole.ndim = x->ndim + 1;
    for (int d = 0, k = 0; d < at.whole.ndim; d++)
        at.whole.dims[d] = d == at.diagonal.dim1 || d == at.diagonal.dim2 ? n : x->shape[k++];
    return tern_apply(&embed_op, &x, 1, &at, sizeof at);
}

tern_tensor *tern_diag(tern_tensor *x, int64_t diagonal)
{
    TERN_NAMED_IN_ERRORS;
    if (x && x->ndim != 1 && x->ndim != 2)
        return tern_fail_null(
            TERN_ERR_SHAPE, "tern_diag: matrix or a vector expected, but got a tensor of shape %s",
            TERN_TENSOR_TEXT(x));
    if (x && x->ndim == 1)
        return tern_diag_embed(x, diagonal, 0, 1);
    return tern_clone(tern_diagonal(x, diagonal, 0, 1));
}

tern_tensor *tern_diagflat(tern_tensor *x, int64_t offset)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *flat = tern_flatten(x, 0, -1);
    return flat ? tern_diag_embed(flat, offset, 0, 1) : NULL;
}

tern_tensor *tern_trace(tern_tensor *x)
{
    TERN_COMPOSED("trace", NONE, &x);
    if (x && x->ndim != 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_trace: expected a matrix, but got tensor with dim %d", x->ndim);
    tern_tensor *diagonal = tern_diagonal(x, 0, 0, 1);
    return diagonal ? tern_sum(diagonal) : NULL;
}

/* ---- tril_indices, triu_indices ---------------------------------------------------------- */

/* Returns the number of elements of rows x columns on and below the offset-th diagonal: from row
 * `start` on each row has one more, up to all columns. */
static int64_t count_below(int64_t rows, int64_t columns, int64_t offset)
{
    int64_t start = offset < 0 ? tern_size_sub(0, offset) : 0;
    if (start >= rows || columns == 0)
        return 0;
    int64_t first = tern_size_add(start, tern_size_add(offset, 1));
    first = first < columns ? first : columns;
    int64_t left = rows - start, growing = left < columns - first ? left : columns - first;
    int64_t twice = tern_size_mul(growing, tern_size_add(tern_size_mul(2, first), growing - 1));
    return tern_size_add(tern_size_div(twice, 2), tern_size_mul(left - growing, columns));
}

/* Writes the rows of the triangle's elements and then their columns to at[2 n]. */
static void list_triangle(int64_t *at, int64_t n, int64_t columns, int64_t offset, bool upper)
{
    int64_t k = 0;
    for (int64_t r = n > 0 && !upper && offset < 0 ? -offset : 0; k < n; r++) {
        int64_t edge = tern_size_add(r, offset);
        int64_t from = upper && edge > 0 ? edge : 0;
        int64_t to = upper || edge >= columns ? columns : edge + 1;
        for (int64_t c = from; c < to; c++, k++) {
            at[k] = r;
            at[n + k] = c;
        }
    }
}

/* Counts the elements, then writes the indices on the host, row by row, as in PyTorch. */
static tern_tensor *triangular_indices(int64_t rows, int64_t columns, int64_t offset, bool upper,
                                       const char *device, const char *function)
{
    if (rows < 0 || columns < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: %s must be non-negative, got %lld", function,
                              rows < 0 ? "row" : "col", (long long)(rows < 0 ? rows : columns));
    if (upper && tern_size_sub(columns, offset) < rows) /* lower rows are empty */
        rows = columns > offset ? tern_size_sub(columns, offset) : 0;
    int64_t n = upper ? tern_size_sub(tern_size_mul(rows, columns),
                                      count_below(rows, columns, tern_size_sub(offset, 1)))
                      : count_below(rows, columns, offset);
    tern_shape shape = {2, {2, n}};
    if (tern_shape_numel(&shape, function) < 0)
        return NULL;
    int64_t *at = tern_alloc(sizeof *at * 2 * (size_t)(n ? n : 1));
    if (!at)
        return NULL;
    list_triangle(at, n, columns, offset, upper);
    tern_tensor *out = tern_from_data(at, shape, TERN_I64, device);
    tern_free(at);
    return out;
}

tern_tensor *tern_tril_indices(int64_t row, int64_t col, int64_t offset, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return triangular_indices(row, col, offset, false, device, __func__);
}

tern_tensor *tern_triu_indices(int64_t row, int64_t col, int64_t offset, const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return triangular_indices(row, col, offset, true, device, __func__);
}
