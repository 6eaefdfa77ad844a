/* test_parallel.c -- the thread pool: each part runs once, in any number, nested, from several
 * threads and after a fork. */
#include "support.h"
#include "base/parallel.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 12, ROUNDS = 2000 };

typedef struct tally {
    atomic_int runs[MOST];
    atomic_int strange; /* a part out of range, or another number of parts */
    int parts;
} tally;

static void count(void *user, int part, int parts)
{
    tally *t = user;
    if (part < 0 || part >= t->parts || parts != t->parts)
        atomic_fetch_add(&t->strange, 1);
    else
        atomic_fetch_add(&t->runs[part], 1);
}

/* How many of these jobs went wrong. */
static int bad_rounds(int rounds)
{
    int bad = 0;
    for (int i = 0; i < rounds; i++) {
        tally t = {.parts = i % MOST + 1};
        tern_parallel(t.parts, count, &t);
        bool fine = atomic_load(&t.strange) == 0;
        for (int part = 0; part < MOST; part++)
            fine = fine && atomic_load(&t.runs[part]) == (part < t.parts);
        bad += !fine;
    }
    return bad;
}

static void each_part_runs_once(void **state)
{
    (void)state;
    assert_int_equal(bad_rounds(ROUNDS), 0);
}

static void jobs_after_a_pause_run_too(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) {
        usleep(2000); /* the workers are asleep by then */
        assert_int_equal(bad_rounds(MOST), 0);
    }
}

static void nest(void *user, int part, int parts)
{
    atomic_int *bad = user;
    (void)part;
    (void)parts;
    atomic_fetch_add(bad, tern_parallel_parts(INT64_MAX) != 1);
    atomic_fetch_add(bad, bad_rounds(20));
}

static void a_job_inside_of_a_job_stays_on_its_thread(void **state)
{
    (void)state;
    atomic_int bad = 0;
    tern_parallel(4, nest, &bad);
    assert_int_equal(atomic_load(&bad), 0);
}

static void *run_rounds(void *bad)
{
    *(int *)bad = bad_rounds(ROUNDS);
    return NULL;
}

static void threads_that_want_the_pool_at_once_are_all_served(void **state)
{
    (void)state;
    pthread_t threads[3];
    int bad[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_rounds, &bad[i]), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(bad[i], 0);
    }
}

static void a_forked_child_runs_its_parts_alone(void **state)
{
    (void)state;
    assert_int_equal(bad_rounds(MOST), 0); /* the pool is there before the fork */
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(tern_parallel_parts(INT64_MAX) == 1 && bad_rounds(MOST) == 0 ? 0 : 1);
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void parts_follow_the_work_and_the_limit(void **state)
{
    (void)state;
    int before = tern_parallel_limit_get();
    tern_parallel_limit(3);
    assert_int_equal(tern_parallel_parts(1), 1);
    assert_int_equal(tern_parallel_parts(INT64_MAX), 3);
    tern_parallel_limit(before);
}

/* ---- which thread ------------------------------------------------------------------------ */

typedef struct meeting {
    atomic_int begun;
    pthread_t thread[3];
} meeting;

/* Waits until each part has begun, so that no thread can take two. */
static void meet(void *user, int part, int parts)
{
    meeting *m = user;
    m->thread[part] = pthread_self();
    atomic_fetch_add(&m->begun, 1);
    while (atomic_load(&m->begun) < parts)
        sched_yield();
}

static void a_thread_has_the_same_part_of_every_job(void **state)
{
    (void)state;
    int before = tern_parallel_limit_get(), moved = 0;
    meeting first = {.begun = 0};
    tern_parallel_limit(3);
    tern_parallel(3, meet, &first);
    assert_true(pthread_equal(first.thread[0], pthread_self()));
    for (int i = 0; i < ROUNDS; i++) {
        meeting m = {.begun = 0};
        tern_parallel(3, meet, &m);
        for (int part = 0; part < 3; part++)
            moved += !pthread_equal(m.thread[part], first.thread[part]);
    }
    assert_int_equal(moved, 0);
    tern_parallel_limit(before);
}

static const struct CMUnitTest tests[] = {
    TEST(each_part_runs_once),
    TEST(jobs_after_a_pause_run_too),
    TEST(a_job_inside_of_a_job_stays_on_its_thread),
    TEST(threads_that_want_the_pool_at_once_are_all_served),
    TEST(a_forked_child_runs_its_parts_alone),
    TEST(parts_follow_the_work_and_the_limit),
    TEST(a_thread_has_the_same_part_of_every_job),
};

TEST_MAIN(tests)
