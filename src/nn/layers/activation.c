/* activation.c -- activations: those in activation.def, and those that need more than one or two
 * numbers. */
#include "nn/layers/layer.h"
#include <string.h>

/* Returns a number as PyTorch prints options that are usually integers: 20, not 20.0. */
static tern_number_text short_text(double value)
{
    tern_number_text text = tern_number_to_text(value);
    size_t n = strlen(text.text);
    if (n > 2 && strcmp(text.text + n - 2, ".0") == 0)
        text.text[n - 2] = '\0';
    return text;
}
#define SHORT(value) (short_text(value).text)

/* Returns the softmax over C of (N, C, H, W) or (C, H, W). */
static tern_tensor *softmax_of_channels(tern_tensor *x)
{
    if (tern_dim(x) != 3 && tern_dim(x) != 4)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_nn_softmax2d: Softmax2d requires a 3D or 4D tensor as input, "
                              "got %dD",
                              tern_dim(x));
    return tern_softmax(x, -3);
}

/* ---- the rows of activation.def -------------------------------------------------------------- */

#define CALL(FUNCTION, ...)                                                                        \
    (tern_layer_is_inplace(self) ? FUNCTION##_(__VA_ARGS__) : FUNCTION(__VA_ARGS__))

/* ASKS_kind(options) is true if the options have the field `inplace` and it is true. */
#define ASKS_NEVER(options) false
#define ASKS_SHOWN(options) ((options) && (options)->inplace)

#define PLAIN(FUNCTION, NAME, INPLACE, VALUE)                                                      \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        (void)self;                                                                                \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(void)                                                          \
    {                                                                                              \
        return tern_layer_with_inplace(tern_nn_module(NAME, FUNCTION##_forward, NULL),             \
                                       INPLACE_##INPLACE, false);                                  \
    }

#define DIM(FUNCTION, NAME, VALUE)                                                                 \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        int dim = *(const int *)tern_nn_data(self);                                                \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(int dim)                                                       \
    {                                                                                              \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, &dim, sizeof dim);                   \
        return tern_layer_if(m, tern_nn_set_extra(m, "dim=%d", dim));                              \
    }

#define ONE(FUNCTION, NAME, INPLACE, OPTION, FORMAT, VALUE)                                        \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        double a = *(const double *)tern_nn_data(self);                                            \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(const tern_##FUNCTION##_options *options)                      \
    {                                                                                              \
        const double a = tern_read_##FUNCTION(options).OPTION;                                     \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, &a, sizeof a);                       \
        m = tern_layer_if(m, tern_nn_set_extra(m, FORMAT, TERN_NUMBER_TEXT(a)));                   \
        return tern_layer_with_inplace(m, INPLACE_##INPLACE, ASKS_##INPLACE(options));             \
    }

#define TWO(FUNCTION, NAME, INPLACE, FIRST, SECOND, FORMAT, TEXT, VALUE)                           \
    static tern_tensor *FUNCTION##_forward(tern_module *self, tern_tensor *x)                      \
    {                                                                                              \
        const double *o = tern_nn_data(self);                                                      \
        double a = o[0], b = o[1];                                                                 \
        return VALUE;                                                                              \
    }                                                                                              \
    tern_module *tern_nn_##FUNCTION(const tern_##FUNCTION##_options *options)                      \
    {                                                                                              \
        const tern_##FUNCTION##_options r = tern_read_##FUNCTION(options);                         \
        const double o[2] = {r.FIRST, r.SECOND};                                                   \
        tern_module *m = tern_layer(NAME, FUNCTION##_forward, o, sizeof o);                        \
        m = tern_layer_if(m, tern_nn_set_extra(m, FORMAT, TEXT(o[0]), TEXT(o[1])));                \
        return tern_layer_with_inplace(m, INPLACE_##INPLACE, ASKS_##INPLACE(options));             \
    }

#include "nn/layers/activation.def"

/* ---- other activations ----------------------------------------------------------------------- */

static tern_tensor *gelu_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_gelu(x);
}

static tern_tensor *gelu_tanh_forward(tern_module *self, tern_tensor *x)
{
    (void)self;
    return tern_gelu_tanh(x);
}

bool tern_layer_activation_stage(const tern_module *m, tern_stage *stage)
{
    static const struct {
        tern_module_forward forward;
        const tern_stage_kind *kind;
    } all[] = {{relu_forward, &tern_stage_relu}, {gelu_tanh_forward, &tern_stage_gelu_tanh}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (tern_layer_runs(m, all[i].forward) && !tern_layer_is_inplace(m))
            return stage->kind = all[i].kind, true;
    return false;
}

tern_module *tern_nn_gelu(const tern_gelu_options *options)
{
    static const char *const words[] = {"none", "tanh"};
    tern_gelu_options o = options ? *options : (tern_gelu_options){0};
    if (tern_check_enum("tern_nn_gelu", "approximate", (int)o.approximate, TERN_APPROXIMATE_TANH,
                        "tern_approximate") != TERN_OK)
        return NULL;
    bool tanh = o.approximate == TERN_APPROXIMATE_TANH;
    tern_module *m = tern_layer("GELU", tanh ? gelu_tanh_forward : gelu_forward, &o, sizeof o);
    return tern_layer_if(m, tern_nn_set_extra(m, "approximate='%s'", words[o.approximate]));
}

static tern_tensor *threshold_forward(tern_module *self, tern_tensor *x)
{
    const double *o = tern_nn_data(self);
    return CALL(tern_threshold, x, o[0], o[1]);
}

tern_module *tern_nn_threshold(double threshold, double value)
{
    double o[2] = {threshold, value};
    tern_module *m = tern_layer("Threshold", threshold_forward, o, sizeof o);
    m = tern_layer_if(
        m, tern_nn_set_extra(m, "threshold=%s, value=%s", SHORT(threshold), SHORT(value)));
    return tern_layer_with_inplace(m, INPLACE_SHOWN, false);
}

static tern_tensor *prelu_forward(tern_module *self, tern_tensor *x)
{
    return tern_prelu(x, tern_nn_parameter(self, "weight"));
}

tern_module *tern_nn_prelu(const tern_prelu_options *options)
{
    TERN_NAMED_IN_ERRORS;
    const tern_prelu_options o = tern_read_prelu(options);
    const int64_t n = o.num_parameters;
    tern_module *m = tern_nn_module("PReLU", prelu_forward, NULL);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE {
            tern_scalar init = tern_scalar_real(o.init);
            tern_tensor *weight = tern_full(TERN_SHAPE(n), init, o.dtype, o.device);
            status = weight ? tern_layer_parameter(m, "weight", weight) : tern_last_status();
        }
    if (status == TERN_OK)
        status = tern_nn_set_extra(m, "num_parameters=%lld", (long long)n);
    return tern_layer_if(m, status);
}
