/* ops/layout.h -- tensors joined, turned around and repeated; triangles and diagonals.
 *
 * tern_x is torch.x. Results are copies where nothing
 * else is said, owned by the innermost scope; NULL after an error. Dims
 * count from the end when negative. Views are in ops/view.h. */
#ifndef TERN_OPS_LAYOUT_H
#define TERN_OPS_LAYOUT_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- n tensors joined: types promote; TERN_ERR_SHAPE where they do not fit ------------------- */

/* One after the other along dim. */
TERN_API tern_tensor *tern_cat(tern_tensor *const *tensors, int n, int dim);
/* Tensors of one shape along a new dim. */
TERN_API tern_tensor *tern_stack(tern_tensor *const *tensors, int n, int dim);
/* Along dim 1; vectors along dim 0. */
TERN_API tern_tensor *tern_hstack(tern_tensor *const *tensors, int n);
/* Along dim 0; vectors are rows. */
TERN_API tern_tensor *tern_vstack(tern_tensor *const *tensors, int n);
/* tern_vstack. */
TERN_API tern_tensor *tern_row_stack(tern_tensor *const *tensors, int n);
/* Along dim 2. */
TERN_API tern_tensor *tern_dstack(tern_tensor *const *tensors, int n);
/* Along dim 1; vectors are columns. */
TERN_API tern_tensor *tern_column_stack(tern_tensor *const *tensors, int n);

/* ---- x with src in the place of a view, of whose shape it is --------------------------------- */

/* Of tern_select. */
TERN_API tern_tensor *tern_select_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t index);
/* Of tern_slice. */
TERN_API tern_tensor *tern_slice_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t start,
                                         int64_t end, int64_t step);
/* Of tern_diagonal. */
TERN_API tern_tensor *tern_diagonal_scatter(tern_tensor *x, tern_tensor *src, int64_t offset,
                                            int dim1, int dim2);

/* ---- in another order ------------------------------------------------------------------------ */

/* Backwards along dims; none: a copy. */
TERN_API tern_tensor *tern_flip(tern_tensor *x, tern_shape dims);
/* Backwards along dim 1. */
TERN_API tern_tensor *tern_fliplr(tern_tensor *x);
/* Backwards along dim 0. */
TERN_API tern_tensor *tern_flipud(tern_tensor *x);
/* Moved by shifts[i] along dims[i], what leaves at one end coming in at the other; without dims the
 * flattened x by one shift. */
TERN_API tern_tensor *tern_roll(tern_tensor *x, tern_shape shifts, tern_shape dims);
/* k quarter turns from dims[0] to dims[1] (PyTorch's defaults: 1, (0, 1)). */
TERN_API tern_tensor *tern_rot90(tern_tensor *x, int64_t k, tern_shape dims);

/* ---- repeated -------------------------------------------------------------------------------- */

/* repeats[i] times along each dim; more numbers than dims: new dims in front. */
TERN_API tern_tensor *tern_repeat(tern_tensor *x, tern_shape repeats);
/* The same, but fewer numbers than dims are for the last ones. */
TERN_API tern_tensor *tern_tile(tern_tensor *x, tern_shape dims);
/* Each element `repeats` times in place, along dim; without one, x is flattened. */
TERN_API tern_tensor *tern_repeat_interleave(tern_tensor *x, int64_t repeats,
                                             tern_optional_int dim);
/* Element i repeats[i] times (n or 1, int64 or int32). Waits for the device: the size of the result
 * is their sum. */
TERN_API tern_tensor *tern_repeat_interleave_tensor(tern_tensor *x, tern_tensor *repeats,
                                                    tern_optional_int dim);

/* ---- triangles and diagonals of matrices ----------------------------------------------------- */

/* Zeros above the diagonal-th diagonal. */
TERN_API tern_tensor *tern_tril(tern_tensor *x, int64_t diagonal);
/* Zeros below it. */
TERN_API tern_tensor *tern_triu(tern_tensor *x, int64_t diagonal);
/* (2, n) int64: rows and columns of the elements of a (row, col) matrix below the offset-th
 * diagonal, this included. */
TERN_API tern_tensor *tern_tril_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);
/* Of those above it. */
TERN_API tern_tensor *tern_triu_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);
/* A view: the offset-th diagonal of dims (dim1, dim2), as a new last dim (PyTorch's defaults: 0, 0,
 * 1). */
TERN_API tern_tensor *tern_diagonal(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* The last dim of x as the diagonal of a matrix of zeros in dims (dim1, dim2) of the result
 * (PyTorch's defaults: 0, -2, -1). */
TERN_API tern_tensor *tern_diag_embed(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* A vector as a diagonal matrix, or a copy of a matrix's diagonal. */
TERN_API tern_tensor *tern_diag(tern_tensor *x, int64_t diagonal);
/* All elements of x as a diagonal. */
TERN_API tern_tensor *tern_diagflat(tern_tensor *x, int64_t offset);
/* The sum of a matrix's diagonal. */
TERN_API tern_tensor *tern_trace(tern_tensor *x);

TERN_END_DECLS
#endif
