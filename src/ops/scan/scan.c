/* scan.c -- cumulative sums, products and logsumexp along a dim; cummax and cummin.
 *
 * cumsum and cumprod are two cases of y[k] = a[k] y[k - 1] + b[k]. The gradient of such a scan is a
 * scan in the opposite direction, without a division, whose divisor might be zero:
 *   db[k] = dy[k] + a[k + 1] db[k + 1],   da[k] = db[k] y[k - 1]. */
#include "ops/scan/scan.h"
#include "tensor/tensor.h"
#include <math.h>
#include <tern/ops.h>

enum { SUM = 1, PRODUCT = 2, BOTH = 3 }; /* equal to TERN_SCAN_... in scan.cl */
enum { MANY = 4096 };

typedef struct scan_attributes {
    int dim, what;
    bool reverse;
} scan_attributes;

static tern_sides sides_of(const tern_tensor *x, int dim)
{
    tern_shape shape = tern_shape_of(x);
    return tern_sides_of(&shape, dim);
}

/* ---- the scan: inputs a and b, one of which may be NULL ------------------------------------ */

static tern_status scan_infer(tern_call *call)
{
    const tern_tensor *x = call->in[0] ? call->in[0] : call->in[1];
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = x->dtype, .shape = tern_shape_of(x)};
    return TERN_OK;
}

/* Returns y before the first element: the neutral element of the operation. */
static double first_of(const scan_attributes *at)
{
    return at->what == PRODUCT ? 1 : 0;
}

/* Where the elements of a slice are contiguous, a work group scans each slice, each lane a run of
 * it. Otherwise one lane scans each slice. */
static tern_status scan_forward(tern_call *call)
{
    static const tern_kernel_ref rows = {"scan", "scan_rows"}, columns = {"scan", "scan_columns"};
    const scan_attributes *at = call->attributes;
    const tern_tensor *a = call->in[0], *b = call->in[1], *y = call->out[0];
    tern_sides s = sides_of(y, at->dim);
    if (y->numel == 0)
        return TERN_OK;
    if (s.inner > 1)
        return TERN_LAUNCH(call->place, &columns, y->dtype,
                           tern_items_of(s.outer * s.inner, 2 * s.n), tern_arg_out(y),
                           tern_arg_optional(a, b), tern_arg_optional(b, a), tern_arg_i64(s.outer),
                           tern_arg_i64(s.n), tern_arg_i64(s.inner),
                           tern_arg_real(y->dtype, first_of(at)), tern_arg_i32(at->what),
                           tern_arg_i32(at->reverse));
    return TERN_LAUNCH(call->place, &rows, y->dtype, tern_groups(s.outer, 2 * s.n), tern_arg_out(y),
                       tern_arg_optional(a, b), tern_arg_optional(b, a), tern_arg_i64(s.outer),
                       tern_arg_i64(s.n), tern_arg_real(y->dtype, first_of(at)),
                       tern_arg_i32(at->what), tern_arg_i32(at->reverse));
}

/* Returns x shifted by one along dim (back: to the start), with `value` in the freed elements. */
static tern_tensor *shifted(tern_tensor *x, int dim, bool back, double value)
{
    if (x && x->ndim == 0)
        return tern_full_like(x, tern_scalar_real(value));
    if (!x || x->shape[dim] == 0)
        return x;
    tern_shape edge = tern_shape_of(x);
    edge.dims[dim] = 1;
    tern_tensor *filled = tern_new_full(x, edge, tern_scalar_real(value));
    tern_tensor *rest = tern_narrow(x, dim, back, x->shape[dim] - 1);
    return tern_cat((tern_tensor *[]){back ? rest : filled, back ? filled : rest}, 2, dim);
}

static tern_tensor *scan(tern_tensor *a, tern_tensor *b, int dim, int what, bool reverse);

/* db is a scan in the opposite direction with a shifted by one; da is db times y shifted by one. */
static tern_status scan_backward(tern_gradient *g)
{
    const scan_attributes *at = g->attributes;
    tern_tensor *a = g->in[0], *factor = a ? shifted(a, at->dim, !at->reverse, 0) : NULL;
    tern_tensor *db = scan(factor, g->dout[0], at->dim, a ? BOTH : SUM, !at->reverse);
    if (g->needs[0])
        g->din[0] = tern_mul(db, shifted(g->out[0], at->dim, at->reverse, first_of(at)));
    if (g->needs[1])
        g->din[1] = db;
    return db && (!g->needs[0] || g->din[0]) ? TERN_OK : tern_last_status();
}

