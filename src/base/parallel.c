/* parallel.c -- the thread pool of the process.
 *
 * The threads and the caller claim the parts of a job one by one, so that a worker that the system
 * has preempted delays only the part that it has begun. Each thread begins with its own parts, the
 * same share of every job, because its core's caches have what it wrote there in the job before;
 * then it takes parts that no thread has begun. A worker polls for the next job for some 20
 * microseconds, then, if the last job came soon enough, for another 250, in which it offers its
 * core to other threads (sched_yield), and then sleeps: waking a thread takes longer than many
 * operations of a small model. (libgomp spins for milliseconds without a yield: with other programs
 * on the same cores a training step took up to 20 times as long.) */
#include "base/parallel.h"
#include "base/os.h"
#include "base/ending.h"
#include <stdatomic.h>
#include <stdlib.h>

enum { WORK_PER_PART = 16384, MOST = 256, SPINS = 1000, PATIENCE = 250000 /* nanoseconds */ };

static struct {
    tern_mutex job; /* held by the caller whose job runs */
    void (*body)(void *user, int part, int parts);
    void *user;
    atomic_ullong state;       /* turn (number of the job) << 32 | parts << 16 | threads */
    atomic_uint claimed[MOST]; /* the turn in which each part was claimed last */
    atomic_int unfinished;     /* number of parts */

    tern_mutex sleep;
    tern_cond wake;
    atomic_int sleepers;
    atomic_bool closing;
    tern_os_thread worker[MOST];
    int workers;
} pool = {.job = TERN_MUTEX_INIT, .sleep = TERN_MUTEX_INIT, .wake = TERN_COND_INIT};

static atomic_int limit; /* 0: the number of the machine's threads */

/* ---- number of parts --------------------------------------------------------------------- */

static int machine_threads(void)
{
    const char *text = tern_os_getenv("OMP_NUM_THREADS");
    int n = text ? atoi(text) : 0;
    uint64_t which;
    if (n <= 0)
        n = tern_os_own_cores(&which);
    if (n <= 0)
        n = tern_os_cores();
    return n < 1 ? 1 : n > MOST ? MOST : n;
}

void tern_parallel_limit(int n)
{
    atomic_store(&limit, n < MOST ? n : MOST);
}

int tern_parallel_limit_get(void)
{
    int n = atomic_load_explicit(&limit, memory_order_relaxed);
    if (n == 0)
        tern_parallel_limit(n = machine_threads());
    return n;
}

int tern_parallel_parts(int64_t work)
{
    if (work < 2 * WORK_PER_PART || tern_thread.in_parallel || tern_is_forked_child())
        return 1;
    int64_t parts = work / WORK_PER_PART;
    int threads = tern_parallel_limit_get();
    return parts < threads ? (int)parts : threads;
}

bool tern_parallel_alone(bool alone)
{
    bool before = tern_thread.in_parallel;
    tern_thread.in_parallel = alone;
    return before;
}

/* ---- workers ----------------------------------------------------------------------------- */

static inline void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static unsigned turn_of(unsigned long long state)
{
    return (unsigned)(state >> 32);
}

/* Returns whether the caller has claimed a part of the job of that turn. If that job is over, the
 * part was claimed in that turn or a later one, so the result is false. */
static bool claim(int part, unsigned turn)
{
    unsigned last = atomic_load(&pool.claimed[part]);
    return (int)(last - turn) < 0 &&
           atomic_compare_exchange_strong(&pool.claimed[part], &last, turn);
}

static void take(int part, int parts, unsigned turn)
{
    if (!claim(part, turn))
        return;
    pool.body(pool.user, part, parts);
    atomic_fetch_sub(&pool.unfinished, 1);
}

/* Runs parts of the present job until all are claimed: first those of thread number self, whose
 * elements its caches may still have, then those that other threads have not begun. Returns the
 * turn. */
static unsigned work(int self)
{
    unsigned long long state = atomic_load(&pool.state);
    unsigned turn = turn_of(state);
    int parts = (int)(state >> 16 & 0xffff), threads = (int)(state & 0xffff);
    if (self >= threads) /* the pool has more threads than the job uses */
        return turn;
    int from = parts * self / threads, to = parts * (self + 1) / threads;
    for (int part = from; part < to; part++)
        take(part, parts, turn);
    for (int part = parts - 1; part >= to; part--)
        take(part, parts, turn);
    for (int part = from - 1; part >= 0; part--)
        take(part, parts, turn);
    return turn;
}

