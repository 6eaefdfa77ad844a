/* test_lr_scheduler.c -- schedulers against 50 steps of PyTorch's. */
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 50 };

static double slow(int64_t epoch, int group, void *user)
{
    (void)group;
    (void)user;
    return 1 / (1 + 0.1 * (double)epoch);
}

#define MAKE(NAME, S)                                                                              \
    static tern_lr_scheduler *NAME(tern_optimizer *o)                                              \
    {                                                                                              \
        return S;                                                                                  \
    }
MAKE(step_lr, tern_lr_scheduler_step_lr(o, 7, 0.5))
MAKE(multi_step_lr, tern_lr_scheduler_multi_step_lr(o, (int64_t[]){5, 12, 12, 40}, 4, 0.3))
MAKE(exponential_lr, tern_lr_scheduler_exponential_lr(o, 0.9))
MAKE(constant_lr, tern_lr_scheduler_constant_lr(o, 0.25, 9))
MAKE(linear_lr, tern_lr_scheduler_linear_lr(o, 0.2, 0.9, 20))
MAKE(polynomial_lr, tern_lr_scheduler_polynomial_lr(o, 30, 2))
MAKE(cosine_annealing_lr, tern_lr_scheduler_cosine_annealing_lr(o, 12, 0.003))
MAKE(warm_restarts, tern_lr_scheduler_cosine_annealing_warm_restarts(o, 5, 2, 0.001))
MAKE(lambda_lr, tern_lr_scheduler_lambda_lr(o, slow, NULL))
MAKE(multiplicative_lr, tern_lr_scheduler_multiplicative_lr(o, slow, NULL))
MAKE(cyclic_lr,
     tern_lr_scheduler_cyclic_lr(o, 0.01, 0.2,
                                 &(tern_cyclic_lr_options){.step_size_up = 6, .step_size_down = 9}))
MAKE(cyclic_lr_2,
     tern_lr_scheduler_cyclic_lr(o, 0.01, 0.2,
                                 &(tern_cyclic_lr_options){.step_size_up = 5,
                                                           .mode = TERN_CYCLIC_TRIANGULAR2,
                                                           .base_momentum = 0.7,
                                                           .max_momentum = 0.95}))
MAKE(cyclic_lr_exp,
     tern_lr_scheduler_cyclic_lr(o, 0.01, 0.2,
                                 &(tern_cyclic_lr_options){.step_size_up = 5,
                                                           .mode = TERN_CYCLIC_EXP_RANGE,
                                                           .gamma = 0.97,
                                                           .no_cycle_momentum = true}))
MAKE(cyclic_lr_scale_fn,
     tern_lr_scheduler_cyclic_lr(o, 0.01, 0.2,
                                 &(tern_cyclic_lr_options){.step_size_up = 4,
                                                           .step_size_down = 3,
                                                           .mode = (tern_cyclic_mode)-1,
                                                           .scale_fn = slow,
                                                           .base_momentum = 0.6}))
MAKE(cyclic_lr_iterations,
     tern_lr_scheduler_cyclic_lr(o, 0, 0,
                                 &(tern_cyclic_lr_options){.step_size_up = 6,
                                                           .gamma = 0.5,
                                                           .scale_fn = slow,
                                                           .scale_mode = TERN_SCALE_ITERATIONS,
                                                           .base_lrs = (double[]){0.01, 0.02},
                                                           .max_lrs = (double[]){0.2, 0.1}}))
MAKE(one_cycle_lr, tern_lr_scheduler_one_cycle_lr(o, 0.5, STEPS + 1, NULL))
MAKE(one_cycle_lr_3, tern_lr_scheduler_one_cycle_lr(o, 0.5, STEPS + 1,
                                                    &(tern_one_cycle_lr_options){
                                                        .pct_start = 0.4,
                                                        .anneal_strategy = TERN_ANNEAL_LINEAR,
                                                        .three_phase = true,
                                                        .div_factor = 10,
                                                        .final_div_factor = 100}))
MAKE(one_cycle_groups,
     tern_lr_scheduler_one_cycle_lr(o, 0, STEPS + 1,
                                    &(tern_one_cycle_lr_options){.max_lrs = (double[]){0.5, 0.1},
                                                                 .no_cycle_momentum = true}))
