/* listing.c -- a capture that keeps nothing: what it takes of programs is built ahead. */
#include "device/builds.h"
#include "device/recording.h"
#include <tern/compile.h>

tern_status tern_compile_begin(const char *device)
{
    tern_graph *graph = tern_graph_new(device);
    if (!graph)
        return tern_last_status();
    graph->lists = true;
    tern_status status = tern_graph_capture_begin(graph);
    if (status != TERN_OK)
        tern_graph_free(graph);
    return status;
}

tern_status tern_compile_end(void)
{
    tern_graph *graph = tern_thread.graph;
    if (!graph || !graph->lists)
        return tern_fail(TERN_ERR_STATE, "tern_compile_end: tern_compile_begin was not called");
    tern_status status = graph->failed ? tern_last_status() : TERN_OK;
    tern_graph_free(graph);
    tern_builds_finish();
    if (status == TERN_OK && tern_builds_waiting() > 0 && tern_builds_are_stopped())
        return tern_fail(TERN_ERR_STATE,
                         "tern_compile_end: tern_compile_stop was called, and %d programs "
                         "are not compiled",
                         tern_builds_waiting());
    return status;
}

bool tern_listing_takes(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype)
{
    const tern_graph *graph = tern_capture_of(place);
    if (!graph || !graph->lists || !place->backend->prebuild)
        return false;
    tern_builds_expect(place, kernel->file, kernel->name, dtype);
    tern_builds_add(place, kernel->file, kernel->name, dtype);
    return true;
}

tern_status tern_list_work(tern_graph *graph, const tern_work *work)
{
    const tern_backend *backend = graph->place->backend;
    if (work->kind == TERN_WORK_GEMM && backend->prebuild_gemm)
        backend->prebuild_gemm(graph->place, work->what.gemm);
    return TERN_OK;
}
