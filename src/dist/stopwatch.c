/* stopwatch.c -- measures how long devices take for the kernels that they are given. */
#include "dist/stopwatch.h"
#include "base/os.h"
#include "base/error.h"
#include "base/memory.h"
#include <string.h>
#include <tern/device.h>

enum { NAP = 100000 }; /* nanoseconds */

static double now(void)
{
    return 1e-9 * (double)tern_os_now();
}

static uint64_t launches(const tern_stopwatch *s)
{
    tern_memory_stats stats = {0};
    tern_memory_get_stats(s->device, &stats);
    return stats.launches;
}

/* Sets s->ended to the last time at which the device had completed a new launch. */
static void *wait_for_device(void *of)
{
    tern_stopwatch *s = of;
    bool last;
    do {
        last = atomic_load(&s->given);
        const uint64_t now_launched = launches(s);
        if (now_launched != s->launches) {
            s->launches = now_launched;
            s->status = tern_synchronize(s->device);
            s->ended = now();
        } else if (!last) {
            tern_os_sleep(NAP);
        }
    } while (!last && s->status == TERN_OK);
    if (s->status != TERN_OK)
        strncpy(s->message, tern_last_error(), sizeof s->message - 1);
    return NULL;
}

void tern_stopwatch_begin(tern_stopwatch *s, const char *device)
{
    s->device = device;
    s->launches = launches(s);
    s->began = now();
    s->waits = strcmp(device, "cpu") != 0 && tern_os_thread_start(&s->thread, wait_for_device, s);
}

void tern_stopwatch_given(tern_stopwatch *s)
{
    if (!s->waits)
        s->ended = now(); /* the cpu has completed its part */
    atomic_store(&s->given, true);
}

static void join(tern_stopwatch *s)
{
    atomic_store(&s->given, true); /* also if the step failed before */
    if (s->waits)
        tern_os_thread_join(s->thread);
    s->waits = false;
}

/* ---- forward and backward -------------------------------------------------------------------- */

static bool is_same(const tern_stopwatch *a, const tern_stopwatch *b)
{
    return a->device && b->device && strcmp(a->device, b->device) == 0;
}

/* The backward pass begins with the first gradient that is sent to a device. When the gradients
 * have returned, the host has given all devices all of their work: this is the end for the cpu, and
 * threads wait for the other devices. */
static void see(tern_comm_watch *comm, bool returned)
{
    tern_step_watch *w = (tern_step_watch *)comm;
    tern_stopwatch *back = w->part + w->n;
    if (w->returned || returned != w->back)
        return;
    for (int i = 0; i < w->n; i++) {
        bool first = w->part[i].device;
        for (int k = 0; k < i; k++)
            first = first && !is_same(&w->part[k], &w->part[i]);
        if (first && returned)
            tern_stopwatch_given(&back[i]);
        else if (first)
            tern_stopwatch_begin(&back[i], w->part[i].device);
    }
    w->back = true;
    w->returned = returned;
}

static void free_watch(tern_comm_watch *comm)
{
    tern_step_watch *w = (tern_step_watch *)comm;
    for (int i = 0; i < 2 * w->n; i++)
        join(&w->part[i]);
    tern_free(w);
}

tern_step_watch *tern_step_watch_new(int n)
{
    tern_step_watch *w = tern_alloc(sizeof *w + sizeof *w->part * 2 * (size_t)n);
    if (!w)
        return NULL;
    w->comm.back = see;
    w->comm.free = free_watch;
    w->n = n;
    atomic_store(&w->comm.refs, 1);
    return w;
}

/* Returns the time from the first begin to the last end of a device's parts. */
static double span(const tern_stopwatch *way, int n, const tern_stopwatch *of)
{
    double began = 0, ended = 0;
    for (int k = 0; k < n; k++) {
        const tern_stopwatch *s = &way[k];
        if (!is_same(s, of))
            continue;
        began = began == 0 || s->began < began ? s->began : began;
        ended = s->ended > ended ? s->ended : ended;
    }
    return ended > began ? ended - began : 0;
}

tern_status tern_step_watch_read(tern_step_watch *w, double *seconds)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < 2 * w->n; i++) {
        join(&w->part[i]);
        if (w->part[i].status != TERN_OK && status == TERN_OK)
            status = tern_fail(w->part[i].status, "%s", w->part[i].message);
    }
    for (int i = 0; i < w->n; i++)
        seconds[i] = span(w->part, w->n, &w->part[i]) + span(w->part + w->n, w->n, &w->part[i]);
    return status;
}
