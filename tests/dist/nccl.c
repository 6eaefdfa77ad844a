/* nccl.c -- ranks with a CUDA device each, whose data go from device to device through NCCL: on the stand-in for it, whose
 * operations are counted.
 *
 *   mpirun -n N nccl all          on N devices; twice as many for what moves
 *   mpirun -n N nccl shared       all ranks on one device, where NCCL must not be asked
 *   mpirun -n 3 nccl KIND         rank 1 fails in the third operation (kinds below): each writes result.<rank> */
#include "ranks.h"
#include <dlfcn.h>
#include <time.h>

enum { N = 1003 };

static int rank, ranks;
static char device[2][16]; /* this rank's, and where it moves */

static long operations(void)
{
    static long (*count)(void);
    char path[1024];
    if (!count) {
        snprintf(path, sizeof path, "%s/libnccl.so.2", getenv("TERN_CUDA_PATH"));
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        CHECK(library, "%s", dlerror());
        *(void **)&count = dlsym(library, "standin_collectives");
        CHECK(count, "%s", dlerror());
    }
    return count();
}

/* The call takes that many operations of NCCL's. */
#define TAKES(wanted, call)                                                                        \
    do {                                                                                           \
        const long before = operations();                                                          \
        CHECK((call) == TERN_OK, "%s", #call);                                                     \
        CHECK(operations() - before == (wanted), "%ld operations of NCCL's, not %d, by %s",        \
              operations() - before, (int)(wanted), #call);                                        \
    } while (0)

/* ---- every collective and dtype ------------------------------------------------------------------ */

static tern_tensor *values(int64_t n, tern_dtype dtype, const char *where)
{
    float *v = malloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((i * 7 + rank * 3 + i * rank) % (dtype == TERN_BOOL ? 2 : 5));
    tern_tensor *x = tern_from_data(v, TERN_SHAPE(n), TERN_F32, "cpu");
    free(v);
    return tern_to(tern_to_dtype(x, dtype), where);
}

typedef enum kind {
    REDUCE_ALL,
    REDUCE,
    SCATTERED,
    BROADCAST,
    ALL,
    GATHER,
    SCATTER,
    EACH,
    KINDS
} kind;

static tern_status call(kind k, tern_tensor *one, tern_tensor *all, const tern_dist_options *o)
{
    const int root = ranks - 1;
    switch (k) {
    case REDUCE_ALL:
        return tern_dist_all_reduce(one, o);
    case REDUCE:
        return tern_dist_reduce(one, root, o);
    case SCATTERED:
        return tern_dist_reduce_scatter_tensor(one, all, o);
    case BROADCAST:
        return tern_dist_broadcast(one, root, o);
    case ALL:
        return tern_dist_all_gather_into_tensor(all, one, o);
    case GATHER:
        return tern_dist_gather(one, rank == root ? all : NULL, root, o);
    case SCATTER:
        return tern_dist_scatter(one, rank == root ? all : NULL, root, o);
    default:
        return tern_dist_all_to_all_single(tern_view(all, TERN_SHAPE(-1)), tern_clone(all), o);
    }
}

/* Sums of types and ops that NCCL lacks go by way of the host. */
static bool has(kind k, tern_dtype dtype, tern_dist_op op)
{
    if (k > SCATTERED)
        return true;
    if (dtype == TERN_BOOL)
        return op != TERN_DIST_BXOR;
    return dtype != TERN_I16 && dtype != TERN_U16 && op < TERN_DIST_BAND;
}

/* On the device and on the cpu, both under way at once. */
static void check_one(kind k, tern_dtype dtype, tern_dist_op op, const char *where)
{
    TERN_SCOPE {
        tern_tensor *one[2], *all[2];
        tern_dist_work *works[2] = {NULL, NULL};
        const long before = operations();
        for (int i = 0; i < 2; i++) {
            const char *at = i ? where : "cpu";
            one[i] = values(N, dtype, at);
            all[i] = values((int64_t)N * ranks, dtype, at);
            const tern_dist_options o = {.op = op, .work = &works[i]};
            CHECK(call(k, one[i], all[i], &o) == TERN_OK, "collective %d", (int)k);
        }
        for (int i = 0; i < 2; i++)
            CHECK(tern_dist_wait(works[i]) == TERN_OK, "collective %d", (int)k);
        CHECK(operations() - before == has(k, dtype, op) &&
                  tern_equal(one[0], tern_to(one[1], "cpu")) &&
                  tern_equal(all[0], tern_to(all[1], "cpu")),
              "collective %d of %s by %d, %ld operations", (int)k, tern_dtype_name(dtype), (int)op,
              operations() - before);
    }
}

static void table(void)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_BOOL, TERN_I64, TERN_F64,
                                        TERN_F16, TERN_I32,  TERN_I8,   TERN_U8,  TERN_I16};
    for (int i = 0; i < (int)(sizeof dtypes / sizeof *dtypes); i++) {
        const bool real = tern_dtype_is_floating_point(dtypes[i]);
        for (int k = 0; k < (i < 4 ? KINDS : BROADCAST); k++) /* what is moved is bytes */
            check_one((kind)k, dtypes[i], TERN_DIST_SUM, device[0]);
        for (int op = TERN_DIST_PRODUCT; i < 4 && op <= TERN_DIST_BXOR; op++)
            if (!real || op < TERN_DIST_BAND)
                check_one((kind)(op % 3), dtypes[i], (tern_dist_op)op, device[0]);
        if (real && (ranks & (ranks - 1)) == 0) /* thirds are rounded */
            check_one(REDUCE_ALL, dtypes[i], TERN_DIST_AVG, device[0]);
    }
}

