/* transformer.c -- stacks of transformer layers, and Transformer, which has an encoder and a
 * decoder. */
#include "nn/layers/transformer.h"
#include "nn/module.h"
#include "tensor/scope.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STACK_INPUTS = 8 };

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Runs the layers in order, each with the masks and memory of the call, and then the norm. */
static tern_status call_stack(tern_module *self, tern_tensor *const *given, int n,
                              tern_tensor **out, int k)
{
    tern_tensor *in[STACK_INPUTS] = {NULL};
    tern_module *layers = tern_nn_child(self, "layers");
    if (n < 1 || n > STACK_INPUTS || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: %s takes 1 to %d tensors and gives one, not %d and %d",
                         tern_nn_name(self), STACK_INPUTS, n, k);
    memcpy(in, given, (size_t)n * sizeof *in);
    tern_tensor *held = NULL; /* in[0] if a layer computed it */
    tern_status status = TERN_OK;
    for (int i = 0; i < tern_nn_children_count(layers) && status == TERN_OK; i++) {
        tern_scope_block scope = tern_call_scope_enter(self->name);
        status = tern_nn_call(tern_nn_child_at(layers, i), in, n, out, 1);
        in[0] = held = tern_call_scope_next(&scope, out[0], held);
    }
    tern_scoped(held);
    TERN_TRY(status);
    if (tern_nn_children_count(self) > 1)
        in[0] = tern_nn_forward(tern_nn_child(self, "norm"), in[0]);
    out[0] = in[0];
    return out[0] ? TERN_OK : tern_last_status();
}

/* Adds `layer` and n - 1 copies of it. */
static tern_status add_layers(tern_module *list, tern_module *layer, int n, const char *function)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        tern_module *one = i ? tern_transformer_layer_copy(layer, function) : layer;
        if (!one || !tern_nn_add(list, name, one))
            return tern_last_status();
    }
    if (n == 0)
        tern_nn_free(layer);
    return TERN_OK;
}

/* Returns a stack that owns layer and norm. Both are freed if this fails. */
static tern_module *stack(const char *name, tern_module *layer, int n, tern_module *norm,
                          const char *function)
{
    tern_module *m = NULL, *list = NULL;
    if (!layer)
        tern_fail_argument_null(function, "layer");
    else if (layer->parent || (norm && norm->parent))
        tern_fail(TERN_ERR_STATE, "%s: %s is a child of another module already", function,
                  tern_nn_name(layer->parent ? layer : norm));
    else if (n < 0)
        tern_fail(TERN_ERR_ARGUMENT, "%s: num_layers must not be negative, got %d", function, n);
    else
        m = tern_nn_module_with_call(name, call_stack, NULL);
    if (m)
        list = tern_nn_add(m, "layers", tern_nn_module("ModuleList", NULL, NULL));
    if (!list || (norm && !tern_nn_add(m, "norm", norm))) {
        if (layer && !layer->parent)
            tern_nn_free(layer);
        if (!list && norm && !norm->parent)
            tern_nn_free(norm);
        tern_nn_free(m);
        return NULL;
    }
    return tern_layer_if(m, add_layers(list, layer, n, function));
}

tern_module *tern_nn_transformer_encoder(tern_module *encoder_layer, int num_layers,
                                         tern_module *norm)
{
    return stack("TransformerEncoder", encoder_layer, num_layers, norm,
                 "tern_nn_transformer_encoder");
}

tern_module *tern_nn_transformer_decoder(tern_module *decoder_layer, int num_layers,
                                         tern_module *norm)
{
    return stack("TransformerDecoder", decoder_layer, num_layers, norm,
                 "tern_nn_transformer_decoder");
}

/* ---- Transformer ----------------------------------------------------------------------------- */

enum {
    SRC,
    TGT,
    SRC_MASK,
    TGT_MASK,
    MEMORY_MASK,
    SRC_PADDING,
    TGT_PADDING,
    MEMORY_PADDING,
    SRC_IS_CAUSAL,
    TGT_IS_CAUSAL,
    MEMORY_IS_CAUSAL,
    INPUTS
};

typedef struct transformer {
    int64_t d_model;
    bool batch_first;
} transformer;

static tern_status check(const transformer *t, const tern_tensor *src, const tern_tensor *tgt)
{
    const char *function = "tern_nn_transformer";
    if (!src || !tgt)
        return tern_fail_argument_null(function, src ? "tgt" : "src");
    int batch = t->batch_first ? 0 : 1;
    if (tern_dim(src) == 3 && tern_dim(tgt) == 3 && tern_size(src, batch) != tern_size(tgt, batch))
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: the batch number of src and tgt must be equal (%lld, %lld)", function,
                         (long long)tern_size(src, batch), (long long)tern_size(tgt, batch));
    int64_t widths[] = {tern_size(src, -1), tern_size(tgt, -1)};
    if (widths[0] != t->d_model || widths[1] != t->d_model)
        return tern_fail(TERN_ERR_SHAPE,
                         "%s: the feature number of src and tgt must be equal to d_model (%lld, "
                         "%lld, %lld)",
                         function, (long long)widths[0], (long long)widths[1],
                         (long long)t->d_model);
    return TERN_OK;
}

