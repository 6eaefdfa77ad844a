/* pool.c -- pooling: the maximum, mean or p-norm of each window, which is fixed, adapted to an
 * output size or fractional; and max unpooling. */
#include "nn/layers/layer.h"
#include "nn/layers/list.h"

typedef struct pool {
    int ndim;
    double norm;
    tern_shape size;
    tern_max_pool_options max;
    tern_avg_pool_options avg;
    tern_lp_pool_options lp;
    tern_max_unpool_options unpool;
    tern_fractional_max_pool_options fractional;
} pool;

/* Expands a list to all dims: one number applies to every dim, an empty list means the default. */
static tern_shape per_dim(tern_shape list, int ndim, int64_t otherwise)
{
    tern_shape all = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        all.dims[d] = list.ndim == ndim ? list.dims[d] : list.ndim == 1 ? list.dims[0] : otherwise;
    return all;
}

static tern_shape or_else(tern_shape list, tern_shape otherwise)
{
    return list.ndim ? list : otherwise;
}

/* ---- max pooling ----------------------------------------------------------------------------- */

/* Sets out[0] to the maxima and, if k is 2, out[1] to their indices. */
static tern_status set_outputs(tern_status status, const tern_values_indices *pair,
                               tern_tensor **out, int k)
{
    if (status == TERN_OK && k > 2)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_nn_call: pooling gives one or two tensors");
    if (k > 0)
        out[0] = pair->values;
    if (k > 1)
        out[1] = pair->indices;
    return status;
}

static tern_status max_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                            int k)
{
    const pool *p = tern_nn_data(self);
    tern_tensor *x = n == 1 ? in[0] : NULL;
    tern_values_indices pair = {0};
    if (k < 2) {
        pair.values = p->ndim == 1   ? tern_max_pool1d(x, p->size, &p->max)
                      : p->ndim == 2 ? tern_max_pool2d(x, p->size, &p->max)
                                     : tern_max_pool3d(x, p->size, &p->max);
        return set_outputs(pair.values ? TERN_OK : tern_last_status(), &pair, out, k);
    }
    tern_status status = p->ndim == 1   ? tern_max_pool1d_with_indices(x, p->size, &p->max, &pair)
                         : p->ndim == 2 ? tern_max_pool2d_with_indices(x, p->size, &p->max, &pair)
                                        : tern_max_pool3d_with_indices(x, p->size, &p->max, &pair);
    return set_outputs(status, &pair, out, k);
}

static tern_module *max_pool(const char *name, int ndim, tern_shape size,
                             const tern_max_pool_options *o)
{
    const pool p = {.ndim = ndim, .size = size, .max = tern_read_max_pool(o)};
    tern_shape stride = or_else(p.max.stride, size);
    tern_module *m = tern_layer_loss(name, max_call, &p, sizeof p);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s",
                             LIST(size), LIST(stride), LIST(p.max.padding), LIST(p.max.dilation),
                             p.max.ceil_mode ? "True" : "False"));
}

static tern_status adaptive_max_call(tern_module *self, tern_tensor *const *in, int n,
                                     tern_tensor **out, int k)
{
    const pool *p = tern_nn_data(self);
    tern_tensor *x = n == 1 ? in[0] : NULL;
    tern_values_indices pair = {0};
    if (k < 2) {
        pair.values = p->ndim == 1   ? tern_adaptive_max_pool1d(x, p->size)
                      : p->ndim == 2 ? tern_adaptive_max_pool2d(x, p->size)
                                     : tern_adaptive_max_pool3d(x, p->size);
        return set_outputs(pair.values ? TERN_OK : tern_last_status(), &pair, out, k);
    }
    tern_status status = p->ndim == 1   ? tern_adaptive_max_pool1d_with_indices(x, p->size, &pair)
                         : p->ndim == 2 ? tern_adaptive_max_pool2d_with_indices(x, p->size, &pair)
                                        : tern_adaptive_max_pool3d_with_indices(x, p->size, &pair);
    return set_outputs(status, &pair, out, k);
}

static tern_module *adaptive_max_pool(const char *name, int ndim, tern_shape size)
{
    pool p = {.ndim = ndim, .size = size};
    tern_module *m = tern_layer_loss(name, adaptive_max_call, &p, sizeof p);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "output_size=%s", tern_list_to_text(&size, false, true).text));
}

/* ---- fractional max pooling ------------------------------------------------------------------ */

