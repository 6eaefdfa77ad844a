/* ops/linalg.h -- linear systems, factors and inverses of matrices and of stacks of them (..., n,
 * n).
 *
 * float32 and float64, on every device; each matrix of a stack is one group's work, made for stacks
 * of small matrices. A matrix that can't be factored is an error: at once on cpu, at the next
 * synchronisation elsewhere. https://pytorch.org/docs/stable/linalg.html */
#ifndef TERN_OPS_LINALG_H
#define TERN_OPS_LINALG_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* L of x = L L^T, or (upper) U of x = U^T U; one triangle of x is read. */
TERN_API tern_tensor *tern_linalg_cholesky(tern_tensor *x, bool upper);
TERN_API tern_tensor *tern_cholesky(tern_tensor *x, bool upper);
/* X of A X = B, where L (n, n) is A's factor (upper: U). */
TERN_API tern_tensor *tern_cholesky_solve(tern_tensor *b, tern_tensor *factor, bool upper);

typedef struct tern_linalg_solve_triangular_options {
    bool right;         /* X A = B, not A X = B (left=False) */
    bool unitriangular; /* the diagonal is ones and not read */
    uint64_t reserved[4];
} tern_linalg_solve_triangular_options;

/* X of A X = B: A's upper (or lower) triangle (..., n, n), B (..., n, k). Stacks broadcast. */
TERN_API tern_tensor *tern_linalg_solve_triangular(
    tern_tensor *a, tern_tensor *b, bool upper,
    const tern_linalg_solve_triangular_options *options);
/* torch.triangular_solve's solution: of A X = b, or A^T X = b. */
TERN_API tern_tensor *tern_triangular_solve(tern_tensor *b, tern_tensor *a, bool upper,
                                            bool transpose, bool unitriangular);
/* X of A X = B; B (..., n, k), or (..., n) where A has one dim more. */
TERN_API tern_tensor *tern_linalg_solve(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_linalg_inv(tern_tensor *x);
TERN_API tern_tensor *tern_inverse(tern_tensor *x);
/* (...): of a singular matrix 0; the gradient needs the inverse. */
TERN_API tern_tensor *tern_linalg_det(tern_tensor *x);
TERN_API tern_tensor *tern_det(tern_tensor *x);

TERN_END_DECLS
#endif
