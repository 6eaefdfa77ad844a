/* ops/pool.h -- the largest, the mean and the norm of windows over one, two or three spatial dims.
 *
 * tern_x is torch.nn.functional.x, tern_x_with_indices the same with return_indices=True: values,
 * and where each lies in its plane, an int64 index into the flattened spatial dims.
 *
 * Inputs are (N, C, *) or (C, *) of a floating point type; of integers, too, where windows are not
 * adaptive: means are rounded towards 0. Lists (kernel_size, stride, ...) hold
 * one number for each spatial dim, or one for all of them: TERN_DIMS(2), TERN_DIMS(2, 3). Each dim
 * of the result is (in + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or
 * with ceil_mode up, but no window begins outside of the padded input. Results belong to the
 * innermost scope. Errors: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT and TERN_ERR_DTYPE in PyTorch's
 * words. */
#ifndef TERN_OPS_POOL_H
#define TERN_OPS_POOL_H
#include <tern/ops/reduce.h>

TERN_BEGIN_DECLS

typedef struct tern_max_pool_options {
    tern_shape stride, padding, dilation; /* defaults kernel_size, 0, 1 */
    bool ceil_mode;
    uint64_t reserved[4];
} tern_max_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_max_pool_options tern_max_pool_defaults(void);

/* The largest element of each window of L, NaN being larger than all. */
TERN_API tern_tensor *tern_max_pool1d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* Of H, W. */
TERN_API tern_tensor *tern_max_pool2d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* Of D, H, W. */
TERN_API tern_tensor *tern_max_pool3d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* tern_max_pool1d, and where they lie. */
TERN_API tern_status tern_max_pool1d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);
/* tern_max_pool2d, and where they lie. */
TERN_API tern_status tern_max_pool2d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);
/* tern_max_pool3d, and where they lie. */
TERN_API tern_status tern_max_pool3d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);

typedef struct tern_max_unpool_options {
    tern_shape stride, padding; /* defaults kernel_size, 0 */
    tern_shape output_size; /* the spatial dims of the result, or its whole shape; default: (in -
                               1) stride - 2 padding + kernel_size */
    uint64_t reserved[4];
} tern_max_unpool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_max_unpool_options tern_max_unpool_defaults(void);

/* Zeros but for x at its indices, as max_pool1d_with_indices gives them. An index outside of the
 * result is an error; of several x with one index one is taken. */
TERN_API tern_tensor *tern_max_unpool1d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);
/* Of max_pool2d_with_indices. */
TERN_API tern_tensor *tern_max_unpool2d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);
/* Of max_pool3d_with_indices. */
TERN_API tern_tensor *tern_max_unpool3d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);

typedef struct tern_avg_pool_options {
    tern_shape stride, padding; /* defaults kernel_size, 0 */
    bool ceil_mode;
    bool no_count_include_pad;          /* divide by the elements inside of x only */
    tern_optional_int divisor_override; /* what to divide by; default: the size of the window */
    uint64_t reserved[4];
} tern_avg_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_avg_pool_options tern_avg_pool_defaults(void);

/* The mean of each window of L, padding counting as zeros. */
TERN_API tern_tensor *tern_avg_pool1d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);
/* Of H, W. */
TERN_API tern_tensor *tern_avg_pool2d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);
/* Of D, H, W. */
TERN_API tern_tensor *tern_avg_pool3d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);

/* The means of windows of whatever size makes output_size of x; -1 there keeps the size of x
 * (PyTorch's None). */
TERN_API tern_tensor *tern_adaptive_avg_pool1d(tern_tensor *x, tern_shape output_size);
/* Of H, W. */
TERN_API tern_tensor *tern_adaptive_avg_pool2d(tern_tensor *x, tern_shape output_size);
/* Of D, H, W. */
TERN_API tern_tensor *tern_adaptive_avg_pool3d(tern_tensor *x, tern_shape output_size);
/* The largest in such windows, of L. */
TERN_API tern_tensor *tern_adaptive_max_pool1d(tern_tensor *x, tern_shape output_size);
/* Of H, W. */
TERN_API tern_tensor *tern_adaptive_max_pool2d(tern_tensor *x, tern_shape output_size);
/* Of D, H, W. */
TERN_API tern_tensor *tern_adaptive_max_pool3d(tern_tensor *x, tern_shape output_size);
/* tern_adaptive_max_pool1d, and where they lie. */
TERN_API tern_status tern_adaptive_max_pool1d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);
/* tern_adaptive_max_pool2d, and where they lie. */
TERN_API tern_status tern_adaptive_max_pool2d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);
/* tern_adaptive_max_pool3d, and where they lie. */
TERN_API tern_status tern_adaptive_max_pool3d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);

typedef struct tern_lp_pool_options {
    tern_shape stride; /* default kernel_size */
    bool ceil_mode;
    uint64_t reserved[4];
} tern_lp_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lp_pool_options tern_lp_pool_defaults(void);

/* (sum x^norm_type)^(1 / norm_type) of each window, as PyTorch computes it. */
TERN_API tern_tensor *tern_lp_pool1d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);
/* Of H, W. */
TERN_API tern_tensor *tern_lp_pool2d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);
/* Of D, H, W. */
TERN_API tern_tensor *tern_lp_pool3d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);

typedef struct tern_fractional_max_pool_options {
    tern_shape output_size;      /* one number or one for each dim; or */
    double output_ratio[3];      /* shares of x's, in (0, 1): [0] alone is for all */
    tern_tensor *random_samples; /* (N, C, 2) or (N, C, 3) in [0, 1), x's type; N is 1 for x without
                                  * a batch. NULL: drawn */
    uint64_t reserved[4];
} tern_fractional_max_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_fractional_max_pool_options tern_fractional_max_pool_defaults(void);

/* The largest of windows of kernel_size at random distances, so many that output_size comes out: x
 * (N, C, H, W) or (C, H, W) (Graham 2014). */
TERN_API tern_tensor *tern_fractional_max_pool2d(tern_tensor *x, tern_shape kernel_size,
                                                 const tern_fractional_max_pool_options *options);
/* Of x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_fractional_max_pool3d(tern_tensor *x, tern_shape kernel_size,
                                                 const tern_fractional_max_pool_options *options);
/* tern_fractional_max_pool2d, and where they lie. */
TERN_API tern_status tern_fractional_max_pool2d_with_indices(
    tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,
    tern_values_indices *out);
/* tern_fractional_max_pool3d, and where they lie. */
TERN_API tern_status tern_fractional_max_pool3d_with_indices(
    tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,
    tern_values_indices *out);

TERN_END_DECLS
#endif
