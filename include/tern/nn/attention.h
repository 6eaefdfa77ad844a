/* nn/attention.h -- multi-head attention, transformers (Vaswani et al. 2017,
 * https://arxiv.org/abs/1706.03762), and position encodings as modules.
 *
 * Sequences are (time, batch, width), or (batch, time, width) with batch_first; a single sequence
 * has no dim batch. Masks are bool, where true HIDES a key, or numbers that are added to the
 * scores: a mask is (L, S) or (batch heads, L, S), a key_padding_mask (batch, S). A query that sees
 * no key gets zeros, or NaN if attention weights are asked for. Unless they are, memory grows with
 * the length of the sequence, not with its square.
 *
 * tern_nn_call takes the arguments of PyTorch's forward in their order. Arguments at the end may be
 * left out and others may be NULL; a bool argument is a tensor with one element. The functions
 * whose names end in _forward make the same call with named fields. */
#ifndef TERN_NN_ATTENTION_H
#define TERN_NN_ATTENTION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* ---- MultiheadAttention -------------------------------------------------------------------- */

typedef struct tern_multihead_attention_options {
    double dropout; /* the probability with which an attention weight is dropped in training */
    bool no_bias, add_bias_kv, add_zero_attn;
    int64_t kdim, vdim; /* the widths of key and value; default (and -1): embed_dim */
    bool batch_first;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_multihead_attention_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_multihead_attention_options tern_multihead_attention_defaults(void);

/* A module that attends with several heads. tern_nn_call with {query, key, value, key_padding_mask,
 * attn_mask, is_causal, of_each_head} gives {output} or {output, weights}; weights are (batch, L,
 * S), the mean over the heads, or with of_each_head (batch, heads, L, S). The parameters are
 * in_proj_weight (or q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias, bias_k, bias_v,
 * out_proj.weight and out_proj.bias. Weights start from xavier_uniform, biases from 0. */
TERN_API tern_module *tern_nn_multihead_attention(int64_t embed_dim, int64_t num_heads,
                                                  const tern_multihead_attention_options *options);

typedef struct tern_multihead_attention_masks {
    tern_tensor *key_padding_mask, *attn_mask;
    bool is_causal; /* hides the keys after the query's position; not together with attn_mask */
    bool no_average_attn_weights; /* return the weights of each head, not their mean */
    uint64_t reserved[4];
} tern_multihead_attention_masks;
/* Calls such a module with named arguments and returns its output. *weights becomes the attention
 * weights; weights NULL means need_weights=False. */
TERN_API tern_tensor *tern_nn_multihead_attention_forward(
    tern_module *m, tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_multihead_attention_masks *masks, tern_tensor **weights);

/* ---- layers of a transformer ----------------------------------------------------------------- */

typedef enum tern_activation { TERN_ACTIVATION_RELU = 0, TERN_ACTIVATION_GELU } tern_activation;

typedef struct tern_transformer_layer_options {
    int64_t dim_feedforward; /* default 2048 */
    double dropout;          /* default 0.1; TERN_ZERO for 0 */
    tern_activation activation;
    tern_tensor *(*activation_function)(tern_tensor *x); /* another activation, used if not NULL */
    double layer_norm_eps;                               /* default 1e-5 */
    bool batch_first;
    bool norm_first; /* compute x + f(norm(x)), not norm(x + f(x)) */
    bool no_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_transformer_layer_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_transformer_layer_options tern_transformer_layer_defaults(void);

/* A module with self-attention and a feedforward network of two linear layers. tern_nn_call with
 * {src, src_mask, src_key_padding_mask, is_causal} gives {output}. */
TERN_API tern_module *tern_nn_transformer_encoder_layer(
    int64_t d_model, int64_t nhead, const tern_transformer_layer_options *options);
/* A module with self-attention, attention to memory (the output of an encoder), and a feedforward
 * network. tern_nn_call with {tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask,
 * memory_key_padding_mask, tgt_is_causal, memory_is_causal} gives {output}. */
TERN_API tern_module *tern_nn_transformer_decoder_layer(
    int64_t d_model, int64_t nhead, const tern_transformer_layer_options *options);

/* ---- transformers ---------------------------------------------------------------------------- */

/* A module that runs num_layers encoder layers, then norm unless it is NULL. The layers are
 * encoder_layer and copies of it, which have parameters of their own with the same values. The
 * result owns encoder_layer and norm, and frees both if it fails. It is called as one layer is. */
TERN_API tern_module *tern_nn_transformer_encoder(tern_module *encoder_layer, int num_layers,
                                                  tern_module *norm);
/* Does the same for decoder layers. */
TERN_API tern_module *tern_nn_transformer_decoder(tern_module *decoder_layer, int num_layers,
                                                  tern_module *norm);

typedef struct tern_transformer_options {
    int64_t d_model, nhead;                     /* default 512, 8 */
    int num_encoder_layers, num_decoder_layers; /* default 6, 6 */
    tern_transformer_layer_options layer;
    tern_module *custom_encoder, *custom_decoder; /* used in place of the default ones if not
                                                   * NULL; the module owns them */
    uint64_t reserved[4];
} tern_transformer_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_transformer_options tern_transformer_defaults(void);
/* A module with an encoder and a decoder, each with a final norm. tern_nn_call with {src, tgt,
 * src_mask, tgt_mask, memory_mask, src_key_padding_mask, tgt_key_padding_mask,
 * memory_key_padding_mask, src_is_causal, tgt_is_causal, memory_is_causal} gives {output}.
 * Parameters with two or more dims start from xavier_uniform. */
TERN_API tern_module *tern_nn_transformer(const tern_transformer_options *options);
/* Returns the causal mask (size, size): -infinity above the diagonal and 0 elsewhere. */
TERN_API tern_tensor *tern_nn_transformer_generate_square_subsequent_mask(int64_t size,
                                                                          tern_dtype dtype,
                                                                          const char *device);

typedef struct tern_transformer_masks {
    tern_tensor *src_mask, *tgt_mask, *memory_mask;
    tern_tensor *src_key_padding_mask, *tgt_key_padding_mask, *memory_key_padding_mask;
    bool src_is_causal, tgt_is_causal, memory_is_causal; /* each replaces the mask of its name */
    uint64_t reserved[4];
} tern_transformer_masks;
/* Calls a transformer encoder, or one of its layers, with masks by name. */
TERN_API tern_tensor *tern_nn_transformer_encoder_forward(tern_module *m, tern_tensor *src,
                                                          const tern_transformer_masks *masks);
/* Calls a transformer decoder, or one of its layers, with masks by name. */
TERN_API tern_tensor *tern_nn_transformer_decoder_forward(tern_module *m, tern_tensor *tgt,
                                                          tern_tensor *memory,
                                                          const tern_transformer_masks *masks);
/* Calls a transformer with masks by name. */
TERN_API tern_tensor *tern_nn_transformer_forward(tern_module *m, tern_tensor *src,
                                                  tern_tensor *tgt,
                                                  const tern_transformer_masks *masks);

/* ---- position encodings ---------------------------------------------------------------------- */

typedef struct tern_position_encoding_options {
    int64_t max_len; /* default 5000 */
    double dropout;  /* the probability of dropout of the sum in training */
    bool batch_first;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_position_encoding_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_position_encoding_options tern_position_encoding_defaults(void);
/* A module that adds row t of a table to x at time t. The table is the buffer "pe" (max_len, width)
 * of tern_sinusoidal_table. */
TERN_API tern_module *tern_nn_sinusoidal_encoding(int64_t width,
                                                  const tern_position_encoding_options *options);
/* Does the same with a table that is learned: the parameter "weight" (max_len, width), which starts
 * from a normal distribution with standard deviation 0.02. */
TERN_API tern_module *tern_nn_learned_encoding(int64_t width,
                                               const tern_position_encoding_options *options);

typedef struct tern_rotary_embedding_options {
    int64_t max_len; /* default 4096 */
    double base;     /* default 10000 */
    bool interleaved;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_rotary_embedding_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rotary_embedding_options tern_rotary_embedding_defaults(void);
/* A module that applies tern_rotary_embedding to each of its inputs (..., time, width):
 * tern_nn_call with {query, key} gives both rotated. The buffers "cos" and "sin" are (max_len, dim
 * / 2); elements beyond dim are copied. */
TERN_API tern_module *tern_nn_rotary_embedding(int64_t dim,
                                               const tern_rotary_embedding_options *options);

TERN_END_DECLS
#endif
