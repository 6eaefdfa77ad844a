/* backend.h -- struct tern_backend, the functions that a backend implements.
 *
 * Unless a comment says otherwise, the functions may be called from several threads at a time, and
 * the caller holds no lock of the device layer. A function that fails has recorded an error with
 * tern_fail and changed nothing. Offsets and sizes are in bytes unless a comment says elements. No
 * function is called for 0 elements or 0 bytes. */
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

/* How a kernel of the library uses an argument; signature.h compares this with the kernel's
 * parameters. */
typedef enum tern_role {
    TERN_ROLE_UNKNOWN = 0,
    TERN_ROLE_OUT,    /* elements that the kernel writes */
    TERN_ROLE_IN,     /* elements that the kernel reads */
    TERN_ROLE_UNUSED, /* any buffer, for a parameter that the kernel does not use in this launch */
    TERN_ROLE_VALUE
} tern_role;

/* One argument of a kernel: elements of a buffer, or a value. In user_launch an argument with
 * by_reference and without data is local memory of `bytes` bytes. */
typedef struct tern_arg {
    const tern_buffer *buffer; /* NULL: the argument is a value */
    int64_t at;                /* the first element */
    uint32_t bytes;            /* the size of one element, or of the value */
    uint8_t role, type;        /* a tern_role, a tern_type */
    bool by_reference;         /* the value is *data (a struct), valid until launch returns */
    bool without_offset;       /* `at` is 0, and the kernel has no parameter for the offset */
    union {
        const void *data;
        int64_t i64;
        uint64_t u64;
        int32_t i32;
        float f32;
        double f64;
    } value;
} tern_arg;

/* The size of a launch: count items, or if groups is 1, count work-groups of the dialect's GROUPS
 * form, or if groups is n > 1, count rows of n elements in the dialect's TEAMS form. `work` is the
 * number of element-operations in all, by which a backend chooses the number of threads. */
typedef struct tern_grid {
    int64_t count;
    int64_t work;
    int64_t groups;
    bool has_short; /* of TEAMS: the kernel has builds for rows of up to TERN_SHORT_ROW elements */
    int sides;      /* the number of launches that run side by side (beside.h); 0: one */
} tern_grid;

/* For backends of GPUs: returns how many groups of `size` lanes loop over the items of a grid. This
 * is `fill`, the number of groups that fill the GPU; or fewer, if there are fewer items; or more,
 * so that a lane has no more than two vectors of 16 bytes (cl_kernels/float4.h) of the widest
 * tensor. */
int64_t tern_flat_groups(const tern_grid *grid, const tern_arg *args, int n, int64_t size,
                         int64_t fill);

/* A batch of matrices: element (i, k) of matrix (b0, b1) is at
 * buffer[at + b0 * batch[0] + b1 * batch[1] + i * row + k * col], all in elements. */
typedef struct tern_matrix {
    const tern_buffer *buffer;
    int64_t at, row, col, batch[2];
} tern_matrix;

/* C = alpha A B + beta C (+ bias, one number a column), A (m, k), B (k, n), C (m, n) with col 1.
 * m, n and k are above 0. If beta is 0, C is not read. f16 and bf16 are summed in f32. */
typedef struct tern_gemm {
    tern_dtype dtype; /* f32 f64 f16 bf16 */
    int64_t m, n, k, count[2];
    double alpha, beta;
    tern_matrix a, b, c;
    const tern_buffer *bias; /* NULL: no bias */
    int64_t bias_at;
    /* The bias gradient, an output: the sums of A's rows, m numbers. NULL: no bias gradient. It may
     * be there only if epilogue_fits sets *fits to true. */
    const tern_buffer *bias_grad;
    int64_t bias_grad_at;
    /* The function that the product applies to C at the end, only if epilogue_fits sets *fits to
     * true: relu; gelu by tanh, which writes its input to `mask`, numbers of dtype in rows of
     * tern_gemm_gelu_row; or gelu's gradient, which reads that input from `mask`. With gelu's
     * gradient the bias gradient is the sums of C's columns, n numbers. */
    enum tern_gemm_epilogue {
        TERN_GEMM_NO_EPILOGUE,
        TERN_GEMM_RELU,
        TERN_GEMM_GELU,
        TERN_GEMM_GELU_GRADIENT
    } epilogue;
    const tern_buffer *mask;
    int64_t mask_at;
    bool tf32; /* f32: may read A and B as TensorFloat-32 numbers; set by tern_launch_gemm */
    bool wide; /* f16 bf16: C and bias_grad are float32; only if epilogue_fits allows it */
} tern_gemm;

