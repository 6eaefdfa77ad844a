/* ops/vision.h -- resampling of images (interpolate, grid_sample), and pixel shuffles.
 *
 * tern_x is torch.nn.functional.x. Floating point types. Results belong to the innermost scope;
 * NULL after an error: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT and TERN_ERR_DTYPE with PyTorch's
 * messages. */
#ifndef TERN_OPS_VISION_H
#define TERN_OPS_VISION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- resizing -------------------------------------------------------------------------------- */

typedef enum tern_interpolate_mode {
    TERN_INTERPOLATE_NEAREST = 0,
    TERN_INTERPOLATE_NEAREST_EXACT, /* relates the centres of pixels, as other libraries do */
    TERN_INTERPOLATE_LINEAR,        /* for one spatial dim */
    TERN_INTERPOLATE_BILINEAR,      /* of two */
    TERN_INTERPOLATE_BICUBIC,       /* of two */
    TERN_INTERPOLATE_TRILINEAR,     /* of three */
    TERN_INTERPOLATE_AREA,          /* the mean of the pixels that a new pixel covers */
    TERN_INTERPOLATE_LANCZOS        /* for two spatial dims, only with antialias */
} tern_interpolate_mode;
typedef struct tern_interpolate_options {
    tern_shape size; /* the new size of the spatial dims: one number for each, or one for all;
                      * or, instead, */
    double scale_factor[3]; /* the ratio of the new size to the old: one for each dim, or [0]
                             * alone for all */
    tern_interpolate_mode mode;
    bool align_corners; /* the first and last pixels keep their positions (not for nearest and
                         * area) */
    bool recompute_scale_factor; /* compute the scale from the sizes instead of using
                                  * scale_factor itself */
    bool antialias; /* for bilinear, bicubic and lanczos: when an image becomes smaller, use a
                     * filter as wide as the scale, so that all pixels count, as Pillow does */
    uint64_t reserved[4];
} tern_interpolate_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_interpolate_options tern_interpolate_defaults(void);
/* Resizes the one to three spatial dims of x (N, C, *). uint8 is supported too: nearest with any
 * number of dims, and bilinear, bicubic and lanczos in fixed point, with the same bytes as
 * PyTorch's. */
TERN_API tern_tensor *tern_interpolate(tern_tensor *x, const tern_interpolate_options *options);

/* ---- sampling at given positions ------------------------------------------------------------- */

typedef enum tern_grid_sample_mode {
    TERN_GRID_SAMPLE_BILINEAR = 0,
    TERN_GRID_SAMPLE_NEAREST,
    TERN_GRID_SAMPLE_BICUBIC
} tern_grid_sample_mode;
/* The values outside of x. */
typedef enum tern_grid_sample_padding_mode {
    TERN_GRID_SAMPLE_ZEROS = 0,
    TERN_GRID_SAMPLE_BORDER,
    TERN_GRID_SAMPLE_REFLECTION
} tern_grid_sample_padding_mode;
typedef struct tern_grid_sample_options {
    tern_grid_sample_mode mode;
    tern_grid_sample_padding_mode padding_mode;
    bool align_corners; /* -1 and 1 are the centres of the outermost pixels, not their edges */
    uint64_t reserved[4];
} tern_grid_sample_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_grid_sample_options tern_grid_sample_defaults(void);
/* Samples x (N, C, H, W) at the positions (x, y) in -1..1 of grid (N, H', W', 2) -> (N, C, H', W'),
 * or volumes (N, C, D, H, W) at the positions of grid (N, D', H', W', 3). */
TERN_API tern_tensor *tern_grid_sample(tern_tensor *x, tern_tensor *grid,
                                       const tern_grid_sample_options *options);
/* Returns the grid for tern_grid_sample that applies the affine map theta (N, 2, 3) to the
 * positions of images of size (N, C, H, W) -> (N, H, W, 2), or theta (N, 3, 4) to volumes (N, C, D,
 * H, W) -> (N, D, H, W, 3). */
TERN_API tern_tensor *tern_affine_grid(tern_tensor *theta, tern_shape size, bool align_corners);

/* ---- pixels and channels --------------------------------------------------------------------- */

/* Moves channels into pixels: (*, C r r, H, W) -> (*, C, H r, W r), where r is upscale_factor (Shi
 * et al. 2016). */
TERN_API tern_tensor *tern_pixel_shuffle(tern_tensor *x, int64_t upscale_factor);
/* Moves pixels into channels, the inverse: (*, C, H r, W r) -> (*, C r r, H, W). */
TERN_API tern_tensor *tern_pixel_unshuffle(tern_tensor *x, int64_t downscale_factor);
/* Divides the channels of x (N, C, *) into groups, and interleaves the channels of the groups. */
TERN_API tern_tensor *tern_channel_shuffle(tern_tensor *x, int64_t groups);

TERN_END_DECLS
#endif
