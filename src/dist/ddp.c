/* ddp.c -- tern_nn_distributed_data_parallel: a module whose gradients are averaged over all
 * ranks. */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "dist/ddp.h"

static const char function[] = "tern_nn_distributed_data_parallel";

static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k);

/* Returns m's tern_ddp, or NULL after an error that names the function. */
static tern_ddp *ddp_of(tern_module *m, const char *name)
{
    TERN_MODULE_GIVEN(m, name);
    if (!m)
        tern_fail_argument_null(name, "ddp");
    else if (m->call != call)
        tern_fail(TERN_ERR_ARGUMENT, "%s: expected a DistributedDataParallel, but got %s", name,
                  m->name);
    return m && m->call == call ? m->data : NULL;
}

/* Runs one shard. Its generator seed depends on the shard's number and not on the rank, and the
 * generator advances by the same amount on all ranks. */
static tern_status run_shard(tern_ddp *d, tern_module *module, tern_tensor *const *in, int n,
                             tern_tensor **out, int k)
{
    const char *device = d->n ? tern_device(d->slots[0].x) : NULL;
    tern_rng_state before, own = {0};
    if (d->no_sync || d->joins)
        return tern_fail(TERN_ERR_STATE, "%s: with .shards = %d steps end by themselves",
                         d->joins ? "TERN_JOIN" : "TERN_NO_SYNC", d->shards);
    for (int i = 0; i < d->n; i++)
        if (tern_grad(d->slots[i].x))
            return tern_fail(TERN_ERR_STATE,
                             "%s: with .shards = %d gradients are zeroed before each step, and "
                             "'%s' has one",
                             function, d->shards, d->slots[i].path);
    TERN_TRY(tern_get_rng_state(device, &before));
    if (d->done == 0)
        d->seed = before;
    const int first = d->own * tern_dist_get_rank(d->group);
    const uint64_t of[3] = {d->seed.seed, d->seed.offset, (uint64_t)(first + d->done)};
    own.seed = tern_hash(TERN_HASH_SEED, of, sizeof of);
    TERN_TRY(tern_set_rng_state(device, &own));
    tern_status status = tern_nn_call(module, in, n, out, k);
    before.offset += (uint64_t)(d->done == d->own - 1 ? d->shards - d->own + 1 : 1);
    tern_status back = tern_set_rng_state(device, &before);
    return status == TERN_OK ? back : status;
}

/* A forward first broadcasts rank 0's buffers, unless no all-reduce came since the last broadcast
 * (PyTorch's forward_sync_buffers). */
static tern_status call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_ddp *d = tern_nn_data(self);
    tern_module *module = self->members[0].child;
    const bool records = tern_is_grad_enabled();
    const bool buffers = d->buffers_due && d->broadcasts && d->done == 0;
    const bool kept = d->n && tern_grad(d->slots[0].x) == d->slots[0].bucket_view && d->result &&
                      tern_version(d->buckets[0].flat) == d->result;
    tern_status sorted = TERN_OK;
    int from = 0;
    if (tern_is_capturing() && (d->joins || d->shards))
        return tern_fail(TERN_ERR_STATE, "%s: a step %s can't be recorded", function,
                         d->joins ? "in TERN_JOIN" : "of .shards");
    if (d->joins)
        TERN_TRY(tern_ddp_go_on(d, buffers, records && !d->no_sync, &from));
    if (buffers)
        TERN_TRY(tern_ddp_broadcast_from(from, module, tern_nn_each_buffer, d->group, "buffers"));
    if (d->due && !d->sorted && records && !d->joins)
        TERN_UNRECORDED
            sorted = tern_ddp_sort_buckets(d);
    TERN_TRY(sorted);
    TERN_TRY(d->shards && records ? run_shard(d, module, in, n, out, k)
                                  : tern_nn_call(module, in, n, out, k));
    d->buffers_due = records && !d->no_sync;
    if (records) {
        d->sums = !d->no_sync;
        d->kept = kept;
    }
    return TERN_OK;
}

static void free_ddp(void *data)
{
    tern_ddp_free_buckets(data);
    tern_free(data);
}

