/* linear.c -- tern_linear, x weight^T + bias as one product, and its gradients. */
#include "ops/matmul/matrix_product.h"
#include "ops/copy/copy.h"
#include "ops/matmul/padded.h"
#include "ops/reduce/reduction.h"
#include "tensor/fuse/fuse.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <tern/ops.h>

/* Returns the product x weight^T. The weight is transposed through its strides. A 1-D x is a row; a
 * 1-D weight (in) gives one output, whose dim is dropped. */
static tern_product linear_product(int x_ndim, int weight_ndim)
{
    tern_product p = {.alpha = 1, .transpose = {false, true}};
    p.insert[0] = x_ndim == 1 ? TERN_AS_ROW : 0;
    p.insert[1] = weight_ndim == 1 ? TERN_AS_ROW : 0;
    p.drop = p.insert[0] | (weight_ndim == 1 ? TERN_AS_COLUMN : 0);
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

static tern_status check_bias_type(const tern_tensor *x, const tern_tensor *bias)
{
    if (bias->dtype == x->dtype)
        return TERN_OK;
    return tern_fail(TERN_ERR_DTYPE,
                     "tern_linear: input and bias must have the same dtype, but got %s and %s",
                     tern_dtype_name(x->dtype), tern_dtype_name(bias->dtype));
}

/* Returns whether to allocate the result with rows that begin at multiples which suit the device.
 * Matrix products need no copy of such rows, and neither does a loss that reads rows. */
static bool is_padded(const tern_call *call)
{
    const tern_tensor *x = call->in[0], *weight = call->in[1];
    if (x->ndim < 2 || weight->ndim < 2 || x->numel == 0)
        return false;
    const int64_t k = weight->shape[1], n = weight->shape[0];
    const tern_gemm g = {.dtype = x->dtype, .m = x->numel / k, .n = n, .k = k};
    return n != tern_up(n) && tern_place_wants_multiples(call->place, &g);
}

/* Infers the result from x (..., in), weight (out, in) or (in), and bias (out), a single number or
 * NULL: y is (..., out) or (...). */
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
    call->padded = is_padded(call);
    if (!bias)
        return TERN_OK;
    TERN_TRY(check_bias_type(x, bias));
    int64_t columns = weight->ndim == 1 ? 1 : weight->shape[0];
    if (bias->numel != columns && bias->numel != 1)
        return refuse_bias(bias, columns, &call->result[0].shape);
    return TERN_OK;
}

/* Computes y. gemm adds the bias to each row before it rounds. gemm takes a dense bias of `out`
 * numbers: a strided bias or a single number is copied to that form. */
static tern_status linear_forward(tern_call *call)
{
    tern_tensor *x = call->in[0], *weight = call->in[1], *bias = call->in[2], *copy = NULL;
    tern_product p = linear_product(x->ndim, weight->ndim);
    tern_shape columns = {1, {weight->ndim == 1 ? 1 : weight->shape[0]}};
    tern_status status = TERN_OK;
    if (bias && (!bias->contiguous || bias->numel != columns.dims[0])) {
        copy = tern_tensor_new(&columns, bias->dtype, call->place, "tern_linear");
        status = copy ? tern_copy_elements(copy, bias) : tern_last_status();
        bias = copy;
    }
    if (status == TERN_OK)
        status = tern_product_run(&p, x, weight, bias, call->out[0]);
    tern_release(copy);
    return status;
}

/* ---- backward: the gradients of weight and bias in one launch, if possible ---------------- */

enum { SMALL_PRODUCT = 4096 }; /* sizes below it cost less than a second launch */

static bool is_skinny(const tern_tensor *dy, const tern_tensor *x)
{
    return dy->contiguous && dy->numel < SMALL_PRODUCT &&
           dy->numel * x->shape[x->ndim - 1] < SMALL_PRODUCT;
}

/* The gradients that one launch computes: dW, and db if with_bias. wide: results are float32,
 * inputs are half precision. */
typedef struct gradients {
    bool with_bias, wide;
} gradients;

/* Returns whether the product rounds the row length of dy, and so the number of rows of dW, up to a
 * multiple: dy has zero padding there, and dW padded memory. */
static bool rounds_up(const tern_tensor *dy, const tern_tensor *x)
{
    const int64_t in = x->shape[x->ndim - 1];
    return tern_is_zero_padded(dy) && in == tern_up(in);
}

/* dW = dy^T x and db = the sum of the rows of dy. The inputs are dy (..., out) and x (..., in). x
 * is dense, dy is dense or padded. */
