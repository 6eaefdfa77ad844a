/* conv.c -- convolutions and transposed convolutions. */
#include "base/checked.h"
#include "nn/layers/layer.h"
#include "nn/layers/list.h"
#include <math.h>
#include <string.h>

typedef struct conv {
    const char *name, *function; /* such as "Conv2d" and "tern_nn_conv2d" */
    int ndim;
    bool transposed;
    tern_conv_function_options o;
    tern_shape size, output_padding;
    tern_pad_options mode; /* padding mode, and the padding on each side if the mode is not
                              constant */
    tern_shape around;
} conv;

/* Returns x padded, unless the padding is with zeros, which the convolution itself does. */
static tern_tensor *padded(const conv *c, tern_tensor *x)
{
    return c->mode.mode == TERN_PAD_CONSTANT ? x : tern_pad(x, c->around, &c->mode);
}

static tern_tensor *forward(tern_module *self, tern_tensor *x)
{
    typedef tern_tensor *(*function)(tern_tensor *, tern_tensor *, tern_tensor *,
                                     const tern_conv_function_options *);
    static const function convs[] = {tern_conv1d, tern_conv2d, tern_conv3d};
    const conv *c = tern_nn_data(self);
    return convs[c->ndim - 1](padded(c, x), tern_nn_parameter(self, "weight"),
                              tern_nn_parameter(self, "bias"), &c->o);
}

/* ---- output_size of transposed convolutions -------------------------------------------------- */

/* Returns a list as text, such as [2, 3]. */
static tern_list_text list_text(const tern_shape *list)
{
    tern_list_text t;
    tern_format_list(t.text, sizeof t.text, list->dims, list->ndim);
    return t;
}
#define LISTED(list) (list_text(&(list)).text)

/* With a stride s, s input sizes of a convolution give the same output size, so its transposed form
 * can give any of these: output_padding = size - ((in - 1) stride - 2 padding + dilation (kernel -
 * 1) + 1), from 0 to stride - 1. */
static tern_status output_padding_for(const conv *c, const tern_tensor *x, tern_shape size,
                                      tern_shape *padding)
{
    const int n = c->ndim, dims = tern_dim(x);
    tern_shape least = {.ndim = n}, most = {.ndim = n}, in = {.ndim = n};
    const int front = dims == n + 2 ? 2 : 1;
    if (dims != n + 1 && dims != n + 2)
        return TERN_OK; /* the convolution reports the error */
    if (size.ndim == front + n) {
        size.ndim = n;
        memmove(size.dims, size.dims + front, (size_t)n * sizeof *size.dims);
    }
    if (size.ndim != n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: ConvTranspose%dD: for %dD input, output_size must have %d or %d "
                         "elements (got %d)",
                         c->function, n, dims, n, front + n, size.ndim);
    padding->ndim = n;
    bool fits = true;
    for (int d = 0; d < n; d++) {
        in.dims[d] = tern_size(x, front + d);
        int64_t apart = tern_size_mul(tern_size_sub(in.dims[d], 1), c->o.stride.dims[d]);
        int64_t window = tern_size_mul(c->o.dilation.dims[d], tern_size_sub(c->size.dims[d], 1));
        apart = tern_size_sub(apart, tern_size_mul(2, c->o.padding.dims[d]));
        least.dims[d] = tern_size_add(tern_size_add(apart, window), 1);
        most.dims[d] = tern_size_sub(tern_size_add(least.dims[d], c->o.stride.dims[d]), 1);
        padding->dims[d] = tern_size_sub(size.dims[d], least.dims[d]);
        fits = fits && size.dims[d] >= least.dims[d] && size.dims[d] <= most.dims[d];
    }
    return fits ? TERN_OK
                : tern_fail(TERN_ERR_ARGUMENT,
                            "%s: requested an output size of %s, but valid sizes range from %s to "
                            "%s (for an input of %s)",
                            c->function, LISTED(size), LISTED(least), LISTED(most), LISTED(in));
}

/* Reads output_size, which a call passes as a list of int64 on the cpu. */
static tern_status read_size(const tern_module *m, tern_tensor *list, tern_shape *size)
{
    int64_t n = tern_numel(list);
    bool host = tern_dtype_of(list) == TERN_I64 && tern_is_contiguous(list) &&
                strncmp(tern_device(list), "cpu", 3) == 0;
    if (!host || tern_dim(list) != 1 || n > TERN_MAX_DIMS)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes output_size as a list of int64 on the cpu, but "
                         "got %s of %d dims on %s",
                         tern_nn_name(m), tern_dtype_name(tern_dtype_of(list)), tern_dim(list),
                         tern_device(list));
    size->ndim = (int)n;
    if (n > 0)
        memcpy(size->dims, tern_data(list), (size_t)n * sizeof *size->dims);
    return TERN_OK;
}

