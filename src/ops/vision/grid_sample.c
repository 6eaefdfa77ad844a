/* grid_sample.c -- images sampled at the coordinates of a grid, and affine grids. */
#include "ops/vision/grid_sample.h"
#include "tensor/recompute.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

typedef tern_grid_attributes sample;

/* ---- shapes ------------------------------------------------------------------------------ */

/* Returns the shape (a, b, *) with the last ndim of three spatial dims. */
static tern_shape spatial(const sample *at, int64_t a, int64_t b, const int64_t *dims)
{
    int ndim = (int)at->shape.ndim;
    tern_shape shape = {2 + ndim, {a, b}};
    for (int d = 0; d < ndim; d++)
        shape.dims[2 + d] = dims[3 - ndim + d];
    return shape;
}

static tern_status infer_as(tern_call *call, tern_shape shape)
{
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = shape};
    return TERN_OK;
}

/* Sets the shape of y, (N, C, out...), and checks that input and grid have one dtype. */
static tern_status infer_y(tern_call *call)
{
    const sample *at = call->attributes;
    if (call->in[0]->dtype != call->in[1]->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_grid_sample: expected input and grid to have same dtype, but input "
                         "has %s and grid has %s",
                         tern_dtype_name(call->in[0]->dtype), tern_dtype_name(call->in[1]->dtype));
    return infer_as(call, spatial(at, at->shape.n, at->shape.c, at->shape.out));
}
static tern_status infer_dx(tern_call *call)
{
    const sample *at = call->attributes;
    return infer_as(call, spatial(at, at->shape.n, at->shape.c, at->shape.in));
}
static tern_status infer_dgrid(tern_call *call)
{
    return infer_as(call, tern_shape_of(call->in[2]));
}

/* ---- launches ---------------------------------------------------------------------------- */

/* Launches a kernel with the result, then the inputs as arguments. Without channels or images the
 * result is 0. */
static tern_status launch(tern_call *call, const tern_kernel_ref *kernel, tern_grid grid)
{
    const sample *at = call->attributes;
    tern_dtype dtype = call->out[0]->dtype;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    if (call->in[0]->numel == 0)
        return tern_zero_elements(call->out[0]);
    if (call->n_in == 2)
        return TERN_LAUNCH(call->place, kernel, dtype, grid, tern_arg_out(call->out[0]),
                           tern_arg_in(call->in[0]), tern_arg_in(call->in[1]),
                           TERN_ARG_STRUCT(tern_sample_shape, &at->shape), tern_arg_i32(at->mode),
                           tern_arg_i32(at->padding), tern_arg_i32(at->align));
    return TERN_LAUNCH(call->place, kernel, dtype, grid, tern_arg_out(call->out[0]),
                       tern_arg_in(call->in[0]), tern_arg_in(call->in[1]), tern_arg_in(call->in[2]),
                       TERN_ARG_STRUCT(tern_sample_shape, &at->shape), tern_arg_i32(at->mode),
                       tern_arg_i32(at->padding), tern_arg_i32(at->align));
}

/* Returns the number of grid positions in the batch; every channel is read at each of them. */
static int64_t output_count(const sample *at)
{
    const int64_t *out = at->shape.out;
    return at->shape.n * out[0] * out[1] * out[2];
}

/* y[n, c, q] = the sum over taps t of w_t(grid[n, q]) x[n, c, t]. A coordinate v in [-1, 1] is the
 * position ((v + 1) n - 1) / 2 along a dim of n elements, or (v + 1) (n - 1) / 2 with
 * align_corners. Taps are the nearest element, 2 elements for each dim with linear weights, or 4
 * with cubic weights. A tap outside of the image is 0, the border, or the reflection, as the
 * padding mode says. */
static tern_status forward_y(tern_call *call)
{
    static const tern_kernel_ref kernel = {"vision", "grid_sample"};
    const sample *at = call->attributes;
    return launch(call, &kernel, tern_items_of(output_count(at), 32 * at->shape.c));
}

/* dx[n, c, t] += w_t(grid[n, q]) dy[n, c, q]. Any number of positions may read one element, so one
 * thread computes a whole plane: without atomic additions, and always in the same order. */
static tern_status forward_dx(tern_call *call)
{
    static const tern_kernel_ref kernel = {"vision", "grid_sample_dx"};
    const sample *at = call->attributes;
    return launch(call, &kernel,
                  (tern_grid){at->shape.planes, 32 * output_count(at) * at->shape.c, 1, false, 0});
}

