/* init.c -- initial values, in place and unrecorded (torch.nn.init). */
#include "nn/layers/layer.h"
#include <math.h>

static tern_tensor *uniform(tern_tensor *x, double low, double high)
{
    TERN_NO_GRAD
        x = tern_uniform_(x, low, high);
    return x;
}

static tern_tensor *normal(tern_tensor *x, double mean, double std)
{
    TERN_NO_GRAD
        x = tern_normal_(x, mean, std);
    return x;
}

tern_tensor *tern_nn_init_uniform_(tern_tensor *x, double low, double high)
{
    return uniform(x, low, high);
}

tern_tensor *tern_nn_init_normal_(tern_tensor *x, double mean, double std)
{
    return normal(x, mean, std);
}

tern_tensor *tern_nn_init_constant_(tern_tensor *x, double value)
{
    TERN_NO_GRAD
        x = tern_fill_(x, tern_scalar_real(value));
    return x;
}

tern_tensor *tern_nn_init_zeros_(tern_tensor *x)
{
    return tern_nn_init_constant_(x, 0);
}

tern_tensor *tern_nn_init_ones_(tern_tensor *x)
{
    return tern_nn_init_constant_(x, 1);
}

/* Inputs and outputs that meet in one weight of x (out, in, *kernel). */
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

tern_tensor *tern_nn_init_xavier_uniform_(tern_tensor *x, double gain)
{
    double in = 0, out = 0;
    if (fans(x, &in, &out, "tern_nn_init_xavier_uniform_") != TERN_OK)
        return NULL;
    double bound = gain * sqrt(6 / (in + out));
    return tern_numel(x) ? uniform(x, -bound, bound) : x;
}

tern_tensor *tern_nn_init_xavier_normal_(tern_tensor *x, double gain)
{
    double in = 0, out = 0;
    if (fans(x, &in, &out, "tern_nn_init_xavier_normal_") != TERN_OK)
        return NULL;
    return tern_numel(x) ? normal(x, 0, gain * sqrt(2 / (in + out))) : x;
}

/* The gain of a leaky ReLU of slope a is sqrt(2 / (1 + a a)). */
tern_tensor *tern_nn_init_kaiming_uniform_(tern_tensor *x, double a)
{
    double in = 0, out = 0;
    if (fans(x, &in, &out, "tern_nn_init_kaiming_uniform_") != TERN_OK)
        return NULL;
    double bound = sqrt(3) * sqrt(2 / (1 + a * a)) / sqrt(in);
    return tern_numel(x) ? uniform(x, -bound, bound) : x;
}

tern_tensor *tern_nn_init_kaiming_normal_(tern_tensor *x, double a)
{
    double in = 0, out = 0;
    if (fans(x, &in, &out, "tern_nn_init_kaiming_normal_") != TERN_OK)
        return NULL;
    return tern_numel(x) ? normal(x, 0, sqrt(2 / (1 + a * a)) / sqrt(in)) : x;
}
