/* keys.c -- a hash table of texts with open addressing. */
#include "base/keys.h"
#include "base/os.h"
#include "base/text.h"
#include <string.h>

static uint64_t hash_of(const tern_keys *keys, const char *text)
{
    uint64_t h = tern_hash(keys->seed, text, strlen(text));
    return h ^ h >> 29; /* the slot is chosen by the low bits */
}

/* Returns the slot of text, or the free slot in which it would be stored. */
static tern_key *slot_of(const tern_keys *keys, const char *text, uint64_t hash)
{
    for (size_t i = hash & (keys->capacity - 1);; i = (i + 1) & (keys->capacity - 1)) {
        tern_key *k = &keys->slot[i];
        if (!k->text || (k->hash == hash && strcmp(k->text, text) == 0))
            return k;
    }
}

int tern_keys_find(const tern_keys *keys, const char *text)
{
    if (!keys->count)
        return -1;
    const tern_key *k = slot_of(keys, text, hash_of(keys, text));
    return k->text ? k->place : -1;
}

static tern_status grow(tern_keys *keys)
{
    tern_keys old = *keys;
    const uint64_t now = (uint64_t)tern_os_now();
    keys->capacity = old.capacity ? 2 * old.capacity : 32;
    keys->slot = tern_alloc(sizeof *keys->slot * keys->capacity);
    if (!keys->slot) {
        *keys = old;
        return TERN_ERR_MEMORY;
    }
    if (!old.slot)
        keys->seed = TERN_HASH_SEED ^ now << 32 ^ (uintptr_t)keys->slot;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slot[i].text)
            *slot_of(keys, old.slot[i].text, old.slot[i].hash) = old.slot[i];
    tern_free(old.slot);
    return TERN_OK;
}

tern_status tern_keys_add(tern_keys *keys, const char *text, int place)
{
    if (2 * (keys->count + 1) > keys->capacity)
        TERN_TRY(grow(keys));
    uint64_t hash = hash_of(keys, text);
    *slot_of(keys, text, hash) = (tern_key){text, hash, place};
    keys->count++;
    return TERN_OK;
}

void tern_keys_clear(tern_keys *keys)
{
    if (keys->slot)
        memset(keys->slot, 0, sizeof *keys->slot * keys->capacity);
    keys->count = 0;
}

void tern_keys_free(tern_keys *keys)
{
    tern_free(keys->slot);
    *keys = (tern_keys){0};
}
