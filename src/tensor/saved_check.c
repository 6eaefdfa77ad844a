/* saved_check.c -- whether the tensors that a node saved are unchanged. */
#include "tensor/node.h"
#include "tensor/tensor.h"

tern_status tern_node_check_saved(const tern_node *node)
{
    if (node->freed)
        return tern_fail(
            TERN_ERR_STATE,
            "tern_backward: Trying to backward through the graph a second time (or directly access "
            "saved tensors after they have already been freed). Saved intermediate values of the "
            "graph are freed when you call tern_backward or tern_autograd_grad. Specify "
            "retain_graph = true if you need to backward through the graph a second time");
    for (int i = 0; i < node->n_in + node->n_out; i++) {
        const tern_saved *s = &node->saved[i];
        if (!s->tensor || tern_tensor_version(s->tensor) == s->version)
            continue;
        return tern_fail(
            TERN_ERR_STATE,
            "tern_backward: one of the variables needed for gradient computation has been modified "
            "by an inplace operation: [%s %s], which is %s %d of %s, is at version %lld; expected "
            "version %lld instead",
            tern_dtype_name(s->tensor->dtype), TERN_TENSOR_TEXT(s->tensor),
            i < node->n_in ? "input" : "output", i < node->n_in ? i : i - node->n_in,
            node->op->name, (long long)tern_tensor_version(s->tensor), (long long)s->version);
    }
    return TERN_OK;
}
