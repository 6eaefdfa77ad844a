/* ops/matmul.h -- matrix products. Sums are in float32 for f16 and bf16. */
#ifndef TERN_OPS_MATMUL_H
#define TERN_OPS_MATMUL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* torch.matmul: (n) (n) -> (); (n, k) (k, m) -> (n, m); a vector is a row on the left and a column
 * on the right; dims in front are batches and broadcast. Types must be equal floating point types.
 */
TERN_API tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b);
/* (n, k) (k, m) -> (n, m), nothing else. */
TERN_API tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b);
/* (b, n, k) (b, k, m) -> (b, n, m), nothing else. */
TERN_API tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b);
/* x (*, in) times weight (out, in) transposed, plus bias (out), which may be NULL -> (*, out). */
TERN_API tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias);

typedef struct tern_sdpa_options {
    tern_tensor
        *attn_mask; /* bool (true = look) or added to the scores; broadcast to (..., L, S) */
    double dropout_p;
    bool is_causal; /* not together with attn_mask */
    double scale;   /* default 1 / sqrt(E) */
    uint64_t reserved[4];
} tern_sdpa_options;

/* softmax(query key^T scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev)
 * ->
 * (..., L, Ev). Dropout applies whenever dropout_p > 0, as in torch.nn.functional. */
TERN_API tern_tensor *tern_scaled_dot_product_attention(tern_tensor *query, tern_tensor *key,
                                                        tern_tensor *value,
                                                        const tern_sdpa_options *options);

TERN_END_DECLS
#endif
