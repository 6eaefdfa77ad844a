/* convolution.c -- convolutions through cuDNN, where it is installed and supports the shape.
 *
 * The plan for a shape is kept: descriptors, an algorithm and the scratch memory that it needs
 * (convolution_choice.c). Other convolutions go to convolution_own.c, or to products of unfolded
 * columns (ops/convolution/conv_run.c). */
#include "base/dtype.h"
#include "base/lock.h"
#include "base/env.h"
#include "base/warning.h"
#include "device/cuda/convolution.h"
#include <stdlib.h>
#include <string.h>
#include <tern/backends.h>

/* MOST_SCRATCH: the most scratch memory of an algorithm. ALIGNMENT: what its loads rely on. */
enum { PLANS = 512, MOST_SCRATCH = 256 << 20, ALIGNMENT = 16, FIRST_COMPUTE = 90 };

typedef tern_cuda_conv_key key;
typedef tern_cuda_conv_plan plan;

struct tern_cuda_dnn_state {
    cudnnHandle_t handle;
    cudaStream_t stream; /* stream of the handle */
    plan plans[PLANS];   /* a hash table with linear probing */
};

/* ---- descriptions ------------------------------------------------------------------------ */

static bool is_small(int64_t a, int64_t b, const int64_t *dims)
{
    int64_t all = 1;
    const int64_t of[] = {a, b, dims[0], dims[1], dims[2]};
    for (int i = 0; i < 5; i++)
        if (__builtin_mul_overflow(all, of[i], &all) || all > INT32_MAX)
            return false;
    return true;
}

static bool is_aligned(const tern_arg *a)
{
    uint64_t address = (uint64_t)(uintptr_t)a->buffer->handle + (uint64_t)a->at * a->bytes;
    return address % ALIGNMENT == 0;
}

/* Returns whether cuDNN can express the convolution: it counts in ints, pads both ends alike, and
 * derives the size of y itself. */
static bool fits(const tern_convolution *c)
{
    const tern_conv_shape *s = c->shape;
    if (c->dtype > TERN_BF16 || !tern_cuda_conv_types[c->dtype].known ||
        !is_small(s->n, s->c, s->in) || !is_small(s->n, s->o, s->out) ||
        !is_small(s->o, s->c, s->window))
        return false;
    for (int d = 0; d < 3; d++) {
        int64_t span = (s->window[d] - 1) * s->dilation[d] + 1;
        int64_t extent = s->in[d] + 2 * s->padding[d] - span;
        if (extent < 0 || extent / s->stride[d] + 1 != s->out[d] || extent > INT32_MAX)
            return false;
    }
    return is_aligned(&c->x) && is_aligned(&c->weight) && is_aligned(&c->y) &&
           (!c->bias.buffer || is_aligned(&c->bias));
}

/* Returns whether cuDNN's graphs are tried. From compute capability 9.0 on they have new engines
 * for half precision with channels last. Grouped convolutions are left out, as cuDNN compiles
 * kernels for them. TERN_CUDNN_CONVOLUTION: 1 for all that the graphs take, 0 for none, to compare
 * them. */
static bool wants_graph(tern_place *place, const tern_convolution *c)
{
    bool half = tern_dtype_is_half(c->dtype);
    if (!tern_cuda.has_graph || c->accumulates || c->deterministic ||
        !tern_env_flag(TERN_ENV_CUDNN_CONVOLUTION, true) || (!half && !c->tf32))
        return false;
    return tern_env(TERN_ENV_CUDNN_CONVOLUTION) ||
           (half && c->channels_last && c->shape->groups == 1 &&
            tern_cuda_state_of(place)->compute >= FIRST_COMPUTE);
}

static void set_dims(int *to, int64_t a, int64_t b, const int64_t *dims, int n)
{
    to[0] = (int)a;
    to[1] = (int)b;
    for (int i = 0; i < n; i++)
        to[2 + i] = (int)dims[3 - n + i];
}

static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t *tensor, cudnnDataType_t type, int n,
                                const int *dims, bool last)
{
    int strides[5];
    cudnnStatus_t code = tern_cuda.cudnnCreateTensorDescriptor(tensor);
    for (int i = n - 1, stride = 1, d; i >= 0; i--, stride *= dims[d]) {
        d = last ? tern_channels_last_dim(i, n) : i;
        strides[d] = stride;
    }
    return code ? code : tern_cuda.cudnnSetTensorNdDescriptor(*tensor, type, n, dims, strides);
}

static cudnnStatus_t set_filter(cudnnFilterDescriptor_t *filter, cudnnDataType_t type, int n,
                                const int *dims, bool last)
{
    cudnnStatus_t code = tern_cuda.cudnnCreateFilterDescriptor(filter);
    return code ? code
                : tern_cuda.cudnnSetFilterNdDescriptor(
                      *filter, type, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, n, dims);
}

