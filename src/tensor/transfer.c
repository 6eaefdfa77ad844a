/* transfer.c -- asynchronous copies to and from devices, of bytes and of whole tensors
 * (storage.h). */
#include "tensor/storage.h"
#include "device/estimate.h"
#include "device/capture.h"
#include "device/transfers.h"
#include "tensor/from_ops.h"
#include "tensor/tensor.h"
#include <string.h>

/* Checks that dense x has bytes at..at + bytes, and sets *start to their offset in x's block. */
static tern_status part_of(const tern_tensor *x, size_t at, size_t bytes, const char *function,
                           size_t *start)
{
    if (!tern_given(x, function, "x"))
        return tern_last_status();
    size_t size = tern_dtype_size(x->dtype), all = (size_t)x->numel * size;
    if (!x->contiguous)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: x is not dense", function);
    if (at > all || bytes > all - at)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: x has %zu bytes, and %zu from %zu on are meant",
                         function, all, bytes, at);
    *start = (size_t)x->offset * size + at;
    return bytes ? tern_storage_there(x, function) : TERN_OK;
}

tern_status tern_storage_write(tern_tensor *x, size_t at, const void *from, size_t bytes)
{
    size_t start = 0;
    TERN_TRY(part_of(x, at, bytes, "tern_storage_write", &start));
    return bytes ? tern_block_write(x->storage->block, start, from, bytes) : TERN_OK;
}

void tern_storage_written(tern_tensor *x)
{
    tern_bump_version(x);
}

void tern_storage_set_version(tern_tensor *x, int64_t version)
{
    atomic_store_explicit(&x->storage->version, version, memory_order_relaxed);
}

tern_status tern_storage_read(tern_tensor *x, size_t at, void *to, size_t bytes)
{
    size_t start = 0;
    TERN_TRY(part_of(x, at, bytes, "tern_storage_read", &start));
    return bytes ? tern_block_read(x->storage->block, start, to, bytes) : TERN_OK;
}

/* ---- stages ------------------------------------------------------------------------------ */

/* The copies run in order, so `event`, which is the last one's, is after all of them. */
struct tern_stage {
    tern_place *place;
    tern_staging *staging;
    size_t bytes;
    void *event;
    tern_tensor **held; /* the tensors that are copied */
    size_t n_held;
};

tern_stage *tern_stage_new(const char *device, size_t bytes)
{
    tern_place *place = tern_place_find(device, "tern_stage_new");
    tern_stage *stage = place ? tern_alloc(sizeof *stage) : NULL;
    if (!stage)
        return NULL;
    *stage = (tern_stage){.place = place, .bytes = bytes};
    stage->staging = tern_staging_take(place, bytes ? bytes : 1, "tern_stage_new");
    if (stage->staging)
        return stage;
    tern_free(stage);
    return NULL;
}

void *tern_stage_memory(tern_stage *stage)
{
    return stage->staging->buffer.host;
}

/* Checks the ranges of the stage and of x, sets *start, makes space for a tensor in `held`. */
static tern_status begin(tern_stage *stage, size_t own, tern_tensor *x, size_t at, size_t bytes,
                         const char *function, size_t *start)
{
    TERN_TRY(part_of(x, at, bytes, function, start));
    if (own > stage->bytes || bytes > stage->bytes - own)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: the stage has %zu bytes, and %zu from %zu on are meant", function,
                         stage->bytes, bytes, own);
    if (x->storage->place != stage->place)
        return tern_fail(TERN_ERR_DEVICE, "%s: x is on %s, and the stage is %s's", function,
                         tern_device(x), tern_place_text(stage->place));
    tern_tensor **held = tern_grow(stage->held, sizeof *held * (stage->n_held + 1));
    if (!held)
        return TERN_ERR_MEMORY;
    stage->held = held;
    return TERN_OK;
}

static void began(tern_stage *stage, tern_tensor *x, void *event)
{
    stage->held[stage->n_held++] = tern_keep(x);
    tern_event_free(stage->place, stage->event);
    stage->event = event;
}

tern_status tern_stage_write(tern_stage *stage, size_t from, tern_tensor *x, size_t at,
                             size_t bytes)
{
    size_t start = 0;
    void *event;
    TERN_TRY(begin(stage, from, x, at, bytes, "tern_stage_write", &start));
    if (bytes == 0)
        return TERN_OK;
    TERN_TRY(tern_block_write_ahead(x->storage->block, start,
                                    (char *)tern_stage_memory(stage) + from, bytes, &event));
    began(stage, x, event);
    return tern_launch_after_event(stage->place, event);
}

tern_status tern_stage_read(tern_stage *stage, size_t to, tern_tensor *x, size_t at, size_t bytes)
{
    size_t start = 0;
    void *event;
    TERN_TRY(begin(stage, to, x, at, bytes, "tern_stage_read", &start));
    if (bytes == 0)
        return TERN_OK;
    TERN_TRY(tern_block_read_later(x->storage->block, start, (char *)tern_stage_memory(stage) + to,
                                   bytes, &event));
    began(stage, x, event);
    return TERN_OK;
}

