/* loop.c -- an epoch: jobs are planned ahead, and batches are returned in order. */
#include "base/parallel.h"
#include "base/os.h"
#include "base/resumed.h"
#include "base/warning.h"
#include "data/loader.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static double since(int64_t then)
{
    return 1e-9 * (double)(tern_os_now() - then);
}

/* ---- planning ---------------------------------------------------------------------------- */

/* Returns how many of the remaining positions of the order belong to this rank. */
static int64_t share(const tern_loader *l)
{
    const tern_sampler *s = l->sampler;
    int64_t left = l->n - l->start;
    if (left <= 0)
        return 0;
    if (s->cuts)
        return left / s->world;
    if (s->uneven)
        return left / s->world + (s->rank < left % s->world);
    return (left + s->world - 1) / s->world;
}

/* Returns this rank's item at one of its positions. Positions after the end of the order wrap
 * around. */
static int64_t item_at(tern_loader *l, int64_t position)
{
    tern_sampler *s = l->sampler;
    return s->kind->at(s, (l->start + position * s->world + s->rank) % l->n);
}

/* Returns the size of the next batch, or 0 at the end. Sets *asked to the batch sampler's result if
 * that is not a valid size. */
static int64_t batch_size(const tern_loader *l, int64_t *asked)
{
    const tern_sampler *s = l->sampler;
    int64_t left = l->total - l->planned, size = l->o.batch_size;
    if (l->total < 0)
        return size;
    if (left <= 0)
        return 0;
    if (s->type.batch)
        size = s->type.batch(s->data, l->epoch, s->order, l->n, l->start + l->planned);
    if (size < 1) {
        *asked = size;
        return 0;
    }
    /* a last batch that is not full may be needed to refill others */
    const bool drops = l->o.drop_last && !tern_loader_refills(l);
    return size < left ? size : drops && size > left ? 0 : left;
}

/* Plans another job. Sets *job to NULL at the end. */
static tern_status plan(tern_loader *l, tern_job **planned)
{
    int64_t asked = 1, n = batch_size(l, &asked);
    *planned = NULL;
    if (n == 0 && asked > 0)
        return TERN_OK;
    tern_job *job = tern_job_new(n);
    if (!job)
        return TERN_ERR_MEMORY;
    if (asked < 1) { /* the job fails when its turn comes, after earlier batches */
        job->status = TERN_ERR_ARGUMENT;
        snprintf(job->message, sizeof job->message,
                 "tern_data_loader: batches of the sampler %.60s must have at least 1 item, not "
                 "%" PRId64,
                 l->sampler->type.name, asked);
    }
    job->n = n;
    job->number = l->jobs++;
    job->seed = l->seed;
    job->epoch = l->epoch;
    for (int64_t i = 0; i < n; i++) {
        job->places[i] = l->planned + i;
        job->indices[i] = l->total < 0 ? l->start + l->planned + i : item_at(l, l->planned + i);
    }
    l->planned += n;
    *planned = job;
    return TERN_OK;
}

/* Plans as many jobs as may wait. The caller holds the lock. */
static tern_status plan_ahead(tern_loader *l)
{
    const int most = l->o.num_workers * l->ahead;
    while (l->queued < most && !l->ended) {
        tern_job *job;
        TERN_TRY(plan(l, &job));
        if (!job)
            return TERN_OK;
        if (l->last)
            l->last->next = job;
        else
            l->first = job;
        l->last = job;
        l->queued++;
        l->fresh++;
    }
    return TERN_OK;
}

/* Returns the default number of batches ahead. Threads that exchange one small batch at a time
 * would mostly wait for each other. */
static int ahead_of(const tern_loader *l, const tern_job *job)
{
    int64_t bytes = 1, ahead;
    for (int k = 0; k < l->count; k++)
        bytes +=
            tern_numel(job->tensors[k]) * (int64_t)tern_dtype_size(tern_dtype_of(job->tensors[k]));
    ahead = AHEAD_BYTES / bytes;
    return ahead < LEAST_AHEAD ? LEAST_AHEAD : ahead > MOST_AHEAD ? MOST_AHEAD : (int)ahead;
}

