/* solve.c -- general systems of equations by LU decomposition: solve, inv, det. */
#include "ops/linalg/linalg.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <tern/autograd.h>
#include <tern/graph.h>
#include <tern/ops.h>

/* P A = L U, new and dense: lu has L and U in one matrix, without the unit diagonal of L; pivots
 * has for each step the row of the pivot. */
typedef struct factors {
    tern_tensor *lu, *pivots;
} factors;

static void release(factors *f)
{
    tern_release(f->lu);
    tern_release(f->pivots);
}

/* Gaussian elimination with partial pivoting, one work group for each matrix. A pivot of 0 is a
 * fault, unless fault_code is 0, for det, whose result is then 0. */
static tern_status lu_factor(const tern_tensor *a, int fault_code, factors *f)
{
    static const tern_kernel_ref kernel = {"linalg", "lu_factor"};
    tern_place *place = a->storage->place;
    tern_shape shape = tern_shape_of(a), rows = shape;
    int64_t n = a->shape[a->ndim - 1], batch = a->numel / (n * n);
    tern_arg fault;
    rows.ndim--;
    *f = (factors){tern_tensor_new(&shape, a->dtype, place, "tern_linalg_solve"),
                   tern_tensor_new(&rows, TERN_I64, place, "tern_linalg_solve")};
    if (!f->lu || !f->pivots)
        return tern_last_status();
    TERN_TRY(tern_copy_elements(f->lu, a));
    TERN_TRY(tern_fault_arg(place, &fault));
    TERN_TRY(TERN_LAUNCH(place, &kernel, a->dtype, tern_groups(batch, n * n * n),
                         tern_arg_out(f->lu), tern_arg_out(f->pivots), fault, tern_arg_i64(batch),
                         tern_arg_i64(n), tern_arg_fault(fault_code)));
    return tern_fault_check(place);
}

/* ---- solve: inputs A and B, dense, with the same batch dims --------------------------------- */

/* X, the solution of A X = B, has the shape of B. */
static tern_status solve_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[1]->dtype;
    call->result[0].shape = tern_shape_of(call->in[1]);
    return TERN_OK;
}

/* Computes X = U^-1 L^-1 P B: permutes the rows, then substitutes forwards and backwards. */
static tern_status substitute(const factors *f, tern_tensor *x)
{
    static const tern_kernel_ref kernel = {"linalg", "lu_permute"};
    int64_t n = x->shape[x->ndim - 2], k = x->shape[x->ndim - 1];
    TERN_TRY(TERN_LAUNCH(x->storage->place, &kernel, x->dtype, tern_items_of(x->numel / n, n),
                         tern_arg_out(x), tern_arg_in(f->pivots), tern_arg_i64(x->numel / (n * k)),
                         tern_arg_i64(n), tern_arg_i64(k)));
    TERN_TRY(tern_launch_triangular(x, f->lu, false, false, true));
    return tern_launch_triangular(x, f->lu, true, false, false);
}

/* The factors are not saved: the backward factors A^T again. */
static tern_status solve_forward(tern_call *call)
{
    tern_tensor *x = call->out[0];
    factors f;
    if (x->numel == 0)
        return TERN_OK;
    TERN_TRY(tern_copy_elements(x, call->in[1]));
    tern_status status = lu_factor(call->in[0], TERN_FAULT_SINGULAR, &f);
    if (status == TERN_OK)
        status = substitute(&f, x);
    release(&f);
    return status;
}

/* dB = A^-T dX, dA = -dB X^T. */
static tern_status solve_backward(tern_gradient *g)
{
    tern_tensor *db = tern_linalg_solve(tern_transpose(g->in[0], -1, -2), g->dout[0]);
    if (g->needs[0] && db)
        g->din[0] = tern_neg(tern_matmul(db, tern_transpose(g->out[0], -1, -2)));
    g->din[1] = g->needs[1] ? db : NULL;
    return db && (!g->needs[0] || g->din[0]) ? TERN_OK : tern_last_status();
}

static const tern_op solve_op = {.name = "linalg_solve",
                                 .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                                 .infer = solve_infer,
                                 .forward = solve_forward,
                                 .backward = solve_backward};

/* Returns X of A X = B for A (..., n, n) and B (..., n, k), or vectors (..., n), which are solved
 * as columns; batch dims broadcast. */
tern_tensor *tern_linalg_solve(tern_tensor *a, tern_tensor *b)
{
    static const char function[] = "tern_linalg_solve";
    if (tern_check_square(a, "A", function) != TERN_OK)
        return NULL;
    /* B is a vector, or a batch of vectors with the batch dims of A. */
    bool vectors = b && (b->ndim == 1 || (a->ndim - 1 == b->ndim && b->ndim > 0));
    for (int d = 0; vectors && d < b->ndim && b->ndim > 1; d++)
        vectors = b->shape[d] == a->shape[d];
    if (vectors && !(b = tern_unsqueeze(b, -1)))
        return NULL;
    if (tern_check_matrices(b, "B", function) != TERN_OK)
        return NULL;
    if (a->shape[a->ndim - 1] != b->shape[b->ndim - 2])
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Incompatible shapes of A and B for the equation AX = B (%lldx"
                              "%lld and %lldx%lld)",
                              function, (long long)a->shape[a->ndim - 2],
                              (long long)a->shape[a->ndim - 1], (long long)b->shape[b->ndim - 2],
                              (long long)b->shape[b->ndim - 1]);
    if (!tern_match_stacks(&a, &b, function))
        return NULL;
    tern_tensor *x = tern_apply(&solve_op, (tern_tensor *[]){a, b}, 2, NULL, 0);
    return x && vectors ? tern_squeeze_dim(x, -1) : x;
}

