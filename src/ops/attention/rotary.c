/* rotary.c -- positions in a sequence: rotary embedding, and tables of sines and cosines. */
#include "ops/copy/copy.h"
#include "ops/create/table.h"
#include "tensor/tensor.h"
#include "types_host.h"
#include "shapes.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

enum { X, COS, SIN };

typedef struct rotation {
    int64_t offset;
    bool interleaved, back; /* back: rotate by the opposite angle */
} rotation;

static const char *const name = "tern_rotary_embedding";

/* ---- the operation: inputs x (dense), cos and sin in the type of sums ----------------------- */

/* y has the shape and dtype of x. */
static tern_status infer(tern_call *call)
{
    call->n_out = 1;
    call->result[0].dtype = call->in[X]->dtype;
    call->result[0].shape = tern_shape_of(call->in[X]);
    return TERN_OK;
}

/* Rotates each pair (a, b) of a row at position t by the angle of (t, pair):
 *   y_a = x_a cos - x_b sin,   y_b = x_a sin + x_b cos
 * (Su et al. 2021). Pairs are neighbours (2 i, 2 i + 1) if interleaved, otherwise (i, i + pairs).
 * Elements behind the pairs are copied. */
static tern_status forward(tern_call *call)
{
    static const tern_kernel_ref kernel = {"attention", "rotary"};
    const rotation *r = call->attributes;
    const tern_tensor *x = call->in[X], *c = call->in[COS];
    if (x->numel == 0)
        return TERN_OK;
    int64_t width = x->shape[x->ndim - 1], pairs = c->shape[c->ndim - 1];
    int64_t rows = x->numel / width;
    tern_rotary s = {.rows = rows,
                     .share = c->ndim == 3 ? rows / c->shape[0] : rows,
                     .places = c->shape[c->ndim - 2],
                     .length = x->shape[x->ndim - 2],
                     .width = width,
                     .pairs = pairs,
                     .offset = r->offset,
                     .step = r->interleaved ? 2 : 1,
                     .apart = r->interleaved ? 1 : pairs,
                     .turn = r->back ? -1 : 1};
    if (2 * pairs < width) /* elements behind the pairs are copied */
        TERN_TRY(tern_copy_elements(call->out[0], x));
    if (pairs == 0)
        return TERN_OK;
    return TERN_LAUNCH(call->place, &kernel, x->dtype, tern_items(s.rows * pairs),
                       tern_arg_out(call->out[0]), tern_arg_in(x), tern_arg_in(c),
                       tern_arg_in(call->in[SIN]), TERN_ARG_STRUCT(tern_rotary, &s));
}

static tern_status backward(tern_gradient *g);

static const tern_op rotary_op = {.name = "rotary_embedding",
                                  .names =
                                      TERN_NAMES(TERN_FIELD(rotation, "offset", offset),
                                                 TERN_FIELD(rotation, "interleaved", interleaved),
                                                 TERN_FIELD(rotation, "back", back)),
                                  .saves = TERN_SAVE_IN(COS) | TERN_SAVE_IN(SIN),
                                  .infer = infer,
                                  .forward = forward,
                                  .backward = backward};

/* A rotation is orthogonal, and its transpose is the rotation by the opposite angle: dx is dy
 * rotated by that angle with the same operation. */
static tern_status backward(tern_gradient *g)
{
    rotation r = *(const rotation *)g->attributes;
    r.back = !r.back;
    tern_tensor *in[] = {tern_contiguous(g->dout[0]), g->in[COS], g->in[SIN]};
    g->din[X] = tern_apply(&rotary_op, in, 3, &r, sizeof r);
    return g->din[X] ? TERN_OK : tern_last_status();
}

/* Checks the shapes, and that the positions offset to offset + length are rows of the tables. The
 * tables are constants, which get no gradient. */
static tern_status check(const tern_tensor *x, const tern_tensor *c, const tern_tensor *s,
                         int64_t offset)
{
    if (!x || !c || !s)
        return tern_fail_argument_null(name, !x ? "x" : !c ? "cos" : "sin");
    TERN_TRY(tern_check_floating(name, x->dtype));
    bool fits = c->ndim == 2 ||
                (c->ndim == 3 && x->ndim >= 3 && (c->shape[0] == x->shape[0] || c->shape[0] == 1));
    if (x->ndim < 2 || !fits || !tern_same_shape(c, s) ||
        2 * c->shape[c->ndim - 1] > x->shape[x->ndim - 1])
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: x (..., time, width) and cos and sin (places, at most width / 2), or x (N, ..., "
            "time, width) and tables (N, places, pairs), not %s, %s and %s",
            name, TERN_TENSOR_TEXT(x), TERN_TENSOR_TEXT(c), TERN_TENSOR_TEXT(s));
    int64_t length = x->shape[x->ndim - 2], places = c->shape[c->ndim - 2];
    if (offset < 0 || offset > places - length)
        return tern_fail(TERN_ERR_SHAPE, "%s: places %lld to %lld are not in tables of %lld places",
                         name, (long long)offset, (long long)(offset + length), (long long)places);
    if (tern_requires_grad(c) || tern_requires_grad(s))
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: cos and sin are tables without gradients",
                         name);
    return TERN_OK;
}

