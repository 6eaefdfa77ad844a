/* test_lifetimes.c -- what is freed before those that use it, and modules in modules without end. */
#include "support.h"
#include <stdlib.h>

/* ---- the order of frees -------------------------------------------------------------------- */

static tern_status count_call(tern_module *m, tern_tensor **grad_in, int n,
                              tern_tensor *const *grad_out, int k, void *user)
{
    (void)m, (void)grad_in, (void)n, (void)grad_out, (void)k;
    ++*(int *)user;
    return TERN_OK;
}

static tern_status count_pre(tern_module *m, tern_tensor **grad_out, int k, void *user)
{
    (void)m, (void)grad_out, (void)k;
    ++*(int *)user;
    return TERN_OK;
}

static void a_graph_outlives_the_module_and_its_hooks(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        int calls = 0;
        tern_module *m = tern_nn_linear(3, 2, NULL);
        tern_nn_register_full_backward_pre_hook(m, count_pre, &calls);
        tern_nn_register_full_backward_hook(m, count_call, &calls);
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(1, 3), TERN_F32, "cpu"), true);
        tern_tensor *loss = tern_sum(tern_nn_forward(m, x));
        tern_nn_free(m);
        assert_ok(tern_backward(loss));
        assert_int_equal(calls, 0);
        assert_shape(tern_grad(x), 1, 3);
    }
    assert_int_equal(tern_live_tensors(), live);
}

static void a_checkpoint_says_that_its_module_was_freed(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    for (int sequence = 0; sequence < 2; sequence++)
        TERN_SCOPE {
            tern_module *m = tern_nn_sequential(tern_nn_linear(3, 3, NULL), tern_nn_tanh(),
                                                tern_nn_linear(3, 2, NULL), tern_nn_tanh());
            tern_tensor *x = tern_ones(TERN_SHAPE(1, 3), TERN_F32, "cpu");
            tern_requires_grad_(x, true);
            tern_tensor *y = sequence ? tern_checkpoint_sequential(m, 2, x, NULL)
                                      : tern_checkpoint_forward(m, x);
            tern_tensor *loss = tern_sum(y);
            tern_nn_free(m);
            assert_int_equal(tern_backward(loss), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "the module was freed before the backward pass");
        }
    assert_int_equal(tern_live_tensors(), live);
}

static void a_scheduler_says_that_its_optimizer_was_freed(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(3), TERN_F32, "cpu"), true);
        tern_optimizer *o = tern_optim_sgd_of(&w, 1, 0.1, NULL);
        tern_lr_scheduler *s = tern_lr_scheduler_step_lr(o, 2, 0.5);
        tern_lr_scheduler *parts[2] = {tern_lr_scheduler_step_lr(o, 2, 0.5),
                                       tern_lr_scheduler_step_lr(o, 3, 0.5)};
        tern_lr_scheduler *chain = tern_lr_scheduler_chained_scheduler(parts, 2);
        tern_optim_free(o);
        assert_int_equal(tern_lr_scheduler_step(s), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "the optimizer of the scheduler was freed");
        assert_int_equal(tern_lr_scheduler_step(chain), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "the optimizer of the scheduler was freed");
        assert_true(tern_lr_scheduler_get_last_lr(s, 0) > 0);
        tern_lr_scheduler *again[1] = {s};
        assert_null(tern_lr_scheduler_chained_scheduler(again, 1));
        assert_error(TERN_ERR_STATE, "the optimizer of the scheduler was freed");
        tern_lr_scheduler_free(chain);
    }
}

