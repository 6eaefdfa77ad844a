/* lent.c -- blocks on memory that is not the allocator's, and how they end. */
#include "base/callback.h"
#include "device/registry.h"

struct tern_lent {
    void (*deleter)(void *user);
    void *user;
    bool borrowed; /* of the backend, which gives it back */
};

static tern_block *lend(tern_place *place, const tern_buffer *buffer, const tern_lent *how)
{
    tern_block *block = tern_alloc(sizeof *block);
    tern_lent *lent = block ? tern_alloc(sizeof *lent) : NULL;
    if (!lent) {
        tern_free(block);
        return NULL;
    }
    *lent = *how;
    *block = (tern_block){.buffer = *buffer, .place = place, .lent = lent};
    return block;
}

tern_block *tern_block_lend(tern_place *place, const tern_buffer *buffer, void (*deleter)(void *),
                            void *user)
{
    return lend(place, buffer, &(tern_lent){.deleter = deleter, .user = user});
}

tern_block *tern_block_borrow(tern_place *place, const tern_borrowing *b)
{
    tern_buffer buffer = {.bytes = b->bytes};
    if (place->backend->borrow(place, b->memory, &buffer) != TERN_OK)
        return NULL;
    const uint64_t address = buffer.host ? (uint64_t)(uintptr_t)buffer.host : buffer.address;
    tern_block *block = NULL;
    if (address % b->alignment)
        tern_fail(TERN_ERR_ARGUMENT, "%s: the memory is not aligned to the element's %zu bytes",
                  b->function, b->alignment);
    else
        block = lend(place, &buffer,
                     &(tern_lent){.deleter = b->deleter, .user = b->user, .borrowed = true});
    if (!block)
        place->backend->unborrow(place, &buffer);
    return block;
}

void tern_block_disown(tern_block *block)
{
    block->lent->deleter = NULL;
}

void *tern_block_lent_by(const tern_block *block, void (*deleter)(void *))
{
    return block->lent && block->lent->deleter == deleter ? block->lent->user : NULL;
}

void tern_block_end(tern_block *block)
{
    tern_place *place = block->place;
    tern_lent *lent = block->lent;
    if (lent->deleter && !place->synchronous && atomic_load(&place->is_open))
        place->backend->sync(place); /* what the deleter ends may be in use until then */
    if (lent->borrowed)
        place->backend->unborrow(place, &block->buffer);
    if (lent->deleter) {
        tern_callback before = tern_callback_begin();
        lent->deleter(lent->user);
        tern_callback_end(&before, TERN_OK);
    }
    tern_free(lent);
    tern_free(block);
}
