/* collectives.c -- collectives among the ranks that a launcher started, against what the host computes.
 *
 *   mpirun -n N collectives RANKS [DEVICE]     RANKS: how many there should be */
#include "ranks.h"
#include <math.h>

static int rank, ranks;
static const char *device = "cpu";

static const tern_dtype every[] = {TERN_F32, TERN_F64, TERN_F16,  TERN_BF16,      TERN_I32,
                                   TERN_I64, TERN_U8,  TERN_BOOL, TERN_I8,        TERN_I16,
                                   TERN_U16, TERN_U32, TERN_U64,  TERN_F8_E4M3FN, TERN_F8_E5M2};
enum { TYPES = sizeof every / sizeof *every };

static bool there(tern_dtype dtype)
{
    tern_device_info info;
    return dtype != TERN_F64 || (tern_device_get_info(device, &info) == TERN_OK && info.has_f64);
}

/* Small whole numbers that every type has, of rank r: bools 0 and 1. */
static double value(int r, int64_t i, tern_dtype dtype)
{
    int v = (int)((i * 7 + r * 3 + i * r) % 4);
    return dtype == TERN_BOOL ? v & 1 : v;
}

static tern_tensor *values(int r, int64_t n, tern_dtype dtype)
{
    double *v = malloc(sizeof *v * (size_t)(n + 1));
    for (int64_t i = 0; i < n; i++)
        v[i] = value(r, i, dtype);
    tern_tensor *x = tern_from_data(v, TERN_SHAPE(n), TERN_F64, "cpu");
    free(v);
    return tern_to(tern_to_dtype(x, dtype), device);
}

static void check_values(tern_tensor *x, const double *want, int64_t n, const char *what)
{
    tern_tensor *on_host = tern_to_dtype(tern_to(x, "cpu"), TERN_F64);
    CHECK(tern_numel(x) == n, "%s", what);
    double *got = malloc(sizeof *got * (size_t)(n + 1));
    CHECK(tern_copy_to_host(on_host, got, sizeof *got * (size_t)n) == TERN_OK, "%s", what);
    for (int64_t i = 0; i < n; i++)
        CHECK(got[i] == want[i], "%s, %s, element %lld of %lld is %g, not %g", what,
              tern_dtype_name(tern_dtype_of(x)), (long long)i, (long long)n, got[i], want[i]);
    free(got);
}

static double combined(tern_dist_op op, double a, double b, tern_dtype dtype)
{
    if (dtype == TERN_BOOL)
        return op == TERN_DIST_BXOR                                                     ? (a != b)
               : op == TERN_DIST_PRODUCT || op == TERN_DIST_MIN || op == TERN_DIST_BAND ? a && b
                                                                                        : a || b;
    switch (op) {
    case TERN_DIST_PRODUCT:
        return a * b;
    case TERN_DIST_MIN:
        return a < b ? a : b;
    case TERN_DIST_MAX:
        return a > b ? a : b;
    case TERN_DIST_BAND:
        return (int)a & (int)b;
    case TERN_DIST_BOR:
        return (int)a | (int)b;
    case TERN_DIST_BXOR:
        return (int)a ^ (int)b;
    default:
        return a + b;
    }
}

static void expect(double *want, int64_t n, int64_t from, tern_dtype dtype, tern_dist_op op)
{
    for (int64_t i = 0; i < n; i++) {
        want[i] = value(0, from + i, dtype);
        for (int r = 1; r < ranks; r++)
            want[i] = combined(op, want[i], value(r, from + i, dtype), dtype);
        if (op == TERN_DIST_AVG)
            want[i] /= ranks;
    }
}