/* ---- which way ------------------------------------------------------------------------------------- */

/* All ranks take one way, whatever one of them has. */
static void ways(void)
{
    const tern_dist_options none = {.work = NULL};
    TERN_SCOPE {
        tern_tensor *x = values(N, TERN_F32, device[0]), *few = tern_narrow(x, 0, 0, 4);
        TAKES(1, tern_dist_all_reduce(x, &none));
        CHECK(strcmp(tern_dist_get_backend(NULL), "nccl") == 0, "%s", tern_dist_get_backend(NULL));
        TAKES(0, tern_dist_all_reduce(few, &none)); /* in the header */
        TAKES(0, tern_dist_barrier(NULL));
        tern_use_deterministic(true);
        TAKES(0, tern_dist_all_reduce(x, &none));
        TAKES(1, tern_dist_all_reduce(x, &(tern_dist_options){.op = TERN_DIST_MAX}));
        TAKES(1, tern_dist_broadcast(x, 0, &none));
        tern_use_deterministic(false);
        /* One rank has its tensor on the cpu, then on another device, then on the first one again. */
        const char *const there[] = {"cpu", device[1], device[0], "cpu", device[0]};
        for (int i = 0; i < 5; i++)
            for (int k = 0; k < 2; k++) {
                const char *where = rank == 0 ? there[i] : device[0];
                tern_tensor *y = tern_full(TERN_SHAPE(N), TERN_SCALAR(rank), TERN_F32, where);
                TAKES(strcmp(there[i], "cpu") != 0, tern_dist_all_reduce(y, &none));
                CHECK(tern_item(tern_min(y)) == ranks * (ranks - 1) / 2, "%s", there[i]);
            }
        /* A part in its place; what would overlap otherwise. */
        tern_tensor *all = values((int64_t)N * ranks, TERN_F32, device[0]);
        TAKES(1, tern_dist_all_gather_into_tensor(all, tern_narrow(all, 0, rank * N, N), NULL));
        TAKES(0, tern_dist_all_to_all_single(all, all, NULL));
    }
}

