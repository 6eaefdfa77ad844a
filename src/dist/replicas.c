/* replicas.c -- one module that runs on several devices: its members are replaced by copies, from
 * which gradients flow back as in PyTorch's Broadcast. */
#include "base/addresses.h"
#include "dist/replicas.h"
#include "tensor/storage.h"
#include <stdint.h>
#include <string.h>
#include <tern/ops/collective.h>

/* ---- the module's tensors -------------------------------------------------------------------- */

static tern_status add_members(tern_module *m, void *user)
{
    tern_replicas *r = user;
    for (int i = 0; i < m->count; i++) {
        if (!m->members[i].tensor)
            continue;
        if (r->count == r->capacity) {
            int capacity = r->capacity ? 2 * r->capacity : 32;
            tern_replica_slot *slots = tern_grow(r->slots, sizeof *slots * (size_t)capacity);
            if (!slots)
                return TERN_ERR_MEMORY;
            r->slots = slots;
            r->capacity = capacity;
        }
        r->slots[r->count] = (tern_replica_slot){m, i, r->count, m->members[i].tensor};
        r->count++;
    }
    return TERN_OK;
}

static tern_status find_tied(tern_replicas *r)
{
    tern_addresses seen = {0};
    tern_status status = TERN_OK;
    for (int i = 0; i < r->count && status == TERN_OK; i++) {
        size_t first = 0;
        status = tern_addresses_first(&seen, r->slots[i].x, (size_t)i, &first);
        r->slots[i].first = (int)first;
    }
    tern_addresses_free(&seen);
    return status;
}

static tern_member *member_of(const tern_replica_slot *s)
{
    return s->member < s->module->count ? &s->module->members[s->member] : NULL;
}

tern_status tern_replicas_look(tern_replicas *r, tern_module *module, const char *device)
{
    r->count = 0;
    TERN_TRY(tern_nn_apply(module, add_members, r));
    for (int i = 0; i < r->count; i++)
        if (strcmp(tern_device(r->slots[i].x), device) != 0)
            return tern_fail(
                TERN_ERR_DEVICE,
                "tern_nn_data_parallel: module must have its parameters and buffers on "
                "device %s (the first) but found one of them ('%s' of %s) on %s",
                device, member_of(&r->slots[i])->name, r->slots[i].module->name,
                tern_device(r->slots[i].x));
    return find_tied(r);
}

/* ---- cached copies --------------------------------------------------------------------------- */

static void forget(tern_replica_copy *c)
{
    tern_release(c->of);
    tern_release(c->copy);
    *c = (tern_replica_copy){NULL};
}

static void forget_all(tern_replicas *r)
{
    for (int i = 0; i < r->devices * r->copied; i++)
        forget(&r->copies[i]);
    tern_free(r->copies);
    tern_free(r->sent);
    r->copies = NULL;
    r->sent = NULL;
    r->devices = r->copied = 0;
}

static tern_status reserve(tern_replicas *r, int n)
{
    if (r->devices == n && r->copied == r->count)
        return TERN_OK;
    forget_all(r);
    r->copies = tern_alloc(sizeof *r->copies * ((size_t)n * (size_t)r->count + 1));
    r->sent = tern_alloc(sizeof *r->sent * ((size_t)n * (size_t)r->count + 1));
    if (!r->copies || !r->sent)
        return TERN_ERR_MEMORY;
    r->devices = n;
    r->copied = r->count;
    return TERN_OK;
}

/* Returns whether neither x nor its copy (a buffer that the replica may write) has changed
 * since. */
static bool is_right(const tern_replica_copy *c, const tern_tensor *x, const char *device)
{
    return c->copy && tern_storage_is_shared(c->of, x) && tern_same_shape(c->of, x) &&
           c->version == tern_version(x) && c->copy_version == tern_version(c->copy) &&
           strcmp(tern_device(c->copy), device) == 0;
}

/* The replicas that run in this pass: numbers and devices. */
typedef struct crowd {
    const char *const *device;
    const int *who;
    int n;
} crowd;

static tern_replica_copy *copy_at(const tern_replicas *r, int i, int slot)
{
    return &r->copies[i * r->count + slot];
}

/* Returns whether gradients flow back from the slot's copies, which are then made in each pass. */
static bool is_trained(const tern_replica_slot *s)
{
    return tern_requires_grad(s->x) && tern_is_grad_enabled();
}

/* Returns whether the slot is copied: computed members are made before each run, and tied ones use
 * the copy of the first slot. */
static bool is_sent(const tern_replica_slot *s, int slot)
{
    const tern_member *member = member_of(s);
    return member && member->kind != MEMBER_COMPUTED && s->first == slot;
}

/* Returns whether the replica reads the module's own tensor: one on its device that is no
 * buffer. */
static bool is_own(const tern_replica_slot *s, const char *device)
{
    return member_of(s) && member_of(s)->kind != MEMBER_BUFFER &&
           strcmp(tern_device(s->x), device) == 0;
}

