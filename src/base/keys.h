/* keys.h -- a hash table of texts: where each of them stands in a list that somebody else keeps. */
#ifndef TERN_BASE_KEYS_H
#define TERN_BASE_KEYS_H
#include "base/memory.h"

typedef struct tern_key {
    const char *text; /* the list's; NULL: free */
    uint64_t hash;
    int place;
} tern_key;

/* Zero-initialise it. Texts are seeded with a number of the table's own, so that nobody can choose
 * texts of one hash. */
typedef struct tern_keys {
    tern_key *slot; /* of capacity, a power of two; NULL: none */
    size_t capacity, count;
    uint64_t seed;
} tern_keys;

/* Where text stands, or -1. */
TERN_PRIVATE int tern_keys_find(const tern_keys *keys, const char *text);
/* text, which lives as long as the table and is not in it, stands at place. */
TERN_PRIVATE tern_status tern_keys_add(tern_keys *keys, const char *text, int place);
/* Forget all texts; as many again need no memory. */
void tern_keys_clear(tern_keys *keys);
/* Forget all, and the memory. */
TERN_PRIVATE void tern_keys_free(tern_keys *keys);

#endif
