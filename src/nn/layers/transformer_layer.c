/* transformer_layer.c -- the encoder layer and the decoder layer of a transformer.
 *
 * Both consist of sublayers: self-attention, in a decoder attention to memory, and two linear
 * layers. A sublayer is a function f with dropout, and computes x + f(norm(x)) or norm(x + f(x))
 * (Xiong et al. 2020, figure 1). */
#include "nn/layers/transformer.h"
#include "nn/module.h"
#include <stdio.h>
#include <string.h>

typedef struct layer {
    bool decoder;
    int64_t d_model, nhead;
    tern_transformer_layer_options o; /* options with defaults set */
} layer;

/* ---- calls ----------------------------------------------------------------------------------- */

/* The inputs of a call of either layer. */
typedef struct inputs {
    tern_tensor *memory, *mask, *memory_mask, *padding, *memory_padding, *causal, *memory_causal;
} inputs;

typedef enum sublayer { SELF_ATTENTION, MEMORY_ATTENTION, FEED_FORWARD } sublayer;

/* Runs the child "<name><number>" on x. */
static tern_tensor *run_numbered_child(tern_module *self, const char *name, int number,
                                       tern_tensor *x)
{
    char full[16];
    snprintf(full, sizeof full, "%s%d", name, number);
    return tern_nn_forward(tern_nn_child(self, full), x);
}

/* Runs attention with queries from x and keys and values from memory. */
static tern_tensor *attend(tern_module *attention, tern_tensor *x, tern_tensor *memory,
                           tern_tensor *padding, tern_tensor *mask, tern_tensor *causal)
{
    tern_tensor *in[] = {x, memory, memory, padding, mask, causal}, *y = NULL;
    return x && tern_nn_call(attention, in, 6, &y, 1) == TERN_OK ? y : NULL;
}

/* Returns linear2(dropout(activation(linear1(x)))). */
static tern_tensor *feed_forward(tern_module *self, tern_tensor *x)
{
    const layer *l = tern_nn_data(self);
    x = tern_nn_forward(tern_nn_child(self, "linear1"), x);
    x = tern_nn_forward(tern_nn_child(self, "dropout"), l->o.activation_function(x));
    return tern_nn_forward(tern_nn_child(self, "linear2"), x);
}

/* Runs sublayer `number` (from 1) with its dropout, norm and residual connection. */
static tern_tensor *run(tern_module *self, sublayer which, int number, const inputs *in,
                        tern_tensor *x)
{
    const layer *l = tern_nn_data(self);
    tern_tensor *y = l->o.norm_first ? run_numbered_child(self, "norm", number, x) : x;
    if (which == SELF_ATTENTION)
        y = attend(tern_nn_child(self, "self_attn"), y, y, in->padding, in->mask, in->causal);
    else if (which == MEMORY_ATTENTION)
        y = attend(tern_nn_child(self, "multihead_attn"), y, in->memory, in->memory_padding,
                   in->memory_mask, in->memory_causal);
    else
        y = feed_forward(self, y);
    x = tern_add(x, run_numbered_child(self, "dropout", number, y));
    return l->o.norm_first ? x : run_numbered_child(self, "norm", number, x);
}

static tern_status check_counts(tern_module *self, int n, int least, int most, int k)
{
    if (n >= least && n <= most && k == 1)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT,
                     "tern_nn_call: %s takes %d to %d tensors and gives one, not %d and %d",
                     tern_nn_name(self), least, most, n, k);
}

static tern_status call_encoder(tern_module *self, tern_tensor *const *given, int n,
                                tern_tensor **out, int k)
{
    tern_tensor *in[4] = {NULL};
    TERN_TRY(check_counts(self, n, 1, 4, k));
    memcpy(in, given, (size_t)n * sizeof *in);
    const inputs named = {.mask = in[1], .padding = in[2], .causal = in[3]};
    tern_tensor *x = run(self, SELF_ATTENTION, 1, &named, in[0]);
    out[0] = run(self, FEED_FORWARD, 2, &named, x);
    return out[0] ? TERN_OK : tern_last_status();
}

static tern_status call_decoder(tern_module *self, tern_tensor *const *given, int n,
                                tern_tensor **out, int k)
{
    tern_tensor *in[8] = {NULL};
    TERN_TRY(check_counts(self, n, 2, 8, k));
    memcpy(in, given, (size_t)n * sizeof *in);
    const inputs named = {.memory = in[1],
                          .mask = in[2],
                          .memory_mask = in[3],
                          .padding = in[4],
                          .memory_padding = in[5],
                          .causal = in[6],
                          .memory_causal = in[7]};
    tern_tensor *x = run(self, SELF_ATTENTION, 1, &named, in[0]);
    x = run(self, MEMORY_ATTENTION, 2, &named, x);
    out[0] = run(self, FEED_FORWARD, 3, &named, x);
    return out[0] ? TERN_OK : tern_last_status();
}

