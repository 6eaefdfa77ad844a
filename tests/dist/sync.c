/* sync.c -- batch norm over the rows of all ranks, and metrics of what all have seen, against one process with everything.
 *
 *   mpirun -n N sync RANKS [DEVICE] */
#include "ranks.h"
#include <math.h>

static int rank, ranks;
static const char *device = "cpu";

static double apart(tern_tensor *x, tern_tensor *y)
{
    if (tern_numel(x) == 0)
        return 0;
    x = tern_to(x, "cpu");
    y = tern_to(y, "cpu");
    return tern_item(
        tern_max(tern_abs(tern_sub(tern_to_dtype(x, TERN_F32), tern_to_dtype(y, TERN_F32)))));
}

/* Rank r has 2 r + 1 rows but for the first, which has none. */
static int64_t rows_of(int r)
{
    return ranks == 1 ? 5 : r ? 2 * r + 1 : 0;
}

static int64_t rows_before(int r)
{
    int64_t rows = 0;
    while (r-- > 0)
        rows += rows_of(r);
    return rows;
}

static tern_tensor *part_of(tern_tensor *x)
{
    return tern_narrow(x, 0, rows_before(rank), rows_of(rank));
}

static tern_tensor *made(tern_shape shape, tern_dtype dtype, double scale, double shift)
{
    tern_tensor *x = tern_mul_scalar(tern_randn(shape, TERN_F32, "cpu"), TERN_SCALAR(scale));
    x = tern_to_dtype(tern_add_scalar(x, TERN_SCALAR(shift)), dtype);
    return tern_to(x, device);
}

static void one_shape(tern_shape shape, tern_dtype dtype, bool affine, bool cumulative,
                      double tolerance)
{
    const tern_sync_batch_norm_options o = {.no_affine = !affine,
                                            .cumulative = cumulative,
                                            .dtype = dtype == TERN_F64 ? TERN_F64 : TERN_F32,
                                            .device = device};
    const tern_batch_norm_options plain = {
        .no_affine = !affine, .cumulative = cumulative, .dtype = o.dtype, .device = device};
    shape.dims[0] = rows_before(ranks);
    const int64_t channels = shape.dims[1];
    tern_module *sync = tern_nn_sync_batch_norm(channels, &o);
    tern_module *one = shape.ndim == 4   ? tern_nn_batch_norm2d(channels, &plain)
                       : shape.ndim == 5 ? tern_nn_batch_norm3d(channels, &plain)
                                         : tern_nn_batch_norm1d(channels, &plain);
    tern_manual_seed(7);
    for (int step = 0; step < 3; step++)
        TERN_SCOPE {
            tern_tensor *x = made(shape, dtype, 2, 5), *w = made(shape, dtype, 1, 0);
            tern_tensor *part = tern_requires_grad_(tern_clone(part_of(x)), true);
            tern_requires_grad_(x, true);
            tern_nn_zero_grad(sync);
            tern_nn_zero_grad(one);
            tern_tensor *y = tern_nn_forward(sync, part), *whole = tern_nn_forward(one, x);
            CHECK(y && tern_backward(tern_sum(tern_mul(y, part_of(w)))) == TERN_OK, "backward");
            tern_backward(tern_sum(tern_mul(whole, w)));
            CHECK(apart(y, part_of(whole)) <= tolerance, "y: %g", apart(y, part_of(whole)));
            CHECK(apart(tern_grad(part), part_of(tern_grad(x))) <= tolerance, "dx: %g",
                  apart(tern_grad(part), part_of(tern_grad(x))));
            for (int i = 0; affine && i < 2; i++) {
                tern_tensor *grad = tern_grad(tern_nn_parameter(sync, i ? "bias" : "weight"));
                tern_dist_all_reduce(grad, NULL);
                CHECK(apart(grad, tern_grad(tern_nn_parameter(one, i ? "bias" : "weight"))) <=
                          20 * tolerance,
                      "gradient %d", i);
            }
            static const char *const buffers[] = {"running_mean", "running_var",
                                                  "num_batches_tracked"};
            for (int i = 0; i < 3; i++)
                CHECK(apart(tern_nn_buffer(sync, buffers[i]), tern_nn_buffer(one, buffers[i])) <=
                          tolerance,
                      "%s", buffers[i]);
        }
    tern_nn_eval(sync);
    tern_nn_eval(one);
    TERN_SCOPE {
        tern_tensor *x = made(shape, dtype, 2, 5);
        CHECK(apart(tern_nn_forward(sync, part_of(x)), part_of(tern_nn_forward(one, x))) <=
                  tolerance,
              "in evaluation");
    }
    tern_nn_free(sync);
    tern_nn_free(one);
}

