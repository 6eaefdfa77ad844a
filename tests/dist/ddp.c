/* ddp.c -- DistributedDataParallel among the ranks that a launcher started, against the whole batch on one of them.
 *
 *   mpirun -n N ddp RANKS [DEVICE] */
#include "ranks.h"
#include <math.h>

enum { EACH = 3, WIDTH = 5 };
static int rank, ranks;
static const char *device = "cpu";
typedef tern_distributed_data_parallel_options options;

static tern_module *net(int seed)
{
    const tern_linear_options o = {.device = device};
    tern_manual_seed((uint64_t)seed);
    tern_module *m =
        tern_nn_sequential(tern_nn_linear(WIDTH, 8, &o), tern_nn_tanh(), tern_nn_linear(8, 8, &o),
                           tern_nn_tanh(), tern_nn_linear(8, 2, &o));
    return m;
}

/* The same on all ranks. */
static tern_tensor *numbers(int64_t rows, int64_t columns)
{
    return tern_to(tern_randn(TERN_SHAPE(rows, columns), TERN_F32, "cpu"), device);
}

static double apart(tern_tensor *x, tern_tensor *y)
{
    return tern_item(tern_max(tern_abs(tern_sub(x, y))));
}

static void same_gradients(tern_module *a, tern_module *b, double tolerance, const char *what)
{
    static const char *const paths[] = {"0.weight", "0.bias",   "2.weight",
                                        "2.bias",   "4.weight", "4.bias"};
    for (int i = 0; i < 6; i++) {
        tern_tensor *x = tern_grad(tern_nn_parameter(a, paths[i]));
        tern_tensor *y = tern_grad(tern_nn_parameter(b, paths[i]));
        CHECK(x && y && apart(x, y) <= tolerance, "%s: gradient of %s", what, paths[i]);
    }
}

