/* resize.c -- images resampled along one dim after the other, by tables of weights: uint8, and
 * every dtype with antialias.
 *
 * Along a dim, output q is the sum of w[q][k] x[first[q] + k] over k below count[q]. The table is
 * computed on the host in float64, as PyTorch does for uint8, and the gradient is the same sum with
 * the table transposed. Sums of uint8 are computed in fixed point and rounded after each dim, as in
 * Pillow. */
#include "ops/vision/resize.h"
#include "base/checked.h"
#include "base/memory.h"
#include "tensor/memory_format.h"
#include "tensor/tensor.h"
#include <math.h>
#include <string.h>
#include <tern/ops.h>

enum { GREATEST_BITS = 22, BYTE_WEIGHT = 1 << 15 };

/* A table of weights. Row q: first in range[2 q], count in range[2 q + 1], weights[q width]. */
typedef struct table {
    int64_t rows, width;
    int64_t *range;
    double *weights;
    double greatest; /* largest weight or partial sum, as PyTorch takes it */
} table;

static void table_free(table *t)
{
    tern_free(t->range);
    tern_free(t->weights);
    *t = (table){0};
}

static tern_status table_alloc(table *t, int64_t rows, int64_t width)
{
    *t = (table){.rows = rows, .width = width};
    t->range = tern_alloc(tern_size_bytes(rows, 2 * sizeof *t->range));
    t->weights =
        t->range ? tern_alloc(tern_size_bytes(tern_size_mul(rows, width), sizeof(double))) : NULL;
    if (t->weights)
        return TERN_OK;
    table_free(t);
    return TERN_ERR_MEMORY;
}

/* ---- filters ----------------------------------------------------------------------------- */

/* Returns Keys' cubic of x with parameter a. */
static double cubic(double x, double a)
{
    x = fabs(x);
    return x < 1   ? ((a + 2) * x - (a + 3)) * x * x + 1
           : x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
                   : 0;
}

static double sinc(double x)
{
    const double pi = 3.14159265358979323846;
    return x == 0 ? 1 : sin(pi * x) / (pi * x);
}

/* Returns the weight of an element at distance x from the centre. As in PyTorch the cubic is
 * Pillow's with antialias and OpenCV's without. */
static double weight_at(const tern_resize *at, double x)
{
    switch ((tern_resize_filter)at->filter) {
    case TERN_RESIZE_LINEAR:
        return fabs(x) < 1 ? 1 - fabs(x) : 0;
    case TERN_RESIZE_CUBIC:
        return cubic(x, at->antialias ? -0.5 : -0.75);
    case TERN_RESIZE_LANCZOS:
        return fabs(x) < 3 ? sinc(x) * sinc(x / 3) : 0;
    default:
        return 1;
    }
}

/* Returns the number of elements that a filter covers at scale 1. */
static int64_t taps_of(const tern_resize *at)
{
    static const int64_t taps[] = {1, 1, 2, 4, 6};
    return taps[at->filter];
}

/* ---- tables: rows ------------------------------------------------------------------------ */

