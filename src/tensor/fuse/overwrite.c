/* overwrite.c -- a gradient that is written over its input, which nothing else uses. */
#include "tensor/fuse/internal.h"
#include "device/device.h"
#include "tensor/history.h"
#include "tensor/storage.h"

/* Returns whether only the node owns x's memory: x, and x's base if any, have one reference. */
static bool is_last_holder(const tern_tensor *x)
{
    const tern_tensor *base = x->history ? x->history->base : NULL;
    const bool through = base && base->storage == x->storage;
    return atomic_load(&x->handle.refs) == 1 &&
           (!through || atomic_load(&base->handle.refs) == 1) &&
           atomic_load(&x->storage->refs) == (through ? 2 : 1);
}

/* Returns whether the memory may be read without a tensor: the program owns the memory or has its
 * address, or replays of a recording use it. In an estimate nothing is written. */
static bool is_read_without(const tern_tensor *x)
{
    return !tern_storage_lists() &&
           (!tern_storage_counts_writes(x) || tern_storage_is_held(x) ||
            (const void *)x->storage->block->pool != tern_storage_recording(x));
}

bool tern_overwrite_offer(const tern_backward_pass *w, const tern_node *node)
{
    const tern_tensor *x = node->n_in > 0 ? node->saved[0].tensor : NULL;
    return tern_fusion_of(node)->overwrites && x && x->numel > 0 && !w->retain && !w->create &&
           !node->frame && !node->edge[0].leaf && !tern_thread.mode.anomaly.on &&
           is_last_holder(x) && !is_read_without(x);
}
