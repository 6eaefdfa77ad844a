/* storage.h -- access to the memory of tensors for data, io and dist: releasing and allocating it,
 * reading and writing bytes, asynchronous copies to and from devices.
 *
 * A device runs these copies on a queue of its own. A copy to the device waits for the launches
 * that used the destination before; a copy from the device waits for the launches that wrote the
 * source. Devices without such a queue (cpu) copy synchronously. Any thread may call these
 * functions; a transfer or a stage is used by one thread at a time. Errors are recorded as usual.
 * While the thread captures commands of the device, all of them return TERN_ERR_STATE. */
#ifndef TERN_SRC_STORAGE_H
#define TERN_SRC_STORAGE_H
#include "base/error.h"
#include <tern/dist.h>
#include <tern/tensor.h>

/* ---- releasing and allocating memory (storage.c) --------------------------------------------- */
/* Releases the memory of x, of its views, and of other tensors with the same storage. The tensors
 * keep shape, dtype and version; an operation on one of them is TERN_ERR_STATE until the memory is
 * allocated again. x must be dense and begin at the start of its storage. */
tern_status tern_storage_empty(tern_tensor *x);
/* Allocates the memory again; the elements are undefined. Does nothing if x has memory. */
tern_status tern_storage_refill(tern_tensor *x);
bool tern_storage_is_empty(const tern_tensor *x);
/* Copies y, which has x's shape, to x, whose memory was allocated again. x's version is
 * unchanged. */
tern_status tern_storage_fill(tern_tensor *x, const tern_tensor *y);
/* Returns whether x and y begin at the same element of one storage. */
bool tern_storage_is_shared(const tern_tensor *x, const tern_tensor *y);
/* Returns whether x and y have the same storage. */
TERN_PRIVATE bool tern_storage_is_one(const tern_tensor *x, const tern_tensor *y);
/* Returns a view of x's storage with the given strides (NULL: dense) that starts at element
 * `offset`, counted from x's first element. The view is not part of the graph; the innermost scope
 * owns it. All its elements must lie in the storage. */
tern_tensor *tern_storage_view(tern_tensor *x, tern_shape shape, const int64_t *strides,
                               int64_t offset);
/* Returns a view of the same bytes as another dtype of the same size. */
tern_tensor *tern_storage_as(tern_tensor *x, tern_dtype dtype);

/* Returns whether each write to x's elements increments its version (tern_version): whether the
 * program neither owns the memory nor has its address. Replays of graphs never increment a
 * version. */
TERN_PRIVATE bool tern_storage_counts_writes(const tern_tensor *x);
/* Returns how many replays of graphs the process has begun. */
TERN_PRIVATE uint64_t tern_storage_replays(void);

/* ---- bytes (transfer.c) ---------------------------------------------------------------------- */
/* Copies `bytes` bytes of the host to dense x, from byte `at` on. The host memory may be reused
 * when the function returns. x's version is unchanged: x must be newly created. */
tern_status tern_storage_write(tern_tensor *x, size_t at, const void *from, size_t bytes);
/* Increments x's version. */
void tern_storage_written(tern_tensor *x);
/* Sets x's version back to that of an earlier time, since when no elements have changed. */
void tern_storage_set_version(tern_tensor *x, int64_t version);
/* Copies `bytes` bytes of dense x, from byte `at` on, to the host; waits for the device. */
tern_status tern_storage_read(tern_tensor *x, size_t at, void *to, size_t bytes);

/* Host memory that a device copies from and to asynchronously; it is pinned if the driver supports
 * that. Two stages in turn keep disk and device busy. */
typedef struct tern_stage tern_stage;
tern_stage *tern_stage_new(const char *device, size_t bytes);
void *tern_stage_memory(tern_stage *stage);
/* Copy bytes of the stage, from byte `from` on, to dense x on the stage's device, from byte `at`
 * on; or from x to the stage. The functions return before the copy is done: until tern_stage_wait,
 * the caller must not access the stage's memory, nor write x. The stage holds a reference to x
 * until then. Later launches that read x wait for the copy. */
tern_status tern_stage_write(tern_stage *stage, size_t from, tern_tensor *x, size_t at,
                             size_t bytes);
tern_status tern_stage_read(tern_stage *stage, size_t to, tern_tensor *x, size_t at, size_t bytes);
/* Waits for the stage's copies; returns at once if there are none. */
tern_status tern_stage_wait(tern_stage *stage);
/* Waits for the stage's copies and frees the stage; NULL is fine. */
void tern_stage_free(tern_stage *stage);