static void batch_norms(void)
{
    tern_device_info info = {0};
    tern_device_get_info(device, &info);
    one_shape(TERN_SHAPE(0, 3), TERN_F32, true, false, 2e-5);
    one_shape(TERN_SHAPE(0, 3, 4, 5), TERN_F32, true, false, 2e-5);
    one_shape(TERN_SHAPE(0, 2, 3), TERN_F32, false, true, 2e-5);
    one_shape(TERN_SHAPE(0, 2, 3, 2, 2), TERN_F16, true, false, 1.6e-2);
    if (info.has_f64)
        one_shape(TERN_SHAPE(0, 3, 2, 2), TERN_F64, true, false, 1e-6);
}

/* What is refused: second derivatives, one value in all; the group goes on after it. */
static void refusals(void)
{
    const tern_sync_batch_norm_options o = {.device = device};
    tern_module *m = tern_nn_sync_batch_norm(2, &o);
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(rank == ranks - 1, 2), TERN_F32, device);
        REFUSED(tern_nn_forward(m, x), TERN_ERR_SHAPE, "more than 1 value per channel");
        CHECK(tern_item_int(tern_nn_buffer(m, "num_batches_tracked")) == 0, "counted off");
        x = tern_requires_grad_(made(TERN_SHAPE(3, 2), TERN_F32, 1, 0), true);
        tern_tensor *loss = tern_sum(tern_square(tern_nn_forward(m, x)));
        if (ranks > 1)
            REFUSED(tern_backward_with(loss, &(tern_backward_options){.create_graph = true}),
                    TERN_ERR_STATE, "second derivatives");
    }
    REFUSED(tern_nn_forward(m, tern_zeros(TERN_SHAPE(3), TERN_F32, device)), TERN_ERR_SHAPE,
            "at least 2D");
    tern_nn_free(m);
    CHECK(tern_dist_barrier(NULL) == TERN_OK, "after refusals");
}

/* ---- converted ---------------------------------------------------------------------------------- */

static tern_module *net(void)
{
    const tern_linear_options o = {.device = device};
    const tern_batch_norm_options b = {.device = device};
    tern_manual_seed(3);
    return tern_nn_sequential(
        tern_nn_linear(4, 6, &o),
        tern_nn_sequential(tern_nn_batch_norm1d(6, &b), tern_nn_tanh(), tern_nn_linear(6, 5, &o)),
        tern_nn_batch_norm1d(5, &b), tern_nn_linear(5, 2, &o));
}

