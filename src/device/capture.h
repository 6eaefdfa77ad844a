/* capture.h -- work recorded instead of run (tern/graph.h), for this folder and for what keeps
 * state from step to step.
 *
 * launch.c and memory.c ask tern_capture_of(place) and hand what they would have run to
 * tern_record_*; blocks come from the capture's pool meanwhile. State that outlives a step (an
 * optimizer's moments, tables on the device) is made and written with recording suspended. */
#ifndef TERN_DEVICE_CAPTURE_H
#define TERN_DEVICE_CAPTURE_H
#include "device/device.h"
#include <tern/graph.h>

extern _Thread_local tern_graph *tern_capturing;    /* NULL: nothing is recorded */
extern _Thread_local const char *tern_capturing_op; /* the operation that runs, where known */

bool tern_graph_is_on(const tern_graph *graph, const tern_place *place);
/* The recording that this place's work goes to; NULL: run it. */
static inline tern_graph *tern_capture_of(const tern_place *place)
{
    return tern_capturing && tern_graph_is_on(tern_capturing, place) ? tern_capturing : NULL;
}

/* What follows runs now, and its memory is the program's own; give what it returned to resume. */
static inline tern_graph *tern_capture_suspend(void)
{
    tern_graph *graph = tern_capturing;
    tern_capturing = NULL;
    return graph;
}
static inline void tern_capture_resume(tern_graph *graph)
{
    tern_capturing = graph;
}

/* Errors where something can't be recorded: "reading values on the host". */
tern_status tern_capture_refuse(const tern_place *place, const char *what);

/* A block of the graph's with these bytes, which stays as it is. */
tern_status tern_capture_constant(tern_place *place, const void *data, size_t bytes,
                                  tern_block **block);

/* ---- for launch.c and memory.c ----------------------------------------------------------- */

tern_status tern_record_launch(tern_graph *graph, void *kernel, const tern_grid *grid,
                               const tern_arg *args, int n);
tern_status tern_record_user(tern_graph *graph, void *kernel, const tern_kernel_grid *grid,
                             const tern_arg *args, int n);
tern_status tern_record_gemm(tern_graph *graph, const tern_gemm *gemm);
tern_status tern_record_convolution(tern_graph *graph, const tern_convolution *c);
tern_status tern_record_copy(tern_graph *graph, const tern_block *from, size_t from_at,
                             const tern_block *to, size_t to_at, size_t bytes);
tern_status tern_record_zero(tern_graph *graph, const tern_block *to, size_t at, size_t bytes);
/* n groups of random numbers; the first one's number in this graph. */
int64_t tern_record_random(tern_graph *graph, int64_t n);
void tern_record_faults(tern_graph *graph);

/* With the place's memory_lock held: an idle block of the pool, NULL where there is none; a new one
 * for it; one that is no longer used. */
tern_block *tern_pool_take(tern_graph *graph, int size_class, size_t bytes);
void tern_pool_adopt(tern_graph *graph, tern_block *block);
void tern_pool_give(tern_graph *graph, tern_block *block);

#endif
