/* group_norm.c -- group norm, instance norm and local response norm, composed of other
 * operations. */
#include "base/checked.h"
#include "tensor/memory_format.h"
#include "tensor/op.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* Checks that x is floating point with at least `least` dims, and that each parameter has one
 * number for each channel. */
static tern_status check(const char *function, const tern_tensor *x, int least, int most_params,
                         tern_tensor *const *params, const char *const *names)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    TERN_TRY(tern_check_floating(function, x->dtype));
    if (x->ndim < least)
        return tern_fail(TERN_ERR_SHAPE, "%s: Expected at least %d dimensions, got %d", function,
                         least, x->ndim);
    for (int i = 0; i < most_params; i++)
        if (params[i] && (params[i]->ndim != 1 || params[i]->shape[0] != x->shape[1]))
            return tern_fail(TERN_ERR_SHAPE,
                             "%s: Expected %s to be a vector of size equal to the number of "
                             "channels in input, but got %s of shape %s and input of shape %s",
                             function, names[i], names[i], TERN_TENSOR_TEXT(params[i]),
                             TERN_TENSOR_TEXT(x));
    return TERN_OK;
}

/* Returns the number of elements in a channel of one image. */
static int64_t spatial(const tern_tensor *x)
{
    int64_t n = 1;
    for (int d = 2; d < x->ndim; d++)
        n = tern_size_mul(n, x->shape[d]);
    return n;
}

/* Returns a vector of channels as (C, 1, ...), which broadcasts to (N, C, *). */
static tern_tensor *by_channel(tern_tensor *p, const tern_tensor *x)
{
    tern_shape shape = {.ndim = x->ndim - 1, .dims = {x->shape[1]}};
    for (int d = 1; d < shape.ndim; d++)
        shape.dims[d] = 1;
    return tern_view(tern_contiguous(p), shape);
}

/* ---- group norm: a layer norm of each group, then the channels' weights ------------------ */

/* Returns y = (x - mean) / sqrt(var + eps) w + b with mean and biased variance over the channels of
 * a group and the spatial dims (Wu and He 2018). This is a layer norm of rows (N groups, C / groups
 * size). Layer norm's weights are for each element of the row, so the channels' weights are applied
 * afterwards. Half precision with float32 parameters is computed in float32 and rounded once. */
tern_tensor *tern_group_norm(tern_tensor *x, int64_t num_groups, tern_tensor *weight,
                             tern_tensor *bias, double eps)
{
    TERN_COMPOSED("group_norm", FLOAT32, &x, &weight, &bias);
    static const char *const names[] = {"weight", "bias"};
    const char *function = "tern_group_norm";
    if (check(function, x, 2, 2, (tern_tensor *[]){weight, bias}, names) != TERN_OK)
        return NULL;
    int64_t n = x->shape[0], channels = x->shape[1], size = spatial(x);
    if (channels == 0 || size == 0)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected number of channels and HxW to be greater than 0, got "
                              "input of shape %s",
                              function, TERN_TENSOR_TEXT(x));
    if (num_groups < 1 || channels % num_groups)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected number of channels in input to be divisible by "
                              "num_groups, but got input of shape %s and num_groups=%lld",
                              function, TERN_TENSOR_TEXT(x), (long long)num_groups);
    int64_t each = tern_size_mul(channels / num_groups, size);
    if (n == 1 && each == 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected more than 1 value per channel when training, got input "
                              "size %s",
                              function, TERN_TENSOR_TEXT(x));
    const tern_tensor *first = weight ? weight : bias;
    if (tern_dtype_size(x->dtype) == 2 && first && first->dtype == TERN_F32)
        return tern_to_dtype(
            tern_group_norm(tern_to_dtype(x, TERN_F32), num_groups, weight, bias, eps),
            tern_dtype_of(x));
    tern_tensor *rows =
        tern_reshape(tern_rows_of(x), TERN_SHAPE(tern_size_mul(n, num_groups), each));
    tern_tensor *y = each ? tern_layer_norm(rows, TERN_SHAPE(each), NULL, NULL, eps) : rows;
    y = tern_lie_as(tern_view(y, tern_shape_of(x)), x);
    if (weight)
        y = tern_mul(y, by_channel(weight, x));
    return bias ? tern_add(y, by_channel(bias, x)) : y;
}

/* ---- instance norm: a batch norm of one image with N C channels -------------------------- */

static const tern_op running_op = {.name = "instance_norm"};

/* Sets each running statistic to its mean over the images, without recording. Both are checked
 * before either is written, so that they are unchanged after an error. */
static tern_status average_running_statistics(tern_tensor *const *running, tern_tensor *const *all,
                                              int64_t n)
{
    tern_status status = TERN_OK;
    TERN_NO_GRAD
        TERN_SCOPE {
            const tern_call call = {.op = &running_op};
            tern_tensor *mean[2] = {NULL, NULL};
            for (int i = 0; i < 2 && status == TERN_OK; i++) {
                if (!running[i])
                    continue;
                tern_tensor *each = tern_view(all[i], TERN_SHAPE(n, running[i]->shape[0]));
                mean[i] = each ? tern_mean_dim(each, TERN_DIMS(0), false) : NULL;
                status = mean[i] ? tern_check_in_place(&call, running[i], &mean[i], 1)
                                 : tern_last_status();
            }
            for (int i = 0; i < 2 && status == TERN_OK; i++)
                if (running[i] && !tern_copy_(running[i], mean[i]))
                    status = tern_last_status();
        }
    return status;
}

