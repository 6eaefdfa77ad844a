/* network.c -- ONNX operations of neural networks: products, windows, norms, dropout. */
#include "io/onnx/operations.h"
#include <math.h>
#include <string.h>

tern_status onnx_gemm(onnx_call *c)
{
    tern_tensor *a = onnx_in(c, 0), *b = onnx_in(c, 1), *bias = onnx_in(c, 2);
    double alpha = onnx_real(c, "alpha", 1), beta = onnx_real(c, "beta", 1);
    if (onnx_int(c, "transA", 0))
        a = tern_t(a);
    if (onnx_int(c, "transB", 0))
        b = tern_t(b);
    if (bias)
        return onnx_give(c, tern_addmm(bias, a, b, beta, alpha));
    tern_tensor *y = tern_mm(a, b);
    return onnx_give(c, alpha == 1 ? y : tern_mul_scalar(y, TERN_SCALAR(alpha)));
}

/* ---- windows --------------------------------------------------------------------------------- */

/* A window over n spatial dims, with the padding before and after each dim. */
typedef struct window {
    int n;
    int64_t kernel[3], stride[3], dilation[3], before[3], after[3];
    bool symmetric;
} window;

static tern_status read_list(const onnx_call *c, const char *name, int n, int64_t otherwise,
                             int64_t *list)
{
    int64_t read[ONNX_DIMS];
    int count = onnx_ints(c, name, read);
    for (int i = 0; i < n; i++) {
        list[i] = count < 0 ? otherwise : i < count ? read[i] : 0;
        if (list[i] < -INT32_MAX || list[i] > INT32_MAX)
            return onnx_fail(c, TERN_ERR_SHAPE, "%s has %lld", name, (long long)list[i]);
    }
    if (count >= 0 && count != n)
        return onnx_fail(c, TERN_ERR_SHAPE, "%s has %d numbers for %d dims", name, count, n);
    return TERN_OK;
}

/* Reads the window of a node over x. The kernel size is that of `weight`, if there is one. */
static tern_status read_window(const onnx_call *c, const tern_tensor *x, const tern_tensor *weight,
                               window *w)
{
    *w = (window){.n = tern_dim(x) - 2};
    if (w->n < 1 || w->n > 3)
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "windows over %d dims", w->n);
    for (int i = 0; weight && i < w->n; i++)
        w->kernel[i] = tern_size(weight, i + 2);
    if (!weight)
        TERN_TRY(read_list(c, "kernel_shape", w->n, 1, w->kernel));
    TERN_TRY(read_list(c, "strides", w->n, 1, w->stride));
    TERN_TRY(read_list(c, "dilations", w->n, 1, w->dilation));
    if (onnx_int(c, "group", 1) < 1)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "%lld groups", (long long)onnx_int(c, "group", 1));
    int64_t pads[6];
    TERN_TRY(read_list(c, "pads", 2 * w->n, 0, pads));
    bool upper = onnx_text_is(c, "auto_pad", "SAME_UPPER", false);
    bool lower = onnx_text_is(c, "auto_pad", "SAME_LOWER", false);
    w->symmetric = true;
    for (int i = 0; i < w->n; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->n + i];
        if ((upper || lower) && w->stride[i] > 0) {
            int64_t in = tern_size(x, i + 2), out = (in + w->stride[i] - 1) / w->stride[i];
            int64_t all = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - in;
            all = all < 0 ? 0 : all;
            w->before[i] = lower ? (all + 1) / 2 : all / 2;
            w->after[i] = all - w->before[i];
        }
        w->symmetric = w->symmetric && w->before[i] == w->after[i];
    }
    return TERN_OK;
}

/* Returns x padded by the window's padding. */
static tern_tensor *padded(tern_tensor *x, const window *w, double value)
{
    tern_shape pad = {0};
    for (int i = w->n - 1; i >= 0; i--) {
        pad.dims[pad.ndim++] = w->before[i];
        pad.dims[pad.ndim++] = w->after[i];
    }
    return tern_pad(x, pad, &(tern_pad_options){.value = value});
}

tern_tensor *onnx_convolve(onnx_call *c, tern_tensor *x, tern_tensor *weight, tern_tensor *bias)
{
    window w;
    if (read_window(c, x, weight, &w) != TERN_OK)
        return NULL;
    tern_conv_function_options o = {.stride = tern_shape_from(w.n, w.stride),
                                    .dilation = tern_shape_from(w.n, w.dilation),
                                    .groups = onnx_int(c, "group", 1)};
    if (w.symmetric)
        o.padding = tern_shape_from(w.n, w.before);
    else
        x = padded(x, &w, 0);
    return w.n == 1   ? tern_conv1d(x, weight, bias, &o)
           : w.n == 2 ? tern_conv2d(x, weight, bias, &o)
                      : tern_conv3d(x, weight, bias, &o);
}

