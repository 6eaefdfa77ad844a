/* all_reduce.c -- in-place collectives over devices of one process. */
#include "ops/collective/collective.h"
#include "tensor/tensor.h"
#include <string.h>
#include <tern/autograd.h>
#include <tern/ops.h>

/* Vendors' libraries require dense buffers of one dtype and size. */
tern_status tern_check_list(const char *function, tern_tensor *const *x, int n, bool dense)
{
    if (!x || n < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: expected tensors, but got %d", function, n);
    for (int i = 0; i < n; i++)
        if (!x[i])
            return tern_fail(TERN_ERR_ARGUMENT, "%s: tensor %d of %d is NULL", function, i, n);
        else if (!tern_given(x[i], function, "x"))
            return TERN_ERR_STATE;
    tern_shape shape = tern_shape_of(x[0]);
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
        if (dense && !x[i]->contiguous)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: expected contiguous tensors, but tensor %d is not", function, i);
    }
    return TERN_OK;
}

static void places_of(tern_tensor *const *x, int n, tern_place **places)
{
    for (int i = 0; i < n; i++)
        places[i] = x[i]->storage->place;
}

/* Runs the collective by the vendor's library of the devices. *taken is false if the devices have
 * no library in common. */
static tern_status by_vendor(tern_collective_kind kind, tern_dist_op op, tern_tensor *const *from,
                             tern_tensor *const *to, int n, int64_t count, bool *taken)
{
    tern_place *places[TERN_MOST_COLLECTIVE_DEVICES];
    tern_arg in[TERN_MOST_COLLECTIVE_DEVICES], out[TERN_MOST_COLLECTIVE_DEVICES];
    *taken = false;
    if (n < 2 || n > TERN_MOST_COLLECTIVE_DEVICES)
        return TERN_OK;
    for (int i = 0; i < n; i++) {
        if (from[i]->storage->place != to[i]->storage->place)
            return TERN_OK;
        places[i] = to[i]->storage->place;
        in[i] = tern_arg_tensor(from[i]);
        out[i] = tern_arg_tensor(to[i]);
    }
    const tern_collective t = {.kind = kind,
                               .op = tern_base_op(to[0]->dtype, op),
                               .dtype = to[0]->dtype,
                               .count = count,
                               .from = in,
                               .to = out};
    TERN_TRY(tern_launch_collectives(places, n, &t, 1, taken));
    for (int i = 0; *taken && i < n; i++)
        tern_bump_version(to[i]);
    return TERN_OK;
}

/* Copies x to each tensor of `to`, each on its device. Versions are increased here for tensors that
 * the vendor's library has written. */
static tern_status send(tern_tensor *x, tern_tensor *const *to, int n)
{
    tern_place *places[n];
    tern_tensor *out[n];
    int64_t version[n];
    tern_status status = TERN_OK;
    places_of(to, n, places);
    memcpy(out, to, sizeof out);
    for (int i = 0; i < n; i++)
        version[i] = tern_tensor_version(to[i]);
    TERN_SCOPE
        status = tern_send_all(&x, 1, places, n, out);
    for (int i = 0; i < n; i++)
        if (to[i] != x && tern_tensor_version(to[i]) == version[i])
            tern_bump_version(to[i]);
    return status;
}

