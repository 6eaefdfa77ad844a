/* ops/create.h -- new tensors: filled with a value, with a range of numbers, or with elements from
 * the host.
 *
 * tern_x is torch.x. dtype TERN_DTYPE_DEFAULT is tern_get_default_dtype() (float32 unless the
 * program has changed it) where nothing else is stated, and device NULL is tern_default_device().
 * The result belongs to the innermost open scope. NULL after an error: TERN_ERR_SHAPE for a shape
 * that is negative or too large, TERN_ERR_DTYPE for a dtype that the function does not create,
 * TERN_ERR_DEVICE, TERN_ERR_MEMORY. ops/random.h has random tensors. */
#ifndef TERN_OPS_CREATE_H
#define TERN_OPS_CREATE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- of a shape ------------------------------------------------------------------------------ */

/* Returns a tensor whose elements are not initialised. */
TERN_API tern_tensor *tern_empty(tern_shape shape, tern_dtype dtype, const char *device);
/* Returns a tensor of zeros (of false for bool). */
TERN_API tern_tensor *tern_zeros(tern_shape shape, tern_dtype dtype, const char *device);
/* Returns a tensor of ones (of true for bool). */
TERN_API tern_tensor *tern_ones(tern_shape shape, tern_dtype dtype, const char *device);
/* Returns a tensor in which every element is value. The default dtype depends on value:
 * tern_get_default_dtype() for a real, int64 for an integer, bool for a bool. */
TERN_API tern_tensor *tern_full(tern_shape shape, tern_scalar value, tern_dtype dtype,
                                const char *device);
/* Returns a matrix (n, m) with ones on the diagonal and zeros elsewhere. */
TERN_API tern_tensor *tern_eye(int64_t n, int64_t m, tern_dtype dtype, const char *device);

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Returns start, start + step, ... up to but not including end: (ceil((end - start) / step),). For
 * a negative step the numbers descend. The default dtype depends on the types of the three
 * arguments and not on their values: tern_arange(0, 6, 1, 0, NULL) is int64, and float32 if one of
 * them is a real (the macros of numbers.h see the types; a call of the function itself, whose
 * parameters are doubles, gives float32). */
TERN_API tern_tensor *tern_arange(double start, double end, double step, tern_dtype dtype,
                                  const char *device);
/* Does the same for numbers that carry their type (tern_scalar); integers are counted exactly. */
TERN_API tern_tensor *tern_arange_scalar(tern_scalar start, tern_scalar end, tern_scalar step,
                                         tern_dtype dtype, const char *device);
/* Returns `steps` evenly spaced numbers from start to end, both included. */
TERN_API tern_tensor *tern_linspace(double start, double end, int64_t steps, tern_dtype dtype,
                                    const char *device);
/* Returns base to the power of each number of tern_linspace(start, end, steps). */
TERN_API tern_tensor *tern_logspace(double start, double end, int64_t steps, double base,
                                    tern_dtype dtype, const char *device);

/* ---- from the host --------------------------------------------------------------------------- */

/* Returns a tensor with a copy of the host's elements, which are dense in row-major order
 * (torch.tensor of an array). The default dtype is that of the pointer, and any other dtype is
 * TERN_ERR_DTYPE (pointers.h). For a void * and in a call of the function itself the default is
 * float32, and the elements must be of type dtype. */
TERN_API tern_tensor *tern_from_data(const void *data, tern_shape shape, tern_dtype dtype,
                                     const char *device);
/* Does the same for data whose elements have the type that `elements` names. */
TERN_API tern_tensor *tern_from_data_typed(const void *data, tern_elements elements,
                                           tern_shape shape, tern_dtype dtype, const char *device);
/* Returns a tensor of shape () that holds value; the default dtype is that of tern_full
 * (torch.tensor of a number). */
TERN_API tern_tensor *tern_tensor_scalar(tern_scalar value, tern_dtype dtype, const char *device);

/* ---- like another tensor --------------------------------------------------------------------- */

/* Returns a tensor with the shape, dtype and device of x whose elements are not initialised. */
TERN_API tern_tensor *tern_empty_like(const tern_tensor *x);
/* Returns zeros with the shape, dtype and device of x. */
TERN_API tern_tensor *tern_zeros_like(const tern_tensor *x);
/* Returns ones with the shape, dtype and device of x. */
TERN_API tern_tensor *tern_ones_like(const tern_tensor *x);
/* Returns a tensor with the shape, dtype and device of x in which every element is value. */
TERN_API tern_tensor *tern_full_like(const tern_tensor *x, tern_scalar value);
/* Returns a tensor of another shape with the dtype and device of x (Tensor.new_empty). Its elements
 * are not initialised. */
TERN_API tern_tensor *tern_new_empty(const tern_tensor *x, tern_shape shape);
/* Returns zeros of another shape with the dtype and device of x. */
TERN_API tern_tensor *tern_new_zeros(const tern_tensor *x, tern_shape shape);
/* Returns ones of another shape with the dtype and device of x. */
TERN_API tern_tensor *tern_new_ones(const tern_tensor *x, tern_shape shape);
/* Returns a tensor of another shape with the dtype and device of x in which every element is
 * value. */
TERN_API tern_tensor *tern_new_full(const tern_tensor *x, tern_shape shape, tern_scalar value);

TERN_END_DECLS
#endif
