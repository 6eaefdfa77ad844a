/* shape.h -- shapes: number of elements, broadcasting, dims, texts. */
#ifndef TERN_TENSOR_SHAPE_H
#define TERN_TENSOR_SHAPE_H
#include "base/dtype.h"
#include <tern/tensor.h>

/* Returns the number of elements of a shape. If a dim is negative, there are too many dims or the
 * number overflows, returns -1 and records an error that names function. */
int64_t tern_shape_numel(const tern_shape *shape, const char *function);
/* Returns TERN_ERR_ARGUMENT ("integer out of range") if a parameter of a window (kernel_size,
 * stride, ...) does not fit in an int. So sums of products of such parameters do not overflow
 * int64. */
tern_status tern_check_window(const tern_shape *list, const char *name, const char *function);
bool tern_shape_equal(const tern_shape *a, const tern_shape *b);
/* Sets *out to the broadcast shape of a and b, or returns TERN_ERR_SHAPE with PyTorch's message. */
tern_status tern_shape_broadcast(const tern_shape *a, const tern_shape *b, tern_shape *out,
                                 const char *function);
/* Sets *wrapped to dim as a number from 0 to ndim - 1; a negative dim counts from the end, and a
 * scalar counts as one dim. */
tern_status tern_wrap_dim(int64_t dim, int ndim, int *wrapped, const char *function);
/* A shape as (outer, n, inner) around a dim; a scalar has one dim of size 1. */
typedef struct tern_sides {
    int64_t outer, n, inner;
} tern_sides;
tern_sides tern_sides_of(const tern_shape *shape, int dim);
void tern_dense_strides(const tern_shape *shape, int64_t *stride);
/* Returns a set of dims, as bits, along which all elements have different addresses: dims in
 * ascending order of stride, each of whose strides exceeds the range of the dims before it.
 * Elements along the other dims may share addresses. */
uint32_t tern_distinct_dims(const tern_shape *shape, const int64_t *stride);
/* Returns whether several elements of x may have one address, as in an expanded tensor. */
bool tern_repeats(const tern_tensor *x);
/* A shape as a text like "[2, 3]", returned by value. */
typedef struct tern_shape_text {
    char text[256];
} tern_shape_text;
tern_shape_text tern_shape_to_text(const tern_shape *shape);
#define TERN_SHAPE_TEXT(shape) (tern_shape_to_text(shape).text)
#define TERN_TENSOR_TEXT(x)    (tern_shape_to_text(&(tern_shape[1]){tern_shape_of(x)}[0]).text)
/* Returns element i of contiguous host data; an element of uint64 as the integer with the same
 * bits. */
tern_scalar tern_element(const void *data, tern_dtype dtype, int64_t i);

#endif
