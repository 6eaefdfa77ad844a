/* linalg.h -- what the operations on systems of equations share. */
#ifndef TERN_SRC_OPS_LINALG_H
#define TERN_SRC_OPS_LINALG_H
#include "tensor/op.h"

/* x is not NULL, is float32 or float64 and has two dims at least; and is square. */
tern_status tern_check_matrices(const tern_tensor *x, const char *name, const char *function);
tern_status tern_check_square(const tern_tensor *x, const char *name, const char *function);
/* Both of one dtype, with batch dims expanded to a common shape, and dense. */
bool tern_match_stacks(tern_tensor **a, tern_tensor **b, const char *function);
/* x = A^-1 x in place, both dense and not empty, for a triangle of A or of its transpose; unit
 * takes the diagonal as ones. */
tern_status tern_launch_triangular(tern_tensor *x, const tern_tensor *a, bool upper, bool transpose,
                                   bool unit);

#endif
