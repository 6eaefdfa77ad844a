/* overwrite.c -- gradients written over the input that they are of, which nobody needs any more. */
#include "tensor/fuse/internal.h"
#include "device/device.h"
#include "tensor/history.h"
#include "tensor/storage.h"

/* What the node saves alone holds the memory: x, and what x is a view of, which x alone holds. */
static bool is_last_holder(const tern_tensor *x)
{
    const tern_tensor *base = x->history ? x->history->base : NULL;
    const bool through = base && base->storage == x->storage;
    return atomic_load(&x->handle.refs) == 1 &&
           (!through || atomic_load(&base->handle.refs) == 1) &&
           atomic_load(&x->storage->refs) == (through ? 2 : 1);
}

/* No tensor is needed to read the memory where it is the program's, or replays of a recording find
 * it again. An estimate writes nothing. */
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
