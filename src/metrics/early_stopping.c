/* early_stopping.c -- stops training when a value is good enough, or no longer improves. */
#include "metrics/metric.h"
#include "base/memory.h"
#include <math.h>

struct tern_early_stopping {
    tern_early_stopping_options options;
    tern_early_stopping_state state;
};

tern_early_stopping *tern_early_stopping_new(const tern_early_stopping_options *options)
{
    tern_early_stopping_options o = tern_read_early_stopping(options);
    if (o.patience < 0 || !(o.min_delta >= 0))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_early_stopping_new: expected patience and min_delta of 0 or "
                              "more, but got %lld and %g",
                              (long long)o.patience, o.min_delta);
    tern_early_stopping *self = tern_alloc(sizeof *self);
    if (!self)
        return NULL;
    self->options = o;
    self->state.best = o.maximize ? -(double)INFINITY : (double)INFINITY;
    return self;
}

/* Returns whether a is better than b by more than delta. */
static bool is_better(const tern_early_stopping *self, double a, double b, double delta)
{
    return self->options.maximize ? a > b + delta : a < b - delta;
}

bool tern_early_stopping_step(tern_early_stopping *self, double value)
{
    if (!self) {
        tern_fail_argument_null("tern_early_stopping_step", "stopping");
        return true;
    }
    const tern_early_stopping_options *o = &self->options;
    tern_early_stopping_state *s = &self->state;
    s->is_best = false;
    if (!isfinite(value) && !o->allow_nonfinite)
        return s->stopped = true;
    if (is_better(self, value, s->best, o->min_delta)) {
        s->best = value;
        s->is_best = true;
        s->wait_count = 0;
    } else if (++s->wait_count >= o->patience)
        s->stopped = true;
    if (o->has_stopping_threshold && is_better(self, value, o->stopping_threshold, 0))
        s->stopped = true;
    if (o->has_divergence_threshold && is_better(self, o->divergence_threshold, value, 0))
        s->stopped = true;
    return s->stopped;
}

bool tern_early_stopping_is_best(const tern_early_stopping *self)
{
    return self && self->state.is_best;
}

double tern_early_stopping_best(const tern_early_stopping *self)
{
    return self ? self->state.best : (double)NAN;
}

tern_status tern_early_stopping_get_state(const tern_early_stopping *self,
                                          tern_early_stopping_state *state)
{
    if (!self || !state)
        return tern_fail_argument_null("tern_early_stopping_get_state",
                                       self ? "state" : "stopping");
    *state = self->state;
    return TERN_OK;
}

tern_status tern_early_stopping_set_state(tern_early_stopping *self,
                                          const tern_early_stopping_state *state)
{
    if (!self || !state)
        return tern_fail_argument_null("tern_early_stopping_set_state",
                                       self ? "state" : "stopping");
    if (state->wait_count < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_early_stopping_set_state: wait_count is %lld",
                         (long long)state->wait_count);
    self->state = *state;
    return TERN_OK;
}

void tern_early_stopping_free(tern_early_stopping *self)
{
    tern_free(self);
}
