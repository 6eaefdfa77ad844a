/* lr_cyclic.c -- cyclic learning rates: triangles (Smith 2017), one cycle (Smith & Topin 2019),
 * cosines with warm restarts (Loshchilov & Hutter 2017). */
#include "base/checked.h"
#include "optim/lr_scheduler.h"

static const double pi = 3.14159265358979323846;

static tern_status check_groups(const tern_optimizer *o, const char *name)
{
    return o ? TERN_OK : tern_fail_argument_null(name, "optimizer");
}

/* ---- triangles ------------------------------------------------------------------------------- */

typedef struct triangles {
    tern_cyclic_lr_options o;
    double *low, *high; /* low and high rates of each group */
    double total, ratio;
} triangles;

/* Returns the position within the cycle, 0 to 1, times the amplitude: that of scale_fn, 1, half
 * with each cycle, or gamma^t. */
static double height(const tern_lr_scheduler *s, int group)
{
    const triangles *c = s->data;
    double t = (double)s->at.last_epoch, cycle = floor(1 + t / c->total);
    double x = 1 + t / c->total - cycle;
    double up = x <= c->ratio ? x / c->ratio : (x - 1) / (c->ratio - 1);
    if (c->o.scale_fn)
        return up * c->o.scale_fn(c->o.scale_mode == TERN_SCALE_CYCLE ? (int64_t)cycle
                                                                      : s->at.last_epoch,
                                  group, c->o.user);
    if (c->o.mode == TERN_CYCLIC_TRIANGULAR2)
        return up * (1 / pow(2, cycle - 1));
    return c->o.mode == TERN_CYCLIC_EXP_RANGE ? up * pow(c->o.gamma, t) : up;
}

/* base_lr + (max_lr - base_lr) height. */
static double cyclic_next(const tern_lr_scheduler *s, int group, double lr)
{
    const triangles *c = s->data;
    (void)lr;
    return c->low[group] + (c->high[group] - c->low[group]) * height(s, group);
}

/* Momentum falls while the rate rises: max_momentum - (max_momentum - base_momentum) height. */
static double cyclic_momentum(const tern_lr_scheduler *s, int group)
{
    const triangles *c = s->data;
    return c->o.max_momentum - (c->o.max_momentum - c->o.base_momentum) * height(s, group);
}

static void free_triangles(void *data)
{
    triangles *c = data;
    tern_free(c->low);
    tern_free(c->high);
}

#define CYCLIC(MOMENTUM)                                                                           \
    {                                                                                              \
        .name = "tern_lr_scheduler_cyclic_lr", .next = cyclic_next, .momentum = (MOMENTUM),        \
        .free_data = free_triangles                                                                \
    }
static const tern_lr_kind cyclic = CYCLIC(NULL);
static const tern_lr_kind cyclic_with_momentum = CYCLIC(cyclic_momentum);

tern_lr_scheduler *tern_lr_scheduler_cyclic_lr(tern_optimizer *optimizer, double base_lr,
                                               double max_lr, const tern_cyclic_lr_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_cyclic_lr_options o = tern_read_cyclic_lr(options);
    const tern_lr_kind *kind = o.no_cycle_momentum ? &cyclic : &cyclic_with_momentum;
    if (check_groups(optimizer, kind->name) != TERN_OK ||
        (!o.no_cycle_momentum && !tern_lr_momentum_name(optimizer, kind->name)))
        return NULL;
    if (o.step_size_down == -1)
        o.step_size_down = o.step_size_up;
    if (o.step_size_up < 0 || o.step_size_down < 0 || (!o.step_size_up && !o.step_size_down))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected positive step sizes, but got %lld, "
                              "%lld",
                              kind->name, (long long)o.step_size_up, (long long)o.step_size_down);
    if ((!o.scale_fn && tern_check_enum(kind->name, "mode", (int)o.mode, TERN_CYCLIC_EXP_RANGE,
                                        "tern_cyclic_mode") != TERN_OK) ||
        tern_check_enum(kind->name, "scale_mode", (int)o.scale_mode, TERN_SCALE_ITERATIONS,
                        "tern_scale_mode") != TERN_OK)
        return NULL;
    double total = (double)o.step_size_up + (double)o.step_size_down;
    int n = optimizer->n_groups;
    triangles c = {.o = o,
                   .low = tern_lr_numbers(o.base_lrs, base_lr, n),
                   .high = tern_lr_numbers(o.max_lrs, max_lr, n),
                   .total = total,
                   .ratio = (double)o.step_size_up / total};
    tern_lr_scheduler *s = c.low && c.high ? tern_lr_new(kind, optimizer, &c, sizeof c) : NULL;
    if (!s)
        free_triangles(&c);
    return tern_lr_start(s);
}

