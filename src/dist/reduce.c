/* reduce.c -- DistributedDataParallel's backward pass: each bucket is all-reduced once it is full,
 * in the same order on all ranks. */
#include "base/text.h"
#include "base/warning.h"
#include "dist/ddp.h"
#include <stdio.h>
#include <tern/graph.h>

/* ---- during the backward pass ---------------------------------------------------------------- */

/* Casts the bucket for the all-reduce. It is divided by the number of ranks first, as halves might
 * not hold the sum. */
static tern_status pack(const tern_ddp *d, tern_ddp_bucket *b)
{
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *mean = tern_mul_scalar(b->flat, tern_scalar_real(1.0 / d->ranks));
            b->packed = tern_keep(tern_to_dtype(mean, d->compress));
            status = b->packed ? TERN_OK : TERN_ERR_MEMORY;
        }
    return status;
}

/* Adds shards as a binary tree over their numbers, as a binary counter carries. The sum of all but
 * the last shard is kept on the stack for the shard that it is added to. */
static tern_status fold(tern_ddp *d, tern_ddp_bucket *b)
{
    const uint64_t failures = tern_failures();
    int level = 0;
    for (; d->done >> level & 1; level++)
        if (!tern_add_(b->flat, b->stack[level]))
            return tern_failed_since(failures);
    if (d->done == d->own - 1)
        return TERN_OK;
    if (!b->stack[level])
        b->stack[level] = tern_keep(tern_clone(b->flat));
    else
        tern_copy_(b->stack[level], b->flat);
    return tern_failed_since(failures);
}

static tern_status give(tern_ddp *d, int i)
{
    tern_ddp_bucket *b = &d->buckets[i];
    tern_status status = TERN_OK;
    char label[48];
    if (d->shards)
        TERN_SCOPE
            TERN_NO_GRAD
                status = fold(d, b);
    TERN_TRY(status);
    snprintf(label, sizeof label, "step %lld bucket %d", (long long)d->step, i);
    if (d->compress != TERN_DTYPE_DEFAULT && d->compress != tern_dtype_of(b->flat))
        TERN_TRY(pack(d, b));
    d->given = i + 1;
    const tern_dist_options o = {.group = d->group, .work = &b->work, .label = label};
    return tern_dist_all_reduce_by(b->packed ? b->packed : b->flat,
                                   d->shards ? DIST_WAY_TREE : DIST_WAY_ANY, &o);
}

/* Copies the gradient into the bucket if it lies elsewhere, as after create_graph or
 * tern_set_grad. */
static tern_status copy_to_bucket(const tern_ddp_slot *s)
{
    tern_tensor *grad = tern_grad(s->x);
    tern_status status = TERN_OK;
    if (!grad || grad == s->bucket_view)
        return TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD
            status = tern_copy_(s->bucket_view, tern_detach(grad)) ? TERN_OK : TERN_ERR_STATE;
    return status == TERN_OK ? tern_set_grad(s->x, s->bucket_view) : status;
}

static tern_status backward_ended(tern_after_backward *end, tern_status status);

tern_status tern_ddp_arrived(tern_tensor *x, void *slot)
{
    tern_ddp_slot *s = slot;
    tern_ddp *d = s->of;
    (void)x;
    if (!d->sums)
        return TERN_OK;
    if (!d->in_backward) {
        d->end.call = backward_ended;
        d->in_backward = tern_await_backward(&d->end);
        d->step++;
        d->came = 0;
        for (int i = 0; i < d->n; i++)
            d->slots[i].came = 0;
    }
    if (!s->came)
        s->came = ++d->came;
    TERN_TRY(copy_to_bucket(s));
    d->buckets[s->bucket].waiting--;
    while (d->done == d->own - 1 && d->given < d->n_buckets && d->buckets[d->given].waiting == 0)
        TERN_TRY(give(d, d->given));
    return TERN_OK;
}

/* ---- end of the backward pass ---------------------------------------------------------------- */

/* Sets gradients that the backward pass did not compute to 0, unless earlier steps without
 * all-reduce left one. */
static tern_status fill_rest(tern_ddp *d)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < d->n && status == TERN_OK; i++) {
        tern_ddp_slot *s = &d->slots[i];
        s->used = s->used || tern_grad(s->x);
        if (s->bucket < d->given)
            continue;
        if (tern_grad(s->x))
            status = copy_to_bucket(s);
        else
            TERN_NO_GRAD
                status = tern_fill_(s->bucket_view, tern_scalar_int(0)) ? TERN_OK : TERN_ERR_STATE;
    }
    return status;
}

/* Keeps the gradients of a shard that is not this rank's last. */
static tern_status keep_shard(tern_ddp *d)
{
    for (int i = 0; i < d->n_buckets; i++)
        TERN_TRY(fold(d, &d->buckets[i]));
    for (int i = 0; i < d->n; i++)
        TERN_TRY(tern_set_grad(d->slots[i].x, NULL));
    d->done++;
    return TERN_OK;
}

/* Sums the rows of all ranks, and how many ranks used each slot. The latter are exchanged only if
 * some rank did not use a slot. */
