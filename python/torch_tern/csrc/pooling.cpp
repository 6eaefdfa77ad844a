/* pooling.cpp -- pools of windows, and their backward operations. */
#include "torch_tern.h"

namespace torch_tern
{

using at::IntArrayRef;
using Two = std::tuple<Tensor, Tensor>;

/* ---- maxima ---------------------------------------------------------------------------------- */

using PoolWithIndices = tern_status (*)(tern_tensor *, tern_shape, const tern_max_pool_options *,
                                        tern_values_indices *);
using MaxPool = tern_tensor *(*)(tern_tensor *, tern_shape, const tern_max_pool_options *);

static tern_max_pool_options max_pool_options(IntArrayRef stride, IntArrayRef padding,
                                              IntArrayRef dilation, bool ceil_mode)
{
    tern_max_pool_options options = tern_max_pool_defaults();
    options.stride = shape(stride);
    options.padding = shape(padding);
    options.dilation = shape(dilation);
    options.ceil_mode = ceil_mode;
    return options;
}

/* Values and indices; the recording of the call hangs on the indices. */
template <class F> static Two maxima(const char *name, F call, const Tensor &x)
{
    Frame frame;
    const int device = x.device().index();
    tern_values_indices pair{};
    auto forward = [&](Tensors &in) {
        return call(in[0], &pair) == TERN_OK ? pair.values : nullptr;
    };
    std::shared_ptr<Recorded> recorded;
    Tensors inputs = {lend(x)};
    tern_tensor *values =
        wants_gradient({&x}) ? record(name, forward, inputs, {true}, &recorded) : forward(inputs);
    Tensor result = take(values, device, name), indices = take(pair.indices, device, name);
    block_of(indices)->recorded = std::move(recorded);
    return {result, indices};
}

/* The gradient by the recording, or by the places of the maxima. */
static Tensor maxima_backward(const char *name, const Tensor &grad, const Tensor &x,
                              const Tensor &indices, int64_t n_dims)
{
    Frame frame;
    const int device = x.device().index();
    if (block_of(indices) && block_of(indices)->recorded)
        return take(gradients_of(name, *block_of(indices)->recorded, lend(grad), {true})[0], device,
                    name);
    const int64_t outer = x.dim() - n_dims;
    Tensor dx = at::zeros(x.sizes(), x.options().dtype(grad.scalar_type()));
    if (grad.numel())
        dx = dx.flatten(outer).scatter_add(-1, indices.flatten(outer), grad.flatten(outer));
    return dx.view(x.sizes());
}

static Two max_pool2d_with_indices(const Tensor &x, IntArrayRef kernel, IntArrayRef stride,
                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode)
{
    SERVED("max_pool2d_with_indices");
    const auto options = max_pool_options(stride, padding, dilation, ceil_mode);
    return maxima(
        "max_pool2d_with_indices",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_max_pool2d_with_indices(in, shape(kernel), &options, out);
        },
        x);
}

static Two max_pool3d_with_indices(const Tensor &x, IntArrayRef kernel, IntArrayRef stride,
                                   IntArrayRef padding, IntArrayRef dilation, bool ceil_mode)
{
    SERVED("max_pool3d_with_indices");
    const auto options = max_pool_options(stride, padding, dilation, ceil_mode);
    return maxima(
        "max_pool3d_with_indices",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_max_pool3d_with_indices(in, shape(kernel), &options, out);
        },
        x);
}

static Tensor max_pool2d_with_indices_backward(const Tensor &grad, const Tensor &x, IntArrayRef,
                                               IntArrayRef, IntArrayRef, IntArrayRef, bool,
                                               const Tensor &indices)
{
    SERVED("max_pool2d_with_indices_backward");
    return maxima_backward("max_pool2d_with_indices_backward", grad, x, indices, 2);
}

static Tensor max_pool3d_with_indices_backward(const Tensor &grad, const Tensor &x, IntArrayRef,
                                               IntArrayRef, IntArrayRef, IntArrayRef, bool,
                                               const Tensor &indices)
{
    SERVED("max_pool3d_with_indices_backward");
    return maxima_backward("max_pool3d_with_indices_backward", grad, x, indices, 3);
}

static Two adaptive_max_pool2d(const Tensor &x, IntArrayRef size)
{
    SERVED("adaptive_max_pool2d");
    return maxima(
        "adaptive_max_pool2d",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_adaptive_max_pool2d_with_indices(in, shape(size), out);
        },
        x);
}

