/* group_tensors.c -- sorts an optimizer's parameters by group, device and dtype (PyTorch's
 * _group_tensors_by_device_and_dtype).
 *
 * If a module is moved while it is optimized, states and step counts move to new batches. */
#include "optim/optimizer.h"

tern_memory_format tern_optim_format(const tern_tensor *x)
{
    const int format = tern_is_contiguous(x) ? 0 : tern_dim(x) - 3;
    return (format == TERN_CHANNELS_LAST || format == TERN_CHANNELS_LAST_3D) &&
                   tern_is_contiguous_format(x, (tern_memory_format)format)
               ? (tern_memory_format)format
               : TERN_CONTIGUOUS_FORMAT;
}

/* Returns whether the parameter's device, dtype, size or memory format has changed since its batch
 * was made. */
static bool moved(const tern_optim_slot *s)
{
    return s->batch < 0 || s->device != tern_device(s->x) || s->dtype != tern_dtype_of(s->x) ||
           s->numel != tern_numel(s->x) || s->format != tern_optim_format(s->x);
}

void tern_optim_batches_free(tern_optim_batch *batches, int n)
{
    for (int i = 0; i < n; i++) {
        tern_foreach_free(batches[i].table);
        tern_release(batches[i].steps);
        tern_release(batches[i].values);
        tern_release(batches[i].no_skip);
        tern_free(batches[i].columns.target);
        tern_free(batches[i].slot);
    }
    tern_free(batches);
}

/* Reads each parameter's number of steps in an old batch from the device. */
static tern_status read_steps(const tern_optimizer *o, const tern_optim_batch *g, int64_t *steps)
{
    int64_t n = tern_foreach_chunks(g->table);
    int64_t *chunks = tern_alloc(sizeof *chunks * (size_t)(n + 1));
    if (!chunks)
        return TERN_ERR_MEMORY;
    tern_status status = tern_copy_to_host(g->steps, chunks, sizeof *chunks * (size_t)n);
    for (int i = 0; status == TERN_OK && i < g->count; i++) {
        const tern_optim_slot *s = &o->slots[g->slot[i]];
        bool same = s->numel > 0 && s->numel == tern_numel(s->x);
        steps[g->slot[i]] = same ? chunks[tern_foreach_first_chunk(g->table, i)] : 0;
    }
    tern_free(chunks);
    return status;
}

/* A batch is one launch: one parameter group, device and dtype. */
static bool share_batch(const tern_optim_slot *a, const tern_optim_slot *b)
{
    return a->group == b->group && tern_device(a->x) == tern_device(b->x) &&
           tern_dtype_of(a->x) == tern_dtype_of(b->x);
}

/* Adds parameter i to its batch, or to a new one. */
static tern_status add_to_batch(tern_optim_batch *batches, int *n, const tern_optimizer *o, int i)
{
    const tern_optim_slot *s = &o->slots[i];
    int k = 0;
    while (k < *n && !share_batch(&o->slots[batches[k].slot[0]], s))
        k++;
    if (k == *n) {
        batches[k].slot = tern_alloc(sizeof(int) * (size_t)o->n);
        if (!batches[k].slot)
            return TERN_ERR_MEMORY;
        ++*n;
    }
    batches[k].slot[batches[k].count++] = i;
    return TERN_OK;
}

/* Makes the batch's step counts: each parameter's, repeated for its chunks. */
static tern_status make_steps(tern_optim_batch *g, const char *device, const int64_t *steps)
{
    int64_t n = tern_foreach_chunks(g->table);
    int64_t *chunks = tern_alloc(sizeof *chunks * (size_t)(n + 1));
    if (!chunks)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < g->count; i++)
        for (int64_t c = tern_foreach_first_chunk(g->table, i),
                     end = tern_foreach_first_chunk(g->table, i + 1);
             c < end; c++)
            chunks[c] = steps[g->slot[i]];
    g->steps = tern_keep(tern_from_data(chunks, TERN_SHAPE(n), TERN_I64, device));
    tern_free(chunks);
    return g->steps ? TERN_OK : tern_last_status();
}

/* Allocates the columns of a launch. */
static tern_status make_columns(tern_optim_columns *c, int n)
{
    tern_tensor **memory = tern_alloc(sizeof *memory * (size_t)n * (3 + OPTIM_STATES));
    if (!memory)
        return TERN_ERR_MEMORY;
    *c = (tern_optim_columns){.target = memory, .x = memory + n, .grad = memory + 2 * n};
    for (int k = 0; k < OPTIM_STATES; k++)
        c->state[k] = memory + (3 + k) * n;
    return TERN_OK;
}

