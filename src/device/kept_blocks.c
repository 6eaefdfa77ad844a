/* kept_blocks.c -- blocks that a thread keeps in lists of its own while it makes items of a data
 * set. */
#include "base/profile.h"
#include "device/registry.h"

static tern_block **list_of(const tern_place *place, int class)
{
    tern_kept_blocks *kept = tern_thread.blocks;
    if (!kept || !place->synchronous || class >= TERN_KEPT_CLASSES || tern_profiling)
        return NULL;
    return &kept->of[class];
}

tern_block *tern_kept_take(tern_place *place, int class, size_t bytes)
{
    tern_block **list = list_of(place, class);
    tern_block *block = list ? *list : NULL;
    if (!block || block->place != place || block->used != bytes)
        return NULL;
    *list = block->next;
    tern_thread.blocks->taken++;
    return block;
}

bool tern_kept_put(tern_block *block)
{
    tern_block **list = list_of(block->place, block->size_class);
    if (!list || block->pool || block->holds || block->external || block->pinned || block->is_ahead)
        return false;
    block->next = *list;
    *list = block;
    return true;
}
