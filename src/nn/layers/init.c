/* init.c -- initial values, which are written in place without gradients (torch.nn.init). */
#include "nn/layers/layer.h"
#include <math.h>

tern_skip_init_block tern_skip_init_enter(void)
{
    tern_skip_init_block block = {.active = 1, .saved = tern_thread.skips_init};
    tern_thread.skips_init = true;
    return block;
}

void tern_skip_init_leave(tern_skip_init_block *block)
{
    tern_thread.skips_init = block->saved;
}

static tern_tensor *uniform(tern_tensor *x, double low, double high)
{
    if (!tern_thread.skips_init)
        TERN_NO_GRAD
            x = tern_uniform_(x, low, high);
    return x;
}

static tern_tensor *normal(tern_tensor *x, double mean, double std)
{
    if (!tern_thread.skips_init)
        TERN_NO_GRAD
            x = tern_normal_(x, mean, std);
    return x;
}

tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high)
{
    TERN_NAMED_IN_ERRORS;
    return uniform(x, low, high);
}

tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std)
{
    TERN_NAMED_IN_ERRORS;
    return normal(x, mean, std);
}

tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_thread.skips_init)
        TERN_NO_GRAD
            x = tern_fill_(x, tern_scalar_real(value));
    return x;
}

tern_tensor *tern_nn_init_zeros_(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_init_constant_(x, 0);
}

tern_tensor *tern_nn_init_ones_(tern_tensor *x)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_init_constant_(x, 1);
}

/* ---- initializations that depend on fan_in and fan_out --------------------------------------- */

double tern_nn_init_calculate_gain(tern_nonlinearity nonlinearity, double param)
{
    /* param is the slope of a leaky ReLU, 0.01 by default as in PyTorch. */
    const double slope = tern_option(param, 0.01);
    const double gains[] = {
        [TERN_NONLINEARITY_LEAKY_RELU] = sqrt(2 / (1 + slope * slope)),
        [TERN_NONLINEARITY_LINEAR] = 1,
        [TERN_NONLINEARITY_SIGMOID] = 1,
        [TERN_NONLINEARITY_TANH] = 5.0 / 3,
        [TERN_NONLINEARITY_RELU] = 1.4142135623730951,
        [TERN_NONLINEARITY_SELU] = 0.75,
    };
    if ((unsigned)nonlinearity <= TERN_NONLINEARITY_SELU)
        return gains[nonlinearity];
    tern_fail(TERN_ERR_ARGUMENT, "tern_nn_init_calculate_gain: Unsupported nonlinearity %d",
              (int)nonlinearity);
    return NAN;
}

/* Computes fan_in and fan_out of a weight (out, in, *kernel): channels times elements of the
 * kernel. */
static tern_status fans(const tern_tensor *x, double *in, double *out, const char *function)
{
    if (!x)
        return tern_fail_argument_null(function, "x");
    if (tern_dim(x) < 2)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: Fan in and fan out can not be computed for tensor with fewer than 2 "
                         "dimensions (this one has %d)",
                         function, tern_dim(x));
    double kernel = 1;
    for (int i = 2; i < tern_dim(x); i++)
        kernel *= (double)tern_size(x, i);
    *in = (double)tern_size(x, 1) * kernel;
    *out = (double)tern_size(x, 0) * kernel;
    return TERN_OK;
}

tern_status tern_nn_init_calculate_fan_in_and_fan_out(const tern_tensor *x, double *fan_in,
                                                      double *fan_out)
{
    TERN_NAMED_IN_ERRORS;
    double in = 0, out = 0;
    TERN_TRY(fans(x, &in, &out, __func__));
    if (fan_in)
        *fan_in = in;
    if (fan_out)
        *fan_out = out;
    return TERN_OK;
}

/* Fills x from U(-b, b) with b = gain sqrt(6 / (fan_in + fan_out)). */
tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain)
{
    TERN_NAMED_IN_ERRORS;
    double in = 0, out = 0;
    if (fans(x, &in, &out, __func__) != TERN_OK)
        return NULL;
    double bound = gain * sqrt(6 / (in + out));
    return tern_numel(x) ? uniform(x, -bound, bound) : x;
}

/* Fills x from N(0, std^2) with std = gain sqrt(2 / (fan_in + fan_out)). */
tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain)
{
    TERN_NAMED_IN_ERRORS;
    double in = 0, out = 0;
    if (fans(x, &in, &out, __func__) != TERN_OK)
        return NULL;
    return tern_numel(x) ? normal(x, 0, gain * sqrt(2 / (in + out))) : x;
}

/* Sets *std to gain / sqrt(fan) (He et al. 2015). */
static tern_status kaiming_std(const tern_tensor *x, const tern_init_kaiming_options *o,
                               const char *function, double *std)
{
    double in = 0, out = 0;
    const uint64_t failures = tern_failures();
    TERN_TRY(fans(x, &in, &out, function));
    TERN_TRY(tern_check_enum(function, "mode", (int)o->mode, TERN_FAN_OUT, "tern_fan_mode"));
    double gain = tern_nn_init_calculate_gain(o->nonlinearity, o->a != 0 ? o->a : TERN_ZERO);
    *std = gain / sqrt(o->mode == TERN_FAN_OUT ? out : in);
    return tern_failed_since(failures);
}

tern_tensor *tern_nn_init_kaiming_uniform_with_(tern_tensor *x,
                                                const tern_init_kaiming_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_init_kaiming_options none;
    double std;
    if (kaiming_std(x, options ? options : &none, __func__, &std) != TERN_OK)
        return NULL;
    return tern_numel(x) ? uniform(x, -sqrt(3) * std, sqrt(3) * std) : x;
}

tern_tensor *tern_nn_init_kaiming_normal_with_(tern_tensor *x,
                                               const tern_init_kaiming_options *options)
{
    TERN_NAMED_IN_ERRORS;
    static const tern_init_kaiming_options none;
    double std;
    if (kaiming_std(x, options ? options : &none, __func__, &std) != TERN_OK)
        return NULL;
    return tern_numel(x) ? normal(x, 0, std) : x;
}

tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_init_kaiming_uniform_with_(x, &(tern_init_kaiming_options){.a = a});
}

tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a)
{
    TERN_NAMED_IN_ERRORS;
    return tern_nn_init_kaiming_normal_with_(x, &(tern_init_kaiming_options){.a = a});
}
