/* test_optim.c -- optimizers against PyTorch; launches, skipped steps, moves, refusals. */
#include "base/memory.h"
#include "device/device.h"
#include "tensor/fields.h"
#include "many.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- PyTorch's numbers ------------------------------------------------------------------- */

static const struct {
    const char *name;
    double lr;
    tern_sgd_options options;
} sgd_variants[] = {
    {.name = "sgd", .lr = 0.1},
    {"sgd_decay", 0.1, {.weight_decay = 0.05}},
    {"sgd_momentum", 0.1, {.momentum = 0.9}},
    {"sgd_dampening", 0.1, {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.01}},
    {"sgd_nesterov", 0.1, {.momentum = 0.8, .nesterov = true}},
    {"sgd_maximize", 0.1, {.momentum = 0.9, .weight_decay = 0.1, .maximize = true}},
};
static const struct {
    const char *name;
    double lr;
    tern_adam_options options;
} adam_variants[] = {
    {.name = "adam", .lr = 0.01},
    {"adam_decay", 0.01, {.weight_decay = 0.1}},
    {"adam_betas", 0.02, {.beta1 = 0.5, .beta2 = 0.9, .eps = 1e-3}},
    {"adam_zero_betas", 0.02, {.beta1 = TERN_ZERO, .beta2 = TERN_ZERO}},
    {"adam_amsgrad", 0.01, {.amsgrad = true}},
    {"adam_maximize", 0.01, {.maximize = true, .weight_decay = 0.1}},
    {"adam_decoupled", 0.01, {.weight_decay = 0.5, .decoupled_weight_decay = true}},
};
static const struct {
    const char *name;
    double lr;
    tern_adamw_options options;
} adamw_variants[] = {
    {.name = "adamw", .lr = 0.01},
    {"adamw_decay", 0.01, {.weight_decay = 0.5}},
    {"adamw_amsgrad", 0.01, {.amsgrad = true, .maximize = true}},
};

static tern_tensor *golden(test_golden *file, const char *name, int i, const char *ending,
                           const char *device)
{
    char full[64];
    snprintf(full, sizeof full, "%s%d_%s", name, i, ending);
    return test_golden_tensor(file, full, device);
}

static void read_start(test_golden *file, const char *ending, const char *device, tern_tensor *x[2])
{
    for (int i = 0; i < 2; i++)
        x[i] = tern_requires_grad_(golden(file, "start", i, ending, device), true);
}

/* Parameter 1 has no gradient in step 1. */
static void five_steps(test_golden *file, tern_optimizer *o, tern_tensor *const x[2],
                       const char *ending, const char *device)
{
    for (int t = 0; t < 5; t++) {
        char name[16];
        snprintf(name, sizeof name, "grad%d_", t);
        assert_ok(tern_optim_zero_grad(o));
        for (int i = 0; i < 2; i++)
            if (t != 1 || i != 1)
                assert_ok(tern_set_grad(x[i], golden(file, name, i, ending, device)));
        assert_ok(tern_optim_step(o));
    }
}

static void compare(test_golden *file, const char *name, const char *ending,
                    tern_tensor *const x[2])
{
    char full[48];
    snprintf(full, sizeof full, "%s_", name);
    double tolerance = strcmp(ending, "f64") == 0 ? 1e-13 : 5e-7;
    for (int i = 0; i < 2; i++)
        assert_close(x[i], golden(file, full, i, ending, "cpu"), .abs = tolerance,
                     .rel = tolerance);
}

static const char *const endings[] = {"f32", "f64"};

static bool has(const char *device, const char *ending)
{
    tern_device_info info;
    assert_ok(tern_device_get_info(device, &info));
    return info.has_f64 || strcmp(ending, "f64") != 0;
}

static void sgd_steps_as_pytorch_does(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("optim");
    FOR_EACH_DEVICE(device)
    for (size_t v = 0; v < sizeof sgd_variants / sizeof *sgd_variants; v++)
        for (int e = 0; e < 2 && has(device, endings[e]); e++)
            TERN_SCOPE {
                tern_tensor *x[2];
                read_start(file, endings[e], device, x);
                tern_optimizer *o =
                    tern_optim_sgd_of(x, 2, sgd_variants[v].lr, &sgd_variants[v].options);
                five_steps(file, o, x, endings[e], device);
                compare(file, sgd_variants[v].name, endings[e], x);
                tern_optim_free(o);
            }
    test_golden_close(file);
}

static void adam_steps_as_pytorch_does(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("optim");
    FOR_EACH_DEVICE(device)
    for (size_t v = 0; v < sizeof adam_variants / sizeof *adam_variants; v++)
        for (int e = 0; e < 2 && has(device, endings[e]); e++)
            TERN_SCOPE {
                tern_tensor *x[2];
                read_start(file, endings[e], device, x);
                tern_optimizer *o =
                    tern_optim_adam_of(x, 2, adam_variants[v].lr, &adam_variants[v].options);
                five_steps(file, o, x, endings[e], device);
                compare(file, adam_variants[v].name, endings[e], x);
                tern_optim_free(o);
            }
    test_golden_close(file);
}