/* A mean over equal parts is the mean over all; buckets of all sizes, halves on the way, twice with and without zeroing. */
static void means(double bucket_mb, tern_dtype compress, double tolerance)
{
    const options o = {.bucket_cap_mb = bucket_mb, .compress = compress};
    tern_module *inner = net(5 + rank), *whole = net(5);
    tern_module *m = tern_nn_distributed_data_parallel(inner, &o);
    CHECK(m && tern_nn_child(m, "module") == inner, "made");
    for (int step = 0; step < 4; step++) {
        tern_manual_seed((uint64_t)step);
        tern_tensor *x = numbers(EACH * ranks, WIDTH), *y = numbers(EACH * ranks, 2);
        tern_tensor *part = tern_narrow(x, 0, rank * EACH, EACH);
        tern_tensor *target = tern_narrow(y, 0, rank * EACH, EACH);
        CHECK(tern_backward(tern_mse_loss(tern_nn_forward(m, part), target, NULL)) == TERN_OK,
              "backward");
        tern_backward(tern_mse_loss(tern_nn_forward(whole, x), y, NULL));
        same_gradients(inner, whole, tolerance * (step == 1 ? 2 : 1), "mean");
        if (step == 1) { /* added up over two steps until here; zeroed both ways */
            tern_nn_zero_grad(m);
            tern_nn_zero_grad(whole);
        } else if (step > 1) {
            tern_optimizer *both[2] = {tern_optim_sgd(m, 1, NULL), tern_optim_sgd(whole, 1, NULL)};
            for (int i = 0; i < 2; i++) {
                tern_optim_zero_grad_with(both[i], false);
                tern_optim_free(both[i]);
            }
        }
    }
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* Sums of uneven rows, of two steps each, the first without a sum over ranks; rank 0 has none at all. */
static void rows_count(void)
{
    tern_module *inner = net(9), *whole = net(9);
    tern_module *m = tern_nn_distributed_data_parallel(inner, NULL);
    const tern_loss_options sum = {.reduction = TERN_REDUCTION_SUM};
    const int64_t all = ranks * (ranks - 1) / 2, first = rank * (rank - 1) / 2;
    for (int time = 0; time < 2; time++) {
        for (int step = 0; step < 2; step++) {
            tern_tensor *x = numbers(all + 1, WIDTH), *y = numbers(all + 1, 2);
            tern_tensor *part = tern_narrow(x, 0, first, rank),
                        *target = tern_narrow(y, 0, first, rank);
            if (step == 0)
                TERN_NO_SYNC(m)
                {
                    tern_tensor *loss = tern_mse_loss(tern_nn_forward(m, part), target, &sum);
                    tern_ddp_divide_by(m, rank);
                    tern_backward(loss);
                }
            else {
                tern_tensor *loss = tern_mse_loss(tern_nn_forward(m, part), target, &sum);
                tern_ddp_divide_by(m, rank);
                CHECK(tern_backward(loss) == TERN_OK, "backward");
            }
            if (all > 0) {
                tern_tensor *rows = tern_narrow(x, 0, 0, all), *wanted = tern_narrow(y, 0, 0, all);
                tern_tensor *loss = tern_mse_loss(tern_nn_forward(whole, rows), wanted, &sum);
                tern_backward(tern_div_scalar(loss, TERN_SCALAR(2 * all)));
            }
        }
        if (all > 0)
            same_gradients(inner, whole, 2e-6, "rows");
        tern_nn_zero_grad(m);
        tern_nn_zero_grad(whole);
    }
    tern_nn_free(m);
    tern_nn_free(whole);
}

/* Rank r has r + 1 batches, of a mean or of sums over rows: gradients, in the end parameters and buffers, are what one
 * process makes of the batches of those who go on. */
static void join_with(bool divides)
{
    const tern_batch_norm_options frozen = {.device = device, .no_affine = true};
    const tern_loss_options sum = {.reduction = TERN_REDUCTION_SUM};
    tern_module *inner = net(6), *whole = net(6);
    tern_nn_append(inner, tern_nn_batch_norm1d(2, &frozen));
    tern_nn_append(whole, tern_nn_batch_norm1d(2, &frozen));
    tern_module *m = tern_nn_distributed_data_parallel(inner, NULL);
    tern_optimizer *a = tern_optim_sgd(m, 0.1, NULL), *b = tern_optim_sgd(whole, 0.1, NULL);
    tern_manual_seed(31);
    tern_tensor *x = numbers(EACH * ranks * ranks, WIDTH), *y = numbers(EACH * ranks * ranks, 2);
    TERN_JOIN(m)
    {
        for (int step = 0; step <= rank; step++) {
            const int64_t at = (step * ranks + rank) * EACH;
            tern_optim_zero_grad(a);
            tern_tensor *out = tern_nn_forward(m, tern_narrow(x, 0, at, EACH));
            tern_tensor *loss =
                tern_mse_loss(out, tern_narrow(y, 0, at, EACH), divides ? &sum : NULL);
            if (divides)
                tern_ddp_divide_by(m, 2 * EACH);
            CHECK(tern_backward(loss) == TERN_OK, "backward %d", step);
            tern_optim_step(a);
            TERN_NO_GRAD /* evaluation on the way is this rank's own affair */
                tern_nn_forward(inner, tern_narrow(x, 0, at, EACH));
        }
    }
    for (int step = 0; step < ranks; step++) { /* ranks from `step` on are there */
        tern_optim_zero_grad(b);
        for (int r = step; r < ranks; r++) {
            const int64_t at = (step * ranks + r) * EACH;
            tern_tensor *loss = tern_mse_loss(tern_nn_forward(whole, tern_narrow(x, 0, at, EACH)),
                                              tern_narrow(y, 0, at, EACH), NULL);
            tern_backward(tern_div_scalar(loss, TERN_SCALAR(divides ? ranks - step : ranks)));
        }
        tern_optim_step(b);
    }
    CHECK(apart(tern_nn_parameter(inner, "0.weight"), tern_nn_parameter(whole, "0.weight")) < 2e-6,
          "the parameters of one process, divided by %s", divides ? "rows" : "ranks");
    tern_tensor *mean = tern_clone(tern_nn_buffer(inner, "5.running_mean"));
    tern_dist_broadcast(mean, 0, NULL);
    CHECK(apart(mean, tern_nn_buffer(inner, "5.running_mean")) == 0, "the same buffers");
    tern_optim_free(a);
    tern_optim_free(b);
    tern_nn_free(m);
    tern_nn_free(whole);
}

static void uneven_batches(void)
{
    join_with(false);
    join_with(true);
    tern_module *m = tern_nn_distributed_data_parallel(net(1), NULL);
    TERN_JOIN(m)
    {
    } /* none at all */
    tern_nn_free(m);
    m = net(1);
    TERN_JOIN(m)
    {
    }
    CHECK(tern_last_status() == TERN_ERR_ARGUMENT, "not one");
    tern_clear_error();
    tern_nn_free(m);
}

/* Gradients that were divided already are not to be divided again. */
static void kept_gradients_are_not_divided_twice(void)
{
    tern_module *m = tern_nn_distributed_data_parallel(net(2), NULL);
    tern_tensor *x = numbers(2, WIDTH);
    tern_ddp_divide_by(m, 2);
    CHECK(tern_backward(tern_sum(tern_nn_forward(m, x))) == TERN_OK, "first");
    tern_tensor *y = tern_sum(tern_nn_forward(m, x));
    tern_ddp_divide_by(m, 2);
    REFUSED(tern_backward(y), TERN_ERR_STATE, "zero them");
    REFUSED(tern_ddp_divide_by(m, -1), TERN_ERR_ARGUMENT, "rows is -1");
    tern_module *other = net(1);
    REFUSED(tern_ddp_divide_by(other, 1), TERN_ERR_ARGUMENT, "expected a DistributedDataParallel");
    tern_nn_free(other);
    tern_nn_free(m);
}

/* ---- parameters that are not used ---------------------------------------------------------------- */

static tern_tensor *by_rank(tern_module *self, tern_tensor *x)
{
    tern_tensor *y = tern_mul(x, tern_nn_parameter(self, "all"));
    return rank == ranks - 1 ? tern_add(y, tern_nn_parameter(self, "last")) : y;
}

static char warned[256];
static void note_warning(const char *kind, const char *text, void *user)
{
    (void)kind;
    (void)user;
    strncat(warned, text, sizeof warned - strlen(warned) - 1);
}

static void unused_parameters(void)
{
    static const char *const names[] = {"all", "last", "none"};
    tern_module *inner = tern_nn_module("Own", by_rank, NULL);
    for (int i = 0; i < 3; i++)
        tern_nn_add_parameter(inner, names[i], tern_ones(TERN_SHAPE(2), TERN_F32, device));
    tern_module *m = tern_nn_distributed_data_parallel(inner, NULL);
    tern_on_warning(note_warning, NULL);
    for (int step = 0; step < 3; step++) {
        tern_nn_zero_grad(m);
        tern_tensor *x = tern_full(TERN_SHAPE(2), TERN_SCALAR(rank + 1.0), TERN_F32, device);
        CHECK(tern_backward(tern_sum(tern_nn_forward(m, x))) == TERN_OK, "unused");
        tern_tensor *all = tern_grad(tern_nn_parameter(inner, "all"));
        tern_tensor *last = tern_grad(tern_nn_parameter(inner, "last"));
        CHECK(all && fabs(tern_item(tern_select(all, 0, 1)) - (ranks + 1) / 2.0) < 1e-6, "all");
        CHECK(last && fabs(tern_item(tern_select(last, 0, 0)) - 1.0 / ranks) < 1e-6, "last");
        CHECK(!tern_grad(tern_nn_parameter(inner, "none")), "none");
    }
    tern_on_warning(NULL, NULL);
    CHECK(strstr(warned, "'none'") && !strstr(warned, "'last'"), "warned: %s", warned);
    tern_nn_free(m);
}

/* ---- what else they share -------------------------------------------------------------------------- */

static void buffers(bool broadcast)
{
    const options o = {.no_broadcast_buffers = !broadcast};
    tern_module *batch = tern_nn_batch_norm1d(2, &(tern_batch_norm_options){.device = device});
    tern_module *m = tern_nn_distributed_data_parallel(batch, &o);
    for (int step = 0; step < 2; step++) {
        tern_tensor *x = tern_mul_scalar(numbers(4, 2), TERN_SCALAR(rank + 1.0));
        CHECK(tern_backward(tern_sum(tern_nn_forward(m, x))) == TERN_OK, "batch norm");
    }
    TERN_NO_GRAD
        tern_nn_forward(tern_nn_eval(m), numbers(4, 2));
    tern_tensor *mean = tern_clone(tern_nn_buffer(batch, "running_var")), *zero = tern_clone(mean);
    tern_dist_broadcast(zero, 0, NULL);
    CHECK((apart(mean, zero) == 0) == (broadcast || rank == 0), "buffers");
    tern_nn_free(m);
}

/* An infinity on one rank: all skip, and all halve the scale. */
static void all_skip(void)
{
    tern_module *inner = net(4), *m = tern_nn_distributed_data_parallel(inner, NULL);
    tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
    tern_scaler *scaler = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 8});
    tern_tensor *was = tern_clone(tern_nn_parameter(inner, "0.weight"));
    tern_tensor *x = numbers(2, WIDTH);
    if (rank == ranks - 1)
        x = tern_mul_scalar(x, TERN_SCALAR(INFINITY));
    tern_backward(tern_amp_scale(scaler, tern_sum(tern_nn_forward(m, x))));
    tern_amp_step(scaler, o);
    tern_amp_update(scaler);
    CHECK(apart(was, tern_nn_parameter(inner, "0.weight")) == 0, "skipped");
    CHECK(tern_amp_get_scale(scaler) == 4, "scale");
    tern_amp_free(scaler);
    tern_optim_free(o);
    tern_nn_free(m);
}

