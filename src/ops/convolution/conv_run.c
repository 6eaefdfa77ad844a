/* conv_run.c -- how a convolution is computed: by the vendor's routine, or by matrix products of
 * columns (im2col), or directly.
 *
 * In im2col, each tap of each channel is a row with the element of x that it reads for every
 * output. Then
 *   y_n = weight columns_n,   dcolumns_n = weight^T dy_n, dweight = sum over n of dy_n columns_n^T
 * and dx gathers from dcolumns. The columns of as many images as fit in COLUMN_BYTES are computed
 * at once. A kernel of one tap with stride 1 needs no columns. Groups of few channels are summed
 * directly. The 16-bit types are computed in float32. */
#include "ops/convolution/convolution.h"
#include "ops/copy/copy.h"
#include "tensor/tensor.h"
#include <string.h>

enum { COLUMN_BYTES = 4 << 20, SMALL = 4 };

typedef struct conv {
    tern_conv_pass pass;
    tern_conv_shape s;
    int64_t ins, outs, taps; /* elements of a plane of x, of a plane of y, and of a kernel */
    tern_tensor *x, *weight, *y, *bias;
    tern_place *place;
    bool last;        /* all tensors are channels_last (memory_format.h) */
    bool accumulates; /* the result is added to; dx only, by a vendor's routine or one product */
} conv;

/* Returns the product of three dims. */
static int64_t volume(const int64_t *dims)
{
    return dims[0] * dims[1] * dims[2];
}

/* Returns the tensor that this pass computes. The other two are its inputs. */
static tern_tensor *result_of(const conv *c)
{
    return c->pass == TERN_CONV_Y ? c->y : c->pass == TERN_CONV_X ? c->x : c->weight;
}

/* ---- direct computation ------------------------------------------------------------------ */

/* Computes the sums without columns. q is a position of the output, t a position of the kernel, and
 * i = q stride + t dilation - padding the element of x that q and t read:
 *   y[n, o, q]       = bias[o] + sum over c, t of weight[o, c, t] x[n, c, i]
 *   dx[n, c, i]      = sum over o and the q, t that read i of weight[o, c, t] dy[n, o, q]
 *   dweight[o, c, t] = sum over n, q of dy[n, o, q] x[n, c, i]
 * c and o are channels of one group. A group of threads computes a plane of y, a plane of x, or an
 * element of the weight, without atomic additions, so the result is deterministic. */
static tern_status run_direct(const conv *c)
{
    static const tern_kernel_ref forward = {"convolution", "conv_direct"},
                                 dx = {"convolution", "conv_direct_dx"},
                                 dw = {"convolution", "conv_direct_dw"};
    const tern_conv_shape *s = &c->s;
    int64_t work = s->n * s->o * c->outs * (s->c / s->groups) * c->taps;
    int64_t groups = c->pass == TERN_CONV_Y   ? s->n * s->o
                     : c->pass == TERN_CONV_X ? s->n * s->c
                                              : s->o * (s->c / s->groups) * c->taps;
    tern_grid grid = tern_groups(groups, work / groups + 1);
    tern_dtype dtype = c->x->dtype;
    if (c->pass == TERN_CONV_Y)
        return TERN_LAUNCH(c->place, &forward, dtype, grid, tern_arg_out(c->y), tern_arg_in(c->x),
                           tern_arg_in(c->weight), tern_arg_optional(c->bias, c->weight),
                           TERN_ARG_STRUCT(tern_conv_shape, s), tern_arg_i32(c->bias != NULL));
    if (c->pass == TERN_CONV_X)
        return TERN_LAUNCH(c->place, &dx, dtype, grid, tern_arg_out(c->x), tern_arg_in(c->y),
                           tern_arg_in(c->weight), TERN_ARG_STRUCT(tern_conv_shape, s));
    return TERN_LAUNCH(c->place, &dw, dtype, grid, tern_arg_out(c->weight), tern_arg_in(c->x),
                       tern_arg_in(c->y), TERN_ARG_STRUCT(tern_conv_shape, s));
}