/* ---- constructors ---------------------------------------------------------------------------- */

static tern_status add(tern_module *m, const char *name, tern_module *child)
{
    return child && tern_nn_add(m, name, child) ? TERN_OK : tern_last_status();
}

static tern_status add_attention(tern_module *m, const layer *l, const char *name)
{
    tern_multihead_attention_options o = {.dropout = l->o.dropout,
                                          .no_bias = l->o.no_bias,
                                          .batch_first = l->o.batch_first,
                                          .dtype = l->o.dtype,
                                          .device = l->o.device};
    return add(m, name, tern_nn_multihead_attention(l->d_model, l->nhead, &o));
}

static tern_module *dropout(const layer *l)
{
    return tern_nn_dropout(
        &(tern_dropout_options){.p = l->o.dropout, .reserved = {TERN_OPTIONS_AS_WRITTEN}});
}

/* Adds the children with PyTorch's names and in its order, so that state dicts are compatible. */
static tern_status add_sublayers(tern_module *m, const layer *l)
{
    tern_linear_options linear = {
        .no_bias = l->o.no_bias, .dtype = l->o.dtype, .device = l->o.device};
    tern_layer_norm_options norm = {.eps = l->o.layer_norm_eps,
                                    .no_bias = l->o.no_bias,
                                    .dtype = l->o.dtype,
                                    .device = l->o.device,
                                    .reserved = {TERN_OPTIONS_AS_WRITTEN}};
    int sublayers = l->decoder ? 3 : 2;
    char name[24];
    TERN_TRY(add_attention(m, l, "self_attn"));
    if (l->decoder)
        TERN_TRY(add_attention(m, l, "multihead_attn"));
    TERN_TRY(add(m, "linear1", tern_nn_linear(l->d_model, l->o.dim_feedforward, &linear)));
    TERN_TRY(add(m, "dropout", dropout(l)));
    TERN_TRY(add(m, "linear2", tern_nn_linear(l->o.dim_feedforward, l->d_model, &linear)));
    for (int i = 1; i <= sublayers; i++) {
        snprintf(name, sizeof name, "norm%d", i);
        TERN_TRY(add(m, name, tern_nn_layer_norm(TERN_SHAPE(l->d_model), &norm)));
    }
    for (int i = 1; i <= sublayers; i++) {
        snprintf(name, sizeof name, "dropout%d", i);
        TERN_TRY(add(m, name, dropout(l)));
    }
    return TERN_OK;
}

static tern_status choose_activation(tern_transformer_layer_options *o, const char *function)
{
    if (o->activation_function)
        return TERN_OK;
    if (o->activation == TERN_ACTIVATION_RELU)
        o->activation_function = tern_relu;
    else if (o->activation == TERN_ACTIVATION_GELU)
        o->activation_function = tern_gelu;
    else
        return tern_fail(TERN_ERR_ARGUMENT, "%s: activation should be relu/gelu, not %d", function,
                         (int)o->activation);
    return TERN_OK;
}

/* Returns the layer. The options must have their defaults set. */
static tern_module *make(const layer *l)
{
    tern_module *m = l->decoder
                         ? tern_layer_loss("TransformerDecoderLayer", call_decoder, l, sizeof *l)
                         : tern_layer_loss("TransformerEncoderLayer", call_encoder, l, sizeof *l);
    return tern_layer_if(m, m ? add_sublayers(m, l) : tern_last_status());
}

static tern_module *make_from(bool decoder, int64_t d_model, int64_t nhead,
                              const tern_transformer_layer_options *options, const char *function)
{
    layer l = {.decoder = decoder, .d_model = d_model, .nhead = nhead};
    l.o = tern_read_transformer_layer(options);
    return choose_activation(&l.o, function) == TERN_OK ? make(&l) : NULL;
}

tern_module *tern_nn_transformer_encoder_layer(int64_t d_model, int64_t nhead,
                                               const tern_transformer_layer_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return make_from(false, d_model, nhead, options, __func__);
}

tern_module *tern_nn_transformer_decoder_layer(int64_t d_model, int64_t nhead,
                                               const tern_transformer_layer_options *options)
{
    TERN_NAMED_IN_ERRORS;
    return make_from(true, d_model, nhead, options, __func__);
}

/* ---- copies ---------------------------------------------------------------------------------- */

tern_module *tern_transformer_layer_copy(tern_module *original, const char *function)
{
    if (original->call != call_encoder && original->call != call_decoder)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: %s can't be copied; a stack is made of TransformerEncoderLayer "
                              "or TransformerDecoderLayer",
                              function, tern_nn_name(original));
    return tern_nn_copy(original);
}
