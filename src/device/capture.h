/* capture.h -- commands that are recorded instead of run (tern/graph.h), for this folder and for
 * code that keeps state from step to step.
 *
 * During a capture dispatch.c passes commands to tern_record_command instead of running them, and
 * blocks come from the recording's pool. State that outlives a step (an optimizer's moments, tables
 * on the device) is allocated and written while recording is suspended. */
#ifndef TERN_DEVICE_CAPTURE_H
#define TERN_DEVICE_CAPTURE_H
#include "base/thread.h"
#include "device/device.h"
#include <tern/graph.h>

extern atomic_ullong tern_replays; /* the number of replays that have begun */
bool tern_graph_is_on(const tern_graph *graph, const tern_place *place);
/* Returns the graph that records this thread's commands for the place; NULL if they run. */
static inline tern_graph *tern_capture_of(const tern_place *place)
{
    tern_graph *graph = tern_thread.graph;
    return graph && tern_graph_is_on(graph, place) ? graph : NULL;
}

/* Suspends this thread's recording: commands run, and blocks come from the cache. Returns the graph
 * for tern_capture_resume. */
static inline tern_graph *tern_capture_suspend(void)
{
    tern_graph *graph = tern_thread.graph;
    tern_thread.graph = NULL;
    return graph;
}
static inline void tern_capture_resume(tern_graph *graph)
{
    tern_thread.graph = graph;
}

/* Returns whether the capture compiles programs and records nothing (listing.c). */
bool tern_graph_lists(const tern_graph *graph);

/* Records that the capturing thread ran a command on another device; returns whether it has. */
void tern_note_elsewhere(tern_graph *graph);
bool tern_graph_ran_elsewhere(const tern_graph *graph);

/* Makes the capture fail and returns the error that `what` can't be recorded ("reading values on
 * the host"). */
tern_status tern_capture_refuse(const tern_place *place, const char *what);

/* Sets *block to a new block with these bytes, which no replay changes and the graph owns. */
tern_status tern_capture_constant(tern_place *place, const void *data, size_t bytes,
                                  tern_block **block);

/* Records that kernels find the block by an address in memory, so that the block is not among the
 * arguments of a launch. Does nothing if this thread does not record on the block's place. */
tern_status tern_capture_addressed(tern_block *block);

/* Records a call on the host; this thread must be recording. Each replay calls run(user) after it
 * has launched the commands recorded before, which may still be running. drop(user) is called once,
 * when the recording is freed or after an error of this function. */
tern_status tern_capture_call(tern_status (*run)(void *user), void (*drop)(void *user), void *user);

/* ---- for the files of this folder -------------------------------------------------------- */

struct tern_command;
/* Called instead of recording a command if graph->lists (listing.c): compiles its programs. */
tern_status tern_list_command(tern_graph *graph, const struct tern_command *command);
/* Called if graph->estimates: sets *block to a block of addresses without memory, or to NULL if the
 * block is so small that it needs an ordinary one. */
tern_status tern_estimate_block(tern_place *place, size_t bytes, tern_block **block);
bool tern_graph_estimates(const tern_graph *graph);
/* Returns whether this thread's capture only compiles kernels or estimates memory, so that the
 * caller does not launch the kernel; starts to compile it in the first case. */
bool tern_listing_takes(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                        int lanes);
/* Adds a node for the command to the graph, with copies of the structs that it points to. */
tern_status tern_record_command(tern_graph *graph, const struct tern_command *command);
/* Takes n groups of random numbers; returns the number of the first one in this graph. */
int64_t tern_record_random(tern_graph *graph, int64_t n);
/* Returns a pointer to the number of the next group, which the caller may decrease. */
int64_t *tern_recorded_random(tern_graph *graph);
/* Records that some kernel of the graph reports faults. */
void tern_record_faults(tern_graph *graph);

/* The caller holds the place's memory_lock. tern_pool_take sets *taken to a block with the memory
 * of an idle block of the pool, or to NULL if there is none; tern_pool_adopt adds a new block to
 * the pool; tern_pool_give marks a block of the pool as idle. */
tern_status tern_pool_take(tern_graph *graph, int size_class, size_t bytes, tern_block **taken);
void tern_pool_adopt(tern_graph *graph, tern_block *block);
void tern_pool_give(tern_graph *graph, tern_block *block);

#endif
