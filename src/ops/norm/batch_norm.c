/* batch_norm.c -- batch norm of (N, C, *), and its running statistics. */
#include "base/checked.h"
#include "ops/elementwise/elementwise.h"
#include "tensor/fuse/fuse.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <math.h>
#include <string.h>
#include <tern/ops.h>

/* Flags as in norm.cl. */
enum {
    HAS_WEIGHT = 1,
    HAS_BIAS = 2,
    RUNNING_MEAN = 4,
    RUNNING_VAR = 8,
    FIXED = 16,
    COUNTED = 32,
    PIECES = TERN_NORM_PIECES,
    RELU = 128,
    GIVEN = 256,
    TILE = 64,
    COLUMN_TILE = 32
};
/* ENOUGH_GROUPS work-groups keep most devices busy, MANY_GROUPS the largest GPU. Channels are cut
 * into parts of at least PART_WORK elements if there are fewer work-groups, but not into fewer than
 * LEAST_PARTS parts, which are not worth a second launch. */
enum { ENOUGH_GROUPS = 64, MANY_GROUPS = 384, PART_WORK = 16384, LEAST_PARTS = 4 };
/* Inputs of the operation, and its optional output: RECTIFIED is relu(y), if relu is the next
 * operation. */
enum { X, WEIGHT, BIAS, MEAN, VAR, COUNT, INPUTS };
enum { RECTIFIED = 3 };

typedef struct batch_attributes {
    double momentum, eps;
    bool training;
} batch_attributes;

/* Returns the dtype of the statistics: float32 for half precision, whose 11 bits are too few for a
 * sum over a batch. */
static tern_dtype statistics_dtype(tern_dtype dtype)
{
    return dtype == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* x as (n, channels, size). For size 1, which includes channels_last, a work-group computes several
 * neighbouring channels: `columns` on a device with work-groups, `flat` on other devices. Otherwise
 * a work-group computes one channel. If there would be few work-groups, the elements of a channel
 * are cut into parts, one for each work-group (on devices with work-groups, or if size is 1). */
typedef struct batch {
    int64_t n, channels, size, parts, groups;
    bool flat, columns;
} batch;

static batch batch_of(const tern_tensor *x)
{
    batch b = {.n = x->shape[0], .channels = x->ndim > 1 ? x->shape[1] : 0, .size = 1, .parts = 1};
    bool grouped = tern_place_is_grouped(x->storage->place), last = tern_is_channels_last(x);
    for (int d = 2; d < x->ndim; d++)
        *(last ? &b.n : &b.size) = tern_size_mul(last ? b.n : b.size, x->shape[d]);
    if (b.channels == 1) {
        b.size = tern_size_mul(b.n, b.size);
        b.n = 1;
    }
    b.flat = b.size == 1 && !grouped;
    b.columns = b.size == 1 && grouped;
    int64_t tile = b.flat ? TILE : b.columns ? COLUMN_TILE : 1;
    b.groups = (b.channels + tile - 1) / tile;
    if ((grouped || b.flat) && x->numel > 0 &&
        b.groups < (b.columns ? MANY_GROUPS / 2 + 1 : ENOUGH_GROUPS)) {
        int64_t most = MANY_GROUPS / b.groups, each = x->numel / b.groups / PART_WORK;
        b.parts = each < LEAST_PARTS ? 1 : each < most ? each : most;
    }
    b.groups *= b.parts;
    return b;
}

/* Returns memory for the sums of the parts of each channel, two numbers each, needed during a
 * launch. The caller releases it. */
static tern_tensor *pieces_of(const tern_tensor *x, batch b)
{
    return tern_tensor_new(&(tern_shape){2, {b.channels * b.parts, 2}}, statistics_dtype(x->dtype),
                           x->storage->place, "tern_batch_norm");
}

/* ---- forward: outputs y, and mean and 1 / sqrt(var + eps) of each channel ---------------- */

/* Checks that parameters and running statistics have one number for each channel. */
static tern_status check_channels(tern_tensor *const *in, batch b)
{
    static const char *const names[COUNT] = {"input", "weight", "bias", "running_mean",
                                             "running_var"};
    static const int order[] = {MEAN, VAR, WEIGHT, BIAS};
    for (int i = 0; i < 4; i++) {
        const tern_tensor *p = in[order[i]];
        if (p && p->numel != b.channels)
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_batch_norm: %s should contain %lld elements not %lld",
                             names[order[i]], (long long)b.channels, (long long)p->numel);
    }
    return TERN_OK;
}