/* Returns the row length of `mask` for gelu: n, the row length of C, rounded up to 8. */
static inline int64_t tern_gemm_gelu_row(int64_t n)
{
    return (n + 7) / 8 * 8;
}

/* Returns the dim that is the i-th of the n dims of an image in memory, outermost first, if the
 * image is in channels-last format. */
static inline int tern_channels_last_dim(int i, int n)
{
    return i == 0 ? 0 : i == n - 1 ? 1 : i + 1;
}

/* A convolution or one of its gradients: computes y from x and weight (and bias, one number a
 * channel of y), or x from y and weight, or weight from x and y. All tensors are dense and not
 * empty. */
typedef enum tern_conv_pass { TERN_CONV_Y, TERN_CONV_X, TERN_CONV_WEIGHT } tern_conv_pass;
typedef struct tern_convolution {
    tern_dtype dtype;
    tern_conv_pass pass;
    const struct tern_conv_shape *shape; /* of shapes.h */
    tern_arg x, weight, y, bias;         /* bias without a buffer: no bias */
    bool channels_last; /* x, weight and y are in channels-last format; else they are contiguous */
    bool accumulates;   /* TERN_CONV_X: the result is added to x; needs accumulates_convolutions */
    bool deterministic; /* every run gives the same bits */
    bool tf32;          /* f32: may read TensorFloat-32 numbers; set by the device layer */
    const tern_buffer *scratch; /* set by the device layer; NULL: the plan needs none */
    bool library, measures;     /* set by convolution_plan: the vendor's library computes it; the
                             * library measures its algorithms first */
} tern_convolution;

/* Attention: out = softmax(scale q k' + mask) v for every matrix of the batch, q (queries, width),
 * k (keys, width), v (keys, value_width), and `sums`, log sum e^score of each query; or its
 * gradients: dq, dk and dv from dout, q, k, v, out and the sums. No tensor is empty; out's columns
 * are dense. */
typedef struct tern_attention {
    tern_dtype dtype;
    const struct tern_attention_block *block; /* of shapes.h, without rows, columns, first, from */
    int64_t width, value_width;
    double scale, softcap; /* if softcap: scores are softcap tanh(score / softcap) before masks */
    tern_matrix q, k, v, out;
    tern_arg sums, mask, state; /* without a buffer: none; state: the generator's, for dropout */
    double kept;                /* dropout multiplies the weights that it keeps by this */
    bool gradient, deterministic;
    bool trains;                  /* autograd may compute the gradient later */
    tern_matrix dout, dq, dk, dv; /* used if `gradient` */
    const tern_buffer *scratch;   /* set by the device layer; NULL: the plan needs none */
    int way; /* set by attention_plan: one of matrix_way.h; NONE: the vendor's library */
} tern_attention;

/* A collective of n devices: device i reads from[i] and writes to[i], which are dense, on places[i]
 * and may be the same memory. Each has count elements, or n * count if a comment below says "all
 * parts"; these are in the order of places. */
