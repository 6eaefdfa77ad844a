/* accumulators.c -- optimizers that measure each element's gradients: RMSprop, Adagrad, Adadelta,
 * Rprop; and ASGD, which averages the parameters. */
#include "optim/optimizer.h"
#include <float.h>
#include <math.h>

#define KIND(X, FAMILY, ...)                                                                       \
    static const tern_optim_kind X = {.name = "tern_optim_" #X,                                    \
                                      .many = {FAMILY, #X},                                        \
                                      .few = {FAMILY, #X "_few"},                                  \
                                      .only_wide = true,                                           \
                                      __VA_ARGS__};

/* option: {lr, average's decay, eps, weight decay, ...} -> {lr, weight decay, decay, 1 - decay,
 * eps,
 * ...} */
static void resolve_average(const double *option, double *number)
{
    const double numbers[] = {option[0], option[3], option[1], 1 - option[1], option[2], option[4]};
    for (int i = 0; i < 6; i++)
        number[i] = numbers[i];
}

/* option: {lr, weight decay, ...}, as the kernel has it. */
static void resolve_as_is(const double *option, double *number)
{
    for (int i = 0; i < OPTIM_OPTIONS; i++)
        number[i] = option[i];
}

/* No decay of weights here. */
static void resolve_rprop(const double *option, double *number)
{
    number[0] = option[0];
    for (int i = 1; i < 5; i++)
        number[i + 1] = option[i];
}

KIND(rmsprop, "rmsprop_adagrad",
     .option = {OPTIM_LR,
                {"alpha", "alpha value", 0, INFINITY},
                OPTIM_EPS,
                OPTIM_WEIGHT_DECAY,
                OPTIM_MOMENTUM},
     .state = {"square_avg", "grad_avg", "momentum_buffer"}, .momentum_states = 4,
     .resolve = resolve_average)
KIND(adadelta, "rmsprop_adagrad",
     .option = {OPTIM_LR, {"rho", "rho value", 0, 1 + DBL_EPSILON}, OPTIM_EPS, OPTIM_WEIGHT_DECAY},
     .state = {"square_avg", "acc_delta"}, .resolve = resolve_average)
KIND(adagrad, "rmsprop_adagrad",
     .option = {OPTIM_LR,
                OPTIM_WEIGHT_DECAY,
                {"lr_decay", "lr_decay value", 0, INFINITY},
                {"initial_accumulator_value", "initial_accumulator_value value", 0, INFINITY},
                OPTIM_EPS},
     .state = {"sum"}, .resolve = resolve_as_is)
KIND(rprop, "sgd_variants",
     .option = {OPTIM_LR,
                {"etaminus", "eta value", DBL_MIN, 1},
                {"etaplus", "eta value", 1 + DBL_EPSILON, INFINITY},
                {"step_size_min", "step size", 0, INFINITY},
                {"step_size_max", "step size", 0, INFINITY}},
     .state = {"prev", "step_size"}, .resolve = resolve_rprop)
KIND(asgd, "sgd_variants",
     .option = {OPTIM_LR,
                OPTIM_WEIGHT_DECAY,
                {"lambd", "lambd value", -INFINITY, INFINITY},
                {"alpha", "alpha value", -INFINITY, INFINITY},
                {"t0", "t0 value", -INFINITY, INFINITY}},
     .state = {"ax"}, .resolve = resolve_as_is)

static int32_t maximize_if(bool maximize)
{
    return maximize ? TERN_OPTIM_MAXIMIZE : 0;
}

static tern_optimizer *finish_rmsprop(tern_optimizer *self, const tern_rmsprop_options *options)
{
    tern_rmsprop_options o = options ? *options : (tern_rmsprop_options){0};
    const double numbers[] = {tern_option(o.alpha, 0.99), tern_option(o.eps, 1e-8),
                              tern_option(o.weight_decay, 0), tern_option(o.momentum, 0)};
    bool momentum = numbers[3] > 0;
    return tern_optim_finish(self, numbers, 4, 1u | (o.centered ? 2u : 0) | (momentum ? 4u : 0),
                             maximize_if(o.maximize) | (o.centered ? TERN_OPTIM_CENTERED : 0) |
                                 (momentum ? TERN_OPTIM_MOMENTUM : 0));
}

static tern_optimizer *finish_adadelta(tern_optimizer *self, const tern_adadelta_options *options)
{
    tern_adadelta_options o = options ? *options : (tern_adadelta_options){0};
    const double numbers[] = {tern_option(o.rho, 0.9), tern_option(o.eps, 1e-6),
                              tern_option(o.weight_decay, 0)};
    return tern_optim_finish(self, numbers, 3, 3, maximize_if(o.maximize));
}

static tern_optimizer *finish_adagrad(tern_optimizer *self, const tern_adagrad_options *options)
{
    tern_adagrad_options o = options ? *options : (tern_adagrad_options){0};
    const double numbers[] = {tern_option(o.weight_decay, 0), tern_option(o.lr_decay, 0),
                              tern_option(o.initial_accumulator_value, 0),
                              tern_option(o.eps, 1e-10)};
    return tern_optim_finish(self, numbers, 4, 1, maximize_if(o.maximize));
}

static tern_optimizer *finish_rprop(tern_optimizer *self, const tern_rprop_options *options)
{
    tern_rprop_options o = options ? *options : (tern_rprop_options){0};
    const double numbers[] = {tern_option(o.etaminus, 0.5), tern_option(o.etaplus, 1.2),
                              tern_option(o.step_size_min, 1e-6), tern_option(o.step_size_max, 50)};
    return tern_optim_finish(self, numbers, 4, 3, maximize_if(o.maximize));
}

static tern_optimizer *finish_asgd(tern_optimizer *self, const tern_asgd_options *options)
{
    tern_asgd_options o = options ? *options : (tern_asgd_options){0};
    const double numbers[] = {tern_option(o.weight_decay, 0), tern_option(o.lambd, 1e-4),
                              tern_option(o.alpha, 0.75), tern_option(o.t0, 1e6)};
    return tern_optim_finish(self, numbers, 4, 1, maximize_if(o.maximize));
}

OPTIM_CONSTRUCTORS(rmsprop, tern_rmsprop_options, rmsprop, finish_rmsprop)
OPTIM_CONSTRUCTORS(adadelta, tern_adadelta_options, adadelta, finish_adadelta)
OPTIM_CONSTRUCTORS(adagrad, tern_adagrad_options, adagrad, finish_adagrad)
OPTIM_CONSTRUCTORS(rprop, tern_rprop_options, rprop, finish_rprop)
OPTIM_CONSTRUCTORS(asgd, tern_asgd_options, asgd, finish_asgd)
