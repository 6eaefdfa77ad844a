/* header.c -- the memory that handles of tensors point to.
 *
 * The header of a freed tensor stays valid: its refs are 0, its shape and dtype are unchanged, its
 * storage has no memory. So functions may read it before the dispatcher refuses the tensor. A
 * header is used again after KEPT other tensors were freed. Each thread collects freed headers in
 * batches, so that most calls take no lock. */
#include "base/thread.h"
#include "base/lock.h"
#include "base/thread_end.h"
#include "device/device.h"
#include "tensor/header.h"
#include <stdio.h>

enum { BATCH = 64, KEPT = 4096, PLACES = 32, LINE = 64 };

static tern_handles handles = {
    .kind = "tensor", .bytes = sizeof(tern_tensor), .keeps = KEPT / BATCH, .lock = TERN_MUTEX_INIT};

/* Prefetches the header of the next tensor, which was last used long ago. */
static inline void fetch(const tern_handle *next)
{
    const char *at = (const char *)next;
    __builtin_prefetch(at, 1);
    __builtin_prefetch(at + LINE, 1);
    __builtin_prefetch(at + 2 * LINE, 1);
    __builtin_prefetch(at + 3 * LINE, 1);
}

tern_tensor *tern_header_new(void)
{
    tern_handle **fresh = &tern_thread.headers.fresh;
    if (!*fresh && !(*fresh = tern_handles_take(&handles)))
        return tern_alloc(sizeof(tern_tensor));
    if (tern_memory_fails(sizeof(tern_tensor)))
        return NULL;
    tern_tensor *x = (tern_tensor *)*fresh;
    *fresh = x->handle.next;
    fetch(*fresh);
    if (x->handle.owns_about)
        tern_handle_forget(&x->handle);
    x->handle.about = NULL;
    x->contiguous = false;
    x->offset = 0;
    x->storage = NULL;
    return x;
}

/* ---- the end ----------------------------------------------------------------------------- */

_Atomic(tern_storage *) tern_gone_last;

tern_storage *tern_gone_storage(tern_place *place)
{
    static tern_mutex lock = TERN_MUTEX_INIT;
    static tern_storage gone[PLACES]; /* one for each place; the last for all further places */
    int i = 0;
    tern_mutex_lock(&lock);
    while (i < PLACES - 1 && gone[i].place && gone[i].place != place)
        i++;
    if (!gone[i].place) {
        gone[i].place = place;
        atomic_init(&gone[i].refs, 1 << 30);
    }
    tern_mutex_unlock(&lock);
    atomic_store_explicit(&tern_gone_last, &gone[i], memory_order_release);
    return &gone[i];
}

/* Writes to text why tensors are being freed now. */
static void describe_end(char *text, size_t bytes)
{
    const tern_scope_place *p = tern_thread.ending;
    const char *file = p ? p->file : tern_thread.running.at.file;
    int line = p ? p->line : tern_thread.running.at.line;
    if (p && p->module)
        snprintf(text, bytes,
                 "the end of %s's forward function released it (tern_keep keeps what is neither a "
                 "result nor the program's)",
                 p->module);
    else if (p && !p->number)
        snprintf(text, bytes, "tern_scope_clear() or the end of its thread released it");
    else if (p && file)
        snprintf(text, bytes, "the end of the scope of %s:%d released it", file, line);
    else if (p)
        snprintf(text, bytes, "the end of scope %lld (at depth %d) released it",
                 (long long)p->number, p->depth);
    else if (file)
        snprintf(text, bytes, "its last reference was released at %s:%d", file, line);
    else
        snprintf(text, bytes, "its last reference was released");
}

/* Describes x as "made by mul; the end of scope 3 (at depth 1) released it". */
void tern_header_describe(tern_tensor *x)
{
    char ending[192];
    const char *about = x->handle.about;
    describe_end(ending, sizeof ending);
    tern_handle_describe(&x->handle, "%s%s%s%s", about ? "made by " : "", about ? about : "",
                         about ? "; " : "", ending);
}

static void hand_over(tern_headers_kept *kept)
{
    if (kept->gone)
        tern_handles_put(&handles, kept->gone);
    kept->gone = NULL;
    kept->count = 0;
}

/* Called at the end of the thread. */
static void give_all(void)
{
    tern_headers_kept *kept = &tern_thread.headers;
    hand_over(kept);
    kept->gone = kept->fresh;
    kept->fresh = NULL;
    hand_over(kept);
}

void tern_headers_put(tern_headers_kept *kept, const tern_headers *ended)
{
    if (kept->count == 0)
        tern_at_thread_end(&tern_thread.headers_end, give_all);
    ended->last->next = kept->gone;
    kept->gone = ended->first;
    kept->count += ended->count;
    if (kept->count >= BATCH)
        hand_over(kept);
}
