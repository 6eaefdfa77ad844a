/* view.c -- names of view.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Applies function to each tensor of a list. */
static int each(tern_tensor *(*function)(tern_tensor *), const names_argument *list,
                tern_tensor **out, int capacity)
{
    if (list->count > capacity)
        return names_several(TERN_OK, NULL, list->count, out, capacity);
    for (int i = 0; i < list->count; i++)
        if (!(out[i] = function(list->tensors[i])))
            return -1;
    return list->count;
}

static tern_tensor *narrow_from(tern_tensor *x, int dim, tern_tensor *start, int64_t length)
{
    if (tern_numel(start) != 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_narrow: start must be a tensor of one element, not of %lld",
                              (long long)tern_numel(start));
    tern_dtype dtype = tern_dtype_of(start);
    if (tern_dim(start) != 0 || tern_dtype_is_floating_point(dtype) || dtype == TERN_BOOL)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_narrow: start must be an 0-dim integral Tensor, not %s with %d "
                              "dims",
                              tern_dtype_name(dtype), tern_dim(start));
    int64_t at;
    tern_tensor *number = tern_to_dtype(start, TERN_I64);
    if (!number || tern_copy_to_host(number, &at, sizeof at) != TERN_OK)
        return NULL;
    return tern_narrow(x, dim, at, length);
}

/* Splits into a number of sections, or at indices, given by a tensor. */
static int split_by_tensor(tern_tensor *x, tern_tensor *where, int dim, tern_tensor **out,
                           int capacity)
{
    int64_t at[64];
    if (tern_dim(where) == 0)
        return tern_tensor_split(x, tern_item_int(where), dim, out, capacity);
    if (tern_dim(where) != 1 || tern_numel(where) > 64 || tern_dtype_of(where) != TERN_I64) {
        tern_fail(TERN_ERR_ARGUMENT, "tern_tensor_split: tensor_split expected "
                                     "tensor_indices_or_sections to be a zero-dimensional or "
                                     "one-dimensional tensor of int64");
        return -1;
    }
    if (tern_copy_to_host(where, at, sizeof *at * (size_t)tern_numel(where)) != TERN_OK)
        return -1;
    return tern_tensor_split_at(x, at, (int)tern_numel(where), dim, out, capacity);
}

/* The results of a call for the list a[0], which writes one tensor for each of its tensors. */
#define LISTED(call)                                                                               \
    (a[0].count > capacity ? names_several(TERN_OK, NULL, a[0].count, out, capacity)               \
     : (call) == TERN_OK   ? a[0].count                                                            \
                           : -1)

#define TABLE  names_view
#define FAMILY "names/view.def"
#include "names/expand.h"
