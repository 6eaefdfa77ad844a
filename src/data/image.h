/* image.h -- shared by the functions of images. */
#ifndef TERN_SRC_DATA_IMAGE_H
#define TERN_SRC_DATA_IMAGE_H
#include "data/data.h"
#include <math.h>

/* Returns whether x is an image of 1 or 3 channels (`any`: of any number); if not, records an error
 * that names the function. */
bool tern_image_given(const tern_tensor *x, bool any, const char *function);
static inline bool tern_image_is_real(const tern_tensor *x)
{
    return tern_dtype_is_floating_point(tern_dtype_of(x));
}
/* Returns the largest pixel value: 255, or 1 for floating point. */
static inline double tern_image_bound(const tern_tensor *x)
{
    return tern_image_is_real(x) ? 1 : 255;
}
/* Returns x converted to floating point without scaling. */
tern_tensor *tern_image_real(tern_tensor *x);
/* Returns y clamped to 0..bound, in x's dtype. */
tern_tensor *tern_image_like(tern_tensor *y, const tern_tensor *x);

/* tern_image_uniform draws a real number of [low, high), tern_image_below an integer of 0..n - 1.
 * Both return false after an error. */
bool tern_image_uniform(double low, double high, double *drawn);
bool tern_image_below(int64_t n, int64_t *drawn);
#endif
