/* optimizer.c -- functions of all optimizers: creation and steps. */
#include "base/callback.h"
#include "optim/optimizer.h"
#include "nn/module.h"
#include <string.h>

static tern_handles handles = TERN_HANDLES("optimizer", tern_optimizer);

/* ---- creation -------------------------------------------------------------------------------- */

/* Reads and checks the values of the first group. */
static tern_status read_values(const tern_optim_kind *kind, double lr, const void *options,
                               tern_param_group *group)
{
    kind->read(options, group->values);
    group->lr = lr;
    for (int i = 0; kind->rows[i].name; i++)
        TERN_TRY(tern_optim_check_value(kind, i, group->values[i], kind->name));
    const char *conflict = kind->conflict(group->values);
    return conflict ? tern_fail(TERN_ERR_ARGUMENT, "%s: %s", kind->name, conflict) : TERN_OK;
}

/* Adds the parameters of the first group. Its options are set later. */
static tern_status fill(tern_optimizer *o, tern_tensor *const *parameters, int n)
{
    o->groups = tern_alloc(sizeof *o->groups);
    if (!o->groups)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_optim_check_parameters(o, parameters, n));
    TERN_TRY(tern_optim_append(o, parameters, n, 0));
    return TERN_OK;
}

tern_optimizer *tern_optim_new_of(const tern_optim_kind *kind, tern_tensor *const *parameters,
                                  int n, double lr, const void *options)
{
    tern_param_group group = {.has_initial_lr = false};
    if (!parameters && n > 0) {
        tern_fail_argument_null(kind->name, "parameters");
        return NULL;
    }
    if (read_values(kind, lr, options, &group) != TERN_OK)
        return NULL;
    if (n <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: optimizer got an empty parameter list",
                              kind->name);
    tern_optimizer *o = tern_object_new(&handles);
    if (!o)
        return NULL;
    o->handle.about = kind->name;
    o->kind = kind;
    tern_status status = fill(o, parameters, n);
    if (status == TERN_OK) {
        o->groups[o->n_groups++] = group;
        o->states = kind->states(group.values);
        if (kind->parts->make_data)
            status = kind->parts->make_data(o);
    }
    if (status == TERN_OK)
        return o;
    tern_optim_free(o);
    return NULL;
}

tern_optimizer *tern_optim_new(const tern_optim_kind *kind, tern_module *module, double lr,
                               const void *options)
{
    TERN_MODULE_GIVEN(module, kind->name);
    int n = 0;
    tern_tensor **x = tern_optim_collect(module, &n, kind->name);
    tern_optimizer *o = x ? tern_optim_new_of(kind, x, n, lr, options) : NULL;
    tern_free(x);
    return o;
}

void tern_optim_free(tern_optimizer *o)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_free");
    if (!o)
        return;
    tern_graph_forget(o);
    tern_life_end(&o->life);
    tern_optim_batches_free(o->batches, o->n_batches);
    for (int i = 0; i < o->n; i++) {
        tern_release(o->slots[i].x);
        for (int k = 0; k < OPTIM_STATES; k++)
            tern_release(o->slots[i].state[k]);
    }
    if (o->kind->parts->free_data)
        o->kind->parts->free_data(o->data);
    tern_free(o->groups);
    tern_free(o->slots);
    tern_free(o->own_kind);
    tern_object_end(&handles, &o->handle);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* States are float32 for half precision parameters, and have the memory format of the
 * parameters. */
tern_status tern_optim_make_states(const tern_optimizer *o, tern_optim_slot *slot)
{
    tern_dtype dtype = slot->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    for (int k = 0; k < OPTIM_STATES; k++) {
        if (slot->state[k] || !(o->states >> k & 1))
            continue;
        TERN_UNRECORDED /* created once, not in every replay */
            slot->state[k] = tern_keep(tern_optim_in_format(
                tern_zeros(tern_shape_of(slot->x), dtype, slot->device), slot->format));
        if (!slot->state[k])
            return tern_last_status();
    }
    slot->made = o->states;
    return TERN_OK;
}