static tern_status set_up(tern_ddp *d, tern_module *module,
                          const tern_distributed_data_parallel_options *o)
{
    const bool half = tern_dtype_is_half(o->compress);
    d->group = o->group;
    d->ranks = tern_dist_get_world_size(o->group);
    d->shards = o->shards;
    d->own = o->shards ? o->shards / d->ranks : 1;
    d->broadcasts = !o->no_broadcast_buffers;
    d->buffers_due = true;
    d->compress = o->compress;
    if (tern_dist_get_rank(o->group) < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: this process is not in the group", function);
    if (o->compress != TERN_DTYPE_DEFAULT && !half)
        return tern_fail(TERN_ERR_DTYPE, "%s: compress is %s, expected float16 or bfloat16",
                         function, tern_dtype_name(o->compress));
    if (!(o->bucket_cap_mb > 0))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: bucket_cap_mb is %g, expected more than 0",
                         function, o->bucket_cap_mb);
    if (o->shards && (o->shards < 0 || o->shards > 1 << DDP_LEVELS || o->shards & (o->shards - 1) ||
                      d->ranks & (d->ranks - 1) || d->own < 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: %d shards for %d ranks: both should be powers of two, of shards at "
                         "least as many",
                         function, o->shards, d->ranks);
    if (o->shards && half)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: the bits of .shards are not those of .compress",
                         function);
    TERN_TRY(
        tern_ddp_compare(function, module, tern_nn_each_parameter, tern_nn_each_buffer, o->group));
    TERN_TRY(tern_ddp_broadcast(module, tern_nn_each_parameter, o->group, "parameters"));
    TERN_TRY(tern_ddp_broadcast(module, tern_nn_each_buffer, o->group, "buffers"));
    return tern_ddp_make_buckets(d, module, o->bucket_cap_mb * (1 << 20));
}

tern_module *tern_nn_distributed_data_parallel(
    tern_module *module, const tern_distributed_data_parallel_options *options)
{
    const tern_distributed_data_parallel_options o = tern_read_distributed_data_parallel(options);
    TERN_MODULE_GIVEN(module, function);
    if (!module) {
        tern_fail_argument_null(function, "module");
        return NULL;
    }
    tern_ddp *d = tern_alloc(sizeof *d);
    tern_module *self = d && set_up(d, module, &o) == TERN_OK
                            ? tern_nn_module_with_call("DistributedDataParallel", call, d)
                            : NULL;
    if (self) {
        d->self = self;
        tern_nn_on_free(self, free_ddp);
        if (tern_nn_add(self, "module", module))
            return self;
        tern_nn_free(self);
        return NULL;
    }
    if (d)
        free_ddp(d);
    if (!module->parent)
        tern_nn_free(module);
    return NULL;
}

tern_status tern_ddp_divide_by(tern_module *ddp, double rows)
{
    tern_ddp *d = ddp_of(ddp, "tern_ddp_divide_by");
    if (!d)
        return TERN_ERR_ARGUMENT;
    if (!(rows >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_ddp_divide_by: rows is %g, expected >= 0", rows);
    d->rows += rows;
    return TERN_OK;
}

int tern_ddp_shards(tern_module *ddp, int *first)
{
    const tern_ddp *d = ddp_of(ddp, "tern_ddp_shards");
    if (d && first)
        *first = d->own * tern_dist_get_rank(d->group);
    return d ? d->own : -1;
}

tern_no_sync_block tern_no_sync_block_enter(tern_module *ddp)
{
    tern_ddp *d = ddp_of(ddp, "TERN_NO_SYNC");
    tern_no_sync_block block = {.active = 1, .saved = d && d->no_sync, .ddp = d ? ddp : NULL};
    if (d)
        d->no_sync = true;
    return block;
}

void tern_no_sync_block_leave(tern_no_sync_block *block)
{
    tern_ddp *d = block->ddp ? ddp_of(block->ddp, "TERN_NO_SYNC") : NULL;
    if (d)
        d->no_sync = block->saved;
}

tern_join_block tern_join_block_enter(tern_module *ddp)
{
    tern_ddp *d = ddp_of(ddp, "TERN_JOIN");
    if (d) {
        d->joins = true;
        d->torn = false;
        d->last = 0;
    }
    return (tern_join_block){.active = 1, .ddp = d ? ddp : NULL};
}

void tern_join_block_leave(tern_join_block *block)
{
    tern_ddp *d = block->ddp ? ddp_of(block->ddp, "TERN_JOIN") : NULL;
    if (!d || !d->joins)
        return;
    d->joins = false;
    if (!d->torn)
        tern_ddp_follow(d);
}
