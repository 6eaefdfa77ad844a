/* ops/view.h -- other looks at the same elements: other shapes, dims in another order, parts.
 *
 * tern_x is torch.x. Views share their storage with x and are differentiable, also when they are
 * written in place. Dims count from the end when negative. Results belong to the innermost scope;
 * NULL after an error: TERN_ERR_SHAPE for what does not fit, TERN_ERR_ARGUMENT for a dim that is
 * not there. What joins, repeats or reorders copies is in ops/layout.h. */
#ifndef TERN_OPS_VIEW_H
#define TERN_OPS_VIEW_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- shapes ---------------------------------------------------------------------------------- */

/* The elements in row-major order as shape; one -1 is worked out. Refuses where that needs a
 * copy. */
TERN_API tern_tensor *tern_view(tern_tensor *x, tern_shape shape);
/* The same, copying where it must. */
TERN_API tern_tensor *tern_reshape(tern_tensor *x, tern_shape shape);
/* tern_view as the shape of other. */
TERN_API tern_tensor *tern_view_as(tern_tensor *x, const tern_tensor *other);
/* tern_reshape to the shape of other. */
TERN_API tern_tensor *tern_reshape_as(tern_tensor *x, const tern_tensor *other);
/* Dims start_dim..end_dim become one (PyTorch's defaults: 0, -1). */
TERN_API tern_tensor *tern_flatten(tern_tensor *x, int start_dim, int end_dim);
/* Dim `dim` as these sizes, of which one may be -1. */
TERN_API tern_tensor *tern_unflatten(tern_tensor *x, int dim, tern_shape sizes);
/* Without all dims of size 1. */
TERN_API tern_tensor *tern_squeeze(tern_tensor *x);
/* Without this dim, if it has size 1. */
TERN_API tern_tensor *tern_squeeze_dim(tern_tensor *x, int dim);
/* Without these dims, those of them that have size 1; each is named once. */
TERN_API tern_tensor *tern_squeeze_dims(tern_tensor *x, tern_shape dims);
/* With a dim of size 1 before dim. */
TERN_API tern_tensor *tern_unsqueeze(tern_tensor *x, int dim);
/* At least one dim: () -> (1). */
TERN_API tern_tensor *tern_atleast_1d(tern_tensor *x);
/* At least two: (n) -> (1, n). */
TERN_API tern_tensor *tern_atleast_2d(tern_tensor *x);
/* At least three: (n) -> (1, n, 1), (n, m) -> (n, m, 1). */
TERN_API tern_tensor *tern_atleast_3d(tern_tensor *x);

/* ---- dims in another order ------------------------------------------------------------------- */

/* Dim i of the result is dim dims[i] of x. */
TERN_API tern_tensor *tern_permute(tern_tensor *x, tern_shape dims);
/* Dims dim0 and dim1 change places. */
TERN_API tern_tensor *tern_transpose(tern_tensor *x, int dim0, int dim1);
/* The transposed of a matrix; x itself for fewer dims. */
TERN_API tern_tensor *tern_t(tern_tensor *x);
/* Dims source[i] become dims destination[i], the others keep their order. */
TERN_API tern_tensor *tern_movedim(tern_tensor *x, tern_shape source, tern_shape destination);
/* tern_movedim. */
TERN_API tern_tensor *tern_moveaxis(tern_tensor *x, tern_shape source, tern_shape destination);
/* tern_transpose. */
TERN_API tern_tensor *tern_swapdims(tern_tensor *x, int dim0, int dim1);
/* tern_transpose. */
TERN_API tern_tensor *tern_swapaxes(tern_tensor *x, int axis0, int axis1);

/* ---- dims of size 1 seen many times ---------------------------------------------------------- */