/* Returns x in the given format, in float32 if the kernels have no half precision form. */
static tern_tensor *column_of(const tern_optimizer *o, tern_tensor *x, tern_memory_format format)
{
    if (o->kind->only_wide && tern_dtype_of(x) != TERN_F64)
        x = tern_to_dtype(x, TERN_F32);
    return tern_optim_in_format(x, format);
}

/* Parameters without a gradient are skipped: their column of gradients is NULL. */
static tern_status fill_columns(tern_optimizer *o, tern_optim_batch *b)
{
    tern_optim_columns *c = &b->columns;
    for (int i = 0; i < b->count; i++) {
        tern_optim_slot *slot = &o->slots[b->slot[i]];
        tern_tensor *grad = tern_grad(slot->x);
        c->target[i] = slot->x;
        c->x[i] = column_of(o, slot->x, slot->format);
        c->grad[i] = grad ? column_of(o, grad, slot->format) : NULL;
        if (!c->x[i] || (grad && !c->grad[i]))
            return tern_last_status();
        if (grad && slot->made != o->states)
            TERN_TRY(tern_optim_make_states(o, slot));
        for (int k = 0; k < OPTIM_STATES; k++)
            c->state[k][i] = slot->state[k];
    }
    return TERN_OK;
}

const void *tern_optim_values(const tern_optimizer *o, const tern_optim_batch *b)
{
    return o->groups[o->slots[b->slot[0]].group].values;
}

/* Copies the options to the device only when they have changed, and always to the same address, so
 * that a captured graph reads the new ones. */
static tern_status write_values(const tern_optimizer *o, tern_optim_batch *b)
{
    double values[OPTIM_VALUES];
    float narrow[OPTIM_VALUES];
    bool wide = tern_dtype_of(b->values) == TERN_F64;
    memcpy(values, tern_optim_values(o, b), sizeof values);
    if (b->is_written && memcmp(b->written, values, sizeof values) == 0)
        return TERN_OK;
    memcpy(b->written, values, sizeof values);
    o->kind->derive(values);
    for (int i = 0; i < o->kind->n_values; i++)
        narrow[i] = (float)values[i];
    tern_tensor *x = tern_from_data(wide ? (const void *)values : (const void *)narrow,
                                    TERN_SHAPE(o->kind->n_values), tern_dtype_of(b->values), "cpu");
    b->is_written = x && tern_copy_(b->values, x);
    return b->is_written ? TERN_OK : tern_last_status();
}

tern_status tern_optim_refresh(const tern_optimizer *o)
{
    tern_status status = TERN_OK;
    TERN_SCOPE
        TERN_NO_GRAD {
            for (int i = 0; status == TERN_OK && i < o->n_batches; i++)
                status = write_values(o, &o->batches[i]);
        }
    return status;
}

/* Runs before each replay of a graph: the learning rate may have changed. */
static tern_status refresh_values(void *user)
{
    return tern_optim_refresh(user);
}

/* Uploads the options now, outside of a capture, and again before each replay. */
static tern_status current_values(tern_optimizer *o, tern_optim_batch *b)
{
    tern_status status = TERN_OK;
    TERN_UNRECORDED
        status = write_values(o, b);
    return status == TERN_OK ? tern_graph_on_replay(refresh_values, o) : status;
}

/* Prepares the step of a batch of parameters, up to the one launch that updates all of them. */
static tern_status prepare(tern_optimizer *o, tern_optim_batch *b, tern_tensor *skip)
{
    tern_optim_columns *c = &b->columns;
    TERN_TRY(fill_columns(o, b));
    TERN_TRY(current_values(o, b));
    skip = skip ? tern_to(skip, tern_device(b->no_skip)) : b->no_skip;
    if (!skip)
        return tern_last_status();
    b->call = (tern_foreach_call){.kernel = &o->kind->kernel,
                                  .before = o->kind->parts->before,
                                  .function = "tern_optim_step",
                                  .column = {c->x, c->grad},
                                  .target = c->target,
                                  .each = b->steps,
                                  .shared = {b->values, skip},
                                  .writes = true};
    for (int k = 0; k < OPTIM_STATES; k++)
        b->call.column[2 + k] = c->state[k];
    if (o->kind->parts->prepare)
        TERN_TRY(o->kind->parts->prepare(o, b));
    return tern_foreach_prepare(b->table, &b->call, &b->ready);
}

