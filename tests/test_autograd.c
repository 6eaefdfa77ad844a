/* test_autograd.c -- recording and going back: what accumulates, what is
 * freed, what is refused. */
#include "stack.h"
#include "support.h"
#include <math.h>
#include <pthread.h>

static tern_tensor *leaf(const char *device, double a, double b)
{
    return tern_requires_grad_(TENSOR(device, TERN_F32, TERN_SHAPE(2), a, b), true);
}

static tern_status backward(tern_tensor *y, bool retain)
{
    tern_tensor *ones = tern_ones_like(y);
    return tern_backward_with(y,
                              &(tern_backward_options){.gradient = ones, .retain_graph = retain});
}

static void gradients_accumulate_over_calls_and_uses(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 2, 3);
        assert_null(tern_grad(x));
        assert_ok(backward(tern_mul(x, x), false));
        assert_values(tern_grad(x), 4, 6);
        assert_ok(backward(tern_add(x, tern_mul(x, x)), false));
        assert_values(tern_grad(x), 9, 13);
        assert_ok(tern_set_grad(x, NULL));
        assert_null(tern_grad(x));
    }
}

static void a_gradient_somebody_holds_is_not_changed(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 2, 3);
        assert_ok(backward(tern_square(x), false));
        tern_tensor *first = tern_keep(tern_grad(x));
        assert_ok(backward(tern_square(x), false));
        assert_values(first, 4, 6);
        assert_values(tern_grad(x), 8, 12);
        tern_release(first);
    }
}

static void leaves_answer_questions(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2), *y = tern_exp(x), *c = tern_exp(tern_detach(x));
        assert_true(tern_is_leaf(x) && tern_is_leaf(c) && !tern_is_leaf(y));
        assert_true(tern_requires_grad(x) && tern_requires_grad(y) && !tern_requires_grad(c));
        assert_null(tern_grad_fn(x));
        assert_string_equal(tern_grad_fn(y), "exp");
        assert_null(tern_requires_grad_(y, false));
        assert_error(TERN_ERR_STATE, "you can only change requires_grad flags of leaf variables");
        assert_null(tern_requires_grad_(tern_ones(TERN_SHAPE(1), TERN_I64, NULL), true));
        assert_error(TERN_ERR_DTYPE, "Only Tensors of floating point dtype can require gradients");
        assert_null(tern_grad(NULL));
        assert_no_error();
    }
}

static void a_graph_is_walked_once_unless_retained(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2), *y = tern_square(x);
        assert_ok(backward(y, true));
        assert_ok(backward(y, false));
        assert_values(tern_grad(x), 4, 8);
        assert_int_equal(backward(y, false), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "Trying to backward through the graph a second time");
        assert_values(tern_grad(x), 4, 8);
    }
}

static void no_grad_records_nothing(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2);
        TERN_NO_GRAD {
            tern_tensor *y = tern_exp(x);
            assert_false(tern_requires_grad(y));
            TERN_ENABLE_GRAD
            assert_true(tern_requires_grad(tern_exp(x)));
            assert_ptr_equal(tern_add_scalar_(x, TERN_SCALAR(1)), x); /* a leaf, but not recorded */
        }
        assert_values(x, 2, 3);
        assert_true(tern_is_leaf(x));
    }
}

static void a_changed_saved_tensor_is_an_error(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2);
        tern_tensor *y = tern_exp(x); /* saves its result */
        tern_mul_scalar_(tern_detach(y), TERN_SCALAR(2));
        assert_int_equal(backward(y, false), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE,
                     "one of the variables needed for gradient computation has been "
                     "modified by an inplace operation: [float32 [2]], which is "
                     "output 0 of exp, is at version 1; expected version 0");
        tern_tensor *w = tern_ones(TERN_SHAPE(2), TERN_F32, device), *z = tern_mul(x, w);
        tern_zero_(w);
        assert_int_equal(backward(z, false), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "is at version 1; expected version 0");
        assert_null(tern_grad(x));
    }
}

