/* optimizer.c -- what all optimizers share: their parameters, states and steps. */
#include "optim/optimizer.h"
#include <math.h>

/* ---- making ------------------------------------------------------------------------------ */

static tern_status check_parameter(tern_tensor *const *x, int i, const char *name)
{
    if (!x[i])
        return tern_fail_argument_null(name, "a parameter");
    if (!tern_is_leaf(x[i]))
        return tern_fail(TERN_ERR_STATE, "%s: can't optimize a non-leaf Tensor (parameter %d)",
                         name, i);
    if (!tern_dtype_is_floating_point(tern_dtype_of(x[i])))
        return tern_fail(TERN_ERR_DTYPE,
                         "%s: parameter %d is %s; only floating point parameters can "
                         "be optimized",
                         name, i, tern_dtype_name(tern_dtype_of(x[i])));
    for (int j = 0; j < i; j++)
        if (x[j] == x[i])
            return tern_fail(
                TERN_ERR_ARGUMENT,
                "%s: parameters %d and %d are the same tensor: duplicate parameters are "
                "not allowed",
                name, j, i);
    return TERN_OK;
}

tern_optimizer *tern_optim_new_of(const char *name, tern_tensor *const *parameters, int n,
                                  double lr)
{
    if (!parameters && n > 0) {
        tern_fail_argument_null(name, "parameters");
        return NULL;
    }
    if (!(lr >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Invalid learning rate: %s", name,
                              TERN_NUMBER_TEXT(lr));
    if (n <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: optimizer got an empty parameter list", name);
    for (int i = 0; i < n; i++)
        if (check_parameter(parameters, i, name) != TERN_OK)
            return NULL;
    tern_optimizer *o = tern_alloc(sizeof *o);
    if (!o)
        return NULL;
    o->name = name;
    o->lr = lr;
    o->slots = tern_alloc(sizeof *o->slots * (size_t)n);
    if (!o->slots) {
        tern_free(o);
        return NULL;
    }
    for (o->n = 0; o->n < n; o->n++)
        o->slots[o->n].x = tern_keep(parameters[o->n]);
    return o;
}

typedef struct list {
    tern_tensor **x;
    int n;
} list;

static tern_status collect(const char *path, tern_tensor *x, void *user)
{
    list *l = user;
    (void)path;
    if (tern_requires_grad(x))
        l->x[l->n++] = x;
    return TERN_OK;
}

tern_optimizer *tern_optim_new(const char *name, tern_module *module, double lr)
{
    if (!module) {
        tern_fail_argument_null(name, "module");
        return NULL;
    }
    int64_t n = tern_nn_parameter_count(module);
    list l = {.x = n < 0 ? NULL : tern_alloc(sizeof *l.x * (size_t)(n + 1))};
    if (!l.x)
        return NULL;
    tern_optimizer *o = tern_nn_each_parameter(module, collect, &l) == TERN_OK
                            ? tern_optim_new_of(name, l.x, l.n, lr)
                            : NULL;
    tern_free(l.x);
    return o;
}

void tern_optim_free(tern_optimizer *o)
{
    if (!o)
        return;
    tern_optim_groups_free(o->groups, o->n_groups);
    for (int i = 0; i < o->n; i++) {
        tern_release(o->slots[i].x);
        for (int k = 0; k < OPTIM_STATES; k++)
            tern_release(o->slots[i].state[k]);
    }
    tern_free(o->slots);
    tern_free(o);
}

/* ---- stepping ---------------------------------------------------------------------------- */

/* What a kernel gets of its group, column by column. */
typedef struct columns {
    tern_tensor **x, **grad, **state[OPTIM_STATES];
    void *memory;
} columns;

static tern_status make_columns(columns *c, int n)
{
    tern_tensor **memory = tern_alloc(sizeof *memory * (size_t)n * (2 + OPTIM_STATES));
    if (!memory)
        return TERN_ERR_MEMORY;
    *c = (columns){.x = memory, .grad = memory + n, .memory = memory};
    for (int k = 0; k < OPTIM_STATES; k++)
        c->state[k] = memory + (2 + k) * n;
    return TERN_OK;
}

/* States are float32 for half precision parameters. */
static tern_status make_states(const tern_optimizer *o, tern_optim_slot *slot)
{
    tern_dtype dtype = slot->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    for (int k = 0; k < o->n_states; k++) {
        if (slot->state[k])
            continue;
        slot->state[k] = tern_keep(tern_zeros(tern_shape_of(slot->x), dtype, slot->device));
        if (!slot->state[k])
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status fill_columns(tern_optimizer *o, const tern_optim_group *g, columns *c)
{
    for (int i = 0; i < g->count; i++) {
        tern_optim_slot *slot = &o->slots[g->slot[i]];
        tern_tensor *grad = tern_grad(slot->x);
        c->x[i] = tern_contiguous(slot->x);
        c->grad[i] = grad ? tern_contiguous(grad) : NULL;
        if (!c->x[i] || (grad && !c->grad[i]))
            return tern_last_status();
        if (grad)
            TERN_TRY(make_states(o, slot));
        for (int k = 0; k < o->n_states; k++)
            c->state[k][i] = slot->state[k];
    }
    return TERN_OK;
}

/* The hyperparameters go to the device when they changed, to the address they have always had. */
static tern_status write_numbers(const tern_optimizer *o, tern_optim_group *g)
{
    float narrow[OPTIM_NUMBERS];
    bool same = g->is_written, wide = tern_dtype_of(g->numbers) == TERN_F64;
    for (int i = 0; i < OPTIM_NUMBERS; i++) {
        same = same && g->written[i] == o->numbers[i];
        narrow[i] = (float)o->numbers[i];
    }
    if (same)
        return TERN_OK;
    const void *data = wide ? (const void *)o->numbers : (const void *)narrow;
    tern_tensor *numbers =
        tern_from_data(data, TERN_SHAPE(OPTIM_NUMBERS), tern_dtype_of(g->numbers), "cpu");
    if (!numbers || !tern_copy_(g->numbers, numbers))
        return tern_last_status();
    for (int i = 0; i < OPTIM_NUMBERS; i++)
        g->written[i] = o->numbers[i];
    g->is_written = true;
    return TERN_OK;
}

static tern_status launch_group(tern_optimizer *o, tern_optim_group *g, columns *c,
                                tern_tensor *skip)
{
    TERN_TRY(fill_columns(o, g, c));
    TERN_TRY(write_numbers(o, g));
    skip = skip ? tern_to(skip, tern_device(g->no_skip)) : g->no_skip;
    if (!skip)
        return tern_last_status();
    tern_multi_call call = {.many = o->many,
                            .few = o->few,
                            .column = {c->x, c->grad},
                            .each = g->steps,
                            .shared = {g->numbers, skip},
                            .n_shared = 2,
                            .flags = o->flags,
                            .writes = true};
    for (int k = 0; k < o->n_states; k++)
        call.column[2 + k] = c->state[k];
    TERN_TRY(tern_multi_launch(g->table, &call));
    /* A parameter that is not dense was updated in a dense copy. */
    for (int i = 0; i < g->count; i++) {
        tern_tensor *x = o->slots[g->slot[i]].x;
        if (c->grad[i] && c->x[i] != x && !tern_copy_(x, c->x[i]))
            return tern_last_status();
    }
    return TERN_OK;
}

static tern_status step_group(tern_optimizer *o, tern_optim_group *g, tern_tensor *skip)
{
    columns c;
    TERN_TRY(make_columns(&c, g->count));
    tern_status status = launch_group(o, g, &c, skip);
    tern_free(c.memory);
    return status;
}

tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip)
{
    if (!o)
        return tern_fail_argument_null("tern_optim_step", "optimizer");
    tern_status status = tern_last_status();
    if (status != TERN_OK)
        return status;
    TERN_SCOPE
        TERN_NO_GRAD {
            status = tern_optim_regroup(o);
            for (int i = 0; status == TERN_OK && i < o->n_groups; i++)
                status = step_group(o, &o->groups[i], skip);
        }
    return status;
}

tern_status tern_optim_step(tern_optimizer *optimizer)
{
    return tern_optim_step_unless(optimizer, NULL);
}

tern_status tern_optim_zero_grad(tern_optimizer *o)
{
    if (!o)
        return tern_fail_argument_null("tern_optim_zero_grad", "optimizer");
    for (int i = 0; i < o->n; i++)
        TERN_TRY(tern_set_grad(o->slots[i].x, NULL));
    return TERN_OK;
}

double tern_optim_get_lr(const tern_optimizer *o)
{
    if (!o)
        tern_fail_argument_null("tern_optim_get_lr", "optimizer");
    return o ? o->lr : NAN;
}

tern_status tern_optim_set_lr(tern_optimizer *o, double lr)
{
    if (!o)
        return tern_fail_argument_null("tern_optim_set_lr", "optimizer");
    if (!(lr >= 0))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_optim_set_lr: Invalid learning rate: %s",
                         TERN_NUMBER_TEXT(lr));
    o->lr = o->numbers[0] = lr;
    return TERN_OK;
}
