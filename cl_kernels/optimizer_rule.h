/* optimizer_rule.h -- what the optimizers' kernels share: RULE(name) says how a chunk of one parameter is
 * updated, OPTIMIZER(name) makes the kernels over all of them. */
#ifndef TERN_OPTIMIZER_RULE_H
#define TERN_OPTIMIZER_RULE_H
#include "foreach_forms.h"

/* What every rule starts from: p, and g with the penalty's gradient. */
#define SIGN_   ((flags & TERN_OPTIM_MAXIMIZE) != 0 ? C(-1.0) : C(1.0))
#define RULE(NAME)                                                                                 \
    INLINE void K(NAME##_chunk)(GLOBAL STO *ps, const GLOBAL STO *gs, GLOBAL REAL *as,             \
                                GLOBAL REAL *bs, GLOBAL REAL *cs, idx n, i64 t,                    \
                                const GLOBAL REAL *h, i32 flags)
#define EACH_                                                                                      \
    REAL p = ps[j], g = sign * gs[j];                                                              \
    g = decay != 0 ? g + decay * p : g;

/* An optimizer. steps counts for each chunk, so that no two groups meet. Nothing changes after a
 * fault on the device, or where *skip says so. */
#define OPTIMIZER_BODY_(NAME, FIND)                                                                \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(steps);                                                                               \
        BASE(h);                                                                                   \
        BASE(skip);                                                                                \
        BASE(faults);                                                                              \
        idx count = faults[0] != 0 || skip[0] != 0 ? 0 : (idx)n;                                   \
        GROUPS(c, count)                                                                           \
        {                                                                                          \
            idx at = (idx)chunks[c].first;                                                         \
            i64 t = steps[c] + 1;                                                                  \
            BARRIER();                                                                             \
            FIND(c)                                                                                \
            if (gs != 0) {                                                                         \
                K(NAME##_chunk)(ps + at, gs + at, as + at, bs + at, cs + at,                       \
                                (idx)chunks[c].count, t, h, flags);                                \
                LANES(j, 1) steps[c] = t;                                                          \
            }                                                                                      \
        }                                                                                          \
    }
#define OPTIMIZER_FORMS(NAME, BODY)                                                                \
    FOREACH3(NAME, BODY, (OUT, i64, steps), (IN, REAL, h), (IN, f32, skip))
#define OPTIMIZER(NAME) OPTIMIZER_FORMS(NAME, OPTIMIZER_BODY_)

/* 1 - beta^t without cancellation: -(e^x - 1), x = t log(beta), by its series near 0. */
#define ONE_MINUS_POWER                                                                            \
    INLINE REAL K(one_minus_power)(REAL log_beta, i64 t)                                           \
    {                                                                                              \
        REAL x = (REAL)t * log_beta, series = C(1.0);                                              \
        for (i32 k = 18; k >= 2; k--)                                                              \
            series = C(1.0) + x / (REAL)k * series;                                                \
        return x > C(-0.35) ? -x * series : C(1.0) - exp(x);                                       \
    }
#endif