/* Infers y, and the mean and rstd of each channel, which backward reads. Training on a single
 * element per channel, which has no variance, and evaluation without running statistics are
 * errors. */
static tern_status batch_infer(tern_call *call)
{
    const batch_attributes *at = call->attributes;
    const tern_tensor *x = call->in[X];
    batch b = batch_of(x);
    if (at->training && b.n == 1 && b.size == 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_batch_norm: Expected more than 1 value per channel when training, "
                         "got input size %s",
                         TERN_TENSOR_TEXT(x));
    if (!at->training && (!call->in[MEAN] || !call->in[VAR]))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_batch_norm: %s must be defined in evaluation mode",
                         call->in[MEAN] ? "running_var" : "running_mean");
    TERN_TRY(check_channels(call->in, b));
    tern_shape each = {1, {b.channels}};
    bool rectified = at->training && !b.flat && x->numel > 0 &&
                     tern_speculate(call, call->in[WEIGHT]) == x->dtype;
    call->n_out = rectified ? RECTIFIED + 1 : RECTIFIED;
    call->channels_last = tern_is_channels_last(x);
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    call->result[1] = (tern_result){.dtype = statistics_dtype(x->dtype), .shape = each};
    call->result[2] = call->result[1];
    call->result[RECTIFIED] = call->result[0];
    return TERN_OK;
}

/* Computes y = (x - running_mean) / sqrt(running_var + eps) w + b elementwise, for evaluation. */
static tern_status launch_running_statistics(tern_call *call, batch b, int what)
{
    static const tern_kernel_ref kernel = {"norm", "batch_norm_fixed"};
    const batch_attributes *at = call->attributes;
    tern_tensor *x = call->in[X], *kept = call->out[1];
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items(x->numel),
                       tern_arg_out(call->out[0]), tern_arg_out(kept), tern_arg_out(call->out[2]),
                       tern_arg_in(call->in[MEAN]), tern_arg_in(call->in[VAR]), tern_arg_in(x),
                       tern_arg_optional(what & HAS_WEIGHT ? call->in[WEIGHT] : NULL, kept),
                       tern_arg_optional(what & HAS_BIAS ? call->in[BIAS] : NULL, kept),
                       tern_arg_i64(b.n), tern_arg_i64(b.channels), tern_arg_i64(b.size),
                       tern_arg_real(x->dtype, at->eps), tern_arg_i32(what));
}

/* Computes h = (x - mean) / sqrt(var + eps) and y = h w + b, with mean and biased variance over N
 * and the spatial dims of each channel. Running statistics are updated as
 *   running = (1 - momentum) running + momentum new
 * with the unbiased variance m / (m - 1) var, for m elements per channel. They are inputs written
 * in place, hence the version bumps. */
