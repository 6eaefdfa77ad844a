/* solve_triangular.c -- systems of equations with triangular matrices. */
#include "ops/linalg/linalg.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

tern_status tern_check_matrices(const tern_tensor *x, const char *name, const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, name);
    if (x->dtype != TERN_F32 && x->dtype != TERN_F64)
        return tern_fail(
            TERN_ERR_DTYPE,
            "%s: Expected a floating point tensor of float32 or float64 as %s, but got "
            "%s",
            function, name, tern_dtype_name(x->dtype));
    if (x->ndim < 2)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: The input tensor %s must have at least 2 dimensions, but got shape %s", function,
            name, TERN_TENSOR_TEXT(x));
    return TERN_OK;
}

tern_status tern_check_square(const tern_tensor *x, const char *name, const char *function)
{
    TERN_TRY(tern_check_matrices(x, name, function));
    if (x->shape[x->ndim - 1] != x->shape[x->ndim - 2])
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: %s must be batches of square matrices, but they are %lld by %lld "
                         "matrices",
                         function, name, (long long)x->shape[x->ndim - 2],
                         (long long)x->shape[x->ndim - 1]);
    return TERN_OK;
}

/* Copies expanded batch dims, as the kernels read matrices one after the other. */
bool tern_match_stacks(tern_tensor **a, tern_tensor **b, const char *function)
{
    tern_tensor **both[2] = {a, b};
    tern_shape stack[2], all;
    if ((*a)->dtype != (*b)->dtype) {
        tern_fail(TERN_ERR_DTYPE,
                  "%s: Expected b and A to have the same dtype, but found %s and %s", function,
                  tern_dtype_name((*b)->dtype), tern_dtype_name((*a)->dtype));
        return false;
    }
    for (int i = 0; i < 2; i++)
        stack[i] = tern_shape_from((*both[i])->ndim - 2, (*both[i])->shape);
    if (tern_shape_broadcast(&stack[0], &stack[1], &all, function) != TERN_OK)
        return false;
    for (int i = 0; i < 2; i++) {
        tern_tensor *x = *both[i];
        tern_shape shape = all;
        for (int d = x->ndim - 2; d < x->ndim; d++)
            shape.dims[shape.ndim++] = x->shape[d];
        if (!(*both[i] = tern_contiguous(tern_expand(x, shape))))
            return false;
    }
    return true;
}

/* ---- the operation: inputs A, B with the same batch dims, dense --------------------------- */

/* The triangle of A that is read, whether A is transposed, whether its diagonal is all ones. */
typedef struct solve_attributes {
    bool upper, transpose, unit;
} solve_attributes;

static tern_status solve_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[1]->dtype;
    call->result[0].shape = tern_shape_of(call->in[1]);
    return TERN_OK;
}

/* Forward or back substitution, one work-item for each column of x. A transposed A is read with its
 * strides exchanged, which makes its upper triangle a lower one. */
tern_status tern_launch_triangular(tern_tensor *x, const tern_tensor *a, bool upper, bool transpose,
                                   bool unit)
{
    static const tern_kernel_ref kernel = {"linalg", "solve_triangular"};
    int64_t n = x->shape[x->ndim - 2], k = x->shape[x->ndim - 1];
    bool down = upper != transpose;
    return TERN_LAUNCH(x->storage->place, &kernel, x->dtype, tern_items_of(x->numel / n, n * n),
                       tern_arg_out(x), tern_arg_in(a), tern_arg_i64(x->numel / (n * k)),
                       tern_arg_i64(n), tern_arg_i64(k), tern_arg_i64(transpose ? 1 : n),
                       tern_arg_i64(transpose ? n : 1),
                       tern_arg_i32((down ? 1 : 0) | (unit ? 2 : 0)));
}

/* Computes X = op(A)^-1 B: copies B to the result and solves in place. */
static tern_status solve_forward(tern_call *call)
{
    const solve_attributes *at = call->attributes;
    tern_tensor *x = call->out[0];
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_copy_elements(x, call->in[1]));
    return tern_launch_triangular(x, call->in[0], at->upper, at->transpose, at->unit);
}

static tern_tensor *solve(tern_tensor *a, tern_tensor *b, solve_attributes at);

/* dB = op(A)^-T dX, dA = -dB X^T (for a transposed A the transpose, -X dB^T); only the triangle
 * that is read has a gradient, with `unit` without the diagonal. */
static tern_status solve_backward(tern_gradient *g)
{
    solve_attributes at = *(const solve_attributes *)g->attributes;
    at.transpose = !at.transpose;
    tern_tensor *db = solve(g->in[0], tern_contiguous(g->dout[0]), at), *x = g->out[0];
    if (g->needs[0] && db) {
        tern_tensor *left = at.transpose ? db : x, *right = at.transpose ? x : db;
        tern_tensor *da = tern_neg(tern_matmul(left, tern_transpose(right, -1, -2)));
        int64_t skip = at.unit ? 1 : 0;
        g->din[0] = at.upper ? tern_triu(da, skip) : tern_tril(da, -skip);
    }
    g->din[1] = g->needs[1] ? db : NULL;
    return db && (!g->needs[0] || g->din[0]) ? TERN_OK : tern_last_status();
}

