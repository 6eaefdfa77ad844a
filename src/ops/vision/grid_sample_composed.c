/* grid_sample_composed.c -- grid_sample composed of public operations, as vision.cl computes it,
 * for second derivatives.
 *
 * Positions are piecewise linear in the grid, with kinks at the padding, and weights are
 * polynomials of the fractional part of a position. Whole parts, kinks and the elements that are
 * read are therefore computed without a gradient, and all derivatives are those of linear maps,
 * polynomials and a gather. */
#include "ops/vision/grid_sample.h"
#include "device/device.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* The taps of all positions (N, Q) along one dim: elements within 0..n-1, and their weights. */
typedef struct taps {
    int count;
    tern_tensor *at[4], *weight[4]; /* at: int64; a weight of NULL is 1 everywhere */
} taps;

static tern_tensor *plus(tern_tensor *x, double a)
{
    return tern_add_scalar(x, tern_scalar_real(a));
}
static tern_tensor *times(tern_tensor *x, double a)
{
    return tern_mul_scalar(x, tern_scalar_real(a));
}

/* Returns 1 where low < v < high, else 0, in the dtype of v. */
static tern_tensor *between(tern_tensor *v, double low, double high)
{
    tern_tensor *above = tern_gt_scalar(v, tern_scalar_real(low));
    tern_tensor *below = tern_lt_scalar(v, tern_scalar_real(high));
    return tern_to_dtype(tern_logical_and(above, below), tern_dtype_of(v));
}

/* Returns v reflected into low .. low + span, and its derivative, 1 or -1, in *slope. */
static tern_tensor *folded(tern_tensor *v, double low, double span, tern_tensor **slope)
{
    *slope = times(v, 0);
    if (span <= 0)
        return *slope;
    tern_tensor *from = plus(v, -low),
                *sign =
                    tern_add_scalar(times(tern_to_dtype(tern_lt_scalar(from, tern_scalar_real(0)),
                                                        tern_dtype_of(v)),
                                          -2),
                                    tern_scalar_real(1));
    from = tern_abs(from);
    tern_tensor *turn = tern_floor(times(from, 1 / span));
    tern_tensor *rest = tern_sub(from, times(turn, span));
    tern_tensor *odd = tern_sub(turn, times(tern_floor(times(turn, 0.5)), 2));
    tern_tensor *up = plus(times(odd, -2), 1); /* 1, or -1 in every other interval */
    *slope = tern_mul(sign, up);
    return plus(tern_add(tern_mul(rest, up), times(odd, span)), low);
}

/* Returns a position moved into 0..n-1 by the padding mode, and its derivative in v in *slope. */
static tern_tensor *inside(const tern_grid_attributes *at, tern_tensor *v, int64_t n,
                           tern_tensor **slope)
{
    double last = (double)(n - 1);
    tern_tensor *sign = plus(times(v, 0), 1);
    *slope = sign;
    if (at->padding == TERN_GRID_SAMPLE_ZEROS)
        return v;
    if (at->padding == TERN_GRID_SAMPLE_REFLECTION)
        v = at->align ? folded(v, 0, last, &sign) : folded(v, -0.5, (double)n, &sign);
    *slope = tern_mul(sign, between(v, 0, last));
    return tern_clamp(v, 0, last);
}

/* Computes the weights of Keys' cubic with a = -0.75 for the four elements around a position, which
 * is t after the second element. */
static void cubic(tern_tensor *t, tern_tensor **weight)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        tern_tensor *d = k == 0 ? plus(t, 1) : k == 1 ? t : plus(times(t, -1), k == 2 ? 1 : 2);
        bool near = k == 1 || k == 2;
        tern_tensor *w = plus(times(d, near ? a + 2 : a), near ? -(a + 3) : -5 * a);
        w = near ? tern_mul(tern_mul(w, d), d) : tern_mul(plus(tern_mul(w, d), 8 * a), d);
        weight[k] = plus(w, near ? 1 : -4 * a);
    }
}

/* Sets tap k to whole numbers i (N, Q), clamped to 0..n-1, with weight 0 where i is outside. */
static void set_tap(taps *t, int k, tern_tensor *i, int64_t n)
{
    tern_tensor *there = between(i, -0.5, (double)n - 0.5);
    t->at[k] = tern_to_dtype(tern_clamp(i, 0, (double)(n - 1)), TERN_I64);
    t->weight[k] = t->weight[k] ? tern_mul(t->weight[k], there) : there;
}

