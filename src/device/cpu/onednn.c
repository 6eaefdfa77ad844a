/* onednn.c -- oneDNN's engine, its threads, and a run of one of its primitives. */
#include "device/cpu/onednn.h"
#include <pthread.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#ifdef TERN_ONEDNN_PRIMITIVES
static dnnl_engine_t engine;
static void make_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

dnnl_engine_t tern_onednn_engine(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_engine);
    return engine;
}
#endif

tern_onednn_threads tern_onednn_go_alone(void)
{
    tern_onednn_threads t = {1};
#ifdef _OPENMP
    t.before = omp_get_max_threads();
    omp_set_num_threads(1);
#endif
    return t;
}

void tern_onednn_end_alone(tern_onednn_threads t)
{
#ifdef _OPENMP
    omp_set_num_threads(t.before);
#else
    (void)t;
#endif
}

#ifdef TERN_ONEDNN_PRIMITIVES
bool tern_onednn_run(dnnl_primitive_t primitive, dnnl_stream_t stream,
                     const tern_onednn_argument *a, int n)
{
    dnnl_exec_arg_t args[6] = {{0}};
    int made = 0;
    bool ok = true;
    for (; ok && made < n; made++) {
        args[made].arg = a[made].name;
        ok = dnnl_memory_create(&args[made].memory, a[made].desc, tern_onednn_engine(),
                                a[made].data) == dnnl_success;
    }
    ok = ok && dnnl_primitive_execute(primitive, stream, n, args) == dnnl_success;
    for (int i = 0; i < made; i++)
        dnnl_memory_destroy(args[i].memory);
    return ok;
}
#endif
