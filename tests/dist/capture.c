/* capture.c -- collectives and DistributedDataParallel inside of recorded steps, against the same steps that are not.
 *
 *   mpirun -n N capture RANKS [DEVICE] */
#include "ranks.h"

enum { ROWS = 6, WIDTH = 5, REPLAYS = 3 };
static int rank, ranks;
static const char *device = "cpu";
typedef tern_distributed_data_parallel_options options;

/* ---- collectives ----------------------------------------------------------------------------------- */

static tern_tensor *filled(int64_t n, double value)
{
    return tern_full(TERN_SHAPE(n), TERN_SCALAR(value), TERN_F32, device);
}

static void holds(tern_tensor *x, int64_t at, double value, const char *what)
{
    const double is = tern_item(tern_select(x, 0, at));
    CHECK(is == value, "%s: element %lld is %g, not %g", what, (long long)at, is, value);
}

typedef struct made {
    tern_tensor *sum, *sent, *all, *part, *turned, *gathered, *dealt, *late, *layer;
} made;

/* One behind the other on what launches between them make of x, and on the way one that is waited for later. */
static made go(tern_tensor *x)
{
    made m = {0};
    tern_dist_work *work = NULL;
    const double own = rank + 1;
    m.sum = tern_mul_scalar(x, TERN_SCALAR(own));
    tern_dist_all_reduce(m.sum, &(tern_dist_options){.label = "recorded"});
    m.late = tern_mul_scalar(x, TERN_SCALAR(10 * own));
    tern_dist_all_reduce(m.late, &(tern_dist_options){.op = TERN_DIST_MAX, .work = &work});
    m.sum = tern_add_scalar(m.sum, TERN_SCALAR(1));
    tern_dist_wait(work);
    m.late = tern_neg(m.late);
    m.sent = tern_mul_scalar(x, TERN_SCALAR(rank == 0 ? 7 : 0));
    tern_dist_broadcast(m.sent, 0, NULL);
    m.all = filled(ranks, 0);
    tern_dist_all_gather_into_tensor(
        m.all, tern_narrow(tern_mul_scalar(x, TERN_SCALAR(own)), 0, 0, 1), NULL);
    m.part = filled(1, 0);
    tern_dist_reduce_scatter_tensor(m.part, tern_mul_scalar(m.all, TERN_SCALAR(own)), NULL);
    m.layer = tern_dist_reduce_from_group(tern_mul_scalar(x, TERN_SCALAR(own)), NULL);
    m.turned = filled(ranks, 0);
    tern_dist_all_to_all_single(m.turned, tern_add_scalar(m.all, TERN_SCALAR(100 * rank)), NULL);
    m.gathered = filled(ranks, 0);
    tern_dist_gather(m.part, m.gathered, 0, NULL);
    m.dealt = filled(1, 0);
    tern_dist_scatter(m.dealt, rank == 0 ? m.gathered : NULL, 0, NULL);
    return m;
}

static void compare(made m, double x)
{
    const double ones = ranks * (ranks + 1) / 2.0;
    holds(m.sum, 1, x * ones + 1, "sum");
    holds(m.late, 2, -10 * x * ranks, "late");
    holds(m.sent, 0, 7 * x, "sent");
    holds(m.layer, 0, x * ones, "layer");
    for (int r = 0; r < ranks; r++) {
        holds(m.all, r, x * (r + 1), "gathered on all");
        holds(m.turned, r, x * (rank + 1) + 100 * r, "turned");
        if (rank == 0)
            holds(m.gathered, r, x * (r + 1) * ones, "gathered");
    }
    holds(m.part, 0, x * (rank + 1) * ones, "part");
    holds(m.dealt, 0, x * (rank + 1) * ones, "dealt");
}

static void collectives(void)
{
    tern_graph *graph = tern_graph_new(device);
    tern_tensor *x = filled(3, 5);
    compare(go(x), 5);
    made m = {0};
    TERN_CAPTURE (graph) {
        TERN_SCOPE {
            m = go(x);
            tern_tensor **each = (tern_tensor **)&m;
            for (size_t i = 0; i < sizeof m / sizeof *each; i++)
                tern_keep(each[i]);
        }
    }
    CHECK(tern_graph_size(graph) > 8, "recorded");
    for (int i = 1; i <= REPLAYS; i++) {
        tern_fill_(x, TERN_SCALAR(i));
        CHECK(tern_graph_replay(graph) == TERN_OK, "replay %d", i);
        compare(m, i);
    }
    tern_graph_free(graph);
    tern_tensor **each = (tern_tensor **)&m;
    for (size_t i = 0; i < sizeof m / sizeof *each; i++)
        tern_release(each[i]);
}