static tern_status launch_batch(tern_call *call, batch b, int what, tern_tensor *pieces)
{
    static const tern_kernel_ref flat = {"norm", "batch_norm_flat"};
    const batch_attributes *at = call->attributes;
    tern_tensor *x = call->in[X], *kept = call->out[1], *const *in = call->in;
    const bool rectified = call->n_out > RECTIFIED, ends = !(what & PIECES);
    const int first = rectified || b.columns ? 0 : 1; /* first argument that is passed */
    const tern_arg args[] = {ends && rectified ? tern_arg_out(call->out[RECTIFIED])
                                               : tern_arg_unused(x),
                             ends ? tern_arg_out(call->out[0]) : tern_arg_unused(x),
                             ends ? tern_arg_out(kept) : tern_arg_unused(kept),
                             ends ? tern_arg_out(call->out[2]) : tern_arg_unused(kept),
                             what & RUNNING_MEAN ? tern_arg_out(in[MEAN]) : tern_arg_unused(kept),
                             what & RUNNING_VAR ? tern_arg_out(in[VAR]) : tern_arg_unused(kept),
                             what & COUNTED ? tern_arg_out(in[COUNT]) : tern_arg_unused(kept),
                             pieces ? tern_arg_out(pieces) : tern_arg_unused(kept),
                             tern_arg_in(x),
                             tern_arg_optional(what & HAS_WEIGHT ? in[WEIGHT] : NULL, kept),
                             tern_arg_optional(what & HAS_BIAS ? in[BIAS] : NULL, kept),
                             tern_arg_i64(b.n),
                             tern_arg_i64(b.channels),
                             tern_arg_i64(b.size),
                             tern_arg_real(x->dtype, at->eps),
                             tern_arg_real(x->dtype, at->momentum),
                             tern_arg_i64(b.parts),
                             tern_arg_i32(what | (rectified ? RELU : 0))};
    return tern_launch(call->place,
                       b.columns   ? &tern_kernel_batch_norm_columns
                       : rectified ? &tern_kernel_batch_norm_relu
                       : b.flat    ? &flat
                                   : &tern_kernel_batch_norm,
                       x->dtype, tern_groups(b.groups, 3 * x->numel / b.groups), args + first,
                       (int)(sizeof args / sizeof *args) - first);
}

static tern_status batch_forward(tern_call *call)
{
    const batch_attributes *at = call->attributes;
    tern_tensor *const *in = call->in, *pieces = NULL;
    batch b = batch_of(in[X]);
    int what = (in[WEIGHT] ? HAS_WEIGHT : 0) | (in[BIAS] ? HAS_BIAS : 0);
    if (in[X]->numel == 0)
        return TERN_OK;
    if (!at->training)
        return launch_running_statistics(call, b, what);
    if (b.parts > 1 && !(pieces = pieces_of(in[X], b)))
        return tern_last_status();
    tern_status status = pieces ? launch_batch(call, b, PIECES, pieces) : TERN_OK;
    what |= (in[MEAN] ? RUNNING_MEAN : 0) | (in[VAR] ? RUNNING_VAR : 0) | (in[COUNT] ? COUNTED : 0);
    if (status == TERN_OK)
        status = launch_batch(call, b, what, pieces);
    tern_release(pieces);
    for (int i = MEAN; i < INPUTS && status == TERN_OK; i++)
        if (in[i])
            tern_bump_version(in[i]);
    return status;
}

/* ---- fused gradients: inputs dy, x, weight, mean, rstd, and a mask of dy or NULL ------------- */

/* finds_mask: dy is the gradient of relu, whose mask is recomputed from x; the bias is input 6. */
typedef struct gradient_attributes {
    bool training, finds_mask;
} gradient_attributes;

/* Infers dx, dweight and dbias. The last two have one number for each channel. */
static tern_status gradient_infer(tern_call *call)
{
    const tern_tensor *x = call->in[1];
    call->n_out = 3;
    call->channels_last = tern_is_channels_last(x);
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    call->result[1] =
        (tern_result){.dtype = statistics_dtype(x->dtype), .shape = {1, {x->shape[1]}}};
    call->result[2] = call->result[1];
    return TERN_OK;
}

/* Computes the gradients. With h = (x - mean) rstd and sums and means over a channel:
 *   dw = sum dy h,   db = sum dy,   dx = w rstd (dy - mean dy - h mean(dy h))
 * With running statistics, which do not depend on x, dx = w rstd dy. */
