/* test_amp.c -- autocast: which operation runs in which type; the gradient scaler. */
#include "support.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

static const tern_dtype halves[] = {TERN_F16, TERN_BF16};

/* ---- types ------------------------------------------------------------------------------- */

/* The operations with a list, of x (3, 3) and y (3, 3). */
#define OP(NAME, Y)                                                                                \
    static tern_tensor *NAME(tern_tensor *x, tern_tensor *y)                                       \
    {                                                                                              \
        (void)y;                                                                                   \
        return Y;                                                                                  \
    }
OP(matmul, tern_matmul(x, y))
OP(linear, tern_linear(x, y, NULL))
OP(bmm, tern_bmm(tern_unsqueeze(x, 0), tern_unsqueeze(y, 0)))
OP(softmax, tern_softmax(x, 0))
OP(log_softmax, tern_log_softmax(x, 0))
OP(layer_norm, tern_layer_norm(x, TERN_SHAPE(3), NULL, NULL, 1e-5))
OP(mse, tern_mse_loss(x, y, NULL))
OP(exponential, tern_exp(x))
OP(logarithm, tern_log(x))
OP(power, tern_pow_scalar(x, TERN_SCALAR(2.0)))
OP(sum, tern_sum(x))
OP(cat, tern_cat((tern_tensor *[]){x, y}, 2, 0))
OP(add, tern_add(x, y))
OP(relu, tern_relu(x))
OP(mean, tern_mean(x))
OP(rnn_tanh_cell, tern_rnn_tanh_cell(x, y, x, y, NULL, NULL))
OP(rnn_relu_cell, tern_rnn_relu_cell(x, y, x, y, NULL, NULL))
OP(gru_cell, tern_gru_cell(x, y, tern_repeat(x, TERN_DIMS(3, 1)), tern_repeat(y, TERN_DIMS(3, 1)),
                           NULL, NULL))

/* What comes of two of float32, of two halves, and of one of each. */
enum { HALF = -1, F32 = TERN_F32 };
static const struct {
    const char *name;
    tern_tensor *(*run)(tern_tensor *x, tern_tensor *y);
    int wide, narrow, mixed;
} table[] = {
    {"matmul", matmul, HALF, HALF, HALF},
    {"linear", linear, HALF, HALF, HALF},
    {"bmm", bmm, HALF, HALF, HALF},
    {"softmax", softmax, F32, F32, F32},
    {"log_softmax", log_softmax, F32, F32, F32},
    {"layer_norm", layer_norm, F32, F32, F32},
    {"mse_loss", mse, F32, F32, F32},
    {"exp", exponential, F32, F32, F32},
    {"log", logarithm, F32, F32, F32},
    {"pow", power, F32, F32, F32},
    {"sum", sum, F32, F32, F32},
    {"cat", cat, F32, HALF, F32},
    {"add", add, F32, HALF, F32},
    {"relu", relu, F32, HALF, F32},
    {"mean", mean, F32, HALF, F32},
    {"rnn_tanh_cell", rnn_tanh_cell, HALF, HALF, HALF},
    {"rnn_relu_cell", rnn_relu_cell, HALF, HALF, HALF},
    {"gru_cell", gru_cell, HALF, HALF, HALF},
};

static void check_type(const char *name, const tern_tensor *z, int expected, tern_dtype half)
{
    tern_dtype dtype = expected == HALF ? half : (tern_dtype)expected;
    if (tern_dtype_of(z) != dtype)
        fail_msg("%s gave %s instead of %s", name, tern_dtype_name(tern_dtype_of(z)),
                 tern_dtype_name(dtype));
}

