/* stored.c -- types that are only stored: moved, and brought to and from those that are computed in.
 *
 * Each has one type that holds all its values, to and from which there is a kernel; any other conversion
 * goes by way of it. uint64 has none: integers take its bits, reals are made of it directly. */
#include "ops/copy/stored.h"
#include <string.h>

/* By way of a dense tensor of another type. */
static tern_status copy_by(tern_tensor *y, const tern_tensor *x, tern_dtype by)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *between = tern_tensor_new(&shape, by, y->storage->place, "tern_to_dtype");
    tern_status status = between ? tern_hook_copy(between, x) : tern_last_status();
    if (status == TERN_OK)
        status = tern_hook_copy(y, between);
    tern_release(between);
    return status;
}

/* How an argument is called by kernels that are written for elements of that width. */
static tern_arg argument(tern_role role, const tern_tensor *x)
{
    bool byte = x->dtype == TERN_F8_E4M3FN || x->dtype == TERN_F8_E5M2;
    tern_dtype dtype = byte ? TERN_U8 : x->dtype == TERN_U16 ? TERN_F16 : x->dtype;
    return tern_arg_as(role, dtype, x);
}

static tern_status run(const tern_kernel_ref *kernel, tern_dtype by, tern_tensor *y,
                       const tern_tensor *x, tern_arg out, tern_arg in)
{
    tern_tensor *t[2] = {y, NULL};
    tern_walk w;
    memcpy(&t[1], &x, sizeof x);
    tern_shape shape = tern_shape_of(y);
    tern_walk_make(&w, &shape, t, 2);
    return TERN_LAUNCH(y->storage->place, kernel, by, tern_walk_grid(&w), out, in,
                       TERN_ARG_STRUCT(tern_walk, &w));
}

/* Elements of one width as they are. */
static tern_status move_elements(tern_tensor *y, const tern_tensor *x)
{
    static const tern_kernel_ref two_bytes = {"copy_stored", "move"}, bytes = {"copy", "copy_u8"},
                                 words = {"copy", "copy_f32"}, longs = {"copy", "copy_i64"};
    tern_dtype mover = tern_mover(y->dtype);
    const tern_kernel_ref *kernel = mover == TERN_F16   ? &two_bytes
                                    : mover == TERN_U8  ? &bytes
                                    : mover == TERN_F32 ? &words
                                                        : &longs;
    return run(kernel, mover, y, x, tern_arg_as(TERN_ROLE_OUT, mover, y),
               tern_arg_as(TERN_ROLE_IN, mover, x));
}

/* The type by way of which a stored one becomes another, or the reverse. */
static tern_dtype way(tern_dtype stored, tern_dtype other)
{
    if (stored != TERN_U64 || !tern_dtype_is_floating_point(other))
        return tern_dtype_rows[stored].math;
    return other == TERN_F64 ? TERN_F64 : TERN_F32;
}

#define KERNELS(LOAD)                                                                              \
    {                                                                                              \
        [TERN_I8] = {"copy_stored", #LOAD "_i8"}, [TERN_I16] = {"copy_stored", #LOAD "_i16"},      \
        [TERN_U16] = {"copy_stored", #LOAD "_u16"}, [TERN_U32] = {"copy_stored", #LOAD "_u32"},    \
        [TERN_U64] = {"copy_stored", #LOAD "_u64"},                                                \
        [TERN_F8_E4M3FN] = {"copy_stored", #LOAD "_e4m3"},                                         \
        [TERN_F8_E5M2] = {"copy_stored", #LOAD "_e5m2"},                                           \
    }

tern_status tern_copy_stored(tern_tensor *y, const tern_tensor *x)
{
    static const tern_kernel_ref load[] = KERNELS(load), store[] = KERNELS(store);
    const tern_dtype from = x->dtype, to = y->dtype;
    const bool loads = tern_dtype_is_stored(from);
    if (from == to)
        return move_elements(y, x);
    const tern_dtype stored = loads ? from : to, other = loads ? to : from, by = way(stored, other);
    if (other != by)
        return copy_by(y, x, by);
    if (stored == TERN_U64 && by == TERN_I64)
        return move_elements(y, x);
    return run(loads ? &load[from] : &store[to], by, y, x, argument(TERN_ROLE_OUT, y),
               argument(TERN_ROLE_IN, x));
}

tern_scalar tern_stored_number(tern_dtype stored, tern_scalar value, tern_dtype *by)
{
    *by = tern_dtype_rows[stored].math;
    double v = value.value.real;
    if (stored == TERN_U64 && value.kind == TERN_SCALAR_REAL && v >= 0x1p63)
        return tern_scalar_int((int64_t)(v < 0x1p64 ? (uint64_t)v : UINT64_MAX));
    return value;
}

/* ---- uint64 in the order of int64 -------------------------------------------------------- */

static tern_status ordered_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_I64, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status ordered_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"copy_stored", "order_u64"};
    tern_tensor *y = call->out[0], *x = call->in[0];
    if (y->numel == 0)
        return TERN_OK;
    return run(&kernel, TERN_I64, y, x, tern_arg_out(y), tern_arg_in(x));
}

static const tern_op ordered_op = {.name = "compare",
                                   .stored = TERN_STORED_MOVED,
                                   .not_differentiable = true,
                                   .infer = ordered_infer,
                                   .forward = ordered_forward};

tern_tensor *tern_hook_ordered(tern_tensor *x)
{
    return tern_apply(&ordered_op, &x, 1, NULL, 0);
}