tern_status onnx_conv(onnx_call *c)
{
    return onnx_give(c, onnx_convolve(c, onnx_in(c, 0), onnx_in(c, 1), onnx_in(c, 2)));
}

/* Sets the padding that gives output_shape, or that of auto_pad. The size without padding is (in -
 * 1) stride + extent + output_padding. */
static tern_status transposed_pads(const onnx_call *c, const tern_tensor *x, const int64_t *more,
                                   window *w)
{
    int64_t shape[ONNX_DIMS];
    int n = onnx_ints(c, "output_shape", shape);
    bool upper = onnx_text_is(c, "auto_pad", "SAME_UPPER", false);
    bool lower = onnx_text_is(c, "auto_pad", "SAME_LOWER", false);
    if (n > 0 && n < w->n)
        return onnx_fail(c, TERN_ERR_SHAPE, "output_shape has %d sizes for %d dims", n, w->n);
    if (n > w->n)
        memmove(shape, shape + n - w->n, sizeof *shape * (size_t)w->n);
    for (int i = 0; i < w->n; i++) {
        int64_t in = tern_size(x, i + 2);
        int64_t extent = (w->kernel[i] - 1) * w->dilation[i] + 1;
        int64_t whole = (in - 1) * w->stride[i] + extent + more[i];
        if (n > 0 && (shape[i] < 0 || shape[i] > INT32_MAX))
            return onnx_fail(c, TERN_ERR_SHAPE, "output_shape has %lld", (long long)shape[i]);
        if (n > 0 || upper || lower) {
            int64_t all = whole - (n > 0 ? shape[i] : in * w->stride[i]);
            int64_t half = all >= 0 ? all / 2 : (all - 1) / 2; /* rounded down */
            w->before[i] = upper ? half : all - half;
            w->after[i] = all - w->before[i];
        }
    }
    return TERN_OK;
}

tern_status onnx_conv_transpose(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *weight = onnx_in(c, 1), *bias = onnx_in(c, 2);
    window w;
    int64_t more[3];
    TERN_TRY(read_window(c, x, weight, &w));
    TERN_TRY(read_list(c, "output_padding", w.n, 0, more));
    TERN_TRY(transposed_pads(c, x, more, &w));
    tern_conv_transpose_function_options o = {.stride = tern_shape_from(w.n, w.stride),
                                              .dilation = tern_shape_from(w.n, w.dilation),
                                              .groups = onnx_int(c, "group", 1)};
    tern_tensor *y = w.n == 1   ? tern_conv_transpose1d(x, weight, NULL, &o)
                     : w.n == 2 ? tern_conv_transpose2d(x, weight, NULL, &o)
                                : tern_conv_transpose3d(x, weight, NULL, &o);
    /* remove the padding, and add zeros where output_padding exceeds it */
    tern_shape cut = {0};
    for (int i = w.n - 1; i >= 0; i--) {
        cut.dims[cut.ndim++] = -w.before[i];
        cut.dims[cut.ndim++] = more[i] - w.after[i];
    }
    y = tern_pad(y, cut, NULL);
    if (!bias || !y)
        return onnx_give(c, y);
    tern_shape channels = {.ndim = w.n + 2, .dims = {1, tern_numel(bias), 1, 1, 1}};
    return onnx_give(c, tern_add(y, tern_reshape(bias, channels)));
}

/* ---- pools ----------------------------------------------------------------------------------- */

