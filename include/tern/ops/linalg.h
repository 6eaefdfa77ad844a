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
/* x (*, m, n) = U diag(S) V^T with orthonormal columns of U and V: out[0] U (*, m, k), out[1] S (*,
 * k), from the largest to the smallest, out[2] V^T (*, k, n), k the smaller of m and n;
 * full_matrices (PyTorch's default): U (*, m, m), V^T (*, n, n). The gradient is that of the first
 * k columns, and not finite for U and V where singular values are equal. */
TERN_API tern_status tern_linalg_svd(tern_tensor *x, bool full_matrices, tern_tensor *out[3]);
/* S alone, whose gradient is finite everywhere. */
TERN_API tern_tensor *tern_linalg_svdvals(tern_tensor *x);

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
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_linalg_solve_triangular_options tern_linalg_solve_triangular_defaults(void);
/* X of A X = B: A's upper (or lower) triangle (..., n, n), B (..., n, k), which is brought to A's
 * type. Stacks broadcast. */
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
/* (...): of a singular matrix 0. Its gradient is that of the cofactors; where a determinant is 0,
 * it takes singular values. Waits for the device in backward. */
TERN_API tern_tensor *tern_linalg_det(tern_tensor *x);
/* tern_linalg_det. */
TERN_API tern_tensor *tern_det(tern_tensor *x);

/* ---- norms of matrices ----------------------------------------------------------------------- */

typedef enum tern_matrix_norm_ord {
    TERN_MATRIX_NORM_FRO = 0, /* the root of the sum of squares */
    TERN_MATRIX_NORM_NUC      /* the sum of the singular values */
} tern_matrix_norm_ord;
/* Of the matrices of two dims; none: the last two. Floating point types, of NUC without halves. */
TERN_API tern_tensor *tern_linalg_matrix_norm(tern_tensor *x, tern_matrix_norm_ord ord,
                                              tern_shape dims, bool keepdim);
/* 2 (-2): the largest (smallest) singular value; 1 (-1): the largest (smallest) sum of a column's
 * absolute values; INFINITY (-INFINITY): of a row's. */
TERN_API tern_tensor *tern_linalg_matrix_norm_scalar(tern_tensor *x, double ord, tern_shape dims,
                                                     bool keepdim);
/* TERN_MATRIX_NORM_NUC. */
TERN_API tern_tensor *tern_nuclear_norm(tern_tensor *x, tern_shape dims, bool keepdim);

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