/* Normalizes by the statistics of each channel of each image: (N, C, *) is viewed as one image of N
 * C channels for batch norm, with the parameters repeated N times. */
tern_tensor *tern_instance_norm(tern_tensor *x, tern_tensor *running_mean, tern_tensor *running_var,
                                tern_tensor *weight, tern_tensor *bias, bool use_input_stats,
                                double momentum, double eps)
{
    static const char *const names[] = {"running_mean", "running_var", "weight", "bias"};
    const char *function = "tern_instance_norm";
    tern_tensor *params[] = {running_mean, running_var, weight, bias}, *all[4];
    if (check(function, x, 2, 4, params, names) != TERN_OK)
        return NULL;
    int64_t n = x->shape[0], channels = x->shape[1], size = spatial(x);
    if (use_input_stats && size == 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected more than 1 spatial element when training, got input "
                              "size %s",
                              function, TERN_TENSOR_TEXT(x));
    if (!use_input_stats && (!running_mean || !running_var))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: Expected running_mean and running_var to be defined when "
                              "use_input_stats is false",
                              function);
    for (int i = 0; i < 4; i++) { /* (C) -> (N C), a copy that batch norm writes */
        all[i] = params[i] ? tern_repeat(params[i], TERN_SHAPE(n)) : NULL;
        if (i == 0 && all[i] && all[i]->dtype != x->dtype) /* any dtype, as in PyTorch */
            all[i] = tern_to_dtype(all[i], x->dtype == TERN_F64 ? TERN_F64 : TERN_F32);
        if (!all[i] && params[i])
            return NULL;
    }
    tern_tensor *y = tern_reshape(x, TERN_SHAPE(1, tern_size_mul(n, channels), size));
    y = tern_batch_norm(y, all[0], all[1], all[2], all[3], use_input_stats, momentum, eps);
    y = y ? tern_view(y, tern_shape_of(x)) : NULL;
    if (y && n > 0 && use_input_stats && average_running_statistics(params, all, n) != TERN_OK)
        return NULL;
    return y;
}

/* ---- local response norm ------------------------------------------------------------------- */

/* Returns `channels` channels of zeros, with x's other sizes, to pad the window over channels. */
static tern_tensor *zero_channels(tern_tensor *x, int64_t channels)
{
    tern_shape shape = tern_shape_of(x);
    shape.dims[1] = channels;
    return tern_new_zeros(x, shape);
}

/* Returns y_c = x_c / (k + alpha / size sum of x_j^2 over the size channels j around c)^beta
 * (Krizhevsky et al. 2012). The sum is that of `size` shifted views of the padded squares. The
 * division by size is PyTorch's and not in the paper. The mean of integers (int64 only, as in
 * PyTorch) is rounded towards 0. */
tern_tensor *tern_local_response_norm(tern_tensor *x, int64_t size, double alpha, double beta,
                                      double k)
{
    TERN_NAMED_IN_ERRORS;
    const char *function = __func__;
    if (!x) {
        tern_fail_argument_null(function, "x");
        return NULL;
    }
    if (x->ndim < 3)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: Expected 3D or higher dimensionality input (got %d dimensions)",
                              function, x->ndim);
    if (x->numel == 0)
        return x;
    if (x->dtype != TERN_I64 && tern_check_floating(function, x->dtype) != TERN_OK)
        return NULL;
    if (size < 1)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: size must be above 0, got %lld", function,
                              (long long)size);
    tern_tensor *squares = tern_square(x), *sum = NULL;
    /* The window is limited to x's channels: there are only zeros beyond them. */
    int64_t most = x->shape[1], before = size / 2 < most ? size / 2 : most;
    int64_t after = (size - 1) / 2 < most ? (size - 1) / 2 : most;
    tern_tensor *wide[] = {zero_channels(x, before), squares, zero_channels(x, after)};
    tern_tensor *padded = tern_cat(wide, 3, 1);
    for (int64_t i = 0; padded && i <= before + after; i++) {
        tern_tensor *part = tern_narrow(padded, 1, i, x->shape[1]);
        sum = i ? tern_add(sum, part) : part;
        if (!sum)
            return NULL;
    }
    if (x->dtype == TERN_I64)
        sum = tern_mul_scalar(tern_trunc_divide_scalar(sum, tern_scalar_int(size)),
                              tern_scalar_real(alpha));
    else
        sum = tern_mul_scalar(sum, tern_scalar_real(alpha / (double)size));
    sum = tern_pow_scalar(tern_add_scalar(sum, tern_scalar_real(k)), tern_scalar_real(beta));
    return tern_div(x, sum);
}
