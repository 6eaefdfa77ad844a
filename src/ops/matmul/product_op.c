/* product_op.c -- a matrix product as an operation, and its gradients. */
#include "ops/matmul/matrix_product.h"
#include "tensor/fuse/fuse.h"

/* The differentiable operation C = alpha op(x) op(y). */
static tern_status product_infer(tern_call *call)
{
    call->n_out = 1;
    return tern_product_infer(call->attributes, call->in[0], call->in[1], &call->result[0],
                              call->op->name);
}

static tern_status product_forward(tern_call *call)
{
    return tern_product_run(call->attributes, call->in[0], call->in[1], NULL, call->out[0]);
}

/* dA = dC B^T and dB = A^T dC. */
static tern_status product_backward(tern_gradient *g)
{
    const tern_product *p = g->attributes;
    if (g->needs[0] && !(g->din[0] = tern_product_dx(p, g->dout[0], g->in[1])))
        return tern_last_status();
    if (g->needs[1] && !(g->din[1] = tern_product_dy(p, g->dout[0], g->in[0], g->in_shape[1].ndim,
                                                     *tern_grad_outs(g, 1))))
        return tern_last_status();
    return TERN_OK;
}

/* Saves each input only if the gradient of the other input is needed. */
static uint32_t product_saves(const tern_call *call)
{
    return (call->in[1]->requires_grad ? TERN_SAVE_IN(0) : 0) |
           (call->in[0]->requires_grad ? TERN_SAVE_IN(1) : 0);
}

static const tern_op product_op = {
    .name = "matmul",
    .names = TERN_PRODUCT_NAMES,
    .cast = TERN_CAST_LOWER,
    .choose_saves = product_saves,
    .fusion = &(const tern_fusion){.grad_outs = 1u << 1},
    .infer = product_infer,
    .forward = product_forward,
    .backward = product_backward,
};

static tern_tensor *product_into(const tern_product *p, tern_tensor *x, tern_tensor *y,
                                 tern_tensor *grad_out)
{
    tern_tensor *out = NULL;
    tern_apply_into(&product_op, (tern_tensor *[]){x, y}, 2, p, sizeof *p, &out, 1, &grad_out);
    return out;
}

tern_tensor *tern_product_of(const tern_product *p, tern_tensor *x, tern_tensor *y)
{
    return product_into(p, x, y, NULL);
}

/* For C = A B, dA = dC B^T. If A is a transposed x, dx = dA^T = B dC^T, so that the gradient need
 * not be transposed afterwards. */
tern_tensor *tern_product_dx(const tern_product *p, tern_tensor *dout, tern_tensor *y)
{
    tern_product d = {.alpha = p->alpha, .drop = p->insert[0]};
    int out = p->transpose[0] ? 1 : 0;
    d.insert[out] = p->drop;
    d.insert[!out] = p->insert[1];
    d.transpose[out] = out;
    d.transpose[!out] = out ? p->transpose[1] : !p->transpose[1];
    return out ? tern_product_of(&d, y, dout) : tern_product_of(&d, dout, y);
}

/* dB = A^T dC, or dy = dC^T A for a transposed y. If x is a batch and y a single matrix, the sum
 * over the batch is part of the product, not a reduction after it. */
tern_tensor *tern_product_dy(const tern_product *p, tern_tensor *dout, tern_tensor *x, int y_ndim,
                             tern_tensor *grad_out)
{
    tern_product d = {.alpha = p->alpha, .drop = p->insert[1]};
    int out = p->transpose[1] ? 0 : 1;
    d.insert[out] = p->drop;
    d.insert[!out] = p->insert[0];
    d.transpose[out] = !out;
    d.transpose[!out] = out ? !p->transpose[0] : p->transpose[0];
    bool x_stack = x->ndim + tern_dims_in(p->insert[0]) > 2,
         y_stack = y_ndim + tern_dims_in(p->insert[1]) > 2;
    d.sum = !p->sum && !p->transpose[0] && x_stack && !y_stack;
    return out ? product_into(&d, x, dout, grad_out) : product_into(&d, dout, x, grad_out);
}
