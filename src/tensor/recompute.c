/* recompute.c -- gradients by a backward pass through a composition, inside another pass.
 *
 * The composition reads its inputs through gates, an identity operation for each input. The inner
 * pass ends at the gates, even if two inputs are the same tensor; later passes through the nodes
 * that it recorded continue from the gates to the inputs. */
#include "tensor/node.h"
#include "tensor/recompute.h"

static tern_status gate_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    for (int d = 0; d < x->ndim; d++)
        call->result[0].stride[d] = x->stride[d];
    call->result[0].offset = x->offset;
    return TERN_OK;
}

static tern_status gate_backward(tern_gradient *g)
{
    g->din[0] = g->dout[0];
    return TERN_OK;
}

static const tern_op gate_op = {
    .name = "gate", .view = TERN_VIEW_ONE, .infer = gate_infer, .backward = gate_backward};

enum { MOST = 16 };

static tern_status differentiate(tern_gradient *g, int n_out, tern_tensor *const *out,
                                 tern_tensor *const *gated)
{
    tern_tensor *outputs[MOST], *douts[MOST], *wanted[MOST], *grads[MOST];
    int place[MOST], n = 0, m = 0;
    for (int i = 0; i < n_out; i++)
        if (g->dout[i] && tern_requires_grad(out[i])) {
            outputs[n] = out[i];
            douts[n++] = g->dout[i];
        }
    for (int i = 0; i < g->n_in; i++)
        if (g->needs[i]) {
            place[m] = i;
            wanted[m++] = gated[i];
        }
    if (n == 0 || m == 0)
        return TERN_OK;
    TERN_TRY(tern_gradients_between(outputs, douts, n, wanted, m, grads));
    for (int i = 0; i < m; i++)
        g->din[place[i]] = grads[i];
    return TERN_OK;
}

tern_status tern_recompute(tern_gradient *g, int n_out, tern_composition compose)
{
    tern_tensor *gated[MOST], *out[MOST] = {NULL};
    for (int i = 0; i < g->n_in; i++) {
        gated[i] = g->in[i];
        if (g->in[i] && g->needs[i] && !(gated[i] = tern_apply(&gate_op, &g->in[i], 1, NULL, 0)))
            return tern_last_status();
    }
    TERN_TRY(compose(g, gated, out));
    return differentiate(g, n_out, out, gated);
}
