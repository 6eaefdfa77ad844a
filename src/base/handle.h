/* handle.h -- objects that the program may use by mistake after it freed them: the object is then
 * known to be gone, and its memory is reused late. */
#ifndef TERN_BASE_HANDLE_H
#define TERN_BASE_HANDLE_H
#include "base/debug.h"
#include "base/lock.h"
#include "base/memory.h"
#include <stdatomic.h>

/* The first member of such an object. */
typedef struct tern_handle {
    atomic_int refs;                /* at least 1; 0 after the object is freed */
    bool owns_about;                /* about is to be freed with tern_free */
    const char *about;              /* what errors say of the object, as "made by mul"; or NULL */
    struct tern_handle *next;       /* the next freed object of the batch */
    struct tern_handle *next_batch; /* of the first in a batch: the batch freed after it */
} tern_handle;

/* The memory of the freed objects of one kind: a queue of batches. The memory is never released to
 * the system, so that the handle of a freed object can always be read. It is reused for objects of
 * the same kind, in the order in which they were freed; in debug mode it is not reused. */
typedef struct tern_handles {
    const char *kind; /* "module" */
    size_t bytes;     /* size of an object */
    int keeps;        /* the queue's length above which the first batch is reused */
    tern_mutex lock;
    tern_handle *first, *last; /* batches */
    int count;
} tern_handles;

#define TERN_HANDLES(KIND, TYPE)                                                                   \
    {                                                                                              \
        .kind = KIND, .bytes = sizeof(TYPE), .keeps = 256, .lock = TERN_MUTEX_INIT                 \
    }

/* For kinds with many objects. The first function appends a batch, whose handles are linked by
 * next. The second returns the batch that was freed first, or NULL if the queue is too short. */
void tern_handles_put(tern_handles *all, tern_handle *batch);
tern_handle *tern_handles_take(tern_handles *all);

/* For all other kinds. The first returns a zeroed object with one reference, or NULL after
 * TERN_ERR_MEMORY; the second ends an object. */
void *tern_object_new(tern_handles *all);
void tern_object_end(tern_handles *all, tern_handle *object);
/* Sets what errors say about the object: nothing if memory runs out, which is no error. */
void tern_handle_describe(tern_handle *handle, const char *format, ...) TERN_PRINTF_(2, 3);
/* Clears what errors say about the object. */
void tern_handle_forget(tern_handle *handle);

/* Functions with such a parameter begin with this. If the object is gone, an error is recorded as
 * for NULL, and the parameter becomes NULL. */
#define TERN_GIVEN(object, kind, function)                                                         \
    ((object) = tern_there((object), kind, function, #object))

static inline bool tern_handle_is_gone(const tern_handle *handle)
{
    return atomic_load_explicit(&handle->refs, memory_order_relaxed) <= 0;
}
/* Records TERN_ERR_STATE: "tern_nn_forward: the module m is gone: Linear, ...". */
TERN_PRIVATE tern_status tern_fail_gone(const tern_handle *handle, const char *kind,
                                        const char *function, const char *argument);
static inline void *tern_there(const void *object, const char *kind, const char *function,
                               const char *argument)
{
    const tern_handle *handle = object;
    if (handle && tern_handle_is_gone(handle)) {
        tern_fail_gone(handle, kind, function, argument);
        return NULL;
    }
    return (void *)(uintptr_t)object;
}

#endif
