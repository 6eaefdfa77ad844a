/* gradients.h -- gradients by tern's autograd: PyTorch calls a backward operation with the inputs
 * of the forward one, or with a result to which a recording of it is attached. */
#pragma once

namespace torch_tern
{

/* Detached copies of the inputs, those that are wanted as leaves that require gradients. */
Tensors leaves_of(at::ArrayRef<tern_tensor *> inputs, at::ArrayRef<bool> wanted);
/* Gradients of result with respect to the leaves that are wanted; NULL in other places. */
Tensors backward(const char *operation, tern_tensor *result, at::ArrayRef<tern_tensor *> leaves,
                 tern_tensor *grad, at::ArrayRef<bool> wanted, bool retain);

template <class F>
Tensors gradients_of(const char *operation, F forward, at::ArrayRef<tern_tensor *> inputs,
                     tern_tensor *grad, at::ArrayRef<bool> wanted)
{
    Tensors leaves = leaves_of(inputs, wanted);
    Recording recording;
    tern_tensor *result = forward(leaves);
    check(result != nullptr, operation);
    return backward(operation, result, leaves, grad, wanted, false);
}

template <class F>
Tensor gradient_of(const char *operation, F forward, const Tensor &x, const Tensor &grad)
{
    Frame frame;
    Tensors of_input = gradients_of(operation, [&](Tensors &in) { return forward(in[0]); },
                                    {lend(x)}, lend(grad), {true});
    return take(of_input[0], x.device().index(), operation);
}

template <class F>
tern_tensor *record(const char *operation, F forward, at::ArrayRef<tern_tensor *> inputs,
                    at::ArrayRef<bool> wanted, std::shared_ptr<Recorded> *recorded)
{
    Tensors leaves = leaves_of(inputs, wanted);
    Recording recording;
    tern_tensor *result = forward(leaves);
    check(result != nullptr, operation);
    auto kept = std::make_shared<Recorded>();
    kept->result = tern_keep(result);
    for (tern_tensor *leaf : leaves)
        kept->leaves.push_back(leaf ? tern_keep(leaf) : nullptr);
    *recorded = std::move(kept);
    return tern_detach(result);
}

} // namespace torch_tern
