/* movedim.c -- dims moved, added and aligned: movedim, atleast_2d, meshgrid, sliding windows. */
#include "tensor/op.h"
#include <tern/ops.h>

/* ---- movedim ----------------------------------------------------------------------------- */

/* Wraps all dims; each may occur at most once. */
static tern_status wrap_all(const tern_shape *dims, int ndim, int *out, const char *name,
                            const char *function)
{
    uint32_t seen = 0;
    for (int i = 0; i < dims->ndim; i++) {
        TERN_TRY(tern_wrap_dim(dims->dims[i], ndim, &out[i], function));
        if (seen >> out[i] & 1)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: repeated dim in `%s` (%s)", function, name,
                             TERN_SHAPE_TEXT(dims));
        seen |= 1u << out[i];
    }
    return TERN_OK;
}

static tern_tensor *moved(tern_tensor *x, const tern_shape *source, const tern_shape *destination,
                          const char *function)
{
    int from[TERN_MAX_DIMS], to[TERN_MAX_DIMS];
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (source->ndim != destination->ndim || source->ndim < 0 || source->ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Invalid source or destination dims: source (%s dims) should "
                              "contain the same number of dims as destination (%s dims)",
                              function, TERN_SHAPE_TEXT(source), TERN_SHAPE_TEXT(destination));
    if (wrap_all(source, x->ndim, from, "source", function) != TERN_OK ||
        wrap_all(destination, x->ndim, to, "destination", function) != TERN_OK)
        return NULL;
    tern_shape order = {.ndim = x->ndim};
    uint32_t taken = 0, placed = 0;
    for (int i = 0; i < source->ndim && x->ndim; i++) {
        order.dims[to[i]] = from[i];
        placed |= 1u << to[i];
        taken |= 1u << from[i];
    }
    for (int d = 0, next = 0; d < x->ndim; d++) {
        if (placed >> d & 1)
            continue;
        while (taken >> next & 1)
            next++;
        order.dims[d] = next++;
    }
    return tern_permute(x, order);
}

tern_tensor *tern_movedim(tern_tensor *x, tern_shape source, tern_shape destination)
{
    return moved(x, &source, &destination, "tern_movedim");
}

tern_tensor *tern_moveaxis(tern_tensor *x, tern_shape source, tern_shape destination)
{
    return moved(x, &source, &destination, "tern_moveaxis");
}

tern_tensor *tern_swapdims(tern_tensor *x, int dim0, int dim1)
{
    TERN_NAMED_IN_ERRORS;
    return tern_transpose(x, dim0, dim1);
}

tern_tensor *tern_swapaxes(tern_tensor *x, int axis0, int axis1)
{
    TERN_NAMED_IN_ERRORS;
    return tern_transpose(x, axis0, axis1);
}

/* ---- atleast_nd -------------------------------------------------------------------------- */

/* Returns whether x has at least `least` dims. A freed x is passed on to an operation, which
 * reports the error. */
static bool has_dims(const tern_tensor *x, int least)
{
    return x && x->ndim >= least && !tern_handle_is_gone(&x->handle);
}

tern_tensor *tern_atleast_1d(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return has_dims(x, 1) ? x : tern_unsqueeze(x, 0);
}

tern_tensor *tern_atleast_2d(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return has_dims(x, 2) ? x : tern_unsqueeze(tern_atleast_1d(x), 0);
}

tern_tensor *tern_atleast_3d(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return has_dims(x, 3) ? x : tern_unsqueeze(tern_atleast_2d(x), -1);
}

tern_tensor *tern_view_as(tern_tensor *x, const tern_tensor *other)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(other, __func__, "other"))
        return NULL;
    return tern_view(x, tern_shape_of(other));
}

tern_tensor *tern_reshape_as(tern_tensor *x, const tern_tensor *other)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(other, __func__, "other"))
        return NULL;
    return tern_reshape(x, tern_shape_of(other));
}

/* ---- lists ------------------------------------------------------------------------------- */

static tern_status check_list(tern_tensor *const *tensors, int n, tern_tensor **out,
                              const char *function)
{
    if (!out || (!tensors && n > 0))
        return tern_fail_argument_null(function, out ? "tensors" : "out");
    if (n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expects a non-empty TensorList", function);
    for (int i = 0; i < n; i++)
        if (!tensors[i])
            return tern_fail_argument_null(function, "a tensor of the list");
    return TERN_OK;
}

tern_status tern_broadcast_tensors(tern_tensor *const *tensors, int n, tern_tensor **out)
{
    TERN_NAMED_IN_ERRORS;
    TERN_TRY(check_list(tensors, n, out, __func__));
    tern_shape all = tern_shape_of(tensors[0]);
    for (int i = 1; i < n; i++) {
        tern_shape own = tern_shape_of(tensors[i]), both;
        TERN_TRY(tern_shape_broadcast(&all, &own, &both, __func__));
        all = both;
    }
    for (int i = 0; i < n; i++)
        if (!(out[i] = tern_expand(tensors[i], all)))
            return tern_last_status();
    return TERN_OK;
}

tern_status tern_broadcast_shapes(const tern_shape *shapes, int n, tern_shape *out)
{
    if (!out || (!shapes && n > 0))
        return tern_fail_argument_null("tern_broadcast_shapes", out ? "shapes" : "out");
    *out = TERN_SHAPE_SCALAR;
    for (int i = 0; i < n; i++) {
        tern_shape so_far = *out;
        TERN_TRY(tern_shape_broadcast(&so_far, &shapes[i], out, "tern_broadcast_shapes"));
    }
    return TERN_OK;
}

/* Tensor i varies along dim i; for XY the first two dims are exchanged. */
tern_status tern_meshgrid(tern_tensor *const *tensors, int n, tern_indexing indexing,
                          tern_tensor **out)
{
    TERN_TRY(check_list(tensors, n, out, "tern_meshgrid"));
    if ((unsigned)indexing > TERN_INDEXING_XY)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_meshgrid: torch.meshgrid: indexing must be one of \"xy\" or \"ij\", "
                         "but received: %d",
                         (int)indexing);
    bool swapped = indexing == TERN_INDEXING_XY && n > 1;
    if (n > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_SHAPE, "tern_meshgrid: a tensor has at most %d dims, not %d",
                         TERN_MAX_DIMS, n);
    tern_shape all = {.ndim = n};
    for (int i = 0; i < n; i++) {
        if (tensors[i]->ndim > 1)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_meshgrid: torch.meshgrid: Expected 0D or 1D tensor in the "
                             "tensor list but got: %s",
                             TERN_TENSOR_TEXT(tensors[i]));
        if (tensors[i]->dtype != tensors[0]->dtype)
            return tern_fail(TERN_ERR_DTYPE, "tern_meshgrid: torch.meshgrid expects all tensors to "
                                             "have the same dtype");
        all.dims[swapped && i < 2 ? 1 - i : i] = tensors[i]->numel;
    }
    for (int i = 0; i < n; i++) {
        tern_shape own = {.ndim = n};
        int d = swapped && i < 2 ? 1 - i : i;
        for (int k = 0; k < n; k++)
            own.dims[k] = k == d ? tensors[i]->numel : 1;
        if (!(out[i] = tern_expand(tern_reshape(tensors[i], own), all)))
            return tern_last_status();
    }
    return TERN_OK;
}
