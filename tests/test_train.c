/* test_train.c -- training from a seed: it converges, and goes the same way on every device. */
#include "support.h"
#include <math.h>

enum { STEPS = 120 };

typedef tern_optimizer *(*make_optimizer)(tern_module *model);

static tern_optimizer *sgd(tern_module *model)
{
    return tern_optim_sgd(model, 0.1, &(tern_sgd_options){.momentum = 0.8});
}

static tern_optimizer *adamw(tern_module *model)
{
    return tern_optim_adamw(model, 0.1, &(tern_adamw_options){.weight_decay = TERN_ZERO});
}

/* Fit y = x w + 0.5 with w = (1, 2, 3, 4) from noise-free points; the losses into losses[STEPS]. */
static void train(const char *device, make_optimizer make, double *losses)
{
    tern_manual_seed(11);
    tern_module *model = tern_nn_sequential(tern_nn_linear(4, 1, NULL), tern_nn_identity());
    tern_nn_to(model, device);
    tern_module *criterion = tern_nn_mse_loss(NULL);
    tern_optimizer *optimizer = make(model);
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(64, 4), -1, 1, 5);
        tern_tensor *w = TENSOR(device, TERN_F32, TERN_SHAPE(4, 1), 1, 2, 3, 4);
        tern_tensor *y = tern_add_scalar(tern_matmul(x, w), TERN_SCALAR(0.5));
        for (int t = 0; t < STEPS; t++)
            TERN_SCOPE {
                assert_ok(tern_optim_zero_grad(optimizer));
                tern_tensor *loss = tern_nn_loss(criterion, tern_nn_forward(model, x), y);
                assert_ok(tern_backward(loss));
                assert_ok(tern_optim_step(optimizer));
                losses[t] = tern_item(loss);
            }
        assert_values_close(tern_nn_parameter(model, "0.weight"), 2e-2, 1, 2, 3, 4);
        assert_values_close(tern_nn_parameter(model, "0.bias"), 2e-2, 0.5);
    }
    tern_optim_free(optimizer);
    tern_nn_free(criterion);
    tern_nn_free(model);
}

static void compare(make_optimizer make)
{
    double cpu[STEPS], other[STEPS];
    train("cpu", make, cpu);
    assert_true(cpu[0] > 1 && cpu[STEPS - 1] < 1e-3 * cpu[0]);
    FOR_EACH_DEVICE(device)
    {
        train(device, make, other);
        for (int t = 0; t < STEPS; t++)
            if (fabs(other[t] - cpu[t]) > 1e-4 * cpu[t] + 1e-6)
                fail_msg("loss %d on %s is %.9g, on cpu %.9g", t, device, other[t], cpu[t]);
    }
}

static void regression_with_sgd_converges_alike_on_every_device(void **state)
{
    (void)state;
    compare(sgd);
}

static void regression_with_adamw_converges_alike_on_every_device(void **state)
{
    (void)state;
    compare(adamw);
}

/* Nothing is left behind in a loop of scopes. */
static void steps_leave_no_tensors_behind(void **state)
{
    (void)state;
    double losses[STEPS];
    train("cpu", adamw, losses);
    int64_t before = tern_live_tensors();
    train("cpu", adamw, losses);
    assert_int_equal(tern_live_tensors(), before);
}

static const struct CMUnitTest tests[] = {
    TEST(regression_with_sgd_converges_alike_on_every_device),
    TEST(regression_with_adamw_converges_alike_on_every_device),
    TEST(steps_leave_no_tensors_behind),
};
TEST_MAIN(tests)
