/* many.c -- what bench/many runs: several processes, or several devices of one.
 *
 *   many step MODEL WAY SECONDS              of a job; MODEL: mlp, gpt or wide (25 MB of gradients); WAY: alone or ddp. Seconds a step of the slowest rank
 *   many reduce BYTES SECONDS                of a job; seconds that a sum of float32 over all ranks takes
 *   many ways DEVICE ROWS SECONDS            the step of one device; then by tern_nn_data_parallel over it twice, in three ways
 *   many rate SECONDS WAY DEVICE...          rows a second; WAY: equal or balance, of more than one
 *   many fault WHAT SECONDS                  of a job of 3: rank 1 sleeps or is killed; what the others took to name it */
#include "../examples/char_gpt/gpt.h"
#include "clock.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARM = 5 };

typedef struct run {
    tern_module *model;
    tern_optimizer *optimizer;
    tern_tensor *x, *y;
    bool squared; /* error; else cross entropy */
    const char *device;
} run;

static tern_module *mlp(const char *device, int out)
{
    const tern_linear_options o = {.device = device};
    tern_manual_seed(1);
    return tern_nn_sequential(
        tern_nn_linear(256, 512, &o), tern_nn_relu(), tern_nn_linear(512, 512, &o), tern_nn_relu(),
        tern_nn_linear(512, 512, &o), tern_nn_relu(), tern_nn_linear(512, out, &o));
}

/* Six layers of 4 MiB each, and one output. */
static tern_module *wide(void)
{
    tern_module *m = tern_nn_sequential(tern_nn_linear(1024, 1024, NULL), tern_nn_relu());
    for (int i = 0; i < 5; i++) {
        tern_nn_append(m, tern_nn_linear(1024, 1024, NULL));
        tern_nn_append(m, tern_nn_relu());
    }
    return tern_nn_append(m, tern_nn_linear(1024, 10, NULL)) ? m : NULL;
}

static void steps(void *user, long n)
{
    run *r = user;
    for (long i = 0; i < n; i++)
        TERN_SCOPE {
            tern_tensor *out = tern_nn_forward(r->model, r->x);
            tern_tensor *loss =
                r->squared ? tern_mse_loss(out, r->y, NULL) : tern_cross_entropy(out, r->y, NULL);
            tern_optim_zero_grad(r->optimizer);
            tern_backward(loss);
            tern_optim_step(r->optimizer);
        }
    tern_synchronize(r->device);
}

/* ---- a job ----------------------------------------------------------------------------------------- */

static double greatest(double own)
{
    double all = own;
    TERN_SCOPE {
        tern_tensor *x = tern_from_data(&own, TERN_SHAPE(1), TERN_F64, "cpu");
        if (tern_dist_all_reduce(x, &(tern_dist_options){.op = TERN_DIST_MAX}) == TERN_OK)
            all = tern_item(x);
    }
    return all;
}

static int step(const char *model, const char *way, double seconds)
{
    run r = {.device = "cpu"};
    tern_dist_init_process_group(NULL, NULL);
    if (strcmp(model, "mlp") == 0) {
        r.model = mlp("cpu", 10);
        r.x = tern_randn(TERN_SHAPE(128, 256), TERN_F32, "cpu");
        r.y = tern_randint(0, 10, TERN_SHAPE(128), TERN_I64, "cpu");
    } else if (strcmp(model, "wide") == 0) {
        r.model = wide();
        r.x = tern_randn(TERN_SHAPE(128, 1024), TERN_F32, "cpu");
        r.y = tern_randint(0, 10, TERN_SHAPE(128), TERN_I64, "cpu");
    } else {
        r.model = gpt_new(
            &(gpt_options){.vocabulary = 65, .layers = 4, .width = 128, .heads = 4, .context = 64});
        r.x = tern_randint(0, 65, TERN_SHAPE(16, 64), TERN_I64, "cpu");
        r.y = tern_randint(0, 65, TERN_SHAPE(16 * 64), TERN_I64, "cpu");
    }
    if (strcmp(way, "ddp") == 0)
        r.model = tern_nn_distributed_data_parallel(r.model, NULL);
    r.optimizer = tern_optim_adamw(r.model, 1e-3, NULL);
    steps(&r, WARM);
    tern_dist_barrier(NULL);
    double start = clock_seconds();
    steps(&r, WARM);
    const double about = greatest((clock_seconds() - start) / WARM);
    const long n = (long)(seconds / about) + 1;
    tern_dist_barrier(NULL);
    start = clock_seconds();
    steps(&r, n);
    const double each = greatest((clock_seconds() - start) / (double)n);
    if (tern_dist_get_rank(NULL) == 0)
        printf("%.9f\n", each);
    fflush(stdout);
    tern_optim_free(r.optimizer);
    tern_nn_free(r.model);
    tern_dist_destroy_process_group();
    return tern_last_status() == TERN_OK ? 0 : 1;
}

