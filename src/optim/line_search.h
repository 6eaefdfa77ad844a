/* line_search.h -- a step along a direction that meets the strong Wolfe conditions. */
#ifndef TERN_OPTIM_LINE_SEARCH_H
#define TERN_OPTIM_LINE_SEARCH_H
#include "base/error.h"
#include <tern/tensor.h>

/* The function's value and slope at t along the direction. */
typedef struct tern_line_point {
    double t, f, slope;
    tern_tensor *g; /* gradient, owned by the innermost scope */
} tern_line_point;

/* Sets f, slope and g of *point at its t. */
typedef tern_status (*tern_line_evaluate)(void *user, tern_line_point *point);

/* Searches from start (t = 0), first at t, with up to `most` further evaluations. d_norm is the
 * largest absolute element of the direction. Sets *found to the best point, and increases
 * *evaluations. */
tern_status tern_strong_wolfe(tern_line_evaluate evaluate, void *user, const tern_line_point *start,
                              double t, double d_norm, double tolerance, int64_t most,
                              tern_line_point *found, int64_t *evaluations);

#endif
