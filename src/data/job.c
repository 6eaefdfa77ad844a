/* job.c -- the job of a worker: loads the items of a batch, collates them, and copies the batch to
 * the device. */
#include "data/loader.h"
#include "device/item.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

tern_job *tern_job_new(int64_t n)
{
    tern_job *job = tern_alloc(sizeof *job);
    if (!job)
        return NULL;
    job->indices = tern_alloc(tern_size_bytes(tern_size_mul(2, n), sizeof *job->indices));
    job->places = job->indices + n;
    if (job->indices)
        return job;
    tern_free(job);
    return NULL;
}

bool tern_loader_refills(const tern_loader *l)
{
    return l->o.skip_errors && !l->sampler->type.batch;
}

static void free_items(tern_job *job, int count)
{
    for (int64_t i = 0; job->items && i < job->size * count; i++)
        tern_release(job->items[i]);
    tern_free(job->items);
    job->items = NULL;
}

static void free_raw(tern_job *job, int count)
{
    for (int64_t i = 0; job->raw && i < job->n * count; i++)
        tern_release(job->raw[i]);
    tern_free(job->raw);
    job->raw = NULL;
}

static void drop_tensors(tern_job *job)
{
    for (int k = 0; k < TERN_MAX_ITEM; k++) {
        tern_release(job->tensors[k]);
        job->tensors[k] = NULL;
    }
}

void tern_job_free(tern_job *job, int count)
{
    if (!job)
        return;
    free_raw(job, count);
    free_items(job, count);
    drop_tensors(job);
    tern_free(job->indices);
    tern_free(job);
}

void tern_jobs_drop(tern_loader *l)
{
    for (tern_job *job = l->first, *next; job; job = next) {
        next = job->next;
        if (job->state == JOB_TAKEN || job->state == JOB_MOVING)
            job->abandoned = true;
        else
            tern_job_free(job, l->dataset->count);
    }
    l->first = l->last = NULL;
    l->queued = l->moved = 0;
}

/* ---- items ------------------------------------------------------------------------------- */

/* The context of a job: its loader, and what it reports on the way. */
typedef struct making {
    tern_loader *l;
    tern_job *job;
    tern_dataset *d;
    atomic_llong *item;
    int64_t at; /* item that failed, or -1 */
} making;

static tern_random_stream stream_of(const making *m, int64_t index)
{
    return (tern_random_stream){
        .seed = tern_data_seed(m->job->seed, (uint64_t)m->job->epoch, (uint64_t)index)};
}

static tern_status get(making *m, int64_t i, tern_tensor **item)
{
    tern_job *job = m->job;
    if (!job->raw)
        return tern_dataset_get(m->d, job->indices[i], item);
    for (int k = 0; k < m->d->count; k++)
        item[k] = job->raw[i * m->d->count + k];
    return tern_dataset_finish(m->d, item);
}

/* Loads item i and adds it to the batch, or, for a collate function, to items. */
static tern_status make_item(making *m, int64_t i, tern_stack_up *s, tern_tensor **items)
{
    TERN_SCOPE_HERE;
    tern_tensor *item[TERN_MAX_ITEM];
    tern_random_stream stream = stream_of(m, m->job->indices[i]), *outer = tern_thread.random;
    atomic_store_explicit(m->item, m->job->indices[i], memory_order_relaxed);
    m->at = m->job->indices[i];
    tern_thread.random = &stream;
    tern_status status = get(m, i, item);
    tern_thread.random = outer;
    tern_random_stream_end(&stream);
    if (status == TERN_OK && !items)
        return tern_stack_up_add(s, item);
    for (int k = 0; k < m->d->count && status == TERN_OK; k++)
        items[m->job->size * m->d->count + k] = tern_keep(item[k]);
    return status;
}

/* Loads all items; with skip_errors those that fail are left out. */
static tern_status make_items(making *m, tern_stack_up *s, tern_tensor **items)
{
    for (int64_t i = 0; i < m->job->n; i++) {
        tern_status status = make_item(m, i, s, items);
        if (status == TERN_OK) {
            m->job->places[m->job->size] = m->job->places[i];
            m->job->indices[m->job->size++] = m->job->indices[i];
            continue;
        }
        if (!m->l->o.skip_errors)
            return status;
        tern_clear_error();
        m->job->skipped++;
    }
    m->at = -1;
    return TERN_OK;
}

