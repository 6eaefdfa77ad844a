/* shard_traffic.c -- a unit's communication: its buckets are all-gathered, its gradients
 * reduce-scattered as averages. */
#include "dist/shard.h"
#include <stdio.h>

static void label_of(const tern_shard_unit *u, const char *what, char label[DIST_LABEL])
{
    snprintf(label, DIST_LABEL, "%s of unit %d (%.16s)", what, u->number,
             u->module ? u->module->name : "gone");
}

static int ranks_of(const tern_shard_unit *u)
{
    return tern_dist_get_world_size(u->mesh->group);
}

void tern_shard_end_traffic(tern_shard_traffic *t)
{
    for (int i = 0; t->items && i < t->unit->n_buckets; i++) {
        if (t->items[i].work)
            tern_dist_wait(t->items[i].work);
        tern_release(t->items[i].in);
        tern_release(t->items[i].out);
    }
    tern_free(t->items);
    tern_free(t->own);
    tern_shard_unit *u = t->unit;
    *t = (tern_shard_traffic){NULL};
    if (u)
        tern_shard_drop(u);
}

static tern_status begin_traffic(tern_shard_unit *u, tern_shard_traffic *t, int flags)
{
    *t = (tern_shard_traffic){
        .items = tern_alloc(sizeof *t->items * ((size_t)u->n_buckets + 1)),
        .own = tern_alloc(sizeof *t->own * ((size_t)flags * 2 + 1)),
    };
    if (!t->items || !t->own) {
        tern_free(t->items);
        tern_free(t->own);
        *t = (tern_shard_traffic){NULL};
        return TERN_ERR_MEMORY;
    }
    t->trained = t->own + flags;
    t->unit = u;
    tern_shard_hold(u);
    return TERN_OK;
}

/* Waits for all works of t, and returns the first error. */
static tern_status wait(tern_shard_traffic *t)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < t->unit->n_buckets; i++) {
        tern_dist_work *work = t->items[i].work;
        tern_status one = work ? tern_dist_wait(work) : TERN_OK;
        t->items[i].work = NULL;
        if (status == TERN_OK)
            status = one;
        tern_release(t->items[i].in);
        t->items[i].in = NULL;
    }
    return status;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Copies a parameter that was given other memory back to its bucket. */
static tern_status copy_to_bucket(const tern_shard_slot *s)
{
    if (tern_storage_is_shared(s->x, s->bucket_view) && tern_same_shape(s->x, s->bucket_view))
        return TERN_OK;
    if (!tern_same_shape(s->x, s->bucket_view) ||
        tern_dtype_of(s->x) != tern_dtype_of(s->bucket_view) ||
        tern_device(s->x) != tern_device(s->bucket_view))
        return tern_fail(TERN_ERR_STATE,
                         "tern_dist_fully_shard: a parameter was moved to %s, %s since it was "
                         "sharded on %s, %s",
                         tern_dtype_name(tern_dtype_of(s->x)), tern_device(s->x),
                         tern_dtype_name(tern_dtype_of(s->bucket_view)),
                         tern_device(s->bucket_view));
    const uint64_t failures = tern_failures();
    return tern_copy_(s->bucket_view, tern_detach(s->x)) ? TERN_OK : tern_failed_since(failures);
}

static tern_status gather_bucket(tern_shard_unit *u, int i)
{
    const uint64_t failures = tern_failures();
    struct tern_shard_item *item = &u->gather.items[i];
    tern_tensor *in = u->buckets[i].flat;
    char label[DIST_LABEL];
    label_of(u, "parameters", label);
    if (u->param_dtype != TERN_DTYPE_DEFAULT && u->param_dtype != tern_dtype_of(in))
        in = tern_to_dtype(in, u->param_dtype);
    item->in = in ? tern_keep(in) : NULL;
    tern_tensor *out = in ? tern_empty(TERN_SHAPE(tern_numel(in) * ranks_of(u)), tern_dtype_of(in),
                                       tern_device(in))
                          : NULL;
    item->out = out ? tern_keep(out) : NULL;
    if (!out)
        return tern_failed_since(failures);
    return tern_dist_all_gather_into_tensor(
        out, in,
        &(tern_dist_options){.group = u->mesh->group, .work = &item->work, .label = label});
}

