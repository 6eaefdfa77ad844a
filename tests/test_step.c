/* test_step.c -- what a small training step launches, and the shortcuts that keep it small: they
 * give what the long way gives. */
#include "support.h"

static tern_tensor *leaf(const char *device, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, TERN_F32, shape, -1, 1, seed), true);
}

static void a_step_of_a_linear_layer_is_four_launches(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *model = tern_nn_to(tern_nn_linear(10, 1, NULL), device);
        tern_optimizer *o = tern_optim_sgd(model, 0.01, NULL);
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(100, 10), -1, 1, 1);
        tern_tensor *y = test_uniform(device, TERN_F32, TERN_SHAPE(100, 1), -1, 1, 2);
        for (int t = 0; t < 3; t++)
            TERN_SCOPE {
                uint64_t before = launches(device);
                assert_ok(tern_optim_zero_grad(o));
                tern_tensor *loss = tern_mse_loss(tern_nn_forward(model, x), y, NULL);
                assert_ok(tern_backward(loss));
                assert_ok(tern_optim_step(o));
                /* x W^T + b; the loss and its gradient; dW and db; all parameters */
                if (t > 0)
                    assert_int_equal(launches(device) - before, 4);
            }
        tern_optim_free(o);
        tern_nn_free(model);
    }
}

static tern_tensor *write_into(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_mul_scalar_(grad, TERN_SCALAR(3)) ? NULL : grad;
}

static tern_tensor *remember(tern_tensor *grad, void *user)
{
    *(tern_tensor **)user = tern_keep(grad);
    return NULL;
}

/* Every backward pass gets the same memory for the gradient that it begins with; not after a hook had it. */
static void who_sees_the_first_gradient_owns_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2), *kept = NULL;
        tern_requires_grad_(x, true);
        const struct {
            tern_grad_hook hook;
            double factor;
        } turns[] = {{NULL, 1}, {write_into, 3}, {NULL, 1}, {remember, 1}, {NULL, 1}};
        for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
            tern_tensor *loss = tern_mse_loss(x, tern_zeros_like(x), NULL);
            if (turns[i].hook)
                tern_register_hook(loss, turns[i].hook, &kept);
            assert_ok(tern_set_grad(x, NULL));
            assert_ok(tern_backward(loss));
            assert_values(tern_grad(x), turns[i].factor, 2 * turns[i].factor);
            if (kept)
                assert_non_null(tern_mul_scalar_(kept, TERN_SCALAR(5)));
        }
        tern_tensor *first = tern_sum(x), *second = tern_sum(x);
        assert_ok(tern_retain_grad(first));
        assert_ok(tern_backward(first));
        assert_non_null(tern_mul_scalar_(tern_grad(first), TERN_SCALAR(7)));
        assert_ok(tern_retain_grad(second));
        assert_ok(tern_backward(second));
        assert_values(tern_grad(first), 7);
        assert_values(tern_grad(second), 1);
        assert_values(kept, 25); /* after two turns */
        tern_release(kept);
    }
}

static void a_loss_of_one_launch_goes_back_as_often_as_it_is_asked(void **state)
{
    (void)state;
    tern_backward_options retain = {.retain_graph = true};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = leaf(device, TERN_SHAPE(3, 5), 3), *y = leaf(device, TERN_SHAPE(3, 5), 4);
        tern_tensor *difference = tern_sub(tern_detach(x), tern_detach(y));
        tern_tensor *dx = tern_mul_scalar(difference, TERN_SCALAR(2.0));
        tern_loss_options sum = {.reduction = TERN_REDUCTION_SUM};
        tern_tensor *loss = tern_mse_loss(x, y, &sum);
        assert_ok(tern_backward_with(loss, &retain));
        assert_same(tern_grad(x), dx);
        assert_same(tern_grad(y), tern_neg(dx));
        assert_non_null(tern_zero_(tern_grad(x))); /* is not what the graph keeps */
        assert_ok(tern_backward(loss));
        assert_same(tern_grad(x), dx);
        assert_same(tern_grad(y), tern_mul_scalar(dx, TERN_SCALAR(-2.0)));
        /* with a gradient that is not one */
        assert_ok(tern_set_grad(x, NULL));
        assert_ok(tern_backward(tern_mul_scalar(tern_mse_loss(x, y, &sum), TERN_SCALAR(4.0))));
        assert_same(tern_grad(x), tern_mul_scalar(dx, TERN_SCALAR(4.0)));
        /* what went in may not change before the way back */
        loss = tern_mse_loss(tern_mul_scalar(x, TERN_SCALAR(1)), y, &sum);
        TERN_NO_GRAD
            assert_non_null(tern_zero_(y));
        assert_int_equal(tern_backward(loss), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "modified by an inplace operation");
    }
}

/* Small whole numbers, which every order adds up alike. */
static tern_tensor *digits(const char *device, tern_dtype dtype, tern_shape shape)
{
    double values[1024];
    for (int i = 0; i < 1024; i++)
        values[i] = i * 5 % 7 - 3;
    return test_tensor(device, dtype, shape, values);
}

static void gradients_of_a_small_layer_in_one_launch(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, in, out;
    } sizes[] = {{1, 1, 1}, {2, 300, 3}, {100, 10, 1}, {63, 4, 8}, {3, 256, 5}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TERN_SCOPE {
            tern_dtype dtype = i == 1 ? TERN_BF16 : TERN_F32;
            tern_shape of_x = TERN_SHAPE(sizes[i].rows, sizes[i].in);
            tern_shape of_y = TERN_SHAPE(sizes[i].rows, sizes[i].out);
            tern_shape of_w = TERN_SHAPE(sizes[i].out, sizes[i].in);
            tern_tensor *x = digits(device, dtype, of_x), *dy = digits(device, dtype, of_y);
            tern_tensor *w = tern_requires_grad_(tern_zeros(of_w, dtype, device), true);
            tern_tensor *b =
                tern_requires_grad_(tern_zeros(TERN_SHAPE(sizes[i].out), dtype, device), true);
            tern_tensor *y = tern_linear(x, w, b);
            uint64_t before = launches(device);
            assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
            assert_int_equal(launches(device), before + 1);
            assert_same(tern_grad(w), tern_matmul(tern_transpose(dy, 0, 1), x));
            assert_same(tern_grad(b), tern_sum_dim(dy, TERN_DIMS(0), false));
        }
}

static const struct CMUnitTest tests[] = {
    TEST(a_step_of_a_linear_layer_is_four_launches),
    TEST(who_sees_the_first_gradient_owns_it),
    TEST(a_loss_of_one_launch_goes_back_as_often_as_it_is_asked),
    TEST(gradients_of_a_small_layer_in_one_launch),
};
TEST_MAIN(tests)
