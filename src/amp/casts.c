/* casts.c -- the dtypes to which autocast casts, and its cache of casts of leaves, which exists
 * while its outermost block is open. */
#include "amp/casts.h"
#include "base/memory.h"
#include "base/thread.h"
#include <string.h>
#include <tern/amp.h>
#include <tern/autograd.h>

/* ---- dtypes ---------------------------------------------------------------------------------- */

bool tern_casts_same_kind(const char *a, const char *b)
{
    size_t length = strcspn(a, ":");
    return strncmp(a, b, length) == 0 && (b[length] == ':' || b[length] == '\0');
}

/* Returns the dtype to which operations on device are cast, or TERN_DTYPE_DEFAULT if autocast is
 * off there. */
tern_dtype tern_casts_dtype_on(const char *device)
{
    for (int i = 0; i < TERN_AUTOCAST_KINDS && tern_thread.autocast.kind[i].device; i++)
        if (tern_casts_same_kind(tern_thread.autocast.kind[i].device, device))
            return tern_thread.autocast.kind[i].dtype;
    return TERN_DTYPE_DEFAULT;
}

tern_dtype tern_casts_dtype(const tern_tensor *x)
{
    return tern_casts_dtype_on(tern_device(x));
}

/* ---- cache of casts -------------------------------------------------------------------------- */

typedef struct tern_kept_cast {
    tern_tensor *leaf, *cast;
    int64_t version; /* version of leaf when it was cast */
} kept_cast;

static kept_cast *find(kept_cast *slots, size_t capacity, const tern_tensor *leaf)
{
    size_t i = ((uintptr_t)leaf >> 4) * 0x9e3779b1u;
    for (;; i++) {
        kept_cast *slot = &slots[i & (capacity - 1)];
        if (!slot->leaf || slot->leaf == leaf)
            return slot;
    }
}

static tern_status reserve(tern_kept_casts *cache)
{
    if (2 * cache->count < cache->capacity)
        return TERN_OK;
    size_t capacity = cache->capacity ? 2 * cache->capacity : 64;
    kept_cast *slots = tern_alloc(sizeof *slots * capacity);
    if (!slots)
        return TERN_ERR_MEMORY;
    for (size_t i = 0; i < cache->capacity; i++)
        if (cache->slot[i].leaf)
            *find(slots, capacity, cache->slot[i].leaf) = cache->slot[i];
    tern_free(cache->slot);
    cache->slot = slots;
    cache->capacity = capacity;
    return TERN_OK;
}

void tern_clear_autocast_cache(void)
{
    tern_kept_casts *cache = &tern_thread.casts;
    for (size_t i = 0; i < cache->capacity; i++) {
        tern_release(cache->slot[i].cast);
        tern_release(cache->slot[i].leaf);
    }
    tern_free(cache->slot);
    cache->slot = NULL;
    cache->count = cache->capacity = 0;
}

/* Without grad mode a cached cast would lack its history for later uses. A checkpoint that
 * recomputes is in no block that would free the cast (depth 0). */
static bool is_worth_keeping(const tern_kept_casts *cache, const tern_tensor *x, tern_dtype to)
{
    return cache->depth > 0 && !cache->disabled && to != TERN_F32 && tern_dtype_of(x) == TERN_F32 &&
           tern_requires_grad(x) && tern_is_leaf(x) && tern_is_grad_enabled();
}

tern_tensor *tern_casts_find(const tern_tensor *leaf, tern_dtype to)
{
    tern_kept_casts *cache = &tern_thread.casts;
    const kept_cast *kept = cache->capacity ? find(cache->slot, cache->capacity, leaf) : NULL;
    bool there = kept && kept->leaf && kept->version == tern_version(leaf) &&
                 tern_dtype_of(kept->cast) == to && tern_device(kept->cast) == tern_device(leaf);
    return there ? kept->cast : NULL;
}

tern_status tern_casts_keep(tern_tensor *leaf, tern_tensor *made)
{
    tern_kept_casts *cache = &tern_thread.casts;
    TERN_TRY(reserve(cache));
    kept_cast *kept = find(cache->slot, cache->capacity, leaf);
    if (!kept->leaf) {
        kept->leaf = tern_keep(leaf);
        cache->count++;
    }
    tern_release(kept->cast);
    kept->cast = tern_keep(made);
    kept->version = tern_version(leaf);
    return TERN_OK;
}

unsigned tern_casts_made(void)
{
    return tern_thread.casts_made;
}

tern_tensor *tern_casts_make(tern_tensor *x, tern_dtype to)
{
    if (!is_worth_keeping(&tern_thread.casts, x, to))
        return tern_to_dtype(x, to);
    tern_tensor *made = tern_casts_find(x, to);
    if (made)
        return made;
    made = tern_to_dtype(x, to);
    if (!made || tern_casts_keep(x, made) != TERN_OK)
        return NULL;
    tern_thread.casts_made++;
    return made;
}
