/* workers.c -- the threads of a loader: workers make batches, and the mover copies them to the
 * device, so that no worker waits for a copy. */
#include "base/ending.h"
#include "base/os.h"
#include "base/parallel.h"
#include "data/loader.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- the threads' loops; the lock is held except during the work itself ---------------------- */

static tern_job *first_in(tern_loader *l, job_state state)
{
    tern_job *job = l->first;
    while (job && job->state != state)
        job = job->next;
    return job;
}

/* Sets the job's state after work on it. If its loop has ended, frees the job and returns false. */
static bool worked(tern_loader *l, tern_job *job, job_state after)
{
    if (job->abandoned) {
        tern_mutex_unlock(&l->lock);
        tern_job_free(job, l->dataset->count);
        tern_mutex_lock(&l->lock);
        return false;
    }
    job->state = after;
    return true;
}

/* Wakes the thread that waits for the job: the mover, or the loop, which waits for the first job
 * only. */
static void signal_done(tern_loader *l, const tern_job *job)
{
    if (job->state == JOB_MADE)
        tern_cond_signal(&l->move);
    else if (job == l->first)
        tern_cond_signal(&l->done);
}

static void make(tern_data_worker *w, tern_job *job)
{
    tern_loader *l = w->loader;
    const bool reads = tern_dataset_iterates(l->dataset) && w->status == TERN_OK;
    job->state = JOB_TAKEN;
    if (w->status != TERN_OK && (job->status = w->status))
        snprintf(job->message, sizeof job->message,
                 "tern_data_loader: worker_init of worker %d: %s", w->number,
                 *w->message ? w->message : tern_status_name(w->status));
    l->reading = reads;
    tern_mutex_unlock(&l->lock);
    if (reads) {
        atomic_store_explicit(&w->item, job->indices[0], memory_order_relaxed);
        tern_job_read(l, job);
        tern_mutex_lock(&l->lock);
        l->reading = false;
        l->ended |= job->last && !job->abandoned;
        tern_cond_broadcast(&l->work);
        tern_mutex_unlock(&l->lock);
    }
    tern_job_make(l, job, &w->item, w->number);
    tern_mutex_lock(&l->lock);
    if (worked(l, job, l->moves ? JOB_MADE : JOB_DONE))
        signal_done(l, job);
}

static void run_worker(tern_data_worker *w)
{
    tern_loader *l = w->loader;
    tern_job *job;
    while (!l->stop && !w->hangs) {
        job = l->reading ? NULL : first_in(l, JOB_WANTED);
        if (job)
            make(w, job);
        else
            tern_cond_wait(&l->work, &l->lock);
    }
}

/* Returns the first job that is not on the device if its batch is made and the device may hold one
 * more; else NULL. */
static tern_job *to_move(tern_loader *l)
{
    tern_job *job = l->first;
    while (job && job->state == JOB_DONE)
        job = job->next;
    return job && job->state == JOB_MADE && l->moved < l->ahead ? job : NULL;
}

static void run_mover(tern_loader *l)
{
    tern_job *job;
    while (!l->stop) {
        if (!(job = to_move(l))) {
            tern_cond_wait(&l->move, &l->lock);
            continue;
        }
        job->state = JOB_MOVING;
        l->moved++;
        tern_mutex_unlock(&l->lock);
        tern_job_move(l, job);
        tern_mutex_lock(&l->lock);
        if (worked(l, job, JOB_DONE))
            signal_done(l, job);
    }
}

static void start_item_thread(tern_data_worker *w)
{
    tern_loader *l = w->loader;
    tern_error_hold hold;
    tern_item_state state; /* stays set until the thread ends */
    tern_item_state_enter(&state);
    if (!l->o.worker_init || tern_error_hold_begin(&hold) != TERN_OK)
        return;
    w->status = l->o.worker_init(w->number, l->o.worker_init_user);
    tern_error_hold_end(&hold, w->message, sizeof w->message);
}

static void *run(void *user)
{
    tern_data_worker *w = user;
    tern_loader *l = w->loader;
    const bool mover = w->number == l->o.num_workers;
    if (mover)
        tern_thread.mode = (tern_thread_mode){.no_grad = true};
    else
        start_item_thread(w);
    tern_mutex_lock(&l->lock);
    if (mover)
        run_mover(l);
    else
        run_worker(w);
    w->runs = false;
    bool ends = --l->working == 0 && l->orphan;
    tern_mutex_unlock(&l->lock);
    if (ends)
        tern_loader_end(l);
    return NULL;
}