static void reductions(tern_dtype dtype, int64_t n)
{
    double *want = malloc(sizeof *want * (size_t)(n * ranks + 1));
    const bool real = tern_dtype_is_floating_point(dtype);
    for (int op = 0; op <= TERN_DIST_BXOR; op++)
        TERN_SCOPE {
            const tern_dist_options o = {.op = (tern_dist_op)op};
            tern_tensor *x = values(rank, n, dtype);
            if (dtype == TERN_F8_E4M3FN || dtype == TERN_F8_E5M2 ||
                (!real && op == TERN_DIST_AVG) || (real && op >= TERN_DIST_BAND)) {
                REFUSED(tern_dist_all_reduce(x, &o), TERN_ERR_DTYPE, "can't be combined");
                continue;
            }
            if (op == TERN_DIST_AVG && (ranks & (ranks - 1)))
                continue; /* thirds are rounded */
            expect(want, n, 0, dtype, (tern_dist_op)op);
            tern_dist_all_reduce(x, &o);
            check_values(x, want, n, "all_reduce");

            x = values(rank, n, dtype);
            tern_dist_reduce(x, ranks - 1, &o);
            for (int64_t i = 0; rank != ranks - 1 && i < n; i++)
                want[i] = value(rank, i, dtype);
            check_values(x, want, n, "reduce");

            expect(want, n, rank * n, dtype, (tern_dist_op)op);
            x = tern_zeros(TERN_SHAPE(n), dtype, device);
            tern_dist_reduce_scatter_tensor(x, values(rank, n * ranks, dtype), &o);
            check_values(x, want, n, "reduce_scatter_tensor");
        }
    free(want);
}

static void moves(tern_dtype dtype, int64_t n)
{
    double *want = malloc(sizeof *want * (size_t)(n * ranks + 1));
    TERN_SCOPE {
        tern_tensor *x = values(rank, n, dtype);
        const int root = ranks - 1;
        for (int64_t i = 0; i < n; i++)
            want[i] = value(root, i, dtype);
        tern_dist_broadcast(x, root, NULL);
        check_values(x, want, n, "broadcast");

        x = values(rank, n, dtype);
        for (int64_t i = 0; i < n * ranks; i++)
            want[i] = value((int)(i / (n ? n : 1)), n ? i % n : 0, dtype);
        tern_tensor *all = tern_zeros(TERN_SHAPE(ranks, n), dtype, device);
        tern_dist_all_gather_into_tensor(all, x, NULL);
        check_values(all, want, n * ranks, "all_gather_into_tensor");
        if (n) { /* in its place */
            all = tern_zeros(TERN_SHAPE(ranks, n), dtype, device);
            tern_tensor *place = tern_select(all, 0, rank);
            tern_copy_(place, x);
            tern_dist_all_gather_into_tensor(all, place, NULL);
            check_values(all, want, n * ranks, "all_gather_into_tensor in place");
        }
        all = rank == root ? tern_zeros(TERN_SHAPE(ranks, n), dtype, device) : NULL;
        tern_dist_gather(x, all, root, NULL);
        if (all)
            check_values(all, want, n * ranks, "gather");

        all = rank == root ? values(5, n * ranks, dtype) : NULL;
        x = tern_zeros(TERN_SHAPE(n), dtype, device);
        tern_dist_scatter(x, all, root, NULL);
        for (int64_t i = 0; i < n; i++)
            want[i] = value(5, rank * n + i, dtype);
        check_values(x, want, n, "scatter");

        x = tern_zeros(TERN_SHAPE(ranks * n), dtype, device);
        tern_dist_all_to_all_single(x, values(rank, ranks * n, dtype), NULL);
        for (int64_t i = 0; i < n * ranks; i++)
            want[i] = value((int)(i / (n ? n : 1)), rank * n + (n ? i % n : 0), dtype);
        check_values(x, want, n * ranks, "all_to_all_single");
    }
    free(want);
}

/* ---- sums ------------------------------------------------------------------------------------------ */

static float awkward(int r, int64_t i)
{
    return (float)(sin((double)(i * 31 + r * 17)) * pow(10, (double)((i + r) % 7) - 3));
}

static tern_tensor *awkward_values(int64_t n, tern_dtype dtype)
{
    float *v = malloc(sizeof *v * (size_t)n);
    for (int64_t i = 0; i < n; i++)
        v[i] = awkward(rank, i);
    tern_tensor *x = tern_from_data(v, TERN_SHAPE(n), TERN_F32, "cpu");
    free(v);
    return tern_to_dtype(x, dtype);
}

