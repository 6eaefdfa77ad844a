/* test_adamw8bit.c -- AdamW with moments of a byte each, beside bitsandbytes'. */
#include "files.h"
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 16 };

static void maps_are_bitsandbytes(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *r = models_reference("adamw8bit", "reference.safetensors", "cpu");
        assert_same(tern_dynamic_map(true, "cpu"), models_get(r, "signed"));
        assert_same(tern_dynamic_map(false, "cpu"), models_get(r, "unsigned"));
        tern_state_dict_free(r);
    }
}

static tern_tensor *state_of(tern_optimizer *o, const char *path)
{
    tern_state_dict *dict = tern_optim_state_dict(o);
    assert_non_null(dict);
    tern_tensor *x = tern_state_dict_get(dict, path);
    if (!x)
        fail_msg("no %s", path);
    x = tern_to_dtype(tern_clone(tern_to(x, "cpu")), TERN_F32);
    tern_state_dict_free(dict);
    return x;
}

/* Sums rounded otherwise may tip a code over the middle between two. */
static void assert_codes(tern_tensor *codes, tern_tensor *expected)
{
    tern_tensor *off = tern_abs(tern_sub(codes, tern_to_dtype(expected, TERN_F32)));
    assert_true(tern_item(tern_max(off)) <= 1);
    assert_true(tern_item(tern_sum(off)) <= 0.002 * (double)tern_numel(expected));
}

static void steps_are_bitsandbytes(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *r = models_reference("adamw8bit", "reference.safetensors", device),
                        *host = models_reference("adamw8bit", "reference.safetensors", "cpu");
        tern_tensor *p = tern_requires_grad_(tern_clone(models_get(r, "parameter")), true),
                    *grad = models_get(r, "grad");
        tern_optimizer *o =
            tern_optim_adamw8bit_of(&p, 1, 1e-2, &(tern_adamw_options){.weight_decay = 0.1});
        assert_non_null(o);
        for (int t = 1; t <= 4; t++) {
            assert_ok(tern_set_grad(p, t % 2 ? grad : tern_mul(grad, -0.5)));
            assert_ok(tern_optim_step(o));
        }
        assert_near(tern_detach(p), models_get(r, "after"), 2e-5, 0);
        assert_codes(state_of(o, "state.0.state1"), models_get(host, "state1"));
        assert_codes(state_of(o, "state.0.state2"), models_get(host, "state2"));
        assert_near(state_of(o, "state.0.absmax1"), models_get(host, "absmax1"), 1e-5, 0);
        assert_near(state_of(o, "state.0.absmax2"), models_get(host, "absmax2"), 1e-5, 0);
        assert_int_equal(tern_item(state_of(o, "state.0.step")), 4);
        tern_optim_free(o);
        tern_state_dict_free(r);
        tern_state_dict_free(host);
    }
}

/* ---- trainings ---------------------------------------------------------------------------------- */

static tern_module *model_on(const char *device, tern_dtype dtype)
{
    tern_manual_seed(5);
    const tern_linear_options options = {.device = device};
    tern_module *m = tern_nn_sequential(tern_nn_linear(16, 300, &options), tern_nn_tanh(),
                                        tern_nn_linear(300, 16, &options), tern_nn_tanh(),
                                        tern_nn_linear(16, 4, &options));
    assert_non_null(m);
    assert_non_null(tern_nn_to_dtype(m, dtype));
    return m;
}

static double train_step(tern_module *m, tern_optimizer *o, const char *device, tern_dtype dtype)
{
    double loss = 0;
    TERN_SCOPE {
        tern_manual_seed(6);
        tern_tensor *x = tern_randn(TERN_SHAPE(32, 16), TERN_F32, device),
                    *y = tern_sin(tern_mul(tern_narrow(x, 1, 3, 4), 2));
        tern_optim_zero_grad(o);
        tern_tensor *l = tern_mse_loss(
            tern_to_dtype(tern_nn_forward(m, tern_to_dtype(x, dtype)), TERN_F32), y, NULL);
        assert_ok(tern_backward(l));
        assert_ok(tern_optim_step(o));
        loss = tern_item(l);
    }
    return loss;
}

static int64_t bytes_of(tern_optimizer *o)
{
    int64_t bytes = 0;
    tern_state_dict *dict = tern_optim_state_dict(o);
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        if (strncmp(tern_state_dict_key_at(dict, i), "state.", 6) == 0)
            bytes += tern_numel(tern_state_dict_at(dict, i)) *
                     (int64_t)tern_dtype_size(tern_dtype_of(tern_state_dict_at(dict, i)));
    tern_state_dict_free(dict);
    return bytes;
}

static void it_learns_as_adamw_in_a_quarter_of_the_memory(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_BF16};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int d = 0; d < (test_thorough(device) ? 2 : 1); d++)
        TERN_SCOPE {
            tern_module *a = model_on(device, dtypes[d]), *b = model_on(device, dtypes[d]);
            tern_optimizer *plain = tern_optim_adamw(a, 1e-2, NULL),
                           *small = tern_optim_adamw8bit(b, 1e-2, NULL);
            const bool thorough = test_thorough(device);
            double first = 0, last = 0, other = 0;
            for (int i = 0; i < (thorough ? 40 : 6); i++) {
                last = train_step(a, plain, device, dtypes[d]);
                other = train_step(b, small, device, dtypes[d]);
                first = i ? first : last;
            }
            assert_true(last < (thorough ? 0.5 : 0.95) * first);
            assert_true(fabs(other - last) < 0.1 * first);
            assert_true((double)bytes_of(small) < 0.3 * (double)bytes_of(plain));
            tern_optim_free(plain);
            tern_optim_free(small);
            tern_nn_free(a);
            tern_nn_free(b);
        }
}