static void writes_in_place_are_differentiable(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 2, 3), *y = leaf(device, 5, 7);
        tern_tensor *a = tern_mul_scalar(x, TERN_SCALAR(1));
        tern_mul_(a, y); /* needs the old a for y's gradient */
        tern_mul_(a, a); /* (x y)^2, with a on both sides */
        assert_values(a, 100, 441);
        assert_ok(backward(a, false));
        assert_values(tern_grad(x), 100, 294); /* 2 x y^2 */
        assert_values(tern_grad(y), 40, 126);  /* 2 x^2 y */
    }
}

static void writing_a_leaf_is_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2);
        assert_null(tern_add_scalar_(x, TERN_SCALAR(1)));
        assert_error(TERN_ERR_STATE, "a leaf Variable that requires grad is being used in an "
                                     "in-place operation");
        assert_values(x, 1, 2);
    }
}

static void roots_that_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2), *y = tern_exp(x);
        tern_tensor *three = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        assert_int_equal(tern_backward(y), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "grad can be implicitly created only for scalar outputs");
        assert_int_equal(tern_backward(three), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "element 0 of tensors does not require grad and does not have "
                                     "a grad_fn");
        assert_int_equal(tern_backward_with(y, &(tern_backward_options){.gradient = three}),
                         TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "Mismatch in shape: grad_output[0] has a shape of [3] and "
                                     "output[0] has a shape of [2]");
        assert_int_equal(tern_backward(NULL), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "root is NULL");
        assert_ok(backward(y, false)); /* none of it spoiled the graph */
    }
}

static void set_grad_checks_its_argument(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2);
        assert_int_equal(tern_set_grad(x, tern_ones(TERN_SHAPE(3), TERN_F32, NULL)),
                         TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "assigned grad has data of a different size");
        assert_int_equal(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F64, NULL)),
                         TERN_ERR_DTYPE);
        assert_error(TERN_ERR_DTYPE, "assigned grad has data of a different type");
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(2), TERN_F32, NULL)));
        assert_values(tern_grad(x), 1, 1);
    }
}

/* ---- hooks ------------------------------------------------------------------------------- */

static int order[8], calls;

static tern_tensor *note(tern_tensor *grad, void *user)
{
    (void)grad;
    order[calls++] = *(int *)user;
    return NULL;
}

static tern_tensor *triple(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_mul_scalar(grad, TERN_SCALAR(3));
}

static tern_tensor *wrong_shape(tern_tensor *grad, void *user)
{
    (void)user;
    return tern_new_ones(grad, TERN_SHAPE(5));
}

static void hooks_replace_run_in_order_and_can_be_removed(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        int one = 1, two = 2, three = 3;
        tern_tensor *x = leaf(device, 1, 2), *y = tern_square(x);
        calls = 0;
        assert_true(tern_register_hook(y, note, &one) > 0);
        int gone = tern_register_hook(y, note, &two);
        assert_true(tern_register_hook(y, triple, NULL) > 0);
        assert_true(tern_register_hook(x, note, &three) > 0);
        assert_true(tern_register_hook(x, triple, NULL) > 0);
        assert_ok(tern_remove_hook(y, gone));
        assert_int_equal(tern_remove_hook(y, gone), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "has no hook");
        assert_ok(backward(y, false));
        assert_values(tern_grad(x), 18, 36);
        assert_int_equal(calls, 2);
        assert_int_equal(order[0], 1);
        assert_int_equal(order[1], 3);
    }
}

static void bad_hooks_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2), *y = tern_square(x);
        assert_int_equal(tern_register_hook(tern_detach(x), triple, NULL), 0);
        assert_error(TERN_ERR_STATE,
                     "cannot register a hook on a tensor that doesn't require grad");
        assert_int_equal(tern_register_hook(x, NULL, NULL), 0);
        assert_error(TERN_ERR_ARGUMENT, "hook is NULL");
        tern_register_hook(y, wrong_shape, NULL);
        assert_int_equal(backward(y, false), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "a hook returned a gradient of shape [5]");
    }
}