/* Calls the program's collate function. */
static tern_status collated(making *m, tern_tensor *const *items, int64_t n)
{
    TERN_SCOPE_HERE;
    const tern_loader *l = m->l;
    tern_tensor *batch[TERN_MAX_ITEM] = {NULL};
    uint64_t failures = tern_failures();
    tern_random_stream stream = stream_of(m, m->job->indices[0]), *outer = tern_thread.random;
    tern_thread.random = &stream;
    tern_status status = l->o.collate(items, n, m->d->count, batch, l->o.collate_user);
    tern_thread.random = outer;
    tern_random_stream_end(&stream);
    for (int k = 0; k < l->count && status == TERN_OK; k++)
        if (!batch[k])
            status = tern_failed_since(failures) ? tern_failed_since(failures) : TERN_ERR_ARGUMENT;
    if (status != TERN_OK && tern_failed_since(failures) == TERN_OK)
        tern_fail(status, "collate failed, or gave no tensor");
    for (int k = 0; k < l->count && status == TERN_OK; k++)
        m->job->tensors[k] = tern_keep(batch[k]);
    return status;
}

static tern_status make_collated(making *m)
{
    const int64_t n = m->job->n * m->d->count;
    tern_tensor **items = tern_alloc(tern_size_bytes(n, sizeof(tern_tensor *)));
    if (!items)
        return TERN_ERR_MEMORY;
    tern_status status = make_items(m, NULL, items);
    if (status == TERN_OK && m->job->size)
        status = collated(m, items, m->job->size);
    if (status == TERN_OK && tern_loader_refills(m->l)) {
        m->job->items = items;
        return TERN_OK;
    }
    for (int64_t i = 0; i < n; i++)
        tern_release(items[i]);
    tern_free(items);
    return status;
}

static tern_status make_stacked(making *m)
{
    tern_stack_up s = {.count = m->d->count, .n = m->job->n};
    tern_status status = make_items(m, &s, NULL);
    if (status == TERN_OK && m->job->size)
        return tern_stack_up_end(&s, m->job->tensors);
    tern_stack_up_drop(&s);
    return status;
}

/* Makes the batch by the data set's function for several items. */
static tern_status make_at_once(making *m)
{
    TERN_SCOPE_HERE;
    tern_job *job = m->job;
    tern_tensor *batch[TERN_MAX_ITEM];
    tern_random_stream stream = stream_of(m, job->indices[0]), *outer = tern_thread.random;
    atomic_store_explicit(m->item, job->indices[0], memory_order_relaxed);
    m->at = job->indices[0];
    tern_thread.random = &stream;
    tern_status status = tern_dataset_get_items(m->d, job->indices, job->n, batch);
    tern_thread.random = outer;
    tern_random_stream_end(&stream);
    for (int k = 0; k < m->d->count && status == TERN_OK; k++)
        if (tern_dim(batch[k]) < 1 || tern_size(batch[k], 0) != job->n)
            status = tern_fail(TERN_ERR_SHAPE,
                               "%s: tensor %d of a batch of %" PRId64 " items has "
                               "%" PRId64 " rows",
                               m->d->name, k, job->n,
                               tern_dim(batch[k]) < 1 ? 0 : tern_size(batch[k], 0));
    for (int k = 0; k < m->d->count && status == TERN_OK; k++)
        job->tensors[k] = tern_keep(batch[k]);
    job->size = status == TERN_OK ? job->n : 0;
    return status;
}

static tern_status make_batch(making *m)
{
    if (m->l->o.collate)
        return make_collated(m);
    if (!m->d->type.items || m->job->raw)
        return make_stacked(m);
    tern_status status = make_at_once(m);
    if (status == TERN_OK || !m->l->o.skip_errors)
        return status;
    tern_clear_error(); /* the items are loaded one by one, to find the one that failed */
    return make_stacked(m);
}

/* ---- copy to the device ---------------------------------------------------------------------- */

/* Replaces *x by y, a tensor of the scope. If y is NULL, keeps *x and returns false. */
static bool becomes(tern_tensor **x, tern_tensor *y)
{
    if (!y)
        return false;
    tern_keep(y);
    tern_release(*x);
    *x = y;
    return true;
}

static tern_status bring(tern_loader *l, tern_job *job)
{
    uint64_t failures = tern_failures();
    TERN_SCOPE_HERE;
    for (int k = 0; k < l->count && l->moves; k++)
        if (!becomes(&job->tensors[k], tern_to_non_blocking(job->tensors[k], l->device)))
            return tern_failed_since(failures);
    if (!l->o.device_transform)
        return TERN_OK;
    tern_random_stream *outer = tern_thread.random,
                       stream = {.seed = tern_data_seed(job->seed ^ 1, (uint64_t)job->epoch,
                                                        (uint64_t)job->indices[0])};
    tern_tensor **x = &job->tensors[l->o.device_transform_which];
    tern_thread.random = &stream;
    bool done = becomes(x, tern_transform_run(l->o.device_transform, *x));
    tern_thread.random = outer;
    tern_random_stream_end(&stream);
    return done ? TERN_OK : tern_failed_since(failures);
}

