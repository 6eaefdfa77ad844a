/* pipeline.c -- stages on several ranks learn what one process learns.
 *
 *   mpirun -n N pipeline */
#include "ranks.h"
#include <math.h>

enum { WIDTH = 16, LAYERS = 6, ROWS = 21 };

static tern_module *net(void)
{
    tern_module *m = tern_nn_sequential(tern_nn_tanh());
    tern_manual_seed(5);
    for (int i = 0; i < LAYERS; i++)
        tern_nn_append(m, tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, NULL), tern_nn_tanh()));
    return m;
}

static void compare(int n, const int *ranks, int micro_batches, tern_pipeline_schedule schedule)
{
    const int own = tern_dist_get_rank(NULL);
    const char *devices[8] = {NULL};
    for (int s = 0; s < n; s++)
        devices[s] = ranks[s] == own ? "cpu" : NULL;
    TERN_SCOPE {
        tern_module *whole = net(), *piped = net(), *criterion = tern_nn_mse_loss(NULL);
        tern_pipeline *p = tern_dist_pipeline(
            piped, devices, n,
            &(tern_pipeline_options){
                .micro_batches = micro_batches, .schedule = schedule, .ranks = ranks});
        CHECK(p, "%d stages", n);
        tern_tensor *x = tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu"), *y = tern_sin(x);
        tern_tensor *want = tern_nn_loss(criterion, tern_nn_forward(whole, x), y);
        tern_backward(want);
        bool takes_part = false;
        for (int s = 0; s < n; s++)
            takes_part |= ranks[s] == own;
        if (takes_part) {
            tern_tensor *loss = tern_dist_pipeline_step(p, ranks[0] == own ? x : NULL,
                                                        ranks[n - 1] == own ? y : NULL, criterion);
            CHECK(loss && fabs(tern_item(loss) - tern_item(want)) < 1e-6, "loss %g",
                  tern_item(want));
        } else {
            REFUSED(tern_dist_pipeline_step(p, x, y, criterion), TERN_ERR_ARGUMENT, "no stage");
        }
        for (int i = 1; i <= LAYERS; i++) {
            char path[32];
            snprintf(path, sizeof path, "%d.0.weight", i);
            if (!devices[tern_dist_pipeline_stage(p, i)])
                continue;
            tern_tensor *a = tern_grad(tern_nn_parameter(piped, path));
            tern_tensor *b = tern_grad(tern_nn_parameter(whole, path));
            CHECK(a && tern_item(tern_max(tern_abs(tern_sub(a, b)))) < 1e-6, "%s", path);
        }
        tern_dist_pipeline_free(p);
        tern_nn_free(whole);
        tern_nn_free(piped);
        tern_nn_free(criterion);
    }
}

/* Of the whole model, on all its ranks. */
static void norms(tern_module *whole, tern_module *piped)
{
    const double p[] = {1, 2, 3, INFINITY, -1, -0.5, -INFINITY};
    for (int i = 0; i < 7; i++) {
        const tern_clip_grad_norm_options o = {.norm_type = p[i]};
        const double a = tern_nn_clip_grad_norm_with_(piped, 1e9, &o);
        const double b = tern_nn_clip_grad_norm_with_(whole, 1e9, &o);
        CHECK(fabs(a / b - 1) < (p[i] < 0 ? 1e-3 : 1e-5), "norm %g: %g, not %g", p[i], a, b);
    }
}

/* Before there is any gradient, on no rank. */
static void no_norm(tern_module *piped)
{
    const double p[] = {1, 2, -1, -INFINITY};
    for (int i = 0; i < 4; i++) {
        const tern_clip_grad_norm_options o = {.norm_type = p[i], .error_if_nonfinite = true};
        const double norm = tern_nn_clip_grad_norm_with_(piped, 1, &o);
        CHECK(norm == 0, "norm %g of nothing: %g", p[i], norm);
    }
}

/* The last stage has no parameters: its rank alone sees the loss, and has to scale it. */
static void last_has_no_parameters(int ranks)
{
    const int own = tern_dist_get_rank(NULL);
    const char *devices[2] = {own == 0 ? "cpu" : NULL, own == 1 ? "cpu" : NULL};
    if (ranks != 2)
        return;
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(tern_nn_linear(WIDTH, WIDTH, NULL), tern_nn_relu());
        tern_module *criterion = tern_nn_mse_loss(NULL);
        tern_pipeline *p =
            tern_dist_pipeline(m, devices, 2, &(tern_pipeline_options){.ranks = (int[]){0, 1}});
        tern_tensor *x = tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu"), *y = tern_sin(x);
        tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
        tern_scaler *scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 1});
        CHECK(tern_dist_pipeline_step(p, x, y, criterion), "step");
        if (own == 1) {
            REFUSED(tern_amp_step(scaler, o), TERN_ERR_STATE, "did not use");
            CHECK(tern_amp_scale(scaler, tern_ones(TERN_SHAPE(1), TERN_F32, "cpu")), "made");
        }
        TERN_NO_GRAD
            CHECK(tern_amp_step(scaler, o) == TERN_OK && tern_amp_update(scaler) == TERN_OK,
                  "step");
        tern_amp_free(scaler);
        tern_optim_free(o);
        tern_dist_pipeline_free(p);
        tern_nn_free(m);
        tern_nn_free(criterion);
    }
}

