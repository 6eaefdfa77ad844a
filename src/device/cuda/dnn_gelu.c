/* dnn_gelu.c -- gelu, by erf, and its gradient within a large product of halves, through cuDNN's graphs: cuBLASLt has gelu by
 * tanh alone.
 *
 *   h = A B + bias,  C = gelu(h), and h is noted; or C = gelu'(h) A B
 *
 * Making a plan takes cuDNN a second of a processor, a kernel compiled: what cuDNN answers for a shape is kept. */
#include "base/dtype.h"
#include "base/env.h"
#include "device/cuda/dnn_graph.h"
#include <stdlib.h>
#include <string.h>
#include <tern/backends.h>

enum { PLANS = 32, FIRST_COMPUTE = 80, ALIGNMENT = 16 };
/* Of products of two numbers: with fewer a plan is not worth its making. */
static const double FEWEST = 0x1p33;
enum { A = 1, B, PRODUCT, BIAS, H, C, TENSORS };

/* Compared byte by byte. */
typedef struct problem {
    int64_t m, n, k, rows[TENSORS]; /* how far rows are apart; of B's columns, where it is turned */
    int32_t dtype, gradient, turned, unused;
} problem;

struct tern_cuda_gelu_state {
    struct {
        tern_dnn_plan plan;
        problem of;
    } plans[PLANS];
};

static uint64_t address(const tern_buffer *buffer, int64_t at)
{
    return buffer ? (uint64_t)(uintptr_t)buffer->handle + 2 * (uint64_t)at : 0;
}

static bool describe(const tern_gemm *g, problem *p)
{
    memset(p, 0, sizeof *p);
    p->m = g->m, p->n = g->n, p->k = g->k;
    p->dtype = (int32_t)g->dtype;
    p->gradient = g->end == TERN_GEMM_ERF_GRADIENT;
    p->turned = g->b.col != 1;
    p->rows[A] = g->a.row;
    p->rows[B] = p->turned ? g->b.col : g->b.row;
    p->rows[H] = tern_gemm_gelu_row(g->n);
    p->rows[C] = g->c.row;
    uint64_t all = address(g->a.buffer, g->a.at) | address(g->b.buffer, g->b.at) |
                   address(g->c.buffer, g->c.at) | address(g->bias, g->bias_at) |
                   address(g->mask, g->mask_at);
    return (tern_dtype_is_half(g->dtype)) && g->count[0] * g->count[1] == 1 && g->alpha == 1 &&
           g->beta == 0 && g->a.col == 1 && g->c.col == 1 && (!p->turned || g->b.row == 1) &&
           g->n % 8 == 0 && g->k % 8 == 0 && (p->rows[A] | p->rows[B] | p->rows[C]) % 8 == 0 &&
           all % ALIGNMENT == 0 && (g->bias != NULL) != (p->gradient != 0) && !g->sums && !g->wide;
}

/* TERN_CUDNN_GELU: 1 for all that cuDNN takes, 0 for none, to compare the two. */
static bool is_wanted(tern_place *place, const tern_gemm *g)
{
    if (!tern_cuda.has_graph || !tern_backends_cudnn_is_enabled() ||
        !tern_env_flag(TERN_ENV_CUDNN_GELU, true))
        return false;
    return tern_env(TERN_ENV_CUDNN_GELU) || ((double)g->m * (double)g->n * (double)g->k >= FEWEST &&
                                             tern_cuda_state_of(place)->compute >= FIRST_COMPUTE);
}

static cudnnBackendDescriptor_t matrix(tern_dnn_graph *g, const problem *p, int id, int64_t rows,
                                       int64_t columns)
{
    bool turned = id == B && p->turned, between = id == PRODUCT;
    int64_t row = between ? columns : p->rows[id];
    tern_dnn_tensor t = {
        .type = between                ? CUDNN_DATA_FLOAT
                : p->dtype == TERN_F16 ? CUDNN_DATA_HALF
                                       : CUDNN_DATA_BFLOAT16,
        .id = id,
        .ndim = 3,
        .dims = {1, rows, columns},
        .strides = {(turned ? columns : rows) * row, turned ? 1 : row, turned ? row : 1},
        .is_virtual = between};
    return tern_dnn_tensor_new(g, &t);
}

static void add(tern_dnn_graph *g, tern_dnn_kind kind, int mode, cudnnBackendDescriptor_t x,
                cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t y)
{
    tern_dnn_add(g, &(tern_dnn_operation){.kind = kind,
                                          .mode = mode,
                                          .precision = CUDNN_DATA_FLOAT,
                                          .operands = {x, b, NULL, y}});
}

