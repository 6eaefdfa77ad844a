/* test_replay_state.c -- what outlives a recorded step: the states of every optimizer, put back while the recording goes on, and
 * the random numbers of a function that a checkpoint runs twice. */
#include "files.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>

/* ---- states of optimizers -------------------------------------------------------------------- */

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static tern_optimizer *make_##NAME(tern_tensor *x)                                             \
    {                                                                                              \
        return tern_optim_##NAME##_of(&x, 1, 0.02, NULL);                                          \
    }
#include "optimizers.def"
static tern_optimizer *make_momentum(tern_tensor *x)
{
    return tern_optim_sgd_of(&x, 1, 0.02, &(tern_sgd_options){.momentum = 0.9});
}
static const struct {
    const char *name;
    tern_optimizer *(*make)(tern_tensor *x);
} optimizers[] = {
    {"sgd with momentum", make_momentum},
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS) {#NAME, make_##NAME},
#include "optimizers.def"
};
enum { OPTIMIZERS = sizeof optimizers / sizeof *optimizers, STEPS = 9, SAVED = 3, LOADED = 6 };

static void step(tern_optimizer *o, tern_tensor *w, tern_tensor *x)
{
    tern_optim_zero_grad(o);
    tern_backward(tern_sum(tern_square(tern_matmul(x, w))));
    tern_optim_step(o);
}

/* w after all steps, of which all but the first are one recording where `recorded`; what was saved after SAVED of them
 * is put back after LOADED, by loading the whole or by a snapshot. NULL: can't be recorded. */
static tern_tensor *train(const char *device, int which, bool recorded, bool snapshot)
{
    tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(4, 4), -1, 1, 1);
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 4), -1, 1, 2);
    w = tern_requires_grad_(tern_detach(w), true);
    tern_optimizer *o = optimizers[which].make(w);
    assert_non_null(o);
    tern_graph *graph = recorded ? tern_graph_new(device) : NULL;
    tern_state_dict *saved = NULL;
    tern_snapshot *all = tern_snapshot_new();
    tern_snapshot_add_optimizer(all, "o", o);
    for (int i = 0; i < STEPS && tern_last_status() == TERN_OK; i++) {
        if (i == SAVED) {
            tern_state_dict *own = tern_optim_state_dict(o);
            saved = tern_state_dict_clone(own);
            tern_state_dict_free(own);
            assert_ok(tern_snapshot_save(all, test_path("state"), NULL));
        }
        if (i == LOADED)
            assert_ok(snapshot ? tern_snapshot_load(all, test_path("state"))
                               : tern_optim_load_state_dict(o, saved));
        TERN_SCOPE
            if (recorded && i == 1)
                TERN_CAPTURE (graph) {
                    step(o, w, x);
                }
            else if (!recorded || i == 0)
                step(o, w, x);
        if (recorded && i > 0)
            tern_graph_replay(graph);
    }
    tern_tensor *y = tern_last_status() == TERN_OK ? tern_clone(tern_detach(w)) : NULL;
    if (!y) /* of those that a graph does not take */
        assert_true(recorded && tern_last_status() == TERN_ERR_STATE);
    tern_clear_error();
    tern_state_dict_free(saved);
    tern_snapshot_free(all);
    tern_graph_free(graph);
    tern_optim_free(o);
    return y;
}

static void a_recorded_step_goes_on_with_states_that_are_put_back(void **state)
{
    int taken = 0;
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int which = 0; which < OPTIMIZERS; which++)
        for (int snapshot = 0; snapshot < 2; snapshot++)
            TERN_SCOPE {
                tern_tensor *got = train(device, which, true, snapshot);
                if (!got)
                    continue;
                taken++;
                test_close(got, train(device, which, false, snapshot),
                           (test_tolerance){.abs = 1e-5, .rel = 1e-5}, optimizers[which].name,
                           __FILE__, __LINE__);
            }
    assert_true(taken >= 2 * 8);
}

/* ---- random numbers of checkpoints ------------------------------------------------------------ */

static tern_status dropped(void *user, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)user, (void)n, (void)k;
    out[0] = tern_dropout(tern_mul(in[0], in[1]), 0.5, true);
    return out[0] ? TERN_OK : tern_last_status();
}

enum { N = 64 };

/* Of ones y and what it gives to w's gradient are the mask, which is not the one before or behind it. */
static tern_tensor *forward(tern_tensor *w, tern_tensor *x)
{
    tern_tensor *y = NULL, *in[] = {w, tern_mul(x, tern_dropout(x, 0.5, true))};
    tern_checkpoint(dropped, NULL, in, 2, &y, 1, NULL);
    return tern_keep(y);
}

static void draw(tern_tensor *w, tern_tensor *x, tern_tensor **y)
{
    TERN_SCOPE {
        tern_set_grad(w, NULL);
        *y = forward(w, x);
        tern_backward(tern_sum(tern_add(*y, tern_dropout(w, 0.5, true))));
    }
}

static void a_checkpoint_draws_its_numbers_again_in_every_replay(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        double masks[2][4][N];
        for (int recorded = 0; recorded < 2; recorded++) {
            tern_tensor *x = tern_ones(TERN_SHAPE(N), TERN_F32, device), *y = NULL;
            tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(N), TERN_F32, device), true);
            tern_graph *graph = recorded ? tern_graph_new(device) : NULL;
            tern_manual_seed(4);
            for (int i = 0; i < 4; i++) {
                if (!recorded)
                    draw(w, x, &y);
                else if (i == 0)
                    TERN_CAPTURE (graph) {
                        draw(w, x, &y);
                    }
                if (recorded)
                    assert_ok(tern_graph_replay(graph));
                assert_ok(tern_last_status());
                double *gradient = test_read(tern_grad(w)), *out = test_read(y);
                for (int k = 0; k < N; k++)
                    masks[recorded][i][k] = 10 * out[k] + gradient[k];
                free(gradient);
                free(out);
                if (!recorded)
                    tern_release(y);
            }
            tern_release(recorded ? y : NULL);
            tern_graph_free(graph);
        }
        assert_memory_equal(masks[0], masks[1], sizeof masks[0]);
    }
}

/* What was drawn outside of the recording can't be drawn in it. */
static void numbers_of_another_recording_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(N), TERN_F32, device), *y;
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(N), TERN_F32, device), true);
        tern_graph *graph = tern_graph_new(device);
        y = forward(w, x);
        assert_ok(tern_last_status());
        TERN_SCOPE
            TERN_CAPTURE (graph) {
                tern_backward(tern_sum(y));
            }
        assert_error(TERN_ERR_STATE, "ran first in another recording, or in none");
        tern_clear_error();
        tern_release(y);
        tern_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_recorded_step_goes_on_with_states_that_are_put_back),
        TEST(a_checkpoint_draws_its_numbers_again_in_every_replay),
        TEST(numbers_of_another_recording_are_refused),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