enum { TERN_MOST_COLLECTIVE_DEVICES = 64 };
typedef enum tern_collective_kind {
    TERN_COLLECTIVE_ALL_REDUCE,     /* each `to` is the sum of all `from`, or the result of op */
    TERN_COLLECTIVE_REDUCE,         /* root's `to` is that sum */
    TERN_COLLECTIVE_BROADCAST,      /* each `to` is root's `from` */
    TERN_COLLECTIVE_ALL_GATHER,     /* each `to` is all parts */
    TERN_COLLECTIVE_REDUCE_SCATTER, /* `from` is all parts; `to` is this device's part of the sum */
    /* The following are for processes alone (tern_communicators). */
    TERN_COLLECTIVE_GATHER,    /* root's `to` is all parts */
    TERN_COLLECTIVE_SCATTER,   /* root's `from` is all parts; `to` is this device's part */
    TERN_COLLECTIVE_ALL_TO_ALL /* both are all parts; `to` is this device's part of each `from` */
} tern_collective_kind;
typedef struct tern_collective {
    tern_collective_kind kind;
    tern_dist_op op; /* for bools a bitwise one */
    tern_dtype dtype;
    int64_t count;
    int root;
    const tern_arg *from, *to;
} tern_collective;

/* Communicators in the sense of NCCL: collectives over the devices of several processes, one device
 * a process; each process has a rank. No function waits for another process. One thread at a time
 * uses a communicator. */
enum { TERN_COMMUNICATOR_ID = 128, TERN_COMMUNICATOR_BUS = 16 };
typedef struct tern_communicators {
    /* Returns the version of the vendor's library, which must be the same in all processes of a
     * communicator; 0: the library is not there. */
    int (*version)(void);
    bool (*is_supported)(const tern_collective *t);
    /* Writes the device's bus id; no two ranks of a communicator may have the same device. */
    tern_status (*bus)(tern_place *place, char text[TERN_COMMUNICATOR_BUS]);
    /* Creates an id: one process calls this, and all processes pass the id to `open`. */
    tern_status (*id)(tern_place *place, void *id);
    tern_status (*open)(tern_place *place, const void *id, int rank, int n, void **communicator);
    /* Starts collective t behind an event of tern_transfers; t->from[0] and t->to[0] are this
     * process's tensors. */
    tern_status (*begin)(void *communicator, const tern_collective *t, void *event);
    /* Sets *over to whether `open` or the last collective has ended. */
    tern_status (*over)(void *communicator, bool *over);
    /* Frees the communicator. A running collective is aborted, which may take a while. */
    void (*drop)(void *communicator);
} tern_communicators;

/* Routines of the hardware vendor's libraries, all optional. If a routine is NULL or sets *taken to
 * false, the portable kernels compute the result. */
typedef struct tern_vendor {
    tern_status (*convolution)(tern_place *place, const tern_convolution *c, bool *taken);
    /* Called before `convolution`, unless NULL: sets *taken to whether `convolution` computes this,
     * and *scratch to the bytes of scratch memory that it needs, or 0. */
    tern_status (*convolution_plan)(tern_place *place, tern_convolution *c, size_t *scratch,
                                    bool *taken);
    /* The same for attention. Either both functions are NULL or none. */
    tern_status (*attention_plan)(tern_place *place, tern_attention *a, size_t *scratch,
                                  bool *taken);
    tern_status (*attention)(tern_place *place, const tern_attention *a, bool *taken);
    /* Returns whether `attention` computes attention of this dtype, and its gradients, for widths
     * above TERN_ATTENTION_WIDEST and up to TERN_ATTENTION_MATRIX_WIDEST, unless an error occurs.
     * NULL: it does not. */
    bool (*attends_wide)(tern_place *place, tern_dtype dtype);
    /* Sets *fits to whether `gemm` computes this product with its bias gradient and its epilogue.
     * NULL: `gemm` computes neither. */
    tern_status (*epilogue_fits)(tern_place *place, const tern_gemm *g, bool *fits);
    /* Returns whether this product is fast only if the rows of its matrices begin at multiples of
     * TERN_ROW_MULTIPLE elements. */
    bool (*wants_multiples)(const tern_place *place, const tern_gemm *g);
    /* Fills the fields of *info that are not known when the device is opened. */
    void (*describe)(tern_place *place, tern_device_info *info);
    bool accumulates_convolutions; /* `convolution` can add its result to x */
    bool leaves_bias; /* if a bias is refused, the caller tries without and adds the bias itself */
    /* Runs k collectives, in the order of the list, on n distinct devices of this backend. */
    tern_status (*collectives)(tern_place *const *places, int n, const tern_collective *list, int k,
                               bool *taken);
    const tern_communicators *communicators; /* NULL: none */
    /* Either all of the next four are NULL or none. Allocates and frees pinned host memory, which
     * the device can copy from asynchronously. */
    tern_status (*host_alloc)(tern_place *place, size_t bytes, void **memory);
    void (*host_free)(tern_place *place, void *memory);
    /* Starts a write from pinned memory and returns; the caller leaves the bytes unchanged until
     * the device has executed the write. */
    tern_status (*write_later)(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes);
    /* Returns whether the event has completed. */
    bool (*has_passed)(tern_place *place, void *event);
    /* Either all of the next three are NULL or none. graph_make creates a graph of all commands
     * that record(user) launches, without running them; graph_run runs a graph in launch order;
     * graph_free frees it once it has run. */
    tern_status (*graph_make)(tern_place *place, tern_status (*record)(void *user), void *user,
                              void **graph);
    tern_status (*graph_run)(tern_place *place, void *graph);
    void (*graph_free)(tern_place *place, void *graph);
} tern_vendor;

