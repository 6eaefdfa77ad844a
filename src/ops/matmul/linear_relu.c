/* linear_relu.c -- two linear layers with relu or tanh gelu between them, for devices whose gemm
 * has these functions and their gradients as epilogues. The operation is h = relu(x w1' + b1), y =
 * h w2' + b2. The input of relu is visible to no one, so it is not stored. gelu's gradient needs
 * gelu's input, which the first product stores in NOTED. relu's gradient uses h: the mask that
 * cuBLASLt stores (RELU_AUX) has 1 where the sum was 0, and so a gradient there (DRELU), where
 * PyTorch's is 0. */
#include "base/profile.h"
#include "ops/matmul/matrix_product.h"
#include "device/device.h"
#include "ops/elementwise/elementwise.h"
#include "tensor/fuse/chain.h"
#include "tensor/fuse/fuse.h"
#include "tensor/recompute.h"
#include <tern/autograd.h>
#include <tern/ops.h>

enum { X, W1, B1, W2, B2, INPUTS };
enum { Y, H, NOTED }; /* NOTED: gelu's input; not an output of relu */
enum { RELU, GELU };  /* variants of the operations; gelu is tanh gelu */

static const tern_product product = {.alpha = 1, .transpose = {false, true}};

static int64_t last(const tern_tensor *x)
{
    return x->shape[x->ndim - 1];
}

static tern_matrix dense(const tern_tensor *x, int64_t columns, bool transposed)
{
    return (tern_matrix){.buffer = &x->storage->block->buffer,
                         .at = x->offset,
                         .row = transposed ? 1 : columns,
                         .col = transposed ? columns : 1};
}

/* Returns the product of a (rows, k) and b (k, n), or (n, k) if `transposed`. The caller sets the
 * result and other outputs. */
static tern_gemm times(const tern_tensor *a, const tern_tensor *b, int64_t n, bool transposed)
{
    int64_t k = last(a);
    return (tern_gemm){.dtype = a->dtype,
                       .m = a->numel / k,
                       .n = n,
                       .k = k,
                       .count = {1, 1},
                       .alpha = 1,
                       .a = dense(a, k, false),
                       .b = dense(b, transposed ? k : n, transposed)};
}

static tern_gemm first(tern_tensor *const *in, int variant)
{
    tern_gemm g = times(in[X], in[W1], in[W1]->shape[0], true);
    g.bias = &in[B1]->storage->block->buffer;
    g.bias_at = in[B1]->offset;
    g.epilogue = variant == GELU ? TERN_GEMM_GELU : TERN_GEMM_RELU;
    return g;
}

/* Returns the product dh = dy w2, multiplied by gelu's derivative; its column sums are db1. */
static tern_gemm sloped(tern_tensor *dy, tern_tensor *w2)
{
    tern_gemm g = times(dy, w2, last(w2), false);
    g.epilogue = TERN_GEMM_GELU_GRADIENT;
    return g;
}

/* Sets *fit to whether the device's gemm takes g. The buffer of `like` stands for the results,
 * which are newly allocated with maximal alignment. */
static tern_status fits(tern_gemm g, const tern_tensor *like, bool *fit)
{
    g.c = (tern_matrix){.buffer = &like->storage->block->buffer, .row = g.n, .col = 1};
    g.mask = g.epilogue == TERN_GEMM_RELU ? NULL : g.c.buffer;
    g.bias_grad = g.epilogue == TERN_GEMM_GELU_GRADIENT ? g.c.buffer : NULL;
    return tern_gemm_epilogue_fits(like->storage->place, &g, fit);
}

/* ---- each layer as a range of a profile ------------------------------------------------------ */

typedef struct linears_attributes {
    tern_module_ref layer[2]; /* the two modules, which may have been freed */
} linears_attributes;

typedef struct range {
    int64_t range;
    tern_module_ref outer;
} range;

/* Begins the range of layer i, so that profiles and errors show the layer's kernels under its
 * module. */
