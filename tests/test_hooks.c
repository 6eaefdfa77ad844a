/* test_hooks.c -- functions of the user's own with gradients, and hooks around modules. */
#include "support.h"
#include "base/memory.h"

/* ---- functions --------------------------------------------------------------------------- */

/* {x x exp(x), y}: saves an input, a result and what lies between. */
static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)n;
    (void)k;
    assert_false(tern_is_grad_enabled());
    tern_tensor *e = tern_exp(in[0]);
    out[0] = tern_mul(tern_mul(in[0], in[0]), e);
    out[1] = in[1];
    assert_ok(tern_function_save(f, in[0]));
    assert_ok(tern_function_save(f, e));
    assert_ok(tern_function_save(f, out[0]));
    return tern_last_status();
}

/* (2 x e + y) dy: with e a saved number, of which the second derivative knows nothing. */
static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    tern_tensor *x = tern_function_saved(f, 0), *e = tern_function_saved(f, 1);
    tern_tensor *slope =
        tern_add(tern_mul(tern_mul_scalar(x, TERN_SCALAR(2)), e), tern_function_saved(f, 2));
    assert_int_equal(n, 2);
    assert_int_equal(k, 2);
    ++*(int *)tern_function_data(f);
    if (tern_function_needs_grad(f, 0) && grad_out[0])
        grad_in[0] = tern_mul(grad_out[0], slope);
    grad_in[1] = grad_out[1];
    return tern_last_status();
}

static int freed;
static void note_free(void *data)
{
    freed += data != NULL;
}

static const tern_function_type square_exp = {
    .name = "SquareExp", .forward = forward, .backward = backward, .free_data = note_free};

static tern_tensor *leaf(const char *device, double a, double b)
{
    return tern_requires_grad_(TENSOR(device, TERN_F32, TERN_SHAPE(2), a, b), true);
}

static void a_function_has_the_gradient_of_its_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t before = tern_live_tensors();
        int runs = 0;
        freed = 0;
        TERN_SCOPE {
            tern_tensor *x = leaf(device, 0, 1), *y = leaf(device, 3, 4), *out[2];
            assert_ok(tern_function_apply(&square_exp, &runs, (tern_tensor *[]){x, y}, 2, out, 2));
            assert_string_equal(tern_grad_fn(out[0]), "SquareExp");
            assert_values_close(out[0], 1e-6, 0, 2.718281828);
            assert_ptr_not_equal(out[1], y);
            assert_values(out[1], 3, 4);
            assert_ok(tern_backward(tern_sum(tern_add(out[0], tern_mul(out[1], out[1])))));
            assert_values_close(tern_grad(x), 1e-6, 0, 3 * 2.718281828);
            assert_values(tern_grad(y), 6, 8);
            assert_int_equal(runs, 1);
            assert_null(tern_mul_(out[1], x));
            assert_error(TERN_ERR_STATE, "is being used in an in-place operation");
            /* Nothing is recorded where nothing asks for it. */
            tern_tensor *in[2] = {tern_detach(x), tern_detach(y)};
            assert_ok(tern_function_apply(&square_exp, &runs, in, 2, out, 2));
            assert_false(tern_requires_grad(out[0]));
            assert_int_equal(freed, 1);
        }
        assert_int_equal(freed, 2);
        assert_int_equal(tern_live_tensors(), before);
    }
}

/* In a checkpoint what the function saves is let go of too. */
static tern_status apply_it(void *data, tern_tensor *const *in, int n, tern_tensor **out, int k)
{
    tern_tensor *x[2] = {tern_mul_scalar(in[0], TERN_SCALAR(1)), in[1]};
    return tern_function_apply(&square_exp, data, x, n, out, k);
}

static void functions_run_in_checkpoints(void **state)
{
    (void)state;
    int runs = 0;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 0, 1), *y = leaf("cpu", 3, 4), *out[2];
        assert_ok(tern_checkpoint(apply_it, &runs, (tern_tensor *[]){x, y}, 2, out, 2, NULL));
        assert_ok(tern_backward(tern_sum(out[0])));
        assert_values_close(tern_grad(x), 1e-6, 0, 3 * 2.718281828);
        assert_null(tern_grad(y));
    }
}

