/* test_anomaly.c -- anomaly detection: the operation that made a NaN is named. */
#include "support.h"
#include <math.h>

/* sqrt has an infinite slope at 0: times the 0 that comes in it is NaN. */
static tern_tensor *risky(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_mul_scalar(tern_sqrt(x), TERN_SCALAR(0));
}

static tern_tensor *zeros(const char *device)
{
    return tern_requires_grad_(tern_zeros(TERN_SHAPE(2), TERN_F32, device), true);
}

static void the_function_and_its_place_are_named(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_sequential(
            tern_nn_identity(), tern_nn_sequential(tern_nn_module("Risky", risky, NULL)));
        TERN_SCOPE {
            tern_tensor *x = zeros(device);
            TERN_DETECT_ANOMALY {
                assert_true(tern_is_anomaly_enabled());
                tern_tensor *y = tern_sum(tern_nn_forward(m, x));
                assert_int_equal(tern_backward(y), TERN_ERR_STATE);
            }
            assert_error(TERN_ERR_STATE,
                         "Function 'SqrtBackward0' returned nan values in its 0th output. Its "
                         "forward was called in Sequential > 1:Sequential > 0:Risky");
            assert_null(tern_grad(x));
            assert_false(tern_is_anomaly_enabled());
            /* Nobody looks outside of the block. */
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
            assert_non_null(tern_grad(x));
        }
        tern_nn_free(m);
    }
}

static void a_forward_outside_of_the_block_has_no_place(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *y = tern_sum(risky(NULL, zeros("cpu")));
        TERN_DETECT_ANOMALY
            assert_int_equal(tern_backward(y), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "Where its forward was called is not known");
    }
}

static void labels_and_names_of_two_words(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = zeros("cpu"), *y = NULL;
        tern_tensor *nan = TENSOR("cpu", TERN_F32, TERN_SHAPE(2), NAN, 1);
        TERN_DETECT_ANOMALY {
            TERN_ANOMALY_LABEL ("encoder")
                TERN_ANOMALY_LABEL ("scale")
                    y = tern_log_softmax(x, 0);
            assert_int_equal(tern_backward_with(y, &(tern_backward_options){.gradient = nan}),
                             TERN_ERR_STATE);
        }
        assert_error(TERN_ERR_STATE, "Function 'LogSoftmaxBackward0' returned nan values in its "
                                     "0th output. The gradient it was given had nan values "
                                     "already. Its forward was called in encoder > scale");
        /* A write in place is called by its operation. */
        TERN_DETECT_ANOMALY {
            tern_tensor *z = tern_mul_scalar(x, TERN_SCALAR(1));
            tern_sqrt_(tern_narrow(z, 0, 0, 1));
            assert_int_equal(tern_backward(tern_sum(tern_mul_scalar(z, TERN_SCALAR(0)))),
                             TERN_ERR_STATE);
        }
        assert_error(TERN_ERR_STATE, "Function 'SqrtBackward0' returned nan values");
    }
}

static void results_are_looked_at_where_asked(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        TERN_SCOPE {
            tern_detect_anomaly_options forward = {.check_forward = true},
                                        neither = {.no_check_nan = true};
            tern_tensor *x = zeros(device);
            tern_tensor *nan = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, NAN);
            TERN_DETECT_ANOMALY_MODE (true, &forward) {
                assert_non_null(tern_add(x, x));
                assert_non_null(tern_isnan(nan));
                TERN_ANOMALY_LABEL ("ratio")
                    assert_null(tern_div(x, x));
            }
            assert_error(TERN_ERR_STATE, "tern_div: returned nan values in its 0th output. It was "
                                         "called in ratio");
            TERN_DETECT_ANOMALY_MODE (true, &forward)
                assert_null(tern_add(x, nan));
            assert_error(TERN_ERR_STATE, "tern_add: returned nan values in its 0th output; its "
                                         "input 1 had nan values already");
            TERN_DETECT_ANOMALY_MODE (true, &neither)
                assert_ok(tern_backward(tern_sum(risky(NULL, x))));
            TERN_DETECT_ANOMALY
                TERN_DETECT_ANOMALY_MODE (false, NULL)
                    assert_ok(tern_backward(tern_sum(risky(NULL, x))));
            tern_autograd_set_detect_anomaly(true, NULL);
            assert_int_equal(tern_backward(tern_sum(risky(NULL, x))), TERN_ERR_STATE);
            tern_autograd_set_detect_anomaly(false, NULL);
            assert_error(TERN_ERR_STATE, "SqrtBackward0");
        }
    }
}

static void a_sound_step_stays_as_it_is(void **state)
{
    (void)state;
    tern_module *m =
        tern_nn_sequential(tern_nn_linear(3, 4, NULL), tern_nn_tanh(), tern_nn_linear(4, 1, NULL));
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cpu", TERN_F32, TERN_SHAPE(5, 3), -1, 1, 1), *grad[2];
        tern_detect_anomaly_options forward = {.check_forward = true};
        for (int i = 0; i < 2; i++) {
            tern_nn_zero_grad(m);
            TERN_DETECT_ANOMALY_MODE (i == 1, &forward)
                assert_ok(tern_backward(tern_sum(tern_square(tern_nn_forward(m, x)))));
            grad[i] = tern_clone(tern_grad(tern_nn_parameter(m, "0.weight")));
        }
        assert_same(grad[0], grad[1]);
        tern_nn_zero_grad(m);
    }
    assert_int_equal(tern_live_tensors(), before);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(the_function_and_its_place_are_named), TEST(a_forward_outside_of_the_block_has_no_place),
    TEST(labels_and_names_of_two_words),        TEST(results_are_looked_at_where_asked),
    TEST(a_sound_step_stays_as_it_is),
};
TEST_MAIN(tests)
