/* buckets.c -- DistributedDataParallel's buckets: parameters in reverse order, split by size. */
#include "dist/ddp.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/leaf.h"
#include <string.h>

enum { FIRST = 1 << 20, LINE = 256 };

static tern_status add_slot(const char *path, tern_tensor *x, void *user)
{
    tern_ddp *d = user;
    if (!tern_requires_grad(x))
        return TERN_OK;
    tern_ddp_slot *slot = &d->slots[d->n++];
    *slot = (tern_ddp_slot){.of = d, .x = tern_keep(x), .path = tern_copy_text(path), .bucket = -1};
    return slot->path ? TERN_OK : TERN_ERR_MEMORY;
}

static bool travel_together(const tern_tensor *a, const tern_tensor *b)
{
    return tern_dtype_of(a) == tern_dtype_of(b) && tern_device(a) == tern_device(b);
}

/* Sorts the slots so that those of one dtype and device are adjacent, and keeps their order. */
static void group(tern_ddp_slot *slots, int n)
{
    for (int at = 1; at < n; at++) {
        int next = at;
        while (next < n && !travel_together(slots[at - 1].x, slots[next].x))
            next++;
        if (next == at || next == n)
            continue;
        tern_ddp_slot slot = slots[next];
        memmove(&slots[at + 1], &slots[at], sizeof slot * (size_t)(next - at));
        slots[at] = slot;
    }
}

/* Reverses the order of slots. */
static void reverse(tern_ddp *d)
{
    for (int i = 0; i < d->n / 2; i++) {
        tern_ddp_slot slot = d->slots[i];
        d->slots[i] = d->slots[d->n - 1 - i];
        d->slots[d->n - 1 - i] = slot;
    }
}

/* Returns a slot's elements in its bucket, padded so that the next slot is aligned for vector loads
 * and matrix products. */
static int64_t padded_numel(const tern_ddp_slot *s)
{
    const int64_t line = LINE / (int64_t)tern_dtype_size(tern_dtype_of(s->x));
    return (tern_numel(s->x) + line - 1) / line * line;
}

static void deal_out(tern_ddp *d, double limit)
{
    double bytes = 0;
    for (int i = 0; i < d->n; i++) {
        double full = d->n_buckets <= 1 && limit > FIRST ? FIRST : limit;
        if (i == 0 || bytes >= full || !travel_together(d->slots[i - 1].x, d->slots[i].x)) {
            d->n_buckets++;
            bytes = 0;
        }
        tern_ddp_bucket *b = &d->buckets[d->n_buckets - 1];
        d->slots[i].bucket = d->n_buckets - 1;
        b->slots++;
        b->waiting++;
        bytes += (double)padded_numel(&d->slots[i]) *
                 (double)tern_dtype_size(tern_dtype_of(d->slots[i].x));
    }
}

/* Makes the bucket's flat tensor and a view of it for each slot's gradient. The padding between
 * views is zero. */
static tern_status make_bucket_views(tern_ddp_bucket *b, tern_ddp_slot *slots)
{
    int64_t numel = 0, at = 0;
    for (int i = 0; i < b->slots; i++)
        numel += padded_numel(&slots[i]);
    b->flat = tern_keep(
        tern_zeros(TERN_SHAPE(numel), tern_dtype_of(slots[0].x), tern_device(slots[0].x)));
    if (!b->flat)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < b->slots; i++) {
        tern_ddp_slot *s = &slots[i];
        s->bucket_view = tern_keep(tern_storage_view(b->flat, tern_shape_of(s->x), NULL, at));
        if (!s->bucket_view)
            return TERN_ERR_MEMORY;
        TERN_TRY(tern_set_grad_bucket_view(s->x, s->bucket_view));
        s->hook = tern_register_post_accumulate_grad_hook(s->x, tern_ddp_arrived, s);
        if (!s->hook)
            return TERN_ERR_MEMORY;
        at += padded_numel(s);
    }
    return TERN_OK;
}

static tern_status make_all_bucket_views(tern_ddp *d)
{
    tern_ddp_slot *slots = d->slots;
    for (int i = 0; i < d->n_buckets; i++) {
        TERN_TRY(make_bucket_views(&d->buckets[i], slots));
        slots += d->buckets[i].slots;
    }
    return TERN_OK;
}