void tern_dnn_gelu(tern_dnn_graph *g, const tern_gemm *of)
{
    problem p;
    describe(of, &p);
    p.rows[BIAS] = p.n;
    cudnnBackendDescriptor_t a = matrix(g, &p, A, p.m, p.k), b = matrix(g, &p, B, p.k, p.n),
                             ab = matrix(g, &p, PRODUCT, p.m, p.n), h = matrix(g, &p, H, p.m, p.n),
                             c = matrix(g, &p, C, p.m, p.n);
    add(g, TERN_DNN_PRODUCT, 0, a, b, ab);
    if (p.gradient) {
        add(g, TERN_DNN_POINTWISE_BACK, CUDNN_POINTWISE_GELU_BWD, ab, h, c);
    } else {
        add(g, TERN_DNN_POINTWISE, CUDNN_POINTWISE_ADD, ab, matrix(g, &p, BIAS, 1, p.n), h);
        add(g, TERN_DNN_POINTWISE, CUDNN_POINTWISE_GELU_FWD, h, NULL, c);
    }
    tern_dnn_make_plan(g);
}

/* *found is NULL, or not usable, where cuDNN refuses; what else fails is an error, and asked for again. */
static tern_status find_plan(tern_place *place, const tern_gemm *g, const problem *p,
                             tern_dnn_plan **found)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    cudnnHandle_t handle;
    void *scratch;
    size_t bytes;
    TERN_TRY(tern_cuda_gemm_workspace(place, &scratch, &bytes));
    TERN_TRY(tern_cuda_dnn_open(place, &handle));
    if (!device->gelu && !(device->gelu = tern_alloc(sizeof *device->gelu)))
        return TERN_ERR_MEMORY;
    tern_dnn_plan *x = tern_dnn_plan_of(device->gelu->plans, PLANS, p, sizeof *p);
    *found = x;
    if (!x || x->used)
        return TERN_OK;
    x->graph.handle = handle;
    tern_dnn_gelu(&x->graph, g);
    cudnnStatus_t code = x->graph.code;
    x->usable = !code && (size_t)x->graph.scratch <= bytes;
    x->used = !code || tern_cuda_dnn_refuses(code);
    return x->used ? TERN_OK : tern_cuda_dnn_check(place, code, "describing a product to cuDNN");
}

tern_status tern_cuda_gelu_fits(tern_place *place, const tern_gemm *g, bool *fits)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    problem p;
    tern_dnn_plan *x = NULL;
    if (!is_wanted(place, g) || !describe(g, &p))
        return TERN_OK;
    TERN_TRY(tern_cuda_enter(place));
    pthread_mutex_lock(&device->dnn_lock);
    tern_status status = find_plan(place, g, &p, &x);
    *fits = status == TERN_OK && x && x->usable;
    pthread_mutex_unlock(&device->dnn_lock);
    return status;
}

tern_status tern_cuda_gelu(tern_place *place, const tern_gemm *g)
{
    static const int64_t onward[] = {A, B, H, C, BIAS};
    tern_cuda_state *device = tern_cuda_state_of(place);
    problem p;
    tern_dnn_plan *x = NULL;
    void *scratch;
    size_t bytes;
    const uint64_t at[] = {address(g->a.buffer, g->a.at), address(g->b.buffer, g->b.at),
                           address(g->mask, g->mask_at), address(g->c.buffer, g->c.at),
                           address(g->bias, g->bias_at)};
    void *pointers[5];
    for (int i = 0; i < 5; i++)
        pointers[i] = (void *)(uintptr_t)at[i];
    bool fits = tern_cuda.has_graph && describe(g, &p);
    TERN_TRY(tern_cuda_enter(place));
    TERN_TRY(tern_cuda_gemm_workspace(place, &scratch, &bytes));
    pthread_mutex_lock(&device->dnn_lock);
    tern_status status = fits ? find_plan(place, g, &p, &x) : TERN_OK;
    if (status == TERN_OK)
        status =
            x && x->usable
                ? tern_cuda_dnn_check(
                      place, tern_dnn_run(&x->graph, p.gradient ? 4 : 5, onward, pointers, scratch),
                      "a product with gelu through cuDNN "
                      "(TERN_CUDNN_GELU=0 goes without it)")
                : tern_fail(TERN_ERR_DEVICE, "%s: cuDNN has no GELU with this product",
                            tern_place_info(place)->device);
    if (x)
        x->recorded |= tern_thread.recording_stream != NULL;
    pthread_mutex_unlock(&device->dnn_lock);
    return status;
}
