/* unfold.c -- sliding windows over images as columns: unfold and fold. */
#include "ops/convolution/unfold.h"
#include "base/checked.h"
#include "base/option.h"
#include "tensor/tensor.h"
#include <tern/ops.h>

typedef struct columns_attributes {
    tern_window window;
    int64_t size[3]; /* size of an image, with as many dims as the window */
} columns_attributes;

/* Returns the number of windows that fit along dim d of `size` elements:
 *   (size + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down; 0 if none
 *   fits. */
static int64_t window_count(const tern_window *w, int d, int64_t size)
{
    int64_t reach = tern_size_mul(w->dilation[d], w->kernel[d] - 1);
    int64_t extent = tern_size_add(size, tern_size_mul(2, w->padding[d]));
    extent = tern_size_sub(tern_size_sub(extent, reach), 1);
    return extent < 0 ? 0 : tern_size_add(tern_size_div(extent, w->stride[d]), 1);
}

/* Returns the geometry for the kernels, right-aligned in three dims, of dense images (batch,
 * channels, size...) and dense columns (batch, channels window, count). */
static tern_columns columns_make(const tern_window *w, int64_t batch, int64_t channels,
                                 const int64_t *size)
{
    tern_columns c = {.batch = batch,
                      .channels = channels,
                      .size = {1, 1, 1},
                      .window = {1, 1, 1},
                      .count = {1, 1, 1},
                      .stride = {1, 1, 1},
                      .dilation = {1, 1, 1}};
    for (int d = 0; d < w->ndim; d++) {
        int to = 3 - w->ndim + d;
        c.size[to] = size[d];
        c.window[to] = w->kernel[d];
        c.count[to] = window_count(w, d, size[d]);
        c.stride[to] = w->stride[d];
        c.padding[to] = w->padding[d];
        c.dilation[to] = w->dilation[d];
    }
    int64_t window = tern_size_mul(tern_size_mul(c.window[0], c.window[1]), c.window[2]);
    c.x_channel = tern_size_mul(tern_size_mul(c.size[0], c.size[1]), c.size[2]);
    c.x_batch = tern_size_mul(c.x_channel, channels);
    c.y_row = tern_size_mul(tern_size_mul(c.count[0], c.count[1]), c.count[2]);
    c.y_batch = tern_size_mul(tern_size_mul(c.y_row, channels), window);
    return c;
}

static tern_columns columns_for(const columns_attributes *at, int64_t batch, int64_t channels)
{
    return columns_make(&at->window, batch, channels, at->size);
}

/* Returns the number of elements in a window. */
static int64_t window_size(const tern_window *w)
{
    int64_t n = 1;
    for (int d = 0; d < w->ndim; d++)
        n = tern_size_mul(n, w->kernel[d]);
    return n;
}

/* Launches one thread for each element of the result. fold gathers too: every pixel sums the
 * windows that contain it, so that no atomic addition is needed. The result of an empty input is
 * 0. */
static tern_status launch_columns(tern_call *call, const tern_kernel_ref *kernel,
                                  const tern_columns *c)
{
    tern_tensor *x = call->in[0], *y = call->out[0];
    if (y->numel == 0)
        return TERN_OK;
    if (x->numel == 0)
        return tern_zero_elements(y);
    return TERN_LAUNCH(call->place, kernel, y->dtype, tern_items(y->numel), tern_arg_out(y),
                       tern_arg_in(x), TERN_ARG_STRUCT(tern_columns, c));
}

/* (N, C, size...) -> (N, C kernel..., windows). */
static tern_status unfold_infer(tern_call *call)
{
    const columns_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_columns c = columns_for(at, x->shape[0], x->shape[1]);
    call->n_out = 1;
    call->result[0].dtype = x->dtype;
    call->result[0].shape = (tern_shape){
        3, {x->shape[0], tern_size_mul(x->shape[1], window_size(&at->window)), c.y_row}};
    return TERN_OK;
}

/* Computes y[n, (c, t), w] = x[n, c, w stride + t dilation - padding], 0 outside of the image
 * (im2col). */
static tern_status unfold_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"convolution", "unfold"};
    tern_columns c = columns_for(call->attributes, call->in[0]->shape[0], call->in[0]->shape[1]);
    return launch_columns(call, &kernel, &c);
}

