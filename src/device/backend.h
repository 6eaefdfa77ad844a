/* backend.h -- what a backend is: one struct, every slot a contract.
 *
 * Unless a slot says otherwise it may be called from any thread at the same time, holds no lock of
 * the device layer, and after a failure has recorded an error with tern_fail and changed nothing.
 * Offsets and sizes are bytes unless they say elements. Empty requests never arrive. */
#ifndef TERN_DEVICE_BACKEND_H
#define TERN_DEVICE_BACKEND_H
#include "base/buffer.h"
#include "base/text.h"
#include "device/chain.h"
#include <tern/dist.h>
#include <tern/interop.h>
#include <tern/kernel.h>
#include <tern/tensor.h>

typedef struct tern_backend tern_backend;

/* A device as the library sees it: a place where data lives and kernels run. */
typedef struct tern_place tern_place;

/* What an argument says of itself, for kernels of the library's own: see signature.h. */
typedef enum tern_role {
    TERN_ROLE_UNKNOWN = 0,
    TERN_ROLE_OUT,    /* elements that the kernel writes */
    TERN_ROLE_IN,     /* elements that it reads */
    TERN_ROLE_UNUSED, /* any buffer, for a parameter that the kernel leaves alone this time */
    TERN_ROLE_VALUE
} tern_role;

/* One argument of a kernel: elements of a buffer, or a value. In user_launch by_reference without
 * data is local memory of `bytes`. */
typedef struct tern_arg {
    const tern_buffer *buffer; /* NULL: a value */
    int64_t at;                /* first element */
    uint32_t bytes;            /* of one element, or of the value */
    uint8_t role, type;        /* a tern_role, a tern_type */
    bool by_reference;         /* the value is *data (a struct), valid until launch returns */
    bool without_offset;       /* of a buffer: its beginning, the kernel has no offset for it */
    union {
        const void *data;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        float f32;
        double f64;
    } value;
} tern_arg;

/* How much there is to do: count items, or (groups 1) count work-groups of the dialect's GROUPS
 * form, or (groups n > 1) count rows of n elements in its TEAMS form; `work` is the number of
 * element-operations in all, by which a backend chooses how far to spread. */
typedef struct tern_grid {
    int64_t count;
    int64_t work;
    int64_t groups;
    bool has_short; /* of TEAMS: the kernel has builds for rows of up to TERN_SHORT_ROW elements */
    int sides;      /* launches like that, side by side (beside.h); 0: one */
} tern_grid;

/* For backends of GPUs: how many groups of `size` lanes go through the items of a grid: `fill` of
 * them, which fill the GPU, where there are so many items, and more where a lane would have more
 * than two vectors of 16 bytes (cl_kernels/float4.h) of the widest tensor. */
int64_t tern_flat_groups(const tern_grid *grid, const tern_arg *args, int n, int64_t size,
                         int64_t fill);

/* A batch of matrices: element (i, k) of matrix (b0, b1) is at
 * buffer[at + b0 * batch[0] + b1 * batch[1] + i * row + k * col], all in elements. */
typedef struct tern_matrix {
    const tern_buffer *buffer;
    int64_t at, row, col, batch[2];
} tern_matrix;

/* C = alpha A B + beta C (+ bias, one number a column), A (m, k), B (k, n), C (m, n) with col 1.
 * Nothing is empty; beta 0 does not read C. Sums are in f32 for f16 and bf16. */
typedef struct tern_gemm {
    tern_dtype dtype; /* f32 f64 f16 bf16 */
    int64_t m, n, k, count[2];
    double alpha, beta;
    tern_matrix a, b, c;
    const tern_buffer *bias; /* NULL = none */
    int64_t bias_at;
    /* The bias gradient, which the product writes: the sums of A's rows, m numbers. NULL: none.
     * Only if epilogue_fits returns true. */
    const tern_buffer *bias_grad;
    int64_t bias_grad_at;
    /* The function that the product applies to C at the end, only if epilogue_fits returns true:
     * relu; gelu by tanh, which writes its input to `mask`, numbers of dtype in rows of
     * tern_gemm_gelu_row; or gelu's gradient, which reads that input from `mask`. The bias gradient
     * is then the sums of C's columns, n numbers. */
    enum tern_gemm_epilogue {
        TERN_GEMM_NO_EPILOGUE,
        TERN_GEMM_RELU,
        TERN_GEMM_GELU,
        TERN_GEMM_GELU_GRADIENT
    } epilogue;
    const tern_buffer *mask;
    int64_t mask_at;
    bool tf32; /* f32: may read A and B as TensorFloat-32 numbers; set by tern_launch_gemm */
    bool wide; /* f16 bf16: C and bias_grad are float32, if epilogue_fits returns true */
} tern_gemm;

