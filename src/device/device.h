/* device.h -- devices for the layers above: places, blocks of memory,
 * launches. Names no backend. */
#ifndef TERN_DEVICE_DEVICE_H
#define TERN_DEVICE_DEVICE_H
#include "device/args.h"

/* ---- places ------------------------------------------------------------------------------ */
/* The place a device string means (NULL: the default device), opened; NULL after an error whose
 * message starts with function. */
tern_place *tern_place_find(const char *device, const char *function);
/* The same without opening it. */
tern_place *tern_place_name(const char *device, const char *function);
const char *tern_place_text(const tern_place *place);
const char *tern_place_kind(const tern_place *place);
bool tern_place_has_f64(const tern_place *place);
/* Whether its work-groups have many lanes that share local memory, as GPUs' do. */
bool tern_place_is_grouped(const tern_place *place);
/* Whether launches there are done when they return. */
bool tern_place_is_synchronous(const tern_place *place);
/* Whether n elements that the host has are written rather than launched: few, where a kernel is
 * compiled at its first launch. */
enum { TERN_SMALL = 512 };
bool tern_writes_by_copy(const tern_place *place, int64_t n);

/* Begin what devices were given and their drivers hold back: the host turns to something else. */
void tern_flush(void);
/* One more for tern_get_counters. */
void tern_place_count_operation(tern_place *place);

/* ---- memory ---------------------------------------------------------------------------------- */
/* A block of device memory from the caching allocator. */
typedef struct tern_extent tern_extent; /* a part of a segment (segments.h) */
typedef struct tern_block {
    tern_buffer buffer;
    bool is_part; /* of a segment, the rest of which other blocks have */
    tern_extent
        *extent;   /* that part; NULL: none, or a recording gave it to later blocks of its own */
    size_t used;   /* bytes asked for */
    int64_t maker; /* a profiler's */
    tern_place *place;
    struct tern_block *next; /* in a free list */
    int size_class;
    /* Of captures (capture.h): whose pool it is from, the next of that pool, whether no tensor has
     * it; or how many graphs use it, one of them, and whether only graphs do. */
    struct tern_graph *pool, *holder;
    struct tern_block *of_pool;
    int holds; /* also the copies from it that are under way (pinned.c) */
    bool is_idle, is_orphan;
    /* Of a pool: a kernel finds it by its address; a later block of the recording's has its memory;
     * its memory is in an arena (plan.c); something had it beside the commands as the capture
     * ended; and the first and the last command of the recording that have it, -1 for none
     * (values.c). */
    bool is_addressed, is_reused, is_planned, is_kept;
    int64_t first, last;
    struct tern_slot *slot;
    tern_place *pinned; /* the cpu's memory, but this device's to give back; NULL: ordinary */
    struct tern_external
        *external;  /* of external memory; NULL: the memory is the allocator's (external.c) */
    bool is_ahead;  /* written by transfers: see last_use (transfers.c) */
    bool was_used;  /* since it was last written so */
    void *last_use; /* of one that is free: behind what used it */
} tern_block;

/* A block of at least bytes (> 0); NULL after TERN_ERR_MEMORY that names function and says what was
 * asked, free, and tern's own. */
tern_block *tern_block_alloc(tern_place *place, size_t bytes, const char *function);
void tern_block_free(tern_block *block);
/* A block may wait in the cache with what was written into it, one for each key, which the caller
 * chooses: the first function gives the block back instead of freeing it, the second one returns
 * it unchanged, or NULL where there is none. */
enum { TERN_CONTENT_KEYS = 32 };
void tern_block_keep_content(tern_block *block, int key);
tern_block *tern_block_take_content(tern_place *place, int key);

tern_status tern_block_write(tern_block *to, size_t at, const void *from, size_t bytes);
/* Waits, and reports faults found on the device. */
tern_status tern_block_read(tern_block *from, size_t at, void *to, size_t bytes);
/* Between any two devices. */
tern_status tern_block_copy(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                            size_t bytes);
tern_status tern_block_zero(tern_block *to, size_t at, size_t bytes);

/* ---- external memory, which is not the allocator's (external.c) ---- */
/* A block on memory that is not the allocator's. Instead of going to the cache it ends: once no
 * copy or graph has it and the device is done, deleter is called (NULL: nothing is). */