static bool came(unsigned turn)
{
    return turn_of(atomic_load_explicit(&pool.state, memory_order_relaxed)) != turn;
}

/* Waits until there is a job of another turn, or the pool closes. Sets *patient to whether the job
 * came soon enough for polling to be worth it next time. */
static void wait_for_job(unsigned turn, bool *patient)
{
    for (int i = 0; i < SPINS; i++) {
        if (came(turn))
            return;
        pause_briefly();
    }
    int64_t begun = tern_os_now();
    while (*patient && tern_os_now() - begun < PATIENCE) {
        if (came(turn))
            return;
        tern_os_sched_yield();
    }
    tern_mutex_lock(&pool.sleep);
    atomic_fetch_add(&pool.sleepers, 1);
    while (turn_of(atomic_load(&pool.state)) == turn && !atomic_load(&pool.closing))
        tern_cond_wait(&pool.wake, &pool.sleep);
    atomic_fetch_sub(&pool.sleepers, 1);
    tern_mutex_unlock(&pool.sleep);
    *patient = tern_os_now() - begun < PATIENCE;
}

static void *run_worker(void *number)
{
    bool patient = false;
    tern_thread.in_parallel = true;
    while (!atomic_load(&pool.closing))
        wait_for_job(work((int)(intptr_t)number), &patient);
    return NULL;
}

/* pool.job is locked. Starts workers until there are as many as wanted, or the system refuses. */
static void hire(int wanted)
{
    while (pool.workers < wanted && tern_os_thread_start(&pool.worker[pool.workers], run_worker,
                                                         (void *)(intptr_t)(pool.workers + 1)))
        pool.workers++;
}

static void wake_all(void)
{
    if (atomic_load(&pool.sleepers) == 0)
        return;
    tern_mutex_lock(&pool.sleep);
    tern_cond_broadcast(&pool.wake);
    tern_mutex_unlock(&pool.sleep);
}

/* When the library is unloaded, its threads must have ended. At the end of the process they may
 * never end, so it does not wait for them. */
__attribute__((destructor)) static void close_pool(void)
{
    atomic_store(&pool.closing, true);
    if (tern_is_forked_child() || tern_is_ending())
        return;
    wake_all();
    for (int i = 0; i < pool.workers; i++)
        tern_os_thread_join(pool.worker[i]);
    pool.workers = 0;
}

/* ---- jobs -------------------------------------------------------------------------------- */

static void share(int parts, void (*body)(void *user, int part, int parts), void *user)
{
    unsigned long long turn = turn_of(atomic_load(&pool.state)) + 1ull;
    int threads = tern_parallel_limit_get();
    threads = parts < threads ? parts : threads;
    if (pool.workers < threads - 1 && !atomic_load(&pool.closing))
        hire(threads - 1);
    pool.body = body;
    pool.user = user;
    for (int part = 0; part < parts; part++)
        atomic_store_explicit(&pool.claimed[part], (unsigned)turn - 1, memory_order_relaxed);
    atomic_store(&pool.unfinished, parts);
    atomic_store(&pool.state,
                 (turn & 0xffffffff) << 32 | (unsigned long long)parts << 16 | (unsigned)threads);
    wake_all();
    tern_thread.in_parallel = true;
    work(0);
    tern_thread.in_parallel = false;
    for (int i = 0; atomic_load(&pool.unfinished) > 0; i++) {
        if (i < SPINS)
            pause_briefly();
        else
            tern_os_sched_yield();
    }
}

void tern_parallel(int parts, void (*body)(void *user, int part, int parts), void *user)
{
    bool alone =
        parts <= 1 || tern_thread.in_parallel || tern_is_forked_child() || tern_is_ending();
    if (!alone && tern_mutex_trylock(&pool.job)) {
        share(parts < MOST ? parts : MOST, body, user);
        tern_mutex_unlock(&pool.job);
        return;
    }
    for (int part = 0; part < parts; part++)
        body(user, part, parts);
}