static void adamw_steps_as_pytorch_does(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("optim");
    FOR_EACH_DEVICE(device)
    for (size_t v = 0; v < sizeof adamw_variants / sizeof *adamw_variants; v++)
        for (int e = 0; e < 2 && has(device, endings[e]); e++)
            TERN_SCOPE {
                tern_tensor *x[2];
                read_start(file, endings[e], device, x);
                tern_optimizer *o =
                    tern_optim_adamw_of(x, 2, adamw_variants[v].lr, &adamw_variants[v].options);
                five_steps(file, o, x, endings[e], device);
                compare(file, adamw_variants[v].name, endings[e], x);
                tern_optim_free(o);
            }
    test_golden_close(file);
}

/* ---- bias correction --------------------------------------------------------------------- */

/* With one constant gradient g, m and v corrected are g and g^2 in every step: x falls by lr. */
static void bias_correction_is_right_to_rounding_in_every_step(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_adam_of(&x, 1, 1.0, &(tern_adam_options){.eps = TERN_ZERO});
        assert_ok(tern_set_grad(x, tern_full(TERN_SHAPE(1), TERN_SCALAR(0.3), TERN_F32, device)));
        for (int t = 1; t <= 300; t++) {
            double before = tern_item(x);
            assert_ok(tern_optim_step(o));
            if (fabs(before - tern_item(x) - 1) > 1e-6 * (1 + t))
                fail_msg("step %d moved x by %.9g", t, before - tern_item(x));
        }
        tern_optim_free(o);
    }
}

/* ---- many tensors ------------------------------------------------------------------------ */

static void a_step_of_twenty_parameters_is_one_launch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[MANY];
        make_many(device, TERN_F32, x);
        tern_optimizer *o = tern_optim_adamw_of(x, MANY, 0.1, NULL);
        for (uint64_t t = 0; t < 3; t++) {
            give_gradients(x, t);
            uint64_t before = launches(device);
            int64_t version = tern_version(x[0]);
            assert_ok(tern_optim_step(o));
            assert_int_equal(launches(device), before + 1);
            assert_int_equal(tern_version(x[0]), version + 1);
            assert_ok(tern_optim_set_lr(o, 0.01 * (double)(t + 1)));
        }
        tern_optim_free(o);
    }
}

/* Each parameter by its own optimizer is the same, bit for bit. */
static void many_together_are_as_each_alone(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int d = 0; d < 3; d++)
        TERN_SCOPE {
            tern_tensor *x[MANY], *y[MANY];
            tern_optimizer *alone[MANY];
            make_many(device, dtypes[d], x);
            make_many(device, dtypes[d], y);
            tern_optimizer *o = tern_optim_adam_of(x, MANY, 0.1, NULL);
            for (int i = 0; i < MANY; i++)
                alone[i] = tern_optim_adam_of(&y[i], 1, 0.1, NULL);
            for (uint64_t t = 0; t < 3; t++) {
                give_gradients(x, t);
                give_gradients(y, t);
                assert_ok(tern_optim_step(o));
                for (int i = 0; i < MANY; i++)
                    assert_ok(tern_optim_step(alone[i]));
            }
            for (int i = 0; i < MANY; i++) {
                assert_same(x[i], y[i]);
                tern_optim_free(alone[i]);
            }
            tern_optim_free(o);
        }
}

/* As on OpenCL devices whose memory has no addresses: twenty tensors a launch, as its arguments. */
static void without_addresses_twenty_tensors_share_a_launch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int n = MANY; n <= 2 * MANY + 2; n += MANY + 2)
        TERN_SCOPE {
            tern_tensor *x[3 * MANY], *y[3 * MANY];
            for (int i = 0; i < 3 * MANY; i += MANY) {
                make_many(device, TERN_F32, x + i);
                make_many(device, TERN_F32, y + i);
            }
            tern_optimizer *o = tern_optim_adam_of(x, n, 0.1, NULL);
            tern_optimizer *other = tern_optim_adam_of(y, n, 0.1, NULL);
            for (uint64_t t = 0; t < 3 && strncmp(device, "opencl", 6) == 0; t++) {
                for (int i = 0; i < 3 * MANY; i += MANY) {
                    give_gradients(x + i, t);
                    give_gradients(y + i, t);
                }
                /* one has none, and one begins in the middle of its memory */
                assert_ok(tern_set_grad(x[5], NULL));
                assert_ok(tern_set_grad(y[5], NULL));
                tern_tensor *two = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5000), -1, 1, t);
                tern_tensor *second = tern_select(two, 0, 1);
                second =
                    tern_view(tern_narrow(second, 0, 0, tern_numel(x[1])), tern_shape_of(x[1]));
                assert_ok(tern_set_grad(x[1], second));
                assert_ok(tern_set_grad(y[1], second));
                assert_ok(tern_optim_step(o));
                uint64_t before = launches(device);
                uint64_t *address = &y[2]->storage->block->buffer.address, kept = *address;
                *address = 0;
                assert_ok(tern_optim_step(other));
                *address = kept;
                assert_int_equal(launches(device), before + (uint64_t)(n + MANY - 1) / MANY);
            }
            for (int i = 0; i < n; i++)
                assert_same(x[i], y[i]);
            tern_optim_free(o);
            tern_optim_free(other);
        }
}