/* Copies that run at the same time as launches: each device has a second queue for them, created
 * when it is first used. An event marks a point in that queue or in the launches' queue, and the
 * other queue can wait for it. NULL is an event that has completed. */
typedef struct tern_transfers {
    /* Allocates buffer->bytes bytes of pinned host memory and sets buffer->host. */
    tern_status (*host_alloc)(tern_place *place, tern_buffer *buffer);
    void (*host_free)(tern_place *place, tern_buffer *buffer);
    /* Starts a copy from or to pinned memory (of this host_alloc or of tern_vendor's) on the queue
     * for copies, and returns. */
    tern_status (*write_later)(tern_place *place, const tern_buffer *to, size_t at,
                               const void *from, size_t bytes);
    tern_status (*read_later)(tern_place *place, const tern_buffer *from, size_t at, void *to,
                              size_t bytes);
    /* `mark` creates an event behind all commands so far of the queue for copies (transfers) or of
     * the launches' queue; `after` makes later commands of that queue wait for an event. */
    tern_status (*mark)(tern_place *place, bool transfers, void **event);
    tern_status (*after)(tern_place *place, bool transfers, void *event);
    /* `has_passed` returns whether the event has completed, `await` waits for the event, and
     * `unmark` frees the event, completed or not. */
    bool (*has_passed)(tern_place *place, void *event);
    tern_status (*await)(tern_place *place, void *event);
    void (*unmark)(tern_place *place, void *event);
    /* Waits for all copies; called if one of the functions above failed for an event. */
    void (*drain)(tern_place *place);
} tern_transfers;

/* Virtual memory for large blocks (segments.h): a segment is a reserved range of addresses, and
 * physical memory is mapped to parts of it. */
typedef struct tern_memory_growth {
    size_t step; /* mapped parts begin and end at multiples of this */
    /* Returns how many bytes of addresses to reserve, a multiple of step. That is more than the
     * device has memory, as a part in use can't move. 0: this device can't map memory. */
    size_t (*most)(tern_place *place);
    /* Reserves segment->bytes of addresses, without memory, until the process ends. */
    tern_status (*reserve)(tern_place *place, tern_buffer *segment);
    /* Maps new memory to a part of the segment; *memory is a handle for unmap. If the device is
     * out of memory, returns TERN_ERR_MEMORY without recording an error. */
    tern_status (*map)(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                       void **memory);
    /* Unmaps and frees the memory. Never fails; earlier launches that use the memory still
     * finish. */
    void (*unmap)(tern_place *place, const tern_buffer *segment, size_t at, size_t bytes,
                  void *memory);
} tern_memory_growth;

/* A device that `enumerate` found; the device layer copies these fields to its tern_place. */
typedef struct tern_found {
    tern_device_info info; /* without the fields device and memory_free */
    void *state;           /* the backend's data of the device (tern_place_state) */
    bool synchronous;      /* a launch is done when it returns, and the host sees the memory */
    bool grouped;          /* the lanes of a work-group share local memory, as on GPUs */
    bool lazy; /* machine code is compiled when a kernel is first launched (program_groups.h) */
    bool has_index32; /* resolve_index32 works for this device */
    size_t part_step; /* the alignment in bytes of parts of a buffer; 0: TERN_PART_STEP */
} tern_found;
/* Writes the 16 bytes of a UUID as text, for tern_device_info. */
void tern_uuid_text(const void *bytes, char text[40]);