static range begin_layer(tern_range_kind kind, const void *attributes, int i)
{
    const tern_module_ref *layer = &((const linears_attributes *)attributes)->layer[i];
    tern_module_ref *innermost = &tern_thread.running.modules.innermost;
    range r = {.outer = *innermost};
    if (layer->module)
        *innermost = *layer;
    r.range = tern_range_begin(kind, "linear", 0);
    return r;
}

static void end_layer(range r)
{
    tern_range_end(r.range);
    tern_thread.running.modules.innermost = r.outer;
}

/* Launches the product of layer i, whose inputs are xwb (x, w and b). */
static tern_status run_layer(const tern_call *call, int i, const tern_gemm *g, tern_tensor *y,
                             tern_tensor *const *xwb)
{
    static const tern_op layer = {.name = "linear"};
    const range r = begin_layer(TERN_RANGE_OPERATION, call->attributes, i);
    tern_status status = tern_launch_gemm(call->place, g);
    if (r.range && status == TERN_OK)
        tern_from_profiler->call(
            r.range, &(tern_call){.op = &layer, .in = xwb, .n_in = 3, .n_out = 1, .out = {y}});
    end_layer(r);
    return status;
}

/* ---- forward: y, h, and NOTED for the backward pass ------------------------------------------ */

static tern_shape with_last(const tern_tensor *x, int64_t columns)
{
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim - 1] = columns;
    return shape;
}

static tern_status infer(tern_call *call)
{
    tern_tensor *const *in = call->in;
    int64_t hidden = in[W1]->shape[0];
    call->n_out = call->op->variant == RELU ? 2 : 3;
    call->result[Y] =
        (tern_result){.dtype = in[X]->dtype, .shape = with_last(in[X], in[W2]->shape[0])};
    call->result[H] = (tern_result){.dtype = in[X]->dtype, .shape = with_last(in[X], hidden)};
    call->result[NOTED] =
        (tern_result){.dtype = in[X]->dtype, .shape = with_last(in[X], tern_gemm_gelu_row(hidden))};
    return TERN_OK;
}

static tern_status forward(tern_call *call)
{
    tern_tensor *const *in = call->in, *const *out = call->out;
    tern_gemm g = first(in, call->op->variant),
              second = times(out[H], in[W2], in[W2]->shape[0], true);
    g.c = dense(out[H], g.n, false);
    if (call->op->variant != RELU) {
        g.mask = &out[NOTED]->storage->block->buffer;
        g.mask_at = out[NOTED]->offset;
    }
    second.c = dense(out[Y], second.n, false);
    second.bias = &in[B2]->storage->block->buffer;
    second.bias_at = in[B2]->offset;
    TERN_TRY(run_layer(call, 0, &g, out[H], in));
    return run_layer(call, 1, &second, out[Y], (tern_tensor *[]){out[H], in[W2], in[B2]});
}

/* ---- backward ------------------------------------------------------------------------------- */

/* The backward operation of gelu. Inputs dy, w2 and NOTED; outputs dh and db1. */
static tern_status sloped_infer(tern_call *call)
{
    const tern_tensor *dy = call->in[0];
    int64_t hidden = last(call->in[1]);
    call->n_out = 2;
    call->result[0] = (tern_result){.dtype = dy->dtype, .shape = with_last(dy, hidden)};
    call->result[1] = (tern_result){.dtype = dy->dtype, .shape = {1, {hidden}}};
    return TERN_OK;
}

static tern_status sloped_forward(tern_call *call)
{
    const tern_tensor *noted = call->in[2], *sums = call->out[1];
    tern_gemm g = sloped(call->in[0], call->in[1]);
    g.c = dense(call->out[0], g.n, false);
    g.mask = &noted->storage->block->buffer;
    g.mask_at = noted->offset;
    g.bias_grad = &sums->storage->block->buffer;
    g.bias_grad_at = sums->offset;
    return tern_launch_gemm(call->place, &g);
}

