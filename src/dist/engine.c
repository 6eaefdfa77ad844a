/* engine.c -- the job's thread, which makes progress on all works, and the threads that wait for a
 * work and help it. */
#include "base/ending.h"
#include "base/os.h"
#include "base/parallel.h"
#include "dist/dist.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Microseconds of sleep, and numbers of polls without sleep. The job's thread polls less than a
 * waiting thread before it sleeps, since it takes a core from other threads. */
enum { NAP = 30, SPINS = 100, THREAD_SPINS = 8, LONG_NAP = 1000, IDLE_NAP = 20000 };

static void nap(long microseconds)
{
    tern_os_sleep(microseconds * INT64_C(1000));
}

static int64_t after(double seconds)
{
    return tern_os_now() + (int64_t)((seconds > 1e8 ? 1e8 : seconds) * 1e9);
}

/* Works of one channel run one after the other. A channel is the collectives of a group, or the
 * messages with one tag to, or from, one rank. But a collective's header may be sent while the data
 * of earlier collectives are. */
typedef enum standing { FIRST, BEHIND_DATA, BLOCKED } standing;

static standing stand(const tern_dist_job *job, const tern_dist_work *w)
{
    standing s = FIRST;
    for (const tern_dist_work *u = job->first; u != w; u = u->next) {
        const bool u_pair = u->kind == DIST_SEND || u->kind == DIST_RECV;
        const bool w_pair = w->kind == DIST_SEND || w->kind == DIST_RECV;
        if (u->group != w->group || u_pair != w_pair)
            continue;
        if (w_pair && (u->kind != w->kind || u->root != w->root || u->tag != w->tag))
            continue;
        if (w_pair || u->kind >= DIST_NEW_GROUP || w->kind >= DIST_NEW_GROUP ||
            (u->state != WORK_SIGNED && u->state != WORK_FLOWS))
            return BLOCKED;
        s = BEHIND_DATA;
    }
    return s;
}

static bool waits_for_another(const tern_dist_job *job, tern_dist_work *w)
{
    const standing s = w->state == WORK_FLOWS ? FIRST : stand(job, w);
    w->behind = s != FIRST;
    if (w->state == WORK_WAITS)
        return s == BLOCKED || (w->behind && tern_dist_is_eager(w) && !w->apart);
    return w->state == WORK_SIGNED && w->behind;
}

/* Makes progress on all works. Returns whether any progressed. The caller holds the lock. */
static bool poll_all(tern_dist_job *job)
{
    bool happened = tern_dist_negotiation_step(job);
    for (tern_dist_work **link = &job->first; *link && job->status == TERN_OK;) {
        tern_dist_work *w = *link, *next = w->next;
        if (waits_for_another(job, w)) {
            link = &w->next;
            continue;
        }
        happened |= tern_dist_step(job, w);
        if (job->status != TERN_OK)
            break;
        if (w->state == WORK_DONE)
            *link = next; /* w may have been freed */
        else
            link = &w->next;
    }
    return happened;
}

/* ---- the job's thread ------------------------------------------------------------------------ */

static void begin_mpi(tern_dist_job *job)
{
    tern_mpi_comm comms[3] = {0};
    tern_mpi_level level = TERN_MPI_FUNNELED;
    bool ours = false;
    int rank = 0, size = 0, error = job->mpi->init(&ours, &level);
    const bool mine = ours || level >= TERN_MPI_SERIALIZED; /* this thread may call MPI */
    if (!error && mine)
        error = job->mpi->world(&rank, &size, comms, 3);
    tern_mutex_lock(&job->lock);
    job->ours = ours;
    job->level = level;
    job->helps = level >= TERN_MPI_SERIALIZED;
    job->all.rank = rank;
    job->all.size = size;
    job->all.data = comms[0];
    job->all.control = comms[1];
    job->negotiation_comm = comms[2];
    job->failed = error != 0;
    job->foreign = !error && !mine;
    job->began = true;
    tern_mutex_unlock(&job->lock);
}