static tern_status pin(tern_loader *l, tern_job *job)
{
    uint64_t failures = tern_failures();
    TERN_SCOPE_HERE;
    bool wanted = l->o.pin_memory || (l->moves && strncmp(l->device, "cuda", 4) == 0);
    for (int k = 0; k < l->count && wanted; k++)
        if (strcmp(tern_device(job->tensors[k]), "cpu") == 0 &&
            !becomes(&job->tensors[k], tern_pin_memory(job->tensors[k])))
            return tern_failed_since(failures);
    return TERN_OK;
}

/* ---- errors are recorded in the job ---------------------------------------------------------- */

/* Moves the errors since tern_error_hold_begin to the job. */
static void note(tern_job *job, tern_error_hold *hold, tern_status status, const char *name,
                 int64_t item, int worker)
{
    char text[MESSAGE_BYTES - 160], who[32] = "";
    tern_status recorded = tern_error_hold_end(hold, text, sizeof text);
    if (status == TERN_OK)
        return;
    job->status = recorded ? recorded : status;
    drop_tensors(job);
    if (worker >= 0)
        snprintf(who, sizeof who, " in worker %d", worker);
    if (item >= 0)
        snprintf(job->message, sizeof job->message,
                 "tern_data_loader: item %" PRId64 " of %.60s%s: %s", item, name, who, text);
    else
        snprintf(job->message, sizeof job->message, "tern_data_loader: a batch of %.60s%s: %s",
                 name, who, text);
}

static bool held(tern_job *job, tern_error_hold *hold)
{
    job->status = tern_error_hold_begin(hold);
    if (job->status != TERN_OK)
        snprintf(job->message, sizeof job->message, "tern_data_loader: out of host memory");
    return job->status == TERN_OK;
}

void tern_job_make(tern_loader *l, tern_job *job, atomic_llong *item, int worker)
{
    making m = {.l = l, .job = job, .d = l->dataset, .item = item, .at = -1};
    tern_error_hold hold;
    if (job->status != TERN_OK || !held(job, &hold))
        return;
    tern_kept_blocks kept = {.taken = 0}, *outer = tern_thread.blocks;
    tern_thread.blocks = &kept;
    tern_status status = job->n ? make_batch(&m) : TERN_OK;
    tern_thread.blocks = outer;
    tern_kept_blocks_end(&kept);
    if (status == TERN_OK && job->size) {
        m.at = -1;
        status = pin(l, job);
        if (status == TERN_OK && !l->moves)
            status = bring(l, job);
    }
    free_raw(job, l->dataset->count);
    note(job, &hold, status, l->dataset->name, m.at, worker);
    atomic_store_explicit(item, -1, memory_order_relaxed);
}

tern_status tern_job_collate(tern_loader *l, tern_job *job, tern_tensor *const *items)
{
    making m = {.l = l, .job = job, .d = l->dataset};
    TERN_TRY(collated(&m, items, job->size));
    TERN_TRY(pin(l, job));
    return bring(l, job);
}

void tern_job_move(tern_loader *l, tern_job *job)
{
    tern_error_hold hold;
    if (job->status != TERN_OK || !job->size || !held(job, &hold))
        return;
    tern_device_block block = tern_device_block_enter(l->device);
    tern_status status = bring(l, job);
    tern_device_block_leave(&block);
    note(job, &hold, status, l->dataset->name, -1, -1);
}

void tern_job_read(tern_loader *l, tern_job *job)
{
    tern_error_hold hold;
    const int count = l->dataset->count;
    const int64_t wanted = job->n;
    bool end = false;
    if (!held(job, &hold))
        return;
    tern_status status = TERN_OK;
    job->raw = tern_alloc(tern_size_bytes(wanted * count, sizeof *job->raw));
    if (!job->raw)
        status = TERN_ERR_MEMORY;
    for (job->n = 0; status == TERN_OK && job->n < wanted; job->n++) {
        TERN_SCOPE_HERE;
        tern_tensor *item[TERN_MAX_ITEM];
        tern_random_stream stream = {.seed = tern_data_seed(job->seed ^ 2, (uint64_t)job->epoch,
                                                            (uint64_t)job->indices[job->n])},
                           *outer = tern_thread.random;
        tern_thread.random = &stream;
        status = tern_dataset_get_next(l->dataset, item, &end);
        tern_thread.random = outer;
        tern_random_stream_end(&stream);
        if (status != TERN_OK || end)
            break;
        for (int k = 0; k < count; k++)
            job->raw[job->n * count + k] = tern_keep(item[k]);
    }
    job->last = end || status != TERN_OK;
    note(job, &hold, status, l->dataset->name, job->n < wanted ? job->indices[job->n] : -1, -1);
}