static tern_status launch_gradient(tern_call *call, batch b, int what, tern_tensor *pieces)
{
    static const tern_kernel_ref flat = {"norm", "batch_norm_flat_gradient"},
                                 masked = {"norm_columns", "batch_norm_masked_gradient"},
                                 finds[] = {{"norm_columns", "batch_norm_relu_gradient"},
                                            {"norm_columns", "batch_norm_columns_relu_gradient"}};
    const gradient_attributes *at = call->attributes;
    tern_tensor *x = call->in[1], *kept = call->in[3], *mask = call->in[5], *bias = call->in[6];
    const bool ends = !(what & PIECES);
    const int first =
        mask || b.columns || at->finds_mask ? 0 : 1; /* first argument that is passed */
    const tern_arg args[] = {at->finds_mask ? tern_arg_optional(bias, kept)
                             : mask         ? tern_arg_in(mask)
                                            : tern_arg_unused(x),
                             ends ? tern_arg_out(call->out[0]) : tern_arg_unused(x),
                             ends ? tern_arg_out(call->out[1]) : tern_arg_unused(kept),
                             ends ? tern_arg_out(call->out[2]) : tern_arg_unused(kept),
                             pieces ? tern_arg_out(pieces) : tern_arg_unused(kept),
                             tern_arg_in(call->in[0]),
                             tern_arg_in(x),
                             tern_arg_optional(call->in[2], kept),
                             tern_arg_in(kept),
                             tern_arg_in(call->in[4]),
                             tern_arg_i64(b.n),
                             tern_arg_i64(b.channels),
                             tern_arg_i64(b.size),
                             tern_arg_i64(b.parts),
                             tern_arg_i32(what | (mask ? RELU : 0))};
    return tern_launch(call->place,
                       at->finds_mask ? &finds[b.columns]
                       : b.columns    ? &tern_kernel_batch_norm_columns_gradient
                       : mask         ? &masked
                       : b.flat       ? &flat
                                      : &tern_kernel_batch_norm_gradient,
                       x->dtype, tern_groups(b.groups, 4 * x->numel / b.groups), args + first,
                       (int)(sizeof args / sizeof *args) - first);
}

static tern_status gradient_forward(tern_call *call)
{
    const gradient_attributes *at = call->attributes;
    tern_tensor *pieces = NULL;
    batch b = batch_of(call->in[1]);
    int what =
        (call->in[2] ? HAS_WEIGHT : 0) | (call->in[6] ? HAS_BIAS : 0) | (at->training ? 0 : FIXED);
    if (b.parts > 1 && !(pieces = pieces_of(call->in[1], b)))
        return tern_last_status();
    tern_status status = pieces ? launch_gradient(call, b, what | PIECES, pieces) : TERN_OK;
    if (status == TERN_OK)
        status = launch_gradient(call, b, what, pieces);
    tern_release(pieces);
    return status;
}

static const tern_op gradient_op = {.name = "batch_norm_gradient",
                                    .optional = 1u << 2 | 1u << 5 | 1u << 6,
                                    .not_differentiable = true,
                                    .infer = gradient_infer,
                                    .forward = gradient_forward};

/* Computes all three gradients in one operation: dx needs the two sums anyway. */
static tern_status fused_backward(tern_gradient *g)
{
    const batch_attributes *forward = g->attributes;
    const gradient_attributes at = {forward->training, tern_finds_deferred_relu(g)};
    tern_tensor *relu = tern_deferred_relu(g), *out[3];
    tern_tensor *in[] = {g->dout[0],
                         g->in[X],
                         g->in[WEIGHT],
                         g->out[1],
                         g->out[2],
                         relu,
                         at.finds_mask ? g->in[BIAS] : NULL};
    if (relu && (batch_of(g->in[X]).flat || /* `flat` has no masked kernel */
                 tern_is_channels_last(relu) != tern_is_channels_last(g->in[X]))) {
        in[0] = tern_relu_dx(in[0], relu);
        in[5] = NULL;
    }
    in[0] = tern_lie_as(in[0], g->in[X]);
    TERN_TRY(tern_apply_all(&gradient_op, in, 7, &at, sizeof at, out, 3));
    for (int i = X; i <= BIAS; i++)
        if (g->needs[i])
            g->din[i] = i == X ? out[X] : tern_view(out[i], g->in_shape[i]);
    return TERN_OK;
}

/* ---- gradients in differentiable operations ---------------------------------------------- */

/* With h = (x - mean) rstd, u = dy weight and means over a channel:
 *   dx = rstd (u - mean u - h mean(u h)), or rstd u with running statistics
 * In training mean and rstd are recomputed from x, since their dependence on x is part of the
 * second derivative. */
