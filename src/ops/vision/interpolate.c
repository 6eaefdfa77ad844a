/* interpolate.c -- images resampled to another size. */
#include "ops/vision/resize.h"
#include "base/checked.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <string.h>
#include <tern/ops.h>

/* The modes of the kernels, and the number of spatial dims that each of PyTorch's modes takes. */
enum { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LANCZOS, AREA };
typedef struct mode {
    const char *name;
    int code, ndim; /* ndim 0: any */
} mode;
static const mode modes[] = {
    [TERN_INTERPOLATE_NEAREST] = {"nearest", NEAREST, 0},
    [TERN_INTERPOLATE_NEAREST_EXACT] = {"nearest-exact", NEAREST_EXACT, 0},
    [TERN_INTERPOLATE_LINEAR] = {"linear", LINEAR, 1},
    [TERN_INTERPOLATE_BILINEAR] = {"bilinear", LINEAR, 2},
    [TERN_INTERPOLATE_BICUBIC] = {"bicubic", CUBIC, 2},
    [TERN_INTERPOLATE_TRILINEAR] = {"trilinear", LINEAR, 3},
    [TERN_INTERPOLATE_AREA] = {"area", AREA, 0},
    [TERN_INTERPOLATE_LANCZOS] = {"lanczos", LANCZOS, 2},
};

typedef struct resample {
    tern_sample_shape shape;
    tern_shape x, y;
    int32_t mode, align;
    int64_t last;    /* 1 if x and y (two spatial dims) are channels_last */
    double scale[3]; /* distance between outputs, in elements of x */
} resample;

/* ---- the operation, which is linear, and its gradient -------------------------------------- */

/* Sets one result of `shape` with the dtype of the input. */
static tern_status infer_as(tern_call *call, const tern_shape *shape)
{
    const resample *at = call->attributes;
    call->n_out = 1;
    call->channels_last = at->last;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = *shape};
    return TERN_OK;
}
static tern_status infer_y(tern_call *call)
{
    return infer_as(call, &((const resample *)call->attributes)->y);
}
static tern_status infer_x(tern_call *call)
{
    return infer_as(call, &((const resample *)call->attributes)->x);
}

/* Launches one thread for each element of the result. Scales are passed in the type in which the
 * kernel computes positions. */
static tern_status launch(tern_call *call, const tern_kernel_ref *kernel)
{
    const resample *at = call->attributes;
    tern_tensor *out = call->out[0];
    tern_sample_shape s = at->shape;
    const double *scale = at->scale;
    const double by_channel[3] = {scale[1], scale[2], 1};
    if (out->numel == 0)
        return TERN_OK;
    if (at->last) { /* channels are a dim that keeps its size */
        s = (tern_sample_shape){.n = s.n,
                                .c = s.c,
                                .planes = s.n,
                                .in = {s.in[1], s.in[2], s.c},
                                .out = {s.out[1], s.out[2], s.c},
                                .ndim = s.ndim,
                                .last = 1};
        scale = by_channel;
    }
    return TERN_LAUNCH(call->place, kernel, out->dtype, tern_items_of(out->numel, 32),
                       tern_arg_out(out), tern_arg_in(call->in[0]),
                       TERN_ARG_STRUCT(tern_sample_shape, &s), tern_arg_i32(at->mode),
                       tern_arg_i32(at->align), tern_arg_real(out->dtype, scale[0]),
                       tern_arg_real(out->dtype, scale[1]), tern_arg_real(out->dtype, scale[2]));
}

/* y[q] = the sum over taps t of w_t(q) x[t], where w_t(q) is the product of the weights of the
 * dims. Along a dim, the position of output q in x is
 *   (q + 1/2) scale - 1/2,   or q scale with align_corners
 * Linear weights the 2 nearest elements by distance, cubic 4 elements with Keys' a = -0.75. Nearest
 * reads element floor(q scale), nearest-exact floor((q + 1/2) scale). */
static tern_status forward_y(tern_call *call)
{
    static const tern_kernel_ref kernel = {"vision", "interpolate"};
    return launch(call, &kernel);
}

/* dx[t] = the sum of w_t(q) dy[q] over the outputs q that read element t. These q are a range, so a
 * thread sums over them for its element without atomic additions. */
static tern_status forward_x(tern_call *call)
{
    static const tern_kernel_ref kernel = {"vision", "interpolate_dx"};
    return launch(call, &kernel);
}

