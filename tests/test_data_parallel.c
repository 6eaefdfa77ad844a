/* test_data_parallel.c -- one module on several devices of a process: what comes out, what is learnt, what stays. */
#include "support.h"
#include "base/memory.h"
#include "dist/row_partition.h"
#include <math.h>
#include <time.h>

#define SHAPE TERN_SHAPE

/* ---- shares ------------------------------------------------------------------------------ */

static void rows_are_dealt_out_as_by_chunk(void **state)
{
    static const struct {
        int64_t total;
        int n;
        int64_t rows[4];
    } cases[] = {
        {97, 2, {49, 48}}, {97, 3, {33, 33, 31}}, {4, 3, {2, 2, 0}}, {1, 4, {1}}, {0, 2, {0}}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t rows[4];
        tern_row_partition_equal(cases[c].total, cases[c].n, rows);
        for (int i = 0; i < cases[c].n; i++)
            assert_int_equal(rows[i], cases[c].rows[i]);
    }
}

static void rows_are_dealt_out_by_weights(void **state)
{
    static const struct {
        int64_t total;
        int n;
        double weights[4];
        int64_t rows[4];
    } cases[] = {{97, 2, {3, 1}, {73, 24}},         {97, 3, {3, 1, 1}, {58, 20, 19}},
                 {10, 3, {1, 0, 1}, {5, 0, 5}},     {3, 3, {98, 1, 1}, {1, 1, 1}},
                 {2, 3, {98, 1, 1}, {2, 0, 0}},     {5, 2, {1e-9, 1}, {1, 4}},
                 {7, 4, {1, 1, 1, 1}, {2, 2, 2, 1}}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        int64_t rows[4];
        tern_row_partition_weighted(cases[c].total, cases[c].weights, cases[c].n, rows);
        for (int i = 0; i < cases[c].n; i++)
            assert_int_equal(rows[i], cases[c].rows[i]);
    }
}

/* Devices that do 900, 300 and 60 rows a second beside what each step costs them: within a tenth of the best after
 * 20 looks, and never without a row. */
static void parts_move_to_where_all_take_as_long(void **state)
{
    static const double speed[3] = {900, 300, 60}, fixed[3] = {0.001, 0.002, 0};
    double weights[3] = {1 / 3.0, 1 / 3.0, 1 / 3.0}, seconds[3], longest = 0;
    int64_t rows[3];
    (void)state;
    for (int step = 0; step < 20; step++) {
        tern_row_partition_weighted(1260, weights, 3, rows);
        longest = 0;
        for (int i = 0; i < 3; i++) {
            assert_true(rows[i] >= 1);
            seconds[i] = fixed[i] + (double)rows[i] / speed[i];
            longest = fmax(longest, seconds[i]);
        }
        tern_row_partition_balance(weights, rows, seconds, 3, step + 1);
        assert_true(fabs(weights[0] + weights[1] + weights[2] - 1) < 1e-12);
    }
    assert_true(longest < 1.1);
    double before = weights[1];
    tern_row_partition_balance(weights, rows, (double[]){0.1, 0, 0.1}, 3,
                               20); /* of one nothing is known */
    assert_true(weights[1] == before);
}

/* ---- training ---------------------------------------------------------------------------- */

static tern_module *net(const char *device)
{
    tern_linear_options o = {.device = device};
    tern_manual_seed(3);
    return tern_nn_sequential(tern_nn_linear(6, 16, &o), tern_nn_tanh(), tern_nn_linear(16, 2, &o));
}

static double train(tern_module *m, const char *device, double *outputs, int rows)
{
    tern_optimizer *o = tern_optim_sgd(m, 0.1, &(tern_sgd_options){.momentum = 0.9});
    double last = 0;
    TERN_SCOPE {
        tern_manual_seed(4);
        tern_tensor *x = tern_to(tern_randn(SHAPE(rows, 6), TERN_F32, "cpu"), device);
        tern_tensor *y = tern_to(tern_randn(SHAPE(rows, 2), TERN_F32, "cpu"), device);
        for (int step = 0; step < 8; step++) {
            tern_optim_zero_grad(o);
            tern_tensor *loss = tern_mse_loss(tern_nn_forward(m, x), y, NULL);
            assert_ok(tern_backward(loss));
            assert_ok(tern_optim_step(o));
            last = tern_item(loss);
            TERN_NO_GRAD /* copies that stay are of the parameters as they are now */
                assert_true(tern_item(tern_mse_loss(tern_nn_forward(m, x), y, NULL)) != last);
        }
        tern_nn_eval(m);
        TERN_NO_GRAD
            assert_ok(
                tern_copy_to_host(tern_to_dtype(tern_to(tern_nn_forward(m, x), "cpu"), TERN_F64),
                                  outputs, sizeof *outputs * 2 * (size_t)rows));
    }
    tern_optim_free(o);
    return last;
}

