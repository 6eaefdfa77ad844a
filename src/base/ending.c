/* ending.c -- the end of the process.
 *
 * exit() calls the destructors of its thread's variables, then handlers, the newest first, then the
 * destructors of libraries. A driver's compiler registers handlers when it first compiles: they are
 * newer than those registered before. In the main thread the destructor of a thread-local variable
 * runs before all of them. If another thread calls exit(), the library's handler must be the
 * newest: it is registered again after each call that may compile, and repeatedly during it. */
#include "base/ending.h"
#include "base/os.h"
#include "base/forks.h"
#include "base/thread.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A thread that has not left a library after that time never will. */
enum { PATIENCE_SECONDS = 60 };

static atomic_int inside; /* threads inside a library, in the process with inside_forks forks */
static atomic_int inside_forks;
static atomic_bool is_ending;
static atomic_bool is_unloading; /* exit handlers are called then too, by the last destructors */

/* ---- handlers -------------------------------------------------------------------------------- */

static struct {
    tern_mutex lock;
    tern_ending *first;
    bool begun;
} endings = {.lock = TERN_MUTEX_INIT};

static void run_all(bool after)
{
    for (tern_ending *e = endings.first; e; e = e->next)
        if (e->after == after)
            e->run();
}

static void wait_for_threads(void)
{
    const int64_t until = tern_os_now() + PATIENCE_SECONDS * INT64_C(1000000000);
    do {
        tern_os_sleep(100000);
    } while (atomic_load(&inside) > (tern_thread.foreign_depth > 0) && tern_os_now() < until);
}

/* exit() calls this first before any driver's handler. It may be called again: the second call
 * waits for commands that handlers of the program launched after the first. */
static void end_process(void)
{
    if (tern_is_forked_child() && atomic_load(&inside_forks) != tern_forks())
        return; /* no library was entered in this process */
    if (atomic_load(&is_unloading))
        return;
    tern_mutex_lock(&endings.lock);
    bool first = !endings.begun;
    endings.begun = true;
    tern_mutex_unlock(&endings.lock);
    tern_thread.calls_exit = true;
    if (first)
        run_all(false);
    atomic_store(&is_ending, true);
    if (first && atomic_load(&inside) > (tern_thread.foreign_depth > 0))
        wait_for_threads();
    run_all(true);
}

bool tern_is_ending(void)
{
    return atomic_load(&is_ending);
}

/* The main thread calls this again for a library that another thread loaded. */
static void watch_main(void)
{
    tern_os_at_main_end(end_process, &endings);
}

bool tern_is_unloading(void)
{
    if (!tern_is_ending() && !tern_is_forked_child() && !tern_os_stays(&endings))
        atomic_store(&is_unloading, true);
    return atomic_load(&is_unloading);
}

__attribute__((constructor)) static void start(void)
{
    watch_main();
}

void tern_foreign_loaded(void)
{
    watch_main();
    tern_os_at_exit(end_process);
}

void tern_at_ending(tern_ending *ending)
{
    tern_mutex_lock(&endings.lock);
    if (!ending->registered) {
        ending->registered = true;
        ending->next = endings.first;
        endings.first = ending;
    }
    tern_mutex_unlock(&endings.lock);
    tern_foreign_loaded();
}

/* ---- threads inside a library ---------------------------------------------------------------- */

/* A forked child has none of the parent's other threads. */
static void forget_parent(void)
{
    int forks = tern_forks(), before = atomic_load_explicit(&inside_forks, memory_order_relaxed);
    if (before != forks && atomic_compare_exchange_strong(&inside_forks, &before, forks))
        atomic_store(&inside, 0);
}

static bool is_let_in(void)
{
    atomic_fetch_add(&inside, 1);
    const bool stays = atomic_load(&is_ending) && !tern_thread.calls_exit;
    atomic_fetch_sub(&inside, stays);
    return !stays;
}

void tern_foreign_enter(void)
{
    if (tern_thread.foreign_depth++ > 0)
        return;
    forget_parent();
    if (!is_let_in())
        tern_os_stay();
}

void tern_foreign_lock(tern_mutex *lock)
{
    if (tern_mutex_trylock(lock))
        return;
    const int counts = tern_thread.foreign_depth > 0;
    atomic_fetch_sub_explicit(&inside, counts, memory_order_release);
    tern_mutex_lock(lock);
    if (counts && !is_let_in()) {
        tern_mutex_unlock(lock);
        tern_os_stay();
    }
}

void tern_foreign_leave(void)
{
    if (--tern_thread.foreign_depth == 0)
        atomic_fetch_sub_explicit(&inside, 1, memory_order_release);
}

/* ---- compilers ------------------------------------------------------------------------------- */

/* Milliseconds for which the thread waits after a compilation: the next one often comes soon. */
enum { IDLE = 100 };

static struct {
    tern_mutex lock;
    tern_cond change;
    int at_work;
    bool started, over, stops;
    tern_os_thread thread;
} compilers = {.lock = TERN_MUTEX_INIT, .change = TERN_COND_INIT};

/* The lock is held. */
static void wait_for(long nanoseconds)
{
    tern_cond_wait_until(&compilers.change, &compilers.lock, tern_os_now() + nanoseconds);
}

/* A compiler registers handlers when it first reaches some code: less and less often, the longer it
 * has worked. So the period grows. */
static void *keep_newest(void *unused)
{
    static long period = 200000; /* nanoseconds */
    int idle = 0;
    tern_mutex_lock(&compilers.lock);
    while (!compilers.stops && idle < IDLE) {
        bool at_work = compilers.at_work > 0;
        idle = at_work ? 0 : idle + 1;
        wait_for(at_work ? period : 1000000);
        if (!at_work)
            continue;
        tern_os_at_exit(end_process);
        period += period < 500000000 ? period / 64 : 0;
    }
    compilers.over = true;
    tern_mutex_unlock(&compilers.lock);
    return unused;
}

/* The lock is held. */
static void start_thread(void)
{
    if (compilers.started && compilers.over)
        tern_os_thread_join(compilers.thread);
    compilers.over = false;
    compilers.started = tern_os_thread_start(&compilers.thread, keep_newest, NULL);
}

void tern_foreign_compile_begin(void)
{
    if (tern_is_forked_child())
        return;
    tern_mutex_lock(&compilers.lock);
    compilers.at_work++;
    if (!compilers.started || compilers.over)
        start_thread();
    tern_mutex_unlock(&compilers.lock);
}

void tern_foreign_compile_end(void)
{
    if (tern_is_forked_child())
        return;
    tern_mutex_lock(&compilers.lock);
    compilers.at_work--;
    tern_mutex_unlock(&compilers.lock);
    tern_foreign_loaded();
}

/* The library may be unloaded, so the thread must end. */
__attribute__((destructor)) static void stop_thread(void)
{
    (void)tern_is_unloading();
    if (tern_is_forked_child() || tern_is_ending() || !compilers.started)
        return;
    tern_mutex_lock(&compilers.lock);
    compilers.stops = true;
    tern_cond_broadcast(&compilers.change);
    tern_mutex_unlock(&compilers.lock);
    tern_os_thread_join(compilers.thread);
}
