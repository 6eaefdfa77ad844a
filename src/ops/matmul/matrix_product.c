/* matrix_product.c -- one matrix product of two tensors: its shapes, and layouts that need no copy.
 * gemm takes matrices whose rows or columns are dense, and at most two batch dims with any strides.
 * Most transposed, sliced and broadcast views already have that form; other views are copied. */
#include "ops/matmul/matrix_product.h"
#include "ops/copy/copy.h"
#include "ops/matmul/padded.h"
#include "tensor/tensor.h"
#include <assert.h>
#include <string.h>

/* A tensor as a batch (stack) of matrices. `row` and `column` are the strides of the matrix, `size`
 * and `step` the sizes and strides of the batch dims. */
typedef struct stack {
    tern_tensor *x;
    int64_t rows, columns, row, column;
    int ndim; /* number of batch dims */
    int64_t size[TERN_MAX_DIMS + 2], step[TERN_MAX_DIMS + 2];
} stack;

/* Describes x as a batch of matrices. Dims of size 1 broadcast: their stride is 0. `transpose`
 * swaps the strides and copies nothing. */
static void as_stack(stack *s, tern_tensor *x, uint8_t insert, bool transpose)
{
    int d = x->ndim;
    int64_t columns = 1, column = 0, rows = 1, row = 0;
    if (!(insert & TERN_AS_COLUMN)) {
        columns = x->shape[--d];
        column = x->stride[d];
    }
    if (!(insert & TERN_AS_ROW)) {
        rows = x->shape[--d];
        row = x->stride[d];
    }
    s->x = x;
    s->rows = transpose ? columns : rows;
    s->row = transpose ? column : row;
    s->columns = transpose ? rows : columns;
    s->column = transpose ? row : column;
    s->ndim = d;
    for (int i = 0; i < d; i++) {
        s->size[i] = x->shape[i];
        s->step[i] = x->shape[i] == 1 ? 0 : x->stride[i];
    }
}

/* Returns the number of matrices in the batch. */
static int64_t count_of(const stack *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->ndim; i++)
        n *= s->size[i];
    return n;
}

/* ---- shapes ------------------------------------------------------------------------------ */

/* Sets *shape to the shape that the batch dims of a and b broadcast to. */
static tern_status common_stack(const stack *a, const stack *b, tern_shape *shape, const char *name)
{
    tern_shape left = tern_shape_from(a->ndim, a->size), right = tern_shape_from(b->ndim, b->size);
    char function[32] = "tern_";
    strncat(function, name, sizeof function - 6);
    return tern_shape_broadcast(&left, &right, shape, function);
}

/* Checks that both operands have the same dtype, and that it is not bool. */
static tern_status check_dtypes(tern_tensor *x, tern_tensor *y, const char *name)
{
    if (x->dtype != y->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: mat1 and mat2 must have the same dtype, but got %s and %s", name,
                         tern_dtype_name(x->dtype), tern_dtype_name(y->dtype));
    if (x->dtype == TERN_BOOL)
        return tern_fail(TERN_ERR_DTYPE, "tern_%s: not implemented for %s", name,
                         tern_dtype_name(x->dtype));
    return TERN_OK;
}

/* Records PyTorch's error for shapes that do not match, which differs for vectors, a vector and a
 * matrix, matrices and batches. */
static tern_status refuse_shapes(const tern_product *p, const stack *a, const stack *b,
                                 const char *name)
{
    long long m = a->rows, k = a->columns, other = b->rows, n = b->columns, all = count_of(a);
    if (p->insert[0] & TERN_AS_ROW && p->insert[1] & TERN_AS_COLUMN)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: inconsistent tensor size, expected tensor [%lld] and src [%lld] "
                         "to have the same number of elements, but got %lld and %lld elements "
                         "respectively",
                         name, k, other, k, other);
    if (p->insert[1] & TERN_AS_COLUMN)
        return tern_fail(TERN_ERR_SHAPE, "tern_%s: size mismatch, got %lld, %lldx%lld,%lld", name,
                         all * m, all * m, k, other);
    if (b->ndim == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: mat1 and mat2 shapes cannot be multiplied (%lldx%lld and "
                         "%lldx%lld)",
                         name, all * m, k, other, n);
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_%s: Expected size for first two dimensions of batch2 tensor to be: "
                     "[%lld, %lld] but got: [%lld, %lld].",
                     name, (long long)count_of(b), k, (long long)count_of(b), other);
}

