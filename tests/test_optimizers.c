/* test_optimizers.c -- the optimizers besides SGD and Adam against PyTorch or their papers; groups,
 * states, averages. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the same numbers -------------------------------------------------------------------- */

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    __attribute__((unused)) static tern_optimizer *make_##NAME(tern_tensor *const *x, int n,       \
                                                               double lr, const void *options)     \
    {                                                                                              \
        return tern_optim_##NAME##_of(x, n, lr, options);                                          \
    }
#include "optimizers.def"

#define WITH(name, ...)                                                                            \
    &(const tern_##name##_options)                                                                 \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static const struct {
    const char *name;
    tern_optimizer *(*make)(tern_tensor *const *x, int n, double lr, const void *options);
    double lr;
    const void *options;
} variants[] = {
    {"adamax", make_adamax, 0.02, NULL},
    {"adamax_decay", make_adamax, 0.02,
     WITH(adamax, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.1, .maximize = true)},
    {"nadam", make_nadam, 0.02, NULL},
    {"nadam_decay", make_nadam, 0.02,
     WITH(nadam, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1, .momentum_decay = 0.5)},
    {"nadam_steady", make_nadam, 0.02, WITH(nadam, .momentum_decay = TERN_ZERO)},
    {"nadam_decoupled", make_nadam, 0.02,
     WITH(nadam, .weight_decay = 0.2, .decoupled_weight_decay = true, .maximize = true)},
    {"radam_decoupled", make_radam, 0.05,
     WITH(radam, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.2, .decoupled_weight_decay = true,
          .maximize = true)},
    {"rprop_maximize", make_rprop, 0.01, WITH(rprop, .maximize = true)},
    {"radam", make_radam, 0.05, NULL},
    {"radam_early", make_radam, 0.05, WITH(radam, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.1)},
    {"rmsprop", make_rmsprop, 0.01, NULL},
    {"rmsprop_momentum", make_rmsprop, 0.01,
     WITH(rmsprop, .alpha = 0.9, .momentum = 0.9, .weight_decay = 0.1)},
    {"rmsprop_centered", make_rmsprop, 0.01,
     WITH(rmsprop, .alpha = 0.5, .centered = true, .maximize = true)},
    {"rmsprop_both", make_rmsprop, 0.01,
     WITH(rmsprop, .alpha = 0.5, .centered = true, .momentum = 0.5)},
    {"adagrad", make_adagrad, 0.1, NULL},
    {"adagrad_decay", make_adagrad, 0.1,
     WITH(adagrad, .lr_decay = 0.1, .weight_decay = 0.1, .initial_accumulator_value = 0.5)},
    {"adadelta", make_adadelta, 1, NULL},
    {"adadelta_decay", make_adadelta, 0.5,
     WITH(adadelta, .rho = 0.5, .eps = 1e-3, .weight_decay = 0.1, .maximize = true)},
    {"rprop", make_rprop, 0.01, NULL},
    {"rprop_steps", make_rprop, 0.1,
     WITH(rprop, .etaminus = 0.2, .etaplus = 2, .step_size_min = 0.05, .step_size_max = 0.3)},
    {"asgd", make_asgd, 0.1, WITH(asgd, .lambd = 0.1)},
    {"asgd_average", make_asgd, 0.1,
     WITH(asgd, .lambd = 0.1, .alpha = 0.5, .t0 = 1, .weight_decay = 0.1)},
    {"lamb", make_lamb, 0.02, NULL},
    {"lamb_decay", make_lamb, 0.02, WITH(lamb, .beta1 = 0.5, .beta2 = 0.9, .weight_decay = 0.3)},
    {"muon", make_muon, 0.02, NULL},
    {"muon_adjust", make_muon, 0.02,
     WITH(muon, .momentum = 0.5, .no_nesterov = true, .weight_decay = TERN_ZERO,
          .adjust_lr = TERN_MUON_MATCH_RMS_ADAMW)},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static tern_tensor *golden(test_golden *file, const char *name, int i, const char *ending,
                           const char *device)
{
    char full[64];
    snprintf(full, sizeof full, "%s%d_%s", name, i, ending);
    return test_golden_tensor(file, full, device);
}

static void five_steps(test_golden *file, tern_optimizer *o, tern_tensor *const *x, int n,
                       const char *ending, const char *device)
{
    for (int t = 0; t < 5; t++) {
        char name[16];
        snprintf(name, sizeof name, "grad%d_", t);
        assert_ok(tern_optim_zero_grad(o));
        for (int i = 0; i < n; i++)
            if (t != 1 || i != 1)
                assert_ok(tern_set_grad(x[i], golden(file, name, i, ending, device)));
        assert_ok(tern_optim_step(o));
    }
}

/* PyTorch keeps NAdam's product of momenta and ASGD's numbers in float32. */
static bool is_narrow(const char *name)
{
    return strncmp(name, "nadam", 5) == 0 || strncmp(name, "asgd", 4) == 0;
}

static void steps_are_pytorchs(void **state)
{
    (void)state;
    static const char *const endings[] = {"f32", "f64"};
    test_golden *file = test_golden_open("optim");
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < VARIANTS; v++)
        for (int e = 0; e < (test_thorough(device) ? 2 : 1); e++)
            TERN_SCOPE {
                tern_tensor *x[2];
                char name[48];
                double eps = e && !is_narrow(variants[v].name) ? 1e-12 : 2e-6;
                int n = strncmp(variants[v].name, "muon", 4) == 0 ? 1 : 2;
                for (int i = 0; i < n; i++)
                    x[i] = tern_requires_grad_(golden(file, "start", i, endings[e], device), true);
                tern_optimizer *o = variants[v].make(x, n, variants[v].lr, variants[v].options);
                five_steps(file, o, x, n, endings[e], device);
                snprintf(name, sizeof name, "%s_", variants[v].name);
                for (int i = 0; i < n; i++)
                    assert_close(x[i], golden(file, name, i, endings[e], "cpu"), .abs = eps,
                                 .rel = eps);
                tern_optim_free(o);
            }
    test_golden_close(file);
}