/* The inputs are x, or x and output_size. */
static tern_status call_transposed(tern_module *self, tern_tensor *const *in, int n,
                                   tern_tensor **out, int k)
{
    typedef tern_tensor *(*function)(tern_tensor *, tern_tensor *, tern_tensor *,
                                     const tern_conv_transpose_function_options *);
    static const function transposes[] = {tern_conv_transpose1d, tern_conv_transpose2d,
                                          tern_conv_transpose3d};
    const conv *c = tern_nn_data(self);
    tern_conv_transpose_function_options o = {.stride = c->o.stride,
                                              .padding = c->o.padding,
                                              .dilation = c->o.dilation,
                                              .output_padding = c->output_padding,
                                              .groups = c->o.groups};
    if (n < 1 || n > 2 || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes x, or x and output_size, and gives one, not %d "
                         "and %d",
                         tern_nn_name(self), n, k);
    if (!in[0])
        return tern_fail_argument_null("tern_nn_forward", "x");
    if (n == 2 && in[1]) {
        tern_shape size;
        TERN_TRY(read_size(self, in[1], &size));
        TERN_TRY(output_padding_for(c, in[0], size, &o.output_padding));
    }
    out[0] = transposes[c->ndim - 1](in[0], tern_nn_parameter(self, "weight"),
                                     tern_nn_parameter(self, "bias"), &o);
    return out[0] ? TERN_OK : tern_last_status();
}

tern_tensor *tern_nn_conv_transpose_forward(tern_module *m, tern_tensor *x, tern_shape output_size)
{
    tern_tensor *y = NULL;
    if (!m || !x) {
        tern_fail_argument_null("tern_nn_conv_transpose_forward", m ? "x" : "m");
        return NULL;
    }
    if (!tern_layer_calls(m, call_transposed))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_nn_conv_transpose_forward: %s is no transposed convolution",
                              tern_nn_name(m));
    if (output_size.ndim > TERN_MAX_DIMS)
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_nn_conv_transpose_forward: output_size has %d numbers, of which "
            "a tensor has at most %d",
            output_size.ndim, TERN_MAX_DIMS);
    /* Written with memcpy, since a copy operation could not be recorded. */
    tern_tensor *size = tern_empty(TERN_SHAPE(output_size.ndim), TERN_I64, "cpu");
    if (!size)
        return NULL;
    if (output_size.ndim > 0)
        memcpy(tern_data(size), output_size.dims, (size_t)output_size.ndim * sizeof(int64_t));
    return tern_nn_call(m, (tern_tensor *[]){x, size}, 2, &y, 1) == TERN_OK ? y : NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

static bool is_everywhere(const tern_shape *list, int64_t value)
{
    for (int d = 0; d < list->ndim; d++)
        if (list->dims[d] != value)
            return false;
    return true;
}

/* Expands a list to all dims: one number applies to every dim, an empty list means the default. */
static tern_status expand_list(const conv *c, const char *name, tern_shape list, int64_t otherwise,
                               tern_shape *out)
{
    if (list.ndim > 1 && list.ndim != c->ndim)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s must be one number or %d, but got %d",
                         c->function, name, c->ndim, list.ndim);
    out->ndim = c->ndim;
    for (int d = 0; d < c->ndim; d++)
        out->dims[d] = list.ndim == 0 ? otherwise : list.dims[list.ndim == 1 ? 0 : d];
    return TERN_OK;
}

/* ---- printing -------------------------------------------------------------------------------- */

typedef struct arguments {
    int64_t in, out;
    tern_shape size, padding;
    tern_named_padding named;
    bool bias;
    tern_dtype dtype;
    const char *device;
} arguments;

