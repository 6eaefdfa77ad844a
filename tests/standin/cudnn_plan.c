/* cudnn_plan.c -- what the stand-in's cuDNN makes of a graph: steps that follow each other, run one by one in double precision.
 * Its engines take attention in half precision, which is two products, or five of a gradient, and one product alone. */
#include "cudnn_graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack);

/* ---- a graph as a list of steps ------------------------------------------------------------ */

static int tensor_of(program *p, const descriptor *d)
{
    if (!d)
        return -1;
    int64_t id = standin_number(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0);
    for (int i = 0; i < p->n_tensors; i++)
        if (p->tensors[i].id == id)
            return i;
    tensor *t = &p->tensors[p->n_tensors];
    *t = (tensor){.id = id,
                  .type = (cudnnDataType_t)standin_number(d, CUDNN_ATTR_TENSOR_DATA_TYPE, 0),
                  .is_virtual = standin_number(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0),
                  .by_value = standin_number(d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0),
                  .extent = 1};
    const attribute *dims = standin_attribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS);
    const attribute *strides = standin_attribute(d, CUDNN_ATTR_TENSOR_STRIDES);
    const size_t bytes = 8 * (size_t)dims->n;
    t->is_matrix = dims->n != DIMS;
    t->dims[0] = 1;
    memcpy(t->dims + t->is_matrix, dims->values, bytes);
    memcpy(t->strides + t->is_matrix, strides->values, bytes);
    for (int i = 0; i < DIMS; i++)
        t->extent += (t->dims[i] - 1) * t->strides[i];
    return p->n_tensors++;
}

