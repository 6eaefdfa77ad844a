/* fault.c -- a job in which one rank does something wrong, at a step that a seed gives: the others name it.
 *
 *   mpirun -n N fault SEED [KIND]
 *   mpirun -n 3 fault late          rank 1 does not come
 *   fault plan SEED N [KIND]        says what will be done
 *
 * Each rank that is left writes what it met into result.<rank>: "ok", or "named SECONDS MESSAGE". */
#include "ranks.h"
#include <signal.h>
#include <time.h>

enum { STEPS = 12 };

typedef enum fault {
    DELAY,
    KILL,
    STOP,
    LEAVE,
    SLEEP,
    SIZE,
    SKIP,
    OTHER,
    LEAVE_GROUP,
    FAULTS
} fault;
static const char *const names[] = {"delay", "kill", "stop",  "leave",      "sleep",
                                    "size",  "skip", "other", "leave_group"};

static int rank, ranks;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void rest(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

/* The collectives of a step, no two alike next to each other; more: elements too many. */
static tern_status collective(int step, int i, int more)
{
    tern_status status = TERN_OK;
    TERN_SCOPE {
        const tern_dist_options o = {.label = i % 2 ? "a label" : NULL, .timeout = wait_limit()};
        const int64_t n = 10 + (i % 3) * 5000 + more;
        tern_tensor *x = tern_full(TERN_SHAPE(n), TERN_SCALAR(rank), TERN_F32, "cpu");
        switch (i) {
        case 0:
            status = tern_dist_all_reduce(x, &o);
            break;
        case 1:
            status = tern_dist_broadcast(x, step % ranks, &o);
            break;
        case 2:
            status = tern_dist_all_gather_into_tensor(
                tern_zeros(TERN_SHAPE(ranks, n), TERN_F32, "cpu"), x, &o);
            break;
        case 3:
            status = tern_dist_all_reduce(tern_to_dtype(x, TERN_BF16), &o);
            break;
        case 4:
            status = tern_dist_reduce_scatter_tensor(
                x, tern_zeros(TERN_SHAPE(ranks, n), TERN_F32, "cpu"), &o);
            break;
        default:
            status = tern_dist_barrier(&o);
            break;
        }
        const double want = ranks * (ranks - 1) / 2.0;
        if (status == TERN_OK && i == 0) /* never a wrong sum without an error */
            CHECK(tern_item(tern_min(x)) == want && tern_item(tern_max(x)) == want, "step %d",
                  step);
    }
    return status;
}

static tern_status misbehave(fault kind, int step, int i)
{
    switch (kind) {
    case DELAY:
        rest(wait_limit() * 0.4);
        return collective(step, i, 0);
    case KILL:
        raise(SIGKILL);
        break;
    case STOP:
        raise(SIGSTOP);
        break;
    case LEAVE:
        _exit(7);
    case SLEEP:
        rest(600);
        break;
    case SIZE:
        return collective(step, i == 5 ? 4 : i, 3);
    case SKIP:
        return TERN_OK;
    case OTHER:
        return collective(step, (i + 2) % 6, 0);
    case LEAVE_GROUP:
        return tern_dist_destroy_process_group();
    default:
        break;
    }
    return TERN_OK;
}

static int late(void)
{
    const char *own =
        getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    if (own && atoi(own) == 1)
        rest(60);
    const double began = now();
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = wait_limit()});
    CHECK(tern_last_status() == TERN_ERR_PEER && now() - began < IN_TIME, "%.1f s", now() - began);
    char words[96];
    snprintf(words, sizeof words, "within %.1f s: not all processes of the job have come",
             wait_limit());
    CHECK(strstr(tern_last_error(), words), "init");
    rank = own ? atoi(own) : 0;
    ranks = 3;
    write_result(rank, "named %.1f %s", now() - began, tern_last_error());
    tern_clear_error();
    REFUSED(tern_dist_init_process_group(NULL, NULL), TERN_ERR_STATE, "has left its job");
    await_results(ranks, 1);
    return 7;
}

typedef struct plan {
    fault kind;
    int bad, when, which;
} plan;

static plan plan_of(uint64_t seed, int n, const char *kind)
{
    plan p = {(fault)(draw(&seed) % FAULTS), (int)(draw(&seed) % (uint64_t)n),
              (int)(draw(&seed) % (STEPS - 2)), (int)(draw(&seed) % 6)};
    for (int k = 0; kind && k < FAULTS; k++)
        if (strcmp(kind, names[k]) == 0)
            p.kind = (fault)k;
    return p;
}

int main(int argc, char **argv)
{
    if (argc > 3 && strcmp(argv[1], "plan") == 0) {
        plan p = plan_of(strtoull(argv[2], NULL, 10), atoi(argv[3]), argc > 4 ? argv[4] : NULL);
        printf("%s by rank %d at %d.%d\n", names[p.kind], p.bad, p.when, p.which);
        return 0;
    }
    leave_pid();
    if (argc > 1 && strcmp(argv[1], "late") == 0)
        return late();
    tern_dist_init_process_group("mpi", &(tern_dist_init_options){.timeout = 30});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks > 1, "%d ranks", ranks);
    const plan p =
        plan_of(argc > 1 ? strtoull(argv[1], NULL, 10) : 0, ranks, argc > 2 ? argv[2] : NULL);
    double began = now();
    tern_status status = TERN_OK;
    for (int step = 0; step < STEPS && status == TERN_OK; step++)
        for (int i = 0; i < 6 && status == TERN_OK; i++) {
            began = now();
            status = rank == p.bad && step == p.when && i == p.which ? misbehave(p.kind, step, i)
                                                                     : collective(step, i, 0);
        }
    if (status == TERN_OK && tern_dist_is_initialized())
        status = tern_dist_destroy_process_group();
    const double took = now() - began;
    if (p.kind == DELAY) {
        write_result(rank, "%s %.1f %s", status == TERN_OK ? "ok" : "wrong", took,
                     tern_last_error());
        return status != TERN_OK;
    }
    char name[32];
    snprintf(name, sizeof name, "rank %d (", p.bad);
    const bool named = status == TERN_ERR_PEER && strstr(tern_last_error(), name) &&
                       took < IN_TIME && waited_in_time(tern_last_error(), wait_limit());
    write_result(rank, "%s %.1f %s",
                 named           ? "named"
                 : rank == p.bad ? "bad"
                                 : "wrong",
                 took, tern_last_error());
    await_results(ranks, p.bad);
    return 7;
}
