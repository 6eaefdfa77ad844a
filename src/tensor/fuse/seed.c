/* seed.c -- the gradient 1 with which a backward pass begins: it is written once, and each pass
 * uses the same memory. Also losses that compute their gradient for dout = 1 in forward. */
#include "tensor/fuse/internal.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"

_Static_assert((int)TERN_DTYPE_END <= (int)TERN_CONTENT_KEYS,
               "the key of a block with the number one is its dtype");

/* Returns a tensor with the value 1, in memory that an earlier pass kept or in new memory. */
static tern_tensor *one_like(tern_tensor *root)
{
    tern_shape shape = tern_shape_of(root);
    tern_block *block = tern_block_take_content(root->storage->place, (int)root->dtype);
    if (!block)
        return tern_keep(tern_from_ops->ones_like(root));
    tern_tensor *one = tern_tensor_of_block(&shape, root->dtype, block);
    if (!one)
        tern_block_free(block);
    return one;
}

tern_tensor *tern_fuse_seed(tern_backward_pass *w, tern_tensor *root)
{
    if (root->ndim != 0 || w->create || w->fused.seed)
        return tern_from_ops->ones_like(root);
    return w->fused.seed = one_like(root);
}

void tern_fuse_shown(tern_backward_pass *w, const tern_tensor *grad)
{
    if (!w->fused.seed || grad->storage != w->fused.seed->storage)
        return;
    tern_release(w->fused.seed);
    w->fused.seed = NULL;
}

/* Not if the graph is retained: a second pass would use the same tensor again. */
tern_tensor *tern_seed_gradient(const tern_backward_pass *w, const tern_node *node,
                                const bool *needs)
{
    int k = tern_fusion_of(node)->seed_gradient;
    if (k == 0 || k >= node->n_out || !w->fused.seed || node->output[0].dout != w->fused.seed ||
        w->retain)
        return NULL;
    for (int i = 1; i < node->n_in; i++)
        if (needs[i])
            return NULL;
    return node->saved[node->n_in + k].tensor;
}

/* Returns whether no view of it exists and its value was not written. */
static bool is_unchanged(const tern_tensor *one)
{
    return atomic_load(&one->handle.refs) == 1 && atomic_load(&one->storage->refs) == 1 &&
           tern_tensor_version(one) == 0;
}

void tern_seed_free(tern_backward_pass *w)
{
    tern_tensor *one = w->fused.seed;
    if (one && is_unchanged(one)) {
        tern_block_keep_content(one->storage->block, (int)one->dtype);
        one->storage->block = NULL;
    }
    tern_release(one);
}
