/* lr_plateau.c -- a learning rate that is reduced when a metric has stopped improving. */
#include "optim/lr_scheduler.h"

typedef struct plateau {
    tern_reduce_lr_on_plateau_options o;
    double *least; /* minimum rates of each group; groups added later have o.min_lr */
} plateau;

/* Returns whether metric improves on best by more than the threshold, absolute or relative. */
static bool is_better(const plateau *p, double metric, double best)
{
    const bool max = p->o.mode == TERN_PLATEAU_MAX;
    if (p->o.threshold_mode == TERN_THRESHOLD_ABS)
        return max ? metric > best + p->o.threshold : metric < best - p->o.threshold;
    return max ? metric > best * (p->o.threshold + 1) : metric < best * (1 - p->o.threshold);
}

/* lr = max(lr factor, min_lr), unless the change is below eps. */
static tern_status reduce(tern_lr_scheduler *s)
{
    const plateau *p = s->data;
    const int n = s->optimizer->n_groups;
    if (n > s->n && p->o.min_lrs)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: the optimizer has %d parameter groups and min_lrs %d numbers: give "
                         "min_lr, or make the scheduler after the groups",
                         s->kind->name, n, s->n);
    for (int i = 0; i < n; i++) {
        double *lr = &s->optimizer->groups[i].lr;
        double next = fmax(*lr * p->o.factor, i < s->n ? p->least[i] : p->o.min_lr);
        if (*lr - next > p->o.eps)
            *lr = next;
    }
    return TERN_OK;
}

/* Reduces after more than `patience` epochs without improvement; `cooldown` epochs after a
 * reduction do not count. */
static tern_status step_metric(tern_lr_scheduler *s, double metric)
{
    const plateau *p = s->data;
    const tern_lr_scheduler_state before = s->at;
    tern_lr_scheduler_state *at = &s->at;
    at->last_epoch++;
    if (is_better(p, metric, at->best)) {
        at->best = metric;
        at->num_bad_epochs = 0;
    } else {
        at->num_bad_epochs++;
    }
    if (at->cooldown_counter > 0) {
        at->cooldown_counter--;
        at->num_bad_epochs = 0;
    }
    if (at->num_bad_epochs > p->o.patience.value) {
        const tern_status status = reduce(s);
        if (status != TERN_OK) {
            s->at = before;
            return status;
        }
        at->cooldown_counter = p->o.cooldown;
        at->num_bad_epochs = 0;
    }
    return tern_lr_note(s);
}

static void free_plateau(void *data)
{
    plateau *p = data;
    tern_free(p->least);
}

static const tern_lr_kind kind = {.name = "tern_lr_scheduler_reduce_lr_on_plateau",
                                  .step_metric = step_metric,
                                  .free_data = free_plateau};

tern_lr_scheduler *tern_lr_scheduler_reduce_lr_on_plateau(
    tern_optimizer *optimizer, const tern_reduce_lr_on_plateau_options *options)
{
    tern_reduce_lr_on_plateau_options o = tern_read_reduce_lr_on_plateau(options);
    if (!optimizer) {
        tern_fail_argument_null(kind.name, "optimizer");
        return NULL;
    }
    if (tern_check_enum(kind.name, "mode", (int)o.mode, TERN_PLATEAU_MAX, "tern_plateau_mode") !=
            TERN_OK ||
        tern_check_enum(kind.name, "threshold_mode", (int)o.threshold_mode, TERN_THRESHOLD_ABS,
                        "tern_threshold_mode") != TERN_OK)
        return NULL;
    if (!(o.factor < 1))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Factor should be < 1.0. (%s)", kind.name,
                              TERN_NUMBER_TEXT(o.factor));
    plateau p = {.o = o, .least = tern_lr_numbers(o.min_lrs, o.min_lr, optimizer->n_groups)};
    tern_lr_scheduler *s = p.least ? tern_lr_new(&kind, optimizer, &p, sizeof p) : NULL;
    if (!s) {
        free_plateau(&p);
        return NULL;
    }
    s->at.last_epoch = 0;
    s->at.best = o.mode == TERN_PLATEAU_MAX ? -INFINITY : INFINITY;
    return s;
}
