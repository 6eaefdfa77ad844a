/* data/images.h -- the operations of the image transforms as functions
 * (torchvision.transforms.v2.functional).
 *
 * Images are (..., C, H, W), uint8 in 0..255 or floating point in 0..1. Results are new, have the
 * dtype of x, and belong to the innermost scope. NULL after an error: TERN_ERR_SHAPE,
 * TERN_ERR_ARGUMENT or TERN_ERR_DTYPE. */
#ifndef TERN_DATA_IMAGES_H
#define TERN_DATA_IMAGES_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- colours: C is 1 or 3 -------------------------------------------------------------------- */

/* Multiplies the brightness by factor: 0 gives black, 1 gives x. */
TERN_API tern_tensor *tern_image_adjust_brightness(tern_tensor *x, double factor);
/* Blends x (factor 1) with its mean grey (factor 0); a factor above 1 raises the contrast. */
TERN_API tern_tensor *tern_image_adjust_contrast(tern_tensor *x, double factor);
/* Blends x (factor 1) with its grey image (factor 0); a factor above 1 raises the saturation. */
TERN_API tern_tensor *tern_image_adjust_saturation(tern_tensor *x, double factor);
/* Rotates the hues by that fraction of a circle, -0.5..0.5. */
TERN_API tern_tensor *tern_image_adjust_hue(tern_tensor *x, double factor);
/* Blends x (factor 1) with a blurred image (factor 0); a factor above 1 sharpens. */
TERN_API tern_tensor *tern_image_adjust_sharpness(tern_tensor *x, double factor);
/* Converts an image to grey, with 1 or 3 channels. */
TERN_API tern_tensor *tern_image_rgb_to_grayscale(tern_tensor *x, int channels);
/* Keeps the highest `bits` bits of each value. */
TERN_API tern_tensor *tern_image_posterize(tern_tensor *x, int bits);
/* Inverts all values of at least threshold. */
TERN_API tern_tensor *tern_image_solarize(tern_tensor *x, double threshold);
/* Stretches each channel to the whole range of values. */
TERN_API tern_tensor *tern_image_autocontrast(tern_tensor *x);
/* Equalizes the histogram of each channel; floating point images are quantized to 256 steps. */
TERN_API tern_tensor *tern_image_equalize(tern_tensor *x);
/* Subtracts x from the largest value. */
TERN_API tern_tensor *tern_image_invert(tern_tensor *x);
/* Blurs x with a Gaussian kernel of kernel_size pixels (odd) and standard deviation sigma; the
 * image is mirrored at its edges. */
TERN_API tern_tensor *tern_image_gaussian_blur(tern_tensor *x, int kernel_size, double sigma);

/* ---- geometry -------------------------------------------------------------------------------- */

/* Returns height rows from top on and width columns from left on; outside of x there are zeros. */
TERN_API tern_tensor *tern_image_crop(tern_tensor *x, int64_t top, int64_t left, int64_t height,
                                      int64_t width);
/* Returns the middle of x; outside of x there are zeros. */
TERN_API tern_tensor *tern_image_center_crop(tern_tensor *x, int64_t height, int64_t width);
/* Resizes an image bilinearly; when it becomes smaller all pixels count, as with PyTorch's
 * antialias. */
TERN_API tern_tensor *tern_image_resize(tern_tensor *x, int64_t height, int64_t width);
/* Rotates an image by angle degrees counterclockwise, moves it by translate[2] pixels, scales it,
 * and shears it by shear[2] degrees, around center[2] (NULL: the middle). The nearest pixel is
 * taken, and fill outside of x. */
TERN_API tern_tensor *tern_image_affine(tern_tensor *x, double angle, const double *translate,
                                        double scale, const double *shear, const double *center,
                                        double fill);

TERN_END_DECLS
#endif