/* dgrid[n, q] = the sum over channels and taps of dy[n, c, q] x[n, c, t] dw_t / dgrid. */
static tern_status forward_dgrid(tern_call *call)
{
    static const tern_kernel_ref kernel = {"vision", "grid_sample_dgrid"};
    const sample *at = call->attributes;
    return launch(call, &kernel, tern_items_of(output_count(at), 32 * at->shape.c));
}

/* ---- operations: inputs (x, grid), (dy, grid) and (dy, x, grid) ------------------------------ */

static const tern_op dx_op = {
    .name = "grid_sample_dx", .not_differentiable = true, .infer = infer_dx, .forward = forward_dx};
static const tern_op dgrid_op = {.name = "grid_sample_dgrid",
                                 .not_differentiable = true,
                                 .infer = infer_dgrid,
                                 .forward = forward_dgrid};

/* Computes dx and dgrid by their own operations, or by the composed one where gradients of
 * gradients are recorded. */
static tern_status backward(tern_gradient *g)
{
    const sample *at = g->attributes;
    if (g->recorded && g->in[0]->numel && g->dout[0]->numel)
        return tern_recompute(g, 1, tern_grid_sample_compose);
    tern_tensor *dy = tern_contiguous(g->dout[0]);
    tern_tensor *in[] = {dy, g->in[0], g->in[1]}, *without_x[] = {dy, g->in[1]};
    if (g->needs[0])
        g->din[0] = tern_apply(&dx_op, without_x, 2, at, sizeof *at);
    if (g->needs[1])
        g->din[1] = tern_apply(&dgrid_op, in, 3, at, sizeof *at);
    return TERN_OK;
}

static const tern_op y_op = {
    .name = "grid_sample",
    .names = TERN_NAMES(TERN_FIELD(tern_grid_attributes, "mode", mode),
                        TERN_FIELD(tern_grid_attributes, "padding_mode", padding),
                        TERN_FIELD(tern_grid_attributes, "align_corners", align)),
    .cast = TERN_CAST_WIDEST,
    .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1),
    .infer = infer_y,
    .forward = forward_y,
    .backward = backward};

/* ---- public functions -------------------------------------------------------------------- */

/* Checks that a mode or a padding mode is one of the three. */
static tern_status check_mode(unsigned mode, const char *what, const char *words)
{
    if (mode < 3)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "tern_grid_sample: expected %s to be %s, but got: %d", what,
                     words, (int)mode);
}

/* Checks x (N, C, in...) and grid (N, out..., ndim), whose coordinates are in the order x, y, z,
 * which is the last dim first. Sizes are right-aligned in three dims. */
static tern_status check_shapes(const tern_tensor *x, const tern_tensor *grid, sample *at)
{
    int ndim = x->ndim - 2;
    if ((ndim != 2 && ndim != 3) || grid->ndim != x->ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_grid_sample: expected 4D or 5D input and grid with same number of "
                         "dimensions, but got input with sizes %s and grid with sizes %s",
                         TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(grid));
    if (x->shape[0] != grid->shape[0])
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_grid_sample: expected grid and input to have same batch size, but "
                         "got input with sizes %s and grid with sizes %s",
                         TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(grid));
    if (grid->shape[ndim + 1] != ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_grid_sample: expected grid to have size %d in last dimension, but "
                         "got grid with sizes %s",
                         ndim, TERN_TENSOR_TEXT(grid));
    at->shape = (tern_sample_shape){.n = x->shape[0],
                                    .c = x->shape[1],
                                    .planes = x->shape[0] * x->shape[1],
                                    .in = {1, 1, 1},
                                    .out = {1, 1, 1},
                                    .ndim = ndim};
    for (int d = 0; d < ndim; d++) {
        at->shape.in[3 - ndim + d] = x->shape[2 + d];
        at->shape.out[3 - ndim + d] = grid->shape[1 + d];
        if (x->shape[2 + d] < 1)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_grid_sample: expected input to have non-empty spatial "
                             "dimensions, but input has sizes %s with dimension %d being empty",
                             TERN_TENSOR_TEXT(x), 2 + d);
    }
    return TERN_OK;
}

