/* lr_sequential.c -- schedulers made of others: one after the other, or all in each step. */
#include "optim/lr_scheduler.h"

/* The schedulers of which one is made. */
typedef struct parts {
    tern_lr_scheduler **part; /* owned */
    int n;
    int64_t *milestones; /* n - 1 epochs, or NULL if all step together */
} parts;

static void free_parts(void *data)
{
    parts *p = data;
    for (int i = 0; i < p->n; i++)
        tern_lr_scheduler_free(p->part[i]);
    tern_free(p->part);
    tern_free(p->milestones);
}

/* Returns the index of the scheduler for that epoch. */
static int part_at(const parts *p, int64_t epoch)
{
    int i = 0;
    while (i < p->n - 1 && p->milestones[i] <= epoch)
        i++;
    return i;
}

/* At its milestone a scheduler starts at its epoch 0, which it does not count as a step. */
static tern_status step_sequential(tern_lr_scheduler *s)
{
    const parts *p = s->data;
    const int64_t epoch = ++s->at.last_epoch, first = 0;
    const int i = part_at(p, epoch);
    bool begins = i > 0 && p->milestones[i - 1] == epoch;
    if (begins && p->part[i]->kind->counts_steps)
        p->part[i]->at.t_cur--;
    tern_status status = tern_lr_step(p->part[i], begins ? &first : NULL);
    return status == TERN_OK ? tern_lr_note(s) : status;
}

/* Steps all parts; their factors multiply. */
static tern_status step_all(tern_lr_scheduler *s)
{
    const parts *p = s->data;
    tern_status status = TERN_OK;
    s->at.last_epoch++;
    for (int i = 0; i < p->n && status == TERN_OK; i++)
        status = tern_lr_step(p->part[i], NULL);
    return status == TERN_OK ? tern_lr_note(s) : status;
}

static const tern_lr_kind sequential = {
    .name = "tern_lr_scheduler_sequential_lr", .step = step_sequential, .free_data = free_parts};
static const tern_lr_kind chained = {
    .name = "tern_lr_scheduler_chained_scheduler", .step = step_all, .free_data = free_parts};

tern_lr_scheduler *tern_lr_scheduler_part(const tern_lr_scheduler *scheduler, int i)
{
    TERN_SCHEDULER_GIVEN(scheduler, "tern_lr_scheduler_part");
    const parts *p = scheduler && scheduler->kind->free_data == free_parts ? scheduler->data : NULL;
    return p && i >= 0 && i < p->n ? p->part[i] : NULL;
}

static bool is_among(const tern_lr_scheduler *s, tern_lr_scheduler *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (list[i] == s)
            return true;
    return false;
}

/* Fails unless the schedulers are distinct, of one optimizer, and take no metric. */
static tern_status check(const tern_lr_kind *kind, tern_optimizer *o,
                         tern_lr_scheduler *const *schedulers, int n)
{
    if (n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expects at least one scheduler", kind->name);
    for (int i = 0; i < n; i++) {
        if (!schedulers[i])
            return tern_fail_argument_null(kind->name, "a scheduler");
        TERN_TRY(tern_lr_check_optimizer(schedulers[i], kind->name));
        if (is_among(schedulers[i], schedulers, i))
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: the scheduler at index %d is there twice; it can be one part",
                             kind->name, i);
        if (schedulers[i]->optimizer != o)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: expects all schedulers to belong to the same optimizer, but got "
                             "schedulers at index %d and %d to be different",
                             kind->name, 0, i);
        if (schedulers[i]->kind->step_metric)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: %s takes a metric and can't be a part",
                             kind->name, schedulers[i]->kind->name);
    }
    return TERN_OK;
}

/* Returns a scheduler that owns the others; after an error frees them and returns NULL. */
static tern_lr_scheduler *compose(const tern_lr_kind *kind, tern_optimizer *o,
                                  tern_lr_scheduler *const *schedulers, int n,
                                  const int64_t *milestones, bool missing)
{
    parts p = {.n = 0};
    if (!schedulers || n < 0) {
        tern_fail_argument_null(kind->name, "schedulers");
        return NULL;
    }
    p.part = tern_alloc(sizeof *p.part * (size_t)(n + 1));
    p.milestones = milestones ? tern_alloc(sizeof *p.milestones * (size_t)(n + 1)) : NULL;
    bool ready =
        p.part && (p.milestones || !milestones) && check(kind, o, schedulers, n) == TERN_OK;
    if (missing)
        tern_fail_argument_null(kind->name, "milestones");
    for (; p.part && p.n < n; p.n++)
        p.part[p.n] = schedulers[p.n];
    for (int i = 0; milestones && p.milestones && !missing && i < n - 1; i++)
        p.milestones[i] = milestones[i];
    tern_lr_scheduler *s = ready && !missing ? tern_lr_new(kind, o, &p, sizeof p) : NULL;
    if (s)
        return s;
    for (int i = 0; i < n; i++) /* p.part is NULL if its allocation failed */
        if (!is_among(schedulers[i], schedulers, i))
            tern_lr_scheduler_free(schedulers[i]);
    tern_free(p.part);
    tern_free(p.milestones);
    return NULL;
}

/* Each scheduler made a first step when it was constructed, which changed the learning rate. This
 * is undone, and only the first scheduler steps again. */
tern_lr_scheduler *tern_lr_scheduler_sequential_lr(tern_optimizer *optimizer,
                                                   tern_lr_scheduler *const *schedulers, int n,
                                                   const int64_t *milestones)
{
    static const int64_t none = 0;
    bool missing = !milestones && n > 1;
    tern_lr_scheduler *s =
        compose(&sequential, optimizer, schedulers, n, milestones ? milestones : &none, missing);
    if (!s)
        return NULL;
    const parts *p = s->data;
    for (int i = 0; i < s->n; i++)
        optimizer->groups[i].lr = optimizer->groups[i].initial_lr;
    for (int i = 0; i < n; i++)
        p->part[i]->at.last_epoch--;
    s->at.last_epoch = 0;
    if (tern_lr_step(p->part[part_at(p, 0)], NULL) != TERN_OK) {
        tern_lr_scheduler_free(s);
        return NULL;
    }
    if (tern_lr_note(s) == TERN_OK)
        return s;
    tern_lr_scheduler_free(s);
    return NULL;
}

tern_lr_scheduler *tern_lr_scheduler_chained_scheduler(tern_lr_scheduler *const *schedulers, int n)
{
    tern_optimizer *o = schedulers && n > 0 && schedulers[0] ? schedulers[0]->optimizer : NULL;
    tern_lr_scheduler *s = compose(&chained, o, schedulers, n, NULL, false);
    if (s)
        s->at.last_epoch = 0;
    return s;
}
