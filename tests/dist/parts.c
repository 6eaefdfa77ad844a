/* parts.c -- snapshots of models whose layers ranks share out, gone on from by jobs of other meshes.
 *
 *   mpirun -n N parts STEPS COLUMNS HOW    train to STEPS, from the newest snapshot, and compare with one process. COLUMNS ranks share
 *                                          out each layer, the rows of those are shared out by HOW: fully (tern_dist_fully_shard), ddp
 *                                          or hybrid (fully, two copies). plain: no layer is, of one rank */
#include "tensor_parallel.h"

enum { ALL = 12 }; /* rows of a batch */

typedef struct training {
    tern_module *model; /* what is run: net, or a wrapper of it */
    tern_module *net;
    tern_optimizer *optimizer;
    tern_averaged_model *average;
    tern_dist_group *columns, *rows, *parts; /* parts: rows of parameters */
    int at, n;                               /* of the batch, this rank's rows */
    bool plain;
} training;

static training start(int columns, const char *how, bool plain)
{
    tern_dist_group *groups[3] = {NULL};
    training t = {.plain = plain, .n = ALL};
    t.model = t.net = net(true);
    if (!plain) {
        const int copies = strcmp(how, "hybrid") == 0 ? 2 : 1, rest = ranks / columns / copies;
        CHECK(tern_dist_init_device_mesh(TERN_SHAPE(copies, rest, columns), groups) == TERN_OK,
              "mesh");
        t.columns = groups[2];
        t.n = ALL / (copies * rest);
        t.at = t.n * (tern_dist_get_rank(groups[0]) * rest + tern_dist_get_rank(groups[1]));
        share_out(t.net, false, t.columns);
        if (strcmp(how, "ddp") == 0) {
            t.model = tern_nn_distributed_data_parallel(
                t.net, &(tern_distributed_data_parallel_options){.group = groups[1]});
        } else {
            t.parts = groups[1];
            const tern_fully_shard_options f = {.group = groups[1],
                                                .replicate = copies > 1 ? groups[0] : NULL};
            CHECK(tern_dist_fully_shard(tern_nn_child_at(t.net, 1), &f), "block");
            CHECK(tern_dist_fully_shard(t.net, &f), "all");
        }
    }
    t.optimizer = tern_optim_adamw(t.model, 0.01, &(tern_adamw_options){.eps = 1e-4});
    t.average = tern_swa_averaged_model(t.net, &(tern_averaged_model_options){.decay = 0.5});
    CHECK(t.model && t.average && tern_last_status() == TERN_OK, "made");
    return t;
}

static void end(training *t)
{
    tern_swa_free(t->average);
    tern_optim_free(t->optimizer);
    tern_nn_free(t->model);
}

static void learn(training *t, int64_t step)
{
    tern_manual_seed((uint64_t)step);
    tern_tensor *words = tern_randint(0, WORDS, TERN_SHAPE(ALL, LENGTH), TERN_I64, "cpu"),
                *target = tern_randint(0, WORDS, TERN_SHAPE(ALL, LENGTH), TERN_I64, "cpu"), *loss;
    tern_tensor *out = tern_nn_forward(t->model, tern_narrow(words, 0, t->at, t->n));
    target = tern_narrow(target, 0, t->at, t->n);
    if (t->plain)
        loss = tern_cross_entropy(tern_reshape(out, TERN_SHAPE(-1, WORDS)),
                                  tern_reshape(target, TERN_SHAPE(-1)), NULL);
    else
        loss = tern_vocab_parallel_cross_entropy(
            out, target,
            &(tern_vocab_parallel_cross_entropy_options){.group = t->columns, .classes = WORDS});
    CHECK(tern_backward(loss) == TERN_OK, "backward");
    CHECK(tern_optim_step(t->optimizer) == TERN_OK && tern_swa_update(t->average) == TERN_OK,
          "step");
    tern_optim_zero_grad(t->optimizer);
}

/* Values, and what they are on average. */
static void compare(training *t, training *whole, int64_t step)
{
    for (int i = 0; i < 2; i++) {
        same_numbers(t->net, whole->net, t->columns, t->parts, false, (int)step);
        CHECK(tern_swa_swap(t->average) == TERN_OK && tern_swa_swap(whole->average) == TERN_OK,
              "swap");
    }
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 3, "usage: parts STEPS COLUMNS HOW");
    const char *how = argv[3];
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    TERN_SCOPE {
        training t = start(atoi(argv[2]), how, strcmp(how, "plain") == 0),
                 whole = start(1, how, true);
        tern_snapshot *s = tern_snapshot_new();
        int64_t step = 0;
        tern_snapshot_add_module(s, "model", t.net);
        tern_snapshot_add_optimizer(s, "optimizer", t.optimizer);
        tern_snapshot_add_averaged_model(s, "average", t.average);
        tern_snapshot_add_int(s, "step", &step);
        if (tern_snapshot_latest("runs"))
            CHECK(tern_snapshot_load(s, "runs") == TERN_OK && step > 0, "load");
        for (int64_t i = 0; i < step; i++)
            learn(&whole, i);
        compare(&t, &whole, step);
        while (step < atoi(argv[1])) {
            learn(&whole, step);
            learn(&t, step++);
            CHECK(tern_snapshot_save(
                      s, "runs",
                      &(tern_snapshot_options){.keep_last = 2, .background = step % 2}) == TERN_OK,
                  "save");
        }
        compare(&t, &whole, step);
        CHECK(tern_snapshot_wait(s) == TERN_OK, "wait");
        tern_snapshot_free(s);
        end(&t);
        end(&whole);
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