/* The numbers of a row of what gelu notes: those of C, padded to 8. */
static inline int64_t tern_gemm_gelu_row(int64_t n)
{
    return (n + 7) / 8 * 8;
}

/* The i-th of n dims of an image, from outside in memory, where its channels lie next to each
 * other. */
static inline int tern_channels_last_dim(int i, int n)
{
    return i == 0 ? 0 : i == n - 1 ? 1 : i + 1;
}

/* A convolution, or a gradient of one: y from x and weight (and bias, one number a channel of y), x
 * from y and weight, weight from x and y. All are dense; nothing is empty. */
typedef enum tern_conv_pass { TERN_CONV_Y, TERN_CONV_X, TERN_CONV_WEIGHT } tern_conv_pass;
typedef struct tern_convolution {
    tern_dtype dtype;
    tern_conv_pass pass;
    const struct tern_conv_shape *shape; /* of shapes.h */
    tern_arg x, weight, y, bias;         /* bias without a buffer: none */
    bool channels_last; /* of x, weight and y: by tern_channels_last_dim; else they are in rows */
    bool
        accumulates; /* adds to what x is: of TERN_CONV_X, if the vendor accumulates_convolutions */
    bool deterministic;         /* the same numbers on every run */
    bool tf32;                  /* f32: may read TensorFloat-32 numbers; set by the device layer */
    const tern_buffer *scratch; /* likewise; NULL: none was wanted */
    bool library, measures; /* set by the backend's plan: for a library of the vendor's, which tries
                             * its algorithms */
} tern_convolution;

/* out = softmax(scale q k' + mask) v for every stack, q (queries, width), k (keys, width), v (keys,
 * value_width), and log sum e^score of each query. Nothing is empty; out's columns are dense. Or
 * its gradients, dq, dk and dv by dout, q, k, v, out and the sums. */
typedef struct tern_attention {
    tern_dtype dtype;
    const struct tern_attention_block *block; /* of shapes.h; rows, columns, first, from unused */
    int64_t width, value_width;
    double scale, softcap; /* 0: none; else scores are softcap tanh(score / softcap) before masks */
    tern_matrix q, k, v, out;
    tern_arg sums, mask, state; /* without a buffer: none; state: of dropout, where drop is not 0 */
    double kept;                /* by which it multiplies the weights that it keeps */
    bool gradient, deterministic;
    bool trains;                  /* its gradient will be wanted */
    tern_matrix dout, dq, dk, dv; /* of a gradient */
    const tern_buffer *scratch;   /* set by the device layer; NULL: none was wanted */
    int way; /* set by the backend's plan: of matrix_way.h; NONE: a library of the vendor's */
} tern_attention;

/* What several devices do together: i has from[i] and to[i] on places[i], dense, of count elements;
 * they may be one memory. Those of all together are n times as many, in the order of places. */
enum { TERN_MOST_COLLECTIVE_DEVICES = 64 };
typedef enum tern_collective_kind {
    TERN_COLLECTIVE_ALL_REDUCE,     /* all get the sum of from, or what op is */
    TERN_COLLECTIVE_REDUCE,         /* root does */
    TERN_COLLECTIVE_BROADCAST,      /* all get root's */
    TERN_COLLECTIVE_ALL_GATHER,     /* to is all together */
    TERN_COLLECTIVE_REDUCE_SCATTER, /* from is all together: each gets its part of the sum */
    /* Of processes alone (tern_communicators): */
    TERN_COLLECTIVE_GATHER,    /* root's to is all together */
    TERN_COLLECTIVE_SCATTER,   /* root's from is: each gets its part */
    TERN_COLLECTIVE_ALL_TO_ALL /* both are: each gets its part of each */
} tern_collective_kind;
typedef struct tern_collective {
    tern_collective_kind kind;
    tern_dist_op op; /* of bools one of bits */
    tern_dtype dtype;
    int64_t count;
    int root;
    const tern_arg *from, *to;
} tern_collective;

/* Communicators, as NCCL has them: collectives over devices of several processes, one device of
 * each, which has a rank. No call waits for another process. One thread at a time uses a
 * communicator. */
