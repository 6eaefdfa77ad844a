/* torch_tern.h -- what the files of this extension share: devices, the memory under tensors,
 * tensors of PyTorch lent to tern and results of tern taken over, errors and counters. */
#pragma once
#include <ATen/ATen.h>
#include <atomic>
#include <c10/core/Allocator.h>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <tern/interop.h>
#include <tern/names.h>
#include <tern/ops.h>
#include <tern/step.h>
#include <tern/tern.h>
#include <torch/library.h>
#include <vector>

namespace torch_tern
{

constexpr auto device_type = c10::DeviceType::PrivateUse1;
constexpr auto dispatch_key = c10::DispatchKey::PrivateUse1;
using at::Tensor;
using OptionalTensor = std::optional<at::Tensor>;

/* ---- devices (device.cpp): "tern:0" is the first of TERN_TORCH_DEVICES ----------------------- */
int device_count();
/* Replaces TERN_TORCH_DEVICES. Throws once the devices are in use, and where one is not there. */
void choose_devices(const std::string &wanted);
/* tern's own string of a device ("opencl:0"), which lives as long as the process. Throws where
 * there is no such device. */
const char *device_name(int index);
int current_device();
/* Makes another device current on this thread and returns the one before; a negative index changes
 * nothing. */
int exchange_device(int index);
const at::Generator &default_generator(int index);
at::Generator new_generator(int index);
inline bool on_device(const Tensor &x)
{
    return x.device().type() == device_type;
}
/* The device that options of PyTorch's ask for. */
inline int index_of(const std::optional<c10::Device> &device)
{
    return device && device->has_index() ? device->index() : current_device();
}

/* ---- errors (memory.cpp) --------------------------------------------------------------------- */
/* Throws tern's recorded error as an exception of PyTorch's: OutOfMemoryError, NotImplementedError,
 * IndexError or RuntimeError. */
[[noreturn]] void throw_error(const char *operation);
inline void check(bool ok, const char *operation)
{
    if (C10_UNLIKELY(!ok))
        throw_error(operation);
}
inline void check(tern_status status, const char *operation)
{
    check(status == TERN_OK, operation);
}

/* ---- counters (counters.cpp) ----------------------------------------------------------------- */
struct Counter {
    explicit Counter(std::string operation);
    ~Counter();
    Counter(const Counter &) = delete;
    Counter &operator=(const Counter &) = delete;
    std::string operation; /* "aten::add.Tensor" */
    std::atomic<int64_t> served{0}, fallbacks{0};
    std::string reason; /* of the first fallback */
};
#define SERVED(operation)                                                                          \
    static Counter counter_of_operation("aten::" operation);                                       \
    counter_of_operation.served.fetch_add(1, std::memory_order_relaxed)
void each_counter(const std::function<void(Counter &)> &visit);
/* Counts a call that the cpu is to serve, and warns at the first one of an operation. Throws
 * NotImplementedError in strict mode. */
void note_fallback(const std::string &operation, const std::string &reason);
/* Runs an operation on copies of its tensors on the cpu. */
void run_on_cpu(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason);

/* ---- recorded steps (step.cpp) --------------------------------------------------------------- */
/* The number of the recording that this thread makes, else 0. */
extern thread_local uint64_t recording;
/* A step whose function is callback(is_recorded), which returns 0, or 1 after an exception whose
 * text was given by set_step_error. */
void *new_step(int (*callback)(int is_recorded), int warmup, int max_recordings);
void free_step(void *step);
void reset_step(void *step);
void set_step_error(void *step, const char *text);
tern_step_stats stats_of_step(const void *step);

/* ---- memory (memory.cpp) --------------------------------------------------------------------- */
/* A call of tern's that was recorded for its own backward pass: what a forward operation leaves for
 * the backward operation that PyTorch calls later. */
struct Recorded {
    tern_tensor *result = nullptr;
    std::vector<tern_tensor *> leaves; /* those of which gradients are wanted; else NULL */
    ~Recorded();
};

/* What is under a storage: the context of its DataPtr. */
struct Block {
    tern_tensor *typed = nullptr; /* stands on the memory from the storage's first element on */
    std::atomic<bool> is_later{false};    /* typed is not there yet: make_now makes it */
    std::function<tern_tensor *()> later; /* what makes it, once, in one thread */
    std::once_flag made;
    uint64_t born = recording; /* the recording that it was made in, or 0 */
    bool stays = false;        /* a recording or an optimizer works on this memory: no other one */
    tern_dtype dtype = TERN_DTYPE_DEFAULT;
    int device = 0;
    size_t bytes = 0;
    at::DimVector sizes, strides;       /* of typed */
    std::shared_ptr<Recorded> recorded; /* by the operation that made the tensor */
    ~Block();
};
inline Block *block_of(const Tensor &x)
{
    return static_cast<Block *>(x.storage().data_ptr().get_context());
}
/* Makes the memory of a block that waits for its first reader; needs a frame. */
void make_now(Block *block);
at::Allocator *allocator();
/* Whether memory of a tensor was made on the device, ever. It asks for no list of devices. */
constexpr int most_devices = std::numeric_limits<c10::DeviceIndex>::max() + 1;
bool had_memory(int device);
/* The dtype of what this thread allocates next, bytes where it is not set, and its sizes, where it
 * is contiguous. */
extern thread_local tern_dtype allocated_dtype;
extern thread_local const at::IntArrayRef *allocated_sizes;
/* Lets the memory of a new tensor be lent in the tensor's own shape without a view. */
void shape_block(const Tensor &x);

/* Around the calls of tern's in one operation of PyTorch's: the tensors that they make are released
 * at the end, and nothing is recorded. */
struct Frame {
    tern_scope_block scope;
    tern_grad_block grad;
    Frame() : scope(tern_scope_enter()), grad(tern_grad_block_enter(false))
    {
        if (C10_UNLIKELY(tern_last_status() != TERN_OK))
            tern_clear_error();
    }
    ~Frame()
    {
        tern_grad_block_leave(&grad);
        tern_scope_leave(&scope);
    }
    Frame(const Frame &) = delete;
    Frame &operator=(const Frame &) = delete;
};
struct Recording {
    tern_grad_block grad = tern_grad_block_enter(true);
    ~Recording()
    {
        tern_grad_block_leave(&grad);
    }
};

/* tern's dtype; TERN_DTYPE_DEFAULT where it has none. */
tern_dtype dtype_of(at::ScalarType type);
at::ScalarType scalar_type_of(tern_dtype dtype);
inline tern_shape shape(at::IntArrayRef sizes)
{
    return tern_shape_from((int)sizes.size(), sizes.data());
}
inline tern_shape shape(c10::SymIntArrayRef sizes)
{
    return shape(C10_AS_INTARRAYREF_SLOW(sizes));
}
tern_scalar scalar(const at::Scalar &number);

/* x as a tensor of tern's on the same memory, borrowed until the frame ends. Tensors of the host
 * are lent as tensors of tern's cpu. */
tern_tensor *lend(const Tensor &x);
/* NULL where there is none. */
tern_tensor *lend(const OptionalTensor &x);
/* The same on the given device: copied there if it is elsewhere. */
tern_tensor *lend_to(const Tensor &x, int device);
/* A new tensor of PyTorch's on a result's memory. Throws tern's error where the result is NULL. */
Tensor take(tern_tensor *result, int device, const char *operation);
/* The same; undefined for NULL. */
inline Tensor take_if(tern_tensor *result, int device, const char *operation)
{
    return result ? take(result, device, operation) : Tensor();
}
/* A tensor whose elements later() computes when they are first read: what an operation returns for
 * its backward operation alone, which seldom reads it. Needs no frame. */
Tensor take_later(std::function<tern_tensor *()> later, at::IntArrayRef sizes, at::ScalarType type,
                  int device);
/* Makes the elements of a result those of x: x's storage takes over the result's memory where x is
 * all of it, unless its memory stays, else they are copied. */
void put(tern_tensor *result, const Tensor &x, const char *operation);
/* The storage of x stands on typed's memory from now on; both have the same dtype and elements. */
void adopt(tern_tensor *typed, const Tensor &x);
/* Whether x begins at the address of a tensor among these. */
bool is_one_of(tern_tensor *x, at::ArrayRef<tern_value> values);

/* ---- gradients by tern's autograd (gradients.cpp) -------------------------------------------- */
using Tensors = c10::SmallVector<tern_tensor *, 4>;
/* Whether a gradient of any of these will be asked for. */
bool wants_gradient(std::initializer_list<const Tensor *> inputs);
/* The gradients of the inputs that are wanted, for the gradient of what forward(inputs) returns. */
template <class F>
Tensors gradients_of(const char *operation, F forward, at::ArrayRef<tern_tensor *> inputs,
                     tern_tensor *grad, at::ArrayRef<bool> wanted);
/* Of one input. */
template <class F>
Tensor gradient_of(const char *operation, F forward, const Tensor &x, const Tensor &grad);
/* Calls forward(leaves) with recording on, and keeps what was recorded. */
template <class F>
tern_tensor *record(const char *operation, F forward, at::ArrayRef<tern_tensor *> inputs,
                    at::ArrayRef<bool> wanted, std::shared_ptr<Recorded> *recorded);
/* The gradients of the leaves; the recording can be asked again. */
Tensors gradients_of(const char *operation, const Recorded &recorded, tern_tensor *grad,
                     at::ArrayRef<bool> wanted);

/* Waits until the threads of PyTorch's backward passes have nothing left to do. The caller does not
 * hold the interpreter's lock. */
void finish_backward_passes();

/* ---- optimizers (optimizers.cpp) ------------------------------------------------------------- */
struct OptimizerNumbers {
    double lr, weight_decay, beta1, beta2, eps, momentum, dampening;
};
/* The next steps, recorded ones too, of the optimizer whose first parameter has that address. */
void set_optimizer(const void *first, const OptimizerNumbers &numbers);

/* ---- operations by their names (by_name.cpp) ------------------------------------------------- */
void register_operations_by_name();
std::vector<std::string> operations_by_name();

} // namespace torch_tern

#include "gradients.h"
