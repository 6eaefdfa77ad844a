/* ops/view.h -- views: the same elements in other shapes, with dims in another order, or parts of
 * them.
 *
 * tern_x is torch.x. Views share their storage with x and are differentiable, even when they are
 * written in place. A negative dim counts from the end. Results belong to the innermost scope; NULL
 * after an error: TERN_ERR_SHAPE for shapes that do not match, TERN_ERR_ARGUMENT for a dim that
 * does not exist. ops/layout.h has the operations that copy: joining, repeating, reordering. */
#ifndef TERN_OPS_VIEW_H
#define TERN_OPS_VIEW_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Returns the elements in row-major order as another shape, in which one size may be -1 and is
 * computed. Errors: TERN_ERR_SHAPE if that needs a copy. */
TERN_API tern_tensor *tern_view(tern_tensor *x, tern_shape shape);
/* Does what tern_view does, and copies if it has to. */
TERN_API tern_tensor *tern_reshape(tern_tensor *x, tern_shape shape);
/* Does what tern_view does, with the shape of other. */
TERN_API tern_tensor *tern_view_as(tern_tensor *x, const tern_tensor *other);
/* Does what tern_reshape does, with the shape of other. */
TERN_API tern_tensor *tern_reshape_as(tern_tensor *x, const tern_tensor *other);
/* Joins dims start_dim..end_dim to one dim (PyTorch's defaults: 0, -1). */
TERN_API tern_tensor *tern_flatten(tern_tensor *x, int start_dim, int end_dim);
/* Splits dim `dim` into dims of these sizes, one of which may be -1. */
TERN_API tern_tensor *tern_unflatten(tern_tensor *x, int dim, tern_shape sizes);
/* Removes all dims of size 1. */
TERN_API tern_tensor *tern_squeeze(tern_tensor *x);
/* Removes dim `dim` if it has size 1. */
TERN_API tern_tensor *tern_squeeze_dim(tern_tensor *x, int dim);
/* Removes those of the dims that have size 1. No dim may be listed twice. */
TERN_API tern_tensor *tern_squeeze_dims(tern_tensor *x, tern_shape dims);
/* Inserts a dim of size 1 before dim. */
TERN_API tern_tensor *tern_unsqueeze(tern_tensor *x, int dim);
/* Returns x with at least one dim: () -> (1). */
TERN_API tern_tensor *tern_atleast_1d(tern_tensor *x);
/* Returns x with at least two dims: (n) -> (1, n). */
TERN_API tern_tensor *tern_atleast_2d(tern_tensor *x);
/* Returns x with at least three dims: (n) -> (1, n, 1), (n, m) -> (n, m, 1). */
TERN_API tern_tensor *tern_atleast_3d(tern_tensor *x);

/* ---- dims in another order ------------------------------------------------------------------- */

/* Reorders the dims: dim i of the result is dim dims[i] of x. */
TERN_API tern_tensor *tern_permute(tern_tensor *x, tern_shape dims);
/* Exchanges dims dim0 and dim1. */
TERN_API tern_tensor *tern_transpose(tern_tensor *x, int dim0, int dim1);
/* Returns the transpose of a matrix; a tensor with fewer dims is returned as it is. */
TERN_API tern_tensor *tern_t(tern_tensor *x);
/* Moves dims source[i] to positions destination[i]; the other dims keep their order. */
TERN_API tern_tensor *tern_movedim(tern_tensor *x, tern_shape source, tern_shape destination);
/* Another name of tern_movedim. */
TERN_API tern_tensor *tern_moveaxis(tern_tensor *x, tern_shape source, tern_shape destination);
/* Another name of tern_transpose. */
TERN_API tern_tensor *tern_swapdims(tern_tensor *x, int dim0, int dim1);
/* Another name of tern_transpose. */
TERN_API tern_tensor *tern_swapaxes(tern_tensor *x, int axis0, int axis1);

/* ---- broadcasting ---------------------------------------------------------------------------- */

/* Expands dims of size 1 to the sizes of shape, without a copy. -1 keeps a size, and shape may have
 * additional dims in front. */
