/* handle.c -- the end of objects that a program frees, and errors about their use after that. */
#include "base/handle.h"
#include "base/lock.h"
#include "base/ending.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 192, MOST_KINDS = 64 };

void tern_handle_forget(tern_handle *handle)
{
    if (handle->owns_about)
        tern_free((void *)(uintptr_t)handle->about);
    handle->about = NULL;
    handle->owns_about = false;
}

/* One queue of each kind that has freed objects, for the end of the library. */
static struct {
    tern_mutex lock;
    tern_handles *of[MOST_KINDS];
    int n;
} kinds = {.lock = TERN_MUTEX_INIT};

static void note_kind(tern_handles *all)
{
    tern_mutex_lock(&kinds.lock);
    if (kinds.n < MOST_KINDS)
        kinds.of[kinds.n++] = all;
    tern_mutex_unlock(&kinds.lock);
}

static void free_kept(tern_handles *all)
{
    for (tern_handle *next_batch, *batch = all->first; batch; batch = next_batch) {
        next_batch = batch->next_batch;
        for (tern_handle *next, *h = batch; h; h = next) {
            next = h->next;
            tern_handle_forget(h);
            tern_free(h);
        }
    }
    all->first = NULL;
}

/* Runs when the library is unloaded with its plugin, after threads have put their headers here. */
__attribute__((destructor(1000))) static void free_all(void)
{
    for (int i = 0; tern_is_unloading() && i < kinds.n; i++)
        free_kept(kinds.of[i]);
}

void tern_handles_put(tern_handles *all, tern_handle *batch)
{
    batch->next_batch = NULL;
    tern_mutex_lock(&all->lock);
    if (!all->last)
        note_kind(all);
    if (all->last)
        all->last->next_batch = batch;
    else
        all->first = batch;
    all->last = batch;
    all->count++;
    tern_mutex_unlock(&all->lock);
}

tern_handle *tern_handles_take(tern_handles *all)
{
    tern_handle *batch = NULL;
    if (tern_debugging)
        return NULL;
    tern_mutex_lock(&all->lock);
    if (all->count > all->keeps) {
        batch = all->first;
        all->first = batch->next_batch;
        all->count--;
    }
    tern_mutex_unlock(&all->lock);
    return batch;
}

/* Does not call tern_alloc, which records an error: this runs at the end of an object. */
void tern_handle_describe(tern_handle *handle, const char *format, ...)
{
    char *text = malloc(TEXT_BYTES);
    va_list args;
    va_start(args, format);
    if (text)
        vsnprintf(text, TEXT_BYTES, format, args);
    va_end(args);
    tern_handle_forget(handle);
    handle->about = text;
    handle->owns_about = text != NULL;
}

void *tern_object_new(tern_handles *all)
{
    tern_handle *object = tern_handles_take(all);
    if (!object) {
        object = tern_alloc(all->bytes);
    } else if (tern_memory_fails(all->bytes)) {
        tern_handles_put(all, object);
        return NULL;
    } else {
        tern_handle_forget(object);
        memset(object, 0, all->bytes);
    }
    if (object)
        atomic_init(&object->refs, 1);
    return object;
}

void tern_object_end(tern_handles *all, tern_handle *object)
{
    memset((char *)object + sizeof *object, 0, all->bytes - sizeof *object);
    atomic_store_explicit(&object->refs, 0, memory_order_release);
    object->next = NULL;
    tern_handles_put(all, object);
}

tern_status tern_fail_gone(const tern_handle *handle, const char *kind, const char *function,
                           const char *argument)
{
    /* about of a tensor is only the operation's name, unless more was recorded at its end. */
    bool unnamed = !handle->owns_about && strcmp(kind, "tensor") == 0;
    return tern_fail(TERN_ERR_STATE, "%s: the %s %s is gone%s%s%s%s", function, kind, argument,
                     handle->about ? ": " : "", handle->about && unnamed ? "made by " : "",
                     handle->about ? handle->about : "",
                     tern_debugging ? "" : " (TERN_DEBUG=1 in the environment shows more)");
}
