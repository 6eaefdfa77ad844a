/* grad_scaler.c -- scales the loss, so that half precision gradients do not underflow, and skips
 * steps if the scale was too large (https://pytorch.org/docs/stable/amp.html#gradient-scaling).
 *
 * The scale, its growth count and the flags of infinities are on the device; only the getters wait
 * for it. */
#include "base/memory.h"
#include "base/option.h"
#include "base/text.h"
#include "ops/foreach/foreach.h"
#include "optim/optimizer.h"
#include "tensor/ranks.h"
#include <math.h>
#include <tern/amp.h>
#include <tern/graph.h>

/* The state of an optimizer in the current step. */
typedef struct part {
    tern_optimizer *optimizer;
    tern_tensor *found; /* flag on the device, not zero if a gradient is infinite or NaN */
    bool stepped;
} part;

/* Sets self to NULL after an error if it was freed. */
#define TERN_SCALER_GIVEN(self, function) TERN_GIVEN(self, "scaler", function)

struct tern_scaler {
    tern_handle handle;
    tern_grad_scaler_options options;
    tern_tensor *scale, *tracker; /* made when the first tensor is scaled */
    int64_t first_tracker;        /* the tracker's first value */
    part *parts;
    int n, capacity;
};

static tern_status check(const tern_grad_scaler_options *o)
{
    if (!(o->growth_factor > 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_amp_grad_scaler: The growth factor must be > 1.0. (%s)",
                         TERN_NUMBER_TEXT(o->growth_factor));
    if (!(o->backoff_factor < 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_amp_grad_scaler: The backoff factor must be < 1.0. (%s)",
                         TERN_NUMBER_TEXT(o->backoff_factor));
    if (o->growth_interval < 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_amp_grad_scaler: The growth interval must be at least 1. (%lld)",
                         (long long)o->growth_interval);
    return TERN_OK;
}

static tern_handles handles = TERN_HANDLES("scaler", tern_scaler);

tern_scaler *tern_amp_grad_scaler(const tern_grad_scaler_options *options)
{
    tern_grad_scaler_options o = tern_read_grad_scaler(options);
    if (!o.disabled && check(&o) != TERN_OK)
        return NULL;
    tern_scaler *self = tern_object_new(&handles);
    if (self)
        self->options = o;
    return self;
}

static void forget_parts(tern_scaler *self)
{
    while (self->n > 0)
        tern_release(self->parts[--self->n].found);
}

void tern_amp_free(tern_scaler *self)
{
    TERN_SCALER_GIVEN(self, "tern_amp_free");
    if (!self)
        return;
    forget_parts(self);
    tern_free(self->parts);
    tern_release(self->scale);
    tern_release(self->tracker);
    tern_object_end(&handles, &self->handle);
}

/* ---- scaling --------------------------------------------------------------------------------- */

static tern_status start_on(tern_scaler *self, const char *device)
{
    tern_scalar scale = tern_scalar_real(self->options.init_scale);
    tern_scalar tracker = tern_scalar_int(self->first_tracker);
    const uint64_t failures = tern_failures();
    TERN_UNRECORDED { /* both keep their values across replays */
        self->scale = tern_keep(tern_full(TERN_SHAPE_SCALAR, scale, TERN_F32, device));
        self->tracker = tern_keep(tern_full(TERN_SHAPE_SCALAR, tracker, TERN_I64, device));
    }
    if (self->scale && self->tracker)
        return TERN_OK;
    tern_release(self->scale);
    tern_release(self->tracker);
    self->scale = self->tracker = NULL;
    return tern_failed_since(failures);
}

tern_tensor *tern_amp_scale(tern_scaler *self, tern_tensor *x)
{
    TERN_SCALER_GIVEN(self, "tern_amp_scale");
    if (!self || !x) {
        tern_fail_argument_null("tern_amp_scale", self ? "x" : "scaler");
        return NULL;
    }
    if (self->options.disabled)
        return x;
    if (!self->scale && start_on(self, tern_device(x)) != TERN_OK)
        return NULL;
    return tern_mul(x, tern_to(self->scale, tern_device(x)));
}

/* Makes the scale of a rank without a pipeline's last stage, which has no loss to scale, in its
 * first step. Other ranks get an error. */
static tern_status check_started(tern_scaler *self, const tern_optimizer *optimizer,
                                 const char *function)
{
    const tern_tensor *here = NULL;
    bool staged = false;
    if (self->scale)
        return TERN_OK;
    for (int i = 0; optimizer && i < optimizer->n; i++) {
        tern_cut cut[TERN_MOST_CUTS];
        tern_shape whole;
        int n;
        const tern_tensor *x = optimizer->slots[i].x;
        const tern_cut *stage = tern_stage_of(x, cut, &whole, &n);
        staged = staged || (stage && !stage->last);
        if (!here && !(stage && stage->elsewhere))
            here = x;
    }
    if (staged)
        return start_on(self, tern_device(here ? here : optimizer->slots[0].x));
    return tern_fail(TERN_ERR_STATE,
                     "%s: the scale is not there yet. This may indicate your program did not use "
                     "tern_amp_scale(scaler, loss) earlier in the iteration",
                     function);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static part *part_of(tern_scaler *self, tern_optimizer *optimizer)
{
    for (int i = 0; i < self->n; i++)
        if (self->parts[i].optimizer == optimizer)
            return &self->parts[i];
    if (self->n == self->capacity) {
        int capacity = self->capacity ? 2 * self->capacity : 2;
        part *parts = tern_grow(self->parts, sizeof *parts * (size_t)capacity);
        if (!parts)
            return NULL;
        self->parts = parts;
        self->capacity = capacity;
    }
    self->parts[self->n] = (part){.optimizer = optimizer};
    return &self->parts[self->n++];
}

static tern_status unscale(tern_scaler *self, part *p, const char *function)
{
    int n = 0;
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *found = tern_zeros(TERN_SHAPE_SCALAR, TERN_F32, tern_device(self->scale));
        status =
            found ? tern_optim_unscale(p->optimizer, self->scale, found, &n) : tern_last_status();
        if (status == TERN_OK && n > 0)
            p->found = tern_keep(found);
    }
    if (status == TERN_OK && n == 0)
        status = tern_fail(TERN_ERR_STATE,
                           "%s: No inf checks were recorded for this optimizer (none of its "
                           "parameters has a gradient)",
                           function);
    return status;
}

/* Checks the arguments. An earlier error is returned and not replaced. */
static tern_status check_call(tern_scaler *self, tern_optimizer *optimizer, const char *function)
{
    TERN_OPTIMIZER_GIVEN(optimizer, function);
    TERN_SCALER_GIVEN(self, function);
    if (!self || !optimizer)
        return tern_fail_argument_null(function, self ? "optimizer" : "scaler");
    TERN_TRY(tern_last_status());
    return TERN_OK;
}

tern_status tern_amp_unscale_(tern_scaler *self, tern_optimizer *optimizer)
{
    TERN_TRY(check_call(self, optimizer, "tern_amp_unscale_"));
    if (self->options.disabled)
        return TERN_OK;
    TERN_TRY(check_started(self, optimizer, "tern_amp_unscale_"));
    part *p = part_of(self, optimizer);
    if (!p)
        return TERN_ERR_MEMORY;
    if (p->stepped)
        return tern_fail(TERN_ERR_STATE,
                         "tern_amp_unscale_: unscale_() is being called after step().");
    if (p->found)
        return tern_fail(TERN_ERR_STATE, "tern_amp_unscale_: unscale_() has already been called on "
                                         "this optimizer since the last update().");
    return unscale(self, p, "tern_amp_unscale_");
}

tern_status tern_amp_step(tern_scaler *self, tern_optimizer *optimizer)
{
    TERN_TRY(check_call(self, optimizer, "tern_amp_step"));
    if (self->options.disabled)
        return tern_optim_step(optimizer);
    TERN_TRY(check_started(self, optimizer, "tern_amp_step"));
    part *p = part_of(self, optimizer);
    if (!p)
        return TERN_ERR_MEMORY;
    if (p->stepped)
        return tern_fail(TERN_ERR_STATE,
                         "tern_amp_step: step() has already been called since the last update().");
    if (!p->found)
        TERN_TRY(unscale(self, p, "tern_amp_step"));
    TERN_TRY(tern_optim_step_unless(optimizer, p->found));
    p->stepped = true;
    return TERN_OK;
}

/* Returns the maximum of all optimizers' found flags, in the first one's tensor, or NULL after an
 * error. */
static tern_tensor *found_by_all(const tern_scaler *self)
{
    tern_tensor *all = NULL;
    for (int i = 0; i < self->n; i++) {
        tern_tensor *found = self->parts[i].found;
        if (found && all && !tern_maximum_(all, found))
            return NULL;
        all = all ? all : found;
    }
    if (!all)
        tern_fail(TERN_ERR_STATE, "tern_amp_update: No inf checks were recorded prior to update.");
    return all;
}

tern_status tern_amp_update(tern_scaler *self)
{
    TERN_SCALER_GIVEN(self, "tern_amp_update");
    if (!self)
        return tern_fail_argument_null("tern_amp_update", "scaler");
    TERN_TRY(tern_last_status());
    if (self->options.disabled)
        return TERN_OK;
    TERN_TRY(check_started(self, NULL, "tern_amp_update"));
    const tern_grad_scaler_options *o = &self->options;
    tern_tensor *found = found_by_all(self);
    if (!found)
        return tern_last_status();
    TERN_TRY(tern_update_scale(self->scale, self->tracker, found, o->growth_factor,
                               o->backoff_factor, o->growth_interval));
    forget_parts(self);
    return TERN_OK;
}

/* ---- state ----------------------------------------------------------------------------------- */

static tern_status write_scale(tern_scaler *self, double scale)
{
    if (!(scale > 0) || !isfinite(scale))
        return tern_fail(TERN_ERR_ARGUMENT, "tern_amp_set_scale: Invalid scale: %s",
                         TERN_NUMBER_TEXT(scale));
    self->options.init_scale = scale;
    if (self->scale && !tern_fill_(self->scale, tern_scalar_real(scale)))
        return tern_last_status();
    return TERN_OK;
}

tern_status tern_amp_set_scale(tern_scaler *self, double scale)
{
    TERN_SCALER_GIVEN(self, "tern_amp_set_scale");
    if (!self)
        return tern_fail_argument_null("tern_amp_set_scale", "scaler");
    if (self->options.disabled)
        return TERN_OK;
    TERN_TRY(write_scale(self, scale));
    forget_parts(self);
    return TERN_OK;
}

double tern_amp_get_scale(tern_scaler *self)
{
    TERN_SCALER_GIVEN(self, "tern_amp_get_scale");
    if (!self) {
        tern_fail_argument_null("tern_amp_get_scale", "scaler");
        return NAN;
    }
    if (self->options.disabled)
        return 1;
    return self->scale ? tern_item(self->scale) : self->options.init_scale;
}

bool tern_amp_is_enabled(const tern_scaler *self)
{
    TERN_SCALER_GIVEN(self, "tern_amp_is_enabled");
    return self && !self->options.disabled;
}

tern_status tern_amp_get_state(tern_scaler *self, tern_scaler_state *state)
{
    TERN_SCALER_GIVEN(self, "tern_amp_get_state");
    const uint64_t failures = tern_failures();
    if (!self || !state)
        return tern_fail_argument_null("tern_amp_get_state", self ? "state" : "scaler");
    *state = (tern_scaler_state){.scale = tern_amp_get_scale(self),
                                 .growth_factor = self->options.growth_factor,
                                 .backoff_factor = self->options.backoff_factor,
                                 .growth_interval = self->options.growth_interval,
                                 .growth_tracker = self->tracker ? tern_item_int(self->tracker)
                                                                 : self->first_tracker};
    return tern_failed_since(failures);
}

tern_status tern_amp_set_state(tern_scaler *self, const tern_scaler_state *state)
{
    TERN_SCALER_GIVEN(self, "tern_amp_set_state");
    if (!self || !state)
        return tern_fail_argument_null("tern_amp_set_state", self ? "state" : "scaler");
    if (self->options.disabled)
        return TERN_OK;
    tern_grad_scaler_options o = {.growth_factor = state->growth_factor,
                                  .backoff_factor = state->backoff_factor,
                                  .growth_interval = state->growth_interval};
    TERN_TRY(check(&o));
    TERN_TRY(write_scale(self, state->scale));
    self->options.growth_factor = state->growth_factor;
    self->options.backoff_factor = state->backoff_factor;
    self->options.growth_interval = state->growth_interval;
    self->first_tracker = state->growth_tracker;
    if (self->tracker && !tern_fill_(self->tracker, tern_scalar_int(state->growth_tracker)))
        return tern_last_status();
    return TERN_OK;
}
