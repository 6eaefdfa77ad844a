/* dnn_graph.c -- cuDNN's backend API: its descriptors are created, given attributes and finalized,
 * and other descriptors point to them. */
#include "device/cuda/dnn_graph.h"
#include <string.h>

enum { X, B, T, Y, OPERANDS, ALIGNMENT = 16 };

/* cuDNN 8 has one code for "not supported", cuDNN 9 has the thousand from 3000 on. */
bool tern_cuda_dnn_refuses(cudnnStatus_t code)
{
    return code == 9 || code / 1000 == 3;
}

/* Returns whether code is an error. The first error is kept in g; the functions below then do
 * nothing, and the caller that describes a graph looks at g->code at the end. */
static bool fails(tern_dnn_graph *g, cudnnStatus_t code, const char *call)
{
    if (code && !g->code) {
        g->code = code;
        g->call = call;
    }
    return code != 0;
}

static cudnnBackendDescriptor_t make(tern_dnn_graph *g, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t made = NULL;
    if (g->code || fails(g, tern_cuda.cudnnBackendCreateDescriptor(type, &made),
                         "cudnnBackendCreateDescriptor"))
        return NULL;
    g->made[g->n_made++] = made;
    return made;
}

static void set(tern_dnn_graph *g, cudnnBackendDescriptor_t descriptor,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t n,
                const void *values)
{
    if (!g->code)
        fails(g, tern_cuda.cudnnBackendSetAttribute(descriptor, name, type, n, values),
              "cudnnBackendSetAttribute");
}

static void set_descriptor(tern_dnn_graph *g, cudnnBackendDescriptor_t descriptor,
                           cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(g, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(tern_dnn_graph *g, cudnnBackendDescriptor_t descriptor)
{
    if (!g->code)
        fails(g, tern_cuda.cudnnBackendFinalize(descriptor), "cudnnBackendFinalize");
}

cudnnBackendDescriptor_t tern_dnn_tensor_new(tern_dnn_graph *g, const tern_dnn_tensor *t)
{
    static const int64_t alignment = ALIGNMENT;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &t->type);
    set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->ndim, t->dims);
    set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->ndim, t->strides);
    set(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &t->id);
    set(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    set(g, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &t->is_virtual);
    set(g, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &t->by_value);
    finalize(g, d);
    return d;
}

#define CONVOLUTION(PASS, NAME, X, B, Y)                                                           \
    {                                                                                              \
        CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE,                    \
            CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,                         \
            CUDNN_BACKEND_OPERATION_CONVOLUTION_##PASS##_DESCRIPTOR,                               \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##NAME##_CONV_DESC,                                   \
        {                                                                                          \
            CUDNN_ATTR_OPERATION_CONVOLUTION_##NAME##_##X,                                         \
                CUDNN_ATTR_OPERATION_CONVOLUTION_##NAME##_##B, 0,                                  \
                CUDNN_ATTR_OPERATION_CONVOLUTION_##NAME##_##Y                                      \
        }                                                                                          \
    }
/* For each kind of operation: the descriptor of its mathematics (precision, mode), and the
 * descriptor of the operation, which points to the former and has the operands. An attribute 0
 * means that the kind has none, or is pointwise's mode. */
