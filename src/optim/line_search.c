/* line_search.c -- the strong Wolfe conditions: f has fallen enough, and its slope has flattened
 * (Nocedal & Wright 2006, algorithms 3.5 and 3.6, with the safeguards that PyTorch has).
 *
 *   f(t) <= f(0) + 1e-4 t f'(0)     and     |f'(t)| <= 0.9 |f'(0)|
 *
 * First the step grows until it meets them or brackets a minimum; then the bracket is narrowed by
 * cubic interpolation. */
#include "optim/line_search.h"
#include <math.h>

static const double enough_fall = 1e-4, flat_enough = 0.9;

/* The state of a search. `most` limits the rounds after the first evaluation. */
typedef struct search {
    tern_line_evaluate evaluate;
    void *user;
    const tern_line_point *start;
    tern_line_point bracket[2];
    bool done; /* bracket[0] meets the conditions */
    int64_t rounds, most;
    int64_t *evaluations;
} search;

/* Returns the minimum within low..high of the cubic through both points with their slopes, or the
 * middle if the cubic has none (Nocedal & Wright, formula 3.59). */
static double cubic(const tern_line_point *a, const tern_line_point *b, double low, double high)
{
    if (a->t > b->t) {
        const tern_line_point *c = a;
        a = b;
        b = c;
    }
    double d1 = a->slope + b->slope - 3 * (a->f - b->f) / (a->t - b->t);
    double square = d1 * d1 - a->slope * b->slope;
    if (!(square >= 0))
        return (low + high) / 2;
    double d2 = sqrt(square);
    double t = b->t - (b->t - a->t) * ((b->slope + d2 - d1) / (b->slope - a->slope + 2 * d2));
    return fmin(fmax(t, low), high);
}

static tern_status evaluate(search *s, double t, tern_line_point *point)
{
    *point = (tern_line_point){.t = t};
    ++*s->evaluations;
    return s->evaluate(s->user, point);
}

/* Returns whether the Armijo condition fails: f has not decreased enough. */
static bool is_too_high(const search *s, const tern_line_point *p)
{
    return p->f > s->start->f + enough_fall * p->t * s->start->slope;
}

/* Returns whether the strong curvature condition holds. */
static bool is_flat(const search *s, const tern_line_point *p)
{
    return fabs(p->slope) <= -flat_enough * s->start->slope;
}

/* Algorithm 3.5: extrapolates until a point is too high, no lower than the one before, or has a
 * rising slope. Then a minimum is between the last two points. */
static tern_status find_bracket(search *s, double t)
{
    tern_line_point before = *s->start, now;
    TERN_TRY(evaluate(s, t, &now));
    for (; s->rounds < s->most; s->rounds++) {
        s->bracket[0] = before;
        s->bracket[1] = now;
        if (is_too_high(s, &now) || (s->rounds > 1 && now.f >= before.f))
            return TERN_OK;
        if (is_flat(s, &now)) {
            s->bracket[0] = now;
            s->done = true;
            return TERN_OK;
        }
        if (now.slope >= 0)
            return TERN_OK;
        t = cubic(&before, &now, now.t + 0.01 * (now.t - before.t), 10 * now.t);
        before = now;
        TERN_TRY(evaluate(s, t, &now));
    }
    s->bracket[0] = *s->start;
    s->bracket[1] = now;
    return TERN_OK;
}

/* Returns the cubic's minimum in the bracket. If it is on an end, or within a tenth of one for the
 * second time running, returns a point a tenth away from that end, so that the bracket shrinks. */
static double trial(const search *s, bool *insufficient)
{
    double low = fmin(s->bracket[0].t, s->bracket[1].t);
    double high = fmax(s->bracket[0].t, s->bracket[1].t);
    double t = cubic(&s->bracket[0], &s->bracket[1], low, high), margin = 0.1 * (high - low);
    if (fmin(high - t, t - low) >= margin) {
        *insufficient = false;
    } else if (*insufficient || t >= high || t <= low) {
        t = fabs(t - high) < fabs(t - low) ? high - margin : low + margin;
        *insufficient = false;
    } else {
        *insufficient = true;
    }
    return t;
}

/* Algorithm 3.6: `low` is the end with the lower f. A trial that is too high becomes the other end;
 * a lower one becomes `low`, and the old `low` the other end if the slope says that the minimum is
 * between them. */
static tern_status zoom(search *s, double d_norm, double tolerance, int *low)
{
    bool insufficient = false;
    tern_line_point *b = s->bracket;
    while (!s->done && s->rounds < s->most) {
        tern_line_point now;
        if (fabs(b[1].t - b[0].t) * d_norm < tolerance)
            return TERN_OK;
        double t = trial(s, &insufficient);
        TERN_TRY(evaluate(s, t, &now));
        s->rounds++;
        int high = 1 - *low;
        if (is_too_high(s, &now) || now.f >= b[*low].f) {
            b[high] = now;
            *low = b[0].f <= b[1].f ? 0 : 1;
            continue;
        }
        s->done = is_flat(s, &now);
        if (!s->done && now.slope * (b[high].t - b[*low].t) >= 0)
            b[high] = b[*low];
        b[*low] = now;
    }
    return TERN_OK;
}

tern_status tern_strong_wolfe(tern_line_evaluate function, void *user, const tern_line_point *start,
                              double t, double d_norm, double tolerance, int64_t most,
                              tern_line_point *found, int64_t *evaluations)
{
    search s = {.evaluate = function,
                .user = user,
                .start = start,
                .most = most,
                .evaluations = evaluations};
    TERN_TRY(find_bracket(&s, t));
    int low = s.done || s.bracket[0].f <= s.bracket[1].f ? 0 : 1;
    TERN_TRY(zoom(&s, d_norm, tolerance, &low));
    *found = s.bracket[low];
    return TERN_OK;
}