/* ---- captures (transfer.c) ------------------------------------------------------------------- */
/* Returns the graph that this thread records for x's device; NULL if commands on x run. */
const void *tern_storage_recording(const tern_tensor *x);
/* Returns whether this thread's commands do not run, but are only listed to compile their programs
 * (tern_compile_begin) or to estimate their memory. */
bool tern_storage_lists(void);
/* From the first call on, this thread's commands do not run on the device, and its large blocks
 * have no memory; TERN_ERR_STATE if the thread records a graph. The second call ends that. It sets
 * *peak to the greatest number of bytes allocated in between, including those allocated before, and
 * *left to the number of large blocks that still exist. */
tern_status tern_storage_estimate_begin(const char *device);
tern_status tern_storage_estimate_end(uint64_t *peak, int64_t *left);
/* Returns whether a command of this thread ran on another device since the thread began to
 * record. */
bool tern_storage_ran_elsewhere(void);
/* Returns whether an existing graph or a running transfer uses x's present memory. */
bool tern_storage_is_held(const tern_tensor *x);
/* Records a call of run(user) on the host, while this thread records a graph. Each replay makes the
 * call after the host has issued the commands recorded before it, which the device may not have run
 * yet. drop(user) is called once: when the recording is freed, or if this function fails. */
tern_status tern_storage_record_call(tern_status (*run)(void *user), void (*drop)(void *user),
                                     void *user);

/* ---- transports (device_transport.c) --------------------------------------------------------- */
/* Collectives between the devices of several processes, by a library of the devices' vendor. No
 * function waits for another process. One thread at a time uses a transport. */
typedef struct tern_transport tern_transport;
typedef struct tern_transport_call {
    int kind; /* a tern_collective_kind; the kinds of src/dist have the same order */
    tern_dist_op op;
    int64_t count; /* elements of one rank */
    int root;
    const tern_tensor *in, *out; /* in NULL: out is also the input */
} tern_transport_call;
/* Returns the device of the call's tensors if the vendor's library supports the call, else NULL. */
const void *tern_transport_place(const tern_transport_call *call, int rank);
/* Records an event after the launches so far, one of which wrote x. */
tern_status tern_transport_event(const tern_tensor *x, void **event);
void tern_transport_event_free(const tern_tensor *x, void *event);
/* What processes exchange before they open a transport: the device of x, and the id that the first
 * process creates. */
typedef struct tern_transport_card {
    char uuid[40], bus[16], id[128];
    int64_t version;
} tern_transport_card;
tern_status tern_transport_say(const tern_tensor *x, bool makes_id, tern_transport_card *card);
/* Returns whether the two processes can be in one transport. */
bool tern_transport_fits(const tern_transport_card *a, const tern_transport_card *b,
                         bool on_one_host);
tern_status tern_transport_open(const tern_tensor *x, const tern_transport_card *first, int rank,
                                int n, tern_transport **transport);
/* Begins the call after the event. The tensors must not be freed until the call is over. */
tern_status tern_transport_begin(tern_transport *transport, const tern_transport_call *call,
                                 void *event);
/* Sets *over to whether the last call that was begun, or the opening, is over. */
tern_status tern_transport_over(tern_transport *transport, bool *over);
/* Frees the transport and aborts a running call, which may take a while. NULL is fine. */
void tern_transport_drop(tern_transport *transport);

/* ---- tensors (transfer.c) -------------------------------------------------------------------- */
/* Returns a dense cpu tensor in memory that `device` copies from asynchronously; the innermost
 * scope owns the tensor. The memory is reused after the tensor is released and its copies are done.
 * A batch that is collated into such a tensor needs no second copy in host memory. */
tern_tensor *tern_staged_empty(tern_shape shape, tern_dtype dtype, const char *device);

/* An asynchronous copy of x to another device. From the cpu: x may be written or released at once;
 * if tern_staged_empty created x, it may only be released. From a device to "cpu": x must not be
 * written before tern_transfer_take, which returns TERN_ERR_STATE if it was; copy a clone of x to
 * avoid that. The result is not part of the graph. */
typedef struct tern_transfer tern_transfer;
tern_transfer *tern_transfer_begin(tern_tensor *x, const char *device);
/* Returns whether the copy is done. */
bool tern_transfer_is_done(const tern_transfer *transfer);
/* Returns the result, owned by the innermost scope, and frees the transfer; NULL after an error. If
 * the result is on a device, later launches wait for the copy; if it is on the cpu, the function
 * waits. */
tern_tensor *tern_transfer_take(tern_transfer *transfer);
/* Frees a transfer that was not taken; NULL is fine. */
void tern_transfer_free(tern_transfer *transfer);

#endif