/* Infers the result's shape: (batch, m, k) times (batch, k, n) is (batch, m, n), without the dims
 * inserted for vectors, or (m, n) if the product is summed over the batch. */
tern_status tern_product_infer(const tern_product *p, tern_tensor *x, tern_tensor *y,
                               tern_result *result, const char *name)
{
    TERN_TRY(check_dtypes(x, y, name));
    stack a, b;
    as_stack(&a, x, p->insert[0], p->transpose[0]);
    as_stack(&b, y, p->insert[1], p->transpose[1]);
    tern_shape *shape = &result->shape;
    result->dtype = x->dtype;
    if (a.columns != b.rows)
        return refuse_shapes(p, &a, &b, name);
    if (p->sum) {
        shape->ndim = 0;
    } else if (b.ndim == 0) {
        *shape = tern_shape_from(a.ndim, a.size);
    } else {
        TERN_TRY(common_stack(&a, &b, shape, name));
    }
    if (shape->ndim + 2 > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "tern_%s: a result has at most %d dims", name,
                         TERN_MAX_DIMS);
    if (!(p->drop & TERN_AS_ROW))
        shape->dims[shape->ndim++] = a.rows;
    if (!(p->drop & TERN_AS_COLUMN))
        shape->dims[shape->ndim++] = b.columns;
    return TERN_OK;
}

/* ---- layouts ----------------------------------------------------------------------------- */

/* The broadcast batch dims of both operands, merged where the strides of both operands allow it. */
typedef struct batch_dims {
    int ndim;
    int64_t size[TERN_MAX_DIMS + 2], step[2][TERN_MAX_DIMS + 2];
} batch_dims;

/* Sets *j to the batch dims of a and b. Two neighbouring dims are merged if in both operands the
 * outer stride is the inner size times the inner stride. Dims of size 1 are dropped. */
static void merge_batch(const stack *a, const stack *b, batch_dims *j)
{
    int ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    j->ndim = 0;
    for (int d = 0; d < ndim; d++) {
        int ia = d - (ndim - a->ndim), ib = d - (ndim - b->ndim), last = j->ndim - 1;
        int64_t na = ia < 0 ? 1 : a->size[ia], nb = ib < 0 ? 1 : b->size[ib];
        int64_t size = na == 1 ? nb : na;
        int64_t sa = ia < 0 ? 0 : a->step[ia], sb = ib < 0 ? 0 : b->step[ib];
        if (size == 1)
            continue;
        if (last >= 0 && j->step[0][last] == sa * size && j->step[1][last] == sb * size) {
            j->size[last] *= size;
        } else {
            last = j->ndim++;
            j->size[last] = size;
        }
        j->step[0][last] = sa;
        j->step[1][last] = sb;
    }
}

/* Returns whether gemm takes the matrices as they are: with dense rows or dense columns. */
static bool is_matrix(const stack *s)
{
    bool rows = s->columns == 1 || s->column == 1, columns = s->rows == 1 || s->row == 1;
    return rows || columns;
}

/* Merges the batch dims and one dim of the matrix (n elements with stride `step`) into a single dim
 * of *all elements with stride *each. Returns false if the strides do not allow this without a
 * copy. */
static bool chain(const stack *s, int64_t n, int64_t step, int64_t *all, int64_t *each)
{
    *all = n;
    *each = step;
    for (int d = s->ndim - 1; d >= 0; d--) {
        if (s->size[d] == 1)
            continue;
        if (*all == 1)
            *each = s->step[d];
        else if (s->step[d] != *all * *each)
            return false;
        *all *= s->size[d];
    }
    return true;
}

typedef struct operand {
    stack s;
    uint8_t insert;
    bool transpose;
    tern_tensor *copy; /* dense copy of the operand or NULL; released after the launch */
} operand;

/* Replaces the operand by a dense copy of its tensor, expanded to `shape` unless that is NULL. */
static tern_status make_dense(operand *o, const tern_shape *shape)
{
    tern_tensor *x = o->s.x, *old = o->copy;
    tern_shape own = tern_shape_of(x);
    o->copy = tern_tensor_new(shape ? shape : &own, x->dtype, x->storage->place, "tern_matmul");
    tern_status status = o->copy ? tern_copy_elements(o->copy, x) : tern_last_status();
    tern_release(old);
    if (status == TERN_OK)
        as_stack(&o->s, o->copy, o->insert, o->transpose);
    return status;
}

