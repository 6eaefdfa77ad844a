/* buckets.c -- DistributedDataParallel's buckets: parameters in reverse order, dealt out by size. */
#include "dist/ddp.h"
#include "base/memory.h"
#include "base/text.h"
#include "tensor/leaf.h"
#include <string.h>

enum { FIRST = 1 << 20 };

static tern_status add_slot(const char *path, tern_tensor *x, void *user)
{
    tern_ddp *d = user;
    if (!tern_requires_grad(x))
        return TERN_OK;
    tern_ddp_slot *slot = &d->slots[d->n++];
    *slot = (tern_ddp_slot){d, tern_keep(x), NULL, tern_copy_text(path), 0, -1};
    return slot->path ? TERN_OK : TERN_ERR_MEMORY;
}

static bool travel_together(const tern_tensor *a, const tern_tensor *b)
{
    return tern_dtype_of(a) == tern_dtype_of(b) && tern_device(a) == tern_device(b);
}

/* The last parameter first; behind each those of its dtype and device. */
static void sort(tern_ddp *d)
{
    for (int i = 0; i < d->n / 2; i++) {
        tern_ddp_slot slot = d->slots[i];
        d->slots[i] = d->slots[d->n - 1 - i];
        d->slots[d->n - 1 - i] = slot;
    }
    for (int at = 1; at < d->n; at++) {
        int next = at;
        while (next < d->n && !travel_together(d->slots[at - 1].x, d->slots[next].x))
            next++;
        if (next == at || next == d->n)
            continue;
        tern_ddp_slot slot = d->slots[next];
        memmove(&d->slots[at + 1], &d->slots[at], sizeof slot * (size_t)(next - at));
        d->slots[at] = slot;
    }
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
        bytes += (double)tern_numel(d->slots[i].x) *
                 (double)tern_dtype_size(tern_dtype_of(d->slots[i].x));
    }
}

/* The bucket's memory, and a view of it for each slot's gradient. */
static tern_status make_homes(tern_ddp_bucket *b, tern_ddp_slot *slots)
{
    int64_t numel = 0, at = 0;
    for (int i = 0; i < b->slots; i++)
        numel += tern_numel(slots[i].x);
    b->flat = tern_keep(
        tern_zeros(TERN_SHAPE(numel), tern_dtype_of(slots[0].x), tern_device(slots[0].x)));
    if (!b->flat)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < b->slots; i++) {
        tern_ddp_slot *s = &slots[i];
        s->home = tern_keep(tern_storage_view(b->flat, tern_shape_of(s->x), NULL, at));
        if (!s->home)
            return TERN_ERR_MEMORY;
        TERN_TRY(tern_set_grad_home(s->x, s->home));
        s->hook = tern_register_post_accumulate_grad_hook(s->x, tern_ddp_arrived, s);
        if (!s->hook)
            return TERN_ERR_MEMORY;
        at += tern_numel(s->x);
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
    sort(d);
    deal_out(d, limit);
    tern_status status = TERN_OK;
    TERN_SCOPE {
        d->counts = tern_keep(tern_zeros(TERN_SHAPE(d->n + 1), TERN_F64, "cpu"));
        status = d->counts ? TERN_OK : TERN_ERR_MEMORY;
        tern_ddp_slot *slots = d->slots;
        for (int i = 0; i < d->n_buckets && status == TERN_OK; i++) {
            status = make_homes(&d->buckets[i], slots);
            slots += d->buckets[i].slots;
        }
    }
    return status;
}

void tern_ddp_free_buckets(tern_ddp *d)
{
    for (int i = 0; i < d->n; i++) {
        tern_ddp_slot *s = &d->slots[i];
        if (s->hook)
            tern_remove_hook(s->x, s->hook);
        if (s->home && tern_grad_home(s->x) == s->home)
            tern_set_grad_home(s->x, NULL);
        tern_release(s->home);
        tern_release(s->x);
        tern_free(s->path);
    }
    for (int i = 0; i < d->n_buckets; i++) {
        tern_release(d->buckets[i].flat);
        tern_release(d->buckets[i].packed);
    }
    tern_release(d->counts);
    tern_free(d->slots);
    tern_free(d->buckets);
}
