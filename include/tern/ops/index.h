/* ops/index.h -- picking and writing elements by index tensors (int64 or int32) and masks (bool).
 *
 * tern_x is torch.x. An index out of range is an error: at once on cpu, at the next synchronisation
 * elsewhere. Results belong to the innermost scope; NULL after an error. A trailing _ works in
 * place and returns x. Which of several elements for one place wins, and in which order they add
 * up, is fixed on processors; on GPUs see tern_use_deterministic. */
#ifndef TERN_OPS_INDEX_H
#define TERN_OPS_INDEX_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- picking --------------------------------------------------------------------------------- */

/* Entries index (n) of dim. */
TERN_API tern_tensor *tern_index_select(tern_tensor *x, int dim, tern_tensor *index);
/* out[i][j][k] = x[i][index[i][j][k]][k] for dim 1, and so on; index has as many dims as x. */
TERN_API tern_tensor *tern_gather(tern_tensor *x, int dim, tern_tensor *index);
/* gather, x and index (int64) broadcast in the other dims, and places count around: -1 is the last
 * one; without dim, of the flattened tensors. */
TERN_API tern_tensor *tern_take_along_dim(tern_tensor *x, tern_tensor *index,
                                          tern_optional_int dim);
/* Elements of the flattened x; negative indices count from the end. */
TERN_API tern_tensor *tern_take(tern_tensor *x, tern_tensor *index);
/* x[index] along dim 0: (*index, *x[1:]); negative indices count from the end. A bool index is a
 * mask, as in tern_index_list. */
TERN_API tern_tensor *tern_index(tern_tensor *x, tern_tensor *index);
/* x[indices[0], indices[1], ...], NULL for ':'. Index tensors broadcast; the result has their dims
 * where the indexed ones stood, or in front if these are apart. A mask (bool, uint8) stands for as
 * many dims as it has, and its size is read from the device. */
TERN_API tern_tensor *tern_index_list(tern_tensor *x, tern_tensor *const *indices, int n);
/* Elements of x where mask holds (both broadcast), as a vector. Waits for the device: how many
 * there are is read from it. */
TERN_API tern_tensor *tern_masked_select(tern_tensor *x, tern_tensor *mask);

/* ---- writing: copies of x, or x itself (_) --------------------------------------------------- */

/* What becomes of elements that go to one place. */
typedef enum tern_reduce_mode {
    TERN_REDUCE_NONE = 0, /* one of them is taken; of tern_scatter alone */
    TERN_REDUCE_SUM,      /* "add" of torch.scatter */
    TERN_REDUCE_PROD,     /* "multiply" of torch.scatter */
    TERN_REDUCE_MEAN,
    TERN_REDUCE_AMAX,
    TERN_REDUCE_AMIN
} tern_reduce_mode;
/* x[i][index[i][j][k]][k] = src[i][j][k] for dim 1, and so on; index may be smaller than x and src.
 * reduce: none, or the sum or product with what is there. */
TERN_API tern_tensor *tern_scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                   tern_reduce_mode reduce);
/* Into x. */
TERN_API tern_tensor *tern_scatter_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                                    tern_reduce_mode reduce);
/* A number for src. */
TERN_API tern_tensor *tern_scatter_scalar(tern_tensor *x, int dim, tern_tensor *index,
                                          tern_scalar value, tern_reduce_mode reduce);
/* A number, into x. */
TERN_API tern_tensor *tern_scatter_scalar_(tern_tensor *x, int dim, tern_tensor *index,
                                           tern_scalar value, tern_reduce_mode reduce);
/* The same, adding. */
TERN_API tern_tensor *tern_scatter_add(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_tensor *src);
/* Into x. */
TERN_API tern_tensor *tern_scatter_add_(tern_tensor *x, int dim, tern_tensor *index,
                                        tern_tensor *src);
/* Each place becomes the sum, product, mean, largest or smallest of what goes there, and of itself
 * if include_self. */
TERN_API tern_tensor *tern_scatter_reduce(tern_tensor *x, int dim, tern_tensor *index,
                                          tern_tensor *src, tern_reduce_mode reduce,
                                          bool include_self);