/* ---- shards ------------------------------------------------------------------------------------------ */

enum { SHARDS = 8, ROWS = 4 };

/* Where a device is compared with the cpu without what their compilers add up in vectors of other widths. */
static tern_module *wide(const char *on)
{
    const tern_linear_options o = {.device = on};
    tern_module *dropout = tern_nn_dropout(&(tern_dropout_options){.p = 0.25});
    tern_manual_seed(6);
    tern_module *m = tern_nn_sequential(tern_nn_linear(WIDTH, 33, &o), tern_nn_gelu(NULL), dropout);
    if (strcmp(device, "cpu") != 0)
        return m;
    tern_nn_append(m, tern_nn_layer_norm(TERN_SHAPE(33), &(tern_layer_norm_options){.device = on}));
    tern_nn_append(m, tern_nn_linear(33, 33, &o));
    return m;
}

/* The shards of a step that a wrapper of the group has. */
static void learn(tern_module *m, tern_optimizer *o, int step)
{
    int first = -1;
    const int own = tern_ddp_shards(m, &first);
    const char *on = tern_device(tern_nn_parameter(m, "module.0.weight"));
    tern_manual_seed(step < 2 ? 77 : 78); /* drawn on by the next two steps */
    for (int i = first; i < first + own; i++) {
        tern_rng_state state;
        tern_get_rng_state(on, &state);
        tern_manual_seed((uint64_t)(100 * step + i));
        tern_tensor *x = tern_to(tern_randn(TERN_SHAPE(ROWS, WIDTH), TERN_F32, "cpu"), on);
        tern_tensor *y = tern_to(tern_randn(TERN_SHAPE(ROWS, 33), TERN_F32, "cpu"), on);
        tern_set_rng_state(on, &state);
        if (step == 1)
            tern_ddp_divide_by(m, 2 * ROWS);
        CHECK(tern_backward(tern_mse_loss(tern_nn_forward(m, x), y, NULL)) == TERN_OK, "shard %d",
              i);
        CHECK(!tern_grad(tern_nn_parameter(m, "module.0.bias")) == (i < first + own - 1),
              "a gradient after shard %d", i);
    }
    tern_optim_step(o);
    if (step == 2 && own > 0) {
        tern_tensor *x = numbers(ROWS, WIDTH);
        REFUSED(tern_nn_forward(m, tern_to(x, on)), TERN_ERR_STATE, "zeroed before each step");
    }
    tern_optim_zero_grad(o);
}