tern_status tern_stage_wait(tern_stage *stage)
{
    tern_status status = tern_event_await(stage->place, stage->event);
    tern_event_free(stage->place, stage->event);
    stage->event = NULL;
    while (stage->n_held > 0)
        tern_release(stage->held[--stage->n_held]);
    return status;
}

void tern_stage_free(tern_stage *stage)
{
    if (!stage)
        return;
    tern_stage_wait(stage);
    tern_staging_give(stage->staging);
    tern_free(stage->held);
    tern_free(stage);
}

/* ---- tensors in staging memory ------------------------------------------------------------ */

static void give(void *staging)
{
    tern_staging_give(staging);
}

/* Returns a cpu tensor in staging memory of the device `by`, with one reference, in no scope. */
static tern_tensor *staged(const tern_shape *shape, tern_dtype dtype, tern_place *by,
                           const char *function)
{
    int64_t numel = tern_shape_numel(shape, function);
    tern_place *cpu = numel < 0 ? NULL : tern_place_find("cpu", function);
    if (!cpu || numel == 0)
        return cpu ? tern_tensor_new(shape, dtype, cpu, function) : NULL;
    size_t bytes = 0;
    if (__builtin_mul_overflow((size_t)numel, tern_dtype_size(dtype), &bytes))
        bytes = SIZE_MAX;
    tern_staging *staging = tern_staging_take(by, bytes, function);
    if (!staging)
        return NULL;
    char *host = staging->buffer.host;
    const tern_buffer buffer = {host, (uint64_t)(uintptr_t)host, host, bytes};
    tern_block *block = tern_block_from_external(cpu, &buffer, give, staging);
    tern_tensor *x = block ? tern_tensor_of_block(shape, dtype, block) : NULL;
    if (block && !x)
        tern_block_free(block);
    else if (!block)
        tern_staging_give(staging);
    return x;
}

tern_tensor *tern_staged_empty(tern_shape shape, tern_dtype dtype, const char *device)
{
    static const char function[] = "tern_staged_empty";
    tern_place *by = tern_place_find(device, function);
    if (by && tern_dtype_size(dtype) == 0)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: %d is not a dtype", function, (int)dtype);
    return by ? tern_scoped_from(staged(&shape, dtype, by, function), function) : NULL;
}

/* Returns whether x is dense, in memory that the device copies from asynchronously. */
static bool is_staged(const tern_tensor *x, const tern_place *by)
{
    const tern_staging *staging = tern_block_external_user(x->storage->block, give);
    const tern_place *pinned = x->storage->block->pinned;
    if (pinned && strcmp(tern_place_kind(pinned), tern_place_kind(by)) == 0)
        return x->contiguous;
    return x->contiguous && staging && staging->place == by;
}

/* ---- transfers --------------------------------------------------------------------------- */

struct tern_transfer {
    tern_place *place; /* the device that copies; NULL: the copy is done */
    void *event;
    tern_tensor *result;
    tern_tensor *read; /* the tensor copied from the device, and its version then */
    int64_t version;
    tern_block *held; /* the host memory that the device reads */
};

static size_t bytes_of(const tern_tensor *x)
{
    return (size_t)x->numel * tern_dtype_size(x->dtype);
}

static size_t start_of(const tern_tensor *x)
{
    return (size_t)x->offset * tern_dtype_size(x->dtype);
}

/* Returns a dense tensor of x's elements: x itself, or a copy in staging memory of the device `by`
 * (if `by` is NULL: on x's device). */
static tern_tensor *dense(tern_tensor *x, tern_place *by)
{
    tern_shape shape = tern_shape_of(x);
    if (by ? is_staged(x, by) : x->contiguous)
        return tern_keep(x);
    tern_tensor *y =
        by ? staged(&shape, x->dtype, by, "tern_transfer_begin")
           : tern_tensor_new(&shape, x->dtype, x->storage->place, "tern_transfer_begin");
    if (y && tern_from_ops->copy(y, x) != TERN_OK) {
        tern_release(y);
        return NULL;
    }
    return y;
}

/* Begins a copy from the host to a device. */
static tern_status begin_write(tern_transfer *t, tern_tensor *x, tern_place *to)
{
    static const char function[] = "tern_transfer_begin";
    tern_shape shape = tern_shape_of(x);
    tern_tensor *from = dense(x, to);
    if (!from)
        return tern_last_status();
    tern_block *block = tern_block_alloc_ahead(to, bytes_of(x), function);
    t->result = block ? tern_tensor_of_block(&shape, x->dtype, block) : NULL;
    if (block && !t->result)
        tern_block_free(block);
    tern_status status = t->result ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        status = tern_block_write_ahead(block, 0,
                                        (char *)from->storage->block->buffer.host + start_of(from),
                                        bytes_of(x), &t->event);
    t->place = to;
    if (status == TERN_OK) {
        t->held = from->storage->block;
        tern_block_hold(t->held);
    }
    tern_release(from);
    return status;
}

