/* onednn.h -- oneDNN, opened at run time: its functions, and for oneDNN 2 its engine and a run of a
 * primitive, on one thread. */
#ifndef TERN_DEVICE_CPU_ONEDNN_H
#define TERN_DEVICE_CPU_ONEDNN_H
#include <stdbool.h>

#ifdef TERN_WITH_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#if DNNL_VERSION_MAJOR == 2
#define TERN_ONEDNN_PRIMITIVES 1
#define PRIMITIVE(NAME)        X(NAME)
#else
#define PRIMITIVE(NAME)
#endif
typedef struct tern_dnnl_api {
#define X(NAME) __typeof__(&dnnl_##NAME) NAME;
#include "device/cpu/dnnl.def"
#undef X
} tern_dnnl_api;
/* The functions, once tern_onednn_is_there has returned true. */
extern tern_dnnl_api tern_dnnl;

/* Returns whether oneDNN could be opened. The first call opens it, and warns if that fails. */
bool tern_onednn_is_there(void);

/* oneDNN stays on the calling thread from go_alone to end_alone, as its own threads would be a
 * second pool. The process does not end in between (base/ending.h). */
typedef struct tern_onednn_threads {
    int before;
} tern_onednn_threads;
tern_onednn_threads tern_onednn_go_alone(void);
void tern_onednn_end_alone(tern_onednn_threads t);
#endif

#ifdef TERN_ONEDNN_PRIMITIVES
/* Returns the engine of this process, or NULL if oneDNN is not there or makes none. */
dnnl_engine_t tern_onednn_engine(void);

typedef struct tern_onednn_argument {
    int name;
    const dnnl_memory_desc_t *desc;
    void *data;
} tern_onednn_argument;

/* Runs a primitive with n <= 6 arguments. Returns false if oneDNN fails. */
bool tern_onednn_run(dnnl_primitive_t primitive, dnnl_stream_t stream,
                     const tern_onednn_argument *a, int n);
#else
static inline bool tern_onednn_is_there(void)
{
    return false;
}
#endif
#endif