/* A sum saves nothing; products and linear scans save a and y. */
static uint32_t scan_saves(const tern_call *call)
{
    return call->in[0] ? TERN_SAVE_IN(0) | TERN_SAVE_OUT(0) : 0;
}

#define SCAN_OP(NAME, CAST)                                                                        \
    static const tern_op NAME##_op = {                                                             \
        .name = #NAME,                                                                             \
        .names = TERN_NAMES(TERN_FIELD(scan_attributes, "dim", dim),                               \
                            TERN_FIELD(scan_attributes, "reverse", reverse)),                      \
        .cast = TERN_CAST_##CAST,                                                                  \
        .optional = 3,                                                                             \
        .choose_saves = scan_saves,                                                                \
        .infer = scan_infer,                                                                       \
        .forward = scan_forward,                                                                   \
        .backward = scan_backward}
SCAN_OP(cumsum, FLOAT32);
SCAN_OP(cumprod, FLOAT32);
SCAN_OP(linear_scan, NONE);

static const tern_op *const scan_ops[] = {
    [SUM] = &cumsum_op, [PRODUCT] = &cumprod_op, [BOTH] = &linear_scan_op};

static tern_tensor *scan(tern_tensor *a, tern_tensor *b, int dim, int what, bool reverse)
{
    scan_attributes at = {dim, what, reverse};
    tern_tensor *in[] = {what == SUM ? NULL : tern_contiguous(a),
                         what == PRODUCT ? NULL : tern_contiguous(b)};
    if ((what != SUM && !in[0]) || (what != PRODUCT && !in[1]))
        return NULL;
    return tern_apply(scan_ops[what], in, 2, &at, sizeof at);
}

tern_tensor *tern_exclusive_cumprod(tern_tensor *x, int dim, bool reverse)
{
    return shifted(scan(x, NULL, dim, PRODUCT, reverse), dim, reverse, 1);
}

/* ---- cumsum, cumprod --------------------------------------------------------------------- */

/* Returns whether x should be transposed: few long slices then become dense rows, and a whole work
 * group scans each row. */
static bool transposes_well(const tern_tensor *x, int dim)
{
    tern_sides s = sides_of(x, dim);
    return s.inner > 1 && s.outer * s.inner < MANY && s.n > MANY;
}

/* cumsum and cumprod of any dtype: half precision in float32 and integers in int64, as in sum. */
static tern_tensor *running(tern_tensor *x, int dim, int what, const char *function)
{
    int d;
    TERN_CAST_FOR(scan_ops[what], &x);
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &d, function) != TERN_OK)
        return NULL;
    tern_dtype dtype = tern_dtype_is_floating_point(x->dtype) ? x->dtype : TERN_I64;
    bool transposed = transposes_well(x, d);
    x = tern_to_dtype(x, tern_kept_in(dtype));
    if (transposed)
        x = tern_transpose(x, d, -1);
    tern_tensor *y = what == SUM ? scan(NULL, x, transposed && x ? x->ndim - 1 : d, what, false)
                                 : scan(x, NULL, transposed && x ? x->ndim - 1 : d, what, false);
    if (transposed)
        y = tern_contiguous(tern_transpose(y, d, -1));
    return tern_to_dtype(y, dtype);
}

tern_tensor *tern_cumsum(tern_tensor *x, int dim)
{
    TERN_NAMED_IN_ERRORS;
    return running(x, dim, SUM, __func__);
}

tern_tensor *tern_cumprod(tern_tensor *x, int dim)
{
    TERN_NAMED_IN_ERRORS;
    return running(x, dim, PRODUCT, __func__);
}

/* ---- logcumsumexp ------------------------------------------------------------------------ */

/* y[k] = log(e^y[k - 1] + e^x[k]), with the larger exponent factored out. */
static tern_status log_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"scan", "scan_log_sum"};
    const scan_attributes *at = call->attributes;
    const tern_tensor *y = call->out[0];
    tern_sides s = sides_of(y, at->dim);
    if (y->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items_of(s.outer * s.inner, 8 * s.n),
                       tern_arg_out(y), tern_arg_in(call->in[0]), tern_arg_i64(s.outer),
                       tern_arg_i64(s.n), tern_arg_i64(s.inner));
}

/* Returns e^(x[k] + log of the sum of e^(log dy[j] - y[j]) for j >= k), for the positive dy. */
static tern_tensor *log_gradient(tern_tensor *x, tern_tensor *y, tern_tensor *dy, int dim)
{
    tern_shape dims = TERN_SHAPE(dim);
    tern_tensor *weight = tern_sub(tern_log(tern_relu(dy)), y);
    tern_tensor *sum = tern_flip(tern_logcumsumexp(tern_flip(weight, dims), dim), dims);
    return tern_exp(tern_add(sum, x));
}