/* Handles more than two batch dims that can't be merged: expands both operands and copies them, so
 * that the batch is one dim. */
static tern_status spread(operand *o, batch_dims *j)
{
    tern_shape shape;
    TERN_TRY(common_stack(&o[0].s, &o[1].s, &shape, "matmul"));
    for (int i = 0; i < 2; i++) {
        const tern_tensor *x = o[i].s.x;
        tern_shape whole = shape;
        for (int d = o[i].s.ndim; d < x->ndim; d++)
            whole.dims[whole.ndim++] = x->shape[d];
        TERN_TRY(make_dense(&o[i], &whole));
    }
    merge_batch(&o[0].s, &o[1].s, j);
    return TERN_OK;
}

/* Rewrites the sum over the batch of A[b] B[b] as one product whose summed dim includes the batch:
 * A as (m, b k), B as (b k, n). */
static tern_status fold_sum(operand *o)
{
    for (int i = 0; i < 2; i++) {
        stack *s = &o[i].s;
        int64_t *n = i ? &s->rows : &s->columns, *step = i ? &s->row : &s->column;
        int64_t all, each;
        if (!chain(s, *n, *step, &all, &each)) {
            TERN_TRY(make_dense(&o[i], NULL));
            bool dense = chain(s, *n, *step, &all, &each);
            assert(dense);
            (void)dense;
        }
        *n = all;
        *step = each;
        s->ndim = 0;
    }
    return TERN_OK;
}

/* Brings the operands into a form that gemm takes, with as few copies as possible, and sets *j to
 * the remaining batch dims. If B is one matrix and A a batch, the rows of A are merged into one
 * matrix, (b m, k). */
static tern_status make_layout(const tern_product *p, operand *o, batch_dims *j)
{
    stack *a = &o[0].s;
    int64_t all, step;
    for (int i = 0; i < 2; i++)
        if (!is_matrix(&o[i].s))
            TERN_TRY(make_dense(&o[i], NULL));
    if (p->sum)
        TERN_TRY(fold_sum(o));
    if (!p->sum && count_of(&o[1].s) == 1 && chain(a, a->rows, a->row, &all, &step)) {
        a->rows = all;
        a->row = step;
        a->ndim = 0;
    }
    merge_batch(a, &o[1].s, j);
    return j->ndim <= 2 ? TERN_OK : spread(o, j);
}

/* ---- sizes rounded up to multiples --------------------------------------------------------- */

static bool wants_multiples(const operand *o, const tern_tensor *result)
{
    const stack *a = &o[0].s, *b = &o[1].s;
    const tern_gemm g = {
        .dtype = result->dtype, .m = count_of(a) * a->rows, .n = b->columns, .k = a->columns};
    return tern_place_wants_multiples(result->storage->place, &g);
}

static tern_status pad(operand *o)
{
    tern_tensor *old = o->copy, *copy = tern_padded_copy(o->s.x);
    if (!copy)
        return tern_last_status();
    tern_release(old);
    o->copy = copy;
    as_stack(&o->s, copy, o->insert, o->transpose);
    return TERN_OK;
}

static tern_extents extents_of(const operand *o)
{
    return (tern_extents){o[0].s.rows, o[1].s.columns, o[0].s.columns};
}

/* Returns whether a product of the extents e reads matrix i beyond its end. */
static bool goes_beyond(const operand *o, tern_extents e, int i)
{
    const tern_extents has = extents_of(o);
    return e.k != has.k || (i ? e.n != has.n : e.m != has.m);
}

/* Rounds the extents *e of a product of two matrices up to multiples, and copies an operand with
 * zero padding if necessary. *e is left exact if this is not possible. */
static tern_status round_up(const tern_product *p, operand *o, batch_dims *j, tern_extents *e)
{
    tern_extents up = tern_multiples_of(extents_of(o), o[0].s.column == 1, o[1].s.column == 1);
    bool again = false, fits = true;
    for (int i = 0; i < 2; i++)
        if (goes_beyond(o, up, i) && !tern_is_zero_padded(o[i].s.x)) {
            TERN_TRY(pad(&o[i]));
            again = true;
        }
    if (again)
        TERN_TRY(make_layout(p, o, j));
    for (int i = 0; i < 2; i++)
        fits = fits && (!goes_beyond(o, up, i) || tern_is_zero_padded(o[i].s.x));
    *e = fits && j->ndim == 0 ? up : extents_of(o);
    return TERN_OK;
}