static void operations_run_in_the_types_of_the_lists(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int h = 0; h < (test_thorough(device) ? 2 : 1); h++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(3, 3), 0.5, 1, 1);
            tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(3, 3), 0.5, 1, 2);
            tern_tensor *p = tern_to_dtype(x, halves[h]), *q = tern_to_dtype(y, halves[h]);
            TERN_AUTOCAST (device, halves[h])
                for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
                    check_type(table[i].name, table[i].run(x, y), table[i].wide, halves[h]);
                    check_type(table[i].name, table[i].run(p, q), table[i].narrow, halves[h]);
                    check_type(table[i].name, table[i].run(x, q), table[i].mixed, halves[h]);
                }
            assert_int_equal(tern_dtype_of(tern_matmul(x, y)), TERN_F32);
        }
}

static void float64_and_integers_are_left_alone(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F64, TERN_SHAPE(3, 3), 0.5, 1, 1);
        tern_tensor *i = tern_ones(TERN_SHAPE(3), TERN_I64, "cpu");
        TERN_AUTOCAST ("cpu", TERN_BF16) {
            assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F64);
            assert_int_equal(tern_dtype_of(tern_exp(x)), TERN_F64);
            assert_int_equal(tern_dtype_of(tern_sum(i)), TERN_I64);
        }
    }
}

/* ---- blocks ------------------------------------------------------------------------------ */

static void *type_elsewhere(void *x)
{
    tern_dtype *dtype = malloc(sizeof *dtype);
    TERN_SCOPE
        *dtype = tern_dtype_of(tern_matmul(x, x));
    return dtype;
}

static tern_dtype leave_early(tern_tensor *x)
{
    TERN_AUTOCAST (tern_device(x), TERN_F16)
        return tern_dtype_of(tern_matmul(x, x));
    return TERN_DTYPE_DEFAULT;
}

static void blocks_nest_and_belong_to_a_thread(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 3), TERN_F32, device);
        assert_false(tern_is_autocast_enabled(device));
        TERN_AUTOCAST (device, TERN_F16) {
            assert_true(tern_is_autocast_enabled(device));
            TERN_AUTOCAST_MODE(device, TERN_F16, false)
            assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F32);
            TERN_AUTOCAST (device, TERN_BF16) {
                assert_int_equal(tern_get_autocast_dtype(device), TERN_BF16);
                assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_BF16);
            }
            assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F16);
            pthread_t thread;
            void *dtype;
            assert_int_equal(pthread_create(&thread, NULL, type_elsewhere, x), 0);
            assert_int_equal(pthread_join(thread, &dtype), 0);
            assert_int_equal(*(tern_dtype *)dtype, TERN_F32);
            free(dtype);
        }
        assert_int_equal(leave_early(x), TERN_F16);
        assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F32);
        TERN_AUTOCAST (device, TERN_DTYPE_DEFAULT)
            assert_int_equal(tern_get_autocast_dtype(device),
                             strcmp(device, "cpu") == 0 ? TERN_BF16 : TERN_F16);
    }
}

static void only_tensors_of_the_blocks_kind_of_device_are_cast(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    if (strcmp(device, "cpu") != 0)
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(3, 3), TERN_F32, device),
                        *y = tern_ones(TERN_SHAPE(3, 3), TERN_F32, "cpu");
            TERN_AUTOCAST ("cpu", TERN_F16) {
                assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F32);
                TERN_AUTOCAST (device, TERN_BF16) {
                    assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_BF16);
                    assert_int_equal(tern_dtype_of(tern_matmul(y, y)), TERN_F16);
                }
            }
        }
}

static void bad_blocks_are_refused_and_change_nothing(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(3, 3), TERN_F32, "cpu");
        TERN_AUTOCAST ("cpu", TERN_F64) {
            assert_error(TERN_ERR_DTYPE, "target dtype is not supported (float64)");
            assert_int_equal(tern_dtype_of(tern_matmul(x, x)), TERN_F32);
        }
        TERN_AUTOCAST ("nowhere", TERN_F16)
            assert_error(TERN_ERR_DEVICE, "nowhere");
    }
}

/* ---- gradients and kept casts ------------------------------------------------------------ */