/* Returns the math type: FMA for float32 without TensorFloat-32, tensor cores for 16-bit types. */
static cudnnMathType_t math_of(const key *k)
{
    if (k->dtype == TERN_F32)
        return k->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
    return k->dtype == TERN_F64 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

static cudnnStatus_t set_convolution(const key *k, int n, cudnnConvolutionDescriptor_t *conv)
{
    int numbers[3][3];
    const tern_conv_shape *s = &k->shape;
    const int64_t *const from[] = {s->padding, s->stride, s->dilation};
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < n; d++)
            numbers[i][d] = (int)from[i][3 - n + d];
    cudnnStatus_t code = tern_cuda.cudnnCreateConvolutionDescriptor(conv);
    if (!code)
        code = tern_cuda.cudnnSetConvolutionNdDescriptor(*conv, n, numbers[0], numbers[1],
                                                         numbers[2], CUDNN_CROSS_CORRELATION,
                                                         tern_cuda_conv_types[k->dtype].compute);
    if (!code)
        code = tern_cuda.cudnnSetConvolutionGroupCount(*conv, (int)s->groups);
    if (!code)
        code = tern_cuda.cudnnSetConvolutionMathType(*conv, math_of(k));
    return code;
}

static cudnnStatus_t describe(plan *p)
{
    const tern_conv_shape *s = &p->of.shape;
    int n = tern_cuda_conv_dims(s), x[5], y[5], w[5];
    cudnnDataType_t type = tern_cuda_conv_types[p->of.dtype].type;
    set_dims(x, s->n, s->c, s->in, n);
    set_dims(y, s->n, s->o, s->out, n);
    set_dims(w, s->o, s->c / s->groups, s->window, n);
    bool last = p->of.channels_last;
    cudnnStatus_t code = set_tensor(&p->x, type, n + 2, x, last);
    if (!code)
        code = set_tensor(&p->y, type, n + 2, y, last);
    if (!code)
        code = set_filter(&p->w, type, n + 2, w, last);
    return code ? code : set_convolution(&p->of, n, &p->conv);
}

/* ---- plans ------------------------------------------------------------------------------- */

static void drop(plan *p)
{
    tern_dnn_clear(&p->graph);
    if (p->x)
        tern_cuda.cudnnDestroyTensorDescriptor(p->x);
    if (p->y)
        tern_cuda.cudnnDestroyTensorDescriptor(p->y);
    if (p->w)
        tern_cuda.cudnnDestroyFilterDescriptor(p->w);
    if (p->conv)
        tern_cuda.cudnnDestroyConvolutionDescriptor(p->conv);
    *p = (plan){.used = false};
}

tern_status tern_cuda_dnn_check(tern_place *place, cudnnStatus_t code, const char *call)
{
    if (code == 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_DEVICE, "%s: %s gave %s (%u)", tern_place_info(place)->device, call,
                     tern_cuda.cudnnGetErrorString(code), code);
}

/* Returns the plan with the key k, else the entry for it, or NULL if all entries are recorded
 * plans. */
static plan *place_of(struct tern_cuda_dnn_state *state, const key *k)
{
    const size_t first = tern_hash(TERN_HASH_SEED, k, sizeof *k) % PLANS;
    plan *place = NULL;
    for (size_t i = 0; i < PLANS && !(place && !place->used); i++) {
        plan *p = &state->plans[(first + i) % PLANS];
        if (p->used && memcmp(&p->of, k, sizeof *k) == 0)
            return p;
        if (!p->recorded && (!place || !p->used))
            place = p;
    }
    return place;
}

/* Sets *found to the plan: NULL or not usable if cuDNN refuses the convolution. */
static tern_status find_plan(tern_place *place, struct tern_cuda_dnn_state *state,
                             const tern_convolution *c, plan **found)
{
    key k;
    memset(&k, 0, sizeof k);
    k.shape = *c->shape;
    k.pass = (int32_t)c->pass;
    k.dtype = (int32_t)c->dtype;
    k.tf32 = c->tf32;
    k.deterministic = c->deterministic;
    k.channels_last = c->channels_last;
    k.benchmark = c->measures;
    k.graph = wants_graph(place, c);
    k.bias = c->bias.buffer != NULL;
    plan *p = place_of(state, &k);
    *found = p;
    if (!p || (p->used && memcmp(&p->of, &k, sizeof k) == 0 &&
               (!p->untried || p->recorded || tern_thread.recording_stream)))
        return TERN_OK;
    drop(p);
    p->of = k;
    p->used = true;
    cudnnStatus_t code = describe(p);
    if (!code)
        code = tern_cuda_conv_choose(place, state->handle, p, c, MOST_SCRATCH, true);
    if (!code || tern_cuda_dnn_refuses(code))
        return TERN_OK;
    drop(p);
    return tern_cuda_dnn_check(place, code,
                               k.graph ? "describing a convolution to cuDNN's graphs "
                                         "(TERN_CUDNN_CONVOLUTION=0 goes without them)"
                                       : "describing a convolution to cuDNN");
}

