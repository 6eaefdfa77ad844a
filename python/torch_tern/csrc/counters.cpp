/* counters.cpp -- how often tern served an operation, and how often the cpu had to. */
#include "torch_tern.h"
#include <ATen/native/CPUFallback.h>
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace torch_tern
{

/* ---- counters -------------------------------------------------------------------------------- */

static std::mutex &lock_of_counters()
{
    static auto *lock = new std::mutex;
    return *lock;
}

static std::vector<Counter *> &all_counters()
{
    static auto *list = new std::vector<Counter *>;
    return *list;
}

Counter::Counter(std::string operation_) : operation(std::move(operation_))
{
    std::lock_guard<std::mutex> guard(lock_of_counters());
    all_counters().push_back(this);
}

Counter::~Counter()
{
    std::lock_guard<std::mutex> guard(lock_of_counters());
    auto &list = all_counters();
    list.erase(std::remove(list.begin(), list.end(), this), list.end());
}

void each_counter(const std::function<void(Counter &)> &visit)
{
    std::lock_guard<std::mutex> guard(lock_of_counters());
    for (Counter *counter : all_counters())
        visit(*counter);
}

/* The counter of an operation that has no kernel of its own. */
static Counter &counter_of(const std::string &operation)
{
    static std::mutex lock;
    static std::unordered_map<std::string, std::unique_ptr<Counter>> counters;
    std::lock_guard<std::mutex> guard(lock);
    auto &counter = counters[operation];
    if (!counter)
        counter = std::make_unique<Counter>(operation);
    return *counter;
}

/* ---- fallbacks ------------------------------------------------------------------------------- */

static bool is_strict()
{
    const char *variable = getenv("TERN_TORCH_STRICT");
    return variable && *variable && std::string(variable) != "0";
}

static void refuse_if_strict(const std::string &operation, const std::string &reason)
{
    TORCH_CHECK_NOT_IMPLEMENTED(!is_strict(), operation, " has no kernel on tern for this call (",
                                reason, "), and TERN_TORCH_STRICT=1 lets nothing run on the cpu");
}

void note_fallback(const std::string &operation, const std::string &reason)
{
    refuse_if_strict(operation, reason);
    Counter &counter = counter_of(operation);
    if (counter.fallbacks.fetch_add(1) != 0)
        return;
    bool first;
    {
        std::lock_guard<std::mutex> guard(lock_of_counters()); /* other threads read the reason */
        first = counter.reason.empty();
        counter.reason = reason;
    }
    if (first)
        TORCH_WARN("tern: ", operation,
                   " runs on the cpu, which waits for the device and copies (", reason,
                   "); torch.tern.fallbacks() counts such calls, and TERN_TORCH_STRICT=1 makes "
                   "them errors");
}

/* An argument with its tensors on the cpu. */
static c10::IValue on_cpu(const c10::IValue &value)
{
    if (value.isTensor() && value.toTensor().defined())
        return value.toTensor().cpu();
    if (value.isDevice())
        return c10::Device(at::kCPU);
    if (value.isGenerator())
        return {};
    if (!value.isList())
        return value;
    c10::impl::GenericList list(value.toList().elementType());
    for (const c10::IValue &each : value.toListRef())
        list.push_back(on_cpu(each));
    return list;
}

/* In strict mode a call that is wrong everywhere has PyTorch's error, and only what the cpu would
 * have done is refused. */
static void check_call(const c10::OperatorHandle &op, const torch::jit::Stack &stack)
{
    torch::jit::Stack copies;
    for (const c10::IValue &value : torch::jit::last(stack, op.schema().arguments().size()))
        copies.push_back(on_cpu(value));
    op.callBoxed(copies);
}

void run_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason)
{
    const std::string operation = c10::toString(op.operator_name());
    if (is_strict())
        check_call(op, *stack);
    refuse_if_strict(operation, reason);
    TORCH_CHECK(!recording, operation, " runs on the cpu (", reason, "), which can't be recorded");
    at::native::cpu_fallback(op, stack); /* throws PyTorch's error of a call that is wrong */
    note_fallback(operation, reason);
}

static void fallback(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    run_on_cpu(op, stack, "it is not there");
}

} // namespace torch_tern

TORCH_LIBRARY_IMPL(_, PrivateUse1, library)
{
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&torch_tern::fallback>());
}
