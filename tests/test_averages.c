/* test_averages.c -- averages of parameters over the steps, and the statistics
 * that go with them. */
#include "support.h"

static void averages_follow_the_parameters(void **state)
{
    (void)state;
    static const double expected[2][4] = {{1, 1.5, 2.25, 3.125}, {1, 1.5, 2, 2.5}};
    FOR_EACH_DEVICE(device)
    for (int equal = 0; equal < 2; equal++)
        TERN_SCOPE {
            tern_module *m = tern_nn_module("M", NULL, NULL);
            tern_tensor *w = tern_zeros(TERN_SHAPE(5000), TERN_F32, device);
            tern_tensor *h = tern_zeros(TERN_SHAPE(2), TERN_F16, device);
            tern_tensor *b = tern_zeros(TERN_SHAPE(1), TERN_I64, device);
            tern_nn_add_parameter(m, "w", w);
            tern_nn_add_parameter(m, "h", h);
            tern_nn_add_buffer(m, "b", b);
            tern_averaged_model *ema = tern_swa_averaged_model(
                m, &(tern_averaged_model_options){.decay = 0.5, .equal = equal == 1});
            for (int t = 0; t < 4; t++) {
                TERN_NO_GRAD {
                    tern_fill_(w, TERN_SCALAR(t + 1));
                    tern_fill_(h, TERN_SCALAR(t + 1));
                    tern_fill_(b, TERN_SCALAR(t + 1));
                }
                assert_ok(tern_swa_update(ema));
                tern_tensor *of_w = tern_swa_average(ema, w);
                assert_values_close(tern_narrow(of_w, 0, 4998, 2), 1e-6, expected[equal][t],
                                    expected[equal][t]);
                assert_values_close(tern_swa_average(ema, h), 1e-3, expected[equal][t],
                                    expected[equal][t]);
                assert_values(tern_swa_average(ema, b), t + 1);
            }
            assert_ok(tern_swa_swap(ema));
            assert_values_close(h, 1e-3, expected[equal][3], expected[equal][3]);
            assert_values(tern_swa_average(ema, h), 4, 4);
            assert_ok(tern_swa_swap(ema));
            assert_values(h, 4, 4);
            tern_swa_free(ema);
            tern_nn_free(m);
        }
}

typedef struct batches {
    tern_tensor *x;
    int64_t at;
} batches;

static tern_tensor *next_batch(void *user)
{
    batches *b = user;
    int64_t at = b->at;
    b->at += 4;
    return at < tern_size(b->x, 0) ? tern_narrow(b->x, 0, at, 4) : NULL;
}

/* The mean over batches of each's mean and unbiased variance. */
static void running_statistics_are_made_anew(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m =
            tern_nn_to(tern_nn_sequential(tern_nn_batch_norm1d(2, NULL), tern_nn_relu()), device);
        batches b = {.x = test_uniform(device, TERN_F32, TERN_SHAPE(12, 2), -1, 3, 1)};
        tern_nn_forward(m, b.x);
        tern_nn_eval(m);
        assert_ok(tern_swa_update_bn(m, next_batch, &b));
        tern_tensor *each = tern_view(b.x, TERN_SHAPE(3, 4, 2));
        tern_tensor *mean = tern_mean_dim(each, TERN_DIMS(0, 1), false);
        tern_tensor *var =
            tern_mean_dim(tern_var_dim(each, TERN_DIMS(1), 1, false), TERN_DIMS(0), false);
        assert_close(tern_nn_buffer(m, "0.running_mean"), mean, .abs = 1e-6);
        assert_close(tern_nn_buffer(m, "0.running_var"), var, .abs = 1e-6);
        assert_values(tern_nn_buffer(m, "0.num_batches_tracked"), 3);
        assert_false(tern_nn_is_training(m));
        tern_nn_forward(tern_nn_train(m, true), b.x); /* by its own momentum again */
        mean = tern_lerp_scalar(mean, tern_mean_dim(b.x, TERN_DIMS(0), false), 0.1);
        assert_close(tern_nn_buffer(m, "0.running_mean"), mean, .abs = 1e-6);
        assert_int_equal(tern_swa_update_bn(m, NULL, NULL), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "next");
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(averages_follow_the_parameters),
    TEST(running_statistics_are_made_anew),
};
TEST_MAIN(tests)