/* unfold copies elements, so its gradient sums the copies, which is fold. */
static tern_status unfold_backward(tern_gradient *g)
{
    const columns_attributes *at = g->attributes;
    g->din[0] = tern_columns_sum(g->dout[0], &at->window, at->size);
    return g->din[0] ? TERN_OK : tern_last_status();
}

/* (N, C kernel..., windows) -> (N, C, size...). */
static tern_status fold_infer(tern_call *call)
{
    const columns_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_shape shape = {2, {x->shape[0], x->shape[1] / window_size(&at->window)}};
    for (int d = 0; d < at->window.ndim; d++)
        shape.dims[shape.ndim++] = at->size[d];
    call->n_out = 1;
    call->result[0].dtype = x->dtype;
    call->result[0].shape = shape;
    return tern_shape_numel(&shape, "tern_fold") < 0 ? tern_last_status() : TERN_OK;
}

/* Computes y[n, c, i] = the sum of x[n, (c, t), w] over all windows w and taps t with w stride + t
 * dilation - padding = i (col2im). This is unfold's transpose, not its inverse: an element in
 * several windows is counted once for each. */
static tern_status fold_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"convolution", "fold"};
    tern_columns c = columns_for(call->attributes, call->out[0]->shape[0], call->out[0]->shape[1]);
    return launch_columns(call, &kernel, &c);
}

/* Returns x (N, C, size...) as (N, C * kernel..., windows), differentiable. Bools are converted to
 * numbers. */
static tern_tensor *columns_of(tern_tensor *x, const tern_window *window);

/* The transpose of fold is unfold: dx = unfold(dy). */
static tern_status fold_backward(tern_gradient *g)
{
    const columns_attributes *at = g->attributes;
    g->din[0] = columns_of(g->dout[0], &at->window);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op unfold_op = {.name = "unfold",
                                  .takes = TERN_TAKES_FLOATS,
                                  .infer = unfold_infer,
                                  .forward = unfold_forward,
                                  .backward = unfold_backward};
static const tern_op fold_op = {.name = "fold",
                                .takes = TERN_TAKES_FLOATS,
                                .infer = fold_infer,
                                .forward = fold_forward,
                                .backward = fold_backward};

static tern_tensor *columns_of(tern_tensor *x, const tern_window *window)
{
    if (!(x = tern_contiguous(x)))
        return NULL;
    if (x->dtype == TERN_BOOL)
        return tern_to_dtype(columns_of(tern_to_dtype(x, TERN_F32), window), TERN_BOOL);
    columns_attributes at = {.window = *window};
    for (int d = 0; d < window->ndim; d++)
        at.size[d] = x->shape[2 + d];
    return tern_apply(&unfold_op, &x, 1, &at, sizeof at);
}

/* Returns fold of x, for the gradient of unfold and for the public function. */
tern_tensor *tern_columns_sum(tern_tensor *x, const tern_window *window, const int64_t *size)
{
    if (!(x = tern_contiguous(x)))
        return NULL;
    if (x->dtype == TERN_BOOL)
        return tern_to_dtype(tern_columns_sum(tern_to_dtype(x, TERN_F32), window, size), TERN_BOOL);
    columns_attributes at = {.window = *window};
    for (int d = 0; d < window->ndim; d++)
        at.size[d] = size[d];
    return tern_apply(&fold_op, &x, 1, &at, sizeof at);
}

/* ---- public functions: images of two dims ------------------------------------------------ */

/* Reads one number for both dims, two numbers, or no numbers if there is a default (none >= 0).
 * Each must be at least `least`. */
static tern_status pair(const tern_shape *given, int64_t none, int64_t least, int64_t out[3],
                        const char *name, const char *function)
{
    if (given->ndim < 0 || given->ndim > 2 || (given->ndim == 0 && none < 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: It is expected %s equals to 1 or 2, but got %d",
                         function, name, given->ndim);
    TERN_TRY(tern_check_window(given, name, function));
    for (int d = 0; d < 2; d++) {
        out[d] = given->ndim == 0 ? none : given->dims[given->ndim == 2 ? d : 0];
        if (out[d] < least)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: %s should be %s, but got %s %s", function,
                             name, least ? "greater than zero" : "non-negative", name,
                             TERN_SHAPE_TEXT(given));
    }
    return TERN_OK;
}

static tern_status read_window(tern_shape kernel_size, const tern_unfold_options *options,
                               tern_window *w, const char *function)
{
    const tern_unfold_options read = tern_read_unfold(options), *o = &read;
    w->ndim = 2;
    TERN_TRY(pair(&kernel_size, -1, 1, w->kernel, "kernel_size", function));
    TERN_TRY(pair(&o->dilation, 1, 1, w->dilation, "dilation", function));
    TERN_TRY(pair(&o->padding, 0, 0, w->padding, "padding", function));
    return pair(&o->stride, 1, 1, w->stride, "stride", function);
}

/* Returns the windows of x as columns. Without a batch dim x is a batch of one. */
tern_tensor *tern_unfold(tern_tensor *x, tern_shape kernel_size, const tern_unfold_options *options)
{
    tern_window w;
    if (!x)
        tern_fail_argument_null("tern_unfold", "x");
    if (!x || read_window(kernel_size, options, &w, "tern_unfold") != TERN_OK)
        return NULL;
    int first = x->ndim == 4 ? 1 : 0;
    bool filled = x->ndim == 3 || x->ndim == 4;
    for (int d = first; filled && d < x->ndim; d++)
        filled = x->shape[d] > 0;
    if (!filled)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_unfold: Expected 3D or 4D (batch mode) tensor with possibly 0 "
                              "batch size and other non-zero dimensions for input, but got: %s",
                              TERN_TENSOR_TEXT(x));
    int64_t height = x->shape[first + 1], width = x->shape[first + 2];
    int64_t down = window_count(&w, 0, height), across = window_count(&w, 1, width);
    if (down < 1 || across < 1)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_unfold: Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), "
            "dilation=(%lld, %lld), padding=(%lld, %lld), calculated shape of the array of sliding "
            "blocks as (%lld, %lld), but its components must be at least one.",
            (long long)height, (long long)width, (long long)w.kernel[0], (long long)w.kernel[1],
            (long long)w.dilation[0], (long long)w.dilation[1], (long long)w.padding[0],
            (long long)w.padding[1], (long long)down, (long long)across);
    if (x->ndim == 4)
        return columns_of(x, &w);
    return tern_squeeze_dim(columns_of(tern_unsqueeze(x, 0), &w), 0);
}