/* Returns X of A X = I. The identity is expanded to the shape of A, so that it is a batch of
 * matrices and not of vectors. */
static tern_tensor *inverse(tern_tensor *x, const char *function)
{
    if (tern_check_square(x, "A", function) != TERN_OK)
        return NULL;
    int64_t n = x->shape[x->ndim - 1];
    tern_tensor *one = tern_eye(n, n, x->dtype, tern_device(x));
    return tern_linalg_solve(x, tern_expand(one, tern_shape_of(x)));
}

tern_tensor *tern_linalg_inv(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return inverse(x, __func__);
}

tern_tensor *tern_inverse(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return inverse(x, __func__);
}

/* ---- det --------------------------------------------------------------------------------- */

/* det A = (-1)^s prod_i U[i][i], where s is the number of row exchanges; (..., n, n) gives
 * (...). */
static tern_status det_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0].dtype = x->dtype;
    call->result[0].shape = tern_shape_from(x->ndim - 2, x->shape);
    return TERN_OK;
}

/* The determinant of a matrix without elements is 1, of a singular matrix 0. */
static tern_status det_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"linalg", "lu_det"};
    tern_tensor *x = call->in[0], *y = call->out[0];
    factors f;
    if (y->numel == 0)
        return TERN_OK;
    if (x->numel == 0) /* matrices without elements */
        return tern_fill_(y, tern_scalar_int(1)) ? TERN_OK : tern_last_status();
    tern_status status = lu_factor(x, 0, &f);
    if (status == TERN_OK) {
        status = TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items(y->numel), tern_arg_out(y),
                             tern_arg_in(f.lu), tern_arg_in(f.pivots), tern_arg_i64(y->numel),
                             tern_arg_i64(x->shape[x->ndim - 1]));
    }
    release(&f);
    return status;
}

/* Returns the cofactors. With A = U diag(S) V^T: det(U) det(V) U diag(the products of all S but
 * one) V^T. */
static tern_tensor *cofactors(tern_tensor *a)
{
    tern_tensor *usv[3], *sign = NULL, *others = NULL;
    if (tern_linalg_svd(a, false, usv) != TERN_OK)
        return NULL;
    TERN_NO_GRAD { /* 1 or -1 */
        sign = tern_round(tern_mul(tern_linalg_det(usv[0]), tern_linalg_det(usv[2])));
        sign = sign ? tern_unsqueeze(tern_unsqueeze(sign, -1), -1) : NULL;
    }
    int64_t k = tern_size(usv[1], -1);
    tern_tensor *own =
        tern_eye(k, k, TERN_BOOL, tern_device(a)); /* row i of the factors: all S, with 1 in
                                                    * place of S_i */
    others = tern_prod_dim(
        tern_where_scalar_self(own, tern_scalar_int(1), tern_unsqueeze(usv[1], -2)), -1, false);
    others = others ? tern_mul(usv[0], tern_unsqueeze(others, -2)) : NULL;
    return tern_mul(sign, tern_matmul(others, usv[2]));
}

/* Returns whether any determinant is 0; false during a capture, when no result can be read. */
static bool some_is_zero(tern_tensor *det)
{
    bool zero = false;
    if (!tern_is_capturing())
        TERN_NO_GRAD {
            zero =
                det->numel > 0 && tern_item(tern_any(tern_eq_scalar(det, tern_scalar_int(0)))) != 0;
        }
    return zero;
}

/* dA = dy det(A) A^-T. Where a determinant is 0, dA is dy times the cofactors. Each formula gets
 * other matrices in place of those that it does not apply to. */
static tern_status det_backward(tern_gradient *g)
{
    tern_tensor *a = g->in[0], *zero = NULL, *regular = a;
    tern_tensor *dy = tern_unsqueeze(tern_unsqueeze(g->dout[0], -1), -1);
    tern_tensor *det = tern_unsqueeze(tern_unsqueeze(g->out[0], -1), -1);
    int64_t n = a->shape[a->ndim - 1];
    if (some_is_zero(g->out[0])) {
        zero = tern_eq_scalar(det, tern_scalar_int(0));
        regular = tern_where(zero, tern_eye(n, n, a->dtype, tern_device(a)), a);
    }
    tern_tensor *inverted = tern_transpose(tern_linalg_inv(regular), -1, -2);
    g->din[0] = tern_mul(inverted, tern_mul(dy, det));
    if (zero && g->din[0]) {
        tern_tensor *other =
            tern_diag(tern_arange(1, (double)n + 1, 1, a->dtype, tern_device(a)), 0);
        tern_tensor *singular = cofactors(tern_where(zero, a, other));
        g->din[0] = tern_where(zero, tern_mul(dy, singular), g->din[0]);
    }
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op det_op = {.name = "linalg_det",
                               .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                               .infer = det_infer,
                               .forward = det_forward,
                               .backward = det_backward};

static tern_tensor *det(tern_tensor *x, const char *function)
{
    if (tern_check_square(x, "A", function) != TERN_OK || !(x = tern_contiguous(x)))
        return NULL;
    return tern_apply(&det_op, &x, 1, NULL, 0);
}

tern_tensor *tern_linalg_det(tern_tensor *x)
{
    return det(x, "tern_linalg_det");
}

tern_tensor *tern_det(tern_tensor *x)
{
    return det(x, "tern_det");
}
