/* graph.c -- what the stream is given between two points, as a CUDA graph. */
#include "device/cuda/cuda.h"

/* Relaxed: a kernel that is new here is compiled and loaded in between. */
tern_status tern_cuda_graph_make(tern_place *place, tern_status (*record)(void *user), void *user,
                                 void **graph)
{
    cudaStream_t stream = tern_cuda_state_of(place)->stream;
    cudaGraph_t recorded = NULL;
    cudaGraphExec_t executable = NULL;
    TERN_TRY(tern_cuda_enter(place));
    CUDA_TRY(place, cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    tern_status status = record(user);
    cudaError_t code = tern_cuda.cudaStreamEndCapture(stream, &recorded);
    if (status == TERN_OK)
        status = tern_cuda_check(place, code, "cudaStreamEndCapture");
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
