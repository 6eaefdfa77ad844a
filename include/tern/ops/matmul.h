/* ops/matmul.h -- matrix products. Sums are in float32 for f16 and bf16. */
#ifndef TERN_OPS_MATMUL_H
#define TERN_OPS_MATMUL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* torch.matmul: (n) (n) -> (); (n, k) (k, m) -> (n, m); a vector is a row on the left and a column
 * on the right; dims in front are batches and broadcast. Types must be equal, and not bool. */
TERN_API tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b);
/* (n, k) (k, m) -> (n, m), nothing else. */
TERN_API tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b);
/* (b, n, k) (b, k, m) -> (b, n, m), nothing else. */
TERN_API tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b);
/* x (*, in) times weight (out, in) transposed, plus bias (out), which may be NULL -> (*, out). */
TERN_API tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias);

/* (n) (n) -> (); (n) (m) -> (n, m), any types; over the last dims of both; (n, m) (m) -> (n). */
TERN_API tern_tensor *tern_dot(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_vdot(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_outer(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_ger(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_inner(tern_tensor *a, tern_tensor *b);
TERN_API tern_tensor *tern_mv(tern_tensor *a, tern_tensor *v);

/* beta input + alpha product, input broadcast to the product's shape; PyTorch's defaults are 1
 * and 1. beta 0: input is not looked at. mm, mv, outer, bmm, and the sum of bmm's matrices. */
TERN_API tern_tensor *tern_addmm(tern_tensor *input, tern_tensor *mat1, tern_tensor *mat2,
                                 double beta, double alpha);
TERN_API tern_tensor *tern_addmv(tern_tensor *input, tern_tensor *mat, tern_tensor *vec,
                                 double beta, double alpha);
TERN_API tern_tensor *tern_addr(tern_tensor *input, tern_tensor *vec1, tern_tensor *vec2,
                                double beta, double alpha);
TERN_API tern_tensor *tern_baddbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                   double beta, double alpha);
TERN_API tern_tensor *tern_addbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                  double beta, double alpha);
/* x1 (*, n), x2 (*, m), weight (out, n, m), bias (out) or NULL -> (*, out): the sum over i and j of
 * x1_i weight_oij x2_j. */
TERN_API tern_tensor *tern_bilinear(tern_tensor *x1, tern_tensor *x2, tern_tensor *weight,
                                    tern_tensor *bias);

/* The sum of products over dims dims_a[i] of a and dims_b[i] of b; over a's last n dims and b's
 * first ones. The other dims stay, a's in front. */
TERN_API tern_tensor *tern_tensordot(tern_tensor *a, tern_tensor *b, tern_shape dims_a,
                                     tern_shape dims_b);
TERN_API tern_tensor *tern_tensordot_n(tern_tensor *a, tern_tensor *b, int n);
/* Einstein's convention, all of torch.einsum's: "bij,bjk->bik", "...ij->...ji", "ii->i", "ij,j". n
 * operands of one type, 32 at most. */
TERN_API tern_tensor *tern_einsum(const char *equation, tern_tensor *const *operands, int n);
/* The product of n matrices, 64 at most, in the cheapest order; the first and the last one of
 * multi_dot may be vectors. */
TERN_API tern_tensor *tern_chain_matmul(tern_tensor *const *matrices, int n);
TERN_API tern_tensor *tern_linalg_multi_dot(tern_tensor *const *tensors, int n);
/* (..., m, m) multiplied n times by itself; n < 0: of its inverse. */
TERN_API tern_tensor *tern_matrix_power(tern_tensor *x, int64_t n);

typedef struct tern_scaled_dot_product_attention_options {
    tern_tensor
        *attn_mask; /* bool (true = look) or added to the scores; broadcast to (..., L, S) */
    double dropout_p;
    bool is_causal; /* not together with attn_mask */
    double scale;   /* default 1 / sqrt(E) */
    uint64_t reserved[4];
} tern_scaled_dot_product_attention_options;

/* softmax(query key^T scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev)
 * ->
 * (..., L, Ev). Dropout applies whenever dropout_p > 0, as in torch.nn.functional. */
TERN_API tern_tensor *tern_scaled_dot_product_attention(
    tern_tensor *query, tern_tensor *key, tern_tensor *value,
    const tern_scaled_dot_product_attention_options *options);

TERN_END_DECLS
#endif
