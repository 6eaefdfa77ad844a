/* cudnn.c -- the stand-in's cuDNN: convolutions, written from its documentation. It refuses what
 * cuDNN refuses, and misaligned pointers, memory of another device, and too little scratch memory,
 * which it overwrites. */
#include "cudnn_graph.h"
#include <stdlib.h>
#include <string.h>

enum { SHAPES = 2008, NOT_SUPPORTED = 3000 };
enum { Y, X, WEIGHT, PASSES, ALGORITHMS = 16, MOST_DIMS = 5 };

#define X(RESULT, NAME, PARAMETERS) EXPORT RESULT NAME PARAMETERS;
#include "device/cuda/cudnn.def"
#include "slow.h"
#undef X

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int n, dims[MOST_DIMS], strides[MOST_DIMS];
};
struct cudnnFilterStruct {
    struct cudnnTensorStruct of; /* dense */
};
struct cudnnConvolutionStruct {
    int n, padding[3], stride[3], dilation[3], groups;
    cudnnDataType_t compute;
    cudnnMathType_t math;
};

size_t cudnnGetVersion(void)
{
    const char *version = getenv("TERN_STANDIN_CUDNN");
    return version ? strtoull(version, NULL, 10) : 91900;
}

size_t cudnnGetCudartVersion(void)
{
    return 13000;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN status of the stand-in";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    FAULT(cudnnCreate);
    *handle = calloc(1, sizeof **handle);
    if (*handle)
        (*handle)->device = standin_current();
    return *handle ? 0 : ALLOCATION;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    FAULT(cudnnSetStream);
    handle->stream = stream;
    return 0;
}

/* ---- descriptions ------------------------------------------------------------------------ */

#define DESCRIPTOR(TYPE)                                                                           \
    cudnnStatus_t cudnnCreate##TYPE##Descriptor(cudnn##TYPE##Descriptor_t *made)                   \
    {                                                                                              \
        FAULT(cudnnCreate##TYPE##Descriptor);                                                      \
        *made = calloc(1, sizeof **made);                                                          \
        return *made ? 0 : ALLOCATION;                                                             \
    }                                                                                              \
    cudnnStatus_t cudnnDestroy##TYPE##Descriptor(cudnn##TYPE##Descriptor_t old)                    \
    {                                                                                              \
        free(old);                                                                                 \
        return 0;                                                                                  \
    }
DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)

static cudaDataType cuda_type(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT    ? CUDA_R_32F
           : type == CUDNN_DATA_DOUBLE ? CUDA_R_64F
           : type == CUDNN_DATA_HALF   ? CUDA_R_16F
                                       : CUDA_R_16BF;
}