tern_status tern_ddp_make_buckets(tern_ddp *d, tern_module *module, double limit)
{
    const int64_t most = tern_nn_parameter_count(module);
    if (most < 0)
        return TERN_ERR_STATE;
    d->slots = tern_alloc(sizeof *d->slots * ((size_t)most + 1));
    d->buckets = tern_alloc(sizeof *d->buckets * ((size_t)most + 1));
    if (!d->slots || !d->buckets)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_nn_each_parameter(module, add_slot, d));
    d->limit = limit;
    reverse(d);
    group(d->slots, d->n);
    deal_out(d, limit);
    tern_status status = TERN_OK;
    TERN_SCOPE {
        d->counts = tern_keep(tern_zeros(TERN_SHAPE(d->n + 1), TERN_F64, "cpu"));
        status = d->counts ? make_all_bucket_views(d) : TERN_ERR_MEMORY;
    }
    return status;
}

/* ---- sorting by arrival ---------------------------------------------------------------------- */

/* Sets order to rank 0's slots in the order in which their gradients arrived; slots without one
 * follow in their old order. */
static tern_status order_of(const tern_ddp *d, int64_t *order)
{
    int n = 0;
    for (int64_t came = 1; came <= d->came; came++)
        for (int i = 0; i < d->n; i++)
            if (d->slots[i].came == came)
                order[n++] = i;
    for (int i = 0; i < d->n; i++)
        if (!d->slots[i].came)
            order[n++] = i;
    tern_tensor *x = tern_from_data(order, TERN_SHAPE(d->n), TERN_I64, "cpu");
    const tern_dist_options o = {.group = d->group, .label = "order of buckets"};
    TERN_TRY(x ? tern_dist_broadcast(x, d->group ? d->group->members[0] : 0, &o) : TERN_ERR_MEMORY);
    memcpy(order, tern_data(x), sizeof *order * (size_t)d->n);
    return TERN_OK;
}

static void drop_buckets(tern_ddp *d)
{
    for (int i = 0; i < d->n; i++) {
        tern_ddp_slot *s = &d->slots[i];
        if (s->hook)
            tern_remove_hook(s->x, s->hook);
        if (s->bucket_view && tern_grad_bucket_view(s->x) == s->bucket_view)
            tern_set_grad_bucket_view(s->x, NULL);
        tern_release(s->bucket_view);
        s->bucket_view = NULL;
        s->hook = 0;
    }
    for (int i = 0; i < d->n_buckets; i++) {
        tern_ddp_bucket *b = &d->buckets[i];
        tern_release(b->flat);
        tern_release(b->packed);
        for (int k = 0; k < DDP_LEVELS; k++)
            tern_release(b->stack[k]);
        *b = (tern_ddp_bucket){NULL};
    }
    d->n_buckets = 0;
}

static tern_status move(tern_ddp *d, const int64_t *order)
{
    tern_ddp_slot *slots = tern_alloc(sizeof *slots * ((size_t)d->n + 1));
    if (!slots)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < d->n; i++)
        slots[i] = d->slots[order[i]];
    group(slots, d->n);
    bool same = true;
    for (int i = 0; i < d->n; i++)
        same = same && slots[i].x == d->slots[i].x;
    if (!same) {
        drop_buckets(d); /* existing gradients keep their memory until the next backward pass */
        for (int i = 0; i < d->n; i++) {
            slots[i].bucket_view = NULL;
            slots[i].hook = 0;
        }
        tern_ddp_slot *old = d->slots;
        d->slots = slots;
        slots = old;
        deal_out(d, d->limit);
    }
    tern_free(slots);
    return same ? TERN_OK : make_all_bucket_views(d);
}

tern_status tern_ddp_sort_buckets(tern_ddp *d)
{
    int64_t *order = tern_alloc(sizeof *order * ((size_t)d->n + 1));
    tern_status status = order ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD {
                status = order_of(d, order);
                if (status == TERN_OK)
                    status = move(d, order);
            }
    d->sorted = status == TERN_OK;
    tern_free(order);
    return status;
}

void tern_ddp_free_buckets(tern_ddp *d)
{
    drop_buckets(d);
    for (int i = 0; i < d->n; i++) {
        tern_release(d->slots[i].x);
        tern_free(d->slots[i].path);
    }
    tern_release(d->counts);
    tern_free(d->slots);
    tern_free(d->buckets);
}