TERN_API tern_tensor *tern_expand(tern_tensor *x, tern_shape shape);
/* Expands x to the shape of other. */
TERN_API tern_tensor *tern_expand_as(tern_tensor *x, const tern_tensor *other);
/* Another name of tern_expand. */
TERN_API tern_tensor *tern_broadcast_to(tern_tensor *x, tern_shape shape);
/* Expands n tensors to their common shape, into out[n]. */
TERN_API tern_status tern_broadcast_tensors(tern_tensor *const *tensors, int n, tern_tensor **out);
/* Writes the shape to which n shapes are broadcast to *out. */
TERN_API tern_status tern_broadcast_shapes(const tern_shape *shapes, int n, tern_shape *out);
typedef enum tern_indexing {
    TERN_INDEXING_IJ = 0, /* tensor i varies along dim i */
    TERN_INDEXING_XY      /* the first two tensors are exchanged */
} tern_indexing;
/* Returns the coordinates of a grid whose axes are n vectors, into out[n]. */
TERN_API tern_status tern_meshgrid(tern_tensor *const *tensors, int n, tern_indexing indexing,
                                   tern_tensor **out);

/* ---- parts ----------------------------------------------------------------------------------- */

/* Returns `length` entries of dim from start on; a negative start counts from the end. */
TERN_API tern_tensor *tern_narrow(tern_tensor *x, int dim, int64_t start, int64_t length);
#define TERN_SLICE_END INT64_MAX
/* Returns x[start:end:step] along dim, step > 0. start and end are limited to the size as in
 * Python. TERN_SLICE_END means up to the end. */
TERN_API tern_tensor *tern_slice(tern_tensor *x, int dim, int64_t start, int64_t end, int64_t step);
/* Returns entry index of dim, without that dim: x[..., index, ...]. */
TERN_API tern_tensor *tern_select(tern_tensor *x, int dim, int64_t index);
/* Returns windows of `size` entries of dim, `step` entries apart, as a new last dim
 * (Tensor.unfold). */
TERN_API tern_tensor *tern_unfold_dim(tern_tensor *x, int dim, int64_t size, int64_t step);
/* Returns a view with any shape and strides inside of x's storage; offset is relative to x
 * (torch.as_strided). */
TERN_API tern_tensor *tern_as_strided(tern_tensor *x, tern_shape shape, tern_shape stride,
                                      int64_t offset);

/* ---- splitting ----------------------------------------------------------------------------------
 * These write views to pieces[capacity], and return how many there are; -1 after an error, which
 * includes a capacity that is too small. With pieces NULL they only count. As in PyTorch the pieces
 * must not be written in place while that is recorded. */

/* Splits x into pieces of `size` entries of dim; the last may be smaller. */
TERN_API int tern_split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity);
/* Splits x into pieces of these sizes, which add up to the size of dim (torch.split with a
 * list). */
TERN_API int tern_split_with_sizes(tern_tensor *x, const int64_t *sizes, int n, int dim,
                                   tern_tensor **pieces, int capacity);
/* Splits x into at most `chunks` pieces of equal size; the last may be smaller. */
TERN_API int tern_chunk(tern_tensor *x, int chunks, int dim, tern_tensor **pieces, int capacity);
/* Splits x into the entries of dim, without that dim. */
TERN_API int tern_unbind(tern_tensor *x, int dim, tern_tensor **pieces, int capacity);
/* Splits x into `sections` pieces; if the size is not a multiple, the first ones are larger by
 * one. */
TERN_API int tern_tensor_split(tern_tensor *x, int64_t sections, int dim, tern_tensor **pieces,
                               int capacity);
/* Splits x before each of n indices. */
TERN_API int tern_tensor_split_at(tern_tensor *x, const int64_t *indices, int n, int dim,
                                  tern_tensor **pieces, int capacity);
/* Splits x into equal sections along dim 1, a vector along dim 0. */
TERN_API int tern_hsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* Splits x along the same dim before each of n indices. */
TERN_API int tern_hsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
/* Splits x into equal sections along dim 0. */
TERN_API int tern_vsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* Splits x along dim 0 before each of n indices. */
TERN_API int tern_vsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);
/* Splits x into equal sections along dim 2. */
TERN_API int tern_dsplit(tern_tensor *x, int64_t sections, tern_tensor **pieces, int capacity);
/* Splits x along dim 2 before each of n indices. */
TERN_API int tern_dsplit_at(tern_tensor *x, const int64_t *indices, int n, tern_tensor **pieces,
                            int capacity);

TERN_END_DECLS
#endif
