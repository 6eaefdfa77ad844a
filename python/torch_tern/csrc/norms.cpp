/* norms.cpp -- layer, batch and group norm. PyTorch's operations return the statistics for their
 * backward operations; tern's gradients come from the recording of the forward call, which hangs on
 * the last of these, and the statistics are computed only where somebody reads them. */
#include "torch_tern.h"
#include <ATen/AccumulateType.h>

namespace torch_tern
{

using Three = std::tuple<Tensor, Tensor, Tensor>;

/* A tensor that outlives its frame, for what is computed later. */
using Kept = std::shared_ptr<tern_tensor>;
static Kept keep(tern_tensor *x)
{
    return Kept(tern_keep(x), tern_release);
}

/* The mean of rows, or 1 / sqrt(variance + eps), as float32 or float64. */
static tern_tensor *statistic(tern_tensor *x, tern_shape dims, double eps, bool is_mean)
{
    Frame frame;
    if (tern_dtype_of(x) != TERN_F64)
        x = tern_to_dtype(x, TERN_F32);
    tern_tensor *mean = tern_mean_dim(x, dims, true);
    if (is_mean)
        return tern_keep(mean);
    tern_tensor *centred = tern_sub(x, mean);
    tern_tensor *variance = tern_mean_dim(tern_mul(centred, centred), dims, true);
    return tern_keep(tern_rsqrt(tern_add_scalar(variance, tern_scalar_real(eps))));
}

static at::ScalarType type_of_statistics(const Tensor &x)
{
    return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/* Mean and rstd of rows, with the recording on rstd. */
static std::pair<Tensor, Tensor> statistics(tern_tensor *rows, tern_shape dims, double eps,
                                            at::IntArrayRef sizes, at::ScalarType type, int device,
                                            std::shared_ptr<Recorded> recorded)
{
    Kept kept = keep(rows);
    auto make = [kept, dims, eps](bool is_mean) {
        tern_tensor *made = statistic(kept.get(), dims, eps, is_mean);
        return made ? tern_escape(made) : nullptr;
    };
    Tensor mean = take_later([make] { return make(true); }, sizes, type, device);
    Tensor rstd = take_later([make] { return make(false); }, sizes, type, device);
    block_of(rstd)->recorded = std::move(recorded);
    return {mean, rstd};
}

/* Forward, recorded where a gradient will be asked for. */
template <class F>
static tern_tensor *run(const char *operation, F forward, const Tensor &x, const OptionalTensor &w,
                        const OptionalTensor &b, std::shared_ptr<Recorded> *recorded)
{
    Tensor weight = w.value_or(Tensor()), bias = b.value_or(Tensor());
    Tensors inputs = {lend(x), lend(w), lend(b)};
    if (!wants_gradient({&x, &weight, &bias}))
        return forward(inputs);
    return record(operation, forward, inputs,
                  {x.requires_grad(), weight.defined() && weight.requires_grad(),
                   bias.defined() && bias.requires_grad()},
                  recorded);
}

/* The gradients by a recording. */
static Three gradients(const char *operation, const Recorded &recorded, const Tensor &grad,
                       std::array<bool, 3> mask)
{
    Frame frame;
    const int device = grad.device().index();
    Tensors grads = gradients_of(operation, recorded, lend(grad), {mask[0], mask[1], mask[2]});
    return {take_if(grads[0], device, operation), take_if(grads[1], device, operation),
            take_if(grads[2], device, operation)};
}

static bool has_recording(const Tensor &x)
{
    return x.defined() && block_of(x) && block_of(x)->recorded;
}

/* ---- layer norm ------------------------------------------------------------------------------ */

static Three native_layer_norm(const Tensor &x, c10::SymIntArrayRef normalized,
                               const OptionalTensor &w, const OptionalTensor &b, double eps)
{
    SERVED("native_layer_norm");
    Frame frame;
    const int device = x.device().index(), k = (int)normalized.size();
    const tern_shape sizes = shape(normalized);
    std::shared_ptr<Recorded> recorded;
    tern_tensor *result = run(
        "native_layer_norm",
        [&](Tensors &in) { return tern_layer_norm(in[0], sizes, in[1], in[2], eps); }, x, w, b,
        &recorded);
    at::DimVector outer(x.sizes().begin(), x.sizes().end());
    tern_shape dims{};
    for (int i = 0; i < k; i++) {
        outer[outer.size() - 1 - (size_t)i] = 1;
        dims.dims[dims.ndim++] = x.dim() - k + i;
    }
    auto [mean, rstd] =
        statistics(lend(x), dims, eps, outer, type_of_statistics(x), device, std::move(recorded));
    return {take(result, device, "native_layer_norm"), mean, rstd};
}

static Three native_layer_norm_backward(const Tensor &grad, const Tensor &x,
                                        c10::SymIntArrayRef normalized, const Tensor &mean,
                                        const Tensor &rstd, const OptionalTensor &w,
                                        const OptionalTensor &b, std::array<bool, 3> mask)
{
    SERVED("native_layer_norm_backward");
    mask[1] = mask[1] && w && w->defined();
    mask[2] = mask[2] && b && b->defined();
    if (has_recording(rstd))
        return gradients("native_layer_norm_backward", *block_of(rstd)->recorded, grad, mask);
    at::DimVector inner, outer;
    for (int64_t i = 0; i < x.dim(); i++)
        (i < x.dim() - (int64_t)normalized.size() ? outer : inner).push_back(i);
    const Tensor normal = (x - mean) * rstd;
    Tensor dx, dw, db;
    if (mask[0]) {
        const Tensor dy = w && w->defined() ? grad * *w : grad;
        dx = rstd * (dy - dy.mean(inner, true) - normal * (dy * normal).mean(inner, true));
        dx = dx.to(x.scalar_type());
    }
    if (mask[1])
        dw = (outer.empty() ? grad * normal : (grad * normal).sum(outer)).to(w->scalar_type());
    if (mask[2])
        db = outer.empty() ? grad.clone() : grad.sum(outer);
    return {dx, dw, db};
}

/* ---- batch norm ------------------------------------------------------------------------------ */

static tern_shape all_but_channels(const Tensor &x)
{
    tern_shape dims{};
    for (int i = 0; i < x.dim(); i++)
        if (i != 1)
            dims.dims[dims.ndim++] = i;
    return dims;
}

static Three native_batch_norm(const Tensor &x, const OptionalTensor &w, const OptionalTensor &b,
                               const OptionalTensor &running_mean,
                               const OptionalTensor &running_var, bool training, double momentum,
                               double eps)
{
    SERVED("native_batch_norm");
    Frame frame;
    const int device = x.device().index();
    tern_tensor *mean = lend(running_mean), *variance = lend(running_var);
    std::shared_ptr<Recorded> recorded;
    tern_tensor *result = run(
        "native_batch_norm",
        [&](Tensors &in) {
            return tern_batch_norm(in[0], mean, variance, in[1], in[2], training, momentum, eps);
        },
        x, w, b, &recorded);
    Tensor y = take(result, device, "native_batch_norm");
    if (!training) {
        const auto options = x.options().dtype(type_of_statistics(x));
        Tensor none = at::empty({0}, options);
        block_of(none)->recorded = std::move(recorded);
        return {y, at::empty({0}, options), none};
    }
    auto [save_mean, save_invstd] = statistics(lend(x), all_but_channels(x), eps, {x.size(1)},
                                               type_of_statistics(x), device, std::move(recorded));
    return {y, save_mean, save_invstd};
}

static Three native_batch_norm_legit(const Tensor &x, const OptionalTensor &w,
                                     const OptionalTensor &b, Tensor &running_mean,
                                     Tensor &running_var, bool training, double momentum,
                                     double eps)
{
    return torch_tern::native_batch_norm(x, w, b, running_mean, running_var, training, momentum,
                                         eps);
}

static Three native_batch_norm_backward(const Tensor &grad, const Tensor &x,
                                        const OptionalTensor &w, const OptionalTensor &running_mean,
                                        const OptionalTensor &running_var,
                                        const OptionalTensor &save_mean,
                                        const OptionalTensor &save_invstd, bool training,
                                        double eps, std::array<bool, 3> mask)
{
    SERVED("native_batch_norm_backward");
    mask[1] = mask[1] && w && w->defined();
    const bool wants_bias = mask[2];
    if (save_invstd && has_recording(*save_invstd))
        return gradients("native_batch_norm_backward", *block_of(*save_invstd)->recorded, grad,
                         mask);
    at::DimVector dims, sizes((size_t)x.dim(), 1);
    sizes[1] = x.size(1);
    for (int64_t i = 0; i < x.dim(); i++)
        if (i != 1)
            dims.push_back(i);
    const Tensor mean = (training ? *save_mean : *running_mean).view(sizes);
    const Tensor invstd =
        training ? save_invstd->view(sizes) : (*running_var + eps).rsqrt().view(sizes);
    const Tensor normal = (x - mean) * invstd;
    Tensor dx, dw, db;
    if (mask[0]) {
        const Tensor dy = w && w->defined() ? grad * w->view(sizes) : grad;
        dx = training
                 ? invstd * (dy - dy.mean(dims, true) - normal * (dy * normal).mean(dims, true))
                 : invstd * dy;
        dx = dx.to(x.scalar_type());
    }
    if (mask[1])
        dw = (grad * normal).sum(dims).to(w->scalar_type());
    if (wants_bias)
        db = grad.sum(dims);
    return {dx, dw, db};
}

/* ---- group norm ------------------------------------------------------------------------------ */

static Three native_group_norm(const Tensor &x, const OptionalTensor &w, const OptionalTensor &b,
                               c10::SymInt n, c10::SymInt, c10::SymInt, int64_t groups, double eps)
{
    SERVED("native_group_norm");
    Frame frame;
    const int device = x.device().index();
    std::shared_ptr<Recorded> recorded;
    tern_tensor *result = run(
        "native_group_norm",
        [&](Tensors &in) { return tern_group_norm(in[0], groups, in[1], in[2], eps); }, x, w, b,
        &recorded);
    const int64_t batch = n.expect_int();
    const int64_t width = batch && groups ? x.numel() / (batch * groups) : 0;
    tern_tensor *rows = tern_reshape(lend(x), TERN_SHAPE(batch, groups, width));
    auto [mean, rstd] = statistics(rows, TERN_DIMS(2), eps, {batch, groups}, x.scalar_type(),
                                   device, std::move(recorded));
    return {take(result, device, "native_group_norm"), mean, rstd};
}

static Three native_group_norm_backward(const Tensor &grad, const Tensor &x, const Tensor &mean,
                                        const Tensor &rstd, const OptionalTensor &w, c10::SymInt n_,
                                        c10::SymInt channels, c10::SymInt, int64_t groups,
                                        std::array<bool, 3> mask)
{
    SERVED("native_group_norm_backward");
    mask[1] = mask[1] && w && w->defined();
    if (has_recording(rstd))
        return gradients("native_group_norm_backward", *block_of(rstd)->recorded, grad, mask);
    const int64_t n = n_.expect_int(), c = channels.expect_int();
    const at::DimVector grouped = {n, groups, c / groups, -1}, by_channel = {n, c, -1};
    const Tensor centre = mean.view({n, groups, 1, 1}), scale = rstd.view({n, groups, 1, 1});
    const Tensor normal = (x.reshape(grouped) - centre) * scale;
    Tensor dx, dw, db;
    if (mask[0]) {
        Tensor dy = grad.reshape(grouped);
        if (w && w->defined())
            dy = dy * w->view({1, groups, c / groups, 1});
        const at::DimVector dims = {2, 3};
        dx = scale * (dy - dy.mean(dims, true) - normal * (dy * normal).mean(dims, true));
        dx = dx.reshape(x.sizes()).to(x.scalar_type());
    }
    const at::DimVector dims = {0, 2};
    if (mask[1])
        dw = (grad.reshape(by_channel) * normal.reshape(by_channel)).sum(dims);
    if (mask[2])
        db = grad.reshape(by_channel).sum(dims);
    return {dx, dw, db};
}

/* ---- rms norm -------------------------------------------------------------------------------- */

static std::tuple<Tensor, Tensor> fused_rms_norm(const Tensor &x, at::IntArrayRef normalized,
                                                 const OptionalTensor &w, std::optional<double> eps)
{
    SERVED("_fused_rms_norm");
    Frame frame;
    const int device = x.device().index();
    const bool is_wide = x.scalar_type() == at::kDouble;
    const double epsilon = eps       ? *eps
                           : is_wide ? std::numeric_limits<double>::epsilon()
                                     : (double)std::numeric_limits<float>::epsilon();
    const tern_shape sizes = shape(normalized);
    std::shared_ptr<Recorded> recorded;
    tern_tensor *result = run(
        "_fused_rms_norm", [&](Tensors &in) { return tern_rms_norm(in[0], sizes, in[1], epsilon); },
        x, w, OptionalTensor(), &recorded);
    at::DimVector outer(x.sizes().begin(), x.sizes().end());
    tern_shape dims{};
    for (size_t i = 0; i < normalized.size(); i++) {
        outer[outer.size() - 1 - i] = 1;
        dims.dims[dims.ndim++] = x.dim() - (int64_t)normalized.size() + (int64_t)i;
    }
    Kept kept = keep(lend(x));
    auto later = [kept, dims, epsilon] {
        tern_tensor *rows =
            tern_to_dtype(kept.get(), tern_dtype_of(kept.get()) == TERN_F64 ? TERN_F64 : TERN_F32);
        tern_tensor *mean = tern_mean_dim(tern_mul(rows, rows), dims, true);
        return tern_rsqrt(tern_add_scalar(mean, tern_scalar_real(epsilon)));
    };
    Tensor rstd = take_later(later, outer, type_of_statistics(x), device);
    block_of(rstd)->recorded = std::move(recorded);
    return {take(result, device, "_fused_rms_norm"), rstd};
}

static std::tuple<Tensor, Tensor> fused_rms_norm_backward(const Tensor &grad, const Tensor &x,
                                                          at::IntArrayRef normalized,
                                                          const Tensor &rstd,
                                                          const OptionalTensor &w,
                                                          std::array<bool, 2> mask)
{
    SERVED("_fused_rms_norm_backward");
    mask[1] = mask[1] && w && w->defined();
    if (has_recording(rstd)) {
        auto [dx, dw, none] = gradients("_fused_rms_norm_backward", *block_of(rstd)->recorded, grad,
                                        {mask[0], mask[1], false});
        return {dx, dw};
    }
    at::DimVector inner, outer;
    for (int64_t i = 0; i < x.dim(); i++)
        (i < x.dim() - (int64_t)normalized.size() ? outer : inner).push_back(i);
    const Tensor normal = x * rstd;
    const Tensor dy = w && w->defined() ? grad * *w : grad;
    Tensor dx = (rstd * (dy - normal * (dy * normal).mean(inner, true))).to(x.scalar_type());
    Tensor dw;
    if (mask[1])
        dw = (outer.empty() ? grad * normal : (grad * normal).sum(outer)).to(w->scalar_type());
    return {dx, dw};
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("native_layer_norm", &torch_tern::native_layer_norm);
    library.impl("native_layer_norm_backward", &torch_tern::native_layer_norm_backward);
    library.impl("native_batch_norm", &torch_tern::native_batch_norm);
    library.impl("_native_batch_norm_legit", &native_batch_norm_legit);
    library.impl("native_batch_norm_backward", &torch_tern::native_batch_norm_backward);
    library.impl("native_group_norm", &torch_tern::native_group_norm);
    library.impl("native_group_norm_backward", &torch_tern::native_group_norm_backward);
    library.impl("_fused_rms_norm", &fused_rms_norm);
    library.impl("_fused_rms_norm_backward", &fused_rms_norm_backward);
}
