/* layer_norm.c -- layer norm and RMS norm. */
#include "ops/copy/copy.h"
#include "tensor/fuse/fuse.h"
#include "tensor/op.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <float.h>
#include <tern/ops.h>

enum {
    HAS_WEIGHT = 1,
    HAS_BIAS = 2,
    NO_MEAN = 4,
    ADDS = 8,
    ALSO = 16
};                 /* as in norm_layer.cl and fused.cl */
enum { CAST = 3 }; /* output: y in half precision, if the next operation reads that */
enum { DW_ROWS = 64, DW_PARTS = 128, LEAST_ROWS = 4, MOST_PARTS = 512, GROUP = 256 };

typedef struct norm_attributes {
    tern_shape normalized;
    double eps;
    bool no_mean;    /* for RMS norm */
    tern_dtype also; /* dtype of a half precision copy of dx; TERN_DTYPE_DEFAULT: no copy */
} norm_attributes;

/* The number of rows and of elements in a row; neither is 0. */
typedef struct rows {
    int64_t count, n;
} rows;

static rows rows_of(const tern_tensor *x, const norm_attributes *at)
{
    rows r = {.n = 1};
    for (int d = 0; d < at->normalized.ndim; d++)
        r.n *= at->normalized.dims[d];
    r.count = x->numel / r.n;
    return r;
}

/* Returns the dtype of the statistics: float32 for half precision. */
static tern_dtype statistics_dtype(tern_dtype dtype)
{
    return dtype == TERN_F64 ? TERN_F64 : TERN_F32;
}

/* ---- forward: outputs y, and mean and 1 / sqrt(var + eps) of each row -------------------- */

/* Checks that a weight or bias has the normalized shape and x's dtype. */
static tern_status check_parameter(const tern_call *call, const tern_tensor *p, const char *name,
                                   const tern_shape *normalized)
{
    const tern_tensor *x = call->in[0];
    if (!p)
        return TERN_OK;
    tern_shape shape = tern_shape_of(p);
    if (!tern_shape_equal(&shape, normalized))
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: Expected %s to be of same shape as normalized_shape, but "
                         "got %s of shape %s and normalized_shape = %s",
                         call->op->name, name, name, TERN_SHAPE_TEXT(&shape),
                         TERN_SHAPE_TEXT(normalized));
    if (p->dtype != x->dtype)
        return tern_fail(TERN_ERR_DTYPE, "tern_%s: expected scalar type %s but found %s (%s)",
                         call->op->name, tern_dtype_name(x->dtype), tern_dtype_name(p->dtype),
                         name);
    return TERN_OK;
}

/* Infers y, and the mean and rstd of each row, which backward reads. The normalized shape is the
 * last dims of x. */
static tern_status norm_infer(tern_call *call)
{
    const norm_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_shape shape = tern_shape_of(x);
    const tern_shape *normalized = &at->normalized;
    int first = x->ndim - normalized->ndim;
    if (normalized->ndim < 1)
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: Expected normalized_shape to be at least 1-dimensional, "
                         "i.e., containing at least one element, but got normalized_shape = %s",
                         call->op->name, TERN_SHAPE_TEXT(normalized));
    bool fits = first >= 0;
    for (int d = 0; fits && d < normalized->ndim; d++)
        fits = x->shape[first + d] == normalized->dims[d];
    if (!fits) {
        tern_shape_text text = tern_shape_to_text(normalized);
        return tern_fail(TERN_ERR_SHAPE,
                         "tern_%s: Given normalized_shape=%s, expected input with shape [*, "
                         "%s, but got input of size%s",
                         call->op->name, text.text, text.text + 1, TERN_SHAPE_TEXT(&shape));
    }
    TERN_TRY(check_parameter(call, call->in[1], "weight", normalized));
    TERN_TRY(check_parameter(call, call->in[2], "bias", normalized));
    tern_shape per_row = {1, {x->numel ? rows_of(x, at).count : 0}};
    call->n_out = 3;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = shape};
    call->result[1] = (tern_result){.dtype = statistics_dtype(x->dtype), .shape = per_row};
    call->result[2] = call->result[1];
    tern_dtype cast = x->dtype == TERN_F32 && x->numel > 0 ? tern_speculate(call, call->in[1])
                                                           : TERN_DTYPE_DEFAULT;
    if (tern_dtype_is_half(cast)) {
        call->result[CAST] = (tern_result){.dtype = cast, .shape = shape};
        call->n_out = CAST + 1;
    }
    return TERN_OK;
}

