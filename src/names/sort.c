/* sort.c -- names of sort.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Returns the results of unique that the caller selected. */
static int unique_of(tern_status (*function)(tern_tensor *, tern_unique_result *),
                     tern_status (*along)(tern_tensor *, int, tern_unique_result *), tern_tensor *x,
                     bool inverse, bool counts, const names_argument *dim, tern_tensor **out,
                     int capacity)
{
    tern_unique_result u = {0};
    tern_status status = dim->given ? along(x, names_int(dim), &u) : function(x, &u);
    tern_tensor *results[3] = {u.output};
    int n = 1;
    if (inverse)
        results[n++] = u.inverse;
    if (counts)
        results[n++] = u.counts;
    return names_several(status, results, n, out, capacity);
}

static tern_tensor *places_as(tern_tensor *places, bool out_int32)
{
    return out_int32 ? tern_to_dtype(places, TERN_I32) : places;
}

/* Checks that right and side, two options for one choice, agree; values: a tensor or a number. */
static tern_tensor *search(tern_tensor *bounds, const names_argument *values, bool right,
                           bool side_given, tern_side side, bool out_int32)
{
    if (right && side_given && side == TERN_SIDE_LEFT)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "searchsorted: side and right can't be set to opposites, got side of "
                              "left while right was True");
    side = side_given ? side : right ? TERN_SIDE_RIGHT : TERN_SIDE_LEFT;
    return places_as(values->tensor ? tern_searchsorted(bounds, values->tensor, side)
                                    : tern_searchsorted_scalar(bounds, values->scalar, side),
                     out_int32);
}

static tern_tensor *sorted_by(tern_tensor *x, tern_tensor *sorter)
{
    tern_shape a = tern_shape_of(x), b = tern_shape_of(sorter);
    bool same = a.ndim == b.ndim;
    for (int d = 0; d < a.ndim && same; d++)
        same = a.dims[d] == b.dims[d];
    if (tern_dtype_of(sorter) != TERN_I64)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_searchsorted: sorter must be a tensor of long dtype but got "
                              "dtype %s",
                              tern_dtype_name(tern_dtype_of(sorter)));
    if (!same)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_searchsorted: boundary and sorter must have the same size");
    return tern_gather(x, -1, sorter);
}

#define SORTED_BY(i) (GIVEN(i) ? sorted_by(T(0), T(i)) : T(0))
#define QUANTILE                                                                                   \
    &(tern_quantile_options)                                                                       \
    {                                                                                              \
        .dim = SOME(2), .keepdim = B(3), .interpolation = MODE(interpolation, 4)                   \
    }

#define TABLE  names_sort
#define FAMILY "names/sort.def"
#include "names/expand.h"
