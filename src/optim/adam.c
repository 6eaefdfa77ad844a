/* adam.c -- Adam, and AdamW, which takes weight decay from the parameter
 * (https://pytorch.org/docs/stable/generated/torch.optim.Adam.html). */
#include "optim/optimizer.h"
#include <math.h>

static const tern_kernel_ref many = {"optimizer", "adam"};
static const tern_kernel_ref few = {"optimizer", "adam_few"};

static tern_status check_at_least_zero(const char *name, const char *what, double value)
{
    if (value >= 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: Invalid %s value: %s", name, what,
                     TERN_NUMBER_TEXT(value));
}

static tern_status check_beta(const char *name, int i, double beta)
{
    if (beta >= 0 && beta < 1)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: Invalid beta parameter at index %d: %s", name, i,
                     TERN_NUMBER_TEXT(beta));
}

static tern_status check(const char *name, const tern_adam_options *o)
{
    TERN_TRY(check_at_least_zero(name, "epsilon", o->eps));
    TERN_TRY(check_beta(name, 0, o->beta1));
    TERN_TRY(check_beta(name, 1, o->beta2));
    return check_at_least_zero(name, "weight_decay", o->weight_decay);
}

static tern_adam_options with_defaults(const tern_adam_options *options, bool decoupled)
{
    tern_adam_options o = options ? *options : (tern_adam_options){0};
    o.beta1 = tern_option(o.beta1, 0.9);
    o.beta2 = tern_option(o.beta2, 0.999);
    o.eps = tern_option(o.eps, 1e-8);
    o.weight_decay = tern_option(o.weight_decay, decoupled ? 0.01 : 0);
    return o;
}

static tern_optimizer *finish(tern_optimizer *self, const tern_adam_options *options,
                              bool decoupled)
{
    tern_adam_options o = with_defaults(options, decoupled);
    if (!self || check(self->name, &o) != TERN_OK) {
        tern_optim_free(self);
        return NULL;
    }
    self->many = &many;
    self->few = &few;
    self->n_states = o.amsgrad ? 3 : 2;
    self->flags = (o.amsgrad ? TERN_OPTIM_AMSGRAD : 0) | (o.maximize ? TERN_OPTIM_MAXIMIZE : 0) |
                  (decoupled ? TERN_OPTIM_DECOUPLED : 0);
    /* log(0) becomes a number that is low enough for beta^t to be 0 in every type. */
    const double numbers[] = {self->lr,
                              o.beta1,
                              1 - o.beta1,
                              o.beta2,
                              1 - o.beta2,
                              o.beta1 > 0 ? log(o.beta1) : -1e4,
                              o.beta2 > 0 ? log(o.beta2) : -1e4,
                              o.eps,
                              o.weight_decay};
    for (int i = 0; i < OPTIM_NUMBERS; i++)
        self->numbers[i] = numbers[i];
    return self;
}

tern_optimizer *tern_optim_adam(tern_module *module, double lr, const tern_adam_options *options)
{
    return finish(tern_optim_new("tern_optim_adam", module, lr), options, false);
}

tern_optimizer *tern_optim_adamw(tern_module *module, double lr, const tern_adam_options *options)
{
    return finish(tern_optim_new("tern_optim_adamw", module, lr), options, true);
}

tern_optimizer *tern_optim_adam_of(tern_tensor *const *parameters, int n, double lr,
                                   const tern_adam_options *options)
{
    return finish(tern_optim_new_of("tern_optim_adam", parameters, n, lr), options, false);
}

tern_optimizer *tern_optim_adamw_of(tern_tensor *const *parameters, int n, double lr,
                                    const tern_adam_options *options)
{
    return finish(tern_optim_new_of("tern_optim_adamw", parameters, n, lr), options, true);
}
