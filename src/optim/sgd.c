/* sgd.c -- stochastic gradient descent with momentum (https://pytorch.org/docs/stable/generated/
 * torch.optim.SGD.html). */
#include "optim/optimizer.h"
#include <math.h>

static void resolve(const double *option, double *number)
{
    const double numbers[] = {option[0], option[1], 1 - option[2], option[3]};
    for (int i = 0; i < 4; i++)
        number[i] = numbers[i];
}

static const tern_optim_kind sgd = {.name = "tern_optim_sgd",
                                    .many = {"sgd_adam", "sgd"},
                                    .few = {"sgd_adam", "sgd_few"},
                                    .option = {OPTIM_LR,
                                               OPTIM_MOMENTUM,
                                               {"dampening", "dampening", -INFINITY, INFINITY},
                                               OPTIM_WEIGHT_DECAY},
                                    .state = {"momentum_buffer"},
                                    .momentum_states = 1,
                                    .resolve = resolve};

/* TERN_ZERO and 0 are both zero here: that is every default. */
static tern_optimizer *finish(tern_optimizer *self, const tern_sgd_options *options)
{
    tern_sgd_options o = options ? *options : (tern_sgd_options){0};
    const double numbers[] = {tern_option(o.momentum, 0), tern_option(o.dampening, 0),
                              tern_option(o.weight_decay, 0)};
    bool momentum = numbers[0] != 0;
    self = tern_optim_finish(self, numbers, 3, momentum,
                             (momentum ? TERN_OPTIM_MOMENTUM : 0) |
                                 (o.nesterov ? TERN_OPTIM_NESTEROV : 0) |
                                 (o.maximize ? TERN_OPTIM_MAXIMIZE : 0));
    if (!self || !o.nesterov || (momentum && numbers[1] == 0))
        return self;
    tern_optim_free(self);
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "tern_optim_sgd: Nesterov momentum requires a momentum "
                          "and zero dampening");
}

OPTIM_CONSTRUCTORS(sgd, tern_sgd_options, sgd, finish)
