/* activation.c -- activations composed of other operations; the rest are rows of elementwise.def
 * and special.def. */
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* y = max(0, x) + w min(0, x), with one w or one for each channel: w of (C) is viewed as (C, 1,
 * ...) to be broadcast over x of (N, C, ...). */
tern_tensor *tern_prelu(tern_tensor *x, tern_tensor *weight)
{
    TERN_COMPOSED("prelu", LOWER, &x, &weight);
    int64_t n = tern_numel(weight);
    if (!x || !weight || n == 1)
        return tern_prelu_kernel(x, weight ? tern_reshape(weight, TERN_SHAPE_SCALAR) : NULL);
    if (tern_dim(weight) > 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_prelu: Expected `weight` to be a scalar or 1D tensor, but got "
                              "ndim = %d",
                              tern_dim(weight));
    int64_t channels = tern_dim(x) > 1 ? tern_size(x, 1) : 1;
    if (n != channels)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_prelu: Mismatch of parameter numbers and input channel size. "
                              "Found parameter numbers = %lld and channel size = %lld.",
                              (long long)n, (long long)channels);
    tern_shape shape = {.ndim = tern_dim(x) - 1};
    for (int d = 0; d < shape.ndim; d++)
        shape.dims[d] = d == 0 ? n : 1;
    return tern_prelu_kernel(x, tern_reshape(weight, shape));
}

/* Returns a slope for each element of x, uniform in lower..upper, without a gradient. */
static tern_tensor *random_slopes(tern_tensor *x, double lower, double upper)
{
    tern_tensor *slopes = NULL;
    TERN_NO_GRAD {
        slopes =
            tern_add_scalar(tern_mul_scalar(tern_rand_like(x), tern_scalar_real(upper - lower)),
                            tern_scalar_real(lower));
    }
    return slopes;
}

/* Returns whether lower <= upper; records an error if not. */
static bool in_order(double lower, double upper, const char *function)
{
    if (lower > upper)
        tern_fail(TERN_ERR_ARGUMENT,
                  "%s: Lower bound should be less than or equal to the upper bound, but got %g "
                  "and %g",
                  function, lower, upper);
    return !(lower > upper);
}

/* y = x >= 0 ? x : s x. In training s is drawn for each element, which is prelu with a weight of
 * the shape of x; in evaluation s is the mean of the distribution. */
tern_tensor *tern_rrelu(tern_tensor *x, double lower, double upper, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (!in_order(lower, upper, __func__))
        return NULL;
    return training && x ? tern_prelu_kernel(x, random_slopes(x, lower, upper))
                         : tern_leaky_relu(x, (lower + upper) / 2);
}

tern_tensor *tern_rrelu_(tern_tensor *x, double lower, double upper, bool training)
{
    TERN_NAMED_IN_ERRORS;
    if (!in_order(lower, upper, __func__))
        return NULL;
    return training && x ? tern_prelu_kernel_(x, random_slopes(x, lower, upper))
                         : tern_leaky_relu_(x, (lower + upper) / 2);
}

/* y = a sigmoid(b), where a and b are the first and the second half of x along dim. */
tern_tensor *tern_glu(tern_tensor *x, int dim)
{
    TERN_NAMED_IN_ERRORS;
    int64_t size = x && tern_dim(x) > 0 ? tern_size(x, dim) : 0;
    if (x && tern_dim(x) == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_glu: glu does not support 0-dimensional tensors");
    if (size % 2 != 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_glu: Halving dimension must be even, but dimension %d is size "
                              "%lld",
                              dim, (long long)size);
    tern_tensor *gate = tern_sigmoid(tern_narrow(x, dim, size / 2, size / 2));
    return tern_mul(tern_narrow(x, dim, 0, size / 2), gate);
}