/* Computes decoder(tgt, encoder(src)), each with its masks. */
static tern_status call_both(tern_module *self, tern_tensor *const *given, int n, tern_tensor **out,
                             int k)
{
    tern_tensor *in[INPUTS] = {NULL}, *memory = NULL;
    if (n < 2 || n > INPUTS || k != 1)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_nn_call: Transformer takes 2 to %d tensors and gives one, not %d "
                         "and %d",
                         INPUTS, n, k);
    memcpy(in, given, (size_t)n * sizeof *in);
    TERN_TRY(check(tern_nn_data(self), in[SRC], in[TGT]));
    tern_tensor *encoded[] = {in[SRC], in[SRC_MASK], in[SRC_PADDING], in[SRC_IS_CAUSAL]};
    TERN_TRY(tern_nn_call(tern_nn_child(self, "encoder"), encoded, 4, &memory, 1));
    tern_tensor *decoded[] = {in[TGT],           memory,
                              in[TGT_MASK],      in[MEMORY_MASK],
                              in[TGT_PADDING],   in[MEMORY_PADDING],
                              in[TGT_IS_CAUSAL], in[MEMORY_IS_CAUSAL]};
    return tern_nn_call(tern_nn_child(self, "decoder"), decoded, 8, out, 1);
}

/* Initializes the matrices with Xavier's rule, as PyTorch's Transformer does. Biases and norms keep
 * their values. */
static tern_status init_xavier(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    (void)user;
    return tern_dim(x) < 2 || tern_nn_init_xavier_uniform_(x, 1) ? TERN_OK : tern_last_status();
}

static tern_module *final_norm(const tern_transformer_options *o)
{
    tern_layer_norm_options norm = {.eps = o->layer.layer_norm_eps,
                                    .no_bias = o->layer.no_bias,
                                    .dtype = o->layer.dtype,
                                    .device = o->layer.device};
    return tern_nn_layer_norm(TERN_SHAPE(o->d_model), &norm);
}

static tern_module *encoder(const tern_transformer_options *o)
{
    if (o->custom_encoder)
        return o->custom_encoder;
    tern_module *norm = final_norm(o);
    if (!norm) /* a norm of NULL would make a stack without one */
        return NULL;
    tern_module *one = tern_nn_transformer_encoder_layer(o->d_model, o->nhead, &o->layer);
    return tern_nn_transformer_encoder(one, o->num_encoder_layers, norm);
}

static tern_module *decoder(const tern_transformer_options *o)
{
    if (o->custom_decoder)
        return o->custom_decoder;
    tern_module *norm = final_norm(o);
    if (!norm)
        return NULL;
    tern_module *one = tern_nn_transformer_decoder_layer(o->d_model, o->nhead, &o->layer);
    return tern_nn_transformer_decoder(one, o->num_decoder_layers, norm);
}

tern_module *tern_nn_transformer(const tern_transformer_options *options)
{
    TERN_NAMED_IN_ERRORS;
    tern_transformer_options o = tern_read_transformer(options);
    transformer t = {o.d_model, o.layer.batch_first};
    tern_module *m = tern_layer_loss("Transformer", call_both, &t, sizeof t);
    tern_module *parts[] = {encoder(&o), decoder(&o)};
    bool fine = m && parts[0] && parts[1];
    for (int i = 0; i < 2; i++)
        if (!m)
            tern_nn_free(parts[i]);
        else if (parts[i])
            fine &= tern_nn_add(m, i ? "decoder" : "encoder", parts[i]) != NULL;
    return tern_layer_if(m,
                         fine ? tern_nn_each_parameter(m, init_xavier, NULL) : tern_last_status());
}

tern_tensor *tern_nn_transformer_generate_square_subsequent_mask(int64_t size, tern_dtype dtype,
                                                                 const char *device)
{
    TERN_NAMED_IN_ERRORS;
    tern_tensor *mask = NULL;
    TERN_SCOPE
        mask = tern_escape(tern_triu(
            tern_full(TERN_SHAPE(size, size), tern_scalar_real(-INFINITY), dtype, device), 1));
    return mask;
}

/* ---- calls with masks by name ---------------------------------------------------------------- */

static tern_tensor *call(tern_module *m, tern_tensor *const *in, int n)
{
    tern_tensor *y = NULL;
    return tern_nn_call(m, in, n, &y, 1) == TERN_OK ? y : NULL;
}

static const tern_transformer_masks no_masks;

tern_tensor *tern_nn_transformer_encoder_forward(tern_module *m, tern_tensor *src,
                                                 const tern_transformer_masks *masks)
{
    TERN_NAMED_IN_ERRORS;
    const tern_transformer_masks *o = masks ? masks : &no_masks;
    tern_tensor *in[] = {src, o->src_mask, o->src_key_padding_mask, o->src_is_causal ? src : NULL};
    return call(m, in, 4);
}

tern_tensor *tern_nn_transformer_decoder_forward(tern_module *m, tern_tensor *tgt,
                                                 tern_tensor *memory,
                                                 const tern_transformer_masks *masks)
{
    TERN_NAMED_IN_ERRORS;
    const tern_transformer_masks *o = masks ? masks : &no_masks;
    tern_tensor *in[] = {tgt,
                         memory,
                         o->tgt_mask,
                         o->memory_mask,
                         o->tgt_key_padding_mask,
                         o->memory_key_padding_mask,
                         o->tgt_is_causal ? tgt : NULL,
                         o->memory_is_causal ? tgt : NULL};
    return call(m, in, 8);
}

tern_tensor *tern_nn_transformer_forward(tern_module *m, tern_tensor *src, tern_tensor *tgt,
                                         const tern_transformer_masks *masks)
{
    TERN_NAMED_IN_ERRORS;
    const tern_transformer_masks *o = masks ? masks : &no_masks;
    tern_tensor *in[INPUTS] = {src,
                               tgt,
                               o->src_mask,
                               o->tgt_mask,
                               o->memory_mask,
                               o->src_key_padding_mask,
                               o->tgt_key_padding_mask,
                               o->memory_key_padding_mask,
                               o->src_is_causal ? src : NULL,
                               o->tgt_is_causal ? src : NULL,
                               o->memory_is_causal ? src : NULL};
    return call(m, in, INPUTS);
}