static void half_parameters_keep_their_state_in_float32(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        /* In f16 the momentum 1 + 1e-4 would stay 1, and twenty steps would move x by 20 lr. */
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F16, device), true);
        tern_optimizer *o =
            tern_optim_sgd_of(&x, 1, 1e-9, &(tern_sgd_options){.momentum = 1 - 1e-5});
        assert_ok(tern_set_grad(x, tern_full(TERN_SHAPE(1), TERN_SCALAR(1e-4), TERN_F16, device)));
        for (int t = 0; t < 200; t++)
            assert_ok(tern_optim_step(o));
        assert_ok(tern_optim_set_lr(o, 1));
        assert_ok(tern_optim_step(o));
        assert_values_close(x, 1e-3, -201e-4);
        tern_optim_free(o);
    }
}

static void a_strided_parameter_is_updated_where_it_lies(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *all = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, device), *x = NULL;
        TERN_NO_GRAD
            x = tern_requires_grad_(tern_transpose(all, 0, 1), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        assert_ok(tern_set_grad(x, TENSOR(device, TERN_F32, TERN_SHAPE(3, 2), 1, 2, 3, 4, 5, 6)));
        assert_ok(tern_optim_step(o));
        assert_values(all, -1, -3, -5, -2, -4, -6);
        tern_optim_free(o);
    }
}

/* ---- moves ------------------------------------------------------------------------------- */

static void states_follow_a_module_that_moves(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2];
        for (int i = 0; i < 2; i++)
            x[i] = tern_requires_grad_(tern_ones(TERN_SHAPE(3), TERN_F32, "cpu"), true);
        tern_optimizer *still = tern_optim_adam_of(&x[0], 1, 0.1, NULL);
        tern_optimizer *moving = tern_optim_adam_of(&x[1], 1, 0.1, NULL);
        for (int t = 0; t < 6; t++) {
            if (t == 3)
                tern_set_data_(x[1], tern_to(tern_detach(x[1]), device));
            if (t == 4)
                tern_set_data_(x[1], tern_to_dtype(tern_detach(x[1]), TERN_F32));
            for (int i = 0; i < 2; i++)
                assert_ok(tern_set_grad(x[i], test_uniform(tern_device(x[i]), TERN_F32,
                                                           TERN_SHAPE(3), -1, 1, (uint64_t)t)));
            assert_ok(tern_optim_step(still));
            assert_ok(tern_optim_step(moving));
        }
        assert_close(x[1], x[0], .rel = 1e-6);
        tern_optim_free(still);
        tern_optim_free(moving);
    }
}

static void states_follow_a_change_of_dtype(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x[2];
        for (int i = 0; i < 2; i++)
            x[i] = tern_requires_grad_(tern_ones(TERN_SHAPE(3), TERN_F32, "cpu"), true);
        tern_optimizer *still = tern_optim_adam_of(&x[0], 1, 0.1, NULL);
        tern_optimizer *moving = tern_optim_adam_of(&x[1], 1, 0.1, NULL);
        for (int t = 0; t < 6; t++) {
            if (t == 3)
                tern_set_data_(x[1], tern_to_dtype(tern_detach(x[1]), TERN_F64));
            for (int i = 0; i < 2; i++)
                assert_ok(tern_set_grad(x[i], test_uniform("cpu", tern_dtype_of(x[i]),
                                                           TERN_SHAPE(3), -1, 1, (uint64_t)t)));
            assert_ok(tern_optim_step(still));
            assert_ok(tern_optim_step(moving));
        }
        assert_close(tern_to_dtype(tern_detach(x[1]), TERN_F32), tern_detach(x[0]), .rel = 1e-5);
        tern_optim_free(still);
        tern_optim_free(moving);
    }
}

/* ---- what is refused --------------------------------------------------------------------- */

