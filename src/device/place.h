/* place.h -- struct tern_place, a device as the library sees it, for the files of this folder. */
#ifndef TERN_DEVICE_PLACE_H
#define TERN_DEVICE_PLACE_H
#include "base/dtype.h"
#include "base/lock.h"
#include "device/signature.h"
#include <stdatomic.h>

enum { SIZE_CLASSES = 512, KERNEL_SLOTS = 8192 };

/* The variants of a compiled kernel: indices of 64 bits; indices of 32 bits; indices of 32 bits and
 * short rows, for teams of 4, 8, 16 and 32 lanes. */
enum { TERN_BUILD_WIDE, TERN_BUILD_NARROW, TERN_BUILD_TEAMS, TERN_BUILDS = TERN_BUILD_TEAMS + 4 };
/* Returns the lanes of a team of the variant; 0: any number. */
static inline int tern_build_lanes(int build)
{
    return build < TERN_BUILD_TEAMS ? 0 : 4 << (build - TERN_BUILD_TEAMS);
}

/* A kernel that was resolved for one dtype. */
typedef struct tern_resolved {
    const tern_kernel_ref *ref;
    tern_dtype dtype;
    _Atomic(void *) compiled[TERN_BUILDS]; /* NULL: not compiled yet */
    int n_parameters;
    tern_kernel_parameter parameters[];
} tern_resolved;

typedef struct tern_segment tern_segment;

enum { TERN_CHAIN_KEYS = 256 };
struct tern_place {
    const tern_backend *backend;
    int index;
    char text[24]; /* the canonical device string */
    tern_device_info info;
    void *state;
    bool synchronous; /* launches are done when they return */
    bool grouped;     /* work-groups have lanes that share local memory */
    bool lazy; /* machine code is compiled when a kernel is first launched (program_groups.h) */
    bool has_index32; /* there are variants of kernels with indices of 32 bits */
    size_t part_step; /* the alignment in bytes of parts of a buffer */

    tern_mutex lock; /* guards open, resolve, rng and fault */
    atomic_bool is_open;
    atomic_bool refuses_chains; /* the driver failed to compile a chain (chains.c) */
    struct tern_chain_kernel *chains[TERN_CHAIN_KEYS]; /* kernels, by a hash of their rows */

    tern_mutex memory_lock; /* guards cache and the memory part of stats */
    tern_block *cache[SIZE_CLASSES];
    tern_block *content[TERN_CONTENT_KEYS]; /* free blocks that keep their content */
    tern_block *pinned;                     /* free pinned blocks of all sizes */
    tern_block *ahead;                      /* free blocks for transfers to write */
    tern_segment *segments;                 /* memory of large blocks (segments.h) */
    tern_extent *extents;                   /* the free extents of all segments */
    bool has_growth;                        /* growth->most was called, if there is growth */
    uint64_t memory_limit;                  /* the most bytes that may be reserved; 0: no limit */
    struct tern_staging *staging;           /* free pinned memory for transfers */
    tern_memory_stats stats;
    atomic_ullong launches, to_host, to_device, built, loaded, waits, operations;

    _Atomic(tern_resolved *) kernels[KERNEL_SLOTS]; /* open addressing, never removed */

    struct {
        tern_block *block; /* {seed, base} on the device */
        uint64_t seed, base, taken;
        bool seeded, written;
    } rng;
    struct {
        _Atomic(tern_block *) block; /* {code, a, b} on the device */
        atomic_bool used;
    } fault;
};

/* tern_cache_put adds a block to the cache; tern_cache_empty returns the cache's memory to the
 * driver. The caller holds memory_lock. */
void tern_cache_put(tern_place *place, tern_block *block);
void tern_cache_empty(tern_place *place);
/* Allocates memory that is not in a block and that the caller frees with backend->free; if memory
 * is out, empties the cache and tries again. */
tern_status tern_place_alloc(tern_place *place, tern_buffer *buffer);
/* tern_kept_take returns a block of this size from the thread's own list, or NULL; tern_kept_put
 * adds a block to that list and returns true, or returns false if the list is not for it. */
tern_block *tern_kept_take(tern_place *place, int class, size_t bytes);
bool tern_kept_put(tern_block *block);
/* Returns a block of host memory that device `by` has pinned; NULL after an error. */
tern_block *tern_cache_take_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                   const char *function);
/* Decrements `holds`; a block that nothing uses then goes to the cache. */
void tern_block_drop_hold(tern_block *block);
/* Writes three words to *block, outside of captures; if *block is NULL, allocates it first, for the
 * lifetime of the place. */
tern_status tern_block_set_words(tern_place *place, tern_block **block, const uint64_t *words);
/* Ends a block on external memory and calls its deleter. The caller holds no lock. */
typedef struct tern_external tern_external;
void tern_block_end(tern_block *block);
/* Drops the holds on pinned memory of all copies that have completed. */
void tern_pinned_collect(void);
/* Returns the error of the fault words, if a launch since the last call used them. */
tern_status tern_fault_report(tern_place *place);
/* tern_rng_settle writes the random state to the device, such that the next number is at its base;
 * tern_rng_advance counts n groups by which the device itself has advanced its base. */
tern_status tern_rng_settle(tern_place *place);
void tern_rng_advance(tern_place *place, int64_t n);

#endif