/* Wakes one worker for each job that was planned since the last call. */
static void call_workers(tern_loader *l)
{
    for (; l->fresh > 0; l->fresh--)
        tern_cond_signal(&l->work);
}

/* ---- waiting ----------------------------------------------------------------------------- */

/* Records an error with all workers that have an item, as it is unknown which one delays the first
 * job. Loops don't wait for these workers again. */
static tern_status timed_out(tern_loader *l)
{
    char text[256] = "";
    int length = 0;
    for (int i = 0; i < l->n_workers; i++) {
        int64_t item = atomic_load(&l->workers[i].item);
        if (i == l->o.num_workers || item < 0)
            continue;
        l->workers[i].hangs = true;
        if (length < (int)sizeof text - 60)
            length += snprintf(text + length, sizeof text - (size_t)length,
                               "%s worker %d has item %" PRId64, length ? "," : ":", i, item);
    }
    return tern_fail(TERN_ERR_STATE,
                     "tern_data_loader: DataLoader timed out after %g seconds with %s%s",
                     l->o.timeout, l->dataset->name, text);
}

/* Waits until the first job is done. The caller holds the lock. */
static tern_status wait_for_first(tern_loader *l)
{
    if (l->first->state == JOB_DONE)
        return TERN_OK;
    const int64_t began = tern_os_now();
    const double patience = l->o.timeout < 1e9 ? l->o.timeout : 1e9;
    bool waits = true;
    while (l->first->state != JOB_DONE && waits) {
        if (l->o.timeout > 0)
            waits = tern_cond_wait_until(&l->done, &l->lock, began + (int64_t)(1e9 * patience));
        else
            tern_cond_wait(&l->done, &l->lock);
    }
    l->waited += since(began);
    return l->first->state == JOB_DONE ? TERN_OK : timed_out(l);
}

static tern_status take_first(tern_loader *l, tern_job **job)
{
    tern_mutex_lock(&l->lock);
    tern_status status = plan_ahead(l);
    call_workers(l);
    if (status == TERN_OK && l->first)
        status = wait_for_first(l);
    *job = status == TERN_OK ? l->first : NULL;
    if (*job) {
        l->first = (*job)->next;
        l->last = l->first ? l->last : NULL;
        l->queued--;
        l->moved -= l->moves;
        if (l->moves)
            tern_cond_signal(&l->move);
        if (!l->o.prefetch_factor && l->given == 0 && (*job)->status == TERN_OK && (*job)->size)
            l->ahead = ahead_of(l, *job);
        if (!(*job)->last)
            status = plan_ahead(l);
    }
    tern_mutex_unlock(&l->lock);
    call_workers(l); /* the woken threads find the lock free */
    if (status != TERN_OK) {
        tern_job_free(*job, l->dataset->count);
        *job = NULL;
    }
    return status;
}

/* Makes the next batch on this thread, for loaders without workers. */
static tern_status make_here(tern_loader *l, tern_job **job)
{
    atomic_llong item = -1;
    *job = NULL;
    if (l->ended)
        return TERN_OK;
    TERN_TRY(plan(l, job));
    if (!*job)
        return TERN_OK;
    tern_item_state state;
    tern_item_state_enter(&state);
    if (tern_dataset_iterates(l->dataset)) {
        tern_job_read(l, *job);
        l->ended = (*job)->last;
    }
    tern_job_make(l, *job, &item, -1);
    tern_item_state_leave(&state);
    if (l->moves) {
        TERN_NO_GRAD_HERE;
        tern_job_move(l, *job);
    }
    return TERN_OK;
}

/* ---- the loop ---------------------------------------------------------------------------- */

static tern_status skip_items(tern_loader *l)
{
    tern_dataset *d = l->dataset;
    tern_item_state state;
    tern_status status = TERN_OK;
    tern_item_state_enter(&state);
    if (d->type.rewind)
        status = d->type.rewind(d, l->epoch);
    for (int64_t i = 0; i < l->start && status == TERN_OK && !l->ended; i++) {
        TERN_SCOPE_HERE;
        tern_tensor *item[TERN_MAX_ITEM];
        status = tern_dataset_get_next(d, item, &l->ended);
    }
    tern_item_state_leave(&state);
    return status;
}

