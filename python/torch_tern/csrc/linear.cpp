/* linear.cpp -- convolutions and linear layers. */
#include "torch_tern.h"

namespace torch_tern
{

using Three = std::tuple<Tensor, Tensor, Tensor>;

/* ---- convolutions ---------------------------------------------------------------------------- */

struct Convolution {
    tern_shape stride, padding, dilation, output_padding;
    int64_t groups;
    int n; /* spatial dims */
};

static Convolution convolution_of(c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                                  c10::SymIntArrayRef dilation, c10::SymIntArrayRef output_padding,
                                  const c10::SymInt &groups, int64_t n)
{
    return {shape(stride),         shape(padding),      shape(dilation),
            shape(output_padding), groups.expect_int(), (int)n};
}

static tern_tensor *transposed_convolution(const Convolution &c, tern_tensor *x, tern_tensor *w,
                                           tern_tensor *b)
{
    tern_conv_transpose_function_options options = tern_conv_transpose_function_defaults();
    options.stride = c.stride;
    options.padding = c.padding;
    options.dilation = c.dilation;
    options.output_padding = c.output_padding;
    options.groups = c.groups;
    return c.n == 1   ? tern_conv_transpose1d(x, w, b, &options)
           : c.n == 2 ? tern_conv_transpose2d(x, w, b, &options)
                      : tern_conv_transpose3d(x, w, b, &options);
}

static tern_tensor *plain_convolution(const Convolution &c, tern_tensor *x, tern_tensor *w,
                                      tern_tensor *b)
{
    tern_conv_function_options options = tern_conv_function_defaults();
    options.stride = c.stride;
    options.padding = c.padding;
    options.dilation = c.dilation;
    options.groups = c.groups;
    return c.n == 1   ? tern_conv1d(x, w, b, &options)
           : c.n == 2 ? tern_conv2d(x, w, b, &options)
                      : tern_conv3d(x, w, b, &options);
}

static Tensor convolution(const Tensor &x, const Tensor &w, const OptionalTensor &b,
                          c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                          c10::SymIntArrayRef dilation, bool transposed,
                          c10::SymIntArrayRef output_padding, c10::SymInt groups)
{
    SERVED("convolution_overrideable");
    Frame frame;
    const Convolution c =
        convolution_of(stride, padding, dilation, output_padding, groups, x.dim() - 2);
    tern_tensor *result = transposed ? transposed_convolution(c, lend(x), lend(w), lend(b))
                                     : plain_convolution(c, lend(x), lend(w), lend(b));
    return take(result, x.device().index(), "convolution");
}

static int64_t of_dim(const tern_shape &values, int i)
{
    return values.dims[values.ndim == 1 ? 0 : i];
}

/* dx and dw of a convolution without the convolution itself: dx is the transposed convolution of
 * dy, and dw the gradient of that with respect to the weight, for x in place of dy, since
 * <convT(dy, w), x> = <dy, conv(x, w)>. */
static void gradients_of_plain(Convolution c, const Tensor &x, const Tensor &w, const Tensor &grad,
                               bool wants_weight, tern_tensor **dx, tern_tensor **dw)
{
    c.output_padding = tern_shape{};
    c.output_padding.ndim = c.n;
    for (int i = 0; i < c.n; i++)
        c.output_padding.dims[i] =
            x.size(i + 2) -
            ((grad.size(i + 2) - 1) * of_dim(c.stride, i) - 2 * of_dim(c.padding, i) +
             of_dim(c.dilation, i) * (w.size(i + 2) - 1) + 1);
    Tensors leaves = leaves_of({lend(w)}, {wants_weight});
    Recording recording;
    *dx = transposed_convolution(c, lend(grad), leaves[0], nullptr);
    check(*dx != nullptr, "convolution_backward");
    if (wants_weight)
        *dw = backward("convolution_backward", *dx, leaves, lend(x), {true}, false)[0];
    *dx = tern_detach(*dx);
}

static Three convolution_backward(const Tensor &grad, const Tensor &x, const Tensor &w,
                                  c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                                  c10::SymIntArrayRef dilation, bool transposed,
                                  c10::SymIntArrayRef output_padding, c10::SymInt groups,
                                  std::array<bool, 3> mask)
{
    SERVED("convolution_backward_overrideable");
    Frame frame;
    const char *const name = "convolution_backward";
    const int device = x.device().index();
    const Convolution c =
        convolution_of(stride, padding, dilation, output_padding, groups, x.dim() - 2);
    tern_tensor *dx = nullptr, *dw = nullptr, *db = nullptr;
    if (!transposed && mask[0]) {
        gradients_of_plain(c, x, w, grad, mask[1], &dx, &dw);
    } else if (mask[0] || mask[1]) {
        Tensors grads =
            gradients_of(name,
                         [&](Tensors &in) {
                             return transposed ? transposed_convolution(c, in[0], in[1], nullptr)
                                               : plain_convolution(c, in[0], in[1], nullptr);
                         },
                         {lend(x), lend(w)}, lend(grad), {mask[0], mask[1]});
        dx = grads[0];
        dw = grads[1];
    }
    if (mask[2]) {
        tern_shape dims{};
        for (int i = 0; i < c.n + 2; i++)
            if (i != 1)
                dims.dims[dims.ndim++] = i;
        db = tern_sum_dim(lend(grad), dims, false);
        check(db != nullptr, name);
    }
    return {take_if(dx, device, name), take_if(dw, device, name), take_if(db, device, name)};
}

/* ---- linear ---------------------------------------------------------------------------------- */

static Tensor linear(const Tensor &x, const Tensor &w, const OptionalTensor &b)
{
    SERVED("linear");
    Frame frame;
    return take(tern_linear(lend(x), lend(w), lend(b)), x.device().index(), "linear");
}

static Three linear_backward(const Tensor &x, const Tensor &grad, const Tensor &w,
                             std::array<bool, 3> mask)
{
    SERVED("linear_backward");
    Frame frame;
    const char *const name = "linear_backward";
    const int device = x.device().index();
    tern_tensor *dy = lend(grad), *dx = nullptr, *dw = nullptr, *db = nullptr;
    if (mask[0]) {
        dx = tern_matmul(dy, lend(w));
        check(dx != nullptr, name);
    }
    const int64_t out = grad.size(-1), in = x.size(-1);
    tern_tensor *rows = tern_reshape(dy, TERN_SHAPE(out ? grad.numel() / out : 0, out));
    if (mask[1]) {
        tern_tensor *inputs = tern_reshape(lend(x), TERN_SHAPE(in ? x.numel() / in : 0, in));
        dw = tern_matmul(tern_t(rows), inputs);
        check(dw != nullptr, name);
    }
    if (mask[2]) {
        db = tern_sum_dim(rows, TERN_DIMS(0), false);
        check(db != nullptr, name);
    }
    return {take_if(dx, device, name), take_if(dw, device, name), take_if(db, device, name)};
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("convolution_overrideable", &torch_tern::convolution);
    library.impl("convolution_backward_overrideable", &torch_tern::convolution_backward);
    library.impl("linear", &torch_tern::linear);
    library.impl("linear_backward", &torch_tern::linear_backward);
}