tern_block *tern_block_from_external(tern_place *place, const tern_buffer *buffer,
                                     void (*deleter)(void *), void *user);
/* The same of the application's memory, as the backend has it. */
typedef struct tern_borrowing {
    const char *function; /* for messages */
    void *memory;         /* an address or a cl_mem */
    size_t bytes;         /* that are used */
    size_t alignment;     /* of an address */
    void (*deleter)(void *user);
    void *user;
} tern_borrowing;
tern_block *tern_block_borrow(tern_place *place, const tern_borrowing *borrowing);
/* The deleter is not called when it ends. */
void tern_block_disown(tern_block *block);
/* The user of a block on external memory with this deleter; NULL for others. */
void *tern_block_external_user(const tern_block *block, void (*deleter)(void *));

/* ---- pinned memory of the host (pinned.c) ---- */
/* A device that has a use for it, opened; *place is NULL where there is none. */
tern_status tern_pinning_place(tern_place **place);
/* As tern_block_alloc, of the cpu, pinned by that device. */
tern_block *tern_block_alloc_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                    const char *function);
/* As tern_block_copy, without waiting where `from` is pinned for a device of to's kind; it lives on
 * until the copy is done. */
tern_status tern_block_copy_later(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                                  size_t bytes);

/* ---- launches -------------------------------------------------------------------------------- */
/* A kernel of cl_kernels/; its address is its identity, so keep it static. */
typedef struct tern_kernel_ref {
    const char *file; /* "reduce" */
    const char *name; /* "sum_rows" */
} tern_kernel_ref;
/* Kernels that a recording recognizes by the address of the ref (peephole.c, chain_find.c), so that
 * every launch of one of them has this ref. */
extern const tern_kernel_ref tern_kernel_add, tern_kernel_sub, tern_kernel_mul,
    tern_kernel_add_mixed, tern_kernel_layer_norm, tern_kernel_layer_norm_mixed,
    tern_kernel_batch_norm, tern_kernel_batch_norm_relu, tern_kernel_batch_norm_gradient,
    tern_kernel_batch_norm_columns, tern_kernel_batch_norm_columns_gradient;

/* Kernels whose launches may run side by side: their text allows it (BESIDE in cl_kernels). */
enum {
    TERN_BESIDE_LAYER_NORM_SUMS,
    TERN_BESIDE_SUM_COLUMNS,
    TERN_BESIDE_SUM_COLUMNS_PART,
    TERN_BESIDE_SUM_COLUMNS_MERGE,
    TERN_BESIDE_DEVIATION_COLUMNS,
    TERN_BESIDE_INDEX_SELECT,
    TERN_BESIDE_SCATTER_ADD,
    TERN_BESIDE_KERNELS
};
extern const tern_kernel_ref tern_beside_kernels[TERN_BESIDE_KERNELS];

tern_status tern_launch_grid(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                             const tern_grid *grid, const tern_arg *args, int n);
/* Compile it, if it was not used yet: a launch afterwards needs no memory of the host's. */
tern_status tern_launch_prepare(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype);
static inline tern_status tern_launch(tern_place *place, const tern_kernel_ref *kernel,
                                      tern_dtype dtype, tern_grid grid, const tern_arg *args, int n)
{
    return tern_launch_grid(place, kernel, dtype, &grid, args, n);
}
/* The same with the arguments written out, in the order of the kernel's parameters. */
#define TERN_LAUNCH(place, kernel, dtype, grid, ...)                                               \
    tern_launch(place, kernel, dtype, grid, (const tern_arg[]){__VA_ARGS__},                       \
                (int)(sizeof((const tern_arg[]){__VA_ARGS__}) / sizeof(tern_arg)))
tern_status tern_launch_gemm(tern_place *place, const tern_gemm *gemm);
/* Sets *fits to whether the device computes the product with its epilogue and bias gradient. */
tern_status tern_gemm_epilogue_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
/* Whether tern_set_float32_matmul_precision lets f32 products be less than that. */
bool tern_allows_tf32(void);
/* A kernel that the backend compiled from the user's text. */
tern_status tern_launch_user(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n);
/* Ask the place's vendor; *taken is false when it has no answer. */
tern_status tern_launch_convolution(tern_place *place, const tern_convolution *c, bool *taken);
tern_status tern_launch_attention(tern_place *place, const tern_attention *a, bool *taken);
/* Whether it may be taken where it is wider than tiles reach (TERN_ATTENTION_WIDEST of shapes.h),
 * its gradients too. */
