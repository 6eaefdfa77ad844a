/* onednn.c -- oneDNN, opened at run time: its engine, its threads, and a run of one of its
 * primitives. */
#include "device/cpu/onednn.h"
#include "base/lock.h"
#ifdef TERN_WITH_ONEDNN
#include "base/dynlib.h"
#include "base/ending.h"
#include "base/warning.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* ---- the library ----------------------------------------------------------------------------- */

tern_dnnl_api tern_dnnl;
static bool there;
static char reason[256]; /* why oneDNN is not there */

/* Functions of the OpenMP that oneDNN runs on, which need not be the program's; NULL if oneDNN runs
 * on something else. */
static int (*most_threads)(void);
static void (*set_threads)(int n);

static bool find_functions(void *library)
{
    void *address;
#define X(NAME)                                                                                    \
    address = tern_dynlib_symbol(library, "dnnl_" #NAME);                                          \
    memcpy(&tern_dnnl.NAME, &address, sizeof address);                                             \
    if (!address) {                                                                                \
        snprintf(reason, sizeof reason, "it has no dnnl_" #NAME);                                  \
        return false;                                                                              \
    }
#include "device/cpu/dnnl.def"
#undef X
    address = tern_dynlib_symbol(library, "omp_get_max_threads");
    memcpy(&most_threads, &address, sizeof address);
    address = tern_dynlib_symbol(library, "omp_set_num_threads");
    memcpy(&set_threads, &address, sizeof address);
    if (!most_threads || !set_threads)
        most_threads = NULL;
    const dnnl_version_t *version = tern_dnnl.version();
    if (version->major == DNNL_VERSION_MAJOR)
        return true;
    snprintf(reason, sizeof reason, "it is oneDNN %d.%d, and tern was built for %d", version->major,
             version->minor, DNNL_VERSION_MAJOR);
    return false;
}

static void load(void)
{
    char names[32];
    snprintf(names, sizeof names, TERN_LIBRARY_ONEDNN, DNNL_VERSION_MAJOR);
    void *library = tern_dynlib_open_apart(names, reason, sizeof reason);
    there = library && find_functions(library);
    tern_foreign_loaded();
}

bool tern_onednn_is_there(void)
{
    static tern_once once = TERN_ONCE_INIT;
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    tern_foreign_enter(); /* before the once, which the thread that ends the process may need */
    tern_call_once(&once, load);
    tern_foreign_leave();
    if (!there && !atomic_flag_test_and_set(&warned))
        tern_warn("slow", "tern_matmul",
                  "products and convolutions on cpu are slower without oneDNN: %s", reason);
    return there;
}

/* ---- its threads ----------------------------------------------------------------------------- */

tern_onednn_threads tern_onednn_go_alone(void)
{
    tern_onednn_threads t = {1};
    tern_foreign_enter();
    if (most_threads) {
        t.before = most_threads();
        set_threads(1);
    }
    return t;
}

void tern_onednn_end_alone(tern_onednn_threads t)
{
    if (most_threads)
        set_threads(t.before);
    tern_foreign_leave();
}
#endif

/* ---- its engine ------------------------------------------------------------------------------ */

#ifdef TERN_ONEDNN_PRIMITIVES
static dnnl_engine_t engine;
static void make_engine(void)
{
    if (!tern_onednn_is_there() || tern_dnnl.engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

dnnl_engine_t tern_onednn_engine(void)
{
    static tern_once once = TERN_ONCE_INIT;
    tern_foreign_enter();
    tern_call_once(&once, make_engine);
    tern_foreign_leave();
    return engine;
}

bool tern_onednn_run(dnnl_primitive_t primitive, dnnl_stream_t stream,
                     const tern_onednn_argument *a, int n)
{
    dnnl_exec_arg_t args[6] = {{0}};
    int made = 0;
    bool ok = true;
    for (; ok && made < n; made++) {
        args[made].arg = a[made].name;
        ok = tern_dnnl.memory_create(&args[made].memory, a[made].desc, tern_onednn_engine(),
                                     a[made].data) == dnnl_success;
    }
    ok = ok && tern_dnnl.primitive_execute(primitive, stream, n, args) == dnnl_success;
    for (int i = 0; i < made; i++)
        tern_dnnl.memory_destroy(args[i].memory);
    return ok;
}
#endif
