/* numbers.c -- a few numbers of each rank: their sums, or the greatest. */
#include "dist/dist.h"
#include <math.h>
#include <tern/ops.h>

/* What MPI makes of NaN is its own affair, so that NaNs are counted beside. */
tern_status tern_dist_reduce_numbers(tern_dist_group *group, const char *label, double *values,
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