/* Converts the tables to the dtype that the kernel computes in, float32 for half precision: half
 * precision can't represent the angles of far positions. */
tern_tensor *tern_rotary_embedding(tern_tensor *x, tern_tensor *cos, tern_tensor *sin,
                                   const tern_rotary_embedding_function_options *options)
{
    tern_rotary_embedding_function_options o =
        options ? *options : (tern_rotary_embedding_function_options){0};
    rotation r = {.offset = o.offset, .interleaved = o.interleaved};
    if (check(x, cos, sin, o.offset) != TERN_OK)
        return NULL;
    tern_dtype sums = x->dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_tensor *in[] = {tern_contiguous(x), tern_contiguous(tern_to_dtype(cos, sums)),
                         tern_contiguous(tern_to_dtype(sin, sums))};
    return in[X] && in[COS] && in[SIN] ? tern_apply(&rotary_op, in, 3, &r, sizeof r) : NULL;
}

/* ---- tables -------------------------------------------------------------------------------- */

/* Returns a table (places, columns) of functions of t base^(-2 i / width), where t is the row and i
 * = k / pairs the index of the frequency of column k. It is computed on the host in double
 * precision, so that it is the same on every device. */
static tern_tensor *table(int64_t places, int64_t columns, double base, int64_t width,
                          double (*value)(int64_t place, int64_t column, double frequency),
                          int64_t pairs, tern_dtype dtype, const char *device, const char *function)
{
    if (places < 0 || width < 0 || base <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: %lld places of width %lld and base %g are not possible",
                              function, (long long)places, (long long)width, base);
    tern_shape shape = {2, {places, columns}};
    double *data = tern_table_alloc(function, &shape);
    for (int64_t k = 0; data && places > 0 && k < columns; k++) {
        double frequency = pow(base, -2.0 * (double)(k / pairs) / (double)width);
        for (int64_t i = 0; i < places; i++)
            data[i * columns + k] = value(i, k, frequency);
    }
    return tern_table_done(data, &shape, dtype, device);
}

/* cos(t base^(-2 i / dim)) for column i. */
static double cosine(int64_t place, int64_t column, double frequency)
{
    (void)column;
    return cos((double)place * frequency);
}

/* sin(t base^(-2 i / dim)) for column i. */
static double sine(int64_t place, int64_t column, double frequency)
{
    (void)column;
    return sin((double)place * frequency);
}

/* Sines in even columns, cosines in odd columns; two columns share a frequency. */
static double alternating(int64_t place, int64_t column, double frequency)
{
    return column % 2 ? cos((double)place * frequency) : sin((double)place * frequency);
}

/* Creates cos and sin of t base^(-2 i / dim), i < dim / 2, for tern_rotary_embedding. */
tern_status tern_rotary_tables(int64_t places, int64_t dim, double base, tern_dtype dtype,
                               const char *device, tern_tensor **cos, tern_tensor **sin)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!cos || !sin)
        return tern_fail_argument_null(function, cos ? "sin" : "cos");
    *cos = *sin = NULL;
    if (dim % 2)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: dim must be even, got %lld", function,
                         (long long)dim);
    base = base == 0 ? 10000 : base;
    *cos = table(places, dim / 2, base, dim, cosine, 1, dtype, device, function);
    *sin = table(places, dim / 2, base, dim, sine, 1, dtype, device, function);
    return *cos && *sin ? TERN_OK : tern_last_status();
}

/* Returns PE(t, 2 i) = sin(t 10000^(-2 i / width)), PE(t, 2 i + 1) = cos(t 10000^(-2 i / width))
 * (Vaswani et al. 2017). */
tern_tensor *tern_sinusoidal_table(int64_t places, int64_t width, tern_dtype dtype,
                                   const char *device)
{
    TERN_NAMED_IN_ERRORS;
    return table(places, width, 10000, width, alternating, 2, dtype, device, __func__);
}