/* ---- many tensors, halves, skips --------------------------------------------------------- */

enum { MANY = 6 };

static void make_many(const char *device, tern_dtype dtype, tern_tensor **x)
{
    for (int i = 0; i < MANY; i++) {
        tern_shape shape = i == 3 ? TERN_SHAPE(3, 4001) : TERN_SHAPE(1 + i, 5);
        x[i] = test_uniform(device, dtype, shape, -1, 1, (uint64_t)i);
        tern_requires_grad_(x[i], true);
    }
}

static void give_gradients(tern_tensor *const *x, uint64_t seed)
{
    for (int i = 0; i < MANY; i++)
        assert_ok(tern_set_grad(x[i], test_uniform(tern_device(x[i]), tern_dtype_of(x[i]),
                                                   tern_shape_of(x[i]), -1, 1,
                                                   seed * 100 + (uint64_t)i)));
}

/* How many launches a step of a kind is: LAMB's norms come first, Muon multiplies matrices. */
static void a_step_is_one_launch(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < VARIANTS; v++)
        TERN_SCOPE {
            tern_tensor *x[MANY];
            uint64_t most = 1;
            if (strncmp(variants[v].name, "muon", 4) == 0)
                continue;
            most += strncmp(variants[v].name, "lamb", 4) == 0;
            make_many(device, TERN_F32, x);
            tern_optimizer *o = variants[v].make(x, MANY, 0.1, variants[v].options);
            for (uint64_t t = 0; t < 2; t++) {
                give_gradients(x, t);
                uint64_t before = launches(device);
                assert_ok(tern_optim_step(o));
                assert_int_equal(launches(device), before + most);
            }
            tern_optim_free(o);
        }
}

