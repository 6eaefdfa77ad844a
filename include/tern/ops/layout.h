/* ops/layout.h -- dims moved, cut, joined and repeated; diagonals.
 *
 * Functions called views share their storage with x; the others return copies. Dims count from the
 * end when negative. */
#ifndef TERN_OPS_LAYOUT_H
#define TERN_OPS_LAYOUT_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- views ------------------------------------------------------------------------------- */
/* Dims source[i] become dims destination[i], the others keep their order. */
TERN_API tern_tensor *tern_movedim(tern_tensor *x, tern_shape source, tern_shape destination);
TERN_API tern_tensor *tern_moveaxis(tern_tensor *x, tern_shape source, tern_shape destination);
TERN_API tern_tensor *tern_swapdims(tern_tensor *x, int dim0, int dim1);
TERN_API tern_tensor *tern_swapaxes(tern_tensor *x, int axis0, int axis1);
/* With dims of size 1 added: () -> (1); (n) -> (1, n); (n) -> (1, n, 1) and (n, m) -> (n, m, 1). */
TERN_API tern_tensor *tern_atleast_1d(tern_tensor *x);
TERN_API tern_tensor *tern_atleast_2d(tern_tensor *x);
TERN_API tern_tensor *tern_atleast_3d(tern_tensor *x);
TERN_API tern_tensor *tern_view_as(tern_tensor *x, const tern_tensor *other);
TERN_API tern_tensor *tern_reshape_as(tern_tensor *x, const tern_tensor *other);
/* The offset-th diagonal of dims (dim1, dim2), as a new last dim (torch.diagonal; PyTorch's
 * defaults are 0, 0, 1). */
TERN_API tern_tensor *tern_diagonal(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* Tensor.unfold: windows of size elements, step apart along dim, as a new last dim. */
TERN_API tern_tensor *tern_unfold_dim(tern_tensor *x, int dim, int64_t size, int64_t step);
/* The n tensors expanded to their common shape, into out[n]. */
TERN_API tern_status tern_broadcast_tensors(tern_tensor *const *tensors, int n, tern_tensor **out);
typedef enum tern_indexing {
    TERN_INDEXING_IJ = 0, /* tensor i varies along dim i */
    TERN_INDEXING_XY      /* the first two change places */
} tern_indexing;
/* n vectors as coordinates of a grid, into out[n]. */
TERN_API tern_status tern_meshgrid(tern_tensor *const *tensors, int n, tern_indexing indexing,
                                   tern_tensor **out);

/* ---- pieces, views too: into pieces[capacity]; they return how many there are, -1 after an error
 * (too many for capacity, too). pieces NULL only counts. -------------------------------------- */
/* Each entry of dim, without that dim. */
TERN_API int tern_unbind(tern_tensor *x, int dim, tern_tensor **pieces, int capacity);
/* Pieces of these sizes, which add up to dim's (torch.split with a list). */
TERN_API int tern_split_with_sizes(tern_tensor *x, const int64_t *sizes, int n, int dim,
                                   tern_tensor **pieces, int capacity);
/* As many sections, the first ones larger by one where it does not divide; cut before each of n
 * indices. h: dim 1 (0 of vectors), v: dim 0, d: dim 2; there sections must divide the size. */
TERN_API int tern_tensor_split(tern_tensor *x, int64_t sections, int dim, tern_tensor **pieces,
                               int capacity);
TERN_API int tern_tensor_split_at(tern_tensor *x, const int64_t *indices, int n, int dim,
                                  tern_tensor **pieces, int capacity);
TERN_API int tern_hsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
TERN_API int tern_hsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
TERN_API int tern_vsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
TERN_API int tern_vsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
TERN_API int tern_dsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
TERN_API int tern_dsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);

/* ---- joined: n tensors side by side ------------------------------------------------------ */
TERN_API tern_tensor *tern_hstack(tern_tensor *const *tensors, int n); /* dim 1; vectors: dim 0 */
TERN_API tern_tensor *tern_vstack(tern_tensor *const *tensors, int n); /* vectors are rows */
TERN_API tern_tensor *tern_row_stack(tern_tensor *const *tensors, int n);
TERN_API tern_tensor *tern_dstack(tern_tensor *const *tensors, int n);       /* dim 2 */
TERN_API tern_tensor *tern_column_stack(tern_tensor *const *tensors, int n); /* vectors: columns */

/* ---- copies of x with src in the place of a view (select, slice, diagonal), of its shape ----- */
TERN_API tern_tensor *tern_select_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t index);
TERN_API tern_tensor *tern_slice_scatter(tern_tensor *x, tern_tensor *src, int dim, int64_t start,
                                         int64_t end, int64_t step);
TERN_API tern_tensor *tern_diagonal_scatter(tern_tensor *x, tern_tensor *src, int64_t offset,
                                            int dim1, int dim2);

/* ---- in another order -------------------------------------------------------------------- */
/* Backwards along dims (none: a copy); along dim 1; along dim 0. */
TERN_API tern_tensor *tern_flip(tern_tensor *x, tern_shape dims);
TERN_API tern_tensor *tern_fliplr(tern_tensor *x);
TERN_API tern_tensor *tern_flipud(tern_tensor *x);
/* Moved by shifts[i] along dims[i], what leaves at one end coming in at the other; without dims the
 * flattened x by one shift. */
TERN_API tern_tensor *tern_roll(tern_tensor *x, tern_shape shifts, tern_shape dims);
/* k quarter turns from dims[0] to dims[1] (PyTorch's defaults: 1, (0, 1)). */
TERN_API tern_tensor *tern_rot90(tern_tensor *x, int64_t k, tern_shape dims);

/* ---- repeated ---------------------------------------------------------------------------- */
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

/* ---- diagonals and triangles ------------------------------------------------------------- */
/* The last dim of x as the diagonal of a matrix of zeros in dims (dim1, dim2) of the result
 * (PyTorch's defaults: 0, -2, -1). */
TERN_API tern_tensor *tern_diag_embed(tern_tensor *x, int64_t offset, int dim1, int dim2);
/* A vector as a diagonal matrix, or a copy of a matrix's diagonal; all elements as a diagonal. */
TERN_API tern_tensor *tern_diag(tern_tensor *x, int64_t diagonal);
TERN_API tern_tensor *tern_diagflat(tern_tensor *x, int64_t offset);
/* The sum of a matrix's diagonal. */
TERN_API tern_tensor *tern_trace(tern_tensor *x);
/* (2, n) int64: rows and columns of the elements below (above) the offset-th diagonal of a (row,
 * col) matrix, this included. */
TERN_API tern_tensor *tern_tril_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);
TERN_API tern_tensor *tern_triu_indices(int64_t row, int64_t col, int64_t offset,
                                        const char *device);

TERN_END_DECLS
#endif
