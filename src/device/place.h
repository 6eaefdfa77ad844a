/* place.h -- what the files of this folder share: the inside of a place. */
#ifndef TERN_DEVICE_PLACE_H
#define TERN_DEVICE_PLACE_H
#include "base/dtype.h"
#include "base/lock.h"
#include "device/signature.h"
#include <stdatomic.h>

enum { SIZE_CLASSES = 512, KERNEL_SLOTS = 8192 };

/* What a kernel is built for: indices of 64 bits, of 32, and these with short rows for teams of 4,
 * 8, 16 and 32 lanes. */
enum { TERN_BUILD_WIDE, TERN_BUILD_NARROW, TERN_BUILD_TEAMS, TERN_BUILDS = TERN_BUILD_TEAMS + 4 };
/* The lanes of its teams; 0: of any. */
static inline int tern_build_lanes(int build)
{
    return build < TERN_BUILD_TEAMS ? 0 : 4 << (build - TERN_BUILD_TEAMS);
}

/* A kernel that was resolved for one dtype. */
typedef struct tern_resolved {
    const tern_kernel_ref *ref;
    tern_dtype dtype;
    _Atomic(void *) compiled[TERN_BUILDS]; /* NULL: not wanted yet */
    int n_parameters;
    tern_kernel_parameter parameters[];
} tern_resolved;

typedef struct tern_segment tern_segment;

enum { TERN_CHAIN_KEYS = 256 };
struct tern_place {
    const tern_backend *backend;
    int index;
    char text[24]; /* canonical string */
    tern_device_info info;
    void *state;
    bool synchronous; /* launches are done when they return */
    bool grouped;     /* work-groups have lanes that share local memory */
    bool lazy; /* machine code is compiled when a kernel is first launched (program_groups.h) */
    bool has_index32; /* kernels come with indices of 32 bits too */
    size_t part_step; /* parts of a buffer begin at multiples of so many bytes */

    tern_mutex lock; /* guards open, resolve, rng and fault */
    atomic_bool is_open;
    atomic_bool refuses_chains; /* the driver did not compile one (chains.c) */
    struct tern_chain_kernel *chains[TERN_CHAIN_KEYS]; /* kernels, by a hash of their rows */

    tern_mutex memory_lock; /* guards cache and the memory part of stats */
    tern_block *cache[SIZE_CLASSES];
    tern_block *content[TERN_CONTENT_KEYS]; /* likewise, but with what was written into them */
    tern_block *pinned;                     /* likewise, of any size */
    tern_block *ahead;                      /* likewise, of those that transfers write */
    tern_segment *segments;                 /* memory of large blocks (segments.h) */
    tern_extent *extents;                   /* those that are free */
    bool has_growth;                        /* whether the backend was asked to reserve addresses */
    uint64_t memory_limit;                  /* the most that is reserved; 0: no limit */
    struct tern_staging *staging;           /* pinned memory that waits for the next transfer */
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

/* With memory_lock held: put a block aside, give all that is aside back to the driver. */
void tern_cache_put(tern_place *place, tern_block *block);
void tern_cache_empty(tern_place *place);
/* Memory of the driver that is no block, for the backend to free; what is aside makes room. */
tern_status tern_place_alloc(tern_place *place, tern_buffer *buffer);
/* One that the thread keeps, of that size (NULL: none); whether it keeps this one. */
tern_block *tern_kept_take(tern_place *place, int class, size_t bytes);
bool tern_kept_put(tern_block *block);
/* A block of the cpu's that another device has pinned. */
tern_block *tern_cache_take_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                   const char *function);
/* Give up one hold on a block, which goes to the cache if nothing else has it. */
void tern_block_drop_hold(tern_block *block);
/* Write three words into a block that lives as long as the place, captures or not; where there is
 * none yet, make it. */
tern_status tern_block_set_words(tern_place *place, tern_block **block, const uint64_t *words);
/* A block on external memory ends; with no lock held. */
typedef struct tern_external tern_external;
void tern_block_end(tern_block *block);
/* Let go of the pinned memory that copies are through with. */
void tern_pinned_collect(void);
/* Raise what a kernel wrote into the fault words, if a launch since the last look used them. */
tern_status tern_fault_report(tern_place *place);
/* Write the random state to the device so that the next number is at its base; and count n groups
 * that the device itself has passed. */
tern_status tern_rng_settle(tern_place *place);
void tern_rng_advance(tern_place *place, int64_t n);

#endif
