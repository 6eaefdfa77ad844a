/* nn/pool.h -- pooling and resampling as modules; ops/pool.h and ops/vision.h have the functions
 * that they call. */
#ifndef TERN_NN_POOL_H
#define TERN_NN_POOL_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* A module that takes the largest element of each window of (N, C, L). Called with two outputs,
 * tern_nn_call(m, &x, 1, out, 2), it also returns the indices (return_indices=True). */
TERN_API tern_module *tern_nn_max_pool1d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* A module that takes the largest element of each window of (N, C, H, W). */
TERN_API tern_module *tern_nn_max_pool2d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* A module that takes the largest element of each window of (N, C, D, H, W). */
TERN_API tern_module *tern_nn_max_pool3d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* A module that calls tern_max_unpool1d on two inputs, x and indices: tern_nn_call(m, in, 2, &y,
 * 1). */
TERN_API tern_module *tern_nn_max_unpool1d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* A module that calls tern_max_unpool2d on x and indices. */
TERN_API tern_module *tern_nn_max_unpool2d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* A module that calls tern_max_unpool3d on x and indices. */
TERN_API tern_module *tern_nn_max_unpool3d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* A module that averages each window of (N, C, L). */
TERN_API tern_module *tern_nn_avg_pool1d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* A module that averages each window of (N, C, H, W). */
TERN_API tern_module *tern_nn_avg_pool2d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* A module that averages each window of (N, C, D, H, W). */
TERN_API tern_module *tern_nn_avg_pool3d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* A module that averages (N, C, L) to output_size; -1 keeps a size. */
TERN_API tern_module *tern_nn_adaptive_avg_pool1d(tern_shape output_size);
/* A module that averages (N, C, H, W) to output_size; -1 keeps a size. */
TERN_API tern_module *tern_nn_adaptive_avg_pool2d(tern_shape output_size);
/* A module that averages (N, C, D, H, W) to output_size; -1 keeps a size. */
TERN_API tern_module *tern_nn_adaptive_avg_pool3d(tern_shape output_size);
/* A module that reduces (N, C, L) to output_size by maxima; with two outputs it returns the indices
 * too, as tern_nn_max_pool1d. */
TERN_API tern_module *tern_nn_adaptive_max_pool1d(tern_shape output_size);
/* A module that reduces (N, C, H, W) to output_size by maxima. */
TERN_API tern_module *tern_nn_adaptive_max_pool2d(tern_shape output_size);
/* A module that reduces (N, C, D, H, W) to output_size by maxima. */
TERN_API tern_module *tern_nn_adaptive_max_pool3d(tern_shape output_size);
/* A module that calls tern_lp_pool1d on (N, C, L). */
TERN_API tern_module *tern_nn_lp_pool1d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);
/* A module that calls tern_lp_pool2d on (N, C, H, W). */
TERN_API tern_module *tern_nn_lp_pool2d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);
/* A module that calls tern_lp_pool3d on (N, C, D, H, W). */
TERN_API tern_module *tern_nn_lp_pool3d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);

/* A module that calls tern_fractional_max_pool2d. The options must have output_size or
 * output_ratio. If they have random_samples, every forward uses them, and they are kept in state
 * dicts as the buffer "_random_samples". With two outputs it returns the indices too. */
TERN_API tern_module *tern_nn_fractional_max_pool2d(
    tern_shape kernel_size, const tern_fractional_max_pool_options *options);
/* A module that calls tern_fractional_max_pool3d. */
TERN_API tern_module *tern_nn_fractional_max_pool3d(
    tern_shape kernel_size, const tern_fractional_max_pool_options *options);

/* A module that calls tern_interpolate. */
TERN_API tern_module *tern_nn_upsample(const tern_interpolate_options *options);
/* A module that calls tern_interpolate with TERN_INTERPOLATE_NEAREST. */
TERN_API tern_module *tern_nn_upsampling_nearest2d(const tern_interpolate_options *options);
/* A module that calls tern_interpolate with TERN_INTERPOLATE_BILINEAR and align_corners. */
TERN_API tern_module *tern_nn_upsampling_bilinear2d(const tern_interpolate_options *options);
/* A module that calls tern_pixel_shuffle. */
TERN_API tern_module *tern_nn_pixel_shuffle(int64_t upscale_factor);
/* A module that calls tern_pixel_unshuffle. */
TERN_API tern_module *tern_nn_pixel_unshuffle(int64_t downscale_factor);
/* A module that calls tern_channel_shuffle. */
TERN_API tern_module *tern_nn_channel_shuffle(int64_t groups);

TERN_END_DECLS
#endif
