/* comm_watch.c -- the watch of what each thread sends to other devices. */
#include "ops/collective/comm_watch.h"

static _Thread_local tern_comm_watch *watch;

tern_comm_watch *tern_comm_watch_now(void)
{
    if (watch)
        atomic_fetch_add(&watch->refs, 1);
    return watch;
}

tern_comm_watch *tern_comm_watched_by(tern_comm_watch *w)
{
    tern_comm_watch *before = watch;
    watch = w;
    return before;
}

void tern_comm_watch_release(tern_comm_watch *w)
{
    if (w && atomic_fetch_sub(&w->refs, 1) == 1)
        w->free(w);
}