/* ---- training -------------------------------------------------------------------------------------- */

typedef struct training {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_tensor *x, *y, *loss;
} training;

static training begin(const options *o)
{
    const tern_linear_options linear = {.device = device};
    training t = {0};
    tern_manual_seed((uint64_t)(3 + rank));
    tern_module *net =
        tern_nn_sequential(tern_nn_linear(WIDTH, 16, &linear),
                           tern_nn_batch_norm1d(16, &(tern_batch_norm_options){.device = device}),
                           tern_nn_relu(), tern_nn_dropout(NULL), tern_nn_linear(16, 16, &linear),
                           tern_nn_tanh(), tern_nn_linear(16, 2, &linear));
    t.model = tern_nn_distributed_data_parallel(net, o);
    t.optimizer = tern_optim_adamw(t.model, 0.01, NULL);
    t.x = tern_zeros(TERN_SHAPE(ROWS, WIDTH), TERN_F32, device);
    t.y = tern_zeros(TERN_SHAPE(ROWS, 2), TERN_F32, device);
    return t;
}

static void feed(training *t, int step)
{
    tern_manual_seed((uint64_t)(100 * step + rank));
    tern_tensor *x = tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu");
    tern_tensor *y = tern_randn(TERN_SHAPE(ROWS, 2), TERN_F32, "cpu");
    tern_copy_(t->x, tern_to(x, device));
    tern_copy_(t->y, tern_to(y, device));
}

static tern_tensor *step(training *t, bool divides)
{
    const tern_loss_options sum = {.reduction = TERN_REDUCTION_SUM};
    tern_optim_zero_grad(t->optimizer);
    if (divides)
        tern_ddp_divide_by(t->model, 2 * ROWS + rank);
    tern_tensor *loss = tern_mse_loss(tern_nn_forward(t->model, t->x), t->y, divides ? &sum : NULL);
    tern_backward(loss);
    tern_optim_step(t->optimizer);
    return loss;
}

static void same(const char *path, tern_tensor *x, tern_tensor *y)
{
    const double apart = tern_item(tern_max(tern_abs(tern_to_dtype(tern_sub(x, y), TERN_F32))));
    CHECK(apart == 0, "%s: %g apart", path, apart);
}

static tern_status same_parameter(const char *path, tern_tensor *x, void *other)
{
    same(path, x, tern_nn_parameter(other, path));
    return TERN_OK;
}

static tern_status same_buffer(const char *path, tern_tensor *x, void *other)
{
    same(path, x, tern_nn_buffer(other, path));
    return TERN_OK;
}

/* warm: steps before the recording, which is that of the next step. */
static void train(const options *o, int warm, bool divides)
{
    training t[2] = {begin(o), begin(o)};
    double losses[2][2 + REPLAYS];
    tern_graph *graph = tern_graph_new(device);
    for (int k = 0; k < 2; k++) {
        tern_tensor *loss = NULL;
        for (int i = 0; i < warm + REPLAYS; i++) {
            feed(&t[k], i);
            tern_manual_seed((uint64_t)(1000 * i + rank));
            if (k == 1 && i == warm)
                TERN_CAPTURE (graph)
                    loss = tern_keep(step(&t[k], divides));
            if (k == 1 && i >= warm)
                CHECK(tern_graph_replay(graph) == TERN_OK, "replay");
            else
                loss = step(&t[k], divides);
            losses[k][i] = tern_item(loss);
        }
        if (k == 1)
            tern_release(loss);
    }
    for (int i = 0; i < warm + REPLAYS; i++)
        CHECK(losses[0][i] == losses[1][i], "step %d, %d of them before: %.9g, recorded %.9g", i,
              warm, losses[0][i], losses[1][i]);
    CHECK(losses[0][warm] != losses[0][warm + 1], "another loss");
    tern_nn_each_parameter(t[0].model, same_parameter, t[1].model);
    tern_nn_each_buffer(t[0].model, same_buffer, t[1].model);
    for (int k = 0; k < 2; k++) { /* and goes on as any other */
        feed(&t[k], 20);
        tern_manual_seed(1);
        losses[k][0] = tern_item(step(&t[k], divides));
    }
    CHECK(losses[0][0] == losses[1][0], "afterwards");
    tern_graph_free(graph);
    for (int k = 0; k < 2; k++) {
        tern_optim_free(t[k].optimizer);
        tern_nn_free(t[k].model);
    }
}

