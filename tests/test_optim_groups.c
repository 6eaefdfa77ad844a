/* test_optim_groups.c -- which parameters an optimizer has: frozen ones, groups by module, and what
 * schedulers make of groups that come later. */
#include "support.h"
#include <math.h>
#include <stdio.h>

/* ---- every optimizer, by the rows of optimizers.def ------------------------------------------ */

typedef struct maker {
    const char *name;
    tern_optimizer *(*of_module)(tern_module *m, double lr);
    tern_optimizer *(*of_list)(tern_tensor *const *x, int n, double lr);
} maker;

#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    static tern_optimizer *NAME##_of_module(tern_module *m, double lr)                             \
    {                                                                                              \
        return tern_optim_##NAME(m, lr, NULL);                                                     \
    }                                                                                              \
    static tern_optimizer *NAME##_of_list(tern_tensor *const *x, int n, double lr)                 \
    {                                                                                              \
        return tern_optim_##NAME##_of(x, n, lr, NULL);                                             \
    }
#include "optimizers.def"
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS) {#NAME, NAME##_of_module, NAME##_of_list},
static const maker makers[] = {
#include "optimizers.def"
};
enum { MAKERS = sizeof makers / sizeof *makers };

/* Two layers; Muon takes matrices only. */
static tern_module *two_layers(const char *device)
{
    const tern_linear_options bare = {.no_bias = true, .device = device};
    return tern_nn_sequential(tern_nn_linear(3, 4, &bare), tern_nn_linear(4, 2, &bare));
}

static tern_tensor *loss_of(void *user)
{
    tern_module *m = user;
    tern_nn_zero_grad(m);
    const char *device = tern_device(tern_nn_parameter(m, "0.weight"));
    tern_tensor *loss =
        tern_sum(tern_square(tern_nn_forward(m, tern_ones(TERN_SHAPE(2, 3), TERN_F32, device))));
    tern_backward(loss);
    return loss;
}

static void step(const maker *k, tern_optimizer *o, tern_module *m)
{
    if (strcmp(k->name, "lbfgs") == 0) {
        assert_ok(tern_optim_step_closure(o, loss_of, m, NULL));
    } else {
        loss_of(m);
        assert_ok(tern_optim_step(o));
    }
}

static tern_status count_first(const char *path, tern_tensor *x, void *user)
{
    (void)x;
    *(int *)user += strncmp(path, "state.0.", 8) == 0 && strcmp(path, "state.0.step") != 0;
    return TERN_OK;
}

/* Whether the step moved the parameter at path. */
static bool moves(const maker *k, tern_optimizer *o, tern_module *m, const char *path)
{
    tern_tensor *before = tern_clone(tern_detach(tern_nn_parameter(m, path)));
    step(k, o, m);
    return !tern_equal(before, tern_nn_parameter(m, path));
}

static void check_frozen(const maker *k, tern_optimizer *o, tern_module *m)
{
    int states = 0;
    assert_non_null(o);
    assert_false(moves(k, o, m, "0.weight"));
    assert_true(moves(k, o, m, "1.weight"));
    assert_ok(tern_optim_each_state(o, count_first, &states));
    if (strcmp(k->name, "lbfgs") != 0) /* whose states are of all parameters at once */
        assert_int_equal(states, 0);   /* it begins with the first gradient */
    tern_nn_requires_grad_(m, true);
    if (!moves(k, o, m, "0.weight"))
        fail_msg("%s does not train a parameter that was frozen", k->name);
    tern_optim_free(o);
}

static void frozen_parameters_train_when_they_are_thawed(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (int k = 0; k < MAKERS; k++)
            TERN_SCOPE {
                tern_module *m = two_layers(device);
                tern_nn_requires_grad_(tern_nn_child(m, "0"), false);
                check_frozen(&makers[k], makers[k].of_module(m, 0.01), m);
                tern_tensor *x[2];
                tern_nn_requires_grad_(tern_nn_child(m, "0"), false);
                assert_int_equal(tern_nn_parameters(m, x, 2), 2);
                check_frozen(&makers[k], makers[k].of_list(x, 2, 0.01), m);
                tern_nn_free(m);
            }
    }
}

/* Counts of steps, as for Adam's bias correction, begin then too: the first step is a new optimizer's. */
static void a_thawed_parameter_begins_anew(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        for (int k = 0; k < MAKERS; k++)
            TERN_SCOPE {
                if (strcmp(makers[k].name, "lbfgs") == 0) /* all parameters are one vector */
                    continue;
                tern_module *m = two_layers(device);
                tern_nn_requires_grad_(tern_nn_child(m, "0"), false);
                tern_optimizer *o = makers[k].of_module(m, 0.01);
                for (int i = 0; i < 3; i++)
                    step(&makers[k], o, m);
                tern_nn_requires_grad_(m, true);
                tern_module *twin = tern_nn_copy(m);
                tern_optimizer *fresh = makers[k].of_module(twin, 0.01);
                step(&makers[k], o, m);
                step(&makers[k], fresh, twin);
                if (!tern_equal(tern_nn_parameter(m, "0.weight"),
                                tern_nn_parameter(twin, "0.weight")))
                    fail_msg("%s counts the steps of a frozen parameter", makers[k].name);
                tern_optim_free(fresh);
                tern_optim_free(o);
                tern_nn_free(twin);
                tern_nn_free(m);
            }
    }
}

