/* matrix_product.h -- one matrix product of two tensors, used by matmul, linear and attention. */
#ifndef TERN_SRC_OPS_MATRIX_PRODUCT_H
#define TERN_SRC_OPS_MATRIX_PRODUCT_H
#include "device/device.h"
#include "tensor/op.h"

/* Masks for the dim of size 1 that makes a vector a row or a column, and that the result drops. */
enum { TERN_AS_ROW = 1, TERN_AS_COLUMN = 2 };

/* Returns the number of inserted dims in a mask. */
static inline int tern_dims_in(uint8_t insert)
{
    return (insert & TERN_AS_ROW ? 1 : 0) + (insert & TERN_AS_COLUMN ? 1 : 0);
}

/* result = alpha op(x) op(y) + beta result, where x and y are batches of matrices. op first inserts
 * the dims of `insert`, then transposes if `transpose` is set. */
typedef struct tern_product {
    double alpha, beta; /* beta: factor of result's previous value; 0 for a new result */
    uint8_t insert[2];
    bool transpose[2];
    uint8_t drop; /* inserted dims that the result drops */
    bool sum;     /* sum over the batch: the result is one matrix */
} tern_product;

#define TERN_PRODUCT_NAMES                                                                         \
    TERN_NAMES(TERN_FIELD(tern_product, "alpha", alpha), TERN_FIELD(tern_product, "beta", beta),   \
               TERN_FIELDS(tern_product, "insert", insert),                                        \
               TERN_FIELDS(tern_product, "transpose", transpose),                                  \
               TERN_FIELD(tern_product, "drop", drop), TERN_FIELD(tern_product, "sum", sum))

/* Infers the result's shape and dtype. Returns TERN_ERR_SHAPE or TERN_ERR_DTYPE with PyTorch's
 * messages. */
tern_status tern_product_infer(const tern_product *p, tern_tensor *x, tern_tensor *y,
                               tern_result *result, const char *name);
/* Computes result = alpha op(x) op(y) + beta result + bias. bias has one element for each column,
 * or is NULL. beta is for floating point types only. */
tern_status tern_product_run(const tern_product *p, tern_tensor *x, tern_tensor *y,
                             tern_tensor *bias, tern_tensor *result);
/* Launches gemm for integers. */
tern_status tern_integer_gemm(tern_place *place, const tern_gemm *g);
/* Returns the product as a differentiable operation. */
tern_tensor *tern_product_of(const tern_product *p, tern_tensor *x, tern_tensor *y);
/* Returns the gradient of x, where the result is the product p of x and y. */
tern_tensor *tern_product_dx(const tern_product *p, tern_tensor *dout, tern_tensor *y);
/* Returns the gradient of y. It is written to grad_out unless that is NULL. */
tern_tensor *tern_product_dy(const tern_product *p, tern_tensor *dout, tern_tensor *x, int y_ndim,
                             tern_tensor *grad_out);
/* Computes the gradients of a linear layer's weight and bias from dy and the layer's input x, both
 * dense. If `wide`, gradients of half precision may be float32. grad_out: memory to write each
 * gradient to, or NULL. */
tern_status tern_linear_gradients(tern_tensor *dy, tern_tensor *x, bool wide, tern_tensor *dw_db[2],
                                  tern_tensor *const grad_out[2]);

#endif