static void gradients_arrive_in_the_types_of_their_tensors(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int h = 0; h < (test_thorough(device) ? 2 : 1); h++)
        TERN_SCOPE {
            tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(4, 4), -1, 1, 1);
            tern_tensor *x = test_uniform(device, halves[h], TERN_SHAPE(4, 4), -1, 1, 2);
            tern_tensor *loss = NULL, *plain;
            tern_requires_grad_(w, true);
            tern_requires_grad_(x, true);
            plain = tern_sum(tern_square(tern_matmul(tern_to_dtype(x, TERN_F32), w)));
            assert_ok(tern_backward(plain));
            tern_tensor *dw = tern_keep(tern_grad(w)), *dx = tern_keep(tern_grad(x));
            tern_set_grad(w, NULL);
            tern_set_grad(x, NULL);
            TERN_AUTOCAST (device, halves[h]) {
                loss = tern_sum(tern_square(tern_matmul(x, w)));
                assert_ok(tern_backward(loss)); /* here, too, nothing more is cast */
            }
            assert_int_equal(tern_dtype_of(loss), TERN_F32);
            assert_int_equal(tern_dtype_of(tern_grad(w)), TERN_F32);
            assert_int_equal(tern_dtype_of(tern_grad(x)), halves[h]);
            double eps = halves[h] == TERN_F16 ? 4e-3 : 4e-2;
            assert_close(tern_grad(w), dw, .abs = eps, .rel = eps);
            assert_close(tern_grad(x), dx, .abs = eps, .rel = eps);
            tern_release(dw);
            tern_release(dx);
        }
}

static void a_parameter_is_cast_once_in_a_block(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(4, 4), TERN_F32, device), true);
        tern_tensor *x = tern_ones(TERN_SHAPE(4, 4), TERN_F16, device);
        TERN_AUTOCAST (device, TERN_F16) {
            tern_matmul(x, w);
            uint64_t before = launches(device);
            TERN_AUTOCAST (device, TERN_F16)
                tern_matmul(x, w);
            uint64_t kept = launches(device) - before;
            tern_set_autocast_cache_enabled(false);
            before = launches(device);
            tern_matmul(x, w);
            assert_int_equal(launches(device) - before, kept + 1);
            tern_set_autocast_cache_enabled(true);
        }
    }
}

static void a_parameter_that_was_written_is_cast_again(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(2, 2), TERN_F32, device), true);
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 2), TERN_F32, device);
        TERN_AUTOCAST (device, TERN_F16) {
            TERN_NO_GRAD
                assert_false(tern_requires_grad(tern_matmul(x, w)));
            tern_tensor *y = tern_matmul(x, w);
            assert_true(tern_requires_grad(y));
            assert_values(y, 2, 2);
            TERN_NO_GRAD
                tern_fill_(w, TERN_SCALAR(3.0));
            assert_values(tern_matmul(x, w), 6, 6);
        }
    }
}

static void casts_are_let_go_of_with_the_block(void **state)
{
    (void)state;
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(2, 2), TERN_F32, "cpu"), true);
        TERN_AUTOCAST ("cpu", TERN_F16)
            TERN_SCOPE
                tern_matmul(w, w);
        assert_int_equal(tern_live_tensors(), before + 1);
    }
    assert_int_equal(tern_live_tensors(), before);
}

/* ---- the scaler -------------------------------------------------------------------------- */

/* A step with gradients g and an infinity in them or not; returns x. */
static double step(tern_scaler *scaler, tern_optimizer *o, tern_tensor *x, double g)
{
    tern_tensor *loss = tern_sum(tern_mul_scalar(x, TERN_SCALAR(g)));
    assert_ok(tern_optim_zero_grad(o));
    assert_ok(tern_backward(tern_amp_scale(scaler, loss)));
    assert_ok(tern_amp_step(scaler, o));
    assert_ok(tern_amp_update(scaler));
    return tern_item(tern_select(x, 0, 0));
}