/* ---- columns ----------------------------------------------------------------------------- */

/* Memory of the columns of some images: [channel and tap][image][output]. */
typedef struct columns {
    const tern_buffer *buffer;
    int64_t at, image, row; /* first element; stride of images, of rows */
    int64_t first, images;  /* the images first to first + images - 1 */
    bool are_x;             /* x itself is used as its columns */
} columns;

/* Computes the columns of some images before a product (im2col), or its transpose after the product
 * (col2im), in which every element of x gathers from the columns that it was copied to. This needs
 * no atomic addition. */
static tern_status launch_columns(const conv *c, const tern_tensor *cols, int64_t first,
                                  int64_t images)
{
    static const tern_kernel_ref make = {"convolution", "conv_columns"},
                                 gather = {"convolution", "conv_gather"};
    bool back = c->pass == TERN_CONV_X;
    tern_arg x = back ? tern_arg_out(c->x) : tern_arg_in(c->x);
    x.at += first * c->s.c * c->ins;
    int64_t each = back ? c->taps : 1;
    return TERN_LAUNCH(c->place, back ? &gather : &make, c->x->dtype,
                       tern_groups(images * c->s.c * c->taps / each, c->outs * each),
                       back ? x : tern_arg_out(cols), back ? tern_arg_in(cols) : x,
                       TERN_ARG_STRUCT(tern_conv_shape, &c->s), tern_arg_i64(images));
}

/* Returns the matrix product of this pass, for each group of channels, with each = (c / groups)
 * taps:
 *   y:      (o / groups, each) (each, outs) for every image; beta = 1 if y holds the bias
 *   x:      the weight transposed, (each, o / groups) (o / groups, outs) for every image
 *   weight: (o / groups, images outs) (images outs, each), one reduction over images and
 *   outputs, for which `channels` is y with the channels first; beta = 1 adds up the chunks */
static tern_gemm product_of(const conv *c, const columns *k, const tern_tensor *channels)
{
    const tern_conv_shape *s = &c->s;
    int64_t of_group = s->o / s->groups, each = s->c / s->groups * c->taps, outs = c->outs;
    tern_matrix w = {.buffer = &c->weight->storage->block->buffer,
                     .at = c->weight->offset,
                     .row = each,
                     .col = 1,
                     .batch = {0, of_group * each}};
    tern_matrix y = {.buffer = &c->y->storage->block->buffer,
                     .at = c->y->offset + k->first * s->o * outs,
                     .row = outs,
                     .col = 1,
                     .batch = {s->o * outs, of_group * outs}};
    tern_matrix cols = {.buffer = k->buffer,
                        .at = k->at,
                        .row = k->row,
                        .col = 1,
                        .batch = {k->image, each * k->row}};
    tern_gemm g = {.dtype = c->x->dtype, .count = {k->images, s->groups}, .alpha = 1};
    switch (c->pass) {
    case TERN_CONV_Y:
        g.m = of_group, g.n = outs, g.k = each;
        g.a = w, g.b = cols, g.c = y;
        g.beta = c->bias ? 1 : 0;
        break;
    case TERN_CONV_X:
        g.m = each, g.n = outs, g.k = of_group;
        g.a = w, g.b = y, g.c = cols;
        g.a.row = 1, g.a.col = each;
        g.beta = c->accumulates ? 1 : 0;
        break;
    case TERN_CONV_WEIGHT:
        g.m = of_group, g.n = each, g.k = k->images * outs;
        g.count[0] = 1;
        g.a = (tern_matrix){.buffer = &channels->storage->block->buffer,
                            .at = channels->offset + k->first * outs,
                            .row = s->n * outs,
                            .col = 1,
                            .batch = {0, of_group * s->n * outs}};
        g.b = cols, g.c = w;
        g.b.row = 1, g.b.col = k->row;
        g.beta = k->first > 0 ? 1 : 0;
        break;
    }
    return g;
}

