/* matrix_product.h -- one matrix product of two tensors, from which matmul, linear and attention
 * are made. */
#ifndef TERN_SRC_OPS_MATRIX_PRODUCT_H
#define TERN_SRC_OPS_MATRIX_PRODUCT_H
#include "device/device.h"
#include "tensor/op.h"

/* Dims of size 1 that a vector gets to be a row or a column, and that the result drops. */
enum { TERN_AS_ROW = 1, TERN_AS_COLUMN = 2 };

/* How many dims a mask of inserted dims has. */
static inline int tern_dims_in(uint8_t insert)
{
    return (insert & TERN_AS_ROW ? 1 : 0) + (insert & TERN_AS_COLUMN ? 1 : 0);
}

/* result = alpha op(x) op(y) + beta result: x and y as batches of matrices, first with the dims in
 * `insert`, then transposed where asked. */
typedef struct tern_product {
    double alpha, beta; /* beta: of what tern_product_run finds in result, 0 for a new one */
    uint8_t insert[2];
    bool transpose[2];
    uint8_t drop; /* dims that the result does not have */
    bool sum;     /* sum over the batch: the result is one matrix */
} tern_product;

#define TERN_PRODUCT_NAMES                                                                         \
    TERN_NAMES(TERN_FIELD(tern_product, "alpha", alpha), TERN_FIELD(tern_product, "beta", beta),   \
               TERN_FIELDS(tern_product, "insert", insert),                                        \
               TERN_FIELDS(tern_product, "transpose", transpose),                                  \
               TERN_FIELD(tern_product, "drop", drop), TERN_FIELD(tern_product, "sum", sum))

/* Shape of the result; TERN_ERR_SHAPE and TERN_ERR_DTYPE in PyTorch's words. */
tern_status tern_product_infer(const tern_product *p, tern_tensor *x, tern_tensor *y,
                               tern_result *result, const char *name);
/* result = alpha op(x) op(y) + bias, bias (columns) or NULL; floating point types alone have a
 * beta. */
tern_status tern_product_run(const tern_product *p, tern_tensor *x, tern_tensor *y,
                             tern_tensor *bias, tern_tensor *result);
/* tern_launch_gemm for integers. */
tern_status tern_integer_gemm(tern_place *place, const tern_gemm *g);
/* The operation on its own, differentiable. */
tern_tensor *tern_product_of(const tern_product *p, tern_tensor *x, tern_tensor *y);
/* Gradients of result = p(x, y). */
tern_tensor *tern_product_dx(const tern_product *p, tern_tensor *dout, tern_tensor *y);
/* grad_out: where it is to lie; NULL: anywhere. */
tern_tensor *tern_product_dy(const tern_product *p, tern_tensor *dout, tern_tensor *x, int y_ndim,
                             tern_tensor *grad_out);
/* Gradients of a linear layer's weight and bias, of dy and its input x, both dense; of halves they
 * may be `wide`, float32. grad_out: where they are to lie, as above. */
tern_status tern_linear_gradients(tern_tensor *dy, tern_tensor *x, bool wide, tern_tensor *dw_db[2],
                                  tern_tensor *const grad_out[2]);

#endif
