/* resize.c -- ONNX's Pad and Resize, dim by dim, with indices and weights that the host
 * computes. */
#include "io/onnx/operations.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

enum { MOST_SIZE = INT32_MAX }; /* limit for a dim that is padded or resized */

/* Returns entries places[0] to places[n - 1] of dim d. */
static tern_tensor *select_places(tern_tensor *x, int d, const int64_t *places, int64_t n)
{
    tern_tensor *index =
        tern_from_data((const void *)places, TERN_SHAPE(n), TERN_I64, tern_device(x));
    return tern_index_select(x, d, index);
}

/* ---- Pad ------------------------------------------------------------------------------------- */

typedef enum pad_kind { CONSTANT, REFLECT, EDGE, WRAP } pad_kind;

/* Returns the index in the source of element i of a padded dim. n is the size of the source. */
static int64_t source(pad_kind kind, int64_t i, int64_t n)
{
    if (kind == EDGE)
        return i < 0 ? 0 : i >= n ? n - 1 : i;
    int64_t period = kind == WRAP || n == 1 ? n : 2 * (n - 1);
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

static tern_tensor *pad_dim(tern_tensor *x, int d, pad_kind kind, int64_t before, int64_t after)
{
    int64_t n = tern_size(x, d), out = 0;
    if (before == 0 && after == 0)
        return x;
    bool fits =
        before > -MOST_SIZE && before < MOST_SIZE && after > -MOST_SIZE && after < MOST_SIZE;
    if (fits)
        out = n + before + after;
    int64_t *places =
        fits && n > 0 && out >= 0 ? tern_alloc(sizeof *places * (size_t)(out + 1)) : NULL;
    if (!places)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_onnx: Pad of a dim of size %lld by %lld and %lld", (long long)n,
                              (long long)before, (long long)after);
    for (int64_t i = 0; i < out; i++)
        places[i] = source(kind, i - before, n);
    x = select_places(x, d, places, out);
    tern_free(places);
    return x;
}

tern_status onnx_pad(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t pads[ONNX_DIMS], axes[ONNX_DIMS];
    double value[ONNX_DIMS] = {onnx_real(c, "value", 0)};
    int dims = tern_dim(x), n = onnx_axes(c, c->opset < 2 ? "paddings" : "pads", 1, pads),
        n_axes = onnx_input_ints(c, 3, axes);
    if (n == -2 || n_axes == -2 || onnx_input_reals(c, 2, value) == -2)
        return TERN_OK;
    int count = n_axes >= 0 ? n_axes : dims;
    if (n != 2 * count || dims > 6)
        return onnx_fail(c, TERN_ERR_SHAPE, "%d pads of %d dims", n, count);
    int64_t before[TERN_MAX_DIMS] = {0}, after[TERN_MAX_DIMS] = {0};
    for (int i = 0; i < count; i++) {
        int d = onnx_axis(n_axes >= 0 ? axes[i] : i, dims);
        if (d < 0 || d >= dims)
            return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", d, dims);
        before[d] = pads[i];
        after[d] = pads[count + i];
    }
    pad_kind kind = onnx_text_is(c, "mode", "reflect", false) ? REFLECT
                    : onnx_text_is(c, "mode", "edge", false)  ? EDGE
                    : onnx_text_is(c, "mode", "wrap", false)  ? WRAP
                                                              : CONSTANT;
    if (kind == CONSTANT) {
        tern_shape pad = {0};
        for (int d = dims - 1; d >= 0; d--) {
            pad.dims[pad.ndim++] = before[d];
            pad.dims[pad.ndim++] = after[d];
        }
        return onnx_give(c, tern_pad(x, pad, &(tern_pad_options){.value = value[0]}));
    }
    for (int d = 0; x && d < dims; d++)
        x = pad_dim(x, d, kind, before[d], after[d]);
    return onnx_give(c, x);
}

/* ---- Resize ---------------------------------------------------------------------------------- */

typedef enum resize_mode { NEAREST, LINEAR, CUBIC } resize_mode;

typedef struct resizing {
    resize_mode mode;
    const onnx_call *call;
    double cubic;
    bool exclude_outside, antialias, asymmetric; /* asymmetric is the only mode before operator set
                                                    11 */
} resizing;

