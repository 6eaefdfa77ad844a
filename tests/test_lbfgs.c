/* test_lbfgs.c -- L-BFGS against PyTorch, and closures. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tern_tensor *golden(test_golden *file, const char *name, int i, const char *ending,
                           const char *device)
{
    char full[64];
    snprintf(full, sizeof full, "%s%d_%s", name, i, ending);
    return test_golden_tensor(file, full, device);
}

typedef struct valley {
    tern_tensor **x;
    tern_optimizer *o;
    int calls;
    bool upside_down;
} valley;

static tern_tensor *descend(void *user)
{
    valley *v = user;
    v->calls++;
    assert_ok(tern_optim_zero_grad(v->o));
    tern_tensor *flat[] = {tern_reshape(v->x[0], TERN_SHAPE(-1)), v->x[1]};
    tern_tensor *all = tern_cat(flat, 2, 0);
    tern_tensor *a = tern_narrow(all, 0, 0, 8), *b = tern_narrow(all, 0, 1, 8);
    tern_tensor *bend = tern_square(tern_sub(b, tern_square(a)));
    tern_tensor *slope = tern_square(tern_rsub_scalar(a, TERN_SCALAR(1.0)));
    tern_tensor *loss = tern_sum(tern_add(tern_mul_scalar(bend, TERN_SCALAR(100.0)), slope));
    if (v->upside_down)
        loss = tern_neg(loss);
    assert_ok(tern_backward(loss));
    return loss;
}

static void lbfgs_goes_down_the_valley_as_pytorchs_does(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double lr;
        tern_lbfgs_options options;
    } cases[] = {
        {.name = "lbfgs", .lr = 1e-3},
        {"lbfgs_wolfe", 1, {.line_search_fn = TERN_LINE_SEARCH_STRONG_WOLFE}},
        {"lbfgs_short",
         0.5,
         {.max_iter = 7, .history_size = 3, .line_search_fn = TERN_LINE_SEARCH_STRONG_WOLFE}},
        {"lbfgs_capped",
         1,
         {.max_eval = 9, .line_search_fn = TERN_LINE_SEARCH_STRONG_WOLFE, .maximize = true}},
    };
    test_golden *file = test_golden_open("optim");
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        TERN_SCOPE {
            tern_tensor *x[2];
            char name[32];
            for (int i = 0; i < 2; i++)
                x[i] = tern_requires_grad_(golden(file, "start", i, "f64", "cpu"), true);
            valley v = {.x = x, .upside_down = cases[c].options.maximize};
            v.o = tern_optim_lbfgs_of(x, 2, cases[c].lr, &cases[c].options);
            snprintf(name, sizeof name, "%s_losses", cases[c].name);
            double *losses = test_read(test_golden_tensor(file, name, "cpu"));
            for (int t = 0; t < 3; t++) {
                double loss = NAN;
                assert_ok(tern_optim_step_closure(v.o, descend, &v, &loss));
                if (!(fabs(loss - losses[t]) <= 1e-6 * fabs(losses[t])))
                    fail_msg("%s: loss %d is %.12g instead of %.12g", cases[c].name, t, loss,
                             losses[t]);
            }
            snprintf(name, sizeof name, "%s_", cases[c].name);
            for (int i = 0; i < 2; i++)
                assert_close(x[i], golden(file, name, i, "f64", "cpu"), .abs = 1e-6, .rel = 1e-6);
            assert_int_equal(tern_optim_step(v.o), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "tern_optim_step_closure");
            free(losses);
            tern_optim_free(v.o);
        }
    test_golden_close(file);
}

static void lbfgs_works_on_every_device(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2] = {tern_zeros(TERN_SHAPE(2, 3), TERN_F32, device),
                             tern_zeros(TERN_SHAPE(3), TERN_F32, device)};
        for (int i = 0; i < 2; i++)
            tern_requires_grad_(x[i], true);
        valley v = {.x = x};
        double loss = NAN;
        v.o = tern_optim_lbfgs_of(
            x, 2, 1, &(tern_lbfgs_options){.line_search_fn = TERN_LINE_SEARCH_STRONG_WOLFE});
        int64_t tensors = 0;
        for (int t = 0; t < 4; t++) {
            TERN_SCOPE
                assert_ok(tern_optim_step_closure(v.o, descend, &v, &loss));
            if (t > 0 && tensors == 0)
                tensors = tern_live_tensors();
        }
        assert_true(loss < 0.1);
        assert_true(tern_live_tensors() < tensors + 200); /* the memory, and nothing else */
        tern_optim_free(v.o);
    }
}

static void other_optimizers_take_a_closure_too(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x[2] = {tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu"),
                             tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu")};
        for (int i = 0; i < 2; i++)
            tern_requires_grad_(x[i], true);
        valley v = {.x = x, .o = tern_optim_sgd_of(x, 2, 1e-3, NULL)};
        double first = 0, second = 0;
        assert_ok(tern_optim_step_closure(v.o, descend, &v, &first));
        assert_ok(tern_optim_step_closure(v.o, descend, &v, &second));
        assert_true(second < first && v.calls == 2);
        tern_optim_free(v.o);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(lbfgs_goes_down_the_valley_as_pytorchs_does),
    TEST(lbfgs_works_on_every_device),
    TEST(other_optimizers_take_a_closure_too),
};
TEST_MAIN(tests)
