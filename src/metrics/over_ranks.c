/* over_ranks.c -- metrics over all ranks, by a copy of the metric with the states of all ranks. */
#include "metrics/metric.h"
#include <string.h>
#include <tern/dist/metrics.h>

/* The data that ranks exchange about each state: dtype, and the shape of kept predictions, with
 * ndim 0 if there are none. */
enum { DTYPE, NDIM, DIMS, FACTS = DIMS + TERN_MAX_DIMS };

static tern_status gather_facts(tern_metric_state *s, const tern_dist_options *o, int64_t *all)
{
    const tern_tensor *x = s->value ? s->value : s->count ? s->pieces[0] : NULL;
    const int ranks = tern_dist_get_world_size(o->group);
    int64_t own[FACTS] = {x ? tern_dtype_of(x) : 0, x ? tern_dim(x) : 0};
    for (int d = 0; x && d < tern_dim(x); d++)
        own[DIMS + d] = tern_size(x, d);
    tern_tensor *mine = tern_from_data(own, TERN_SHAPE(FACTS), TERN_I64, "cpu");
    tern_tensor *heard = tern_empty(TERN_SHAPE(ranks, FACTS), TERN_I64, "cpu");
    if (!mine || !heard)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_dist_all_gather_into_tensor(heard, mine, o));
    return tern_copy_to_host(heard, all, sizeof *all * FACTS * (size_t)ranks);
}

/* Reduces a state by sum, maximum or minimum, in float64 if it is float64 on any rank. */
static tern_status reduce(tern_metric_state *s, const tern_dist_options *o, const int64_t *all)
{
    static const tern_dist_op ops[] = {[TERN_METRIC_SUM] = TERN_DIST_SUM,
                                       [TERN_METRIC_MAX] = TERN_DIST_MAX,
                                       [TERN_METRIC_MIN] = TERN_DIST_MIN};
    const uint64_t failures = tern_failures();
    tern_dist_options with = *o;
    tern_dtype dtype = tern_dtype_of(s->value);
    for (int r = 0; r < tern_dist_get_world_size(o->group); r++)
        if (all[r * FACTS + DTYPE] == TERN_F64)
            dtype = TERN_F64;
    tern_tensor *sum = tern_clone(tern_to_dtype(s->value, dtype));
    TERN_TRY(tern_failed_since(failures));
    with.op = ops[s->reduction];
    TERN_TRY(tern_dist_all_reduce(sum, &with));
    s->value = sum;
    return TERN_OK;
}

/* Concatenates the rows of all ranks; each rank sends as many rows as the rank that has most. */
static tern_status gather(tern_metric_state *s, const tern_dist_options *o, const int64_t *all,
                          tern_tensor **piece)
{
    const uint64_t failures = tern_failures();
    const int ranks = tern_dist_get_world_size(o->group);
    const int64_t *shown = NULL;
    int64_t most = 0;
    for (int r = 0; r < ranks; r++) {
        const int64_t *facts = all + r * FACTS;
        shown = facts[NDIM] && !shown ? facts : shown;
        most = facts[NDIM] && facts[DIMS] > most ? facts[DIMS] : most;
    }
    if (!shown)
        return TERN_OK;
    tern_shape shape = {.ndim = (int)shown[NDIM] + 1, .dims = {ranks, most}};
    for (int d = 1; d < (int)shown[NDIM]; d++)
        shape.dims[d + 1] = shown[DIMS + d];
    tern_tensor *own = s->count ? s->pieces[0] : NULL;
    tern_tensor *rows = tern_zeros(shape, (tern_dtype)shown[DTYPE], own ? tern_device(own) : NULL);
    tern_tensor *mine = tern_clone(tern_select(rows, 0, 0)), *parts[ranks];
    if (own)
        tern_copy_(tern_narrow(mine, 0, 0, tern_size(own, 0)), own);
    TERN_TRY(tern_failed_since(failures));
    TERN_TRY(tern_dist_all_gather_into_tensor(rows, mine, o));
    int n = 0;
    for (int r = 0; r < ranks; r++)
        if (all[r * FACTS + NDIM])
            parts[n++] = tern_narrow(tern_select(rows, 0, r), 0, 0, all[r * FACTS + DIMS]);
    *piece = tern_cat(parts, n, 0);
    s->pieces = piece;
    s->count = 1;
    return tern_failed_since(failures);
}

/* Sets the states of the copy to tensors of the scope, or leaves those of the metric. */
static tern_status sync(tern_metric *copy, const tern_dist_options *o,
                        tern_tensor *pieces[METRIC_STATES])
{
    int64_t facts[FACTS * (size_t)tern_dist_get_world_size(o->group)];
    for (int i = 0; i < copy->n_states; i++) {
        tern_metric_state *s = &copy->states[i];
        if (s->reduction == TERN_METRIC_LAST)
            continue;
        TERN_TRY(gather_facts(s, o, facts));
        if (s->reduction == TERN_METRIC_CAT)
            TERN_TRY(gather(s, o, facts, &pieces[i]));
        else
            TERN_TRY(reduce(s, o, facts));
    }
    return TERN_OK;
}

static tern_status nothing(const char *name, tern_tensor *x, void *user)
{
    (void)name, (void)x, (void)user;
    return TERN_OK;
}

tern_tensor *tern_dist_metric_compute(tern_metric *m, const tern_dist_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_dist_options o = tern_read_dist(options);
    tern_tensor *pieces[METRIC_STATES] = {NULL}, *y = NULL;
    if (!m || tern_dist_get_world_size(o.group) <= 1)
        return tern_metric_compute(m);
    o.work = NULL;
    o.label = o.label ? o.label : m->kind->name;
    if (tern_metric_each_state(m, nothing, NULL) != TERN_OK) /* concatenates pieces */
        return NULL;
    tern_metric copy = *m;
    TERN_SCOPE {
        TERN_NO_GRAD {
            if (sync(&copy, &o, pieces) == TERN_OK)
                y = tern_escape(tern_metric_compute(&copy));
        }
    }
    return y;
}
