/* cross_entropy_unit.c -- cross entropy in one kernel, on devices with work-groups: the loss with
 * the gradient for dout = 1, or the loss or the gradient alone. */
#include "ops/loss/cross_entropy.h"
#include "ops/matmul/padded.h"
#include "tensor/tensor.h"

bool tern_entropy_is_unit(const tern_tensor *x)
{
    return x->shape[0] > 0 && tern_place_is_grouped(x->storage->place);
}

int64_t tern_entropy_large_from = 1 << 26;

bool tern_entropy_is_large(const tern_tensor *x)
{
    return x->numel * (int64_t)tern_dtype_size(x->dtype) >= tern_entropy_large_from;
}

static tern_status count_classes(const tern_call *call)
{
    static const tern_kernel_ref kernel = {"fused", "count_classes"};
    const tern_entropy_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0], *weight = call->in[2];
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(1, x->shape[0]),
                       tern_arg_out(call->out[ENTROPY_TOTAL]), tern_arg_in(call->in[1]),
                       tern_arg_optional(weight, x), tern_arg_i64(x->shape[0]),
                       tern_arg_i64(x->shape[1]), tern_arg_i64(at->ignored),
                       tern_arg_i32(weight != NULL));
}

tern_status tern_entropy_clear_rows(tern_tensor *dx)
{
    const int64_t rows = dx->shape[0], row = tern_up(dx->shape[1]), more = tern_up(rows) - rows;
    const size_t size = tern_dtype_size(dx->dtype);
    tern_zero_padded(dx);
    return more == 0 ? TERN_OK
                     : tern_block_zero(dx->storage->block, (size_t)(rows * row) * size,
                                       (size_t)(more * row) * size);
}

static tern_arg out_of(const tern_entropy_unit *u, const tern_tensor *x)
{
    return x ? tern_arg_out(x) : tern_arg_unused(u->total);
}

tern_status tern_entropy_run_unit(const tern_entropy_unit *u, const tern_entropy_attributes *at)
{
    static const tern_kernel_ref kernel = {"fused", "cross_entropy_unit"};
    const tern_tensor *x = u->x;
    tern_place *place = x->storage->place;
    const int64_t rows = x->shape[0], n = x->shape[1];
    const int what = u->what | (u->weight ? ENTROPY_WEIGHTED : 0) |
                     (at->reduction == TERN_REDUCTION_MEAN   ? ENTROPY_MEAN
                      : at->reduction == TERN_REDUCTION_NONE ? ENTROPY_EACH
                                                             : 0);
    tern_arg fault, kept = tern_arg_out(u->kept);
    TERN_TRY(tern_fault_arg(place, &fault));
    TERN_TRY(TERN_LAUNCH(
        place, &kernel, x->dtype,
        u->what & ENTROPY_ALONE ? tern_groups(1, 8 * x->numel) : tern_rows(rows, n, 8 * n),
        out_of(u, u->loss), out_of(u, u->losses), kept, tern_entropy_pulls(kept, rows),
        out_of(u, u->weights), u->dx ? tern_arg_out(u->dx) : tern_arg_unused(x),
        tern_arg_out(u->total), tern_arg_optional(u->dout, u->total), tern_arg_in(x),
        tern_arg_in(u->target), tern_arg_optional(u->weight, x), fault, tern_arg_i64(rows),
        tern_arg_i64(n), tern_arg_i64(x->stride[0]), tern_arg_i64(at->ignored),
        tern_arg_real(x->dtype, at->smoothing), tern_arg_i32(what),
        tern_arg_fault(TERN_FAULT_TARGET)));
    TERN_TRY(u->what & ENTROPY_PADDED ? tern_entropy_clear_rows(u->dx) : TERN_OK);
    return tern_fault_check(place);
}

tern_status tern_entropy_launch_unit(const tern_call *call, const tern_tensor *losses,
                                     const tern_tensor *weights)
{
    const tern_entropy_attributes *at = call->attributes;
    const bool with_dx = call->n_out > ENTROPY_DX;
    const bool counted = with_dx && at->reduction == TERN_REDUCTION_MEAN &&
                         call->in[0]->shape[0] > ENTROPY_MOST_COUNTED;
    if (counted)
        TERN_TRY(count_classes(call));
    const tern_entropy_unit u = {
        .x = call->in[0],
        .target = call->in[1],
        .weight = call->in[2],
        .kept = call->out[ENTROPY_KEPT],
        .total = call->out[ENTROPY_TOTAL],
        .loss = losses ? NULL : call->out[ENTROPY_LOSS],
        .losses = losses,
        .weights = weights,
        .dx = with_dx ? call->out[ENTROPY_DX] : NULL,
        .what = (losses ? 0 : ENTROPY_ALONE) | (counted || !with_dx ? ENTROPY_COUNTED : 0) |
                (call->padded ? ENTROPY_PADDED : 0) | (with_dx ? 0 : ENTROPY_WITHOUT_DX)};
    return tern_entropy_run_unit(&u, at);
}
