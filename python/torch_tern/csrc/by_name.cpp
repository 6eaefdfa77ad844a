/* by_name.cpp -- one kernel for every operation that tern has by name: a call brings the arguments
 * of PyTorch's operation to the values of tern's. */
#include "plan.h"
#include <ATen/core/dispatch/Dispatcher.h>
#include <list>
#include <unordered_map>
#include <unordered_set>

namespace torch_tern
{

/* The values of a call, and what they point to. (A list allocates nothing while it is empty.) */
struct Values {
    c10::SmallVector<tern_value, 12> list;
    std::list<at::DimVector> ints;
    std::list<std::vector<double>> reals;
    std::list<std::string> texts;
    std::list<Tensors> tensors;
    int device;
    bool any_tensor = false; /* of the device */
};

static bool is_number(const Tensor &x)
{
    return x.dim() == 0 && !on_device(x);
}

static bool add_tensor(const Bound &bound, const Tensor &x, Values &values)
{
    if (bound.take == Take::number) {
        if (!x.defined() || !is_number(x) || !x.unsafeGetTensorImpl()->is_wrapped_number() ||
            x.is_complex())
            return false;
        values.list.push_back(tern_value_scalar(bound.name, scalar(x.item())));
        return true;
    }
    if (!x.defined()) {
        values.list.push_back(tern_value_none(bound.name));
        return true;
    }
    if (dtype_of(x.scalar_type()) == TERN_DTYPE_DEFAULT || x.layout() != at::kStrided ||
        x.dim() > TERN_MAX_DIMS)
        return false;
    if (is_number(x)) { /* of the host, among tensors of the device */
        const bool as_default =
            x.unsafeGetTensorImpl()->is_wrapped_number() && x.scalar_type() == at::kDouble;
        const auto type = as_default ? at::get_default_dtype_as_scalartype() : x.scalar_type();
        values.list.push_back(
            tern_value_tensor(bound.name, tern_tensor_scalar(scalar(x.item()), dtype_of(type),
                                                             device_name(values.device))));
        return true;
    }
    if (!on_device(x))
        return false;
    values.list.push_back(tern_value_tensor(bound.name, lend(x)));
    values.any_tensor = true;
    return true;
}

static bool add_tensors(const Bound &bound, const c10::IValue &value, Values &values)
{
    values.tensors.emplace_back();
    for (const c10::IValue &each : value.toListRef()) {
        if (each.isNone() || !each.toTensor().defined() || !on_device(each.toTensor()))
            return false;
        values.tensors.back().push_back(lend(each.toTensor()));
    }
    Tensors &list = values.tensors.back();
    values.any_tensor |= !list.empty();
    values.list.push_back(tern_value_tensors(bound.name, list.data(), (int)list.size()));
    return true;
}

static void add_ints(const Bound &bound, const c10::IValue &value, Values &values)
{
    if (value.isInt() || value.isSymInt()) {
        const int64_t n = value.isInt() ? value.toInt() : value.toSymInt().expect_int();
        values.list.push_back(tern_value_int(bound.name, n));
        return;
    }
    values.ints.push_back(value.toDimVector());
    const at::DimVector &list = values.ints.back();
    values.list.push_back(tern_value_ints(bound.name, list.data(), (int)list.size()));
}

static void add_text(const Bound &bound, const c10::IValue &value, Values &values)
{
    static const char *const reductions[] = {"none", "mean", "sum"};
    if (bound.take == Take::reduction) {
        values.list.push_back(tern_value_text(bound.name, reductions[value.toInt() % 3]));
        return;
    }
    values.texts.push_back(value.toStringRef());
    values.list.push_back(tern_value_text(bound.name, values.texts.back().c_str()));
}

/* Whether the value of an argument can be a parameter's. */
static bool add_value(const Bound &bound, const c10::IValue &value, Values &values)
{
    if (value.isNone()) {
        values.list.push_back(tern_value_none(bound.name));
        return true;
    }
    if (value.isTensor())
        return add_tensor(bound, value.toTensor(), values);
    if (value.isComplexDouble())
        return false;
    switch (bound.kind) {
    case TERN_PARAMETER_TENSORS:
        return add_tensors(bound, value, values);
    case TERN_PARAMETER_INT:
    case TERN_PARAMETER_INTS:
        add_ints(bound, value, values);
        return true;
    case TERN_PARAMETER_REAL:
        values.list.push_back(tern_value_real(bound.name, value.toScalar().toDouble()));
        return true;
    case TERN_PARAMETER_REALS:
        values.reals.push_back(value.toDoubleVector());
        values.list.push_back(tern_value_reals(bound.name, values.reals.back().data(),
                                               (int)values.reals.back().size()));
        return true;
    case TERN_PARAMETER_BOOL:
        values.list.push_back(tern_value_bool(bound.name, value.toBool()));
        return true;
    case TERN_PARAMETER_SCALAR:
        values.list.push_back(tern_value_scalar(bound.name, scalar(value.toScalar())));
        return true;
    case TERN_PARAMETER_TEXT:
        add_text(bound, value, values);
        return true;
    case TERN_PARAMETER_DTYPE: {
        const tern_dtype dtype = dtype_of(value.toScalarType());
        values.list.push_back(tern_value_dtype(bound.name, dtype));
        return dtype != TERN_DTYPE_DEFAULT;
    }
    default:
        return false;
    }
}

/* The device of the first tensor that is on one. */
static int device_of(at::ArrayRef<c10::IValue> arguments)
{
    for (const c10::IValue &value : arguments) {
        if (value.isTensor() && value.toTensor().defined() && on_device(value.toTensor()))
            return value.toTensor().device().index();
        if (value.isTensorList())
            for (const c10::IValue &each : value.toListRef())
                if (each.isTensor() && each.toTensor().defined() && on_device(each.toTensor()))
                    return each.toTensor().device().index();
    }
    return current_device();
}

/* Throws PyTorch's error where a tensor that is no number is on another device. */
static void check_device(const Tensor &x, int device)
{
    TORCH_CHECK(!x.defined() || is_number(x) || (on_device(x) && x.device().index() == device),
                "Expected all tensors to be on the same device, but found at least two devices, ",
                c10::Device(device_type, (c10::DeviceIndex)device), " and ", x.device(), "!");
}

static void check_devices(at::ArrayRef<c10::IValue> arguments, int device)
{
    for (const c10::IValue &value : arguments) {
        if (value.isTensor())
            check_device(value.toTensor(), device);
        if (value.isTensorList())
            for (const Tensor &each : value.toTensorVector())
                check_device(each, device);
    }
}

/* ---- in place: tern's own forms, where it has one for these values --------------------------- */

using Binary = tern_tensor *(*)(tern_tensor *, tern_tensor *);
using WithScalar = tern_tensor *(*)(tern_tensor *, tern_scalar);
using Unary = tern_tensor *(*)(tern_tensor *);
using Ternary = tern_tensor *(*)(tern_tensor *, tern_tensor *, tern_tensor *, tern_scalar);

struct InPlace {
    Unary unary = nullptr;
    Binary binary = nullptr;
    WithScalar with_scalar = nullptr;
    Ternary ternary = nullptr;
};

static InPlace in_place_form(const std::string &base)
{
#define UNARY(NAME)                                                                                \
    {                                                                                              \
#NAME,                                                                                     \
        {                                                                                          \
            static_cast<Unary>(tern_##NAME##_), nullptr, nullptr, nullptr                          \
        }                                                                                          \
    }
#define BINARY(NAME)                                                                               \
    {                                                                                              \
#NAME,                                                                                     \
        {                                                                                          \
            nullptr, static_cast<Binary>(tern_##NAME##_),                                          \
                static_cast<WithScalar>(tern_##NAME##_scalar_), nullptr                            \
        }                                                                                          \
    }
#define TERNARY(NAME)                                                                              \
    {                                                                                              \
#NAME,                                                                                     \
        {                                                                                          \
            nullptr, nullptr, nullptr, static_cast<Ternary>(tern_##NAME##_)                        \
        }                                                                                          \
    }
    static const std::unordered_map<std::string, InPlace> forms = {
        UNARY(abs),        UNARY(exp),       UNARY(log),      UNARY(neg),  UNARY(relu),
        UNARY(rsqrt),      UNARY(sigmoid),   UNARY(sqrt),     UNARY(tanh), UNARY(ceil),
        UNARY(floor),      UNARY(cos),       UNARY(sin),      UNARY(tan),  BINARY(add),
        BINARY(sub),       BINARY(mul),      BINARY(div),     BINARY(pow), BINARY(clamp_min),
        BINARY(clamp_max), TERNARY(addcmul), TERNARY(addcdiv)};
    const auto found = forms.find(base);
    return found == forms.end() ? InPlace() : found->second;
}

/* The result of a form for exactly these values, else NULL; *is_there says which. */
static tern_tensor *call_in_place(const InPlace &form, at::ArrayRef<tern_value> v, bool *is_there)
{
    auto is = [&](size_t i, tern_value_kind kind) { return v[i].kind == kind; };
    *is_there = true;
    if (v.empty() || !is(0, TERN_VALUE_TENSOR)) {
        *is_there = false;
        return nullptr;
    }
    tern_tensor *x = v[0].as.tensor;
    if (v.size() == 1 && form.unary)
        return form.unary(x);
    if (v.size() == 2 && form.binary && is(1, TERN_VALUE_TENSOR))
        return form.binary(x, v[1].as.tensor);
    if (v.size() == 2 && form.with_scalar && is(1, TERN_VALUE_SCALAR))
        return form.with_scalar(x, v[1].as.scalar);
    if (v.size() == 4 && form.ternary && is(1, TERN_VALUE_TENSOR) && is(2, TERN_VALUE_TENSOR) &&
        is(3, TERN_VALUE_SCALAR))
        return form.ternary(x, v[1].as.tensor, v[2].as.tensor, v[3].as.scalar);
    *is_there = false;
    return nullptr;
}

struct ByName final : c10::OperatorKernel {
    enum { max_results = 8 };
    Counter counter;
    std::vector<Plan> plans;
    int n_in = 0, n_out = 0, n_results = 0; /* arguments before those named out; those; results */
    bool in_place = false;
    InPlace form;

    explicit ByName(const std::string &operation) : counter(operation)
    {
    }

    /* Whether the tensors that the call writes into can have these results, by PyTorch's rules. */
    bool can_hold(at::ArrayRef<c10::IValue> arguments, tern_tensor *const *out) const
    {
        for (int i = 0; i < (in_place ? 1 : n_out); i++) {
            const Tensor &x = arguments[(size_t)(in_place ? 0 : n_in + i)].toTensor();
            const tern_shape sizes = tern_shape_of(out[i]);
            if (!on_device(x) || dtype_of(x.scalar_type()) == TERN_DTYPE_DEFAULT ||
                !c10::canCast(scalar_type_of(tern_dtype_of(out[i])), x.scalar_type()) ||
                (in_place && x.sizes() != at::IntArrayRef(sizes.dims, (size_t)sizes.ndim)))
                return false;
        }
        return true;
    }

    /* Calls the first plan that takes the arguments; the number of results, -1 for none. */
    int call(const c10::FunctionSchema &schema, at::ArrayRef<c10::IValue> arguments, int device,
             tern_tensor **out, std::string *reason) const
    {
        for (const auto &plan : plans) {
            Values values;
            values.device = device;
            bool fit = true;
            for (int i : plan.unused)
                fit = fit && is_default(schema.arguments()[(size_t)i], arguments[(size_t)i]);
            for (size_t i = 0; fit && i < plan.bound.size(); i++)
                fit = add_value(plan.bound[i], arguments[(size_t)plan.bound[i].argument], values);
            if (!fit || !values.any_tensor)
                continue;
            bool is_there = false;
            if (in_place && call_in_place(form, values.list, &is_there)) {
                out[0] = nullptr; /* is written already */
                return 1;
            }
            if (is_there)
                tern_clear_error(); /* the form by name says why not */
            const int n = tern_named_op_call(plan.op, values.list.data(), (int)values.list.size(),
                                             out, max_results);
            if (n < 0) {
                const tern_status status = tern_last_status();
                if (status == TERN_ERR_MEMORY || status == TERN_ERR_DEVICE_LOST)
                    throw_error(counter.operation.c_str());
                *reason = tern_last_error();
                tern_clear_error();
            }
            for (int i = 0; i < n && !in_place; i++) /* a result is no view of an argument */
                if (is_one_of(out[i], values.list))
                    out[i] = tern_clone(out[i]);
            if (n >= n_results && !can_hold(arguments, out)) {
                *reason = "the tensor that it writes into has another dtype or shape";
                return -1;
            }
            return n;
        }
        return -1;
    }

    /* What the operation returns, in place of its arguments. */
    void give(torch::jit::Stack *stack, size_t n_arguments, tern_tensor **out, int device) const
    {
        c10::SmallVector<Tensor, 4> results;
        auto arguments = torch::jit::last(*stack, n_arguments);
        if (in_place) {
            results.push_back(arguments[0].toTensor());
            if (out[0])
                put(out[0], results[0], counter.operation.c_str());
        }
        for (int i = 0; !in_place && i < n_out; i++) {
            Tensor x = arguments[(size_t)(n_in + i)].toTensor();
            const tern_shape sizes = tern_shape_of(out[i]);
            const at::IntArrayRef wanted(sizes.dims, (size_t)sizes.ndim);
            if (x.sizes() != wanted)
                x.resize_(wanted);
            put(out[i], x, counter.operation.c_str());
            results.push_back(x);
        }
        for (int i = 0; !in_place && !n_out && i < n_results; i++)
            results.push_back(take(out[i], device, counter.operation.c_str()));
        torch::jit::drop(*stack, n_arguments);
        for (auto &result : results)
            stack->emplace_back(std::move(result));
    }

    void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack)
    {
        const auto &schema = op.schema();
        const size_t n_arguments = schema.arguments().size();
        auto arguments = torch::jit::last(*stack, n_arguments);
        const int device = device_of(arguments);
        std::string reason;
        {
            Frame frame;
            tern_tensor *out[max_results];
            if (call(schema, arguments, device, out, &reason) >= n_results) {
                counter.served.fetch_add(1, std::memory_order_relaxed);
                give(stack, n_arguments, out, device);
                return;
            }
        }
        check_devices(torch::jit::last(*stack, n_arguments), device);
        run_on_cpu(op, stack, reason.empty() ? "it takes no such arguments" : reason);
    }
};

/* ---- registration ---------------------------------------------------------------------------- */

/* Operations whose kernels are written by hand, or that PyTorch composes better than by names. */
/* clang-format off */
static const std::unordered_set<std::string> by_hand = {
    "transpose", "t", "squeeze", "unsqueeze", "swapaxes", "swapdims", "view", "unfold", "split",
    "index", "index_put", "detach", "alias", "nonzero", "zeros_like", "ones_like", "full_like",
    "new_zeros", "new_ones", "new_full", "zeros", "ones", "full", "arange", "eye", "linspace",
    "logspace", "lift", "bernoulli", "normal", "random", "contiguous", "clone", "repeat",
    "resize_as", "rot90", "kl_div", "poisson_nll_loss", "rrelu_with_noise", "multi_margin_loss",
    "native_norm", "unique", "_unique2", "unique_consecutive", "unique_dim_consecutive",
    "tensor_split", "meshgrid", "_prelu_kernel", "linalg_inv_ex", "linalg_det",
    "log_sigmoid_forward", "ctc_loss", "upsample_nearest2d", "binary_cross_entropy", "elu", "histc",
    "uniform", "multinomial",
};
/* clang-format on */

static bool is_by_hand(const std::string &base)
{
    return by_hand.count(base) || base.rfind("_foreach", 0) == 0 || base.rfind("_fused", 0) == 0;
}

/* A kernel for the schema; NULL where tern has none. */
static std::unique_ptr<ByName> kernel_for(const c10::OperatorName &name,
                                          const c10::FunctionSchema &schema)
{
    auto kernel = std::make_unique<ByName>(c10::toString(name));
    std::string base = name.name.substr(6);
    kernel->n_in = (int)schema.arguments().size();
    for (int i = 0; i < (int)schema.arguments().size(); i++) {
        const auto &argument = schema.arguments()[(size_t)i];
        if (argument.type()->kind() == c10::TypeKind::StorageType)
            return nullptr;
        if (!argument.alias_info())
            continue;
        if (!argument.alias_info()->isWrite())
            return nullptr; /* a view */
        if (i == 0 && base.back() == '_') {
            kernel->in_place = true;
        } else if (argument.kwarg_only()) {
            kernel->n_in = kernel->n_out++ ? kernel->n_in : i;
        } else {
            return nullptr;
        }
    }
    if (kernel->in_place && base.size() > 2)
        base.pop_back();
    for (const auto &result : schema.returns())
        if (result.type()->kind() != c10::TypeKind::TensorType)
            return nullptr;
    kernel->n_results = (int)schema.returns().size();
    if (!kernel->n_results || (kernel->n_out && kernel->in_place) || is_by_hand(base))
        return nullptr;
    if (kernel->in_place)
        kernel->form = in_place_form(base);
    kernel->plans = plans_for(schema, base, kernel->n_in, kernel->n_results);
    return kernel->plans.empty() ? nullptr : std::move(kernel);
}

static std::vector<std::string> registered;

std::vector<std::string> operations_by_name()
{
    return registered;
}

void register_operations_by_name()
{
    static auto *handles = new std::vector<c10::RegistrationHandleRAII>;
    auto &dispatcher = c10::Dispatcher::singleton();
    for (const auto &name : dispatcher.getAllOpNames()) {
        if (name.name.rfind("aten::", 0) != 0)
            continue;
        auto handle = dispatcher.findSchema(name);
        if (!handle || handle->hasKernelForDispatchKey(dispatch_key) ||
            handle->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
            continue;
        auto kernel = kernel_for(name, handle->schema());
        if (!kernel)
            continue;
        registered.push_back(c10::toString(name));
        handles->push_back(dispatcher.registerImpl(
            name, dispatch_key, c10::KernelFunction::makeFromBoxedFunctor(std::move(kernel)),
            std::nullopt, nullptr, "tern by name"));
    }
}

} // namespace torch_tern
