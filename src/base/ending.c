/* ending.c -- the end of the process.
 *
 * exit() calls the destructors of its thread's variables, then handlers, the newest first, then the
 * destructors of libraries. A driver's compiler registers handlers when it first compiles, so that
 * they are newer than any that was registered before. For the main thread a destructor of a
 * variable of its own comes before all of them. Where another thread calls exit() a handler has to
 * be the newest: it is registered again after each call that may compile, and while that runs. */
#define _GNU_SOURCE /* dladdr1 */
#include "base/ending.h"
#include "base/forks.h"
#include "base/thread.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>
#endif

/* A thread that does not come out of a library in that time never will. */
enum { PATIENCE_SECONDS = 60 };

static atomic_int inside; /* threads, of the process of that many forks */
static atomic_int inside_forks;
static atomic_bool is_ending;
static atomic_bool is_unloading; /* the handlers are called then, too, by the last destructors */

/* ---- handlers -------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    tern_ending *first;
    bool begun;
} endings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void run_all(bool after)
{
    for (tern_ending *e = endings.first; e; e = e->next)
        if (e->after == after)
            e->run();
}

static void nap(long nanoseconds)
{
    nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL);
}

static void wait_for_threads(void)
{
    struct timespec now, until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_SECONDS;
    do {
        nap(100000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (atomic_load(&inside) > (tern_thread.foreign_depth > 0) && now.tv_sec < until.tv_sec);
}

/* exit() calls this, the first time before any driver's own. What handlers of the program's then
 * launch is waited for when it is called again. */
static void end_process(void)
{
    if (tern_is_forked_child() && atomic_load(&inside_forks) != tern_forks())
        return; /* no library was entered in this process */
    if (atomic_load(&is_unloading))
        return;
    pthread_mutex_lock(&endings.lock);
    bool first = !endings.begun;
    endings.begun = true;
    pthread_mutex_unlock(&endings.lock);
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

#ifdef __linux__
extern int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *dso)
    __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void end_of_main(void *unused)
{
    (void)unused;
    end_process();
}

/* Whether this code is never unloaded: that of a program, and libtern.so. A destructor keeps a
 * plugin loaded. */
static bool stays(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (!dladdr1(&endings, &info, (void **)&map, RTLD_DL_LINKMAP) || !map || !map->l_name[0])
        return true;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_FLAGS_1)
            return d->d_un.d_val & DF_1_NODELETE;
    return false;
}

/* Called again by the main thread, for a library that another thread loaded. */
static void watch_main(void)
{
    static atomic_bool watched;
    if (__cxa_thread_atexit_impl && !atomic_load(&watched) && syscall(SYS_gettid) == getpid() &&
        stays() && !atomic_exchange(&watched, true))
        __cxa_thread_atexit_impl(end_of_main, NULL, &__dso_handle);
}
#else
static void watch_main(void)
{
}
#endif

bool tern_is_unloading(void)
{
#ifdef __linux__
    if (!tern_is_ending() && !tern_is_forked_child() && !stays())
        atomic_store(&is_unloading, true);
#endif
    return atomic_load(&is_unloading);
}

__attribute__((constructor)) static void start(void)
{
    watch_main();
}

void tern_foreign_loaded(void)
{
    watch_main();
    atexit(end_process);
}

void tern_at_ending(tern_ending *ending)
{
    pthread_mutex_lock(&endings.lock);
    if (!ending->registered) {
        ending->registered = true;
        ending->next = endings.first;
        endings.first = ending;
    }
    pthread_mutex_unlock(&endings.lock);
    tern_foreign_loaded();
}

/* ---- inside ---------------------------------------------------------------------------------- */

static _Noreturn void stay_here(void)
{
    for (;;)
        pause();
}

/* A child of the process has none of its threads. */
static void forget_parent(void)
{
    int forks = tern_forks(), before = atomic_load_explicit(&inside_forks, memory_order_relaxed);
    if (before != forks && atomic_compare_exchange_strong(&inside_forks, &before, forks))
        atomic_store(&inside, 0);
}

void tern_foreign_enter(void)
{
    if (tern_thread.foreign_depth++ > 0)
        return;
    forget_parent();
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&is_ending) && !tern_thread.calls_exit) {
        atomic_fetch_sub(&inside, 1);
        stay_here();
    }
}

void tern_foreign_leave(void)
{
    if (--tern_thread.foreign_depth == 0)
        atomic_fetch_sub_explicit(&inside, 1, memory_order_release);
}

/* ---- compilers ------------------------------------------------------------------------------- */

/* Milliseconds that the thread stays after the last compiler: the next one comes soon. */
enum { IDLE = 100 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t change;
    int at_work;
    bool started, over, stops;
    pthread_t thread;
} compilers = {.lock = PTHREAD_MUTEX_INITIALIZER, .change = PTHREAD_COND_INITIALIZER};

/* With the lock held. */
static void wait_for(long nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&compilers.change, &compilers.lock, &until);
}

/* What a compiler registers it registers when it first comes to a place: seldom, the longer it has
 * worked. */
static void *keep_newest(void *unused)
{
    static long period = 200000; /* nanoseconds */
    int idle = 0;
    pthread_mutex_lock(&compilers.lock);
    while (!compilers.stops && idle < IDLE) {
        bool at_work = compilers.at_work > 0;
        idle = at_work ? 0 : idle + 1;
        wait_for(at_work ? period : 1000000);
        if (!at_work)
            continue;
        atexit(end_process);
        period += period < 500000000 ? period / 64 : 0;
    }
    compilers.over = true;
    pthread_mutex_unlock(&compilers.lock);
    return unused;
}

/* With the lock held. */
static void start_thread(void)
{
    sigset_t all, before;
    if (compilers.started && compilers.over)
        pthread_join(compilers.thread, NULL);
    compilers.over = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    compilers.started = pthread_create(&compilers.thread, NULL, keep_newest, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tern_foreign_compile_begin(void)
{
    if (tern_is_forked_child())
        return;
    pthread_mutex_lock(&compilers.lock);
    compilers.at_work++;
    if (!compilers.started || compilers.over)
        start_thread();
    pthread_mutex_unlock(&compilers.lock);
}

void tern_foreign_compile_end(void)
{
    if (tern_is_forked_child())
        return;
    pthread_mutex_lock(&compilers.lock);
    compilers.at_work--;
    pthread_mutex_unlock(&compilers.lock);
    tern_foreign_loaded();
}

/* The library may be unloaded. */
__attribute__((destructor)) static void stop_thread(void)
{
    (void)tern_is_unloading();
    if (tern_is_forked_child() || tern_is_ending() || !compilers.started)
        return;
    pthread_mutex_lock(&compilers.lock);
    compilers.stops = true;
    pthread_cond_broadcast(&compilers.change);
    pthread_mutex_unlock(&compilers.lock);
    pthread_join(compilers.thread, NULL);
}
