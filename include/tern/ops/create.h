/* ops/create.h -- new tensors: of one value, of a row of values, from the host's memory.
 *
 * tern_x is torch.x. dtype TERN_DTYPE_DEFAULT and device NULL are the defaults: float32 where
 * nothing else is said, and tern_default_device(). The result belongs to the innermost open scope.
 * NULL after an error: TERN_ERR_SHAPE for a negative or too large shape, TERN_ERR_DTYPE for a type
 * the function does not make, TERN_ERR_DEVICE, TERN_ERR_MEMORY. Random ones are in ops/random.h. */
#ifndef TERN_OPS_CREATE_H
#define TERN_OPS_CREATE_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- of a shape ------------------------------------------------------------------------------ */

/* Whatever is in the memory. */
TERN_API tern_tensor *tern_empty(tern_shape shape, tern_dtype dtype, const char *device);
/* Zeros, or false. */
TERN_API tern_tensor *tern_zeros(tern_shape shape, tern_dtype dtype, const char *device);
/* Ones, or true. */
TERN_API tern_tensor *tern_ones(tern_shape shape, tern_dtype dtype, const char *device);
/* value everywhere. The default dtype follows it: real float32, integer int64, bool bool. */
TERN_API tern_tensor *tern_full(tern_shape shape, tern_scalar value, tern_dtype dtype,
                                const char *device);
/* (n, m) with ones on the diagonal. */
TERN_API tern_tensor *tern_eye(int64_t n, int64_t m, tern_dtype dtype, const char *device);

/* ---- rows of values -------------------------------------------------------------------------- */

/* start, start + step, ... below end (above, for a negative step): (ceil((end - start) / step),).
 * The default dtype goes by the types of the three, not by their values: tern_arange(0, 6, 1, 0,
 * NULL) is int64, and float32 if one of them is a real (numbers.h); float32 in a call of the
 * function, whose parameters are reals. */
TERN_API tern_tensor *tern_arange(double start, double end, double step, tern_dtype dtype,
                                  const char *device);
/* The same of numbers with a type (tern_scalar); integers are counted exactly. */
TERN_API tern_tensor *tern_arange_scalar(tern_scalar start, tern_scalar end, tern_scalar step,
                                         tern_dtype dtype, const char *device);
/* steps values from start to end, both included, evenly apart. */
TERN_API tern_tensor *tern_linspace(double start, double end, int64_t steps, tern_dtype dtype,
                                    const char *device);
/* base to the power of each of these. */
TERN_API tern_tensor *tern_logspace(double start, double end, int64_t steps, double base,
                                    tern_dtype dtype, const char *device);

/* ---- from the host --------------------------------------------------------------------------- */

/* A copy of the host's elements, densely in row-major order (torch.tensor of an array). The default
 * dtype is that of the pointer, and another one TERN_ERR_DTYPE (pointers.h); of void *, and in a
 * call of the function, it is float32, and the elements must be of type dtype. */
TERN_API tern_tensor *tern_from_data(const void *data, tern_shape shape, tern_dtype dtype,
                                     const char *device);
/* The same where data points to elements. */
TERN_API tern_tensor *tern_from_data_typed(const void *data, tern_elements elements,
                                           tern_shape shape, tern_dtype dtype, const char *device);
/* A tensor of one value, shape (); the default dtype as in tern_full (torch.tensor of a number). */
TERN_API tern_tensor *tern_tensor_scalar(tern_scalar value, tern_dtype dtype, const char *device);

/* ---- as another tensor is -------------------------------------------------------------------- */

/* With shape, dtype and device of x: whatever is in the memory. */
TERN_API tern_tensor *tern_empty_like(const tern_tensor *x);
/* Zeros as x. */
TERN_API tern_tensor *tern_zeros_like(const tern_tensor *x);
/* Ones as x. */
TERN_API tern_tensor *tern_ones_like(const tern_tensor *x);
/* value everywhere, as x. */
TERN_API tern_tensor *tern_full_like(const tern_tensor *x, tern_scalar value);
/* With dtype and device of x and a shape of its own (Tensor.new_empty). */
TERN_API tern_tensor *tern_new_empty(const tern_tensor *x, tern_shape shape);
/* Zeros of x's dtype and device. */
TERN_API tern_tensor *tern_new_zeros(const tern_tensor *x, tern_shape shape);
/* Ones of x's dtype and device. */
TERN_API tern_tensor *tern_new_ones(const tern_tensor *x, tern_shape shape);
/* value everywhere, of x's dtype and device. */
TERN_API tern_tensor *tern_new_full(const tern_tensor *x, tern_shape shape, tern_scalar value);

TERN_END_DECLS
#endif