/* The kernels' codes of modes are those of interpolate, whose modes have another order. */
tern_tensor *tern_grid_sample(tern_tensor *x, tern_tensor *grid,
                              const tern_grid_sample_options *options)
{
    static const int32_t codes[] = {[TERN_GRID_SAMPLE_BILINEAR] = TERN_SAMPLE_LINEAR,
                                    [TERN_GRID_SAMPLE_NEAREST] = TERN_SAMPLE_NEAREST,
                                    [TERN_GRID_SAMPLE_BICUBIC] = TERN_SAMPLE_CUBIC};
    static const tern_grid_sample_options none;
    const tern_grid_sample_options *o = options ? options : &none;
    sample at = {.align = o->align_corners, .padding = (int32_t)o->padding_mode};
    if (!x || !grid) {
        tern_fail_argument_null("tern_grid_sample", x ? "grid" : "input");
        return NULL;
    }
    if (check_mode(o->mode, "mode", "'bilinear', 'nearest' or 'bicubic'") != TERN_OK ||
        check_mode(o->padding_mode, "padding_mode", "'zeros', 'border' or 'reflection'") !=
            TERN_OK ||
        check_shapes(x, grid, &at) != TERN_OK)
        return NULL;
    at.mode = codes[o->mode];
    if (tern_check_floating("tern_grid_sample", x->dtype) != TERN_OK)
        return NULL;
    tern_tensor *in[] = {tern_contiguous(x), tern_contiguous(grid)};
    return tern_apply(&y_op, in, 2, &at, sizeof at);
}

/* Returns n coordinates along dim d, shaped to broadcast: from -1 to 1 with align_corners,
 * otherwise the centres of n equal parts, (2 i + 1) / n - 1. */
static tern_tensor *axis_coordinates(const tern_tensor *theta, int64_t n, int d, int ndim,
                                     bool align)
{
    tern_shape shape = {.ndim = ndim};
    for (int i = 0; i < ndim; i++)
        shape.dims[i] = i == d ? n : 1;
    double end = align ? 1 : (double)(n - 1) / (double)n;
    tern_tensor *x = n > 1 ? tern_linspace(-end, end, n, theta->dtype, tern_device(theta))
                           : tern_zeros(TERN_SHAPE(n), theta->dtype, tern_device(theta));
    return tern_reshape(x, shape);
}

/* grid[n, q] = theta[n] (x_q, y_q, z_q, 1)', one product of the batch with the coordinates of all
 * output positions (Jaderberg et al. 2015). It is composed of matmul, which computes the gradient
 * of theta. */
tern_tensor *tern_affine_grid(tern_tensor *theta, tern_shape size, bool align_corners)
{
    int ndim = size.ndim - 2;
    if (!theta) {
        tern_fail_argument_null("tern_affine_grid", "theta");
        return NULL;
    }
    if (ndim != 2 && ndim != 3)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_affine_grid: AffineGridGenerator needs 4d (spatial) or 5d "
                              "(volumetric) inputs, but got size %s",
                              TERN_SHAPE_TEXT(&size));
    if (!tern_dtype_is_floating_point(theta->dtype))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_affine_grid: Expected theta to have floating point type, but "
                              "got %s",
                              tern_dtype_name(theta->dtype));
    if (theta->ndim != 3 || theta->shape[0] != size.dims[0] || theta->shape[1] != ndim ||
        theta->shape[2] != ndim + 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_affine_grid: Expected a batch of affine matrices of shape "
                              "%lldx%dx%d for size %s. Got %s.",
                              (long long)size.dims[0], ndim, ndim + 1, TERN_SHAPE_TEXT(&size),
                              TERN_TENSOR_TEXT(theta));
    tern_shape volume = {.ndim = ndim}, result = {.ndim = ndim + 2};
    result.dims[0] = size.dims[0];
    result.dims[ndim + 1] = ndim;
    for (int d = 0; d < ndim; d++) {
        result.dims[1 + d] = volume.dims[d] = size.dims[2 + d];
        if (size.dims[2 + d] < 1)
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "tern_affine_grid: Expected non-zero, positive output size. Got "
                                  "%s",
                                  TERN_SHAPE_TEXT(&size));
    }
    int64_t count = tern_shape_numel(&volume, "tern_affine_grid");
    if (count < 0)
        return NULL;
    tern_tensor *places[4]; /* coordinates x, y, z and ones */
    for (int d = 0; d < ndim; d++)
        places[d] = tern_expand(
            axis_coordinates(theta, volume.dims[ndim - 1 - d], ndim - 1 - d, ndim, align_corners),
            volume);
    places[ndim] = tern_ones(volume, theta->dtype, tern_device(theta));
    tern_tensor *base = tern_reshape(tern_stack(places, ndim + 1, -1), TERN_SHAPE(count, ndim + 1));
    return tern_reshape(tern_matmul(base, tern_transpose(theta, 1, 2)), result);
}
