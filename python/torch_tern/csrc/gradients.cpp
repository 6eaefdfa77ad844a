/* gradients.cpp -- gradients by tern's autograd. */
#include "torch_tern.h"
#include <tern/autograd.h>

namespace torch_tern
{

Recorded::~Recorded()
{
    for (tern_tensor *leaf : leaves)
        tern_release(leaf);
    tern_release(result);
}

bool wants_gradient(std::initializer_list<const Tensor *> inputs)
{
    if (!at::GradMode::is_enabled())
        return false;
    for (const Tensor *x : inputs)
        if (x->defined() && x->requires_grad())
            return true;
    return false;
}

Tensors leaves_of(at::ArrayRef<tern_tensor *> inputs, at::ArrayRef<bool> wanted)
{
    Tensors leaves;
    for (size_t i = 0; i < inputs.size(); i++) {
        tern_tensor *leaf = inputs[i] ? tern_detach(inputs[i]) : nullptr;
        if (leaf && wanted[i])
            tern_requires_grad_(leaf, true);
        leaves.push_back(leaf);
    }
    return leaves;
}

Tensors backward(const char *operation, tern_tensor *result, at::ArrayRef<tern_tensor *> leaves,
                 tern_tensor *grad, at::ArrayRef<bool> wanted, bool retain)
{
    Tensors asked, found, grads(leaves.size(), nullptr);
    for (size_t i = 0; i < leaves.size(); i++)
        if (leaves[i] && wanted[i])
            asked.push_back(leaves[i]);
    if (asked.empty())
        return grads;
    found.resize(asked.size(), nullptr);
    tern_autograd_grad_options options = tern_autograd_grad_defaults();
    options.gradients = &grad;
    options.allow_unused = true;
    options.retain_graph = retain;
    check(tern_autograd_grad(&result, 1, asked.data(), (int)asked.size(), found.data(), &options),
          operation);
    for (size_t i = 0, k = 0; i < leaves.size(); i++)
        if (leaves[i] && wanted[i])
            grads[i] = found[k++];
    return grads;
}

Tensors gradients_of(const char *operation, const Recorded &recorded, tern_tensor *grad,
                     at::ArrayRef<bool> wanted)
{
    return backward(operation, recorded.result, recorded.leaves, grad, wanted, true);
}

/* PyTorch's thread of a device drops what a backward pass held after its caller has gone on, and
 * takes the interpreter's lock for tensors that Python knows. Where the process ends meanwhile,
 * Python ends that thread inside a destructor, and the process aborts. A pass comes after all that
 * the thread had to do; Python knows none of its tensors, and elements it has none. */
void finish_backward_passes()
{
    const at::AutoGradMode grad(true);
    for (int i = 0; i < most_devices; i++) {
        if (!had_memory(i))
            continue;
        const auto options = at::device({device_type, (c10::DeviceIndex)i});
        auto *x = new Tensor(at::empty({0}, options).requires_grad_()); /* outlives the thread */
        x->backward(at::empty({0}, options));
    }
}

} // namespace torch_tern
