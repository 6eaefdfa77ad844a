/* test_accumulation.c -- gradients of several small batches added up: the gradient, and the step,
 * of the large one. */
#include "support.h"
#include <math.h>

enum { BATCH = 12, PARTS = 4 };

static tern_module *model(const char *device)
{
    tern_manual_seed(9);
    return tern_nn_to(
        tern_nn_sequential(tern_nn_linear(5, 8, NULL), tern_nn_tanh(), tern_nn_linear(8, 3, NULL)),
        device);
}

static tern_tensor *loss_of(tern_module *m, const char *device, int part, int parts)
{
    int64_t n = BATCH / parts;
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(BATCH, 5), -1, 1, 1);
    tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(BATCH, 3), -1, 1, 2);
    x = tern_narrow(x, 0, part * n, n);
    y = tern_narrow(y, 0, part * n, n);
    return tern_div_scalar(tern_mse_loss(tern_nn_forward(m, x), y, NULL), TERN_SCALAR(parts));
}

typedef struct pair {
    tern_module *other;
    double tolerance;
} pair;

static tern_status compare(const char *path, tern_tensor *x, void *user)
{
    const pair *p = user;
    tern_tensor *y = tern_nn_parameter(p->other, path);
    assert_close(x, y, .abs = p->tolerance, .rel = p->tolerance);
    if (tern_grad(x))
        assert_close(tern_grad(x), tern_grad(y), .abs = p->tolerance, .rel = p->tolerance);
    return TERN_OK;
}

static void assert_alike(tern_module *a, tern_module *b, double tolerance)
{
    pair p = {b, tolerance};
    assert_ok(tern_nn_each_parameter(a, compare, &p));
}

static void small_batches_add_up_to_the_large_one(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *large = model(device), *small = model(device);
        TERN_SCOPE
            assert_ok(tern_backward(loss_of(large, device, 0, 1)));
        for (int part = 0; part < PARTS; part++)
            TERN_SCOPE
                assert_ok(tern_backward(loss_of(small, device, part, PARTS)));
        TERN_SCOPE {
            assert_non_null(tern_grad(tern_nn_parameter(small, "0.weight")));
            assert_alike(large, small, 1e-6);
        }
        tern_nn_free(large);
        tern_nn_free(small);
    }
}

/* Mixed precision, accumulation and clipping in one step, in the order PyTorch's examples have: the
 * gradients are unscaled once, when all are there, and clipped before the step. */
static double step(tern_module *m, tern_optimizer *optimizer, tern_scaler *scaler,
                   const char *device, tern_dtype half, int parts)
{
    for (int part = 0; part < parts; part++)
        TERN_SCOPE {
            tern_tensor *loss = NULL;
            TERN_AUTOCAST_MODE(device, half, half != TERN_F32)
            loss = loss_of(m, device, part, parts);
            assert_ok(tern_backward(tern_amp_scale(scaler, loss)));
        }
    assert_ok(tern_amp_unscale_(scaler, optimizer));
    double norm = tern_nn_clip_grad_norm_(m, 0.05);
    assert_ok(tern_amp_step(scaler, optimizer));
    assert_ok(tern_amp_update(scaler));
    assert_ok(tern_optim_zero_grad(optimizer));
    return norm;
}

static void a_scaled_and_clipped_step_is_that_of_the_large_batch(void **state)
{
    (void)state;
    static const struct {
        tern_dtype half;
        double tolerance;
    } cases[] = {{TERN_F32, 1e-6}, {TERN_F16, 2e-3}};
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            tern_module *m[2] = {model(device), model(device)};
            double norm[2];
            for (int k = 0; k < 2; k++) {
                tern_optimizer *optimizer =
                    tern_optim_sgd(m[k], 0.5, &(tern_sgd_options){.momentum = 0.9});
                tern_scaler *scaler =
                    tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 256});
                for (int n = 0; n < 2; n++)
                    norm[k] = step(m[k], optimizer, scaler, device, cases[i].half, k ? PARTS : 1);
                assert_true(tern_amp_get_scale(scaler) == 256);
                tern_amp_free(scaler);
                tern_optim_free(optimizer);
            }
            assert_true(norm[0] > 0.05);
            assert_true(fabs(norm[0] - norm[1]) < cases[i].tolerance);
            TERN_SCOPE
                assert_alike(m[0], m[1], cases[i].tolerance);
            tern_nn_free(m[0]);
            tern_nn_free(m[1]);
        }
    }
}

/* ---- a leaf that is used several times ------------------------------------------------------- */

static uint64_t allocations(const char *device)
{
    tern_memory_stats stats = {0};
    assert_ok(tern_memory_get_stats(device, &stats));
    return stats.allocations;
}

/* Of the sum of i w, for i from 1 to uses. */
static uint64_t allocations_of_backward(const char *device, int uses)
{
    uint64_t taken = 0;
    TERN_SCOPE {
        tern_tensor *w = tern_ones(TERN_SHAPE(40), TERN_F32, device), *sum = NULL;
        tern_requires_grad_(w, true);
        for (int i = 1; i <= uses; i++) {
            tern_tensor *x = tern_full(TERN_SHAPE(40), TERN_SCALAR(i), TERN_F32, device);
            tern_tensor *part = tern_mul(w, x);
            sum = sum ? tern_add(sum, part) : part;
        }
        sum = tern_sum(sum);
        const uint64_t before = allocations(device);
        assert_ok(tern_backward(sum));
        taken = allocations(device) - before;
        tern_tensor *want =
            tern_full(TERN_SHAPE(40), TERN_SCALAR(uses * (uses + 1) / 2), TERN_F32, device);
        assert_close(tern_grad(w), want, .abs = 0);
    }
    return taken;
}

static void a_gradient_that_arrives_again_is_added_where_the_first_lies(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        allocations_of_backward(device, 2);
        const uint64_t five = allocations_of_backward(device, 5);
        assert_int_equal(allocations_of_backward(device, 9) - five, 4); /* a gradient each */
    }
}

static tern_tensor *keep_it(tern_tensor *grad, void *user)
{
    *(tern_tensor **)user = tern_keep(grad);
    return NULL;
}

/* The gradient of z is w's own, as long as it is the only one. */
static void a_gradient_that_somebody_keeps_stays_as_it_was(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *w = tern_ones(TERN_SHAPE(6), TERN_F32, device), *kept = NULL;
        tern_requires_grad_(w, true);
        tern_tensor *early = tern_mul_scalar(w, TERN_SCALAR(5));
        tern_tensor *z = tern_view(w, TERN_SHAPE(6));
        tern_tensor *late = tern_mul_scalar(z, TERN_SCALAR(3));
        assert_true(tern_register_hook(z, keep_it, &kept) > 0);
        assert_ok(tern_backward(tern_sum(tern_add(early, late))));
        assert_close(kept, tern_full(TERN_SHAPE(6), TERN_SCALAR(3), TERN_F32, device), .abs = 0);
        assert_close(tern_grad(w), tern_full(TERN_SHAPE(6), TERN_SCALAR(8), TERN_F32, device),
                     .abs = 0);
        tern_release(kept);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_gradient_that_arrives_again_is_added_where_the_first_lies),
    TEST(a_gradient_that_somebody_keeps_stays_as_it_was),
    TEST(small_batches_add_up_to_the_large_one),
    TEST(a_scaled_and_clipped_step_is_that_of_the_large_batch),
};
TEST_MAIN(tests)