/* Computes h = (x - mean) / sqrt(var + eps) and y = h w + b, with mean and biased variance over a
 * row (Ba et al. 2016). RMS norm has no mean: h = x / sqrt(mean x^2 + eps). */
static tern_status norm_forward(tern_call *call)
{
    const norm_attributes *at = call->attributes;
    tern_tensor *x = call->in[0], *weight = call->in[1], *bias = call->in[2];
    if (x->numel == 0)
        return TERN_OK;
    rows r = rows_of(x, at);
    tern_tensor *cast = call->n_out > CAST ? call->out[CAST] : NULL;
    const tern_arg y = tern_arg_out(call->out[0]);
    const tern_arg args[] = {cast ? y : tern_arg_unused(x),
                             cast ? tern_arg_out(cast) : y,
                             tern_arg_out(call->out[1]),
                             tern_arg_out(call->out[2]),
                             tern_arg_in(x),
                             tern_arg_optional(weight, x),
                             tern_arg_optional(bias, x),
                             tern_arg_i64(r.count),
                             tern_arg_i64(r.n),
                             tern_arg_real(x->dtype, at->eps),
                             tern_arg_i32((weight ? HAS_WEIGHT : 0) | (bias ? HAS_BIAS : 0) |
                                          (at->no_mean ? NO_MEAN : 0))};
    return tern_launch(call->place, cast ? &tern_kernel_layer_norm_mixed : &tern_kernel_layer_norm,
                       cast ? cast->dtype : x->dtype, tern_rows(r.count, r.n, r.n), args + !cast,
                       (int)(sizeof args / sizeof *args) - !cast);
}

/* ---- fused gradients: inputs dy, x, weight, mean, rstd ----------------------------------- */

static tern_status dx_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] =
        (tern_result){.dtype = call->in[1]->dtype, .shape = tern_shape_of(call->in[1])};
    return TERN_OK;
}

/* Computes dx = rstd (u - mean u - h mean(u h)) with h = (x - mean) rstd, u = dy w and means over
 * the row. RMS norm has no mean u. */
static tern_status dx_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"norm_layer", "layer_norm_dx"};
    tern_tensor *x = call->in[1], *weight = call->in[2];
    if (x->numel == 0)
        return TERN_OK;
    const norm_attributes *at = call->attributes;
    rows r = rows_of(x, at);
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_rows(r.count, r.n, 2 * r.n),
                       tern_arg_out(call->out[0]), tern_arg_in(call->in[0]), tern_arg_in(x),
                       tern_arg_optional(weight, x), tern_arg_in(call->in[3]),
                       tern_arg_in(call->in[4]), tern_arg_i64(r.count), tern_arg_i64(r.n),
                       tern_arg_i32((weight ? HAS_WEIGHT : 0) | (at->no_mean ? NO_MEAN : 0)));
}

/* Returns the number of rows in a part. dw is a reduction over rows, and has few columns to be
 * parallel over. So the rows are split into up to DW_PARTS parts of at least DW_ROWS, each summed
 * separately. The split depends on the shape only, so the result is deterministic. */
static int64_t rows_per_part(rows r)
{
    int64_t parts = r.count / DW_ROWS;
    parts = parts < 1 ? 1 : parts > DW_PARTS ? DW_PARTS : parts;
    return (r.count + parts - 1) / parts;
}

/* Infers the partial sums of dw and db, (parts, n) each. */
static tern_status dw_infer(tern_call *call)
{
    const tern_tensor *x = call->in[1];
    rows r = rows_of(x, call->attributes);
    int64_t len = rows_per_part(r);
    call->n_out = 2;
    call->result[0] = (tern_result){.dtype = statistics_dtype(x->dtype),
                                    .shape = {2, {(r.count + len - 1) / len, r.n}}};
    call->result[1] = call->result[0];
    return TERN_OK;
}

