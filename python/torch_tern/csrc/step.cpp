/* step.cpp -- a function of Python's as a step of tern's that records itself (tern/step.h). The
 * function sees the recording's own inputs; what it returns is kept by Python. */
#include "torch_tern.h"
#include <tern/graph.h>
#include <tern/step.h>

namespace torch_tern
{

thread_local uint64_t recording = 0;

/* Calls the function; whether that is recorded. 0, or 1 after an exception, which Python keeps. */
using Callback = int (*)(int is_recorded);

struct Step {
    Callback callback;
    tern_step *step = nullptr;
    int64_t variant = 0;
    std::string error; /* the text of the exception */
    ~Step()
    {
        tern_step_free(step);
    }
};

/* The call of a step that goes on in this thread. */
struct Call {
    tern_tensor *const *in;
    int n;
};
static thread_local const Call *current_call = nullptr;

static tern_status run_function(void *user, tern_tensor *const *in, int n, tern_tensor **, int)
{
    static std::atomic<uint64_t> recordings{0};
    auto *step = static_cast<Step *>(user);
    const Call call{in, n};
    const Call *const outer_call = current_call;
    const uint64_t outer = recording;
    const bool is_recorded = tern_is_capturing() && !outer;
    current_call = &call;
    if (is_recorded)
        recording = ++recordings;
    const int failed = step->callback(is_recorded);
    recording = outer;
    current_call = outer_call;
    if (!failed)
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE, "%s", step->error.c_str());
}

void *new_step(Callback callback, int warmup, int max_recordings)
{
    auto step = std::make_unique<Step>();
    step->callback = callback;
    tern_step_options options = tern_step_defaults();
    options.warmup = warmup;
    options.max_recordings = max_recordings;
    options.variant = &step->variant;
    step->step = tern_step_new(run_function, step.get(), &options);
    check(step->step != nullptr, "torch_tern.step");
    return step.release();
}

void free_step(void *step)
{
    delete static_cast<Step *>(step);
}

void reset_step(void *step)
{
    check(tern_step_reset(static_cast<Step *>(step)->step), "torch_tern.step");
}

void set_step_error(void *step, const char *text)
{
    static_cast<Step *>(step)->error = text;
}

tern_step_stats stats_of_step(const void *step)
{
    return tern_step_get_stats(static_cast<const Step *>(step)->step);
}

/* Runs, records or replays the function for these inputs, all of one device. */
static void run_step(int64_t handle, at::TensorList inputs, int64_t variant)
{
    auto *step = reinterpret_cast<Step *>(handle);
    Frame frame;
    Tensors in;
    for (const Tensor &x : inputs)
        in.push_back(lend(x.detach()));
    step->variant = variant;
    check(tern_step_run(step->step, in.data(), (int)in.size(), nullptr, 0), "torch_tern.step");
}

/* The recording's inputs, in the function. */
static std::vector<Tensor> step_inputs(int64_t device)
{
    TORCH_CHECK(current_call, "torch_tern.step: no step runs");
    std::vector<Tensor> inputs;
    for (int i = 0; i < current_call->n; i++)
        inputs.push_back(take(current_call->in[i], (int)device, "torch_tern.step"));
    return inputs;
}

} // namespace torch_tern

/* Composite, so that autograd records in the function what it would record elsewhere. */
TORCH_LIBRARY(torch_tern, library)
{
    library.def("run_step(int step, Tensor[] inputs, int variant) -> ()", &torch_tern::run_step);
    library.def("step_inputs(int device) -> Tensor[]", &torch_tern::step_inputs);
}