/* What the graph uses stays until it ends. */
static void a_graph_outlives_its_model(void)
{
    training t = begin(NULL);
    tern_graph *graph = tern_graph_new(device);
    feed(&t, 0);
    TERN_CAPTURE (graph) {
        tern_tensor *loss = tern_mse_loss(tern_nn_forward(t.model, t.x), t.y, NULL);
        t.loss = tern_keep(loss);
        tern_backward(loss);
    }
    tern_optim_free(t.optimizer);
    tern_nn_free(t.model);
    CHECK(tern_graph_replay(graph) == TERN_OK && tern_item(t.loss) > 0, "replay");
    tern_graph_free(graph);
    tern_release(t.loss);
}

/* ---- what is refused ------------------------------------------------------------------------------- */

#define REFUSED_IN_CAPTURE(call, word)                                                             \
    do {                                                                                           \
        tern_graph *bad = tern_graph_new(device);                                                  \
        TERN_CAPTURE (bad)                                                                         \
            (void)(call);                                                                          \
        CHECK(tern_last_status() == TERN_ERR_STATE && strstr(tern_last_error(), word),             \
              "expected '%s'", word);                                                              \
        CHECK(tern_graph_size(bad) == 0, "a graph after '%s'", word);                              \
        tern_clear_error();                                                                        \
        tern_graph_free(bad);                                                                      \
    } while (0)

static tern_status join(training *t)
{
    TERN_JOIN(t->model)
    step(t, false);
    return TERN_OK;
}

static void refusals(void)
{
    size_t bytes = 1;
    training t = begin(NULL);
    feed(&t, 0);
    REFUSED_IN_CAPTURE(tern_dist_barrier(NULL), "not in a capture");
    REFUSED_IN_CAPTURE(tern_dist_broadcast_object("x", &bytes, 0, NULL), "not in a capture");
    if (strcmp(device, "cpu") != 0)
        REFUSED_IN_CAPTURE(tern_dist_all_reduce(tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"), NULL),
                           "not in a capture");
    if (ranks > 1) {
        tern_tensor *x = filled(2, 1);
        tern_graph *graph = tern_graph_new(device);
        tern_dist_work *work = NULL;
        TERN_CAPTURE (graph)
            tern_dist_all_reduce(x, &(tern_dist_options){.work = &work});
        REFUSED(tern_dist_wait(work), TERN_ERR_STATE, "to be waited for there");
        for (int i = 0; i < 2; i++)
            CHECK(tern_graph_replay(graph) == TERN_OK, "never waited for");
        tern_graph_free(graph);
        holds(x, 0, ranks * ranks, "sums of two replays");
        tern_module *part = tern_nn_linear(2, 2, &(tern_linear_options){.device = device});
        tern_dist_fully_shard(part, NULL);
        REFUSED_IN_CAPTURE(tern_nn_forward(part, tern_ones(TERN_SHAPE(1, 2), TERN_F32, device)),
                           "tern_dist_fully_shard: a step can't be recorded");
        tern_nn_free(part);
        training shards = begin(&(options){.shards = 2 * ranks});
        feed(&shards, 0);
        REFUSED_IN_CAPTURE(step(&shards, false), "a step of .shards can't be recorded");
        tern_optim_free(shards.optimizer);
        tern_nn_free(shards.model);
    }
    REFUSED_IN_CAPTURE(join(&t), "a step in TERN_JOIN can't be recorded");
    tern_optim_free(t.optimizer);
    tern_nn_free(t.model);
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: capture RANKS [DEVICE]");
    tern_dist_init_process_group(
        NULL, &(tern_dist_init_options){.timeout = 60, .device = argc > 2 ? argv[2] : NULL});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks == atoi(argv[1]), "%d ranks", ranks);
    device = tern_default_device();
    tern_graph *last = tern_graph_new(device);
    tern_tensor *x = filled(2, 1);
    const int64_t live = tern_live_tensors();
    TERN_SCOPE {
        collectives();
        train(NULL, 0, false);
        train(&(options){.bucket_cap_mb = 1e-3}, 2, false);
        train(&(options){.bucket_cap_mb = 1e-3, .compress = TERN_BF16}, 1, true);
        a_graph_outlives_its_model();
        refusals();
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    TERN_CAPTURE (last)
        tern_dist_all_reduce(x, NULL);
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    if (ranks > 1)
        REFUSED(tern_graph_replay(last), TERN_ERR_STATE, "the job of the recording was left");
    tern_graph_free(last);
    CHECK(tern_live_tensors() == live, "%lld tensors are left",
          (long long)(tern_live_tensors() - live));
    return 0;
}