/* Halves are added in float32 and rounded once, float32 in the order of ranks where that is asked for. */
static void orders(tern_dtype dtype, int64_t n)
{
    tern_use_deterministic(true);
    TERN_SCOPE {
        tern_tensor *x = awkward_values(n, dtype), *sum = NULL;
        for (int r = 0; r < ranks; r++) {
            tern_tensor *y = tern_clone(x);
            tern_dist_broadcast(y, r, NULL);
            y = tern_to_dtype(y, TERN_F32);
            sum = sum ? tern_add(sum, y) : y;
        }
        sum = tern_to_dtype(sum, dtype);
        tern_tensor *all = tern_clone(tern_to(x, device));
        tern_dist_all_reduce(all, NULL);
        CHECK(tern_equal(tern_to(all, "cpu"), sum), "%s of %lld", tern_dtype_name(dtype),
              (long long)n);
        tern_tensor *one = tern_clone(tern_to(x, device));
        tern_dist_reduce(one, 0, NULL);
        CHECK(tern_equal(tern_to(one, "cpu"), rank ? x : sum), "%s", tern_dtype_name(dtype));
    }
    tern_use_deterministic(false);
}

/* All ranks get the same bits. */
static void agreement(int64_t n)
{
    TERN_SCOPE {
        tern_tensor *x = awkward_values(n, TERN_F32);
        tern_dist_all_reduce(x, NULL);
        tern_tensor *first = tern_clone(x);
        tern_dist_broadcast(first, 0, NULL);
        CHECK(tern_equal(first, x), "%lld", (long long)n);
    }
}

/* ---- pairs, handles, groups --------------------------------------------------------------------------- */

static void pairs(void)
{
    if (ranks == 1)
        return;
    TERN_SCOPE {
        const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        tern_tensor *x = values(rank, 1000, TERN_F32),
                    *y = tern_zeros(TERN_SHAPE(1000), TERN_F32, device);
        double want[1000];
        tern_dist_work *sent = tern_dist_isend(x, next, NULL);
        tern_dist_recv(y, before, NULL);
        CHECK(tern_dist_wait(sent) == TERN_OK, "isend");
        for (int i = 0; i < 1000; i++)
            want[i] = value(before, i, TERN_F32);
        check_values(y, want, 1000, "recv");

        /* Two tags the other way round, several of one in their order. */
        tern_tensor *parts[4];
        tern_dist_work *works[8];
        for (int i = 0; i < 4; i++) {
            const tern_dist_options o = {.tag = i / 2 + 1};
            parts[i] = tern_zeros(TERN_SHAPE(i + 1), TERN_I32, device);
            works[i] = tern_dist_isend(
                tern_full(TERN_SHAPE(i + 1), TERN_SCALAR(i), TERN_I32, device), next, &o);
        }
        for (int i = 0; i < 4; i++) {
            const int k = (i + 2) % 4;
            const tern_dist_options o = {.tag = k / 2 + 1};
            works[4 + i] = tern_dist_irecv(parts[k], before, &o);
        }
        for (int i = 7; i >= 0; i--)
            CHECK(tern_dist_wait(works[i]) == TERN_OK, "%d", i);
        for (int i = 0; i < 4; i++)
            CHECK(tern_item(tern_sum(parts[i])) == i * (i + 1), "%d", i);
    }
}

static void handles(void)
{
    TERN_SCOPE {
        tern_tensor *x[6];
        tern_dist_work *works[6];
        for (int i = 0; i < 6; i++) {
            x[i] = tern_full(TERN_SHAPE(1 << (3 * i)), TERN_SCALAR(i + rank), TERN_F32, device);
            tern_dist_all_reduce(x[i],
                                 &(tern_dist_options){.work = &works[i], .label = "a bucket"});
        }
        for (int i = 5; i >= 0; i--)
            CHECK(tern_dist_wait(works[i]) == TERN_OK, "%d", i);
        for (int i = 0; i < 6; i++)
            CHECK(tern_item(tern_max(x[i])) == i * ranks + ranks * (ranks - 1) / 2, "%d", i);
        REFUSED(tern_dist_wait(NULL), TERN_ERR_ARGUMENT, "work");
    }
}

