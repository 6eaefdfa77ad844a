/* lr_scheduler.h -- the inside of a scheduler. */
#ifndef TERN_OPTIM_LR_SCHEDULER_INSIDE_H
#define TERN_OPTIM_LR_SCHEDULER_INSIDE_H
#include "base/text.h"
#include "optim/optimizer.h"
#include <math.h>

/* What distinguishes one scheduler from another. */
typedef struct tern_lr_kind {
    const char *name; /* "tern_lr_scheduler_step_lr" */
    /* The rate of a group at last_epoch from its rate before (PyTorch's get_lr). */
    double (*next)(const tern_lr_scheduler *s, int group, double lr);
    /* The same from the first rate alone; NULL where there is no such formula. */
    double (*at)(const tern_lr_scheduler *s, int group);
    /* A momentum that goes with it; NULL for none. */
    double (*momentum)(const tern_lr_scheduler *s, int group);
    /* Moves last_epoch, to `epoch` where that is not NULL; NULL: by one. */
    void (*advance)(tern_lr_scheduler *s, const int64_t *epoch);
    tern_status (*check)(const tern_lr_scheduler *s); /* whether a step can be made */
    tern_status (*step)(tern_lr_scheduler *s);        /* instead of all that */
    tern_status (*step_metric)(tern_lr_scheduler *s, double metric);
    void (*free_data)(void *data);
    /* next goes by the group's last rate alone, so that groups that are added later follow too; NaN
     * where it needs a first rate that they do not have. */
    bool every_group;
    bool counts_steps; /* next goes by at.t_cur, the steps so far */
} tern_lr_kind;

/* s is NULL from here on if it was freed, which is an error. */
#define TERN_SCHEDULER_GIVEN(s, function) TERN_GIVEN(s, "scheduler", function)

struct tern_lr_scheduler {
    tern_handle handle;
    const tern_lr_kind *kind;
    tern_optimizer *optimizer; /* while alive */
    tern_life *life;
    _Atomic(tern_life *) own_life; /* for recordings that step it */
    tern_lr_scheduler_state at;
    int n;               /* groups that there were when it was made */
    int noted;           /* groups whose rates are in last */
    double *base, *last; /* first rates of n groups, and those given last */
    void *data;          /* the kind's own */
};

/* A scheduler that has not made its first step. It has a copy of data, and what data points to is
 * its own from now on; the caller's still when this fails. */
tern_lr_scheduler *tern_lr_new(const tern_lr_kind *kind, tern_optimizer *optimizer,
                               const void *data, size_t bytes);
/* Make the first step, which sets the rates of epoch 0. s, or NULL after freeing it. */
tern_lr_scheduler *tern_lr_start(tern_lr_scheduler *s);
/* A step, to `epoch` where that is not NULL. */
tern_status tern_lr_step(tern_lr_scheduler *s, const int64_t *epoch);
/* The first rate of a group; NaN for one that was added later. */
static inline double tern_lr_base(const tern_lr_scheduler *s, int group)
{
    return group < s->n ? s->base[group] : NAN;
}
/* Whether the scheduler's optimizer still is. */
tern_status tern_lr_check_optimizer(const tern_lr_scheduler *s, const char *function);
/* Note the rates as they are. */
tern_status tern_lr_note(tern_lr_scheduler *s);
/* A copy of n numbers; of `otherwise` where they are NULL. NULL after TERN_ERR_MEMORY. */
double *tern_lr_numbers(const double *numbers, double otherwise, int n);
/* "momentum" or "beta1"; NULL after an error when the optimizer has neither. */
const char *tern_lr_momentum_name(const tern_optimizer *o, const char *function);

#endif