/* Many at once, in groups too, waited for the other way round; what is launched meanwhile comes behind. */
static void handles(void)
{
    int lower[8], n = 0;
    for (int r = 0; r < ranks - 1; r++)
        lower[n++] = r;
    tern_dist_group *group = tern_dist_new_group(lower, n, 0);
    for (int turn = 0; turn < 2; turn++)
        TERN_SCOPE {
            tern_tensor *x[8], *mine = tern_ones(TERN_SHAPE(N), TERN_F32, device[0]);
            tern_dist_work *works[8] = {NULL}, *in_group = NULL;
            for (int i = 0; i < 8; i++) {
                const tern_dtype dtype = i % 2 ? TERN_F32 : TERN_BF16;
                x[i] = tern_full(TERN_SHAPE(N * (i + 1)), TERN_SCALAR(i), dtype, device[0]);
                tern_add_(x[i], tern_full(TERN_SHAPE(1), TERN_SCALAR(rank), dtype, device[0]));
                tern_dist_all_reduce(x[i], &(tern_dist_options){.work = &works[i]});
                if (i == 4 && rank < n)
                    tern_dist_all_reduce(mine,
                                         &(tern_dist_options){.work = &in_group, .group = group});
            }
            if (rank < n)
                CHECK(tern_dist_wait(in_group) == TERN_OK && tern_item(tern_min(mine)) == n,
                      "a group");
            for (int i = 7; i >= 0; i--) {
                CHECK(tern_dist_wait(works[i]) == TERN_OK, "%d", i);
                const double want = i * ranks + ranks * (ranks - 1) / 2;
                CHECK(tern_item(tern_min(x[i])) == want && tern_item(tern_max(x[i])) == want,
                      "%g, not %g", tern_item(tern_min(x[i])), want);
            }
        }
    CHECK(rank >= n || n == 1 || strcmp(tern_dist_get_backend(group), "nccl") == 0, "a group");
}

/* ---- training -------------------------------------------------------------------------------------- */

typedef enum way { BUCKETS, HALVES, TREE, PARTS, PARTS_IN_HALVES, WAYS } way;

static void train(way w, const char *where, float *values_out, long *took)
{
    tern_manual_seed(3);
    tern_module *net = tern_nn_to(tern_nn_sequential(tern_nn_linear(30, 40, NULL), tern_nn_relu(),
                                                     tern_nn_linear(40, 20, NULL)),
                                  where);
    tern_module *model = net;
    tern_distributed_data_parallel_options ddp = {.bucket_cap_mb = 0.004};
    tern_fully_shard_options shard = {.param_dtype = w == PARTS_IN_HALVES ? TERN_BF16 : 0};
    const bool parts = w >= PARTS;
    if (w == HALVES)
        ddp.compress = TERN_BF16;
    if (w == TREE)
        ddp.shards = ranks;
    if (!parts)
        model = tern_nn_distributed_data_parallel(net, &ddp);
    else
        CHECK(tern_dist_fully_shard(tern_nn_child_at(net, 0), &shard) &&
                  tern_dist_fully_shard(net, &shard),
              "fully_shard");
    tern_optimizer *optimizer = tern_optim_sgd(model, 0.05, NULL);
    tern_tensor *x = tern_to(tern_sin(values(8 * 30, TERN_F32, "cpu")), where);
    x = tern_view(x, TERN_SHAPE(8, 30));
    *took = operations();
    for (int step = 0; step < 2; step++)
        TERN_SCOPE {
            if (w == TREE)
                tern_ddp_shards(model, NULL);
            tern_backward(tern_mean(tern_square(tern_nn_forward(model, x))));
            tern_optim_step(optimizer);
            tern_optim_zero_grad(optimizer);
        }
    *took = operations() - *took;
    tern_state_dict *state = parts ? tern_dist_full_state_dict(net) : tern_nn_state_dict(net);
    tern_tensor *weight = tern_to(tern_state_dict_get(state, "2.weight"), "cpu");
    CHECK(tern_copy_to_host(weight, values_out, sizeof *values_out * 800) == TERN_OK, "weight");
    tern_state_dict_free(state);
    tern_optim_free(optimizer);
    tern_nn_free(model);
}