static tern_status gradient_infer(tern_call *call)
{
    const gradients *what = call->attributes;
    const tern_tensor *dy = call->in[0], *x = call->in[1];
    const tern_dtype dtype = what->wide ? TERN_F32 : x->dtype;
    int64_t out = dy->shape[dy->ndim - 1], in = x->shape[x->ndim - 1];
    call->n_out = what->with_bias ? 2 : 1;
    call->result[0] = (tern_result){.dtype = dtype, .shape = {2, {out, in}}};
    call->result[1] = (tern_result){.dtype = dtype, .shape = {1, {out}}};
    call->padded = rounds_up(dy, x) ? 3 : 0;
    return TERN_OK;
}

/* Returns dW as a product, whose epilogue can also compute db, the row sums of dy^T. */
static tern_gemm product_of(const tern_tensor *dy, const tern_tensor *x, gradients what)
{
    int64_t out = dy->shape[dy->ndim - 1], in = x->shape[x->ndim - 1];
    int64_t row = dy->ndim > 1 && !dy->contiguous ? dy->stride[dy->ndim - 2] : out;
    return (tern_gemm){
        .dtype = x->dtype,
        .m = rounds_up(dy, x) ? tern_up(out) : out,
        .n = in,
        .k = dy->numel / out,
        .count = {1, 1},
        .alpha = 1,
        .a = {.buffer = &dy->storage->block->buffer, .at = dy->offset, .row = 1, .col = row},
        .b = {.buffer = &x->storage->block->buffer, .at = x->offset, .row = in, .col = 1},
        .wide = what.wide};
}

/* Sets *fits to whether the device's product can compute the gradients. The results are newly
 * allocated with maximal alignment, so the beginning of x's buffer stands for them here. */
static tern_status takes(const tern_tensor *dy, const tern_tensor *x, gradients what, bool *fits)
{
    tern_gemm g = product_of(dy, x, what);
    g.c = (tern_matrix){.buffer = g.b.buffer, .row = g.n, .col = 1};
    g.bias_grad = what.with_bias ? g.b.buffer : NULL;
    return tern_gemm_epilogue_fits(x->storage->place, &g, fits);
}

static tern_status gradient_by_product(tern_call *call)
{
    const gradients *what = call->attributes;
    tern_gemm g = product_of(call->in[0], call->in[1], *what);
    tern_tensor *dw = call->out[0], *db = what->with_bias ? call->out[1] : NULL;
    g.c = (tern_matrix){
        .buffer = &dw->storage->block->buffer, .at = dw->offset, .row = g.n, .col = 1};
    g.bias_grad = db ? &db->storage->block->buffer : NULL;
    g.bias_grad_at = db ? db->offset : 0;
    return tern_launch_gemm(call->place, &g);
}

/* Each work-group computes a tile of a row of dW in one pass over the rows of dy and x. The
 * work-group of the first tile of row i also computes db[i]. */
static tern_status gradient_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"matmul", "linear_gradient"};
    const gradients *what = call->attributes;
    const tern_tensor *dy = call->in[0], *x = call->in[1];
    if (what->wide || !is_skinny(dy, x))
        return gradient_by_product(call);
    int64_t out = call->result[0].shape.dims[0], in = call->result[0].shape.dims[1];
    int64_t tiles = (in + TERN_LINEAR_TILE - 1) / TERN_LINEAR_TILE;
    return TERN_LAUNCH(
        call->place, &kernel, x->dtype, tern_groups(out * tiles, dy->numel / out * in / tiles),
        tern_arg_out(call->out[0]), tern_arg_out(call->out[1]), tern_arg_in(dy), tern_arg_in(x),
        tern_arg_i64(dy->numel / out), tern_arg_i64(out), tern_arg_i64(in));
}

static const tern_op gradient_op = {.name = "linear_gradient",
                                    .not_differentiable = true,
                                    .infer = gradient_infer,
                                    .forward = gradient_forward};

/* Sets *what to the gradients that one launch can compute: of the weight and, if with_bias, of the
 * bias. One launch suffices if they are small, if the device's product has an epilogue for the bias
 * gradient, or if it writes float32, which `wide` allows. Sets *fits to whether there are any. */
static tern_status choose(const tern_tensor *dy, const tern_tensor *x, bool with_bias, bool wide,
                          gradients *what, bool *fits)
{
    *what = (gradients){with_bias, false};
    *fits = with_bias && is_skinny(dy, x);
    for (int left = wide ? 2 : 0; left > 0 && !*fits; left--) {
        *what = (gradients){with_bias && left == 2, true};
        if (left == 2 || with_bias)
            TERN_TRY(takes(dy, x, *what, fits));
    }
    if (*fits || !with_bias)
        return TERN_OK;
    *what = (gradients){true, false};
    return takes(dy, x, *what, fits);
}

static tern_status make(tern_tensor *dy, tern_tensor *x, gradients what, tern_tensor **dw_db,
                        tern_tensor *const *grad_out)
{
    return tern_apply_into(&gradient_op, (tern_tensor *[]){dy, x}, 2, &what, sizeof what, dw_db,
                           what.with_bias ? 2 : 1, grad_out);
}