/* Warns if a resumed training begins again with the order of its first epoch, as the seed is the
 * same. */
static void warn_of_order(const tern_loader *l)
{
    const tern_sampler *s = l->sampler && l->sampler->inner ? l->sampler->inner : l->sampler;
    if (s && l->epoch == 0 && l->samples == 0 && tern_resumed_without_loader() &&
        (strstr(s->kind->name, "Random") || strcmp(s->kind->name, "DistributedSampler") == 0))
        tern_warn(
            "order", "TERN_EACH_BATCH",
            "the training was resumed from a snapshot without this loader, which begins again: "
            "the order of %s is the same as before. Add it by tern_snapshot_add_loader",
            l->dataset->name);
}

static tern_status begin_order(tern_loader *l)
{
    l->total = -1;
    warn_of_order(l);
    if (tern_dataset_iterates(l->dataset)) {
        if (atomic_exchange(&tern_dataset_root(l->dataset)->iterated, true))
            return tern_fail(TERN_ERR_STATE, "TERN_EACH_BATCH: another loop goes through %s",
                             l->dataset->name);
        l->looping = true;
        return skip_items(l);
    }
    tern_sampler *s = l->sampler;
    TERN_TRY(s->kind->begin(s, l->dataset->length, l->seed, l->epoch, &l->n));
    if (l->n > 0 && l->dataset->length == 0)
        l->n = 0;
    l->total = share(l);
    return TERN_OK;
}

static tern_status begin(tern_loader *l)
{
    if (l->forks != tern_forks() && l->o.num_workers)
        return tern_fail(TERN_ERR_STATE, "TERN_EACH_BATCH: the loader was made before a fork");
    if (l->over) {
        l->epoch++;
        l->samples = 0;
        l->over = false;
    }
    l->start = l->samples;
    l->planned = l->jobs = l->given = l->positions = l->taken = 0;
    l->waited = 0;
    l->ended = false;
    l->began = tern_os_now();
    TERN_TRY(begin_order(l));
    TERN_TRY(tern_workers_start(l));
    l->looping = true;
    return TERN_OK;
}

static void report(const tern_loader *l, int64_t batches)
{
    if (!l->o.progress)
        return;
    const tern_loader_progress p = {.epoch = l->epoch,
                                    .batch = l->given,
                                    .batches = batches,
                                    .samples = l->positions,
                                    .total = l->total,
                                    .skipped = l->skipped,
                                    .seconds = since(l->began),
                                    .waited = l->waited};
    l->o.progress(&p, l->o.progress_user);
}

static int64_t batches_of(const tern_loader *l, int64_t n)
{
    if (n < 0 || l->sampler->type.batch)
        return -1;
    return l->o.drop_last ? n / l->o.batch_size : (n + l->o.batch_size - 1) / l->o.batch_size;
}

static bool some_worker_hangs(const tern_loader *l)
{
    for (int i = 0; i < l->n_workers; i++)
        if (l->workers[i].hangs)
            return true;
    return false;
}

/* Ends the loop, at the end of the epoch or before. */
static void end(tern_loader *l, bool whole)
{
    tern_job_free(l->hand, l->dataset->count);
    l->hand = NULL;
    if (l->looping && tern_dataset_iterates(l->dataset)) {
        tern_mutex_lock(&l->lock); /* no worker reads when the next loop begins */
        tern_jobs_drop(l);
        while (l->reading && !some_worker_hangs(l))
            tern_cond_wait(&l->work, &l->lock);
        bool free = !l->reading;
        tern_mutex_unlock(&l->lock);
        atomic_store(&tern_dataset_root(l->dataset)->iterated, !free);
    }
    tern_mutex_lock(&l->lock);
    tern_jobs_drop(l);
    tern_mutex_unlock(&l->lock);
    tern_rest_drop(l);
    l->looping = false;
    l->over = !whole;
    if (!whole)
        return;
    l->epoch++;
    l->samples = 0;
}