/* The attributes of an operation's kind that are its operands, and its mode. */
static const struct {
    cudnnBackendDescriptorType_t kind;
    cudnnBackendAttributeName_t how, mode, operands[4];
} operations[] = {
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
     CUDNN_ATTR_POINTWISE_MODE,
     {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
      CUDNN_ATTR_OPERATION_POINTWISE_TDESC, CUDNN_ATTR_OPERATION_POINTWISE_YDESC}},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_MATMUL_DESC,
     CUDNN_ATTR_MATMUL_COMP_TYPE,
     {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0,
      CUDNN_ATTR_OPERATION_MATMUL_CDESC}},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_REDUCTION_DESC,
     CUDNN_ATTR_REDUCTION_OPERATOR,
     {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0, 0, CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     0,
     0,
     {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0, 0, CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
};

/* Dims of b that are 1, or divide those of x where heads are shared, go with all of x. */
static bool goes_with(const tensor *x, const tensor *b)
{
    for (int i = 0; i < DIMS; i++)
        if (b->dims[i] != 1 && b->dims[i] != x->dims[i])
            return false;
    return true;
}

static bool shapes_fit(const program *p, const step *s)
{
    const tensor *x = &p->tensors[s->operands[0]], *y = &p->tensors[s->operands[3]];
    const tensor *b = s->operands[1] < 0 ? NULL : &p->tensors[s->operands[1]];
    if (s->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        return b && x->dims[3] == b->dims[2] && y->dims[2] == x->dims[2] &&
               y->dims[3] == b->dims[3] && x->dims[1] == y->dims[1] && x->dims[0] == y->dims[0];
    if (s->kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
        return x->extent == y->extent;
    if (s->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
        return goes_with(x, y);
    bool binary = s->mode < 10 || (s->mode >= 200 && s->mode < 400) || s->mode >= 600;
    return goes_with(y, x) && binary == (b != NULL) && (!b || goes_with(y, b)) &&
           (s->mode == CUDNN_POINTWISE_BINARY_SELECT) == (s->operands[2] >= 0);
}

/* Steps follow each other: what is between two was made by one before, once; what is read from memory was not
 * written by a later one. */
static bool is_in_order(const program *p)
{
    bool written[MOST_TENSORS] = {false};
    for (int i = 0; i < p->n_steps; i++) {
        const step *s = &p->steps[i];
        for (int j = 0; j < 3; j++)
            if (s->operands[j] >= 0 && p->tensors[s->operands[j]].is_virtual &&
                !written[s->operands[j]])
                return false;
        if (s->operands[3] < 0 || written[s->operands[3]] || p->tensors[s->operands[3]].by_value)
            return false;
        written[s->operands[3]] = true;
    }
    return true;
}

cudnnStatus_t standin_compile(const descriptor *graph, program *p)
{
    const attribute *list = standin_attribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < list->n; i++) {
        const descriptor *d;
        memcpy(&d, list->values + 8 * i, sizeof d);
        size_t k = 0;
        while (k < 4 && operations[k].kind != d->kind)
            k++;
        if (k == 4)
            return BAD_PARAM;
        const descriptor *how = operations[k].how ? standin_pointed(d, operations[k].how) : NULL;
        step *s = &p->steps[p->n_steps++];
        *s = (step){.kind = d->kind,
                    .mode = standin_number(how, operations[k].mode, 0),
                    .axis = how && how->kind == CUDNN_BACKEND_POINTWISE_DESCRIPTOR
                                ? standin_number(how, CUDNN_ATTR_POINTWISE_AXIS, -1)
                                : -1};
        static const cudnnBackendAttributeName_t back[4] = {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
                                                            CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 0,
                                                            CUDNN_ATTR_OPERATION_POINTWISE_DXDESC};
        const bool goes_back = k == 0 && s->mode >= 200 && s->mode < 300;
        const cudnnBackendAttributeName_t *names = goes_back ? back : operations[k].operands;
        for (int j = 0; j < 4; j++)
            s->operands[j] = tensor_of(p, names[j] ? standin_pointed(d, names[j]) : NULL);
        if (s->operands[0] < 0 || s->operands[3] < 0 || !shapes_fit(p, s))
            return BAD_PARAM;
    }
    return is_in_order(p) ? 0 : BAD_PARAM;
}

static int products_of(const program *p)
{
    int products = 0;
    for (int i = 0; i < p->n_steps; i++)
        products += p->steps[i].kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
    return products;
}

/* What NVIDIA lists for flash attention: half precision, heads of up to 128 and of a multiple of 8 numbers. A product alone,
 * and what is done to it, is of matrices of three dims, as its own engines say. */
bool standin_takes(const program *p)
{
    int products = products_of(p);
    bool takes = products == 1 || products == 2 || products == 5;
    for (int i = 0; i < p->n_tensors; i++) {
        const tensor *t = &p->tensors[i];
        if (t->is_virtual || t->by_value || t->type == CUDNN_DATA_FLOAT)
            continue;
        int columns = t->strides[3] == 1 ? 3 : 2;
        takes = takes && (t->type == CUDNN_DATA_HALF || t->type == CUDNN_DATA_BFLOAT16) &&
                t->strides[columns] == 1 && t->dims[columns] % 8 == 0 &&
                (products == 1 ? t->is_matrix : !t->is_matrix && t->dims[columns] <= 128);
    }
    return takes;
}

/* ---- running a plan ------------------------------------------------------------------------ */

typedef struct run {
    program program;
    void *at[MOST_TENSORS], *scratch;
    double values[MOST_TENSORS]; /* of those by value */
} run;

static cudaDataType cuda_type(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT  ? CUDA_R_32F
           : type == CUDNN_DATA_HALF ? CUDA_R_16F
                                     : CUDA_R_16BF;
}

static double rounded(double x, cudnnDataType_t type)
{
    char room[8];
    if (type == CUDNN_DATA_INT32 || type == CUDNN_DATA_BOOLEAN)
        return x;
    standin_save(room, 0, cuda_type(type), x);
    return standin_load(room, 0, cuda_type(type));
}

static int64_t place_of(const tensor *t, const int64_t *at)
{
    int64_t place = 0;
    for (int i = 0; i < DIMS; i++)
        place += (t->dims[i] == 1 ? 0 : at[i]) * t->strides[i];
    return place;
}

static double cdf(double x)
{
    return 0.5 * erfc(-x * 0.7071067811865476);
}

static double point(const step *s, double x, double b, double t, const int64_t *at)
{
    switch (s->mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_EXP:
        return exp(x);
    case CUDNN_POINTWISE_LOG:
        return log(x);
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_GELU_FWD:
        return x * cdf(x);
    case CUDNN_POINTWISE_GELU_BWD: /* x is dy, b is x */
        return x * (cdf(b) + b * 0.3989422804014327 * exp(-0.5 * b * b));
    case CUDNN_POINTWISE_GEN_INDEX:
        return (double)at[s->axis];
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    default: /* CUDNN_POINTWISE_IDENTITY */
        return x;
    }
}

static double multiplied(const step *s, const program *p, double *const *of, const int64_t *at)
{
    const tensor *a = &p->tensors[s->operands[0]], *b = &p->tensors[s->operands[1]];
    double sum = 0;
    for (int64_t k = 0; k < a->dims[3]; k++) {
        const int64_t left[] = {at[0], at[1], at[2], k}, right[] = {at[0], at[1], k, at[3]};
        sum += of[s->operands[0]][place_of(a, left)] * of[s->operands[1]][place_of(b, right)];
    }
    return sum;
}

static double reduced(const step *s, const program *p, double *const *of, const int64_t *at)
{
    const tensor *x = &p->tensors[s->operands[0]];
    double result = s->mode == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY : 0;
    for (int64_t k = 0; k < x->dims[3]; k++) {
        const int64_t here[] = {at[0], at[1], at[2], k};
        double value = of[s->operands[0]][place_of(x, here)];
        result = s->mode != CUDNN_REDUCE_TENSOR_MAX ? result + value
                 : value > result                   ? value
                                                    : result;
    }
    return result;
}

static void do_step(const step *s, const program *p, double *const *of)
{
    const tensor *y = &p->tensors[s->operands[3]];
    double *to = of[s->operands[3]];
    int64_t at[DIMS];
    if (s->kind ==
        CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) { /* the same memory, seen otherwise */
        for (int64_t i = 0; i < y->extent; i++)
            to[i] = rounded(of[s->operands[0]][i], y->type);
        return;
    }
    for (at[0] = 0; at[0] < y->dims[0]; at[0]++)
        for (at[1] = 0; at[1] < y->dims[1]; at[1]++)
            for (at[2] = 0; at[2] < y->dims[2]; at[2]++)
                for (at[3] = 0; at[3] < y->dims[3]; at[3]++) {
                    double operand[3] = {0};
                    for (int j = 0;
                         s->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && j < 3; j++)
                        if (s->operands[j] >= 0)
                            operand[j] =
                                of[s->operands[j]][place_of(&p->tensors[s->operands[j]], at)];
                    double value = s->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
                                       ? multiplied(s, p, of, at)
                                   : s->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR
                                       ? reduced(s, p, of, at)
                                       : point(s, operand[0], operand[1], operand[2], at);
                    to[place_of(y, at)] = rounded(value, y->type);
                }
}

static void run_program(void *data)
{
    const run *r = data;
    const program *p = &r->program;
    double *of[MOST_TENSORS] = {NULL};
    bool fine = true, written[MOST_TENSORS] = {false};
    memset(r->scratch, 0xcd, SCRATCH);
    for (int i = 0; i < p->n_tensors; i++) {
        const tensor *t = &p->tensors[i];
        of[i] = calloc((size_t)t->extent, sizeof *of[i]);
        fine = fine && of[i];
        for (int64_t k = 0; of[i] && !t->is_virtual && k < t->extent; k++)
            of[i][k] = t->by_value ? r->values[i] : standin_load(r->at[i], k, cuda_type(t->type));
    }
    for (int i = 0; fine && i < p->n_steps; i++) {
        do_step(&p->steps[i], p, of);
        written[p->steps[i].operands[3]] = true;
    }
    for (int i = 0; fine && i < p->n_tensors; i++) {
        const tensor *t = &p->tensors[i];
        int64_t at[DIMS];
        if (t->is_virtual || !written[i])
            continue;
        for (at[0] = 0; at[0] < t->dims[0]; at[0]++) /* what lies between its rows is others' */
            for (at[1] = 0; at[1] < t->dims[1]; at[1]++)
                for (at[2] = 0; at[2] < t->dims[2]; at[2]++)
                    for (at[3] = 0; at[3] < t->dims[3]; at[3]++)
                        standin_save(r->at[i], place_of(t, at), cuda_type(t->type),
                                     of[i][place_of(t, at)]);
    }
    for (int i = 0; i < p->n_tensors; i++)
        free(of[i]);
}

static unsigned long runs[3];

/* For tests: how many attentions were run, forward or gradients; 2: products. */
EXPORT unsigned long standin_attentions(int gradients);
unsigned long standin_attentions(int gradients)
{
    standin_lock();
    unsigned long n = runs[gradients];
    standin_unlock();
    return n;
}

/* Where the pack says that a tensor is: aligned memory of the device, or a number of the host's. */
static cudnnStatus_t bind(run *r, int i, const attribute *ids, const attribute *at)
{
    const tensor *t = &r->program.tensors[i];
    void *found = NULL;
    for (int64_t k = 0; k < ids->n; k++)
        if (memcmp(ids->values + 8 * k, &t->id, 8) == 0)
            memcpy(&found, at->values + 8 * k, 8);
    if (!found)
        return BAD_PARAM;
    if (t->by_value) {
        int32_t whole;
        if (standin_owner(found, 4) != -1)
            return BAD_PARAM;
        memcpy(&whole, found, sizeof whole);
        r->values[i] =
            t->type == CUDNN_DATA_INT32 ? whole : standin_load(found, 0, cuda_type(t->type));
        return 0;
    }
    size_t bytes = (size_t)t->extent * (t->type == CUDNN_DATA_FLOAT ? 4 : 2);
    r->at[i] = found;
    if ((uintptr_t)found % 16)
        return MISALIGNED;
    return standin_owner(found, bytes) == standin_current() ? 0 : BAD_PARAM;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack)
{
    FAULT(cudnnBackendExecute);
    const descriptor *d = plan, *v = pack;
    if (!d || !v || !d->finalized || !v->finalized || !d->program)
        return NOT_FINALIZED;
    const attribute *ids = standin_attribute(v, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const attribute *at = standin_attribute(v, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    run *r = calloc(1, sizeof *r);
    if (!r)
        return ALLOCATION;
    r->program = *d->program;
    r->scratch = standin_pointed(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    cudnnStatus_t code = ids->n == at->n && handle->device == standin_current() &&
                                 standin_owner(r->scratch, SCRATCH) == standin_current()
                             ? 0
                             : BAD_PARAM;
    for (int i = 0; !code && i < r->program.n_tensors; i++)
        if (!r->program.tensors[i].is_virtual)
            code = bind(r, i, ids, at);
    int products = products_of(&r->program);
    standin_lock();
    runs[products == 1 ? 2 : products > 2] += !code;
    standin_unlock();
    if (!code && !standin_command(handle->stream, run_program, r, sizeof *r))
        code = BAD_PARAM;
    free(r);
    return code;
}