tern_status tern_shard_gather(tern_shard_unit *u)
{
    if (u->gather.items)
        return TERN_OK;
    TERN_TRY(begin_traffic(u, &u->gather, 0));
    tern_status status = TERN_OK;
    TERN_SCOPE {
        TERN_NO_GRAD {
            for (int i = 0; i < u->n && status == TERN_OK; i++)
                status = copy_to_bucket(&u->slots[i]);
            for (int i = 0; i < u->n_buckets && status == TERN_OK; i++)
                status = gather_bucket(u, i);
        }
    }
    if (status != TERN_OK)
        tern_shard_end_traffic(&u->gather);
    return status;
}

/* The gathered bucket is a matrix with a row for each rank; a parameter is a range of columns. */
static tern_status copy_out(const tern_shard_slot *s, tern_tensor *all, int ranks,
                            tern_tensor *full)
{
    const uint64_t failures = tern_failures();
    const int64_t row = tern_numel(all) / ranks;
    if (s->elements == 0)
        return TERN_OK;
    tern_tensor *to = tern_storage_view(full, TERN_SHAPE(ranks, s->elements), NULL, 0);
    tern_tensor *from =
        tern_storage_view(all, TERN_SHAPE(ranks, s->elements), (const int64_t[]){row, 1}, s->at);
    return to && from ? tern_storage_fill(to, from) : tern_failed_since(failures);
}