static tern_status differentiable_backward(tern_gradient *g)
{
    const batch_attributes *at = g->attributes;
    tern_dtype dtype = g->in[X]->dtype, wide = statistics_dtype(dtype);
    tern_tensor *x = tern_to_dtype(g->in[X], wide), *dy = tern_to_dtype(g->dout[0], wide);
    if (!x || !dy)
        return tern_last_status();
    tern_shape each = {.ndim = x->ndim - 1, .dims = {x->shape[1]}}, dims = {.ndim = x->ndim - 1};
    for (int d = 1; d < each.ndim; d++) {
        each.dims[d] = 1;
        dims.dims[d] = d + 1;
    }
    tern_tensor *mean = tern_view(g->out[1], each), *rstd = tern_view(g->out[2], each);
    if (at->training) {
        mean = tern_mean_dim(x, dims, true);
        tern_tensor *var = tern_mean_dim(tern_square(tern_sub(x, mean)), dims, true);
        rstd = tern_rsqrt(tern_add_scalar(var, tern_scalar_real(at->eps)));
    }
    tern_tensor *h = tern_mul(tern_sub(x, mean), rstd);
    tern_tensor *u = g->in[WEIGHT] ? tern_mul(dy, tern_view(g->in[WEIGHT], each)) : dy, *dx = u;
    if (at->training) {
        tern_tensor *inner = tern_mul(h, tern_mean_dim(tern_mul(u, h), dims, true));
        dx = tern_sub(tern_sub(u, tern_mean_dim(u, dims, true)), inner);
    }
    g->din[X] = tern_to_dtype(tern_mul(dx, rstd), dtype);
    if (g->needs[WEIGHT])
        g->din[WEIGHT] = tern_view(tern_sum_dim(tern_mul(dy, h), dims, false), g->in_shape[WEIGHT]);
    if (g->needs[BIAS])
        g->din[BIAS] = tern_view(tern_sum_dim(dy, dims, false), g->in_shape[BIAS]);
    return TERN_OK;
}

/* Computes the gradients by fused kernels, or by differentiable operations for gradients of
 * gradients. */
static tern_status batch_backward(tern_gradient *g)
{
    if (g->in[X]->numel == 0) { /* the gradients are sums over nothing */
        for (int i = WEIGHT; i <= BIAS; i++)
            if (g->needs[i] && !(g->din[i] = tern_new_zeros(g->out[1], g->in_shape[i])))
                return tern_last_status();
        g->din[X] = g->dout[0];
        return TERN_OK;
    }
    return g->recorded ? differentiable_backward(g) : fused_backward(g);
}

static tern_tensor *relu_again(const tern_op *op, const void *attributes, tern_tensor *const *in);

/* Returns the tensors that backward reads. If relu follows, these include the bias, for relu's
 * mask. */
static uint32_t batch_saves(const tern_call *call)
{
    return TERN_SAVE_IN(X) | TERN_SAVE_IN(WEIGHT) | TERN_SAVE_OUT(1) | TERN_SAVE_OUT(2) |
           TERN_SAVE_OUT(RECTIFIED) | (call->n_out > RECTIFIED ? TERN_SAVE_IN(BIAS) : 0);
}

static const tern_op batch_norm_op = {
    .name = "batch_norm",
    .names = TERN_NAMES(TERN_FIELD(batch_attributes, "momentum", momentum),
                        TERN_FIELD(batch_attributes, "eps", eps),
                        TERN_FIELD(batch_attributes, "training", training)),
    .optional = 1u << WEIGHT | 1u << BIAS | 1u << MEAN | 1u << VAR | 1u << COUNT,
    .choose_saves = batch_saves,
    .no_grad_out = 1u << 1 | 1u << 2 | 1u << RECTIFIED,
    .fusion = &(const tern_fusion){.takes_deferred_relu = true,
                                   .speculative_output = RECTIFIED,
                                   .relu_again = relu_again},
    .writes_inputs = true,
    .infer = batch_infer,
    .forward = batch_forward,
    .backward = batch_backward};

/* Returns relu's result, recomputed with the batch's statistics by the same kernels, and so with
 * the same bits. */
