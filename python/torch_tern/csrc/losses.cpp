/* losses.cpp -- losses whose operations are not those of tern's names, and backward operations. */
#include "torch_tern.h"

namespace torch_tern
{

/* PyTorch's 0, 1, 2. */
static tern_reduction reduction_of(int64_t reduction)
{
    static const tern_reduction reductions[] = {TERN_REDUCTION_NONE, TERN_REDUCTION_MEAN,
                                                TERN_REDUCTION_SUM};
    return reductions[reduction % 3];
}

/* ---- negative log likelihood ----------------------------------------------------------------- */

static tern_nll_loss_options nll_options(const OptionalTensor &weight, int64_t reduction,
                                         const c10::SymInt &ignore_index)
{
    tern_nll_loss_options options = tern_nll_loss_defaults();
    options.weight = lend(weight);
    options.reduction = reduction_of(reduction);
    options.ignore_index = tern_some(ignore_index.expect_int());
    return options;
}

/* The sum of the weights of the targets that count. */
static Tensor total_weight(const Tensor &x, const Tensor &target, const OptionalTensor &weight,
                           int64_t ignore_index)
{
    auto keep = [](const Tensor &t) {
        return std::shared_ptr<tern_tensor>(tern_keep(lend(t)), tern_release);
    };
    auto targets = keep(target);
    auto weights = weight && weight->defined() ? keep(*weight) : nullptr;
    const tern_dtype dtype = dtype_of(x.scalar_type());
    auto later = [targets, weights, ignore_index, dtype] {
        tern_tensor *counts = tern_ne_scalar(targets.get(), tern_scalar_int(ignore_index));
        if (!weights)
            return tern_to_dtype(tern_sum(counts), dtype);
        tern_tensor *places = tern_flatten(tern_mul(targets.get(), counts), 0, -1);
        tern_tensor *taken = tern_index_select(weights.get(), 0, places);
        return tern_sum(tern_mul(taken, tern_flatten(counts, 0, -1)));
    };
    return take_later(later, {}, x.scalar_type(), x.device().index());
}

static std::tuple<Tensor, Tensor> nll_loss_forward(const Tensor &x, const Tensor &target,
                                                   const OptionalTensor &weight, int64_t reduction,
                                                   c10::SymInt ignore_index)
{
    SERVED("nll_loss_forward");
    Frame frame;
    const auto options = nll_options(weight, reduction, ignore_index);
    tern_tensor *targets = lend(target);
    auto forward = [&](Tensors &in) { return tern_nll_loss(in[0], targets, &options); };
    std::shared_ptr<Recorded> recorded;
    Tensors inputs = {lend(x)};
    tern_tensor *result = wants_gradient({&x})
                              ? record("nll_loss_forward", forward, inputs, {true}, &recorded)
                              : forward(inputs);
    Tensor loss = take(result, x.device().index(), "nll_loss_forward");
    Tensor total = reduction == at::Reduction::None
                       ? at::zeros({}, x.options())
                       : total_weight(x, target, weight, ignore_index.expect_int());
    block_of(total)->recorded = std::move(recorded);
    return {loss, total};
}

static Tensor nll_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                const OptionalTensor &weight, int64_t reduction,
                                c10::SymInt ignore_index, const Tensor &total)
{
    SERVED("nll_loss_backward");
    Frame frame;
    const int device = x.device().index();
    const char *const name = "nll_loss_backward";
    if (block_of(total) && block_of(total)->recorded)
        return take(gradients_of(name, *block_of(total)->recorded, lend(grad), {true})[0], device,
                    name);
    const auto options = nll_options(weight, reduction, ignore_index);
    tern_tensor *targets = lend(target);
    Tensors grads =
        gradients_of(name, [&](Tensors &in) { return tern_nll_loss(in[0], targets, &options); },
                     {lend(x)}, lend(grad), {true});
    return take(grads[0], device, name);
}

/* ---- losses of two tensors ------------------------------------------------------------------- */

/* The gradient of call(input, target) with respect to the input. */
template <class F>
static Tensor loss_backward(const char *name, F call, const Tensor &grad, const Tensor &x,
                            const Tensor &target)
{
    Frame frame;
    tern_tensor *targets = lend(target);
    Tensors grads = gradients_of(name, [&](Tensors &in) { return call(in[0], targets); }, {lend(x)},
                                 lend(grad), {true});
    return take(grads[0], x.device().index(), name);
}

