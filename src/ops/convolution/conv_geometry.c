/* conv_geometry.c -- the options of convolutions: lists of numbers, output sizes, and errors with
 * PyTorch's messages. */
#include "ops/convolution/convolution.h"
#include "base/checked.h"
#include <stdio.h>
#include <string.h>

/* Reads an option such as stride into three numbers, right-aligned: a 1d or 2d convolution is a 3d
 * one whose leading dims have size 1, window 1 and the default. */
tern_status tern_conv_numbers(const tern_shape *list, int ndim, int64_t otherwise, const char *name,
                              const char *function, int64_t out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = otherwise;
    if (list->ndim == 0)
        return TERN_OK;
    if (list->ndim != 1 && list->ndim != ndim)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: expected %s to be a single integer value or a list of %d values to "
                         "match the convolution dimensions, but got %s=%s",
                         function, name, ndim, name, TERN_SHAPE_TEXT(list));
    TERN_TRY(tern_check_window(list, name, function));
    for (int d = 0; d < ndim; d++)
        out[3 - ndim + d] = list->dims[list->ndim == 1 ? 0 : d];
    return TERN_OK;
}

/* Sets `out` to the spatial dims of (N, C, *) as three dims, with 1 for leading dims that are
 * missing. */
static void three_dims(const tern_shape *shape, int ndim, int64_t out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = d < 3 - ndim ? 1 : shape->dims[shape->ndim - 3 + d];
}

/* Checks the options as PyTorch does. Padding 'same' needs stride 1, since with another stride no
 * padding results in the input's size. */
static tern_status check_numbers(const tern_conv_window *w)
{
    for (int d = 0; d < 3; d++) {
        if (w->padding[d] < 0)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: negative padding is not supported",
                             w->function);
        if (w->output_padding[d] < 0)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: negative output_padding is not supported",
                             w->function);
        if (w->stride[d] < 1)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: non-positive stride is not supported",
                             w->function);
        if (w->dilation[d] < 1)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: dilation should be greater than zero",
                             w->function);
        if (w->same && w->stride[d] != 1)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: padding='same' is not supported for strided convolutions",
                             w->function);
    }
    if (w->groups < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: non-positive groups is not supported",
                         w->function);
    return TERN_OK;
}

/* Checks that x and weight both have two more dims than the spatial ones, (N, C, *) and (O, C /
 * groups, *). */
static tern_status check_ranks(const tern_conv_window *w, const tern_shape *x,
                               const tern_shape *weight)
{
    int n = w->ndim + 2;
    if (weight->ndim != n)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: weight should have at least three dimensions: expected %d-dimensional "
            "weight, but got %d-dimensional weight of size %s",
            w->function, n, weight->ndim, TERN_SHAPE_TEXT(weight));
    if (x->ndim != n)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Expected %dD (unbatched) or %dD (batched) input to %s, but got input "
                         "of size: %s",
                         w->function, n - 1, n, w->function + strlen("tern_"), TERN_SHAPE_TEXT(x));
    return TERN_OK;
}

/* Checks that a bias has one number for each channel of the result. */
static tern_status check_bias(const tern_conv_window *w, const char *what, int64_t given,
                              const tern_shape *weight, const tern_tensor *bias, int64_t channels)
{
    if (!bias || (bias->ndim == 1 && bias->shape[0] == channels))
        return TERN_OK;
    return tern_fail(TERN_ERR_SHAPE,
                     "%s: Given %s=%lld, weight of size %s, expected bias to be 1-dimensional with "
                     "%lld elements, but got bias of size %s instead",
                     w->function, what, (long long)given, TERN_SHAPE_TEXT(weight),
                     (long long)channels, TERN_TENSOR_TEXT(bias));
}

/* Checks that dim 0 of the weight is divisible by the number of groups. It is the output's channels
 * for a convolution, and the input's for a transposed convolution. */
static tern_status check_groups(const tern_conv_window *w, const tern_shape *weight)
{
    long long groups = w->groups;
    if (weight->dims[0] < groups)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Given groups=%lld, expected weight to be at least %lld at dimension 0, "
            "but got weight of size %s instead",
            w->function, groups, groups, TERN_SHAPE_TEXT(weight));
    if (weight->dims[0] % groups)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Given groups=%lld, expected weight to be divisible by %lld at "
                         "dimension 0, but got weight of size %s instead",
                         w->function, groups, groups, TERN_SHAPE_TEXT(weight));
    return TERN_OK;
}

/* Returns sizes as text, such as "(3 x 3)", for messages. */
typedef struct sizes_text {
    char text[80];
} sizes_text;
static sizes_text sizes_of(const int64_t *dims, int ndim)
{
    sizes_text t = {"("};
    size_t at = 1;
    for (int d = 3 - ndim; d < 3; d++)
        at += (size_t)snprintf(t.text + at, sizeof t.text - at, "%s%lld", d > 3 - ndim ? " x " : "",
                               (long long)dims[d]);
    snprintf(t.text + at, sizeof t.text - at, ")");
    return t;
}

/* Sets out = (in + 2 padding - dilation (window - 1) - 1) / stride + 1, rounded down, for each dim.
 * With padding 'same' the sum of the padding on both sides is dilation (window - 1); if that is
 * odd, the end gets one more, as in PyTorch. Sizes are computed with saturation, so that very large
 * options are refused and do not overflow. */
