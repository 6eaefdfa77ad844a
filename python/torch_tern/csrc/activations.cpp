/* activations.cpp -- the backward operations of activations and softmax. */
#include "torch_tern.h"

namespace torch_tern
{

using at::Scalar;

/* A backward operation whose gradient is tern's of the forward function `call` of `in`. */
#define BACKWARD(name, parameters, call)                                                           \
    static Tensor name parameters                                                                  \
    {                                                                                              \
        SERVED(#name);                                                                             \
        return gradient_of(                                                                        \
            #name, [&](tern_tensor *in) { return call; }, x, grad);                                \
    }

BACKWARD(gelu_backward, (const Tensor &grad, const Tensor &x, c10::string_view approximate),
         approximate == "tanh" ? tern_gelu_tanh(in) : tern_gelu(in))
BACKWARD(silu_backward, (const Tensor &grad, const Tensor &x), tern_silu(in))
BACKWARD(mish_backward, (const Tensor &grad, const Tensor &x), tern_mish(in))
BACKWARD(hardswish_backward, (const Tensor &grad, const Tensor &x), tern_hardswish(in))
BACKWARD(hardsigmoid_backward, (const Tensor &grad, const Tensor &x), tern_hardsigmoid(in))
BACKWARD(hardtanh_backward,
         (const Tensor &grad, const Tensor &x, const Scalar &low, const Scalar &high),
         tern_hardtanh(in, low.toDouble(), high.toDouble()))
BACKWARD(softplus_backward,
         (const Tensor &grad, const Tensor &x, const Scalar &beta, const Scalar &threshold),
         tern_softplus(in, beta.toDouble(), threshold.toDouble()))
BACKWARD(softshrink_backward, (const Tensor &grad, const Tensor &x, const Scalar &lambda),
         tern_softshrink(in, lambda.toDouble()))
BACKWARD(hardshrink_backward, (const Tensor &grad, const Tensor &x, const Scalar &lambda),
         tern_hardshrink(in, lambda.toDouble()))
BACKWARD(glu_backward, (const Tensor &grad, const Tensor &x, int64_t dim), tern_glu(in, (int)dim))
BACKWARD(log_sigmoid_backward, (const Tensor &grad, const Tensor &x, const Tensor &),
         tern_logsigmoid(in))

static std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor &x)
{
    SERVED("log_sigmoid_forward");
    Frame frame;
    return {take(tern_logsigmoid(lend(x)), x.device().index(), "log_sigmoid_forward"),
            at::empty({0}, x.options())};
}

/* PyTorch may give the result in place of x, whose signs are equal where the slope is positive. */
BACKWARD(leaky_relu_backward,
         (const Tensor &grad, const Tensor &x, const Scalar &negative_slope, bool),
         tern_leaky_relu(in, negative_slope.toDouble()))

static Tensor elu(const Tensor &x, const Scalar &alpha, const Scalar &scale,
                  const Scalar &input_scale)
{
    SERVED("elu");
    Frame frame;
    tern_tensor *in = lend(x);
    if (input_scale.toDouble() != 1) {
        /* scale max(0, x) + scale alpha (e^(input_scale x) - 1) where x is not above 0. */
        tern_tensor *scaled = tern_elu(tern_mul_scalar(in, scalar(input_scale)), alpha.toDouble());
        in = tern_where(tern_gt_scalar(in, tern_scalar_int(0)), in, scaled);
    } else {
        in = tern_elu(in, alpha.toDouble());
    }
    if (scale.toDouble() != 1)
        in = tern_mul_scalar(in, scalar(scale));
    return take(in, x.device().index(), "elu");
}

static Tensor elu_backward(const Tensor &grad, const Scalar &alpha, const Scalar &scale,
                           const Scalar &input_scale, bool is_result, const Tensor &x)
{
    SERVED("elu_backward");
    const double a = alpha.toDouble() * scale.toDouble(), s = scale.toDouble(),
                 i = input_scale.toDouble();
    Frame frame;
    tern_tensor *in = lend(x);
    tern_tensor *slope = is_result
                             ? tern_add_scalar(in, tern_scalar_real(a))
                             : tern_mul_scalar(tern_exp(tern_mul_scalar(in, tern_scalar_real(i))),
                                               tern_scalar_real(a));
    slope = tern_mul_scalar(slope, tern_scalar_real(i));
    slope = tern_where_scalar(tern_le_scalar(in, tern_scalar_int(0)), slope, tern_scalar_real(s));
    tern_tensor *result = tern_to_dtype(tern_mul(lend(grad), slope), dtype_of(x.scalar_type()));
    return take(result, x.device().index(), "elu_backward");
}

/* 0 where x <= threshold, else dy; so dy where x is NaN. */
static Tensor threshold_backward(const Tensor &grad, const Tensor &x, const Scalar &threshold)
{
    SERVED("threshold_backward");
    Frame frame;
    tern_tensor *is_below = tern_le_scalar(lend(x), scalar(threshold));
    return take(tern_where_scalar_self(is_below, tern_scalar_int(0), lend(grad)),
                x.device().index(), "threshold_backward");
}

/* dy y (1 - y). */
static Tensor sigmoid_backward(const Tensor &grad, const Tensor &y)
{
    SERVED("sigmoid_backward");
    Frame frame;
    tern_tensor *in = lend(y), *slope = tern_mul(in, tern_rsub_scalar(in, tern_scalar_int(1)));
    return take(tern_mul(lend(grad), slope), y.device().index(), "sigmoid_backward");
}

/* dy (1 - y y). */
static Tensor tanh_backward(const Tensor &grad, const Tensor &y)
{
    SERVED("tanh_backward");
    Frame frame;
    tern_tensor *in = lend(y), *slope = tern_rsub_scalar(tern_mul(in, in), tern_scalar_int(1));
    return take(tern_mul(lend(grad), slope), y.device().index(), "tanh_backward");
}

/* dx = y (dy - sum(dy y)). */
static Tensor softmax_backward_data(const Tensor &grad, const Tensor &y, int64_t dim,
                                    at::ScalarType type)
{
    SERVED("_softmax_backward_data");
    Frame frame;
    tern_tensor *in = lend(y), *product = tern_mul(lend(grad), in);
    tern_tensor *sum = tern_sum_dim(product, TERN_DIMS(dim), true);
    tern_tensor *result = tern_sub(product, tern_mul(in, sum));
    return take(tern_to_dtype(result, dtype_of(type)), y.device().index(),
                "_softmax_backward_data");
}

/* dx = dy - e^y sum(dy). */
static Tensor log_softmax_backward_data(const Tensor &grad, const Tensor &y, int64_t dim,
                                        at::ScalarType type)
{
    SERVED("_log_softmax_backward_data");
    Frame frame;
    tern_tensor *dy = lend(grad), *sum = tern_sum_dim(dy, TERN_DIMS(dim), true);
    tern_tensor *result = tern_sub(dy, tern_mul(tern_exp(lend(y)), sum));
    return take(tern_to_dtype(result, dtype_of(type)), y.device().index(),
                "_log_softmax_backward_data");
}

/* x, or w x where x is not above 0; w is broadcast already. */
static Tensor prelu_kernel(const Tensor &x, const Tensor &weight)
{
    SERVED("_prelu_kernel");
    Frame frame;
    tern_tensor *in = lend(x);
    return take(tern_where(tern_gt_scalar(in, tern_scalar_int(0)), in, tern_mul(in, lend(weight))),
                x.device().index(), "_prelu_kernel");
}

static std::tuple<Tensor, Tensor> prelu_kernel_backward(const Tensor &grad, const Tensor &x,
                                                        const Tensor &weight)
{
    SERVED("_prelu_kernel_backward");
    Frame frame;
    const int device = x.device().index();
    tern_tensor *in = lend(x), *dy = lend(grad);
    tern_tensor *is_above = tern_gt_scalar(in, tern_scalar_int(0));
    tern_tensor *dx = tern_where(is_above, dy, tern_mul(dy, lend(weight)));
    tern_tensor *dw = tern_where_scalar_self(is_above, tern_scalar_int(0), tern_mul(dy, in));
    return {take(dx, device, "_prelu_kernel_backward"), take(dw, device, "_prelu_kernel_backward")};
}

static Tensor rrelu_with_noise(const Tensor &x, Tensor &noise, const Scalar &lower,
                               const Scalar &upper, bool training,
                               std::optional<at::Generator> generator)
{
    SERVED("rrelu_with_noise");
    if (!training)
        return at::leaky_relu(x, (lower.toDouble() + upper.toDouble()) / 2);
    Tensor slopes = at::empty_like(x).uniform_(lower.toDouble(), upper.toDouble(), generator);
    noise.copy_(at::where(x <= 0, slopes, at::ones_like(x)));
    return x * noise;
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("gelu_backward", &torch_tern::gelu_backward);
    library.impl("silu_backward", &torch_tern::silu_backward);
    library.impl("mish_backward", &torch_tern::mish_backward);
    library.impl("hardswish_backward", &torch_tern::hardswish_backward);
    library.impl("hardsigmoid_backward", &torch_tern::hardsigmoid_backward);
    library.impl("hardtanh_backward", &torch_tern::hardtanh_backward);
    library.impl("softplus_backward", &torch_tern::softplus_backward);
    library.impl("softshrink_backward", &torch_tern::softshrink_backward);
    library.impl("hardshrink_backward", &torch_tern::hardshrink_backward);
    library.impl("glu_backward", &torch_tern::glu_backward);
    library.impl("log_sigmoid_forward", &torch_tern::log_sigmoid_forward);
    library.impl("log_sigmoid_backward", &torch_tern::log_sigmoid_backward);
    library.impl("leaky_relu_backward", &torch_tern::leaky_relu_backward);
    library.impl("elu", &torch_tern::elu);
    library.impl("elu_backward", &torch_tern::elu_backward);
    library.impl("threshold_backward", &torch_tern::threshold_backward);
    library.impl("sigmoid_backward", &torch_tern::sigmoid_backward);
    library.impl("tanh_backward", &torch_tern::tanh_backward);
    library.impl("_softmax_backward_data", &softmax_backward_data);
    library.impl("_log_softmax_backward_data", &log_softmax_backward_data);
    library.impl("rrelu_with_noise", &torch_tern::rrelu_with_noise);
    library.impl("_prelu_kernel", &prelu_kernel);
    library.impl("_prelu_kernel_backward", &prelu_kernel_backward);
}
