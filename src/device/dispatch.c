/* dispatch.c -- where all that a device is given to do passes. */
#include "device/work.h"
#include "base/debug.h"
#include "base/profile.h"
#include "device/capture.h"
#include "device/registry.h"
#include <stdio.h>

static tern_status run(tern_place *place, const tern_work *work, bool *taken)
{
    const tern_backend *b = place->backend;
    switch (work->kind) {
    case TERN_WORK_KERNEL:
        return b->launch(place, work->what.launch.made, work->what.launch.grid,
                         work->what.launch.args, work->what.launch.n);
    case TERN_WORK_USER:
        return b->user_launch(place, work->what.launch.user_kernel, work->what.launch.user_grid,
                              work->what.launch.args, work->what.launch.n);
    case TERN_WORK_GEMM:
        return b->gemm(place, work->what.gemm);
    case TERN_WORK_CONVOLUTION:
        return b->vendor->convolution(place, work->what.convolution, taken);
    case TERN_WORK_ATTENTION:
        return b->vendor->attention(place, work->what.attention, taken);
    case TERN_WORK_COLLECTIVE:
        return b->vendor->collectives(work->what.collectives.places, work->what.collectives.n,
                                      work->what.collectives.list, work->what.collectives.k, taken);
    case TERN_WORK_COPY:
        return b->copy(place, work->what.copy.from, work->what.copy.from_at, work->what.copy.to,
                       work->what.copy.to_at, work->what.copy.bytes);
    case TERN_WORK_CALL:
        return work->what.call.run(work->what.call.user);
    default:
        return b->zero(place, work->what.copy.to, work->what.copy.to_at, work->what.copy.bytes);
    }
}

tern_status tern_work_run(tern_place *place, const tern_work *work, bool *taken)
{
    tern_place_enter(place);
    tern_status status = run(place, work, taken);
    tern_place_leave(place);
    return status;
}

/* "kernel 'gather'", for what an error says. */
static const char *name_of(const tern_work *work, char text[64])
{
    static const char *const names[] = {
        [TERN_WORK_USER] = "a kernel of the program's", [TERN_WORK_GEMM] = "a matrix product",
        [TERN_WORK_CONVOLUTION] = "a convolution",      [TERN_WORK_ATTENTION] = "an attention",
        [TERN_WORK_COLLECTIVE] = "a collective",        [TERN_WORK_COPY] = "a copy",
        [TERN_WORK_ZERO] = "a fill with zeros"};
    if (work->kind != TERN_WORK_KERNEL)
        return names[work->kind];
    snprintf(text, 64, "kernel '%s'", work->what.launch.kernel->ref->name);
    return text;
}

/* While debugging: what goes wrong on the device is an error of this piece of work. */
static tern_status run_and_wait(tern_place *place, const tern_work *work, bool *taken)
{
    char text[64];
    const char *outer = tern_thread.work;
    tern_thread.work = name_of(work, text);
    tern_status status = tern_work_run(place, work, taken);
    if (status == TERN_OK)
        status = place->backend->sync(place);
    if (status == TERN_OK)
        status = tern_fault_report(place);
    tern_thread.work = outer;
    return status;
}

static tern_status run_and_time(tern_place *place, const tern_work *work, bool *taken)
{
    tern_work_range range;
    char text[64];
    bool kernel = work->kind == TERN_WORK_KERNEL;
    tern_from_profiler->work_begin(
        &range, place, kernel ? work->what.launch.kernel->ref->name : name_of(work, text));
    tern_status status = tern_work_run(place, work, taken);
    tern_from_profiler->work_end(&range, status == TERN_OK && *taken);
    return status;
}

static void count_launch(tern_place *place)
{
    atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
}

tern_status tern_work_give(tern_place *place, const tern_work *work, bool *taken)
{
    bool done = true;
    TERN_TRY(tern_registry_open(place));
    tern_graph *graph = tern_capture_of(place);
    if (graph)
        return tern_record_work(graph, work);
    TERN_TRY(tern_debugging   ? run_and_wait(place, work, &done)
             : tern_profiling ? run_and_time(place, work, &done)
                              : tern_work_run(place, work, &done));
    if (tern_thread.graph && done)
        tern_note_elsewhere(tern_thread.graph);
    if (taken)
        *taken = done;
    if (work->kind == TERN_WORK_COLLECTIVE)
        for (int i = 0; done && i < work->what.collectives.n; i++)
            count_launch(work->what.collectives.places[i]);
    else if (done && work->kind < TERN_WORK_COPY)
        count_launch(place);
    return TERN_OK;
}
