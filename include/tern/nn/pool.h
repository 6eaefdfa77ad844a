/* nn/pool.h -- pooling and resampling as modules; see ops/pool.h and ops/vision.h. */
#ifndef TERN_NN_POOL_H
#define TERN_NN_POOL_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* Called with two outputs, tern_nn_call(m, &x, 1, out, 2), the second one gets the indices
 * (return_indices=True). */
TERN_API tern_module *tern_nn_max_pool1d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* Of H, W. */
TERN_API tern_module *tern_nn_max_pool2d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_max_pool3d(tern_shape kernel_size,
                                         const tern_max_pool_options *options);
/* Two inputs, x and indices: tern_nn_call(m, in, 2, &y, 1). */
TERN_API tern_module *tern_nn_max_unpool1d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* Of max_pool2d's indices. */
TERN_API tern_module *tern_nn_max_unpool2d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* Of max_pool3d's indices. */
TERN_API tern_module *tern_nn_max_unpool3d(tern_shape kernel_size,
                                           const tern_max_unpool_options *options);
/* The mean of windows of L. */
TERN_API tern_module *tern_nn_avg_pool1d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* Of H, W. */
TERN_API tern_module *tern_nn_avg_pool2d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_avg_pool3d(tern_shape kernel_size,
                                         const tern_avg_pool_options *options);
/* -1 keeps a size. */
TERN_API tern_module *tern_nn_adaptive_avg_pool1d(tern_shape output_size);
/* Of H, W. */
TERN_API tern_module *tern_nn_adaptive_avg_pool2d(tern_shape output_size);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_adaptive_avg_pool3d(tern_shape output_size);
/* The largest of such windows, of L; indices as max_pool. */
TERN_API tern_module *tern_nn_adaptive_max_pool1d(tern_shape output_size);
/* Of H, W. */
TERN_API tern_module *tern_nn_adaptive_max_pool2d(tern_shape output_size);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_adaptive_max_pool3d(tern_shape output_size);
/* The norm of windows of L. */
TERN_API tern_module *tern_nn_lp_pool1d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);
/* Of H, W. */
TERN_API tern_module *tern_nn_lp_pool2d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_lp_pool3d(double norm_type, tern_shape kernel_size,
                                        const tern_lp_pool_options *options);

/* One of output_size and output_ratio must be there. random_samples stay the same in each forward
 * then, as a buffer that state dicts have ("_random_samples"). With indices as max_pool. */
TERN_API tern_module *tern_nn_fractional_max_pool2d(
    tern_shape kernel_size, const tern_fractional_max_pool_options *options);
/* Of D, H, W. */
TERN_API tern_module *tern_nn_fractional_max_pool3d(
    tern_shape kernel_size, const tern_fractional_max_pool_options *options);

/* tern_interpolate. */
TERN_API tern_module *tern_nn_upsample(const tern_interpolate_options *options);
/* The same with the mode given by the name (and align_corners for bilinear). */
TERN_API tern_module *tern_nn_upsampling_nearest2d(const tern_interpolate_options *options);
/* Bilinear, with align_corners. */
TERN_API tern_module *tern_nn_upsampling_bilinear2d(const tern_interpolate_options *options);
/* tern_pixel_shuffle. */
TERN_API tern_module *tern_nn_pixel_shuffle(int64_t upscale_factor);
/* tern_pixel_unshuffle. */
TERN_API tern_module *tern_nn_pixel_unshuffle(int64_t downscale_factor);
/* tern_channel_shuffle. */
TERN_API tern_module *tern_nn_channel_shuffle(int64_t groups);

TERN_END_DECLS
#endif
