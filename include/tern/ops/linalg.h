/* ops/linalg.h -- linear systems, factorisations, inverses, determinants and norms of matrices and
 * of batches of them (..., n, n); products of vectors.
 *
 * tern_linalg_x is torch.linalg.x, tern_x is torch.x (https://pytorch.org/docs/stable/linalg.html).
 * Systems and factorisations take float32 and float64 on every device; one work-group computes each
 * matrix, which is fast for batches of small matrices. A matrix that cannot be factored is an
 * error: at once on the cpu, at the next synchronisation on other devices. Results belong to the
 * innermost scope; NULL after an error. ops/matmul.h has products of matrices. */
#ifndef TERN_OPS_LINALG_H
#define TERN_OPS_LINALG_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- factorisations -------------------------------------------------------------------------- */

/* Returns the Cholesky factor of x: L where x = L L^T, or with upper U where x = U^T U. Only one
 * triangle of x is read. */
TERN_API tern_tensor *tern_linalg_cholesky(tern_tensor *x, bool upper);
/* Another name of tern_linalg_cholesky. */
TERN_API tern_tensor *tern_cholesky(tern_tensor *x, bool upper);
/* Computes the singular value decomposition x = U diag(S) V^T, where the columns of U and V are
 * orthonormal. With k the smaller of m and n, x (*, m, n) gives out[0] = U (*, m, k), out[1] = S
 * (*, k) in descending order, and out[2] = V^T (*, k, n). With full_matrices, PyTorch's default, U
 * is (*, m, m) and V^T is (*, n, n). The gradient is that of the first k columns; for U and V it is
 * not finite where singular values are equal. */
TERN_API tern_status tern_linalg_svd(tern_tensor *x, bool full_matrices, tern_tensor *out[3]);
/* Returns the singular values alone, whose gradient is finite everywhere. */
TERN_API tern_tensor *tern_linalg_svdvals(tern_tensor *x);

/* ---- systems --------------------------------------------------------------------------------- */

/* Returns X where A X = B; B is (..., n, k), or (..., n) if A has one dim more. */
TERN_API tern_tensor *tern_linalg_solve(tern_tensor *a, tern_tensor *b);
/* Returns X where A X = B, given the Cholesky factor of A: L, or with upper U. */
TERN_API tern_tensor *tern_cholesky_solve(tern_tensor *b, tern_tensor *factor, bool upper);
typedef struct tern_linalg_solve_triangular_options {
    bool right;         /* solve X A = B, not A X = B (left=False) */
    bool unitriangular; /* the diagonal is taken as ones and not read */
    uint64_t reserved[4];
} tern_linalg_solve_triangular_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_linalg_solve_triangular_options tern_linalg_solve_triangular_defaults(void);
/* Returns X where A X = B, using the upper (or lower) triangle of A (..., n, n); B is (..., n, k)
 * and is converted to A's dtype. The batch dims are broadcast. */
TERN_API tern_tensor *tern_linalg_solve_triangular(
    tern_tensor *a, tern_tensor *b, bool upper,
    const tern_linalg_solve_triangular_options *options);
/* Returns X where A X = b, or with transpose A^T X = b (the solution of torch.triangular_solve). */
TERN_API tern_tensor *tern_triangular_solve(tern_tensor *b, tern_tensor *a, bool upper,
                                            bool transpose, bool unitriangular);
/* Returns the inverse of x. */
TERN_API tern_tensor *tern_linalg_inv(tern_tensor *x);
/* Another name of tern_linalg_inv. */
TERN_API tern_tensor *tern_inverse(tern_tensor *x);
/* Returns the determinants (...) of matrices; that of a singular matrix is 0. The gradient is the
 * matrix of cofactors; for a matrix whose determinant is 0 it is computed from the singular values.
 * backward waits for the device. */
TERN_API tern_tensor *tern_linalg_det(tern_tensor *x);
/* Another name of tern_linalg_det. */
TERN_API tern_tensor *tern_det(tern_tensor *x);

/* ---- norms of matrices ----------------------------------------------------------------------- */

typedef enum tern_matrix_norm_ord {
    TERN_MATRIX_NORM_FRO = 0, /* the root of the sum of squares */
    TERN_MATRIX_NORM_NUC      /* the sum of the singular values */
} tern_matrix_norm_ord;
/* Returns the Frobenius or nuclear norm of the matrices in two dims; an empty list means the last
 * two. Floating point types only; the nuclear norm takes float32 and float64. */
TERN_API tern_tensor *tern_linalg_matrix_norm(tern_tensor *x, tern_matrix_norm_ord ord,
                                              tern_shape dims, bool keepdim);
/* Returns another norm of the matrices: ord 2 (-2) is the largest (smallest) singular value, 1 (-1)
 * the largest (smallest) sum of absolute values in a column, INFINITY (-INFINITY) in a row. */
TERN_API tern_tensor *tern_linalg_matrix_norm_scalar(tern_tensor *x, double ord, tern_shape dims,
                                                     bool keepdim);
/* Returns the sum of the singular values (TERN_MATRIX_NORM_NUC). */
TERN_API tern_tensor *tern_nuclear_norm(tern_tensor *x, tern_shape dims, bool keepdim);

/* ---- vectors --------------------------------------------------------------------------------- */

/* Returns the cross product along dim, which has size 3 (PyTorch's default: -1). */
TERN_API tern_tensor *tern_linalg_cross(tern_tensor *x, tern_tensor *y, int dim);
/* Does the same; without dim, along the first dim of size 3. */
TERN_API tern_tensor *tern_cross(tern_tensor *x, tern_tensor *y, tern_optional_int dim);
/* Returns the sum of x times y along dim (PyTorch's default: -1). */
TERN_API tern_tensor *tern_linalg_vecdot(tern_tensor *x, tern_tensor *y, int dim);
/* Returns the p-norm of x - y. */
TERN_API tern_tensor *tern_dist(tern_tensor *x, tern_tensor *y, double p);
/* Returns x with each entry of dim whose p-norm is above maxnorm scaled to maxnorm. */
TERN_API tern_tensor *tern_renorm(tern_tensor *x, double p, int dim, double maxnorm);

TERN_END_DECLS
#endif
