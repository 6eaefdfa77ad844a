/* from_ops.h -- the functions of ops/, a layer above, that tensors and autograd call.
 *
 * Autograd adds gradients, the dispatcher casts inputs, printing copies a view: each of these is an
 * operation or a launch of ops/. One struct has these functions; ops/ registers it when the library
 * is loaded (ops/from_ops.c). */
#ifndef TERN_TENSOR_FROM_OPS_H
#define TERN_TENSOR_FROM_OPS_H
#include <tern/ops/copy.h>

typedef struct tern_ops_functions {
    /* y = x, elementwise, for any strides and dtypes on one device. */
    tern_status (*copy)(tern_tensor *y, const tern_tensor *x);
    /* For gradients: a + b, a += b, and x summed to a shape that was broadcast to x's shape. */
    tern_tensor *(*add)(tern_tensor *a, tern_tensor *b);
    tern_tensor *(*add_)(tern_tensor *a, tern_tensor *b);
    tern_tensor *(*sum_to)(tern_tensor *x, const tern_shape *shape);
    /* Returns the gradient of relu's input; y is relu's result. */
    tern_tensor *(*relu_dx)(tern_tensor *dy, tern_tensor *y);
    /* Returns an int64 tensor whose order is that of the uint64 tensor x, for comparisons. */
    tern_tensor *(*ordered)(tern_tensor *x);
    /* Sets *has_nan to whether an element of x is NaN; waits for the device. */
    tern_status (*has_nan)(tern_tensor *x, bool *has_nan);
    /* The operation of tern_as_strided, for writes through views. */
    const struct tern_op *as_strided;
    /* Public functions. */
    tern_tensor *(*to)(tern_tensor *x, const char *device);
    tern_tensor *(*to_dtype)(tern_tensor *x, tern_dtype dtype);
    tern_tensor *(*to_memory_format)(tern_tensor *x, tern_memory_format format);
    tern_tensor *(*contiguous)(tern_tensor *x);
    tern_tensor *(*clone)(tern_tensor *x);
    tern_tensor *(*fill_)(tern_tensor *x, tern_scalar value);
    tern_tensor *(*new_empty)(const tern_tensor *x, tern_shape shape);
    tern_tensor *(*ones_like)(const tern_tensor *x);
} tern_ops_functions;

extern const tern_ops_functions *tern_from_ops;

#endif