/* An infinity in the last stage: all skip the step. */
static void all_skip(tern_module *piped, const char *of_last, const char *of_own, bool last)
{
    tern_optimizer *o = tern_optim_lamb(piped, 0.1, NULL); /* needs parameters that are whole */
    tern_scaler *scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 1});
    if (last) { /* the others see no loss, and scale none */
        REFUSED(tern_amp_step(scaler, o), TERN_ERR_STATE, "did not use");
        CHECK(tern_amp_scale(scaler, tern_ones(TERN_SHAPE(1), TERN_F32, "cpu")), "made");
    }
    for (int step = 0; step < 2; step++) {
        tern_tensor *grad = tern_grad(tern_nn_parameter(piped, of_last)), *kept = NULL;
        tern_tensor *was = tern_clone(tern_nn_parameter(piped, of_own));
        TERN_NO_GRAD {
            if (last && step == 0) {
                kept = tern_clone(grad);
                tern_fill_(grad, TERN_SCALAR(INFINITY));
            }
            CHECK(tern_amp_step(scaler, o) == TERN_OK && tern_amp_update(scaler) == TERN_OK,
                  "step");
            if (kept)
                tern_copy_(grad, kept);
        }
        CHECK(tern_amp_get_scale(scaler) == 0.5, "scale %g", tern_amp_get_scale(scaler));
        CHECK((tern_item(tern_max(tern_abs(tern_sub(was, tern_nn_parameter(piped, of_own))))) >
               0) == (step == 1),
              "skipped");
    }
    REFUSED(tern_optim_lbfgs(piped, 0.1, NULL), TERN_ERR_UNSUPPORTED, "whole parameters");
    tern_amp_free(scaler);
    tern_optim_free(o);
}

static void steps(int ranks)
{
    const int own = tern_dist_get_rank(NULL);
    const char *devices[8] = {NULL};
    int line[8];
    for (int s = 0; s < ranks; s++) {
        line[s] = ranks - 1 - s;
        devices[s] = line[s] == own ? "cpu" : NULL;
    }
    TERN_SCOPE {
        tern_module *whole = net(), *piped = net(), *criterion = tern_nn_mse_loss(NULL);
        tern_pipeline *p =
            tern_dist_pipeline(piped, devices, ranks, &(tern_pipeline_options){.ranks = line});
        tern_tensor *x = tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu"), *y = tern_sin(x);
        tern_backward(tern_nn_loss(criterion, tern_nn_forward(whole, x), y));
        no_norm(piped);
        CHECK(tern_dist_pipeline_step(p, x, y, criterion), "step");
        norms(whole, piped);
        char of_last[32], of_own[32] = "";
        for (int i = 1; i <= LAYERS; i++)
            if (devices[tern_dist_pipeline_stage(p, i)])
                snprintf(of_own, sizeof of_own, "%d.0.bias", i);
        snprintf(of_last, sizeof of_last, "%d.0.weight", LAYERS);
        all_skip(piped, of_last, of_own, line[ranks - 1] == own);
        tern_dist_pipeline_free(p);
        tern_nn_free(whole);
        tern_nn_free(piped);
        tern_nn_free(criterion);
    }
}

/* What two ranks would train apart is refused; nothing of the pipeline is left then. */
static void tied(int ranks)
{
    const int own = tern_dist_get_rank(NULL), line[] = {0, ranks - 1};
    const char *devices[] = {own == 0 ? "cpu" : NULL, own == ranks - 1 ? "cpu" : NULL};
    const tern_pipeline_options o = {.ranks = line};
    TERN_SCOPE {
        tern_module *m = net();
        char path[32];
        snprintf(path, sizeof path, "%d.0.weight", LAYERS);
        tern_nn_set_parameter(m, path, tern_nn_parameter(m, "1.0.weight"));
        REFUSED(tern_dist_pipeline(m, devices, 2, &o), TERN_ERR_ARGUMENT, "would become two");
        tern_tensor *x = tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu");
        tern_backward(tern_sum(tern_nn_forward(m, x)));
        if (own == 0) /* alone */
            CHECK(tern_nn_clip_grad_norm_(m, 1) > 0, "norm");
        tern_nn_free(m);
    }
}

int main(void)
{
    leave_pid();
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 30});
    const int ranks = tern_dist_get_world_size(NULL);
    CHECK(ranks > 1, "%d ranks", ranks);
    int line[4], there_and_back[4], pairs[4];
    for (int s = 0; s < 4; s++) {
        line[s] = s % ranks;
        there_and_back[s] = s < ranks ? s : 2 * ranks - 1 - s < 0 ? 0 : (2 * ranks - 1 - s) % ranks;
        pairs[s] = s / 2;
    }
    for (int schedule = 0; schedule < 2; schedule++)
        for (int m = 1; m <= 7; m += 3) {
            compare(ranks, line, m, (tern_pipeline_schedule)schedule);
            compare(4, line, m,
                    (tern_pipeline_schedule)
                        schedule); /* round and round, where there are fewer ranks */
            compare(4, there_and_back, m, (tern_pipeline_schedule)schedule);
            compare(4, pairs, m, (tern_pipeline_schedule)schedule);
        }
    steps(ranks);
    last_has_no_parameters(ranks);
    tied(ranks);
    tern_dist_destroy_process_group();
    CHECK(tern_last_status() == TERN_OK, "end");
    return 0;
}