tern_status tern_linear_gradients(tern_tensor *dy, tern_tensor *x, bool wide, tern_tensor *dw_db[2],
                                  tern_tensor *const grad_out[2])
{
    tern_product p = linear_product(x->ndim, 2);
    gradients what;
    bool fits;
    dw_db[0] = dw_db[1] = NULL;
    TERN_TRY(choose(dy, x, true, wide, &what, &fits));
    if (fits)
        TERN_TRY(make(dy, x, what, dw_db, grad_out));
    tern_shape columns = {1, {dy->shape[dy->ndim - 1]}};
    if (!dw_db[0])
        dw_db[0] = tern_product_dy(&p, dy, x, 2, grad_out[0]);
    if (!dw_db[1])
        dw_db[1] = tern_sum_to(dy, &columns);
    return dw_db[0] && dw_db[1] ? TERN_OK : tern_last_status();
}

/* Returns whether the rows of x are dense, evenly spaced and do not overlap. */
static bool has_rows(const tern_tensor *x)
{
    const int last = x->ndim - 1;
    bool even = x->contiguous ||
                (last > 0 && x->stride[last] == 1 && x->stride[last - 1] >= x->shape[last]);
    for (int d = last - 1; d > 0 && even && !x->contiguous; d--)
        even = x->stride[d - 1] == x->stride[d] * x->shape[d];
    return even;
}

/* Returns whether the gradient of the weight is one product and is not differentiated again. */
static bool has_one_product(const tern_gradient *g)
{
    const tern_tensor *dy = g->dout[0], *x = g->in[0];
    return !g->recorded && g->needs[1] && g->in_shape[1].ndim == 2 && dy->numel > 0 &&
           has_rows(dy) && (tern_is_made_again(g) || (x->numel > 0 && x->contiguous));
}

/* dx = dy W, dW = dy^T x; db is dy, which the engine sums to the shape of the bias. */
static tern_status linear_backward(tern_gradient *g)
{
    tern_product p = linear_product(g->in_shape[0].ndim, g->in_shape[1].ndim);
    tern_tensor *dy = g->dout[0], *given = dy, *x = g->in[0];
    bool at_once = false, bias = g->n_in > 2 && g->needs[2];
    gradients what;
    if (has_one_product(g) && !(dy = tern_product_padded(dy, g->in_shape[1].dims[1])))
        return tern_last_status();
    if (g->needs[0] && !(g->din[0] = tern_product_dx(&p, dy, g->in[1])))
        return tern_last_status();
    g->din[2] = bias ? given : NULL;
    if (g->needs[1] && !(x = tern_made_again(g)))
        return tern_last_status();
    if (has_one_product(g)) {
        bool with_bias =
            bias && g->in_shape[2].ndim == 1 && g->in_shape[2].dims[0] == g->in_shape[1].dims[0];
        TERN_TRY(choose(dy, x, with_bias, tern_takes_f32_grad(g, 1), &what, &at_once));
    }
    if (at_once)
        return make(dy, x, what, &g->din[1], tern_grad_outs(g, 1));
    if (g->needs[1] &&
        !(g->din[1] = tern_product_dy(&p, dy, x, g->in_shape[1].ndim, *tern_grad_outs(g, 1))))
        return tern_last_status();
    return TERN_OK;
}

/* Saves x if dW is needed, and the weight if dx is needed. */
static uint32_t linear_saves(const tern_call *call)
{
    return (call->in[1]->requires_grad ? TERN_SAVE_IN(0) : 0) |
           (call->in[0]->requires_grad ? TERN_SAVE_IN(1) : 0);
}

static const tern_op linear_op = {
    .name = "linear",
    .cast = TERN_CAST_LOWER,
    .optional = 1u << 2,
    .choose_saves = linear_saves,
    .fusion = &(const tern_fusion){.grad_outs = 1u << 1 | 1u << 2, .asks_again = true},
    .infer = linear_infer,
    .forward = linear_forward,
    .backward = linear_backward,
};

/* Returns x weight^T + bias for a bias of more than one dim, expanded to the result's shape, as in
 * PyTorch. */
static tern_tensor *add_expanded(tern_tensor *x, tern_tensor *weight, tern_tensor *bias)
{
    TERN_CAST_FOR(&linear_op, &x, &weight, &bias);
    tern_tensor *y = tern_linear(x, weight, NULL);
    if (!y || check_bias_type(y, bias) != TERN_OK)
        return NULL;
    return tern_add(y, tern_expand(bias, tern_shape_of(y)));
}

/* The bias is part of the one operation, so that it costs no launch of its own. */
tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias)
{
    if (bias && !tern_handle_is_gone(&bias->handle) && bias->ndim > 1) {
        TERN_NAMED_IN_ERRORS;
        return add_expanded(x, weight, bias);
    }
    return tern_apply(&linear_op, (tern_tensor *[]){x, weight, bias}, 3, NULL, 0);
}
