/* memory.c -- buffers, and copies to and from them. */
#include "device/opencl/opencl.h"
#include "base/lock.h"
#include <string.h>

enum { SMALL = 64 << 10, MOST_STAGED = 8 << 20 };
/* FLUSH_EVERY: commands between flushes. A flush is a driver's call of some microseconds, and some
 * drivers start no command before it. */
enum { FLUSH_EVERY = 8 };

/* Flushes the queue. A later wait reports errors. */
static void flush(tern_cl_state *s, uint64_t now)
{
    atomic_store_explicit(&s->flushed, now, memory_order_relaxed);
    if (s->queue)
        (void)CL(Flush(s->queue));
}

/* Counts a command after it was enqueued: if it were counted before, another thread's finish could
 * take it for done. */
void tern_cl_note_enqueued(tern_cl_state *s)
{
    uint64_t now = atomic_fetch_add_explicit(&s->enqueued, 1, memory_order_release) + 1;
    bool first = now - 1 == atomic_load_explicit(&s->finished, memory_order_relaxed);
    if (first || now - atomic_load_explicit(&s->flushed, memory_order_relaxed) >= FLUSH_EVERY)
        flush(s, now);
    else
        tern_commands_are_held();
}

void tern_cl_flush(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    uint64_t now = atomic_load_explicit(&s->enqueued, memory_order_acquire);
    bool held = now > atomic_load_explicit(&s->flushed, memory_order_relaxed) &&
                now > atomic_load_explicit(&s->finished, memory_order_relaxed);
    if (held && !atomic_load(&s->lost))
        flush(s, now);
}

uint64_t tern_cl_queued(tern_cl_state *s)
{
    /* finished is read first: enqueued only grows, so the difference is never below zero. */
    uint64_t finished = atomic_load_explicit(&s->finished, memory_order_acquire);
    return atomic_load_explicit(&s->enqueued, memory_order_acquire) - finished;
}

bool tern_cl_is_idle(tern_cl_state *s)
{
    return !s->shares_queue && tern_cl_queued(s) == 0;
}

tern_status tern_cl_alive(tern_place *place)
{
    if (!atomic_load_explicit(&tern_cl_state_of(place)->lost, memory_order_relaxed))
        return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE_LOST, "%s: the device was lost earlier; restart the program",
                     tern_place_info(place)->device);
}

/* ---- staged writes: host bytes copied so that a small write need not wait ---------------- */

typedef struct staged {
    struct staged *next;
    char data[];
} staged;

static void free_staged(staged *list)
{
    while (list) {
        staged *next = list->next;
        tern_free(list);
        list = next;
    }
}

void tern_cl_staged_free(tern_cl_state *s)
{
    free_staged(s->staged);
    s->staged = NULL;
}

/* Returns a copy of the bytes that lives until the queue is next known to be empty, or NULL if the
 * caller is to wait instead. The caller holds staged_lock until the write is enqueued. */
static void *stage(tern_cl_state *s, const void *from, size_t bytes)
{
    if (bytes > SMALL || s->staged_bytes + bytes > MOST_STAGED)
        return NULL;
    staged *copy = tern_alloc_aligned(sizeof *copy + bytes);
    if (!copy)
        return NULL;
    copy->next = s->staged;
    s->staged = copy;
    s->staged_bytes += bytes;
    return memcpy(copy->data, from, bytes);
}

tern_status tern_cl_settle(tern_place *place)
{
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    if (tern_cl_is_idle(s))
        return TERN_OK;
    /* All copies that are staged by now belong to writes that are enqueued. */
    tern_mutex_lock(&s->staged_lock);
    unsigned long long enqueued = atomic_load_explicit(&s->enqueued, memory_order_acquire);
    staged *done = s->staged;
    s->staged = NULL;
    s->staged_bytes = 0;
    tern_mutex_unlock(&s->staged_lock);
    cl_int code = CL(Finish(s->queue));
    if (code == CL_SUCCESS) {
        unsigned long long finished = atomic_load(&s->finished);
        while (finished < enqueued &&
               !atomic_compare_exchange_weak(&s->finished, &finished, enqueued))
            ;
        free_staged(done);
    } /* else the driver may still read the copies: a leak is better than a read after free */
    return tern_cl_check(place, code, "Finish");
}

/* ---- buffers ----------------------------------------------------------------------------- */

static bool is_memory_code(cl_int code)
{
    return code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_RESOURCES ||
           code == CL_OUT_OF_HOST_MEMORY || code == CL_INVALID_BUFFER_SIZE;
}

static void *svm_alloc(const tern_cl_state *s, size_t bytes)
{
    cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
    if (s->svm_fine)
        flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
    return tern_cl_gate() ? NULL : tern_cl_object(tern_cl.SVMAlloc(s->context, flags, bytes, 64));
}

