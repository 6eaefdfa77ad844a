/* attention.c -- attention on the host: the scores of a few queries and keys at a time, which never
 * leave the cache (attention_tile.h). */
#include "device/cpu/cpu.h"
#include "device/device.h"
#include "shapes.h"
#include "base/parallel.h"

/* WIDEST: wider heads leave the cache. FEWEST_QUERIES: fewer do not fill a panel's lanes. */
enum { WIDEST = 256, FEWEST_QUERIES = 16 };

static tern_status attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                  bool *taken)
{
    (void)place, (void)scratch;
    *taken = !a->gradient && a->block->drop == 0 && a->dtype == TERN_F32 && a->width <= WIDEST &&
             a->value_width <= WIDEST && a->block->queries >= FEWEST_QUERIES;
    return TERN_OK;
}

static tern_status attention(tern_place *place, const tern_attention *a, bool *taken)
{
    (void)taken;
    const tern_attention_block *b = a->block;
    static _Atomic(void *) found;
    int parts = tern_parallel_parts(b->count[0] * b->count[1] * b->queries * b->keys *
                                    (a->width + a->value_width) / TERN_CPU_PER_OPERATION);
    int64_t part_scratch =
        TERN_ATTENTION_LANES *
        (TERN_ATTENTION_PANELS * (a->width + a->value_width) + TERN_ATTENTION_KEYS);
    tern_block *scratch = tern_block_alloc(place, (size_t)(part_scratch * parts) * sizeof(float),
                                           "tern_scaled_dot_product_attention");
    if (!scratch)
        return tern_last_status();
    tern_host_attention g = {.count = {b->count[0], b->count[1]},
                             .queries = b->queries,
                             .keys = b->keys,
                             .width = a->width,
                             .value_width = a->value_width,
                             .before = b->before,
                             .after = b->after,
                             .stride = {b->stride[0], b->stride[1], b->stride[2], b->stride[3]},
                             .flags = b->flags,
                             .scale = a->scale,
                             .softcap = a->softcap,
                             .q = tern_cpu_matrix(&a->q, sizeof(float)),
                             .k = tern_cpu_matrix(&a->k, sizeof(float)),
                             .v = tern_cpu_matrix(&a->v, sizeof(float)),
                             .out = tern_cpu_matrix(&a->out, sizeof(float)),
                             .sums = tern_cpu_at(&a->sums),
                             .mask = tern_cpu_at(&a->mask),
                             .scratch = scratch->buffer.host,
                             .part_scratch = part_scratch};
    tern_status status = tern_cpu_run_product(place, &found, "attention", TERN_F32, &g, parts);
    tern_block_free(scratch);
    return status;
}

const tern_vendor tern_cpu_vendor = {
    .convolution = tern_cpu_convolution, .attention_plan = attention_plan, .attention = attention};
