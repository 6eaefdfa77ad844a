/* keys.h -- a hash table from texts to their indices in a list of the caller. */
#ifndef TERN_BASE_KEYS_H
#define TERN_BASE_KEYS_H
#include "base/memory.h"

typedef struct tern_key {
    const char *text; /* owned by the list; NULL: the slot is free */
    uint64_t hash;
    int place;
} tern_key;

/* Zero-initialise it. The hash has a seed of the table's own, so that an attacker cannot choose
 * texts with equal hashes. */
typedef struct tern_keys {
    tern_key *slot; /* capacity slots, a power of two; or NULL */
    size_t capacity, count;
    uint64_t seed;
} tern_keys;

/* Returns the index of text, or -1. */
TERN_PRIVATE int tern_keys_find(const tern_keys *keys, const char *text);
/* Adds text, which is not in the table and must live as long as the table, with index place. */
TERN_PRIVATE tern_status tern_keys_add(tern_keys *keys, const char *text, int place);
/* Removes all texts; adding as many again allocates no memory. */
void tern_keys_clear(tern_keys *keys);
/* Removes all texts and frees the memory. */
TERN_PRIVATE void tern_keys_free(tern_keys *keys);

#endif