static double round_place(const resizing *r, double at)
{
    const onnx_call *c = r->call;
    if (r->asymmetric || onnx_text_is(c, "nearest_mode", "floor", false))
        return floor(at);
    if (onnx_text_is(c, "nearest_mode", "ceil", false))
        return ceil(at);
    if (onnx_text_is(c, "nearest_mode", "round_prefer_ceil", false))
        return floor(at + 0.5);
    return ceil(at - 0.5);
}

/* Returns the coordinate of output element o among the input elements. */
static double place(const resizing *r, int64_t o, int64_t in, int64_t out, double scale)
{
    const onnx_call *c = r->call;
    const char *name = "coordinate_transformation_mode";
    double at = (double)o;
    if (r->asymmetric || onnx_text_is(c, name, "asymmetric", false))
        return at / scale;
    if (onnx_text_is(c, name, "align_corners", false))
        return scale * (double)in == 1 ? 0 : at * (double)(in - 1) / (scale * (double)in - 1);
    if (onnx_text_is(c, name, "tf_half_pixel_for_nn", false))
        return (at + 0.5) / scale;
    if (onnx_text_is(c, name, "pytorch_half_pixel", false) && out == 1)
        return 0;
    at = (at + 0.5) / scale - 0.5;
    if (onnx_text_is(c, name, "half_pixel_symmetric", false))
        at += (double)in / 2 * (1 - (double)out / (scale * (double)in));
    return at;
}

/* Returns the weight of a pixel at distance x. */
static double weight(const resizing *r, double x)
{
    double a = r->cubic;
    x = fabs(x);
    if (r->mode == LINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Returns x resized along d: the sum over taps of a pixel times its weight. */
static tern_tensor *weigh(const resizing *r, tern_tensor *x, int d, int64_t out, double scale)
{
    int64_t in = tern_size(x, d);
    double shrink = r->antialias && scale < 1 ? scale : 1,
           support = (r->mode == CUBIC ? 2 : 1) / shrink;
    if (2 * support * (double)out > MOST_SIZE)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_onnx: Resize of a dim of size %lld by %g",
                              (long long)in, scale);
    int64_t taps = (int64_t)ceil(2 * support) + (shrink < 1 ? 1 : 0);
    int64_t *places = tern_alloc(sizeof *places * (size_t)(taps * out + 1));
    double *weights = tern_alloc(sizeof *weights * (size_t)(taps * out + 1));
    tern_tensor *y =
        places && weights ? tern_zeros(TERN_SHAPE(1), tern_dtype_of(x), tern_device(x)) : NULL;
    for (int64_t o = 0; y && o < out; o++) {
        double at = place(r, o, in, out, scale), sum = 0;
        int64_t first = (int64_t)floor(at - support) + 1;
        for (int64_t k = 0; k < taps; k++) {
            int64_t i = first + k;
            double w = weight(r, ((double)i - at) * shrink);
            if ((r->exclude_outside || shrink < 1) && (i < 0 || i >= in))
                w = 0;
            places[k * out + o] = i < 0 ? 0 : i >= in ? in - 1 : i;
            weights[k * out + o] = w;
            sum += w;
        }
        for (int64_t k = 0; sum != 0 && k < taps; k++)
            weights[k * out + o] /= sum;
    }
    tern_shape along = {.ndim = tern_dim(x)};
    for (int i = 0; i < along.ndim; i++)
        along.dims[i] = i == d ? out : 1;
    for (int64_t k = 0; y && k < taps; k++) {
        tern_tensor *w =
            tern_to_dtype(tern_from_data((const void *)(weights + k * out), along, TERN_F64, "cpu"),
                          tern_dtype_of(x));
        tern_tensor *part =
            tern_mul(select_places(x, d, places + k * out, out), tern_to(w, tern_device(x)));
        y = k ? tern_add(y, part) : part;
    }
    tern_free(places);
    tern_free(weights);
    return y;
}

static tern_tensor *resize_dim(const resizing *r, tern_tensor *x, int d, int64_t out, double scale)
{
    int64_t in = tern_size(x, d);
    if (in < 1 || out < 0)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_onnx: Resize of a dim of size %lld to %lld",
                              (long long)in, (long long)out);
    if (r->mode != NEAREST)
        return weigh(r, x, d, out, scale);
    int64_t *places = tern_alloc(sizeof *places * (size_t)(out + 1));
    for (int64_t o = 0; places && o < out; o++) {
        double at = round_place(r, place(r, o, in, out, scale));
        places[o] = at < 0 ? 0 : at >= (double)in ? in - 1 : (int64_t)at;
    }
    tern_tensor *y = places ? select_places(x, d, places, out) : NULL;
    tern_free(places);
    return y;
}

