/* cross_entropy.cpp -- cross entropy of classes as one operation of tern's, forward and back, where
 * PyTorch takes it apart into log_softmax and nll_loss. */
#include "torch_tern.h"
#include <ATen/ops/cross_entropy_loss_native.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace torch_tern
{

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

static Tensor composed(const Tensor &x, const Tensor &target, const OptionalTensor &weight,
                       int64_t reduction, int64_t ignore_index, double label_smoothing)
{
    return at::native::cross_entropy_loss_symint(x, target, weight, reduction, ignore_index,
                                                 label_smoothing);
}

static Tensor forward_of(const Tensor &x, const Tensor &target, const OptionalTensor &weight,
                         int64_t reduction, int64_t ignore_index, double label_smoothing,
                         std::shared_ptr<Recorded> *recorded)
{
    SERVED("cross_entropy_loss");
    Frame frame;
    static const tern_reduction reductions[] = {TERN_REDUCTION_NONE, TERN_REDUCTION_MEAN,
                                                TERN_REDUCTION_SUM};
    tern_cross_entropy_options options = tern_cross_entropy_defaults();
    options.weight = lend(weight);
    options.ignore_index = tern_some(ignore_index);
    options.reduction = reductions[reduction % 3];
    options.label_smoothing = label_smoothing;
    tern_tensor *targets = lend(target);
    auto forward = [&](Tensors &in) { return tern_cross_entropy(in[0], targets, &options); };
    Tensors inputs = {lend(x)};
    tern_tensor *loss = recorded ? record("cross_entropy_loss", forward, inputs, {true}, recorded)
                                 : forward(inputs);
    return take(loss, x.device().index(), "cross_entropy_loss");
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
    static Tensor forward(AutogradContext *context, const Tensor &x, const Tensor &target,
                          const OptionalTensor &weight, int64_t reduction, int64_t ignore_index,
                          double label_smoothing)
    {
        at::AutoDispatchBelowADInplaceOrView guard;
        std::shared_ptr<Recorded> recorded;
        Tensor loss =
            forward_of(x, target, weight, reduction, ignore_index, label_smoothing, &recorded);
        Tensor holder = at::empty({0}, x.options());
        block_of(holder)->recorded = std::move(recorded);
        context->save_for_backward({x, target, weight.value_or(Tensor()), holder});
        context->saved_data["reduction"] = reduction;
        context->saved_data["ignore_index"] = ignore_index;
        context->saved_data["label_smoothing"] = label_smoothing;
        return loss;
    }
    static variable_list backward(AutogradContext *context, variable_list grads)
    {
        const variable_list saved = context->get_saved_variables();
        const Tensor &x = saved[0], &holder = saved[3];
        const auto recorded = block_of(holder) ? block_of(holder)->recorded : nullptr;
        Tensor dx;
        if (!at::GradMode::is_enabled() && recorded) {
            SERVED("cross_entropy_loss_backward");
            Frame frame;
            dx = take(gradients_of("cross_entropy_loss", *recorded, lend(grads[0]), {true})[0],
                      x.device().index(), "cross_entropy_loss");
        } else { /* whose own gradient is asked for, or a hook took the recording away */
            const bool create_graph = at::GradMode::is_enabled();
            at::AutoGradMode enabled(true);
            const Tensor in = create_graph ? x : x.detach().requires_grad_();
            const OptionalTensor weight =
                saved[2].defined() ? OptionalTensor(saved[2]) : std::nullopt;
            const Tensor loss =
                composed(in, saved[1], weight, context->saved_data["reduction"].toInt(),
                         context->saved_data["ignore_index"].toInt(),
                         context->saved_data["label_smoothing"].toDouble());
            dx = torch::autograd::grad({loss}, {in}, {grads[0]}, true, create_graph)[0];
        }
        return {dx, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
    }
};

/* Whether the target has one number of a class for each row of scores. */
static bool is_of_classes(const Tensor &x, const Tensor &target)
{
    if (target.scalar_type() != at::kLong || !on_device(target) || x.dim() < 1)
        return false;
    at::DimVector sizes(x.sizes());
    sizes.erase(sizes.begin() + (x.dim() == 1 ? 0 : 1));
    return target.sizes() == at::IntArrayRef(sizes);
}

/* Whether tern has it as one operation, and only the input's gradient is asked for. PyTorch's own
 * form says what is wrong with sizes and dtypes. */
static bool is_fused(const Tensor &x, const Tensor &target, const OptionalTensor &weight)
{
    return on_device(x) && is_of_classes(x, target) && x.numel() > 0 &&
           x.layout() == at::kStrided && !x.is_complex() &&
           dtype_of(x.scalar_type()) != TERN_DTYPE_DEFAULT && !x._fw_grad(0).defined() &&
           !(weight && weight->defined() && (weight->requires_grad() || !on_device(*weight)));
}

static Tensor cross_entropy_loss(const Tensor &x, const Tensor &target,
                                 const OptionalTensor &weight, int64_t reduction,
                                 c10::SymInt ignore_index, double label_smoothing)
{
    const int64_t ignored = ignore_index.expect_int();
    if (!is_fused(x, target, weight))
        return composed(x, target, weight, reduction, ignored, label_smoothing);
    if (!wants_gradient({&x})) {
        at::AutoDispatchBelowADInplaceOrView guard;
        return forward_of(x, target, weight, reduction, ignored, label_smoothing, nullptr);
    }
    return CrossEntropy::apply(x, target, weight, reduction, ignored, label_smoothing);
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, library)
{
    library.impl("cross_entropy_loss", &torch_tern::cross_entropy_loss);
}