static int64_t clamped(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* Fills row q with the normalised filter over the elements around (q + 1/2) scale. Where scale is
 * above 1, the filter is stretched by scale. */
static void smooth_row(const tern_resize *at, table *t, int64_t q, double support)
{
    double center = at->scale * ((double)q + 0.5), total = 0;
    double narrower = at->scale >= 1 ? 1 / at->scale : 1, *w = t->weights + q * t->width;
    int64_t first = (int64_t)(center - support + 0.5);
    first = first > 0 ? first : 0;
    int64_t end = (int64_t)(center + support + 0.5);
    int64_t count = clamped((end < at->in ? end : at->in) - first, 0, t->width);
    for (int64_t k = 0; k < count; k++)
        total += w[k] = weight_at(at, ((double)(k + first) - center + 0.5) * narrower);
    for (int64_t k = 0; k < count && total != 0; k++) {
        w[k] /= total;
        t->greatest = w[k] > t->greatest ? w[k] : t->greatest;
    }
    t->range[2 * q] = first;
    t->range[2 * q + 1] = count;
}

/* Fills row q with the elements around the position of output q; the weight of an element outside
 * of the image is added to the border. */
static void unfiltered_row(const tern_resize *at, table *t, int64_t q)
{
    int64_t taps = t->width, half = taps / 2, last = at->in - 1;
    double place = at->align ? at->scale * (double)q : at->scale * ((double)q + 0.5) - 0.5;
    place = at->filter == TERN_RESIZE_LINEAR && place < 0 ? 0 : place;
    int64_t below = (int64_t)floor(place);
    below = below < last ? below : last;
    double rest = place - (double)below, *w = t->weights + q * taps;
    rest = rest > 0 ? rest < 1 ? rest : 1 : 0;
    int64_t from = below - half + 1, first = from > 0 ? from : 0;
    int64_t count =
        clamped((below + half + 1 < at->in ? below + half + 1 : at->in) - first, 0, taps);
    for (int64_t k = 0; k < taps; k++) {
        int64_t to = clamped(from + k, 0, last) - first;
        w[to] += weight_at(at, (double)(k + 1 - half) - rest);
        t->greatest = w[to] > t->greatest ? w[to] : t->greatest;
    }
    t->range[2 * q] = first;
    t->range[2 * q + 1] = count;
}

/* Fills row q with one element; its position is computed in float32, as PyTorch does. */
static void nearest_row(const tern_resize *at, table *t, int64_t q)
{
    float half = at->filter == TERN_RESIZE_NEAREST ? 0.0f : 0.5f;
    int64_t i = (int64_t)(((float)q + half) * (float)at->scale);
    t->range[2 * q] = clamped(i, 0, at->in - 1);
    t->range[2 * q + 1] = 1;
    t->weights[q] = t->greatest = 1;
}

static tern_status table_make(table *t, const tern_resize *at)
{
    double support = (double)taps_of(at) / 2;
    if (at->antialias && at->scale >= 1)
        support *= at->scale;
    int64_t width = at->antialias ? 2 * tern_size_of_real(ceil(support)) + 1 : taps_of(at);
    TERN_TRY(table_alloc(t, at->out, width));
    for (int64_t q = 0; q < at->out; q++)
        if (at->antialias)
            smooth_row(at, t, q, support);
        else if (at->filter <= TERN_RESIZE_NEAREST_EXACT)
            nearest_row(at, t, q);
        else
            unfiltered_row(at, t, q);
    return TERN_OK;
}

/* Transposes the table. The rows of the transpose are ranges too, as both ends of the ranges
 * increase with q. */
static tern_status table_transpose(table *t, const tern_resize *at)
{
    table back;
    int64_t *seen = tern_alloc(tern_size_bytes(at->in, 2 * sizeof *seen));
    int64_t width = 1;
    if (!seen)
        return TERN_ERR_MEMORY;
    for (int64_t q = 0; q < t->rows; q++)
        for (int64_t k = 0; k < t->range[2 * q + 1]; k++) {
            int64_t *r = seen + 2 * (t->range[2 * q] + k);
            r[0] = r[1] ? r[0] : q;
            r[1] = q - r[0] + 1;
            width = r[1] > width ? r[1] : width;
        }
    tern_status status = table_alloc(&back, at->in, width);
    if (status == TERN_OK) {
        memcpy(back.range, seen, (size_t)at->in * 2 * sizeof *seen);
        for (int64_t q = 0; q < t->rows; q++)
            for (int64_t k = 0; k < t->range[2 * q + 1]; k++) {
                int64_t i = t->range[2 * q] + k;
                back.weights[i * width + q - seen[2 * i]] = t->weights[q * t->width + k];
            }
        table_free(t);
        *t = back;
    }
    tern_free(seen);
    return status;
}

/* Rounds weights of uint8 to whole multiples of 2^-bits and returns bits, the largest with which
 * each weight stays below 2^15. */
static int32_t fixed_point(table *t)
{
    int32_t bits = 0;
    while (bits < GREATEST_BITS && (int)(0.5 + t->greatest * (1 << (bits + 1))) < BYTE_WEIGHT)
        bits++;
    for (int64_t i = 0; i < t->rows * t->width; i++) {
        double v = t->weights[i] * (1 << bits);
        t->weights[i] = (double)(int)(v < 0 ? v - 0.5 : v + 0.5);
    }
    return bits;
}

/* ---- the operation ----------------------------------------------------------------------- */

static tern_status infer(tern_call *call)
{
    const tern_resize *at = call->attributes;
    call->n_out = 1;
    call->channels_last = at->last;
    call->result[0] =
        (tern_result){.dtype = call->in[0]->dtype, .shape = tern_shape_of(call->in[0])};
    call->result[0].shape.dims[at->dim] = at->transposed ? at->in : at->out;
    return TERN_OK;
}

/* Returns the weights in the dtype in which the kernel computes. */
static tern_tensor *weights_on(const tern_call *call, const table *t)
{
    tern_shape shape = {2, {t->rows, t->width}};
    tern_dtype dtype = call->in[0]->dtype == TERN_U8    ? TERN_I32
                       : call->in[0]->dtype == TERN_F64 ? TERN_F64
                                                        : TERN_F32;
    if (dtype != TERN_F64) {
        float *narrow = (float *)(void *)t->weights;
        int32_t *whole = (int32_t *)(void *)t->weights;
        for (int64_t i = 0; i < t->rows * t->width; i++) {
            double v = t->weights[i];
            if (dtype == TERN_I32)
                memcpy(whole + i, &(int32_t){(int32_t)v}, sizeof *whole);
            else
                memcpy(narrow + i, &(float){(float)v}, sizeof *narrow);
        }
    }
    return tern_from_data(t->weights, shape, dtype, tern_place_text(call->place));
}

static tern_status launch(tern_call *call, const table *t, int32_t bits)
{
    static const tern_kernel_ref kernel = {"resize", "resize"};
    const tern_resize *at = call->attributes;
    const tern_tensor *x = call->in[0];
    tern_tensor *y = call->out[0];
    int64_t rows = 1, inner = 1;
    bool inside = false;
    for (int i = 0; i < x->ndim; i++) {
        int d = at->last ? tern_channels_last_dim(i, x->ndim) : i;
        *(inside ? &inner : &rows) *= d == at->dim ? 1 : x->shape[d];
        inside = inside || d == at->dim;
    }
    tern_tensor *weights = weights_on(call, t);
    tern_tensor *range = weights ? tern_from_data(t->range, (tern_shape){2, {t->rows, 2}}, TERN_I64,
                                                  tern_place_text(call->place))
                                 : NULL;
    if (!range)
        return tern_last_status();
    return TERN_LAUNCH(call->place, &kernel, y->dtype, tern_items_of(y->numel, t->width),
                       tern_arg_out(y), tern_arg_in(x), tern_arg_in(range), tern_arg_in(weights),
                       tern_arg_i64(rows), tern_arg_i64(x->shape[at->dim]), tern_arg_i64(t->rows),
                       tern_arg_i64(inner), tern_arg_i64(t->width), tern_arg_i32(bits));
}

static tern_status forward(tern_call *call)
{
    const tern_resize *at = call->attributes;
    table t;
    if (call->out[0]->numel == 0)
        return TERN_OK;
    TERN_TRY(table_make(&t, at));
    tern_status status = at->transposed ? table_transpose(&t, at) : TERN_OK;
    int32_t bits = status == TERN_OK && call->in[0]->dtype == TERN_U8 ? fixed_point(&t) : 0;
    TERN_SCOPE {
        if (status == TERN_OK)
            status = launch(call, &t, bits);
    }
    table_free(&t);
    return status;
}

static tern_status backward(tern_gradient *g);
static const tern_op op = {.name = "interpolate",
                           .cast = TERN_CAST_FLOAT32,
                           .infer = infer,
                           .forward = forward,
                           .backward = backward};

/* Each of the two sums is the gradient of the other. */
static tern_status backward(tern_gradient *g)
{
    tern_resize at = *(const tern_resize *)g->attributes;
    tern_tensor *d = tern_in_format(g->dout[0], at.last);
    at.transposed = !at.transposed;
    g->din[0] = tern_apply(&op, &d, 1, &at, sizeof at);
    return TERN_OK;
}

tern_tensor *tern_resize_dims(tern_tensor *x, const tern_resize *steps, int n)
{
    bool same = true;
    TERN_CAST_FOR(&op, &x);
    bool last = x && x->ndim == 4 && tern_is_channels_last(x);
    x = tern_in_format(x, last);
    for (int i = n - 1; i >= 0; i--)
        if (steps[i].in != steps[i].out) {
            tern_resize at = steps[i];
            at.last = last;
            x = tern_apply(&op, &x, 1, &at, sizeof at);
            same = false;
        }
    return same ? tern_lie_as(tern_clone(x), x) : x;
}