static tern_status backward_y(tern_gradient *g);
static tern_status backward_x(tern_gradient *g);
static const tern_op y_op = {.name = "interpolate",
                             .names = TERN_NAMES(TERN_FIELD(resample, "mode", mode),
                                                 TERN_FIELD(resample, "align_corners", align),
                                                 TERN_FIELD(resample, "scale0", scale[0]),
                                                 TERN_FIELD(resample, "scale1", scale[1]),
                                                 TERN_FIELD(resample, "scale2", scale[2])),
                             .cast = TERN_CAST_FLOAT32,
                             .infer = infer_y,
                             .forward = forward_y,
                             .backward = backward_y};
static const tern_op x_op = {
    .name = "interpolate_dx", .infer = infer_x, .forward = forward_x, .backward = backward_x};

/* Resampling is linear in x, and `other` is its transpose: each is the gradient of the other, to
 * any order. */
static tern_status backward(tern_gradient *g, const tern_op *other)
{
    const resample *at = g->attributes;
    tern_tensor *d = tern_in_format(g->dout[0], at->last);
    g->din[0] = tern_apply(other, &d, 1, g->attributes, sizeof(resample));
    return TERN_OK;
}
static tern_status backward_y(tern_gradient *g)
{
    return backward(g, &x_op);
}
static tern_status backward_x(tern_gradient *g)
{
    return backward(g, &y_op);
}

/* ---- options ----------------------------------------------------------------------------- */

/* Returns the row of `modes` for this mode, or NULL if the mode does not take ndim spatial dims. */
static const mode *mode_of(tern_interpolate_mode which, int ndim)
{
    static const char *const wanted[] = {"3D", "4D", "5D"};
    if (ndim < 1 || ndim > 3 || (unsigned)which > TERN_INTERPOLATE_LANCZOS) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got "
                  "%dD) for the modes: nearest | linear | bilinear | bicubic | trilinear | "
                  "lanczos | area | nearest-exact (got %d)",
                  ndim + 2, (int)which);
        return NULL;
    }
    const mode *m = &modes[which];
    if (m->ndim && m->ndim != ndim) {
        tern_fail(TERN_ERR_SHAPE, "tern_interpolate: Got %s input, but %s mode needs %s input",
                  wanted[ndim - 1], m->name, wanted[m->ndim - 1]);
        return NULL;
    }
    return m;
}

/* Computes the spatial sizes of the result, floor(in * factor) for a scale factor, and the factors
 * for the positions: the given ones, as in PyTorch, or 0, which stands for out / in. The pool
 * checks the sizes of area interpolation. */
static tern_status output_sizes(const tern_tensor *x, const tern_interpolate_options *o, int ndim,
                                int64_t size[3], double factor[3])
{
    bool scaled = o->scale_factor[0] != 0;
    if (scaled && o->size.ndim)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_interpolate: only one of size or scale_factor should be defined");
    if (!scaled && !o->size.ndim)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_interpolate: either size or scale_factor should be defined");
    if (o->size.ndim > 1 && o->size.ndim != ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_interpolate: Input and output must have the same number of spatial "
                         "dimensions, but got input with spatial dimensions of %s and output size "
                         "of %s",
                         TERN_TENSOR_TEXT(x), TERN_SHAPE_TEXT(&o->size));
    for (int d = 0; d < ndim; d++) {
        int64_t in = x->shape[2 + d];
        double f = o->scale_factor[o->scale_factor[1] != 0 ? d : 0];
        factor[d] = scaled && !o->recompute_scale_factor ? f : 0;
        size[d] =
            scaled ? tern_size_of_real((double)in * f) : o->size.dims[o->size.ndim == 1 ? 0 : d];
        if ((in < 1 || size[d] < 1) && o->mode != TERN_INTERPOLATE_AREA)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_interpolate: Input and output sizes should be greater than 0, "
                             "but got input (%lld) output (%lld)",
                             (long long)in, (long long)size[d]);
    }
    return TERN_OK;
}

/* Returns the distance in x between neighbouring outputs: (in - 1) / (out - 1) with align_corners,
 * otherwise 1 / factor or in / out. */
static double scale_of(const resample *at, double factor, int64_t in, int64_t out)
{
    if (at->align)
        return out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    return factor > 0 ? 1 / factor : (double)in / (double)out;
}

