/* pad.c -- padding, Unfold and Fold. */
#include "nn/layers/layer.h"
#include "nn/layers/list.h"

typedef struct pad {
    int ndim;
    tern_shape around;
    tern_pad_options o;
} pad;

/* Pads x. Constant padding takes any tensor, and so do PyTorch's modules, which require no batch
 * dim. */
static tern_tensor *pad_forward(tern_module *self, tern_tensor *x)
{
    const pad *p = tern_nn_data(self);
    return tern_pad(x, p->around, &p->o);
}

static tern_module *make(const char *name, int ndim, tern_shape padding, tern_pad_mode mode,
                         double value)
{
    pad p = {.ndim = ndim, .o = {.mode = mode, .value = value}};
    if (padding.ndim != 1 && padding.ndim != 2 * ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn: %s takes a padding of one number or %d, not %d", name,
                              2 * ndim, padding.ndim);
    p.around.ndim = 2 * ndim;
    for (int i = 0; i < 2 * ndim; i++)
        p.around.dims[i] = padding.dims[padding.ndim == 1 ? 0 : i];
    return tern_layer(name, pad_forward, &p, sizeof p);
}

static tern_module *around(const char *name, int ndim, tern_shape padding, tern_pad_mode mode)
{
    tern_module *m = make(name, ndim, padding, mode, 0);
    const pad *p = m ? tern_nn_data(m) : NULL;
    return tern_layer_if(m, m ? tern_nn_set_extra(m, "%s", TUPLE(p->around)) : TERN_ERR_ARGUMENT);
}

static tern_module *constant(const char *name, int ndim, tern_shape padding, double value)
{
    tern_module *m = make(name, ndim, padding, TERN_PAD_CONSTANT, value);
    const pad *p = m ? tern_nn_data(m) : NULL;
    return tern_layer_if(m, m ? tern_nn_set_extra(m, "padding=%s, value=%s", TUPLE(p->around),
                                                  TERN_NUMBER_TEXT(value))
                              : TERN_ERR_ARGUMENT);
}

#define PADS(N)                                                                                    \
    tern_module *tern_nn_constant_pad##N##d(tern_shape padding, double value)                      \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return constant("ConstantPad" #N "d", N, padding, value);                                  \
    }                                                                                              \
    tern_module *tern_nn_zero_pad##N##d(tern_shape padding)                                        \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return around("ZeroPad" #N "d", N, padding, TERN_PAD_CONSTANT);                            \
    }                                                                                              \
    tern_module *tern_nn_reflection_pad##N##d(tern_shape padding)                                  \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return around("ReflectionPad" #N "d", N, padding, TERN_PAD_REFLECT);                       \
    }                                                                                              \
    tern_module *tern_nn_replication_pad##N##d(tern_shape padding)                                 \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return around("ReplicationPad" #N "d", N, padding, TERN_PAD_REPLICATE);                    \
    }                                                                                              \
    tern_module *tern_nn_circular_pad##N##d(tern_shape padding)                                    \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        return around("CircularPad" #N "d", N, padding, TERN_PAD_CIRCULAR);                        \
    }
PADS(1)
PADS(2)
PADS(3)

/* ---- Unfold and Fold ------------------------------------------------------------------------- */

typedef struct windows {
    tern_shape output, kernel;
    tern_unfold_options o;
} windows;

/* Unfold copies the windows of (N, C, H, W) to the columns of (N, C kernel, windows). Fold sums
 * columns back. */
static tern_tensor *unfold_forward(tern_module *self, tern_tensor *x)
{
    const windows *w = tern_nn_data(self);
    return tern_unfold(x, w->kernel, &w->o);
}

static tern_tensor *fold_forward(tern_module *self, tern_tensor *x)
{
    const windows *w = tern_nn_data(self);
    return tern_fold(x, w->output, w->kernel, &w->o);
}

static windows with_defaults(tern_shape output, tern_shape kernel,
                             const tern_unfold_options *options)
{
    return (windows){.output = output, .kernel = kernel, .o = tern_read_unfold(options)};
}

tern_module *tern_nn_unfold(tern_shape kernel_size, const tern_unfold_options *options)
{
    windows w = with_defaults(TERN_DIMS(0), kernel_size, options);
    tern_module *m = tern_layer("Unfold", unfold_forward, &w, sizeof w);
    return tern_layer_if(m,
                         tern_nn_set_extra(m, "kernel_size=%s, dilation=%s, padding=%s, stride=%s",
                                           LIST(w.kernel), LIST(w.o.dilation), LIST(w.o.padding),
                                           LIST(w.o.stride)));
}

tern_module *tern_nn_fold(tern_shape output_size, tern_shape kernel_size,
                          const tern_unfold_options *options)
{
    windows w = with_defaults(output_size, kernel_size, options);
    tern_module *m = tern_layer("Fold", fold_forward, &w, sizeof w);
    return tern_layer_if(m, tern_nn_set_extra(m,
                                              "output_size=%s, kernel_size=%s, dilation=%s, "
                                              "padding=%s, stride=%s",
                                              LIST(w.output), LIST(w.kernel), LIST(w.o.dilation),
                                              LIST(w.o.padding), LIST(w.o.stride)));
}
