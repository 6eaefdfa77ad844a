/* ops/linalg.h -- linear systems, factors and inverses of matrices and of stacks of them
 * (..., n, n); vectors.
 *
 * tern_linalg_x is torch.linalg.x, tern_x torch.x. Systems and factors: float32 and float64, on
 * every device; each matrix of a stack is one group's work, made for stacks of small matrices. A
 * matrix that can't be factored is an error: at once on cpu, at the next synchronisation elsewhere.
 * Results belong to the innermost scope; NULL after an error. Products are in ops/matmul.h.
 * https://pytorch.org/docs/stable/linalg.html */
#ifndef TERN_OPS_LINALG_H
#define TERN_OPS_LINALG_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- factors --------------------------------------------------------------------------------- */

/* L of x = L L^T, or (upper) U of x = U^T U; one triangle of x is read. */
TERN_API tern_tensor *tern_linalg_cholesky(tern_tensor *x, bool upper);
/* tern_linalg_cholesky. */
TERN_API tern_tensor *tern_cholesky(tern_tensor *x, bool upper);

/* ---- systems --------------------------------------------------------------------------------- */

/* X of A X = B; B (..., n, k), or (..., n) where A has one dim more. */
TERN_API tern_tensor *tern_linalg_solve(tern_tensor *a, tern_tensor *b);
/* X of A X = B, where L (n, n) is A's factor (upper: U). */
TERN_API tern_tensor *tern_cholesky_solve(tern_tensor *b, tern_tensor *factor, bool upper);
typedef struct tern_linalg_solve_triangular_options {
    bool right;         /* X A = B, not A X = B (left=False) */
    bool unitriangular; /* the diagonal is ones and not read */
    uint64_t reserved[4];
} tern_linalg_solve_triangular_options;
/* Its defaults, as TERN_DEFAULTS takes them. */
TERN_API tern_linalg_solve_triangular_options tern_linalg_solve_triangular_defaults(void);
/* X of A X = B: A's upper (or lower) triangle (..., n, n), B (..., n, k). Stacks broadcast. */
TERN_API tern_tensor *tern_linalg_solve_triangular(
    tern_tensor *a, tern_tensor *b, bool upper,
    const tern_linalg_solve_triangular_options *options);
/* torch.triangular_solve's solution: of A X = b, or A^T X = b. */
TERN_API tern_tensor *tern_triangular_solve(tern_tensor *b, tern_tensor *a, bool upper,
                                            bool transpose, bool unitriangular);
/* The inverse. */
TERN_API tern_tensor *tern_linalg_inv(tern_tensor *x);
/* tern_linalg_inv. */
TERN_API tern_tensor *tern_inverse(tern_tensor *x);
/* (...): of a singular matrix 0; the gradient needs the inverse. */
TERN_API tern_tensor *tern_linalg_det(tern_tensor *x);
/* tern_linalg_det. */
TERN_API tern_tensor *tern_det(tern_tensor *x);

/* ---- vectors --------------------------------------------------------------------------------- */

/* The cross product along dim, which has size 3 (PyTorch's default: -1). */
TERN_API tern_tensor *tern_linalg_cross(tern_tensor *x, tern_tensor *y, int dim);
/* The same; without a dim, along the first of size 3. */
TERN_API tern_tensor *tern_cross(tern_tensor *x, tern_tensor *y, tern_optional_int dim);
/* The sum of products along dim (PyTorch's default: -1). */
TERN_API tern_tensor *tern_linalg_vecdot(tern_tensor *x, tern_tensor *y, int dim);
/* The p-norm of x - y. */
TERN_API tern_tensor *tern_dist(tern_tensor *x, tern_tensor *y, double p);
/* x, each entry of dim whose p-norm is above maxnorm scaled to that. */
TERN_API tern_tensor *tern_renorm(tern_tensor *x, double p, int dim, double maxnorm);

TERN_END_DECLS
#endif
