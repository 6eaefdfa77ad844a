/* test_call_scope.c -- a call of a module is a scope: results go on, all else that forward made is released. */
#include "support.h"
#include <stdlib.h>

/* (x * x + x) * 2, by four tensors of its own. */
static tern_tensor *wasteful_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_mul(tern_add(tern_mul(x, x), x),
                    tern_full(TERN_SHAPE(1), 2.0, TERN_F32, tern_device(x)));
}

static tern_module *wasteful(void)
{
    return tern_nn_module("Wasteful", wasteful_forward, NULL);
}

static void what_forward_made_beside_its_result_is_released(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = wasteful();
        tern_tensor *x = tern_full(TERN_SHAPE(3), 2.0, TERN_F32, device);
        const int64_t before = tern_live_tensors();
        TERN_NO_GRAD {
            tern_tensor *y = tern_nn_forward(m, x);
            assert_true(tern_live_tensors() == before + 1);
            assert_values(y, 12, 12, 12);
        }
        tern_nn_free(m);
    }
}

static void what_backward_needs_is_kept(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(wasteful(), wasteful());
        tern_tensor *x = tern_requires_grad_(tern_full(TERN_SHAPE(2), 1.0, TERN_F32, device), true);
        tern_backward(tern_sum(tern_nn_forward(m, x)));
        /* y = 2 (x^2 + x) = 4, z = 2 (y^2 + y): dz/dx = 2 (2 y + 1) 2 (2 x + 1) */
        assert_values(tern_grad(x), 108, 108);
        tern_nn_free(m);
    }
}

static int64_t most;

static tern_tensor *counting_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    const int64_t now = tern_live_tensors();
    most = now > most ? now : most;
    return tern_add(x, 1.0);
}

static tern_module *counting(void)
{
    return tern_nn_module("Counting", counting_forward, NULL);
}

/* The third layer sees the result of the second, and no longer that of the first. */
static void a_sequential_gives_up_each_result_once_the_next_is_made(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(tern_nn_identity());
        for (int i = 0; i < 20; i++)
            tern_nn_append(m, counting());
        tern_tensor *x = tern_zeros(TERN_SHAPE(2), TERN_F32, device);
        const int64_t before = tern_live_tensors();
        most = 0;
        TERN_NO_GRAD {
            tern_tensor *y = tern_nn_forward(m, x);
            assert_values(y, 20, 20);
            assert_values(x, 0, 0);
        }
        assert_true(most == before + 1);
        assert_true(tern_live_tensors() == before + 1);
        tern_nn_free(m);
    }
}

static tern_status count_hook(tern_module *m, tern_tensor *const *in, int n, tern_tensor **out,
                              int k, void *user)
{
    (void)m, (void)in, (void)n, (void)out, (void)k, (void)user;
    const int64_t now = tern_live_tensors();
    most = now > most ? now : most;
    return TERN_OK;
}

/* As many tensors live within eight layers as within two. */
static void stacks_of_transformer_layers_give_up_their_results_too(void **state)
{
    (void)state;
    int64_t alive[2];
    TERN_SCOPE
        TERN_NO_GRAD
            for (int i = 0; i < 2; i++) {
                tern_module *layer = tern_nn_transformer_encoder_layer(8, 2, NULL);
                tern_module *m = tern_nn_transformer_encoder(layer, i ? 8 : 2, NULL);
                tern_nn_eval(m);
                tern_module *last = tern_nn_child_at(tern_nn_child(m, "layers"), -1);
                tern_nn_register_forward_hook(last, count_hook, NULL);
                const int64_t before = tern_live_tensors();
                most = 0;
                tern_tensor *y = tern_nn_forward(m, tern_ones(TERN_SHAPE(1, 3, 8), TERN_F32, NULL));
                assert_non_null(y);
                alive[i] = most - before;
                tern_nn_free(m);
            }
    assert_true(alive[0] > 0 && alive[0] == alive[1]);
}

/* ---- results of all kinds ------------------------------------------------------------------ */

static tern_status split_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                              int k)
{
    (void)self, (void)n;
    tern_tensor *unused = tern_mul(in[0], 5.0);
    (void)unused;
    out[0] = tern_add(in[0], 1.0);
    for (int i = 1; i < k; i++)
        out[i] = i == 1 ? in[0] : i == 2 ? out[0] : tern_narrow(out[0], 0, 0, 1);
    return TERN_OK;
}

/* A new one, an input, one of them twice, a view of one. */
static void every_result_goes_to_the_callers_scope(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_module_with_call("Split", split_call, NULL);
        tern_tensor *x = tern_full(TERN_SHAPE(2), 1.0, TERN_F32, device), *out[4];
        const int64_t before = tern_live_tensors();
        TERN_SCOPE {
            TERN_SCOPE {
                assert_int_equal(tern_nn_call(m, &x, 1, out, 4), TERN_OK);
                assert_true(tern_live_tensors() == before + 2);
                tern_escape(out[3]);
            }
            assert_true(tern_live_tensors() == before + 2); /* the view and its base */
            assert_values(out[3], 2);
        }
        assert_true(tern_live_tensors() == before);
        assert_values(x, 1, 1);
        tern_nn_free(m);
    }
}

static tern_tensor *failing_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_add(tern_mul(x, 2.0), tern_ones(TERN_SHAPE(7), TERN_F32, NULL));
}

static void a_call_that_fails_leaves_nothing(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_sequential(
            wasteful(), tern_nn_module("Fails", failing_forward, NULL), wasteful());
        tern_tensor *x = tern_ones(TERN_SHAPE(3), TERN_F32, NULL);
        const int64_t before = tern_live_tensors();
        assert_null(tern_nn_forward(m, x));
        assert_error(TERN_ERR_SHAPE, "tern_add");
        assert_true(tern_live_tensors() == before);
        tern_nn_free(m);
    }
}

static tern_tensor *entering_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    (void)tern_scope_enter(); /* and it does not leave */
    tern_tensor *y = tern_add(x, 1.0);
    (void)tern_scope_enter();
    return tern_mul(y, y);
}

static void scopes_that_forward_left_open_end_with_the_call(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_module("Enters", entering_forward, NULL);
        tern_tensor *x = tern_ones(TERN_SHAPE(1), TERN_F32, NULL), *y = NULL;
        const int64_t before = tern_live_tensors();
        TERN_SCOPE
            y = tern_keep(tern_nn_forward(m, x));
        assert_true(tern_live_tensors() == before + 1);
        assert_values(y, 4);
        tern_release(y);
        tern_nn_free(m);
    }
}

/* More modules within one another than there may be scopes: the innermost go without one. */
static void modules_may_be_nested_deeper_than_scopes(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = wasteful();
        for (int i = 0; i < 700; i++)
            m = tern_nn_sequential(m);
        tern_tensor *y = tern_nn_forward(m, tern_ones(TERN_SHAPE(1), TERN_F32, NULL));
        assert_values(y, 4);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(what_forward_made_beside_its_result_is_released),
    TEST(what_backward_needs_is_kept),
    TEST(a_sequential_gives_up_each_result_once_the_next_is_made),
    TEST(stacks_of_transformer_layers_give_up_their_results_too),
    TEST(every_result_goes_to_the_callers_scope),
    TEST(a_call_that_fails_leaves_nothing),
    TEST(scopes_that_forward_left_open_end_with_the_call),
    TEST(modules_may_be_nested_deeper_than_scopes),
};
TEST_MAIN(tests)
