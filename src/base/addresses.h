/* addresses.h -- a hash table from an address to the first number that was added with it. */
#ifndef TERN_BASE_ADDRESSES_H
#define TERN_BASE_ADDRESSES_H
#include "base/memory.h"

/* All zeros is an empty table. It has open addressing, and at most half of its slots are in use. */
typedef struct tern_addresses {
    struct tern_address {
        const void *x;
        size_t first;
    } * at;
    size_t count, capacity;
} tern_addresses;

/* Adds x with the number `place` if the table does not have x. Sets *first to the number with which
 * x was added: to place itself if this call added it. */
TERN_PRIVATE tern_status tern_addresses_first(tern_addresses *a, const void *x, size_t place,
                                              size_t *first);
TERN_PRIVATE void tern_addresses_free(tern_addresses *a);

#endif
