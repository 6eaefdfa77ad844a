/* take.c -- take and put: elements read and written by their index in the flattened tensor. */
#include "ops/index/gather.h"
#include "device/device.h"
#include "ops/index/scatter.h"
#include <tern/ops.h>

/* y[i] = x.flatten()[index[i]] */
tern_tensor *tern_take(tern_tensor *x, tern_tensor *index)
{
    TERN_NAMED_IN_ERRORS;
    if (!x)
        tern_fail_argument_null(__func__, "x");
    if (!x || !(index = tern_index_tensor(index, __func__)))
        return NULL;
    if (x->numel == 0 && index->numel > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_take: tried to take from an empty tensor");
    return tern_index_entries(tern_flatten(x, 0, -1), index, 0, tern_shape_of(index),
                              TERN_FAULT_TAKE);
}

/* x.flatten()[index[i]] = source[i], or += */
static tern_tensor *put(tern_tensor *x, tern_tensor *index, tern_tensor *source, bool accumulate,
                        bool in_place)
{
    tern_scatter_way way = {.mode = accumulate ? TERN_SCATTER_ADD : TERN_SCATTER_SET,
                            .fault = TERN_FAULT_TAKE,
                            .wrap = true,
                            .in_place = in_place};
    if (!x || !source || !index) {
        tern_fail_argument_null("tern_put", !x ? "x" : !source ? "source" : "index");
        return NULL;
    }
    if (!(index = tern_index_tensor(index, "tern_put")))
        return NULL;
    if (x->dtype != source->dtype)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_put: put_(): self and source expected to have the same dtype, "
                              "but got self.dtype = %s and source.dtype = %s",
                              tern_dtype_name(x->dtype), tern_dtype_name(source->dtype));
    if (source->numel != index->numel)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_put: put_(): Expected source and index to have the same number "
                              "of elements, but got source.numel() = %lld, index.numel() = %lld",
                              (long long)source->numel, (long long)index->numel);
    if (x->numel == 0 && index->numel > 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_put: tried to put elements into an empty tensor");
    tern_tensor *flat = tern_flatten(x, 0, -1);
    bool through = in_place && flat && flat->storage == x->storage; /* else y is copied back */
    way.in_place = through;
    flat = tern_scatter_rows(flat, tern_flatten(index, 0, -1), tern_flatten(source, 0, -1), &way);
    if (!flat)
        return NULL;
    if (through)
        return x;
    if (flat->storage == x->storage)
        flat = tern_clone(flat);
    flat = tern_view(flat, tern_shape_of(x));
    return in_place && flat ? tern_copy_(x, flat) : flat;
}

tern_tensor *tern_put(tern_tensor *x, tern_tensor *index, tern_tensor *source, bool accumulate)
{
    TERN_NAMED_IN_ERRORS;
    return put(x, index, source, accumulate, false);
}

tern_tensor *tern_put_(tern_tensor *x, tern_tensor *index, tern_tensor *source, bool accumulate)
{
    TERN_NAMED_IN_ERRORS;
    return put(x, index, source, accumulate, true);
}