/* dx = 2 (x - target) dy, over the number of elements for a mean. */
static Tensor mse_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                int64_t reduction)
{
    SERVED("mse_loss_backward");
    Frame frame;
    const double n = (double)std::max<int64_t>(x.numel(), 1);
    const double factor = reduction == at::Reduction::Mean ? 2 / n : 2;
    tern_tensor *difference = tern_sub(lend(x), lend(target));
    tern_tensor *result =
        tern_mul(tern_mul_scalar(difference, tern_scalar_real(factor)), lend(grad));
    return take(result, x.device().index(), "mse_loss_backward");
}

static Tensor smooth_l1_loss(const Tensor &x, const Tensor &target, int64_t reduction, double beta)
{
    SERVED("smooth_l1_loss");
    Frame frame;
    tern_smooth_l1_loss_options options = tern_smooth_l1_loss_defaults();
    options.reduction = reduction_of(reduction);
    options.beta = beta == 0 ? TERN_ZERO : beta;
    return take(tern_smooth_l1_loss(lend(x), lend(target), &options), x.device().index(),
                "smooth_l1_loss");
}

static Tensor smooth_l1_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                      int64_t reduction, double beta)
{
    SERVED("smooth_l1_loss_backward");
    tern_smooth_l1_loss_options options = tern_smooth_l1_loss_defaults();
    options.reduction = reduction_of(reduction);
    options.beta = beta == 0 ? TERN_ZERO : beta;
    return loss_backward(
        "smooth_l1_loss_backward",
        [&](tern_tensor *in, tern_tensor *to) { return tern_smooth_l1_loss(in, to, &options); },
        grad, x, target);
}

static Tensor &smooth_l1_loss_backward_out(const Tensor &grad, const Tensor &x,
                                           const Tensor &target, int64_t reduction, double beta,
                                           Tensor &out)
{
    const Tensor result = torch_tern::smooth_l1_loss_backward(grad, x, target, reduction, beta);
    return out.resize_(result.sizes()).copy_(result);
}

static tern_huber_loss_options huber_options(int64_t reduction, double delta)
{
    tern_huber_loss_options options = tern_huber_loss_defaults();
    options.reduction = reduction_of(reduction);
    options.delta = delta;
    return options;
}

static Tensor huber_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                  int64_t reduction, double delta)
{
    SERVED("huber_loss_backward");
    const auto options = huber_options(reduction, delta);
    return loss_backward(
        "huber_loss_backward",
        [&](tern_tensor *in, tern_tensor *to) { return tern_huber_loss(in, to, &options); }, grad,
        x, target);
}

static Tensor &huber_loss_backward_out(const Tensor &grad, const Tensor &x, const Tensor &target,
                                       int64_t reduction, double delta, Tensor &out)
{
    const Tensor result = torch_tern::huber_loss_backward(grad, x, target, reduction, delta);
    return out.resize_(result.sizes()).copy_(result);
}

static Tensor soft_margin_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                        int64_t reduction)
{
    SERVED("soft_margin_loss_backward");
    tern_loss_options options = tern_loss_defaults();
    options.reduction = reduction_of(reduction);
    return loss_backward(
        "soft_margin_loss_backward",
        [&](tern_tensor *in, tern_tensor *to) { return tern_soft_margin_loss(in, to, &options); },
        grad, x, target);
}

static Tensor &soft_margin_loss_backward_out(const Tensor &grad, const Tensor &x,
                                             const Tensor &target, int64_t reduction, Tensor &out)
{
    const Tensor result = torch_tern::soft_margin_loss_backward(grad, x, target, reduction);
    return out.resize_(result.sizes()).copy_(result);
}

static tern_weighted_loss_options weighted_options(const OptionalTensor &weight, int64_t reduction)
{
    tern_weighted_loss_options options = tern_weighted_loss_defaults();
    options.weight = lend(weight);
    options.reduction = reduction_of(reduction);
    return options;
}

static Tensor binary_cross_entropy(const Tensor &x, const Tensor &target,
                                   const OptionalTensor &weight, int64_t reduction)
{
    SERVED("binary_cross_entropy");
    Frame frame;
    const auto options = weighted_options(weight, reduction);
    return take(tern_binary_cross_entropy(lend(x), lend(target), &options), x.device().index(),
                "binary_cross_entropy");
}

