/* cudnn_plan.c -- running what the stand-in's cuDNN made of a graph: its steps, one by one in double precision. */
#include "cudnn_graph.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

EXPORT cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                         cudnnBackendDescriptor_t pack);

typedef struct run {
    program program;
    void *at[MOST_TENSORS], *scratch;
    double values[MOST_TENSORS]; /* of those by value */
    unsigned plan;
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
    case CUDNN_POINTWISE_GEN_INDEX:
        return (double)at[s->axis + DIMS - 4];
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
    int64_t left[DIMS], right[DIMS];
    memcpy(left, at, sizeof left);
    memcpy(right, at, sizeof right);
    left[COLUMN] = right[ROW] = 0;
    const double *x = of[s->operands[0]] + place_of(a, left);
    const double *y = of[s->operands[1]] + place_of(b, right);
    const int64_t n = a->dims[COLUMN], x_step = a->strides[COLUMN], y_step = b->strides[ROW];
    for (int64_t k = 0; k < n; k++)
        sum += x[k * x_step] * y[k * y_step];
    return sum;
}

static double reduced(const step *s, const program *p, double *const *of, const int64_t *at)
{
    const tensor *x = &p->tensors[s->operands[0]];
    double result = s->mode == CUDNN_REDUCE_TENSOR_MAX ? -INFINITY : 0;
    int64_t here[DIMS];
    memcpy(here, at, sizeof here);
    for (here[COLUMN] = 0; here[COLUMN] < x->dims[COLUMN]; here[COLUMN]++) {
        double value = of[s->operands[0]][place_of(x, here)];
        result = s->mode != CUDNN_REDUCE_TENSOR_MAX ? result + value
                 : value > result                   ? value
                                                    : result;
    }
    return result;
}

/* The next place of a tensor, from all 0 on; false behind its last. */
static bool step_on(int64_t *at, const int64_t *dims)
{
    for (int i = DIMS - 1; i >= 0; i--) {
        if (++at[i] < dims[i])
            return true;
        at[i] = 0;
    }
    return false;
}

/* y[n, o, q] = sum over c and k of x[n, c, q stride + k dilation - padding] w[o, c, k], c and o being of one group: into of[s]
 * each product goes where it belongs, whichever of the three it is. The 16-bit types are read exactly, float32 as TensorFloat-32. */
static void convolve(const step *s, const program *p, double *const *of)
{
    const convolved c = standin_convolved(p, s);
    const tensor *x = &p->tensors[c.x], *w = &p->tensors[c.w], *y = &p->tensors[c.y];
    const int64_t each = w->dims[c.first + 1], outs = w->dims[c.first] / c.groups;
    const bool fast = x->type == CUDNN_DATA_FLOAT;
    int64_t at_y[DIMS] = {0};
    do {
        int64_t at_w[DIMS] = {0}, at_x[DIMS] = {0}, limits[DIMS];
        memcpy(limits, w->dims, sizeof limits);
        limits[c.first] = 1;
        do {
            bool inside = true;
            int64_t real_w[DIMS];
            memcpy(real_w, at_w, sizeof real_w);
            real_w[c.first] = at_y[c.first + 1];
            at_x[c.first] = at_y[c.first];
            at_x[c.first + 1] = at_y[c.first + 1] / outs * each + at_w[c.first + 1];
            for (int i = c.first + 2; i < DIMS; i++) {
                at_x[i] = at_y[i] * s->stride[i] + at_w[i] * s->dilation[i] - s->padding[i];
                inside = inside && at_x[i] >= 0 && at_x[i] < x->dims[i];
            }
            if (!inside)
                continue;
            double *const all[] = {&of[c.y][place_of(y, at_y)], &of[c.x][place_of(x, at_x)],
                                   &of[c.w][place_of(w, real_w)]};
            const int to = standin_pass(s), a = to == 0, b = to == 2 ? 1 : 2;
            *all[to] += fast ? standin_tf32(*all[a]) * standin_tf32(*all[b]) : *all[a] * *all[b];
        } while (step_on(at_w, limits));
    } while (step_on(at_y, y->dims));
}

static void do_step(const step *s, const program *p, double *const *of)
{
    const tensor *y = &p->tensors[s->operands[3]];
    double *to = of[s->operands[3]];
    int64_t at[DIMS] = {0};
    if (s->kind ==
        CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) { /* the same memory, seen otherwise */
        for (int64_t i = 0; i < y->extent; i++)
            to[i] = rounded(of[s->operands[0]][i], y->type);
        return;
    }
    if (standin_pass(s) >= 0) {
        memset(to, 0, sizeof *to * (size_t)y->extent);
        convolve(s, p, of);
        for (int64_t i = 0; i < y->extent; i++)
            to[i] = rounded(to[i], y->type);
        return;
    }
    do {
        double operand[3] = {0};
        for (int j = 0; s->kind == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && j < 3; j++)
            if (s->operands[j] >= 0)
                operand[j] = of[s->operands[j]][place_of(&p->tensors[s->operands[j]], at)];
        double value = s->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
                           ? multiplied(s, p, of, at)
                       : s->kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR
                           ? reduced(s, p, of, at)
                           : point(s, operand[0], operand[1], operand[2], at);
        to[place_of(y, at)] = rounded(value, y->type);
    } while (step_on(at, y->dims));
}

static void run_program(void *data)
{
    const run *r = data;
    const program *p = &r->program;
    double *of[MOST_TENSORS] = {NULL};
    bool fine = true, written[MOST_TENSORS] = {false};
    if (!standin_plan_is_there(r->plan))
        return;
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
        int64_t at[DIMS] = {0};
        if (t->is_virtual || !written[i])
            continue;
        do { /* what lies between its rows is others' */
            standin_save(r->at[i], place_of(t, at), cuda_type(t->type), of[i][place_of(t, at)]);
        } while (step_on(at, t->dims));
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
    r->plan = d->plan;
    r->scratch = standin_pointed(v, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    cudnnStatus_t code = ids->n == at->n && handle->device == standin_current() &&
                                 standin_owner(r->scratch, SCRATCH) == standin_current()
                             ? 0
                             : BAD_PARAM;
    for (int i = 0; !code && i < r->program.n_tensors; i++)
        if (!r->program.tensors[i].is_virtual)
            code = bind(r, i, ids, at);
    int products = standin_products(&r->program), pass = standin_pass(&r->program.steps[0]);
    standin_lock();
    runs[products == 1 ? 2 : products > 2] += !code && pass < 0;
    standin_unlock();
    if (!code && pass >= 0)
        standin_count_convolution(handle->stream, pass, 8 + d->engine);
    if (!code && !standin_command(handle->stream, run_program, r, sizeof *r))
        code = BAD_PARAM;
    free(r);
    return code;
}