static void conversion(void)
{
    tern_module *m = net();
    tern_tensor *weight = tern_nn_parameter(m, "1.0.weight");
    tern_requires_grad_(tern_nn_parameter(m, "2.bias"), false);
    tern_nn_eval(tern_nn_child(m, "2"));
    CHECK(tern_nn_convert_sync_batch_norm(m, NULL) == m, "converted");
    CHECK(tern_nn_parameter(m, "1.0.weight") == weight, "the same parameters");
    CHECK(!tern_requires_grad(tern_nn_parameter(m, "2.bias")), "frozen ones stay so");
    CHECK(!tern_nn_is_training(tern_nn_child(m, "2")), "evaluated ones too");
    char *text = tern_nn_to_text(m);
    CHECK(text && strstr(text, "SyncBatchNorm(6, eps=1e-05, momentum=0.1, affine=True") &&
              !strstr(text, "BatchNorm1d"),
          "%s", text);
    tern_free_text(text);
    CHECK(tern_nn_convert_sync_batch_norm(m, NULL) == m, "twice");
    tern_nn_free(m);
    tern_module *one = tern_nn_convert_sync_batch_norm(tern_nn_batch_norm2d(3, NULL), NULL);
    CHECK(one && tern_nn_parameter(one, "weight"), "a batch norm itself");
    REFUSED(tern_nn_convert_sync_batch_norm(NULL, NULL), TERN_ERR_ARGUMENT, "m");
    tern_nn_free(one);
}