static void an_optimizer_outlives_its_module(void **state)
{
    (void)state;
    int64_t live = tern_live_tensors();
    TERN_SCOPE {
        tern_module *m = tern_nn_linear(3, 2, NULL);
        tern_optimizer *o = tern_optim_adam(m, 0.1, NULL);
        tern_averaged_model *mean = tern_swa_averaged_model(m, NULL);
        tern_tensor *x = tern_ones(TERN_SHAPE(1, 3), TERN_F32, "cpu");
        assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
        tern_nn_free(m);
        assert_ok(tern_optim_step(o));
        assert_ok(tern_optim_zero_grad(o));
        tern_swa_free(mean);
        tern_optim_free(o);
    }
    assert_int_equal(tern_live_tensors(), live);
}

/* ---- modules in modules ---------------------------------------------------------------------- */

enum { MOST = 1000 };

static tern_tensor *pass_on(tern_module *self, tern_tensor *x)
{
    return tern_nn_forward(tern_nn_child_at(self, 0), x);
}

/* So many levels, made from the innermost out or from the outermost in. */
static tern_module *nest(int levels, bool from_within)
{
    tern_module *top = tern_nn_module("Level", pass_on, NULL), *at = top;
    for (int i = 1; i < levels && top; i++) {
        tern_module *m = tern_nn_module("Level", pass_on, NULL);
        if (from_within) {
            bool added = tern_nn_add(m, "next", top) != NULL;
            if (!added)
                tern_nn_free(m);
            top = added ? m : NULL;
        } else if (!(at = tern_nn_add(at, "next", m))) {
            tern_nn_free(top);
            top = NULL;
        }
    }
    return top;
}

static void modules_have_so_many_levels_and_no_more(void **state)
{
    (void)state;
    for (int from_within = 0; from_within < 2; from_within++) {
        assert_null(nest(100000, from_within));
        assert_error(TERN_ERR_STATE, "makes 1001 levels of modules in modules, of 1000 at most");
        tern_module *m = nest(MOST, from_within);
        assert_non_null(m);
        assert_null(tern_nn_add(m, "other", nest(MOST, true)));
        assert_error(TERN_ERR_STATE, "makes 1001 levels");
        tern_module *under = tern_nn_take(m, "next.next");
        assert_non_null(under);
        assert_non_null(tern_nn_add(m, "other", under)); /* where it was was deeper */
        assert_null(tern_nn_set_child(m, "next", nest(MOST, true)));
        assert_error(TERN_ERR_STATE, "makes 1001 levels");
        tern_nn_free(m);
    }
}

static void everything_works_on_the_most_levels(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = nest(MOST - 1, true), *last = m;
        while (tern_nn_children_count(last))
            last = tern_nn_child_at(last, 0);
        assert_non_null(tern_nn_add(last, "next", tern_nn_linear(2, 2, NULL)));
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(1, 2), TERN_F32, "cpu"), true);
        assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
        TERN_DETECT_ANOMALY
            assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
        char *text = tern_nn_to_text(m);
        assert_non_null(strstr(text, "Linear(in_features=2, out_features=2"));
        tern_free_text(text);
        tern_state_dict *dict = tern_nn_state_dict(m);
        assert_int_equal(tern_state_dict_count(dict), 2);
        assert_ok(tern_nn_load_state_dict(m, dict, NULL));
        tern_state_dict_free(dict);
        tern_module *copy = tern_nn_copy(m);
        assert_int_equal(tern_nn_parameter_count(copy), 2);
        assert_null(tern_nn_add(copy, "other", nest(MOST, true)));
        assert_error(TERN_ERR_STATE, "makes 1001 levels");
        tern_nn_free(copy);
        assert_non_null(tern_nn_to_dtype(m, TERN_F64));
        assert_non_null(tern_nn_eval(m));
        assert_int_equal(tern_nn_parameter_count(m), 2);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_graph_outlives_the_module_and_its_hooks),
    TEST(a_checkpoint_says_that_its_module_was_freed),
    TEST(a_scheduler_says_that_its_optimizer_was_freed),
    TEST(an_optimizer_outlives_its_module),
    TEST(modules_have_so_many_levels_and_no_more),
    TEST(everything_works_on_the_most_levels),
};
TEST_MAIN(tests)
