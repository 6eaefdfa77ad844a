/* ops/attention.h -- attention with several heads and its projections, and places in a sequence.
 * The attention itself is tern_scaled_dot_product_attention (ops/matmul.h). */
#ifndef TERN_OPS_ATTENTION_H
#define TERN_OPS_ATTENTION_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

typedef struct tern_multi_head_attention_options {
    int64_t num_heads; /* must be given, and divide E */
    /* (3 E, E): of query, key and value; or one for each: (E, E), (E, Ek), (E, Ev). */
    tern_tensor *in_proj_weight, *q_proj_weight, *k_proj_weight, *v_proj_weight;
    tern_tensor *in_proj_bias;                      /* (3 E) or NULL */
    tern_tensor *out_proj_weight, *out_proj_bias;   /* (E, E), (E) or NULL */
    tern_tensor *bias_k, *bias_v;                   /* (1, 1, E): one more key and value; or NULL */
    tern_tensor *static_k, *static_v;               /* (N heads, S, E / heads) instead of theirs */
    bool add_zero_attn;                             /* one more key and value of zeros */
    bool batch_first;                               /* query, key, value and output are (N, L, E) */
    bool is_causal;                                 /* not together with attn_mask */
    bool no_average_attn_weights;                   /* weights of each head */
    double dropout_p;                               /* of the weights; 0 outside of training */
    tern_tensor *key_padding_mask;                  /* (N, S): true = pass by, or numbers to add */
    tern_tensor *attn_mask;                         /* (L, S) or (N heads, L, S), likewise */
    uint64_t reserved[4];
} tern_multi_head_attention_options;

/* torch.nn.functional.multi_head_attention_forward (Vaswani et al. 2017): query (L, N, E), key (S,
 * N, Ek), value (S, N, Ev) -> (L, N, E); all without N for a single sequence. Masks are bool, where
 * TRUE hides a key (in tern_scaled_dot_product_attention it shows it), or numbers that are added; a
 * query that sees no key gives NaN.
 *
 * weights NULL: they are not wanted, and memory grows with the length only. Else *weights becomes
 * (N, L, S), the mean over the heads, or (N, heads, L, S). */
TERN_API tern_tensor *
tern_multi_head_attention_forward(tern_tensor *query, tern_tensor *key, tern_tensor *value,
                                  const tern_multi_head_attention_options *options,
                                  tern_tensor **weights);

TERN_END_DECLS
#endif
