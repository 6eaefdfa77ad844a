/* scalar_all_reduce.c -- sums or maxima of a few numbers over ranks, and decisions based on them,
 * which are the same on all ranks. */
#include "dist/dist.h"
#include <math.h>
#include <string.h>
#include <tern/ops.h>

/* MPI does not define reductions of NaN, so NaNs are counted in a second half of the array. */
tern_status tern_dist_reduce_scalars(tern_dist_group *group, const char *label, double *values,
                                     int n, bool greatest)
{
    const tern_dist_options o = {
        .op = greatest ? TERN_DIST_MAX : TERN_DIST_SUM, .group = group, .label = label};
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = tern_empty(TERN_SHAPE(2 * n), TERN_F64, "cpu");
        double *all = x ? tern_data(x) : NULL;
        for (int i = 0; all && i < n; i++) {
            all[i] = isnan(values[i]) ? 0 : values[i];
            all[n + i] = isnan(values[i]);
        }
        status = all ? tern_dist_all_reduce_by(x, DIST_WAY_APART, &o) : TERN_ERR_MEMORY;
        for (int i = 0; status == TERN_OK && i < n; i++)
            values[i] = all[n + i] > 0 ? (double)NAN : all[i];
    }
    return status;
}

tern_status tern_dist_check_consistency(tern_ranks *ranks, tern_status status, char *text,
                                        size_t bytes, const char *function)
{
    const tern_dist_ranks *of = (const tern_dist_ranks *)(void *)ranks;
    double failed = status == TERN_OK ? 0 : tern_dist_get_rank(NULL) + 1;
    for (int i = 0; i < of->n; i++) {
        tern_dist_group *g = of->groups[i];
        const tern_dist_options o = {.group = g, .label = function};
        size_t length = bytes;
        TERN_TRY(tern_dist_reduce_scalars(g, function, &failed, 1, true));
        if (bytes == 0)
            continue;
        char *first = tern_dist_broadcast_object(text, &length, g ? g->members[0] : 0, &o);
        if (!first)
            return TERN_ERR_PEER;
        memcpy(text, first, length < bytes ? length : bytes);
        tern_free_text(first);
    }
    if (status != TERN_OK || failed <= 0)
        return status;
    return tern_fail(TERN_ERR_PEER, "%s: rank %d failed, and so all do", function, (int)failed - 1);
}

tern_status tern_dist_first(tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                            bool *all)
{
    const tern_dist_ranks *of = (const tern_dist_ranks *)(void *)ranks;
    const double self = tern_dist_get_world_size(NULL) - tern_dist_get_rank(NULL);
    double *first = tern_alloc(sizeof *first * (size_t)count);
    tern_status status = first ? TERN_OK : TERN_ERR_MEMORY;
    *leads = true;
    *all = true;
    if (first && number >= 0)
        first[number] = self;
    for (int i = 0; i < of->n && status == TERN_OK; i++) {
        *leads = *leads && tern_dist_get_rank(of->groups[i]) == 0;
        status = tern_dist_reduce_scalars(of->groups[i], "who has which part", first, count, true);
    }
    for (int i = 0; i < count && status == TERN_OK; i++)
        *all = *all && first[i] > 0;
    *own = status == TERN_OK && number >= 0 && first[number] == self;
    tern_free(first);
    return status;
}
