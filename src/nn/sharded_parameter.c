/* sharded_parameter.c -- a rank's part of a whole tensor, for parameters that are cut among
 * ranks. */
#include "base/text.h"
#include "nn/state_dict.h"
#include "tensor/ranks.h"

static bool is_same(const tern_shape *a, const tern_shape *b)
{
    bool same = a->ndim == b->ndim;
    for (int d = 0; same && d < a->ndim; d++)
        same = a->dims[d] == b->dims[d];
    return same;
}

bool tern_part_is_of(const tern_tensor *x, const tern_shape *whole)
{
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape own;
    return tern_cuts_of(x, cut, &own) && is_same(&own, whole);
}

void tern_part_cut(tern_part *p, int dim, int part, int parts)
{
    int64_t first;
    if (dim < 0)
        return;
    p->shape.dims[dim] = tern_rows_of_rank(p->shape.dims[dim], part, parts, &first);
    p->first[dim] += first;
}

tern_status tern_part_find(tern_part *p, const tern_shape *whole, const tern_tensor *x,
                           const char *function, const char *name)
{
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape own;
    char text[3][160];
    const int n = tern_cuts_of(x, cut, &own);
    *p = (tern_part){.shape = *whole};
    for (int i = 0; i < n && is_same(&own, whole); i++)
        tern_part_cut(p, cut[i].dim, cut[i].part, cut[i].parts);
    if (!n || is_same(&own, whole))
        return TERN_OK;
    const tern_shape here = tern_shape_of(x);
    return tern_fail(
        TERN_ERR_SHAPE, "%s: size mismatch for %s: %s, in the model %s, of which rank %d has %s",
        function, name, tern_format_list(text[0], sizeof text[0], whole->dims, whole->ndim),
        tern_format_list(text[1], sizeof text[1], own.dims, own.ndim), tern_ranks_of(x)->rank,
        tern_format_list(text[2], sizeof text[2], here.dims, here.ndim));
}

tern_tensor *tern_part_take(const tern_part *p, tern_tensor *whole)
{
    for (int d = 0; d < p->shape.ndim && whole; d++)
        if (p->shape.dims[d] != tern_size(whole, d))
            whole = tern_narrow(whole, d, p->first[d], p->shape.dims[d]);
    return whole;
}
