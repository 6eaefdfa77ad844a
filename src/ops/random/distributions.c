/* distributions.c -- random numbers whose distributions are given by tensors. */
#include "device/device.h"
#include "tensor/op.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/ops.h>

static tern_status check_real(const tern_tensor *x, const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    return tern_check_floating(function, x->dtype);
}

/* Returns x detached, in float32 for half precision, which is too coarse for uniform numbers. */
static tern_tensor *numbers_of(tern_tensor *x)
{
    x = tern_detach(x);
    return tern_dtype_size(tern_dtype_of(x)) == 2 ? tern_to_dtype(x, TERN_F32) : x;
}

/* ---- bernoulli ----------------------------------------------------------------------------- */

/* Returns 1 where u < p, else 0, for a uniform u in [0, 1): never 1 for p = 0, always for p = 1. */
tern_tensor *tern_bernoulli(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    if (check_real(x, __func__) != TERN_OK)
        return NULL;
    tern_tensor *p = numbers_of(x), *yes = NULL;
    TERN_NO_GRAD
        yes = p ? tern_to_dtype(tern_lt(tern_rand_like(p), p), x->dtype) : NULL;
    return yes;
}

/* Draws x with one p for all elements. */
tern_tensor *tern_bernoulli_(tern_tensor *x, double p)
{
    TERN_NAMED_IN_ERRORS;
    if (!(p >= 0 && p <= 1))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_bernoulli_: bernoulli_ expects p to be in [0, 1], but got p=%g",
                              p);
    if (!x) {
        tern_fail_argument_null(__func__, "x");
        return NULL;
    }
    tern_tensor *u = tern_rand(tern_shape_of(x), TERN_F32, tern_device(x));
    return u ? tern_copy_(x, tern_lt_scalar(u, tern_scalar_real(p))) : NULL;
}

/* ---- multinomial ---------------------------------------------------------------------------- */

static bool any_of(tern_tensor *bools)
{
    return bools && tern_item_int(tern_any(bools)) != 0;
}

/* Checks that each row has at least n weights above 0, for n draws without replacement. */
static tern_status check_draws(tern_tensor *p, int64_t n)
{
    const uint64_t failures = tern_failures();
    tern_tensor *there = tern_sum_dim(tern_gt_scalar(p, tern_scalar_int(0)), TERN_DIMS(-1), false);
    int64_t least = there ? tern_item_int(tern_min(there)) : 0;
    TERN_TRY(tern_failed_since(failures));
    return least >= n ? TERN_OK
                      : tern_fail(TERN_ERR_ARGUMENT,
                                  "tern_multinomial: cannot draw %lld samples without replacement "
                                  "from a row with %lld non-zero weights",
                                  (long long)n, (long long)least);
}

/* Checks that each row is a distribution up to a factor: no weight is negative, infinite or NaN,
 * and not all are 0. The check reads a result on the host. */
static tern_status check_weights(tern_tensor *p)
{
    if (p->numel == 0)
        return TERN_OK;
    const uint64_t failures = tern_failures();
    tern_tensor *sums = tern_sum_dim(p, TERN_DIMS(-1), false);
    tern_tensor *wrong =
        tern_logical_or(tern_lt_scalar(p, tern_scalar_int(0)), tern_logical_not(tern_isfinite(p)));
    tern_tensor *empty = tern_le_scalar(sums, tern_scalar_int(0));
    tern_tensor *either = tern_logical_or(tern_any(wrong), tern_any(empty));
    if (!any_of(either))
        return tern_failed_since(failures);
    return any_of(wrong)
               ? tern_fail(TERN_ERR_ARGUMENT,
                           "tern_multinomial: probability tensor contains either "
                           "`inf`, `nan` or element < 0")
               : tern_fail(TERN_ERR_ARGUMENT, "tern_multinomial: invalid multinomial distribution "
                                              "(sum of probabilities <= 0)");
}

/* Draws without replacement: the indices of the n largest keys log p - log(-log u) are n draws (the
 * Gumbel-max trick; Efraimidis, Spirakis 2006). u is clamped above 0, whose logarithm is
 * infinite. */
static tern_tensor *draw_largest(tern_tensor *p, int64_t n)
{
    tern_values_indices largest;
    tern_tensor *u = tern_clamp_min_scalar(tern_rand_like(p), tern_scalar_real(0x1p-25));
    tern_tensor *keys = tern_sub(tern_log(p), tern_log(tern_neg(tern_log(u))));
    if (n == 1)
        return tern_argmax_dim(keys, -1, true);
    return tern_topk(keys, n, -1, true, true, &largest) == TERN_OK ? largest.indices : NULL;
}