tern_status tern_shard_take(tern_shard_unit *u, tern_tensor *const *full)
{
    TERN_TRY(tern_shard_gather(u));
    tern_status status = wait(&u->gather);
    TERN_SCOPE {
        for (int i = 0; i < u->n && status == TERN_OK; i++)
            status = copy_out(&u->slots[i], u->gather.items[u->slots[i].bucket].out, ranks_of(u),
                              full[i]);
    }
    tern_shard_end_traffic(&u->gather);
    return status;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Copies a gradient into the matrix `all`, in each rank's row from column `at` on. */
static tern_status copy_in(const tern_shard_slot *s, tern_tensor *grad, tern_tensor *all,
                           int64_t row, int64_t at)
{
    const uint64_t failures = tern_failures();
    const int64_t whole = s->shape.dims[0] / s->each, each = s->elements,
                  rest = tern_numel(grad) - whole * each;
    tern_tensor *g = tern_contiguous(tern_detach(grad));
    if (whole)
        tern_copy_(tern_storage_view(all, TERN_SHAPE(whole, each), (const int64_t[]){row, 1}, at),
                   tern_storage_view(g, TERN_SHAPE(whole, each), NULL, 0));
    if (rest)
        tern_copy_(tern_storage_view(all, TERN_SHAPE(rest), NULL, whole * row + at),
                   tern_storage_view(g, TERN_SHAPE(rest), NULL, whole * each));
    return tern_failed_since(failures);
}

/* Writes `value` into n flags after the gradients of each rank's row: 1 if this rank has the
 * gradient. The flag's average is positive if any rank has it. */
static tern_status flag(tern_tensor *all, int ranks, int64_t row, int64_t at, int n, double value)
{
    const uint64_t failures = tern_failures();
    tern_fill_(tern_storage_view(all, TERN_SHAPE(ranks, n), (const int64_t[]){row, 1}, at),
               tern_scalar_real(value));
    return tern_failed_since(failures);
}

/* Returns the elements of a rank's part of the trained slots, and sets *n to their number. */
static int64_t part_of(const tern_shard_traffic *t, int bucket, int *n)
{
    const tern_shard_bucket *b = &t->unit->buckets[bucket];
    int64_t elements = 0;
    *n = 0;
    for (int i = b->first; i < b->first + b->slots; i++)
        if (t->trained[i]) {
            elements += t->unit->slots[i].elements;
            ++*n;
        }
    return elements;
}

static tern_status pack(const tern_shard_traffic *t, int bucket, tern_tensor *all,
                        tern_tensor *const *grads)
{
    const tern_shard_bucket *b = &t->unit->buckets[bucket];
    int n, k = 0;
    const int ranks = ranks_of(t->unit);
    const int64_t flags = part_of(t, bucket, &n), row = flags + n;
    int64_t at = 0;
    TERN_TRY(flag(all, ranks, row, flags, n, 1));
    for (int i = b->first; i < b->first + b->slots; i++) {
        const tern_shard_slot *s = &t->unit->slots[i];
        if (!t->trained[i])
            continue;
        if (!t->own[i])
            TERN_TRY(flag(all, ranks, row, flags + k, 1, 0));
        else if (s->elements)
            TERN_TRY(copy_in(s, grads[i], all, row, at));
        at += s->elements;
        k++;
    }
    return TERN_OK;
}

static tern_status reduce_bucket(tern_shard_traffic *t, int i, tern_tensor *const *grads)
{
    const uint64_t failures = tern_failures();
    tern_shard_unit *u = t->unit;
    struct tern_shard_item *item = &t->items[i];
    const tern_tensor *flat = u->buckets[i].flat;
    const tern_dtype dtype = u->reduce_dtype  ? u->reduce_dtype
                             : u->param_dtype ? u->param_dtype
                                              : tern_dtype_of(flat);
    int n;
    const int64_t part = part_of(t, i, &n) + n;
    char label[DIST_LABEL];
    if (n == 0)
        return TERN_OK;
    tern_tensor *in = tern_zeros(TERN_SHAPE(part * ranks_of(u)), dtype, tern_device(flat));
    tern_tensor *out = in ? tern_empty(TERN_SHAPE(part), dtype, tern_device(flat)) : NULL;
    if (!out)
        return tern_failed_since(failures);
    item->in = tern_keep(in);
    item->out = tern_keep(out);
    TERN_TRY(pack(t, i, in, grads));
    label_of(u, "gradients", label);
    return tern_dist_reduce_scatter_tensor(
        out, in,
        &(tern_dist_options){
            .op = TERN_DIST_AVG, .group = u->mesh->group, .work = &item->work, .label = label});
}

tern_status tern_shard_reduce(tern_shard_unit *u, tern_shard_traffic *t, tern_tensor *const *grads,
                              const bool *trained)
{
    TERN_TRY(begin_traffic(u, t, u->n));
    tern_status status = TERN_OK;
    for (int i = 0; i < u->n; i++) {
        t->trained[i] = trained[i];
        t->own[i] = grads[i] != NULL;
    }
    TERN_SCOPE {
        TERN_NO_GRAD {
            for (int i = 0; i < u->n_buckets && status == TERN_OK; i++)
                status = reduce_bucket(t, i, grads);
        }
    }
    if (status != TERN_OK)
        tern_shard_end_traffic(t);
    return status;
}

static tern_status look_at_parts(const tern_shard_traffic *t, int bucket, tern_tensor **parts)
{
    const uint64_t failures = tern_failures();
    const tern_shard_bucket *b = &t->unit->buckets[bucket];
    tern_tensor *out = t->items[bucket].out;
    int n, k = 0;
    const int64_t flags = part_of(t, bucket, &n);
    int64_t at = 0;
    for (int i = b->first; i < b->first + b->slots; i++) {
        const tern_shard_slot *s = &t->unit->slots[i];
        if (!t->trained[i])
            continue;
        if (t->own[i] || tern_item(tern_select(out, 0, flags + k)) > 0)
            parts[i] = tern_to_dtype(tern_storage_view(out, tern_shape_of(s->x), NULL, at),
                                     tern_dtype_of(s->x));
        at += s->elements;
        k++;
    }
    return tern_failed_since(failures);
}

tern_status tern_shard_take_reduced(tern_shard_traffic *t, tern_tensor **parts)
{
    tern_status status = wait(t);
    tern_dist_group *replicate = t->unit->mesh->replicate;
    for (int i = 0; i < t->unit->n; i++)
        parts[i] = NULL;
    TERN_NO_GRAD {
        for (int i = 0; i < t->unit->n_buckets && status == TERN_OK; i++) {
            if (t->items[i].out && replicate)
                status = tern_dist_all_reduce(
                    t->items[i].out, &(tern_dist_options){.op = TERN_DIST_AVG, .group = replicate});
            if (t->items[i].out && status == TERN_OK)
                status = look_at_parts(t, i, parts);
        }
    }
    tern_shard_end_traffic(t);
    return status;
}
