/* covariance.c -- covariances and correlations of rows, with or without weights.
 *
 *   cov = sum_i w_i (x_i - mean)(x_i - mean)' / (sum w - correction sum(w a) / sum w)
 *
 * with w = fweights aweights and a = aweights, and a weighted mean: one matrix product. */
#include "base/option.h"
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

static const char *const name = "tern_cov";

static tern_status check_weights(tern_tensor *w, const char *what, bool whole, int64_t n)
{
    if (!w)
        return TERN_OK;
    if (w->ndim > 1)
        return tern_fail(
            TERN_ERR_SHAPE,
            "%s: cov(): expected %s to have one or fewer dimensions but got %s with %d "
            "dimensions",
            name, what, what, w->ndim);
    if (w->dtype == TERN_BOOL || tern_dtype_is_floating_point(w->dtype) == whole)
        return tern_fail(
            TERN_ERR_DTYPE, "%s: cov(): expected %s to have %s dtype but got %s with %s dtype",
            name, what, whole ? "integral" : "floating point", what, tern_dtype_name(w->dtype));
    if (w->numel != n)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: cov(): expected %s to have the same numel as there are observations "
                         "in the input but got %lld != %lld",
                         name, what, (long long)w->numel, (long long)n);
    const uint64_t failures = tern_failures();
    bool negative = false;
    TERN_NO_GRAD
        negative = n > 0 && tern_item(tern_min(w)) < 0;
    return negative ? tern_fail(TERN_ERR_ARGUMENT, "%s: cov(): %s cannot be negative", name, what)
                    : tern_failed_since(failures);
}

/* Returns the divisor of the sums of products, clamped at 0. */
static tern_tensor *divisor(const tern_cov_options *o, tern_tensor *w, tern_tensor *sum)
{
    double correction = (double)o->correction.value;
    if (o->aweights && correction != 0) {
        tern_tensor *squares = tern_sum(tern_mul(w, o->aweights));
        sum = tern_sub(sum, tern_mul_scalar(tern_div(squares, sum), tern_scalar_real(correction)));
    } else {
        sum = tern_sub_scalar(sum, tern_scalar_real(correction));
    }
    return tern_clamp(sum, 0, INFINITY);
}

tern_tensor *tern_cov(tern_tensor *x, const tern_cov_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_cov_options read = tern_read_cov(options), *o = &read;
    if (!x) {
        tern_fail_argument_null(name, "x");
        return NULL;
    }
    if (x->ndim > 2)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "%s: cov(): expected input to have two or fewer dimensions but got an "
            "input with %d dimensions",
            name, x->ndim);
    if (x->dtype == TERN_BOOL)
        return tern_fail_null(TERN_ERR_DTYPE, "%s: cov(): bool dtype is not supported for input",
                              name);
    x = x->ndim < 2 ? tern_reshape(x, TERN_SHAPE(1, x->numel)) : x;
    if (!x || check_weights(o->fweights, "fweights", true, x->shape[1]) != TERN_OK ||
        check_weights(o->aweights, "aweights", false, x->shape[1]) != TERN_OK)
        return NULL;
    if (!tern_dtype_is_floating_point(x->dtype))
        x = tern_to_dtype(x, TERN_F32);
    tern_tensor *w = o->fweights && o->aweights ? tern_mul(o->fweights, o->aweights)
                     : o->fweights              ? o->fweights
                                                : o->aweights;
    if (!x || (!w && o->fweights))
        return NULL;
    tern_tensor *sum =
        w ? tern_sum(w)
          : tern_tensor_scalar(tern_scalar_int(tern_size(x, 1)), TERN_I64, tern_device(x));
    tern_tensor *total = tern_sum_dim(w ? tern_mul(x, w) : x, TERN_DIMS(1), true);
    x = tern_sub(x, tern_div(total, sum));
    tern_tensor *products = tern_mm(x, tern_t(w ? tern_mul(x, w) : x));
    return tern_squeeze(tern_div(products, divisor(o, w, sum)));
}

/* c_ij / (sqrt(c_ii) sqrt(c_jj)), clamped to -1..1 against rounding. */
tern_tensor *tern_corrcoef(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (x && x->ndim > 2)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_corrcoef: corrcoef(): expected input to have two or fewer "
                              "dimensions but got an input with %d dimensions",
                              x->ndim);
    tern_tensor *c = tern_cov(x, NULL);
    if (!c || c->ndim == 0)
        return c ? tern_div(c, c) : NULL;
    tern_tensor *deviation = tern_sqrt(tern_diag(c, 0));
    c = tern_div(tern_div(c, tern_unsqueeze(deviation, 1)), deviation);
    return tern_clamp(c, -1, 1);
}