static double sums(tern_tensor *x, long n)
{
    tern_dist_barrier(NULL);
    const double start = clock_seconds();
    for (long i = 0; i < n; i++)
        tern_dist_all_reduce(x, NULL);
    return greatest((clock_seconds() - start) / (double)n);
}

static int reduce(long bytes, double seconds)
{
    tern_dist_init_process_group(NULL, NULL);
    tern_tensor *x = tern_zeros(TERN_SHAPE(bytes / 4), TERN_F32, "cpu");
    const double about = sums(x, WARM), each = sums(x, (long)(seconds / about) + 1);
    if (tern_dist_get_rank(NULL) == 0)
        printf("%.9f\n", each);
    fflush(stdout);
    tern_dist_destroy_process_group();
    return tern_last_status() == TERN_OK ? 0 : 1;
}

/* Rank 1 does not come to the fourth sum; the time of the others' error, and whether it names rank 1. */
static int fault(const char *what, double seconds)
{
    tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = seconds});
    const int rank = tern_dist_get_rank(NULL);
    tern_tensor *x = tern_ones(TERN_SHAPE(1000), TERN_F32, "cpu");
    for (int i = 0; i < 3; i++)
        tern_dist_all_reduce(x, NULL);
    if (rank == 1 && strcmp(what, "killed") == 0)
        raise(SIGKILL);
    if (rank == 1)
        sleep((unsigned)seconds + 4);
    const double start = clock_seconds();
    const tern_status status = tern_dist_all_reduce(x, NULL);
    if (rank != 1) {
        printf("%.3f %d\n", clock_seconds() - start,
               status == TERN_ERR_PEER && strstr(tern_last_error(), "rank 1 ") != NULL);
        fflush(stdout);
    }
    tern_dist_destroy_process_group();
    return 0;
}

/* ---- devices of this process --------------------------------------------------------------------------- */

static run make(const char *const *devices, int n, const tern_data_parallel_options *o, int rows,
                bool small)
{
    const char *device = devices[0];
    const tern_linear_options on = {.device = device};
    run r = {.squared = true, .device = device};
    tern_manual_seed(3);
    r.model = small ? tern_nn_sequential(tern_nn_linear(32, 64, &on), tern_nn_tanh(),
                                         tern_nn_linear(64, 1, &on))
                    : mlp(device, 1);
    if (o)
        r.model = tern_nn_data_parallel(r.model, devices, n, o);
    r.optimizer = tern_optim_sgd(r.model, 0.05, &(tern_sgd_options){.momentum = 0.9});
    r.x = tern_to(tern_randn(TERN_SHAPE(rows, small ? 32 : 256), TERN_F32, "cpu"), device);
    r.y = tern_to(tern_randn(TERN_SHAPE(rows, 1), TERN_F32, "cpu"), device);
    steps(&r, 10 * WARM); /* in which parts are balanced, too */
    return r;
}

static void end(run *r)
{
    tern_optim_free(r->optimizer);
    tern_nn_free(r->model);
}

static int ways(const char *device, int rows, double seconds)
{
    const char *const devices[] = {device, device};
    const double weights[] = {3, 1};
    const tern_data_parallel_options o[] = {{0}, {.weights = weights}, {.balance = true}};
    run r[4];
    for (int i = 0; i < 4; i++)
        r[i] = make(devices, i ? 2 : 1, i ? &o[i - 1] : NULL, rows, rows < 128);
    for (int i = 0; i < 4; i++)
        printf("%.9f%c", clock_turn(steps, &r[i], seconds), i < 3 ? ' ' : '\n');
    for (int i = 0; i < 4; i++)
        end(&r[i]);
    return tern_last_status() == TERN_OK ? 0 : 1;
}

static int rate(double seconds, const char *way, const char *const *devices, int n)
{
    enum { ROWS = 512 };
    const tern_data_parallel_options o = {.balance = strcmp(way, "balance") == 0};
    run r = make(devices, n, n > 1 ? &o : NULL, ROWS, false);
    printf("%.3f\n", ROWS / clock_turn(steps, &r, seconds));
    end(&r);
    return tern_last_status() == TERN_OK ? 0 : 1;
}

int main(int argc, char **argv)
{
    int status = 2;
    if (argc > 4 && strcmp(argv[1], "step") == 0)
        status = step(argv[2], argv[3], atof(argv[4]));
    else if (argc > 3 && strcmp(argv[1], "reduce") == 0)
        status = reduce(atol(argv[2]), atof(argv[3]));
    else if (argc > 3 && strcmp(argv[1], "fault") == 0)
        return fault(argv[2], atof(argv[3]));
    else if (argc > 4 && strcmp(argv[1], "ways") == 0)
        status = ways(argv[2], atoi(argv[3]), atof(argv[4]));
    else if (argc > 4 && strcmp(argv[1], "rate") == 0)
        status = rate(atof(argv[2]), argv[3], (const char *const *)argv + 4, argc - 4);
    if (status)
        fprintf(stderr, "many: %s\n", status == 2 ? "see the top of many.c" : tern_last_error());
    return status;
}