/* Returns a copy of y with channels before images, (o, n, out). Its rows are dense over all images,
 * so that dweight is one long product instead of a sum of one product per image. */
static tern_tensor *channels_first(const conv *c)
{
    const tern_conv_shape *s = &c->s;
    tern_shape shape = {3, {s->o, s->n, c->outs}};
    tern_tensor *copy = tern_tensor_new(&shape, c->y->dtype, c->place, "tern_convolution");
    const int64_t stride[] = {c->outs, s->o * c->outs, 1};
    tern_tensor *view = copy ? tern_tensor_alias(c->y, &shape, stride, c->y->offset) : NULL;
    if (view && tern_copy_elements(copy, view) == TERN_OK) {
        tern_release(view);
        return copy;
    }
    tern_release(view);
    tern_release(copy);
    return NULL;
}

/* Computes y = bias, or y += bias if `add`. The bias is broadcast over images and positions by a
 * stride of 0. */
static tern_status write_bias(const conv *c, bool add)
{
    tern_shape shape = {3, {c->s.n, c->s.o, c->outs}};
    const int64_t y_stride[] = {c->s.o * c->outs, c->last ? 1 : c->outs, c->last ? c->s.o : 1};
    const int64_t b_stride[] = {0, 1, 0};
    tern_tensor *y = tern_tensor_alias(c->y, &shape, y_stride, c->y->offset);
    tern_tensor *b = y ? tern_tensor_alias(c->bias, &shape, b_stride, c->bias->offset) : NULL;
    tern_status status = b ? TERN_OK : tern_last_status();
    if (b && !add)
        status = tern_copy_elements(y, b);
    else if (b && !tern_add_(y, b))
        status = tern_last_status();
    tern_release(y);
    tern_release(b);
    return status;
}

/* Computes one chunk of images: columns and then the product, or for dx the product and then the
 * gather. */
static tern_status run_chunk(const conv *c, columns *k, const tern_tensor *cols,
                             const tern_tensor *channels)
{
    bool back = c->pass == TERN_CONV_X;
    if (!k->are_x && !back)
        TERN_TRY(launch_columns(c, cols, k->first, k->images));
    tern_gemm g = product_of(c, k, channels);
    TERN_TRY(tern_launch_gemm(c->place, &g));
    return k->are_x || !back ? TERN_OK : launch_columns(c, cols, k->first, k->images);
}

/* Returns whether the kernel is 1 x 1 with stride 1 and no padding, and also no padding of a
 * transposed convolution's output. Then x is its own columns, and nothing is copied. */
static bool is_pointwise(const tern_conv_shape *s)
{
    for (int d = 0; d < 3; d++)
        if (s->window[d] != 1 || s->stride[d] != 1 || s->padding[d] != 0 || s->in[d] != s->out[d])
            return false;
    return true;
}

/* Computes all images in chunks whose columns fit in COLUMN_BYTES, so that the columns are still in
 * the cache when the product reads them. x is used as its own columns if the kernel is pointwise;
 * for dweight only with one image, since the columns must be dense over the images there. */
static tern_status run_columns(const conv *c)
{
    const tern_conv_shape *s = &c->s;
    int64_t rows = s->c * c->taps;
    int64_t fit = COLUMN_BYTES / (rows * c->outs * (int64_t)tern_dtype_size(c->x->dtype));
    bool are_x = is_pointwise(s) && (c->pass != TERN_CONV_WEIGHT || s->n == 1);
    int64_t images = are_x || fit > s->n ? s->n : fit < 1 ? 1 : fit;
    tern_tensor *cols = NULL, *channels = NULL;
    tern_status status = TERN_OK;
    if (c->pass == TERN_CONV_Y && c->bias)
        TERN_TRY(write_bias(c, false));
    if (!are_x) {
        tern_shape shape = {1, {rows * images * c->outs}};
        cols = tern_tensor_new(&shape, c->x->dtype, c->place, "tern_convolution");
        status = cols ? TERN_OK : tern_last_status();
    }
    if (status == TERN_OK && c->pass == TERN_CONV_WEIGHT) {
        channels = channels_first(c);
        status = channels ? TERN_OK : tern_last_status();
    }
    for (int64_t first = 0; status == TERN_OK && first < s->n; first += images) {
        columns k = {.first = first, .images = s->n - first < images ? s->n - first : images};
        const tern_tensor *in = are_x ? c->x : cols;
        k.are_x = are_x;
        k.buffer = &in->storage->block->buffer;
        k.at = in->offset + (are_x ? first * rows * c->outs : 0);
        k.row = are_x ? c->outs : k.images * c->outs;
        k.image = are_x ? rows * c->outs : c->outs;
        status = run_chunk(c, &k, cols, channels);
    }
    tern_release(cols);
    tern_release(channels);
    return status;
}

