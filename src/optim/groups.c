/* groups.c -- an optimizer's parameters, sorted by device and dtype.
 *
 * A module may move while it is optimized: then its states and steps follow it into new groups. */
#include "optim/optimizer.h"

static bool moved(const tern_optim_slot *s)
{
    return s->device != tern_device(s->x) || s->dtype != tern_dtype_of(s->x) ||
           s->numel != tern_numel(s->x);
}

void tern_optim_groups_free(tern_optim_group *groups, int n)
{
    for (int i = 0; i < n; i++) {
        tern_multi_free(groups[i].table);
        tern_release(groups[i].steps);
        tern_release(groups[i].numbers);
        tern_release(groups[i].no_skip);
        tern_free(groups[i].slot);
    }
    tern_free(groups);
}

/* How many steps each parameter of an old group made, as its device counted. */
static tern_status read_steps(const tern_optimizer *o, const tern_optim_group *g, int64_t *steps)
{
    int64_t n = tern_multi_chunks(g->table);
    int64_t *chunks = tern_alloc(sizeof *chunks * (size_t)(n + 1));
    if (!chunks)
        return TERN_ERR_MEMORY;
    tern_status status = tern_copy_to_host(g->steps, chunks, sizeof *chunks * (size_t)n);
    for (int i = 0; status == TERN_OK && i < g->count; i++) {
        const tern_optim_slot *s = &o->slots[g->slot[i]];
        bool same = s->numel > 0 && s->numel == tern_numel(s->x);
        steps[g->slot[i]] = same ? chunks[tern_multi_first_chunk(g->table, i)] : 0;
    }
    tern_free(chunks);
    return status;
}

static tern_status add_to_group(tern_optim_group *groups, int *n, const tern_optimizer *o, int i)
{
    tern_tensor *x = o->slots[i].x;
    int k = 0;
    while (k < *n && (tern_device(o->slots[groups[k].slot[0]].x) != tern_device(x) ||
                      tern_dtype_of(o->slots[groups[k].slot[0]].x) != tern_dtype_of(x)))
        k++;
    if (k == *n) {
        groups[k].slot = tern_alloc(sizeof(int) * (size_t)o->n);
        if (!groups[k].slot)
            return TERN_ERR_MEMORY;
        ++*n;
    }
    groups[k].slot[groups[k].count++] = i;
    return TERN_OK;
}

/* The group's steps, each repeated for its parameter's chunks. */
static tern_status make_steps(tern_optim_group *g, const char *device, const int64_t *steps)
{
    int64_t n = tern_multi_chunks(g->table);
    int64_t *chunks = tern_alloc(sizeof *chunks * (size_t)(n + 1));
    if (!chunks)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < g->count; i++)
        for (int64_t c = tern_multi_first_chunk(g->table, i),
                     end = tern_multi_first_chunk(g->table, i + 1);
             c < end; c++)
            chunks[c] = steps[g->slot[i]];
    g->steps = tern_keep(tern_from_data(chunks, TERN_SHAPE(n), TERN_I64, device));
    tern_free(chunks);
    return g->steps ? TERN_OK : tern_last_status();
}

static tern_status furnish(const tern_optimizer *o, tern_optim_group *g, const int64_t *steps)
{
    tern_tensor *first = o->slots[g->slot[0]].x;
    tern_dtype dtype = tern_dtype_of(first) == TERN_F64 ? TERN_F64 : TERN_F32;
    const char *device = tern_device(first);
    tern_tensor **x = tern_alloc(sizeof *x * (size_t)g->count);
    for (int i = 0; x && i < g->count; i++)
        x[i] = o->slots[g->slot[i]].x;
    g->table = x ? tern_multi_new(x, g->count) : NULL;
    tern_free(x);
    if (!g->table)
        return tern_last_status();
    g->numbers = tern_keep(tern_zeros(TERN_SHAPE(OPTIM_NUMBERS), dtype, device));
    g->no_skip = tern_keep(tern_zeros(TERN_SHAPE(1), TERN_F32, device));
    if (!g->numbers || !g->no_skip)
        return tern_last_status();
    return make_steps(g, device, steps);
}

/* A state on x's device; dropped when x changed its size. */
static tern_status move_states(tern_optimizer *o)
{
    for (int i = 0; i < o->n; i++) {
        tern_optim_slot *s = &o->slots[i];
        tern_dtype dtype = tern_dtype_of(s->x) == TERN_F64 ? TERN_F64 : TERN_F32;
        for (int k = 0; k < o->n_states; k++) {
            if (!s->state[k])
                continue;
            bool kept = tern_numel(s->state[k]) == tern_numel(s->x);
            tern_tensor *there = kept ? tern_to(s->state[k], tern_device(s->x)) : NULL;
            there = there ? tern_to_dtype(there, dtype) : NULL;
            if (kept && !there)
                return tern_last_status();
            tern_keep(there);
            tern_release(s->state[k]);
            s->state[k] = there;
        }
    }
    return TERN_OK;
}

static void settle(tern_optimizer *o)
{
    for (int k = 0; k < o->n_groups; k++)
        for (int i = 0; i < o->groups[k].count; i++) {
            tern_optim_slot *s = &o->slots[o->groups[k].slot[i]];
            s->device = tern_device(s->x);
            s->dtype = tern_dtype_of(s->x);
            s->numel = tern_numel(s->x);
            s->group = k;
            s->row = i;
        }
}

static tern_status build(tern_optimizer *o, tern_optim_group *groups, int *n, int64_t *steps)
{
    for (int k = 0; k < o->n_groups; k++)
        TERN_TRY(read_steps(o, &o->groups[k], steps));
    for (int i = 0; i < o->n; i++)
        TERN_TRY(add_to_group(groups, n, o, i));
    for (int k = 0; k < *n; k++)
        TERN_TRY(furnish(o, &groups[k], steps));
    return move_states(o);
}

tern_status tern_optim_regroup(tern_optimizer *o)
{
    bool any = !o->groups;
    for (int i = 0; i < o->n; i++)
        any = any || moved(&o->slots[i]);
    if (!any)
        return TERN_OK;
    int n = 0;
    tern_optim_group *groups = tern_alloc(sizeof *groups * (size_t)o->n);
    int64_t *steps = tern_alloc(sizeof *steps * (size_t)o->n);
    tern_status status = groups && steps ? build(o, groups, &n, steps) : TERN_ERR_MEMORY;
    tern_free(steps);
    if (status != TERN_OK) {
        tern_optim_groups_free(groups, n);
        return status;
    }
    tern_optim_groups_free(o->groups, o->n_groups);
    o->groups = groups;
    o->n_groups = n;
    settle(o);
    return TERN_OK;
}