/* ---- one cycle ----------------------------------------------------------------------------- */

/* A phase up to step `end`, in which the rate goes from one of three points to another: FIRST is
 * max_lr / div_factor, MOST is max_lr, LEAST is FIRST / final_div_factor. */
typedef enum point { FIRST, MOST, LEAST } point;
typedef struct phase {
    double end;
    point from, to;
    bool falls; /* the momentum falls from its largest to its smallest value */
    bool stays;
} phase;

typedef struct one_cycle {
    tern_one_cycle_lr_options o;
    double *most; /* largest rate of each group */
    int64_t total;
    phase phases[3];
    int n;
} one_cycle;

/* Returns the current step's phase, and sets *part to the fraction of it that is done. */
static const phase *phase_now(const tern_lr_scheduler *s, double *part)
{
    const one_cycle *c = s->data;
    double t = (double)s->at.last_epoch, from = 0;
    int i = 0;
    for (; i < c->n - 1 && t > c->phases[i].end; i++)
        from = c->phases[i].end;
    *part = (t - from) / (c->phases[i].end - from);
    return &c->phases[i];
}

/* Interpolates between two rates, by half a cosine or linearly. */
static double anneal(const one_cycle *c, double from, double to, double part)
{
    if (c->o.anneal_strategy == TERN_ANNEAL_LINEAR)
        return (to - from) * part + from;
    return to + (from - to) / 2 * (cos(pi * part) + 1);
}

static double rate_of(const one_cycle *c, int group, point p)
{
    double most = c->most[group], first = most / c->o.div_factor;
    return p == MOST ? most : p == FIRST ? first : first / c->o.final_div_factor;
}

static double one_cycle_next(const tern_lr_scheduler *s, int group, double lr)
{
    const one_cycle *c = s->data;
    double part;
    const phase *p = phase_now(s, &part);
    (void)lr;
    return anneal(c, rate_of(c, group, p->from), rate_of(c, group, p->to), part);
}

/* Momentum moves opposite to the rate, and stays at its largest in the last of three phases. */
static double one_cycle_momentum(const tern_lr_scheduler *s, int group)
{
    const one_cycle *c = s->data;
    double part, high = c->o.max_momentum, low = c->o.base_momentum;
    const phase *p = phase_now(s, &part);
    (void)group;
    return p->stays ? anneal(c, high, high, part)
                    : anneal(c, p->falls ? high : low, p->falls ? low : high, part);
}

static tern_status check_one_cycle(const tern_lr_scheduler *s)
{
    const one_cycle *c = s->data;
    if (s->at.last_epoch <= c->total)
        return TERN_OK;
    return tern_fail(TERN_ERR_STATE,
                     "%s: Tried to step %lld times. The specified number of total steps is %lld",
                     s->kind->name, (long long)s->at.last_epoch + 1, (long long)c->total);
}

static void free_one_cycle(void *data)
{
    one_cycle *c = data;
    tern_free(c->most);
}

#define ONE_CYCLE(MOMENTUM)                                                                        \
    {                                                                                              \
        .name = "tern_lr_scheduler_one_cycle_lr", .next = one_cycle_next, .momentum = (MOMENTUM),  \
        .check = check_one_cycle, .free_data = free_one_cycle                                      \
    }
static const tern_lr_kind one_cycle_kind = ONE_CYCLE(NULL);
static const tern_lr_kind one_cycle_with_momentum = ONE_CYCLE(one_cycle_momentum);

/* The rate rises for pct_start of the steps and falls for the rest; with three phases it falls to
 * the first rate as fast as it rose, then to the smallest. */
static void set_phases(one_cycle *c)
{
    double total = (double)c->total, up = c->o.pct_start * total;
    c->phases[c->n++] = (phase){up - 1, FIRST, MOST, .falls = true};
    if (c->o.three_phase) {
        c->phases[c->n++] = (phase){2 * up - 2, MOST, FIRST, .falls = false};
        c->phases[c->n++] = (phase){total - 1, FIRST, LEAST, .stays = true};
    } else {
        c->phases[c->n++] = (phase){total - 1, MOST, LEAST, .falls = false};
    }
}

static bool is_count(const char *name, const char *what, int64_t n)
{
    return n > 0 || tern_fail(TERN_ERR_ARGUMENT, "%s: Expected positive integer %s, but got %lld",
                              name, what, (long long)n) == TERN_OK;
}

