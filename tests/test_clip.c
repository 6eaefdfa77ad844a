/* test_clip.c -- clipping gradients to a norm. */
#include "many.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tern_module *module_of(tern_tensor *const *x, int n)
{
    tern_module *m = tern_nn_module("M", NULL, NULL);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        tern_nn_add_parameter(m, name, x[i]);
    }
    return m;
}

static double norm_of(tern_tensor *const *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) {
        tern_tensor *grad = tern_grad(x[i]);
        double *values = grad ? test_read(grad) : NULL;
        for (int64_t k = 0; grad && k < tern_numel(grad); k++)
            sum += values[k] * values[k];
        free(values);
    }
    return sqrt(sum);
}

static void gradients_are_clipped_to_the_norm_asked_for(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[MANY];
        make_many(device, TERN_F32, x);
        tern_module *m = module_of(x, MANY);
        give_gradients(x, 3);
        assert_ok(tern_set_grad(x[5], NULL));
        double norm = norm_of(x, MANY);
        uint64_t before = launches(device);
        double large = tern_nn_clip_grad_norm_(m, 2 * norm);
        assert_true(launches(device) - before <= 2); /* on cpu one converts the sums */
        assert_true(fabs(large - norm) < 1e-6 * norm);
        assert_true(norm_of(x, MANY) == norm);
        double clipped = tern_nn_clip_grad_norm_(m, 0.5);
        assert_true(fabs(clipped - norm) < 1e-6 * norm);
        assert_true(fabs(norm_of(x, MANY) - 0.5) < 1e-6);
        tern_nn_free(m);
    }
}

static void clipping_takes_every_dtype_and_strided_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[3] = {tern_ones(TERN_SHAPE(2, 2), TERN_F32, device),
                             tern_ones(TERN_SHAPE(1), TERN_F16, device),
                             tern_ones(TERN_SHAPE(5000), TERN_BF16, device)};
        tern_module *m = module_of(x, 3);
        tern_tensor *grad = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 2, 2, 4);
        assert_ok(tern_set_grad(x[0], tern_transpose(grad, 0, 1)));
        assert_ok(tern_set_grad(x[1], TENSOR(device, TERN_F16, TERN_SHAPE(1), 12)));
        double norm = tern_nn_clip_grad_norm_(m, 6.5);
        assert_true(fabs(norm - 13) < 1e-6);
        assert_values_close(grad, 1e-6, 0.5, 1, 1, 2);
        assert_values_close(tern_grad(x[1]), 1e-3, 6);
        tern_nn_free(m);
    }
}

/* torch.nn.utils.clip_grad_norm_ of gradients (3, -4) and (1, 2): the 1-norm 10, the largest 4. */
static void other_norms_and_norms_that_are_none(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[2];
        for (int i = 0; i < 2; i++)
            x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(2), TERN_F32, device), true);
        tern_module *m = module_of(x, 2);
        assert_ok(tern_set_grad(x[0], TENSOR(device, TERN_F32, TERN_SHAPE(2), 3, -4)));
        assert_ok(tern_set_grad(x[1], TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2)));
        tern_clip_grad_norm_options o = {.norm_type = INFINITY, .error_if_nonfinite = true};
        assert_true(tern_nn_clip_grad_norm_with_(m, 2, &o) == 4);
        assert_values_close(tern_grad(x[0]), 1e-5, 1.5, -2);
        o.norm_type = 1;
        assert_true(fabs(tern_nn_clip_grad_norm_with_(m, 1, &o) - 5) < 1e-5);
        assert_values_close(tern_grad(x[1]), 1e-5, 0.1, 0.2);
        assert_ok(tern_set_grad(x[1], TENSOR(device, TERN_F32, TERN_SHAPE(2), NAN, 2)));
        for (o.norm_type = 1; o.norm_type <= 2; o.norm_type++) {
            assert_true(isnan(tern_nn_clip_grad_norm_with_(m, 1, &o)));
            assert_error(TERN_ERR_STATE, "for gradients from `parameters` is non-finite, so it "
                                         "cannot be clipped");
        }
        assert_values_close(tern_grad(x[0]), 1e-5, 0.3, -0.4);
        tern_nn_free(m);
    }
}

/* (sum |x|^p)^(1/p) of numbers, its limits where p is infinite. */
static double norm_of_numbers(const double *x, int n, double p)
{
    double sum = p == -INFINITY ? INFINITY : 0;
    for (int i = 0; i < n; i++)
        sum = p == INFINITY    ? fmax(sum, fabs(x[i]))
              : p == -INFINITY ? fmin(sum, fabs(x[i]))
                               : sum + pow(fabs(x[i]), p);
    return isinf(p) ? sum : pow(sum, 1 / p);
}

/* Of gradients in several tensors, on one device in two dtypes; with a 0 in one of them, in a tensor of its own, and none: a
 * negative norm of those is 0, as torch.linalg.vector_norm's. */