/* ---- choice of the algorithm ------------------------------------------------------------- */

/* Computes the convolution by the vendor's routine, if there is one that supports it; otherwise
 * *taken is false. If the routine does not support a bias, the bias is added afterwards. */
static tern_status run_vendor(const conv *c, bool *taken)
{
    tern_convolution v = {.dtype = c->x->dtype,
                          .pass = c->pass,
                          .shape = &c->s,
                          .deterministic = tern_are_deterministic_algorithms_enabled()};
    v.accumulates = c->accumulates;
    v.channels_last = c->last;
    v.x = tern_arg_tensor(c->x);
    v.weight = tern_arg_tensor(c->weight);
    v.y = tern_arg_tensor(c->y);
    if (c->bias)
        v.bias = tern_arg_tensor(c->bias);
    TERN_TRY(tern_launch_convolution(c->place, &v, taken));
    if (*taken || !c->bias || !tern_place_leaves_bias(c->place))
        return TERN_OK;
    v.bias = (tern_arg){.buffer = NULL};
    TERN_TRY(tern_launch_convolution(c->place, &v, taken));
    return *taken ? write_bias(c, true) : TERN_OK;
}

/* Returns whether to sum directly: for depthwise convolutions and others with few channels per
 * group, whose matrix products would be too small, and for integers, whose sums wrap around. */
static bool is_direct(const conv *c)
{
    const tern_conv_shape *s = &c->s;
    int64_t of_group = s->o / s->groups, each = s->c / s->groups;
    return (of_group * each <= SMALL && s->groups > 1) ||
           tern_dtype_in(c->x->dtype, TERN_SET_WHOLES);
}
static tern_status run_without_vendor(const conv *c)
{
    return is_direct(c) ? run_direct(c) : run_columns(c);
}

/* Returns a float32 tensor like x, which the caller releases, with the values of x if `fill` (x is
 * an input). */
static tern_tensor *as_f32(const tern_tensor *x, bool fill)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *y = tern_tensor_new(&shape, TERN_F32, x->storage->place, "tern_convolution");
    if (y && fill && tern_copy_elements(y, x) != TERN_OK) {
        tern_release(y);
        return NULL;
    }
    return y;
}

/* Computes half precision that no routine supports: the inputs are converted to float32 and the
 * result is rounded once. The vendor's routine is tried again, since it may support float32. */
static tern_status run_half_precision(const conv *c)
{
    conv wide = *c;
    tern_tensor **const all[] = {&wide.x, &wide.weight, &wide.y, &wide.bias};
    tern_tensor *made[4] = {0}, *result = result_of(c);
    tern_status status = TERN_OK;
    for (int i = 0; status == TERN_OK && i < 4; i++)
        if (*all[i]) {
            made[i] = as_f32(*all[i], *all[i] != result);
            status = made[i] ? TERN_OK : tern_last_status();
            *all[i] = made[i];
        }
    bool taken = false;
    if (status == TERN_OK)
        status = run_vendor(&wide, &taken);
    if (status == TERN_OK && !taken)
        status = run_without_vendor(&wide);
    if (status == TERN_OK)
        status = tern_copy_elements(result, result_of(&wide));
    for (int i = 0; i < 4; i++)
        tern_release(made[i]);
    return status;
}