/* Everything that can fail runs first: all batches step, or none. */
static tern_status step_batches(tern_optimizer *o, tern_tensor *skip)
{
    TERN_TRY(tern_optim_regroup(o));
    for (int i = 0; i < o->n_batches; i++)
        TERN_TRY(prepare(o, &o->batches[i], skip));
    for (int i = 0; i < o->n_batches; i++)
        TERN_TRY(tern_foreach_run(o->batches[i].table, &o->batches[i].call, &o->batches[i].ready));
    return TERN_OK;
}

tern_status tern_optim_step_unless(tern_optimizer *o, tern_tensor *skip)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_step");
    if (!o)
        return tern_fail_argument_null("tern_optim_step", "optimizer");
    tern_status status = tern_last_status();
    if (status != TERN_OK)
        return status;
    o->stepped = true;
    if (o->kind->parts->closure_step)
        return tern_fail(TERN_ERR_STATE,
                         "tern_optim_step: %s needs a closure that evaluates the model again: call "
                         "tern_optim_step_closure",
                         o->kind->name);
    TERN_SCOPE
        TERN_NO_GRAD
            status = o->kind->parts->step ? o->kind->parts->step(o, skip) : step_batches(o, skip);
    return status;
}

tern_status tern_optim_step(tern_optimizer *optimizer)
{
    return tern_optim_step_unless(optimizer, NULL);
}

tern_status tern_optim_step_closure(tern_optimizer *o, tern_closure closure, void *user,
                                    double *loss)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_step_closure");
    if (!o || !closure)
        return tern_fail_argument_null("tern_optim_step_closure", o ? "closure" : "optimizer");
    TERN_TRY(tern_last_status());
    o->stepped = true;
    if (o->kind->parts->closure_step) {
        for (int i = 0; i < o->n; i++)
            TERN_TRY(tern_foreach_can_write(o->slots[i].x, "tern_optim_step_closure"));
        return o->kind->parts->closure_step(o, closure, user, loss);
    }
    TERN_SCOPE
        TERN_ENABLE_GRAD
        {
            const tern_callback before = tern_callback_begin();
            tern_tensor *value = closure(user);
            TERN_CALLBACK_END(&before, value ? TERN_OK : TERN_ERR_ARGUMENT,
                              "tern_optim_step_closure: the closure failed");
            if (value && loss)
                *loss = tern_item(value);
        }
    return tern_optim_step(o);
}

tern_tensor *tern_optim_parameter(const tern_optimizer *o, int i)
{
    TERN_OPTIMIZER_GIVEN(o, "tern_optim_parameter");
    return o && i >= 0 && i < o->n ? o->slots[i].x : NULL;
}

tern_status tern_optim_zero_grad(tern_optimizer *o)
{
    TERN_NAMED_IN_ERRORS;
    return tern_optim_zero_grad_with(o, true);
}

tern_status tern_optim_zero_grad_with(tern_optimizer *o, bool set_to_none)
{
    TERN_NAMED_IN_ERRORS;
    TERN_OPTIMIZER_GIVEN(o, __func__);
    if (!o)
        return tern_fail_argument_null(__func__, "optimizer");
    for (int i = 0; i < o->n; i++) {
        tern_tensor *grad = tern_grad(o->slots[i].x);
        if (grad && !set_to_none) {
            /* A view, such as one of a bucket, cannot be detached in place, and need not be. */
            TERN_NO_GRAD
                grad = tern_fill_(tern_is_leaf(grad) ? tern_requires_grad_(grad, false)
                                                     : tern_detach_(grad),
                                  tern_scalar_int(0));
            if (!grad)
                return tern_last_status();
        } else {
            TERN_TRY(tern_set_grad(o->slots[i].x, NULL));
        }
    }
    return TERN_OK;
}
