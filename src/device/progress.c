/* progress.c -- reports of compilations, to the handler of tern_on_compile or, with TERN_PROGRESS,
 * to stderr. */
#include "base/columns.h"
#include "base/os.h"
#include "base/ending.h"
#include "base/env.h"
#include "base/thread.h"
#include "device/builds.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/compile.h>

static tern_mutex lock = TERN_MUTEX_INIT;
static _Atomic(const void *) reporter; /* &tern_thread of the thread that calls the handler */
static struct {
    tern_compile_handler call;
    void *user;
    int64_t begun, done;
} progress;

static tern_once once = TERN_ONCE_INIT;
static tern_compile_handler standard; /* used if the program has set no handler; may be NULL */

static int64_t printed; /* progress.begun at the last line */

/* Prints one line on a terminal, which is erased when all compilations are done; elsewhere prints a
 * line for each compilation that begins. */
static void print(const tern_compile_progress *p, void *unused)
{
    char line[512];
    (void)unused;
    bool begins = progress.begun > printed;
    printed = progress.begun;
    snprintf(line, sizeof line, "tern: %s compiles %s (%lld of %lld)", p->device, p->kernel,
             (long long)p->done + 1, (long long)p->total);
    if (!tern_os_isatty(STDERR_FILENO) && begins)
        fprintf(stderr, "%s\n", line);
    else if (tern_os_isatty(STDERR_FILENO) && p->done == p->total)
        fputs("\r\033[K", stderr);
    else if (tern_os_isatty(STDERR_FILENO))
        fprintf(stderr, "\r%.*s\033[K", tern_columns_cut(line, tern_os_columns(stderr) - 1), line);
}

static void read_environment(void)
{
    if (tern_env_flag(TERN_ENV_PROGRESS, false))
        progress.call = standard = print;
}

void tern_on_compile(tern_compile_handler handler, void *user)
{
    tern_call_once(&once, read_environment);
    tern_mutex_lock(&lock);
    progress.call = handler ? handler : standard;
    progress.user = user;
    tern_mutex_unlock(&lock);
}

static void report(const tern_place *place, const char *title, int64_t begun, int64_t done)
{
    int64_t waiting = tern_builds_waiting();
    tern_call_once(&once, read_environment);
    while (!tern_mutex_trylock(&lock)) { /* the thread that holds it may have called exit() */
        if (tern_is_ending())
            return;
        tern_os_sleep(100000);
    }
    progress.begun += begun;
    progress.done += done;
    tern_compile_progress p = {.device = tern_place_text(place),
                               .kernel = title,
                               .done = progress.done,
                               .total = progress.begun + waiting};
    atomic_store(&reporter, &tern_thread);
    if (progress.call)
        progress.call(&p, progress.user);
    atomic_store(&reporter, NULL);
    tern_mutex_unlock(&lock);
}

bool tern_build_is_reporting(void)
{
    return atomic_load(&reporter) == &tern_thread;
}

void tern_build_compiles(const tern_place *place, const char *title)
{
    report(place, title, 1, 0);
}

void tern_build_compiled(const tern_place *place, const char *title)
{
    report(place, title, 0, 1);
}