MAKE(one_cycle_epochs, tern_lr_scheduler_one_cycle_lr(o, 0.5, 0,
                                                      &(tern_one_cycle_lr_options){
                                                          .epochs = 3, .steps_per_epoch = 18}))
MAKE(swa_lr, tern_lr_scheduler_swa_lr(o, 0,
                                      &(tern_swa_lr_options){.anneal_epochs = TERN_SOME(15),
                                                             .swa_lrs = (double[]){0.03, 0.5}}))
MAKE(swa_lr_linear,
     tern_lr_scheduler_swa_lr(o, 0.03,
                              &(tern_swa_lr_options){.anneal_epochs = TERN_SOME(8),
                                                     .anneal_strategy = TERN_ANNEAL_LINEAR}))
MAKE(swa_lr_at_once,
     tern_lr_scheduler_swa_lr(o, 0.03, &(tern_swa_lr_options){.anneal_epochs = TERN_SOME(0)}))
MAKE(linear_lr_to_zero, tern_lr_scheduler_linear_lr(o, 0.1, 0, 5))
MAKE(linear_lr_at_once, tern_lr_scheduler_linear_lr(o, 0.1, 1, 0))
MAKE(polynomial_lr_at_once, tern_lr_scheduler_polynomial_lr(o, 0, 2))
MAKE(one_cycle_linear, tern_lr_scheduler_one_cycle_lr(o, 0.1, STEPS,
                                                      &(tern_one_cycle_lr_options){
                                                          .anneal_strategy = TERN_ANNEAL_LINEAR}))
MAKE(cosine_above, tern_lr_scheduler_cosine_annealing_lr(o, 7, 0.5))
MAKE(plateau, tern_lr_scheduler_reduce_lr_on_plateau(
                  o, &(tern_reduce_lr_on_plateau_options){
                         .factor = 0.5, .patience = TERN_SOME(2), .cooldown = 3, .min_lr = 0.004}))
MAKE(plateau_max,
     tern_lr_scheduler_reduce_lr_on_plateau(o, &(tern_reduce_lr_on_plateau_options){
                                                   .mode = TERN_PLATEAU_MAX,
                                                   .factor = 0.2,
                                                   .patience = TERN_SOME(0),
                                                   .threshold = 0.05,
                                                   .threshold_mode = TERN_THRESHOLD_ABS}))

static tern_lr_scheduler *sequential_lr(tern_optimizer *o)
{
    tern_lr_scheduler *parts[3];
    parts[0] = tern_lr_scheduler_linear_lr(o, 0.1, 1, 8);
    parts[1] = tern_lr_scheduler_cosine_annealing_lr(o, 20, 0.001);
    parts[2] = tern_lr_scheduler_step_lr(o, 3, 0.5);
    return tern_lr_scheduler_sequential_lr(o, parts, 3, (int64_t[]){8, 30});
}

static tern_lr_scheduler *swa_lr_behind(tern_optimizer *o)
{
    tern_lr_scheduler *parts[2];
    parts[0] = tern_lr_scheduler_exponential_lr(o, 0.9);
    parts[1] = tern_lr_scheduler_swa_lr(o, 0.05, NULL);
    return tern_lr_scheduler_sequential_lr(o, parts, 2, (int64_t[]){12});
}

static double fast(int64_t epoch, int group, void *user)
{
    (void)group, (void)user;
    return 1.25 - 0.01 * (double)epoch;
}

/* A constant rate, and from an epoch on another scheduler. */
static tern_lr_scheduler *behind(tern_optimizer *o, tern_lr_scheduler *other, int64_t epoch)
{
    tern_lr_scheduler *parts[2] = {tern_lr_scheduler_constant_lr(o, 0.5, 9), other};
    return tern_lr_scheduler_sequential_lr(o, parts, 2, &epoch);
}
MAKE(multiplicative_behind, behind(o, tern_lr_scheduler_multiplicative_lr(o, fast, NULL), 4))
MAKE(behind_nothing, behind(o, tern_lr_scheduler_exponential_lr(o, 0.9), 0))

static tern_lr_scheduler *cosine_chained(tern_optimizer *o)
{
    tern_lr_scheduler *parts[2];
    parts[0] = tern_lr_scheduler_constant_lr(o, 0.1, 4);
    parts[1] = tern_lr_scheduler_cosine_annealing_lr(o, 7, 0.05);
    return tern_lr_scheduler_chained_scheduler(parts, 2);
}