/* Each parameter alone, and in one launch a tensor, is the same, bit for bit. */
static void many_together_are_as_each_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"rmsprop_both", "lamb_decay", "muon"};
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < VARIANTS; v++)
        for (int k = 0; k < 3; k++)
            if (strcmp(variants[v].name, names[k]) == 0)
                TERN_SCOPE {
                    tern_tensor *x[MANY], *y[MANY];
                    tern_optimizer *alone[MANY];
                    make_many(device, TERN_F32, x);
                    make_many(device, TERN_F32, y);
                    tern_optimizer *o = variants[v].make(x, MANY, 0.1, variants[v].options);
                    for (int i = 0; i < MANY; i++)
                        alone[i] = variants[v].make(&y[i], 1, 0.1, variants[v].options);
                    for (uint64_t t = 0; t < 2; t++) {
                        give_gradients(x, t);
                        give_gradients(y, t);
                        assert_ok(tern_optim_step(o));
                        for (int i = 0; i < MANY; i++)
                            assert_ok(tern_optim_step(alone[i]));
                    }
                    for (int i = 0; i < MANY; i++) {
                        assert_same(x[i], y[i]);
                        tern_optim_free(alone[i]);
                    }
                    tern_optim_free(o);
                }
}

static void halves_step_as_float32_does(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < VARIANTS; v++)
        TERN_SCOPE {
            tern_tensor *x[MANY], *y[MANY];
            if (!test_thorough(device) && strcmp(variants[v].name, "adamax") != 0)
                continue;
            make_many(device, TERN_BF16, x);
            for (int i = 0; i < MANY; i++)
                y[i] = tern_requires_grad_(tern_to_dtype(tern_detach(x[i]), TERN_F32), true);
            tern_optimizer *o = variants[v].make(x, MANY, 0.125, variants[v].options);
            tern_optimizer *wide = variants[v].make(y, MANY, 0.125, variants[v].options);
            give_gradients(x, 1);
            for (int i = 0; i < MANY; i++)
                assert_ok(tern_set_grad(y[i], tern_to_dtype(tern_grad(x[i]), TERN_F32)));
            assert_ok(tern_optim_step(o));
            assert_ok(tern_optim_step(wide));
            for (int i = 0; i < MANY; i++)
                assert_same(x[i], tern_to_dtype(tern_detach(y[i]), TERN_BF16));
            tern_optim_free(o);
            tern_optim_free(wide);
        }
}

static void steps_skip_where_the_scaler_says_so(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int v = 0; v < VARIANTS; v++)
        TERN_SCOPE {
            tern_tensor *x[MANY];
            if (!test_thorough(device) && strcmp(variants[v].name, "lamb") != 0)
                continue;
            make_many(device, TERN_F32, x);
            tern_optimizer *o = variants[v].make(x, MANY, 0.1, variants[v].options);
            tern_scaler *s = tern_amp_grad_scaler(&(tern_grad_scaler_options){.init_scale = 2});
            tern_amp_scale(s, x[0]);
            give_gradients(x, 0);
            tern_fill_(tern_grad(x[2]), TERN_SCALAR((double)INFINITY));
            tern_tensor *before = tern_clone(tern_detach(x[0]));
            assert_ok(tern_amp_step(s, o));
            assert_same(x[0], before);
            tern_amp_free(s);
            tern_optim_free(o);
        }
}

/* ---- groups ------------------------------------------------------------------------------ */

