/* lr_scheduler.h -- internals of a scheduler. */
#ifndef TERN_OPTIM_LR_SCHEDULER_INSIDE_H
#define TERN_OPTIM_LR_SCHEDULER_INSIDE_H
#include "base/text.h"
#include "optim/optimizer.h"
#include <math.h>

/* A kind of scheduler. */
typedef struct tern_lr_kind {
    const char *name; /* such as "tern_lr_scheduler_step_lr" */
    /* Returns a group's rate at last_epoch from its previous rate (PyTorch's get_lr). */
    double (*next)(const tern_lr_scheduler *s, int group, double lr);
    /* Returns the rate from the initial rate alone. NULL if the kind has no such formula. */
    double (*at)(const tern_lr_scheduler *s, int group);
    /* Returns the momentum. NULL if the schedule has none. */
    double (*momentum)(const tern_lr_scheduler *s, int group);
    /* Sets last_epoch to *epoch, or increases it if epoch is NULL. A function of NULL means just
     * that. */
    void (*advance)(tern_lr_scheduler *s, const int64_t *epoch);
    tern_status (*check)(const tern_lr_scheduler *s); /* fails if no step can be made */
    tern_status (*step)(tern_lr_scheduler *s);        /* replaces the functions above */
    tern_status (*step_metric)(tern_lr_scheduler *s, double metric);
    void (*free_data)(void *data);
    /* next needs only the group's last rate, so it works for groups added later; it returns NaN if
     * it needs an initial rate that such a group lacks. */
    bool every_group;
    bool counts_steps; /* next uses at.t_cur, the number of steps */
} tern_lr_kind;

/* Sets s to NULL after an error if it was freed. */
#define TERN_SCHEDULER_GIVEN(s, function) TERN_GIVEN(s, "scheduler", function)

struct tern_lr_scheduler {
    tern_handle handle;
    const tern_lr_kind *kind;
    tern_optimizer *optimizer; /* valid while life is alive */
    tern_life *life;
    _Atomic(tern_life *) own_life; /* for recordings that step it */
    tern_lr_scheduler_state at;
    int n;               /* groups when the scheduler was made */
    int noted;           /* groups with rates in last */
    double *base, *last; /* initial rates of n groups; the last rates of `noted` groups */
    void *data;          /* the kind's data */
};

/* Returns a scheduler before its first step, with a copy of data. It owns what data points to; if
 * this function fails, the caller still does. */
tern_lr_scheduler *tern_lr_new(const tern_lr_kind *kind, tern_optimizer *optimizer,
                               const void *data, size_t bytes);
/* Makes the first step, which sets the rates of epoch 0. Returns s, or NULL after freeing it. */
tern_lr_scheduler *tern_lr_start(tern_lr_scheduler *s);
/* Makes a step, to *epoch unless epoch is NULL. */
tern_status tern_lr_step(tern_lr_scheduler *s, const int64_t *epoch);
/* Returns the initial rate of a group; NaN for a group added later. */
static inline double tern_lr_base(const tern_lr_scheduler *s, int group)
{
    return group < s->n ? s->base[group] : NAN;
}
/* Records an error if the scheduler's optimizer was freed. */
tern_status tern_lr_check_optimizer(const tern_lr_scheduler *s, const char *function);
/* Copies the groups' current rates to last. */
tern_status tern_lr_note(tern_lr_scheduler *s);
/* Returns a copy of n numbers, or n times `otherwise` if numbers is NULL; NULL after
 * TERN_ERR_MEMORY. The caller frees it. */
double *tern_lr_numbers(const double *numbers, double otherwise, int n);
/* Returns "momentum" or "beta1"; NULL after an error if the optimizer has neither. */
const char *tern_lr_momentum_name(const tern_optimizer *o, const char *function);

#endif
