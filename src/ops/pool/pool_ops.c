/* pool_ops.c -- the operations of pooling: maximum, mean, unpooling, and their gradients. */
#include "ops/pool/pool.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"

/* Sets one result of `shape` with the dtype of the first input. */
static tern_status infer_as(tern_call *call, const tern_shape *shape)
{
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = *shape};
    return TERN_OK;
}

/* Returns the windows in memory order: for channels_last the channels are the last of three
 * dims. */
static tern_pool_shape lying(const tern_pool_attributes *at)
{
    tern_pool_shape s = at->shape;
    if (!at->last)
        return s;
    const int64_t channels = at->x.dims[1];
    s.last = 1;
    s.planes = at->x.dims[0];
    int64_t *const dims[] = {s.in, s.out, s.window, s.stride, s.padding, s.dilation};
    for (int i = 0; i < 6; i++) {
        dims[i][0] = dims[i][1];
        dims[i][1] = dims[i][2];
        dims[i][2] = i < 2 ? channels : i != 4;
    }
    return s;
}

/* Returns x contiguous, or channels_last if x is so and has two spatial dims, and sets at->last. */
static tern_tensor *brought(tern_pool_attributes *at, tern_tensor *x)
{
    at->last = at->ndim == 2 && tern_is_channels_last(x);
    return tern_in_format(x, at->last);
}

/* Sets one result of the windows' operation, in the memory format of the input. */
static tern_status infer_windows(tern_call *call, const tern_shape *shape)
{
    const tern_pool_attributes *at = call->attributes;
    call->channels_last = at->last;
    return infer_as(call, shape);
}

/* Returns the gradient of the result, in the memory format of the result. */
static tern_tensor *gradient_of(const tern_gradient *g)
{
    const tern_pool_attributes *at = g->attributes;
    return tern_in_format(g->dout[0], at->last);
}

/* Returns a grid of one thread for each element of the result, with about four operations for each
 * element of its window. */
static tern_grid grid_of(const tern_shape *result, int64_t windows)
{
    int64_t n = 1;
    for (int d = 0; d < result->ndim; d++)
        n *= result->dims[d];
    return tern_items_of(n, 4 * windows);
}

/* Returns the number of elements of a window (approximate for adaptive pools, whose windows differ
 * by one). */
static int64_t window_size(const tern_pool_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < 3; d++)
        n *= s->adaptive ? s->in[d] / (s->out[d] ? s->out[d] : 1) + 1 : s->window[d];
    return n;
}

/* ---- max unpooling: inputs y and indices ---------------------------------------------------- */

typedef struct undo_attributes {
    tern_shape shape;
    int ndim;
    bool add;
} undo_attributes;

/* Returns the number of elements of a plane, the last ndim dims. */
static int64_t plane_size(const tern_shape *shape, int ndim)
{
    int64_t n = 1;
    for (int d = shape->ndim - ndim; d < shape->ndim; d++)
        n *= shape->dims[d];
    return n;
}

/* The shape is an attribute, as the pooled size does not determine the size before pooling. */
static tern_status unpool_infer(tern_call *call)
{
    const undo_attributes *at = call->attributes;
    return infer_as(call, &at->shape);
}

/* Computes x = 0, then x[plane, index[j]] = y[plane, j], or += with add. One work group runs for
 * each plane, so that elements with the same index are written in order. The kernel reports an
 * index outside of the plane as a fault. */
static tern_status unpool_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "unpool"};
    const undo_attributes *at = call->attributes;
    tern_tensor *x = call->out[0], *y = call->in[0];
    tern_shape y_shape = tern_shape_of(y);
    tern_arg fault;
    if (x->numel == 0)
        return TERN_OK;
    if (y->numel == 0)
        return tern_zero_elements(x);
    TERN_TRY(tern_fault_arg(call->place, &fault));
    int64_t ins = plane_size(&at->shape, at->ndim), outs = plane_size(&y_shape, at->ndim);
    TERN_TRY(TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(x->numel / ins, ins),
                         tern_arg_out(x), tern_arg_in(y), tern_arg_in(call->in[1]),
                         tern_arg_i64(x->numel / ins), tern_arg_i64(ins), tern_arg_i64(outs),
                         tern_arg_i32(at->add), fault, tern_arg_fault(TERN_FAULT_UNPOOL)));
    return tern_fault_check(call->place);
}