tern_status onnx_max_pool(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    window w;
    TERN_TRY(read_window(c, x, NULL, &w));
    if (c->n_out > 1 && onnx_int(c, "storage_order", 0))
        return onnx_fail(c, TERN_ERR_UNSUPPORTED, "places in column order");
    tern_shape kernel = tern_shape_from(w.n, w.kernel);
    tern_max_pool_options o = {.stride = tern_shape_from(w.n, w.stride),
                               .dilation = tern_shape_from(w.n, w.dilation),
                               .ceil_mode = onnx_int(c, "ceil_mode", 0) != 0};
    for (int i = 0; i < w.n; i++)
        w.symmetric = w.symmetric && 2 * w.before[i] <= w.kernel[i];
    if (w.symmetric)
        o.padding = tern_shape_from(w.n, w.before);
    else if (c->n_out > 1)
        return onnx_fail(c, TERN_ERR_UNSUPPORTED,
                         "places with padding that is not the same on both sides");
    else
        x = padded(x, &w, tern_dtype_is_floating_point(tern_dtype_of(x)) ? -(double)INFINITY : 0);
    if (c->n_out < 2)
        return onnx_give(c, w.n == 1   ? tern_max_pool1d(x, kernel, &o)
                            : w.n == 2 ? tern_max_pool2d(x, kernel, &o)
                                       : tern_max_pool3d(x, kernel, &o));
    tern_values_indices y = {NULL, NULL};
    TERN_TRY(w.n == 1   ? tern_max_pool1d_with_indices(x, kernel, &o, &y)
             : w.n == 2 ? tern_max_pool2d_with_indices(x, kernel, &o, &y)
                        : tern_max_pool3d_with_indices(x, kernel, &o, &y));
    /* ONNX's indices count in the whole tensor, tern's in the plane */
    int64_t planes = tern_size(x, 0) * tern_size(x, 1), plane = planes ? tern_numel(x) / planes : 0;
    tern_shape by_plane = {.ndim = w.n + 2, .dims = {tern_size(x, 0), tern_size(x, 1), 1, 1, 1}};
    tern_tensor *first =
        tern_mul_scalar(tern_arange_scalar(TERN_SCALAR(INT64_C(0)), TERN_SCALAR(planes),
                                           TERN_SCALAR(INT64_C(1)), TERN_I64, tern_device(x)),
                        TERN_SCALAR(plane));
    c->out[0] = y.values;
    c->out[1] = tern_add(y.indices, tern_reshape(first, by_plane));
    return TERN_OK;
}

static tern_tensor *means(tern_tensor *x, const window *w, const tern_avg_pool_options *o)
{
    tern_shape kernel = tern_shape_from(w->n, w->kernel);
    return w->n == 1   ? tern_avg_pool1d(x, kernel, o)
           : w->n == 2 ? tern_avg_pool2d(x, kernel, o)
                       : tern_avg_pool3d(x, kernel, o);
}

tern_status onnx_average_pool(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    window w;
    TERN_TRY(read_window(c, x, NULL, &w));
    bool include = onnx_int(c, "count_include_pad", 0) != 0;
    for (int i = 0; i < w.n; i++) {
        if (w.dilation[i] != 1)
            return onnx_fail(c, TERN_ERR_UNSUPPORTED, "means of dilated windows");
        w.symmetric = w.symmetric && 2 * w.before[i] <= w.kernel[i];
    }
    tern_avg_pool_options o = {.stride = tern_shape_from(w.n, w.stride),
                               .ceil_mode = onnx_int(c, "ceil_mode", 0) != 0,
                               .no_count_include_pad = !include};
    if (w.symmetric) {
        o.padding = tern_shape_from(w.n, w.before);
        return onnx_give(c, means(x, &w, &o));
    }
    o.no_count_include_pad = false;
    tern_tensor *y = means(padded(x, &w, 0), &w, &o);
    if (!include) /* divide by the part of each window that lies inside x */
        y = tern_div(y, means(padded(tern_ones_like(x), &w, 0), &w, &o));
    return onnx_give(c, y);
}

static tern_shape spatial(const tern_tensor *x)
{
    tern_shape dims = {0};
    for (int d = 2; d < tern_dim(x); d++)
        dims.dims[dims.ndim++] = d;
    return dims;
}

tern_status onnx_global_average_pool(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    return onnx_give(c, tern_mean_dim(x, spatial(x), true));
}

