/* ops/shape.h -- other looks at the same elements, and rearranged copies.
 *
 * Views share their storage with x and are differentiable, also when they are written in place. */
#ifndef TERN_OPS_SHAPE_H
#define TERN_OPS_SHAPE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- views: dims count from the end when negative ---------------------------------------- */
/* The elements in row-major order as shape; one -1 is worked out. Refuses where
 * that needs a copy. */
TERN_API tern_tensor *tern_view(tern_tensor *x, tern_shape shape);
/* The same, copying where it must. */
TERN_API tern_tensor *tern_reshape(tern_tensor *x, tern_shape shape);
/* Dims start_dim..end_dim become one (PyTorch's defaults: 0, -1). */
TERN_API tern_tensor *tern_flatten(tern_tensor *x, int start_dim, int end_dim);
TERN_API tern_tensor *tern_unflatten(tern_tensor *x, int dim, tern_shape sizes);
/* Dim i of the result is dim dims[i] of x. */
TERN_API tern_tensor *tern_permute(tern_tensor *x, tern_shape dims);
TERN_API tern_tensor *tern_transpose(tern_tensor *x, int dim0, int dim1);
/* Of a matrix; x itself for fewer dims. */
TERN_API tern_tensor *tern_t(tern_tensor *x);
/* Without all dims of size 1; without these. */
TERN_API tern_tensor *tern_squeeze(tern_tensor *x);
TERN_API tern_tensor *tern_squeeze_dim(tern_tensor *x, int dim);
TERN_API tern_tensor *tern_unsqueeze(tern_tensor *x, int dim);
/* Dims of size 1 repeated to shape; -1 keeps a size; new dims in front. */
TERN_API tern_tensor *tern_expand(tern_tensor *x, tern_shape shape);
TERN_API tern_tensor *tern_expand_as(tern_tensor *x, const tern_tensor *other);
TERN_API tern_tensor *tern_broadcast_to(tern_tensor *x, tern_shape shape);
/* length elements of dim from start; start may count from the end. */
TERN_API tern_tensor *tern_narrow(tern_tensor *x, int dim, int64_t start, int64_t length);
/* x[start:end:step] along dim; start and end clamp as in Python, step > 0.
 * TERN_SLICE_END: no end. */
#define TERN_SLICE_END INT64_MAX
TERN_API tern_tensor *tern_slice(tern_tensor *x, int dim, int64_t start, int64_t end, int64_t step);
/* x[..., index, ...] along dim, which disappears. */
TERN_API tern_tensor *tern_select(tern_tensor *x, int dim, int64_t index);
/* A view of any geometry inside x's storage, offset relative to x (torch.as_strided). */
TERN_API tern_tensor *tern_as_strided(tern_tensor *x, tern_shape shape, tern_shape stride,
                                      int64_t offset);
/* Pieces of size elements along dim (the last may be smaller), into pieces[capacity]; returns how
 * many there are, -1 after an error (too many for capacity, too). pieces NULL only counts. As in
 * PyTorch the pieces are not to be written in place while that is recorded. */
TERN_API int tern_split(tern_tensor *x, int64_t size, int dim, tern_tensor **pieces, int capacity);
/* At most `chunks` pieces of equal size, the last may be smaller. */
TERN_API int tern_chunk(tern_tensor *x, int chunks, int dim, tern_tensor **pieces, int capacity);

/* ---- copies ---------------------------------------------------------------------------------- */
/* x itself when it is dense in row-major order, else such a copy. */
TERN_API tern_tensor *tern_contiguous(tern_tensor *x);
TERN_API tern_tensor *tern_clone(tern_tensor *x);
/* n tensors one after the other along dim; types promote. */
TERN_API tern_tensor *tern_cat(tern_tensor *const *tensors, int n, int dim);
/* n tensors of one shape along a new dim. */
TERN_API tern_tensor *tern_stack(tern_tensor *const *tensors, int n, int dim);
/* Below (above) the diagonal-th diagonal zero: torch.tril, torch.triu. */
TERN_API tern_tensor *tern_tril(tern_tensor *x, int64_t diagonal);
TERN_API tern_tensor *tern_triu(tern_tensor *x, int64_t diagonal);

TERN_END_DECLS
#endif
