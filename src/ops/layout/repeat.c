/* repeat.c -- repeated elements: repeat, tile, repeat_interleave. A new dim of size 1 beside the
 * repeated dim is expanded, and a copy merges both. */
#include "base/checked.h"
#include "device/device.h"
#include "ops/index/nonzero.h"
#include <tern/ops.h>

/* Returns x with dim d repeated `times` times, as a whole, or with `each` element by element. */
static tern_tensor *along(tern_tensor *x, int d, int64_t times, bool each)
{
    tern_shape shape = tern_shape_of(x);
    int64_t rows = 1, block = 1;
    for (int i = 0; i < x->ndim; i++)
        *(i < d || (each && i == d) ? &rows : &block) *= x->shape[i];
    if (__builtin_mul_overflow(shape.dims[d], times, &shape.dims[d]))
        return tern_fail_null(TERN_ERR_SHAPE, "tern_repeat: the size of dim %d overflowed", d);
    tern_tensor *y = tern_reshape(x, TERN_SHAPE(rows, 1, block));
    y = y ? tern_expand(y, TERN_SHAPE(rows, times, block)) : NULL;
    return y ? tern_reshape(y, shape) : NULL;
}

tern_tensor *tern_repeat(tern_tensor *x, tern_shape repeats)
{
    TERN_NAMED_IN_ERRORS;
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (repeats.ndim < x->ndim || repeats.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_repeat: Number of dimensions of repeat dims can not be smaller "
                              "than number of dimensions of tensor (%d and %d)",
                              repeats.ndim, x->ndim);
    tern_shape shape = {.ndim = repeats.ndim};
    int front = repeats.ndim - x->ndim;
    for (int d = 0; d < repeats.ndim; d++) {
        shape.dims[d] = d < front ? 1 : x->shape[d - front];
        if (repeats.dims[d] < 0)
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "tern_repeat: Trying to create tensor with negative dimension "
                                  "%lld (repeats %s)",
                                  (long long)tern_size_mul(repeats.dims[d], shape.dims[d]),
                                  TERN_SHAPE_TEXT(&repeats));
    }
    tern_tensor *y = tern_reshape(x, shape);
    for (int d = repeats.ndim - 1; d >= 0 && y; d--)
        if (repeats.dims[d] != 1)
            y = along(y, d, repeats.dims[d], false);
    return y && y->storage == x->storage ? tern_clone(y) : y; /* always a copy */
}

tern_tensor *tern_tile(tern_tensor *x, tern_shape dims)
{
    TERN_NAMED_IN_ERRORS;
    tern_shape repeats = dims;
    if (x && dims.ndim >= 0 && dims.ndim < x->ndim) {
        int front = x->ndim - dims.ndim;
        repeats.ndim = x->ndim;
        for (int d = 0; d < x->ndim; d++)
            repeats.dims[d] = d < front ? 1 : dims.dims[d - front];
    }
    return tern_repeat(x, repeats);
}

/* ---- repeat_interleave: each element is repeated ----------------------------------------- */

/* Returns x and sets *d to the dim; without a dim returns x flattened. */
static tern_tensor *with_dim(tern_tensor *x, tern_optional_int dim, int *d)
{
    if (!x)
        tern_fail_argument_null("tern_repeat_interleave", "x");
    if (x && (!dim.set || x->ndim == 0))
        x = tern_flatten(x, 0, -1);
    if (!x ||
        tern_wrap_dim(dim.set ? dim.value : 0, x->ndim, d, "tern_repeat_interleave") != TERN_OK)
        return NULL;
    return x;
}

tern_tensor *tern_repeat_interleave(tern_tensor *x, int64_t repeats, tern_optional_int dim)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    tern_tensor *flat = with_dim(x, dim, &d);
    if (!flat)
        return NULL;
    if (repeats < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_repeat_interleave: repeats must be non-negative, got %lld",
                              (long long)repeats);
    tern_tensor *y = along(flat, d, repeats, true);
    return y && y->storage == x->storage ? tern_clone(y) : y;
}

/* Returns [0] * repeats[0] + [1] * repeats[1] + ...: element i of the result is the first index
 * whose cumulative sum exceeds i. Reads the number of elements on the host. */
static tern_tensor *repeated_indices(tern_tensor *repeats)
{
    tern_tensor *counts =
        tern_cat((tern_tensor *[]){tern_to_dtype(repeats, TERN_I64),
                                   tern_zeros(TERN_SHAPE(1), TERN_I64, tern_device(repeats))},
                 2, 0);
    if (!counts)
        return NULL;
    int64_t n = counts->numel - 1,
            total = tern_running_starts(counts, n, TERN_FAULT_REPEATS, "tern_repeat_interleave");
    if (total < 0)
        return NULL;
    tern_tensor *ends = tern_narrow(counts, 0, 1, n);
    tern_tensor *every = tern_arange(0, (double)total, 1, TERN_I64, tern_device(repeats));
    return tern_searchsorted(ends, every, TERN_SIDE_RIGHT);
}

tern_tensor *tern_repeat_interleave_tensor(tern_tensor *x, tern_tensor *repeats,
                                           tern_optional_int dim)
{
    TERN_NAMED_IN_ERRORS;
    int d;
    if (!repeats)
        tern_fail_argument_null(__func__, "repeats");
    if (!repeats || !(x = with_dim(x, dim, &d)))
        return NULL;
    if (repeats->ndim > 1)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_repeat_interleave_tensor: repeats must be 0-dim or 1-dim tensor, not %s",
            TERN_TENSOR_TEXT(repeats));
    if (repeats->dtype != TERN_I64 && repeats->dtype != TERN_I32)
        return tern_fail_null(
            TERN_ERR_DTYPE,
            "tern_repeat_interleave_tensor: repeats has to be Long or Int tensor, "
            "not %s",
            tern_dtype_name(repeats->dtype));
    if (repeats->numel == 1 || repeats->ndim == 0)
        repeats = tern_expand(tern_flatten(repeats, 0, -1), TERN_SHAPE(x->shape[d]));
    if (!repeats)
        return NULL;
    if (repeats->numel != x->shape[d])
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_repeat_interleave_tensor: repeats must have the same size as "
                              "input along dim, but got repeats.size(0) = %lld and input.size(%d) "
                              "= %lld",
                              (long long)repeats->numel, d, (long long)x->shape[d]);
    tern_tensor *index = repeated_indices(repeats);
    return index ? tern_index_select(x, d, index) : NULL;
}