tern_status onnx_global_max_pool(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    return onnx_give(c, tern_amax(x, spatial(x), true));
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* Sets outputs 1 and 2 of a training node: the updated running statistics, with the biased
 * variance. */
static tern_status new_statistics(onnx_call *c, double momentum)
{
    tern_tensor *x = onnx_in(c, 0), *both[2];
    tern_shape dims = spatial(x);
    dims.dims[dims.ndim++] = 0;
    if (c->n_out < 2)
        return TERN_OK;
    TERN_TRY(tern_var_mean_dim(tern_detach(x), dims, 0, false, both));
    c->out[1] = tern_lerp_scalar(both[1], onnx_in(c, 3), momentum);
    if (c->n_out > 2)
        c->out[2] = tern_lerp_scalar(both[0], onnx_in(c, 4), momentum);
    return TERN_OK;
}

tern_status onnx_batch_normalization(onnx_call *c)
{
    double momentum = onnx_real(c, "momentum", 0.9);
    tern_tensor *mean = onnx_in(c, 3), *var = onnx_in(c, 4);
    if (!mean || !var)
        return onnx_fail(c, TERN_ERR_ARGUMENT, "lacks its mean or variance");
    if (c->training)
        TERN_TRY(new_statistics(c, momentum));
    return onnx_give(c, tern_batch_norm(onnx_in(c, 0), mean, var, onnx_in(c, 1), onnx_in(c, 2),
                                        c->training, 1 - momentum, onnx_real(c, "epsilon", 1e-5)));
}

tern_status onnx_instance_normalization(onnx_call *c)
{
    return onnx_give(c, tern_instance_norm(onnx_in(c, 0), NULL, NULL, onnx_in(c, 1), onnx_in(c, 2),
                                           true, 0.1, onnx_real(c, "epsilon", 1e-5)));
}

/* Returns in `dims` the dims from the attribute axis on, and in `shape` their sizes. */
static tern_status last_dims(const onnx_call *c, tern_shape *shape, tern_shape *dims)
{
    tern_tensor *x = onnx_in(c, 0);
    int axis = onnx_axis(onnx_int(c, "axis", -1), tern_dim(x));
    *shape = *dims = (tern_shape){0};
    if (axis < 0 || axis >= tern_dim(x))
        return onnx_fail(c, TERN_ERR_SHAPE, "axis %d of %d dims", axis, tern_dim(x));
    for (int d = axis; d < tern_dim(x); d++) {
        shape->dims[shape->ndim++] = tern_size(x, d);
        dims->dims[dims->ndim++] = d;
    }
    return TERN_OK;
}

tern_status onnx_layer_normalization(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *weight = onnx_in(c, 1), *bias = onnx_in(c, 2), *both[2];
    double eps = onnx_real(c, "epsilon", 1e-5);
    tern_shape shape, dims;
    TERN_TRY(last_dims(c, &shape, &dims));
    if (c->n_out > 1) {
        TERN_TRY(tern_var_mean_dim(x, dims, 0, true, both));
        c->out[1] = both[1];
        if (c->n_out > 2)
            c->out[2] = tern_rsqrt(tern_add_scalar(both[0], TERN_SCALAR(eps)));
    }
    if (weight)
        weight = tern_expand(weight, shape);
    if (bias)
        bias = tern_expand(bias, shape);
    return onnx_give(c, tern_layer_norm(x, shape, weight, bias, eps));
}

tern_status onnx_rms_normalization(onnx_call *c)
{
    tern_shape shape, dims;
    TERN_TRY(last_dims(c, &shape, &dims));
    return onnx_give(c, tern_rms_norm(onnx_in(c, 0), shape, tern_expand(onnx_in(c, 1), shape),
                                      onnx_real(c, "epsilon", 1e-5)));
}

/* Before operator set 21 weight and bias have one element per group. */
tern_status onnx_group_normalization(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0), *weight = onnx_in(c, 1), *bias = onnx_in(c, 2);
    int64_t groups = onnx_int(c, "num_groups", 1), channels = tern_size(x, 1);
    if (groups < 1 || channels % groups)
        return onnx_fail(c, TERN_ERR_SHAPE, "%lld groups of %lld channels", (long long)groups,
                         (long long)channels);
    if (c->opset < 21 && groups != channels) {
        weight = tern_repeat_interleave(weight, channels / groups, (tern_optional_int){true, 0});
        bias = tern_repeat_interleave(bias, channels / groups, (tern_optional_int){true, 0});
    }
    return onnx_give(c, tern_group_norm(x, groups, weight, bias, onnx_real(c, "epsilon", 1e-5)));
}

tern_status onnx_local_response(onnx_call *c)
{
    return onnx_give(c, tern_local_response_norm(
                            onnx_in(c, 0), onnx_int(c, "size", 1), onnx_real(c, "alpha", 1e-4),
                            onnx_real(c, "beta", 0.75), onnx_real(c, "bias", 1)));
}

tern_status onnx_lp_normalization(onnx_call *c)
{
    tern_tensor *x = onnx_in(c, 0);
    return onnx_give(c, tern_normalize(x, (double)onnx_int(c, "p", 2),
                                       onnx_axis(onnx_int(c, "axis", -1), tern_dim(x)), 1e-12));
}

tern_status onnx_mean_variance(onnx_call *c)
{
    int64_t axes[ONNX_DIMS] = {0, 2, 3};
    tern_tensor *x = onnx_in(c, 0), *both[2];
    int n = onnx_ints(c, "axes", axes);
    TERN_TRY(tern_std_mean_dim(x, tern_shape_from(n < 0 ? 3 : n, axes), 0, true, both));
    return onnx_give(c,
                     tern_div(tern_sub(x, both[1]), tern_add_scalar(both[0], TERN_SCALAR(1e-9))));
}