static tern_status same_bits(const char *path, tern_tensor *x, void *other)
{
    tern_tensor *y = tern_nn_parameter(other, path);
    tern_tensor *apart_in = tern_ne(tern_to(x, "cpu"), tern_to(y, "cpu"));
    CHECK(tern_item_int(tern_sum(tern_to_dtype(apart_in, TERN_I64))) == 0, "bits of %s", path);
    return TERN_OK;
}

/* All ranks together, and this one by itself on the cpu: they learn the same. */
static void shards(void)
{
    tern_dist_group *alone = NULL;
    for (int r = 0; r < ranks; r++) {
        tern_dist_group *one = tern_dist_new_group(&r, 1, 0);
        alone = r == rank ? one : alone;
    }
    const options all = {.shards = SHARDS, .bucket_cap_mb = 1e-3},
                  own = {.shards = SHARDS, .group = alone};
    if (ranks & (ranks - 1)) {
        REFUSED(tern_nn_distributed_data_parallel(net(1), &all), TERN_ERR_ARGUMENT,
                "powers of two");
        return;
    }
    tern_module *m[2] = {tern_nn_distributed_data_parallel(wide(device), &all),
                         tern_nn_distributed_data_parallel(wide("cpu"), &own)};
    CHECK(m[0] && m[1] && tern_ddp_shards(m[0], NULL) == SHARDS / ranks, "made");
    for (int i = 0; i < 2; i++) {
        tern_optimizer *o = tern_optim_adamw(m[i], 0.01, NULL);
        for (int step = 0; step < 4; step++)
            learn(m[i], o, step);
        tern_optim_free(o);
    }
    tern_nn_each_parameter(m[0], same_bits, m[1]);
    TERN_NO_SYNC(m[0])
    REFUSED(tern_nn_forward(m[0], numbers(ROWS, WIDTH)), TERN_ERR_STATE, "TERN_NO_SYNC");
    REFUSED(tern_nn_distributed_data_parallel(net(1), &(options){.shards = 6}), TERN_ERR_ARGUMENT,
            "6 shards");
    tern_nn_free(m[0]);
    tern_nn_free(m[1]);
}

