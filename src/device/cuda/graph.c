/* graph.c -- CUDA graphs, captured from a stream. */
#include "device/cuda/cuda.h"
#include "base/lock.h"

/* Captures on a stream of its own, as launches of other threads on the device's stream would get
 * into the graph. The mode is relaxed because new kernels are compiled and loaded meanwhile. */
static tern_status record_on(tern_place *place, tern_cuda_state *s,
                             tern_status (*record)(void *user), void *user, cudaGraph_t *recorded)
{
    if (!s->recording)
        CUDA_TRY(place, cudaStreamCreateWithFlags(&s->recording, cudaStreamNonBlocking));
    CUDA_TRY(place, cudaStreamBeginCapture(s->recording, cudaStreamCaptureModeRelaxed));
    tern_thread.recording_stream = s->recording;
    tern_status status = record(user);
    tern_thread.recording_stream = NULL;
    cudaError_t code = tern_cuda.cudaStreamEndCapture(s->recording, recorded);
    return status == TERN_OK ? tern_cuda_check(place, code, "cudaStreamEndCapture") : status;
}

tern_status tern_cuda_graph_make(tern_place *place, tern_status (*record)(void *user), void *user,
                                 void **graph)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t executable = NULL;
    TERN_TRY(tern_cuda_enter(place));
    tern_mutex_lock(&s->recording_lock);
    tern_status status = record_on(place, s, record, user, &recorded);
    tern_mutex_unlock(&s->recording_lock);
    if (status == TERN_OK)
        status = tern_cuda_check(place, tern_cuda.cudaGraphInstantiate(&executable, recorded, 0),
                                 "cudaGraphInstantiate");
    if (recorded)
        tern_cuda.cudaGraphDestroy(recorded);
    *graph = executable;
    return status;
}

tern_status tern_cuda_graph_run(tern_place *place, void *graph)
{
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaGraphLaunch(graph, tern_cuda_state_of(place)->stream));
    return TERN_OK;
}

void tern_cuda_graph_free(tern_place *place, void *graph)
{
    tern_cuda_state *s = tern_cuda_state_of(place);
    if (atomic_load(&s->lost) || tern_cuda.cudaSetDevice(s->index) != 0)
        return;
    tern_cuda.cudaStreamSynchronize(s->stream);
    tern_cuda.cudaGraphExecDestroy(graph);
}
