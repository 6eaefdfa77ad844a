/* functions.c -- the transforms of torch.fft along one dim and along several, on pairs. */
#include "ops/fft/fft.h"
#include <math.h>
#include <tern/ops.h>

/* A transform of torch.fft along a dim: the kinds of input and output, the sign of its exponent. */
typedef struct transform {
    const char *name;
    tern_fft_kind in, out;
    int sign;
} transform;

static const transform fft = {"tern_fft_fft", TERN_FFT_PAIRS, TERN_FFT_PAIRS, -1},
                       ifft = {"tern_fft_ifft", TERN_FFT_PAIRS, TERN_FFT_PAIRS, 1},
                       rfft = {"tern_fft_rfft", TERN_FFT_REALS, TERN_FFT_PAIRS, -1},
                       irfft = {"tern_fft_irfft", TERN_FFT_HALF, TERN_FFT_REALS, 1},
                       hfft = {"tern_fft_hfft", TERN_FFT_HALF, TERN_FFT_REALS, -1},
                       ihfft = {"tern_fft_ihfft", TERN_FFT_REALS, TERN_FFT_PAIRS, 1};

bool tern_fft_given(const char *function, const tern_tensor *x, bool pairs)
{
    if (!tern_given(x, function, "x"))
        return false;
    if (tern_dtype_is_half(x->dtype)) {
        tern_fail(TERN_ERR_DTYPE, "%s: Unsupported dtype %s", function, tern_dtype_name(x->dtype));
        return false;
    }
    if (pairs && (x->ndim < 1 || x->shape[x->ndim - 1] != 2)) {
        tern_fail(TERN_ERR_SHAPE,
                  "%s: expected complex numbers as pairs, a last dim of 2, but got %s", function,
                  TERN_TENSOR_TEXT(x));
        return false;
    }
    return true;
}

/* Returns the transform of the last dim (before the pairs) of x, of any length. */
static tern_tensor *rows(tern_tensor *x, const tern_fft_rule *rule)
{
    if (x && !tern_dtype_is_floating_point(x->dtype))
        x = tern_to_dtype(x, tern_default_real() == TERN_F64 ? TERN_F64 : TERN_F32);
    bool large = tern_fft_largest_factor(rule->n) > TERN_FFT_LARGEST;
    return large ? tern_fft_by_chirp(x, rule) : tern_fft_by_factors(x, rule);
}

static double scale_of(const transform *t, int64_t n, tern_fft_norm norm)
{
    bool whole = norm == (t->sign < 0 ? TERN_FFT_FORWARD : TERN_FFT_BACKWARD);
    return norm == TERN_FFT_ORTHO ? 1 / sqrt((double)n) : whole ? 1 / (double)n : 1;
}

/* Returns the transform of x along dim, where dims do not include the dim of the pairs; n 0 is the
 * size of x. */
static tern_tensor *along(const transform *t, tern_tensor *x, int64_t n, int64_t dim,
                          tern_fft_norm norm)
{
    const bool reals = t->in == TERN_FFT_REALS;
    if (!tern_fft_given(t->name, x, !reals))
        return NULL;
    int d, last = x->ndim - 1 - !reals;
    if (tern_wrap_dim(dim, last + 1, &d, t->name) != TERN_OK)
        return NULL;
    if (last < 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Dimension specified as %lld but tensor has no "
                              "dimensions",
                              t->name, (long long)dim);
    if ((unsigned)norm > TERN_FFT_FORWARD)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: Invalid normalization mode: %d", t->name,
                              (int)norm);
    int64_t size = x->shape[d], whole = t->out == TERN_FFT_REALS ? 2 * (size - 1) : size;
    n = n == 0 ? whole : n;
    if (n < 1 || n > INT64_MAX / 32)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Invalid number of data points (%lld) specified", t->name,
                              (long long)n);
    tern_fft_rule rule = {.in = t->in,
                          .out = t->out,
                          .sign = t->sign,
                          .n = n,
                          .have = t->in == TERN_FFT_HALF ? n / 2 + 1 : n,
                          .want = reals ? n / 2 + 1 : n,
                          .scale = scale_of(t, n, norm)};
    if (size == 0) { /* an empty dim is padded with one zero */
        tern_shape one = tern_shape_of(x);
        one.dims[d] = size = 1;
        x = tern_zeros(one, x->dtype, tern_device(x));
    }
    if (size > rule.have)
        x = tern_narrow(x, d, 0, rule.have);
    else
        rule.have = size;
    tern_tensor *y = rows(tern_movedim(x, TERN_DIMS(d), TERN_DIMS(last)), &rule);
    return tern_movedim(y, TERN_DIMS(last), TERN_DIMS(d));
}