static void the_scale_grows_and_backs_off_as_pytorchs_does(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        tern_scaler *s = tern_amp_grad_scaler(
            &(tern_grad_scaler_options){.init_scale = 8, .growth_factor = 3, .growth_interval = 2});
        assert_true(tern_amp_get_scale(s) == 8);
        assert_true(step(s, o, x, 1) == -1);
        assert_true(tern_amp_get_scale(s) == 8);
        assert_true(step(s, o, x, 0.5) == -1.5);
        assert_true(tern_amp_get_scale(s) == 24);
        assert_true(step(s, o, x, 1) == -2.5);
        assert_true(step(s, o, x, INFINITY) == -2.5); /* skipped; counts from zero again */
        assert_true(tern_amp_get_scale(s) == 12);
        assert_true(step(s, o, x, NAN) == -2.5);
        assert_true(tern_amp_get_scale(s) == 6);
        assert_true(step(s, o, x, 1) == -3.5);
        assert_true(tern_amp_get_scale(s) == 6);
        tern_scaler_state at;
        assert_ok(tern_amp_get_state(s, &at));
        assert_true(at.scale == 6 && at.growth_factor == 3 && at.backoff_factor == 0.5);
        assert_int_equal(at.growth_interval, 2);
        assert_int_equal(at.growth_tracker, 1);
        assert_true(step(s, o, x, 1) == -4.5);
        assert_true(tern_amp_get_scale(s) == 18);
        assert_ok(tern_amp_set_state(s, &at));
        assert_true(step(s, o, x, 1) == -5.5);
        assert_true(tern_amp_get_scale(s) == 18);
        assert_ok(tern_amp_set_scale(s, 2));
        assert_true(tern_amp_get_scale(s) == 2);
        tern_amp_free(s);
        tern_optim_free(o);
    }
}

static void a_step_that_is_skipped_does_not_count_as_adams(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2];
        tern_optimizer *o[2];
        for (int i = 0; i < 2; i++) {
            x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(5000), TERN_F32, device), true);
            o[i] = tern_optim_adam_of(&x[i], 1, 0.1, NULL);
        }
        tern_scaler *s = tern_amp_grad_scaler(NULL);
        for (int t = 0; t < 4; t++) {
            double g = 1 + t;
            step(s, o[0], x[0], g);
            if (t == 1)
                step(s, o[0], x[0], INFINITY);
            assert_ok(tern_set_grad(x[1], tern_full_like(x[1], tern_scalar_real(g))));
            assert_ok(tern_optim_step(o[1]));
        }
        assert_close(x[0], x[1], .ulp = 2);
        assert_true(tern_amp_get_scale(s) == 32768);
        tern_amp_free(s);
        tern_optim_free(o[0]);
        tern_optim_free(o[1]);
    }
}

static void gradients_can_be_unscaled_before_the_step(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[3];
        for (int i = 0; i < 3; i++)
            x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(3), i ? TERN_F32 : TERN_BF16, device),
                                       true);
        tern_optimizer *o = tern_optim_sgd_of(x, 3, 1, NULL);
        tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 4});
        tern_tensor *loss = tern_add(tern_sum(x[0]), tern_sum(x[1]));
        assert_int_equal(tern_amp_unscale_(s, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "did not use tern_amp_scale");
        tern_tensor *scaled = tern_amp_scale(s, loss);
        assert_int_equal(tern_amp_step(s, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "No inf checks were recorded for this optimizer");
        assert_int_equal(tern_amp_update(s), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "No inf checks were recorded prior to update");
        assert_ok(tern_backward(scaled));
        assert_values(tern_grad(x[1]), 4, 4, 4);
        assert_ok(tern_amp_unscale_(s, o));
        assert_values(tern_grad(x[0]), 1, 1, 1);
        assert_values(tern_grad(x[1]), 1, 1, 1);
        assert_int_equal(tern_amp_unscale_(s, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "unscale_() has already been called on this optimizer");
        assert_ok(tern_amp_step(s, o));
        assert_values(x[0], -1, -1, -1);
        assert_values(x[2], 0, 0, 0);
        assert_int_equal(tern_amp_step(s, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "step() has already been called since the last update()");
        assert_int_equal(tern_amp_unscale_(s, o), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "unscale_() is being called after step()");
        assert_ok(tern_amp_update(s));
        tern_amp_free(s);
        tern_optim_free(o);
    }
}

static void one_optimizers_infinity_backs_the_scale_off_for_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2];
        tern_optimizer *o[2];
        for (int i = 0; i < 2; i++) {
            x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, device), true);
            o[i] = tern_optim_sgd_of(&x[i], 1, 1, NULL);
        }
        tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 4});
        tern_tensor *loss =
            tern_sum(tern_add(x[0], tern_mul_scalar(x[1], TERN_SCALAR((double)INFINITY))));
        assert_ok(tern_backward(tern_amp_scale(s, loss)));
        for (int i = 0; i < 2; i++)
            assert_ok(tern_amp_step(s, o[i]));
        assert_ok(tern_amp_update(s));
        assert_values(x[0], -1);
        assert_values(x[1], 0);
        assert_true(tern_amp_get_scale(s) == 2);
        tern_amp_free(s);
        tern_optim_free(o[0]);
        tern_optim_free(o[1]);
    }
}

