/* optimizer_rule.h -- what the optimizers' kernels share: a RULE says how a chunk of one parameter
 * is updated, OPTIMIZER_KERNEL makes the kernels over all of them. */
#ifndef TERN_OPTIMIZER_RULE_H
#define TERN_OPTIMIZER_RULE_H
#include "foreach_forms.h"

/* RULE3(adam, exp_avg, ...) { ... }: in step t = 1, 2, ... move n elements of ps by the gradients
 * gs; with the STATE rows of optimizers.def by name, in their order (0: not there), and its other
 * rows as o->name. */
#define RULE3(NAME, A, B, C_)                                                                      \
    INLINE void K(NAME##_chunk)(GLOBAL STO *ps, const GLOBAL STO *gs, GLOBAL REAL *A,              \
                                GLOBAL REAL *B, GLOBAL REAL *C_, idx n, i64 t,                     \
                                const GLOBAL K(NAME##_values) *o)
#define RULE2(NAME, A, B) RULE3(NAME, A, B, none_)
#define RULE1(NAME, A)    RULE3(NAME, A, none_, nought_)

/* What most begin an element with: p, and g with the penalty's gradient. */
#define EACH_                                                                                      \
    REAL p = LD(ps, j), g = sign * LD(gs, j);                                                      \
    g = decay != 0 ? g + decay * p : g;

/* What those with two moments begin with. Decoupled decay is taken from the parameter. */
#define MOMENTS_                                                                                   \
    REAL lr = o->lr, beta1 = o->beta1, fresh1 = o->fresh1, beta2 = o->beta2, fresh2 = o->fresh2;   \
    REAL eps = o->eps, sign = o->sign, penalty = o->weight_decay;                                  \
    i32 decoupled = o->decoupled != 0;                                                             \
    REAL decay = decoupled ? C(0.0) : penalty, shrink = decoupled ? C(1.0) - lr * penalty : C(1.0);

/* steps counts for each chunk, so that no two groups meet. Nothing changes after a fault on the
 * device, or where *skip says so. */
#define AT_(p) ((p) != 0 ? (p) + at : (p))
#define OPTIMIZER_BODY_(NAME, FIND)                                                                \
    {                                                                                              \
        BASE(rows);                                                                                \
        BASE(chunks);                                                                              \
        BASE(steps);                                                                               \
        BASE(values);                                                                              \
        BASE(skip);                                                                                \
        BASE(faults);                                                                              \
        idx count = faults[0] != 0 || skip[0] != 0 ? 0 : (idx)n;                                   \
        GROUPS(c, count)                                                                           \
        {                                                                                          \
            i64 at = chunks[c].first;                                                              \
            i64 t = steps[c] + 1;                                                                  \
            BARRIER();                                                                             \
            FIND(c)                                                                                \
            if (gs != 0) {                                                                         \
                K(NAME##_chunk)(ps + at, gs + at, AT_(as), AT_(bs), AT_(cs), (idx)chunks[c].count, \
                                t, (const GLOBAL K(NAME##_values) *)values);                       \
                LANES(j, 1) steps[c] = t;                                                          \
            }                                                                                      \
        }                                                                                          \
    }
#define OPTIMIZER_FORMS(NAME, BODY)                                                                \
    FOREACH3(NAME, BODY, (OUT, i64, steps), (IN, REAL, values), (IN, f32, skip))
#define OPTIMIZER_KERNEL(NAME) OPTIMIZER_FORMS(NAME, OPTIMIZER_BODY_)

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

/* The rows as a struct of the type at hand: K(adam_values), as the host fills it. */
#if IS_FLOAT
#define OPTIMIZER(NAME, FAMILY, KERNEL, DTYPES, PARTS)                                             \
    typedef struct {                                                                               \
        REAL lr;
#define OPTION(FIELD, DEFAULT, RANGE, WORDS)  REAL FIELD;
#define SETTING(FIELD, DEFAULT, RANGE, WORDS) REAL FIELD;
#define FLAG(FIELD)                           REAL FIELD;
#define NUMBER(NAME, VALUE)                   REAL NAME;
#define END(NAME)                                                                                  \
    }                                                                                              \
    K(NAME##_values);
#include "optimizers.def"
#endif
