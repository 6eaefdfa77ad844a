/* copy_elements.c -- y = x for any strides and dtypes on one device.
 *
 * Storage-only dtypes can be moved, and converted to and from dtypes with arithmetic. Each has one
 * such dtype that holds all its values, with a kernel in each direction; any other conversion goes
 * through that dtype. uint64 has none: conversions to integers keep its bits, conversions to
 * floating point are computed directly. */
#include "ops/copy/copy.h"
#include "ops/elementwise/nd_index.h"
#include "tensor/tensor.h"
#include <string.h>

/* ---- storage-only dtypes ----------------------------------------------------------------- */

/* Copies x to y through a dense tensor of another dtype. */
static tern_status copy_by(tern_tensor *y, const tern_tensor *x, tern_dtype by)
{
    tern_shape shape = tern_shape_of(x);
    tern_tensor *between = tern_tensor_new(&shape, by, y->storage->place, "tern_to_dtype");
    tern_status status = between ? tern_copy_elements(between, x) : tern_last_status();
    if (status == TERN_OK)
        status = tern_copy_elements(y, between);
    tern_release(between);
    return status;
}

/* Returns x as an argument of kernels for elements of its size. */
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
    tern_nd_index w;
    memcpy(&t[1], &x, sizeof x);
    tern_shape shape = tern_shape_of(y);
    tern_nd_index_make(&w, &shape, t, 2);
    return TERN_LAUNCH(y->storage->place, kernel, by, tern_nd_index_grid(&w), out, in,
                       TERN_ARG_STRUCT(tern_nd_index, &w));
}

/* Copies elements of one size without conversion. */
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

/* Returns the dtype through which a storage-only dtype is converted to or from another dtype. */
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

static tern_status copy_stored(tern_tensor *y, const tern_tensor *x)
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

/* ---- the kernel: y = x for any strides and dtypes on one device -------------------------- */

/* One kernel for each source dtype, compiled for each destination dtype. */
static const tern_kernel_ref copy_from[] = {
#define X(T) [DTYPE_FIELD(ENUM, DTYPE_##T)] = {tern_file_copy, "copy_" #T},
    EACH_DTYPE(X)
#undef X
};

/* Computes y = x if both are contiguous, but along different dims. Tiles of 32 x 32 or 64 x 64 go
 * through local memory, so that both the reads and the writes are coalesced. Elements are only
 * moved, so one dtype is used for all dtypes of its size. */
static tern_status copy_transposed(tern_tensor *y, const tern_tensor *x,
                                   const tern_transposition *turn)
{
    static const tern_kernel_ref kernel = {"copy", "copy_transposed"};
    const tern_dtype mover = tern_mover(y->dtype);
    const bool by_words = tern_place_is_grouped(y->storage->place) && mover != TERN_U8 &&
                          mover != TERN_I64 &&
                          turn->together * (int64_t)tern_dtype_size(mover) >= 16;
    const int64_t tile = by_words ? TERN_WORD_TILE : TERN_TRANSPOSE_TILE;
    const int64_t tiles = ((turn->n + tile - 1) / tile) * ((turn->m + tile - 1) / tile);
    return TERN_LAUNCH(y->storage->place, &kernel, mover,
                       tern_groups(turn->planes.rows * tiles, 2 * tile * tile),
                       tern_arg_as(TERN_ROLE_OUT, mover, y), tern_arg_as(TERN_ROLE_IN, mover, x),
                       TERN_ARG_STRUCT(tern_transposition, turn));
}

/* Computes y = x, which broadcasts, for any strides and dtypes on one device. Dense tensors of one
 * dtype are copied as bytes, transposed ones by tiles, all others by the strided kernel, which
 * converts. */
tern_status tern_copy_elements(tern_tensor *y, const tern_tensor *x)
{
    if (y->numel == 0)
        return TERN_OK;
    if (y->dtype == x->dtype && y->contiguous && x->contiguous && y->numel == x->numel) {
        size_t size = tern_dtype_size(y->dtype);
        if (y->storage == x->storage &&
            y->offset == x->offset) /* the same elements: drivers refuse such a copy */
            return TERN_OK;
        return tern_block_copy(x->storage->block, (size_t)x->offset * size, y->storage->block,
                               (size_t)y->offset * size, (size_t)y->numel * size);
    }
    if (tern_dtype_is_stored(y->dtype > x->dtype ? y->dtype : x->dtype) && y->dtype != x->dtype)
        return copy_stored(y, x);
    tern_tensor *t[2];
    t[0] = y;
    memcpy(&t[1], &x, sizeof x);
    tern_nd_index w;
    tern_shape shape = tern_shape_of(y);
    tern_nd_index_make(&w, &shape, t, 2);
    tern_transposition turn;
    if (y->dtype == x->dtype && tern_transposition_make(&turn, &w))
        return copy_transposed(y, x, &turn);
    if (tern_dtype_is_stored(y->dtype))
        return copy_stored(y, x);
    return TERN_LAUNCH(y->storage->place, &copy_from[x->dtype], y->dtype, tern_nd_index_grid(&w),
                       tern_arg_out(y), tern_arg_in(x), TERN_ARG_STRUCT(tern_nd_index, &w));
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

tern_tensor *tern_ordered(tern_tensor *x)
{
    return tern_apply(&ordered_op, &x, 1, NULL, 0);
}