static void a_disabled_scaler_only_steps(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, "cpu"), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.disabled = true});
        assert_false(tern_amp_is_enabled(s));
        assert_ptr_equal(tern_amp_scale(s, x), x);
        assert_ok(tern_set_grad(x, tern_ones_like(x)));
        assert_ok(tern_amp_unscale_(s, o));
        assert_ok(tern_amp_step(s, o));
        assert_ok(tern_amp_update(s));
        assert_values(x, -1);
        assert_true(tern_amp_get_scale(s) == 1);
        tern_amp_free(s);
        tern_optim_free(o);
    }
}

static void bad_scalers_and_gradients_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        assert_null(tern_amp_grad_scaler(&(tern_grad_scaler_options){.growth_factor = 1}));
        assert_error(TERN_ERR_ARGUMENT, "The growth factor must be > 1.0");
        assert_null(tern_amp_grad_scaler(&(tern_grad_scaler_options){.backoff_factor = 1}));
        assert_error(TERN_ERR_ARGUMENT, "The backoff factor must be < 1.0");
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F16, "cpu"), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 2});
        assert_ok(tern_backward(tern_amp_scale(s, x)));
        assert_int_equal(tern_amp_step(s, o), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "Attempting to unscale FP16 gradients");
        tern_amp_free(s);
        tern_optim_free(o);
    }
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *loss = tern_ones(TERN_SHAPE_SCALAR, TERN_F32, "cpu");
        tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 1e300});
        for (int i = 0; i < 2; i++) {
            assert_null(tern_amp_scale(s, loss));
            assert_error(TERN_ERR_ARGUMENT, "cannot be converted to type float32");
        }
        tern_amp_free(s);
    }
    assert_int_equal(tern_live_tensors(), live);
    assert_null(tern_amp_scale(NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "tern_amp_scale");
    tern_amp_free(NULL);
}

static const struct CMUnitTest tests[] = {
    TEST(operations_run_in_the_types_of_the_lists),
    TEST(float64_and_integers_are_left_alone),
    TEST(blocks_nest_and_belong_to_a_thread),
    TEST(only_tensors_of_the_blocks_kind_of_device_are_cast),
    TEST(bad_blocks_are_refused_and_change_nothing),
    TEST(gradients_arrive_in_the_types_of_their_tensors),
    TEST(a_parameter_is_cast_once_in_a_block),
    TEST(a_parameter_that_was_written_is_cast_again),
    TEST(casts_are_let_go_of_with_the_block),
    TEST(the_scale_grows_and_backs_off_as_pytorchs_does),
    TEST(a_step_that_is_skipped_does_not_count_as_adams),
    TEST(gradients_can_be_unscaled_before_the_step),
    TEST(one_optimizers_infinity_backs_the_scale_off_for_all),
    TEST(a_disabled_scaler_only_steps),
    TEST(bad_scalers_and_gradients_are_refused),
};
TEST_MAIN(tests)
