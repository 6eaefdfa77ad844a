/* lr_scheduler.c -- functions of all schedulers. */
#include "optim/lr_scheduler.h"
#include "base/warning.h"
#include "tensor/storage.h"
#include <string.h>

static tern_handles handles = TERN_HANDLES("scheduler", tern_lr_scheduler);

tern_lr_scheduler *tern_lr_new(const tern_lr_kind *kind, tern_optimizer *o, const void *data,
                               size_t bytes)
{
    TERN_OPTIMIZER_GIVEN(o, kind->name);
    if (!o) {
        tern_fail_argument_null(kind->name, "optimizer");
        return NULL;
    }
    tern_lr_scheduler *s = tern_object_new(&handles);
    if (!s)
        return NULL;
    s->handle.about = kind->name;
    s->kind = kind;
    s->optimizer = o;
    s->life = tern_life_of(&o->life, o);
    s->n = s->noted = o->n_groups;
    s->at.last_epoch = -1;
    s->base = tern_alloc(sizeof *s->base * (size_t)s->n);
    s->last = tern_alloc(sizeof *s->last * (size_t)s->n);
    s->data = bytes ? tern_alloc(bytes) : NULL;
    if (!s->life || !s->base || !s->last || (bytes && !s->data)) {
        tern_free(s->data);
        s->data = NULL;
        tern_lr_scheduler_free(s);
        return NULL;
    }
    if (bytes)
        memcpy(s->data, data, bytes);
    for (int i = 0; i < s->n; i++) {
        tern_param_group *g = &o->groups[i];
        if (!g->has_initial_lr)
            g->initial_lr = g->lr;
        g->has_initial_lr = true;
        s->base[i] = g->initial_lr;
    }
    if (tern_lr_note(s) == TERN_OK)
        return s;
    tern_lr_scheduler_free(s);
    return NULL;
}

tern_lr_scheduler *tern_lr_start(tern_lr_scheduler *s)
{
    if (s && tern_lr_step(s, NULL) == TERN_OK)
        return s;
    tern_lr_scheduler_free(s);
    return NULL;
}

void tern_lr_scheduler_free(tern_lr_scheduler *s)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_free");
    if (!s)
        return;
    if (s->kind->free_data && s->data)
        s->kind->free_data(s->data);
    tern_free(s->data);
    tern_free(s->base);
    tern_free(s->last);
    tern_life_release(s->life);
    tern_life_end(&s->own_life);
    tern_object_end(&handles, &s->handle);
}

double *tern_lr_numbers(const double *numbers, double otherwise, int n)
{
    double *copy = tern_alloc(sizeof *copy * (size_t)n);
    for (int i = 0; copy && i < n; i++)
        copy[i] = numbers ? numbers[i] : otherwise;
    return copy;
}

const char *tern_lr_momentum_name(const tern_optimizer *o, const char *function)
{
    if (tern_optim_has_option(o, "beta1"))
        return "beta1";
    if (tern_optim_has_option(o, "momentum"))
        return "momentum";
    return tern_fail_null(TERN_ERR_ARGUMENT,
                          "%s: optimizer must support momentum or beta1 with `cycle_momentum` "
                          "option enabled (%s does not)",
                          function, o->kind->name);
}

tern_status tern_lr_check_optimizer(const tern_lr_scheduler *s, const char *function)
{
    if (tern_life_object(s->life))
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE, "%s: the optimizer of the scheduler was freed", function);
}

/* ---- steps ------------------------------------------------------------------------------- */

tern_status tern_lr_note(tern_lr_scheduler *s)
{
    const int n = s->optimizer->n_groups;
    if (n > s->noted) {
        double *last = tern_grow(s->last, sizeof *last * (size_t)n);
        if (!last)
            return TERN_ERR_MEMORY;
        s->last = last;
        s->noted = n;
    }
    for (int i = 0; i < n; i++)
        s->last[i] = s->optimizer->groups[i].lr;
    return TERN_OK;
}

/* Sets a group's learning rate, and its momentum if the schedule has one. */
static tern_status set_group(tern_lr_scheduler *s, int i, double lr)
{
    tern_optimizer *o = s->optimizer;
    if (!(lr < 0)) /* see tern_optim_check_group */
        TERN_TRY(tern_optim_check_lr(o, lr, s->kind->name));
    o->groups[i].lr = lr;
    if (!s->kind->momentum)
        return TERN_OK;
    const char *name = tern_lr_momentum_name(o, s->kind->name);
    return name ? tern_optim_set_option(o, i, name, s->kind->momentum(s, i)) : tern_last_status();
}

/* Fails if the step has no rate for a group that was added after the scheduler was made. */
static tern_status check_new_groups(const tern_lr_scheduler *s, bool closed)
{
    const tern_optimizer *o = s->optimizer;
    for (int i = s->n; i < o->n_groups; i++)
        if (closed || !s->kind->every_group || isnan(s->kind->next(s, i, o->groups[i].lr)))
            return tern_fail(TERN_ERR_STATE,
                             "%s: the optimizer has %d parameter groups, and had %d when the "
                             "scheduler was made, which has no first learning rate for group %d: "
                             "make it after the groups",
                             s->kind->name, o->n_groups, s->n, i);
    return TERN_OK;
}

