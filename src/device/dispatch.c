/* dispatch.c -- the dispatcher: every command of a device goes through tern_command_dispatch. */
#include "device/command.h"
#include "base/debug.h"
#include "base/profile.h"
#include "device/capture.h"
#include "device/registry.h"
#include <stdio.h>

static tern_status run(tern_place *place, const tern_command *command, bool *taken)
{
    const tern_backend *b = place->backend;
    switch (command->kind) {
    case TERN_COMMAND_KERNEL:
        return b->launch(place, command->what.launch.compiled, command->what.launch.grid,
                         command->what.launch.args, command->what.launch.n);
    case TERN_COMMAND_USER:
        return b->user_launch(place, command->what.launch.user_kernel,
                              command->what.launch.user_grid, command->what.launch.args,
                              command->what.launch.n);
    case TERN_COMMAND_GEMM:
        return b->gemm(place, command->what.gemm);
    case TERN_COMMAND_CONVOLUTION:
        return b->vendor->convolution(place, command->what.convolution, taken);
    case TERN_COMMAND_ATTENTION:
        return b->vendor->attention(place, command->what.attention, taken);
    case TERN_COMMAND_COLLECTIVE:
        return b->vendor->collectives(command->what.collectives.places, command->what.collectives.n,
                                      command->what.collectives.list, command->what.collectives.k,
                                      taken);
    case TERN_COMMAND_COPY:
        return b->copy(place, command->what.copy.from, command->what.copy.from_at,
                       command->what.copy.to, command->what.copy.to_at, command->what.copy.bytes);
    case TERN_COMMAND_CALL:
        return command->what.call.run(command->what.call.user);
    default:
        return b->zero(place, command->what.copy.to, command->what.copy.to_at,
                       command->what.copy.bytes);
    }
}

tern_status tern_command_run(tern_place *place, const tern_command *command, bool *taken)
{
    tern_place_enter(place);
    tern_status status = run(place, command, taken);
    tern_place_leave(place);
    return status;
}

/* Returns the command's name for error messages: "kernel 'gather'". */
static const char *name_of(const tern_command *command, char text[64])
{
    static const char *const names[] = {[TERN_COMMAND_USER] = "a kernel of the program's",
                                        [TERN_COMMAND_GEMM] = "a matrix product",
                                        [TERN_COMMAND_CONVOLUTION] = "a convolution",
                                        [TERN_COMMAND_ATTENTION] = "an attention",
                                        [TERN_COMMAND_COLLECTIVE] = "a collective",
                                        [TERN_COMMAND_COPY] = "a copy",
                                        [TERN_COMMAND_ZERO] = "a fill with zeros"};
    if (command->kind != TERN_COMMAND_KERNEL)
        return names[command->kind];
    snprintf(text, 64, "kernel '%s'", command->what.launch.kernel->ref->name);
    return text;
}

/* Used if tern_debugging: waits for the command, so that an error of the device names it. */
static tern_status run_and_wait(tern_place *place, const tern_command *command, bool *taken)
{
    char text[64];
    const char *outer = tern_thread.command;
    tern_thread.command = name_of(command, text);
    tern_status status = tern_command_run(place, command, taken);
    if (status == TERN_OK)
        status = place->backend->sync(place);
    if (status == TERN_OK)
        status = tern_fault_report(place);
    tern_thread.command = outer;
    return status;
}

static tern_status run_and_time(tern_place *place, const tern_command *command, bool *taken)
{
    tern_command_range range;
    char text[64];
    bool kernel = command->kind == TERN_COMMAND_KERNEL;
    tern_from_profiler->command_begin(
        &range, place, kernel ? command->what.launch.kernel->ref->name : name_of(command, text));
    tern_status status = tern_command_run(place, command, taken);
    tern_from_profiler->command_end(&range, status == TERN_OK && *taken);
    return status;
}

static void count_launch(tern_place *place)
{
    atomic_fetch_add_explicit(&place->launches, 1, memory_order_relaxed);
}

tern_status tern_command_dispatch(tern_place *place, const tern_command *command, bool *taken)
{
    bool done = true;
    TERN_TRY(tern_registry_open(place));
    tern_graph *graph = tern_capture_of(place);
    if (graph)
        return tern_record_command(graph, command);
    TERN_TRY(tern_debugging   ? run_and_wait(place, command, &done)
             : tern_profiling ? run_and_time(place, command, &done)
                              : tern_command_run(place, command, &done));
    if (tern_thread.graph && done)
        tern_note_elsewhere(tern_thread.graph);
    if (taken)
        *taken = done;
    if (command->kind == TERN_COMMAND_COLLECTIVE)
        for (int i = 0; done && i < command->what.collectives.n; i++)
            count_launch(command->what.collectives.places[i]);
    else if (done && command->kind < TERN_COMMAND_COPY)
        count_launch(place);
    return TERN_OK;
}
