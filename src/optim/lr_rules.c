/* lr_rules.c -- schedulers with one formula, in chainable and in closed form.
 *
 * The chainable form computes the new learning rate from the last one, so that the factors of
 * several schedulers multiply; the closed form computes it from the initial rate and the epoch.
 * Both are PyTorch's. */
#include "optim/lr_scheduler.h"

/* The parameters of all rules; each uses a few. */
typedef struct rule {
    double gamma;
    double factor, end_factor; /* constant_lr, linear_lr */
    double power, eta_min;
    int64_t epochs;            /* step_size, total_iters or t_max */
    const int64_t *milestones; /* n_milestones epochs */
    int64_t n_milestones;
    tern_lr_lambda lambda;
    void *user;
} rule;

static const double pi = 3.14159265358979323846;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* A rule's two formulas: NEXT from lr, AT from base, with epoch t and the rule r. */
#define RULE(NAME, NEXT, AT)                                                                       \
    static double NAME##_next(const tern_lr_scheduler *s, int group, double lr)                    \
    {                                                                                              \
        const rule *r = s->data;                                                                   \
        const int64_t t = s->at.last_epoch;                                                        \
        const double base = tern_lr_base(s, group);                                                \
        (void)r, (void)t, (void)base;                                                              \
        return NEXT;                                                                               \
    }                                                                                              \
    static double NAME##_at(const tern_lr_scheduler *s, int group)                                 \
    {                                                                                              \
        const rule *r = s->data;                                                                   \
        const int64_t t = s->at.last_epoch;                                                        \
        const double base = tern_lr_base(s, group);                                                \
        return AT;                                                                                 \
    }                                                                                              \
    static const tern_lr_kind NAME##_kind = {.name = "tern_lr_scheduler_" #NAME,                   \
                                             .next = NAME##_next,                                  \
                                             .at = NAME##_at,                                      \
                                             .every_group = true};
/* A rule without a closed form. AT is the kind's function `at`, or NULL. */
#define CHAINED_RULE(NAME, NEXT, AT)                                                               \
    static double NAME##_next(const tern_lr_scheduler *s, int group, double lr)                    \
    {                                                                                              \
        const rule *r = s->data;                                                                   \
        const int64_t t = s->at.last_epoch;                                                        \
        (void)lr;                                                                                  \
        return NEXT;                                                                               \
    }                                                                                              \
    static const tern_lr_kind NAME##_kind = {                                                      \
        .name = "tern_lr_scheduler_" #NAME, .next = NAME##_next, .at = AT};

/* milestones_at counts the milestones equal to t, milestones_until those up to t; duplicates
 * count. */
static int64_t milestones_at(const rule *r, int64_t t)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->n_milestones; i++)
        count += r->milestones[i] == t;
    return count;
}
static int64_t milestones_until(const rule *r, int64_t t)
{
    int64_t count = 0;
    for (int64_t i = 0; i < r->n_milestones; i++)
        count += r->milestones[i] <= t;
    return count;
}

/* Returns 1 + cos(pi t / n). */
static double cosine(const rule *r, int64_t t)
{
    return 1 + cos(pi * (double)t / (double)r->epochs);
}

/* Returns eta_min + (lr - eta_min) (1 + cos(pi t / n)) / (1 + cos(pi (t - 1) / n)). After the
 * lowest point, where the divisor is zero, the rate rises by its first step from eta_min. */
static double cosine_next(const rule *r, int64_t t, double lr, double base)
{
    if (t == 0)
        return lr;
    if ((t - 1) % r->epochs == 0 && (t - 1) / r->epochs % 2 == 1)
        return lr + (base - r->eta_min) * (1 - cos(pi / (double)r->epochs)) / 2;
    return cosine(r, t) / cosine(r, t - 1) * (lr - r->eta_min) + r->eta_min;
}

/* Returns lr ((1 - t / n) / (1 - (t - 1) / n))^power. */
static double polynomial_next(const rule *r, int64_t t, double lr)
{
    double n = (double)r->epochs;
    if (t == 0 || t > r->epochs)
        return lr;
    return lr * pow((1 - (double)t / n) / (1 - (double)(t - 1) / n), r->power);
}

/* The factor goes linearly from factor to end_factor. Returns lr times the quotient of two
 * successive factors. */
static double linear_next(const rule *r, int64_t t, double lr)
{
    double rise = r->end_factor - r->factor;
    if (t == 0)
        return lr * r->factor;
    return t > r->epochs
               ? lr
               : lr * (1 + rise / ((double)r->epochs * r->factor + (double)(t - 1) * rise));
}

RULE(step_lr, t == 0 || t % r->epochs != 0 ? lr : lr * r->gamma,
     base *pow(r->gamma, (double)(t / r->epochs)))
RULE(multi_step_lr, milestones_at(r, t) ? lr *pow(r->gamma, (double)milestones_at(r, t)) : lr,
     base *pow(r->gamma, (double)milestones_until(r, t)))
RULE(exponential_lr, t == 0 ? lr : lr * r->gamma, base *pow(r->gamma, (double)t))
RULE(constant_lr,
     t == 0           ? lr * r->factor
     : t == r->epochs ? lr * (1 / r->factor)
                      : lr,
     base *(r->factor + (t >= r->epochs ? 1 - r->factor : 0)))
RULE(linear_lr, linear_next(r, t, lr),
     base *(r->factor +
            (r->end_factor - r->factor) * (double)smaller(r->epochs, t) / (double)r->epochs))
RULE(polynomial_lr, polynomial_next(r, t, lr),
     base *pow(1 - (double)smaller(r->epochs, t) / (double)r->epochs, r->power))
RULE(cosine_annealing_lr, cosine_next(r, t, lr, base),
     r->eta_min + (base - r->eta_min) * cosine(r, t) / 2)
