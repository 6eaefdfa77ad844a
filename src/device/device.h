/* device.h -- devices for the layers above: places, blocks of memory, launches. No function here
 * names a backend. */
#ifndef TERN_DEVICE_DEVICE_H
#define TERN_DEVICE_DEVICE_H
#include "device/args.h"

/* ---- places ------------------------------------------------------------------------------ */
/* Returns the place of a device string (NULL: the default device) and opens it; NULL after an
 * error, whose message starts with `function`. */
tern_place *tern_place_find(const char *device, const char *function);
/* The same, but does not open the place. */
tern_place *tern_place_name(const char *device, const char *function);
const char *tern_place_text(const tern_place *place);
const char *tern_place_kind(const tern_place *place);
bool tern_place_has_f64(const tern_place *place);
/* Returns whether the lanes of a work-group share local memory, as on GPUs. */
bool tern_place_is_grouped(const tern_place *place);
/* Returns whether a launch is done when it returns. */
bool tern_place_is_synchronous(const tern_place *place);
/* Returns whether the host should write n elements itself rather than launch a kernel: n is small
 * and the device compiles a kernel at its first launch. */
enum { TERN_SMALL = 512 };
bool tern_writes_by_copy(const tern_place *place, int64_t n);

/* Sends launches that drivers keep to the devices; called when the host is going to do other
 * work. */
void tern_flush(void);
/* Counts an operation for tern_get_counters. */
void tern_place_count_operation(tern_place *place);

/* ---- memory ---------------------------------------------------------------------------------- */
/* A block of device memory from the caching allocator. */
typedef struct tern_extent tern_extent; /* a part of a segment (segments.h) */
typedef struct tern_block {
    tern_buffer buffer;
    bool is_part; /* the memory is part of a segment, shared with other blocks */
    tern_extent
        *extent;   /* the part; NULL: no part, or the recording has given it to later blocks */
    size_t used;   /* bytes requested */
    int64_t maker; /* a number for the profiler */
    tern_place *place;
    struct tern_block *next; /* in a free list */
    int size_class;
    /* pool: the recording (capture.h) that has the block in its pool, or NULL; of_pool: the next
     * block of that pool; is_idle: no tensor uses the block. For other blocks holder is the last
     * recording that counted itself in holds, and is_orphan means that no tensor uses the block. */
    struct tern_graph *pool, *holder;
    struct tern_block *of_pool;
    int holds; /* the number of recordings, and of running copies (pinned.c), that use the block */
    bool is_idle, is_orphan;
    /* For blocks of a pool. is_addressed: kernels have the address; is_reused: a later block of the
     * recording has the same memory; is_planned: the memory is in an arena (plan.c); is_kept:
     * something other than commands used the block when the capture ended; first, last: the first
     * and the last command that use the block, or -1 (values.c). */
    bool is_addressed, is_reused, is_planned, is_kept;
    int64_t first, last;
    struct tern_slot *slot;
    tern_place *pinned; /* the device whose driver pinned this host memory; NULL: not pinned */
    struct tern_external
        *external;  /* for external memory; NULL: the memory is the allocator's (external.c) */
    bool is_ahead;  /* the block is for transfers to write (transfers.c) */
    bool was_used;  /* the block was freed since the last transfer wrote to it */
    void *last_use; /* of a free block with is_ahead: an event behind its last use */
} tern_block;

/* Returns a block of at least `bytes` (> 0) bytes, which the caller frees; NULL after
 * TERN_ERR_MEMORY, whose message has `function` and the bytes requested, free, and used by tern. */
tern_block *tern_block_alloc(tern_place *place, size_t bytes, const char *function);
void tern_block_free(tern_block *block);
/* The cache can keep one block with its content for each key, which the caller chooses.
 * tern_block_keep_content gives a block to the cache instead of freeing it;
 * tern_block_take_content returns it with the same content, or NULL if there is none. */