/* The borders of the windows are random, or come from the buffer _random_samples. */
static tern_status fractional_call(tern_module *self, tern_tensor *const *in, int n,
                                   tern_tensor **out, int k)
{
    const pool *p = tern_nn_data(self);
    tern_tensor *x = n == 1 ? in[0] : NULL;
    tern_values_indices pair = {0};
    tern_fractional_max_pool_options o = p->fractional;
    o.random_samples = tern_nn_buffer(self, "_random_samples");
    tern_status status = p->ndim == 2
                             ? tern_fractional_max_pool2d_with_indices(x, p->size, &o, &pair)
                             : tern_fractional_max_pool3d_with_indices(x, p->size, &o, &pair);
    return set_outputs(status, &pair, out, k);
}

static tern_status check_fractional(const char *name, const tern_fractional_max_pool_options *o,
                                    int ndim)
{
    bool by_ratio = false, between = true;
    for (int d = 0; d < ndim; d++) {
        by_ratio = by_ratio || o->output_ratio[d] != 0;
        between = between && o->output_ratio[d] >= 0 && o->output_ratio[d] < 1;
    }
    if (!o->output_size.ndim && !by_ratio)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_fractional_max_pool%dd: %s requires specifying either an output "
                         "size, or a pooling ratio",
                         ndim, name);
    if (o->output_size.ndim && by_ratio)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_fractional_max_pool%dd: only one of output_size and output_ratio "
                         "may be specified",
                         ndim);
    if (!between)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_fractional_max_pool%dd: output_ratio must be between 0 and 1 "
                         "(got %g, %g, %g)",
                         ndim, o->output_ratio[0], o->output_ratio[1], o->output_ratio[2]);
    return TERN_OK;
}

static tern_module *fractional(const char *name, int ndim, tern_shape size,
                               const tern_fractional_max_pool_options *options)
{
    static const tern_fractional_max_pool_options none;
    pool p = {.ndim = ndim, .size = size, .fractional = options ? *options : none};
    tern_tensor *samples = p.fractional.random_samples;
    if (check_fractional(name, &p.fractional, ndim) != TERN_OK)
        return NULL;
    p.fractional.random_samples = NULL; /* the buffer holds the tensor now */
    tern_module *m = tern_layer_loss(name, fractional_call, &p, sizeof p);
    return tern_layer_if(m,
                         m ? tern_layer_buffer(m, "_random_samples", samples) : tern_last_status());
}

tern_module *tern_nn_fractional_max_pool2d(tern_shape kernel_size,
                                           const tern_fractional_max_pool_options *options)
{
    return fractional("FractionalMaxPool2d", 2, kernel_size, options);
}

tern_module *tern_nn_fractional_max_pool3d(tern_shape kernel_size,
                                           const tern_fractional_max_pool_options *options)
{
    return fractional("FractionalMaxPool3d", 3, kernel_size, options);
}

/* ---- max unpooling --------------------------------------------------------------------------- */

