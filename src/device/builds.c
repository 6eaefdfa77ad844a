/* builds.c -- background threads that compile programs. A driver's compiler takes tenths of a
 * second for each program, and a training step needs dozens, one after the other. When a kernel is
 * needed, background threads compile the other kernels of its group and store them in the cache.
 * The thread that launches them loads them from there, so results and errors stay the same. */
#include "base/env.h"
#include "base/os.h"
#include "device/builds.h"
#include "device/chain_kernels.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/parallel.h"
#include "device/program_groups.h"
#include "device/place.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tern/compile.h>

enum { MOST_THREADS = 64, MOST_AT_WORK = 2 * MOST_THREADS, MOST_JOBS = 1024 };

typedef struct job {
    tern_place *place;
    const char *file, *name;
    tern_dtype dtype;
    int lanes;                /* the lanes of teams for short rows, or 0 */
    tern_chain_kernel *chain; /* the kernel of a chain to compile; NULL: kernel `name` of `file` */
} job;

static struct {
    tern_mutex lock;
    tern_cond change;    /* signalled when a job is added or done, or the process ends */
    job jobs[MOST_JOBS]; /* all jobs, done ones too, so that none is added twice */
    int count, next;     /* the number of jobs, and the first that no thread has begun */
    int running;
    tern_cache_key at_work[MOST_AT_WORK]; /* programs that a thread builds now */
    int n_at_work;
    tern_cache_key done[MOST_JOBS]; /* programs that tern_build_try returned true for */
    int n_done;
    tern_os_thread threads[MOST_THREADS];
    int n_threads, forks;
    bool closing;
} builds = {.lock = TERN_MUTEX_INIT, .change = TERN_COND_INIT};

/* In a forked child of the process that started the threads, builds.lock may be held for ever, and
 * no thread does the jobs. */
bool tern_builds_are_of_parent(void)
{
    return builds.n_threads > 0 && builds.forks != tern_forks();
}

/* ---- one program, one thread ----------------------------------------------------------------- */

static int find(const tern_cache_key *key)
{
    for (int i = 0; i < builds.n_at_work; i++)
        if (memcmp(&builds.at_work[i], key, sizeof *key) == 0)
            return i;
    return -1;
}

static bool claim(const tern_cache_key *key)
{
    if (find(key) >= 0)
        return false;
    if (builds.n_at_work < MOST_AT_WORK)
        builds.at_work[builds.n_at_work++] = *key;
    return true;
}

static bool is_done(const tern_cache_key *key)
{
    for (int i = 0; i < builds.n_done; i++)
        if (memcmp(&builds.done[i], key, sizeof *key) == 0)
            return true;
    return false;
}

bool tern_build_try(const tern_cache_key *key)
{
    if (tern_builds_are_of_parent())
        return false;
    tern_mutex_lock(&builds.lock);
    bool mine = !is_done(key) && claim(key);
    if (mine && builds.n_done < MOST_JOBS)
        builds.done[builds.n_done++] = *key;
    tern_mutex_unlock(&builds.lock);
    return mine;
}