enum { TERN_COMMUNICATOR_ID = 128, TERN_COMMUNICATOR_BUS = 16 };
typedef struct tern_communicators {
    /* The library's version, the same in all processes of a communicator; 0: there is none. */
    int (*version)(void);
    bool (*is_supported)(const tern_collective *t);
    /* Writes the device's bus id in its host: a communicator has each device once. */
    tern_status (*bus)(tern_place *place, char text[TERN_COMMUNICATOR_BUS]);
    /* One process creates the id, and all open the communicator with it. */
    tern_status (*id)(tern_place *place, void *id);
    tern_status (*open)(tern_place *place, const void *id, int rank, int n, void **communicator);
    /* Begins t, whose from[0] and to[0] are this process's, after an event of tern_transfers. */
    tern_status (*begin)(void *communicator, const tern_collective *t, void *event);
    /* Sets *over to whether the last collective, or the opening, has ended. */
    tern_status (*over)(void *communicator, bool *over);
    /* Frees the communicator. A collective that runs is aborted, which may take a while. */
    void (*drop)(void *communicator);
} tern_communicators;

/* Routines of the hardware's vendor, all optional: one that is NULL, or sets *taken to false,
 * leaves the work to the portable kernels. */
typedef struct tern_vendor {
    tern_status (*convolution)(tern_place *place, const tern_convolution *c, bool *taken);
    /* Asked before it, where it is there: whether the convolution is for the vendor, and the bytes
     * of scratch memory that it is to be given, 0 for none. */
    tern_status (*convolution_plan)(tern_place *place, tern_convolution *c, size_t *scratch,
                                    bool *taken);
    /* Attention; asked before it, as of convolutions. Both or none. */
    tern_status (*attention_plan)(tern_place *place, tern_attention *a, size_t *scratch,
                                  bool *taken);
    tern_status (*attention)(tern_place *place, const tern_attention *a, bool *taken);
    /* Whether it takes attention of this type, and its gradients, that is wider than
     * TERN_ATTENTION_WIDEST, up to TERN_ATTENTION_MATRIX_WIDEST, if nothing fails. NULL: no. */
    bool (*attends_wide)(tern_place *place, tern_dtype dtype);
    /* Sets *fits to whether gemm computes this product with its bias gradient and its epilogue.
     * NULL: gemm has neither. */
    tern_status (*epilogue_fits)(tern_place *place, const tern_gemm *g, bool *fits);
    /* Whether the rows of this product's matrices begin at multiples of TERN_ROW_MULTIPLE elements
     * if it is to be fast. */
    bool (*wants_multiples)(const tern_place *place, const tern_gemm *g);
    /* What tern_device_get_info says of the device beyond what was found when it was opened. */
    void (*describe)(tern_place *place, tern_device_info *info);
    bool accumulates_convolutions;
    bool leaves_bias; /* where it takes no bias it is asked without: that is added afterwards */
    /* The k collectives of n distinct devices of this backend, one behind the other. */
    tern_status (*collectives)(tern_place *const *places, int n, const tern_collective *list, int k,
                               bool *taken);
    const tern_communicators *communicators; /* NULL: none */
    /* Pinned memory of the host, from which the device copies by itself; a write from there that
     * does not wait: the bytes stay as they are until the device has passed it; whether it has
     * passed an event. All four or none. */
    tern_status (*host_alloc)(tern_place *place, size_t bytes, void **memory);
    void (*host_free)(tern_place *place, void *memory);
    tern_status (*write_later)(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes);
    bool (*has_passed)(tern_place *place, void *event);
    /* A graph of all that record(user) launches, which does not run now; run it, in launch order;
     * free it when it is done. All three or none. */
    tern_status (*graph_make)(tern_place *place, tern_status (*record)(void *user), void *user,
                              void **graph);
    tern_status (*graph_run)(tern_place *place, void *graph);
    void (*graph_free)(tern_place *place, void *graph);
} tern_vendor;

/* Copies beside the launches, on a queue of the device's own, which is opened when it is first
 * used; and events in the order of that queue or of the launches', for one to wait for the other.
 * An event that is NULL has passed. */
typedef struct tern_transfers {
    /* Memory of the host, buffer->bytes of it at buffer->host, that the device copies from and to
     * by itself. */
    tern_status (*host_alloc)(tern_place *place, tern_buffer *buffer);
    void (*host_free)(tern_place *place, tern_buffer *buffer);
    /* To and from such memory, or what host_alloc of the vendor pinned, on the queue for copies;
     * they do not wait. */
    tern_status (*write_later)(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes);
    tern_status (*read_later)(tern_place *place, const tern_buffer *from, size_t at, void *to,
                              size_t bytes);
    /* An event behind all that was given so far; what is given from now on waits for an event. */
    tern_status (*mark)(tern_place *place, bool transfers, void **event);
    tern_status (*after)(tern_place *place, bool transfers, void *event);
    /* Whether it has passed, wait for it, free it (passed or not). */
    bool (*has_passed)(tern_place *place, void *event);
    tern_status (*await)(tern_place *place, void *event);
    void (*unmark)(tern_place *place, void *event);
    /* Wait for all copies, where an event could not be made. */
    void (*drain)(tern_place *place);
} tern_transfers;