static tern_lr_scheduler *chained_scheduler(tern_optimizer *o)
{
    tern_lr_scheduler *parts[2];
    parts[0] = tern_lr_scheduler_constant_lr(o, 0.1, 4);
    parts[1] = tern_lr_scheduler_exponential_lr(o, 0.95);
    return tern_lr_scheduler_chained_scheduler(parts, 2);
}

static const struct {
    const char *name;
    tern_lr_scheduler *(*make)(tern_optimizer *o);
} cases[] = {
    {"step_lr", step_lr},
    {"multi_step_lr", multi_step_lr},
    {"exponential_lr", exponential_lr},
    {"constant_lr", constant_lr},
    {"linear_lr", linear_lr},
    {"polynomial_lr", polynomial_lr},
    {"cosine_annealing_lr", cosine_annealing_lr},
    {"warm_restarts", warm_restarts},
    {"lambda_lr", lambda_lr},
    {"multiplicative_lr", multiplicative_lr},
    {"cyclic_lr", cyclic_lr},
    {"cyclic_lr_2", cyclic_lr_2},
    {"cyclic_lr_exp", cyclic_lr_exp},
    {"cyclic_lr_scale_fn", cyclic_lr_scale_fn},
    {"cyclic_lr_iterations", cyclic_lr_iterations},
    {"one_cycle_lr", one_cycle_lr},
    {"one_cycle_lr_3", one_cycle_lr_3},
    {"one_cycle_groups", one_cycle_groups},
    {"one_cycle_epochs", one_cycle_epochs},
    {"sequential_lr", sequential_lr},
    {"chained_scheduler", chained_scheduler},
    {"swa_lr", swa_lr},
    {"swa_lr_linear", swa_lr_linear},
    {"swa_lr_at_once", swa_lr_at_once},
    {"swa_lr_behind", swa_lr_behind},
    {"linear_lr_to_zero", linear_lr_to_zero},
    {"linear_lr_at_once", linear_lr_at_once},
    {"polynomial_lr_at_once", polynomial_lr_at_once},
    {"one_cycle_linear", one_cycle_linear},
    {"cosine_above", cosine_above},
    {"cosine_chained", cosine_chained},
    {"multiplicative_behind", multiplicative_behind},
    {"behind_nothing", behind_nothing},
    {"plateau", plateau},
    {"plateau_max", plateau_max},
};
enum { CASES = sizeof cases / sizeof *cases };

static tern_optimizer *two_groups(double momentum)
{
    tern_tensor *x[2];
    for (int i = 0; i < 2; i++)
        x[i] = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, "cpu"), true);
    tern_optimizer *o = tern_optim_sgd_of(x, 1, 0.1, &(tern_sgd_options){.momentum = momentum});
    assert_int_equal(tern_optim_add_param_group(o, x + 1, 1), 1);
    assert_ok(tern_optim_set_option(o, 1, "lr", 0.02));
    return o;
}

static tern_status step(const char *name, tern_lr_scheduler *s, int t)
{
    return strncmp(name, "plateau", 7) == 0
               ? tern_lr_scheduler_step_metric(s, sin(0.3 * t) + 0.02 * t)
               : tern_lr_scheduler_step(s);
}

static void compare(const char *name, int t, const tern_optimizer *o, const double *row)
{
    const double found[4] = {
        tern_optim_get_option(o, 0, "lr"), tern_optim_get_option(o, 0, "momentum"),
        tern_optim_get_option(o, 1, "lr"), tern_optim_get_option(o, 1, "momentum")};
    for (int i = 0; i < 4; i++)
        if (!(fabs(found[i] - row[i]) <= 1e-14 + 1e-12 * fabs(row[i])))
            fail_msg("%s, step %d: %s of group %d is %.17g instead of %.17g", name, t,
                     i % 2 ? "momentum" : "lr", i / 2, found[i], row[i]);
}

