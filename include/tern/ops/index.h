/* ops/index.h -- reading and writing elements by index tensors (int64 or int32) and masks (bool).
 *
 * tern_x is torch.x. An index out of range is an error: at once on the cpu, at the next
 * synchronisation on other devices. Results belong to the innermost scope; NULL after an error. A
 * trailing _ works in place and returns x. Where several elements are written to one position, the
 * cpu and OpenCL devices of type CPU always choose the same one and add in the same order; for GPUs
 * see tern_use_deterministic. */
#ifndef TERN_OPS_INDEX_H
#define TERN_OPS_INDEX_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the entries of dim that index (n) names. */
TERN_API tern_tensor *tern_index_select(tern_tensor *x, int dim, tern_tensor *index);
/* Returns out[i][j][k] = x[i][index[i][j][k]][k] for dim 1, and accordingly for other dims; index
 * has as many dims as x. */
TERN_API tern_tensor *tern_gather(tern_tensor *x, int dim, tern_tensor *index);
/* Does what tern_gather does, with x and index (int64) broadcast in the other dims, and with
 * negative indices that count from the end. Without dim both tensors are flattened first. */
TERN_API tern_tensor *tern_take_along_dim(tern_tensor *x, tern_tensor *index,
                                          tern_optional_int dim);
/* Returns elements of the flattened x; negative indices count from the end. */
TERN_API tern_tensor *tern_take(tern_tensor *x, tern_tensor *index);
/* Returns x[index], indexed along dim 0: the shape is that of index, then the other dims of x.
 * Negative indices count from the end. A bool index is a mask, as in tern_index_list. */
TERN_API tern_tensor *tern_index(tern_tensor *x, tern_tensor *index);
/* Returns x[indices[0], indices[1], ...], where NULL stands for ':'. Index tensors are broadcast.
 * The dims of the result replace the indexed dims if those are adjacent; else they come first. A
 * mask (bool or uint8) indexes as many dims as it has, and the number of its true elements is read
 * from the device. */
TERN_API tern_tensor *tern_index_list(tern_tensor *x, tern_tensor *const *indices, int n);
/* Returns the elements of x where mask is true, as a vector; both are broadcast. Waits for the
 * device, because the number of elements is read from it. */
TERN_API tern_tensor *tern_masked_select(tern_tensor *x, tern_tensor *mask);

/* ---- writing: into a copy of x, or in place (_) ---------------------------------------------- */

/* How several elements that are written to one position are combined. */
typedef enum tern_reduce_mode {
    TERN_REDUCE_NONE = 0, /* one of them is written; only for tern_scatter */
    TERN_REDUCE_SUM,      /* "add" of torch.scatter */
    TERN_REDUCE_PROD,     /* "multiply" of torch.scatter */
    TERN_REDUCE_MEAN,
    TERN_REDUCE_AMAX,
    TERN_REDUCE_AMIN
} tern_reduce_mode;
/* Writes x[i][index[i][j][k]][k] = src[i][j][k] for dim 1, and accordingly for other dims; index
 * may be smaller than x and src. reduce is TERN_REDUCE_NONE to write, or SUM or PROD to add to or
 * multiply the elements that are there. */
TERN_API tern_tensor *tern_scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                   tern_reduce_mode reduce);
/* Does the same in place. */
TERN_API tern_tensor *tern_scatter_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                    tern_reduce_mode reduce);
/* Does what tern_scatter does, with a number for src. */
TERN_API tern_tensor *tern_scatter_scalar(tern_tensor *x, int dim, tern_tensor *index,
                                          tern_scalar value, tern_reduce_mode reduce);
/* Does the same in place. */
TERN_API tern_tensor *tern_scatter_scalar_(tern_tensor *x, int dim, tern_tensor *index,
                                           tern_scalar value, tern_reduce_mode reduce);
/* Does what tern_scatter does with TERN_REDUCE_SUM. */
TERN_API tern_tensor *tern_scatter_add(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_tensor *src);
/* Does the same in place. */
TERN_API tern_tensor *tern_scatter_add_(tern_tensor *x, int dim, tern_tensor *index,
                                        tern_tensor *src);
/* Sets each position to the sum, product, mean, maximum or minimum of the elements of src that are
 * written there, and of the element of x if include_self. */
TERN_API tern_tensor *tern_scatter_reduce(tern_tensor *x, int dim, tern_tensor *index,
                                          tern_tensor *src, tern_reduce_mode reduce,
                                          bool include_self);
