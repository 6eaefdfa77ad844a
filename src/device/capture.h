/* capture.h -- commands recorded instead of run (tern/graph.h), for this folder and for what keeps
 * state from step to step.
 *
 * dispatch.c asks tern_capture_of(place) and hands what it would have run to tern_record_command;
 * blocks come from the capture's pool meanwhile. State that outlives a step (an optimizer's
 * moments, tables on the device) is made and written with recording suspended. */
#ifndef TERN_DEVICE_CAPTURE_H
#define TERN_DEVICE_CAPTURE_H
#include "base/thread.h"
#include "device/device.h"
#include <tern/graph.h>

extern atomic_ullong tern_replays; /* that have begun */
bool tern_graph_is_on(const tern_graph *graph, const tern_place *place);
/* The recording to which the commands of this place go; NULL: they run. */
static inline tern_graph *tern_capture_of(const tern_place *place)
{
    tern_graph *graph = tern_thread.graph;
    return graph && tern_graph_is_on(graph, place) ? graph : NULL;
}

/* What follows runs now, and its memory is the program's own; give what it returned to resume. */
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

/* Whether its programs are built, and nothing is recorded. */
bool tern_graph_lists(const tern_graph *graph);

/* Work of the recording thread for another device ran; whether any has. */
void tern_note_elsewhere(tern_graph *graph);
bool tern_graph_ran_elsewhere(const tern_graph *graph);

/* Errors where something can't be recorded: "reading values on the host". */
tern_status tern_capture_refuse(const tern_place *place, const char *what);

/* A block of the graph's with these bytes, which stays as it is. */
tern_status tern_capture_constant(tern_place *place, const void *data, size_t bytes,
                                  tern_block **block);

/* While this thread records on its place: a kernel finds this block by an address in memory, so
 * that no launch is given it. */
tern_status tern_capture_addressed(tern_block *block);

/* While this thread records: each replay calls run(user) on the host between what was recorded
 * before and after it, which the device may still have to do; drop(user) once, when the recording
 * ends, also after an error of this. */
tern_status tern_capture_call(tern_status (*run)(void *user), void (*drop)(void *user), void *user);

/* ---- for the files of this folder -------------------------------------------------------- */

struct tern_command;
/* While a thread lists (listing.c) nothing is recorded, only the programs that it takes are
 * built. */
tern_status tern_list_command(tern_graph *graph, const struct tern_command *command);
/* While the thread estimates: gives a block that no memory stands behind in *block, or NULL where
 * the block is to be an ordinary one, because it is small. */
tern_status tern_estimate_block(tern_place *place, size_t bytes, tern_block **block);
bool tern_graph_estimates(const tern_graph *graph);
/* Whether the kernel is only listed, and need not be there. */
bool tern_listing_takes(tern_place *place, const tern_kernel_ref *kernel, tern_dtype dtype,
                        int lanes);
/* Makes the command a node, with copies of all that it points to. */
tern_status tern_record_command(tern_graph *graph, const struct tern_command *command);
/* n groups of random numbers; the first one's number in this graph. */
int64_t tern_record_random(tern_graph *graph, int64_t n);
/* The number of the next one, which may be set back. */
int64_t *tern_recorded_random(tern_graph *graph);
void tern_record_faults(tern_graph *graph);

/* With the place's memory_lock held: an idle block of the pool, NULL where there is none; a new one
 * for it; one that is no longer used. */
tern_status tern_pool_take(tern_graph *graph, int size_class, size_t bytes, tern_block **taken);
void tern_pool_adopt(tern_graph *graph, tern_block *block);
void tern_pool_give(tern_graph *graph, tern_block *block);

#endif
