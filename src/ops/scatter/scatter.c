/* scatter.c -- scatter and its sums: each element of src goes where index says. */
#include "ops/scatter/scatter.h"
#include <string.h>
#include <tern/ops.h>

bool tern_scatter_check(tern_tensor *x, int dim, tern_tensor **index, tern_tensor **src,
                        int *wrapped, const char *function)
{
    tern_tensor *i = *index, *s = *src;
    if (!x || !i || !s) {
        tern_fail_argument_null(function, !x ? "x" : !i ? "index" : "src");
        return false;
    }
    if (tern_wrap_dim(dim, x->ndim, wrapped, function) != TERN_OK)
        return false;
    int least = x->ndim ? x->ndim : 1;
    bool fits = (i->ndim ? i->ndim : 1) == least, both = fits && (s->ndim ? s->ndim : 1) == least;
    if (i->numel > 0 && !both) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: Index tensor must have the same number of dimensions as %s tensor (%s and "
                  "%s)",
                  function, fits ? "src" : "self", TERN_TENSOR_TEXT(i),
                  TERN_TENSOR_TEXT(fits ? s : x));
        return false;
    }
    if (x->dtype != s->dtype) {
        tern_fail(TERN_ERR_DTYPE, "%s: Expected self.dtype to be equal to src.dtype (%s and %s)",
                  function, tern_dtype_name(x->dtype), tern_dtype_name(s->dtype));
        return false;
    }
    if (i->dtype != TERN_I64 && i->numel > 0) {
        tern_fail(TERN_ERR_DTYPE, "%s: Expected dtype int64 for index, got %s", function,
                  tern_dtype_name(i->dtype));
        return false;
    }
    i = tern_to_dtype(i, TERN_I64);
    *index = i ? tern_atleast_1d(i) : NULL;
    *src = tern_atleast_1d(s);
    for (int d = 0; *index && *src && i->numel > 0 && d < least; d++) {
        int64_t n = (*index)->shape[d], own = x->ndim ? x->shape[d] : 1;
        if ((d != *wrapped && n > own) || n > (*src)->shape[d]) {
            tern_fail(
                TERN_ERR_SHAPE,
                "%s: Expected index %s to be smaller than self %s apart from dimension %d and "
                "to be smaller size than src %s",
                function, TERN_TENSOR_TEXT(i), TERN_TENSOR_TEXT(x), *wrapped, TERN_TENSOR_TEXT(s));
            return false;
        }
        if (n < (*src)->shape[d])
            *src = tern_narrow(*src, d, 0, n);
    }
    return *index && *src;
}

static tern_tensor *run(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src, int mode,
                        bool in_place, const char *function)
{
    tern_scatter_way way = {.mode = mode, .in_place = in_place};
    if (!tern_scatter_check(x, dim, &index, &src, &way.dim, function))
        return NULL;
    way.fault = TERN_FAULT_ALONG(way.dim);
    if (index->numel == 0)
        return in_place ? x : tern_clone(x);
    if (x->ndim > 0)
        return tern_scatter_into(x, index, src, &way);
    tern_tensor *y = tern_scatter_into(tern_unsqueeze(x, 0), index, src, &way);
    return !y ? NULL : in_place ? x : tern_view(y, tern_shape_of(x));
}

/* A number as src: one element seen everywhere. */
static tern_tensor *spread(tern_tensor *x, tern_tensor *index, tern_scalar value)
{
    if (!x || !index)
        return NULL;
    tern_shape ones = tern_shape_of(index);
    for (int d = 0; d < ones.ndim; d++)
        ones.dims[d] = 1;
    tern_tensor *one = tern_new_full(x, ones, value);
    return one ? tern_expand(one, tern_shape_of(index)) : NULL;
}

tern_tensor *tern_scatter_add(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src)
{
    return run(x, dim, index, src, TERN_SCATTER_ADD, false, "tern_scatter_add");
}

tern_tensor *tern_scatter_add_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src)
{
    return run(x, dim, index, src, TERN_SCATTER_ADD, true, "tern_scatter_add_");
}

/* scatter's own two ways to reduce. */
static tern_tensor *scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                            const char *reduce, bool in_place, const char *function)
{
    if (!reduce)
        return run(x, dim, index, src, TERN_SCATTER_SET, in_place, function);
    if (strcmp(reduce, "add") == 0)
        return run(x, dim, index, src, TERN_SCATTER_ADD, in_place, function);
    if (strcmp(reduce, "multiply") != 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: reduce argument must be either add or multiply. (%s)", function,
                              reduce);
    return in_place ? tern_scatter_reduce_(x, dim, index, src, "prod", true)
                    : tern_scatter_reduce(x, dim, index, src, "prod", true);
}

tern_tensor *tern_scatter(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                          const char *reduce)
{
    return scatter(x, dim, index, src, reduce, false, "tern_scatter");
}

tern_tensor *tern_scatter_(tern_tensor *x, int dim, tern_tensor *index, tern_tensor *src,
                           const char *reduce)
{
    return scatter(x, dim, index, src, reduce, true, "tern_scatter_");
}

tern_tensor *tern_scatter_scalar(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value,
                                 const char *reduce)
{
    return scatter(x, dim, index, spread(x, index, value), reduce, false, "tern_scatter");
}

tern_tensor *tern_scatter_scalar_(tern_tensor *x, int dim, tern_tensor *index, tern_scalar value,
                                  const char *reduce)
{
    return scatter(x, dim, index, spread(x, index, value), reduce, true, "tern_scatter_");
}
