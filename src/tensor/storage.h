/* storage.h -- the memory under tensors, for what moves it about (data, io, dist): emptied and
 * refilled, read and written by bytes, borrowed, copied to and from devices without waiting.
 *
 * A device has a queue of its own for these copies. What is written by it is ordered behind the
 * launches that used the same memory before; what is read by it, behind those that made it. Devices
 * without one (cpu) copy at once. All of it may be called from any thread; a transfer and a stage
 * are one thread's at a time. Errors are recorded as everywhere. Inside of a capture of the device
 * nothing here works (TERN_ERR_STATE). */
#ifndef TERN_SRC_STORAGE_H
#define TERN_SRC_STORAGE_H
#include "base/error.h"
#include <tern/dist.h>
#include <tern/tensor.h>

/* ---- emptied and refilled (storage.c) -------------------------------------------------------- */
/* Give the memory under x back: of x, its views, and what shares it. They keep shape, dtype and
 * version; whoever uses one meets TERN_ERR_STATE until it is refilled. x must be dense and begin
 * its storage. */
tern_status tern_storage_empty(tern_tensor *x);
/* New memory for it, its elements undefined; nothing where x has its memory. */
tern_status tern_storage_refill(tern_tensor *x);
bool tern_storage_is_empty(const tern_tensor *x);
/* x takes y's values, of the same shape; not a write that versions see: for what was refilled. */
tern_status tern_storage_fill(tern_tensor *x, const tern_tensor *y);
/* Whether both are looks at one storage, from the same element on. */
bool tern_storage_is_shared(const tern_tensor *x, const tern_tensor *y);
/* Whether both are looks at one storage, from any element on. */
TERN_PRIVATE bool tern_storage_is_one(const tern_tensor *x, const tern_tensor *y);
/* A view of x's storage, from an element of it on (counted from x's first), of any strides; no part
 * of the graph. Its elements must lie in the storage. Owned by the innermost scope. */
tern_tensor *tern_storage_view(tern_tensor *x, tern_shape shape, const int64_t *strides,
                               int64_t offset);
/* The same bytes as elements of another dtype of the same size. */
tern_tensor *tern_storage_as(tern_tensor *x, tern_dtype dtype);

/* Whether each write to x's elements raises its version (tern_version): their memory is not the
 * program's, and the program was not given its address. Replays of graphs write without, too. */
TERN_PRIVATE bool tern_storage_counts_writes(const tern_tensor *x);
/* How many replays of graphs the process has begun. */
TERN_PRIVATE uint64_t tern_storage_replays(void);

/* ---- bytes (transfer.c) ---------------------------------------------------------------------- */
/* Bytes at..at + bytes of dense x from the host; the host's may be reused when it returns. Not a
 * write that versions see: for what has just been made. */
tern_status tern_storage_write(tern_tensor *x, size_t at, const void *from, size_t bytes);
/* x was written: version counters see it. */
void tern_storage_written(tern_tensor *x);
/* The writes since x had that version were none: they were only counted. */
void tern_storage_set_version(tern_tensor *x, int64_t version);
/* To the host; waits. */
tern_status tern_storage_read(tern_tensor *x, size_t at, void *to, size_t bytes);

/* A piece of the host's memory that a device copies from and to by itself, pinned where the driver
 * has that. Two of them in turn keep disk and device busy. */
typedef struct tern_stage tern_stage;
tern_stage *tern_stage_new(const char *device, size_t bytes);
void *tern_stage_memory(tern_stage *stage);
/* Bytes of the stage, from `from` on, to dense x of its device at `at`; the reverse. They return
 * before it is done: until tern_stage_wait the stage's memory is not to be touched, nor x written.
 * x is held as long; what is launched on it after a write comes behind. */
tern_status tern_stage_write(tern_stage *stage, size_t from, tern_tensor *x, size_t at,
                             size_t bytes);
tern_status tern_stage_read(tern_stage *stage, size_t to, tern_tensor *x, size_t at, size_t bytes);
/* Wait for what was begun; on the spot where nothing was. */
tern_status tern_stage_wait(tern_stage *stage);
/* Waits too; NULL is fine. */
void tern_stage_free(tern_stage *stage);

