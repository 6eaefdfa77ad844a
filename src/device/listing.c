/* listing.c -- captures that record nothing: the programs of their kernels are compiled in advance,
 * or the memory that they need is estimated. */
#include "base/lock.h"
#include "base/os.h"
#include "device/builds.h"
#include "device/estimate.h"
#include "device/recording.h"
#include <errno.h>
#include <string.h>
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

/* ---- the memory of a step -------------------------------------------------------------------- */

enum { LARGE = 1 << 20, PAGE = 4096 }; /* blocks smaller than LARGE have memory */
static atomic_llong virtual_blocks;
static tern_mutex one_at_a_time = TERN_MUTEX_INIT;
static uint64_t peak_before;

bool tern_graph_estimates(const tern_graph *graph)
{
    return graph->estimates;
}

/* Frees a block without memory. Its first page, the only one that is ever accessed, begins with the
 * number of bytes. */
static void end_virtual(void *pages)
{
    tern_os_unmap(pages, *(const size_t *)pages);
    atomic_fetch_sub(&virtual_blocks, 1);
}

tern_status tern_estimate_block(tern_place *place, size_t bytes, tern_block **block)
{
    const size_t all = bytes + PAGE;
    *block = NULL;
    if (bytes < LARGE)
        return TERN_OK;
    void *pages = tern_os_map(-1, all);
    if (!pages)
        return tern_fail(TERN_ERR_MEMORY,
                         "tern_memory_estimate: this process has no range of %zu bytes of "
                         "addresses, which stand for memory of %s (%s)",
                         bytes, place->text, strerror(errno));
    *(size_t *)pages = all;
    char *memory = (char *)pages + PAGE;
    const tern_buffer buffer = {
        .handle = memory, .host = place->synchronous ? memory : NULL, .bytes = bytes};
    atomic_fetch_add(&virtual_blocks, 1);
    *block = tern_block_from_external(place, &buffer, end_virtual, pages);
    if (!*block)
        end_virtual(pages);
    return *block ? TERN_OK : TERN_ERR_MEMORY;
}

tern_status tern_estimate_begin(const char *device)
{
    tern_graph *graph = tern_graph_new(device);
    if (!graph)
        return tern_last_status();
    graph->lists = graph->estimates = true;
    const tern_status status = tern_graph_capture_begin(graph);
    if (status != TERN_OK) {
        tern_graph_free(graph);
        return status;
    }
    tern_place *place = graph->place;
    tern_mutex_lock(&one_at_a_time);
    tern_mutex_lock(&place->memory_lock);
    peak_before = place->stats.allocated_peak;
    place->stats.allocated_peak = place->stats.allocated;
    tern_mutex_unlock(&place->memory_lock);
    return TERN_OK;
}

tern_status tern_estimate_end(uint64_t *peak, int64_t *left)
{
    tern_graph *graph = tern_thread.graph;
    const tern_status status = graph->failed ? tern_last_status() : TERN_OK;
    tern_place *place = graph->place;
    tern_mutex_lock(&place->memory_lock);
    *peak = place->stats.allocated_peak;
    place->stats.allocated_peak = peak_before;
    tern_mutex_unlock(&place->memory_lock);
    *left = atomic_load(&virtual_blocks);
    tern_mutex_unlock(&one_at_a_time);
    tern_graph_free(graph);
    return status;
}

bool tern_listing_takes(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                        int lanes)
{
    const tern_graph *graph = tern_capture_of(place);
    if (graph && graph->estimates)
        return true;
    if (!graph || !graph->lists || !place->backend->prebuild)
        return false;
    tern_builds_expect(place, kernel->file, kernel->name, dtype);
    tern_builds_add(place, kernel->file, kernel->name, dtype, lanes);
    return true;
}

tern_status tern_list_command(tern_graph *graph, const tern_command *command)
{
    const tern_backend *backend = graph->place->backend;
    if (command->kind == TERN_COMMAND_GEMM && backend->prebuild_gemm && !graph->estimates)
        backend->prebuild_gemm(graph->place, command->what.gemm);
    return TERN_OK;
}