/* Returns x[plane, index[j]] for each j: the gradient of unpooling, and of the gradient of max
 * pooling. It is composed of gather, so that it is differentiable. */
static tern_tensor *gather_maxima(tern_tensor *x, tern_tensor *indices, int ndim)
{
    tern_shape shape = tern_shape_of(x), result = tern_shape_of(indices);
    int64_t ins = plane_size(&shape, ndim), outs = plane_size(&result, ndim);
    tern_tensor *planes = tern_reshape(x, TERN_SHAPE(x->numel / ins, ins));
    tern_tensor *places = tern_reshape(indices, TERN_SHAPE(x->numel / ins, outs));
    return tern_reshape(tern_gather(planes, 1, places), result);
}

/* dy[j] = dx[index[j]]; the indices get no gradient. */
static tern_status unpool_backward(tern_gradient *g)
{
    const undo_attributes *at = g->attributes;
    g->din[0] = g->dout[0]->numel && g->in[1]->numel ? gather_maxima(g->dout[0], g->in[1], at->ndim)
                                                     : tern_new_zeros(g->dout[0], g->in_shape[0]);
    return TERN_OK;
}

static const tern_op unpool_op = {.name = "max_unpool",
                                  .saves = TERN_SAVE_IN(1),
                                  .infer = unpool_infer,
                                  .forward = unpool_forward,
                                  .backward = unpool_backward};

/* Unpooling as an operation. With add it is also the differentiable gradient of max pooling, where
 * overlapping windows can have the same maximum. */
tern_tensor *tern_pool_undo(tern_tensor *y, tern_tensor *indices, const tern_shape *shape, int ndim,
                            bool add)
{
    undo_attributes at = {*shape, ndim, add};
    tern_tensor *in[] = {tern_contiguous(y), tern_contiguous(indices)};
    return tern_apply(&unpool_op, in, 2, &at, sizeof at);
}

/* ---- max pooling: outputs y and the positions of the maxima ---------------------------------- */

/* Returns whether positions in a window fit a byte. Dilated windows may have no element: false. */
static bool fits_bytes(const tern_pool_shape *s)
{
    int64_t n = 1;
    for (int d = 0; d < 3; d++) {
        const int64_t box = s->adaptive && s->out[d] != s->in[d]
                                ? s->in[d] / (s->out[d] ? s->out[d] : 1) + 2
                                : s->window[d];
        if (s->dilation[d] != 1 || box > 256 || (n *= box) > 256)
            return false;
    }
    return true;
}

/* Outputs: y, and for PyTorch's callers the int64 index of each maximum in its plane, or for the
 * backward alone its position in the window as a byte. */
static tern_status max_infer(tern_call *call)
{
    const tern_pool_attributes *at = call->attributes;
    call->n_out = 2;
    call->result[0] = (tern_result){.dtype = call->in[0]->dtype, .shape = at->y};
    call->result[1] = (tern_result){.dtype = at->shape.bytes ? TERN_U8 : TERN_I64, .shape = at->y};
    call->channels_last = at->last;
    return TERN_OK;
}

/* y[q] = max of x over the window of q, NaN counting as the largest. */
static tern_status max_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "max_pool"};
    const tern_pool_attributes *at = call->attributes;
    const tern_pool_shape shape = lying(at);
    if (call->out[0]->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, call->in[0]->dtype,
                       grid_of(&at->y, window_size(&at->shape)), tern_arg_out(call->out[0]),
                       shape.bytes ? tern_arg_unused(call->out[0]) : tern_arg_out(call->out[1]),
                       shape.bytes ? tern_arg_out(call->out[1]) : tern_arg_unused(call->out[0]),
                       tern_arg_in(call->in[0]), TERN_ARG_STRUCT(tern_pool_shape, &shape));
}