static void several_devices_learn_what_one_learns(void **state)
{
    enum { ROWS = 23 };
    static const double weights[] = {3, 1, 2};
    const tern_data_parallel_options ways[] = {
        {0}, {.weights = weights}, {.balance = true}, {.weights = weights, .balance = true}};
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const char *lists[][3] = {{device, device, NULL},
                                  {device, "cpu", device},
                                  {"cpu", device, NULL},
                                  {device, NULL, NULL}};
        int64_t live = tern_live_tensors();
        for (int l = 0; l < 4; l++) {
            double wanted[2 * ROWS], outputs[2 * ROWS];
            tern_module *one = net(lists[l][0]);
            double loss = train(one, lists[l][0], wanted, ROWS);
            tern_nn_free(one);
            int n = lists[l][2] ? 3 : lists[l][1] ? 2 : 1;
            for (int w = 0; w < 4; w++) {
                tern_module *inner = net(lists[l][0]);
                tern_module *m = tern_nn_data_parallel(inner, lists[l], n, &ways[w]);
                assert_ptr_equal(tern_nn_child(m, "module"), inner);
                assert_true(fabs(train(m, lists[l][0], outputs, ROWS) - loss) < 1e-5);
                for (int i = 0; i < 2 * ROWS; i++)
                    assert_true(fabs(outputs[i] - wanted[i]) < 1e-5);
                double sum = 0;
                for (int i = 0; i < n; i++)
                    sum += tern_data_parallel_weight(m, i);
                assert_true(fabs(sum - 1) < 1e-12);
                tern_nn_free(m);
            }
        }
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* ---- modules of all kinds ---------------------------------------------------------------- */

/* (a rows, b or nothing, c without dims) to (a w + b + c + w, its sum): a program's own, which makes a tensor
 * on the default device. */
static int calls;
static tern_status own_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    assert_int_equal(n, 3);
    assert_int_equal(k, 2);
    calls++;
    tern_tensor *w = tern_nn_parameter(self, "w");
    tern_tensor *here = tern_ones(SHAPE(2), TERN_F32, NULL);
    out[0] = tern_add(tern_add(tern_mul(in[0], w), in[2]),
                      tern_mul(here, tern_nn_parameter(self, "tied")));
    if (in[1])
        out[0] = tern_add(out[0], in[1]);
    out[1] = tern_sum(out[0]);
    return out[1] ? TERN_OK : tern_last_status();
}

static tern_module *own(const char *device)
{
    tern_module *m = tern_nn_module_with_call("Own", own_call, NULL);
    TERN_SCOPE {
        tern_tensor *w = TENSOR(device, TERN_F32, SHAPE(2), 2, 3);
        tern_nn_add_parameter(m, "w", w);
        tern_nn_add_parameter(m, "tied", w);
    }
    return m;
}

static tern_status count_hook(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                              int k, void *user)
{
    (void)m, (void)in, (void)n, (void)out, (void)k;
    ++*(int *)user;
    return TERN_OK;
}

static void a_module_of_the_programs_own_works_unchanged(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_DEVICE (device)
        TERN_SCOPE {
            const char *devices[] = {device, "cpu", device};
            int hooked = 0;
            tern_module *inner = own(device);
            tern_tensor *w = tern_nn_parameter(inner, "w");
            tern_module *m = tern_nn_data_parallel(inner, devices, 3, NULL);
            assert_true(tern_nn_register_forward_hook(inner, count_hook, &hooked) > 0);
            tern_tensor *a = TENSOR(device, TERN_F32, SHAPE(4, 2), 1, 2, 3, 4, 5, 6, 7, 8);
            tern_tensor *c =
                tern_to(tern_full(TERN_SHAPE_SCALAR, TERN_SCALAR(10), TERN_F32, "cpu"), device);
            tern_tensor *in[3] = {a, NULL, c}, *out[2];
            calls = 0;
            assert_ok(tern_nn_call(m, in, 3, out, 2)); /* 2 + 2 rows: the third has none */
            assert_int_equal(calls, 2);
            assert_int_equal(hooked, 2);
            assert_values(out[0], 14, 19, 18, 25, 22, 31, 26, 37);
            assert_values(out[1], 76, 116);
            assert_ok(tern_backward(tern_sum(out[0])));
            assert_values(tern_grad(w), 16 + 4, 20 + 4); /* both names of it */
            assert_ptr_equal(tern_nn_parameter(inner, "w"), w);
            assert_ptr_equal(tern_nn_parameter(inner, "tied"), w);
            in[1] = tern_ones(SHAPE(4, 1), TERN_F32, device);
            assert_ok(tern_nn_call(m, in, 3, out, 2));
            assert_values(out[0], 15, 20, 19, 26, 23, 32, 27, 38);
            in[1] = tern_ones(SHAPE(3, 1), TERN_F32, device);
            assert_int_equal(tern_nn_call(m, in, 3, out, 2), TERN_ERR_SHAPE);
            assert_error(TERN_ERR_SHAPE, "input 1 3");
            in[0] = tern_narrow(a, 0, 0, 1), in[1] = NULL; /* one row; none */
            assert_ok(tern_nn_call(m, in, 3, out, 2));
            assert_values(out[0], 14, 19);
            assert_values(out[1], 33);
            in[0] = tern_narrow(a, 0, 0, 0);
            assert_ok(tern_nn_call(m, in, 3, out, 2));
            assert_int_equal(tern_size(out[0], 0), 0);
            tern_module *copy = tern_nn_copy(m);
            in[0] = a;
            assert_ok(tern_nn_call(copy, in, 3, out, 2));
            assert_values(out[1], 76, 116);
            tern_nn_free(copy);
            tern_nn_free(m);
        }
}