/* Small ones travel with their signatures, which go ahead of what flows: not before what they read is written. */
static void small_behind_large(void)
{
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(1 << 20), TERN_SCALAR(rank + 1), TERN_F32, device);
        tern_tensor *few = tern_narrow(x, 0, 5, 3);
        tern_tensor *own = tern_full(TERN_SHAPE(4), TERN_SCALAR(rank), TERN_F64, "cpu");
        tern_tensor *all = tern_zeros(TERN_SHAPE(4 * ranks), TERN_F64, "cpu");
        const double sum = ranks * (ranks + 1) / 2;
        tern_dist_work *works[5];
        tern_tensor *steps[5] = {x, few, few, x, few};
        for (int turn = 0; turn < 20; turn++) {
            double want = sum;
            tern_fill_(x, TERN_SCALAR(rank + 1));
            for (int i = 0; i < 5 && strcmp(device, "cpu") == 0; i++) {
                const tern_dist_options o = {.work = &works[i],
                                             .op = i == 3 ? TERN_DIST_AVG : TERN_DIST_SUM};
                tern_dist_all_reduce(steps[i], &o);
                want *= i == 1 || i == 2 || i == 4 ? ranks : 1;
            }
            CHECK(tern_dist_all_gather_into_tensor(all, own, NULL) == TERN_OK, "%d", turn);
            CHECK(tern_dist_broadcast(own, ranks - 1, NULL) == TERN_OK, "%d", turn);
            for (int i = 4; i >= 0 && strcmp(device, "cpu") == 0; i--)
                CHECK(tern_dist_wait(works[i]) == TERN_OK, "%d of %d", i, turn);
            if (strcmp(device, "cpu") == 0)
                CHECK(tern_item(tern_max(x)) == want && tern_item(tern_min(x)) == sum, "%g, not %g",
                      tern_item(tern_max(x)), want);
            CHECK(tern_item(tern_max(own)) == ranks - 1 && tern_item(tern_min(own)) == ranks - 1,
                  "%g", tern_item(tern_max(own)));
            CHECK(tern_item(tern_sum(all)) == 2 * ranks * (ranks - 1), "%g",
                  tern_item(tern_sum(all)));
            tern_fill_(own, TERN_SCALAR(rank));
        }
    }
}

static void groups(void)
{
    int evens[64], n = 0;
    for (int r = (ranks - 1) / 2 * 2; r >= 0; r -= 2) /* the other way round */
        evens[n++] = r;
    tern_dist_group *group = tern_dist_new_group(evens, n, 0);
    CHECK(group, "a group");
    CHECK(tern_dist_get_world_size(group) == n, "%d", tern_dist_get_world_size(group));
    CHECK(tern_dist_get_rank(group) == (rank % 2 ? -1 : n - 1 - rank / 2), "%d",
          tern_dist_get_rank(group));
    TERN_SCOPE {
        const tern_dist_options o = {.group = group};
        tern_tensor *x = tern_full(TERN_SHAPE(3), TERN_SCALAR(rank), TERN_F32, device);
        if (rank % 2) {
            REFUSED(tern_dist_all_reduce(x, &o), TERN_ERR_ARGUMENT, "does not belong");
        } else {
            tern_dist_all_reduce(x, &o);
            CHECK(tern_item(tern_max(x)) == n * (n - 1), "sum of a group");
            tern_dist_broadcast(x, 0, &o);
            tern_tensor *all = tern_zeros(TERN_SHAPE(n, 3), TERN_F32, device);
            x = tern_full(TERN_SHAPE(3), TERN_SCALAR(rank), TERN_F32, device);
            tern_dist_all_gather_into_tensor(all, x, &o);
            CHECK(tern_item(tern_max(tern_select(all, 0, 0))) == evens[0], "its order");
            if (ranks > 1)
                REFUSED(tern_dist_broadcast(x, 1, &o), TERN_ERR_ARGUMENT, "is not in the group");
        }
    }
    const int twice[] = {0, 0};
    REFUSED(tern_dist_new_group(twice, 2, 0), TERN_ERR_ARGUMENT, ranks > 1 ? "twice" : "of 1");
    REFUSED(tern_dist_new_group(&ranks, 1, 0), TERN_ERR_ARGUMENT, "rank");
    tern_dist_barrier(NULL);
}

static void objects(void)
{
    char own[64];
    size_t bytes = (size_t)snprintf(own, sizeof own, "of rank %d%.*s", rank, rank, "xyzxyz"),
           sizes[64];
    char *got = tern_dist_broadcast_object(own, &bytes, ranks - 1, NULL);
    char want[64];
    snprintf(want, sizeof want, "of rank %d%.*s", ranks - 1, ranks - 1, "xyzxyz");
    CHECK(got && strcmp(got, want) == 0 && bytes == strlen(want), "%s", got ? got : "NULL");
    tern_free_text(got);
    got = tern_dist_all_gather_object(own, strlen(own), sizes, NULL);
    size_t at = 0;
    for (int r = 0; r < ranks; r++) {
        snprintf(want, sizeof want, "of rank %d%.*s", r, r, "xyzxyz");
        CHECK(got && sizes[r] == strlen(want) && memcmp(got + at, want, sizes[r]) == 0, "%d", r);
        at += sizes[r];
    }
    tern_free_text(got);
    bytes = 0;
    got = tern_dist_broadcast_object(NULL, &bytes, 0, NULL);
    CHECK(got && bytes == 0 && *got == 0, "nothing");
    tern_free_text(got);
}