#define ALONG(NAME)                                                                                \
    tern_tensor *tern_fft_##NAME(tern_tensor *x, int64_t n, int dim, tern_fft_norm norm)           \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return along(&NAME, x, n, dim, norm);                                                      \
    }
ALONG(fft)
ALONG(ifft)
ALONG(rfft)
ALONG(irfft)
ALONG(hfft)
ALONG(ihfft)

/* ---- along several dims ------------------------------------------------------------------ */

/* A transform along several dims: `last` along the last dim, before the other dims (for real input)
 * or after, and `other` along the other dims. */
typedef struct several {
    const char *name;
    const transform *last, *other;
    bool last_first;
} several;

/* Fills in the defaults of s and dims: an entry 0 or -1 of s is the size of x. */
static tern_status complete(const several *t, const tern_tensor *x, tern_shape *s, tern_shape *dims)
{
    int ndim = x->ndim - (t->last->in != TERN_FFT_REALS), d;
    bool all = dims->ndim == 0;
    if (all)
        dims->ndim = s->ndim ? s->ndim : ndim;
    if (dims->ndim > ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Got shape with %d values but input tensor only has %d dimensions.",
                         t->name, dims->ndim, ndim);
    if (s->ndim && s->ndim != dims->ndim)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: When given, dim and shape arguments must have the same length",
                         t->name);
    for (int i = 0; i < dims->ndim; i++) {
        TERN_TRY(tern_wrap_dim(all ? i - dims->ndim : dims->dims[i], ndim, &d, t->name));
        for (int k = 0; k < i; k++)
            if (dims->dims[k] == d)
                return tern_fail(TERN_ERR_ARGUMENT, "%s: FFT dims must be unique", t->name);
        dims->dims[i] = d;
        s->dims[i] = s->ndim && s->dims[i] != -1 ? s->dims[i] : 0;
        if (s->ndim && s->dims[i] < 0)
            return tern_fail(TERN_ERR_ARGUMENT,
                             "%s: Invalid number of data points (%lld) specified", t->name,
                             (long long)s->dims[i]);
    }
    if (dims->ndim == 0 && t->last != t->other)
        return tern_fail(TERN_ERR_SHAPE, "%s: at least one axis must be transformed", t->name);
    return TERN_OK;
}

static tern_tensor *along_several(const several *t, tern_tensor *x, tern_shape s, tern_shape dims,
                                  tern_fft_norm norm)
{
    if (!tern_fft_given(t->name, x, t->last->in != TERN_FFT_REALS) ||
        complete(t, x, &s, &dims) != TERN_OK)
        return NULL;
    int end = dims.ndim - 1;
    tern_tensor *y = x;
    if (end >= 0 && t->last_first)
        y = along(t->last, y, s.dims[end], dims.dims[end], norm);
    for (int i = 0; i < end && y; i++)
        y = along(t->other, y, s.dims[i], dims.dims[i], norm);
    if (end >= 0 && y && !t->last_first)
        y = along(t->last, y, s.dims[end], dims.dims[end], norm);
    return y;
}

/* Computes the transform in a scope, which frees the intermediate results. */
static tern_tensor *scoped(const several *t, tern_tensor *x, tern_shape s, tern_shape dims,
                           tern_fft_norm norm)
{
    tern_tensor *result = NULL;
    TERN_SCOPE {
        result = along_several(t, x, s, dims, norm);
        if (result && result != x)
            result = tern_escape(result);
    }
    return result;
}

#define SEVERAL(NAME, LAST, OTHER, LAST_FIRST)                                                     \
    tern_tensor *tern_fft_##NAME##n(tern_tensor *x, tern_shape s, tern_shape dims,                 \
                                    tern_fft_norm norm)                                            \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return scoped(&(several){"tern_fft_" #NAME "n", &LAST, &OTHER, LAST_FIRST}, x, s, dims,    \
                      norm);                                                                       \
    }                                                                                              \
    tern_tensor *tern_fft_##NAME##2(tern_tensor * x, tern_shape s, tern_shape dims,                \
                                    tern_fft_norm norm)                                            \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        if (dims.ndim == 0)                                                                        \
            dims = TERN_DIMS(-2, -1);                                                              \
        return scoped(&(several){"tern_fft_" #NAME "2", &LAST, &OTHER, LAST_FIRST}, x, s, dims,    \
                      norm);                                                                       \
    }
SEVERAL(fft, fft, fft, true)
SEVERAL(ifft, ifft, ifft, true)
SEVERAL(rfft, rfft, fft, true)
SEVERAL(irfft, irfft, ifft, false)
SEVERAL(hfft, hfft, fft, false)
SEVERAL(ihfft, ihfft, ifft, true)