static void groups_have_options_of_their_own(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[3];
        for (int i = 0; i < 3; i++)
            x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(2), TERN_F32, device), true);
        tern_optimizer *o = tern_optim_sgd_of(x, 1, 1, NULL);
        assert_ok(tern_set_grad(x[0], tern_ones_like(x[0])));
        assert_ok(tern_optim_step(o));
        assert_int_equal(tern_optim_add_param_group(o, x + 1, 2), 1);
        assert_int_equal(tern_optim_param_groups(o), 2);
        assert_ok(tern_optim_set_option(o, 1, "lr", 0.5));
        for (int i = 0; i < 3; i++)
            assert_ok(tern_set_grad(x[i], tern_ones_like(x[i])));
        assert_ok(tern_optim_step(o));
        assert_values(x[0], -2, -2);
        assert_values(x[2], -0.5, -0.5);
        assert_true(tern_optim_get_option(o, 1, "lr") == 0.5 && tern_optim_get_lr(o) == 1);
        assert_int_equal(tern_optim_add_param_group(o, x, 1), -1);
        assert_error(TERN_ERR_ARGUMENT, "some parameters appear in more than one parameter group");
        assert_true(isnan(tern_optim_get_option(o, 2, "lr")));
        assert_error(TERN_ERR_ARGUMENT, "group 2 is out of range");
        assert_true(isnan(tern_optim_get_option(o, 0, "beta1")));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_sgd has no option 'beta1'");
        assert_int_equal(tern_optim_set_option(o, 1, "weight_decay", -1), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "Invalid weight_decay value: -1.0");
        assert_ok(tern_optim_set_option(o, 0, "momentum", 0.5));
        for (int t = 0; t < 2; t++)
            assert_ok(tern_optim_step(o)); /* by 1, then by 1.5; the other group has none */
        assert_values(x[0], -4.5, -4.5);
        assert_values(x[2], -1.5, -1.5);
        assert_ok(tern_optim_set_lr(o, 0.25));
        assert_true(tern_optim_get_option(o, 1, "lr") == 0.25);
        tern_optim_free(o);
    }
}

static void gradients_can_be_zeroed_in_place(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        tern_tensor *grad = tern_ones_like(x);
        assert_ok(tern_set_grad(x, grad));
        assert_ok(tern_optim_zero_grad_with(o, false));
        assert_ptr_equal(tern_grad(x), grad);
        assert_values(grad, 0, 0);
        assert_ok(tern_optim_zero_grad_with(o, true));
        assert_null(tern_grad(x));
        tern_optim_free(o);
    }
}

/* ---- states ------------------------------------------------------------------------------ */

typedef struct saved {
    char path[24][64];
    tern_tensor *value[24];
    int n;
} saved;

static tern_status save(const char *path, tern_tensor *x, void *user)
{
    saved *s = user;
    snprintf(s->path[s->n], sizeof s->path[0], "%s", path);
    s->value[s->n++] = tern_keep(tern_clone(x));
    return TERN_OK;
}

static void states_go_from_one_optimizer_to_another(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x[MANY], *y[MANY];
        saved s = {.n = 0};
        make_many(device, TERN_F32, x);
        tern_optimizer *a = tern_optim_adam_of(x, 2, 0.1, NULL);
        for (uint64_t t = 0; t < 3; t++) {
            give_gradients(x, t);
            assert_ok(tern_optim_step(a));
        }
        assert_ok(tern_optim_each_state(a, save, &s));
        assert_int_equal(s.n, 11);
        assert_string_equal(s.path[0], "state.0.exp_avg");
        assert_string_equal(s.path[2], "state.0.step");
        assert_int_equal(tern_item_int(s.value[2]), 3);
        assert_string_equal(s.path[6], "param_groups.0.lr");
        for (int i = 0; i < MANY; i++)
            y[i] = tern_requires_grad_(tern_clone(tern_detach(x[i])), true);
        tern_optimizer *b = tern_optim_adam_of(y, 2, 0.7, NULL);
        for (int i = 0; i < s.n; i++)
            assert_ok(tern_optim_set_state(b, s.path[i], s.value[i]));
        assert_true(tern_optim_get_lr(b) == 0.1);
        give_gradients(x, 5);
        give_gradients(y, 5);
        assert_ok(tern_optim_step(a));
        assert_ok(tern_optim_step(b));
        for (int i = 0; i < 2; i++)
            assert_same(x[i], y[i]);
        assert_int_equal(tern_optim_set_state(b, "state.0.sum", s.value[0]), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_adam has no state 'sum'");
        assert_int_equal(tern_optim_set_state(b, "state.7.exp_avg", s.value[0]), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "nothing at 'state.7.exp_avg'");
        assert_int_equal(tern_optim_set_state(b, "state.1.exp_avg", s.value[0]), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "does not have the shape");
        for (int i = 0; i < s.n; i++)
            tern_release(s.value[i]);
        tern_optim_free(a);
        tern_optim_free(b);
    }
}

