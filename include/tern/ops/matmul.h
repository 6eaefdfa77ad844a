/* ops/matmul.h -- matrix products.
 *
 * tern_x is torch.x. Operands are of one type, and not bool, where nothing else is said; sums are
 * in float32 for f16 and bf16. Results belong to the innermost scope; NULL after an error:
 * TERN_ERR_SHAPE and TERN_ERR_DTYPE in PyTorch's words. Attention is in ops/attention.h. */
#ifndef TERN_OPS_MATMUL_H
#define TERN_OPS_MATMUL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- two operands ---------------------------------------------------------------------------- */

/* (n) (n) -> (); (n, k) (k, m) -> (n, m); a vector is a row on the left and a column on the right;
 * dims in front are batches and broadcast. */
TERN_API tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b);
/* (n, k) (k, m) -> (n, m), nothing else. */
TERN_API tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b);
/* (b, n, k) (b, k, m) -> (b, n, m), nothing else. */
TERN_API tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b);
/* (n, m) (m) -> (n). */
TERN_API tern_tensor *tern_mv(tern_tensor *a, tern_tensor *v);
/* (n) (n) -> (). */
TERN_API tern_tensor *tern_dot(tern_tensor *a, tern_tensor *b);
/* tern_dot: tern has no complex numbers. */
TERN_API tern_tensor *tern_vdot(tern_tensor *a, tern_tensor *b);
/* Over the last dims of both. */
TERN_API tern_tensor *tern_inner(tern_tensor *a, tern_tensor *b);
/* (n) (m) -> (n, m), any types. */
TERN_API tern_tensor *tern_outer(tern_tensor *a, tern_tensor *b);
/* tern_outer. */
TERN_API tern_tensor *tern_ger(tern_tensor *a, tern_tensor *b);
/* The sum of products over dims dims_a[i] of a and dims_b[i] of b. The other dims stay, a's in
 * front. */
TERN_API tern_tensor *tern_tensordot(tern_tensor *a, tern_tensor *b, tern_shape dims_a,
                                     tern_shape dims_b);
/* Over a's last n dims and b's first ones. */
TERN_API tern_tensor *tern_tensordot_n(tern_tensor *a, tern_tensor *b, int n);

/* ---- layers: weight (out, in) as modules have it, bias (out) or NULL ------------------------- */

/* x (*, in) times weight transposed, plus bias -> (*, out) (torch.nn.functional.linear). A bias of
 * more dims is expanded to the result's shape. Rows of a large result of halves on CUDA begin at
 * multiples of 8 elements: where `out` is none, tern_is_contiguous is false, and tern_contiguous
 * makes a dense copy. */
TERN_API tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias);
/* x1 (*, n), x2 (*, m), weight (out, n, m) -> (*, out): the sum over i and j of x1_i weight_oij
 * x2_j, plus bias (torch.nn.functional.bilinear). */
TERN_API tern_tensor *tern_bilinear(tern_tensor *x1, tern_tensor *x2, tern_tensor *weight,
                                    tern_tensor *bias);

/* ---- weights of 8 or 4 bits ------------------------------------------------------------------
 * A weight (out, in) is (code - zero) scale: codes (out, in) of int8 or uint8, or of 4 bits (out,
 * in / 2) of uint8, scales and zeros (out, groups) of float32, one for each in / groups neighbours
 * of a row. Of 4 bits byte j of a group of n elements holds element j in its low half and element j
 * + n / 2 in the high one. zeros NULL: the middle, 0 of int8, 128 of uint8, 8 of 4 bits. Without
 * gradients. TERN_ERR_DTYPE and TERN_ERR_SHAPE for what does not go together. */

/* x (*, in) times the weight transposed, (*, out) of x's type: codes are read as they lie, which is
 * what a few rows wait for; sums are in float32 (torch's _weight_int8pack_mm and
 * _weight_int4pack_mm). */
TERN_API tern_tensor *tern_linear_packed(tern_tensor *x, tern_tensor *codes, tern_tensor *scales,
                                         tern_tensor *zeros);
/* The weight itself, (out, in_features) of float32. */
TERN_API tern_tensor *tern_unpack_weight(tern_tensor *codes, tern_tensor *scales,
                                         tern_tensor *zeros, int64_t in_features);

/* ---- beta input + alpha product --------------------------------------------------------------
 * input is broadcast to the product's shape; beta 0: it is not looked at. PyTorch's defaults are 1
 * and 1. */

/* Of mm. */
TERN_API tern_tensor *tern_addmm(tern_tensor *input, tern_tensor *mat1, tern_tensor *mat2,
                                 double beta, double alpha);
/* Of mv. */
TERN_API tern_tensor *tern_addmv(tern_tensor *input, tern_tensor *mat, tern_tensor *vec,
                                 double beta, double alpha);
/* Of outer; the three promote. */
TERN_API tern_tensor *tern_addr(tern_tensor *input, tern_tensor *vec1, tern_tensor *vec2,
                                double beta, double alpha);
/* Of bmm. */
TERN_API tern_tensor *tern_baddbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                   double beta, double alpha);
/* Of the sum of bmm's matrices. */
TERN_API tern_tensor *tern_addbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                  double beta, double alpha);

/* ---- many operands --------------------------------------------------------------------------- */

/* Einstein's convention, all of torch.einsum's: "bij,bjk->bik", "...ij->...ji", "ii->i", "ij,j". n
 * operands, 32 at most. Types that differ promote where no products are summed, and are refused
 * elsewhere. */
TERN_API tern_tensor *tern_einsum(const char *equation, tern_tensor *const *operands, int n);
/* The product of n matrices, 64 at most, in the cheapest order. */
TERN_API tern_tensor *tern_chain_matmul(tern_tensor *const *matrices, int n);
/* The same; the first and the last one may be vectors (torch.linalg.multi_dot). */
TERN_API tern_tensor *tern_linalg_multi_dot(tern_tensor *const *tensors, int n);
/* (..., m, m) multiplied n times by itself; n < 0: of its inverse. */
TERN_API tern_tensor *tern_matrix_power(tern_tensor *x, int64_t n);

TERN_END_DECLS
#endif
