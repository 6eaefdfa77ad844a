/* handle.h -- objects that a program frees while it may still hold their address: they are known to
 * be gone, and their memory is used again late. */
#ifndef TERN_BASE_HANDLE_H
#define TERN_BASE_HANDLE_H
#include "base/debug.h"
#include "base/lock.h"
#include "base/memory.h"
#include <stdatomic.h>

/* What such an object begins with. */
typedef struct tern_handle {
    atomic_int refs;                /* 1 or more; 0 once the object is gone */
    bool owns_about;                /* to be freed with tern_free */
    const char *about;              /* what an error says of it: "made by mul"; NULL: nothing */
    struct tern_handle *next;       /* of a batch of those that are gone */
    struct tern_handle *next_batch; /* of the first of a batch: the batch that went after it */
} tern_handle;

/* Memory of the objects of one kind that are gone: a queue of batches. It is never given back, so
 * that a look at the handle of one that is gone is a look at a handle, and is used again by the
 * same kind in the order in which it came, all of it when debugging never. */
typedef struct tern_handles {
    const char *kind; /* "module" */
    size_t bytes;     /* of an object */
    int keeps;        /* the queue's length before the first is used again */
    tern_mutex lock;
    tern_handle *first, *last; /* batches */
    int count;
} tern_handles;

#define TERN_HANDLES(KIND, TYPE)                                                                   \
    {                                                                                              \
        .kind = KIND, .bytes = sizeof(TYPE), .keeps = 256, .lock = TERN_MUTEX_INIT                 \
    }

/* For kinds of which there are many: append a batch, which are linked by next; the batch that has
 * waited longest, NULL where none has waited long enough. */
void tern_handles_put(tern_handles *all, tern_handle *batch);
tern_handle *tern_handles_take(tern_handles *all);

/* For all others. A zeroed object with one reference, or NULL after TERN_ERR_MEMORY; the end of
 * one. */
void *tern_object_new(tern_handles *all);
void tern_object_end(tern_handles *all, tern_handle *object);
/* What errors say of it from now on; nothing where there is no memory for it, which is no error. */
void tern_handle_describe(tern_handle *handle, const char *format, ...) TERN_PRINTF_(2, 3);
/* They say nothing. */
void tern_handle_forget(tern_handle *handle);

/* Functions that are given such an object begin with this, so that one that is gone is an error as
 * NULL is, and NULL from then on. */
#define TERN_GIVEN(object, kind, function)                                                         \
    ((object) = tern_there((object), kind, function, #object))

static inline bool tern_handle_is_gone(const tern_handle *handle)
{
    return atomic_load_explicit(&handle->refs, memory_order_relaxed) <= 0;
}
/* TERN_ERR_STATE: "tern_nn_forward: the module m is gone: Linear, ...". */
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