static void inner_gradients_are_kept_on_request(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2), *y = tern_square(x), *z = tern_square(y);
        assert_ok(tern_retain_grad(y));
        assert_ok(backward(z, false));
        assert_values(tern_grad(y), 2, 8);
        assert_values(tern_grad(x), 4, 32);
        assert_null(tern_grad(z));
        y = tern_square(x);
        assert_ok(tern_retain_grad(y));
        z = tern_square(y);
        assert_ok(backward(z, true));
        tern_tensor *first = tern_keep(tern_grad(y));
        assert_ok(backward(z, false));
        assert_values(tern_grad(y), 4, 16); /* of both backward passes */
        assert_values(first, 2, 8);
        tern_release(first);
        assert_int_equal(tern_retain_grad(tern_detach(x)), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "can't retain_grad on Tensor that has requires_grad=False");
    }
}

static void a_retained_grad_of_a_released_tensor_goes_nowhere(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 1, 2), *z = NULL;
        TERN_SCOPE {
            tern_tensor *y = tern_square(x);
            assert_ok(tern_retain_grad(y));
            z = tern_escape(tern_square(y));
        }
        assert_ok(backward(z, false));
        assert_values(tern_grad(x), 4, 32);
    }
}

/* ---- autograd.grad ----------------------------------------------------------------------- */

static void grad_leaves_the_leaves_alone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2), *unused = leaf(device, 1, 1);
        tern_tensor *y = tern_square(x), *z = tern_mul(y, x), *ones = tern_ones_like(x);
        tern_tensor *in[3] = {x, y, unused}, *grads[3];
        assert_ok(tern_autograd_grad(&z, 1, in, 3, grads,
                                     &(tern_autograd_grad_options){.gradients = &ones,
                                                                   .allow_unused = true,
                                                                   .retain_graph = true}));
        assert_values(grads[0], 3, 12);
        assert_values(grads[1], 1, 2);
        assert_null(grads[2]);
        assert_null(tern_grad(x));
        assert_int_equal(tern_autograd_grad(&z, 1, in, 3, grads,
                                            &(tern_autograd_grad_options){.gradients = &ones}),
                         TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "appears to not have been used in the graph");
    }
}

static void grad_of_several_outputs_is_of_their_sum(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(device, 1, 2), *ones = tern_ones_like(x);
        tern_tensor *outputs[2] = {tern_square(x), tern_mul_scalar(x, TERN_SCALAR(5))};
        tern_tensor *gradients[2] = {ones, ones}, *grad;
        assert_ok(tern_autograd_grad(outputs, 2, &x, 1, &grad,
                                     &(tern_autograd_grad_options){.gradients = gradients}));
        assert_values(grad, 7, 9);
    }
}

typedef struct derivative {
    const char *name;
    tern_tensor *(*function)(tern_tensor *);
    double x, values[4];
} derivative;

/* Third derivatives at a point, from calculus. */
static tern_tensor *fifth_power(tern_tensor *x)
{
    return tern_mul(tern_square(tern_square(x)), x);
}
static const derivative derivatives[] = {
    {"exp",
     tern_exp,
     0.5,
     {1.6487212707001282, 1.6487212707001282, 1.6487212707001282, 1.6487212707001282}},
    {"sin",
     tern_sin,
     0.5,
     {0.479425538604203, 0.8775825618903728, -0.479425538604203, -0.8775825618903728}},
    {"log", tern_log, 2, {0.6931471805599453, 0.5, -0.25, 0.25}},
    {"tanh", tern_tanh, 0, {0, 1, 0, -2}},
    {"x^5", fifth_power, 2, {32, 80, 160, 240}},
    {"1/x", tern_reciprocal, 2, {0.5, -0.25, 0.25, -0.375}},
    {"sqrt", tern_sqrt, 4, {2, 0.25, -0.03125, 0.01171875}},
};