static Two adaptive_max_pool3d(const Tensor &x, IntArrayRef size)
{
    SERVED("adaptive_max_pool3d");
    return maxima(
        "adaptive_max_pool3d",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_adaptive_max_pool3d_with_indices(in, shape(size), out);
        },
        x);
}

static Tensor adaptive_max_pool2d_backward(const Tensor &grad, const Tensor &x,
                                           const Tensor &indices)
{
    SERVED("adaptive_max_pool2d_backward");
    return maxima_backward("adaptive_max_pool2d_backward", grad, x, indices, 2);
}

static Tensor adaptive_max_pool3d_backward(const Tensor &grad, const Tensor &x,
                                           const Tensor &indices)
{
    SERVED("adaptive_max_pool3d_backward");
    return maxima_backward("adaptive_max_pool3d_backward", grad, x, indices, 3);
}

static tern_fractional_max_pool_options fractional_options(IntArrayRef size, const Tensor &samples)
{
    tern_fractional_max_pool_options options = tern_fractional_max_pool_defaults();
    options.output_size = shape(size);
    options.random_samples = lend(samples);
    return options;
}

static Two fractional_max_pool2d(const Tensor &x, IntArrayRef kernel, IntArrayRef size,
                                 const Tensor &samples)
{
    SERVED("fractional_max_pool2d");
    Frame frame;
    const auto options = fractional_options(size, samples);
    return maxima(
        "fractional_max_pool2d",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_fractional_max_pool2d_with_indices(in, shape(kernel), &options, out);
        },
        x);
}

static Two fractional_max_pool3d(const Tensor &x, IntArrayRef kernel, IntArrayRef size,
                                 const Tensor &samples)
{
    SERVED("fractional_max_pool3d");
    Frame frame;
    const auto options = fractional_options(size, samples);
    return maxima(
        "fractional_max_pool3d",
        [&](tern_tensor *in, tern_values_indices *out) {
            return tern_fractional_max_pool3d_with_indices(in, shape(kernel), &options, out);
        },
        x);
}

static Tensor fractional_max_pool2d_backward(const Tensor &grad, const Tensor &x, IntArrayRef,
                                             IntArrayRef, const Tensor &indices)
{
    SERVED("fractional_max_pool2d_backward");
    return maxima_backward("fractional_max_pool2d_backward", grad, x, indices, 2);
}

static Tensor fractional_max_pool3d_backward(const Tensor &grad, const Tensor &x, IntArrayRef,
                                             IntArrayRef, const Tensor &indices)
{
    SERVED("fractional_max_pool3d_backward");
    return maxima_backward("fractional_max_pool3d_backward", grad, x, indices, 3);
}

/* ---- means ----------------------------------------------------------------------------------- */

static tern_avg_pool_options avg_pool_options(IntArrayRef stride, IntArrayRef padding,
                                              bool ceil_mode, bool count_include_pad,
                                              std::optional<int64_t> divisor)
{
    tern_avg_pool_options options = tern_avg_pool_defaults();
    options.stride = shape(stride);
    options.padding = shape(padding);
    options.ceil_mode = ceil_mode;
    options.no_count_include_pad = !count_include_pad;
    if (divisor)
        options.divisor_override = tern_some(*divisor);
    return options;
}

static Tensor avg_pool2d(const Tensor &x, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         std::optional<int64_t> divisor)
{
    SERVED("avg_pool2d");
    Frame frame;
    const auto options = avg_pool_options(stride, padding, ceil_mode, count_include_pad, divisor);
    return take(tern_avg_pool2d(lend(x), shape(kernel), &options), x.device().index(),
                "avg_pool2d");
}

static Tensor avg_pool3d(const Tensor &x, IntArrayRef kernel, IntArrayRef stride,
                         IntArrayRef padding, bool ceil_mode, bool count_include_pad,
                         std::optional<int64_t> divisor)
{
    SERVED("avg_pool3d");
    Frame frame;
    const auto options = avg_pool_options(stride, padding, ceil_mode, count_include_pad, divisor);
    return take(tern_avg_pool3d(lend(x), shape(kernel), &options), x.device().index(),
                "avg_pool3d");
}

static Tensor avg_pool2d_backward(const Tensor &grad, const Tensor &x, IntArrayRef kernel,
                                  IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                                  bool count_include_pad, std::optional<int64_t> divisor)
{
    SERVED("avg_pool2d_backward");
    const auto options = avg_pool_options(stride, padding, ceil_mode, count_include_pad, divisor);
    return gradient_of(
        "avg_pool2d_backward",
        [&](tern_tensor *in) { return tern_avg_pool2d(in, shape(kernel), &options); }, x, grad);
}

