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
    tern_dist_destroy_process_group();
    CHECK(tern_last_status() == TERN_OK, "end");
    return 0;
}
