/* moments.c -- Adamax, NAdam and RAdam: Adam's two moments, used in other ways. */
#include "optim/optimizer.h"
#include <math.h>

void tern_optim_resolve_moments(const double *option, double *number)
{
    const double beta1 = option[1], beta2 = option[2];
    const double numbers[] = {option[0],
                              option[4],
                              beta1,
                              1 - beta1,
                              beta2,
                              1 - beta2,
                              option[3],
                              tern_optim_log_beta(beta1),
                              tern_optim_log_beta(beta2)};
    for (int i = 0; i < 9; i++)
        number[i] = numbers[i];
}

static void resolve_nadam(const double *option, double *number)
{
    tern_optim_resolve_moments(option, number);
    number[9] = option[5] * log(0.96);
}

/* The last one is a small difference of large numbers. */
static void resolve_radam(const double *option, double *number)
{
    tern_optim_resolve_moments(option, number);
    number[9] = 2 / number[5] - 1;
    number[10] = number[9] + 2 / number[8];
}

#define MOMENTS OPTIM_LR, OPTIM_BETA1, OPTIM_BETA2, OPTIM_EPS, OPTIM_WEIGHT_DECAY
static const tern_optim_kind adamax = {.name = "tern_optim_adamax",
                                       .many = {"adam_variants", "adamax"},
                                       .few = {"adam_variants", "adamax_few"},
                                       .only_wide = true,
                                       .option = {MOMENTS},
                                       .state = {"exp_avg", "exp_inf"},
                                       .resolve = tern_optim_resolve_moments};
static const tern_optim_kind nadam = {
    .name = "tern_optim_nadam",
    .many = {"adam_variants", "nadam"},
    .few = {"adam_variants", "nadam_few"},
    .only_wide = true,
    .option = {MOMENTS, {"momentum_decay", "momentum_decay value", 0, INFINITY}},
    .state = {"exp_avg", "exp_avg_sq"},
    .resolve = resolve_nadam};
static const tern_optim_kind radam = {.name = "tern_optim_radam",
                                      .many = {"adam_variants", "radam"},
                                      .few = {"adam_variants", "radam_few"},
                                      .only_wide = true,
                                      .option = {MOMENTS},
                                      .state = {"exp_avg", "exp_avg_sq"},
                                      .resolve = resolve_radam};

static int32_t flags(bool maximize, bool decoupled)
{
    return (maximize ? TERN_OPTIM_MAXIMIZE : 0) | (decoupled ? TERN_OPTIM_DECOUPLED : 0);
}

static tern_optimizer *finish_adamax(tern_optimizer *self, const tern_adamax_options *options)
{
    tern_adamax_options o = options ? *options : (tern_adamax_options){0};
    const double numbers[] = {tern_option(o.beta1, 0.9), tern_option(o.beta2, 0.999),
                              tern_option(o.eps, 1e-8), tern_option(o.weight_decay, 0)};
    return tern_optim_finish(self, numbers, 4, 3, flags(o.maximize, false));
}

static tern_optimizer *finish_nadam(tern_optimizer *self, const tern_nadam_options *options)
{
    tern_nadam_options o = options ? *options : (tern_nadam_options){0};
    const double numbers[] = {tern_option(o.beta1, 0.9), tern_option(o.beta2, 0.999),
                              tern_option(o.eps, 1e-8), tern_option(o.weight_decay, 0),
                              tern_option(o.momentum_decay, 4e-3)};
    return tern_optim_finish(self, numbers, 5, 3, flags(o.maximize, o.decoupled_weight_decay));
}

static tern_optimizer *finish_radam(tern_optimizer *self, const tern_radam_options *options)
{
    tern_radam_options o = options ? *options : (tern_radam_options){0};
    const double numbers[] = {tern_option(o.beta1, 0.9), tern_option(o.beta2, 0.999),
                              tern_option(o.eps, 1e-8), tern_option(o.weight_decay, 0)};
    return tern_optim_finish(self, numbers, 4, 3, flags(o.maximize, o.decoupled_weight_decay));
}

OPTIM_CONSTRUCTORS(adamax, tern_adamax_options, adamax, finish_adamax)
OPTIM_CONSTRUCTORS(nadam, tern_nadam_options, nadam, finish_nadam)
OPTIM_CONSTRUCTORS(radam, tern_radam_options, radam, finish_radam)
