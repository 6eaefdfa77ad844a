/* convolution_choice.c -- which of cuDNN's engines or algorithms computes a convolution: the first
 * that its heuristics name, or in benchmark mode the fastest one measured, which is kept on disk
 * too. */
#include "device/cache.h"
#include "device/cuda/convolution.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <tern/backends.h>

/* A number from GRAPH on is a candidate for the convolution's graph, a lower one cuDNN's
 * algorithm. */
enum {
    MOST_ALGORITHMS = 8,
    TURNS = 3,
    GRAPH = 256,
    CANDIDATES = MOST_ALGORITHMS + TERN_DNN_CANDIDATES
};

typedef tern_cuda_conv_plan plan;
typedef struct tern_cudnn_perf perf;

/* ---- the three passes, which cuDNN gives three functions each ------------------------------ */

static cudnnStatus_t find_algorithms(cudnnHandle_t handle, const plan *p, int *n, perf *results)
{
    switch (p->of.pass) {
    case TERN_CONV_Y:
        return tern_cuda.cudnnGetConvolutionForwardAlgorithm_v7(handle, p->x, p->w, p->conv, p->y,
                                                                MOST_ALGORITHMS, n, results);
    case TERN_CONV_X:
        return tern_cuda.cudnnGetConvolutionBackwardDataAlgorithm_v7(
            handle, p->w, p->y, p->conv, p->x, MOST_ALGORITHMS, n, results);
    default:
        return tern_cuda.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
            handle, p->x, p->y, p->conv, p->w, MOST_ALGORITHMS, n, results);
    }
}

static cudnnStatus_t find_scratch(cudnnHandle_t handle, const plan *p, unsigned algorithm,
                                  size_t *bytes)
{
    switch (p->of.pass) {
    case TERN_CONV_Y:
        return tern_cuda.cudnnGetConvolutionForwardWorkspaceSize(handle, p->x, p->w, p->conv, p->y,
                                                                 algorithm, bytes);
    case TERN_CONV_X:
        return tern_cuda.cudnnGetConvolutionBackwardDataWorkspaceSize(handle, p->w, p->y, p->conv,
                                                                      p->x, algorithm, bytes);
    default:
        return tern_cuda.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, p->x, p->y, p->conv,
                                                                        p->w, algorithm, bytes);
    }
}

cudnnStatus_t tern_cuda_conv_run(cudnnHandle_t handle, const plan *p, void *const at[4],
                                 void *scratch, bool adds)
{
    static const int64_t ids[] = {1, 2, 3, 4};
    void *x = at[0], *w = at[1], *y = at[2];
    if (p->graph.plan)
        return tern_dnn_run(&p->graph, p->of.bias ? 4 : 3, ids, at, scratch);
    static const float narrow[] = {1, 0};
    static const double wide[] = {1, 0};
    bool is_wide = p->of.dtype == TERN_F64;
    const void *one = is_wide ? (const void *)&wide[0] : &narrow[0];
    const void *zero = is_wide ? (const void *)&wide[1] : &narrow[1];
    switch (p->of.pass) {
    case TERN_CONV_Y:
        return tern_cuda.cudnnConvolutionForward(handle, one, p->x, x, p->w, w, p->conv,
                                                 p->algorithm, scratch, p->scratch, zero, p->y, y);
    case TERN_CONV_X:
        return tern_cuda.cudnnConvolutionBackwardData(handle, one, p->w, w, p->y, y, p->conv,
                                                      p->algorithm, scratch, p->scratch,
                                                      adds ? one : zero, p->x, x);
    default:
        return tern_cuda.cudnnConvolutionBackwardFilter(handle, one, p->x, x, p->y, y, p->conv,
                                                        p->algorithm, scratch, p->scratch, zero,
                                                        p->w, w);
    }
}

/* ---- what may be taken ------------------------------------------------------------------- */

/* An algorithm and its math type. */
typedef struct candidate {
    uint32_t algorithm, math;
    size_t scratch;
} candidate;

static cudnnStatus_t take(cudnnHandle_t handle, plan *p, const candidate *c)
{
    p->algorithm = c->algorithm;
    p->scratch = c->scratch;
    tern_dnn_clear(&p->graph);
    if (c->algorithm < GRAPH)
        return tern_cuda.cudnnSetConvolutionMathType(p->conv, c->math);
    p->graph.handle = handle;
    p->graph.first = c->algorithm - GRAPH;
    tern_dnn_convolution(&p->graph, &p->of);
    return p->graph.code;
}

/* Lists the candidates for the convolution's graph, best first. */
static cudnnStatus_t list_graph(cudnnHandle_t handle, plan *p, size_t most, candidate *listed,
                                int *n)
{
    bool taken = p->of.graph && !p->legacy;
    for (candidate c = {GRAPH, 0, 0}; taken && (*n == 0 || p->of.benchmark); c.algorithm++) {
        cudnnStatus_t code = take(handle, p, &c);
        taken = !code;
        if (code && !tern_cuda_dnn_refuses(code))
            return code;
        c.algorithm = GRAPH + (uint32_t)p->graph.first;
        c.scratch = (size_t)p->graph.scratch;
        listed[*n] = c;
        *n += taken && c.scratch <= most;
    }
    return 0;
}

