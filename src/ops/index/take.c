/* take.c -- elements picked by their place, by a mask, along a dim; one_hot. */
#include "ops/index/pick.h"
#include "ops/scatter/scatter.h"
#include <tern/ops.h>

tern_tensor *tern_take(tern_tensor *x, tern_tensor *index)
{
    if (!x)
        tern_fail_argument_null("tern_take", "x");
    if (!x || !(index = tern_index_tensor(index, "tern_take")))
        return NULL;
    if (x->numel == 0 && index->numel > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_take: tried to take from an empty tensor");
    return tern_pick(tern_flatten(x, 0, -1), index, 0, tern_shape_of(index), TERN_FAULT_TAKE);
}

tern_tensor *tern_take_along_dim(tern_tensor *x, tern_tensor *index, tern_optional_int dim)
{
    int d;
    if (!x || !index) {
        tern_fail_argument_null("tern_take_along_dim", x ? "index" : "x");
        return NULL;
    }
    if (index->dtype != TERN_I64)
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_take_along_dim: torch.take_along_dim(): dtype of indices should "
            "be Long but got %s",
            tern_dtype_name(index->dtype));
    if (!dim.set)
        return tern_gather(tern_flatten(x, 0, -1), 0, tern_flatten(index, 0, -1));
    if (x->ndim != index->ndim)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_take_along_dim: torch.take_along_dim(): input and indices "
            "should have the same number of dimensions, but got %d dimensions for "
            "input, and %d dimensions for indices",
            x->ndim, index->ndim);
    if (tern_wrap_dim(dim.value, x->ndim, &d, "tern_take_along_dim") != TERN_OK)
        return NULL;
    /* The others broadcast. */
    tern_shape own = tern_shape_of(x), at = tern_shape_of(index), both;
    if (x->ndim)
        own.dims[d] = at.dims[d] = 1;
    if (tern_shape_broadcast(&own, &at, &both, "tern_take_along_dim") != TERN_OK)
        return NULL;
    own = at = both;
    if (x->ndim) {
        own.dims[d] = x->shape[d];
        at.dims[d] = index->shape[d];
    }
    return tern_gather(tern_expand(x, own), d, tern_expand(index, at));
}

/* ---- by a mask: PyTorch's masks may be bool or uint8 ------------------------------------- */

/* x and mask expanded to their common shape, which is given back, and flattened. */
static bool both_flat(tern_tensor **x, tern_tensor **mask, tern_shape *shape, const char *function)
{
    if (!*x || !*mask) {
        tern_fail_argument_null(function, *x ? "mask" : "x");
        return false;
    }
    if ((*mask)->dtype != TERN_BOOL && (*mask)->dtype != TERN_U8) {
        tern_fail(TERN_ERR_DTYPE, "%s: expected BoolTensor or ByteTensor for mask, got %s",
                  function, tern_dtype_name((*mask)->dtype));
        return false;
    }
    tern_shape sx = tern_shape_of(*x), sm = tern_shape_of(*mask);
    if (tern_shape_broadcast(&sx, &sm, shape, function) != TERN_OK)
        return false;
    tern_tensor *wide = tern_expand(*x, *shape), *wide_mask = tern_expand(*mask, *shape);
    *x = wide ? tern_flatten(wide, 0, -1) : NULL;
    *mask = wide_mask ? tern_flatten(wide_mask, 0, -1) : NULL;
    return *x && *mask;
}

tern_tensor *tern_masked_select(tern_tensor *x, tern_tensor *mask)
{
    tern_shape shape;
    if (!both_flat(&x, &mask, &shape, "tern_masked_select"))
        return NULL;
    tern_tensor *places = tern_nonzero_places(mask);
    return places ? tern_pick(x, places, 0, tern_shape_of(places), TERN_FAULT_INDEX) : NULL;
}

tern_tensor *tern_masked_scatter(tern_tensor *x, tern_tensor *mask, tern_tensor *source)
{
    static const char function[] = "tern_masked_scatter";
    tern_tensor *flat = x;
    tern_shape shape;
    if (!source)
        tern_fail_argument_null(function, "source");
    if (!source || !both_flat(&flat, &mask, &shape, function))
        return NULL;
    if (x->dtype != source->dtype)
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "%s: masked_scatter: expected self and source to have same dtypes but "
            "got %s and %s",
            function, tern_dtype_name(x->dtype), tern_dtype_name(source->dtype));
    tern_tensor *places = tern_nonzero_places(mask);
    if (!places)
        return NULL;
    if (source->numel < places->numel)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Number of elements of source < number of ones in mask (%lld and "
                              "%lld)",
                              function, (long long)source->numel, (long long)places->numel);
    tern_scatter_way way = {.fault = TERN_FAULT_INDEX};
    source = tern_narrow(tern_flatten(source, 0, -1), 0, 0, places->numel);
    tern_tensor *y =
        places->numel ? tern_scatter_rows(flat, places, source, &way) : tern_clone(flat);
    return y ? tern_view(y, shape) : NULL;
}

tern_tensor *tern_masked_scatter_(tern_tensor *x, tern_tensor *mask, tern_tensor *source)
{
    tern_tensor *y = tern_masked_scatter(x, mask, source);
    return y ? tern_copy_(x, y) : NULL;
}

/* ---- one_hot ----------------------------------------------------------------------------- */

tern_tensor *tern_one_hot(tern_tensor *x, int64_t num_classes)
{
    if (!x) {
        tern_fail_argument_null("tern_one_hot", "x");
        return NULL;
    }
    if (x->dtype != TERN_I64)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_one_hot: one_hot is only applicable to index tensor, not %s",
                              tern_dtype_name(x->dtype));
    if (num_classes < 0 && x->numel == 0)
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_one_hot: Can not infer total number of classes from empty tensor.");
    if (x->ndim == TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_one_hot: a tensor has at most %d dims, not %d",
                              TERN_MAX_DIMS, TERN_MAX_DIMS + 1);
    if (num_classes < 0) {
        int64_t most = tern_item_int(tern_max(x));
        if (most < 0)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_one_hot: Class values must be non-negative. (%lld)",
                                  (long long)most);
        num_classes = most + 1;
    }
    if (num_classes == 0 && x->numel > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_one_hot: Class values must be smaller than num_classes. (0)");
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim++] = num_classes;
    tern_tensor *zeros = tern_new_zeros(x, shape);
    if (!zeros || x->numel == 0)
        return zeros;
    tern_scatter_way way = {.dim = x->ndim, .fault = TERN_FAULT_ONE_HOT, .in_place = true};
    shape.dims[x->ndim] = 1;
    tern_tensor *one = tern_tensor_scalar(tern_scalar_int(1), TERN_I64, tern_device(x));
    return tern_scatter_into(zeros, tern_unsqueeze(x, -1), tern_expand(one, shape), &way);
}