/* Area interpolation is adaptive average pooling. */
static tern_tensor *resize_area(tern_tensor *x, const int64_t *size, int ndim)
{
    tern_shape shape = tern_shape_from(ndim, size);
    return ndim == 1   ? tern_adaptive_avg_pool1d(x, shape)
           : ndim == 2 ? tern_adaptive_avg_pool2d(x, shape)
                       : tern_adaptive_avg_pool3d(x, shape);
}

/* Checks the options of a mode as PyTorch does. */
static tern_status check_options(const mode *m, const tern_interpolate_options *o, int ndim)
{
    bool smooth = ndim == 2 && (m->code == LINEAR || m->code == CUBIC || m->code == LANCZOS);
    if (o->align_corners && m->ndim == 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_interpolate: align_corners option can only be set with the "
                         "interpolating modes: linear | bilinear | bicubic | trilinear");
    if (o->antialias && !smooth)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_interpolate: Anti-alias option is restricted to bilinear, bicubic, "
                         "and lanczos modes and requires a 4-D tensor as input");
    if (m->code == LANCZOS && o->align_corners)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_interpolate: Lanczos mode does not support "
                                            "align_corners=True");
    if (m->code == LANCZOS && !o->antialias)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_interpolate: Lanczos mode requires antialias=True");
    return TERN_OK;
}

/* Returns whether the mode takes uint8: nearest modes, and linear and cubic modes of images. */
static bool takes_bytes(const mode *m)
{
    return m->code != AREA && (m->ndim == 0 || m->ndim == 2);
}

/* Resamples by tables of weights, along one dim after the other. */
static tern_tensor *resize(tern_tensor *x, const mode *m, const resample *at, bool antialias)
{
    static const int32_t filters[] = {TERN_RESIZE_NEAREST, TERN_RESIZE_NEAREST_EXACT,
                                      TERN_RESIZE_LINEAR, TERN_RESIZE_CUBIC, TERN_RESIZE_LANCZOS};
    tern_resize steps[3];
    memset(steps, 0, sizeof steps); /* zeroes struct padding, which the graph stores */
    int ndim = x->ndim - 2;
    for (int d = 0; d < ndim; d++)
        steps[d] = (tern_resize){.in = at->x.dims[2 + d],
                                 .out = at->y.dims[2 + d],
                                 .scale = at->scale[3 - ndim + d],
                                 .filter = filters[m->code],
                                 .dim = 2 + d,
                                 .align = at->align,
                                 .antialias = antialias};
    return tern_resize_dims(x, steps, ndim);
}

tern_tensor *tern_interpolate(tern_tensor *x, const tern_interpolate_options *options)
{
    static const tern_interpolate_options none;
    const tern_interpolate_options *o = options ? options : &none;
    int64_t size[3];
    double factor[3];
    if (!x) {
        tern_fail_argument_null("tern_interpolate", "input");
        return NULL;
    }
    int ndim = x->ndim - 2;
    const mode *m = mode_of(o->mode, ndim);
    if (!m || output_sizes(x, o, ndim, size, factor) != TERN_OK ||
        check_options(m, o, ndim) != TERN_OK)
        return NULL;
    bool bytes = x->dtype == TERN_U8 && takes_bytes(m);
    if (!bytes && tern_check_floating("tern_interpolate", x->dtype) != TERN_OK)
        return NULL;
    if (m->code == AREA)
        return resize_area(x, size, ndim);
    resample at = {.mode = m->code, .align = o->align_corners, .x = tern_shape_of(x)};
    at.y = at.x;
    at.shape = (tern_sample_shape){.n = x->shape[0],
                                   .c = x->shape[1],
                                   .planes = x->shape[0] * x->shape[1],
                                   .in = {1, 1, 1},
                                   .out = {1, 1, 1},
                                   .ndim = ndim};
    for (int d = 0; d < 3; d++)
        at.scale[d] = 1;
    for (int d = 0; d < ndim; d++) {
        at.y.dims[2 + d] = at.shape.out[3 - ndim + d] = size[d];
        at.shape.in[3 - ndim + d] = x->shape[2 + d];
        at.scale[3 - ndim + d] = scale_of(&at, factor[d], x->shape[2 + d], size[d]);
    }
    if (bytes || o->antialias)
        return resize(x, m, &at, o->antialias);
    at.last = ndim == 2 && tern_is_channels_last(x);
    tern_tensor *in = at.last ? x : tern_rows_of(x);
    return tern_lie_as(tern_apply(&y_op, &in, 1, &at, sizeof at), x);
}
