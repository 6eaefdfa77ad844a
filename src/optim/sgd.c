/* sgd.c -- stochastic gradient descent with momentum (https://pytorch.org/docs/stable/generated/
 * torch.optim.SGD.html). */
#include "optim/optimizer.h"

static const tern_kernel_ref many = {"optimizer", "sgd"};
static const tern_kernel_ref few = {"optimizer", "sgd_few"};

static tern_status check(const tern_sgd_options *o)
{
    if (!(o->momentum >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_sgd: Invalid momentum value: %s",
                         TERN_NUMBER_TEXT(o->momentum));
    if (!(o->weight_decay >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_sgd: Invalid weight_decay value: %s",
                         TERN_NUMBER_TEXT(o->weight_decay));
    if (o->nesterov && (o->momentum == 0 || o->dampening != 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_sgd: Nesterov momentum requires a momentum "
                                            "and zero dampening");
    return TERN_OK;
}

/* TERN_ZERO and 0 are both zero here: that is every default. */
static tern_sgd_options with_defaults(const tern_sgd_options *options)
{
    tern_sgd_options o = options ? *options : (tern_sgd_options){0};
    o.momentum = tern_option(o.momentum, 0);
    o.dampening = tern_option(o.dampening, 0);
    o.weight_decay = tern_option(o.weight_decay, 0);
    return o;
}

static tern_optimizer *finish(tern_optimizer *self, const tern_sgd_options *options)
{
    tern_sgd_options o = with_defaults(options);
    if (!self || check(&o) != TERN_OK) {
        tern_optim_free(self);
        return NULL;
    }
    self->many = &many;
    self->few = &few;
    self->n_states = o.momentum != 0;
    self->flags = (o.momentum != 0 ? TERN_OPTIM_MOMENTUM : 0) |
                  (o.nesterov ? TERN_OPTIM_NESTEROV : 0) | (o.maximize ? TERN_OPTIM_MAXIMIZE : 0);
    const double numbers[] = {self->lr, o.momentum, 1 - o.dampening, o.weight_decay};
    for (int i = 0; i < 4; i++)
        self->numbers[i] = numbers[i];
    return self;
}

tern_optimizer *tern_optim_sgd(tern_module *module, double lr, const tern_sgd_options *options)
{
    return finish(tern_optim_new("tern_optim_sgd", module, lr), options);
}

tern_optimizer *tern_optim_sgd_of(tern_tensor *const *parameters, int n, double lr,
                                  const tern_sgd_options *options)
{
    return finish(tern_optim_new_of("tern_optim_sgd", parameters, n, lr), options);
}
