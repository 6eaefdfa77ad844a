/* linalg.h -- functions shared by the operations on systems of equations. */
#ifndef TERN_SRC_OPS_LINALG_H
#define TERN_SRC_OPS_LINALG_H
#include "tensor/op.h"

/* Check that x is not NULL, is float32 or float64 and has at least two dims (matrices), and that
 * the last two dims are equal (square). */
tern_status tern_check_matrices(const tern_tensor *x, const char *name, const char *function);
tern_status tern_check_square(const tern_tensor *x, const char *name, const char *function);
/* Expands the batch dims of a and b to a common shape and makes both dense. Returns false if their
 * dtypes differ or after another error. */
bool tern_match_stacks(tern_tensor **a, tern_tensor **b, const char *function);
/* Computes x = A^-1 x in place, x and A dense and not empty, for a triangle of A or of its
 * transpose. With `unit` the diagonal of A is taken as ones. */
tern_status tern_launch_triangular(tern_tensor *x, const tern_tensor *a, bool upper, bool transpose,
                                   bool unit);

#endif
