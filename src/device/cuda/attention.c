/* attention.c -- attention through cuDNN's graphs, for training steps that are large enough.
 *
 * The plan for a shape is kept: making one takes cuDNN half a second, as it compiles a kernel. So
 * forward alone, where each length of a prompt would be another shape, is left to tern's own
 * kernels (attention_own.c). So are small problems, as cuDNN's gradient has more launches than
 * tern's. */
#include "base/dtype.h"
#include "base/lock.h"
#include "base/env.h"
#include "base/warning.h"
#include "device/cuda/dnn_attention.h"
#include "types_host.h"
#include "shapes.h"
#include <stdlib.h>
#include <string.h>
#include <tern/backends.h>

/* From compute capability 9.0 on cuDNN's engines use wgmma and TMA, which tern's kernel does not.
 * FEWEST: the log2 of the number of multiplications from which on this saves more time than two
 * launches take. */
enum { PLANS = 64, FIRST_COMPUTE = 90, FEWEST = 29, ALIGNMENT = 16 };

struct tern_cuda_attention_state {
    struct {
        tern_dnn_plan plan;
        tern_dnn_problem of;
    } plans[PLANS];
};

static uint64_t address(const tern_matrix *m)
{
    return (uint64_t)(uintptr_t)m->buffer->handle + 2 * (uint64_t)m->at;
}

/* Lists the matrices in the order of the problem's strides. Returns their number; a problem without
 * gradient has no matrices of gradients. */
static int list(const tern_attention *a, const tern_matrix *matrices[TERN_DNN_MATRICES])
{
    const tern_matrix *all[] = {&a->q, &a->k, &a->v, &a->out, &a->dout, &a->dq, &a->dk, &a->dv};
    memcpy(matrices, all, sizeof all);
    return a->gradient ? TERN_DNN_MATRICES : TERN_DNN_DOUT;
}

/* Sets the strides of a matrix. A dim of size 1 gets the stride of a contiguous tensor, as its own
 * stride is never used. Returns false if cuDNN can't read this layout. */
static bool lay(const tern_matrix *m, const int64_t count[2], int64_t rows, int64_t columns,
                int64_t strides[3])
{
    const int64_t sizes[] = {count[0], count[1], rows}, from[] = {m->batch[0], m->batch[1], m->row};
    int64_t dense = columns;
    bool fits = m->col == 1 && address(m) % ALIGNMENT == 0;
    for (int d = 2; d >= 0; d--) {
        strides[d] = sizes[d] == 1 ? dense : from[d];
        dense = strides[d] * sizes[d] > dense ? strides[d] * sizes[d] : dense;
        fits = fits && strides[d] > 0 && 2 * strides[d] % ALIGNMENT == 0;
    }
    return fits;
}

/* Fills the problem. Returns false if cuDNN can't express the attention, or would not give zero for
 * a query without keys. */
static bool describe(const tern_attention *a, tern_dnn_problem *p)
{
    const tern_attention_block *b = a->block;
    const tern_matrix *matrices[TERN_DNN_MATRICES];
    int n = list(a, matrices);
    int64_t all = b->queries + b->keys;
    memset(p, 0, sizeof *p); /* the padding too, as all bytes are compared */
    p->count[0] = b->count[0], p->count[1] = b->count[1];
    p->queries = b->queries, p->keys = b->keys;
    p->width = a->width, p->value_width = a->value_width;
    p->dtype = (int32_t)a->dtype;
    p->gradient = a->gradient;
    p->causal = b->flags != 0;
    p->lower_right = p->causal && b->after != 0;
    bool fits = (b->flags == 0 || b->flags == TERN_ATTENTION_BAND) && a->softcap == 0 &&
                b->drop == 0 && tern_dtype_is_half(a->dtype) && all < INT32_MAX;
    if (p->causal)
        fits = fits && b->before >= b->queries - 1 &&
               (b->after == 0 || (b->after == b->keys - b->queries && b->after > 0));
    for (int i = 0; i < n; i++) {
        bool of_keys = i == TERN_DNN_K || i == TERN_DNN_V || i == TERN_DNN_DK || i == TERN_DNN_DV;
        bool wide = i == TERN_DNN_Q || i == TERN_DNN_K || i == TERN_DNN_DQ || i == TERN_DNN_DK;
        fits = fits && lay(matrices[i], b->count, of_keys ? b->keys : b->queries,
                           wide ? a->width : a->value_width, p->strides[i]);
    }
    return fits;
}

/* Returns whether cuDNN is to be tried. TERN_CUDNN_ATTENTION: 1 for all that cuDNN takes, 0 for
 * none, to compare cuDNN with tern's kernels. */
