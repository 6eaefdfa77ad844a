/* shape.h -- shapes: elements, broadcasting, dims, texts. */
#ifndef TERN_TENSOR_SHAPE_H
#define TERN_TENSOR_SHAPE_H
#include "base/dtype.h"
#include <tern/tensor.h>

/* Elements of a shape; -1 after an error that names function (negative, too
 * many dims, overflow). */
int64_t tern_shape_numel(const tern_shape *shape, const char *function);
/* What describes windows (kernel_size, stride, ...) are ints, so that sums of products of them do
 * not wrap: TERN_ERR_ARGUMENT, "integer out of range", for others. */
tern_status tern_check_window(const tern_shape *list, const char *name, const char *function);
bool tern_shape_equal(const tern_shape *a, const tern_shape *b);
/* *out = the broadcast of both, or TERN_ERR_SHAPE in PyTorch's words. */
tern_status tern_shape_broadcast(const tern_shape *a, const tern_shape *b, tern_shape *out,
                                 const char *function);
/* 0 <= *dim < ndim from a dim that may count from the end (a scalar counts as one dim). */
tern_status tern_wrap_dim(int64_t dim, int ndim, int *wrapped, const char *function);
/* A shape as (outer, n, inner) around a dim; a scalar has one dim of size 1. */
typedef struct tern_sides {
    int64_t outer, n, inner;
} tern_sides;
tern_sides tern_sides_of(const tern_shape *shape, int dim);
void tern_dense_strides(const tern_shape *shape, int64_t *stride);
/* Dims, as bits, whose elements are certain to differ: by rising stride, as long as each steps over
 * all that the ones before it reach. The others may come back to the same elements. */
uint32_t tern_distinct_dims(const tern_shape *shape, const int64_t *stride);
/* Whether several elements of x may be one in memory, as in what was expanded. */
bool tern_repeats(const tern_tensor *x);
/* "[2, 3]" in a buffer of the caller's. */
typedef struct tern_shape_text {
    char text[256];
} tern_shape_text;
tern_shape_text tern_shape_to_text(const tern_shape *shape);
#define TERN_SHAPE_TEXT(shape) (tern_shape_to_text(shape).text)
#define TERN_TENSOR_TEXT(x)    (tern_shape_to_text(&(tern_shape[1]){tern_shape_of(x)}[0]).text)
/* Element i of dense host data; of uint64 an integer with its bits. */
tern_scalar tern_element(const void *data, tern_dtype dtype, int64_t i);

#endif
