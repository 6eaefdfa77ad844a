/* ops/pool.h -- max, average and power-average pooling over one, two or three spatial dims.
 *
 * tern_x is torch.nn.functional.x. tern_x_with_indices is the same with return_indices=True: it
 * also returns the position of each value, an int64 index into the flattened spatial dims.
 *
 * Inputs are (N, C, *) or (C, *) of a floating point type; max_pool, avg_pool and lp_pool take
 * integers too, whose means are rounded towards 0. Lists (kernel_size, stride, ...) hold one number
 * for each spatial dim, or one for all of them: TERN_DIMS(2), TERN_DIMS(2, 3). The size of each dim
 * of the result is (in + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1, rounded down, or
 * up with ceil_mode, except that no window begins outside of the padded input. Results belong to
 * the innermost scope. Errors: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT and TERN_ERR_DTYPE with PyTorch's
 * messages. */
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

/* Returns the largest element of each window of x (N, C, L) or (C, L); NaN counts as the
 * largest. */
TERN_API tern_tensor *tern_max_pool1d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* Returns the largest element of each window of x (N, C, H, W) or (C, H, W); NaN counts as the
 * largest. */
TERN_API tern_tensor *tern_max_pool2d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* Returns the largest element of each window of x (N, C, D, H, W) or (C, D, H, W); NaN counts as
 * the largest. */
TERN_API tern_tensor *tern_max_pool3d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_max_pool_options *options);
/* Does what tern_max_pool1d does, and returns the positions too. */
TERN_API tern_status tern_max_pool1d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);
/* Does what tern_max_pool2d does, and returns the positions too. */
TERN_API tern_status tern_max_pool2d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);
/* Does what tern_max_pool3d does, and returns the positions too. */
TERN_API tern_status tern_max_pool3d_with_indices(tern_tensor *x, tern_shape kernel_size,
                                                  const tern_max_pool_options *options,
                                                  tern_values_indices *out);

typedef struct tern_max_unpool_options {
    tern_shape stride, padding; /* defaults kernel_size, 0 */
    tern_shape output_size; /* the spatial dims of the result, or its whole shape; default: (in -
                             * 1) stride - 2 padding + kernel_size */
    uint64_t reserved[4];
} tern_max_unpool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_max_unpool_options tern_max_unpool_defaults(void);

/* Returns zeros with the elements of x at the positions that tern_max_pool1d_with_indices returned.
 * An index outside of the result is an error. Where several elements of x have one position, one of
 * them is taken. */
TERN_API tern_tensor *tern_max_unpool1d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);
/* Does the same for tern_max_pool2d_with_indices. */
TERN_API tern_tensor *tern_max_unpool2d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);
/* Does the same for tern_max_pool3d_with_indices. */
TERN_API tern_tensor *tern_max_unpool3d(tern_tensor *x, tern_tensor *indices,
                                        tern_shape kernel_size,
                                        const tern_max_unpool_options *options);

typedef struct tern_avg_pool_options {
    tern_shape stride, padding; /* defaults kernel_size, 0 */
    bool ceil_mode;
    bool no_count_include_pad; /* divide by the number of elements inside of x, without those of
                                * the padding */
    tern_optional_int divisor_override; /* the divisor of all windows; default: the size of the
                                         * window */
    uint64_t reserved[4];
} tern_avg_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_avg_pool_options tern_avg_pool_defaults(void);

/* Returns the mean of each window of x (N, C, L) or (C, L), where padding counts as zeros. */
TERN_API tern_tensor *tern_avg_pool1d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);
/* Returns the mean of each window of x (N, C, H, W) or (C, H, W), where padding counts as zeros. */
TERN_API tern_tensor *tern_avg_pool2d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);
/* Returns the mean of each window of x (N, C, D, H, W) or (C, D, H, W), where padding counts as
 * zeros. */
TERN_API tern_tensor *tern_avg_pool3d(tern_tensor *x, tern_shape kernel_size,
                                      const tern_avg_pool_options *options);

