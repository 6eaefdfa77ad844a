/* test_soak.c -- twenty thousand training steps: memory stays flat, the loss
 * falls, nothing drifts. */
#include "support.h"

enum { STEPS = 20000, WARM = 100 };

static void memory_is_flat_over_a_long_training(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_manual_seed(1);
        tern_linear_options options = {.device = device};
        tern_module *model = tern_nn_sequential(tern_nn_linear(8, 16, &options), tern_nn_gelu(NULL),
                                                tern_nn_linear(16, 1, &options));
        tern_optimizer *optimizer = tern_optim_adamw(model, 1e-3, NULL);
        tern_memory_stats warm = {0}, end = {0};
        int64_t live = 0;
        double first = 0, last = 0;
        for (int step = 0; step < STEPS; step++) {
            TERN_SCOPE {
                tern_tensor *x = tern_randn(TERN_SHAPE(32, 8), TERN_F32, device);
                tern_tensor *y = tern_sum_dim(x, TERN_DIMS(1), true);
                tern_optim_zero_grad(optimizer);
                tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), y, NULL);
                assert_ok(tern_backward(loss));
                assert_ok(tern_optim_step(optimizer));
                if (step % WARM == 0)
                    last = tern_item(loss);
            }
            if (step == WARM) {
                first = last;
                live = tern_live_tensors();
                assert_ok(tern_memory_get_stats(device, &warm));
            }
        }
        assert_ok(tern_memory_get_stats(device, &end));
        assert_int_equal(end.allocated, warm.allocated);
        assert_int_equal(end.reserved, warm.reserved);
        assert_int_equal(end.driver_calls, warm.driver_calls);
        assert_int_equal(tern_live_tensors(), live);
        if (!(last < 0.05 * first))
            fail_msg("the loss went from %g to %g", first, last);
        tern_optim_free(optimizer);
        tern_nn_free(model);
    }
}

static const struct CMUnitTest tests[] = {TEST(memory_is_flat_over_a_long_training)};
TEST_MAIN(tests)
