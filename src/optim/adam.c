/* adam.c -- Adam, and AdamW, which takes weight decay from the parameter
 * (https://pytorch.org/docs/stable/generated/torch.optim.Adam.html). */
#include "optim/optimizer.h"
#include <math.h>

static void resolve(const double *option, double *number)
{
    const double beta1 = option[1], beta2 = option[2];
    const double numbers[] = {option[0],
                              beta1,
                              1 - beta1,
                              beta2,
                              1 - beta2,
                              tern_optim_log_beta(beta1),
                              tern_optim_log_beta(beta2),
                              option[3],
                              option[4]};
    for (int i = 0; i < 9; i++)
        number[i] = numbers[i];
}

#define ADAM(NAME)                                                                                 \
    {                                                                                              \
        .name = NAME, .many = {"sgd_adam", "adam"}, .few = {"sgd_adam", "adam_few"},               \
        .option = {OPTIM_LR, OPTIM_BETA1, OPTIM_BETA2, OPTIM_EPS, OPTIM_WEIGHT_DECAY},             \
        .state = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, .resolve = resolve                   \
    }
static const tern_optim_kind adam = ADAM("tern_optim_adam");
static const tern_optim_kind adamw = ADAM("tern_optim_adamw");

static tern_optimizer *finish(tern_optimizer *self, const tern_adam_options *options,
                              bool decoupled)
{
    tern_adam_options o = options ? *options : (tern_adam_options){0};
    const double numbers[] = {tern_option(o.beta1, 0.9), tern_option(o.beta2, 0.999),
                              tern_option(o.eps, 1e-8),
                              tern_option(o.weight_decay, decoupled ? 0.01 : 0)};
    return tern_optim_finish(self, numbers, 4, o.amsgrad ? 7 : 3,
                             (o.amsgrad ? TERN_OPTIM_AMSGRAD : 0) |
                                 (o.maximize ? TERN_OPTIM_MAXIMIZE : 0) |
                                 (decoupled ? TERN_OPTIM_DECOUPLED : 0));
}

static tern_optimizer *finish_adam(tern_optimizer *self, const tern_adam_options *options)
{
    return finish(self, options, false);
}

static tern_optimizer *finish_adamw(tern_optimizer *self, const tern_adam_options *options)
{
    return finish(self, options, true);
}

OPTIM_CONSTRUCTORS(adam, tern_adam_options, adam, finish_adam)
OPTIM_CONSTRUCTORS(adamw, tern_adam_options, adamw, finish_adamw)
