/* attention_vendor.c -- attention and its gradients as one command, for a routine of the device's
 * vendor. */
#include "ops/attention/attention_tiles.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

enum { Q, K, V, MASK, DOUT, HAD };
enum { OUT, SUMS, WEIGHTS, STATE };

tern_matrix tern_attention_matrix(const tern_tensor *x)
{
    return (tern_matrix){.buffer = &x->storage->block->buffer,
                         .at = x->offset,
                         .row = x->stride[x->ndim - 2],
                         .col = x->stride[x->ndim - 1],
                         .batch = {x->ndim > 3 ? x->stride[x->ndim - 4] : 0,
                                   x->ndim > 2 ? x->stride[x->ndim - 3] : 0}};
}

/* Returns a result or a gradient as an operand. Its layout may be (N, T, heads, width), or it may
 * be part i of (N, T, 3, heads, width). */
static tern_matrix result(const tern_tensor *x, const tern_attention_attributes *at, int i)
{
    tern_matrix m = tern_attention_matrix(x);
    bool packed = x->ndim == 5;
    if (!packed && !at->inner)
        return m;
    m.at += packed ? i * x->stride[2] : 0;
    m.row = x->stride[1];
    m.batch[0] = x->stride[0];
    m.batch[1] = x->stride[packed ? 3 : 2];
    return m;
}

static tern_attention describe(const tern_call *call, const tern_attention_block *block,
                               const tern_tensor *state)
{
    const tern_attention_attributes *at = call->attributes;
    const tern_tensor *q = call->in[Q], *v = call->in[V];
    tern_attention a = {.dtype = q->dtype,
                        .block = block,
                        .width = q->shape[q->ndim - 1],
                        .value_width = v->shape[v->ndim - 1],
                        .scale = at->scale,
                        .softcap = at->softcap,
                        .q = tern_attention_matrix(q),
                        .k = tern_attention_matrix(call->in[K]),
                        .v = tern_attention_matrix(v)};
    if (call->in[MASK])
        a.mask = tern_arg_in(call->in[MASK]);
    if (at->dropout > 0)
        a.state = tern_arg_in(state);
    a.kept = at->dropout < 1 ? 1 / (1 - at->dropout) : 0;
    return a;
}

tern_status tern_attention_vendor_forward(tern_call *call, const tern_attention_block *block,
                                          bool *taken)
{
    const tern_attention_attributes *at = call->attributes;
    *taken = false;
    if (call->out[WEIGHTS]->numel > 0)
        return TERN_OK;
    tern_attention a = describe(call, block, call->out[STATE]);
    a.trains = tern_must_record(call->op, call->in, call->n_in);
    a.out = result(call->out[OUT], at, 0);
    a.sums = tern_arg_out(call->out[SUMS]);
    return tern_launch_attention(call->place, &a, taken);
}

tern_status tern_attention_vendor_gradient(tern_call *call, const tern_attention_block *block,
                                           bool *taken)
{
    const tern_attention_attributes *at = call->attributes;
    tern_matrix to[3];
    for (int i = Q; i <= V; i++)
        to[i] = result(call->out[call->n_out > 1 ? i : 0], at, i);
    tern_attention a = describe(call, block, call->in[HAD + STATE]);
    a.gradient = true;
    a.deterministic = tern_are_deterministic_algorithms_enabled();
    a.out = tern_attention_matrix(call->in[HAD + OUT]);
    a.dout = tern_attention_matrix(call->in[DOUT]);
    a.dq = to[Q], a.dk = to[K], a.dv = to[V];
    a.sums = tern_arg_in(call->in[HAD + SUMS]);
    return tern_launch_attention(call->place, &a, taken);
}
