/* external.c -- blocks on memory that is not the allocator's, and their deleters. */
#include "base/callback.h"
#include "device/registry.h"

struct tern_external {
    void (*deleter)(void *user);
    void *user;
    bool borrowed; /* the memory is from backend->borrow and needs unborrow */
};

static tern_block *from_external(tern_place *place, const tern_buffer *buffer,
                                 const tern_external *how)
{
    tern_block *block = tern_alloc(sizeof *block);
    tern_external *external = block ? tern_alloc(sizeof *external) : NULL;
    if (!external) {
        tern_free(block);
        return NULL;
    }
    *external = *how;
    *block = (tern_block){.buffer = *buffer, .place = place, .external = external};
    return block;
}

tern_block *tern_block_from_external(tern_place *place, const tern_buffer *buffer,
                                     void (*deleter)(void *), void *user)
{
    return from_external(place, buffer, &(tern_external){.deleter = deleter, .user = user});
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
        block = from_external(
            place, &buffer,
            &(tern_external){.deleter = b->deleter, .user = b->user, .borrowed = true});
    if (!block)
        place->backend->unborrow(place, &buffer);
    return block;
}

void tern_block_disown(tern_block *block)
{
    block->external->deleter = NULL;
}

void *tern_block_external_user(const tern_block *block, void (*deleter)(void *))
{
    return block->external && block->external->deleter == deleter ? block->external->user : NULL;
}

void tern_block_end(tern_block *block)
{
    tern_place *place = block->place;
    tern_external *external = block->external;
    if (external->deleter && !place->synchronous && atomic_load(&place->is_open))
        place->backend->sync(place); /* commands may use the memory until then */
    if (external->borrowed)
        place->backend->unborrow(place, &block->buffer);
    if (external->deleter) {
        tern_callback before = tern_callback_begin();
        external->deleter(external->user);
        tern_callback_end(&before, TERN_OK);
    }
    tern_free(external);
    tern_free(block);
}
