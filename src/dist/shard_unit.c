/* shard_unit.c -- the list of units, their references, and the swap of parts for whole parameters
 * in modules. */
#include "dist/shard.h"
#include "base/lock.h"

static tern_mutex lock = TERN_MUTEX_INIT;
static tern_shard_unit *units;
static int numbers;

void tern_shard_list(tern_shard_unit *u)
{
    tern_mutex_lock(&lock);
    u->number = numbers++;
    u->next = units;
    units = u;
    tern_mutex_unlock(&lock);
}

const tern_shard_slot *tern_shard_find(const tern_tensor *x, tern_shard_unit **unit)
{
    const tern_shard_slot *found = NULL;
    tern_mutex_lock(&lock);
    for (tern_shard_unit *u = tern_ranks_of(x) ? units : NULL; u && !found; u = u->next)
        for (int i = 0; i < u->n && !found; i++)
            if (u->slots[i].x == x) {
                found = &u->slots[i];
                if (unit)
                    *unit = u;
            }
    tern_mutex_unlock(&lock);
    return found;
}

int64_t tern_shard_version(const tern_shard_unit *u)
{
    int64_t sum = 0;
    for (int i = 0; i < u->n_buckets; i++)
        sum += tern_version(u->buckets[i].flat);
    for (int i = 0; i < u->n; i++)
        if (!tern_storage_is_shared(u->slots[i].x, u->slots[i].bucket_view))
            return -1;
    return sum;
}

bool tern_shard_changed(const tern_shard_mesh *mesh, bool *any)
{
    bool changed = false;
    *any = false;
    tern_mutex_lock(&lock);
    for (const tern_shard_unit *u = units; u; u = u->next) {
        const bool counts = u->stays && u->mesh == mesh && u->module && u->n;
        *any = *any || counts;
        if (counts && u->whole && !changed) {
            const int64_t now = tern_shard_version(u);
            changed = now < 0 || now != u->seen;
        }
    }
    tern_mutex_unlock(&lock);
    return changed;
}

void tern_shard_release(tern_tensor **list, int n)
{
    for (int i = 0; list && i < n; i++)
        tern_release(list[i]);
    tern_free(list);
}

void tern_shard_hold(tern_shard_unit *u)
{
    atomic_fetch_add(&u->refs, 1);
}

void tern_shard_drop(tern_shard_unit *u)
{
    if (atomic_fetch_sub(&u->refs, 1) > 1)
        return;
    tern_mutex_lock(&lock);
    for (tern_shard_unit **link = &units; *link; link = &(*link)->next)
        if (*link == u) {
            *link = u->next;
            break;
        }
    tern_mutex_unlock(&lock);
    for (int i = 0; i < u->n; i++) {
        if (u->slots[i].shared)
            tern_set_ranks(u->slots[i].x, u->slots[i].cut);
        tern_release(u->slots[i].x);
        tern_release(u->slots[i].bucket_view);
    }
    for (int i = 0; i < u->n_buckets; i++)
        tern_release(u->buckets[i].flat);
    tern_shard_release(u->whole, u->n);
    tern_shard_release(u->local, u->n);
    tern_free(u->slots);
    tern_free(u->buckets);
    tern_free(u->order.units);
    tern_free(u->plan.units);
    tern_free(u);
}

/* ---- members --------------------------------------------------------------------------------- */

static tern_tensor *stands(const tern_shard_unit *u, int i)
{
    return u->inside ? u->inside[i] : u->slots[i].x;
}

/* Returns the slot whose current tensor is x, or -1. Members have the same order each time, so the
 * search begins at *last. */
static int slot_of(const tern_shard_unit *u, const tern_tensor *x, int *last)
{
    for (int k = 0; k < u->n; k++) {
        int i = *last + k < u->n ? *last + k : *last + k - u->n;
        if (stands(u, i) == x)
            return *last = i;
    }
    return -1;
}

static void swap(tern_shard_unit *u, tern_module *m, tern_tensor *const *with, int *last)
{
    for (int i = 0; i < m->count; i++) {
        tern_member *member = &m->members[i];
        if (member->child && !member->child->around)
            swap(u, member->child, with, last);
        const int slot = member->tensor && member->kind == MEMBER_PARAMETER
                             ? slot_of(u, member->tensor, last)
                             : -1;
        if (slot < 0)
            continue;
        tern_tensor *old = member->tensor;
        member->tensor = tern_keep(with ? with[slot] : u->slots[slot].x);
        tern_release(old);
    }
}

void tern_shard_swap(tern_shard_unit *u, tern_tensor *const *with)
{
    int last = 0;
    if (u->module && u->n && u->inside != with)
        swap(u, u->module, with, &last);
    u->inside = with;
}