/* As with LoRA: all is frozen when the optimizer is made. */
static void a_frozen_module_has_an_optimizer(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_module *m = tern_nn_requires_grad_(two_layers("cpu"), false);
        tern_optimizer *o = tern_optim_adamw(m, 0.1, NULL);
        assert_non_null(o);
        assert_ok(tern_optim_step(o));
        tern_nn_requires_grad_(m, true);
        loss_of(m);
        tern_tensor *w = tern_nn_parameter(m, "0.weight"), *before = tern_clone(tern_detach(w));
        assert_ok(tern_optim_step(o));
        assert_false(tern_equal(before, w));
        tern_optim_free(o);
        tern_tensor *computed = tern_mul_scalar(w, TERN_SCALAR(2));
        assert_null(tern_optim_sgd_of(&computed, 1, 0.1, NULL));
        assert_error(TERN_ERR_STATE, "can't optimize a non-leaf Tensor");
        tern_nn_free(m);
    }
}

/* ---- groups ------------------------------------------------------------------------------ */

static void a_module_is_a_group(void **state)
{
    (void)state;
    for (int k = 0; k < MAKERS; k++)
        TERN_SCOPE {
            tern_module *m = two_layers("cpu");
            tern_optimizer *o = makers[k].of_module(tern_nn_child(m, "0"), 0.01);
            if (strcmp(makers[k].name, "lbfgs") == 0) {
                assert_int_equal(tern_optim_add_module(o, tern_nn_child(m, "1")), -1);
                assert_error(TERN_ERR_UNSUPPORTED, "tern_optim_add_module: LBFGS doesn't support");
            } else {
                assert_int_equal(tern_optim_add_module(o, tern_nn_child(m, "1")), 1);
                assert_ok(tern_optim_set_option(o, 1, "lr", 0));
                /* Rprop's steps are at least step_size_min. */
                if (strcmp(makers[k].name, "rprop") != 0)
                    assert_false(moves(&makers[k], o, m, "1.weight"));
                assert_true(moves(&makers[k], o, m, "0.weight"));
                assert_ok(tern_optim_set_option(o, 1, "lr", 0.01));
                if (!moves(&makers[k], o, m, "1.weight"))
                    fail_msg("%s: a new rate of group 1 has no effect", makers[k].name);
                assert_int_equal(tern_optim_add_module(o, m), -1);
                assert_error(TERN_ERR_ARGUMENT,
                             "some parameters appear in more than one parameter group");
                assert_int_equal(tern_optim_param_groups(o), 2);
            }
            tern_optim_free(o);
            tern_nn_free(m);
        }
}

static void wrong_groups_are_refused(void **state)
{
    (void)state;
    tern_module *m = two_layers("cpu"), *empty = tern_nn_relu();
    tern_optimizer *o = tern_optim_sgd(m, 0.1, NULL);
    assert_int_equal(tern_optim_add_module(o, NULL), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_optim_add_module: module is NULL");
    assert_int_equal(tern_optim_add_module(NULL, m), -1);
    assert_error(TERN_ERR_ARGUMENT, "tern_optim_add_module: optimizer is NULL");
    assert_int_equal(tern_optim_add_module(o, empty), 1);
    tern_optim_free(o);
    tern_nn_free(empty);
    tern_nn_free(m);
}

/* ---- schedulers: three steps, a group with lr 0.02, eight steps more ------------------------- */

static tern_lr_scheduler *step_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_step_lr(o, 3, 0.5);
}
static tern_lr_scheduler *multi_step_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_multi_step_lr(o, (const int64_t[]){2, 5, 6}, 3, 0.5);
}
static tern_lr_scheduler *exponential_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_exponential_lr(o, 0.9);
}
static tern_lr_scheduler *constant_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_constant_lr(o, 0.5, 6);
}
static tern_lr_scheduler *linear_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_linear_lr(o, 0.5, 1, 8);
}
static tern_lr_scheduler *polynomial_lr(tern_optimizer *o)
{
    return tern_lr_scheduler_polynomial_lr(o, 12, 2);
}
static tern_lr_scheduler *plateau(tern_optimizer *o)
{
    return tern_lr_scheduler_reduce_lr_on_plateau(
        o, &(tern_reduce_lr_on_plateau_options){
               .patience = TERN_SOME(1), .factor = 0.5, .min_lr = 0.001});
}
static tern_lr_scheduler *plateau_each(tern_optimizer *o)
{
    static const double least[] = {0.001};
    return tern_lr_scheduler_reduce_lr_on_plateau(
        o, &(tern_reduce_lr_on_plateau_options){.patience = TERN_SOME(1), .min_lrs = least});
}
static tern_lr_scheduler *cosine(tern_optimizer *o)
{
    return tern_lr_scheduler_cosine_annealing_lr(o, 6, 0.001);
}
static tern_lr_scheduler *warm_restarts(tern_optimizer *o)
{
    return tern_lr_scheduler_cosine_annealing_warm_restarts(o, 4, 1, 0);
}
static tern_lr_scheduler *cyclic(tern_optimizer *o)
{
    return tern_lr_scheduler_cyclic_lr(
        o, 0.01, 0.1, &(tern_cyclic_lr_options){.step_size_up = 4, .no_cycle_momentum = true});
}

