/* pixel_shuffle.c -- channels rearranged to pixels and the inverse, and channels shuffled. */
#include "base/checked.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include <tern/ops.h>

/* Returns whether x is not NULL and has at least `least` dims. */
static bool has_dims(const tern_tensor *x, int least, const char *function)
{
    if (!x)
        tern_fail_argument_null(function, "input");
    else if (x->ndim < least)
        tern_fail(TERN_ERR_SHAPE,
                  "%s: expects input to have at least %d dimensions, but got input with %d "
                  "dimension(s)",
                  function, least, x->ndim);
    return x && x->ndim >= least;
}

/* Returns x (*, C, H, W) viewed as (*, parts...), permuted by `order` after the leading dims, and
 * reshaped to (*, c, h, w). It is composed of views and one copy, which are differentiable. */
static tern_tensor *rearrange(tern_tensor *x, const int64_t *parts, int n, const int *order,
                              int64_t c, int64_t h, int64_t w)
{
    int lead = x->ndim - 3;
    tern_shape cut = tern_shape_of(x), permutation = {.ndim = lead + n}, whole = tern_shape_of(x);
    if (lead + n > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "tern_pixel_shuffle: at most %d dims",
                              TERN_MAX_DIMS - n + 3);
    cut.ndim = lead + n;
    for (int i = 0; i < lead; i++)
        permutation.dims[i] = i;
    for (int i = 0; i < n; i++) {
        cut.dims[lead + i] = parts[i];
        permutation.dims[lead + i] = lead + order[i];
    }
    whole.dims[lead] = c;
    whole.dims[lead + 1] = h;
    whole.dims[lead + 2] = w;
    tern_tensor *rows = tern_reshape(tern_rows_of(x), cut);
    return tern_lie_as(tern_reshape(tern_permute(rows, permutation), whole), x);
}

/* (*, C r^2, H, W) -> (*, C, H r, W r): y[c, h r + i, w r + j] = x[c r^2 + i r + j, h, w] (Shi
 * et al. 2016). */
tern_tensor *tern_pixel_shuffle(tern_tensor *x, int64_t r)
{
    TERN_NAMED_IN_ERRORS;
    static const int order[] = {0, 3, 1, 4, 2};
    if (!has_dims(x, 3, __func__))
        return NULL;
    int64_t c = x->shape[x->ndim - 3], h = x->shape[x->ndim - 2], w = x->shape[x->ndim - 1];
    if (r < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_pixel_shuffle: expects a positive upscale_factor, but got %lld",
                              (long long)r);
    int64_t each = tern_size_mul(r, r);
    if (c % each)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_pixel_shuffle: expects its input's 'channel' dimension to be "
                              "divisible by the square of upscale_factor, but "
                              "input.size(-3)=%lld is not divisible by %lld",
                              (long long)c, (long long)each);
    const int64_t parts[] = {c / each, r, r, h, w};
    return rearrange(x, parts, 5, order, c / each, tern_size_mul(h, r), tern_size_mul(w, r));
}

/* The inverse of pixel_shuffle: (*, C, H r, W r) -> (*, C r^2, H, W). */
tern_tensor *tern_pixel_unshuffle(tern_tensor *x, int64_t r)
{
    static const int order[] = {0, 2, 4, 1, 3};
    if (!has_dims(x, 3, "tern_pixel_unshuffle"))
        return NULL;
    int64_t c = x->shape[x->ndim - 3], h = x->shape[x->ndim - 2], w = x->shape[x->ndim - 1];
    if (r < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_pixel_unshuffle: expects a positive downscale_factor, but got "
                              "%lld",
                              (long long)r);
    if (h % r || w % r)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_pixel_unshuffle: expects height and width to be divisible by "
                              "downscale_factor, but input.size(-2)=%lld, input.size(-1)=%lld are "
                              "not both divisible by %lld",
                              (long long)h, (long long)w, (long long)r);
    const int64_t parts[] = {c, h / r, r, w / r, r};
    return rearrange(x, parts, 5, order, tern_size_mul(tern_size_mul(c, r), r), h / r, w / r);
}

/* Channels (groups, C / groups) transposed: channel g C / groups + k becomes k groups + g (Zhang et
 * al. 2018). */
tern_tensor *tern_channel_shuffle(tern_tensor *x, int64_t groups)
{
    if (!has_dims(x, 3, "tern_channel_shuffle"))
        return NULL;
    int64_t c = x->shape[1];
    if (groups < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_channel_shuffle: Number of groups to divide channels in must "
                              "be positive. Value of groups: %lld",
                              (long long)groups);
    if (c % groups)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_channel_shuffle: Number of channels must be divisible by "
                              "groups. Got %lld channels and %lld groups.",
                              (long long)c, (long long)groups);
    tern_shape shape = tern_shape_of(x);
    if (x->numel == 0)
        return tern_reshape(x, shape);
    tern_shape parts = TERN_SHAPE(x->shape[0], groups, c / groups, -1);
    tern_tensor *cut = tern_reshape(tern_rows_of(x), parts);
    return tern_lie_as(tern_reshape(tern_transpose(cut, 1, 2), shape), x);
}
