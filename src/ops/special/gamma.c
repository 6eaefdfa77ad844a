/* gamma.c -- gamma functions that are made of others; the rest are rows of special.def. */
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

/* The n-th derivative of digamma. Only the orders that the gradients of lgamma and digamma need
 * have kernels. */
tern_tensor *tern_polygamma(int64_t n, tern_tensor *x)
{
    if (n < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_polygamma: polygamma(n, x) does not support negative n (%lld).",
                              (long long)n);
    if (n > 1)
        return tern_fail_null(TERN_ERR_UNSUPPORTED, "tern_polygamma: n is 0 or 1, not %lld",
                              (long long)n);
    return n == 0 ? tern_digamma(x) : tern_trigamma(x);
}

/* log of the multivariate gamma function:
 * p (p - 1) / 4 log(pi) + the sum over j = 1..p of lgamma(x + (1 - j) / 2). The p terms are a new
 * last dim, which the reduction removes. */
tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p)
{
    if (p < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_mvlgamma: p has to be greater than or equal to 1, not %lld",
                              (long long)p);
    if (!x)
        return tern_lgamma(x);
    tern_dtype own = tern_dtype_of(x), dtype = own == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_tensor *steps = tern_arange(0, (double)p / -2, -0.5, dtype, tern_device(x));
    x = tern_to_dtype(x, dtype); /* halves are rounded once, at the end */
    tern_tensor *parts = steps ? tern_lgamma(tern_add(tern_unsqueeze(x, -1), steps)) : NULL;
    tern_tensor *sum = parts ? tern_sum_dim(parts, TERN_DIMS(-1), false) : NULL;
    sum = sum ? tern_to_dtype(sum, tern_dtype_of(parts)) : NULL; /* autocast makes sums float32 */
    double shift = (double)p * (double)(p - 1) / 4 * log(3.14159265358979323846);
    tern_tensor *y = tern_add_scalar(sum, tern_scalar_real(shift));
    return y && tern_dtype_is_floating_point(own) && own != dtype ? tern_to_dtype(y, own) : y;
}
