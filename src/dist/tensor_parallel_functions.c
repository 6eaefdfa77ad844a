/* tensor_parallel_functions.c -- communications of activations as autograd functions: the gradient
 * of each is another of them. */
#include "base/memory.h"
#include "dist/dist.h"
#include <tern/autograd.h>
#include <tern/dist/tensor_parallel.h>
#include <tern/ops.h>

/* What a communication does on each rank: nothing, all-reduce, all-gather, this rank's part,
 * reduce-scatter. */
typedef enum deed { STAY, ADD, GATHER, CUT, ADD_AND_CUT } deed;

typedef struct way {
    deed there, back;
    int dim;
    tern_dist_group *group;
} way;

static tern_tensor *go(tern_tensor *x, way w);

/* ---- communications -------------------------------------------------------------------------- */

static tern_dist_options options_of(const way *w)
{
    return (tern_dist_options){.group = w->group, .label = "tensor parallel"};
}

static tern_tensor *add(tern_tensor *x, const way *w)
{
    const tern_dist_options o = options_of(w);
    tern_tensor *sum = tern_clone(x);
    return sum && tern_dist_all_reduce(sum, &o) == TERN_OK ? sum : NULL;
}

/* All-gathers along dim 0 of the transposed tensor. */
static tern_tensor *gather(tern_tensor *x, const way *w)
{
    const tern_dist_options o = options_of(w);
    const int64_t ranks = tern_dist_get_world_size(w->group);
    tern_shape shape = tern_shape_of(x);
    tern_tensor *in_front = tern_contiguous(tern_transpose(x, w->dim, 0));
    tern_shape all = in_front ? tern_shape_of(in_front) : shape;
    all.dims[0] *= ranks;
    tern_tensor *out = in_front ? tern_empty(all, tern_dtype_of(x), tern_device(x)) : NULL;
    if (!out || tern_dist_all_gather_into_tensor(out, in_front, &o) != TERN_OK)
        return NULL;
    return tern_contiguous(tern_transpose(out, 0, w->dim));
}

static tern_tensor *cut(tern_tensor *x, const way *w)
{
    const int64_t part = tern_size(x, w->dim) / tern_dist_get_world_size(w->group);
    return tern_clone(tern_narrow(x, w->dim, tern_dist_get_rank(w->group) * part, part));
}

static tern_tensor *add_and_cut(tern_tensor *x, const way *w)
{
    const tern_dist_options o = options_of(w);
    tern_tensor *in_front = tern_contiguous(tern_transpose(x, w->dim, 0));
    tern_shape part = tern_shape_of(in_front ? in_front : x);
    part.dims[0] /= tern_dist_get_world_size(w->group);
    tern_tensor *out = in_front ? tern_empty(part, tern_dtype_of(x), tern_device(x)) : NULL;
    if (!out || tern_dist_reduce_scatter_tensor(out, in_front, &o) != TERN_OK)
        return NULL;
    return tern_contiguous(tern_transpose(out, 0, w->dim));
}

/* ---- autograd function ----------------------------------------------------------------------- */

static tern_status forward(tern_function *f, tern_tensor *const *in, int n, tern_tensor **out,
                           int k)
{
    static tern_tensor *(*const deeds[])(tern_tensor * x, const way *w) = {NULL, add, gather, cut,
                                                                           add_and_cut};
    const way *w = tern_function_data(f);
    (void)n, (void)k;
    out[0] = w->there == STAY ? in[0] : deeds[w->there](in[0], w);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_status backward(tern_function *f, tern_tensor *const *grad_out, int k,
                            tern_tensor **grad_in, int n)
{
    const way *w = tern_function_data(f);
    (void)n, (void)k;
    grad_in[0] = grad_out[0]
                     ? go(tern_contiguous(grad_out[0]), (way){w->back, w->there, w->dim, w->group})
                     : NULL;
    return !grad_out[0] || grad_in[0] ? TERN_OK : tern_last_status();
}

static tern_tensor *go(tern_tensor *x, way w)
{
    static const tern_function_type type = {"BetweenRanks", forward, backward, tern_free, {0}};
    const uint64_t failures = tern_failures();
    const int ranks = tern_dist_get_world_size(w.group);
    if (!x || tern_dim(x) < 0)
        return x ? NULL : (tern_fail_argument_null("tern_dist_copy_to_group", "x"), NULL);
    if (ranks == 1)
        return x;
    if (w.there != STAY && w.there != ADD) {
        const int64_t size = tern_size(x, w.dim);
        w.dim += w.dim < 0 ? tern_dim(x) : 0;
        if (tern_failed_since(failures) != TERN_OK)
            return NULL;
        if (w.there != GATHER && size % ranks)
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "tern_dist_scatter_to_group: dim %d of size %lld is no multiple "
                                  "of %d ranks",
                                  w.dim, (long long)size, ranks);
    }
    way *own = tern_alloc(sizeof *own);
    if (!own)
        return NULL;
    *own = w;
    tern_tensor *y = NULL;
    return tern_function_apply(&type, own, &x, 1, &y, 1) == TERN_OK ? y : NULL;
}

/* ---- public functions ------------------------------------------------------------------------ */

tern_tensor *tern_dist_copy_to_group(tern_tensor *x, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){STAY, ADD, 0, group});
}

tern_tensor *tern_dist_reduce_from_group(tern_tensor *x, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){ADD, STAY, 0, group});
}

tern_tensor *tern_dist_gather_from_group(tern_tensor *x, int dim, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){GATHER, CUT, dim, group});
}

tern_tensor *tern_dist_scatter_to_group(tern_tensor *x, int dim, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){CUT, GATHER, dim, group});
}

tern_tensor *tern_dist_all_gather_to_group(tern_tensor *x, int dim, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){GATHER, ADD_AND_CUT, dim, group});
}

tern_tensor *tern_dist_reduce_scatter_from_group(tern_tensor *x, int dim, tern_dist_group *group)
{
    TERN_NAMED_IN_ERRORS;
    return go(x, (way){ADD_AND_CUT, GATHER, dim, group});
}
