/* replicas.c -- one module run on several devices: its members are swapped for copies of them, through which gradients
 * come back to them, as by PyTorch's Broadcast. */
#include "base/memory.h"
#include "dist/replicas.h"
#include "tensor/storage.h"
#include <stdint.h>
#include <string.h>

/* ---- what there is --------------------------------------------------------------------------- */

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

/* first, by an open table of the tensors' addresses. */
static tern_status find_tied(tern_replicas *r)
{
    size_t size = 64;
    while (size < 2 * (size_t)r->count)
        size *= 2;
    int *table = tern_alloc(sizeof *table * size); /* numbers from 1 on */
    if (!table)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < r->count; i++) {
        size_t at = (uintptr_t)r->slots[i].x / sizeof(void *) * 0x9e3779b1u % size;
        while (table[at] && r->slots[table[at] - 1].x != r->slots[i].x)
            at = (at + 1) % size;
        if (table[at])
            r->slots[i].first = table[at] - 1;
        else
            table[at] = i + 1;
    }
    tern_free(table);
    return TERN_OK;
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

/* ---- copies that stay -------------------------------------------------------------------------- */

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
    r->copies = NULL;
    r->devices = r->copied = 0;
}

static tern_status make_room(tern_replicas *r, int n)
{
    if (r->devices == n && r->copied == r->count)
        return TERN_OK;
    forget_all(r);
    r->copies = tern_alloc(sizeof *r->copies * ((size_t)n * (size_t)r->count + 1));
    if (!r->copies)
        return TERN_ERR_MEMORY;
    r->devices = n;
    r->copied = r->count;
    return TERN_OK;
}

/* Neither x nor the copy, a buffer that the replica may have written, is another since. */
static bool is_right(const tern_replica_copy *c, const tern_tensor *x, const char *device)
{
    return c->copy && tern_storage_is_shared(c->of, x) && tern_same_shape(c->of, x) &&
           c->version == tern_version(x) && c->copy_version == tern_version(c->copy) &&
           strcmp(tern_device(c->copy), device) == 0;
}

static tern_tensor *lasting_copy(tern_replica_copy *c, tern_tensor *x, const char *device)
{
    if (is_right(c, x, device))
        return c->copy;
    tern_tensor *of = tern_detach(x);
    bool here = strcmp(tern_device(x), device) == 0;
    tern_tensor *copy = here ? tern_clone(of) : tern_to(of, device);
    forget(c);
    if (!of || !copy)
        return NULL;
    *c = (tern_replica_copy){tern_keep(of), tern_keep(copy), tern_version(x), tern_version(copy)};
    return copy;
}

/* ---- in and out -------------------------------------------------------------------------------- */

static tern_tensor *replacement(tern_replicas *r, int i, int slot, const char *device, bool moves)
{
    const tern_replica_slot *s = &r->slots[slot];
    const tern_member *member = member_of(s);
    tern_replica_copy *c = &r->copies[i * r->count + slot];
    if (s->first != slot)
        return member_of(&r->slots[s->first])->tensor;
    if (member->kind == MEMBER_COMPUTED || (!moves && member->kind != MEMBER_BUFFER))
        return s->x; /* made anew before each run; the module's own */
    if (!tern_requires_grad(s->x) || !tern_is_grad_enabled())
        return lasting_copy(c, s->x, device);
    forget(c);
    return tern_to(s->x, device);
}

tern_status tern_replicas_enter(tern_replicas *r, int i, int n, const char *device,
                                const char *home)
{
    const uint64_t failures = tern_failures();
    const bool moves = strcmp(device, home) != 0;
    /* All are held before the first is swapped, so that leave may put all of them back; computed members have
     * changed since they were looked at. */
    for (int k = 0; k < r->count; k++)
        r->slots[k].x = member_of(&r->slots[k]) ? tern_keep(member_of(&r->slots[k])->tensor) : NULL;
    TERN_TRY(make_room(r, n));
    for (int k = 0; k < r->count; k++) {
        tern_member *member = member_of(&r->slots[k]);
        tern_tensor *x = r->slots[k].x ? replacement(r, i, k, device, moves) : NULL;
        if (!r->slots[k].x)
            continue;
        if (!x)
            return tern_failed_since(failures);
        tern_keep(x);
        tern_release(member->tensor);
        member->tensor = x;
    }
    return TERN_OK;
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
