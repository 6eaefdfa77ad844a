/* refill.c -- refills batches when a loader skips items that fail, so that only the last batch may
 * be short. The items of a short batch become the loader's rest. The items of the following batches
 * are appended to it, and batches are taken from its front, until a batch ends exactly where the
 * rest does. The items are those of the collate function, which jobs keep for this, or rows of
 * batches. */
#include "data/loader.h"

void tern_rest_drop(tern_loader *l)
{
    tern_rest *rest = &l->rest;
    for (int64_t i = 0; i < rest->n * l->dataset->count; i++)
        tern_release(rest->items[i]);
    tern_free(rest->items);
    tern_free(rest->indices);
    tern_free(rest->places);
    *rest = (tern_rest){.n = 0};
}

/* Allocates the rest, for two batches: a batch is added to a rest smaller than one. */
static tern_status reserve(tern_loader *l)
{
    tern_rest *rest = &l->rest;
    const int64_t capacity = tern_size_mul(2, l->o.batch_size);
    if (rest->items)
        return TERN_OK;
    rest->items = tern_alloc(
        tern_size_bytes(tern_size_mul(capacity, l->dataset->count), sizeof *rest->items));
    rest->indices = tern_alloc(tern_size_bytes(capacity, sizeof *rest->indices));
    rest->places = tern_alloc(tern_size_bytes(capacity, sizeof *rest->places));
    return rest->items && rest->indices && rest->places ? TERN_OK : TERN_ERR_MEMORY;
}

/* Appends the items of a batch to the rest. */
static tern_status add(tern_loader *l, const tern_job *job)
{
    tern_rest *rest = &l->rest;
    const int count = l->dataset->count;
    TERN_TRY(reserve(l));
    for (int64_t i = 0; i < job->size; i++) {
        TERN_SCOPE_HERE;
        for (int k = 0; k < count; k++) {
            tern_tensor *x =
                job->items ? job->items[i * count + k] : tern_select(job->tensors[k], 0, i);
            if (!x) {
                while (k-- > 0)
                    tern_release(rest->items[rest->n * count + k]);
                return tern_last_status();
            }
            rest->items[rest->n * count + k] = tern_keep(x);
        }
        rest->indices[rest->n] = job->indices[i];
        rest->places[rest->n++] = job->places[i];
    }
    return TERN_OK;
}

/* Stacks the rest's first job->size items to a batch. */
static tern_status stack(const tern_loader *l, tern_job *job)
{
    const int count = l->dataset->count;
    tern_tensor **column = tern_alloc(tern_size_bytes(job->size, sizeof *column));
    if (!column)
        return TERN_ERR_MEMORY;
    TERN_SCOPE_HERE;
    tern_status status = TERN_OK;
    for (int k = 0; k < count && status == TERN_OK; k++) {
        for (int64_t i = 0; i < job->size; i++)
            column[i] = l->rest.items[i * count + k];
        tern_tensor *x = tern_stack(column, (int)job->size, 0);
        status = x ? TERN_OK : tern_last_status();
        job->tensors[k] = x ? tern_keep(x) : NULL;
    }
    tern_free(column);
    return status;
}

/* Makes a batch of the rest's first n items. */
static tern_status take(tern_loader *l, int64_t n, tern_job **taken)
{
    tern_rest *rest = &l->rest;
    const int count = l->dataset->count;
    tern_job *job = tern_job_new(n);
    if (!job)
        return TERN_ERR_MEMORY;
    job->n = job->size = n;
    job->seed = l->seed;
    job->epoch = l->epoch;
    for (int64_t i = 0; i < n; i++)
        job->indices[i] = rest->indices[i];
    tern_item_state state;
    tern_item_state_enter(&state);
    tern_status status = l->o.collate ? tern_job_collate(l, job, rest->items) : stack(l, job);
    tern_item_state_leave(&state);
    for (int64_t i = 0; i < n * count; i++)
        tern_release(rest->items[i]);
    rest->n -= n;
    for (int64_t i = 0; i < rest->n; i++) {
        rest->indices[i] = rest->indices[n + i];
        rest->places[i] = rest->places[n + i];
    }
    for (int64_t i = 0; i < rest->n * count; i++)
        rest->items[i] = rest->items[n * count + i];
    if (status != TERN_OK) {
        tern_job_free(job, count);
        return status;
    }
    *taken = job;
    return TERN_OK;
}

tern_status tern_loader_refill(tern_loader *l, tern_job **job)
{
    const int64_t full = l->o.batch_size;
    tern_job *made = *job;
    if (made && made->size && l->rest.n == 0 &&
        (made->size == full || (!l->o.drop_last && !made->skipped)))
        return TERN_OK;
    *job = NULL;
    if (made) {
        tern_status status = made->size ? add(l, made) : TERN_OK;
        tern_job_free(made, l->dataset->count);
        TERN_TRY(status);
    }
    const int64_t n = l->rest.n;
    if (n >= full)
        return take(l, full, job);
    return made || n == 0 || l->o.drop_last ? TERN_OK : take(l, n, job);
}
