/* onednn.h -- what those share that run primitives of oneDNN 2: the engine, one thread of it, and a run. */
#ifndef TERN_DEVICE_CPU_ONEDNN_H
#define TERN_DEVICE_CPU_ONEDNN_H
#ifdef TERN_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

/* oneDNN stays on the thread that calls it, from go_alone to end_alone: its own threads would be a second
 * pool. */
typedef struct tern_onednn_threads {
    int before;
} tern_onednn_threads;
tern_onednn_threads tern_onednn_go_alone(void);
void tern_onednn_end_alone(tern_onednn_threads t);

#if defined(TERN_WITH_ONEDNN) && DNNL_VERSION_MAJOR == 2
#define TERN_ONEDNN_PRIMITIVES 1
#include <stdbool.h>

/* The engine of this process; NULL where oneDNN makes none. */
dnnl_engine_t tern_onednn_engine(void);

typedef struct tern_onednn_argument {
    int name;
    const dnnl_memory_desc_t *desc;
    void *data;
} tern_onednn_argument;

/* Run a primitive with n <= 6 arguments; false if oneDNN fails. */
bool tern_onednn_run(dnnl_primitive_t primitive, dnnl_stream_t stream,
                     const tern_onednn_argument *a, int n);
#endif
#endif
