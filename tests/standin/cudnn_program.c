/* cudnn_program.c -- a graph for the stand-in's cuDNN as a list of steps that follow each other. Its engines take attention in half
 * precision, which is two products, or five of a gradient, one product alone, and one convolution. */
#include "cudnn_graph.h"
#include <string.h>

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
    t->ndim = dims->n;
    for (int i = 0; i < DIMS; i++)
        t->dims[i] = 1;
    memcpy(t->dims + DIMS - dims->n, dims->values, bytes);
    memcpy(t->strides + DIMS - dims->n, strides->values, bytes);
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
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 0,
      CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 0,
      CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX}},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
      0, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW}},
};
enum { OPERATIONS = sizeof operations / sizeof *operations, FIRST_CONVOLUTION = 4 };

int standin_pass(const step *s)
{
    for (int k = FIRST_CONVOLUTION; k < OPERATIONS; k++)
        if (operations[k].kind == s->kind)
            return k - FIRST_CONVOLUTION;
    return -1;
}

/* Dims of b that are 1, or divide those of x where heads are shared, go with all of x. */
static bool goes_with(const tensor *x, const tensor *b)
{
    for (int i = 0; i < DIMS; i++)
        if (b->dims[i] != 1 && b->dims[i] != x->dims[i])
            return false;
    return true;
}

convolved standin_convolved(const program *p, const step *s)
{
    const int *at = s->operands, pass = standin_pass(s);
    convolved c = {at[0], at[1], at[3], 0, 0};
    if (pass == 1)
        c = (convolved){at[3], at[1], at[0], 0, 0};
    if (pass == 2)
        c = (convolved){at[0], at[3], at[1], 0, 0};
    c.first = DIMS - (int)p->tensors[c.x].ndim;
    c.groups = p->tensors[c.x].dims[c.first + 1] / p->tensors[c.w].dims[c.first + 1];
    return c;
}

static bool convolution_fits(const program *p, const step *s)
{
    const convolved c = standin_convolved(p, s);
    const tensor *x = &p->tensors[c.x], *w = &p->tensors[c.w], *y = &p->tensors[c.y];
    bool fits = s->mode == CUDNN_CROSS_CORRELATION && x->ndim >= 4 && w->ndim == x->ndim &&
                y->ndim == x->ndim && x->dims[c.first] == y->dims[c.first] &&
                y->dims[c.first + 1] == w->dims[c.first] && c.groups > 0 &&
                x->dims[c.first + 1] == c.groups * w->dims[c.first + 1] &&
                w->dims[c.first] % c.groups == 0;
    for (int i = c.first + 2; i < DIMS; i++) {
        int64_t span = (w->dims[i] - 1) * s->dilation[i] + 1;
        fits = fits && s->stride[i] > 0 &&
               (x->dims[i] + 2 * s->padding[i] - span) / s->stride[i] + 1 == y->dims[i];
    }
    return fits;
}

static bool shapes_fit(const program *p, const step *s)
{
    const tensor *x = &p->tensors[s->operands[0]], *y = &p->tensors[s->operands[3]];
    const tensor *b = s->operands[1] < 0 ? NULL : &p->tensors[s->operands[1]];
    if (s->kind == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
        return b && x->dims[COLUMN] == b->dims[ROW] && y->dims[ROW] == x->dims[ROW] &&
               y->dims[COLUMN] == b->dims[COLUMN] && memcmp(x->dims, y->dims, 8 * ROW) == 0;
    if (standin_pass(s) >= 0)
        return convolution_fits(p, s);
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

/* A convolution's numbers; those before and behind are one here, as tern gives them. */
static bool read_window(const descriptor *how, step *s)
{
    const int64_t n = standin_number(how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0);
    const attribute *a[] = {standin_attribute(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
                            standin_attribute(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
                            standin_attribute(how, CUDNN_ATTR_CONVOLUTION_DILATIONS),
                            standin_attribute(how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS)};
    int64_t *to[] = {s->stride, s->padding, s->dilation}, behind[DIMS] = {0};
    for (int i = 0; i < 4; i++) {
        if (a[i]->n != n)
            return false;
        memcpy((i < 3 ? to[i] : behind) + DIMS - n, a[i]->values, 8 * (size_t)n);
    }
    return memcmp(behind, s->padding, sizeof behind) == 0;
}

cudnnStatus_t standin_compile(const descriptor *graph, program *p)
{
    const attribute *list = standin_attribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (int64_t i = 0; i < list->n; i++) {
        const descriptor *d;
        memcpy(&d, list->values + 8 * i, sizeof d);
        size_t k = 0;
        while (k < OPERATIONS && operations[k].kind != d->kind)
            k++;
        if (k == OPERATIONS)
            return BAD_PARAM;
        const descriptor *how = operations[k].how ? standin_pointed(d, operations[k].how) : NULL;
        step *s = &p->steps[p->n_steps++];
        *s = (step){.kind = d->kind,
                    .mode = standin_number(how, operations[k].mode, 0),
                    .axis = how && how->kind == CUDNN_BACKEND_POINTWISE_DESCRIPTOR
                                ? standin_number(how, CUDNN_ATTR_POINTWISE_AXIS, -1)
                                : -1};
        const cudnnBackendAttributeName_t *names = operations[k].operands;
        for (int j = 0; j < 4; j++)
            s->operands[j] = tensor_of(p, names[j] ? standin_pointed(d, names[j]) : NULL);
        if (k >= FIRST_CONVOLUTION && !read_window(how, s))
            return BAD_PARAM;
        if (s->operands[0] < 0 || s->operands[3] < 0 || !shapes_fit(p, s))
            return BAD_PARAM;
    }
    return is_in_order(p) ? 0 : BAD_PARAM;
}

int standin_products(const program *p)
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
    int products = standin_products(p);
    if (standin_pass(&p->steps[0]) >= 0) /* and a number for each channel to add */
        return p->n_steps == 1 || (p->n_steps == 2 && p->steps[1].mode == CUDNN_POINTWISE_ADD);
    bool takes = products == 1 || products == 2 || products == 5;
    for (int i = 0; i < p->n_tensors; i++) {
        const tensor *t = &p->tensors[i];
        if (t->is_virtual || t->by_value || t->type == CUDNN_DATA_FLOAT)
            continue;
        int columns = t->strides[COLUMN] == 1 ? COLUMN : ROW;
        takes = takes && (t->type == CUDNN_DATA_HALF || t->type == CUDNN_DATA_BFLOAT16) &&
                t->strides[columns] == 1 && t->dims[columns] % 8 == 0 &&
                (products == 1 ? t->ndim == 3 : t->ndim == 4 && t->dims[columns] <= 128);
    }
    return takes;
}