/* If an epoch is given and the schedule has a closed form, the closed form is used, as in PyTorch;
 * otherwise the rate follows from the last one. After an error the scheduler's state is
 * unchanged. */
tern_status tern_lr_step(tern_lr_scheduler *s, const int64_t *epoch)
{
    if (s->kind->step)
        return s->kind->step(s);
    tern_lr_scheduler_state before = s->at;
    if (s->kind->advance)
        s->kind->advance(s, epoch);
    else
        s->at.last_epoch = epoch ? *epoch : s->at.last_epoch + 1;
    tern_status status = s->kind->check ? s->kind->check(s) : TERN_OK;
    const bool closed = epoch && s->kind->at;
    if (status == TERN_OK)
        status = check_new_groups(s, closed);
    for (int i = 0; i < s->optimizer->n_groups && status == TERN_OK; i++)
        status = set_group(
            s, i, closed ? s->kind->at(s, i) : s->kind->next(s, i, s->optimizer->groups[i].lr));
    if (status != TERN_OK)
        s->at = before;
    const tern_status noted = tern_lr_note(s);
    return status == TERN_OK ? noted : status;
}

/* Called in each replay of a recording with the step; the recording may step the optimizer after
 * it. */
static tern_status step_in_replay(void *life)
{
    tern_lr_scheduler *s = tern_life_object(life);
    if (!s)
        return tern_fail(TERN_ERR_STATE,
                         "tern_graph_replay: the scheduler that the recording steps was freed");
    TERN_TRY(tern_lr_scheduler_step(s));
    return tern_optim_refresh(s->optimizer);
}

/* Records the step, which each replay then makes. */
static tern_status record_step(tern_lr_scheduler *s)
{
    if (tern_storage_lists())
        return TERN_OK;
    tern_life *life = tern_life_of(&s->own_life, s);
    return life ? tern_storage_record_call(step_in_replay, tern_life_release, life)
                : tern_last_status();
}

tern_status tern_lr_scheduler_step(tern_lr_scheduler *s)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_step");
    if (!s)
        return tern_fail_argument_null("tern_lr_scheduler_step", "scheduler");
    TERN_TRY(tern_last_status());
    TERN_TRY(tern_lr_check_optimizer(s, "tern_lr_scheduler_step"));
    if (s->kind->step_metric)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_lr_scheduler_step: %s wants to know a metric: call "
                         "tern_lr_scheduler_step_metric",
                         s->kind->name);
    if (tern_is_capturing())
        return record_step(s);
    if (s->at.last_epoch == 0 && !s->optimizer->stepped)
        tern_warn("order", "tern_lr_scheduler_step",
                  "called before the optimizer's first step: the first value of the learning rate "
                  "is passed over. Call tern_optim_step first, then the scheduler's step.");
    return tern_lr_step(s, NULL);
}

tern_status tern_lr_scheduler_step_metric(tern_lr_scheduler *s, double metric)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_step_metric");
    if (!s)
        return tern_fail_argument_null("tern_lr_scheduler_step_metric", "scheduler");
    TERN_TRY(tern_last_status());
    TERN_TRY(tern_lr_check_optimizer(s, "tern_lr_scheduler_step_metric"));
    if (!s->kind->step_metric)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_lr_scheduler_step_metric: %s takes no metric: call "
                         "tern_lr_scheduler_step",
                         s->kind->name);
    if (tern_is_capturing())
        return tern_fail(TERN_ERR_UNSUPPORTED, "tern_lr_scheduler_step_metric: a metric, which is "
                                               "a value on the host, can't be recorded");
    return s->kind->step_metric(s, metric);
}

double tern_lr_scheduler_get_last_lr(const tern_lr_scheduler *s, int group)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_get_last_lr");
    if (s && group >= 0 && group < s->noted)
        return s->last[group];
    if (!s)
        tern_fail_argument_null("tern_lr_scheduler_get_last_lr", "scheduler");
    else
        tern_fail(TERN_ERR_ARGUMENT,
                  "tern_lr_scheduler_get_last_lr: group %d is out of range (there are %d)", group,
                  s->noted);
    return NAN;
}

int64_t tern_lr_scheduler_last_epoch(const tern_lr_scheduler *s)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_last_epoch");
    return s ? s->at.last_epoch : -1;
}

tern_status tern_lr_scheduler_get_state(const tern_lr_scheduler *s, tern_lr_scheduler_state *state)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_get_state");
    if (!s || !state)
        return tern_fail_argument_null("tern_lr_scheduler_get_state", s ? "state" : "scheduler");
    *state = s->at;
    return TERN_OK;
}

tern_status tern_lr_scheduler_set_state(tern_lr_scheduler *s, const tern_lr_scheduler_state *state)
{
    TERN_SCHEDULER_GIVEN(s, "tern_lr_scheduler_set_state");
    if (!s || !state)
        return tern_fail_argument_null("tern_lr_scheduler_set_state", s ? "state" : "scheduler");
    TERN_TRY(tern_lr_check_optimizer(s, "tern_lr_scheduler_set_state"));
    s->at = *state;
    return tern_lr_note(s);
}