/* Returns whether some replica needs a new copy of the slot's tensor. */
static bool is_wanted(const tern_replicas *r, const crowd *all, int slot)
{
    const tern_replica_slot *s = &r->slots[slot];
    for (int t = 0; t < all->n; t++)
        if (!is_own(s, all->device[t]) &&
            (is_trained(s) || !is_right(copy_at(r, all->who[t], slot), s->x, all->device[t])))
            return true;
    return false;
}

/* Caches a copy of a slot's tensor; `of` is that tensor, detached. On the module's own device only
 * buffers come here, and are cloned. */
static tern_status keep_copy(tern_replicas *r, int i, int slot, tern_tensor *of, tern_tensor *copy)
{
    const tern_replica_slot *s = &r->slots[slot];
    tern_replica_copy *c = copy_at(r, i, slot);
    forget(c);
    if (copy == of && !(copy = tern_clone(of)))
        return TERN_ERR_MEMORY;
    *c =
        (tern_replica_copy){tern_keep(of), tern_keep(copy), tern_version(s->x), tern_version(copy)};
    r->sent[i * r->count + slot] = copy;
    return TERN_OK;
}

static tern_status hand_out(tern_replicas *r, const crowd *all, int slot, tern_tensor *x,
                            tern_tensor *const *out)
{
    tern_status status = TERN_OK;
    for (int t = 0; t < all->n && status == TERN_OK; t++) {
        const int i = all->who[t];
        if (!is_trained(&r->slots[slot])) {
            status = is_own(&r->slots[slot], all->device[t]) ? TERN_OK
                                                             : keep_copy(r, i, slot, x, out[t]);
        } else {
            forget(copy_at(r, i, slot));
            r->sent[i * r->count + slot] = out[t];
        }
    }
    return status;
}

/* Broadcasts all tensors with gradients, or all others without a valid copy, to all replicas in one
 * call. */
static tern_status send(tern_replicas *r, const crowd *all, bool trained)
{
    const uint64_t failures = tern_failures();
    tern_tensor **x = tern_alloc(sizeof *x * (size_t)r->count + 1);
    tern_tensor **out = tern_alloc(sizeof *out * (size_t)r->count * (size_t)all->n + 1);
    int *slots = tern_alloc(sizeof *slots * (size_t)r->count + 1), n = 0;
    tern_status status = x && out && slots ? TERN_OK : TERN_ERR_MEMORY;
    for (int k = 0; k < r->count && status == TERN_OK; k++) {
        const tern_replica_slot *s = &r->slots[k];
        if (!is_sent(s, k) || is_trained(s) != trained || !is_wanted(r, all, k))
            continue;
        x[n] = trained ? s->x : tern_detach(s->x);
        slots[n++] = k;
    }
    if (n)
        status = tern_failed_since(failures);
    if (n && status == TERN_OK)
        status = tern_comm_broadcast(x, n, all->device, all->n, out);
    for (int k = 0; k < n && status == TERN_OK; k++)
        status = hand_out(r, all, slots[k], x[k], out + k * all->n);
    tern_free(slots);
    tern_free(out);
    tern_free(x);
    return status;
}

tern_status tern_replicas_send(tern_replicas *r, const char *const *device, const int64_t *part,
                               int n)
{
    const char *devices[n];
    int who[n];
    crowd all = {devices, who, 0};
    for (int i = 1; i < n; i++)
        if (part[i] > 0) {
            devices[all.n] = device[i];
            who[all.n++] = i;
        }
    TERN_TRY(reserve(r, n));
    if (all.n == 0 || r->count == 0)
        return TERN_OK;
    for (int t = 0; t < all.n; t++)
        for (int k = 0; k < r->count; k++)
            r->sent[who[t] * r->count + k] =
                is_own(&r->slots[k], devices[t]) ? r->slots[k].x : copy_at(r, who[t], k)->copy;
    TERN_TRY(send(r, &all, true));
    return send(r, &all, false);
}

/* ---- swapping members ------------------------------------------------------------------------ */

void tern_replicas_enter(tern_replicas *r, int i)
{
    /* All members get a reference before the first is swapped, so that tern_replicas_leave can
     * restore them. Computed members may have changed since they were listed. */
    for (int k = 0; k < r->count; k++)
        r->slots[k].x = member_of(&r->slots[k]) ? tern_keep(member_of(&r->slots[k])->tensor) : NULL;
    for (int k = 0; k < r->count; k++) {
        const tern_replica_slot *s = &r->slots[k];
        tern_member *member = member_of(s);
        if (!s->x || member->kind == MEMBER_COMPUTED)
            continue;
        tern_tensor *x =
            s->first != k ? member_of(&r->slots[s->first])->tensor : r->sent[i * r->count + k];
        tern_keep(x);
        tern_release(member->tensor);
        member->tensor = x;
    }
}

void tern_replicas_leave(tern_replicas *r)
{
    for (int k = 0; k < r->count; k++) {
        tern_member *member = member_of(&r->slots[k]);
        if (member) {
            tern_release(member->tensor);
            member->tensor = r->slots[k].x;
        } else {
            tern_release(r->slots[k].x);
        }
    }
}

void tern_replicas_free(tern_replicas *r)
{
    forget_all(r);
    tern_free(r->slots);
}