/* Puts each value at the index of its maximum, and zeros elsewhere. */
static tern_status unpool_call(tern_module *self, tern_tensor *const *in, int n, tern_tensor **out,
                               int k)
{
    const pool *p = tern_nn_data(self);
    if (n != 2 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: MaxUnpool takes two tensors and gives one, not %d and %d",
                         n, k);
    out[0] = p->ndim == 1   ? tern_max_unpool1d(in[0], in[1], p->size, &p->unpool)
             : p->ndim == 2 ? tern_max_unpool2d(in[0], in[1], p->size, &p->unpool)
                            : tern_max_unpool3d(in[0], in[1], p->size, &p->unpool);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_module *max_unpool(const char *name, int ndim, tern_shape size,
                               const tern_max_unpool_options *o)
{
    const pool p = {.ndim = ndim, .size = size, .unpool = tern_read_max_unpool(o)};
    tern_shape kernel = per_dim(size, ndim, 1), padding = per_dim(p.unpool.padding, ndim, 0);
    tern_shape stride = per_dim(or_else(p.unpool.stride, size), ndim, 1);
    tern_module *m = tern_layer_loss(name, unpool_call, &p, sizeof p);
    return tern_layer_if(m, tern_nn_set_extra(m, "kernel_size=%s, stride=%s, padding=%s",
                                              TUPLE(kernel), TUPLE(stride), TUPLE(padding)));
}

/* ---- average and p-norm pooling -------------------------------------------------------------- */

static tern_tensor *avg_forward(tern_module *self, tern_tensor *x)
{
    const pool *p = tern_nn_data(self);
    return p->ndim == 1   ? tern_avg_pool1d(x, p->size, &p->avg)
           : p->ndim == 2 ? tern_avg_pool2d(x, p->size, &p->avg)
                          : tern_avg_pool3d(x, p->size, &p->avg);
}

static tern_module *avg_pool(const char *name, int ndim, tern_shape size,
                             const tern_avg_pool_options *o)
{
    const pool p = {.ndim = ndim, .size = size, .avg = tern_read_avg_pool(o)};
    tern_shape stride = or_else(p.avg.stride, size);
    bool tuple = ndim == 1;
    tern_module *m = tern_layer(name, avg_forward, &p, sizeof p);
    return tern_layer_if(m,
                         tern_nn_set_extra(m, "kernel_size=%s, stride=%s, padding=%s",
                                           tern_list_to_text(&size, tuple, false).text,
                                           tern_list_to_text(&stride, tuple, false).text,
                                           tern_list_to_text(&p.avg.padding, tuple, false).text));
}

static tern_tensor *adaptive_avg_forward(tern_module *self, tern_tensor *x)
{
    const pool *p = tern_nn_data(self);
    return p->ndim == 1   ? tern_adaptive_avg_pool1d(x, p->size)
           : p->ndim == 2 ? tern_adaptive_avg_pool2d(x, p->size)
                          : tern_adaptive_avg_pool3d(x, p->size);
}

static tern_module *adaptive_avg_pool(const char *name, int ndim, tern_shape size)
{
    pool p = {.ndim = ndim, .size = size};
    tern_module *m = tern_layer(name, adaptive_avg_forward, &p, sizeof p);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "output_size=%s", tern_list_to_text(&size, false, true).text));
}

static tern_tensor *lp_forward(tern_module *self, tern_tensor *x)
{
    const pool *p = tern_nn_data(self);
    return p->ndim == 1   ? tern_lp_pool1d(x, p->norm, p->size, &p->lp)
           : p->ndim == 2 ? tern_lp_pool2d(x, p->norm, p->size, &p->lp)
                          : tern_lp_pool3d(x, p->norm, p->size, &p->lp);
}

static tern_module *lp_pool(const char *name, int ndim, double norm, tern_shape size,
                            const tern_lp_pool_options *o)
{
    pool p = {.ndim = ndim, .norm = norm, .size = size};
    if (o)
        p.lp = *o;
    tern_module *m = tern_layer(name, lp_forward, &p, sizeof p);
    return tern_layer_if(
        m, tern_nn_set_extra(m, "norm_type=%g, kernel_size=%s, stride=%s, ceil_mode=%s", norm,
                             LIST(size), p.lp.stride.ndim ? LIST(p.lp.stride) : "None",
                             p.lp.ceil_mode ? "True" : "False"));
}

#define POOL(N)                                                                                    \
    tern_module *tern_nn_max_pool##N##d(tern_shape kernel_size,                                    \
                                        const tern_max_pool_options *options)                      \
    {                                                                                              \
        return max_pool("MaxPool" #N "d", N, kernel_size, options);                                \
    }                                                                                              \
    tern_module *tern_nn_max_unpool##N##d(tern_shape kernel_size,                                  \
                                          const tern_max_unpool_options *options)                  \
    {                                                                                              \
        return max_unpool("MaxUnpool" #N "d", N, kernel_size, options);                            \
    }                                                                                              \
    tern_module *tern_nn_avg_pool##N##d(tern_shape kernel_size,                                    \
                                        const tern_avg_pool_options *options)                      \
    {                                                                                              \
        return avg_pool("AvgPool" #N "d", N, kernel_size, options);                                \
    }                                                                                              \
    tern_module *tern_nn_adaptive_avg_pool##N##d(tern_shape output_size)                           \
    {                                                                                              \
        return adaptive_avg_pool("AdaptiveAvgPool" #N "d", N, output_size);                        \
    }                                                                                              \
    tern_module *tern_nn_adaptive_max_pool##N##d(tern_shape output_size)                           \
    {                                                                                              \
        return adaptive_max_pool("AdaptiveMaxPool" #N "d", N, output_size);                        \
    }                                                                                              \
    tern_module *tern_nn_lp_pool##N##d(double norm_type, tern_shape kernel_size,                   \
                                       const tern_lp_pool_options *options)                        \
    {                                                                                              \
        return lp_pool("LPPool" #N "d", N, norm_type, kernel_size, options);                       \
    }
POOL(1)
POOL(2)
POOL(3)