static tern_tensor *relu_again(const tern_op *op, const void *attributes, tern_tensor *const *in)
{
    tern_tensor *y = NULL;
    TERN_NO_GRAD
        y = tern_relu(tern_apply(op, (tern_tensor *[INPUTS]){in[X], in[WEIGHT], in[BIAS]}, INPUTS,
                                 attributes, sizeof(batch_attributes)));
    return y;
}

/* ---- tern_batch_norm --------------------------------------------------------------------- */

/* Returns p contiguous and in the dtype of the statistics, or NULL for NULL and after an error. */
static tern_tensor *dense_parameter(tern_tensor *p, const tern_tensor *x)
{
    if (!p)
        return NULL;
    if (p->dtype != x->dtype && p->dtype != statistics_dtype(x->dtype))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_batch_norm: expected scalar type %s but found %s",
                              tern_dtype_name(x->dtype), tern_dtype_name(p->dtype));
    return tern_to_dtype(tern_contiguous(p), statistics_dtype(x->dtype));
}

/* Running statistics with another dtype or layout are updated in a copy, which is copied back.
 * Whether they may be written in place is checked before anything is written. */
static tern_tensor *norm(tern_tensor *const given[INPUTS], const batch_attributes *at)
{
    tern_tensor *x = given[X], *in[INPUTS];
    bool training = at->training;
    if (!x) {
        tern_fail_argument_null("tern_batch_norm", "x");
        return NULL;
    }
    if (tern_check_floating("tern_batch_norm", x->dtype) != TERN_OK)
        return NULL;
    if (x->ndim < 1 || (x->ndim < 2 && x->numel > 0))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_batch_norm: expected at least 2 dims (N, C), but got %s",
                              TERN_TENSOR_TEXT(x));
    in[X] = tern_lie_as(x, x);
    in[COUNT] = given[COUNT];
    for (int i = WEIGHT; i < COUNT; i++)
        if (!(in[i] = dense_parameter(given[i], x)) && given[i])
            return NULL;
    const tern_call call = {.op = &batch_norm_op};
    for (int i = MEAN; training && i < COUNT; i++) /* checked before anything is written */
        if (in[i] != given[i] && tern_check_in_place(&call, given[i], &given[i], 1) != TERN_OK)
            return NULL;
    tern_tensor *y = tern_apply(&batch_norm_op, in, INPUTS, at, sizeof *at);
    for (int i = MEAN; y && training && i < COUNT; i++)
        if (in[i] != given[i] && !tern_copy_(given[i], in[i]))
            return NULL;
    return y;
}

tern_tensor *tern_batch_norm(tern_tensor *x, tern_tensor *running_mean, tern_tensor *running_var,
                             tern_tensor *weight, tern_tensor *bias, bool training, double momentum,
                             double eps)
{
    TERN_NAMED_IN_ERRORS;
    const batch_attributes at = {.momentum = momentum, .eps = eps, .training = training};
    return norm((tern_tensor *[]){x, weight, bias, running_mean, running_var, NULL}, &at);
}

/* The kernel increments the counter if that is a single int64 on x's device, as modules have;
 * otherwise an addition does. */
tern_tensor *tern_batch_norm_counted(tern_tensor *x, tern_tensor *running_mean,
                                     tern_tensor *running_var, tern_tensor *num_batches_tracked,
                                     tern_tensor *weight, tern_tensor *bias, double momentum,
                                     double eps)
{
    TERN_NAMED_IN_ERRORS;
    const batch_attributes at = {.momentum = momentum, .eps = eps, .training = true};
    tern_tensor *n = num_batches_tracked;
    bool on_the_way = n && x && n->dtype == TERN_I64 && n->numel == 1 && x->numel > 0 &&
                      n->storage->place == x->storage->place;
    tern_tensor *y = norm(
        (tern_tensor *[]){x, weight, bias, running_mean, running_var, on_the_way ? n : NULL}, &at);
    if (y && n && !on_the_way && !tern_add_scalar_(n, tern_scalar_int(1)))
        return NULL;
    return y;
}
