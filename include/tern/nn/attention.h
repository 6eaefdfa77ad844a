/* nn/attention.h -- attention with heads, transformers (Vaswani et al. 2017,
 * https://arxiv.org/abs/1706.03762), and modules that encode positions in a sequence.
 *
 * Sequences are (time, batch, width), or (batch, time, width) with batch_first; without the batch
 * for a single one. Masks are bool, where true HIDES a key, or numbers that are added to the
 * scores: a mask (L, S) or (batch heads, L, S), a key_padding_mask (batch, S). A query that sees no
 * key gives zeros, and NaN where weights are asked for. Without them memory grows with the length
 * and not its square.
 *
 * tern_nn_call takes what PyTorch's forward takes, in its order: fewer, or NULL, for what is not
 * given, and for a bool any tensor that means true. The functions named _forward are the same call
 * with fields that have names. */
#ifndef TERN_NN_ATTENTION_H
#define TERN_NN_ATTENTION_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* ---- MultiheadAttention -------------------------------------------------------------------- */

typedef struct tern_multihead_attention_options {
    double dropout; /* of the weights, when training */
    bool no_bias, add_bias_kv, add_zero_attn;
    int64_t kdim, vdim; /* widths of key and value; default embed_dim, which -1 is */
    bool batch_first;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_multihead_attention_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_multihead_attention_options tern_multihead_attention_defaults(void);

/* tern_nn_call with {query, key, value, key_padding_mask, attn_mask, is_causal, of_each_head} gives
 * {output} or {output, weights}: (batch, L, S), the mean over the heads, or of_each_head (batch,
 * heads, L, S). Parameters
 * in_proj_weight (or q_proj_weight, k_proj_weight, v_proj_weight), in_proj_bias, bias_k, bias_v,
 * out_proj.weight, out_proj.bias; xavier_uniform, biases 0. */
TERN_API tern_module *tern_nn_multihead_attention(int64_t embed_dim, int64_t num_heads,
                                                  const tern_multihead_attention_options *options);

typedef struct tern_multihead_attention_masks {
    tern_tensor *key_padding_mask, *attn_mask;
    bool is_causal;               /* hides later keys; not together with attn_mask */
    bool no_average_attn_weights; /* of_each_head */
    uint64_t reserved[4];
} tern_multihead_attention_masks;
/* weights NULL: need_weights=False. */
TERN_API tern_tensor *tern_nn_multihead_attention_forward(
    tern_module *m, tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_multihead_attention_masks *masks, tern_tensor **weights);

/* ---- layers -------------------------------------------------------------------------------- */

typedef enum tern_activation { TERN_ACTIVATION_RELU = 0, TERN_ACTIVATION_GELU } tern_activation;

typedef struct tern_transformer_layer_options {
    int64_t dim_feedforward; /* default 2048 */
    double dropout;          /* default 0.1; TERN_ZERO for 0 */
    tern_activation activation;
    tern_tensor *(*activation_function)(tern_tensor *x); /* or one of your own */
    double layer_norm_eps;                               /* default 1e-5 */
    bool batch_first;
    bool norm_first; /* x + f(norm(x)) instead of norm(x + f(x)) */
    bool no_bias;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_transformer_layer_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_transformer_layer_options tern_transformer_layer_defaults(void);

/* Self-attention and a network of two layers. tern_nn_call with {src, src_mask,
 * src_key_padding_mask, is_causal} gives {output}. */
TERN_API tern_module *tern_nn_transformer_encoder_layer(
    int64_t d_model, int64_t nhead, const tern_transformer_layer_options *options);
/* Also attention to memory, what an encoder gave. tern_nn_call with {tgt, memory, tgt_mask,
 * memory_mask, tgt_key_padding_mask, memory_key_padding_mask, tgt_is_causal, memory_is_causal}
 * gives {output}. */
TERN_API tern_module *tern_nn_transformer_decoder_layer(
    int64_t d_model, int64_t nhead, const tern_transformer_layer_options *options);

/* ---- stacks -------------------------------------------------------------------------------- */

/* num_layers layers, the given one and copies of it with parameters of their own and equal values,
 * and norm at the end, which may be NULL; owns both, also when this fails. Called as a layer is. */
TERN_API tern_module *tern_nn_transformer_encoder(tern_module *encoder_layer, int num_layers,
                                                  tern_module *norm);
/* Of decoder layers. */
TERN_API tern_module *tern_nn_transformer_decoder(tern_module *decoder_layer, int num_layers,
                                                  tern_module *norm);

typedef struct tern_transformer_options {
    int64_t d_model, nhead;                     /* default 512, 8 */
    int num_encoder_layers, num_decoder_layers; /* default 6, 6 */
    tern_transformer_layer_options layer;
    tern_module *custom_encoder, *custom_decoder; /* instead; owned from then on */
    uint64_t reserved[4];
} tern_transformer_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_transformer_options tern_transformer_defaults(void);
/* Encoder and decoder with a norm each. tern_nn_call with {src, tgt, src_mask, tgt_mask,
 * memory_mask, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask, src_is_causal,
 * tgt_is_causal, memory_is_causal} gives {output}. Parameters of two and more dims start
 * xavier_uniform. */
TERN_API tern_module *tern_nn_transformer(const tern_transformer_options *options);
/* (size, size): 0, and -inf above the diagonal. */
TERN_API tern_tensor *tern_nn_transformer_generate_square_subsequent_mask(int64_t size,
                                                                          tern_dtype dtype,
                                                                          const char *device);

typedef struct tern_transformer_masks {
    tern_tensor *src_mask, *tgt_mask, *memory_mask;
    tern_tensor *src_key_padding_mask, *tgt_key_padding_mask, *memory_key_padding_mask;
    bool src_is_causal, tgt_is_causal, memory_is_causal; /* each instead of the mask */
    uint64_t reserved[4];
} tern_transformer_masks;
/* The calls with masks by name: of an encoder or its layer, a decoder or its
 * layer, a transformer. */
TERN_API tern_tensor *tern_nn_transformer_encoder_forward(tern_module *m, tern_tensor *src,
                                                          const tern_transformer_masks *masks);
/* Of a decoder or its layer. */
TERN_API tern_tensor *tern_nn_transformer_decoder_forward(tern_module *m, tern_tensor *tgt,
                                                          tern_tensor *memory,
                                                          const tern_transformer_masks *masks);
/* Of a transformer. */
TERN_API tern_tensor *tern_nn_transformer_forward(tern_module *m, tern_tensor *src,
                                                  tern_tensor *tgt,
                                                  const tern_transformer_masks *masks);

/* ---- places in a sequence ------------------------------------------------------------------ */

typedef struct tern_position_encoding_options {
    int64_t max_len; /* default 5000 */
    double dropout;  /* of the sum, when training */
    bool batch_first;
    tern_dtype dtype;
    const char *device;
    uint64_t reserved[4];
} tern_position_encoding_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_position_encoding_options tern_position_encoding_defaults(void);
/* x plus row t of a table at time t: of sines and cosines, tern_sinusoidal_table, the buffer "pe";
 * or learned, the parameter "weight", normal with deviation 0.02 (both (max_len, width)). */
TERN_API tern_module *tern_nn_sinusoidal_encoding(int64_t width,
                                                  const tern_position_encoding_options *options);
/* The learned one. */
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
/* tern_rotary_embedding of each tensor (..., time, width): tern_nn_call with {query, key} gives
 * both turned. Buffers "cos" and "sin" (max_len, dim / 2); elements beyond dim stay. */
TERN_API tern_module *tern_nn_rotary_embedding(int64_t dim,
                                               const tern_rotary_embedding_options *options);

TERN_END_DECLS
#endif
