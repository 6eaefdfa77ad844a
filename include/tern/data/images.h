/* data/images.h -- what transforms do to images, as functions
 * (torchvision.transforms.v2.functional), and images in files (torchvision.io).
 *
 * Images are (..., C, H, W), uint8 of 0..255 or floating point of 0..1; results are of their type,
 * new, and belong to the innermost scope. NULL after an error: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT or
 * TERN_ERR_DTYPE. */
#ifndef TERN_DATA_IMAGES_H
#define TERN_DATA_IMAGES_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- colours: C is 1 or 3 -------------------------------------------------------------------- */

/* factor times as bright: 0 is black, 1 is x. */
TERN_API tern_tensor *tern_image_adjust_brightness(tern_tensor *x, double factor);
/* Between its mean grey (0) and x (1), or beyond. */
TERN_API tern_tensor *tern_image_adjust_contrast(tern_tensor *x, double factor);
/* Between grey (0) and x (1), or beyond. */
TERN_API tern_tensor *tern_image_adjust_saturation(tern_tensor *x, double factor);
/* Hues turned by that part of a circle, -0.5..0.5. */
TERN_API tern_tensor *tern_image_adjust_hue(tern_tensor *x, double factor);
/* Between a blurred image (0) and x (1), or beyond. */
TERN_API tern_tensor *tern_image_adjust_sharpness(tern_tensor *x, double factor);
/* Grey, of 1 or 3 channels. */
TERN_API tern_tensor *tern_image_rgb_to_grayscale(tern_tensor *x, int channels);
/* The highest bits alone. */
TERN_API tern_tensor *tern_image_posterize(tern_tensor *x, int bits);
/* What is threshold or above, inverted. */
TERN_API tern_tensor *tern_image_solarize(tern_tensor *x, double threshold);
/* Each channel stretched to all of the range. */
TERN_API tern_tensor *tern_image_autocontrast(tern_tensor *x);
/* Each channel with a flat histogram; uint8, and floating point in 256 steps. */
TERN_API tern_tensor *tern_image_equalize(tern_tensor *x);
/* The largest value minus x. */
TERN_API tern_tensor *tern_image_invert(tern_tensor *x);
/* Blurred by a Gaussian kernel of kernel_size (odd) and sigma pixels, mirrored at the edges. */
TERN_API tern_tensor *tern_image_gaussian_blur(tern_tensor *x, int kernel_size, double sigma);

/* ---- places ---------------------------------------------------------------------------------- */

/* The rows from top on, the columns from left on; zeros outside of x. */
TERN_API tern_tensor *tern_image_crop(tern_tensor *x, int64_t top, int64_t left, int64_t height,
                                      int64_t width);
/* The middle. */
TERN_API tern_tensor *tern_image_center_crop(tern_tensor *x, int64_t height, int64_t width);
/* Another size, bilinear; smaller images are means of all pixels, as PyTorch's antialias. */
TERN_API tern_tensor *tern_image_resize(tern_tensor *x, int64_t height, int64_t width);
/* Turned by angle degrees against the clock, moved by translate[2] pixels, scaled and sheared by
 * shear[2] degrees around center[2] (NULL: the middle); the nearest pixel, fill outside. */
TERN_API tern_tensor *tern_image_affine(tern_tensor *x, double angle, const double *translate,
                                        double scale, const double *shear, const double *center,
                                        double fill);

TERN_END_DECLS
#endif