static const struct {
    uint16_t how, precision, mode, mode_type, operation, points, operands[OPERANDS];
} kinds[] = {
    [TERN_DNN_POINTWISE] = {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                            CUDNN_ATTR_POINTWISE_MATH_PREC,
                            CUDNN_ATTR_POINTWISE_MODE,
                            CUDNN_TYPE_POINTWISE_MODE,
                            CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                            {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                             CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                             CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
                             CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
    [TERN_DNN_PRODUCT] = {CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                          CUDNN_ATTR_MATMUL_COMP_TYPE,
                          0,
                          0,
                          CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_MATMUL_DESC,
                          {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0,
                           CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
    [TERN_DNN_REDUCTION] = {CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                            CUDNN_ATTR_REDUCTION_COMP_TYPE,
                            CUDNN_ATTR_REDUCTION_OPERATOR,
                            CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
                            CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_REDUCTION_DESC,
                            {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0, 0,
                             CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
    [TERN_DNN_RESHAPE] = {0,
                          0,
                          0,
                          0,
                          CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                          0,
                          {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0, 0,
                           CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
    [TERN_DNN_CONVOLUTION] = CONVOLUTION(FORWARD, FORWARD, X, W, Y),
    [TERN_DNN_CONVOLUTION_X] = CONVOLUTION(BACKWARD_DATA, BWD_DATA, DY, W, DX),
    [TERN_DNN_CONVOLUTION_WEIGHT] = CONVOLUTION(BACKWARD_FILTER, BWD_FILTER, X, DY, DW),
};

/* Sets the numbers of a convolution. Their attributes follow each other in the order of numbers[];
 * padding is the same at both ends. */
static void set_window(tern_dnn_graph *g, cudnnBackendDescriptor_t d, const tern_dnn_window *w)
{
    const int64_t *const numbers[] = {w->dilation, w->stride, w->padding, w->padding};
    set(g, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &w->n);
    for (unsigned i = 0; i < 4; i++)
        set(g, d, CUDNN_ATTR_CONVOLUTION_DILATIONS + i, CUDNN_TYPE_INT64, w->n, numbers[i]);
}

static cudnnBackendDescriptor_t mathematics(tern_dnn_graph *g, const tern_dnn_operation *o)
{
    cudnnBackendDescriptor_t d = make(g, kinds[o->kind].how);
    if (kinds[o->kind].mode_type)
        set(g, d, kinds[o->kind].mode, kinds[o->kind].mode_type, 1, &o->mode);
    set(g, d, kinds[o->kind].precision, CUDNN_TYPE_DATA_TYPE, 1, &o->precision);
    if (o->axis)
        set(g, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &o->axis);
    if (o->window)
        set_window(g, d, o->window);
    finalize(g, d);
    return d;
}

void tern_dnn_add(tern_dnn_graph *g, const tern_dnn_operation *o)
{
    static const float scales[] = {1, 0}; /* alpha and beta: the two attributes before points */
    cudnnBackendDescriptor_t d = make(g, kinds[o->kind].operation);
    if (kinds[o->kind].points)
        set_descriptor(g, d, kinds[o->kind].points, mathematics(g, o));
    for (unsigned i = 0; o->window && i < 2; i++)
        set(g, d, kinds[o->kind].points - 2 + i, CUDNN_TYPE_FLOAT, 1, &scales[i]);
    for (int i = 0; i < OPERANDS; i++)
        if (o->operands[i])
            set_descriptor(g, d, kinds[o->kind].operands[i], o->operands[i]);
    finalize(g, d);
    g->operations[g->n_operations++] = d;
}

/* ---- plans ------------------------------------------------------------------------------- */

static void plan_for(tern_dnn_graph *g, cudnnBackendDescriptor_t engine)
{
    int64_t n;
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (g->device)
        set_descriptor(g, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, g->device);
    else
        set(g, d, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    set_descriptor(g, d, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
    finalize(g, d);
    if (!g->code &&
        !fails(g,
               tern_cuda.cudnnBackendGetAttribute(d, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                                  CUDNN_TYPE_INT64, 1, &n, &g->scratch),
               "cudnnBackendGetAttribute"))
        g->plan = d;
}

static cudnnBackendDescriptor_t heuristics(tern_dnn_graph *g)
{
    static const int mode = CUDNN_HEUR_MODE_A;
    cudnnBackendDescriptor_t graph = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_operations,
        g->operations);
    if (!g->device)
        set(g, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->handle);
    finalize(g, graph);
    cudnnBackendDescriptor_t d = make(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(g, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(g, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (g->device)
        set_descriptor(g, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, g->device);
    finalize(g, d);
    return d;
}

void tern_dnn_make_plan(tern_dnn_graph *g)
{
    cudnnBackendDescriptor_t d = heuristics(g), engines[TERN_DNN_CANDIDATES];
    int64_t n = 0;
    for (int i = 0; i < TERN_DNN_CANDIDATES; i++)
        engines[i] = make(g, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (g->code || fails(g,
                         tern_cuda.cudnnBackendGetAttribute(d, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                                            CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                                            TERN_DNN_CANDIDATES, &n, engines),
                         "cudnnBackendGetAttribute"))
        return;
    g->offered = n;
    n = n < TERN_DNN_CANDIDATES ? n : TERN_DNN_CANDIDATES;
    for (g->code = CUDNN_STATUS_NOT_SUPPORTED; g->first < n; g->first++) {
        g->code = 0;
        plan_for(g, engines[g->first]);
        if (!tern_cuda_dnn_refuses(g->code))
            break;
    }
}

cudnnStatus_t tern_dnn_run(const tern_dnn_graph *g, int n, const int64_t *ids, void *const *at,
                           void *scratch)
{
    tern_dnn_graph pack = {.handle = g->handle};
    cudnnBackendDescriptor_t d = make(&pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&pack, d, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, ids);
    set(&pack, d, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at);
    set(&pack, d, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    finalize(&pack, d);
    if (!pack.code)
        pack.code = tern_cuda.cudnnBackendExecute(g->handle, g->plan, d);
    cudnnStatus_t code = pack.code;
    tern_dnn_clear(&pack);
    return code;
}

void tern_dnn_clear(tern_dnn_graph *g)
{
    while (g->n_made > 0)
        tern_cuda.cudnnBackendDestroyDescriptor(g->made[--g->n_made]);
    memset(g, 0, sizeof *g);
}

/* ---- plans that are kept --------------------------------------------------------------------- */

tern_dnn_plan *tern_dnn_plan_of(void *table, int n, const void *of, size_t bytes)
{
    const size_t each = sizeof(tern_dnn_plan) + bytes,
                 first = tern_hash(TERN_HASH_SEED, of, bytes) % (size_t)n;
    tern_dnn_plan *place = NULL;
    for (size_t i = 0; i < (size_t)n; i++) {
        tern_dnn_plan *p = (void *)((char *)table + (first + i) % (size_t)n * each);
        if (p->used && memcmp(p + 1, of, bytes) == 0)
            return p;
        if (!p->recorded && (!place || (place->used && !p->used)))
            place = p;
    }
    if (!place)
        return NULL;
    tern_dnn_clear(&place->graph);
    place->used = place->usable = false;
    memcpy(place + 1, of, bytes);
    return place;
}