/* Draws with replacement by inversion of the cumulative sums: a uniform fraction of the sum of the
 * row is searched in them. Rounding could give the index after the last one, hence the clamp. */
static tern_tensor *draw_by_inversion(tern_tensor *p, int64_t n)
{
    tern_tensor *sums = tern_cumsum(p, -1);
    tern_tensor *all = tern_narrow(sums, -1, tern_size(p, -1) - 1, 1);
    tern_shape shape = tern_shape_of(p);
    shape.dims[shape.ndim - 1] = n;
    tern_tensor *u = tern_mul(tern_rand(shape, tern_dtype_of(p), tern_device(p)), all);
    tern_tensor *places = tern_searchsorted(sums, u, TERN_SIDE_RIGHT);
    return tern_clamp(places, 0, (double)(tern_size(p, -1) - 1));
}

/* Returns num_samples indices for each row of weights (N, C) or (C). A single draw does not depend
 * on replacement, and is an argmax of the keys. */
tern_tensor *tern_multinomial(tern_tensor *x, int64_t num_samples, bool replacement)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (x && !tern_dtype_is_floating_point(x->dtype))
        return tern_fail_null(TERN_ERR_DTYPE,
                              "%s: multinomial only supports floating-point dtypes for input, got: "
                              "%s",
                              function, tern_dtype_name(x->dtype));
    if (check_real(x, function) != TERN_OK)
        return NULL;
    if (x->ndim < 1 || x->ndim > 2)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: prob_dist must be 1 or 2 dim (got %d)", function,
                              x->ndim);
    int64_t n = x->shape[x->ndim - 1];
    if (num_samples <= 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: cannot sample n_sample <= 0 samples (%lld)",
                              function, (long long)num_samples);
    if (!replacement && num_samples > n)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: cannot sample n_sample > prob_dist.size(-1) samples without "
                              "replacement (%lld of %lld)",
                              function, (long long)num_samples, (long long)n);
    if (n > 1 << 24)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: number of categories cannot exceed 2^24 (%lld)", function,
                              (long long)n);
    tern_shape shape = tern_shape_of(x);
    shape.dims[shape.ndim - 1] = num_samples;
    if (x->numel == 0)
        return tern_empty(shape, TERN_I64, tern_device(x));
    tern_tensor *drawn = NULL;
    TERN_NO_GRAD {
        tern_tensor *p = numbers_of(x);
        if (p && check_weights(p) == TERN_OK &&
            (replacement || num_samples == 1 || check_draws(p, num_samples) == TERN_OK))
            drawn = replacement && num_samples > 1 ? draw_by_inversion(p, num_samples)
                                                   : draw_largest(p, num_samples);
    }
    return drawn;
}

/* ---- normal, integers ---------------------------------------------------------------------- */

/* Returns mean + std z with z standard normal, after mean and std are broadcast. */
tern_tensor *tern_normal(tern_tensor *mean, tern_tensor *std)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (check_real(mean, function) != TERN_OK || check_real(std, function) != TERN_OK)
        return NULL;
    tern_tensor *x = NULL;
    const uint64_t failures = tern_failures();
    TERN_NO_GRAD {
        bool negative = any_of(tern_lt_scalar(std, tern_scalar_int(0)));
        if (tern_failed_since(failures) != TERN_OK)
            x = NULL;
        else if (negative)
            tern_fail(TERN_ERR_ARGUMENT, "%s: normal expects all elements of std >= 0.0", function);
        else {
            tern_tensor *both[] = {tern_detach(mean), tern_detach(std)}, *wide[2];
            if (tern_broadcast_tensors(both, 2, wide) == TERN_OK)
                x = tern_to_dtype(tern_add(tern_mul(tern_randn_like(wide[1]), wide[1]), wide[0]),
                                  mean->dtype);
        }
    }
    return x;
}

/* Returns uniform integers in [low, high) with the shape of x. */
tern_tensor *tern_randint_like(const tern_tensor *x, int64_t low, int64_t high)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(x, __func__, "x"))
        return NULL;
    return tern_randint(low, high, tern_shape_of(x), x->dtype, tern_device(x));
}
