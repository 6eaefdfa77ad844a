/* test_given_gradients.c -- gradients that come from the user: to backward, from hooks, from own
 * functions, and to leaves whose data is another by now. */
#include "support.h"

static tern_tensor *leaf(const char *device)
{
    tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 2, 3, 4);
    return tern_requires_grad_(x, true);
}

static void a_gradient_is_cast_to_the_type_of_its_tensor(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F16, TERN_BF16, TERN_F64, TERN_I32, TERN_U8};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        TERN_SCOPE {
            tern_tensor *x = leaf(device), *y = tern_mul_scalar(x, TERN_SCALAR(2)), *dx;
            tern_dtype type = types[i];
            if (type == TERN_F64 && !tern_zeros(TERN_SHAPE(1), TERN_F64, device)) {
                tern_clear_error();
                type = TERN_F16;
            }
            tern_tensor *dy = TENSOR(device, type, TERN_SHAPE(4), 1, 2, 3, 4);
            assert_ok(tern_backward_with(
                y, &(tern_backward_options){.gradient = dy, .retain_graph = true}));
            assert_int_equal(tern_dtype_of(tern_grad(x)), TERN_F32);
            assert_values(tern_grad(x), 2, 4, 6, 8);
            assert_ok(tern_autograd_grad(&y, 1, &x, 1, &dx,
                                         &(tern_autograd_grad_options){.gradients = &dy}));
            assert_int_equal(tern_dtype_of(dx), TERN_F32);
            assert_values(dx, 2, 4, 6, 8);
        }
}

static tern_tensor *as_half(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_to_dtype(grad, TERN_F16);
}

static void a_hook_keeps_the_type(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = leaf(device), *y = tern_mul_scalar(x, TERN_SCALAR(2));
        assert_true(tern_register_hook(x, as_half, NULL) > 0);
        assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "a hook returned a gradient of type float16 for one of "
                                     "float32");
        assert_null(tern_grad(x));
    }
}

/* An own function whose gradient is of another type. */
static tern_status twice(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    (void)f;
    (void)n;
    (void)k;
    out[0] = tern_mul_scalar(in[0], TERN_SCALAR(2));
    return tern_last_status();
}

static tern_status twice_as_half(tern_function *f, tern_tensor *const *dout, int k,
                                 tern_tensor **din, int n)
{
    TERN_NO_GRAD
        if (twice(f, dout, k, din, n) == TERN_OK)
            din[0] = tern_to_dtype(din[0], TERN_F16);
    return tern_last_status();
}

static void an_own_functions_gradient_is_cast(void **state)
{
    (void)state;
    static const tern_function_type type = {
        .name = "Twice", .forward = twice, .backward = twice_as_half};
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = leaf(device), *y;
        assert_ok(tern_function_apply(&type, NULL, &x, 1, &y, 1));
        assert_ok(tern_backward(tern_sum(y)));
        assert_int_equal(tern_dtype_of(tern_grad(x)), TERN_F32);
        assert_values(tern_grad(x), 2, 2, 2, 2);
    }
}

static void a_leaf_of_other_data_gets_no_old_gradient(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = leaf(device), *y = tern_mul_scalar(x, TERN_SCALAR(2));
        tern_set_data_(x, tern_ones(TERN_SHAPE(2), TERN_F32, device));
        assert_int_equal(tern_backward(tern_sum(y)), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "which was given other data since");
        assert_null(tern_grad(x));
        x = leaf(device);
        y = tern_mul_scalar(x, TERN_SCALAR(2));
        tern_set_data_(x, tern_ones(TERN_SHAPE(4), TERN_F16, device));
        assert_ok(tern_backward(tern_sum(y)));
        assert_int_equal(tern_dtype_of(tern_grad(x)), TERN_F16);
        assert_values(tern_grad(x), 2, 2, 2, 2);
    }
}

static void a_module_that_changed_its_type_steps(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(3, 2, &(tern_linear_options){.device = device});
        tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
        tern_tensor *y = tern_nn_forward(m, tern_ones(TERN_SHAPE(5, 3), TERN_F32, device));
        tern_nn_to_dtype(m, TERN_BF16);
        /* what backward saved is gone; in any case nothing is read as it is not */
        tern_backward(tern_sum(y));
        tern_clear_error();
        tern_optim_step(o);
        tern_clear_error();
        tern_optim_free(o);
        tern_nn_free(m);
    }
}

static void a_tensor_is_not_its_own_gradient(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu");
        assert_int_equal(tern_set_grad(x, x), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "can't assign a tensor as its own grad");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_gradient_is_cast_to_the_type_of_its_tensor),
    TEST(a_hook_keeps_the_type),
    TEST(an_own_functions_gradient_is_cast),
    TEST(a_leaf_of_other_data_gets_no_old_gradient),
    TEST(a_module_that_changed_its_type_steps),
    TEST(a_tensor_is_not_its_own_gradient),
};
TEST_MAIN(tests)