/* Computes dw = sum dy h and db = sum dy over the rows of each part. A group of threads computes up
 * to 256 columns of a part. */
static tern_status dw_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"norm_layer", "layer_norm_dw"};
    tern_tensor *x = call->in[1];
    rows r = rows_of(x, call->attributes);
    int64_t len = rows_per_part(r), groups = call->result[0].shape.dims[0] * ((r.n + 255) / 256);
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_groups(groups, 2 * x->numel / groups),
                       tern_arg_out(call->out[0]), tern_arg_out(call->out[1]),
                       tern_arg_in(call->in[0]), tern_arg_in(x), tern_arg_in(call->in[3]),
                       tern_arg_in(call->in[4]), tern_arg_i64(r.count), tern_arg_i64(r.n),
                       tern_arg_i64(len));
}

static const tern_op dx_op = {.name = "layer_norm_dx",
                              .optional = 1u << 2,
                              .not_differentiable = true,
                              .infer = dx_infer,
                              .forward = dx_forward};
static const tern_op dw_op = {.name = "layer_norm_dw",
                              .optional = 1u << 2,
                              .not_differentiable = true,
                              .infer = dw_infer,
                              .forward = dw_forward};

/* dw and db as the sums of their parts, in one launch, on a device with work-groups. */
static tern_status sums_infer(tern_call *call)
{
    const norm_attributes *at = call->attributes;
    call->n_out = 2;
    for (int i = 0; i < 2; i++)
        call->result[i] = (tern_result){.dtype = call->in[2]->dtype, .shape = at->normalized};
    return TERN_OK;
}

static tern_status sums_forward(tern_call *call)
{
    const tern_tensor *parts = call->in[0];
    int64_t n = parts->shape[1];
    return TERN_LAUNCH(call->place, &tern_beside_kernels[TERN_BESIDE_LAYER_NORM_SUMS],
                       call->in[2]->dtype, tern_groups((n + 31) / 32, 64 * parts->shape[0]),
                       tern_arg_out(call->out[0]), tern_arg_out(call->out[1]), tern_arg_in(parts),
                       tern_arg_in(call->in[1]), tern_arg_i64(parts->shape[0]), tern_arg_i64(n));
}

static const tern_op sums_op = {.name = "layer_norm_sums",
                                .not_differentiable = true,
                                .infer = sums_infer,
                                .forward = sums_forward};

/* ---- all gradients in one kernel, with work-groups: dy, x, weight, mean, rstd, dx so far ---- */

/* Returns the number of rows that a work-group reads at a time: one for each of its teams, if the
 * rows are short. */
static int64_t rows_at_once(rows r)
{
    const bool is_short = r.n > 1 && r.n <= TERN_SHORT_ROW;
    return is_short ? GROUP / TERN_TEAM(r.n, GROUP) : 1;
}

/* Returns the number of rows of a work-group: at least LEAST_ROWS, and at least one for each of its
 * teams. There are at most MOST_PARTS work-groups, enough for a large GPU. */
static int64_t rows_per_group(rows r)
{
    int64_t len = (r.count + MOST_PARTS - 1) / MOST_PARTS, least = rows_at_once(r);
    least = least < LEAST_ROWS ? LEAST_ROWS : least;
    return len < least ? least : len;
}

static tern_status gradient_infer(tern_call *call)
{
    const tern_tensor *x = call->in[1];
    rows r = rows_of(x, call->attributes);
    int64_t len = rows_per_group(r);
    TERN_TRY(dx_infer(call));
    call->n_out = 3;
    call->result[1] = (tern_result){.dtype = statistics_dtype(x->dtype),
                                    .shape = {2, {(r.count + len - 1) / len, r.n}}};
    call->result[2] = call->result[1];
    call->result[3] = call->result[0];
    call->result[3].dtype = ((const norm_attributes *)call->attributes)->also;
    call->n_out += call->result[3].dtype != TERN_DTYPE_DEFAULT;
    return TERN_OK;
}