/* Sets the text that PyTorch prints, which omits defaults. */
static tern_status describe(tern_module *m, const conv *c, const arguments *a)
{
    static const char *const modes[] = {[TERN_PAD_REFLECT] = "reflect",
                                        [TERN_PAD_REPLICATE] = "replicate",
                                        [TERN_PAD_CIRCULAR] = "circular"};
    tern_text text = {0};
    tern_text_add(&text, "%lld, %lld", (long long)a->in, (long long)a->out);
    tern_text_add(&text, ", kernel_size=%s", TUPLE(a->size));
    tern_text_add(&text, ", stride=%s", TUPLE(c->o.stride));
    if (a->named)
        tern_text_add(&text, ", padding=%s", a->named == TERN_PADDING_SAME ? "same" : "valid");
    else if (!is_everywhere(&a->padding, 0))
        tern_text_add(&text, ", padding=%s", TUPLE(a->padding));
    if (!is_everywhere(&c->o.dilation, 1))
        tern_text_add(&text, ", dilation=%s", TUPLE(c->o.dilation));
    if (!is_everywhere(&c->output_padding, 0))
        tern_text_add(&text, ", output_padding=%s", TUPLE(c->output_padding));
    if (c->o.groups != 1)
        tern_text_add(&text, ", groups=%lld", (long long)c->o.groups);
    if (!a->bias)
        tern_text_add(&text, ", bias=False");
    if (c->mode.mode != TERN_PAD_CONSTANT)
        tern_text_add(&text, ", padding_mode=%s", modes[c->mode.mode]);
    tern_status status = text.failed ? TERN_ERR_MEMORY : tern_nn_set_extra(m, "%s", text.data);
    tern_text_free(&text);
    return status;
}

/* ---- constructors ---------------------------------------------------------------------------- */

/* Returns a parameter that is uniform in +-1/sqrt(fan_in), as kaiming_uniform_ with a = sqrt(5)
 * is. */
static tern_tensor *uniform(tern_shape shape, double inputs, const arguments *a)
{
    double bound = inputs > 0 ? 1 / sqrt(inputs) : 0;
    return tern_nn_init_uniform_(tern_empty(shape, a->dtype, a->device), -bound, bound);
}

/* Adds weight (out, in / groups, *kernel), or (in, out / groups, *kernel) if transposed, and bias
 * (out). */
static tern_status add_parameters(tern_module *m, const conv *c, const arguments *a)
{
    tern_shape shape = {.ndim = 2 + c->ndim};
    shape.dims[0] = c->transposed ? a->in : a->out;
    shape.dims[1] = (c->transposed ? a->out : a->in) / c->o.groups;
    double inputs = (double)shape.dims[1];
    for (int d = 0; d < c->ndim; d++) {
        shape.dims[2 + d] = a->size.dims[d];
        inputs *= (double)a->size.dims[d];
    }
    tern_tensor *weight = uniform(shape, inputs, a);
    tern_tensor *bias = a->bias ? uniform(TERN_SHAPE(a->out), inputs, a) : NULL;
    if (!weight || (!bias && a->bias))
        return tern_last_status();
    TERN_TRY(tern_layer_parameter(m, "weight", weight));
    TERN_TRY(tern_layer_parameter(m, "bias", bias));
    return describe(m, c, a);
}

static tern_status check(const conv *c, const arguments *a)
{
    if (c->o.groups < 1)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: groups must be a positive integer", c->function);
    if (a->in % c->o.groups || a->out % c->o.groups)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: %s_channels must be divisible by groups (%lld and %lld)", c->function,
                         a->in % c->o.groups ? "in" : "out",
                         (long long)(a->in % c->o.groups ? a->in : a->out), (long long)c->o.groups);
    return TERN_OK;
}

static tern_module *make(const conv *c, const arguments *a)
{
    if (check(c, a) != TERN_OK)
        return NULL;
    tern_module *m = c->transposed ? tern_layer_loss(c->name, call_transposed, c, sizeof *c)
                                   : tern_layer(c->name, forward, c, sizeof *c);
    tern_status status = m ? TERN_OK : tern_last_status();
    if (status == TERN_OK)
        TERN_SCOPE
            status = add_parameters(m, c, a);
    return tern_layer_if(m, status);
}

static tern_status read_lists(conv *c, arguments *a, tern_shape size, const tern_shape *stride,
                              const tern_shape *padding, const tern_shape *dilation)
{
    if (size.ndim == 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: kernel_size must be one number or %d, but got 0",
                         c->function, c->ndim);
    TERN_TRY(expand_list(c, "kernel_size", size, 1, &a->size));
    TERN_TRY(expand_list(c, "stride", *stride, 1, &c->o.stride));
    TERN_TRY(expand_list(c, "padding", *padding, 0, &c->o.padding));
    TERN_TRY(expand_list(c, "dilation", *dilation, 1, &c->o.dilation));
    a->padding = c->o.padding;
    c->size = a->size;
    return TERN_OK;
}