tern_status tern_cl_alloc(tern_place *place, tern_buffer *buffer)
{
    tern_cl_state *s = tern_cl_state_of(place);
    uint64_t total = tern_place_info(place)->memory_total;
    TERN_TRY(tern_cl_alive(place));
    /* Drivers promise more memory than they have, and fail or swap at its first use. */
    if (atomic_load(&s->live) + buffer->bytes > total)
        return TERN_ERR_MEMORY;
    void *shared = s->svm ? svm_alloc(s, buffer->bytes) : NULL;
    if (s->svm && !shared)
        return TERN_ERR_MEMORY;
    cl_int code = CL_SUCCESS;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (shared ? CL_MEM_USE_HOST_PTR : 0);
    buffer->handle = CL_NEW(code, CreateBuffer(s->context, flags, buffer->bytes, shared, &code));
    if (code != CL_SUCCESS) {
        if (shared)
            tern_cl.SVMFree(s->context, shared);
        return is_memory_code(code) ? TERN_ERR_MEMORY : tern_cl_check(place, code, "CreateBuffer");
    }
    buffer->address = (uint64_t)(uintptr_t)shared;
    buffer->host = s->svm_fine ? shared : NULL;
    atomic_fetch_add(&s->live, buffer->bytes);
    return TERN_OK;
}

void tern_cl_free(tern_place *place, tern_buffer *buffer)
{
    tern_cl_state *s = tern_cl_state_of(place);
    /* Queued commands retain a buffer, but not the shared memory under it. */
    bool shared = buffer->address != 0;
    if (shared && !tern_cl_is_idle(s) && !atomic_load(&s->lost))
        CL_END(Finish(s->queue));
    CL_END(ReleaseMemObject(buffer->handle));
    if (shared)
        tern_cl.SVMFree(s->context, (void *)(uintptr_t)buffer->address);
    atomic_fetch_sub(&s->live, buffer->bytes);
}

tern_status tern_cl_part(tern_place *place, const tern_buffer *whole, size_t at, tern_buffer *part)
{
    const cl_buffer_region region = {at, part->bytes};
    cl_int code = CL_SUCCESS;
    TERN_TRY(tern_cl_alive(place));
    part->handle = CL_NEW(code, CreateSubBuffer(whole->handle, CL_MEM_READ_WRITE,
                                                CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    if (code != CL_SUCCESS)
        return is_memory_code(code) ? TERN_ERR_MEMORY
                                    : tern_cl_check(place, code, "CreateSubBuffer");
    part->address = whole->address ? whole->address + at : 0;
    part->host = whole->host ? (char *)whole->host + at : NULL;
    return TERN_OK;
}

void tern_cl_unpart(tern_place *place, tern_buffer *part)
{
    (void)place;
    CL_END(ReleaseMemObject(part->handle));
}

tern_status tern_cl_memory(tern_place *place, uint64_t *free_bytes, uint64_t *total)
{
    uint64_t live = atomic_load(&tern_cl_state_of(place)->live);
    *total = tern_place_info(place)->memory_total;
    *free_bytes = live < *total ? *total - live : 0;
    return TERN_OK;
}

/* ---- moving bytes ------------------------------------------------------------------------ */

tern_status tern_cl_write(tern_place *place, const tern_buffer *to, size_t at, const void *from,
                          size_t bytes)
{
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    if (to->host && tern_cl_is_idle(s)) {
        memcpy((char *)to->host + at, from, bytes);
        return TERN_OK;
    }
    tern_mutex_lock(&s->staged_lock);
    const void *copy = stage(s, from, bytes);
    cl_int code = CL_SUCCESS;
    if (copy)
        code =
            CL(EnqueueWriteBuffer(s->queue, to->handle, CL_FALSE, at, bytes, copy, 0, NULL, NULL));
    tern_mutex_unlock(&s->staged_lock);
    if (!copy)
        code =
            CL(EnqueueWriteBuffer(s->queue, to->handle, CL_TRUE, at, bytes, from, 0, NULL, NULL));
    tern_cl_note_enqueued(s);
    return tern_cl_check(place, code, "EnqueueWriteBuffer");
}

tern_status tern_cl_read(tern_place *place, const tern_buffer *from, size_t at, void *to,
                         size_t bytes)
{
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    if (from->host) {
        TERN_TRY(tern_cl_settle(place));
        memcpy(to, (const char *)from->host + at, bytes);
        return TERN_OK;
    }
    CL_TRY(place, EnqueueReadBuffer(s->queue, from->handle, CL_TRUE, at, bytes, to, 0, NULL, NULL));
    return tern_cl_settle(place); /* the queue is empty: only frees staged copies */
}

tern_status tern_cl_copy(tern_place *place, const tern_buffer *from, size_t from_at,
                         const tern_buffer *to, size_t to_at, size_t bytes)
{
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    CL_TRY(place, EnqueueCopyBuffer(s->queue, from->handle, to->handle, from_at, to_at, bytes, 0,
                                    NULL, NULL));
    tern_cl_note_enqueued(s);
    return TERN_OK;
}

tern_status tern_cl_zero(tern_place *place, const tern_buffer *to, size_t at, size_t bytes)
{
    static const cl_uint4 zero;
    tern_cl_state *s = tern_cl_state_of(place);
    TERN_TRY(tern_cl_alive(place));
    if (to->host && bytes <= SMALL && tern_cl_is_idle(s)) {
        memset((char *)to->host + at, 0, bytes);
        return TERN_OK;
    }
    /* The widest pattern that divides offset and size: drivers fill byte by byte otherwise. */
    size_t pattern = sizeof zero;
    while ((at | bytes) % pattern)
        pattern /= 2;
    CL_TRY(place,
           EnqueueFillBuffer(s->queue, to->handle, &zero, pattern, at, bytes, 0, NULL, NULL));
    tern_cl_note_enqueued(s);
    return TERN_OK;
}
