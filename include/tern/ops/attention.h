/* ops/attention.h -- attention, multi-head attention, and position embeddings.
 *
 * Results belong to the innermost scope. After an error a function returns NULL; the errors are
 * TERN_ERR_SHAPE and TERN_ERR_DTYPE with PyTorch's messages. Unless attention weights are asked
 * for, memory grows with the length of the sequence, not with its square. nn/attention.h has the
 * modules. */
#ifndef TERN_OPS_ATTENTION_H
#define TERN_OPS_ATTENTION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_scaled_dot_product_attention_options {
    tern_tensor
        *attn_mask;   /* bool, where true lets the query see the key, or numbers that are added to
                     * the scores; broadcast to (..., L, S) */
    double dropout_p; /* the probability with which a weight is dropped; used whenever it is > 0,
                       * in evaluation too, as in PyTorch */
    bool is_causal;   /* hides the keys after the query's position; not together with attn_mask */
    bool enable_gqa;  /* key and value have fewer heads than query, and each is shared by equally
                       * many heads of query */
    double scale;     /* default 1 / sqrt(E); NaN also means the default */
    double softcap; /* > 0: scores become softcap tanh(score / softcap) before masks are applied */
    int64_t window; /* > 0: a query sees only keys less than `window` positions from its own */
    bool lower_right; /* the last query has the last key's position: query i is at position i + S
                       * - L, not at i */
    uint64_t reserved[4];
} tern_scaled_dot_product_attention_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_scaled_dot_product_attention_options tern_scaled_dot_product_attention_defaults(void);
/* Computes softmax(query key^T scale + mask) value
 * (torch.nn.functional.scaled_dot_product_attention): query (..., L, E), key (..., S, E), value
 * (..., S, Ev) -> (..., L, Ev). A query that sees no key gets zeros. With enable_gqa dim -3 holds
 * the heads (Ainslie et al. 2023). A window can be combined with is_causal and with masks:
 * is_causal with window 4096 is Mistral's sliding window (Beltagy et al. 2020), and scores outside
 * of the window are not computed. is_causal with lower_right is
 * torch.nn.attention.bias.causal_lower_right, for queries that continue a sequence. softcap is used
 * by Gemma 2. */
TERN_API tern_tensor *tern_scaled_dot_product_attention(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_scaled_dot_product_attention_options *options);

/* ---- multi-head attention -------------------------------------------------------------------- */

typedef struct tern_multi_head_attention_forward_options {
    int64_t num_heads; /* required; must divide E */
    /* One weight (3 E, E) for query, key and value, or three: (E, E), (E, Ek), (E, Ev). */
    tern_tensor *in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight;
    tern_tensor *in_proj_bias;                    /* (3 E) or NULL */
    tern_tensor *out_proj_weight, *out_proj_bias; /* (E, E), (E) or NULL */
    tern_tensor *bias_k, *bias_v;     /* (1, 1, E): an additional key and value, or NULL */
    tern_tensor *static_k, *static_v; /* (N heads, S, E / heads): used instead of the projected
                                       * key and value */
    bool add_zero_attn;               /* appends a key and a value of zeros */
    bool batch_first;                 /* query, key, value and the result are (N, L, E) */
    bool is_causal;                   /* not together with attn_mask */
    bool no_average_attn_weights;     /* return the weights of each head, not their mean */
    double dropout_p;                 /* the probability with which a weight is dropped; set it to 0
                                    * in evaluation */
    tern_tensor *key_padding_mask; /* (N, S): bool, where true hides the key, or numbers to add */
    tern_tensor *attn_mask;        /* (L, S) or (N heads, L, S), of the same kinds */
    uint64_t reserved[4];
} tern_multi_head_attention_forward_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_multi_head_attention_forward_options tern_multi_head_attention_forward_defaults(void);
/* Projects query, key and value, attends with several heads and projects the result
 * (torch.nn.functional.multi_head_attention_forward; Vaswani et al. 2017): query (L, N, E), key (S,
 * N, Ek), value (S, N, Ev) -> (L, N, E). A single sequence has no dim N in all of these. Masks are
 * bool, where true HIDES a key (the opposite of the masks of tern_scaled_dot_product_attention, as
 * in PyTorch), or numbers that are added to the scores. A query that sees no key gets zeros, or NaN
 * where weights are asked for. If weights is not NULL, *weights becomes the mean of the attention
 * weights over the heads, (N, L, S), or with no_average_attn_weights all of them, (N, heads, L,
 * S). */
TERN_API tern_tensor *tern_multi_head_attention_forward(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_multi_head_attention_forward_options *options, tern_tensor **weights);

/* ---- position embeddings --------------------------------------------------------------------- */

/* Returns the sinusoidal position embeddings (places, width) of Vaswani et al. 2017, section 3.5:
 * row p holds sin(p / 10000^(2 i / width)) in column 2 i and the cosine of the same angle in column
 * 2 i + 1. The host computes them in double precision. */
TERN_API tern_tensor *tern_sinusoidal_table(int64_t places, int64_t width, tern_dtype dtype,
                                            const char *device);
/* Writes the tables that tern_rotary_embedding takes: *cos and *sin become (places, dim / 2), the
 * cosine and sine of p base^(-2 i / dim). base 0 means 10000. */
TERN_API tern_status tern_rotary_tables(int64_t places, int64_t dim, double base, tern_dtype dtype,
                                        const char *device, tern_tensor **cos, tern_tensor **sin);
typedef struct tern_rotary_embedding_function_options {
    bool interleaved; /* a pair is two neighbouring elements, as in RoFormer; else element i of
                       * each half, as in GPT-NeoX */
    int64_t offset;   /* the position of the first row of x */
    uint64_t reserved[4];
} tern_rotary_embedding_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rotary_embedding_function_options tern_rotary_embedding_function_defaults(void);
/* Rotary position embedding (Su et al. 2021, https://arxiv.org/abs/2104.09864): each pair (a, b) of
 * x (..., time, width) becomes (a cos - b sin, a sin + b cos). The tables are (places, pairs), and
 * row t of x takes row offset + t of them; or they are (N or 1, places, pairs) for x (N, ..., time,
 * width), so that each sequence of a batch has its own, as padded or packed sequences need. A pair
 * is made of the elements (i, i + pairs), or with interleaved (2 i, 2 i + 1). Elements beyond the
 * pairs are copied. The tables get no gradient. */
TERN_API tern_tensor *tern_rotary_embedding(tern_tensor *x, tern_tensor *cos, tern_tensor *sin,
                                            const tern_rotary_embedding_function_options *options);

TERN_END_DECLS
#endif