/* dy may be half precision if x is float32. */
static tern_status gradient_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"fused", "layer_norm_gradient"},
                                 mixed = {"fused", "layer_norm_gradient_mixed"};
    const norm_attributes *at = call->attributes;
    tern_tensor *dy = call->in[0], *x = call->in[1], *weight = call->in[2], *before = call->in[5];
    const int also = call->n_out > 3 ? ALSO : 0;
    rows r = rows_of(x, at);
    int64_t len = rows_per_group(r), groups = call->result[1].shape.dims[0];
    const int64_t once = rows_at_once(r);
    const tern_grid grid = once > 1 ? tern_rows(groups * once, r.n, 4 * len * r.n / once)
                                    : tern_groups(groups, 4 * len * r.n);
    int what = (weight ? HAS_WEIGHT : 0) | (at->no_mean ? NO_MEAN : 0) | (before ? ADDS : 0) | also;
    if (dy->dtype != x->dtype)
        return TERN_LAUNCH(call->place, &mixed, dy->dtype, grid, tern_arg_out(call->out[0]),
                           also ? tern_arg_out(call->out[3]) : tern_arg_unused(dy),
                           tern_arg_out(call->out[1]), tern_arg_out(call->out[2]), tern_arg_in(dy),
                           tern_arg_in(x), tern_arg_optional(weight, x),
                           tern_arg_optional(before, x), tern_arg_in(call->in[3]),
                           tern_arg_in(call->in[4]), tern_arg_i64(r.count), tern_arg_i64(r.n),
                           tern_arg_i64(len), tern_arg_i32(what));
    return TERN_LAUNCH(call->place, &kernel, x->dtype, grid, tern_arg_out(call->out[0]),
                       tern_arg_out(call->out[1]), tern_arg_out(call->out[2]), tern_arg_in(dy),
                       tern_arg_in(x), tern_arg_optional(weight, x), tern_arg_optional(before, x),
                       tern_arg_in(call->in[3]), tern_arg_in(call->in[4]), tern_arg_i64(r.count),
                       tern_arg_i64(r.n), tern_arg_i64(len), tern_arg_i32(what));
}

static const tern_op all_op = {.name = "layer_norm_gradient",
                               .optional = 1u << 2 | 1u << 5,
                               .not_differentiable = true,
                               .infer = gradient_infer,
                               .forward = gradient_forward};

/* Computes dx, added to the gradient of x that is already there, and the parameters' gradients from
 * the work-groups' sums. */
static tern_status backward_at_once(tern_gradient *g, tern_tensor *const in[5])
{
    norm_attributes all_at = *(const norm_attributes *)g->attributes, *at = &all_at;
    tern_tensor *all[] = {in[0], in[1], in[2], in[3], in[4], tern_accumulate_into(g)};
    tern_tensor *out[4], *sums[2];
    const tern_dtype half = tern_half_copy_dtype(g);
    at->also = half == in[0]->dtype && half != in[1]->dtype ? half : TERN_DTYPE_DEFAULT;
    const int n_out = at->also != TERN_DTYPE_DEFAULT ? 4 : 3;
    TERN_TRY(tern_apply_all(&all_op, all, 6, at, sizeof *at, out, n_out));
    if (n_out > 3)
        tern_give_half_copy(g, out[3]);
    TERN_TRY(tern_apply_all(&sums_op, (tern_tensor *[]){out[1], out[2], in[1]}, 3, at, sizeof *at,
                            sums, 2));
    g->din[0] = out[0];
    if (tern_accumulate_into(g))
        tern_accumulated(g);
    for (int i = 1; i <= 2; i++)
        g->din[i] = g->needs[i] ? sums[i - 1] : NULL;
    return TERN_OK;
}

/* Returns the gradient of a parameter as the sum of its parts, in the parameter's dtype and
 * shape. */
static tern_tensor *sum_parts(tern_tensor *parts, const norm_attributes *at, tern_dtype dtype)
{
    return tern_view(tern_to_dtype(tern_sum_dim(parts, TERN_DIMS(0), false), dtype),
                     at->normalized);
}

/* Computes dx and the parameters' gradients by separate kernels: one reduces rows, the other
 * columns. */
