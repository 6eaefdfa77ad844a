/* one.c -- the number one that a walk back begins with: written once, then lent to each walk. */
#include "tensor/node.h"
#include <tern/ops/create.h>

tern_tensor *tern_one_like(tern_tensor *root)
{
    tern_shape shape = tern_shape_of(root);
    tern_block *block = tern_block_take_one(root->storage->place, root->dtype);
    if (!block)
        return tern_keep(tern_ones_like(root));
    tern_tensor *one = tern_tensor_of_block(&shape, root->dtype, block);
    if (!one)
        tern_block_free(block);
    return one;
}

/* No view of it left, and nobody wrote into it. */
static bool as_it_was(const tern_tensor *one)
{
    return atomic_load(&one->handle.refs) == 1 && atomic_load(&one->storage->refs) == 1 &&
           tern_tensor_version(one) == 0;
}

void tern_one_return(tern_tensor *one)
{
    if (one && as_it_was(one)) {
        tern_block_keep_one(one->storage->block, one->dtype);
        one->storage->block = NULL;
    }
    tern_release(one);
}