static void training(void)
{
    for (int w = 0; w < WAYS; w++)
        TERN_SCOPE {
            float on_host[800], got[800];
            if (w == TREE && (ranks & (ranks - 1)))
                continue;
            long host = 0, took = 0;
            train((way)w, "cpu", on_host, &host);
            train((way)w, device[0], got, &took);
            CHECK(tern_last_status() == TERN_OK && host == 0, "way %d", w);
            CHECK(w == TREE ? took == 0 : took >= 3, "way %d: %ld operations", w, took);
            for (int i = 0; i < 800; i++)
                CHECK(got[i] - on_host[i] < 2e-3 && on_host[i] - got[i] < 2e-3,
                      "way %d, %d: %g, not %g", w, i, (double)got[i], (double)on_host[i]);
        }
}

/* ---- faults ---------------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static const struct {
    const char *kind, *plan, *word; /* of rank 1's NCCL; what all others tell */
} faults[] = {{"kill", "ncclOperation:3:9", "rank 1 ("},
              {"stop", "ncclOperation:3:19", "rank 1 ("},
              {"endless", "ncclOperation:3:100", "it does not end"},
              {"error", "ncclOperation:3:6", ""},
              {"open", "ncclCommInitRankConfig:1:2", "rank 1 ended the job"},
              {"slow", "ncclOperation:3:101", NULL}};
enum { FAULTS = sizeof faults / sizeof *faults };

static void set_fault(const char *what)
{
    const char *own =
        getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    for (int i = 0; i < FAULTS && own && atoi(own) == 1; i++)
        if (strcmp(what, faults[i].kind) == 0)
            setenv("TERN_STANDIN_FAIL", faults[i].plan, 1);
}

static int fault(const char *what)
{
    const tern_dist_options o = {.timeout = wait_limit()};
    tern_status status = TERN_OK;
    double began = 0;
    int i = 0;
    while (i < FAULTS && strcmp(what, faults[i].kind) != 0)
        i++;
    CHECK(i < FAULTS, "%s", what);
    for (int k = 0; k < 6 && status == TERN_OK; k++)
        TERN_SCOPE {
            tern_tensor *x = values(N, TERN_F32, device[0]);
            began = now();
            status = tern_dist_all_reduce(x, &o);
        }
    const double took = now() - began;
    bool good = status == (faults[i].word ? TERN_ERR_PEER : TERN_OK) && took < IN_TIME &&
                waited_in_time(tern_last_error(), wait_limit());
    if (faults[i].word)
        good = good && strstr(tern_last_error(), rank == 1 ? "" : faults[i].word);
    char text[1024];
    snprintf(text, sizeof text, "%.900s", tern_last_error());
    tern_clear_error();
    TERN_SCOPE { /* the device works */
        tern_tensor *x = tern_full(TERN_SHAPE(N), TERN_SCALAR(2), TERN_F32, device[0]);
        good = good && tern_item(tern_sum(x)) == 2 * N;
    }
    write_result(rank, "%s %.1f %s", good ? "good" : "wrong", took, text);
    await_results(ranks, status == TERN_OK ? -1 : 1);
    if (status == TERN_OK)
        CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return status == TERN_OK ? 0 : 7;
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: nccl all, shared or a fault");
    const bool all = strcmp(argv[1], "all") == 0, shared = strcmp(argv[1], "shared") == 0;
    if (!all && !shared)
        set_fault(argv[1]);
    CHECK(tern_dist_init_process_group(
              NULL, &(tern_dist_init_options){.timeout = 60, .device = "cuda"}) == TERN_OK,
          "init");
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    for (int i = 0; i < 2; i++)
        snprintf(device[i], sizeof *device, "cuda:%d", shared ? 0 : rank + i * ranks);
    if (!all && !shared)
        return fault(argv[1]);
    if (shared) {
        for (int k = 0; k < 3; k++)
            TERN_SCOPE {
                tern_tensor *x = tern_full(TERN_SHAPE(N), TERN_SCALAR(rank), TERN_F32, device[0]);
                TAKES(0, tern_dist_all_reduce(x, NULL));
                CHECK(tern_item(tern_min(x)) == ranks * (ranks - 1) / 2, "shared");
            }
        CHECK(strcmp(tern_dist_get_backend(NULL), "mpi") == 0, "%s", tern_dist_get_backend(NULL));
    } else {
        table();
        ways();
        handles();
        training();
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
