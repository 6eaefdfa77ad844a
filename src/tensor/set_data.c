/* set_data.c -- tern_set_data_: replaces the elements of a tensor. */
#include "tensor/node.h"
#include "tensor/history.h"
#include "tensor/tensor.h"
#include <string.h>

/* Nodes compare the version of a saved tensor with the saved one, so the version must increase. */
static void outdo_version(tern_storage *storage, int64_t old)
{
    int64_t now = atomic_load(&storage->version);
    if (now <= old)
        atomic_store(&storage->version, old + 1);
}

static void take_elements(tern_tensor *x, const tern_tensor *data)
{
    tern_storage *storage = data->storage, *old = x->storage;
    outdo_version(storage, atomic_load(&old->version));
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    x->storage = storage;
    tern_storage_release(old);
    x->dtype = data->dtype;
    x->ndim = data->ndim;
    x->numel = data->numel;
    x->offset = data->offset;
    x->contiguous = data->contiguous;
    memcpy(x->shape, data->shape, sizeof x->shape);
    memcpy(x->stride, data->stride, sizeof x->stride);
}

static bool fits(const tern_tensor *grad, const tern_tensor *x)
{
    return tern_same_shape(grad, x) && grad->dtype == x->dtype &&
           grad->storage->place == x->storage->place;
}

tern_tensor *tern_set_data_(tern_tensor *x, tern_tensor *data)
{
    if (!tern_given(x, "tern_set_data_", "x") || !tern_given(data, "tern_set_data_", "data"))
        return NULL;
    if (!tern_is_leaf(x))
        return tern_fail_null(TERN_ERR_STATE, "tern_set_data_: x is the result of a recorded "
                                              "operation; only leaf tensors take other elements");
    if (x->requires_grad && !tern_dtype_is_floating_point(data->dtype))
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_set_data_: data set to a tensor that requires gradients must be "
            "floating point or complex dtype (this one is %s)",
            tern_dtype_name(data->dtype));
    if (x == data)
        return x;
    take_elements(x, data);
    tern_history *history = x->history;
    if (history && history->grad && !fits(history->grad, x)) {
        tern_release(history->grad);
        history->grad = NULL;
    }
    if (history && history->base) { /* no longer a view */
        tern_release(history->base);
        history->base = NULL;
    }
    return x;
}