/* Begins a copy from a device to the host. */
static tern_status begin_read(tern_transfer *t, tern_tensor *x)
{
    tern_shape shape = tern_shape_of(x);
    tern_place *place = x->storage->place;
    t->result = staged(&shape, x->dtype, place, "tern_transfer_begin");
    t->read = t->result ? dense(x, NULL) : NULL;
    if (!t->read)
        return tern_last_status();
    t->place = place;
    t->version = tern_tensor_version(t->read);
    return tern_block_read_later(t->read->storage->block, start_of(t->read),
                                 t->result->storage->block->buffer.host, bytes_of(x), &t->event);
}

/* Copies between two devices, or an empty tensor, synchronously. */
static tern_status copy_now(tern_transfer *t, tern_tensor *x, tern_place *to)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *from = dense(x, NULL);
    t->result = from ? tern_tensor_new(&shape, x->dtype, to, "tern_transfer_begin") : NULL;
    tern_status status = t->result ? TERN_OK : tern_last_status();
    if (status == TERN_OK && x->numel)
        status = tern_block_copy(from->storage->block, start_of(from), t->result->storage->block, 0,
                                 bytes_of(x));
    tern_release(from);
    return status;
}

static bool is_cpu(const tern_place *place)
{
    return strcmp(tern_place_kind(place), "cpu") == 0;
}

tern_transfer *tern_transfer_begin(tern_tensor *x, const char *device)
{
    static const char function[] = "tern_transfer_begin";
    tern_place *to = tern_given(x, function, "x") ? tern_place_find(device, function) : NULL;
    if (!to || (x->numel && tern_storage_there(x, function) != TERN_OK))
        return NULL;
    if (x->dtype == TERN_F64 && !tern_place_has_f64(to))
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: %s has no float64", function,
                              tern_place_text(to));
    tern_transfer *t = tern_alloc(sizeof *t);
    if (!t)
        return NULL;
    *t = (tern_transfer){.result = NULL};
    tern_place *from = x->storage->place;
    tern_status status = TERN_OK;
    if (from == to)
        t->result = tern_tensor_detached(x);
    else if (x->numel && is_cpu(from))
        status = begin_write(t, x, to);
    else if (x->numel && is_cpu(to))
        status = begin_read(t, x);
    else
        status = copy_now(t, x, to);
    if (status == TERN_OK && t->result)
        return t;
    tern_transfer_free(t);
    return NULL;
}

bool tern_transfer_is_done(const tern_transfer *t)
{
    return !t->place || tern_event_has_passed(t->place, t->event);
}

/* Frees t. The event and t->held are freed when the copy is done. */
static void end(tern_transfer *t)
{
    if (t->place)
        tern_event_then(t->place, t->event, NULL, t->held);
    tern_release(t->result);
    tern_release(t->read);
    tern_free(t);
}

tern_tensor *tern_transfer_take(tern_transfer *t)
{
    tern_status status = TERN_OK;
    if (t->read) {
        status = tern_event_await(t->place, t->event);
        if (status == TERN_OK && tern_tensor_version(t->read) != t->version)
            status = tern_fail(TERN_ERR_STATE,
                               "tern_transfer_take: the tensor was written in place while it was "
                               "read: copy a clone of it");
    } else if (t->place) {
        status = tern_launch_after_event(t->place, t->event);
    }
    tern_tensor *result = status == TERN_OK ? t->result : NULL;
    if (result)
        t->result = NULL;
    end(t);
    return tern_scoped_from(result, "tern_transfer_take");
}

/* Waits for the copy if the result was not taken, because the copy writes the result's memory. */
void tern_transfer_free(tern_transfer *t)
{
    if (!t)
        return;
    if (t->place)
        tern_event_await(t->place, t->event);
    end(t);
}

/* ---- captures ---------------------------------------------------------------------------- */

const void *tern_storage_recording(const tern_tensor *x)
{
    return tern_capture_of(x->storage->place);
}

tern_status tern_storage_estimate_begin(const char *device)
{
    return tern_estimate_begin(device);
}

tern_status tern_storage_estimate_end(uint64_t *peak, int64_t *left)
{
    return tern_estimate_end(peak, left);
}

bool tern_storage_lists(void)
{
    return tern_thread.graph && tern_graph_lists(tern_thread.graph);
}

bool tern_storage_ran_elsewhere(void)
{
    return tern_thread.graph && tern_graph_ran_elsewhere(tern_thread.graph);
}

bool tern_storage_is_held(const tern_tensor *x)
{
    return x->storage->block && x->storage->block->holds > 0;
}

tern_status tern_storage_record_call(tern_status (*run)(void *user), void (*drop)(void *user),
                                     void *user)
{
    return tern_capture_call(run, drop, user);
}
