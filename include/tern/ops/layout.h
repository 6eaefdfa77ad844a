/* ops/layout.h -- tensors joined, reordered and repeated; triangles and diagonals of matrices.
 *
 * tern_x is torch.x. Unless stated otherwise results are copies. They belong to the innermost
 * scope; NULL after an error. A negative dim counts from the end. ops/view.h has the operations
 * that do not copy. */
#ifndef TERN_OPS_LAYOUT_H
#define TERN_OPS_LAYOUT_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- joining n tensors; dtypes are promoted; TERN_ERR_SHAPE if the shapes do not match ------- */

/* Concatenates the tensors along dim. */
TERN_API tern_tensor *tern_cat(tern_tensor *const *tensors, int n, int dim);
/* Joins tensors of one shape along a new dim. */
TERN_API tern_tensor *tern_stack(tern_tensor *const *tensors, int n, int dim);
/* Concatenates along dim 1, vectors along dim 0. */
TERN_API tern_tensor *tern_hstack(tern_tensor *const *tensors, int n);
/* Concatenates along dim 0; vectors become rows. */
TERN_API tern_tensor *tern_vstack(tern_tensor *const *tensors, int n);
/* Another name of tern_vstack. */
TERN_API tern_tensor *tern_row_stack(tern_tensor *const *tensors, int n);
/* Concatenates along dim 2; vectors and matrices get the dims that they lack as tern_atleast_3d
 * adds them. */
TERN_API tern_tensor *tern_dstack(tern_tensor *const *tensors, int n);
/* Concatenates along dim 1; vectors become columns. */
TERN_API tern_tensor *tern_column_stack(tern_tensor *const *tensors, int n);

/* ---- writing src, which has the shape of a view, into a copy of x ---------------------------- */

/* Returns x with src in place of tern_select(x, dim, index). */
TERN_API tern_tensor *tern_select_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t index);
/* Returns x with src in place of tern_slice(x, dim, start, end, step). */
TERN_API tern_tensor *tern_slice_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t start,
                                         int64_t end, int64_t step);
/* Returns x with src in place of tern_diagonal(x, offset, dim1, dim2). */
TERN_API tern_tensor *tern_diagonal_scatter(tern_tensor *x, tern_tensor *src, int64_t offset,
                                            int dim1, int dim2);

/* ---- reordering ------------------------------------------------------------------------------ */

/* Reverses the order of the elements along each of the dims; an empty list gives a copy. */
TERN_API tern_tensor *tern_flip(tern_tensor *x, tern_shape dims);
/* Reverses the order along dim 1. */
TERN_API tern_tensor *tern_fliplr(tern_tensor *x);
/* Reverses the order along dim 0. */
TERN_API tern_tensor *tern_flipud(tern_tensor *x);
/* Shifts the elements by shifts[i] along dims[i]; elements that leave at one end come in at the
 * other. Without dims the flattened x is shifted by the one number in shifts. */
TERN_API tern_tensor *tern_roll(tern_tensor *x, tern_shape shifts, tern_shape dims);
/* Rotates x by k quarter turns from dims[0] towards dims[1] (PyTorch's defaults: 1, (0, 1)). */
TERN_API tern_tensor *tern_rot90(tern_tensor *x, int64_t k, tern_shape dims);

/* ---- repeating ------------------------------------------------------------------------------- */

/* Repeats x repeats[i] times along dim i. If there are more numbers than dims, x gets new dims in
 * front. */
TERN_API tern_tensor *tern_repeat(tern_tensor *x, tern_shape repeats);
/* Does what tern_repeat does, but if there are fewer numbers than dims, they are for the last
 * dims. */
TERN_API tern_tensor *tern_tile(tern_tensor *x, tern_shape dims);
/* Repeats each element `repeats` times, next to each other, along dim; without dim x is flattened
 * first. */
TERN_API tern_tensor *tern_repeat_interleave(tern_tensor *x, int64_t repeats,
                                             tern_optional_int dim);
/* Repeats element i repeats[i] times; repeats is (n) or (1), int64 or int32. Waits for the device,
 * because the size of the result is the sum of repeats. */
TERN_API tern_tensor *tern_repeat_interleave_tensor(tern_tensor *x, tern_tensor *repeats,
                                                    tern_optional_int dim);

/* ---- triangles and diagonals of matrices ----------------------------------------------------- */

/* Returns the lower triangle of a matrix, or of each matrix in the last two dims: elements above
 * the diagonal-th diagonal are 0. */
TERN_API tern_tensor *tern_tril(tern_tensor *x, int64_t diagonal);
/* Returns the upper triangle: elements below the diagonal-th diagonal are 0. */
TERN_API tern_tensor *tern_triu(tern_tensor *x, int64_t diagonal);
/* Returns (2, n) int64: the rows and columns of the elements of a (row, col) matrix on and below
 * the offset-th diagonal. */
TERN_API tern_tensor *tern_tril_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);
/* Returns the same for the elements on and above that diagonal. */
TERN_API tern_tensor *tern_triu_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);
/* Returns a view of the offset-th diagonal of dims (dim1, dim2), as a new last dim (PyTorch's
 * defaults: 0, 0, 1). */
TERN_API tern_tensor *tern_diagonal(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* Returns matrices of zeros in dims (dim1, dim2) whose offset-th diagonals are the last dim of x
 * (PyTorch's defaults: 0, -2, -1). */
TERN_API tern_tensor *tern_diag_embed(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* Returns a matrix with the vector x on its diagonal-th diagonal, or a copy of that diagonal of the
 * matrix x. */
TERN_API tern_tensor *tern_diag(tern_tensor *x, int64_t diagonal);
/* Returns a matrix with all elements of x on its offset-th diagonal. */
TERN_API tern_tensor *tern_diagflat(tern_tensor *x, int64_t offset);
/* Returns the sum of the diagonal of a matrix. */
TERN_API tern_tensor *tern_trace(tern_tensor *x);

TERN_END_DECLS
#endif