/* Makes the batch's table of chunks, and on the device its step counts and options: float32 for
 * half precision parameters. */
static tern_status init_batch(const tern_optimizer *o, tern_optim_batch *g, const int64_t *steps)
{
    tern_tensor *first = o->slots[g->slot[0]].x;
    tern_dtype dtype = tern_dtype_of(first) == TERN_F64 ? TERN_F64 : TERN_F32;
    const char *device = tern_device(first);
    tern_tensor **x = tern_alloc(sizeof *x * (size_t)g->count);
    for (int i = 0; x && i < g->count; i++)
        x[i] = o->slots[g->slot[i]].x;
    g->table = x ? tern_foreach_new(x, g->count) : NULL;
    tern_free(x);
    if (!g->table)
        return tern_last_status();
    g->values = tern_keep(tern_zeros(TERN_SHAPE(o->kind->n_values), dtype, device));
    g->no_skip = tern_keep(tern_zeros(TERN_SHAPE(1), TERN_F32, device));
    if (!g->values || !g->no_skip)
        return tern_last_status();
    TERN_TRY(make_columns(&g->columns, g->count));
    return make_steps(g, device, steps);
}

/* Returns a state on its parameter's device and in its memory format. */
static tern_tensor *moved_state(tern_tensor *state, const tern_tensor *x)
{
    tern_dtype dtype = tern_dtype_of(x) == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_tensor *there = tern_to(tern_reshape(state, tern_shape_of(x)), tern_device(x));
    there = tern_to_dtype(there, dtype);
    return there ? tern_optim_in_format(there, tern_optim_format(x)) : NULL;
}

/* Moves all states to their parameters, or none after an error. A state whose parameter has another
 * size is dropped and starts at zero. */
static tern_status move_states(tern_optimizer *o)
{
    tern_tensor *(*there)[OPTIM_STATES] = tern_alloc(sizeof *there * (size_t)o->n);
    tern_status status = there ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < o->n && status == TERN_OK; i++)
        for (int k = 0; k < OPTIM_STATES && status == TERN_OK; k++) {
            const tern_optim_slot *s = &o->slots[i];
            if (s->state[k] && tern_numel(s->state[k]) == tern_numel(s->x) &&
                !(there[i][k] = moved_state(s->state[k], s->x)))
                status = tern_last_status();
        }
    for (int i = 0; i < o->n && status == TERN_OK; i++) {
        o->slots[i].made = 0;
        for (int k = 0; k < OPTIM_STATES; k++) {
            tern_keep(there[i][k]);
            tern_release(o->slots[i].state[k]);
            o->slots[i].state[k] = there[i][k];
        }
    }
    tern_free(there);
    return status;
}

/* Records in each slot the parameter's device, dtype, size and format, and its batch and row. */
static void note_batches(tern_optimizer *o)
{
    for (int k = 0; k < o->n_batches; k++)
        for (int i = 0; i < o->batches[k].count; i++) {
            tern_optim_slot *s = &o->slots[o->batches[k].slot[i]];
            s->device = tern_device(s->x);
            s->dtype = tern_dtype_of(s->x);
            s->numel = tern_numel(s->x);
            s->format = tern_optim_format(s->x);
            s->batch = k;
            s->row = i;
        }
}

/* Step counts are read before the old batches are freed, as only the device has them. */
static tern_status build(tern_optimizer *o, tern_optim_batch *batches, int *n, int64_t *steps)
{
    for (int k = 0; k < o->n_batches; k++)
        TERN_TRY(read_steps(o, &o->batches[k], steps));
    for (int i = 0; i < o->n; i++)
        TERN_TRY(add_to_batch(batches, n, o, i));
    for (int k = 0; k < *n; k++)
        TERN_TRY(init_batch(o, &batches[k], steps));
    return move_states(o);
}

tern_status tern_optim_regroup(tern_optimizer *o)
{
    bool any = !o->batches;
    for (int i = 0; i < o->n; i++)
        any = any || moved(&o->slots[i]);
    if (!any)
        return TERN_OK;
    int n = 0;
    tern_optim_batch *batches = tern_alloc(sizeof *batches * (size_t)o->n);
    int64_t *steps = tern_alloc(sizeof *steps * (size_t)o->n);
    tern_status status = batches && steps ? TERN_OK : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        TERN_UNRECORDED /* step counts must survive replays */
            TERN_SCOPE
                status = build(o, batches, &n, steps);
    tern_free(steps);
    if (status != TERN_OK) {
        tern_optim_batches_free(batches, n);
        return status;
    }
    tern_optim_batches_free(o->batches, o->n_batches);
    o->batches = batches;
    o->n_batches = n;
    note_batches(o);
    return TERN_OK;
}