static void computed_frozen_and_written_members_stay_the_modules(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const char *devices[] = {device, "cpu"};
        tern_linear_options o = {.device = device};
        tern_module *normed = tern_nn_weight_norm(tern_nn_linear(3, 3, &o), NULL, 0);
        tern_module *frozen = tern_nn_requires_grad_(tern_nn_linear(3, 3, &o), false);
        tern_module *spectral = tern_nn_spectral_norm(tern_nn_linear(3, 3, &o), NULL, NULL);
        tern_module *batch = tern_nn_batch_norm1d(3, &(tern_batch_norm_options){.device = device});
        tern_module *inner = tern_nn_sequential(normed, frozen, batch, spectral);
        tern_tensor *mean = tern_nn_buffer(batch, "running_mean");
        tern_module *m = tern_nn_data_parallel(inner, devices, 2, NULL);
        tern_tensor *x = tern_to(tern_randn(SHAPE(8, 3), TERN_F32, "cpu"), device);
        tern_tensor *first = tern_narrow(x, 0, 0, 4), *wanted = NULL;
        TERN_NO_GRAD
            wanted = tern_mul_scalar(
                tern_mean_dim(tern_nn_forward(frozen, tern_nn_forward(normed, first)), TERN_DIMS(0),
                              false),
                TERN_SCALAR(0.1));
        for (int step = 0; step < 3; step++) {
            tern_tensor *y = tern_nn_forward(m, x);
            assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
            assert_ptr_equal(tern_nn_buffer(batch, "running_mean"), mean);
            if (step == 0) /* of the first device's rows */
                assert_true(tern_allclose(mean, wanted, 1e-4, 1e-5, false));
            assert_string_equal(tern_device(tern_nn_parameter(normed, "weight")),
                                tern_device_canonical(device));
            assert_null(tern_grad(tern_nn_parameter(frozen, "weight")));
            assert_non_null(tern_grad(tern_nn_parameter(normed, "weight_g")));
        }
        assert_true(tern_item_int(tern_nn_buffer(batch, "num_batches_tracked")) == 3);
        tern_nn_eval(m);
        TERN_NO_GRAD {
            tern_tensor *all = tern_nn_forward(m, x), *alone = tern_nn_forward(inner, x);
            assert_true(tern_allclose(all, alone, 1e-4, 1e-5, false));
        }
        tern_nn_free(m);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const char *devices[] = {device, "cpu"};
        int64_t live = tern_live_tensors();
        tern_data_parallel_options bad = {.weights = (double[]){1, -1}};
        assert_null(tern_nn_data_parallel(NULL, devices, 2, NULL));
        assert_error(TERN_ERR_ARGUMENT, "module");
        assert_null(tern_nn_data_parallel(net(device), devices, 2, &bad));
        assert_error(TERN_ERR_ARGUMENT, "weight 1 is -1");
        bad.weights = (double[]){0, 0};
        assert_null(tern_nn_data_parallel(net(device), devices, 2, &bad));
        assert_error(TERN_ERR_ARGUMENT, "all weights are 0");
        assert_null(tern_nn_data_parallel(net(device), devices, 0, NULL));
        assert_error(TERN_ERR_ARGUMENT, "expected devices");
        assert_null(
            tern_nn_data_parallel(net(device), (const char *[]){device, "abacus"}, 2, NULL));
        assert_error(TERN_ERR_DEVICE, "abacus");
        if (strcmp(device, "cpu") != 0) {
            assert_null(tern_nn_data_parallel(net("cpu"), devices, 2, NULL));
            assert_error(TERN_ERR_DEVICE, "must have its parameters and buffers on");
        }
        tern_module *all = tern_nn_data_parallel(net(device), NULL, 0, NULL);
        if (strcmp(tern_device_canonical(device), "cpu") == 0)
            assert_true(tern_data_parallel_weight(all, 0) == 1);
        tern_nn_free(all);
        assert_true(tern_data_parallel_weight(NULL, 0) == -1);
        tern_clear_error();
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* ---- balance ----------------------------------------------------------------------------- */

/* x w, whose backward pass takes 5 ms for each row where the host does it, so much that a busy machine does not hide it: on
 * the way there both devices are as fast. */
static tern_status scale(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)f, (void)n, (void)k;
    return (out[0] = tern_mul(in[0], in[1])) ? TERN_OK : tern_last_status();
}