/* Into x. */
TERN_API tern_tensor *tern_scatter_reduce_(tern_tensor *x, int dim, tern_tensor *index,
                                           tern_tensor *src, tern_reduce_mode reduce,
                                           bool include_self);
/* The same of entries index (n) of dim; not the sum, which is tern_index_add. */
TERN_API tern_tensor *tern_index_reduce(tern_tensor *x, int dim, tern_tensor *index,
                                        tern_tensor *source, tern_reduce_mode reduce,
                                        bool include_self);
/* Entries index (n) of dim plus alpha source; set to source's; set to value. source has n entries
 * there and x's size in the other dims. */
TERN_API tern_tensor *tern_index_add(tern_tensor *x, int dim, tern_tensor *index,
                                     tern_tensor *source, tern_scalar alpha);
/* Into x. */
TERN_API tern_tensor *tern_index_add_(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_tensor *source, tern_scalar alpha);
/* Entries index (n) of dim set to source's. */
TERN_API tern_tensor *tern_index_copy(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_tensor *source);
/* Into x. */
TERN_API tern_tensor *tern_index_copy_(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_tensor *source);
/* Entries index (n) of dim set to value. */
TERN_API tern_tensor *tern_index_fill(tern_tensor *x, int dim, tern_tensor *index,
                                      tern_scalar value);
/* Into x. */
TERN_API tern_tensor *tern_index_fill_(tern_tensor *x, int dim, tern_tensor *index,
                                       tern_scalar value);
/* tern_index_fill of a value () that is a tensor, and has a gradient: the sum of those set. */
TERN_API tern_tensor *tern_index_fill_tensor(tern_tensor *x, int dim, tern_tensor *index,
                                             tern_tensor *value);
/* Into x. */
TERN_API tern_tensor *tern_index_fill_tensor_(tern_tensor *x, int dim, tern_tensor *index,
                                              tern_tensor *value);
/* Elements of the flattened x set to source's, or added to. */
TERN_API tern_tensor *tern_put(tern_tensor *x, tern_tensor *index, tern_tensor *source,
                               bool accumulate);
/* Into x. */
TERN_API tern_tensor *tern_put_(tern_tensor *x, tern_tensor *index, tern_tensor *source,
                                bool accumulate);
/* x[indices[0], indices[1], ...] = values, or +=; as in tern_index_list, values broadcast. */
TERN_API tern_tensor *tern_index_put(tern_tensor *x, tern_tensor *const *indices, int n,
                                     tern_tensor *values, bool accumulate);
/* Into x. */
TERN_API tern_tensor *tern_index_put_(tern_tensor *x, tern_tensor *const *indices, int n,
                                      tern_tensor *values, bool accumulate);
/* x with the first elements of source, in order, where mask holds. Reads from the device how many
 * that are. */
TERN_API tern_tensor *tern_masked_scatter(tern_tensor *x, tern_tensor *mask, tern_tensor *source);
/* Into x. */
TERN_API tern_tensor *tern_masked_scatter_(tern_tensor *x, tern_tensor *mask, tern_tensor *source);

/* ---- finding --------------------------------------------------------------------------------- */

/* (n, dims) int64: the coordinates of x's elements that are not 0. Waits for the device: n is read
 * from it. */
TERN_API tern_tensor *tern_nonzero(tern_tensor *x);
/* tern_nonzero. */
TERN_API tern_tensor *tern_argwhere(tern_tensor *x);
/* The first `size` of them, those that are not there as fill_value (PyTorch's is -1): (size,
 * dims). */
TERN_API tern_tensor *tern_nonzero_static(tern_tensor *x, int64_t size, int64_t fill_value);
/* Places in a tensor of that shape, integers of any shape, as coordinates: out[d] is dim d's, in
 * their dtype and shape (torch.unravel_index). */
TERN_API tern_status tern_unravel_index(tern_tensor *indices, tern_shape shape, tern_tensor **out);
/* x (*) of int64 -> (*, num_classes) int64, 1 at x, else 0. num_classes -1: the largest and one,
 * which is read from the device; less is refused. */
TERN_API tern_tensor *tern_one_hot(tern_tensor *x, int64_t num_classes);

TERN_END_DECLS
#endif
