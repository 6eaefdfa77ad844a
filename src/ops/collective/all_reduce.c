/* all_reduce.c -- sums over devices: the vendor's collective, or copies to the first one. */
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops/collective.h>
#include <tern/ops.h>

static const char function[] = "tern_all_reduce_";

/* The collectives of vendors take dense buffers of one dtype and size. */
static tern_status check(tern_tensor *const *x, int n)
{
    if (!x || n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected tensors, but got %d", function, n);
    for (int i = 0; i < n; i++)
        if (!x[i])
            return tern_fail(TERN_ERR_ARGUMENT, "%s: tensor %d of %d is NULL", function, i, n);
    tern_shape shape = tern_shape_of(x[0]);
    if (x[0]->dtype == TERN_BOOL)
        return tern_fail(TERN_ERR_DTYPE, "%s: expected numbers, but got bool", function);
    for (int i = 0; i < n; i++) {
        tern_shape other = tern_shape_of(x[i]);
        if (x[i]->dtype != x[0]->dtype)
            return tern_fail(TERN_ERR_DTYPE,
                             "%s: expected all tensors to have the same dtype, but got %s and %s "
                             "(tensor %d)",
                             function, tern_dtype_name(x[0]->dtype), tern_dtype_name(x[i]->dtype),
                             i);
        if (!tern_shape_equal(&shape, &other))
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: expected all tensors to have the same size, but got %s and %s "
                             "(tensor %d)",
                             function, TERN_TENSOR_TEXT(x[0]), TERN_TENSOR_TEXT(x[i]), i);
        if (!x[i]->contiguous)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: expected contiguous tensors, but tensor %d is not", function, i);
    }
    return TERN_OK;
}

/* x[i] = the sum over all x on every device, by a ring or tree between them; *taken is false where
 * the devices have no such library in common. */
static tern_status by_vendor(tern_tensor *const *x, int n, bool *taken)
{
    tern_place *places[TERN_MOST_TOGETHER];
    tern_arg args[TERN_MOST_TOGETHER];
    *taken = false;
    if (n < 2 || n > TERN_MOST_TOGETHER)
        return TERN_OK;
    for (int i = 0; i < n; i++) {
        places[i] = x[i]->storage->place;
        args[i] = tern_arg_tensor(x[i]);
    }
    TERN_TRY(tern_launch_all_reduce(places, args, n, x[0]->numel, x[0]->dtype, taken));
    for (int i = 0; *taken && i < n; i++)
        tern_bump_version(x[i]);
    return TERN_OK;
}

/* Without a collective: gather on the first device, add there, and broadcast the sum. It is made in
 * a tensor of its own, so that no x has changed if a copy to it fails. */
static tern_status by_copies(tern_tensor *const *x, int n)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_tensor *sum = tern_clone(x[0]);
            for (int i = 1; i < n && sum; i++)
                sum = tern_add_(sum, tern_to(x[i], tern_device(x[0])));
            for (int i = 0; i < n && sum; i++)
                sum = tern_copy_(x[i], sum) ? sum : NULL;
        }
    }
    return tern_failed_since(failures);
}

tern_status tern_all_reduce_(tern_tensor *const *x, int n)
{
    bool taken = false;
    TERN_TRY(check(x, n));
    if (n == 1 || x[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(by_vendor(x, n, &taken));
    return taken ? TERN_OK : by_copies(x, n);
}