/* Returns the taps along a dim of n elements at coordinates c (N, Q) in -1..1. */
static taps taps_of(const tern_grid_attributes *at, tern_tensor *c, int64_t n)
{
    taps t = {.count = at->mode == TERN_SAMPLE_CUBIC ? 4 : at->mode == TERN_SAMPLE_LINEAR ? 2 : 1};
    double far = (double)n + 100, size = (double)n;
    tern_tensor *below = NULL, *base = NULL, *slope = NULL, *ignored;
    tern_tensor *v = at->align ? times(plus(c, 1), (size - 1) / 2)
                               : times(plus(times(plus(c, 1), size), -1), 0.5);
    v = tern_clamp(tern_nan_to_num(v, -far, far, -far), -far, far);
    tern_tensor *still = tern_detach(v);
    TERN_NO_GRAD {
        base = at->mode == TERN_SAMPLE_CUBIC ? still : inside(at, still, n, &slope);
        below = at->mode == TERN_SAMPLE_NEAREST ? tern_round(base) : tern_floor(base);
    }
    /* base + slope (v - value of v) - whole part */
    tern_tensor *rest = tern_sub(v, still);
    rest = tern_add(slope ? tern_mul(rest, slope) : rest, tern_sub(base, below));
    if (at->mode == TERN_SAMPLE_CUBIC)
        cubic(rest, t.weight);
    else if (at->mode == TERN_SAMPLE_LINEAR) {
        t.weight[0] = plus(times(rest, -1), 1);
        t.weight[1] = rest;
    }
    for (int k = 0; k < t.count; k++) {
        tern_tensor *i = below;
        TERN_NO_GRAD {
            i = at->mode == TERN_SAMPLE_CUBIC ? inside(at, plus(below, k - 1), n, &ignored)
                                              : plus(below, k);
        }
        set_tap(&t, k, i, n);
    }
    return t;
}

/* Returns the sum over the taps of all dims of the product of their weights times the elements of
 * planes (N, C, in). */
static tern_tensor *sum_of_taps(const tern_grid_attributes *at, tern_tensor *planes, const taps *t)
{
    const int64_t *in = at->shape.in;
    int64_t places = at->shape.out[0] * at->shape.out[1] * at->shape.out[2];
    tern_tensor *sum = NULL;
    for (int a = 0; a < t[0].count; a++)
        for (int b = 0; b < t[1].count; b++)
            for (int c = 0; c < t[2].count; c++) {
                tern_tensor *i = tern_mul_scalar(t[1].at[b], tern_scalar_int(in[2]));
                tern_tensor *w = tern_mul(t[1].weight[b], t[2].weight[c]);
                i = tern_add(i, t[2].at[c]);
                if (at->shape.ndim > 2) {
                    i = tern_add(tern_mul_scalar(t[0].at[a], tern_scalar_int(in[1] * in[2])), i);
                    w = tern_mul(t[0].weight[a], w);
                }
                i = tern_expand(tern_unsqueeze(i, 1), TERN_SHAPE(at->shape.n, at->shape.c, places));
                tern_tensor *part = tern_mul(tern_gather(planes, 2, i), tern_unsqueeze(w, 1));
                sum = sum ? tern_add(sum, part) : part;
                if (!sum)
                    return NULL;
            }
    return sum;
}

/* Returns 0, or NaN where the kernel's `lost` is NaN, at coordinates c (N, Q), for all channels. */
static tern_tensor *lost(const tern_grid_attributes *at, tern_tensor *c)
{
    tern_tensor *nothing = times(tern_detach(c), 0);
    if (at->mode == TERN_SAMPLE_NEAREST)
        return tern_unsqueeze(tern_zeros_like(c), 1);
    if (at->mode == TERN_SAMPLE_LINEAR && at->padding == TERN_GRID_SAMPLE_BORDER)
        nothing = tern_masked_fill(nothing, tern_isinf(tern_detach(c)), tern_scalar_int(0));
    return tern_unsqueeze(nothing, 1);
}

tern_status tern_grid_sample_compose(const tern_gradient *g, tern_tensor *const *in,
                                     tern_tensor **out)
{
    const tern_grid_attributes *at = g->attributes;
    const int64_t *size = at->shape.in;
    tern_dtype dtype = tern_dtype_of(in[0]), wide = dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    int ndim = (int)at->shape.ndim;
    int64_t places = at->shape.out[0] * at->shape.out[1] * at->shape.out[2];
    tern_tensor *planes =
        tern_reshape(in[0], TERN_SHAPE(at->shape.n, at->shape.c, size[0] * size[1] * size[2]));
    tern_tensor *grid = tern_reshape(in[1], TERN_SHAPE(at->shape.n, places, ndim));
    taps t[3] = {{.count = 1}};
    planes = tern_to_dtype(planes, wide);
    grid = tern_to_dtype(grid, wide);
    for (int d = 3 - ndim; d < 3; d++)
        t[d] = taps_of(at, tern_select(grid, -1, 2 - d), size[d]);
    tern_tensor *y = sum_of_taps(at, planes, t);
    for (int d = 0; d < ndim; d++)
        y = tern_add(y, lost(at, tern_select(grid, -1, d)));
    tern_shape shape = {2 + ndim, {at->shape.n, at->shape.c}};
    for (int d = 0; d < ndim; d++)
        shape.dims[2 + d] = at->shape.out[3 - ndim + d];
    out[0] = tern_to_dtype(tern_reshape(y, shape), dtype);
    return out[0] ? TERN_OK : tern_last_status();
}