static tern_status fused_backward(tern_gradient *g)
{
    const norm_attributes *at = g->attributes;
    tern_tensor *x = g->in[0];
    tern_tensor *in[] = {tern_contiguous(g->dout[0]), x, g->in[1], g->out[1], g->out[2]};
    tern_tensor *parts[2];
    if (!in[0])
        return tern_last_status();
    if (g->needs[0] && g->needs[1] && tern_place_is_grouped(x->storage->place) &&
        rows_of(x, at).n <= TERN_NORM_WIDE)
        return backward_at_once(g, in);
    if (!(in[0] = tern_to_dtype(in[0], x->dtype)))
        return tern_last_status();
    if (g->needs[0] && !(g->din[0] = tern_apply(&dx_op, in, 5, at, sizeof *at)))
        return tern_last_status();
    if (!g->needs[1] && !g->needs[2])
        return TERN_OK;
    TERN_TRY(tern_apply_all(&dw_op, in, 5, at, sizeof *at, parts, 2));
    if (g->needs[1] && g->needs[2] && tern_place_is_grouped(x->storage->place))
        return tern_apply_all(&sums_op, (tern_tensor *[]){parts[0], parts[1], x}, 3, at, sizeof *at,
                              &g->din[1], 2);
    for (int i = 1; i <= 2; i++)
        if (g->needs[i] && !(g->din[i] = sum_parts(parts[i - 1], at, x->dtype)))
            return tern_last_status();
    return TERN_OK;
}

/* ---- gradients in differentiable operations ---------------------------------------------- */

/* With h = (x - mean) / sqrt(var + eps) and u = dy weight:
 *   dx = (u - mean u - h mean(u h)) / sqrt(var + eps),
 *   dweight = sum dy h,   dbias = sum dy
 * Mean and variance are recomputed from x, since their dependence on x is part of the second
 * derivative. */
static tern_status differentiable_backward(tern_gradient *g)
{
    const norm_attributes *at = g->attributes;
    tern_shape dims = {.ndim = at->normalized.ndim};
    for (int d = 0; d < dims.ndim; d++)
        dims.dims[d] = -1 - d;
    tern_tensor *dy = g->dout[0], *x = g->in[0];
    tern_tensor *centred = at->no_mean ? x : tern_sub(x, tern_mean_dim(x, dims, true));
    tern_tensor *variance = tern_mean_dim(tern_square(centred), dims, true);
    tern_tensor *rstd = tern_rsqrt(tern_add_scalar(variance, tern_scalar_real(at->eps)));
    tern_tensor *h = tern_mul(centred, rstd), *u = g->in[1] ? tern_mul(dy, g->in[1]) : dy;
    tern_tensor *inner = tern_mul(h, tern_mean_dim(tern_mul(u, h), dims, true));
    tern_tensor *dx = tern_sub(at->no_mean ? u : tern_sub(u, tern_mean_dim(u, dims, true)), inner);
    g->din[0] = tern_mul(dx, rstd);
    if (g->needs[1])
        g->din[1] = tern_sum_to_size(tern_mul(dy, h), at->normalized);
    if (g->needs[2])
        g->din[2] = tern_sum_to_size(dy, at->normalized);
    return TERN_OK;
}

/* Computes the gradients by fused kernels, or by differentiable operations for gradients of
 * gradients. */
static tern_status norm_backward(tern_gradient *g)
{
    const norm_attributes *at = g->attributes;
    if (g->in[0]->numel == 0) { /* the parameters' gradients are sums over no rows */
        for (int i = 1; i <= 2; i++)
            if (g->needs[i] && !(g->din[i] = tern_new_zeros(g->in[0], at->normalized)))
                return tern_last_status();
        return TERN_OK;
    }
    return g->recorded ? differentiable_backward(g) : fused_backward(g);
}

static const tern_fusion norm_fusion = {.accumulates = true,
                                        .takes_half_grad = true,
                                        .speculative_output = CAST,
                                        .speculative_cast = true};

