/* memory_format.c -- the order of the dims of images in memory (channels_last). */
#include "tensor/memory_format.h"
#include "device/device.h"
#include "tensor/from_ops.h"
#include "tensor/shape.h"

static bool has_order(const tern_tensor *x)
{
    int64_t step = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        int d = tern_channels_last_dim(i, x->ndim);
        if (x->shape[d] != 1 && x->stride[d] != step)
            return false;
        step *= x->shape[d];
    }
    return true;
}

bool tern_is_channels_last(const tern_tensor *x)
{
    return x && !x->contiguous && (x->ndim == 4 || x->ndim == 5) && has_order(x);
}

bool tern_runs_channels_last(const tern_tensor *x)
{
    int64_t least = 1;
    if (!x || x->contiguous || (x->ndim != 4 && x->ndim != 5) || x->shape[1] == 1)
        return false;
    for (int i = x->ndim - 1; i >= 0; i--) {
        int d = tern_channels_last_dim(i, x->ndim);
        if (x->shape[d] == 1)
            continue;
        if (x->stride[d] < least)
            return false;
        least = x->stride[d] * x->shape[d];
    }
    return true;
}

void tern_make_channels_last(tern_tensor *x)
{
    if ((x->ndim != 4 && x->ndim != 5) || x->numel == 0)
        return;
    int64_t step = 1;
    for (int i = x->ndim - 1; i >= 0; i--) {
        int d = tern_channels_last_dim(i, x->ndim);
        x->contiguous = x->contiguous && (x->shape[d] == 1 || x->stride[d] == step);
        x->stride[d] = step;
        step *= x->shape[d];
    }
}

bool tern_keeps_channels_last(tern_tensor *const *in, int n, const tern_shape *shape)
{
    for (int i = 0; shape->ndim >= 4 && i < n; i++) {
        tern_shape own;
        if (!in[i] || in[i]->ndim != shape->ndim)
            continue;
        tern_read_shape(in[i], &own);
        if (tern_shape_equal(&own, shape) && !tern_repeats(in[i]))
            return tern_runs_channels_last(in[i]);
    }
    return false;
}

bool tern_lies_as(const tern_tensor *x, const tern_tensor *other)
{
    return tern_is_channels_last(other) ? has_order(x) : x->contiguous;
}

tern_tensor *tern_in_format(tern_tensor *x, bool last)
{
    return x && last ? tern_from_ops->to_memory_format(x, (tern_memory_format)(x->ndim - 3))
                     : tern_from_ops->contiguous(x);
}

tern_tensor *tern_lie_as(tern_tensor *x, const tern_tensor *other)
{
    return tern_in_format(x, tern_is_channels_last(other));
}

bool tern_is_contiguous_format(const tern_tensor *x, tern_memory_format format)
{
    if (format == TERN_CONTIGUOUS_FORMAT)
        return tern_is_contiguous(x);
    return x && x->ndim == 3 + (int)format && (x->numel == 0 || has_order(x));
}