/* dx[k] = e^x[k] times the sum of dy[j] e^-y[j] for j >= k, computed in logarithms, separately for
 * dy > 0 and dy < 0. If the gradient is itself recorded, where dy may be 0: dx[k] = e^(x[k] - y[k])
 * t[k], with t[k] = dy[k] + e^(y[k] - y[k + 1]) t[k + 1]. Neither form overflows. */
static tern_status log_backward(tern_gradient *g)
{
    const scan_attributes *at = g->attributes;
    tern_tensor *x = g->in[0], *y = g->out[0], *dy = g->dout[0];
    if (!g->recorded && x->ndim > 0) {
        g->din[0] =
            tern_sub(log_gradient(x, y, dy, at->dim), log_gradient(x, y, tern_neg(dy), at->dim));
        return g->din[0] ? TERN_OK : tern_last_status();
    }
    tern_tensor *factor = tern_exp(tern_sub(y, shifted(y, at->dim, true, INFINITY)));
    tern_tensor *t = scan(factor, dy, at->dim, BOTH, true);
    g->din[0] = tern_mul(tern_exp(tern_sub(x, y)), t);
    return g->din[0] ? TERN_OK : tern_last_status();
}

static const tern_op logcumsumexp_op = {.name = "logcumsumexp",
                                        .saves = TERN_SAVE_IN(0) | TERN_SAVE_OUT(0),
                                        .infer = scan_infer,
                                        .forward = log_forward,
                                        .backward = log_backward};

tern_tensor *tern_logcumsumexp(tern_tensor *x, int dim)
{
    TERN_NAMED_IN_ERRORS;
    scan_attributes at = {0};
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    if (tern_wrap_dim(dim, x->ndim, &at.dim, __func__) != TERN_OK)
        return NULL;
    if (tern_check_floating(__func__, x->dtype) != TERN_OK)
        return NULL;
    tern_dtype dtype = x->dtype;
    x = tern_contiguous(tern_to_dtype(x, tern_kept_in(dtype)));
    return tern_to_dtype(tern_apply(&logcumsumexp_op, &x, 1, &at, sizeof at), dtype);
}

/* ---- cummax, cummin: indices, and the values at them -------------------------------------- */

enum { LARGEST = 0, SMALLEST = -1 }; /* the bits that scan.cl flips */

static tern_status extremum_infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0] = (tern_result){.dtype = TERN_I64, .shape = tern_shape_of(call->in[0])};
    return TERN_OK;
}

static tern_status extremum_forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"scan", "scan_extremum"};
    const scan_attributes *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_sides s = sides_of(x, at->dim);
    if (x->numel == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items_of(s.outer * s.inner, 4 * s.n),
                       tern_arg_out(call->out[0]), tern_arg_in(x), tern_arg_i64(s.outer),
                       tern_arg_i64(s.n), tern_arg_i64(s.inner), tern_arg_i32(call->op->variant));
}

static const tern_op cummax_op = {.name = "cummax",
                                  .not_differentiable = true,
                                  .variant = LARGEST,
                                  .infer = extremum_infer,
                                  .forward = extremum_forward};
static const tern_op cummin_op = {.name = "cummin",
                                  .not_differentiable = true,
                                  .variant = SMALLEST,
                                  .infer = extremum_infer,
                                  .forward = extremum_forward};

/* The kernel computes the indices; the values, which have a gradient, are gathered from x. */
static tern_status running_extremum(const tern_op *op, tern_tensor *x, int dim,
                                    tern_values_indices *out, const char *function)
{
    scan_attributes at = {0};
    if (!x || !out)
        return tern_fail_argument_null(function, x ? "out" : "x");
    TERN_TRY(tern_wrap_dim(dim, x->ndim, &at.dim, function));
    tern_tensor *kept = tern_contiguous(tern_to_dtype(x, tern_kept_in(x->dtype)));
    out->indices = tern_apply(op, &kept, 1, &at, sizeof at);
    out->values = tern_gather(x, at.dim, out->indices);
    return out->values ? TERN_OK : tern_last_status();
}

tern_status tern_cummax(tern_tensor *x, int dim, tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    return running_extremum(&cummax_op, x, dim, out, __func__);
}

tern_status tern_cummin(tern_tensor *x, int dim, tern_values_indices *out)
{
    TERN_NAMED_IN_ERRORS;
    return running_extremum(&cummin_op, x, dim, out, __func__);
}