/* ---- launch ------------------------------------------------------------------------------ */

/* Returns one operand as gemm takes it. The stride along a dim of size 1 is arbitrary, so it is
 * replaced by one for which rows or columns are dense. */
static tern_matrix matrix_of(const stack *s, const batch_dims *j, int side)
{
    tern_matrix x = {.buffer = &s->x->storage->block->buffer,
                     .at = s->x->offset,
                     .row = s->row,
                     .col = s->columns == 1 ? 1 : s->column};
    if (s->rows == 1)
        x.row = x.col == 1 ? s->columns : 1;
    for (int d = 0; d < j->ndim; d++)
        x.batch[2 - j->ndim + d] = j->step[side][d];
    return x;
}

/* Launches gemm. The matrices of the result are contiguous in memory, and `row` is the stride of
 * their rows. Integers have their own kernel. */
static tern_status launch(const tern_product *p, const stack *a, const stack *b,
                          const batch_dims *j, tern_extents e, const tern_tensor *bias,
                          tern_tensor *result, int64_t row)
{
    tern_gemm g = {.dtype = result->dtype,
                   .m = e.m,
                   .n = e.n,
                   .k = e.k,
                   .count = {1, 1},
                   .alpha = p->alpha,
                   .beta = p->beta,
                   .a = matrix_of(a, j, 0),
                   .b = matrix_of(b, j, 1)};
    for (int d = 0; d < j->ndim; d++)
        g.count[2 - j->ndim + d] = j->size[d];
    g.c = (tern_matrix){.buffer = &result->storage->block->buffer,
                        .at = result->offset,
                        .row = row,
                        .col = 1,
                        .batch = {g.m * row * g.count[1], g.m * row}};
    if (bias) {
        g.bias = &bias->storage->block->buffer;
        g.bias_at = bias->offset;
    }
    if (!tern_dtype_is_floating_point(g.dtype))
        return tern_integer_gemm(result->storage->place, &g);
    return tern_launch_gemm(result->storage->place, &g);
}

/* Sets the result of a product whose summed dim is empty: the bias, or zero. */
static tern_status empty_sums(tern_tensor *bias, tern_tensor *result)
{
    return bias ? tern_copy_elements(result, bias) : tern_zero_elements(result);
}

/* Computes the product. gemm does not take an empty summed dim, so operands without elements are
 * handled here. */
tern_status tern_product_run(const tern_product *p, tern_tensor *x, tern_tensor *y,
                             tern_tensor *bias, tern_tensor *result)
{
    operand o[2];
    batch_dims j;
    if (result->numel == 0)
        return TERN_OK;
    if (x->numel == 0 || y->numel == 0)
        return empty_sums(bias, result);
    for (int i = 0; i < 2; i++) {
        o[i].insert = p->insert[i];
        o[i].transpose = p->transpose[i];
        o[i].copy = NULL;
        as_stack(&o[i].s, i ? y : x, o[i].insert, o[i].transpose);
    }
    const bool multiples = wants_multiples(o, result), whole = p->beta == 0 && !p->drop;
    const int64_t n = o[1].s.columns;
    tern_tensor *padded = NULL;
    tern_status status = TERN_OK;
    tern_extents e;
    for (int i = 0; i < 2 && multiples && status == TERN_OK; i++)
        if (tern_has_odd_rows(o[i].s.x))
            status = pad(&o[i]);
    if (status == TERN_OK)
        status = make_layout(p, o, &j);
    e = extents_of(o);
    if (status == TERN_OK && multiples && whole && !bias && j.ndim == 0)
        status = round_up(p, o, &j, &e);
    const bool lies_padded = tern_lies_padded(result);
    const int64_t row = lies_padded ? tern_up(n) : n;
    if (status == TERN_OK && multiples && whole && !lies_padded &&
        (n != tern_up(n) || e.m != o[0].s.rows))
        status = (padded = tern_padded_empty(result)) ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        status = launch(p, &o[0].s, &o[1].s, &j, e, bias, padded ? padded : result,
                        padded ? tern_up(n) : row);
    if (status == TERN_OK && padded)
        status = tern_copy_elements(result, padded);
    tern_release(padded);
    tern_release(o[0].copy);
    tern_release(o[1].copy);
    return status;
}