static bool is_wanted(tern_place *place, const tern_attention *a)
{
    const tern_attention_block *b = a->block;
    if (!tern_cuda.has_graph || !tern_backends_cudnn_is_enabled() ||
        (a->gradient && a->deterministic) || !tern_env_flag(TERN_ENV_CUDNN_ATTENTION, true))
        return false;
    double products = (double)(b->count[0] * b->count[1]) * (double)b->queries * (double)b->keys *
                      (double)(a->width + a->value_width);
    return tern_env(TERN_ENV_CUDNN_ATTENTION) ||
           ((a->gradient || a->trains) && products >= 1 << FEWEST &&
            tern_cuda_state_of(place)->compute >= FIRST_COMPUTE);
}

/* Sets *found to the plan: NULL if no plan can be kept, not usable if cuDNN refuses the problem,
 * with cuDNN's code in the plan's graph. Any other failure is an error, and the next call tries
 * again. */
static tern_status find_plan(tern_place *place, const tern_dnn_problem *p, tern_dnn_plan **found)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    cudnnHandle_t handle;
    TERN_TRY(tern_cuda_dnn_open(place, &handle));
    if (!device->attention && !(device->attention = tern_alloc(sizeof *device->attention)))
        return TERN_ERR_MEMORY;
    tern_dnn_plan *x = tern_dnn_plan_of(device->attention->plans, PLANS, p, sizeof *p);
    *found = x;
    if (!x || x->used)
        return TERN_OK;
    x->used = true;
    x->graph.handle = handle;
    tern_dnn_attention(&x->graph, p);
    cudnnStatus_t code = x->graph.code;
    x->usable = !code;
    if (!code || tern_cuda_dnn_refuses(code))
        return TERN_OK;
    const char *call = x->graph.call;
    tern_dnn_clear(&x->graph);
    x->used = false;
    return tern_fail(TERN_ERR_DEVICE, "%s: describing an attention to cuDNN: %s gave %s (%u)",
                     tern_place_info(place)->device, call, tern_cuda.cudnnGetErrorString(code),
                     code);
}

/* Warns that cuDNN refused. The caller does not hold the lock, as the program may handle
 * warnings. */
static void report(tern_place *place, const tern_attention *a, cudnnStatus_t code)
{
    tern_warn("slow", "tern_scaled_dot_product_attention",
              "cuDNN takes no %s of %lld queries and %lld keys, %lld wide, on %s (%s, %u): tern's "
              "own kernel computes it",
              a->gradient ? "gradient of an attention" : "attention", (long long)a->block->queries,
              (long long)a->block->keys, (long long)a->width, tern_place_info(place)->device,
              tern_cuda.cudnnGetErrorString(code), code);
}

tern_status tern_cuda_attention_plan(tern_place *place, tern_attention *a, size_t *scratch,
                                     bool *taken)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    tern_dnn_problem problem;
    tern_dnn_plan *p = NULL;
    *taken = false;
    if (!is_wanted(place, a) || !describe(a, &problem))
        return tern_cuda_attention_own_plan(place, a, scratch, taken);
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&device->dnn_lock);
    tern_status status = find_plan(place, &problem, &p);
    cudnnStatus_t code = status == TERN_OK && p ? p->graph.code : 0;
    *taken = status == TERN_OK && p && p->usable;
    if (*taken)
        *scratch = tern_dnn_attention_scratch(&p->graph, &problem);
    tern_mutex_unlock(&device->dnn_lock);
    if (code)
        report(place, a, code);
    a->way = TERN_MATRIX_NONE;
    return status != TERN_OK || *taken ? status
                                       : tern_cuda_attention_own_plan(place, a, scratch, taken);
}

tern_status tern_cuda_attention(tern_place *place, const tern_attention *a, bool *taken)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    const tern_matrix *matrices[TERN_DNN_MATRICES];
    tern_dnn_problem problem;
    tern_dnn_plan *p = NULL;
    tern_dnn_places places = {.sums = (char *)a->sums.buffer->handle + 4 * a->sums.at,
                              .scratch = a->scratch ? a->scratch->handle : NULL,
                              .scale = (float)a->scale};
    if (a->way != TERN_MATRIX_NONE)
        return tern_cuda_attention_own(place, a);
    describe(a, &problem);
    for (int i = list(a, matrices) - 1; i >= 0; i--)
        places.matrices[i] = (void *)(uintptr_t)address(matrices[i]);
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&device->dnn_lock);
    tern_status status = find_plan(place, &problem, &p);
    cudnnStatus_t code = status != TERN_OK || !p ? 0
                         : p->usable             ? tern_dnn_attend(&p->graph, &problem, &places)
                                                 : p->graph.code;
    if (p)
        p->recorded |= tern_thread.recording_stream != NULL;
    *taken &= p != NULL;
    if (tern_cuda_dnn_refuses(code)) { /* cuDNN refuses a plan that its heuristics named */
        p->graph.code = code;
        *taken = p->usable = false;
    } else if (status == TERN_OK)
        status = tern_cuda_dnn_check(place, code, "an attention through cuDNN");
    tern_mutex_unlock(&device->dnn_lock);
    if (tern_cuda_dnn_refuses(code))
        report(place, a, code);
    return status;
}