/* ---- averages, clipping, refusals -------------------------------------------------------- */

static void gradients_are_clipped_by_value(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_module("M", NULL, NULL);
        tern_tensor *x[3];
        static const tern_dtype dtypes[] = {TERN_F32, TERN_F32, TERN_F16};
        static const char *const names[] = {"a", "b", "c"};
        for (int i = 0; i < 3; i++) {
            x[i] = tern_zeros(TERN_SHAPE(4), dtypes[i], device);
            tern_nn_add_parameter(m, names[i], x[i]);
            if (i != 1)
                assert_ok(tern_set_grad(
                    x[i], TENSOR(device, dtypes[i], TERN_SHAPE(4), -3, 0.25, NAN, 7)));
        }
        assert_ok(tern_nn_clip_grad_value_(m, 0.5));
        assert_values(tern_grad(x[0]), -0.5, 0.25, NAN, 0.5);
        assert_values(tern_grad(x[2]), -0.5, 0.25, NAN, 0.5);
        assert_null(tern_grad(x[1]));
        tern_nn_free(m);
    }
}

static void what_they_refuse(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_ones(TERN_SHAPE(2), TERN_F32, NULL), true);
        assert_null(tern_optim_muon_of(&x, 1, 0.1, NULL));
        assert_error(TERN_ERR_SHAPE, "Muon only supports 2D parameters whereas we found a "
                                     "parameter with size: [2]");
        assert_null(tern_optim_rprop_of(&x, 1, 0.1, WITH(rprop, .etaminus = 1.5)));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_rprop: Invalid eta value: 1.5");
        assert_null(tern_optim_adadelta_of(&x, 1, 0.1, WITH(adadelta, .rho = 1.5)));
        assert_error(TERN_ERR_ARGUMENT, "tern_optim_adadelta: Invalid rho value: 1.5");
        assert_null(tern_optim_adagrad_of(&x, 1, 0.1, WITH(adagrad, .lr_decay = -1)));
        assert_error(TERN_ERR_ARGUMENT, "Invalid lr_decay value: -1.0");
        assert_null(tern_optim_nadam_of(&x, 1, 0.1, WITH(nadam, .momentum_decay = -1)));
        assert_error(TERN_ERR_ARGUMENT, "Invalid momentum_decay value: -1.0");
        assert_null(tern_optim_rmsprop_of(&x, 1, 0.1, WITH(rmsprop, .alpha = -1)));
        assert_error(TERN_ERR_ARGUMENT, "Invalid alpha value: -1.0");
        assert_null(tern_optim_lbfgs_of(
            &x, 1, 1, &(tern_lbfgs_options){.line_search_fn = (tern_line_search_fn)2}));
        assert_error(TERN_ERR_ARGUMENT, "Invalid line_search_fn: 2");
        assert_null(tern_swa_averaged_model(NULL, NULL));
        assert_error(TERN_ERR_ARGUMENT, "tern_swa_averaged_model");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(steps_are_pytorchs),
    TEST(a_step_is_one_launch),
    TEST(many_together_are_as_each_alone),
    TEST(halves_step_as_float32_does),
    TEST(steps_skip_where_the_scaler_says_so),
    TEST(groups_have_options_of_their_own),
    TEST(gradients_can_be_zeroed_in_place),
    TEST(states_go_from_one_optimizer_to_another),
    TEST(gradients_are_clipped_by_value),
    TEST(what_they_refuse),
};
TEST_MAIN(tests)