/* Computes a sum over nothing: zeros, or the bias. */
static tern_status run_empty(const conv *c)
{
    tern_tensor *result = result_of(c);
    return result->numel && c->bias ? write_bias(c, false) : tern_zero_elements(result);
}

static conv conv_of(tern_conv_pass pass, const tern_conv_shape *s, tern_tensor *x,
                    tern_tensor *weight, tern_tensor *y)
{
    return (conv){.pass = pass,
                  .s = *s,
                  .ins = volume(s->in),
                  .outs = volume(s->out),
                  .taps = volume(s->window),
                  .x = x,
                  .weight = weight,
                  .y = y,
                  .place = x->storage->place};
}

/* Returns a new contiguous tensor like x, which the caller releases, with the values of x if `fill`
 * (x is an input). */
static tern_tensor *in_rows(const tern_tensor *x, bool fill)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *y = tern_tensor_new(&shape, x->dtype, x->storage->place, "tern_convolution");
    if (y && fill && tern_copy_elements(y, x) != TERN_OK) {
        tern_release(y);
        return NULL;
    }
    return y;
}

/* Computes a convolution of channels_last tensors: by the vendor's routine for that format, or in
 * contiguous copies. */
static tern_status run_last(const conv *c)
{
    bool taken = false;
    conv other = *c;
    tern_tensor *result = result_of(c), *made[3] = {0};
    tern_tensor **const all[] = {&other.x, &other.weight, &other.y};
    tern_status status = TERN_OK;
    if (c->x->numel && c->weight->numel && c->y->numel) {
        other.last = true;
        status = run_vendor(&other, &taken);
    }
    if (status == TERN_OK && !taken) {
        other.last = false;
        for (int i = 0; status == TERN_OK && i < 3; i++)
            if (!(*all[i])->contiguous) {
                made[i] = in_rows(*all[i], *all[i] != result);
                status = made[i] ? TERN_OK : tern_last_status();
                *all[i] = made[i];
            }
        if (status == TERN_OK)
            status = tern_conv_run(c->pass, &c->s, other.x, other.weight, other.y, c->bias, false);
    }
    if (status == TERN_OK && result_of(&other) != result)
        status = tern_copy_elements(result, result_of(&other));
    for (int i = 0; i < 3; i++)
        tern_release(made[i]);
    return status;
}

/* The vendor's routine is tried first, since it is the fastest. */
tern_status tern_conv_run(tern_conv_pass pass, const tern_conv_shape *s, tern_tensor *x,
                          tern_tensor *weight, tern_tensor *y, tern_tensor *bias,
                          bool channels_last)
{
    conv c = conv_of(pass, s, x, weight, y);
    c.bias = bias;
    bool taken;
    if (channels_last)
        return run_last(&c);
    if (x->numel == 0 || weight->numel == 0 || y->numel == 0)
        return run_empty(&c);
    if (tern_dtype_in(x->dtype, TERN_SET_WHOLES))
        return run_without_vendor(&c);
    TERN_TRY(run_vendor(&c, &taken));
    if (taken)
        return TERN_OK;
    return tern_dtype_size(x->dtype) == 2 ? run_half_precision(&c) : run_without_vendor(&c);
}

tern_status tern_conv_add_x(const tern_conv_shape *s, tern_tensor *x, tern_tensor *weight,
                            tern_tensor *y, bool *taken)
{
    conv c = conv_of(TERN_CONV_X, s, x, weight, y);
    c.accumulates = true;
    *taken = false;
    if (x->numel == 0 || weight->numel == 0 || y->numel == 0)
        return TERN_OK;
    TERN_TRY(run_vendor(&c, taken));
    if (*taken || !is_pointwise(s) || tern_dtype_size(x->dtype) == 2 || is_direct(&c))
        return TERN_OK;
    *taken = true;
    return run_columns(&c);
}
