/* cholesky.c -- the Cholesky factor of positive definite matrices. */
#include "ops/linalg/linalg.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

/* A = L L^T with L lower triangular; only one triangle of A is read. */
static tern_status cholesky_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[0]->dtype;
    call->result[0].shape = tern_shape_of(call->in[0]);
    return TERN_OK;
}

/* L[k][k] = sqrt(A[k][k] - sum_j L[k][j]^2), L[i][k] = (A[i][k] - sum_j L[i][j] L[k][j]) / L[k][k]
 * for i > k, with j < k: column by column, one work group for each matrix. A leading minor that is
 * not positive is a fault. */
static tern_status cholesky_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"linalg", "cholesky"};
    const bool *upper = call->attributes;
    tern_tensor *a = call->in[0], *l = call->out[0];
    tern_arg fault;
    if (l->numel == 0)
        return TERN_OK;
    int64_t n = l->shape[l->ndim - 1], batch = l->numel / (n * n);
    TERN_TRY(tern_fault_arg(call->place, &fault));
    TERN_TRY(TERN_LAUNCH(call->place, &kernel, l->dtype, tern_groups(batch, n * n * n),
                         tern_arg_out(l), tern_arg_in(a), fault, tern_arg_i64(batch),
                         tern_arg_i64(n), tern_arg_i32(*upper),
                         tern_arg_fault(TERN_FAULT_CHOLESKY)));
    return tern_fault_check(call->place);
}

/* With P = tril(L^T dL), whose diagonal is halved: dA = (S + S^T) / 2, S = L^-T P L^-1, which is
 * two triangular solves. (Iain Murray 2016, "Differentiation of the Cholesky decomposition".) */
static tern_status cholesky_backward(tern_gradient *g)
{
    tern_tensor *l = g->out[0];
    tern_tensor *p = tern_tril(tern_matmul(tern_transpose(l, -1, -2), g->dout[0]), 0);
    p = tern_sub(p, tern_mul_scalar(tern_tril(tern_triu(p, 0), 0), tern_scalar_real(0.5)));
    tern_tensor *s = tern_triangular_solve(p, l, false, true, false);
    s = tern_linalg_solve_triangular(l, s, false,
                                     &(tern_linalg_solve_triangular_options){.right = true});
    tern_tensor *both = s ? tern_add(s, tern_transpose(s, -1, -2)) : NULL;
    g->din[0] = both ? tern_mul_scalar(both, tern_scalar_real(0.5)) : NULL;
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op cholesky_op = {.name = "linalg_cholesky",
                                    .saves = TERN_SAVE_OUT(0),
                                    .infer = cholesky_infer,
                                    .forward = cholesky_forward,
                                    .backward = cholesky_backward};

/* Returns L, or with `upper`, which reads the upper triangle of A, U = L^T with A = U^T U. */
static tern_tensor *cholesky(tern_tensor *x, bool upper, const char *function)
{
    if (x && x->numel == 0 && x->ndim > 1 && tern_dtype_size(x->dtype) == 2 &&
        x->shape[x->ndim - 1] == x->shape[x->ndim - 2])
        return tern_clone(x); /* PyTorch accepts half precision only here */
    if (tern_check_square(x, "A", function) != TERN_OK || !(x = tern_contiguous(x)))
        return NULL;
    tern_tensor *l = tern_apply(&cholesky_op, &x, 1, &upper, sizeof upper);
    return l && upper ? tern_contiguous(tern_transpose(l, -1, -2)) : l;
}

tern_tensor *tern_linalg_cholesky(tern_tensor *x, bool upper)
{
    return cholesky(x, upper, "tern_linalg_cholesky");
}

tern_tensor *tern_cholesky(tern_tensor *x, bool upper)
{
    TERN_NAMED_IN_ERRORS;
    return cholesky(x, upper, __func__);
}