static void end_mpi(tern_dist_job *job)
{
    if (job->status != TERN_OK && job->negotiation) {
        const double until =
            tern_dist_now() + 0.3; /* time to send the other ranks the end of the job */
        while (!tern_dist_negotiation_is_silent(job) && tern_dist_now() < until) {
            tern_dist_negotiation_step(job);
            nap(LONG_NAP);
        }
    } else if (job->left) {
        if (job->negotiation)
            tern_dist_negotiation_end(job);
        if (job->ours)
            job->mpi->finalize();
    }
}

static void *run(void *user)
{
    tern_dist_job *job = user;
    int quiet = 0;
    tern_os_nap_exactly();
    begin_mpi(job);
    tern_mutex_lock(&job->lock);
    while (!job->stops) {
        if (!job->negotiation || (!job->first && !poll_all(job))) {
            tern_cond_wait_until(&job->wake, &job->lock, after(IDLE_NAP * 1e-6));
            quiet = 0;
            continue;
        }
        quiet = poll_all(job) ? 0 : quiet + 1;
        if (job->status != TERN_OK)
            tern_dist_drop_transports(job);
        const bool helped = job->helpers > 0, slow = job->status != TERN_OK || quiet > 20000;
        tern_mutex_unlock(&job->lock);
        if (slow)
            nap(LONG_NAP);
        else if (quiet > THREAD_SPINS || helped)
            nap(helped || quiet > 8 * THREAD_SPINS ? 10 * NAP : NAP * (1 + quiet / THREAD_SPINS));
        else
            tern_os_sched_yield();
        tern_mutex_lock(&job->lock);
    }
    end_mpi(job);
    tern_mutex_unlock(&job->lock);
    return NULL;
}

/* Stops the job of a program that exits without tern_dist_destroy_process_group, before MPI's
 * destructors run. */
static void at_exit(void)
{
    if (!tern_is_forked_child())
        tern_dist_stop(&tern_dist_the_job);
}

static void once_at_exit(void)
{
    static tern_ending ending = {.run = at_exit};
    tern_at_ending(&ending);
}

static bool start_thread(tern_dist_job *job)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, once_at_exit);
    job->threads = tern_os_thread_start(&job->thread, run, job);
    return job->threads;
}

tern_status tern_dist_start(tern_dist_job *job, double timeout)
{
    const char *function = "tern_dist_init_process_group";
    bool began = false;
    if (!start_thread(job))
        return tern_fail(TERN_ERR_MEMORY, "%s: no thread could be started", function);
    for (double until = tern_dist_now() + timeout; !began && tern_dist_now() < until;) {
        nap(NAP);
        tern_mutex_lock(&job->lock);
        began = job->began;
        tern_mutex_unlock(&job->lock);
    }
    if (!began) { /* MPI_Init can't be cancelled */
        job->status = TERN_ERR_PEER;
        snprintf(job->message, sizeof job->message,
                 "MPI_Init did not end within %.1f s: not all processes of the job have come to it",
                 timeout);
        return tern_fail(TERN_ERR_PEER, "%s: %s", function, job->message);
    }
    if (job->failed)
        return tern_fail(TERN_ERR_PEER, "%s: MPI_Init failed, or was finalized before", function);
    if (job->foreign)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: the program began MPI for one thread, and tern calls it on another: "
                         "MPI_Init_thread is to be given MPI_THREAD_MULTIPLE, or "
                         "MPI_THREAD_SERIALIZED where the program does not call MPI meanwhile",
                         function);
    return TERN_OK;
}

void tern_dist_stop(tern_dist_job *job)
{
    if (!job->threads)
        return;
    bool hangs = true; /* the thread is still in MPI_Init */
    if (tern_mutex_lock_until(&job->lock, after(1))) {
        hangs = !job->began;
        job->stops = true;
        tern_cond_signal(&job->wake);
        tern_mutex_unlock(&job->lock);
    }
    if (hangs)
        tern_os_thread_detach(job->thread);
    else
        tern_os_thread_join(job->thread);
    job->threads = false;
    for (int i = 0; i < 100 && atomic_load(&job->drops); i++)
        nap(IDLE_NAP / 2);
}

/* ---- called by other threads ----------------------------------------------------------------- */