/* The alignment in bytes of parts of a buffer, if the device does not require another one. */
enum { TERN_PART_STEP = 512 };

struct tern_backend {
    const char *kind; /* the word before the colon in a device string: "cpu" */

    /* Finds the devices that the environment's masks leave, the preferred one first; called once,
     * with the registry's lock held. *found is allocated with tern_alloc; *n may be 0. Writes to
     * notes which devices were passed over and why. Fails only if the host is out of memory. */
    tern_status (*enumerate)(tern_found **found, int *n, tern_text *notes);
    /* Initializes a device; called before every other function, with the place's lock held, and
     * after a failure again at the next use. */
    tern_status (*open)(tern_place *place);
    /* Called when the process ends, after the last use: waits for all commands, and releases what
     * would outlive the process. */
    void (*close)(tern_place *place);

    /* Allocates buffer->bytes of memory and fills the other fields of *buffer. If the device is out
     * of memory, returns TERN_ERR_MEMORY *without* recording an error, as the caller empties its
     * cache, calls again and words the message. */
    tern_status (*alloc)(tern_place *place, tern_buffer *buffer);
    /* Frees the memory. Never fails; earlier launches that use the buffer still finish. */
    void (*free)(tern_place *place, tern_buffer *buffer);

    /* Copies from host to device, in launch order; the caller may reuse the host's bytes once this
     * returns. */
    tern_status (*write)(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                         size_t bytes);
    /* Copies from device to host after all earlier launches, and waits for the copy. */
    tern_status (*read)(tern_place *place, const tern_buffer *from, size_t at, void *to,
                        size_t bytes);
    /* Copies within the device, in launch order; the ranges do not overlap. */
    tern_status (*copy)(tern_place *place, const tern_buffer *from, size_t from_at,
                        const tern_buffer *to, size_t to_at, size_t bytes);
    /* Copies to another device of the same backend, in launch order of both. If it returns
     * TERN_ERR_UNSUPPORTED without a recorded error, the caller copies through the host. */
    tern_status (*peer)(tern_place *from_place, const tern_buffer *from, size_t from_at,
                        tern_place *to_place, const tern_buffer *to, size_t to_at, size_t bytes);
    /* Sets bytes to zero, in launch order. */
    tern_status (*zero)(tern_place *place, const tern_buffer *to, size_t at, size_t bytes);

    /* Sets *kernel to kernel `name` of cl_kernels/`file` for elements of dtype, and compiles its
     * program unless that is done. Called once per kernel and dtype, with the place's lock held;
     * *kernel is valid until close. */
    tern_status (*resolve)(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                           void **kernel);
    /* Launches a resolved kernel, in launch order; does not wait. */
    tern_status (*launch)(tern_place *place, void *kernel, const tern_grid *grid,
                          const tern_arg *args, int n);
    /* Computes a matrix product, in launch order. */
    tern_status (*gemm)(tern_place *place, const tern_gemm *gemm);

    /* Waits for all launches; returns an error if one failed since the last sync. */
    tern_status (*sync)(tern_place *place);
    /* `event` creates an event in launch order; `elapsed` waits for two events and sets
     * *nanoseconds to the time between them. */
    tern_status (*event)(tern_place *place, void **event);
    tern_status (*elapsed)(tern_place *place, void *from, void *to, double *nanoseconds);
    void (*event_free)(tern_place *place, void *event);
    /* Sets the free and the total bytes that the driver reports; if it reports no free bytes, both
     * are the total. */
    tern_status (*memory)(tern_place *place, uint64_t *free_bytes, uint64_t *total);

