/* cudnn_graph.c -- the stand-in's backend API of cuDNN, written from its documentation: descriptors with attributes of given
 * types and counts, which are finalized in order. */
#include "cudnn_graph.h"
#include <stdlib.h>
#include <string.h>

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/cudnn_graph.def"
#undef X

/* ---- descriptors ------------------------------------------------------------------------- */

static const struct {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t most;
    bool required;
} known[] = {
#define X(KIND, NAME, TYPE, MOST, REQUIRED)                                                        \
    {CUDNN_BACKEND_##KIND##_DESCRIPTOR, CUDNN_ATTR_##NAME, CUDNN_TYPE_##TYPE, MOST, REQUIRED},
#include "cudnn_attributes.def"
#undef X
};
enum { KNOWN = sizeof known / sizeof *known };

static size_t size_of_type(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4;
    }
}

const attribute *standin_attribute(const descriptor *d, cudnnBackendAttributeName_t name)
{
    for (int i = 0; d && i < d->n; i++)
        if (d->attributes[i].name == name)
            return &d->attributes[i];
    return NULL;
}

descriptor *standin_pointed(const descriptor *d, cudnnBackendAttributeName_t name)
{
    descriptor *at = NULL;
    const attribute *a = standin_attribute(d, name);
    if (a)
        memcpy(&at, a->values, sizeof at);
    return at;
}

int64_t standin_number(const descriptor *d, cudnnBackendAttributeName_t name, int64_t otherwise)
{
    const attribute *a = standin_attribute(d, name);
    int32_t narrow;
    if (!a)
        return otherwise;
    for (int i = 0; i < KNOWN; i++)
        if (known[i].kind == d->kind && known[i].name == name) {
            if (size_of_type(known[i].type) == 8)
                memcpy(&otherwise, a->values, 8);
            else if (size_of_type(known[i].type) == 1)
                otherwise = a->values[0];
            else {
                memcpy(&narrow, a->values, 4);
                otherwise = narrow;
            }
        }
    return otherwise;
}

static unsigned long made;

/* For tests: how many descriptors there are now. */
EXPORT unsigned long standin_descriptors(void);
unsigned long standin_descriptors(void)
{
    standin_lock();
    unsigned long n = made;
    standin_unlock();
    return n;
}

enum { MOST_PLANS = 1 << 14 };
static unsigned plans;
static bool gone[MOST_PLANS];

/* For tests: how many plans were made. */
EXPORT unsigned long standin_plans(void);
unsigned long standin_plans(void)
{
    standin_lock();
    unsigned long n = plans;
    standin_unlock();
    return n;
}

bool standin_plan_is_there(unsigned plan)
{
    standin_lock();
    bool is_there = !gone[plan % MOST_PLANS];
    standin_unlock();
    return is_there;
}

static void count_plan(descriptor *d, bool goes)
{
    standin_lock();
    if (!d->plan)
        d->plan = ++plans;
    gone[d->plan % MOST_PLANS] = goes;
    standin_unlock();
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t kind,
                                           cudnnBackendDescriptor_t *to)
{
    FAULT(cudnnBackendCreateDescriptor);
    bool has = kind == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
    for (int i = 0; i < KNOWN; i++)
        has = has || known[i].kind == kind;
    if (!has)
        return CUDNN_STATUS_NOT_SUPPORTED;
    descriptor *d = calloc(1, sizeof *d);
    if (!d)
        return ALLOCATION;
    d->kind = kind;
    *to = d;
    standin_lock();
    made++;
    standin_unlock();
    return 0;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t at)
{
    descriptor *d = at;
    if (d->plan)
        count_plan(d, true);
    free(d->program);
    free(d);
    standin_lock();
    made--;
    standin_unlock();
    return 0;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t at,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t n,
                                       const void *values)
{
    FAULT(cudnnBackendSetAttribute);
    descriptor *d = at;
    if (!d || !values || n < 1 || d->finalized || d->n == ATTRIBUTES)
        return BAD_PARAM;
    for (int i = 0; i < KNOWN; i++) {
        if (known[i].kind != d->kind || known[i].name != name)
            continue;
        if (known[i].type != type || n > known[i].most || standin_attribute(d, name))
            return BAD_PARAM;
        attribute *a = &d->attributes[d->n++];
        a->name = name;
        a->n = n;
        memcpy(a->values, values, (size_t)n * size_of_type(type));
        for (int64_t k = 0; type == CUDNN_TYPE_BACKEND_DESCRIPTOR && k < n; k++) {
            const descriptor *to;
            memcpy(&to, a->values + 8 * k, sizeof to);
            if (!to || !to->finalized)
                return NOT_FINALIZED;
        }
        return 0;
    }
    return BAD_PARAM;
}

/* ---- finalizing, and what can be asked ------------------------------------------------------ */

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t at)
{
    FAULT(cudnnBackendFinalize);
    descriptor *d = at;
    if (!d || d->finalized)
        return BAD_PARAM;
    for (int i = 0; i < KNOWN; i++)
        if (known[i].kind == d->kind && known[i].required && !standin_attribute(d, known[i].name))
            return BAD_PARAM;
    if (d->kind == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        int64_t n = standin_attribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS)->n;
        if (n < 3 || n > DIMS || standin_attribute(d, CUDNN_ATTR_TENSOR_STRIDES)->n != n)
            return BAD_PARAM;
    }
    if (d->kind == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
        program *p = calloc(1, sizeof *p);
        cudnnStatus_t code = p ? standin_compile(d, p) : ALLOCATION;
        free(p);
        if (code)
            return code;
    }
    if (d->kind == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        const descriptor *engine = standin_pointed(d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        if (engine->engine == 0)
            return CUDNN_STATUS_NOT_SUPPORTED;
        d->engine = engine->engine;
        d->program = calloc(1, sizeof *d->program);
        if (!d->program)
            return ALLOCATION;
        standin_compile(engine->graph, d->program);
        if (!standin_takes(d->program))
            return CUDNN_STATUS_NOT_SUPPORTED;
        count_plan(d, false);
    }
    d->finalized = true;
    return 0;
}

/* Two engines, of which the first makes no plan; convolutions have one more. */
static int engines_of(const descriptor *graph)
{
    const descriptor *first = standin_pointed(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    return standin_attribute(first, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR) ||
                   standin_attribute(first, CUDNN_ATTR_OPERATION_MATMUL_DESC)
               ? 2
               : 3;
}

static cudnnStatus_t give_engines(const descriptor *heuristics, int64_t room, int64_t *n,
                                  descriptor **engines)
{
    descriptor *graph = standin_pointed(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    for (*n = 0; *n < engines_of(graph) && *n < room; ++*n) {
        descriptor *e = engines[*n];
        if (!e || e->kind != CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || e->finalized)
            return BAD_PARAM;
        e->graph = graph;
        e->engine = (int)*n;
        e->finalized = true;
    }
    return 0;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const at,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t room, int64_t *n,
                                       void *values)
{
    FAULT(cudnnBackendGetAttribute);
    const descriptor *d = at;
    if (!d || !d->finalized)
        return NOT_FINALIZED;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && d->kind == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return give_engines(d, room, n, values);
    if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || !d->program ||
        type != CUDNN_TYPE_INT64 || room < 1)
        return BAD_PARAM;
    *n = 1;
    memcpy(values, &(int64_t){SCRATCH}, sizeof(int64_t));
    return 0;
}