static void norms_of_every_order_are_those_of_all_elements(void **state)
{
    static const double orders[] = {1, 1.5, 2, 3, INFINITY, 0.5, -0.5, -1, -2, -3, -INFINITY};
    static const double sets[][6] = {
        {3, -4, 1, 2, 0.5, -8}, {3, 0, 1, 2, 0.5, -8}, {3, -4, 1, 2, 0, 0}};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t k = 0; k < 3 * sizeof orders / sizeof *orders; k++)
        TERN_SCOPE {
            const double p = orders[k / 3], *g = sets[k % 3];
            tern_tensor *x[3];
            for (int i = 0; i < 3; i++)
                x[i] = tern_zeros(TERN_SHAPE(2), i == 2 ? TERN_F16 : TERN_F32, device);
            tern_module *m = module_of(x, 3);
            for (int i = 0; i < 3; i++)
                assert_ok(tern_set_grad(x[i], TENSOR(device, tern_dtype_of(x[i]), TERN_SHAPE(2),
                                                     g[2 * i], g[2 * i + 1])));
            const double wanted = norm_of_numbers(g, 6, p), factor = 0.1 / (wanted + 1e-6);
            const double norm = tern_nn_clip_grad_norm_with_(
                m, 0.1, &(tern_clip_grad_norm_options){.norm_type = p});
            if (!(fabs(norm - wanted) <= 1e-5 * wanted))
                fail_msg("norm %g of gradients %zu: %g, not %g", p, k % 3, norm, wanted);
            for (int i = 0; i < 3; i++)
                assert_values_close(tern_grad(x[i]), 2e-3, g[2 * i] * fmin(factor, 1),
                                    g[2 * i + 1] * fmin(factor, 1));
            tern_nn_free(m);
        }
}

static void clipping_without_gradients_or_module(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, NULL);
        tern_module *m = module_of(&x, 1);
        assert_true(tern_nn_clip_grad_norm_(m, 1) == 0);
        for (int i = 0; i < 3; i++) {
            const double p[] = {INFINITY, -1, -INFINITY};
            assert_true(tern_nn_clip_grad_norm_with_(
                            m, 1, TERN_DEFAULTS(clip_grad_norm, .norm_type = p[i])) == 0);
        }
        assert_true(isnan(tern_nn_clip_grad_norm_(NULL, 1)));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_clip_grad_norm_");
        assert_ok(tern_set_grad(x, TENSOR("cpu", TERN_F32, TERN_SHAPE(2), NAN, 1)));
        assert_true(isnan(tern_nn_clip_grad_norm_(m, 1)));
        assert_values(tern_grad(x), NAN, NAN);
        tern_nn_free(m);
    }
}

/* Two steps with gradients of another size each, by hand or as replays of a recorded one: x after them. */
static void clip_twice(const char *device, double p, bool record, double *values)
{
    tern_tensor *x[3] = {tern_ones(TERN_SHAPE(2, 3), TERN_F32, device),
                         tern_ones(TERN_SHAPE(4), TERN_F16, device),
                         tern_ones(TERN_SHAPE(2), TERN_F32, device)};
    tern_tensor *scale = tern_zeros(TERN_SHAPE(1), TERN_F32, device);
    tern_module *m = module_of(x, 3);
    tern_optimizer *o = tern_optim_sgd(m, 0.5, NULL);
    tern_graph *graph = tern_graph_new(device);
    for (int step = 0; step < 3; step++) {
        tern_fill_(scale, tern_scalar_real(
                              step == 1 ? 0.01 : 3 * step + 2)); /* clipped, not clipped, clipped */
        if (!record || step == 0) {
            tern_capture_block block = {0};
            if (record)
                block = tern_capture_block_enter(graph);
            assert_ok(tern_optim_zero_grad(o));
            tern_tensor *loss = tern_sum(tern_mul(tern_square(x[0]), scale));
            for (int i = 1; i < 3; i++)
                loss = tern_add(loss, tern_sum(tern_mul(tern_to_dtype(x[i], TERN_F32), scale)));
            assert_ok(tern_backward(loss));
            double norm =
                tern_nn_clip_grad_norm_with_(m, 0.7, TERN_DEFAULTS(clip_grad_norm, .norm_type = p));
            assert_true((isnan(norm) != 0) == record);
            assert_ok(tern_optim_step(o));
            if (record)
                tern_capture_block_leave(&block);
        }
        if (record)
            assert_ok(tern_graph_replay(graph));
    }
    for (int i = 0, at = 0; i < 3; i++) {
        double *read = test_read(x[i]);
        for (int64_t k = 0; k < tern_numel(x[i]); k++)
            values[at++] = read[k];
        free(read);
    }
    tern_graph_free(graph);
    tern_optim_free(o);
    tern_nn_free(m);
}

static void recorded_steps_clip_by_the_norm_of_each_replay(void **state)
{
    static const double norms[] = {2, 1, INFINITY, 3, -1, -INFINITY};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            double by_hand[12], recorded[12];
            clip_twice(device, norms[i], false, by_hand);
            clip_twice(device, norms[i], true, recorded);
            for (int k = 0; k < 12; k++)
                assert_true(fabs(by_hand[k] - recorded[k]) < (k > 5 && k < 10 ? 2e-3 : 1e-5));
        }
}

/* What has to know the norm can't be recorded, and does not look at memory that nothing was written to yet. */
static void an_error_by_the_norm_can_not_be_recorded(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, device);
        tern_module *m = module_of(&x, 1);
        tern_graph *graph = tern_graph_new(device);
        assert_ok(tern_backward(tern_sum(x)));
        TERN_CAPTURE (graph)
            tern_nn_clip_grad_norm_with_(m, 0.5,
                                         TERN_DEFAULTS(clip_grad_norm, .error_if_nonfinite = true));
        assert_error(TERN_ERR_STATE, "can't be recorded");
        assert_int_equal(tern_graph_replay(graph), TERN_ERR_STATE);
        tern_clear_error();
        assert_values(tern_grad(x), 1, 1);
        tern_graph_free(graph);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(gradients_are_clipped_to_the_norm_asked_for),
    TEST(clipping_takes_every_dtype_and_strided_gradients),
    TEST(other_norms_and_norms_that_are_none),
    TEST(norms_of_every_order_are_those_of_all_elements),
    TEST(clipping_without_gradients_or_module),
    TEST(recorded_steps_clip_by_the_norm_of_each_replay),
    TEST(an_error_by_the_norm_can_not_be_recorded),
};
TEST_MAIN(tests)