/* Returns total, or epochs * steps_per_epoch if it is 0; 0 after an error. */
static int64_t steps_in_all(const char *name, int64_t total, const tern_one_cycle_lr_options *o)
{
    if (total)
        return is_count(name, "total_steps", total) ? total : 0;
    if (!o->epochs || !o->steps_per_epoch) {
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: You must define either total_steps OR (epochs AND steps_per_epoch)", name);
        return 0;
    }
    return is_count(name, "epochs", o->epochs) &&
                   is_count(name, "steps_per_epoch", o->steps_per_epoch)
               ? tern_size_mul(o->epochs, o->steps_per_epoch)
               : 0;
}

tern_lr_scheduler *tern_lr_scheduler_one_cycle_lr(tern_optimizer *optimizer, double max_lr,
                                                  int64_t total_steps,
                                                  const tern_one_cycle_lr_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_one_cycle_lr_options o = tern_read_one_cycle_lr(options);
    const tern_lr_kind *kind = o.no_cycle_momentum ? &one_cycle_kind : &one_cycle_with_momentum;
    if (check_groups(optimizer, kind->name) != TERN_OK ||
        (!o.no_cycle_momentum && !tern_lr_momentum_name(optimizer, kind->name)))
        return NULL;
    total_steps = steps_in_all(kind->name, total_steps, &o);
    if (!total_steps)
        return NULL;
    if (!(o.pct_start >= 0 && o.pct_start <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected float between 0 and 1 pct_start, but got %s",
                              kind->name, TERN_NUMBER_TEXT(o.pct_start));
    if (tern_check_enum(kind->name, "anneal_strategy", (int)o.anneal_strategy, TERN_ANNEAL_LINEAR,
                        "tern_anneal_strategy") != TERN_OK)
        return NULL;
    one_cycle c = {.o = o,
                   .most = tern_lr_numbers(o.max_lrs, max_lr, optimizer->n_groups),
                   .total = total_steps};
    set_phases(&c);
    for (int i = 0; c.most && i < optimizer->n_groups; i++) {
        optimizer->groups[i].initial_lr = rate_of(&c, i, FIRST);
        optimizer->groups[i].has_initial_lr = true;
    }
    tern_lr_scheduler *s = c.most ? tern_lr_new(kind, optimizer, &c, sizeof c) : NULL;
    if (!s)
        free_one_cycle(&c);
    return tern_lr_start(s);
}

/* ---- cosines with restarts ----------------------------------------------------------------- */

typedef struct restarts {
    int64_t t_0, t_mult;
    double eta_min;
} restarts;

/* A period lasts t_0 epochs, each next one t_mult times as long. t_cur is the epoch within the
 * period, t_i its length. */
static void advance(tern_lr_scheduler *s, const int64_t *epoch)
{
    const restarts *r = s->data;
    tern_lr_scheduler_state *at = &s->at;
    if (!epoch && at->last_epoch >= 0) {
        at->last_epoch++;
        if (++at->t_cur >= at->t_i) {
            at->t_cur -= at->t_i;
            at->t_i *= r->t_mult;
        }
        return;
    }
    at->last_epoch = epoch ? *epoch : 0;
    at->t_i = r->t_0;
    for (at->t_cur = at->last_epoch; at->t_cur >= at->t_i; at->t_i *= r->t_mult)
        at->t_cur -= at->t_i;
}

/* eta_min + (base - eta_min) (1 + cos(pi t_cur / t_i)) / 2. */
static double restarts_next(const tern_lr_scheduler *s, int group, double lr)
{
    const restarts *r = s->data;
    (void)lr;
    return r->eta_min + (s->base[group] - r->eta_min) *
                            (1 + cos(pi * (double)s->at.t_cur / (double)s->at.t_i)) / 2;
}

static const tern_lr_kind restarts_kind = {.name =
                                               "tern_lr_scheduler_cosine_annealing_warm_restarts",
                                           .next = restarts_next,
                                           .advance = advance};

tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_warm_restarts(tern_optimizer *optimizer,
                                                                    int64_t t_0, int64_t t_mult,
                                                                    double eta_min)
{
    const char *name = restarts_kind.name;
    if (t_0 <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Expected positive integer t_0, but got %lld",
                              name, (long long)t_0);
    if (t_mult < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Expected integer t_mult >= 1, but got %lld",
                              name, (long long)t_mult);
    restarts r = {t_0, t_mult, eta_min};
    return tern_lr_start(tern_lr_new(&restarts_kind, optimizer, &r, sizeof r));
}