/* Does the same in place. */
TERN_API tern_tensor *tern_scatter_reduce_(tern_tensor *x, int dim, tern_tensor *index,
                                           tern_tensor *src, tern_reduce_mode reduce,
                                           bool include_self);
/* Combines entry i of source with entry index[i] of x along dim in the same ways, but for the sum,
 * which is tern_index_add. */
TERN_API tern_tensor *tern_index_reduce(tern_tensor *x, int dim, tern_tensor *index,
                                        tern_tensor *source, tern_reduce_mode reduce,
                                        bool include_self);
/* Adds alpha times entry i of source to entry index[i] of x along dim. source has n entries in dim,
 * and x's sizes in the other dims. */
TERN_API tern_tensor *tern_index_add(tern_tensor *x, int dim, tern_tensor *index,
                                     tern_tensor *source, tern_scalar alpha);
/* Does the same in place. */
TERN_API tern_tensor *tern_index_add_(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_tensor *source, tern_scalar alpha);
/* Sets entry index[i] of x along dim to entry i of source. */
TERN_API tern_tensor *tern_index_copy(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_tensor *source);
/* Does the same in place. */
TERN_API tern_tensor *tern_index_copy_(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_tensor *source);
/* Sets the entries of x along dim that index (n) names to value. */
TERN_API tern_tensor *tern_index_fill(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_scalar value);
/* Does the same in place. */
TERN_API tern_tensor *tern_index_fill_(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_scalar value);
/* Does what tern_index_fill does, with a scalar tensor () for value, whose gradient is the sum of
 * the gradients of the elements that were set. */
TERN_API tern_tensor *tern_index_fill_tensor(tern_tensor *x, int dim, tern_tensor *index,
                                             tern_tensor *value);
/* Does the same in place. */
TERN_API tern_tensor *tern_index_fill_tensor_(tern_tensor *x, int dim, tern_tensor *index,
                                              tern_tensor *value);
/* Sets the elements of the flattened x that index names to those of source, or with accumulate adds
 * them. */
TERN_API tern_tensor *tern_put(tern_tensor *x, tern_tensor *index, tern_tensor *source,
                               bool accumulate);
/* Does the same in place. */
TERN_API tern_tensor *tern_put_(tern_tensor *x, tern_tensor *index, tern_tensor *source,
                                bool accumulate);
/* Writes x[indices[0], indices[1], ...] = values, or += with accumulate. The indices are those of
 * tern_index_list; values are broadcast. */
TERN_API tern_tensor *tern_index_put(tern_tensor *x, tern_tensor *const *indices, int n,
                                     tern_tensor *values, bool accumulate);
/* Does the same in place. */
TERN_API tern_tensor *tern_index_put_(tern_tensor *x, tern_tensor *const *indices, int n,
                                      tern_tensor *values, bool accumulate);
/* Sets the elements of x where mask is true to the first elements of source, in order. Waits for
 * the device, because the number of true elements is read from it. */
TERN_API tern_tensor *tern_masked_scatter(tern_tensor *x, tern_tensor *mask, tern_tensor *source);
/* Does the same in place. */
TERN_API tern_tensor *tern_masked_scatter_(tern_tensor *x, tern_tensor *mask, tern_tensor *source);

/* ---- finding --------------------------------------------------------------------------------- */

/* Returns the coordinates of the elements of x that are not 0, (n, dims) int64. Waits for the
 * device, because n is read from it. */
TERN_API tern_tensor *tern_nonzero(tern_tensor *x);
/* Another name of tern_nonzero. */
TERN_API tern_tensor *tern_argwhere(tern_tensor *x);
/* Returns the first `size` of these coordinates, (size, dims). If there are fewer, the rest is
 * fill_value (PyTorch's default is -1). It waits for the device, as tern_nonzero does. */
TERN_API tern_tensor *tern_nonzero_static(tern_tensor *x, int64_t size, int64_t fill_value);
/* Converts flat indices of a tensor of that shape to coordinates (torch.unravel_index): out[d]
 * becomes the index in dim d. indices are integers of any shape; each out[d] has their shape and
 * dtype. */
TERN_API tern_status tern_unravel_index(tern_tensor *indices, tern_shape shape, tern_tensor **out);
/* Returns x (*) of int64 as (*, num_classes) int64: 1 at the class that x names, 0 elsewhere.
 * num_classes -1 is the largest element plus one, which is read from the device. Errors:
 * TERN_ERR_ARGUMENT if num_classes is too small. */
TERN_API tern_tensor *tern_one_hot(tern_tensor *x, int64_t num_classes);

TERN_END_DECLS
#endif