/* dx has the shape of x. */
static tern_status max_dx_infer(tern_call *call)
{
    const tern_pool_attributes *at = call->attributes;
    return infer_windows(call, &at->x);
}

/* dx[i] = the sum of dy[q] over the windows q whose maximum is element i: max passes its
 * gradient to the element that it chose. */
static tern_status max_dx_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "max_pool_dx"};
    const tern_pool_shape shape = lying(call->attributes);
    tern_tensor *x = call->out[0];
    if (x->numel == 0)
        return TERN_OK;
    if (call->in[0]->numel == 0)
        return tern_zero_elements(x);
    return TERN_LAUNCH(call->place, &kernel, x->dtype,
                       tern_groups(shape.planes, x->numel / shape.planes), tern_arg_out(x),
                       tern_arg_in(call->in[0]),
                       shape.bytes ? tern_arg_unused(x) : tern_arg_in(call->in[1]),
                       shape.bytes ? tern_arg_in(call->in[1]) : tern_arg_unused(x),
                       TERN_ARG_STRUCT(tern_pool_shape, &shape));
}

static const tern_op max_dx_op = {.name = "max_pool_dx",
                                  .not_differentiable = true,
                                  .infer = max_dx_infer,
                                  .forward = max_dx_forward};

static tern_status places_infer(tern_call *call)
{
    const tern_pool_attributes *at = call->attributes;
    TERN_TRY(infer_windows(call, &at->y));
    call->result[0].dtype = TERN_I64;
    return TERN_OK;
}

/* Converts positions in windows to indices in planes. */
static tern_status places_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "pool_places"};
    const tern_pool_shape shape = lying(call->attributes);
    if (call->out[0]->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, TERN_U8, tern_items(call->out[0]->numel),
                       tern_arg_out(call->out[0]), tern_arg_in(call->in[0]),
                       TERN_ARG_STRUCT(tern_pool_shape, &shape));
}

static const tern_op places_op = {.name = "max_pool_places",
                                  .not_differentiable = true,
                                  .infer = places_infer,
                                  .forward = places_forward};

/* Computes the gradient by the fused operation, or by unpooling with add where gradients of
 * gradients are recorded. */
static tern_status max_backward(tern_gradient *g)
{
    const tern_pool_attributes *at = g->attributes;
    tern_tensor *in[] = {gradient_of(g), g->out[1]};
    if (g->recorded && at->shape.bytes)
        in[1] = tern_apply(&places_op, &in[1], 1, at, sizeof *at);
    g->din[0] = g->recorded ? tern_pool_undo(in[0], in[1], &at->x, at->ndim, true)
                            : tern_apply(&max_dx_op, in, 2, at, sizeof *at);
    return TERN_OK;
}

#define POOL_NAMES                                                                                 \
    TERN_NAMES(TERN_FIELD(tern_pool_attributes, "dims", ndim),                                     \
               TERN_FIELDS(tern_pool_attributes, "kernel_size", shape.window),                     \
               TERN_FIELDS(tern_pool_attributes, "stride", shape.stride),                          \
               TERN_FIELDS(tern_pool_attributes, "padding", shape.padding),                        \
               TERN_FIELDS(tern_pool_attributes, "dilation", shape.dilation),                      \
               TERN_FIELD(tern_pool_attributes, "adaptive", shape.adaptive),                       \
               TERN_FIELD(tern_pool_attributes, "count_include_pad", shape.count_padding),         \
               TERN_FIELD(tern_pool_attributes, "divisor", shape.divisor))

static const tern_op max_op = {.name = "max_pool",
                               .names = POOL_NAMES,
                               .saves = TERN_SAVE_OUT(1),
                               .no_grad_out = 1u << 1,
                               .infer = max_infer,
                               .forward = max_forward,
                               .backward = max_backward};

