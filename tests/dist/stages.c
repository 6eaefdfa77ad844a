/* stages.c -- pipelines over ranks whose model is clipped, averaged and saved as a whole, and gone on from by jobs with other
 * stages.
 *
 *   mpirun -n N stages STEPS COUNT    train to STEPS, from the newest snapshot, and compare with one process. COUNT ranks have a
 *                                     stage each; where there are twice as many or more, copies share rows and parameters out
 *                                     (tern_dist_fully_shard); what is left of the ranks has no stage. COUNT 0: one process */
#include "ranks.h"
#include <math.h>

enum { ALL = 12, WIDTH = 6, LAYERS = 4 };
static int rank, ranks;

typedef struct training {
    tern_module *net, *criterion;
    tern_pipeline *pipeline; /* NULL: one process, or one stage */
    tern_optimizer *optimizer;
    tern_averaged_model *average;
    int stages, stage; /* stage: this rank's, -1: none */
    int at, n;         /* of the batch, this rank's rows */
} training;

/* Sums of batch norms are over the rows of the group. */
static tern_module *net(tern_dist_group *group, bool sums)
{
    tern_manual_seed(5);
    tern_module *m = tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, NULL));
    for (int i = 0; i < LAYERS; i++)
        tern_nn_append(
            m, tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, NULL),
                                  sums ? tern_nn_sync_batch_norm(
                                             WIDTH, &(tern_sync_batch_norm_options){.group = group})
                                       : tern_nn_batch_norm1d(WIDTH, NULL),
                                  tern_nn_tanh()));
    return m;
}

/* The rank that has stage s of a copy: the last stage is that of the first. */
static int rank_of(int stages, int s, int copy)
{
    const int copies = ranks / stages, idle = ranks - stages * copies;
    return idle + (stages - 1 - s) * copies + copy;
}

static void share_out(training *t)
{
    const int copies = ranks / t->stages;
    const char *devices[8] = {NULL};
    int own[8], copy = 0;
    tern_dist_group *group = NULL;
    t->stage = -1;
    for (int s = 0; s < t->stages; s++) {
        int members[8];
        for (int c = 0; c < copies; c++) {
            members[c] = rank_of(t->stages, s, c);
            if (members[c] == rank) {
                t->stage = s;
                copy = c;
            }
        }
        tern_dist_group *made = tern_dist_new_group(members, copies, 0);
        CHECK(made, "group");
        if (t->stage == s)
            group = made;
    }
    t->net = net(group, t->stage >= 0);
    t->n = ALL / copies;
    t->at = copy * t->n;
    int split[8];
    for (int s = 0; s < t->stages; s++) {
        own[s] = rank_of(t->stages, s, copy);
        devices[s] = s == t->stage ? "cpu" : NULL;
        split[s] = (s + 1) * (LAYERS + 1) / t->stages;
    }
    for (int i = 0; copies > 1 && i <= LAYERS; i++)
        if (t->stage >= 0 && i < split[t->stage] && (!t->stage || i >= split[t->stage - 1]))
            CHECK(tern_dist_fully_shard(tern_nn_child_at(t->net, i),
                                        &(tern_fully_shard_options){.group = group}),
                  "child %d", i);
    if (t->stages == 1)
        return;
    t->pipeline = tern_dist_pipeline(
        t->net, devices, t->stages,
        &(tern_pipeline_options){.micro_batches = 1, .ranks = own, .split = split});
    CHECK(t->pipeline, "pipeline");
}

static training start(int stages)
{
    training t = {.stages = stages, .n = ALL, .criterion = tern_nn_mse_loss(NULL)};
    if (stages)
        share_out(&t);
    else
        t.net = net(NULL, false);
    t.optimizer = tern_optim_adamw(t.net, 0.01, &(tern_adamw_options){.eps = 1e-4});
    t.average = tern_swa_averaged_model(
        t.net, &(tern_averaged_model_options){.decay = 0.5, .use_buffers = true});
    CHECK(t.net && t.average && tern_last_status() == TERN_OK, "made");
    return t;
}

static void end(training *t)
{
    tern_swa_free(t->average);
    tern_optim_free(t->optimizer);
    tern_dist_pipeline_free(t->pipeline);
    tern_nn_free(t->net);
    tern_nn_free(t->criterion);
}

