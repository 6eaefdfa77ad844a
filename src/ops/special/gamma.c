/* gamma.c -- gamma functions that are made of others; the rest are rows of special.def. */
#include "tensor/op.h"
#include <math.h>
#include <tern/ops.h>

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

/* log pi^(p (p - 1) / 4) and the sum of lgamma(x + (1 - j) / 2), j = 1 to p. */
tern_tensor *tern_mvlgamma(tern_tensor *x, int64_t p)
{
    tern_tensor *sum = NULL;
    if (p < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_mvlgamma: p has to be greater than or equal to 1, not %lld",
                              (long long)p);
    for (int64_t j = 0; j < p; j++) {
        tern_tensor *part = tern_lgamma(tern_sub_scalar(x, tern_scalar_real((double)j / 2)));
        sum = j ? tern_add(sum, part) : part;
    }
    double shift = (double)p * (double)(p - 1) / 4 * log(3.14159265358979323846);
    return tern_add_scalar(sum, tern_scalar_real(shift));
}
