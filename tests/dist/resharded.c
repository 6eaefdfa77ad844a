/* resharded.c -- snapshots of several ranks, gone on from by other numbers of ranks.
 *
 *   mpirun -n N resharded STEPS [plain] [background]    train to STEPS, from the newest snapshot, and compare with one process;
 *                                                       plain: nothing is sharded
 *   mpirun -n N resharded kill                          save for ever a model that is the step's number all over
 *   resharded check                                     whether the newest of those is of one step */
#include "shard.h"

enum { ROWS = 12 };

static bool has(int argc, char **argv, const char *word)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return true;
    return false;
}

/* This rank's rows, or all. */
static void learn(tern_module *m, tern_optimizer *o, int64_t step, bool all)
{
    const int64_t rows = all ? ROWS : ROWS / ranks;
    tern_manual_seed((uint64_t)step);
    tern_tensor *x = numbers(ROWS, WIDTH, TERN_F32), *y = numbers(ROWS, 2, TERN_F32);
    x = tern_narrow(x, 0, all ? 0 : rank * rows, rows);
    y = tern_narrow(y, 0, all ? 0 : rank * rows, rows);
    CHECK(tern_backward(tern_mse_loss(tern_nn_forward(m, x), y, NULL)) == TERN_OK, "backward");
    CHECK(tern_optim_step(o) == TERN_OK, "step");
    tern_optim_zero_grad(o);
}

/* What a rank draws goes on where it was: the first number behind a seed of its own. */
static void train(int64_t stop, bool plain, bool background)
{
    tern_module *m = net(plain ? 3 : 3 + rank, TERN_F32), *whole = net(3, TERN_F32);
    if (!plain)
        shard(m, NULL);
    tern_optimizer *o = tern_optim_adamw(m, 0.01, NULL),
                   *other = tern_optim_adamw(whole, 0.01, NULL);
    tern_snapshot *s = tern_snapshot_new();
    int64_t step = 0, drawn = -1;
    tern_snapshot_add_module(s, "model", m);
    tern_snapshot_add_optimizer(s, "optimizer", o);
    tern_snapshot_add_int(s, "step", &step);
    CHECK(tern_last_status() == TERN_OK, "added");
    if (tern_snapshot_latest("runs")) {
        CHECK(tern_snapshot_load(s, "runs") == TERN_OK, "load");
        CHECK(step > 0, "step");
        tern_rng_state state;
        tern_get_rng_state(NULL, &state);
        drawn = (int64_t)state.seed - 100 * step;
    }
    CHECK(drawn < 0 || drawn <= rank, "the generator of rank %d", (int)drawn);
    for (int64_t i = 0; i < step; i++)
        learn(whole, other, i, true);
    compare(m, whole, 1e-5, "loaded", false);
    while (step < stop) {
        learn(whole, other, step, true);
        learn(m, o, step, false);
        step++;
        tern_manual_seed((uint64_t)(100 * step + rank));
        const tern_snapshot_options save = {
            .keep_last = 2, .background = background, .is_best = step % 4 == 1};
        CHECK(tern_snapshot_save(s, "runs", &save) == TERN_OK, "save");
    }
    compare(m, whole, 1e-5, "trained", false);
    CHECK(tern_snapshot_wait(s) == TERN_OK, "wait");
    CHECK(tern_snapshot_count("runs") <= 3, "%d snapshots", tern_snapshot_count("runs"));
    step = -1;
    CHECK(tern_snapshot_load(s, tern_snapshot_best("runs")) == TERN_OK && step % 4 == 1, "best");
    tern_snapshot_free(s);
    tern_optim_free(o);
    tern_optim_free(other);
    tern_nn_free(m);
    tern_nn_free(whole);
}

static tern_status fill(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    TERN_NO_GRAD
        tern_fill_(x, tern_scalar_real((double)*(int64_t *)user));
    return TERN_OK;
}

static tern_status is_filled(const char *path, tern_tensor *x, void *user)
{
    const double wanted = (double)*(int64_t *)user;
    CHECK(tern_item(tern_min(x)) == wanted && tern_item(tern_max(x)) == wanted, "%s of step %g",
          path, wanted);
    return TERN_OK;
}

static void save_for_ever(bool checks)
{
    tern_module *m = net(3, TERN_F32);
    tern_snapshot *s = tern_snapshot_new();
    int64_t step = 0;
    if (!checks)
        CHECK(tern_dist_fully_shard(m, NULL), "sharded");
    tern_snapshot_add_module(s, "model", m);
    tern_snapshot_add_int(s, "step", &step);
    if (checks || tern_snapshot_latest("kills")) {
        CHECK(tern_snapshot_load(s, "kills") == TERN_OK, "load");
        tern_nn_each_parameter(m, checks ? is_filled : fill, &step);
        printf("step %lld\n", (long long)step);
    }
    while (!checks) {
        step++;
        tern_nn_each_parameter(m, fill, &step);
        const tern_snapshot_options save = {.keep_last = 2, .background = step % 2};
        CHECK(tern_snapshot_save(s, "kills", &save) == TERN_OK, "save");
    }
    tern_snapshot_free(s);
    tern_nn_free(m);
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: resharded STEPS | kill | check");
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK, "init");
    TERN_SCOPE {
        if (atoi(argv[1]) > 0)
            train(atoi(argv[1]), has(argc, argv, "plain"), has(argc, argv, "background"));
        else
            save_for_ever(strcmp(argv[1], "check") == 0);
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
