/* ops/attention.h -- attention, with several heads and its projections, and places in a sequence.
 *
 * Results belong to the innermost scope; NULL after an error: TERN_ERR_SHAPE and TERN_ERR_DTYPE in
 * PyTorch's words. Without weights being asked for, memory grows with the length and not its
 * square. The modules are in nn/attention.h. */
#ifndef TERN_OPS_ATTENTION_H
#define TERN_OPS_ATTENTION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_scaled_dot_product_attention_options {
    tern_tensor
        *attn_mask;   /* bool (true = look) or added to the scores; broadcast to (..., L, S) */
    double dropout_p; /* of the weights; applies whenever it is > 0, as in PyTorch */
    bool is_causal;   /* hides later keys; not together with attn_mask */
    bool enable_gqa;  /* heads of query share those of key and value: multiples of their numbers */
    double scale;     /* default 1 / sqrt(E), which NaN is, too */
    double softcap;   /* > 0: scores become softcap tanh(score / softcap), before masks */
    int64_t window;   /* > 0: a query sees the keys less than `window` places from its own */
    bool
        lower_right; /* the last query is at the last key's place: query i at i + S - L, not at i */
    uint64_t reserved[4];
} tern_scaled_dot_product_attention_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_scaled_dot_product_attention_options tern_scaled_dot_product_attention_defaults(void);
/* softmax(query key^T scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev)
 * -> (..., L, Ev) (torch.nn.functional.scaled_dot_product_attention). A query that sees no key
 * gives zeros. With enable_gqa dim -3 is that of the heads (Ainslie et al. 2023). A window goes
 * with causality and with masks: is_causal and window 4096 are Mistral's sliding window (Beltagy et
 * al. 2020), of which scores outside are not computed; is_causal and lower_right are
 * torch.nn.attention.bias.causal_lower_right, for queries that continue a sequence; softcap is
 * Gemma 2's. */
TERN_API tern_tensor *tern_scaled_dot_product_attention(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_scaled_dot_product_attention_options *options);

/* ---- with heads ------------------------------------------------------------------------------ */

typedef struct tern_multi_head_attention_forward_options {
    int64_t num_heads; /* must be given, and divide E */
    /* (3 E, E): of query, key and value; or one for each: (E, E), (E, Ek), (E, Ev). */
    tern_tensor *in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight;
    tern_tensor *in_proj_bias;                    /* (3 E) or NULL */
    tern_tensor *out_proj_weight, *out_proj_bias; /* (E, E), (E) or NULL */
    tern_tensor *bias_k, *bias_v;                 /* (1, 1, E): one more key and value; or NULL */
    tern_tensor *static_k, *static_v;             /* (N heads, S, E / heads) instead of theirs */
    bool add_zero_attn;                           /* one more key and value of zeros */
    bool batch_first;                             /* query, key, value and output are (N, L, E) */
    bool is_causal;                               /* not together with attn_mask */
    bool no_average_attn_weights;                 /* weights of each head */
    double dropout_p;                             /* of the weights; 0 outside of training */
    tern_tensor *key_padding_mask;                /* (N, S): true = pass by, or numbers to add */
    tern_tensor *attn_mask;                       /* (L, S) or (N heads, L, S), likewise */
    uint64_t reserved[4];
} tern_multi_head_attention_forward_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_multi_head_attention_forward_options tern_multi_head_attention_forward_defaults(void);
/* torch.nn.functional.multi_head_attention_forward (Vaswani et al. 2017): query (L, N, E), key (S,
 * N, Ek), value (S, N, Ev) -> (L, N, E); all without N for a single sequence. Masks are bool, where
 * TRUE hides a key (in tern_scaled_dot_product_attention it shows it), or numbers that are added; a
 * query that sees no key gives zeros, NaN where weights are wanted. weights NULL: they are not.
 * Else *weights becomes (N, L, S), the mean over the heads, or (N, heads, L, S). */
TERN_API tern_tensor *tern_multi_head_attention_forward(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_multi_head_attention_forward_options *options, tern_tensor **weights);

/* ---- places in a sequence -------------------------------------------------------------------- */

/* (places, width): sin(p / 10000^(2 i / width)) in column 2 i, its cosine in 2 i + 1 (Vaswani et
 * al. 2017, 3.5). Computed on the host, in double. */
TERN_API tern_tensor *tern_sinusoidal_table(int64_t places, int64_t width, tern_dtype dtype,
                                            const char *device);
/* *cos, *sin: (places, dim / 2) of p base^(-2 i / dim); base 0 is 10000. */
TERN_API tern_status tern_rotary_tables(int64_t places, int64_t dim, double base, tern_dtype dtype,
                                        const char *device, tern_tensor **cos, tern_tensor **sin);
typedef struct tern_rotary_embedding_function_options {
    bool interleaved; /* pairs of neighbours, as in RoFormer; else of halves, as in GPT-NeoX */
    int64_t offset;   /* the place of the first row */
    uint64_t reserved[4];
} tern_rotary_embedding_function_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_rotary_embedding_function_options tern_rotary_embedding_function_defaults(void);
/* Rotary position embedding (Su et al. 2021, https://arxiv.org/abs/2104.09864): each pair (a, b) of
 * x (..., time, width) becomes (a cos - b sin, a sin + b cos), by row of the tables (places,
 * pairs), or of x (N, ..., time, width) by tables (N or 1, places, pairs), each item's own, as
 * places of padded or packed rows want them. Pairs are elements (i, i + pairs), or interleaved (2
 * i, 2 i + 1); what is beyond 2 pairs stays. The tables get no gradient. */
TERN_API tern_tensor *tern_rotary_embedding(tern_tensor *x, tern_tensor *cos, tern_tensor *sin,
                                            const tern_rotary_embedding_function_options *options);

TERN_END_DECLS
#endif