/* Sets out and scale, for each dim of x, to the size of the result and the ratio of the sizes. */
static tern_status targets(const onnx_call *c, const tern_tensor *x, int64_t *out, double *scale)
{
    int64_t sizes[ONNX_DIMS], axes[ONNX_DIMS];
    double scales[ONNX_DIMS];
    int dims = tern_dim(x), n_axes = onnx_ints(c, "axes", axes);
    int at = c->opset < 11 ? 1 : 2, n_scales = onnx_input_reals(c, at, scales);
    int n_sizes = c->opset < 11 ? -1 : onnx_input_ints(c, 3, sizes);
    const Onnx__AttributeProto *a = onnx_attribute(c, "scales"); /* Upsample of operator set 7 */
    for (size_t i = 0; a && i < a->n_floats && i < ONNX_DIMS; i++)
        scales[i] = (double)a->floats[i];
    n_scales = a && n_scales < 0 ? (int)a->n_floats : n_scales;
    if (c->opset < 7 && n_scales == -1 && onnx_attribute(c, "height_scale")) { /* operator set 1 */
        const double both[] = {1, 1, onnx_real(c, "height_scale", 1),
                               onnx_real(c, "width_scale", 1)};
        memcpy(scales, both, sizeof both);
        n_scales = 4;
    }
    if (n_scales == -2 || n_sizes == -2)
        return TERN_ERR_ARGUMENT;
    int count = n_axes >= 0 ? n_axes : dims, given = n_sizes > 0 ? n_sizes : n_scales;
    if (given != count)
        return onnx_fail(c, TERN_ERR_SHAPE, "%d sizes or scales for %d dims", given, count);
    double least = 0, most = 0;
    for (int d = 0; d < dims; d++)
        out[d] = tern_size(x, d), scale[d] = 1;
    for (int i = 0; i < count; i++) {
        int d = onnx_axis(n_axes >= 0 ? axes[i] : i, dims);
        if (d < 0 || d >= dims)
            return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", d, dims);
        double size = n_sizes > 0 ? (double)sizes[i] : floor((double)out[d] * scales[i]);
        scale[d] = n_sizes > 0 ? size / (double)out[d] : scales[i];
        if (!(scale[d] >= 0 && scale[d] < MOST_SIZE && size >= 0 && size < MOST_SIZE))
            return onnx_fail(c, TERN_ERR_SHAPE, "a dim of size %lld by %g", (long long)out[d],
                             scale[d]);
        out[d] = (int64_t)size;
        least = i == 0 || scale[d] < least ? scale[d] : least;
        most = i == 0 || scale[d] > most ? scale[d] : most;
    }
    bool larger = onnx_text_is(c, "keep_aspect_ratio_policy", "not_larger", false);
    bool smaller = onnx_text_is(c, "keep_aspect_ratio_policy", "not_smaller", false);
    for (int i = 0; n_sizes > 0 && (larger || smaller) && i < count; i++) {
        int d = onnx_axis(n_axes >= 0 ? axes[i] : i, dims);
        scale[d] = larger ? least : most;
        double size = floor((double)tern_size(x, d) * scale[d] + 0.5);
        out[d] = size < MOST_SIZE ? (int64_t)size : MOST_SIZE;
    }
    return TERN_OK;
}

tern_status onnx_resize(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    int64_t out[TERN_MAX_DIMS];
    double scale[TERN_MAX_DIMS];
    TERN_TRY(targets(c, x, out, scale));
    if (onnx_text_is(c, "coordinate_transformation_mode", "tf_crop_and_resize", false))
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "tf_crop_and_resize");
    resizing r = {.mode = onnx_text_is(c, "mode", "linear", false) ||
                                  onnx_text_is(c, "mode", "bilinear", false)
                              ? LINEAR
                          : onnx_text_is(c, "mode", "cubic", false) ? CUBIC
                                                                    : NEAREST,
                  .call = c,
                  .cubic = onnx_real(c, "cubic_coeff_a", -0.75),
                  .exclude_outside = onnx_int(c, "exclude_outside", 0) != 0,
                  .antialias = onnx_int(c, "antialias", 0) != 0,
                  .asymmetric = c->opset < 11};
    for (int d = 0; x && d < tern_dim(x); d++)
        if (out[d] != tern_size(x, d) || scale[d] != 1)
            x = resize_dim(&r, x, d, out[d], scale[d]);
    return onnx_give(c, x);
}