static tern_status read_named_padding(conv *c, arguments *a, tern_named_padding named)
{
    a->named = c->o.named_padding = named;
    TERN_TRY(tern_check_enum(c->function, "named_padding", (int)named, TERN_PADDING_SAME,
                             "tern_named_padding"));
    if (named == TERN_PADDING_SAME && !is_everywhere(&c->o.stride, 1))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: padding='same' is not supported for strided convolutions",
                         c->function);
    return TERN_OK;
}

/* Sets the padding for tern_pad, in pairs from the last dim on. "same" pads by dilation (kernel -
 * 1) in total; if that is odd, the end gets one more. */
static tern_status read_mode(conv *c, const arguments *a, tern_pad_mode mode)
{
    TERN_TRY(tern_check_enum(c->function, "padding_mode", (int)mode, TERN_PAD_CIRCULAR,
                             "tern_pad_mode"));
    c->mode.mode = mode;
    if (mode == TERN_PAD_CONSTANT)
        return TERN_OK;
    c->around.ndim = 2 * c->ndim;
    for (int d = 0; d < c->ndim; d++) {
        int64_t *pair = &c->around.dims[2 * (c->ndim - 1 - d)];
        int64_t all = a->named == TERN_PADDING_SAME
                          ? tern_size_mul(c->o.dilation.dims[d], tern_size_sub(a->size.dims[d], 1))
                      : a->named == TERN_PADDING_VALID ? 0
                                                       : tern_size_mul(2, a->padding.dims[d]);
        pair[0] = all / 2;
        pair[1] = all - all / 2;
    }
    c->o.named_padding = TERN_PADDING_NUMBERS;
    c->o.padding = TERN_DIMS(0);
    return TERN_OK;
}

static tern_module *plain(conv c, int64_t in, int64_t out, tern_shape size,
                          const tern_conv_options *options)
{
    const tern_conv_options read = tern_read_conv(options), *o = &read;
    arguments a = {.in = in, .out = out, .bias = !o->no_bias};
    a.dtype = o->dtype;
    a.device = o->device;
    c.o.groups = o->groups;
    bool ok = read_lists(&c, &a, size, &o->stride, &o->padding, &o->dilation) == TERN_OK;
    ok = ok && read_named_padding(&c, &a, o->named_padding) == TERN_OK;
    ok = ok && read_mode(&c, &a, o->padding_mode) == TERN_OK;
    return ok ? make(&c, &a) : NULL;
}

static tern_module *transposed(conv c, int64_t in, int64_t out, tern_shape size,
                               const tern_conv_transpose_options *options)
{
    const tern_conv_transpose_options read = tern_read_conv_transpose(options), *o = &read;
    arguments a = {.in = in, .out = out, .bias = !o->no_bias};
    a.dtype = o->dtype;
    a.device = o->device;
    c.transposed = true;
    c.o.groups = o->groups;
    bool ok = read_lists(&c, &a, size, &o->stride, &o->padding, &o->dilation) == TERN_OK;
    ok =
        ok && expand_list(&c, "output_padding", o->output_padding, 0, &c.output_padding) == TERN_OK;
    return ok ? make(&c, &a) : NULL;
}

#define CONV(N)                                                                                    \
    tern_module *tern_nn_conv##N##d(int64_t in_channels, int64_t out_channels,                     \
                                    tern_shape kernel_size, const tern_conv_options *options)      \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        conv c = {.name = "Conv" #N "d", .function = "tern_nn_conv" #N "d", .ndim = N};            \
        return plain(c, in_channels, out_channels, kernel_size, options);                          \
    }                                                                                              \
    tern_module *tern_nn_conv_transpose##N##d(int64_t in_channels, int64_t out_channels,           \
                                              tern_shape kernel_size,                              \
                                              const tern_conv_transpose_options *options)          \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
        conv c = {.name = "ConvTranspose" #N "d",                                                  \
                  .function = "tern_nn_conv_transpose" #N "d",                                     \
                  .ndim = N};                                                                      \
        return transposed(c, in_channels, out_channels, kernel_size, options);                     \
    }
CONV(1)
CONV(2)
CONV(3)
