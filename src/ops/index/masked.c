/* masked.c -- masked_select and masked_scatter: elements read and written where a mask is true. As
 * in PyTorch masks may be bool or uint8. */
#include "ops/index/gather.h"
#include "device/device.h"
#include "ops/index/nonzero.h"
#include "ops/index/scatter.h"
#include <tern/ops.h>

/* Expands x and mask to their common shape, which is set in *shape, and flattens both. */
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

/* Returns the elements of x where the mask is true; their number is read from the device. */
tern_tensor *tern_masked_select(tern_tensor *x, tern_tensor *mask)
{
    tern_shape shape;
    if (!both_flat(&x, &mask, &shape, "tern_masked_select"))
        return NULL;
    tern_tensor *places = tern_nonzero_places(mask);
    return places ? tern_index_entries(x, places, 0, tern_shape_of(places), TERN_FAULT_INDEX)
                  : NULL;
}

/* Returns x with the first elements of source, in order, written where the mask is true. */
tern_tensor *tern_masked_scatter(tern_tensor *x, tern_tensor *mask, tern_tensor *source)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
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
    if (!source)
        return NULL;
    tern_tensor *y = tern_scatter_rows(flat, places, source, &way);
    return y ? tern_view(y, shape) : NULL;
}

tern_tensor *tern_masked_scatter_(tern_tensor *x, tern_tensor *mask, tern_tensor *source)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *y = tern_masked_scatter(x, mask, source);
    return y ? tern_copy_(x, y) : NULL;
}