/* ---- list of loaders with workers; the end of the process waits for them --------------------- */

static struct {
    tern_mutex lock;
    tern_loader *first;
} running = {.lock = TERN_MUTEX_INIT};

static void unlist(tern_loader *l)
{
    tern_mutex_lock(&running.lock);
    if (l->listed_at) {
        *l->listed_at = l->listed;
        if (l->listed)
            l->listed->listed_at = l->listed_at;
    }
    l->listed_at = NULL;
    tern_mutex_unlock(&running.lock);
}

static void request_stop(tern_loader *l)
{
    tern_mutex_lock(&l->lock);
    l->stop = true;
    tern_cond_broadcast(&l->work);
    tern_cond_broadcast(&l->move);
    tern_mutex_unlock(&l->lock);
}

/* Stops the workers of loaders that the program did not free; items in progress get one second.
 * Runs before the destructors of libraries such as drivers. */
static void close_loaders(void)
{
    if (tern_is_forked_child())
        return;
    const int64_t until = tern_os_now() + 1000000000;
    for (tern_loader *l = running.first; l; l = l->listed)
        request_stop(l);
    for (tern_loader *l = running.first; l; l = l->listed)
        for (int i = 0; i < l->n_workers; i++)
            if (!l->workers[i].hangs)
                tern_os_thread_join_until(l->workers[i].thread, until);
}

static void at_exit(void)
{
    static tern_ending ending = {.run = close_loaders};
    tern_at_ending(&ending);
}

static void list(tern_loader *l)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, at_exit);
    tern_mutex_lock(&running.lock);
    l->listed = running.first;
    l->listed_at = &running.first;
    if (l->listed)
        l->listed->listed_at = &l->listed;
    running.first = l;
    tern_mutex_unlock(&running.lock);
}

/* ---- called by the loop's thread ------------------------------------------------------------- */

static tern_status hire(tern_loader *l, int wanted)
{
    bool failed = false;
    while (l->n_workers < wanted && !failed) {
        tern_data_worker *w = &l->workers[l->n_workers];
        *w = (tern_data_worker){.loader = l, .number = l->n_workers, .runs = true};
        atomic_init(&w->item, -1);
        tern_mutex_lock(&l->lock);
        l->working++;
        tern_mutex_unlock(&l->lock);
        failed = !tern_os_thread_start(&w->thread, run, w);
        l->n_workers += !failed;
        tern_mutex_lock(&l->lock);
        l->working -= failed;
        tern_mutex_unlock(&l->lock);
    }
    if (failed)
        return tern_fail(TERN_ERR_MEMORY, "tern_data_loader: %d of %d workers could be started",
                         l->n_workers, wanted);
    return TERN_OK;
}

tern_status tern_workers_start(tern_loader *l)
{
    const int wanted = l->o.num_workers + l->moves;
    if (l->n_workers == wanted || !l->o.num_workers)
        return TERN_OK;
    if (!l->n_workers) {
        l->workers = tern_alloc(sizeof *l->workers * (size_t)wanted);
        if (!l->workers)
            return TERN_ERR_MEMORY;
        list(l);
    }
    return hire(l, wanted);
}

bool tern_workers_stop(tern_loader *l)
{
    if (!l->n_workers)
        return unlist(l), false;
    unlist(l);
    if (l->forks != tern_forks()) /* the threads are the parent's */
        return false;
    request_stop(l);
    bool hang = false;
    for (int i = 0; i < l->n_workers; i++) {
        tern_mutex_lock(&l->lock);
        bool hangs = l->workers[i].hangs && l->workers[i].runs;
        tern_mutex_unlock(&l->lock);
        hang |= hangs;
        if (hangs)
            tern_os_thread_detach(l->workers[i].thread);
        else
            tern_os_thread_join(l->workers[i].thread);
    }
    if (!hang)
        return false;
    tern_mutex_lock(&l->lock);
    bool left = l->working > 0;
    l->orphan = left;
    tern_mutex_unlock(&l->lock);
    return left;
}