/* Lists the candidates in the order of cuDNN's heuristics: the first, or all in benchmark mode. */
static cudnnStatus_t list(cudnnHandle_t handle, plan *p, size_t most, candidate *listed, int *n)
{
    perf found[MOST_ALGORITHMS];
    int n_found = 0;
    *n = 0;
    cudnnStatus_t code = list_graph(handle, p, most, listed, n);
    if (code || p->of.bias || (*n > 0 && !p->of.benchmark))
        return code;
    code = find_algorithms(handle, p, &n_found, found);
    for (int i = 0; !code && i < n_found && (*n == 0 || p->of.benchmark); i++) {
        bool exact = p->of.dtype == TERN_F32 && !p->of.tf32;
        candidate *c = &listed[*n];
        if (found[i].status != 0 ||
            (p->of.deterministic && found[i].determinism != CUDNN_DETERMINISTIC))
            continue;
        *c = (candidate){found[i].algo, exact ? CUDNN_FMA_MATH : found[i].mathType, 0};
        code = take(handle, p, c);
        *n +=
            !code && find_scratch(handle, p, c->algorithm, &c->scratch) == 0 && c->scratch <= most;
    }
    return *n > 0 && tern_cuda_dnn_refuses(code) ? 0 : code;
}

/* ---- benchmark mode ---------------------------------------------------------------------- */

/* Returns the milliseconds of TURNS runs after an uncounted one; infinity if a run fails. */
static float time_of(cudnnHandle_t handle, plan *p, const candidate *trial, void *const at[4],
                     void *scratch, cudaStream_t stream, const cudaEvent_t between[2])
{
    float spent = INFINITY;
    bool runs = take(handle, p, trial) == 0;
    for (int i = 0; runs && i <= TURNS; i++)
        runs = (i != 1 || !tern_cuda.cudaEventRecord(between[0], stream)) &&
               !tern_cuda_conv_run(handle, p, at, scratch, false);
    runs = runs && !tern_cuda.cudaEventRecord(between[1], stream) &&
           !tern_cuda.cudaEventSynchronize(between[1]) &&
           !tern_cuda.cudaEventElapsedTime(&spent, between[0], between[1]);
    return runs ? spent : INFINITY;
}

/* Returns the index of the fastest of n candidates on the tensors of c, or -1 if none could be
 * measured. If the result is to be added to x, the trials write to memory behind the scratch memory
 * instead. */
static int fastest(tern_place *place, cudnnHandle_t handle, plan *p, const tern_convolution *c,
                   const candidate *listed, int n)
{
    void *at[4], *memory = NULL;
    const int64_t *in = c->shape->in;
    size_t scratch = 0,
           sums = c->accumulates
                      ? (size_t)(c->shape->n * c->shape->c * in[0] * in[1] * in[2]) * c->x.bytes
                      : 0;
    cudaEvent_t between[2] = {NULL, NULL};
    int best = -1;
    float least = INFINITY;
    tern_cuda_conv_places(c, at);
    for (int i = 0; i < n; i++)
        scratch = listed[i].scratch > scratch ? listed[i].scratch : scratch;
    scratch = (scratch + 255) / 256 * 256;
    bool ready = !(scratch + sums) || !tern_cuda.cudaMalloc(&memory, scratch + sums);
    for (int i = 0; ready && i < 2; i++)
        ready = !tern_cuda.cudaEventCreateWithFlags(&between[i], 0);
    if (sums)
        at[0] = (char *)memory + scratch;
    for (int i = 0; ready && i < n; i++) {
        float spent = time_of(handle, p, &listed[i], at, memory, tern_cuda_stream(place), between);
        if (spent < least) {
            least = spent;
            best = i;
        }
    }
    tern_cuda.cudaGetLastError(); /* clears the errors of allocations and events */
    for (int i = 0; i < 2; i++)
        if (between[i])
            tern_cuda.cudaEventDestroy(between[i]);
    if (memory)
        tern_cuda.cudaFree(memory);
    return best;
}

static tern_cache_key key_of(tern_place *place, const tern_cuda_conv_key *k)
{
    char text[96];
    tern_cache_key stored = tern_cache_key_start("cudnn convolution");
    snprintf(text, sizeof text, "%zu %016" PRIx64 "%016" PRIx64, tern_cuda.cudnnGetVersion(),
             tern_hash(TERN_HASH_SEED, k, sizeof *k), tern_hash(~TERN_HASH_SEED, k, sizeof *k));
    tern_cache_key_add(&stored, text);
    tern_cache_key_add(&stored, tern_place_info(place)->name);
    return stored;
}

/* Returns the index of the fastest of n candidates, measured now or by another process before. */
static int measured(tern_place *place, cudnnHandle_t handle, plan *p, const tern_convolution *c,
                    const candidate *listed, int n)
{
    const tern_cache_key stored = key_of(place, &p->of);
    size_t bytes = 0;
    uint32_t *known = tern_cache_load(&stored, &bytes);
    int best = -1;
    for (int i = 0; known && bytes == 2 * sizeof *known && i < n; i++)
        if (listed[i].algorithm == known[0] && listed[i].math == known[1])
            best = i;
    tern_free(known);
    p->untried = best < 0 && tern_thread.recording_stream;
    if (best >= 0 || p->untried)
        return best < 0 ? 0 : best;
    best = fastest(place, handle, p, c, listed, n);
    p->unmeasured = best < 0;
    if (best < 0)
        return 0;
    const uint32_t found[] = {listed[best].algorithm, listed[best].math};
    tern_cache_keep(&stored, found, sizeof found);
    return best;
}

cudnnStatus_t tern_cuda_conv_choose(tern_place *place, cudnnHandle_t handle, plan *p,
                                    const tern_convolution *c, size_t most, bool measures)
{
    candidate listed[CANDIDATES];
    int n = 0, best = 0;
    cudnnStatus_t code = list(handle, p, most, listed, &n);
    p->usable = false;
    if (code || n == 0)
        return code;
    if (n > 1 && p->of.benchmark && measures)
        best = measured(place, handle, p, c, listed, n);
    code = take(handle, p, &listed[best]);
    p->usable = !code;
    return code;
}
