/* product_bf16.c -- products of bfloat16 by oneDNN, on processors with instructions for them
 * (AVX512-BF16, AMX): twice the speed of float32 and more. A primitive is made for every shape, and
 * kept until another shape replaces it. */
#include "base/memory.h"
#include "base/lock.h"
#include "device/cpu/cpu.h"
#include "device/cpu/onednn.h"
#include "device/cpu/product.h"
#ifdef TERN_ONEDNN_PRIMITIVES
#include <string.h>

enum { PLACES = 512 };

typedef struct plan {
    tern_bf16_shape shape;
    dnnl_primitive_t run; /* NULL if oneDNN does not support the shape */
    dnnl_memory_desc_t a, b, c, bias, scratch;
    int references; /* one of the table, and one of each run */
} plan;

static struct {
    tern_mutex lock;
    plan *place[PLACES];
} cache = {.lock = TERN_MUTEX_INIT};

static bool describe(dnnl_memory_desc_t *d, int64_t rows, int64_t columns, int64_t row,
                     int64_t column)
{
    return tern_dnnl.memory_desc_init_by_strides(d, 2, (dnnl_dims_t){rows, columns}, dnnl_bf16,
                                                 (dnnl_dims_t){row, column}) == dnnl_success;
}

static void plan_make(plan *p)
{
    const tern_bf16_shape *s = &p->shape;
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attributes;
    dnnl_primitive_desc_t run = NULL;
    if (!describe(&p->a, s->m, s->k, s->a_row, s->a_col) ||
        !describe(&p->b, s->k, s->n, s->b_row, s->b_col) ||
        !describe(&p->c, s->m, s->n, s->c_row, 1) || !describe(&p->bias, 1, s->n, s->n, 1))
        return;
    if (tern_dnnl.matmul_desc_init(&desc, &p->a, &p->b, s->has_bias ? &p->bias : NULL, &p->c) !=
            dnnl_success ||
        tern_dnnl.primitive_attr_create(&attributes) != dnnl_success)
        return;
    bool ok = tern_dnnl.primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user) ==
              dnnl_success;
    const float alpha = (float)s->alpha;
    if (alpha != 1)
        ok = ok &&
             tern_dnnl.primitive_attr_set_output_scales(attributes, 1, 0, &alpha) == dnnl_success;
    if (ok && tern_dnnl.primitive_desc_create(&run, &desc, attributes, tern_onednn_engine(),
                                              NULL) == dnnl_success) {
        p->scratch = *tern_dnnl.primitive_desc_query_md(run, dnnl_query_scratchpad_md, 0);
        if (tern_dnnl.primitive_create(&p->run, run) != dnnl_success)
            p->run = NULL;
        tern_dnnl.primitive_desc_destroy(run);
    }
    tern_dnnl.primitive_attr_destroy(attributes);
}

/* Drops a reference, the last of which frees the plan. The caller holds the lock. */
static void let_go(plan *p)
{
    if (!p || --p->references > 0)
        return;
    if (p->run)
        tern_dnnl.primitive_destroy(p->run);
    tern_free(p);
}

static size_t place_of(const tern_bf16_shape *s)
{
    uint64_t h = 0, word[sizeof *s / sizeof(uint64_t)];
    memcpy(word, s, sizeof word);
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        h = (h ^ word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(h >> 40) % PLACES;
}

static plan *plan_for(const tern_bf16_shape *shape)
{
    plan **place = &cache.place[place_of(shape)], *p;
    tern_mutex_lock(&cache.lock);
    p = *place;
    if (!p || memcmp(&p->shape, shape, sizeof *shape) != 0) {
        if ((p = tern_alloc(sizeof *p))) {
            memset(p, 0, sizeof *p);
            p->shape = *shape;
            p->references = 1;
            plan_make(p);
            let_go(*place);
            *place = p;
        }
    }
    if (p)
        p->references++;
    tern_mutex_unlock(&cache.lock);
    return p;
}

bool tern_bf16_product(const tern_bf16_shape *shape, const void *a, const void *b, void *c,
                       const void *bias)
{
    plan *p = tern_onednn_engine() ? plan_for(shape) : NULL;
    if (!p)
        return false;
    dnnl_stream_t stream;
    void *from[3], *scratch = NULL;
    memcpy(from, (const void *[]){a, b, bias}, sizeof from);
    bool ok = p->run && tern_dnnl.stream_create(&stream, tern_onednn_engine(),
                                                dnnl_stream_default_flags) == dnnl_success;
    if (ok) {
        size_t bytes = tern_dnnl.memory_desc_get_size(&p->scratch);
        if (bytes)
            ok = (scratch = tern_alloc_aligned(bytes));
        const tern_onednn_argument arguments[] = {
            {DNNL_ARG_SRC, &p->a, from[0]},     {DNNL_ARG_WEIGHTS, &p->b, from[1]},
            {DNNL_ARG_DST, &p->c, c},           {DNNL_ARG_SCRATCHPAD, &p->scratch, scratch},
            {DNNL_ARG_BIAS, &p->bias, from[2]},
        };
        ok = ok && tern_onednn_run(p->run, stream, arguments, shape->has_bias ? 5 : 4);
        tern_dnnl.stream_destroy(stream);
        tern_free(scratch);
    }
    tern_mutex_lock(&cache.lock);
    let_go(p);
    tern_mutex_unlock(&cache.lock);
    return ok;
}

static bool fast;
static void ask(void)
{
#ifdef __x86_64__
    const unsigned wanted = dnnl_cpu_isa_avx512_core_bf16;
    const char *level = tern_cpu_level();
    fast = level && strcmp(level, "x86-64-v4") == 0 && tern_onednn_is_there() &&
           ((unsigned)tern_dnnl.get_effective_cpu_isa() & wanted) == wanted;
#endif
}

bool tern_bf16_is_fast(void)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_call_once(&once, ask);
    return fast;
}
#else
bool tern_bf16_product(const tern_bf16_shape *shape, const void *a, const void *b, void *c,
                       const void *bias)
{
    (void)shape, (void)a, (void)b, (void)c, (void)bias;
    return false;
}
bool tern_bf16_is_fast(void)
{
    return false;
}
#endif