/* The norm of all gradients. */
static double learn(training *t, int64_t step)
{
    tern_manual_seed((uint64_t)step);
    tern_tensor *x = tern_randn(TERN_SHAPE(ALL, WIDTH), TERN_F32, "cpu"), *y = tern_sin(x);
    double norm = 0;
    x = tern_narrow(x, 0, t->at, t->n);
    y = tern_narrow(y, 0, t->at, t->n);
    if (t->stages && t->stage < 0)
        return 0;
    if (t->pipeline)
        CHECK(tern_dist_pipeline_step(t->pipeline, t->stage == 0 ? x : NULL,
                                      t->stage == t->stages - 1 ? y : NULL, t->criterion),
              "step");
    else
        CHECK(tern_backward(tern_nn_loss(t->criterion, tern_nn_forward(t->net, x), y)) == TERN_OK,
              "backward");
    norm = tern_nn_clip_grad_norm_(t->net, 0.1);
    CHECK(tern_optim_step(t->optimizer) == TERN_OK && tern_swa_update(t->average) == TERN_OK,
          "step");
    tern_optim_zero_grad(t->optimizer);
    return norm;
}

static void same(const char *what, const char *path, tern_tensor *a, tern_tensor *b)
{
    CHECK(a && b && tern_same_shape(a, b), "%s %s", what, path);
    const double apart = tern_item(
        tern_max(tern_abs(tern_sub(tern_to_dtype(a, TERN_F64), tern_to_dtype(b, TERN_F64)))));
    CHECK(apart < 2e-5, "%s %s: %g", what, path, apart);
}

/* All that there is, on all ranks that have a stage, and what it is on average. */
static void compare(training *t, training *whole)
{
    for (int i = 0; i < 2; i++) {
        tern_state_dict *all = tern_dist_full_state_dict(t->net),
                        *want = tern_nn_state_dict(whole->net);
        CHECK(all && want && tern_state_dict_count(all) == tern_state_dict_count(want), "state");
        for (int k = 0; t->stage >= 0 && k < tern_state_dict_count(want); k++) {
            const char *path = tern_state_dict_key_at(want, k);
            same(i ? "average" : "value", path, tern_state_dict_get(all, path),
                 tern_state_dict_at(want, k));
        }
        tern_state_dict_free(all);
        tern_state_dict_free(want);
        CHECK(tern_swa_swap(t->average) == TERN_OK && tern_swa_swap(whole->average) == TERN_OK,
              "swap");
    }
}

/* What a snapshot brings of stages that other ranks have is right here too; of their optimizer's states there are none. */
static void compare_others(training *t, training *whole)
{
    tern_state_dict *states = tern_optim_state_dict(t->optimizer);
    for (int i = 0, k = 0; t->pipeline && i <= LAYERS; i++, k += i > 1 ? 4 : 2) {
        char path[32];
        const bool own = tern_dist_pipeline_stage(t->pipeline, i) == t->stage;
        snprintf(path, sizeof path, i ? "%d.0.weight" : "%d.weight", i);
        if (!own)
            same("loaded", path, tern_detach(tern_nn_parameter(t->net, path)),
                 tern_detach(tern_nn_parameter(whole->net, path)));
        snprintf(path, sizeof path, "state.%d.exp_avg", k);
        CHECK((tern_state_dict_get(states, path) != NULL) == own, "%s", path);
    }
    tern_state_dict_free(states);
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 2, "usage: stages STEPS COUNT");
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    TERN_SCOPE {
        training t = start(atoi(argv[2])), whole = start(0);
        tern_snapshot *s = tern_snapshot_new();
        int64_t step = 0;
        tern_snapshot_add_module(s, "model", t.net);
        tern_snapshot_add_optimizer(s, "optimizer", t.optimizer);
        tern_snapshot_add_averaged_model(s, "average", t.average);
        tern_snapshot_add_int(s, "step", &step);
        const bool goes_on = tern_snapshot_latest("runs") != NULL;
        if (goes_on)
            CHECK(tern_snapshot_load(s, "runs") == TERN_OK && step > 0, "load");
        for (int64_t i = 0; i < step; i++)
            learn(&whole, i);
        compare(&t, &whole);
        if (goes_on)
            compare_others(&t, &whole);
        while (step < atoi(argv[1])) {
            const double want = learn(&whole, step), norm = learn(&t, step);
            CHECK(t.stage < 0 || fabs(norm - want) < 1e-4 * want, "norm %g, not %g", norm, want);
            step++;
            CHECK(tern_snapshot_save(
                      s, "runs",
                      &(tern_snapshot_options){.keep_last = 2, .background = step % 2}) == TERN_OK,
                  "save");
        }
        compare(&t, &whole);
        CHECK(tern_snapshot_wait(s) == TERN_OK, "wait");
        tern_snapshot_free(s);
        end(&t);
        end(&whole);
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
