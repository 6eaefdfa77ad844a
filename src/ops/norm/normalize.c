/* normalize.c -- vectors scaled to norm 1, and weight normalization. */
#include "base/error.h"
#include <math.h>
#include <tern/ops.h>

/* Returns x / max(|x|_p, eps). A vector of zeros stays 0 instead of becoming NaN. */
tern_tensor *tern_normalize(tern_tensor *x, double p, int dim, double eps)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *norm = tern_norm_dim(x, p, TERN_DIMS(dim), true);
    return norm ? tern_div(x, tern_clamp(norm, eps, INFINITY)) : NULL;
}

/* Returns the norm over all dims except `dim`, kept as dims of size 1, or over all dims for dim -1.
 * For a tensor without other dims the norms are absolute values. */
tern_tensor *tern_norm_except_dim(tern_tensor *v, double pow, int dim)
{
    TERN_NAMED_IN_ERRORS;
    tern_shape others = {0};
    if (!v) {
        tern_fail_argument_null(__func__, "v");
        return NULL;
    }
    if (dim < -1 || (dim >= 0 && dim >= tern_dim(v)))
        return tern_fail_null(
            TERN_ERR_ARGUMENT,
            "tern_norm_except_dim: Dimension out of range (expected -1 to %d, but "
            "got %d)",
            tern_dim(v) - 1, dim);
    if (dim < 0)
        return tern_norm(v, pow);
    for (int d = 0; d < tern_dim(v); d++)
        if (d != dim)
            others.dims[others.ndim++] = d;
    return others.ndim ? tern_norm_dim(v, pow, others, true) : tern_abs(v);
}

/* Returns w = g v / |v|: length and direction of a weight as separate parameters (Salimans and
 * Kingma 2016). The norm is over all dims except `dim`. */
tern_tensor *tern_weight_norm(tern_tensor *v, tern_tensor *g, int dim)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *norm = tern_norm_except_dim(v, 2, dim);
    return norm ? tern_mul(v, tern_div(g, norm)) : NULL;
}