static Tensor binary_cross_entropy_backward(const Tensor &grad, const Tensor &x,
                                            const Tensor &target, const OptionalTensor &weight,
                                            int64_t reduction)
{
    SERVED("binary_cross_entropy_backward");
    Frame frame;
    const auto options = weighted_options(weight, reduction);
    return loss_backward(
        "binary_cross_entropy_backward",
        [&](tern_tensor *in, tern_tensor *to) {
            return tern_binary_cross_entropy(in, to, &options);
        },
        grad, x, target);
}

/* ---- margins ----------------------------------------------------------------------------------- */

static tern_multi_margin_loss_options margin_options(const at::Scalar &p, const at::Scalar &margin,
                                                     const OptionalTensor &weight,
                                                     int64_t reduction)
{
    tern_multi_margin_loss_options options = tern_multi_margin_loss_defaults();
    options.p = (int)p.toLong();
    options.margin = margin.toDouble() == 0 ? TERN_ZERO : margin.toDouble();
    options.weight = lend(weight);
    options.reduction = reduction_of(reduction);
    return options;
}

static Tensor multi_margin_loss(const Tensor &x, const Tensor &target, const at::Scalar &p,
                                const at::Scalar &margin, const OptionalTensor &weight,
                                int64_t reduction)
{
    SERVED("multi_margin_loss");
    Frame frame;
    const auto options = margin_options(p, margin, weight, reduction);
    return take(tern_multi_margin_loss(lend(x), lend(target), &options), x.device().index(),
                "multi_margin_loss");
}

static Tensor multi_margin_loss_backward(const Tensor &grad, const Tensor &x, const Tensor &target,
                                         const at::Scalar &p, const at::Scalar &margin,
                                         const OptionalTensor &weight, int64_t reduction)
{
    SERVED("multi_margin_loss_backward");
    Frame frame;
    const auto options = margin_options(p, margin, weight, reduction);
    return loss_backward(
        "multi_margin_loss_backward",
        [&](tern_tensor *in, tern_tensor *to) { return tern_multi_margin_loss(in, to, &options); },
        grad, x, target);
}

/* The second result, which elements are targets, is read by PyTorch's own backward operation. */
static std::tuple<Tensor, Tensor> multilabel_margin_loss_forward(const Tensor &x,
                                                                 const Tensor &target,
                                                                 int64_t reduction)
{
    SERVED("multilabel_margin_loss_forward");
    Frame frame;
    tern_loss_options options = tern_loss_defaults();
    options.reduction = reduction_of(reduction);
    return {take(tern_multilabel_margin_loss(lend(x), lend(target), &options), x.device().index(),
                 "multilabel_margin_loss"),
            at::zeros_like(x)};
}

static Tensor multilabel_margin_loss_backward(const Tensor &grad, const Tensor &x,
                                              const Tensor &target, int64_t reduction,
                                              const Tensor &)
{
    SERVED("multilabel_margin_loss_backward");
    tern_loss_options options = tern_loss_defaults();
    options.reduction = reduction_of(reduction);
    return loss_backward(
        "multilabel_margin_loss_backward",
        [&](tern_tensor *in, tern_tensor *to) {
            return tern_multilabel_margin_loss(in, to, &options);
        },
        grad, x, target);
}

/* ---- CTC ------------------------------------------------------------------------------------- */

/* PyTorch's loss of each sequence, and a table for its backward operation alone, on which the
 * recording hangs. */
static std::tuple<Tensor, Tensor> ctc_loss_of(const Tensor &log_probs, const Tensor &targets,
                                              tern_tensor *input_lengths,
                                              tern_tensor *target_lengths, int64_t blank,
                                              bool zero_infinity)
{
    SERVED("_ctc_loss");
    const int device = log_probs.device().index();
    tern_ctc_loss_options options = tern_ctc_loss_defaults();
    options.blank = blank;
    options.reduction = TERN_REDUCTION_NONE;
    options.zero_infinity = zero_infinity;
    tern_tensor *labels = lend_to(targets, device);
    auto forward = [&](Tensors &in) {
        return tern_ctc_loss(in[0], labels, input_lengths, target_lengths, &options);
    };
    std::shared_ptr<Recorded> recorded;
    Tensors inputs = {lend(log_probs)};
    tern_tensor *result = wants_gradient({&log_probs})
                              ? record("_ctc_loss", forward, inputs, {true}, &recorded)
                              : forward(inputs);
    Tensor loss = take(result, device, "_ctc_loss");
    Tensor table = at::empty({0}, log_probs.options());
    block_of(table)->recorded = std::move(recorded);
    return {loss, table};
}