/* ---- captures (transfer.c) ------------------------------------------------------------------- */
/* The graph that this thread records for x's device, as a number; NULL: work on x runs. */
const void *tern_storage_recording(const tern_tensor *x);
/* Whether this thread's work is listed for its programs alone (tern_compile_begin), and nothing of
 * it happens. */
bool tern_storage_lists(void);
/* From here on nothing of this thread's work happens on the device, and its large blocks have no
 * memory; TERN_ERR_STATE while it records. The second one ends that and returns the most that was
 * allocated in between, with what there was before, and how many of those blocks are left. */
tern_status tern_storage_estimate_begin(const char *device);
tern_status tern_storage_estimate_end(uint64_t *peak, int64_t *left);
/* Whether this thread, since it records, has launched something on another device, where it ran. */
bool tern_storage_ran_elsewhere(void);
/* Whether a graph that is there, or a transfer on its way, goes on with the memory that x has
 * now. */
bool tern_storage_is_held(const tern_tensor *x);
/* While there is one: each replay calls run(user) on the host between what was recorded before and
 * after it, which the device may still have to do; drop(user) once, when the recording ends, also
 * after an error of this. */
tern_status tern_storage_record_call(tern_status (*run)(void *user), void (*drop)(void *user),
                                     void *user);

/* ---- transports (device_transport.c) --------------------------------------------------------- */
/* From the memory of devices to that of other processes' devices, by their vendor's library: no
 * call waits for another process. A transport is one thread's at a time. */
typedef struct tern_transport tern_transport;
typedef struct tern_transport_call {
    int kind; /* a tern_collective_kind, in whose order those of src/dist are */
    tern_dist_op op;
    int64_t count; /* elements of one rank */
    int root;
    const tern_tensor *in, *out; /* in NULL: out, in place */
} tern_transport_call;
/* Their device, which could have a transport that carries it; NULL. */
const void *tern_transport_place(const tern_transport_call *call, int rank);
/* An event behind what was launched, which made x. */
tern_status tern_transport_event(const tern_tensor *x, void **event);
void tern_transport_event_free(const tern_tensor *x, void *event);
/* What processes send each other before they open a transport: x's device, and the id that the
 * first process makes. */
typedef struct tern_transport_card {
    char uuid[40], bus[16], id[128];
    int64_t version;
} tern_transport_card;
tern_status tern_transport_say(const tern_tensor *x, bool makes_id, tern_transport_card *card);
/* Whether both can be in one transport. */
bool tern_transport_fits(const tern_transport_card *a, const tern_transport_card *b,
                         bool on_one_host);
tern_status tern_transport_open(const tern_tensor *x, const tern_transport_card *first, int rank,
                                int n, tern_transport **transport);
/* Begin the call behind the event. The tensors stay until it is over. */
tern_status tern_transport_begin(tern_transport *transport, const tern_transport_call *call,
                                 void *event);
/* Whether the last that was begun, or the opening, is over. */
tern_status tern_transport_over(tern_transport *transport, bool *over);
/* Also of what is under way, which ends; it may take a while. NULL is fine. */
void tern_transport_drop(tern_transport *transport);

/* ---- tensors (transfer.c) -------------------------------------------------------------------- */
/* A dense tensor of the cpu in memory that `device` copies from by itself, owned by the innermost
 * scope; its memory is used again once it is released and copied. What is collated into one needs
 * no copy more. */
tern_tensor *tern_staged_empty(tern_shape shape, tern_dtype dtype, const char *device);

/* A copy of x to another device that is under way. From the cpu: x may be written or released at
 * once unless it was made by tern_staged_empty, when it may be released only. From a device to
 * "cpu": x must not be written before tern_transfer_take, which answers TERN_ERR_STATE if it was
 * (copy a clone where it may be). Its result is no part of the graph. */
typedef struct tern_transfer tern_transfer;
tern_transfer *tern_transfer_begin(tern_tensor *x, const char *device);
/* Whether its copy is done. */
bool tern_transfer_is_done(const tern_transfer *transfer);
/* The result, owned by the innermost scope. To a device: launches from now on come behind the copy,
 * and the host does not wait; to the cpu: it waits. The transfer ends, also with NULL after an
 * error. */
tern_tensor *tern_transfer_take(tern_transfer *transfer);
/* Leave it, taken or not; NULL is fine. */
void tern_transfer_free(tern_transfer *transfer);

#endif