/* Dims of size 1 repeated to shape; -1 keeps a size; new dims in front. */
TERN_API tern_tensor *tern_expand(tern_tensor *x, tern_shape shape);
/* To the shape of other. */
TERN_API tern_tensor *tern_expand_as(tern_tensor *x, const tern_tensor *other);
/* tern_expand. */
TERN_API tern_tensor *tern_broadcast_to(tern_tensor *x, tern_shape shape);
/* The n tensors expanded to their common shape, into out[n]. */
TERN_API tern_status tern_broadcast_tensors(tern_tensor *const *tensors, int n, tern_tensor **out);
/* *out = the shape that n shapes broadcast to. */
TERN_API tern_status tern_broadcast_shapes(const tern_shape *shapes, int n, tern_shape *out);
typedef enum tern_indexing {
    TERN_INDEXING_IJ = 0, /* tensor i varies along dim i */
    TERN_INDEXING_XY      /* the first two change places */
} tern_indexing;
/* n vectors as coordinates of a grid, into out[n]. */
TERN_API tern_status tern_meshgrid(tern_tensor *const *tensors, int n, tern_indexing indexing,
                                   tern_tensor **out);

/* ---- parts ----------------------------------------------------------------------------------- */

/* length elements of dim from start; start may count from the end. */
TERN_API tern_tensor *tern_narrow(tern_tensor *x, int dim, int64_t start, int64_t length);
#define TERN_SLICE_END INT64_MAX
/* x[start:end:step] along dim; start and end clamp as in Python, step > 0. TERN_SLICE_END: no
 * end. */
TERN_API tern_tensor *tern_slice(tern_tensor *x, int dim, int64_t start, int64_t end, int64_t step);
/* x[..., index, ...] along dim, which disappears. */
TERN_API tern_tensor *tern_select(tern_tensor *x, int dim, int64_t index);
/* Tensor.unfold: windows of size elements, step apart along dim, as a new last dim. */
TERN_API tern_tensor *tern_unfold_dim(tern_tensor *x, int dim, int64_t size, int64_t step);
/* A view of any geometry inside of x's storage, offset relative to x (torch.as_strided). */
TERN_API tern_tensor *tern_as_strided(tern_tensor *x, tern_shape shape, tern_shape stride,
                                      int64_t offset);

/* ---- pieces ----------------------------------------------------------------------------------
 * Into pieces[capacity]; return how many there are, -1 after an error (too many for capacity, too).
 * pieces NULL only counts. As in PyTorch the pieces are not to be written in place while that is
 * recorded. */

/* Of size elements along dim; the last may be smaller. */
TERN_API int tern_split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity);
/* Of these sizes, which add up to dim's (torch.split with a list). */
TERN_API int tern_split_with_sizes(tern_tensor *x, const int64_t *sizes, int n, int dim,
                                   tern_tensor **pieces, int capacity);
/* At most `chunks` of equal size; the last may be smaller. */
TERN_API int tern_chunk(tern_tensor *x, int chunks, int dim, tern_tensor **pieces, int capacity);
/* Each entry of dim, without that dim. */
TERN_API int tern_unbind(tern_tensor *x, int dim, tern_tensor **pieces, int capacity);
/* As many as sections says, the first ones larger by one where it does not divide. */
TERN_API int tern_tensor_split(tern_tensor *x, int64_t sections, int dim, tern_tensor **pieces,
                               int capacity);
/* Cut before each of n indices. */
TERN_API int tern_tensor_split_at(tern_tensor *x, const int64_t *indices, int n, int dim,
                                  tern_tensor **pieces, int capacity);
/* Equal sections of dim 1, of vectors of dim 0. */
TERN_API int tern_hsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* The same dim, cut before each of n indices. */
TERN_API int tern_hsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
/* Equal sections of dim 0. */
TERN_API int tern_vsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* The same dim, cut before each of n indices. */
TERN_API int tern_vsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
/* Equal sections of dim 2. */
TERN_API int tern_dsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* The same dim, cut before each of n indices. */
TERN_API int tern_dsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);

TERN_END_DECLS
#endif
