/* optimizers.cpp -- PyTorch's fused optimizers: all parameters of a device and dtype in one launch
 * of tern's optimizer, which the moments that PyTorch holds belong to from the first step on. */
#include "torch_tern.h"
#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <tern/autograd.h>
#include <tern/optim.h>
#include <unordered_map>

namespace torch_tern
{

using at::TensorList;

enum class Kind { adam, adamw, sgd };

/* What tells the optimizers of one call from those of another. */
struct Settings {
    Kind kind;
    bool amsgrad = false, maximize = false, nesterov = false;
    double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0, momentum = 0, dampening = 0;
    bool has_same_kind(const Settings &other) const
    {
        return kind == other.kind && amsgrad == other.amsgrad && maximize == other.maximize &&
               nesterov == other.nesterov && (momentum == 0) == (other.momentum == 0);
    }
};

/* An optimizer of tern's over tensors whose memory it shares with PyTorch's. */
struct Optimizer {
    Settings settings;
    tern_optimizer *optimizer = nullptr;
    const void *first = nullptr;           /* what PyTorch takes for the address of the first */
    std::vector<tern_tensor *> parameters; /* kept */
    std::vector<std::vector<tern_tensor *>> states; /* of each name of state_names, kept */
    ~Optimizer()
    {
        tern_optim_free(optimizer);
        for (tern_tensor *x : parameters)
            tern_release(x);
        for (auto &list : states)
            for (tern_tensor *x : list)
                tern_release(x);
    }
};

static tern_optimizer *make(const Settings &s, std::vector<tern_tensor *> &parameters)
{
    const int n = (int)parameters.size();
    if (s.kind == Kind::sgd) {
        tern_sgd_options options = tern_sgd_defaults();
        options.momentum = s.momentum;
        options.dampening = s.nesterov ? 0 : s.dampening;
        options.weight_decay = s.weight_decay;
        options.nesterov = s.nesterov;
        options.maximize = s.maximize;
        return tern_optim_sgd_of(parameters.data(), n, s.lr, &options);
    }
    tern_adam_options options = tern_adam_defaults();
    options.beta1 = s.beta1;
    options.beta2 = s.beta2;
    options.eps = s.eps;
    options.weight_decay = s.weight_decay;
    options.amsgrad = s.amsgrad;
    options.maximize = s.maximize;
    options.decoupled_weight_decay = s.kind == Kind::adamw;
    return tern_optim_adam_of(parameters.data(), n, s.lr, &options);
}

/* The tensor that stands on all of x's memory. */
static tern_tensor *whole(const Tensor &x)
{
    lend(x);
    return block_of(x)->typed;
}

static bool is_dense(const Tensor &x)
{
    return x.numel() == 0 || (x.storage_offset() == 0 && x.is_non_overlapping_and_dense());
}

static void give_states(Optimizer &o, const std::vector<std::string> &names,
                        const std::vector<TensorList> &states, at::ArrayRef<double> steps)
{
    const char *const function = "the fused optimizer";
    for (size_t k = 0; k < names.size(); k++)
        for (size_t i = 0; i < o.parameters.size(); i++) {
            const std::string path = "state." + std::to_string(i) + "." + names[k];
            check(tern_optim_set_state(o.optimizer, path.c_str(), lend(states[k][i])), function);
        }
    for (size_t i = 0; i < o.parameters.size() && !steps.empty(); i++) {
        const std::string path = "state." + std::to_string(i) + ".step";
        tern_tensor *step =
            tern_tensor_scalar(tern_scalar_int((int64_t)steps[i] - 1), TERN_I64, "cpu");
        if (o.parameters[i] && tern_numel(o.parameters[i]))
            check(tern_optim_set_state(o.optimizer, path.c_str(), step), function);
    }
}

/* PyTorch's tensors stand on the memory of tern's states from here on. */
static void share_states(Optimizer &o, const std::vector<std::string> &names,
                         const std::vector<TensorList> &states)
{
    struct Found {
        std::unordered_map<std::string, tern_tensor *> by_path;
    } found;
    check(tern_optim_each_state(
              o.optimizer,
              [](const char *name, tern_tensor *x, void *user) {
                  static_cast<Found *>(user)->by_path[name] = x;
                  return TERN_OK;
              },
              &found),
          "the fused optimizer");
    for (size_t k = 0; k < names.size(); k++) {
        o.states.emplace_back();
        for (size_t i = 0; i < o.parameters.size(); i++) {
            tern_tensor *state = found.by_path["state." + std::to_string(i) + "." + names[k]];
            if (state && states[k][i].numel()) {
                adopt(state, states[k][i]);
                state = block_of(states[k][i])->typed;
                block_of(states[k][i])->stays = true;
            }
            o.states.back().push_back(state ? tern_keep(state) : nullptr);
        }
    }
}

/* Whether the tensors still stand on the memory that the optimizer works on. */
static bool is_of(const Optimizer &o, const Settings &settings, TensorList parameters,
                  const std::vector<TensorList> &states)
{
    if (!o.settings.has_same_kind(settings) || o.parameters.size() != parameters.size() ||
        o.states.size() != states.size())
        return false;
    for (size_t i = 0; i < parameters.size(); i++)
        if (o.parameters[i] != whole(parameters[i]))
            return false;
    for (size_t k = 0; k < states.size(); k++)
        for (size_t i = 0; i < parameters.size(); i++)
            if (states[k][i].numel() && o.states[k][i] != block_of(states[k][i])->typed)
                return false;
    return true;
}

/* A storage may end while an optimizer takes over another one's memory. */
static std::recursive_mutex &lock()
{
    static auto *the_lock = new std::recursive_mutex;
    return *the_lock;
}

/* The latest are first. */
static std::list<Optimizer> &optimizers()
{
    static auto *all = new std::list<Optimizer>;
    return *all;
}

/* Ends the optimizers that work on a tensor. */
static void forget_optimizers(tern_tensor *typed)
{
    std::list<Optimizer> ended; /* freed without the lock */
    std::lock_guard<std::recursive_mutex> guard(lock());
    auto &all = optimizers();
    for (auto it = all.begin(); it != all.end();) {
        auto next = std::next(it);
        const auto &x = it->parameters;
        if (std::find(x.begin(), x.end(), typed) != x.end())
            ended.splice(ended.end(), all, it);
        it = next;
    }
}

/* When x's storage ends, or stands on other memory, so do the optimizers that work on it: an empty
 * recording hangs on it, which says so when it ends. */
static void end_with_storage(const Tensor &x)
{
    tern_tensor *const typed = block_of(x)->typed;
    block_of(x)->stays = true;
    auto ended = [typed](Recorded *recorded) {
        forget_optimizers(typed);
        delete recorded;
    };
    block_of(x)->recorded = std::shared_ptr<Recorded>(new Recorded, ended);
}

/* The optimizer of these tensors: that of an earlier step, or a new one. */
static Optimizer &optimizer_for(const Settings &settings, TensorList parameters,
                                const std::vector<std::string> &names,
                                const std::vector<TensorList> &states, TensorList state_steps)
{
    enum { most = 16 };
    auto *const all = &optimizers();
    for (auto it = all->begin(); it != all->end(); ++it)
        if (is_of(*it, settings, parameters, states)) {
            all->splice(all->begin(), *all, it);
            return all->front();
        }
    TORCH_CHECK(!recording, "the first step of an optimizer over these tensors can't be recorded");
    std::vector<double> steps;
    if (!state_steps.empty()) {
        const Tensor host = at::stack(state_steps).to(at::kCPU, at::kDouble);
        steps.assign(host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel());
    }
    for (const Tensor &x : parameters)
        block_of(x)->recorded.reset(); /* ends those of before */
    all->emplace_front();
    Optimizer &o = all->front();
    try {
        o.settings = settings;
        o.first = parameters[0].storage().data_ptr().get();
        for (const Tensor &x : parameters)
            o.parameters.push_back(tern_keep(whole(x)));
        o.optimizer = make(settings, o.parameters);
        check(o.optimizer != nullptr, "the fused optimizer");
        give_states(o, names, states, steps);
        share_states(o, names, states);
        for (const Tensor &x : parameters)
            end_with_storage(x);
    } catch (...) {
        all->pop_front();
        throw;
    }
    if (all->size() > most)
        all->pop_back();
    return o;
}

static void set_options(Optimizer &o, const Settings &s)
{
    const Settings &b = o.settings;
    auto set = [&](const char *name, double value, double before) {
        if (value != before)
            check(tern_optim_set_option(o.optimizer, 0, name, value), "the fused optimizer");
    };
    set("lr", s.lr, b.lr);
    set("weight_decay", s.weight_decay, b.weight_decay);
    if (s.kind == Kind::sgd) {
        set("momentum", s.momentum, b.momentum);
        set("dampening", s.dampening, b.dampening);
    } else {
        set("beta1", s.beta1, b.beta1);
        set("beta2", s.beta2, b.beta2);
        set("eps", s.eps, b.eps);
    }
    o.settings = s;
}

/* Whether a gradient scaler found a gradient that is not finite; else the gradients are divided by
 * its scale, as PyTorch's own fused optimizers leave them. */
static bool is_skipped(TensorList grads, const OptionalTensor &grad_scale,
                       const OptionalTensor &found_inf)
{
    if (found_inf && found_inf->defined() && found_inf->item<double>() != 0)
        return true;
    if (grad_scale && grad_scale->defined())
        for (const Tensor &grad : grads)
            const_cast<Tensor &>(grad).div_(*grad_scale);
    return false;
}

void set_optimizer(const void *first, const OptimizerNumbers &n)
{
    std::lock_guard<std::recursive_mutex> guard(lock());
    for (Optimizer &o : optimizers())
        if (o.first == first) {
            Settings s = o.settings;
            s.lr = n.lr, s.weight_decay = n.weight_decay, s.beta1 = n.beta1, s.beta2 = n.beta2;
            s.eps = n.eps, s.momentum = n.momentum, s.dampening = n.dampening;
            set_options(o, s);
        }
}

static void step(const Settings &settings, TensorList parameters, TensorList grads,
                 const std::vector<std::string> &names, const std::vector<TensorList> &states,
                 TensorList state_steps)
{
    std::lock_guard<std::recursive_mutex> guard(lock());
    Frame frame;
    Optimizer &o = optimizer_for(settings, parameters, names, states, state_steps);
    set_options(o, settings);
    for (size_t i = 0; i < parameters.size(); i++)
        check(tern_set_grad(o.parameters[i], tern_detach(lend(grads[i]))), "the fused optimizer");
    const tern_status status = tern_optim_step(o.optimizer);
    for (tern_tensor *x : o.parameters)
        tern_set_grad(x, nullptr);
    check(status, "the fused optimizer");
}

/* Whether tern's optimizers take tensors as they are: float32 or float64 in their own memory. */
static bool can_be_shared(TensorList parameters, const std::vector<TensorList> &states)
{
    for (const Tensor &x : parameters)
        if ((x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble) || !is_dense(x) ||
            !x.is_contiguous() || x.storage().nbytes() != (size_t)x.numel() * x.element_size())
            return false;
    for (const auto &list : states)
        for (size_t i = 0; i < list.size(); i++)
            if (list[i].scalar_type() != parameters[i].scalar_type() || !list[i].is_contiguous() ||
                list[i].storage_offset() != 0 ||
                list[i].storage().nbytes() != (size_t)list[i].numel() * list[i].element_size())
                return false;
    return true;
}

/* ---- Adam and AdamW -------------------------------------------------------------------------- */

/* One parameter by operations on tensors, for half precision and views. */
static void adam_by_operations(const Settings &s, const Tensor &x, const Tensor &grad_,
                               const Tensor &exp_avg, const Tensor &exp_avg_sq,
                               const Tensor &max_exp_avg_sq, const Tensor &step_)
{
    TORCH_CHECK(!recording, "Adam's steps of views and of halves can't be recorded");
    const double t = step_.item<double>();
    Tensor grad = s.maximize ? grad_.neg() : grad_;
    if (s.weight_decay != 0 && s.kind == Kind::adamw)
        x.mul_(1 - s.lr * s.weight_decay);
    else if (s.weight_decay != 0)
        grad = grad.add(x, s.weight_decay);
    exp_avg.lerp_(grad, 1 - s.beta1);
    exp_avg_sq.mul_(s.beta2).addcmul_(grad, grad, 1 - s.beta2);
    Tensor square = exp_avg_sq;
    if (s.amsgrad) {
        max_exp_avg_sq.copy_(at::maximum(max_exp_avg_sq, exp_avg_sq));
        square = max_exp_avg_sq;
    }
    const double correction = std::sqrt(1 - std::pow(s.beta2, t));
    x.addcdiv_(exp_avg, square.sqrt().div_(correction).add_(s.eps),
               -s.lr / (1 - std::pow(s.beta1, t)));
}

static void fused_adam(Settings s, TensorList parameters, TensorList grads, TensorList exp_avgs,
                       TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList steps,
                       const OptionalTensor &grad_scale, const OptionalTensor &found_inf)
{
    if (parameters.empty() || is_skipped(grads, grad_scale, found_inf))
        return;
    at::NoGradGuard no_grad;
    std::vector<std::string> names = {"exp_avg", "exp_avg_sq"};
    std::vector<TensorList> states = {exp_avgs, exp_avg_sqs};
    if (s.amsgrad) {
        names.push_back("max_exp_avg_sq");
        states.push_back(max_exp_avg_sqs);
    }
    if (can_be_shared(parameters, states)) {
        step(s, parameters, grads, names, states, steps);
        return;
    }
    for (size_t i = 0; i < parameters.size(); i++)
        adam_by_operations(s, parameters[i], grads[i], exp_avgs[i], exp_avg_sqs[i],
                           s.amsgrad ? max_exp_avg_sqs[i] : Tensor(), steps[i]);
}

#define ADAM(NAME, KIND)                                                                           \
    static void NAME(TensorList parameters, TensorList grads, TensorList exp_avgs,                 \
                     TensorList exp_avg_sqs, TensorList max_exp_avg_sqs, TensorList steps,         \
                     double lr, double beta1, double beta2, double weight_decay, double eps,       \
                     bool amsgrad, bool maximize, const OptionalTensor &grad_scale,                \
                     const OptionalTensor &found_inf)                                              \
    {                                                                                              \
        SERVED("_" #NAME);                                                                         \
        Settings s{KIND};                                                                          \
        s.lr = lr, s.beta1 = beta1, s.beta2 = beta2, s.weight_decay = weight_decay, s.eps = eps;   \
        s.amsgrad = amsgrad, s.maximize = maximize;                                                \
        fused_adam(s, parameters, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps,            \
                   grad_scale, found_inf);                                                         \
    }                                                                                              \
    static void NAME##_tensor_lr(                                                                  \
        TensorList parameters, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,      \
        TensorList max_exp_avg_sqs, TensorList steps, const Tensor &lr, double beta1,              \
        double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,                \
        const OptionalTensor &grad_scale, const OptionalTensor &found_inf)                         \
    {                                                                                              \
        NAME(parameters, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps, lr.item<double>(),  \
             beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);           \
    }
ADAM(fused_adam_, Kind::adam)
ADAM(fused_adamw_, Kind::adamw)

/* ---- SGD ------------------------------------------------------------------------------------- */

static void sgd_by_operations(const Settings &s, const Tensor &x, const Tensor &grad_,
                              const Tensor &momentum, bool is_first_step)
{
    TORCH_CHECK(!recording, "SGD's first step with momentum, and its steps of views and of halves, "
                            "can't be recorded");
    Tensor grad = s.maximize ? grad_.neg() : grad_;
    if (s.weight_decay != 0)
        grad = grad.add(x, s.weight_decay);
    if (s.momentum != 0) {
        if (is_first_step)
            momentum.copy_(grad);
        else
            momentum.mul_(s.momentum).add_(grad, 1 - s.dampening);
        grad = s.nesterov ? grad.add(momentum, s.momentum) : momentum;
    }
    x.add_(grad, -s.lr);
}

static void fused_sgd(TensorList parameters, TensorList grads, TensorList momenta,
                      double weight_decay, double momentum, double lr, double dampening,
                      bool nesterov, bool maximize, bool is_first_step,
                      const OptionalTensor &grad_scale, const OptionalTensor &found_inf)
{
    SERVED("_fused_sgd_");
    if (parameters.empty() || is_skipped(grads, grad_scale, found_inf))
        return;
    at::NoGradGuard no_grad;
    Settings s{Kind::sgd};
    s.lr = lr, s.weight_decay = weight_decay, s.momentum = momentum, s.dampening = dampening;
    s.nesterov = nesterov, s.maximize = maximize;
    std::vector<std::string> names;
    std::vector<TensorList> states;
    if (momentum != 0) {
        names.push_back("momentum_buffer");
        states.push_back(momenta);
    }
    /* The first step fills the momenta; tern's begin at zero, so that dampening would count. */
    if (!(is_first_step && momentum != 0) && can_be_shared(parameters, states)) {
        const std::vector<Tensor> twos(momentum != 0 ? parameters.size() : 0,
                                       at::full({}, 2, at::kFloat));
        step(s, parameters, grads, names, states, twos);
        return;
    }
    for (size_t i = 0; i < parameters.size(); i++)
        sgd_by_operations(s, parameters[i], grads[i], momentum != 0 ? momenta[i] : Tensor(),
                          is_first_step);
}

static void fused_sgd_tensor_lr(TensorList parameters, TensorList grads, TensorList momenta,
                                double weight_decay, double momentum, const Tensor &lr,
                                double dampening, bool nesterov, bool maximize, bool is_first_step,
                                const OptionalTensor &grad_scale, const OptionalTensor &found_inf)
{
    fused_sgd(parameters, grads, momenta, weight_decay, momentum, lr.item<double>(), dampening,
              nesterov, maximize, is_first_step, grad_scale, found_inf);
}

/* ---- gradient scalers ------------------------------------------------------------------------ */

static void unscale(TensorList grads, Tensor &found_inf, const Tensor &inv_scale)
{
    SERVED("_amp_foreach_non_finite_check_and_unscale_");
    for (const Tensor &grad : grads) {
        const_cast<Tensor &>(grad).mul_(inv_scale);
        found_inf.copy_(at::maximum(found_inf, grad.isfinite().all().logical_not().to(at::kFloat)));
    }
}

static Tensor &update_scale(Tensor &scale, Tensor &tracker, const Tensor &found_inf, double growth,
                            double backoff, int64_t interval)
{
    SERVED("_amp_update_scale_");
    if (found_inf.item<double>() != 0) {
        scale.mul_(backoff);
        tracker.zero_();
        return scale;
    }
    const int64_t successes = tracker.item<int64_t>() + 1;
    if (successes == interval) {
        const Tensor grown = scale * growth;
        if (std::isfinite(grown.item<double>()))
            scale.copy_(grown);
    }
    tracker.fill_(successes == interval ? 0 : successes);
    return scale;
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    using namespace torch_tern;
    library.impl("_fused_adam_", &fused_adam_);
    library.impl("_fused_adam_.tensor_lr", &fused_adam__tensor_lr);
    library.impl("_fused_adamw_", &fused_adamw_);
    library.impl("_fused_adamw_.tensor_lr", &fused_adamw__tensor_lr);
    library.impl("_fused_sgd_", &fused_sgd);
    library.impl("_fused_sgd_.tensor_lr", &fused_sgd_tensor_lr);
    library.impl("_amp_foreach_non_finite_check_and_unscale_", &unscale);
    library.impl("_amp_update_scale_", &update_scale);
}