void tern_build_end(const tern_cache_key *key)
{
    if (tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    int i = find(key);
    if (i >= 0)
        builds.at_work[i] = builds.at_work[--builds.n_at_work];
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
}

/* ---- stopping -------------------------------------------------------------------------------- */

static atomic_bool stopped;

bool tern_builds_are_stopped(void)
{
    return atomic_load(&stopped);
}

tern_status tern_build_allowed(const tern_place *place, const char *title)
{
    if (!tern_builds_are_stopped())
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE, "%s: %s is not compiled: tern_compile_stop was called",
                     tern_place_text(place), title);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

/* Does the next job; returns false if there is none. The caller holds the lock, which is released
 * meanwhile. An error of a job is dropped: the thread that needs the program builds it again and
 * gets the error. */
static bool work(void)
{
    if (builds.next == builds.count || builds.closing || tern_builds_are_stopped())
        return false;
    job j = builds.jobs[builds.next++];
    builds.running++;
    tern_mutex_unlock(&builds.lock);
    tern_error_hold hold;
    bool before = tern_thread.works_ahead;
    tern_thread.works_ahead = true;
    tern_foreign_enter();
    if (tern_error_hold_begin(&hold) == TERN_OK) {
        if (j.chain)
            tern_chain_kernel_make_ahead(j.chain);
        else
            j.place->backend->prebuild(j.place, j.file, j.name, j.dtype, j.lanes);
        tern_error_hold_end(&hold, NULL, 0);
    }
    tern_foreign_leave();
    tern_thread.works_ahead = before;
    tern_mutex_lock(&builds.lock);
    builds.running--;
    tern_cond_broadcast(&builds.change);
    return true;
}

void tern_build_begin(const tern_cache_key *key)
{
    if (tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    while (!claim(key))
        if (!work())
            tern_cond_wait(&builds.change, &builds.lock);
    tern_mutex_unlock(&builds.lock);
}

static void *run(void *unused)
{
    tern_mutex_lock(&builds.lock);
    while (!builds.closing)
        if (!work())
            tern_cond_wait(&builds.change, &builds.lock);
    tern_mutex_unlock(&builds.lock);
    return unused;
}

/* Returns the number of background threads: by default one less than the limit of threads, as one
 * thread runs the program. */
static int threads_wanted(void)
{
    const char *text = tern_env(TERN_ENV_COMPILE_THREADS);
    bool is_count = text && text[strspn(text, "0123456789")] == '\0';
    int n = is_count ? atoi(text) : tern_parallel_limit_get() - 1;
    return n < 0 ? 0 : n < MOST_THREADS ? n : MOST_THREADS;
}

/* Starts the background threads, if there are jobs. The caller holds the lock. */
static void hire(void)
{
    int wanted = threads_wanted();
    if (builds.n_threads >= wanted || builds.next == builds.count || builds.closing)
        return;
    while (builds.n_threads < wanted &&
           tern_os_thread_start(&builds.threads[builds.n_threads], run, NULL))
        builds.n_threads++;
    builds.forks = tern_forks();
}

/* Adds a job unless it was added before; returns false if the list is full. The caller holds the
 * lock. */
static bool add(job wanted)
{
    for (int i = 0; i < builds.count; i++) {
        const job *j = &builds.jobs[i];
        if (j->place == wanted.place && j->dtype == wanted.dtype && j->lanes == wanted.lanes &&
            j->chain == wanted.chain && strcmp(j->name, wanted.name) == 0 &&
            strcmp(j->file, wanted.file) == 0)
            return true;
    }
    if (builds.count == MOST_JOBS)
        return false;
    builds.jobs[builds.count++] = wanted;
    return true;
}

void tern_builds_add(tern_place *place, const char *file, const char *name, tern_dtype dtype,
                     int lanes)
{
    if (!place->backend->prebuild || tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    add((job){place, file, name, dtype, lanes, NULL});
    hire();
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
}

bool tern_builds_add_chain(tern_place *place, tern_chain_kernel *chain)
{
    if (threads_wanted() == 0 || tern_builds_are_of_parent() || tern_builds_are_stopped())
        return false;
    tern_mutex_lock(&builds.lock);
    bool added = !builds.closing && add((job){place, "", "", TERN_DTYPE_DEFAULT, 0, chain});
    hire();
    added = added && builds.n_threads > 0;
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
    return added;
}

void tern_builds_expect(tern_place *place, const char *file, const char *name, tern_dtype dtype)
{
    const tern_program_group_row *row = tern_program_group_of(file, name);
    if (!row || !row->opens || place->lazy || !place->backend->prebuild || threads_wanted() == 0 ||
        tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    for (const tern_program_group_row *other = tern_program_groups; other->group; other++)
        if (strcmp(other->group, row->group) == 0 && strcmp(other->kernel, name) != 0 &&
            tern_program_group_has(other, place->grouped) &&
            tern_host_parameters(other->kernel, dtype))
            add((job){place, other->file, other->kernel, dtype, 0, NULL});
    tern_mutex_unlock(&builds.lock);
}

void tern_build_is_cold(void)
{
    if (tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    hire();
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
}

int tern_builds_waiting(void)
{
    if (tern_builds_are_of_parent())
        return 0;
    tern_mutex_lock(&builds.lock);
    int n = builds.closing ? 0 : builds.count - builds.next;
    tern_mutex_unlock(&builds.lock);
    return n;
}

void tern_builds_finish(void)
{
    if (tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    while ((builds.next < builds.count && !tern_builds_are_stopped()) || builds.running)
        if (!work())
            tern_cond_wait(&builds.change, &builds.lock);
    tern_mutex_unlock(&builds.lock);
}

void tern_compile_stop(bool stop)
{
    atomic_store(&stopped, stop);
    if (tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
}

void tern_builds_stop(void)
{
    if (builds.n_threads == 0 || tern_builds_are_of_parent())
        return;
    tern_mutex_lock(&builds.lock);
    builds.closing = true;
    tern_cond_broadcast(&builds.change);
    tern_mutex_unlock(&builds.lock);
}

/* Joins the threads if the library is unloaded, as they must end before. If the process ends, they
 * are not joined, because they may never end. */
__attribute__((destructor)) static void close_at_end(void)
{
    tern_builds_stop();
    for (int i = 0; i < builds.n_threads && !tern_builds_are_of_parent() && !tern_is_ending(); i++)
        tern_os_thread_join(builds.threads[i]);
}