enum { TERN_CONTENT_KEYS = 32 };
void tern_block_keep_content(tern_block *block, int key);
tern_block *tern_block_take_content(tern_place *place, int key);

tern_status tern_block_write(tern_block *to, size_t at, const void *from, size_t bytes);
/* Waits for the device, and returns an error if a kernel reported a fault. */
tern_status tern_block_read(tern_block *from, size_t at, void *to, size_t bytes);
/* Copies between blocks of any two devices. */
tern_status tern_block_copy(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                            size_t bytes);
tern_status tern_block_zero(tern_block *to, size_t at, size_t bytes);

/* ---- external memory, which is not the allocator's (external.c) ---- */
/* Returns a block on memory that is not the allocator's, or NULL after an error. A freed block does
 * not go to the cache: once no copy and no graph uses it and the device is done, deleter is called,
 * unless it is NULL. */
tern_block *tern_block_from_external(tern_place *place, const tern_buffer *buffer,
                                     void (*deleter)(void *), void *user);
/* The same for memory of the application, with the backend's functions borrow and unborrow. */
typedef struct tern_borrowing {
    const char *function; /* the name of the function in error messages */
    void *memory;         /* an address or a cl_mem */
    size_t bytes;         /* how many bytes of the memory are used */
    size_t alignment;     /* the address must be a multiple of this */
    void (*deleter)(void *user);
    void *user;
} tern_borrowing;
tern_block *tern_block_borrow(tern_place *place, const tern_borrowing *borrowing);
/* Makes a block on external memory end without a call of its deleter. */
void tern_block_disown(tern_block *block);
/* Returns the `user` of a block on external memory with this deleter; NULL for other blocks. */
void *tern_block_external_user(const tern_block *block, void (*deleter)(void *));

/* ---- pinned memory of the host (pinned.c) ---- */
/* Sets *place to a device that can pin host memory, and opens it; NULL if there is none. */
tern_status tern_pinning_place(tern_place **place);
/* As tern_block_alloc, but the block is host memory that device `by` has pinned. */
tern_block *tern_block_alloc_pinned(tern_place *cpu, tern_place *by, size_t bytes,
                                    const char *function);
/* As tern_block_copy, but returns without waiting if `from` is pinned by a device of the kind of
 * `to`. The memory of `from` stays unchanged until the copy is done, even if `from` is freed. */
tern_status tern_block_copy_later(tern_block *from, size_t from_at, tern_block *to, size_t to_at,
                                  size_t bytes);

/* ---- launches -------------------------------------------------------------------------------- */
/* A kernel of cl_kernels/. Its address identifies the kernel, so the struct must be static. */
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
/* Compiles the kernel unless that is done, so that a later launch allocates no host memory. */
tern_status tern_launch_prepare(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype);
static inline tern_status tern_launch(tern_place *place, const tern_kernel_ref *kernel,
                                      tern_dtype dtype, tern_grid grid, const tern_arg *args, int n)
{
    return tern_launch_grid(place, kernel, dtype, &grid, args, n);
}
/* Launches a kernel with the given arguments, in the order of the kernel's parameters. */
#define TERN_LAUNCH(place, kernel, dtype, grid, ...)                                               \
    tern_launch(place, kernel, dtype, grid, (const tern_arg[]){__VA_ARGS__},                       \
                (int)(sizeof((const tern_arg[]){__VA_ARGS__}) / sizeof(tern_arg)))
tern_status tern_launch_gemm(tern_place *place, const tern_gemm *gemm);
/* Sets *fits to whether the device computes the product with its epilogue and bias gradient. */
tern_status tern_gemm_epilogue_fits(tern_place *place, const tern_gemm *gemm, bool *fits);
/* Returns whether tern_set_float32_matmul_precision allows TensorFloat-32 in f32 products. */
bool tern_allows_tf32(void);
/* Launches a kernel that the backend compiled from the user's source. */
tern_status tern_launch_user(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n);
/* Run a routine of the vendor's library; *taken is false if there is none for this, and then
 * nothing has happened. */