static void bad_options_are_refused_in_pytorchs_words(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
        assert_null(tern_optim_sgd_of(&x, 1, -0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_sgd: Invalid learning rate: -0.1");
        assert_null(tern_optim_adam_of(&x, 1, NAN, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_adam: Invalid learning rate: nan");
        assert_null(tern_optim_sgd_of(&x, 1, 0.1, &(tern_sgd_options){.momentum = -1}));
        assert_error(TERN_ERR_ARGUMENT, "Invalid momentum value: -1.0");
        assert_null(tern_optim_sgd_of(&x, 1, 0.1, &(tern_sgd_options){.weight_decay = -1e-5}));
        assert_error(TERN_ERR_ARGUMENT, "Invalid weight_decay value: -1e-05");
        assert_null(tern_optim_sgd_of(&x, 1, 0.1, &(tern_sgd_options){.nesterov = true}));
        assert_error(TERN_ERR_ARGUMENT, "Nesterov momentum requires a momentum and zero dampening");
        assert_null(tern_optim_adam_of(&x, 1, 0.1, &(tern_adam_options){.beta1 = 1}));
        assert_error(TERN_ERR_ARGUMENT, "Invalid beta parameter at index 0: 1.0");
        assert_null(tern_optim_adamw_of(&x, 1, 0.1, &(tern_adamw_options){.beta2 = -0.5}));
        assert_error(TERN_ERR_ARGUMENT,
                     "tern_optim_adamw: Invalid beta parameter at index 1: -0.5");
        assert_null(tern_optim_adam_of(&x, 1, 0.1, &(tern_adam_options){.eps = -1}));
        assert_error(TERN_ERR_ARGUMENT, "Invalid epsilon value: -1.0");
    }
}

static void bad_parameters_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
        tern_tensor *y = tern_mul(x, x), *twice[] = {x, x}, *none = NULL;
        assert_null(tern_optim_sgd_of(NULL, 0, 0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "optimizer got an empty parameter list");
        assert_null(tern_optim_sgd_of(&y, 1, 0.1, NULL));
        assert_error(TERN_ERR_STATE, "can't optimize a non-leaf Tensor");
        assert_null(tern_optim_sgd_of(twice, 2, 0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "duplicate parameters");
        assert_null(tern_optim_sgd_of(&none, 1, 0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_sgd");
        assert_null(tern_optim_sgd(NULL, 0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_sgd");
        tern_module *m = tern_nn_module("Empty", NULL, NULL);
        assert_null(tern_optim_adam(m, 0.1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "optimizer got an empty parameter list");
        tern_nn_free(m);
    }
    assert_int_equal(tern_optim_step(NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "tern_optim_step");
    tern_optim_free(NULL);
}

static void the_learning_rate_can_change(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(1), TERN_F32, device)));
        assert_ok(tern_optim_step(o));
        assert_ok(tern_optim_set_lr(o, 0.25));
        assert_true(tern_optim_get_lr(o) == 0.25);
        assert_ok(tern_optim_step(o));
        assert_values(x, -1.25);
        assert_int_equal(tern_optim_set_lr(o, -1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "Invalid learning rate: -1.0");
        tern_optim_free(o);
    }
}

static void every_failed_allocation_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        bool failed = false;
        TERN_SCOPE {
            tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(5000), TERN_F32, NULL), true);
            assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(5000), TERN_F32, NULL)));
            tern_memory_fail_at(n);
            tern_optimizer *o = tern_optim_adam_of(&x, 1, 0.1, NULL);
            tern_status status = tern_optim_step(o);
            tern_memory_fail_at(0);
            failed = status != TERN_OK;
            assert_int_equal(tern_last_status(), status);
            tern_clear_error();
            double *values = test_read(x);
            assert_true(!failed || values[0] == 1);
            free(values);
            tern_optim_free(o);
        }
        assert_int_equal(tern_live_tensors(), before);
        failures += failed;
        if (!failed)
            break;
    }
    assert_true(failures > 10);
}

static const struct CMUnitTest tests[] = {
    TEST(sgd_steps_as_pytorch_does),
    TEST(adam_steps_as_pytorch_does),
    TEST(adamw_steps_as_pytorch_does),
    TEST(bias_correction_is_right_to_rounding_in_every_step),
    TEST(a_step_of_twenty_parameters_is_one_launch),
    TEST(many_together_are_as_each_alone),
    TEST(without_addresses_twenty_tensors_share_a_launch),
    TEST(a_strided_parameter_is_updated_where_it_lies),
    TEST(half_parameters_keep_their_state_in_float32),
    TEST(states_follow_a_module_that_moves),
    TEST(states_follow_a_change_of_dtype),
    TEST(bad_options_are_refused_in_pytorchs_words),
    TEST(bad_parameters_are_refused),
    TEST(the_learning_rate_can_change),
    TEST(every_failed_allocation_is_an_error_and_leaks_nothing),
};
TEST_MAIN(tests)