tern_status tern_pool_max(tern_pool_attributes *at, tern_tensor *x, bool indices,
                          tern_values_indices *out)
{
    tern_tensor *both[2] = {0};
    bool copied = at->ndim == 3 && !at->shape.adaptive; /* the result keeps the format of x */
    tern_tensor *in = brought(at, copied ? tern_rows_of(x) : x);
    const tern_pool_shape shape = lying(at);
    at->shape.bytes = !indices && fits_bytes(&shape);
    TERN_TRY(tern_apply_all(&max_op, &in, 1, at, sizeof *at, both, 2));
    both[1] = indices ? both[1] : NULL;
    for (int i = 0; i <= indices; i++)
        both[i] = copied ? tern_lie_as(both[i], x) : both[i];
    *out = (tern_values_indices){both[0], both[1]};
    return TERN_OK;
}

/* ---- average pooling, which is linear, and its gradient ------------------------------------- */

/* The result has the shape of y in the forward, of x in the gradient. */
static tern_status mean_infer(tern_call *call)
{
    const tern_pool_attributes *at = call->attributes;
    return infer_windows(call, &at->y);
}
static tern_status mean_dx_infer(tern_call *call)
{
    const tern_pool_attributes *at = call->attributes;
    return infer_windows(call, &at->x);
}

/* Launches the kernel of the mean or of its gradient. For an empty input the sums are 0. */
static tern_status launch_mean(tern_call *call, const tern_kernel_ref *kernel, int64_t work)
{
    const tern_pool_shape shape = lying(call->attributes);
    tern_tensor *out = call->out[0];
    if (out->numel == 0)
        return TERN_OK;
    if (call->in[0]->numel == 0)
        return tern_zero_elements(out);
    return TERN_LAUNCH(call->place, kernel, out->dtype, tern_items_of(out->numel, work),
                       tern_arg_out(out), tern_arg_in(call->in[0]),
                       TERN_ARG_STRUCT(tern_pool_shape, &shape));
}

/* y[q] = the sum of x over the window of q / divisor(q). */
static tern_status mean_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "avg_pool"};
    const tern_pool_attributes *at = call->attributes;
    return launch_mean(call, &kernel, 4 + window_size(&at->shape));
}

/* dx[i] = the sum of dy[q] / divisor(q) over the windows q that contain element i. */
static tern_status mean_dx_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"pool", "avg_pool_dx"};
    return launch_mean(call, &kernel, 16);
}

static tern_status mean_backward(tern_gradient *g);
static tern_status mean_dx_backward(tern_gradient *g);
static const tern_op mean_op = {.name = "avg_pool",
                                .names = POOL_NAMES,
                                .infer = mean_infer,
                                .forward = mean_forward,
                                .backward = mean_backward};
static const tern_op mean_dx_op = {.name = "avg_pool_dx",
                                   .infer = mean_dx_infer,
                                   .forward = mean_dx_forward,
                                   .backward = mean_dx_backward};

/* The mean is a linear map and mean_dx its transpose, so each is the gradient of the other to any
 * order of differentiation. */
static tern_status mean_backward(tern_gradient *g)
{
    tern_tensor *dy = gradient_of(g);
    g->din[0] = tern_apply(&mean_dx_op, &dy, 1, g->attributes, sizeof(tern_pool_attributes));
    return TERN_OK;
}
static tern_status mean_dx_backward(tern_gradient *g)
{
    tern_tensor *dx = gradient_of(g);
    g->din[0] = tern_apply(&mean_op, &dx, 1, g->attributes, sizeof(tern_pool_attributes));
    return TERN_OK;
}

tern_tensor *tern_pool_mean(tern_pool_attributes *at, tern_tensor *x)
{
    x = brought(at, x);
    return tern_apply(&mean_op, &x, 1, at, sizeof *at);
}