/* From a snapshot, and on another device. */
static void it_goes_on_from_a_snapshot(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        static int turn;
        char name[16];
        snprintf(name, sizeof name, "state-%d", turn++);
        const char *folder = test_path(name);
        test_make_folder(name);
        tern_module *m = model_on(device, TERN_F32);
        tern_optimizer *o = tern_optim_adamw8bit(m, 2e-3, NULL);
        tern_snapshot *s = tern_snapshot_new();
        assert_ok(tern_snapshot_add_module(s, "model", m));
        assert_ok(tern_snapshot_add_optimizer(s, "optimizer", o));
        double losses[6];
        for (int i = 0; i < 6; i++) {
            losses[i] = train_step(m, o, device, TERN_F32);
            if (i == 2)
                assert_ok(tern_snapshot_save(s, folder, NULL));
        }
        assert_ok(tern_snapshot_load(s, folder));
        assert_int_equal(tern_item(state_of(o, "state.0.step")), 3);
        for (int i = 3; i < 6; i++)
            assert_true(train_step(m, o, device, TERN_F32) == losses[i]);
        assert_ok(tern_snapshot_load(s, folder));
        assert_non_null(tern_nn_to(m, "cpu")); /* states follow */
        for (int i = 3; i < 6; i++)
            assert_true(fabs(train_step(m, o, "cpu", TERN_F32) - losses[i]) < 1e-4 * losses[i]);
        tern_snapshot_free(s);
        tern_optim_free(o);
        tern_nn_free(m);
    }
}

static void groups_and_schedulers_are_adamws(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[4];
        for (int i = 0; i < 4; i++) {
            x[i] = tern_requires_grad_(tern_ones(TERN_SHAPE(i < 2 ? MOST : 5000), TERN_F32, device),
                                       true);
            assert_ok(tern_set_grad(x[i], tern_ones(tern_shape_of(x[i]), TERN_F32, device)));
        }
        const tern_adamw_options options = {.weight_decay = TERN_ZERO, .maximize = true};
        tern_optimizer *o = tern_optim_adamw8bit_of(x, 3, 0.25, &options);
        assert_int_equal(tern_optim_add_param_group(o, x + 3, 1), 1);
        assert_ok(tern_optim_set_option(o, 1, "lr", 0.5));
        assert_ok(tern_set_grad(x[1], NULL));
        assert_ok(tern_optim_step(o));
        for (int i = 0; i < 4; i++)
            assert_near(tern_detach(x[i]),
                        tern_full(tern_shape_of(x[i]),
                                  i == 1   ? 1
                                  : i == 3 ? 1.5
                                           : 1.25,
                                  TERN_F32, device),
                        1e-6, 0);
        tern_optim_free(o);
    }
}

static void what_is_wrong_is_an_error(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(5000), TERN_F32, "cpu"), true),
                    *wide = tern_ones(TERN_SHAPE(3), TERN_F64, "cpu");
        assert_null(tern_optim_adamw8bit_of(&x, 1, 1, &(tern_adamw_options){.amsgrad = true}));
        assert_error(TERN_ERR_UNSUPPORTED, "amsgrad");
        assert_null(tern_optim_adamw8bit_of(&wide, 1, 1, NULL));
        assert_error(TERN_ERR_DTYPE, "parameter 0 is float64");
        assert_null(tern_optim_adamw8bit_of(&x, 1, -1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "Invalid learning rate: -1");
        assert_null(tern_optim_custom(NULL, NULL, &x, 1, 1, NULL));
        assert_error(TERN_ERR_ARGUMENT, "type");
        tern_optimizer *o = tern_optim_adamw8bit_of(&x, 1, 1, NULL);
        assert_ok(tern_set_grad(x, tern_ones(TERN_SHAPE(5000), TERN_F32, "cpu")));
        assert_ok(tern_optim_step(o));
        tern_state_dict *dict = tern_optim_state_dict(o);
        assert_int_equal(tern_state_dict_count(dict), 5 + 5);
        assert_ok(tern_state_dict_remove(dict, "state.0.absmax2"));
        assert_int_equal(tern_optim_load_state_dict(o, dict), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "state.0.absmax2 is missing");
        assert_ok(tern_state_dict_set(dict, "state.0.absmax2",
                                      tern_zeros(TERN_SHAPE(19), TERN_F32, "cpu")));
        assert_int_equal(tern_optim_load_state_dict(o, dict), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "a parameter of 5000 elements has 20 of float32");
        assert_ok(tern_state_dict_set(dict, "state.0.absmax2",
                                      tern_zeros(TERN_SHAPE(20), TERN_F32, "cpu")));
        assert_ok(
            tern_state_dict_set(dict, "state.1.step", tern_zeros(TERN_SHAPE(1), TERN_I64, "cpu")));
        assert_int_equal(tern_optim_load_state_dict(o, dict), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "1 states are no state1");
        assert_int_equal(tern_item(state_of(o, "state.0.step")), 1);
        tern_graph *graph = tern_graph_new("cpu");
        assert_ok(tern_graph_capture_begin(graph));
        assert_int_equal(tern_optim_step(o), TERN_ERR_UNSUPPORTED);
        assert_error(TERN_ERR_UNSUPPORTED, "cannot be recorded");
        tern_graph_capture_end(graph);
        tern_clear_error();
        tern_graph_free(graph);
        tern_state_dict_free(dict);
        tern_optim_free(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(maps_are_bitsandbytes),
        TEST(steps_are_bitsandbytes),
        TEST(it_learns_as_adamw_in_a_quarter_of_the_memory),
        TEST(it_goes_on_from_a_snapshot),
        TEST(groups_and_schedulers_are_adamws),
        TEST(what_is_wrong_is_an_error),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