enum { TERN_ATTENTION_MATRIX_WIDEST = 256 };
bool tern_place_attends_wide(tern_place *place, tern_dtype dtype);
/* What the n devices do together, k times, if they are distinct ones of one vendor that has a way,
 * outside of captures; else *taken is false, and nothing happened. */
tern_status tern_launch_collectives(tern_place *const *places, int n, const tern_collective *list,
                                    int k, bool *taken);
/* What links it to devices of other processes; NULL: nothing. */
const tern_communicators *tern_place_communicators(const tern_place *place);
/* Whether convolutions there are without a bias. */
bool tern_place_leaves_bias(const tern_place *place);
enum { TERN_ROW_MULTIPLE = 8 };
/* Whether copies for that are worth their time: matrices of this product whose dim that is
 * contiguous in memory, and whose rows begin, at multiples of TERN_ROW_MULTIPLE elements. */
bool tern_place_wants_multiples(const tern_place *place, const tern_gemm *g);
tern_status tern_place_sync(tern_place *place);

static inline tern_grid tern_items(int64_t n)
{
    return (tern_grid){n, n, 0, false, 0};
}
static inline tern_grid tern_items_of(int64_t n, int64_t work_each)
{
    return (tern_grid){n, n * work_each, 0, false, 0};
}
static inline tern_grid tern_groups(int64_t n, int64_t work_each)
{
    return (tern_grid){n, n * work_each, 1, false, 0};
}
static inline tern_grid tern_teams(int64_t rows, int64_t row, int64_t work_each)
{
    return (tern_grid){rows, rows * work_each, row > 1 ? row : 1, false, 0};
}
/* Of kernels that go through rows by vectors (float4.h). */
static inline tern_grid tern_rows(int64_t rows, int64_t row, int64_t work_each)
{
    return (tern_grid){rows, rows * work_each, row > 1 ? row : 1, true, 0};
}

/* ---- faults: mistakes that only a kernel can see, listed in faults.def ---- */

enum {
#define X(NAME, CODE, FORMAT) TERN_FAULT_##NAME = CODE,
#include "device/faults.def"
#undef X
    TERN_FAULT_DIMENSION = 26
};
/* The fault of an index along dim, which the message names; that of an operation in place. */
#define TERN_FAULT_ALONG(dim) (TERN_FAULT_DIMENSION | (dim) << 8)
#define TERN_FAULT_IN_PLACE   (1 << 12)
/* What a kernel writes in the first word: the fault, and which function launches the kernel, as
 * whoever waits may be another one. For kernels that take the number in a struct: the number
 * alone. */
int tern_fault_named(int fault);
#define tern_arg_fault(fault) tern_arg_i32(tern_fault_named(fault))
/* The device's fault words {code, first number, second number} (three i64) as an argument that
 * the kernel may write; marks them as in use, so that the next synchronisation looks. */
tern_status tern_fault_arg(tern_place *place, tern_arg *arg);
/* Look now where that costs nothing (the host sees the memory and launches are synchronous);
 * elsewhere a later synchronisation does. */
tern_status tern_fault_check(tern_place *place);

/* ---- random numbers ---------------------------------------------------------------------- */
/* Take n groups of four numbers from the device's generator: *state is the device's {seed, base}
 * (two u64), *at the first group relative to base. */
tern_status tern_rng_take(tern_place *place, int64_t n, tern_arg *state, int64_t *at);
/* Where the generators of all open devices stand, taken down and put back. */
typedef struct tern_rng_note {
    tern_place *place;
    struct tern_graph *graph; /* that was recorded; NULL: none */
    tern_rng_state state;
} tern_rng_note;
int tern_rng_note_all(tern_rng_note *notes, int capacity);
/* false: a generator's numbers were a graph's that is recorded no more, or are one's now; it goes
 * on. */
bool tern_rng_put_back(const tern_rng_note *notes, int n);

#endif