static void give(tern_loader *l, tern_batch *batch, tern_job *job)
{
    l->hand = job;
    batch->tensors = job->tensors;
    batch->count = l->count;
    batch->size = job->size;
    batch->index = l->given++;
    batch->indices = job->indices;
    batch->scope_ = tern_scope_enter();
}

/* Sets the loop's position to the first item that was loaded and not returned. */
static void note_position(tern_loader *l)
{
    l->positions = l->rest.n ? l->rest.places[0] : l->taken;
    l->samples = l->start + l->positions * (l->total < 0 ? 1 : l->sampler->world);
}

/* Sets *job to the next batch that is not empty, or to NULL at the end. */
static tern_status next_job(tern_loader *l, tern_job **job)
{
    for (;;) {
        TERN_TRY(l->o.num_workers ? take_first(l, job) : make_here(l, job));
        if (!*job && !tern_loader_refills(l))
            return TERN_OK;
        if (!*job) {
            TERN_TRY(tern_loader_refill(l, job));
            note_position(l);
            return TERN_OK;
        }
        tern_status status = (*job)->status;
        if (status != TERN_OK) {
            tern_fail(status, "%s", (*job)->message);
            tern_job_free(*job, l->dataset->count);
            return status;
        }
        l->taken += (*job)->n;
        l->skipped += (*job)->skipped;
        if (tern_loader_refills(l)) {
            TERN_TRY(tern_loader_refill(l, job));
            note_position(l);
            if (*job)
                return TERN_OK;
            continue;
        }
        note_position(l);
        if ((*job)->size && !(l->total < 0 && l->o.drop_last && (*job)->n < l->o.batch_size))
            return TERN_OK;
        tern_job_free(*job, l->dataset->count);
    }
}

bool tern_batch_next(tern_batch *batch)
{
    tern_job *job = NULL;
    if (!batch)
        return tern_fail_argument_null("tern_batch_next", "batch"), false;
    tern_loader *l = batch->from_;
    TERN_LOADER_GIVEN(l, "TERN_EACH_BATCH");
    if (!l)
        return tern_fail_argument_null("TERN_EACH_BATCH", "loader"), false;
    if (batch->tensors) {
        tern_scope_leave(&batch->scope_);
        tern_job_free(l->hand, l->dataset->count);
        l->hand = NULL;
        batch->tensors = NULL;
    } else if (l->looping) {
        batch->from_ = NULL; /* continues the existing loop */
        return tern_fail(TERN_ERR_STATE, "TERN_EACH_BATCH: another loop goes through the loader"),
               false;
    }
    tern_status status = l->looping ? TERN_OK : begin(l);
    if (status == TERN_OK)
        status = next_job(l, &job);
    if (job && status == TERN_OK) {
        give(l, batch, job);
        report(l, batches_of(l, l->total));
        return true;
    }
    batch->from_ = NULL;
    if (status == TERN_OK)
        report(l, l->given);
    end(l, status == TERN_OK);
    return false;
}

void tern_batch_end(tern_batch *batch)
{
    if (!batch || !batch->from_ || !batch->tensors)
        return;
    tern_loader *l = batch->from_;
    TERN_LOADER_GIVEN(l, "TERN_EACH_BATCH");
    tern_scope_leave(&batch->scope_);
    *batch = (tern_batch){.tensors = NULL};
    if (l)
        end(l, false);
}

int64_t tern_loader_length(const tern_loader *l)
{
    const char *function = "tern_loader_length";
    TERN_LOADER_GIVEN(l, function);
    if (!l)
        return tern_fail_argument_null(function, "loader"), -1;
    const tern_sampler *s = l->sampler;
    int64_t n = l->dataset->length;
    if (n < 0)
        return -1;
    if (s->samples && n)
        n = s->samples;
    else if (s->n && (s->indices || s->type.order))
        n = s->n;
    const tern_loader whole = {.sampler = l->sampler, .n = n, .o = l->o};
    return batches_of(&whole, share(&whole));
}