static tern_tensor *lengths_of(at::IntArrayRef lengths, int device)
{
    return tern_from_data(lengths.data(), TERN_SHAPE((int64_t)lengths.size()), TERN_I64,
                          device_name(device));
}

static std::tuple<Tensor, Tensor> ctc_loss(const Tensor &log_probs, const Tensor &targets,
                                           at::IntArrayRef input_lengths,
                                           at::IntArrayRef target_lengths, int64_t blank,
                                           bool zero_infinity)
{
    Frame frame;
    const int device = log_probs.device().index();
    return ctc_loss_of(log_probs, targets, lengths_of(input_lengths, device),
                       lengths_of(target_lengths, device), blank, zero_infinity);
}

static std::tuple<Tensor, Tensor> ctc_loss_tensor(const Tensor &log_probs, const Tensor &targets,
                                                  const Tensor &input_lengths,
                                                  const Tensor &target_lengths, int64_t blank,
                                                  bool zero_infinity)
{
    Frame frame;
    const int device = log_probs.device().index();
    return ctc_loss_of(log_probs, targets, lend_to(input_lengths, device),
                       lend_to(target_lengths, device), blank, zero_infinity);
}

static Tensor ctc_backward_of(const Tensor &grad, const Tensor &table)
{
    SERVED("_ctc_loss_backward");
    Frame frame;
    TORCH_CHECK(block_of(table) && block_of(table)->recorded,
                "_ctc_loss_backward: the forward call was not recorded for its gradient");
    Tensors grads =
        gradients_of("_ctc_loss_backward", *block_of(table)->recorded, lend(grad), {true});
    return take(grads[0], grad.device().index(), "_ctc_loss_backward");
}

static Tensor ctc_loss_backward(const Tensor &grad, const Tensor &, const Tensor &, at::IntArrayRef,
                                at::IntArrayRef, const Tensor &, const Tensor &table, int64_t, bool)
{
    return ctc_backward_of(grad, table);
}

static Tensor ctc_loss_backward_tensor(const Tensor &grad, const Tensor &, const Tensor &,
                                       const Tensor &, const Tensor &, const Tensor &,
                                       const Tensor &table, int64_t, bool)
{
    return ctc_backward_of(grad, table);
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("nll_loss_forward", &torch_tern::nll_loss_forward);
    library.impl("nll_loss_backward", &torch_tern::nll_loss_backward);
    library.impl("nll_loss2d_forward", &torch_tern::nll_loss_forward);
    library.impl("nll_loss2d_backward", &torch_tern::nll_loss_backward);
    library.impl("mse_loss_backward", &torch_tern::mse_loss_backward);
    library.impl("smooth_l1_loss", &torch_tern::smooth_l1_loss);
    library.impl("smooth_l1_loss_backward", &torch_tern::smooth_l1_loss_backward);
    library.impl("smooth_l1_loss_backward.grad_input", &smooth_l1_loss_backward_out);
    library.impl("huber_loss_backward", &torch_tern::huber_loss_backward);
    library.impl("huber_loss_backward.out", &huber_loss_backward_out);
    library.impl("soft_margin_loss_backward", &torch_tern::soft_margin_loss_backward);
    library.impl("soft_margin_loss_backward.grad_input", &soft_margin_loss_backward_out);
    library.impl("binary_cross_entropy", &torch_tern::binary_cross_entropy);
    library.impl("binary_cross_entropy_backward", &torch_tern::binary_cross_entropy_backward);
    library.impl("multi_margin_loss", &torch_tern::multi_margin_loss);
    library.impl("multi_margin_loss_backward", &torch_tern::multi_margin_loss_backward);
    library.impl("multilabel_margin_loss_forward", &torch_tern::multilabel_margin_loss_forward);
    library.impl("multilabel_margin_loss_backward", &torch_tern::multilabel_margin_loss_backward);
    library.impl("_ctc_loss", &torch_tern::ctc_loss);
    library.impl("_ctc_loss.Tensor", &ctc_loss_tensor);
    library.impl("_ctc_loss_backward", &torch_tern::ctc_loss_backward);
    library.impl("_ctc_loss_backward.Tensor", &ctc_loss_backward_tensor);
}