    /* Compile, launch and free kernels whose source the user wrote. */
    tern_status (*user_compile)(tern_place *place, const char *source, const char *name,
                                void **kernel);
    tern_status (*user_launch)(tern_place *place, void *kernel, const tern_kernel_grid *grid,
                               const tern_arg *args, int n);
    void (*user_free)(tern_place *place, void *kernel);

    /* Fills *buffer for memory of the application, an address or a cl_mem, of which buffer->bytes
     * are used; a cl_mem is retained until unborrow. Returns TERN_ERR_DEVICE if the device can't
     * use the memory, TERN_ERR_SHAPE if a cl_mem is smaller than buffer->bytes. */
    tern_status (*borrow)(tern_place *place, void *memory, tern_buffer *buffer);
    void (*unborrow)(tern_place *place, tern_buffer *buffer);
    /* `handles` writes the driver's objects that the device uses. `use_handles` makes the device
     * use objects of the application: before `open` any, later only a queue of the same context. */
    void (*handles)(tern_place *place, tern_device_handles *handles);
    tern_status (*use_handles)(tern_place *place, const tern_device_handles *handles);

    /* From here on every field may be NULL. */
    const tern_vendor *vendor;       /* NULL: there are no libraries of the vendor */
    const tern_transfers *transfers; /* NULL: copies are in launch order */
    /* Called after close when a plugin that contains the library is unloaded: releases all that the
     * device has of its driver, and its state. NULL: nothing is released. */
    void (*release)(tern_place *place);
    /* `part` fills *part, whose bytes are set, as the bytes of `whole` from `at` on, a multiple of
     * place->part_step; if memory is out, it returns TERN_ERR_MEMORY without recording an error.
     * `unpart` ends a part. part NULL: each large block is allocated alone; unpart NULL: nothing
     * has to be done at a part's end; growth NULL: a segment is allocated as a whole. */
    tern_status (*part)(tern_place *place, const tern_buffer *whole, size_t at, tern_buffer *part);
    void (*unpart)(tern_place *place, tern_buffer *part);
    const tern_memory_growth *growth;
    /* Sends all launches to the device, for drivers that keep them until a flush; a backend calls
     * tern_commands_are_held when its driver keeps a launch. NULL: the driver keeps none. */
    void (*flush)(tern_place *place);
    /* Either both are NULL or none. `prebuild` compiles the program of a kernel, as `resolve`
     * would, into the cache alone (builds.h), from any thread; `resolve` reports the errors.
     * `prebuild_gemm` calls tern_builds_add for each kernel that `gemm` would launch. */
    void (*prebuild)(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                     int lanes);
    void (*prebuild_gemm)(tern_place *place, const tern_gemm *gemm);
    /* As `resolve`, for the kernel with indices of 32 bits (index32.h) and, if lanes is not 0, for
     * short rows, each computed by a team of so many lanes. NULL: there are no such kernels. */
    tern_status (*resolve_index32)(tern_place *place, const char *file, const char *name,
                                   tern_dtype dtype, int lanes, void **kernel);
    /* Writes to the cache on disk the programs in use that it lacks. NULL: it lacks none. */
    void (*keep_programs)(tern_place *place);
    /* Compiles a chain (chain.h) to one kernel. Its arguments are the chain's tensors, n as an i64,
     * and the numbers of the rows; on the host the chain itself comes before them. *compiled stays
     * NULL if the device can't have such a kernel; it is valid until close. NULL: the backend
     * compiles no chains. */
    tern_status (*chain)(tern_place *place, const tern_chain *chain, tern_dtype dtype,
                         void **compiled);
    /* Called while no command runs. on: from now on creating an event needs no wait, but launches
     * are slower; off: undoes this. NULL: an event never needs a wait. */
    tern_status (*profile)(tern_place *place, bool on);
};

/* What a backend may read of its place: the state that `enumerate` set, and the device's info. */
void *tern_place_state(const tern_place *place);
const tern_device_info *tern_place_info(const tern_place *place);
/* Records that a driver keeps launches until a flush (see flush). */
void tern_commands_are_held(void);
/* Counts a program that was compiled from source (built) or loaded from the cache on disk. */
void tern_place_count_program(tern_place *place, bool built);

#endif
