/* matmul.c -- matmul, mm, bmm and linear: which product each of them is. */
#include "ops/product.h"
#include <tern/ops.h>

tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b)
{
    tern_product p = {.alpha = 1};
    if (a && b && (a->ndim == 0 || b->ndim == 0))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_matmul: both arguments to matmul need to be at least 1D, but "
                              "they are %dD and %dD",
                              a->ndim, b->ndim);
    p.insert[0] = a && a->ndim == 1 ? TERN_ROW : 0;
    p.insert[1] = b && b->ndim == 1 ? TERN_COLUMN : 0;
    p.drop = p.insert[0] | p.insert[1];
    return tern_product_of(&p, a, b);
}

tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b)
{
    if (a && b && (a->ndim != 2 || b->ndim != 2))
        return tern_fail_null(TERN_ERR_SHAPE, "tern_mm: %s must be a matrix (shape %s)",
                              a->ndim != 2 ? "self" : "mat2",
                              TERN_TENSOR_TEXT(a->ndim != 2 ? a : b));
    return tern_product_of(&(tern_product){.alpha = 1}, a, b);
}

tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b)
{
    if (a && b && (a->ndim != 3 || b->ndim != 3))
        return tern_fail_null(TERN_ERR_SHAPE, "tern_bmm: %s must be a 3D tensor (shape %s)",
                              a->ndim != 3 ? "batch1" : "batch2",
                              TERN_TENSOR_TEXT(a->ndim != 3 ? a : b));
    if (a && b && (a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1]))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_bmm: Expected size for first two dimensions of batch2 tensor to "
            "be: [%lld, %lld] but got: [%lld, %lld].",
            (long long)a->shape[0], (long long)a->shape[2], (long long)b->shape[0],
            (long long)b->shape[1]);
    return tern_product_of(&(tern_product){.alpha = 1}, a, b);
}

/* ---- linear: x weight^T + bias as one product -------------------------------------------- */

static tern_product linear_product(int x_ndim, int weight_ndim)
{
    tern_product p = {.alpha = 1, .transpose = {false, true}};
    p.insert[0] = x_ndim == 1 ? TERN_ROW : 0;
    p.insert[1] = weight_ndim == 1 ? TERN_ROW : 0;
    p.drop = p.insert[0] | (weight_ndim == 1 ? TERN_COLUMN : 0);
    return p;
}

static tern_status refuse_bias(const tern_tensor *bias, int64_t columns, const tern_shape *shape)
{
    return tern_fail(TERN_ERR_SHAPE,
                     "tern_linear: The expanded size of the tensor (%lld) must match the existing "
                     "size (%lld) at non-singleton dimension 1.  Target sizes: %s.  Tensor sizes: "
                     "%s (bias)",
                     (long long)columns, (long long)bias->numel, TERN_SHAPE_TEXT(shape),
                     TERN_TENSOR_TEXT(bias));
}

static tern_status linear_infer(tern_call *call)
{
    tern_tensor *x = call->in[0], *weight = call->in[1], *bias = call->in[2];
    if (x->ndim == 0 || weight->ndim == 0)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_linear: both arguments to linear need to be at least 1D, but they "
                         "are %dD and %dD",
                         x->ndim, weight->ndim);
    if (weight->ndim > 2)
        return tern_fail(
            TERN_ERR_SHAPE,
            "tern_linear: weight is a tensor with <= 2 dimensions, but this one is %dD",
            weight->ndim);
    tern_product p = linear_product(x->ndim, weight->ndim);
    call->n_out = 1;
    TERN_TRY(tern_product_infer(&p, x, weight, &call->result[0], "linear"));
    if (!bias)
        return TERN_OK;
    if (bias->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_linear: input and bias must have the same dtype, but got %s and %s",
                         tern_dtype_name(x->dtype), tern_dtype_name(bias->dtype));
    int64_t columns = weight->ndim == 1 ? 1 : weight->shape[0];
    if (bias->ndim > 1 || (bias->numel != columns && bias->numel != 1))
        return refuse_bias(bias, columns, &call->result[0].shape);
    return TERN_OK;
}

static tern_status linear_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *weight = call->in[1], *bias = call->in[2], *copy = NULL;
    tern_product p = linear_product(x->ndim, weight->ndim);
    tern_shape columns = {1, {weight->ndim == 1 ? 1 : weight->shape[0]}};
    tern_status status = TERN_OK;
    if (bias && (!bias->contiguous || bias->numel != columns.dims[0])) {
        copy = tern_tensor_new(&columns, bias->dtype, call->place, "tern_linear");
        status = copy ? tern_hook_copy(copy, bias) : tern_last_status();
        bias = copy;
    }
    if (status == TERN_OK)
        status = tern_product_run(&p, x, weight, bias, call->out[0]);
    tern_release(copy);
    return status;
}

/* The gradient of bias is dy: the engine sums it to the bias's shape. */
static tern_status linear_backward(tern_gradient *g)
{
    tern_product p = linear_product(g->in_shape[0].ndim, g->in_shape[1].ndim);
    tern_tensor *dy = g->dout[0];
    if (g->needs[0] && !(g->din[0] = tern_product_dx(&p, dy, g->in[1])))
        return tern_last_status();
    if (g->needs[1] && !(g->din[1] = tern_product_dy(&p, dy, g->in[0], g->in_shape[1].ndim)))
        return tern_last_status();
    g->din[2] = g->n_in > 2 && g->needs[2] ? dy : NULL;
    return TERN_OK;
}

static uint32_t linear_saves(const tern_call *call)
{
    return (call->in[1]->requires_grad ? TERN_SAVE_IN(0) : 0) |
           (call->in[0]->requires_grad ? TERN_SAVE_IN(1) : 0);
}

static const tern_op linear_op = {
    .name = "linear",
    .optional = 1u << 2,
    .choose_saves = linear_saves,
    .infer = linear_infer,
    .forward = linear_forward,
    .backward = linear_backward,
};

tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias)
{
    return tern_apply(&linear_op, (tern_tensor *[]){x, weight, bias}, 3, NULL, 0);
}