static tern_status sum_counts(tern_ddp *d)
{
    char label[48];
    double *counts = tern_data(d->counts), sums[2] = {d->rows, 0};
    if (!counts)
        return TERN_ERR_STATE;
    for (int i = 0; i < d->n; i++)
        sums[1] += !d->slots[i].used;
    snprintf(label, sizeof label, "step %lld counts", (long long)d->step);
    TERN_TRY(tern_dist_reduce_scalars(d->group, label, sums, 2, false));
    counts[0] = d->rows;
    for (int i = 0; i < d->n; i++)
        counts[i + 1] = d->slots[i].used;
    if (sums[1] > 0)
        return tern_dist_all_reduce(d->counts,
                                    &(tern_dist_options){.group = d->group, .label = label});
    counts[0] = sums[0];
    return TERN_OK;
}

/* All replays of a recorded step use the same parameters and rows, so the counts are exchanged
 * once, outside of the recording. */
static tern_status give_rest(tern_ddp *d)
{
    tern_status status = TERN_OK;
    while (d->given < d->n_buckets)
        TERN_TRY(give(d, d->given));
    TERN_UNRECORDED
        status = sum_counts(d);
    return status;
}

static tern_status scale(tern_ddp *d, tern_ddp_bucket *b, double factor)
{
    tern_tensor *x = b->flat;
    if (b->packed) {
        x = tern_copy_(x, b->packed);
        factor *= d->ranks;
    }
    if (x && factor != 1)
        x = tern_mul_scalar_(x, tern_scalar_real(factor));
    return x ? TERN_OK : TERN_ERR_STATE;
}

/* Waits for the buckets one by one, and scales each by factor while later ones are still sent.
 * After an error it waits too, as MPI uses the buckets' memory, but does not scale. */
static tern_status await_all(tern_ddp *d, tern_status status, double factor)
{
    for (int i = 0; i < d->n_buckets; i++) {
        tern_ddp_bucket *b = &d->buckets[i];
        tern_status one = b->work ? tern_dist_wait(b->work) : TERN_OK;
        b->work = NULL;
        b->waiting = b->slots;
        if (status == TERN_OK)
            status = one == TERN_OK ? scale(d, b, factor) : one;
    }
    d->given = 0;
    return status;
}

static void name_unused(const tern_ddp *d, const double *counts)
{
    tern_text names = {0};
    for (int i = d->n - 1; i >= 0; i--)
        if (counts[i + 1] <= 0)
            tern_text_add(&names, "%s'%s'", names.length ? ", " : "", d->slots[i].path);
    if (names.length)
        tern_warn("unused", "tern_nn_distributed_data_parallel",
                  "no rank used parameters %s: they have no gradients", names.data);
    tern_text_free(&names);
}

static const double *counts_of(tern_ddp *d)
{
    const double *counts = NULL;
    TERN_UNRECORDED
        counts = tern_data(d->counts);
    return counts;
}

/* Sets *factor to the factor from sums over ranks to gradients. */
static tern_status find_factor(tern_ddp *d, double *factor)
{
    const double rows = counts_of(d)[0];
    if (rows > 0 && d->kept)
        return tern_fail(TERN_ERR_STATE, "tern_ddp_divide_by: there were gradients of the step "
                                         "before, divided already: zero them before the next");
    *factor = rows > 0 ? 1 / rows : 1.0 / (d->shards ? d->shards : d->ranks);
    return TERN_OK;
}

static tern_status take_sums(tern_ddp *d)
{
    const double *counts = counts_of(d);
    for (int i = 0; i < d->n; i++) {
        tern_ddp_slot *s = &d->slots[i];
        if (counts[i + 1] > 0)
            TERN_TRY(tern_set_grad(s->x, s->bucket_view));
    }
    if (tern_warns())
        name_unused(d, counts);
    d->rows = 0;
    d->result = d->n ? tern_version(d->buckets[0].flat) : 0;
    return TERN_OK;
}

static tern_status sum_all(tern_ddp *d, tern_status status)
{
    double factor = 1;
    if (status == TERN_OK)
        status = give_rest(d);
    if (status == TERN_OK)
        status = find_factor(d, &factor);
    status = await_all(d, status, factor);
    return status == TERN_OK ? take_sums(d) : status;
}

static tern_status backward_ended(tern_after_backward *end, tern_status status)
{
    tern_ddp *d = (tern_ddp *)end;
    bool last = true;
    d->in_backward = false;
    TERN_SCOPE {
        TERN_NO_GRAD {
            if (status == TERN_OK)
                status = fill_rest(d);
            last = d->done == d->own - 1 || status != TERN_OK;
            if (last) {
                status = sum_all(d, status);
            } else {
                status = keep_shard(d);
                await_all(d, TERN_OK, 1);
            }
        }
    }
    for (int i = 0; i < d->n_buckets; i++) {
        tern_release(d->buckets[i].packed);
        d->buckets[i].packed = NULL;
    }
    for (int i = 0; i < d->n && (last || status != TERN_OK); i++)
        d->slots[i].used = false;
    if (last || status != TERN_OK)
        d->done = 0;
    d->due = last && status == TERN_OK;
    return status;
}

tern_status tern_ddp_step_with_zeros(tern_ddp *d)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < d->n && status == TERN_OK; i++)
        status = tern_set_grad(d->slots[i].x, NULL);
    d->step++;
    d->rows = 0;
    if (status == TERN_OK)
        status = backward_ended(&d->end, TERN_OK);
    for (int i = 0; i < d->n && status == TERN_OK; i++)
        status = tern_set_grad(d->slots[i].x, NULL);
    return status;
}