static const tern_op solve_op = {.name = "linalg_solve_triangular",
                                 .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                                 .infer = solve_infer,
                                 .forward = solve_forward,
                                 .backward = solve_backward};

static tern_tensor *solve(tern_tensor *a, tern_tensor *b, solve_attributes at)
{
    return tern_apply(&solve_op, (tern_tensor *[]){a, b}, 2, &at, sizeof at);
}

/* Checks that A is square and that the shapes of A X = B (right: X A = B) match. */
static bool check_shapes(const tern_tensor *a, const tern_tensor *b, bool right,
                         const char *function)
{
    if (tern_check_square(a, "A", function) != TERN_OK ||
        tern_check_matrices(b, "B", function) != TERN_OK)
        return false;
    int64_t n = a->shape[a->ndim - 1], rows = b->shape[b->ndim - 2],
            columns = b->shape[b->ndim - 1];
    if (n == (right ? columns : rows))
        return true;
    tern_fail(
        TERN_ERR_SHAPE,
        "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)",
        function, right ? "XA" : "AX", (long long)n, (long long)n, (long long)rows,
        (long long)columns);
    return false;
}

/* Checks the arguments and solves A X = B after the batch dims are broadcast. */
static tern_tensor *check_and_solve(tern_tensor *a, tern_tensor *b, solve_attributes at,
                                    const char *function)
{
    if (!check_shapes(a, b, false, function) || !tern_match_stacks(&a, &b, function))
        return NULL;
    return solve(a, b, at);
}

/* Solves A X = B, or with `right` X A = B as A^T X^T = B^T through transposed views. */
tern_tensor *tern_linalg_solve_triangular(tern_tensor *a, tern_tensor *b, bool upper,
                                          const tern_linalg_solve_triangular_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    solve_attributes at = {.upper = upper, .unit = options && options->unitriangular};
    if (b && tern_check_matrices(a, "A", function) != TERN_OK)
        return NULL;
    b = b ? tern_to_dtype(b, a->dtype) : NULL; /* the result has the dtype of A */
    if (!options || !options->right)
        return check_and_solve(a, b, at, function);
    if (!check_shapes(a, b, true, function))
        return NULL;
    at.transpose = true;
    tern_tensor *x = check_and_solve(a, tern_transpose(b, -1, -2), at, function);
    return x ? tern_contiguous(tern_transpose(x, -1, -2)) : NULL;
}

/* The deprecated function of PyTorch, with a transposed A as an option. */
tern_tensor *tern_triangular_solve(tern_tensor *b, tern_tensor *a, bool upper, bool transpose,
                                   bool unitriangular)
{
    return check_and_solve(a, b, (solve_attributes){upper, transpose, unitriangular},
                           "tern_triangular_solve");
}

/* ---- cholesky_solve: one operation, as its gradient is simpler than that of the two solves - */

static tern_status cholesky_solve_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[1]->dtype;
    call->result[0].shape = tern_shape_of(call->in[1]);
    return TERN_OK;
}

/* Solves A X = B for A = L L^T: X = L^-T L^-1 B, or U^-1 U^-T B for the upper factor. */
static tern_status cholesky_solve_forward(tern_call *call)
{
    const bool *upper = call->attributes;
    tern_tensor *x = call->out[0], *factor = call->in[0];
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_copy_elements(x, call->in[1]));
    TERN_TRY(tern_launch_triangular(x, factor, *upper, *upper, false));
    return tern_launch_triangular(x, factor, *upper, !*upper, false);
}

/* dB = A^-1 dX; with S = -dB X^T, dL = (S + S^T) L, or dU = U (S + S^T). As in PyTorch the gradient
 * is that of the whole factor, not of its triangle alone. */
static tern_status cholesky_solve_backward(tern_gradient *g)
{
    const bool *upper = g->attributes;
    tern_tensor *factor = g->in[0];
    tern_tensor *db = tern_cholesky_solve(g->dout[0], factor, *upper);
    if (g->needs[0] && db) {
        tern_tensor *s = tern_matmul(db, tern_transpose(g->out[0], -1, -2));
        s = s ? tern_neg(tern_add(s, tern_transpose(s, -1, -2))) : NULL;
        g->din[0] = *upper ? tern_matmul(factor, s) : tern_matmul(s, factor);
    }
    g->din[1] = g->needs[1] ? db : NULL;
    return db && (!g->needs[0] || g->din[0]) ? TERN_OK : tern_last_status();
}

static const tern_op cholesky_solve_op = {.name = "cholesky_solve",
                                          .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                                          .infer = cholesky_solve_infer,
                                          .forward = cholesky_solve_forward,
                                          .backward = cholesky_solve_backward};

/* Returns X of A X = B, where `factor` is L with A = L L^T, or with `upper` U with A = U^T U. */
tern_tensor *tern_cholesky_solve(tern_tensor *b, tern_tensor *factor, bool upper)
{
    static const char function[] = "tern_cholesky_solve";
    if (!check_shapes(factor, b, false, function) || !tern_match_stacks(&factor, &b, function))
        return NULL;
    return tern_apply(&cholesky_solve_op, (tern_tensor *[]){factor, b}, 2, &upper, sizeof upper);
}
