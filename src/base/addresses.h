/* addresses.h -- where each address of many came first. */
#ifndef TERN_BASE_ADDRESSES_H
#define TERN_BASE_ADDRESSES_H
#include "base/memory.h"

/* Zeroed to begin with; an open table, of which at most a half is taken. */
typedef struct tern_addresses {
    struct tern_address {
        const void *x;
        size_t first;
    } * at;
    size_t count, capacity;
} tern_addresses;

/* *first: the place that x had when it came for the first time; place itself if this is the
 * first. */
TERN_PRIVATE tern_status tern_addresses_first(tern_addresses *a, const void *x, size_t place,
                                              size_t *first);
TERN_PRIVATE void tern_addresses_free(tern_addresses *a);

#endif