static const tern_op sloped_op = {.name = "linear_gelu_gradient",
                                  .not_differentiable = true,
                                  .infer = sloped_infer,
                                  .forward = sloped_forward};

/* Returns dh from the gradient of h if no product computed it: by h for relu, by the stored input
 * for gelu. */
static tern_tensor *through_alone(const tern_gradient *g, tern_tensor *dh)
{
    if (!dh || g->op->variant == RELU)
        return dh ? tern_relu_dx(dh, g->out[H]) : NULL;
    tern_tensor *x = tern_narrow(g->out[NOTED], -1, 0, last(dh));
    return x ? tern_gelu_dx(dh, x, true) : NULL;
}

/* Sets dh_db[0] to dh. For gelu, if one product can compute both, also sets dh_db[1] to db1;
 * otherwise the product that computes dw1 computes db1 too. */
static tern_status through(const tern_gradient *g, tern_tensor *dy, tern_tensor *dh_db[2])
{
    bool fit = false;
    if (g->op->variant != RELU)
        TERN_TRY(fits(sloped(dy, g->in[W2]), dy, &fit));
    if (fit)
        return tern_apply_all(&sloped_op, (tern_tensor *[]){dy, g->in[W2], g->out[NOTED]}, 3, NULL,
                              0, dh_db, 2);
    dh_db[0] = through_alone(g, tern_product_dx(&product, dy, g->in[W2]));
    return dh_db[0] ? TERN_OK : tern_last_status();
}

/* The composed form, for second derivatives. */
static tern_status compose(const tern_gradient *g, tern_tensor *const *in, tern_tensor **out)
{
    tern_tensor *h = tern_linear(in[X], in[W1], in[B1]);
    h = g->op->variant == GELU ? tern_gelu_tanh(h) : tern_relu(h);
    out[Y] = tern_linear(h, in[W2], in[B2]);
    return out[Y] ? TERN_OK : tern_last_status();
}

/* Computes the gradients of the second layer, and dh. */
static tern_status back_to_h(tern_gradient *g, tern_tensor *dh[2])
{
    tern_tensor *dy = tern_contiguous(g->dout[Y]), *dw2[2];
    if (!dy)
        return tern_last_status();
    TERN_TRY(tern_linear_gradients(dy, g->out[H], tern_takes_f32_grad(g, W2), dw2,
                                   tern_grad_outs(g, W2)));
    TERN_TRY(through(g, dy, dh));
    g->din[W2] = dw2[0];
    g->din[B2] = dw2[1];
    return TERN_OK;
}

/* Computes the gradients of the first layer from dh. */
static tern_status back_to_x(tern_gradient *g, tern_tensor *const dh[2])
{
    tern_tensor *dw1[2];
    g->din[B1] = dh[1];
    if (g->needs[X] && !(g->din[X] = tern_product_dx(&product, dh[0], g->in[W1])))
        return tern_last_status();
    if (dh[1]) {
        g->din[W1] = tern_product_dy(&product, dh[0], g->in[X], 2, *tern_grad_outs(g, W1));
        return g->din[W1] ? TERN_OK : tern_last_status();
    }
    TERN_TRY(tern_linear_gradients(dh[0], g->in[X], tern_takes_f32_grad(g, W1), dw1,
                                   tern_grad_outs(g, W1)));
    g->din[W1] = dw1[0];
    g->din[B1] = dw1[1];
    return TERN_OK;
}

static const tern_fusion linears_fusion = {.grad_outs = 1u << W1 | 1u << B1 | 1u << W2 | 1u << B2};

static tern_status backward(tern_gradient *g)
{
    tern_tensor *dh[2] = {NULL, NULL};
    if (g->recorded)
        return tern_recompute(g, 1, compose);
    range r = begin_layer(TERN_RANGE_BACKWARD, g->attributes, 1);
    tern_status status = back_to_h(g, dh);
    end_layer(r);
    if (status != TERN_OK)
        return status;
    r = begin_layer(TERN_RANGE_BACKWARD, g->attributes, 0);
    status = back_to_x(g, dh);
    end_layer(r);
    return status;
}