/* ---- what is refused, on all ranks alike, and leaves the job as it was ----------------------------------- */

static void refusals(void)
{
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(4, 6), TERN_F32, device),
                    *t = tern_transpose(x, 0, 1);
        tern_tensor *all = tern_zeros(TERN_SHAPE(ranks * 24), TERN_F32, device);
        REFUSED(tern_dist_all_reduce(NULL, NULL), TERN_ERR_ARGUMENT, "NULL");
        REFUSED(tern_dist_all_reduce(t, NULL), TERN_ERR_ARGUMENT, "contiguous");
        REFUSED(tern_dist_broadcast(x, ranks, NULL), TERN_ERR_ARGUMENT, "rank");
        REFUSED(tern_dist_broadcast(x, -1, NULL), TERN_ERR_ARGUMENT, "rank -1");
        REFUSED(tern_dist_send(x, rank, NULL), TERN_ERR_ARGUMENT, "current process");
        REFUSED(tern_dist_all_gather_into_tensor(x, all, NULL),
                ranks > 1 ? TERN_ERR_SHAPE : TERN_OK, ranks > 1 ? "elements" : "");
        REFUSED(tern_dist_all_gather_into_tensor(tern_to_dtype(all, TERN_I32), x, NULL),
                TERN_ERR_DTYPE, "one dtype");
        REFUSED(tern_dist_all_reduce(x, &(tern_dist_options){.op = 9}), TERN_ERR_ARGUMENT, "op 9");
        REFUSED(tern_dist_init_process_group(NULL, NULL), TERN_ERR_STATE, "twice");
        if (ranks > 1 && strcmp(device, "cpu") == 0)
            REFUSED(tern_dist_reduce_scatter_tensor(
                        tern_reshape(tern_narrow(all, 0, 1, 24), TERN_SHAPE(24)), all, NULL),
                    TERN_ERR_ARGUMENT, "overlap");
        /* What a graph saved is not what it was. */
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(3), TERN_F32, device), true);
        tern_tensor *v = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        tern_tensor *loss = tern_sum(tern_mul(w, v));
        tern_dist_all_reduce(v, NULL);
        if (ranks > 1)
            REFUSED(tern_backward(loss), TERN_ERR_STATE, "modified");
    }
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: collectives RANKS [DEVICE]");
    CHECK(!tern_dist_is_initialized() && tern_dist_get_world_size(NULL) == 1, "before");
    tern_dist_init_process_group(
        NULL, &(tern_dist_init_options){.timeout = 60, .device = argc > 2 ? argv[2] : NULL});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks == atoi(argv[1]), "%d ranks", ranks);
    device = tern_default_device();
    if (rank == 0)
        printf("%d ranks on %s: %s\n", ranks, device, tern_dist_notes());
    CHECK(tern_dist_get_local_rank() == rank, "local rank %d", tern_dist_get_local_rank());
    for (int i = 0; i < TYPES; i++) {
        if (!there(every[i]))
            continue;
        for (int k = 0; k < 4; k++)
            moves(every[i], (const int[]){5, 0, 1, 1003}[k]);
        for (int k = 0; k < 4; k++)
            reductions(every[i], (const int[]){7, 0, 1, 1003}[k]);
    }
    for (int k = 0; k < 3; k++) {
        const int64_t n = (const int64_t[]){11, 1000, (1 << 22) + 5}[k]; /* more than a piece */
        orders(TERN_F32, n);
        orders(TERN_F16, n);
        orders(TERN_BF16, n);
        agreement(n);
    }
    pairs();
    handles();
    small_behind_large();
    groups();
    objects();
    refusals();
    char *record = tern_dist_flight_record();
    CHECK(record && (ranks == 1 || strstr(record, "all_reduce of 3 float32")), "%s", record);
    tern_free_text(record);
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    CHECK(!tern_dist_is_initialized(), "after");
    return 0;
}
