/* custom.c -- optimizers whose steps the program computes; options, groups and schedulers work as
 * for AdamW. */
#include "optim/optimizer.h"

typedef struct custom_kind {
    tern_optim_kind kind;
    tern_optim_parts parts;
    tern_optimizer_type type;
} custom_kind;

/* Steps each parameter that has a gradient; none unless all can be written. */
static tern_status step(tern_optimizer *o, tern_tensor *skip)
{
    const custom_kind *own = o->own_kind;
    const uint64_t failures = tern_failures();
    if (tern_is_capturing())
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: its steps cannot be recorded", o->kind->name);
    for (int i = 0; i < o->n; i++)
        TERN_TRY(tern_foreach_can_write(o->slots[i].x, "tern_optim_step"));
    if (skip && tern_item(skip) != 0)
        return tern_failed_since(failures);
    for (int i = 0; i < o->n; i++)
        if (tern_grad(o->slots[i].x))
            TERN_TRY(
                own->type.step(o->data, i, o->slots[i].x, o->groups[o->slots[i].group].values));
    return tern_failed_since(failures);
}

static tern_status each_state(tern_optimizer *o, tern_tensor_visit visit, void *user)
{
    return ((const custom_kind *)o->own_kind)->type.each_state(o->data, visit, user);
}

static tern_status load_state(tern_optimizer *o, const tern_state_dict *dict, bool apply)
{
    return ((const custom_kind *)o->own_kind)->type.load_state(o->data, o, dict, apply);
}

tern_optimizer *tern_optim_custom(const tern_optimizer_type *type, void *data,
                                  tern_tensor *const *parameters, int n, double lr,
                                  const tern_adamw_options *options)
{
    tern_optimizer *o = type ? tern_optim_adamw_of(parameters, n, lr, options) : NULL;
    custom_kind *own = o ? tern_alloc(sizeof *own) : NULL;
    if (!own) {
        tern_optim_free(o);
        return type ? NULL : (tern_fail_argument_null("tern_optim_custom", "type"), NULL);
    }
    *own = (custom_kind){*o->kind,
                         {.step = step,
                          .free_data = type->free_data,
                          .each_state = each_state,
                          .load_state = load_state},
                         *type};
    own->kind.name = type->name;
    own->kind.parts = &own->parts;
    o->kind = o->own_kind = own;
    o->data = data;
    o->states = 0;
    return o;
}
