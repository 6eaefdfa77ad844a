/* comm_watch.c -- the observer of each thread's copies to other devices. */
#include "ops/collective/comm_watch.h"
#include "base/thread.h"

tern_comm_watch *tern_comm_watch_now(void)
{
    tern_comm_watch *watch = tern_thread.comm_watch;
    if (watch)
        atomic_fetch_add(&watch->refs, 1);
    return watch;
}

tern_comm_watch *tern_comm_watched_by(tern_comm_watch *w)
{
    tern_comm_watch *before = tern_thread.comm_watch;
    tern_thread.comm_watch = w;
    return before;
}

void tern_comm_watch_release(tern_comm_watch *w)
{
    if (w && atomic_fetch_sub(&w->refs, 1) == 1)
        w->free(w);
}
