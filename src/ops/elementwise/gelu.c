/* gelu.c -- gelu's result recomputed in backward, alone or with its gradient (fuse/again.c). */
#include "ops/elementwise/elementwise.h"
#include "tensor/tensor.h"
#include <string.h>

tern_tensor *tern_gelu_again(const tern_op *op, tern_tensor *x)
{
    const tern_row_attributes none = {0};
    return tern_apply(op, &x, 1, &none, sizeof none);
}

/* Inputs x and dy, results dx and y, in one launch. */
static tern_status pair_infer(tern_call *call)
{
    call->n_out = 2;
    for (int i = 0; i < 2; i++)
        call->result[i] =
            (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status pair_forward(tern_call *call)
{
    static const tern_kernel_ref kernels[] = {{"fused", "gelu_pair"}, {"fused", "gelu_tanh_pair"}};
    const tern_tensor *x = call->in[0];
    return TERN_LAUNCH(call->place, &kernels[*(const int *)call->attributes], x->dtype,
                       tern_items(x->numel), tern_arg_out(call->out[0]), tern_arg_out(call->out[1]),
                       tern_arg_in(x), tern_arg_in(call->in[1]), tern_arg_i64(x->numel));
}

tern_tensor *tern_gelu_pair(const tern_op *op, tern_tensor *x, tern_tensor *dy, tern_tensor **dx)
{
    static const tern_op pair_op = {.name = "gelu_gradient",
                                    .not_differentiable = true,
                                    .infer = pair_infer,
                                    .forward = pair_forward};
    const int by_tanh = strcmp(op->name, "gelu_tanh") == 0;
    tern_tensor *out[2] = {NULL, NULL};
    if (tern_apply_all(&pair_op, (tern_tensor *[]){x, dy}, 2, &by_tanh, sizeof by_tanh, out, 2) !=
        TERN_OK)
        return NULL;
    *dx = out[0];
    return out[1];
}