/* Returns the means of windows of x (N, C, L) or (C, L), whose sizes are chosen such that the
 * result has output_size; -1 keeps the size of x (PyTorch's None). */
TERN_API tern_tensor *tern_adaptive_avg_pool1d(tern_tensor *x, tern_shape output_size);
/* Does the same for x (N, C, H, W) or (C, H, W). */
TERN_API tern_tensor *tern_adaptive_avg_pool2d(tern_tensor *x, tern_shape output_size);
/* Does the same for x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_adaptive_avg_pool3d(tern_tensor *x, tern_shape output_size);
/* Returns the largest elements of such windows of x (N, C, L) or (C, L). */
TERN_API tern_tensor *tern_adaptive_max_pool1d(tern_tensor *x, tern_shape output_size);
/* Does the same for x (N, C, H, W) or (C, H, W). */
TERN_API tern_tensor *tern_adaptive_max_pool2d(tern_tensor *x, tern_shape output_size);
/* Does the same for x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_adaptive_max_pool3d(tern_tensor *x, tern_shape output_size);
/* Does what tern_adaptive_max_pool1d does, and returns the positions too. */
TERN_API tern_status tern_adaptive_max_pool1d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);
/* Does what tern_adaptive_max_pool2d does, and returns the positions too. */
TERN_API tern_status tern_adaptive_max_pool2d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);
/* Does what tern_adaptive_max_pool3d does, and returns the positions too. */
TERN_API tern_status tern_adaptive_max_pool3d_with_indices(tern_tensor *x, tern_shape output_size,
                                                           tern_values_indices *out);

typedef struct tern_lp_pool_options {
    tern_shape stride; /* default kernel_size */
    bool ceil_mode;
    uint64_t reserved[4];
} tern_lp_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_lp_pool_options tern_lp_pool_defaults(void);

/* Returns (sum x^norm_type)^(1 / norm_type) of each window of x (N, C, L) or (C, L), computed as
 * PyTorch does. */
TERN_API tern_tensor *tern_lp_pool1d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);
/* Does the same for x (N, C, H, W) or (C, H, W). */
TERN_API tern_tensor *tern_lp_pool2d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);
/* Does the same for x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_lp_pool3d(tern_tensor *x, double norm_type, tern_shape kernel_size,
                                     const tern_lp_pool_options *options);

typedef struct tern_fractional_max_pool_options {
    tern_shape output_size; /* one number, or one for each dim; or, instead, */
    double output_ratio[3]; /* the ratio of the result's sizes to x's, in (0, 1); if only [0] is
                             * set, it is for all dims */
    tern_tensor *random_samples; /* (N, C, 2) or (N, C, 3) in [0, 1), of x's dtype; N is at least
                                  * x's batch, 1 without a batch dim. NULL: random */
    uint64_t reserved[4];
} tern_fractional_max_pool_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_fractional_max_pool_options tern_fractional_max_pool_defaults(void);

/* Returns the largest element of windows of kernel_size at random distances, as many as output_size
 * has (Graham 2014): x (N, C, H, W) or (C, H, W). */
TERN_API tern_tensor *tern_fractional_max_pool2d(tern_tensor *x, tern_shape kernel_size,
                                                 const tern_fractional_max_pool_options *options);
/* Does the same for x (N, C, D, H, W) or (C, D, H, W). */
TERN_API tern_tensor *tern_fractional_max_pool3d(tern_tensor *x, tern_shape kernel_size,
                                                 const tern_fractional_max_pool_options *options);
/* Does what tern_fractional_max_pool2d does, and returns the positions too. */
TERN_API tern_status tern_fractional_max_pool2d_with_indices(
    tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,
    tern_values_indices *out);
/* Does what tern_fractional_max_pool3d does, and returns the positions too. */
TERN_API tern_status tern_fractional_max_pool3d_with_indices(
    tern_tensor *x, tern_shape kernel_size, const tern_fractional_max_pool_options *options,
    tern_values_indices *out);

TERN_END_DECLS
#endif
