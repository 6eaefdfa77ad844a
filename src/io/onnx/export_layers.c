/* export_layers.c -- exports products, convolutions, pools, norms and similar layers to ONNX. */
#include "io/onnx/export.h"
#include <string.h>

/* ---- products -------------------------------------------------------------------------------- */

/* Returns x with its last two dims swapped. */
static const char *transposed(onnx_export *w, const char *x, int ndim)
{
    int64_t dims[TERN_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        dims[d] = d == ndim - 1 ? ndim - 2 : d == ndim - 2 ? ndim - 1 : d;
    const char *y = ONNX_EMIT(w, "Transpose", x);
    onnx_put_ints(w, "perm", dims, ndim);
    return y;
}

static const char *scaled(onnx_export *w, const char *x, double by, tern_dtype dtype)
{
    return by == 1 ? x : ONNX_EMIT(w, "Mul", x, onnx_number(w, by, dtype));
}

/* Writes x weight^T + bias. Gemm takes matrices and needs no transposed copy of the weight. */
tern_status onnx_write_linear(onnx_export *w, const tern_traced_call *c)
{
    int x_ndim = onnx_in_shape(w, 0).ndim, w_ndim = onnx_in_shape(w, 1).ndim;
    const char *x = onnx_in_name(w, 0), *weight = onnx_in_name(w, 1), *bias = onnx_in_name(w, 2);
    (void)c;
    if (x_ndim == 2 && w_ndim == 2) {
        const char *y = ONNX_EMIT(w, "Gemm", x, weight, bias);
        onnx_put_int(w, "transB", 1);
        return onnx_done(w, y);
    }
    const char *y = ONNX_EMIT(w, "MatMul", x, w_ndim == 2 ? transposed(w, weight, 2) : weight);
    return onnx_done(w, bias ? ONNX_EMIT(w, "Add", y, bias) : y);
}

/* Returns alpha op(a) op(b), where a is input `first` and b the next one. */
static const char *product(onnx_export *w, int first)
{
    int64_t transpose[TERN_MAX_DIMS], insert[TERN_MAX_DIMS];
    const char *x[2];
    onnx_attr_list(w, "transpose", transpose);
    onnx_attr_list(w, "insert", insert);
    for (int i = 0; i < 2; i++) { /* MatMul treats vectors as rows and columns as tern does */
        int ndim = onnx_in_shape(w, first + i).ndim;
        x[i] = onnx_in_name(w, first + i);
        if (insert[i] && (ndim != 1 || transpose[i]))
            onnx_cannot(w, "a vector is transposed");
        if (transpose[i])
            x[i] = transposed(w, x[i], ndim);
    }
    if (onnx_attr(w, "sum"))
        onnx_cannot(w, "it sums over the batch");
    return scaled(w, onnx_emit(w, "MatMul", x, 2), onnx_attr_number(w, "alpha"),
                  onnx_in_dtype(w, 0));
}

tern_status onnx_write_matmul(onnx_export *w, const tern_traced_call *c)
{
    (void)c;
    return onnx_done(w, product(w, 0));
}

/* Writes beta input + alpha a b. */
tern_status onnx_write_addmm(onnx_export *w, const tern_traced_call *c)
{
    double beta = onnx_attr_number(w, "beta");
    (void)c;
    const char *y = product(w, 1);
    if (beta != 0)
        y = ONNX_EMIT(w, "Add", y, scaled(w, onnx_in_name(w, 0), beta, onnx_in_dtype(w, 0)));
    return onnx_done(w, y);
}

/* ---- windows --------------------------------------------------------------------------------- */

typedef struct windows {
    int dims;
    int64_t size[TERN_MAX_DIMS], stride[TERN_MAX_DIMS], padding[TERN_MAX_DIMS],
        dilation[TERN_MAX_DIMS];
    int64_t more[TERN_MAX_DIMS]; /* additional padding after x */
} windows;

static windows windows_of(onnx_export *w)
{
    windows v = {.dims = (int)onnx_attr(w, "dims")};
    int64_t all[TERN_MAX_DIMS] = {0};
    static const char *const names[] = {"kernel_size", "stride", "padding", "dilation"};
    int64_t *const lists[] = {v.size, v.stride, v.padding, v.dilation};
    for (int i = 0; i < 4; i++) {
        onnx_attr_list(w, names[i], all);
        memcpy(lists[i], all + 3 - v.dims, sizeof *all * (size_t)v.dims);
    }
    return v;
}

static void put_windows(onnx_export *w, const windows *v, bool dilated)
{
    int64_t pads[2 * TERN_MAX_DIMS];
    for (int d = 0; d < v->dims; d++) {
        pads[d] = v->padding[d];
        pads[v->dims + d] = v->padding[d] + v->more[d];
    }
    onnx_put_ints(w, "kernel_shape", v->size, v->dims);
    onnx_put_ints(w, "strides", v->stride, v->dims);
    onnx_put_ints(w, "pads", pads, 2 * v->dims);
    if (dilated)
        onnx_put_ints(w, "dilations", v->dilation, v->dims);
}

tern_status onnx_write_convolution(onnx_export *w, const tern_traced_call *c)
{
    windows v = windows_of(w);
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    (void)c;
    for (int d = 0; d < v.dims; d++) { /* TERN_PADDING_SAME with even kernel sizes pads more after
                                          x */
        int64_t reach = (to.dims[2 + d] - 1) * v.stride[d] + v.dilation[d] * (v.size[d] - 1) + 1;
        int64_t more = reach - from.dims[2 + d] - 2 * v.padding[d];
        v.more[d] = more > 0 ? more : 0;
    }
    const char *y =
        ONNX_EMIT(w, "Conv", onnx_in_name(w, 0), onnx_in_name(w, 1), onnx_in_name(w, 2));
    put_windows(w, &v, true);
    onnx_put_int(w, "group", onnx_attr(w, "groups"));
    return onnx_done(w, y);
}

/* Writes a ConvTranspose. The output_padding follows from the size of the result. */
tern_status onnx_write_conv_transpose(onnx_export *w, const tern_traced_call *c)
{
    windows v = windows_of(w);
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    int64_t more[TERN_MAX_DIMS];
    (void)c;
    for (int d = 0; d < v.dims; d++)
        more[d] = to.dims[2 + d] - (from.dims[2 + d] - 1) * v.stride[d] + 2 * v.padding[d] -
                  v.dilation[d] * (v.size[d] - 1) - 1;
    const char *y = ONNX_EMIT(w, "ConvTranspose", onnx_in_name(w, 0), onnx_in_name(w, 1));
    put_windows(w, &v, true);
    onnx_put_int(w, "group", onnx_attr(w, "groups"));
    onnx_put_ints(w, "output_padding", more, v.dims);
    return onnx_done(w, y);
}

/* Sets v to windows of equal size that cover x exactly. Returns false if there are none. */
static bool equal_windows(const onnx_export *w, windows *v)
{
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    int first = from.ndim - v->dims;
    for (int d = 0; d < v->dims; d++) {
        int64_t in = from.dims[first + d], out = to.dims[first + d];
        if (out < 1 || in % out)
            return false;
        v->size[d] = v->stride[d] = in / out;
        v->padding[d] = 0;
        v->dilation[d] = 1;
    }
    return true;
}

/* Returns whether the last windows extend beyond the padding (ceil_mode). */
static bool rounds_up(const onnx_export *w, const windows *v)
{
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    int first = from.ndim - v->dims;
    for (int d = 0; d < v->dims; d++)
        if ((to.dims[first + d] - 1) * v->stride[d] + v->dilation[d] * (v->size[d] - 1) + 1 >
            from.dims[first + d] + 2 * v->padding[d])
            return true;
    return false;
}

tern_status onnx_write_pool(onnx_export *w, const tern_traced_call *c)
{
    bool is_max = !strcmp(c->op, "max_pool");
    windows v = windows_of(w);
    if (onnx_attr(w, "adaptive") && !equal_windows(w, &v))
        return onnx_cannot(w, "its windows are of different sizes");
    tern_shape shape = onnx_in_shape(w, 0);
    int64_t divisor = onnx_attr(w, "divisor"), elements = 1, plane = 1;
    for (int d = 0; d < v.dims; d++) {
        elements *= v.size[d];
        plane *= shape.dims[shape.ndim - v.dims + d];
    }
    const char *x = onnx_in_name(w, 0);
    bool alone = shape.ndim == v.dims + 1;
    int64_t first = 0;
    if (alone)
        x = ONNX_EMIT(w, "Unsqueeze", x, onnx_ints_of(w, &first, 1));
    const char *y = ONNX_EMIT(w, is_max ? "MaxPool" : "AveragePool", x);
    const char *places = is_max && onnx_is_used(w, 1) ? onnx_another(w) : NULL;
    put_windows(w, &v, is_max);
    if (rounds_up(w, &v))
        onnx_put_int(w, "ceil_mode", 1);
    if (!is_max)
        onnx_put_int(w, "count_include_pad", divisor || onnx_attr(w, "count_include_pad"));
    if (!is_max && divisor)
        y = scaled(w, y, (double)elements / (double)divisor, onnx_in_dtype(w, 0));
    onnx_done(w, alone ? ONNX_EMIT(w, "Squeeze", y, onnx_ints_of(w, &first, 1)) : y);
    if (places) { /* ONNX's indices count in the whole tensor, tern's in the plane, which is the
                     remainder */
        places = ONNX_EMIT(w, "Mod", places, onnx_ints_of(w, &plane, 1));
        onnx_result(w, 1, onnx_reshape_to(w, places, c->out[1]));
    }
    return w->status;
}

tern_status onnx_write_interpolate(onnx_export *w, const tern_traced_call *c)
{
    static const char *const modes[] = {"nearest", "nearest", "linear", "cubic"};
    static const char *const scales[] = {"scale0", "scale1", "scale2"};
    tern_shape from = onnx_in_shape(w, 0), to = onnx_out_shape(w, 0);
    int64_t mode = onnx_attr(w, "mode"), align = onnx_attr(w, "align_corners");
    int dims = from.ndim - 2;
    double factor[3];
    int64_t axes[3];
    if (!c->names || mode > 3)
        return onnx_cannot(w, "ONNX has no such weights");
    bool by_size = true;
    for (int d = 0; d < dims; d++) {
        double in = (double)from.dims[2 + d], out = (double)to.dims[2 + d];
        factor[d] = 1 / onnx_attr_number(w, scales[3 - dims + d]);
        by_size =
            by_size && (align || (factor[d] * in - out < 1e-9 && out - factor[d] * in < 1e-9));
        axes[d] = 2 + d;
    }
    tern_tensor *x = tern_to_dtype(
        tern_from_data((const void *)factor, TERN_SHAPE(dims), TERN_F64, "cpu"), TERN_F32);
    const char *size = by_size ? onnx_ints_of(w, &to.dims[2], dims) : NULL;
    const char *scale = by_size ? NULL : onnx_constant_of(w, x);
    const char *y = ONNX_EMIT(w, "Resize", onnx_in_name(w, 0), NULL, scale, size);
    onnx_put_ints(w, "axes", axes, dims);
    onnx_put_text(w, "mode", modes[mode]);
    onnx_put_text(w, "coordinate_transformation_mode",
                  align       ? "align_corners"
                  : mode == 0 ? "asymmetric"
                              : "half_pixel");
    if (mode < 2)
        onnx_put_text(w, "nearest_mode", mode ? "round_prefer_ceil" : "floor");
    if (mode == 3)
        onnx_put_real(w, "cubic_coeff_a", -0.75);
    return onnx_done(w, y);
}

tern_status onnx_write_grid_sample(onnx_export *w, const tern_traced_call *c)
{
    static const char *const modes[] = {"nearest", "nearest", "linear", "cubic"},
                             *const paddings[] = {"zeros", "border", "reflection"};
    (void)c;
    int64_t mode = onnx_attr(w, "mode"), padding = onnx_attr(w, "padding_mode");
    const char *y = ONNX_EMIT(w, "GridSample", onnx_in_name(w, 0), onnx_in_name(w, 1));
    onnx_put_text(w, "mode", modes[mode]);
    onnx_put_text(w, "padding_mode", paddings[padding]);
    onnx_put_int(w, "align_corners", onnx_attr(w, "align_corners"));
    return onnx_done(w, y);
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* Returns the name of input i, or a constant filled with `otherwise` if it is omitted. */
static const char *parameter(onnx_export *w, int i, double otherwise, tern_shape shape)
{
    if (onnx_has(w, i))
        return onnx_in_name(w, i);
    tern_tensor *x = tern_full(shape, TERN_SCALAR(otherwise), onnx_in_dtype(w, 0), "cpu");
    return onnx_constant_of(w, x);
}

static const char *mean_of(onnx_export *w, const char *x, const int64_t *dims, int n)
{
    return ONNX_EMIT(w, "ReduceMean", x, onnx_ints_of(w, dims, n));
}

/* Returns x / sqrt(mean x^2 + eps). */
static const char *normalized(onnx_export *w, const char *x, const int64_t *dims, int n)
{
    const char *eps = onnx_number(w, onnx_attr_number(w, "eps"), onnx_in_dtype(w, 0));
    const char *variance = mean_of(w, ONNX_EMIT(w, "Mul", x, x), dims, n);
    return ONNX_EMIT(w, "Div", x, ONNX_EMIT(w, "Sqrt", ONNX_EMIT(w, "Add", variance, eps)));
}

/* Writes a normalization with the statistics of the batch, over all dims but the second. A module
 * without running statistics uses it in evaluation. */
static const char *batch_statistics(onnx_export *w)
{
    int64_t dims[TERN_MAX_DIMS], channel[TERN_MAX_DIMS];
    tern_shape shape = onnx_in_shape(w, 0);
    int n = 0;
    for (int d = 0; d < shape.ndim; d++) {
        if (d != 1)
            dims[n++] = d;
        channel[d] = d == 1 ? -1 : 1;
    }
    const char *x = onnx_in_name(w, 0);
    const char *y = normalized(w, ONNX_EMIT(w, "Sub", x, mean_of(w, x, dims, n)), dims, n);
    static const char *const types[] = {"Mul", "Add"};
    for (int i = 1; i <= 2; i++)
        if (onnx_has(w, i)) {
            const char *p = ONNX_EMIT(w, "Reshape", onnx_in_name(w, i),
                                      onnx_ints_of(w, channel + 1, shape.ndim - 1));
            y = ONNX_EMIT(w, types[i - 1], y, p);
        }
    return y;
}

tern_status onnx_write_batch_norm(onnx_export *w, const tern_traced_call *c)
{
    (void)c;
    if (onnx_attr(w, "training"))
        return onnx_done(w, batch_statistics(w));
    tern_shape channels = TERN_SHAPE(onnx_in_shape(w, 0).dims[1]);
    const char *y =
        ONNX_EMIT(w, "BatchNormalization", onnx_in_name(w, 0), parameter(w, 1, 1, channels),
                  parameter(w, 2, 0, channels), onnx_in_name(w, 3), onnx_in_name(w, 4));
    onnx_put_real(w, "epsilon", onnx_attr_number(w, "eps"));
    return onnx_done(w, y);
}

tern_status onnx_write_layer_norm(onnx_export *w, const tern_traced_call *c)
{
    tern_shape shape = {0};
    (void)c;
    shape.ndim = onnx_attr_list(w, "normalized_shape", shape.dims);
    const char *y = ONNX_EMIT(w, "LayerNormalization", onnx_in_name(w, 0),
                              parameter(w, 1, 1, shape), onnx_in_name(w, 2));
    onnx_put_int(w, "axis", -shape.ndim);
    onnx_put_real(w, "epsilon", onnx_attr_number(w, "eps"));
    return onnx_done(w, y);
}

tern_status onnx_write_rms_norm(onnx_export *w, const tern_traced_call *c)
{
    int64_t dims[TERN_MAX_DIMS];
    (void)c;
    int n = onnx_attr_list(w, "normalized_shape", dims);
    for (int i = 0; i < n; i++)
        dims[i] = i - n;
    const char *y = normalized(w, onnx_in_name(w, 0), dims, n);
    return onnx_done(w, onnx_has(w, 1) ? ONNX_EMIT(w, "Mul", y, onnx_in_name(w, 1)) : y);
}

/* Writes a softmax of the last dim, to which the traced calls have moved the dim of the softmax. */
tern_status onnx_write_softmax(onnx_export *w, const tern_traced_call *c)
{
    const char *y = ONNX_EMIT(w, c->op[0] == 'l' ? "LogSoftmax" : "Softmax", onnx_in_name(w, 0));
    onnx_put_int(w, "axis", -1);
    return onnx_done(w, y);
}