/* Four steps of DistributedDataParallel, each rank with a part of the rows, are those of one process with all of them. */
static void training(void)
{
    enum { EACH = 4 };
    tern_module *sync = tern_nn_convert_sync_batch_norm(net(), NULL), *whole = net();
    tern_module *m = tern_nn_distributed_data_parallel(sync, NULL);
    tern_optimizer *a = tern_optim_sgd(m, 0.1, NULL), *b = tern_optim_sgd(whole, 0.1, NULL);
    tern_manual_seed(11);
    for (int step = 0; step < 4; step++)
        TERN_SCOPE {
            tern_tensor *x = made(TERN_SHAPE(EACH * ranks, 4), TERN_F32, 1, 0);
            tern_tensor *y = made(TERN_SHAPE(EACH * ranks, 2), TERN_F32, 1, 0);
            tern_tensor *loss =
                tern_mse_loss(tern_nn_forward(m, tern_narrow(x, 0, rank * EACH, EACH)),
                              tern_narrow(y, 0, rank * EACH, EACH), NULL);
            tern_optim_zero_grad(a);
            tern_optim_zero_grad(b);
            CHECK(tern_backward(loss) == TERN_OK, "backward");
            tern_backward(tern_mse_loss(tern_nn_forward(whole, x), y, NULL));
            tern_optim_step(a);
            tern_optim_step(b);
            static const char *const paths[] = {"0.weight", "1.0.weight", "1.2.bias", "2.weight",
                                                "3.weight"};
            for (int i = 0; i < 5; i++)
                CHECK(apart(tern_nn_parameter(sync, paths[i]), tern_nn_parameter(whole, paths[i])) <
                          1e-5,
                      "%s after %d steps", paths[i], step + 1);
        }
    tern_optim_free(a);
    tern_optim_free(b);
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* ---- metrics -------------------------------------------------------------------------------------- */

static void check_metric(tern_metric *own, tern_metric *whole, tern_tensor *preds,
                         tern_tensor *target)
{
    if (rows_of(rank))
        CHECK(tern_metric_update(own, part_of(preds), part_of(target)) == TERN_OK, "update");
    tern_metric_update(whole, preds, target);
    for (int time = 0; time < 2; time++) { /* what this rank has stays */
        tern_tensor *all = tern_dist_metric_compute(own, NULL), *one = tern_metric_compute(whole);
        CHECK(all && apart(all, one) < 1e-6, "%g, not %g", tern_item(tern_sum(all)),
              tern_item(tern_sum(one)));
    }
}

static void metrics(void)
{
    const int64_t all = rows_before(ranks);
    const tern_curve_options exact = {.average = TERN_AVERAGE_NONE};
    const tern_classification_options none = {.average = TERN_AVERAGE_NONE};
    tern_metric *own[] = {tern_metrics_accuracy(TERN_TASK_MULTICLASS, 3, NULL),
                          tern_metrics_recall(TERN_TASK_MULTICLASS, 3, &none),
                          tern_metrics_auroc(TERN_TASK_MULTICLASS, 3, &exact)};
    tern_metric *whole[] = {tern_metrics_accuracy(TERN_TASK_MULTICLASS, 3, NULL),
                            tern_metrics_recall(TERN_TASK_MULTICLASS, 3, &none),
                            tern_metrics_auroc(TERN_TASK_MULTICLASS, 3, &exact)};
    tern_manual_seed(23);
    for (int batch = 0; batch < 2; batch++)
        for (int i = 0; i < 3; i++)
            TERN_SCOPE {
                tern_tensor *preds = made(TERN_SHAPE(all, 3), TERN_F32, 1, 0);
                tern_tensor *target =
                    tern_to(tern_randint(0, 3, TERN_SHAPE(all), TERN_I64, "cpu"), device);
                check_metric(own[i], whole[i], preds, target);
            }
    for (int i = 0; i < 3; i++) {
        tern_metric_free(own[i]);
        tern_metric_free(whole[i]);
    }
    tern_metric *most = tern_metrics_max(), *mean = tern_metrics_mean();
    if (rank == ranks - 1)
        tern_metric_update_number(most, 7.5, 1);
    tern_metric_update_number(mean, rank, rank + 1);
    double sum = 0, weights = 0;
    for (int r = 0; r < ranks; r++) {
        sum += r * (r + 1);
        weights += r + 1;
    }
    TERN_SCOPE {
        CHECK(tern_item(tern_dist_metric_compute(most, NULL)) == 7.5, "max");
        CHECK(fabs(tern_item(tern_dist_metric_compute(mean, NULL)) - sum / weights) < 1e-6, "mean");
    }
    tern_metric_free(most);
    tern_metric_free(mean);
}

/* Even numbers of batches are those of a program without the block; when a rank leaves before the others all stop. */
static void joins(void)
{
    const tern_sync_batch_norm_options o = {.device = device};
    for (int uneven = 0; uneven < (ranks > 1 ? 3 : 1); uneven++) {
        tern_manual_seed(11);
        tern_module *net =
            tern_nn_sequential(tern_nn_linear(3, 4, &(tern_linear_options){.device = device}),
                               tern_nn_sync_batch_norm(4, &o));
        tern_module *m = tern_nn_distributed_data_parallel(net, NULL);
        if (uneven == 2) /* who is not trained speaks to nobody */
            tern_nn_train(tern_nn_child_at(net, 1), false);
        const int batches = uneven && rank ? 4 : 2;
        int done = 0;
        TERN_JOIN(m)
        for (int i = 0; i < batches; i++)
            TERN_SCOPE {
                tern_tensor *y = tern_nn_forward(m, made(TERN_SHAPE(5, 3), TERN_F32, 1, 0));
                if (y && tern_backward(tern_sum(tern_mul(y, y))) == TERN_OK)
                    done++;
            }
        const bool stops = uneven == 1;
        CHECK(done == (stops ? 2 : batches), "%d of %d batches", done, batches);
        CHECK(tern_last_status() == (stops ? TERN_ERR_STATE : TERN_OK), "at the block's end");
        CHECK(!stops || strstr(tern_last_error(), "SyncBatchNorm needs the rows of all"), "named");
        tern_clear_error();
        tern_dist_barrier(NULL);
        tern_nn_free(m);
    }
}

int main(int argc, char **argv)
{
    leave_pid();
    if (argc > 2)
        device = argv[2];
    CHECK(tern_dist_init_process_group(NULL, &(tern_dist_init_options){.timeout = 60}) == TERN_OK,
          "init");
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(argc > 1 && ranks == atoi(argv[1]), "there are %d", ranks);
    TERN_SCOPE {
        batch_norms();
        refusals();
        conversion();
        training();
        metrics();
        joins();
    }
    CHECK(tern_last_status() == TERN_OK, "no error is left");
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    if (rank == 0)
        printf("%d ranks on %s: batch norm and metrics as of one\n", ranks, device);
    return 0;
}