static void rates_are_pytorchs_for_fifty_steps(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("lr_scheduler");
    for (int c = 0; c < CASES; c++)
        TERN_SCOPE {
            double *rows = test_read(test_golden_tensor(file, cases[c].name, "cpu"));
            tern_optimizer *o = two_groups(0.5);
            tern_lr_scheduler *s = cases[c].make(o);
            assert_non_null(s);
            for (int t = 0; t <= STEPS; t++) {
                compare(cases[c].name, t, o, rows + 4 * (size_t)t);
                assert_true(tern_lr_scheduler_get_last_lr(s, 1) ==
                            tern_optim_get_option(o, 1, "lr"));
                assert_int_equal(tern_lr_scheduler_last_epoch(s), t);
                if (t < STEPS)
                    assert_ok(step(cases[c].name, s, t));
            }
            free(rows);
            tern_lr_scheduler_free(s);
            tern_optim_free(o);
        }
    test_golden_close(file);
}

/* Stopped after 20 steps and gone on with new objects, by the states. */
static void a_schedule_goes_on_from_its_state(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++)
        TERN_SCOPE {
            if (cases[c].make == sequential_lr || cases[c].make == chained_scheduler ||
                cases[c].make == swa_lr_behind || cases[c].make == cosine_chained ||
                cases[c].make == multiplicative_behind || cases[c].make == behind_nothing)
                continue;
            tern_optimizer *o[2] = {two_groups(0.5), two_groups(0.5)};
            tern_lr_scheduler *s[2] = {cases[c].make(o[0]), cases[c].make(o[1])};
            tern_lr_scheduler_state at;
            for (int t = 0; t < 20; t++)
                assert_ok(step(cases[c].name, s[0], t));
            assert_ok(tern_lr_scheduler_get_state(s[0], &at));
            assert_ok(tern_lr_scheduler_set_state(s[1], &at));
            for (int g = 0; g < 2; g++)
                assert_ok(
                    tern_optim_set_option(o[1], g, "lr", tern_optim_get_option(o[0], g, "lr")));
            for (int t = 20; t < 40; t++) {
                assert_ok(step(cases[c].name, s[0], t));
                assert_ok(step(cases[c].name, s[1], t));
                assert_true(tern_optim_get_lr(o[0]) == tern_optim_get_lr(o[1]));
            }
            for (int i = 0; i < 2; i++) {
                tern_lr_scheduler_free(s[i]);
                tern_optim_free(o[i]);
            }
        }
}

static void adams_beta_is_its_momentum(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, "cpu"), true);
        tern_optimizer *o = tern_optim_adamw_of(&x, 1, 0.1, NULL);
        tern_lr_scheduler *s = tern_lr_scheduler_one_cycle_lr(o, 0.1, 10, NULL);
        assert_true(tern_optim_get_option(o, 0, "beta1") == 0.95);
        assert_true(fabs(tern_optim_get_lr(o) - 0.004) < 1e-15);
        assert_ok(tern_lr_scheduler_step(s));
        assert_ok(tern_lr_scheduler_step(s));
        assert_true(fabs(tern_optim_get_option(o, 0, "beta1") - 0.85) < 1e-15);
        for (int t = 0; t < 8; t++)
            assert_ok(tern_lr_scheduler_step(s));
        assert_int_equal(tern_lr_scheduler_step(s), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "Tried to step 12 times. The specified number of total steps "
                                     "is 10");
        tern_lr_scheduler_free(s);
        tern_optim_free(o);
    }
}

/* A function of the program's that notes what it is asked for. */
static int64_t asked[64];
static int n_asked;
static double note(int64_t x, int group, void *user)
{
    asked[n_asked++] = 10 * x + group;
    return *(double *)user;
}

static void scale_fn_is_given_the_cycle_or_the_step(void **state)
{
    static const int64_t cycles[] = {10, 11, 10, 11, 20, 21, 20, 21};
    static const int64_t steps[] = {0, 1, 10, 11, 20, 21, 30, 31};
    double half = 0.5;
    (void)state;
    for (int k = 0; k < 2; k++)
        TERN_SCOPE {
            tern_optimizer *o = two_groups(0);
            n_asked = 0;
            tern_lr_scheduler *s = tern_lr_scheduler_cyclic_lr(
                o, 0, 1,
                TERN_DEFAULTS(
                    cyclic_lr, .step_size_up = 1, .no_cycle_momentum = true, .scale_fn = note,
                    .scale_mode = k ? TERN_SCALE_ITERATIONS : TERN_SCALE_CYCLE, .user = &half));
            for (int t = 0; t < 3; t++) {
                assert_true(tern_optim_get_lr(o) == (t % 2 ? 0.5 : 0));
                assert_ok(tern_lr_scheduler_step(s));
            }
            assert_int_equal(n_asked, 8);
            assert_memory_equal(asked, k ? steps : cycles, sizeof steps);
            tern_lr_scheduler_free(s);
            tern_optim_free(o);
        }
}

