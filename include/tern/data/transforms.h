/* data/transforms.h -- what is done to an item (torchvision.transforms.v2).
 *
 * Images are (..., C, H, W), bytes or floating point; several images in one tensor are all treated
 * alike. Random transforms draw the item's random numbers. A transform belongs to the transform,
 * the data set or the loader that it is given to, also when that call fails; tern_transform_free
 * frees one that belongs to none. Functions that make a transform return NULL after an error. */
#ifndef TERN_DATA_TRANSFORMS_H
#define TERN_DATA_TRANSFORMS_H
#include <tern/data/dataset.h>
#include <tern/ops/vision.h>

TERN_BEGIN_DECLS

/* Returns x transformed, which the scope owns, or x itself. Outside of a loader random numbers come
 * from the cpu's generator. NULL after an error. */
TERN_API tern_tensor *tern_transform_apply(tern_transform *transform, tern_tensor *x);
/* Frees a transform that was not given to a transform, data set or loader; NULL is fine. */
TERN_API void tern_transform_free(tern_transform *transform);

/* Makes a transform that applies n transforms, which it owns, one after the other. If one of them
 * is NULL the others are freed and the result is NULL. */
TERN_API tern_transform *tern_transforms_compose_of(tern_transform *const *transforms, int n);
/* Makes a transform of a function of the program's; a result of NULL is an error. Workers call the
 * function at the same time. */
TERN_API tern_transform *tern_transforms_lambda(tern_tensor *(*function)(tern_tensor *x,
                                                                         void *user),
                                                void *user);
/* Makes a transform that turns images left to right with probability p. */
TERN_API tern_transform *tern_transforms_random_horizontal_flip(double p);
/* Makes a transform that turns images upside down with probability p. */
TERN_API tern_transform *tern_transforms_random_vertical_flip(double p);
/* Makes a transform that converts to dtype; with scale the range of bytes, 0..255, becomes 0..1,
 * and the other way round. */
TERN_API tern_transform *tern_transforms_to_dtype(tern_dtype dtype, bool scale);
/* Makes a transform that computes (x - mean) / std of each channel, of floating point types only; n
 * is C, or 1 for all channels. */
TERN_API tern_transform *tern_transforms_normalize(const double *mean, const double *std, int n);

/* ---- sizes: a size is TERN_SHAPE(height, width), or one number ------------------------------- */

typedef struct tern_resize_options {
    int64_t max_size; /* where size is one number: the longer edge is at most this */
    tern_interpolate_mode interpolation; /* _BICUBIC or _LANCZOS instead of bilinear; uint8, too */
    uint64_t reserved[4];
} tern_resize_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_resize_options tern_resize_defaults(void);
typedef struct tern_random_crop_options {
    tern_shape padding; /* first, of zeros: one number, (left and right, top and bottom), or (left,
                         * top, right, bottom) */
    bool pad_if_needed; /* an image that is smaller than size is padded on both sides */
    uint64_t reserved[4];
} tern_random_crop_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_random_crop_options tern_random_crop_defaults(void);
typedef struct tern_random_resized_crop_options {
    double scale[2]; /* of the area; default 0.08, 1 */
    double ratio[2]; /* of width to height; default 3 / 4, 4 / 3 */
    uint64_t reserved[4];
} tern_random_resized_crop_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_random_resized_crop_options tern_random_resized_crop_defaults(void);

/* Makes a transform that resizes with antialias, bilinear unless options say otherwise. A size of
 * one number is that of the shorter edge; the ratio to the other edge stays. */
TERN_API tern_transform *tern_transforms_resize(tern_shape size,
                                                const tern_resize_options *options);
/* Makes a transform that cuts out the middle; images that are smaller get zeros around them. */
TERN_API tern_transform *tern_transforms_center_crop(tern_shape size);
/* Makes a transform that cuts out a part at a random place. */
TERN_API tern_transform *tern_transforms_random_crop(tern_shape size,
                                                     const tern_random_crop_options *options);
/* Makes a transform that cuts out a part of random size, ratio and place, and resizes the part. */
TERN_API tern_transform *tern_transforms_random_resized_crop(
    tern_shape size, const tern_random_resized_crop_options *options);
/* Makes a transform that puts fill around images; padding is like that of
 * tern_random_crop_options. */
TERN_API tern_transform *tern_transforms_pad(tern_shape padding, double fill);

/* ---- colours --------------------------------------------------------------------------------- */

typedef struct tern_color_jitter_options {
    /* Factors of [1 - x, 1 + x], not below 0; hue turned by [-x, x], x at most 0.5. Default 0. */
    double brightness, contrast, saturation, hue;
    uint64_t reserved[4];
} tern_color_jitter_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_color_jitter_options tern_color_jitter_defaults(void);
/* Makes a transform that changes brightness, contrast, saturation and hue by random factors, in a
 * random order. */
TERN_API tern_transform *tern_transforms_color_jitter(const tern_color_jitter_options *options);
/* Makes a transform that makes images grey, of 1 or 3 channels. */
TERN_API tern_transform *tern_transforms_grayscale(int channels);
/* Makes a transform that makes images grey, of as many channels, with probability p. */
TERN_API tern_transform *tern_transforms_random_grayscale(double p);
/* Makes a transform that blurs by a kernel of that odd size, with a random sigma of [low, high]. */
TERN_API tern_transform *tern_transforms_gaussian_blur(int kernel_size, double low, double high);

/* ---- mixtures -------------------------------------------------------------------------------- */

typedef struct tern_random_erasing_options {
    double p;        /* default 0.5 */
    double scale[2]; /* of the area; default 0.02, 0.33 */
    double ratio[2]; /* of height to width; default 0.3, 3.3 */
    double value;    /* the rectangle is filled with it */
    bool random;     /* the rectangle is filled with normal numbers instead */
    uint64_t reserved[4];
} tern_random_erasing_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_random_erasing_options tern_random_erasing_defaults(void);
/* Makes a transform that erases a random rectangle. */
TERN_API tern_transform *tern_transforms_random_erasing(const tern_random_erasing_options *options);

typedef struct tern_rand_augment_options {
    int num_ops;            /* default 2 */
    int magnitude;          /* default 9 */
    int num_magnitude_bins; /* default 31 */
    double fill;
    uint64_t reserved[4];
} tern_rand_augment_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rand_augment_options tern_rand_augment_defaults(void);
/* Makes a transform that applies num_ops of 14 transforms, drawn at random (Cubuk et al. 2020). */
TERN_API tern_transform *tern_transforms_rand_augment(const tern_rand_augment_options *options);
/* Makes a transform that applies transform, which it owns, with probability p. */
TERN_API tern_transform *tern_transforms_random_apply(tern_transform *transform, double p);

#ifndef __cplusplus
#define tern_transforms_compose(...)                                                               \
    tern_transforms_compose_of(                                                                    \
        (tern_transform *const[]){__VA_ARGS__},                                                    \
        (int)(sizeof((tern_transform *const[]){__VA_ARGS__}) / sizeof(tern_transform *)))
#endif

TERN_END_DECLS

#ifdef __cplusplus
template <class... T> inline tern_transform *tern_transforms_compose(T... transforms)
{
    tern_transform *const list[] = {transforms...};
    return tern_transforms_compose_of(list, static_cast<int>(sizeof...(transforms)));
}
#endif
#endif