tern_status tern_cuda_dnn_open(tern_place *place, cudnnHandle_t *handle)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    if (!device->dnn && !(device->dnn = tern_alloc(sizeof *device->dnn)))
        return TERN_ERR_MEMORY;
    tern_cuda_dnn_state *state = device->dnn;
    cudaStream_t stream = tern_cuda_stream(place);
    *handle = state->handle;
    if (state->stream && state->stream == stream)
        return TERN_OK;
    cudnnStatus_t code = state->handle ? 0 : tern_cuda.cudnnCreate(&state->handle);
    if (code)
        return tern_fail(TERN_ERR_DEVICE,
                         "%s: cuDNN %zu does not start: cudnnCreate gave %s (%u); "
                         "tern_backends_cudnn_set_enabled(false) goes without it",
                         tern_place_info(place)->device, tern_cuda.cudnnGetVersion(),
                         tern_cuda.cudnnGetErrorString(code), code);
    TERN_TRY(tern_cuda_dnn_check(place, tern_cuda.cudnnSetStream(state->handle, stream),
                                 "cudnnSetStream"));
    state->stream = stream;
    *handle = state->handle;
    return TERN_OK;
}

/* ---- the slots --------------------------------------------------------------------------- */

static tern_status plan_dnn(tern_place *place, const tern_convolution *c, size_t *scratch,
                            bool *taken)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    plan *p = NULL;
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&device->dnn_lock);
    cudnnHandle_t handle;
    tern_status status = tern_cuda_dnn_open(place, &handle);
    if (status == TERN_OK)
        status = find_plan(place, device->dnn, c, &p);
    bool warns = status == TERN_OK && p && p->unmeasured;
    if (status == TERN_OK && p) {
        *taken = p->usable;
        *scratch = p->usable ? p->scratch : 0;
        p->unmeasured = false;
    }
    tern_mutex_unlock(&device->dnn_lock);
    if (warns) /* without the lock, as the program may handle warnings */
        tern_warn("slow", "tern_conv2d",
                  "%s: no algorithm could be measured: cuDNN's heuristics choose",
                  tern_place_info(place)->device);
    return status;
}

/* If cuDNN takes the convolution only without its bias, the caller asks again without the bias.
 * library and measures are set here, so that a recorded convolution runs as it was planned even if
 * the program changes its settings. */
tern_status tern_cuda_convolution_plan(tern_place *place, tern_convolution *c, size_t *scratch,
                                       bool *taken)
{
    const bool bias = c->bias.buffer != NULL;
    c->library = tern_cuda.has_dnn && tern_backends_cudnn_is_enabled() && fits(c);
    c->measures = tern_backends_cudnn_benchmarks();
    *taken = false;
    if (c->library && (!bias || wants_graph(place, c)))
        TERN_TRY(plan_dnn(place, c, scratch, taken));
    if (!*taken && !(c->library && bias))
        TERN_TRY(tern_cuda_convolution_own_plan(place, c, scratch, taken));
    if (!*taken && !tern_cuda.has_dnn)
        tern_warn("slow", "tern_conv2d", "convolutions on %s are products of unfolded images: %s",
                  tern_place_info(place)->device, tern_device_notes("cuda"));
    return TERN_OK;
}

static tern_status run_dnn(tern_place *place, const tern_convolution *c, bool *taken)
{
    tern_cuda_state *device = tern_cuda_state_of(place);
    cudnnHandle_t handle;
    plan *p = NULL;
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&device->dnn_lock);
    tern_status status = tern_cuda_dnn_open(place, &handle);
    if (status == TERN_OK)
        status = find_plan(place, device->dnn, c, &p);
    *taken = p || status != TERN_OK;
    if (status == TERN_OK && p) {
        void *scratch = c->scratch ? c->scratch->handle : NULL, *at[4];
        const size_t extent = c->scratch ? c->scratch->bytes : 0;
        /* A plan that was replaced in the meantime may need more scratch memory than was allocated,
         * and a plan of its graph may refuse to run. */
        bool again = p->scratch > extent;
        cudnnStatus_t code = 0;
        tern_cuda_conv_places(c, at);
        do {
            code = again ? tern_cuda_conv_choose(place, handle, p, c, extent, false) : 0;
            if (!code && p->usable)
                code = tern_cuda_conv_run(handle, p, at, scratch, c->accumulates);
            again = tern_cuda_dnn_refuses(code) && p->graph.plan;
            p->legacy |= again;
        } while (again);
        if (tern_cuda_dnn_refuses(code) || !p->usable) /* cuDNN refuses its own candidate */
            *taken = p->usable = false;
        else
            status = tern_cuda_dnn_check(place, code, "a convolution through cuDNN");
        p->recorded |= tern_thread.recording_stream && p->graph.plan;
    }
    tern_mutex_unlock(&device->dnn_lock);
    return status;
}

tern_status tern_cuda_convolution(tern_place *place, const tern_convolution *c, bool *taken)
{
    *taken = false;
    if (c->library)
        TERN_TRY(run_dnn(place, c, taken));
    if (!*taken && !(c->library && c->bias.buffer))
        TERN_TRY(tern_cuda_convolution_own(place, c, taken));
    return TERN_OK;
}