CHAINED_RULE(lambda_lr, s->base[group] * r->lambda(t, group, r->user), NULL)

/* A step to a given epoch, as by SequentialLR, multiplies too, while the first step does not. */
static double multiplied(const tern_lr_scheduler *s, int group)
{
    const rule *r = s->data;
    return s->optimizer->groups[group].lr * r->lambda(s->at.last_epoch, group, r->user);
}
CHAINED_RULE(multiplicative_lr, t > 0 ? lr * r->lambda(t, group, r->user) : lr, multiplied)

static tern_lr_scheduler *start(const tern_lr_kind *kind, tern_optimizer *o, const rule *r)
{
    return tern_lr_start(tern_lr_new(kind, o, r, sizeof *r));
}

/* what: "positive integer ..." or, from least = 0 on, "non-negative integer ...". */
static tern_status check_least(const tern_lr_kind *kind, const char *what, int64_t n, int64_t least)
{
    return n >= least ? TERN_OK
                      : tern_fail(TERN_ERR_ARGUMENT, "%s: Expected %s, but got %lld", kind->name,
                                  what, (long long)n);
}

static tern_status check_factor(const tern_lr_kind *kind, const char *words, double factor)
{
    return factor >= 0 && factor <= 1
               ? TERN_OK
               : tern_fail(TERN_ERR_ARGUMENT,
                           "%s: %s multiplicative factor expected to be between 0 and 1. (%s)",
                           kind->name, words, TERN_NUMBER_TEXT(factor));
}

tern_lr_scheduler *tern_lr_scheduler_step_lr(tern_optimizer *o, int64_t step_size, double gamma)
{
    if (check_least(&step_lr_kind, "positive integer step_size", step_size, 1) != TERN_OK)
        return NULL;
    return start(&step_lr_kind, o, &(rule){.epochs = step_size, .gamma = gamma});
}

tern_lr_scheduler *tern_lr_scheduler_exponential_lr(tern_optimizer *o, double gamma)
{
    return start(&exponential_lr_kind, o, &(rule){.gamma = gamma});
}

tern_lr_scheduler *tern_lr_scheduler_constant_lr(tern_optimizer *o, double factor,
                                                 int64_t total_iters)
{
    if (check_factor(&constant_lr_kind, "Constant", factor) != TERN_OK)
        return NULL;
    return start(&constant_lr_kind, o, &(rule){.factor = factor, .epochs = total_iters});
}

tern_lr_scheduler *tern_lr_scheduler_linear_lr(tern_optimizer *o, double start_factor,
                                               double end_factor, int64_t total_iters)
{
    if (check_factor(&linear_lr_kind, "Starting", start_factor) != TERN_OK ||
        check_factor(&linear_lr_kind, "Ending", end_factor) != TERN_OK ||
        check_least(&linear_lr_kind, "non-negative integer total_iters", total_iters, 0) != TERN_OK)
        return NULL;
    return start(&linear_lr_kind, o,
                 &(rule){.factor = start_factor, .end_factor = end_factor, .epochs = total_iters});
}

tern_lr_scheduler *tern_lr_scheduler_polynomial_lr(tern_optimizer *o, int64_t total_iters,
                                                   double power)
{
    if (check_least(&polynomial_lr_kind, "non-negative integer total_iters", total_iters, 0) !=
        TERN_OK)
        return NULL;
    return start(&polynomial_lr_kind, o, &(rule){.epochs = total_iters, .power = power});
}

tern_lr_scheduler *tern_lr_scheduler_cosine_annealing_lr(tern_optimizer *o, int64_t t_max,
                                                         double eta_min)
{
    if (check_least(&cosine_annealing_lr_kind, "positive integer t_max", t_max, 1) != TERN_OK)
        return NULL;
    return start(&cosine_annealing_lr_kind, o, &(rule){.epochs = t_max, .eta_min = eta_min});
}

static tern_lr_scheduler *with_lambda(const tern_lr_kind *kind, tern_optimizer *o,
                                      tern_lr_lambda lambda, void *user)
{
    if (!lambda) {
        tern_fail_argument_null(kind->name, "lambda");
        return NULL;
    }
    return start(kind, o, &(rule){.lambda = lambda, .user = user});
}

tern_lr_scheduler *tern_lr_scheduler_lambda_lr(tern_optimizer *o, tern_lr_lambda lambda, void *user)
{
    return with_lambda(&lambda_lr_kind, o, lambda, user);
}

tern_lr_scheduler *tern_lr_scheduler_multiplicative_lr(tern_optimizer *o, tern_lr_lambda lambda,
                                                       void *user)
{
    return with_lambda(&multiplicative_lr_kind, o, lambda, user);
}

/* The milestones are stored behind the rule in the same memory. */
tern_lr_scheduler *tern_lr_scheduler_multi_step_lr(tern_optimizer *o, const int64_t *milestones,
                                                   int n, double gamma)
{
    if (n < 0 || (!milestones && n > 0)) {
        tern_fail_argument_null("tern_lr_scheduler_multi_step_lr", "milestones");
        return NULL;
    }
    size_t bytes = sizeof(rule) + sizeof(int64_t) * (size_t)n;
    rule *r = tern_alloc(bytes);
    if (!r)
        return NULL;
    *r = (rule){.gamma = gamma, .n_milestones = n};
    int64_t *copy = (int64_t *)(r + 1);
    for (int i = 0; i < n; i++)
        copy[i] = milestones[i];
    tern_lr_scheduler *s = tern_lr_new(&multi_step_lr_kind, o, r, bytes);
    tern_free(r);
    if (s)
        ((rule *)s->data)->milestones = (const int64_t *)((rule *)s->data + 1);
    return tern_lr_start(s);
}