/* PyTorch 2.15's rates at the end; 0: it refuses, and so does tern. */
static const struct {
    const char *name;
    tern_lr_scheduler *(*make)(tern_optimizer *o);
    double first, second;
} schedules[] = {
    {"step_lr", step_lr, 0.0125, 0.005},
    {"multi_step_lr", multi_step_lr, 0.0125, 0.005},
    {"exponential_lr", exponential_lr, 0.03138105960900001, 0.008609344200000004},
    {"constant_lr", constant_lr, 0.1, 0.04},
    {"linear_lr", linear_lr, 0.09999999999999996, 0.02909090909090908},
    {"polynomial_lr", polynomial_lr, 0.000694444444444445, 0.00024691358024691375},
    {"plateau", plateau, 0.003125, 0.00125},
    {"plateau of min_lrs", plateau_each, 0, 0},
    {"cosine_annealing_lr", cosine, 0, 0},
    {"cosine_annealing_warm_restarts", warm_restarts, 0, 0},
    {"cyclic_lr", cyclic, 0, 0},
};

static tern_status scheduled(tern_lr_scheduler *s, const char *name)
{
    return strncmp(name, "plateau", 7) == 0 ? tern_lr_scheduler_step_metric(s, 1)
                                            : tern_lr_scheduler_step(s);
}

static void schedulers_see_new_groups(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) {
        tern_module *m = two_layers("cpu");
        tern_optimizer *o = tern_optim_sgd(tern_nn_child(m, "0"), 0.1, NULL);
        tern_lr_scheduler *s = schedules[k].make(o);
        tern_status status = TERN_OK;
        for (int t = 0; t < 3; t++)
            assert_ok(scheduled(s, schedules[k].name));
        assert_int_equal(tern_optim_add_module(o, tern_nn_child(m, "1")), 1);
        assert_ok(tern_optim_set_option(o, 1, "lr", 0.02));
        for (int t = 0; t < 8 && status == TERN_OK; t++)
            status = scheduled(s, schedules[k].name);
        if (schedules[k].first == 0) {
            assert_int_not_equal(status, TERN_OK);
            assert_error(status, "parameter groups");
        } else {
            assert_ok(status);
            assert_true(fabs(tern_optim_get_lr(o) - schedules[k].first) < 1e-15);
            assert_true(fabs(tern_optim_get_option(o, 1, "lr") - schedules[k].second) < 1e-15);
            assert_true(tern_lr_scheduler_get_last_lr(s, 1) == tern_optim_get_option(o, 1, "lr"));
        }
        tern_lr_scheduler_free(s);
        tern_optim_free(o);
        tern_nn_free(m);
    }
}

/* ---- what an optimizer makes is its own, wherever it is made ------------------------------------ */

static void nothing_is_left_in_the_programs_scope(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < MAKERS; i++) {
        const maker *k = &makers[i];
        tern_module *m = two_layers(device);
        tern_optimizer *first = k->of_module(m, 0.01);
        TERN_SCOPE
            step(k, first, m);
        tern_state_dict *dict = tern_optim_state_dict(first);
        const int64_t live = tern_live_tensors();
        for (int load = 0; load < 2; load++) {
            tern_optimizer *o = k->of_module(m, 0.01);
            if (load)
                assert_ok(tern_optim_load_state_dict(o, dict));
            tern_state_dict_free(tern_optim_state_dict(o));
            if (strcmp(k->name, "lbfgs") != 0)
                assert_ok(tern_optim_step(o));
            tern_optim_free(o);
            if (tern_live_tensors() != live)
                fail_msg("%s on %s: %lld tensors are left", k->name, device,
                         (long long)(tern_live_tensors() - live));
        }
        tern_state_dict_free(dict);
        tern_optim_free(first);
        tern_nn_free(m);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(frozen_parameters_train_when_they_are_thawed),
    TEST(a_thawed_parameter_begins_anew),
    TEST(a_frozen_module_has_an_optimizer),
    TEST(a_module_is_a_group),
    TEST(wrong_groups_are_refused),
    TEST(schedulers_see_new_groups),
    TEST(nothing_is_left_in_the_programs_scope),
};
TEST_MAIN(tests)