static tern_status infer_out(const tern_conv_window *w, tern_conv_shape *s)
{
    int64_t padded[3], kernel[3];
    bool fits = true, some = true;
    for (int d = 0; d < 3; d++) {
        kernel[d] = tern_size_add(tern_size_mul(s->dilation[d], s->window[d] - 1), 1);
        int64_t all = w->same ? tern_size_sub(kernel[d], 1) : tern_size_mul(2, s->padding[d]);
        if (w->same)
            s->padding[d] = all / 2; /* the rest is padding at the end */
        padded[d] = tern_size_add(s->in[d], all);
        fits = fits && padded[d] >= kernel[d] && !tern_size_is_lost(padded[d]);
        some = some && s->window[d] > 0;
        s->out[d] = tern_size_sub(padded[d], kernel[d]) / s->stride[d] + 1;
    }
    if (!some)
        return tern_fail(TERN_ERR_SHAPE, "%s: kernel size should be greater than zero, but got %s",
                         w->function, sizes_of(s->window, w->ndim).text);
    if (!fits)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: Calculated padded input size per channel: %s. Kernel size: %s. Kernel "
            "size can't be greater than actual input size",
            w->function, sizes_of(padded, w->ndim).text, sizes_of(kernel, w->ndim).text);
    return TERN_OK;
}

/* Sets the part of the geometry that depends on options and weight only. */
static void copy_window(const tern_conv_window *w, const tern_shape *weight, tern_conv_shape *s)
{
    memset(s, 0, sizeof *s);
    s->groups = w->groups;
    memcpy(s->stride, w->stride, sizeof s->stride);
    memcpy(s->padding, w->padding, sizeof s->padding);
    memcpy(s->dilation, w->dilation, sizeof s->dilation);
    three_dims(weight, w->ndim, s->window);
}

/* Sets *out to the geometry of y = conv(x): x (N, C, *), weight (O, C / groups, *), y (N, O, *). */
tern_status tern_conv_shape_of(const tern_conv_window *w, const tern_shape *x,
                               const tern_shape *weight, const tern_tensor *bias,
                               tern_conv_shape *out)
{
    TERN_TRY(check_numbers(w));
    TERN_TRY(check_ranks(w, x, weight));
    TERN_TRY(check_groups(w, weight));
    copy_window(w, weight, out);
    out->n = x->dims[0];
    out->c = x->dims[1];
    out->o = weight->dims[0];
    if (out->c != weight->dims[1] * w->groups)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Given groups=%lld, weight of size %s, expected input%s to have %lld "
                         "channels, but got %lld channels instead",
                         w->function, (long long)w->groups, TERN_SHAPE_TEXT(weight),
                         TERN_SHAPE_TEXT(x), (long long)(weight->dims[1] * w->groups),
                         (long long)out->c);
    TERN_TRY(check_bias(w, "groups", w->groups, weight, bias, out->o));
    three_dims(x, w->ndim, out->in);
    return infer_out(w, out);
}

/* Sets the size of a transposed convolution's result, from the convolution's size solved for `in`:
 *   in = (out - 1) stride - 2 padding + dilation (window - 1) + output_padding + 1
 * Strides above 1 round the convolution's size down, so that several inputs have the same output
 * size; output_padding chooses among them and must be less than the stride or the dilation. */
static tern_status infer_in(const tern_conv_window *w, tern_conv_shape *s)
{
    for (int d = 0; d < 3; d++) {
        if (w->output_padding[d] >= s->stride[d] && w->output_padding[d] >= s->dilation[d])
            return tern_fail(
                TERN_ERR_ARGUMENT,
                "%s: output padding must be smaller than either stride or dilation, but "
                "got output_padding %s, stride %s, dilation %s",
                w->function, sizes_of(w->output_padding, w->ndim).text,
                sizes_of(s->stride, w->ndim).text, sizes_of(s->dilation, w->ndim).text);
        s->in[d] = tern_size_sub(tern_size_mul(s->out[d] - 1, s->stride[d]),
                                 tern_size_mul(2, s->padding[d]));
        s->in[d] = tern_size_add(s->in[d], tern_size_mul(s->dilation[d], s->window[d] - 1));
        s->in[d] = tern_size_add(s->in[d], tern_size_add(w->output_padding[d], 1));
        if (s->in[d] < 1 || s->window[d] < 1 || tern_size_is_lost(s->in[d]))
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: Given input size per channel: %s. Calculated output size per "
                             "channel: %s. Output size is too small",
                             w->function, sizes_of(s->out, w->ndim).text,
                             sizes_of(s->in, w->ndim).text);
    }
    return TERN_OK;
}

/* Sets *out to the geometry of a transposed convolution, as that of the convolution whose gradient
 * it is: its input is y (N, O, *), its result x (N, C, *). So the weight is (O, C / groups, *) for
 * both. */
tern_status tern_conv_transpose_shape_of(const tern_conv_window *w, const tern_shape *y,
                                         const tern_shape *weight, const tern_tensor *bias,
                                         tern_conv_shape *out)
{
    TERN_TRY(check_numbers(w));
    TERN_TRY(check_ranks(w, y, weight));
    TERN_TRY(check_groups(w, weight));
    copy_window(w, weight, out);
    out->n = y->dims[0];
    out->o = weight->dims[0];
    out->c = weight->dims[1] * w->groups;
    if (y->dims[1] != out->o)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Given transposed=1, weight of size %s, expected input%s to have %lld "
                         "channels, but got %lld channels instead",
                         w->function, TERN_SHAPE_TEXT(weight), TERN_SHAPE_TEXT(y),
                         (long long)out->o, (long long)y->dims[1]);
    TERN_TRY(check_bias(w, "transposed", 1, weight, bias, out->c));
    three_dims(y, w->ndim, out->out);
    return infer_in(w, out);
}