static size_t size_of(cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

static bool is_known(cudnnDataType_t type)
{
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
           type == CUDNN_DATA_BFLOAT16;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensor, cudnnDataType_t type,
                                         int n, const int *dims, const int *strides)
{
    FAULT(cudnnSetTensorNdDescriptor);
    if (n < 4 || n > MOST_DIMS || !is_known(type))
        return NOT_SUPPORTED;
    tensor->type = type;
    tensor->n = n;
    for (int i = 0; i < n; i++) {
        if (dims[i] < 1 || strides[i] < 1)
            return BAD_PARAM;
        tensor->dims[i] = dims[i];
        tensor->strides[i] = strides[i];
    }
    return 0;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int n, const int *dims)
{
    FAULT(cudnnSetFilterNdDescriptor);
    int strides[MOST_DIMS];
    if ((format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) || n < 4 || n > MOST_DIMS)
        return NOT_SUPPORTED;
    for (int i = n - 1, stride = 1, d; i >= 0; i--, stride *= dims[d]) {
        d = format == CUDNN_TENSOR_NCHW || i == 0 ? i : i == n - 1 ? 1 : i + 1;
        strides[d] = stride;
    }
    return cudnnSetTensorNdDescriptor(&filter->of, type, n, dims, strides);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t conv, int n,
                                              const int *padding, const int *stride,
                                              const int *dilation, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    FAULT(cudnnSetConvolutionNdDescriptor);
    if (n < 2 || n > 3 || mode != CUDNN_CROSS_CORRELATION)
        return NOT_SUPPORTED;
    *conv = (struct cudnnConvolutionStruct){.n = n, .groups = 1, .compute = compute};
    for (int i = 0; i < n; i++) {
        if (padding[i] < 0 || stride[i] < 1 || dilation[i] < 1)
            return BAD_PARAM;
        conv->padding[i] = padding[i];
        conv->stride[i] = stride[i];
        conv->dilation[i] = dilation[i];
    }
    return 0;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t conv, int groups)
{
    FAULT(cudnnSetConvolutionGroupCount);
    conv->groups = groups;
    return groups < 1 ? BAD_PARAM : 0;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math)
{
    FAULT(cudnnSetConvolutionMathType);
    conv->math = math;
    return math > CUDNN_FMA_MATH ? BAD_PARAM : 0;
}

/* The shapes fit each other, and the types are of a configuration that cuDNN lists. */
static cudnnStatus_t check(const struct cudnnTensorStruct *x, const struct cudnnTensorStruct *w,
                           const struct cudnnConvolutionStruct *c,
                           const struct cudnnTensorStruct *y)
{
    cudnnDataType_t compute = x->type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
    if (x->n != w->n || x->n != y->n || x->n != c->n + 2 || x->dims[0] != y->dims[0] ||
        x->dims[1] != w->dims[1] * c->groups || y->dims[1] != w->dims[0] || w->dims[0] % c->groups)
        return SHAPES;
    if (w->type != x->type || y->type != x->type || c->compute != compute)
        return NOT_SUPPORTED;
    for (int d = 0; d < c->n; d++) {
        int room = x->dims[2 + d] + 2 * c->padding[d] - (w->dims[2 + d] - 1) * c->dilation[d] - 1;
        if (room < 0 || room / c->stride[d] + 1 != y->dims[2 + d])
            return SHAPES;
    }
    return 0;
}

/* ---- algorithms -------------------------------------------------------------------------- */

/* Best first, as the heuristics give them: one that is not for this, one whose order of summing is
 * not fixed, one with scratch memory, one without. */
static const struct {
    unsigned algo;
    cudnnStatus_t status;
    bool deterministic;
    size_t scratch;
} algorithms[PASSES][4] = {
    [Y] = {{6, NOT_SUPPORTED, true, 64}, {1, 0, true, 1040}, {0, 0, true, 0}, {2, 0, true, 64}},
    [X] = {{5, NOT_SUPPORTED, true, 64}, {0, 0, false, 0}, {1, 0, true, 2064}, {3, 0, true, 64}},
    [WEIGHT] = {{6, NOT_SUPPORTED, true, 1},
                {3, 0, false, 48},
                {1, 0, true, 528},
                {0, 0, false, 0}},
};
static long calls[PASSES][ALGORITHMS];

/* For tests: how often an algorithm of a pass (y, x, weight) was run. */
EXPORT long standin_convolutions(int pass, int algorithm);
long standin_convolutions(int pass, int algorithm)
{
    standin_lock();
    long n = calls[pass][algorithm];
    standin_unlock();
    return n;
}

void standin_count_convolution(cudaStream_t stream, int pass, int algorithm)
{
    standin_lock();
    calls[pass][algorithm]++;
    standin_unlock();
    if (slow[pass][algorithm])
        standin_command(stream, wait_for, &slow[pass][algorithm], sizeof(int));
}

static cudnnStatus_t scratch_of(int pass, unsigned algorithm, size_t *bytes)
{
    for (int i = 0; i < 4; i++)
        if (algorithms[pass][i].algo == algorithm && !algorithms[pass][i].status) {
            *bytes = algorithms[pass][i].scratch;
            return 0;
        }
    return NOT_SUPPORTED;
}

static cudnnStatus_t list(int pass, cudnnStatus_t code, cudnnMathType_t math, int wanted, int *n,
                          struct tern_cudnn_perf *results)
{
    *n = 0;
    for (int i = 0; !code && i < wanted && i < 4; i++)
        results[(*n)++] = (struct tern_cudnn_perf){.algo = algorithms[pass][i].algo,
                                                   .status = algorithms[pass][i].status,
                                                   .memory = algorithms[pass][i].scratch,
                                                   .determinism = algorithms[pass][i].deterministic,
                                                   .mathType = math};
    return code;
}

/* ---- the sums ---------------------------------------------------------------------------- */

typedef struct job {
    int pass;
    struct cudnnTensorStruct x, w, y;
    struct cudnnConvolutionStruct c;
    void *at_x, *at_w, *at_y, *scratch;
    size_t scratch_bytes;
    double alpha, beta;
} job;

/* Where an element is; dims are three, the first left out where there are two. */
static int64_t place_of(const struct cudnnTensorStruct *t, int a, int b, const int *at)
{
    int64_t place = (int64_t)a * t->strides[0] + (int64_t)b * t->strides[1];
    for (int i = 2; i < t->n; i++)
        place += (int64_t)at[i - 2 + 5 - t->n] * t->strides[i];
    return place;
}

static int size_at(const struct cudnnTensorStruct *t, int d)
{
    return d < 5 - t->n ? 1 : t->dims[d - 3 + t->n];
}

/* Where x is read at d of its three dims, -1 outside. */
static int reach(const job *j, int d, int q, int k)
{
    int i = d - 3 + j->c.n;
    int p = i < 0 ? 0 : q * j->c.stride[i] - j->c.padding[i] + k * j->c.dilation[i];
    return p < size_at(&j->x, d) ? p : -1;
}

/* Along the last dim; of[pass] takes sums, the others are read. */
static void add_line(const job *j, double *const *of, int64_t x, int64_t w, int64_t y)
{
    const int last = j->c.n - 1, stride = j->c.stride[last], width = size_at(&j->x, 2);
    const int64_t x_step = j->x.strides[j->x.n - 1], y_step = j->y.strides[j->y.n - 1];
    for (int k = 0; k < size_at(&j->w, 2); k++) {
        int p = k * j->c.dilation[last] - j->c.padding[last], q = 0, end = size_at(&j->y, 2);
        if (p < 0)
            q = (stride - 1 - p) / stride;
        if (end > (width - p + stride - 1) / stride) /* none where p is behind the end */
            end = (width - p + stride - 1) / stride;
        double *at_x = &of[X][x + p * x_step];
        double *at_w = &of[WEIGHT][w + (int64_t)k * j->w.strides[j->w.n - 1]];
        double *at_y = &of[Y][y];
        const int64_t from = stride * x_step;
        if (j->pass == Y)
            for (; q < end; q++)
                at_y[q * y_step] += at_x[q * from] * *at_w;
        else if (j->pass == X)
            for (; q < end; q++)
                at_x[q * from] += at_y[q * y_step] * *at_w;
        else
            for (; q < end; q++)
                *at_w += at_x[q * from] * at_y[q * y_step];
    }
}

/* The products of one channel of y with one of x. */
static void add_products(const job *j, double *const *of, int image, int o, int c, int of_group)
{
    int q[3] = {0}, k[3] = {0};
    for (q[0] = 0; q[0] < size_at(&j->y, 0); q[0]++)
        for (q[1] = 0; q[1] < size_at(&j->y, 1); q[1]++)
            for (k[0] = 0; k[0] < size_at(&j->w, 0); k[0]++)
                for (k[1] = 0; k[1] < size_at(&j->w, 1); k[1]++) {
                    int p[3] = {reach(j, 0, q[0], k[0]), reach(j, 1, q[1], k[1]), 0};
                    if (p[0] >= 0 && p[1] >= 0)
                        add_line(j, of, place_of(&j->x, image, c, p),
                                 place_of(&j->w, o, of_group, k), place_of(&j->y, image, o, q));
                }
}

/* Its numbers, as they are read; zeros where sums are to be. */
static double *numbers_of(const job *j, const struct cudnnTensorStruct *t, const void *from,
                          bool sums)
{
    int64_t n = (int64_t)t->dims[0] * t->strides[0];
    bool fast = t->type == CUDNN_DATA_FLOAT && j->c.math != CUDNN_FMA_MATH;
    double *numbers = calloc((size_t)n, sizeof *numbers);
    for (int64_t i = 0; numbers && !sums && i < n; i++) {
        numbers[i] = standin_load(from, i, cuda_type(t->type));
        numbers[i] = fast ? standin_tf32(numbers[i]) : numbers[i];
    }
    return numbers;
}

static void convolve(void *data)
{
    const job *j = data;
    const struct cudnnTensorStruct *t[] = {&j->y, &j->x, &j->w}, *result = t[j->pass];
    void *const at[] = {j->at_y, j->at_x, j->at_w};
    double *of[PASSES];
    int each = j->w.dims[1], outs = j->w.dims[0] / j->c.groups;
    if (j->scratch_bytes)
        memset(j->scratch, 0xcd, j->scratch_bytes);
    for (int i = 0; i < PASSES; i++)
        of[i] = numbers_of(j, t[i], at[i], i == j->pass);
    for (int image = 0; of[Y] && of[X] && of[WEIGHT] && image < j->x.dims[0]; image++)
        for (int o = 0; o < j->w.dims[0]; o++)
            for (int c = 0; c < each; c++)
                add_products(j, of, image, o, o / outs * each + c, c);
    for (int64_t i = 0; of[j->pass] && i < (int64_t)result->dims[0] * result->strides[0]; i++) {
        double old = j->beta == 0 ? 0 : standin_load(at[j->pass], i, cuda_type(result->type));
        standin_save(at[j->pass], i, cuda_type(result->type),
                     j->alpha * of[j->pass][i] + j->beta * old);
    }
    for (int i = 0; i < PASSES; i++)
        free(of[i]);
}

static bool is_ours(const void *at, const struct cudnnTensorStruct *t)
{
    size_t bytes = (size_t)t->dims[0] * (size_t)t->strides[0] * size_of(t->type);
    return standin_owner(at, bytes) == standin_current();
}

static cudnnStatus_t run(cudnnHandle_t handle, job *j, unsigned algorithm, const void *alpha,
                         const void *beta)
{
    size_t needed = 0;
    cudnnStatus_t code = check(&j->x, &j->w, &j->c, &j->y);
    if (!code)
        code = scratch_of(j->pass, algorithm, &needed);
    if (code)
        return code;
    if (((uintptr_t)j->at_x | (uintptr_t)j->at_w | (uintptr_t)j->at_y) % 16)
        return MISALIGNED;
    if (handle->device != standin_current() || !is_ours(j->at_x, &j->x) ||
        !is_ours(j->at_w, &j->w) || !is_ours(j->at_y, &j->y) || j->scratch_bytes < needed ||
        (needed && standin_owner(j->scratch, needed) != standin_current()))
        return BAD_PARAM;
    bool wide = j->c.compute == CUDNN_DATA_DOUBLE;
    j->alpha = wide ? *(const double *)alpha : (double)*(const float *)alpha;
    j->beta = wide ? *(const double *)beta : (double)*(const float *)beta;
    standin_count_convolution(handle->stream, j->pass, (int)algorithm);
    return standin_command(handle->stream, convolve, j, sizeof *j) ? 0 : BAD_PARAM;
}

/* ---- the three passes -------------------------------------------------------------------- */

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, const int wanted,
    int *n, cudnnConvolutionFwdAlgoPerf_t *results)
{
    (void)handle;
    FAULT(cudnnGetConvolutionForwardAlgorithm_v7);
    return list(Y, check(x, &w->of, conv, y), conv->math, wanted, n, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, size_t *bytes)
{
    FAULT(cudnnGetConvolutionForwardWorkspaceSize);
    (void)handle, (void)x, (void)w, (void)conv, (void)y;
    return scratch_of(Y, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x, const void *from_x,
                                      const cudnnFilterDescriptor_t w, const void *from_w,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algorithm, void *scratch,
                                      size_t bytes, const void *beta,
                                      const cudnnTensorDescriptor_t y, void *to_y)
{
    FAULT(cudnnConvolutionForward);
    job j = {Y,    *x,      w->of, *y, *conv, (void *)(uintptr_t)from_x, (void *)(uintptr_t)from_w,
             to_y, scratch, bytes, 0,  0};
    return run(handle, &j, algorithm, alpha, beta);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t dx, const int wanted,
    int *n, cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    (void)handle;
    FAULT(cudnnGetConvolutionBackwardDataAlgorithm_v7);
    return list(X, check(dx, &w->of, conv, dy), conv->math, wanted, n, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, size_t *bytes)
{
    FAULT(cudnnGetConvolutionBackwardDataWorkspaceSize);
    (void)handle, (void)w, (void)dy, (void)conv, (void)dx;
    return scratch_of(X, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w, const void *from_w,
                                           const cudnnTensorDescriptor_t dy, const void *from_dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *scratch,
                                           size_t bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx, void *to_dx)
{
    FAULT(cudnnConvolutionBackwardData);
    job j = {X,
             *dx,
             w->of,
             *dy,
             *conv,
             to_dx,
             (void *)(uintptr_t)from_w,
             (void *)(uintptr_t)from_dy,
             scratch,
             bytes,
             0,
             0};
    return run(handle, &j, algorithm, alpha, beta);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw, const int wanted,
    int *n, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    (void)handle;
    FAULT(cudnnGetConvolutionBackwardFilterAlgorithm_v7);
    return list(WEIGHT, check(x, &dw->of, conv, dy), conv->math, wanted, n, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes)
{
    FAULT(cudnnGetConvolutionBackwardFilterWorkspaceSize);
    (void)handle, (void)x, (void)dy, (void)conv, (void)dw;
    return scratch_of(WEIGHT, algorithm, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x, const void *from_x,
                                             const cudnnTensorDescriptor_t dy, const void *from_dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm,
                                             void *scratch, size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw, void *to_dw)
{
    FAULT(cudnnConvolutionBackwardFilter);
    job j = {WEIGHT,  *x,
             dw->of,  *dy,
             *conv,   (void *)(uintptr_t)from_x,
             to_dw,   (void *)(uintptr_t)from_dy,
             scratch, bytes,
             0,       0};
    return run(handle, &j, algorithm, alpha, beta);
}
