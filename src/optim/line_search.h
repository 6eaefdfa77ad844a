/* line_search.h -- a step along a direction that meets the strong Wolfe conditions. */
#ifndef TERN_OPTIM_LINE_SEARCH_H
#define TERN_OPTIM_LINE_SEARCH_H
#include "base/error.h"
#include <tern/tensor.h>

/* What is known of the function at t along the direction. */
typedef struct tern_line_point {
    double t, f, slope;
    tern_tensor *g; /* owned by the open scope */
} tern_line_point;

/* Fill f, slope and g of *point at its t. */
typedef tern_status (*tern_line_evaluate)(void *user, tern_line_point *point);

/* From start (t = 0) with a first guess t, after which there are up to `most` others; d_norm is the
 * largest element of the direction. *found is the best point, *evaluations rises. */
tern_status tern_strong_wolfe(tern_line_evaluate evaluate, void *user, const tern_line_point *start,
                              double t, double d_norm, double tolerance, int64_t most,
                              tern_line_point *found, int64_t *evaluations);

#endif
