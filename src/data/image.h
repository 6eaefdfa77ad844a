/* image.h -- what the functions of images share. */
#ifndef TERN_SRC_DATA_IMAGE_H
#define TERN_SRC_DATA_IMAGE_H
#include "data/data.h"
#include <math.h>

/* Whether x is an image of 1 or 3 channels (any number where `any`); an error that names
 * function. */
bool tern_image_given(const tern_tensor *x, bool any, const char *function);
static inline bool tern_image_is_real(const tern_tensor *x)
{
    return tern_dtype_is_floating_point(tern_dtype_of(x));
}
/* The largest value: 255, or 1. */
static inline double tern_image_bound(const tern_tensor *x)
{
    return tern_image_is_real(x) ? 1 : 255;
}
/* x as floating point, of the same numbers. */
tern_tensor *tern_image_real(tern_tensor *x);
/* y cut to 0..bound, in x's type. */
tern_tensor *tern_image_like(tern_tensor *y, const tern_tensor *x);

/* A uniform number of [low, high), and a whole one of 0..n - 1; false after an error. */
bool tern_image_uniform(double low, double high, double *drawn);
bool tern_image_below(int64_t n, int64_t *drawn);
#endif
