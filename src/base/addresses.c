/* addresses.c -- a hash table from an address to the first number that was added with it. */
#include "base/addresses.h"

/* Returns the slot that has x, or the empty one in which x is to be stored. */
static struct tern_address *slot_of(const tern_addresses *a, const void *x)
{
    size_t i = (uintptr_t)x / sizeof(void *) * 0x9e3779b1u & (a->capacity - 1);
    while (a->at[i].x && a->at[i].x != x)
        i = (i + 1) & (a->capacity - 1);
    return &a->at[i];
}

static tern_status reserve(tern_addresses *a)
{
    tern_addresses more = {.count = a->count, .capacity = a->capacity ? 2 * a->capacity : 32};
    more.at = tern_alloc(sizeof *more.at * more.capacity);
    if (!more.at)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < a->capacity; i++)
        if (a->at[i].x)
            *slot_of(&more, a->at[i].x) = a->at[i];
    tern_free(a->at);
    *a = more;
    return TERN_OK;
}

tern_status tern_addresses_first(tern_addresses *a, const void *x, size_t place, size_t *first)
{
    if (2 * a->count >= a->capacity)
        TERN_TRY(reserve(a));
    struct tern_address *slot = slot_of(a, x);
    if (!slot->x) {
        *slot = (struct tern_address){x, place};
        a->count++;
    }
    *first = slot->first;
    return TERN_OK;
}

void tern_addresses_free(tern_addresses *a)
{
    tern_free(a->at);
    *a = (tern_addresses){0};
}