#define NORM_OP(NAME)                                                                              \
    {                                                                                              \
        .name = NAME,                                                                              \
        .names = TERN_NAMES(TERN_FIELD(norm_attributes, "normalized_shape", normalized),           \
                            TERN_FIELD(norm_attributes, "eps", eps)),                              \
        .takes = TERN_TAKES_FLOATS, .cast = TERN_CAST_FLOAT32, .optional = 1u << 1 | 1u << 2,      \
        .saves = TERN_SAVE_IN(0) | TERN_SAVE_IN(1) | TERN_SAVE_OUT(1) | TERN_SAVE_OUT(2) |         \
                 TERN_SAVE_OUT(CAST),                                                              \
        .fusion = &norm_fusion, .no_grad_out = 1u << 1 | 1u << 2 | 1u << CAST,                     \
        .infer = norm_infer, .forward = norm_forward, .backward = norm_backward                    \
    }
static const tern_op layer_norm_op = NORM_OP("layer_norm"), rms_norm_op = NORM_OP("rms_norm");

/* Returns whether PyTorch allows a parameter with a dtype other than x's: float32 with half
 * precision x; for RMS norm (any) every dtype. */
static bool is_mixed(const tern_tensor *x, const tern_tensor *p, bool any)
{
    bool half = tern_dtype_size(x->dtype) == 2 && tern_dtype_is_floating_point(x->dtype);
    return p && p->dtype != x->dtype && (any || (half && p->dtype == TERN_F32));
}

static tern_tensor *apply_norm(const tern_op *op, tern_tensor *x, const norm_attributes *at,
                               tern_tensor *weight, tern_tensor *bias, const char *function);

/* Returns the norm computed in the dtype of the statistics and rounded to x's dtype. */
static tern_tensor *mixed_norm(const tern_op *op, tern_tensor *x, const norm_attributes *at,
                               tern_tensor *weight, tern_tensor *bias, const char *function)
{
    tern_dtype dtype = x->dtype, wide = statistics_dtype(dtype);
    if ((weight && !(weight = tern_to_dtype(weight, wide))) ||
        (bias && !(bias = tern_to_dtype(bias, wide))))
        return NULL;
    return tern_to_dtype(apply_norm(op, tern_to_dtype(x, wide), at, weight, bias, function), dtype);
}

/* weight and bias may be NULL; a weight or bias whose contiguous copy failed is an error. */
static tern_tensor *apply_norm(const tern_op *op, tern_tensor *x, const norm_attributes *at,
                               tern_tensor *weight, tern_tensor *bias, const char *function)
{
    if (!tern_given(x, function, "x") || tern_shape_numel(&at->normalized, function) < 0)
        return NULL;
    if (tern_dtype_is_floating_point(x->dtype) &&
        ((is_mixed(x, weight, at->no_mean) && (!bias || bias->dtype == weight->dtype)) ||
         (!weight && is_mixed(x, bias, false)))) {
        TERN_NAMED_AS(function);
        TERN_CAST_FOR(op, &x, &weight, &bias);
        return x ? mixed_norm(op, x, at, weight, bias, function) : NULL;
    }
    x = tern_contiguous_for(x, function);
    if ((weight && !(weight = tern_contiguous_for(weight, function))) ||
        (bias && !(bias = tern_contiguous_for(bias, function))))
        return NULL; /* contiguous failed; NULL would mean no parameter */
    return tern_apply(op, (tern_tensor *[]){x, weight, bias}, 3, at, sizeof *at);
}

tern_tensor *tern_layer_norm(tern_tensor *x, tern_shape normalized_shape, tern_tensor *weight,
                             tern_tensor *bias, double eps)
{
    norm_attributes at = {.normalized = normalized_shape, .eps = eps};
    return apply_norm(&layer_norm_op, x, &at, weight, bias, "tern_layer_norm");
}

/* Returns x / sqrt(mean x^2 + eps) w (Zhang and Sennrich 2019). A negative eps means PyTorch's
 * default None, the machine epsilon. */
tern_tensor *tern_rms_norm(tern_tensor *x, tern_shape normalized_shape, tern_tensor *weight,
                           double eps)
{
    norm_attributes at = {.normalized = normalized_shape, .eps = eps, .no_mean = true};
    if (x && eps < 0) /* of the dtype of the sums */
        at.eps = x->dtype == TERN_F64 ? DBL_EPSILON : FLT_EPSILON;
    return apply_norm(&rms_norm_op, x, &at, weight, NULL, "tern_rms_norm");
}