static void saved_tensors_must_stay_as_they_were(void **state)
{
    (void)state;
    int runs = 0;
    TERN_SCOPE {
        tern_tensor *x = leaf("cpu", 0, 1), *y = leaf("cpu", 3, 4), *out[2];
        assert_ok(tern_function_apply(&square_exp, &runs, (tern_tensor *[]){x, y}, 2, out, 2));
        TERN_NO_GRAD
            tern_zero_(x);
        assert_int_equal(tern_backward(tern_sum(out[0])), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "which is input 0 of SquareExp, is at version 1");
        assert_int_equal(tern_function_apply(&square_exp, &runs, NULL, 0, out, 2),
                         TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_function_apply: in is NULL");
        assert_null(tern_function_saved(NULL, 0));
        assert_error(TERN_ERR_STATE, "this is not a backward");
    }
}

static tern_status doubled(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    (void)f, (void)n, (void)k;
    out[0] = tern_mul_scalar(in[0], TERN_SCALAR(2));
    return tern_last_status();
}
/* Its data is the shape of the gradient. */
static tern_status shaped(tern_function *f, tern_tensor *const *grad_out, int k,
                          tern_tensor **grad_in, int n)
{
    (void)grad_out, (void)k, (void)n;
    grad_in[0] = tern_ones(*(const tern_shape *)tern_function_data(f), TERN_F32, "cpu");
    return tern_last_status();
}

static void wrong_functions_are_named(void **state)
{
    (void)state;
    const tern_function_type whole = {.name = "Twice", .forward = doubled, .backward = shaped};
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2, 3), TERN_F32, "cpu"), true),
                    *out[1];
        tern_function_type part = whole;
#define IS_REFUSED(text, ...)                                                                      \
    assert_int_equal(tern_function_apply(__VA_ARGS__), TERN_ERR_ARGUMENT);                         \
    assert_error(TERN_ERR_ARGUMENT, text)
        IS_REFUSED("type is NULL", NULL, NULL, &x, 1, out, 1);
        IS_REFUSED("in is NULL", &whole, NULL, NULL, 1, out, 1);
        IS_REFUSED("out is NULL", &whole, NULL, &x, 1, NULL, 1);
        IS_REFUSED("Twice with 0 inputs and 1 results", &whole, NULL, &x, 0, out, 1);
        part.backward = NULL;
        IS_REFUSED("type->backward is NULL", &part, NULL, &x, 1, out, 1);
        part.forward = NULL;
        IS_REFUSED("type->forward is NULL", &part, NULL, &x, 1, out, 1);
        part.name = NULL;
        IS_REFUSED("type->name is NULL", &part, NULL, &x, 1, out, 1);
        const tern_shape wrong[] = {TERN_SHAPE(2), TERN_SHAPE(3), TERN_SHAPE(3, 2),
                                    TERN_SHAPE(1, 3)},
                         right[] = {TERN_SHAPE(2, 3), TERN_SHAPE(5, 2, 3)};
        for (int i = 0; i < 4; i++) {
            assert_ok(tern_function_apply(&whole, (void *)&wrong[i], &x, 1, out, 1));
            assert_int_equal(tern_backward(tern_sum(out[0])), TERN_ERR_SHAPE);
            assert_error(TERN_ERR_SHAPE, "tern_backward: Twice returned an invalid gradient at "
                                         "index 0 - got [");
        }
        for (int i = 0; i < 2; i++) {
            assert_ok(tern_function_apply(&whole, (void *)&right[i], &x, 1, out, 1));
            assert_ok(tern_backward(tern_sum(out[0])));
        }
    }
}

/* ---- hooks ------------------------------------------------------------------------------- */

static tern_module *linear(const char *device)
{
    tern_module *m = tern_nn_linear(2, 2, NULL);
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_copy_(tern_nn_parameter(m, "weight"),
                       TENSOR("cpu", TERN_F32, TERN_SHAPE(2, 2), 1, 2, 3, 4));
            tern_copy_(tern_nn_parameter(m, "bias"),
                       TENSOR("cpu", TERN_F32, TERN_SHAPE(2), 0.5, -0.5));
        }
    return tern_nn_to(m, device);
}