static Tensor avg_pool3d_backward(const Tensor &grad, const Tensor &x, IntArrayRef kernel,
                                  IntArrayRef stride, IntArrayRef padding, bool ceil_mode,
                                  bool count_include_pad, std::optional<int64_t> divisor)
{
    SERVED("avg_pool3d_backward");
    const auto options = avg_pool_options(stride, padding, ceil_mode, count_include_pad, divisor);
    return gradient_of(
        "avg_pool3d_backward",
        [&](tern_tensor *in) { return tern_avg_pool3d(in, shape(kernel), &options); }, x, grad);
}

static Tensor adaptive_avg_pool2d_backward(const Tensor &grad, const Tensor &x)
{
    SERVED("_adaptive_avg_pool2d_backward");
    const tern_shape size = TERN_DIMS(grad.size(-2), grad.size(-1));
    return gradient_of(
        "_adaptive_avg_pool2d_backward",
        [&](tern_tensor *in) { return tern_adaptive_avg_pool2d(in, size); }, x, grad);
}

static Tensor adaptive_avg_pool3d_backward(const Tensor &grad, const Tensor &x)
{
    SERVED("_adaptive_avg_pool3d_backward");
    const tern_shape size = TERN_DIMS(grad.size(-3), grad.size(-2), grad.size(-1));
    return gradient_of(
        "_adaptive_avg_pool3d_backward",
        [&](tern_tensor *in) { return tern_adaptive_avg_pool3d(in, size); }, x, grad);
}

/* ---- back to where maxima were --------------------------------------------------------------- */

static Tensor unpool(const Tensor &x, const Tensor &indices, IntArrayRef size)
{
    const int64_t outer = x.dim() - (int64_t)size.size();
    at::DimVector sizes(x.sizes().begin(), x.sizes().begin() + outer);
    sizes.append(size.begin(), size.end());
    Tensor result = at::zeros(sizes, x.options());
    if (x.numel())
        result.flatten(outer).scatter_(-1, indices.flatten(outer), x.flatten(outer));
    return result;
}

static Tensor max_unpool2d(const Tensor &x, const Tensor &indices, c10::SymIntArrayRef size)
{
    SERVED("max_unpool2d");
    return unpool(x, indices, C10_AS_INTARRAYREF_SLOW(size));
}

static Tensor max_unpool3d(const Tensor &x, const Tensor &indices, c10::SymIntArrayRef size,
                           IntArrayRef, IntArrayRef)
{
    SERVED("max_unpool3d");
    return unpool(x, indices, C10_AS_INTARRAYREF_SLOW(size));
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("max_pool2d_with_indices", &torch_tern::max_pool2d_with_indices);
    library.impl("max_pool3d_with_indices", &torch_tern::max_pool3d_with_indices);
    library.impl("max_pool2d_with_indices_backward", &torch_tern::max_pool2d_with_indices_backward);
    library.impl("max_pool3d_with_indices_backward", &torch_tern::max_pool3d_with_indices_backward);
    library.impl("adaptive_max_pool2d", &torch_tern::adaptive_max_pool2d);
    library.impl("adaptive_max_pool3d", &torch_tern::adaptive_max_pool3d);
    library.impl("adaptive_max_pool2d_backward", &torch_tern::adaptive_max_pool2d_backward);
    library.impl("adaptive_max_pool3d_backward", &torch_tern::adaptive_max_pool3d_backward);
    library.impl("fractional_max_pool2d", &torch_tern::fractional_max_pool2d);
    library.impl("fractional_max_pool3d", &torch_tern::fractional_max_pool3d);
    library.impl("fractional_max_pool2d_backward", &torch_tern::fractional_max_pool2d_backward);
    library.impl("fractional_max_pool3d_backward", &torch_tern::fractional_max_pool3d_backward);
    library.impl("avg_pool2d", &torch_tern::avg_pool2d);
    library.impl("avg_pool3d", &torch_tern::avg_pool3d);
    library.impl("avg_pool2d_backward", &torch_tern::avg_pool2d_backward);
    library.impl("avg_pool3d_backward", &torch_tern::avg_pool3d_backward);
    library.impl("_adaptive_avg_pool2d_backward", &adaptive_avg_pool2d_backward);
    library.impl("_adaptive_avg_pool3d_backward", &adaptive_avg_pool3d_backward);
    library.impl("max_unpool2d", &torch_tern::max_unpool2d);
    library.impl("max_unpool3d", &torch_tern::max_unpool3d);
}