static void create_graph_gives_third_derivatives(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof derivatives / sizeof *derivatives; i++)
        TERN_SCOPE {
            const derivative *d = &derivatives[i];
            tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE_SCALAR, &d->x);
            tern_tensor *y = d->function(tern_requires_grad_(x, true));
            for (int n = 0; n < 4; n++) {
                if (fabs(tern_item(y) - d->values[n]) > 2e-5 * (1 + fabs(d->values[n])))
                    fail_msg("derivative %d of %s: %.9g, expected %.9g", n, d->name, tern_item(y),
                             d->values[n]);
                tern_tensor *next;
                assert_ok(tern_autograd_grad(&y, 1, &x, 1, &next,
                                             &(tern_autograd_grad_options){.create_graph = true}));
                y = next;
            }
        }
}

static void graphs_do_not_keep_themselves_alive(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t before = tern_live_tensors();
        TERN_SCOPE {
            tern_tensor *x = leaf(device, 1, 2), *y = tern_exp(tern_tanh(tern_square(x)));
            assert_ok(backward(tern_mul(y, y), true));
            tern_tensor *grad, *ones = tern_ones_like(y);
            assert_ok(tern_autograd_grad(
                &y, 1, &x, 1, &grad,
                &(tern_autograd_grad_options){.gradients = &ones, .create_graph = true}));
            tern_add_(tern_mul_scalar(y, TERN_SCALAR(1)), y);
        }
        assert_int_equal(tern_live_tensors(), before);
    }
}

/* ---- depth ----------------------------------------------------------------------------------- */

static void *long_chain(void *ok)
{
    int64_t before = tern_live_tensors();
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE_SCALAR, TERN_F32, "cpu"), true);
        tern_tensor *y = tern_keep(x);
        for (int i = 0; i < 1000000; i++)
            TERN_SCOPE {
                tern_tensor *next = tern_keep(tern_add_scalar(y, TERN_SCALAR(1)));
                tern_release(y);
                y = next;
            }
        *(bool *)ok =
            tern_item(y) == 1000001 &&
            tern_backward_with(y, &(tern_backward_options){.retain_graph = true}) == TERN_OK &&
            tern_item(tern_grad(x)) == 1;
        tern_release(y); /* and now a million nodes at once */
    }
    *(bool *)ok = *(bool *)ok && tern_live_tensors() == before;
    return NULL;
}

static void a_million_nodes_fit_a_small_stack(void **state)
{
    (void)state;
    pthread_attr_t attributes;
    pthread_t thread;
    bool ok = false;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, test_stack(64 << 10)), 0);
    assert_int_equal(pthread_create(&thread, &attributes, long_chain, &ok), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
    assert_true(ok);
}

static const struct CMUnitTest tests[] = {
    TEST(gradients_accumulate_over_calls_and_uses),
    TEST(a_gradient_somebody_holds_is_not_changed),
    TEST(leaves_answer_questions),
    TEST(a_graph_is_walked_once_unless_retained),
    TEST(no_grad_records_nothing),
    TEST(a_changed_saved_tensor_is_an_error),
    TEST(writes_in_place_are_differentiable),
    TEST(writing_a_leaf_is_refused),
    TEST(roots_that_are_refused),
    TEST(set_grad_checks_its_argument),
    TEST(hooks_replace_run_in_order_and_can_be_removed),
    TEST(bad_hooks_are_refused),
    TEST(inner_gradients_are_kept_on_request),
    TEST(a_retained_grad_of_a_released_tensor_goes_nowhere),
    TEST(grad_leaves_the_leaves_alone),
    TEST(grad_of_several_outputs_is_of_their_sum),
    TEST(create_graph_gives_third_derivatives),
    TEST(graphs_do_not_keep_themselves_alive),
    TEST(a_million_nodes_fit_a_small_stack),
};
TEST_MAIN(tests)