tern_status tern_launch_convolution(tern_place *place, const tern_convolution *c, bool *taken);
tern_status tern_launch_attention(tern_place *place, const tern_attention *a, bool *taken);
/* Returns whether tern_launch_attention can compute attention of a width above
 * TERN_ATTENTION_WIDEST (shapes.h) and up to TERN_ATTENTION_MATRIX_WIDEST, and its gradients. */
enum { TERN_ATTENTION_MATRIX_WIDEST = 256 };
bool tern_place_attends_wide(tern_place *place, tern_dtype dtype);
/* Runs the k collectives of `list` on n devices. *taken becomes false, and nothing happens, if the
 * devices are not distinct, not of one backend, are being captured, or their vendor has no library
 * for collectives. */
tern_status tern_launch_collectives(tern_place *const *places, int n, const tern_collective *list,
                                    int k, bool *taken);
/* Returns the functions for collectives with devices of other processes; NULL if there are none. */
const tern_communicators *tern_place_communicators(const tern_place *place);
/* Returns whether a convolution with a bias that the vendor's library refuses may be tried without
 * the bias. */
bool tern_place_leaves_bias(const tern_place *place);
enum { TERN_ROW_MULTIPLE = 8 };
/* Returns whether this product is faster, even with the time of copies, if in each matrix the size
 * of the contiguous dim and the row stride are multiples of TERN_ROW_MULTIPLE elements. */
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
/* The same for kernels that read rows by vectors (float4.h). */
static inline tern_grid tern_rows(int64_t rows, int64_t row, int64_t work_each)
{
    return (tern_grid){rows, rows * work_each, row > 1 ? row : 1, true, 0};
}

/* ---- faults: user errors that only a kernel can detect, listed in faults.def ---- */

enum {
#define X(NAME, CODE, FORMAT) TERN_FAULT_##NAME = CODE,
#include "device/faults.def"
#undef X
    TERN_FAULT_DIMENSION = 26
};
/* TERN_FAULT_ALONG: the fault of an index that is out of bounds for dim, which the message names.
 * TERN_FAULT_IN_PLACE: a flag for a fault of an in-place operation. */
#define TERN_FAULT_ALONG(dim) (TERN_FAULT_DIMENSION | (dim) << 8)
#define TERN_FAULT_IN_PLACE   (1 << 12)
/* Returns what a kernel writes to the first fault word: the fault, and a number that stands for the
 * function that launches the kernel, as the message names it and another function may be the one
 * that waits. tern_arg_fault makes it an argument; some kernels have it in a struct instead. */
int tern_fault_named(int fault);
#define tern_arg_fault(fault) tern_arg_i32(tern_fault_named(fault))
/* Sets *arg to the device's fault words {code, first number, second number} (three i64), which the
 * kernel may write, and makes the next synchronization read them. */
tern_status tern_fault_arg(tern_place *place, tern_arg *arg);
/* Returns the error of a fault if launches are synchronous and the host sees the memory; on other
 * devices the next synchronization returns it. */
tern_status tern_fault_check(tern_place *place);

/* ---- random numbers ---------------------------------------------------------------------- */
/* Takes n groups of four numbers from the device's generator: sets *state to the device's {seed,
 * base} (two u64) and *at to the number of the first group, relative to base. */
tern_status tern_rng_take(tern_place *place, int64_t n, tern_arg *state, int64_t *at);
/* The saved state of a device's generator. */
typedef struct tern_rng_note {
    tern_place *place;
    struct tern_graph *graph; /* the graph that was being recorded; NULL: none */
    tern_rng_state state;
} tern_rng_note;
/* Saves the states of the generators of all open devices, at most `capacity`; returns how many. */
int tern_rng_note_all(tern_rng_note *notes, int capacity);
/* Restores the saved states. Returns false if a generator was not restored, because the recording
 * of a graph has begun or ended on its device since. */
bool tern_rng_put_back(const tern_rng_note *notes, int n);

#endif