static tern_status add_one(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m;
    (void)n;
    ++*(int *)user;
    in[0] = tern_add_scalar(in[0], TERN_SCALAR(1));
    return TERN_OK;
}

static tern_status negate(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out, int k,
                          void *user)
{
    (void)m;
    (void)in;
    assert_true(n == 1 && k == 1);
    ++*(int *)user;
    out[0] = tern_neg(out[0]);
    return TERN_OK;
}

static tern_status refuse(tern_module *m, tern_tensor **in, int n, void *user)
{
    (void)m;
    (void)in;
    (void)n;
    (void)user;
    return TERN_ERR_UNSUPPORTED;
}

static void forward_hooks_see_and_change_what_passes(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int calls = 0;
        tern_module *m = linear(device);
        TERN_SCOPE {
            tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 1, -1);
            assert_values(tern_nn_forward(m, x), -0.5, -1.5);
            int pre = tern_nn_register_forward_pre_hook(m, add_one, &calls);
            int post = tern_nn_register_forward_hook(m, negate, &calls);
            assert_true(pre > 0 && post > pre);
            assert_values(tern_nn_forward(m, x), -2.5, -5.5);
            assert_int_equal(calls, 2);
            assert_ok(tern_nn_remove_hook(m, pre));
            assert_values(tern_nn_forward(m, x), 0.5, 1.5);
            assert_int_equal(tern_nn_remove_hook(m, pre), TERN_ERR_ARGUMENT);
            assert_error(TERN_ERR_ARGUMENT, "Linear has no hook 1");
            assert_true(tern_nn_register_forward_pre_hook(m, refuse, NULL) > 0);
            assert_null(tern_nn_forward(m, x));
            assert_int_equal(tern_last_status(), TERN_ERR_UNSUPPORTED);
            tern_clear_error();
            assert_int_equal(tern_nn_register_forward_hook(m, NULL, NULL), 0);
            assert_error(TERN_ERR_ARGUMENT, "tern_nn_register_forward_hook");
        }
        tern_nn_free(m);
    }
}

static tern_status take_away(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                             int k, void *user)
{
    (void)m;
    (void)in;
    (void)n;
    (void)k;
    (void)user;
    out[0] = NULL;
    return TERN_OK;
}

static void a_hook_that_takes_the_result_away_is_an_error(void **state)
{
    (void)state;
    tern_module *m = linear("cpu");
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 2), TERN_F32, "cpu");
        assert_true(tern_nn_register_forward_hook(m, take_away, NULL) > 0);
        assert_null(tern_nn_forward(m, x));
        assert_error(TERN_ERR_ARGUMENT, "Linear gave no tensor (output 0 of 1 is NULL)");
    }
    tern_nn_free(m);
}

typedef struct seen {
    tern_tensor *in, *out;
    int calls, pre_calls;
} seen;

static tern_status times_ten(tern_module *m, tern_tensor **grad_in, int n,
                             tern_tensor *const *grad_out, int k, void *user)
{
    seen *s = user;
    (void)m;
    assert_true(n == 1 && k == 1);
    s->calls++;
    tern_release(s->in);
    tern_release(s->out);
    s->in = tern_keep(grad_in[0]);
    s->out = tern_keep(grad_out[0]);
    if (grad_in[0])
        grad_in[0] = tern_mul_scalar(grad_in[0], TERN_SCALAR(10));
    return TERN_OK;
}

static tern_status twice(tern_module *m, tern_tensor **grad_out, int k, void *user)
{
    seen *s = user;
    (void)m;
    (void)k;
    s->pre_calls++;
    grad_out[0] = tern_mul_scalar(grad_out[0], TERN_SCALAR(2));
    return TERN_OK;
}