#define LINEARS(NAME, VARIANT, SAVES)                                                              \
    {                                                                                              \
        .name = NAME, .variant = VARIANT, .cast = TERN_CAST_LOWER,                                 \
        .saves = TERN_SAVE_IN(X) | TERN_SAVE_IN(W1) | TERN_SAVE_IN(B1) | TERN_SAVE_IN(W2) |        \
                 TERN_SAVE_IN(B2) | TERN_SAVE_OUT(H) | (SAVES),                                    \
        .fusion = &linears_fusion, .no_grad_out = 1u << H | 1u << NOTED, .infer = infer,           \
        .forward = forward, .backward = backward                                                   \
    }
static const tern_op ops[] = {LINEARS("linear_relu_linear", RELU, 0),
                              LINEARS("linear_gelu_linear", GELU, TERN_SAVE_OUT(NOTED))};

/* ---- which inputs the operation takes -------------------------------------------------------- */

/* gelu is taken for half precision only: the accuracy of the device's tanh is not documented. */
static bool takes(int variant, tern_dtype dtype)
{
    return variant == RELU || dtype != TERN_F32;
}

/* Returns whether the tensors are contiguous, on one device, of floating point dtypes other than
 * float64 and of matching shapes. Either all parameters require a gradient, or none does and
 * neither does x. */
static bool go_together(tern_tensor *const *in)
{
    const tern_tensor *x = in[X];
    if (x->ndim < 2 || x->numel == 0 || in[W1]->ndim != 2 || in[W2]->ndim != 2)
        return false;
    bool needs = tern_requires_grad(in[W1]);
    for (int i = X; i < INPUTS; i++)
        if (!in[i]->contiguous || in[i]->storage->place != x->storage->place ||
            !tern_dtype_is_floating_point(in[i]->dtype) || in[i]->dtype == TERN_F64 ||
            (i != X && tern_requires_grad(in[i]) != needs))
            return false;
    return last(x) == last(in[W1]) && in[W1]->shape[0] == last(in[W2]) && in[B1]->ndim == 1 &&
           in[B2]->ndim == 1 && in[B1]->numel == in[W1]->shape[0] && in[W1]->numel > 0 &&
           in[B2]->numel == in[W2]->shape[0] && in[W2]->numel > 0 &&
           (needs || !tern_requires_grad(x));
}

static tern_tensor *linears(tern_tensor **from, const tern_stage *stages)
{
    const tern_op *op = &ops[stages[1].kind->variant];
    tern_tensor *x = *from, *out[3];
    tern_tensor *in[INPUTS] = {x, stages[0].weight, stages[0].bias, stages[2].weight,
                               stages[2].bias};
    bool fit = in[X] && in[W1] && in[B1] && in[W2] && in[B2] && go_together(in);
    if (!fit)
        return NULL;
    TERN_CAST_FOR(op, &in[X], &in[W1], &in[B1], &in[W2], &in[B2]);
    for (int i = W1; i < INPUTS; i++)
        fit = fit && in[i] && in[X] && in[i]->dtype == in[X]->dtype;
    *from = in[X] ? in[X] : x; /* cast once, also for the caller if this function returns NULL */
    if (!fit || !takes(op->variant, in[X]->dtype) ||
        fits(first(in, op->variant), in[X], &fit) != TERN_OK || !fit)
        return NULL;
    const linears_attributes at = {{stages[0].ref, stages[2].ref}};
    return tern_apply_all(op, in, INPUTS, &at, sizeof at, out, op->variant == RELU ? 2 : 3) ==
                   TERN_OK
               ? out[Y]
               : NULL;
}

const tern_stage_kind tern_stage_linear = {.with_epilogue = linears};
const tern_stage_kind tern_stage_relu = {.is_epilogue = true, .variant = RELU};
const tern_stage_kind tern_stage_gelu_tanh = {.is_epilogue = true, .variant = GELU};