tern_status tern_dist_give(tern_dist_job *job, tern_dist_work *w)
{
    tern_mutex_lock(&job->lock);
    if (job->status != TERN_OK) {
        const tern_status status =
            tern_fail(job->status, "tern_dist_%s: %s", tern_dist_kind_name(w->kind), job->message);
        tern_mutex_unlock(&job->lock);
        return status;
    }
    tern_dist_work **last = &job->first;
    while (*last)
        last = &(*last)->next;
    *last = w;
    w->asked = tern_dist_now();
    if (w->kind != DIST_SEND && w->kind != DIST_RECV)
        w->number = ++w->group->count;
    tern_dist_note_way(w);
    tern_dist_note(w);
    if (job->helps)
        poll_all(job);
    if (!w->awaited || !job->helps)
        tern_cond_signal(&job->wake);
    tern_mutex_unlock(&job->lock);
    return TERN_OK;
}

bool tern_dist_has_ended(tern_dist_job *job)
{
    tern_mutex_lock(&job->lock);
    const bool ended = job->status != TERN_OK;
    tern_mutex_unlock(&job->lock);
    return ended;
}

tern_status tern_dist_await(tern_dist_job *job, tern_dist_work *w)
{
    bool counted = false;
    for (int quiet = 0; !atomic_load(&w->done);) {
        if (!tern_mutex_lock_until(&job->lock, after(w->timeout + 5)))
            return tern_fail(TERN_ERR_PEER, "tern_dist_%s: a call of MPI does not return",
                             tern_dist_kind_name(w->kind));
        job->helpers += !counted;
        counted = true;
        if (job->helps && !atomic_load(&w->done))
            poll_all(job);
        tern_mutex_unlock(&job->lock);
        if (++quiet > SPINS)
            nap(quiet > 20000 ? LONG_NAP : NAP);
        else
            tern_os_sched_yield();
    }
    tern_mutex_lock(&job->lock);
    job->helpers -= counted;
    const tern_status status =
        w->status == TERN_OK
            ? TERN_OK
            : tern_fail(w->status, "tern_dist_%s: %s", tern_dist_kind_name(w->kind), job->message);
    tern_mutex_unlock(&job->lock);
    return status;
}

/* ---- works ----------------------------------------------------------------------------------- */

void tern_dist_work_free(tern_dist_work *w)
{
    if (!w || (w->status != TERN_OK && w->state != WORK_WAITS && w->state != WORK_DONE))
        return;
    tern_stage_free(w->in_stage);
    tern_stage_free(w->out_stage);
    tern_release(w->in);
    tern_release(w->out);
    tern_dist_withdraw(w);
    tern_free(w->deeds);
    tern_free(w->scratch);
    tern_free(w->integers);
    tern_free(w->headers);
    tern_free(w);
}

tern_dist_work *tern_dist_work_new(const tern_dist_work *what, const char *label)
{
    tern_dist_work *w = tern_alloc(sizeof *w);
    if (!w)
        return NULL;
    *w = *what;
    const size_t size = (size_t)w->group->size;
    const bool headers = size <= DIST_HEADERS && w->kind != DIST_SEND && w->kind != DIST_RECV;
    w->deeds = tern_alloc(sizeof *w->deeds * size);
    w->headers = headers ? tern_alloc(sizeof *w->headers * (size + 1)) : NULL;
    if (w->direct) {
        const int64_t part = w->kind == DIST_REDUCE_SCATTER ? w->count
                             : w->count < DIST_DIRECT_PIECE
                                 ? (w->count + (int64_t)size - 1) / (int64_t)size
                                 : DIST_DIRECT_PIECE / (int64_t)size + 1;
        w->scratch = tern_alloc((size_t)part * size * tern_dtype_size(w->dtype) + 1);
        w->integers = tern_alloc(sizeof *w->integers * 4 * size);
    }
    if (!w->deeds || (headers && !w->headers) || (w->direct && (!w->scratch || !w->integers))) {
        tern_dist_work_free(w);
        return NULL;
    }
    tern_dist_describe(w, label);
    return w;
}

tern_status tern_dist_run(const tern_dist_work *what, const char *label)
{
    tern_dist_job *job = &tern_dist_the_job;
    tern_dist_work *w = tern_dist_work_new(what, label);
    if (!w)
        return TERN_ERR_MEMORY;
    w->awaited = true;
    tern_status status = tern_dist_give(job, w);
    if (status == TERN_OK)
        status = tern_dist_await(job, w);
    tern_dist_work_free(w);
    return status;
}