/* Returns the columns summed into images of output_size. Without a batch dim x is a batch of
 * one. */
tern_tensor *tern_fold(tern_tensor *x, tern_shape output_size, tern_shape kernel_size,
                       const tern_unfold_options *options)
{
    tern_window w;
    int64_t size[3];
    if (!x)
        tern_fail_argument_null("tern_fold", "x");
    if (!x || read_window(kernel_size, options, &w, "tern_fold") != TERN_OK ||
        pair(&output_size, -1, 1, size, "output_size", "tern_fold") != TERN_OK)
        return NULL;
    int first = x->ndim == 3 ? 1 : 0;
    if ((x->ndim != 2 && x->ndim != 3) || x->shape[first] == 0 || x->shape[first + 1] == 0)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_fold: Expected 2D or 3D (batch mode) tensor for input with "
            "possibly 0 batch size and non-zero dimensions for input, but got: %s",
            TERN_TENSOR_TEXT(x));
    long long rows = x->shape[first], columns = x->shape[first + 1];
    if (rows % (w.kernel[0] * w.kernel[1]) != 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_fold: Expected size of input's dimension 1 to be divisible by "
                              "the product of kernel_size, but got input.size(1)=%lld and "
                              "kernel_size=(%lld, %lld).",
                              rows, (long long)w.kernel[0], (long long)w.kernel[1]);
    long long down = window_count(&w, 0, size[0]), across = window_count(&w, 1, size[1]);
    long long windows = tern_size_mul(down, across);
    if (columns != windows || columns < 1)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_fold: Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, "
            "%lld), padding=(%lld, %lld), stride=(%lld, %lld), expected size of input's dimension "
            "2 "
            "to match the calculated number of sliding blocks %lld * %lld = %lld, but got "
            "input.size(2)=%lld.",
            (long long)size[0], (long long)size[1], (long long)w.kernel[0], (long long)w.kernel[1],
            (long long)w.dilation[0], (long long)w.dilation[1], (long long)w.padding[0],
            (long long)w.padding[1], (long long)w.stride[0], (long long)w.stride[1], down, across,
            windows, columns);
    if (x->ndim == 3)
        return tern_columns_sum(x, &w, size);
    return tern_squeeze_dim(tern_columns_sum(tern_unsqueeze(x, 0), &w, size), 0);
}
