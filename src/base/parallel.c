/* parallel.c -- the one thread pool of the process: OpenMP, shared with oneDNN. */
#include "base/parallel.h"
#include <pthread.h>
#include <stdatomic.h>
#ifdef _OPENMP
#include <omp.h>
#endif

enum { WORK_PER_PART = 16384 };

static atomic_bool forked;
static atomic_int limit; /* 0: the pool's own size */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_store(&forked, true);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

__attribute__((constructor)) static void start(void)
{
    pthread_once(&once, watch_forks);
}

bool tern_is_forked_child(void)
{
    return atomic_load_explicit(&forked, memory_order_relaxed);
}

void tern_parallel_limit(int n)
{
    atomic_store(&limit, n);
}

int tern_parallel_limit_get(void)
{
    int n = atomic_load_explicit(&limit, memory_order_relaxed);
#ifdef _OPENMP
    return n ? n : omp_get_max_threads();
#else
    return n ? n : 1;
#endif
}

int tern_parallel_parts(int64_t work)
{
#ifdef _OPENMP
    if (work < 2 * WORK_PER_PART || tern_is_forked_child() || omp_in_parallel())
        return 1;
    int64_t parts = work / WORK_PER_PART;
    int threads = tern_parallel_limit_get();
    return parts < threads ? (int)parts : threads;
#else
    (void)work;
    return 1;
#endif
}

void tern_parallel(int parts, void (*body)(void *user, int part, int parts), void *user)
{
#ifdef _OPENMP
    if (parts > 1 && !tern_is_forked_child() && !omp_in_parallel()) {
#pragma omp parallel for schedule(static, 1) num_threads(parts)
        for (int part = 0; part < parts; part++)
            body(user, part, parts);
        return;
    }
#endif
    for (int part = 0; part < parts; part++)
        body(user, part, parts);
}