static tern_status all_reduce(const char *function, tern_tensor *const *x, int n, tern_dist_op op)
{
    bool taken = false;
    TERN_TRY(tern_check_list(function, x, n, true));
    TERN_TRY(tern_check_sum(function, x[0]->dtype, op));
    if (n == 1 || x[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(by_vendor(TERN_COLLECTIVE_ALL_REDUCE, op, x, x, n, x[0]->numel, &taken));
    if (taken)
        return TERN_OK;
    const uint64_t failures = tern_failures();
    tern_status status = TERN_OK;
    TERN_SCOPE {
        /* sum is a separate tensor, so that no x changes if a sum fails. */
        tern_tensor *sum = tern_sum_at(x, n, op, x[0]->storage->place);
        status = sum ? send(sum, x, n) : tern_failed_since(failures);
    }
    return status;
}

tern_status tern_all_reduce_(tern_tensor *const *x, int n)
{
    return all_reduce("tern_all_reduce_", x, n, TERN_DIST_SUM);
}

tern_status tern_all_reduce_with_(tern_tensor *const *x, int n, tern_dist_op op)
{
    return all_reduce("tern_all_reduce_with_", x, n, op);
}

tern_status tern_broadcast_(tern_tensor *const *x, int n, int root)
{
    static const char function[] = "tern_broadcast_";
    TERN_TRY(tern_check_list(function, x, n, true));
    if (root < 0 || root >= n)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: root %d of %d tensors", function, root, n);
    return n == 1 || x[0]->numel == 0 ? TERN_OK : send(x[root], x, n);
}

/* Checks that the tensors of one list have n times the elements of the tensors of the other. */
static tern_status check_parts(const char *function, tern_tensor *const *all,
                               tern_tensor *const *part, int n)
{
    TERN_TRY(tern_check_list(function, all, n, true));
    TERN_TRY(tern_check_list(function, part, n, true));
    if (all[0]->dtype != part[0]->dtype)
        return tern_fail(TERN_ERR_DTYPE, "%s: expected one dtype, but got %s and %s", function,
                         tern_dtype_name(all[0]->dtype), tern_dtype_name(part[0]->dtype));
    if (all[0]->numel != part[0]->numel * n)
        return tern_fail(TERN_ERR_SHAPE, "%s: %s is not %d times %s", function,
                         TERN_TENSOR_TEXT(all[0]), n, TERN_TENSOR_TEXT(part[0]));
    return TERN_OK;
}

/* Returns part i of the dense tensor `all` as a view in the shape of `part`. */
static tern_tensor *part_of(tern_tensor *all, int i, const tern_tensor *part)
{
    tern_tensor *flat = tern_view(tern_detach(all), TERN_SHAPE(-1));
    return tern_view(tern_narrow(flat, 0, i * part->numel, part->numel), tern_shape_of(part));
}

tern_status tern_all_gather_(tern_tensor *const *out, tern_tensor *const *x, int n)
{
    bool taken = false;
    TERN_TRY(check_parts("tern_all_gather_", out, x, n));
    if (x[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(by_vendor(TERN_COLLECTIVE_ALL_GATHER, TERN_DIST_SUM, x, out, n, x[0]->numel, &taken));
    if (taken)
        return TERN_OK;
    tern_status status = TERN_OK;
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_place *places[n];
            tern_tensor *here[n];
            for (int i = 0; i < n; i++)
                places[i] = out[0]->storage->place;
            status = tern_move_each(x, places, n, here);
            for (int i = 0; i < n && status == TERN_OK; i++) {
                tern_tensor *part = part_of(out[0], i, x[0]);
                status = tern_copy_(part, here[i]) ? TERN_OK : tern_failed_since(failures);
            }
            if (status == TERN_OK)
                status = send(out[0], out, n);
        }
    }
    return status;
}

static tern_status reduce_scatter(const char *function, tern_tensor *const *out,
                                  tern_tensor *const *x, int n, tern_dist_op op)
{
    bool taken = false;
    TERN_TRY(check_parts(function, x, out, n));
    TERN_TRY(tern_check_sum(function, x[0]->dtype, op));
    if (x[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(by_vendor(TERN_COLLECTIVE_REDUCE_SCATTER, op, x, out, n, out[0]->numel, &taken));
    if (taken)
        return TERN_OK;
    tern_status status = TERN_OK;
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_place *places[n];
            tern_tensor *parts[n];
            tern_tensor *sum = tern_sum_at(x, n, op, x[0]->storage->place);
            places_of(out, n, places);
            for (int i = 0; i < n; i++)
                parts[i] = sum ? part_of(sum, i, out[0]) : NULL;
            status = tern_failed_since(failures);
            if (status == TERN_OK)
                status = tern_move_each(parts, places, n, parts);
            for (int i = 0; i < n && status == TERN_OK; i++)
                status = tern_copy_(out[i], parts[i]) ? TERN_OK : tern_failed_since(failures);
        }
    }
    return status;
}

tern_status tern_reduce_scatter_(tern_tensor *const *out, tern_tensor *const *x, int n)
{
    return reduce_scatter("tern_reduce_scatter_", out, x, n, TERN_DIST_SUM);
}

tern_status tern_reduce_scatter_with_(tern_tensor *const *out, tern_tensor *const *x, int n,
                                      tern_dist_op op)
{
    return reduce_scatter("tern_reduce_scatter_with_", out, x, n, op);
}
