/* ops/vision.h -- images between their pixels: interpolate, grid_sample; pixels into channels and
 * back.
 *
 * tern_x is torch.nn.functional.x. Floating point types. Results belong to the innermost scope;
 * NULL after an error: TERN_ERR_SHAPE, TERN_ERR_ARGUMENT and TERN_ERR_DTYPE in PyTorch's words. */
#ifndef TERN_OPS_VISION_H
#define TERN_OPS_VISION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- other sizes ----------------------------------------------------------------------------- */

typedef enum tern_interpolate_mode {
    TERN_INTERPOLATE_NEAREST = 0,
    TERN_INTERPOLATE_NEAREST_EXACT, /* by the centres of pixels, as other libraries do */
    TERN_INTERPOLATE_LINEAR,        /* of one spatial dim */
    TERN_INTERPOLATE_BILINEAR,      /* of two */
    TERN_INTERPOLATE_BICUBIC,       /* of two */
    TERN_INTERPOLATE_TRILINEAR,     /* of three */
    TERN_INTERPOLATE_AREA,          /* the mean of what a pixel covers */
    TERN_INTERPOLATE_LANCZOS        /* of two, with antialias alone */
} tern_interpolate_mode;
typedef struct tern_interpolate_options {
    tern_shape size;        /* of the spatial dims: one number each, or one for all; or ... */
    double scale_factor[3]; /* ... how many times as large; one number is for all dims */
    tern_interpolate_mode mode;
    bool align_corners; /* the first and last pixels stay where they are (not for nearest, area) */
    bool recompute_scale_factor; /* from the sizes, instead of taking scale_factor itself */
    bool antialias; /* bilinear, bicubic and lanczos: smaller images are means of all pixels, by a
                     * filter as wide as the scale, as Pillow's */
    uint64_t reserved[4];
} tern_interpolate_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_interpolate_options tern_interpolate_defaults(void);
/* x (N, C, *) resampled to another size of its one to three spatial dims. uint8 too: nearest
 * elements in any number of dims; bilinear, bicubic and lanczos in fixed point, with the same bytes
 * as PyTorch's. */
TERN_API tern_tensor *tern_interpolate(tern_tensor *x, const tern_interpolate_options *options);

/* ---- other places ---------------------------------------------------------------------------- */

typedef enum tern_grid_sample_mode {
    TERN_GRID_SAMPLE_BILINEAR = 0,
    TERN_GRID_SAMPLE_NEAREST,
    TERN_GRID_SAMPLE_BICUBIC
} tern_grid_sample_mode;
/* What is outside of x. */
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
/* x (N, C, H, W) at the places (x, y) in -1..1 of grid (N, H', W', 2) -> (N, C, H', W'); likewise
 * volumes (N, C, D, H, W) with grid (N, D', H', W', 3). */
TERN_API tern_tensor *tern_grid_sample(tern_tensor *x, tern_tensor *grid,
                                       const tern_grid_sample_options *options);
/* The grid that takes the places of an image of size (N, C, H, W) through theta (N, 2, 3) ->
 * (N, H, W, 2); of a volume (N, C, D, H, W) through theta (N, 3, 4) -> (N, D, H, W, 3). */
TERN_API tern_tensor *tern_affine_grid(tern_tensor *theta, tern_shape size, bool align_corners);

/* ---- pixels and channels --------------------------------------------------------------------- */

/* (*, C r r, H, W) -> (*, C, H r, W r) with r the upscale_factor (Shi et al. 2016). */
TERN_API tern_tensor *tern_pixel_shuffle(tern_tensor *x, int64_t upscale_factor);
/* And back: (*, C, H r, W r) -> (*, C r r, H, W). */
TERN_API tern_tensor *tern_pixel_unshuffle(tern_tensor *x, int64_t downscale_factor);
/* Channels of (N, C, *) in groups, taken from the groups in turn. */
TERN_API tern_tensor *tern_channel_shuffle(tern_tensor *x, int64_t groups);

TERN_END_DECLS
#endif