/* torch.optim.lr_scheduler.OneCycleLR's errors, word for word; total_steps goes before the others. */
static void the_length_of_one_cycle_is_given_in_one_way(void **state)
{
    static const struct {
        int64_t total_steps, epochs, steps_per_epoch;
        const char *error;
    } lengths[] = {
        {0, 0, 0, "You must define either total_steps OR (epochs AND steps_per_epoch)"},
        {0, 3, 0, "You must define either total_steps OR (epochs AND steps_per_epoch)"},
        {0, 0, 5, "You must define either total_steps OR (epochs AND steps_per_epoch)"},
        {-1, 3, 5, "Expected positive integer total_steps, but got -1"},
        {0, -3, 5, "Expected positive integer epochs, but got -3"},
        {0, 3, -5, "Expected positive integer steps_per_epoch, but got -5"},
        {0, INT64_MAX / 2, 3, NULL},
        {4, 100, -5, NULL},
        {0, 2, 2, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        TERN_SCOPE {
            const tern_one_cycle_lr_options options = {.no_cycle_momentum = true,
                                                       .epochs = lengths[i].epochs,
                                                       .steps_per_epoch =
                                                           lengths[i].steps_per_epoch};
            tern_optimizer *o = two_groups(0);
            tern_lr_scheduler *s =
                tern_lr_scheduler_one_cycle_lr(o, 1, lengths[i].total_steps, &options);
            if (lengths[i].error) {
                assert_null(s);
                assert_error(TERN_ERR_ARGUMENT, lengths[i].error);
            } else {
                assert_non_null(s);
                for (int t = 0; t < 4; t++)
                    assert_ok(tern_lr_scheduler_step(s));
                const bool ended = tern_lr_scheduler_step(s) == TERN_ERR_STATE;
                assert_int_equal(ended, lengths[i].epochs < 1000);
                tern_clear_error();
            }
            tern_lr_scheduler_free(s);
            tern_optim_free(o);
        }
}

static void the_new_rate_is_the_one_that_steps(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_requires_grad_(tern_zeros(TERN_SHAPE(1), TERN_F32, "cpu"), true);
        tern_optimizer *o = tern_optim_sgd_of(&x, 1, 1, NULL);
        tern_lr_scheduler *s = tern_lr_scheduler_exponential_lr(o, 0.5);
        assert_ok(tern_set_grad(x, tern_ones_like(x)));
        for (int t = 0; t < 3; t++) {
            assert_ok(tern_optim_step(o));
            assert_ok(tern_lr_scheduler_step(s));
        }
        assert_values(x, -1.75);
        tern_lr_scheduler_free(s);
        tern_optim_free(o);
    }
}

static void bad_schedules_are_refused(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_optimizer *o = two_groups(0), *other = two_groups(0);
        assert_null(tern_lr_scheduler_step_lr(NULL, 1, 0.1));
        assert_error(TERN_ERR_ARGUMENT, "tern_lr_scheduler_step_lr");
        assert_null(tern_lr_scheduler_step_lr(o, 0, 0.1));
        assert_error(TERN_ERR_ARGUMENT, "Expected positive integer step_size, but got 0");
        assert_null(tern_lr_scheduler_linear_lr(o, 0.1, 1, -1));
        assert_error(TERN_ERR_ARGUMENT, "Expected non-negative integer total_iters, but got -1");
        assert_null(tern_lr_scheduler_linear_lr(o, 2, 1, 5));
        assert_error(TERN_ERR_ARGUMENT, "Starting multiplicative factor expected to be between 0");
        assert_null(tern_lr_scheduler_constant_lr(o, -1, 5));
        assert_error(TERN_ERR_ARGUMENT, "Constant multiplicative factor expected to be between 0");
        assert_null(tern_lr_scheduler_one_cycle_lr(o, 1, 0, NULL));
        assert_error(TERN_ERR_ARGUMENT, "You must define either total_steps OR");
        assert_null(tern_lr_scheduler_cyclic_lr(
            o, 0, 1, &(tern_cyclic_lr_options){.mode = (tern_cyclic_mode)3}));
        assert_error(TERN_ERR_ARGUMENT, "mode 3 is none of tern_cyclic_mode");
        assert_null(tern_lr_scheduler_cyclic_lr(
            o, 0, 1, &(tern_cyclic_lr_options){.scale_mode = (tern_scale_mode)2}));
        assert_error(TERN_ERR_ARGUMENT, "scale_mode 2 is none of tern_scale_mode");
        assert_null(tern_lr_scheduler_cosine_annealing_warm_restarts(o, 3, 0, 0));
        assert_error(TERN_ERR_ARGUMENT, "Expected integer t_mult >= 1, but got 0");
        assert_null(tern_lr_scheduler_lambda_lr(o, NULL, NULL));
        assert_error(TERN_ERR_ARGUMENT, "lambda");
        assert_null(tern_lr_scheduler_reduce_lr_on_plateau(
            o, &(tern_reduce_lr_on_plateau_options){.factor = 1}));
        assert_error(TERN_ERR_ARGUMENT, "Factor should be < 1.0");
        tern_lr_scheduler *s = tern_lr_scheduler_reduce_lr_on_plateau(o, NULL);
        assert_int_equal(tern_lr_scheduler_step(s), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "tern_lr_scheduler_step_metric");
        assert_true(isnan(tern_lr_scheduler_get_last_lr(s, 2)));
        assert_error(TERN_ERR_ARGUMENT, "group 2 is out of range");
        tern_lr_scheduler *parts[] = {exponential_lr(o), exponential_lr(other)};
        assert_null(tern_lr_scheduler_sequential_lr(o, parts, 2, (int64_t[]){3}));
        assert_error(TERN_ERR_ARGUMENT, "expects all schedulers to belong to the same optimizer");
        parts[0] = exponential_lr(o);
        parts[1] = exponential_lr(o);
        assert_null(tern_lr_scheduler_sequential_lr(o, parts, 2, NULL));
        assert_error(TERN_ERR_ARGUMENT, "milestones");
        parts[0] = parts[1] = exponential_lr(o);
        assert_null(tern_lr_scheduler_sequential_lr(o, parts, 2, (int64_t[]){3}));
        assert_error(TERN_ERR_ARGUMENT, "the scheduler at index 1 is there twice");
        parts[0] = parts[1] = exponential_lr(o);
        assert_null(tern_lr_scheduler_chained_scheduler(parts, 2));
        assert_error(TERN_ERR_ARGUMENT, "the scheduler at index 1 is there twice");
        tern_optimizer *adagrad = tern_optim_adagrad_of(
            &(tern_tensor *){tern_requires_grad_(tern_ones(TERN_SHAPE(1), TERN_F32, NULL), true)},
            1, 0.1, NULL);
        assert_null(tern_lr_scheduler_one_cycle_lr(adagrad, 1, 10, NULL));
        assert_error(TERN_ERR_ARGUMENT, "optimizer must support momentum");
        assert_null(tern_lr_scheduler_swa_lr(
            o, 0.1, &(tern_swa_lr_options){.anneal_strategy = (tern_anneal_strategy)2}));
        assert_error(TERN_ERR_ARGUMENT, "anneal_strategy 2 is none of tern_anneal_strategy");
        assert_null(tern_lr_scheduler_reduce_lr_on_plateau(
            o, &(tern_reduce_lr_on_plateau_options){.mode = (tern_plateau_mode)2}));
        assert_error(TERN_ERR_ARGUMENT, "mode 2 is none of tern_plateau_mode");
        tern_lr_scheduler_free(s);
        tern_optim_free(adagrad);
        tern_optim_free(o);
        tern_optim_free(other);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(rates_are_pytorchs_for_fifty_steps),
    TEST(a_schedule_goes_on_from_its_state),
    TEST(adams_beta_is_its_momentum),
    TEST(the_new_rate_is_the_one_that_steps),
    TEST(scale_fn_is_given_the_cycle_or_the_step),
    TEST(the_length_of_one_cycle_is_given_in_one_way),
    TEST(bad_schedules_are_refused),
};
TEST_MAIN(tests)