/* A segment of addresses of which only parts have memory behind them, for large blocks
 * (segments.h). */
typedef struct tern_memory_growth {
    size_t step; /* parts begin and end at multiples of it */
    /* How many addresses to reserve, a multiple of step: more than there is memory, as parts that
     * are in use can't move. 0: this device has no such segments. */
    size_t (*most)(tern_place *place);
    /* Addresses for segment->bytes, and no memory, for as long as the process lives. */
    tern_status (*reserve)(tern_place *place, tern_buffer *segment);
    /* Put memory behind a part, which the device can write from then on; *memory is the backend's
     * own. Out of memory is TERN_ERR_MEMORY without a recorded error. */
    tern_status (*map)(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                       void **memory);
    /* Never fails; what was launched before and uses it still finishes. */
    void (*unmap)(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                  void *memory);
} tern_memory_growth;

/* What enumerate found: the device layer fills places from it. */
typedef struct tern_found {
    tern_device_info info; /* device and memory_free are filled in later */
    void *state;           /* the backend's own, given back in tern_place.state */
    bool synchronous;      /* launches are done when they return, on memory that the host sees */
    bool grouped;          /* a work-group has lanes that share local memory: the form for GPUs */
    bool lazy; /* machine code is compiled when a kernel is first launched (program_groups.h) */
    bool has_index32; /* resolve_index32 is there for it */
    size_t part_step; /* parts of a buffer begin at multiples of so many bytes; 0: TERN_PART_STEP */
} tern_found;
/* The 16 bytes of a UUID as the text of tern_device_info. */
void tern_uuid_text(const void *bytes, char text[40]);

/* Parts of a buffer begin at multiples of so many bytes where the device says nothing else. */
enum { TERN_PART_STEP = 512 };

struct tern_backend {
    const char *kind; /* "cpu": the word before the colon */

    /* Find the devices, masks applied, best order first; called once, under the registry's lock.
     * *found is allocated with tern_alloc, *n may be 0. What was passed over and why goes to notes.
     * Fails only when memory is out. */
    tern_status (*enumerate)(tern_found **found, int *n, tern_text *notes);
    /* Make a device ready; called once before any other slot, under the place's lock. A failure is
     * recorded and open is tried again at the next use. */
    tern_status (*open)(tern_place *place);
    /* Called when the process ends, after the last use: wait for what is under way, and release
     * what outlives a process. */
    void (*close)(tern_place *place);

    /* Fill *buffer with new memory of buffer->bytes. Out of memory is TERN_ERR_MEMORY *without* a
     * recorded error (the caller empties its cache, retries and words the message). */
    tern_status (*alloc)(tern_place *place, tern_buffer *buffer);
    /* Never fails; earlier launches that use the buffer still finish. */
    void (*free)(tern_place *place, tern_buffer *buffer);

    /* Host to device, in launch order; the host bytes may be reused when it returns. */
    tern_status (*write)(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                         size_t bytes);
    /* Device to host, after everything launched before; waits. */
    tern_status (*read)(tern_place *place, const tern_buffer *from, size_t at, void *to,
                        size_t bytes);
    /* Within the device, in launch order; ranges do not overlap. */
    tern_status (*copy)(tern_place *place, const tern_buffer *from, size_t from_at,
                        const tern_buffer *to, size_t to_at, size_t bytes);
    /* To another device of the same backend, in launch order of both; TERN_ERR_UNSUPPORTED without
     * a recorded error sends the caller through the host. */
    tern_status (*peer)(tern_place *from_place, const tern_buffer *from, size_t from_at,
                        tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes);
    /* Set bytes to zero, in launch order. */
    tern_status (*zero)(tern_place *place, const tern_buffer *to, size_t at, size_t bytes);