/* The numbers are PyTorch's, of the same layer and hook. */
static void backward_hooks_see_gradients_and_change_them(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        int64_t before = tern_live_tensors();
        seen s = {0};
        tern_module *m = linear(device);
        TERN_SCOPE {
            tern_tensor *x =
                tern_requires_grad_(TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 1, -1), true);
            tern_tensor *weights = TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 1, 2);
            int id = tern_nn_register_full_backward_hook(m, times_ten, &s);
            assert_true(id > 0);
            tern_tensor *y = tern_nn_forward(m, x);
            assert_string_equal(tern_grad_fn(y), "BackwardHookFunction");
            assert_ok(tern_backward(tern_sum(tern_mul(y, weights))));
            assert_values(s.in, 7, 10);
            assert_values(s.out, 1, 2);
            assert_values(tern_grad(x), 70, 100);
            assert_values(tern_grad(tern_nn_parameter(m, "weight")), 1, -1, 2, -2);
            /* Inputs that need no gradient. */
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, tern_detach(x)))));
            assert_int_equal(s.calls, 2);
            assert_null(s.in);
            assert_values(s.out, 1, 1);
            /* Before the module's own backward. */
            assert_ok(tern_nn_zero_grad(m));
            assert_true(tern_nn_register_full_backward_pre_hook(m, twice, &s) > 0);
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
            assert_values(s.out, 2, 2);
            assert_values(tern_grad(tern_nn_parameter(m, "weight")), 2, -2, 2, -2);
            assert_int_equal(s.pre_calls, 1);
            assert_int_equal(s.calls, 3);
            assert_ok(tern_nn_remove_hook(m, id));
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
            assert_int_equal(s.calls, 3);
            TERN_NO_GRAD
                assert_null(tern_grad_fn(tern_nn_forward(m, x)));
        }
        tern_release(s.in);
        tern_release(s.out);
        tern_nn_free(m);
        assert_int_equal(tern_live_tensors(), before);
    }
}

static tern_status note(tern_module *m, tern_tensor **grad_in, int n, tern_tensor *const *grad_out,
                        int k, void *user)
{
    int *bits = user;
    (void)m;
    for (int i = 0; i < n; i++)
        *bits |= (grad_in[i] != NULL) << i;
    for (int i = 0; i < k; i++)
        *bits |= (grad_out[i] != NULL) << (8 + i);
    return TERN_OK;
}

static void absent_inputs_and_unused_results_are_null(void **state)
{
    (void)state;
    int bits = 0;
    tern_module *m = tern_nn_lstm(2, 3, NULL);
    tern_nn_register_full_backward_hook(m, note, &bits);
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(4, 1, 2), TERN_F32, NULL), true);
        tern_tensor *out[3];
        assert_ok(tern_nn_call(m, &x, 1, out, 3));
        assert_ok(tern_backward(tern_sum(out[2])));
        assert_int_equal(bits, 1 | 4 << 8);
    }
    tern_nn_free(m);
}

static void no_failed_allocation_leaks(void **state)
{
    (void)state;
    int failures = 0;
    seen s = {0};
    tern_module *m = linear("cpu");
    tern_nn_register_full_backward_hook(m, times_ten, &s);
    for (uint64_t n = 1;; n++) {
        int64_t before = tern_live_tensors();
        TERN_SCOPE {
            tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(1, 2), TERN_F32, NULL), true);
            tern_memory_fail_at(n);
            tern_tensor *y = tern_nn_forward(m, x);
            if (y)
                tern_backward(tern_sum(y));
            tern_memory_fail_at(0);
        }
        bool failed = tern_last_status() != TERN_OK;
        tern_clear_error();
        failures += failed;
        tern_release(s.in);
        tern_release(s.out);
        s.in = s.out = NULL;
        tern_nn_zero_grad(m);
        assert_int_equal(tern_live_tensors(), before);
        if (!failed)
            break;
    }
    assert_true(failures > 20);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(a_function_has_the_gradient_of_its_own),
    TEST(functions_run_in_checkpoints),
    TEST(saved_tensors_must_stay_as_they_were),
    TEST(wrong_functions_are_named),
    TEST(forward_hooks_see_and_change_what_passes),
    TEST(a_hook_that_takes_the_result_away_is_an_error),
    TEST(backward_hooks_see_gradients_and_change_them),
    TEST(absent_inputs_and_unused_results_are_null),
    TEST(no_failed_allocation_leaks),
};
TEST_MAIN(tests)