/* Buckets of one parameter each: 0.bias, which is used last, comes first, until gradients came in another order. */
static tern_tensor *backwards(tern_module *self, tern_tensor *x)
{
    x = tern_add(x, tern_sum(tern_nn_parameter(self, "late")));
    x = tern_mul(x, tern_exp(tern_sum(tern_nn_parameter(self, "early"))));
    return tern_mul(x, tern_sum(tern_nn_parameter(self, "middle")));
}

static void buckets_follow_the_walk(void)
{
    static const char *const names[] = {"early", "middle", "late"};
    tern_module *inner = tern_nn_module("Own", backwards, NULL);
    for (int i = 0; i < 3; i++)
        tern_nn_add_parameter(
            inner, names[i],
            tern_full(TERN_SHAPE(64 + 64 * i), TERN_SCALAR(0.01), TERN_F32, device));
    tern_module *m = tern_nn_distributed_data_parallel(inner, &(options){.bucket_cap_mb = 1e-6});
    for (int step = 1; step <= 3 && ranks > 1; step++) {
        CHECK(tern_backward(tern_sum(tern_nn_forward(m, numbers(2, 2)))) == TERN_OK, "backward");
        char *record = tern_dist_flight_record(), wanted[3][64];
        const int order[2][3] = {{192, 128, 64}, {128, 64, 192}};
        for (int i = 0; i < 3; i++) {
            snprintf(wanted[i], sizeof wanted[i], "of %d float32 'step %d bucket %d'",
                     order[step > 1][i], step, i);
            CHECK(strstr(record, wanted[i]), "%s in %s", wanted[i], record);
        }
        tern_free_text(record);
        if (step == 1) /* kept over the change */
            continue;
        tern_nn_zero_grad(m);
    }
    tern_nn_free(m);
}

static void refusals(void)
{
    options o = {.compress = TERN_F64};
    REFUSED(tern_nn_distributed_data_parallel(net(1), &o), TERN_ERR_DTYPE, "compress is float64");
    o = (options){.bucket_cap_mb = -1};
    REFUSED(tern_nn_distributed_data_parallel(net(1), &o), TERN_ERR_ARGUMENT,
            "bucket_cap_mb is -1");
    REFUSED(tern_nn_distributed_data_parallel(NULL, NULL), TERN_ERR_ARGUMENT, "module");
    if (ranks == 1)
        return;
    tern_module *other = net(1);
    if (rank == ranks - 1)
        tern_nn_set_parameter(other, "2.weight", tern_ones(TERN_SHAPE(8, 9), TERN_F32, device));
    char named[64];
    snprintf(named, sizeof named, "rank %d has another model", ranks - 1);
    REFUSED(tern_nn_distributed_data_parallel(other, NULL), TERN_ERR_PEER, named);
    other = net(1);
    if (rank == 1)
        tern_nn_append(other, tern_nn_linear(2, 2, &(tern_linear_options){.device = device}));
    REFUSED(tern_nn_distributed_data_parallel(other, NULL), TERN_ERR_PEER,
            "'5.weight: float32 [2, 2]'");
}

int main(int argc, char **argv)
{
    leave_pid();
    CHECK(argc > 1, "usage: ddp RANKS [DEVICE]");
    tern_dist_init_process_group(
        NULL, &(tern_dist_init_options){.timeout = 60, .device = argc > 2 ? argv[2] : NULL});
    rank = tern_dist_get_rank(NULL);
    ranks = tern_dist_get_world_size(NULL);
    CHECK(tern_last_status() == TERN_OK && ranks == atoi(argv[1]), "%d ranks", ranks);
    device = tern_default_device();
    const int64_t live = tern_live_tensors();
    TERN_SCOPE {
        means(0, TERN_DTYPE_DEFAULT, 2e-6);
        means(1e-4, TERN_DTYPE_DEFAULT, 2e-6); /* a bucket for each of the larger ones */
        means(2e-4, TERN_BF16, 2e-2);
        means(0, TERN_F16, 2e-3);
        rows_count();
        uneven_batches();
        kept_gradients_are_not_divided_twice();
        unused_parameters();
        buffers(true);
        if (ranks > 1)
            buffers(false);
        all_skip();
        shards();
        buckets_follow_the_walk();
        refusals();
    }
    CHECK(tern_last_status() == TERN_OK, "at the end");
    CHECK(tern_live_tensors() == live, "%lld tensors are left",
          (long long)(tern_live_tensors() - live));
    CHECK(tern_dist_destroy_process_group() == TERN_OK, "destroy");
    return 0;
}
