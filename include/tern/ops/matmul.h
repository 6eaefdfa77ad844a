/* ops/matmul.h -- matrix products.
 *
 * tern_x is torch.x. Unless stated otherwise the operands have one dtype, which is not bool.
 * Products of float16 and bfloat16 are summed in float32. Results belong to the innermost scope;
 * NULL after an error: TERN_ERR_SHAPE and TERN_ERR_DTYPE with PyTorch's messages. ops/attention.h
 * has attention. */
#ifndef TERN_OPS_MATMUL_H
#define TERN_OPS_MATMUL_H
#include <tern/tensor.h>

TERN_BEGIN_DECLS

/* ---- two operands ---------------------------------------------------------------------------- */

/* Returns the matrix product of two tensors of any number of dims: (n) (n) -> (); (n, k) (k, m) ->
 * (n, m). A vector on the left is a row, a vector on the right a column. Dims in front of the last
 * two are batch dims and are broadcast. */
TERN_API tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b);
/* Returns the product of two matrices, (n, k) (k, m) -> (n, m), without broadcasting. */
TERN_API tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b);
/* Returns the products of two batches of matrices, (b, n, k) (b, k, m) -> (b, n, m), without
 * broadcasting. */
TERN_API tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b);
/* Returns the product of a matrix and a vector, (n, m) (m) -> (n). */
TERN_API tern_tensor *tern_mv(tern_tensor *a, tern_tensor *v);
/* Returns the dot product of two vectors, (n) (n) -> (). */
TERN_API tern_tensor *tern_dot(tern_tensor *a, tern_tensor *b);
/* Another name of tern_dot: tern has no complex numbers. */
TERN_API tern_tensor *tern_vdot(tern_tensor *a, tern_tensor *b);
/* Returns the dot products over the last dims of both tensors. */
TERN_API tern_tensor *tern_inner(tern_tensor *a, tern_tensor *b);
/* Returns the outer product of two vectors, (n) (m) -> (n, m); dtypes are promoted. */
TERN_API tern_tensor *tern_outer(tern_tensor *a, tern_tensor *b);
/* Another name of tern_outer. */
TERN_API tern_tensor *tern_ger(tern_tensor *a, tern_tensor *b);
/* Returns the sum of products over dims dims_a[i] of a and dims_b[i] of b. The result has the other
 * dims, first those of a. */
TERN_API tern_tensor *tern_tensordot(tern_tensor *a, tern_tensor *b, tern_shape dims_a,
                                     tern_shape dims_b);
/* Returns the sum of products over the last n dims of a and the first n dims of b. */
TERN_API tern_tensor *tern_tensordot_n(tern_tensor *a, tern_tensor *b, int n);

/* ---- layers; weight is (out, in) as in the modules, bias is (out) or NULL -------------------- */

/* Returns x (*, in) times the transposed weight, plus bias -> (*, out)
 * (torch.nn.functional.linear). A bias with more dims is expanded to the result's shape. On CUDA
 * the rows of a large float16 or bfloat16 result begin at multiples of 8 elements; if `out` is not
 * a multiple of 8, tern_is_contiguous is false and tern_contiguous makes a dense copy. */
TERN_API tern_tensor *tern_linear(tern_tensor *x, tern_tensor *weight, tern_tensor *bias);
/* Returns the sum over i and j of x1_i weight_oij x2_j, plus bias: x1 (*, n), x2 (*, m), weight
 * (out, n, m) -> (*, out) (torch.nn.functional.bilinear). */
TERN_API tern_tensor *tern_bilinear(tern_tensor *x1, tern_tensor *x2, tern_tensor *weight,
                                    tern_tensor *bias);

/* ---- quantized weights of 8 or 4 bits -----------------------------------------------------------
 * A weight (out, in) is (code - zero) scale. codes are (out, in) of int8 or uint8, or (out, in / 2)
 * of uint8 with two codes of 4 bits in a byte. scales and zeros are (out, groups) of float32, one
 * for each group of in / groups neighbouring elements of a row. With 4 bits byte j of a group of n
 * elements holds element j in its low half and element j + n / 2 in its high half. zeros NULL means
 * 0 for int8, 128 for uint8 and 8 for 4 bits. There are no gradients. Errors: TERN_ERR_DTYPE and
 * TERN_ERR_SHAPE for tensors that do not match. */

/* Returns x (*, in) times the transposed weight, (*, out) in x's dtype. The codes are read as they
 * are stored, because with few rows the time is that of reading the weight; sums are in float32
 * (torch's _weight_int8pack_mm and _weight_int4pack_mm). */
TERN_API tern_tensor *tern_linear_packed(tern_tensor *x, tern_tensor *codes, tern_tensor *scales,
                                         tern_tensor *zeros);
/* Returns the dequantized weight, (out, in_features) in float32. */
TERN_API tern_tensor *tern_unpack_weight(tern_tensor *codes, tern_tensor *scales,
                                         tern_tensor *zeros, int64_t in_features);

/* ---- beta input + alpha product -----------------------------------------------------------------
 * input is broadcast to the shape of the product; with beta 0 it is not read. PyTorch's defaults
 * are 1 for both. */

/* Returns beta input + alpha tern_mm(mat1, mat2). */
TERN_API tern_tensor *tern_addmm(tern_tensor *input, tern_tensor *mat1, tern_tensor *mat2,
                                 double beta, double alpha);
/* Returns beta input + alpha tern_mv(mat, vec). */
TERN_API tern_tensor *tern_addmv(tern_tensor *input, tern_tensor *mat, tern_tensor *vec,
                                 double beta, double alpha);
/* Returns beta input + alpha tern_outer(vec1, vec2); the dtypes of all three are promoted. */
TERN_API tern_tensor *tern_addr(tern_tensor *input, tern_tensor *vec1, tern_tensor *vec2,
                                double beta, double alpha);
/* Returns beta input + alpha tern_bmm(batch1, batch2). */
TERN_API tern_tensor *tern_baddbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                   double beta, double alpha);
/* Returns beta input + alpha times the sum of the matrices of tern_bmm(batch1, batch2). */
TERN_API tern_tensor *tern_addbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2,
                                  double beta, double alpha);

/* ---- many operands --------------------------------------------------------------------------- */

/* Returns the sum of products that equation describes in Einstein's notation, with all that
 * torch.einsum allows: "bij,bjk->bik", "...ij->...ji", "ii->i", "ij,j". There are n operands, at
 * most 32. Different dtypes are promoted if no products are summed, and are an error otherwise. */
TERN_API tern_tensor *tern_einsum(const char *equation, tern_tensor *const *operands, int n);
/* Returns the product of n matrices, at most 64, multiplied in the order that needs the fewest
 * operations. */
TERN_API tern_tensor *tern_chain_matmul(tern_tensor *const *matrices, int n);
/* Does the same; the first and the last operand may be vectors (torch.linalg.multi_dot). */
TERN_API tern_tensor *tern_linalg_multi_dot(tern_tensor *const *tensors, int n);
/* Returns the n-th power of x (..., m, m); for n < 0 that of its inverse. */
TERN_API tern_tensor *tern_matrix_power(tern_tensor *x, int64_t n);

TERN_END_DECLS
#endif