static tern_status scale_back(tern_function *f, tern_tensor *const *grad_out, int k,
                              tern_tensor **grad_in, int n)
{
    (void)f, (void)k, (void)n;
    const int64_t rows = tern_size(grad_out[0], 0);
    if (strcmp(tern_device(grad_out[0]), "cpu") == 0)
        nanosleep(&(struct timespec){0, (long)rows * 5000000}, NULL);
    grad_in[1] = tern_reshape(tern_sum(grad_out[0]), SHAPE(1));
    return grad_in[1] ? TERN_OK : tern_last_status();
}

static tern_status slow_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                             int k)
{
    static const tern_function_type type = {"Slow", scale, scale_back, NULL, {0}};
    tern_tensor *both[2] = {in[0], tern_nn_parameter(self, "w")};
    (void)n, (void)k;
    return tern_function_apply(&type, NULL, both, 2, out, 1);
}

static void parts_follow_the_whole_step(void **state)
{
    enum { ROWS = 40, STEPS = 20 };
    static const char *const devices[] = {"cpu", "opencl:0"};
    (void)state;
    if (!tern_device_is_available("opencl:0")) {
        print_message("# SKIP: there is no opencl:0\n");
        skip();
    }
    const int64_t live = tern_live_tensors();
    tern_module *slow = tern_nn_module_with_call("Slow", slow_call, NULL);
    TERN_SCOPE {
        tern_nn_add_parameter(slow, "w", TENSOR("cpu", TERN_F32, SHAPE(1), 2));
        tern_module *m =
            tern_nn_data_parallel(slow, devices, 2, &(tern_data_parallel_options){.balance = true});
        tern_tensor *x = tern_ones(SHAPE(ROWS, 3), TERN_F32, "cpu");
        for (int i = 0; i < STEPS; i++) {
            TERN_SCOPE
                assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
            TERN_NO_GRAD /* which tells nothing of steps with a backward pass */
                TERN_SCOPE
                    assert_non_null(tern_nn_forward(m, x));
        }
        print_message("# cpu's part of %d rows: %.2f\n", ROWS, tern_data_parallel_weight(m, 0));
        assert_true(tern_data_parallel_weight(m, 0) < 0.25);
        assert_true(fabs(tern_data_parallel_weight(m, 0) + tern_data_parallel_weight(m, 1) - 1) <
                    1e-12);
        tern_nn_free(m);
    }
    assert_int_equal(tern_live_tensors(), live);
}

static void no_failed_allocation_leaks_or_swaps(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        if (strcmp(device, "cpu") != 0)
            continue;
        const char *devices[] = {"cpu", "cpu"};
        tern_module *inner = net(device), *m = tern_nn_data_parallel(inner, devices, 2, NULL);
        tern_tensor *weight = tern_nn_parameter(inner, "0.weight");
        TERN_SCOPE {
            tern_tensor *x = tern_randn(SHAPE(5, 6), TERN_F32, device);
            int64_t live = tern_live_tensors();
            int failures = 0;
            for (uint64_t i = 1; i < 400; i++) {
                TERN_SCOPE {
                    tern_memory_fail_at(i);
                    tern_tensor *y = tern_nn_forward(m, x);
                    if (y)
                        tern_backward(tern_sum(y));
                    tern_memory_fail_at(0);
                }
                bool failed = tern_last_status() != TERN_OK;
                failures += failed;
                tern_clear_error();
                assert_ptr_equal(tern_nn_parameter(inner, "0.weight"), weight);
                tern_nn_zero_grad(m);
                assert_int_equal(tern_live_tensors(), live);
                if (!failed)
                    break;
            }
            assert_true(failures > 10);
        }
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(rows_are_dealt_out_as_by_chunk),
    TEST(rows_are_dealt_out_by_weights),
    TEST(parts_move_to_where_all_take_as_long),
    TEST(several_devices_learn_what_one_learns),
    TEST(parts_follow_the_whole_step),
    TEST(a_module_of_the_programs_own_works_unchanged),
    TEST(computed_frozen_and_written_members_stay_the_modules),
    TEST(what_does_not_fit_is_refused),
    TEST(no_failed_allocation_leaks_or_swaps),
};
TEST_MAIN(tests)