    /* Find the library's kernel `name` of cl_kernels/`file` for elements of dtype, building its
     * program if need be. Called once per kernel and dtype, under the place's lock; *kernel stays
     * valid until close. */
    tern_status (*resolve)(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                           void **kernel);
    /* Run a resolved kernel, in launch order; does not wait. */
    tern_status (*launch)(tern_place *place, void *kernel, const tern_grid *grid,
                          const tern_arg *args, int n);
    /* Matrix product, in launch order. */
    tern_status (*gemm)(tern_place *place, const tern_gemm *gemm);

    /* Wait for everything launched; report what failed since the last sync. */
    tern_status (*sync)(tern_place *place);
    /* An event in launch order, and the nanoseconds between two events (waits for both). */
    tern_status (*event)(tern_place *place, void **event);
    tern_status (*elapsed)(tern_place *place, void *from, void *to, double *nanoseconds);
    void (*event_free)(tern_place *place, void *event);
    /* Bytes free and in all, as the driver reports; free = total where it can't. */
    tern_status (*memory)(tern_place *place, uint64_t *free_bytes, uint64_t *total);

    /* The user's own kernels. */
    tern_status (*user_compile)(tern_place *place, const char *source, const char *name,
                                void **kernel);
    tern_status (*user_launch)(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                               const tern_arg *args, int n);
    void (*user_free)(tern_place *place, void *kernel);

    /* Memory of the application's, an address or a cl_mem: fill buffer, whose bytes are what is
     * used of it, and keep it until unborrow. Errors: TERN_ERR_DEVICE where the device can't use
     * it, TERN_ERR_ARGUMENT where it is smaller. */
    tern_status (*borrow)(tern_place *place, void *memory, tern_buffer *buffer);
    void (*unborrow)(tern_place *place, tern_buffer *buffer);
    /* The driver's objects; use those of the application instead, before the device is opened or (a
     * queue of the same context) after. */
    void (*handles)(tern_place *place, tern_device_handles *handles);
    tern_status (*use_handles)(tern_place *place, const tern_device_handles *handles);

    const tern_vendor *vendor;       /* NULL: none; from here on slots may be */
    const tern_transfers *transfers; /* NULL: copies are in launch order */
    /* After close, where a plugin is unloaded that the library is linked into: give back all that
     * the device took, and its state. NULL: that stays. */
    void (*release)(tern_place *place);
    /* Large blocks as parts of segments: *part, whose bytes are set, becomes those of whole from
     * `at` on, a multiple of place->part_step; and ends. Out of memory is TERN_ERR_MEMORY without a
     * recorded error. part NULL: each block is allocated alone; unpart NULL: nothing is to be done.
     * growth NULL: segments are allocated whole. */
    tern_status (*part)(tern_place *place, const tern_buffer *whole, size_t at, tern_buffer *part);
    void (*unpart)(tern_place *place, tern_buffer *part);
    const tern_memory_growth *growth;
    /* Begin what was launched, where the driver waits for a flush: the host turns to something
     * else. NULL: it never waits. One that does calls tern_commands_are_held for what it keeps. */
    void (*flush)(tern_place *place);
    /* Build the program of a kernel, as resolve would, into the cache alone (builds.h); what fails
     * is left to resolve. From any thread. And name to tern_builds_add the kernels that gemm would
     * launch. Both or none. */
    void (*prebuild)(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                     int lanes);
    void (*prebuild_gemm)(tern_place *place, const tern_gemm *gemm);
    /* As resolve, with indices of 32 bits (index32.h), and for short rows that teams of so many
     * lanes have, if lanes is not 0; NULL: there are none. */
    tern_status (*resolve_index32)(tern_place *place, const char *file, const char *name,
                                   tern_dtype dtype, int lanes, void **kernel);
    /* Bring into the cache what is not there though it was used. NULL: nothing is. */
    void (*keep_programs)(tern_place *place);
    /* Compiles a chain (chain.h) to one kernel. Its arguments are the chain's tensors, n as an i64,
     * and the numbers of the rows; on the host the chain itself comes before them. *compiled stays
     * NULL if the device has no such kernel; it is valid until close. NULL: the backend never has
     * one. */
    tern_status (*chain)(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                         void **compiled);
    /* From now on events cost no wait, at the price of slower launches, or no longer; NULL: they
     * never do. Called when nothing is under way. */
    tern_status (*profile)(tern_place *place, bool on);
};

/* What the backend may know of its place. */
void *tern_place_state(const tern_place *place);
const tern_device_info *tern_place_info(const tern_place *place);
/* Records that a driver holds back commands until flush. */
void tern_commands_are_held(void);
/* Count a program that was built from source, or loaded from the cache on disk. */
void tern_place_count_program(tern_place *place, bool built);

#endif
