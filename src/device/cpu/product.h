/* product.h -- a batch of matrix products as the host's own kernels take it. */
#ifndef TERN_DEVICE_CPU_PRODUCT_H
#define TERN_DEVICE_CPU_PRODUCT_H
#include "types_host.h"
#include <stdbool.h>

/* Element (i, j) of matrix (b0, b1) is at b0 * batch[0] + b1 * batch[1] + i * row + j * col. */
typedef struct tern_host_matrix {
    const void *data;
    i64 row, col, batch[2];
} tern_host_matrix;

/* C = alpha A B + beta C + bias, as tern_gemm has it; C's columns are dense. */
typedef struct tern_host_product {
    i64 m, n, k, count[2];
    f64 alpha, beta;
    tern_host_matrix a, b, c;
    const void *bias; /* n numbers, or NULL */
} tern_host_product;

/* A product as product_bf16.c keeps it. All bytes count: cleared before it is filled. */
typedef struct tern_bf16_shape {
    i64 m, n, k, a_row, a_col, b_row, b_col, c_row;
    f32 alpha, beta;
    i64 has_bias;
} tern_bf16_shape;

/* Does this processor multiply bfloat16 faster than float32? */
bool tern_bf16_is_fast(void);
/* C = alpha A B + beta C + bias of dense or transposed matrices, on this thread alone; false if oneDNN
 * fails or does not have it. A bias goes with alpha 1. */
bool tern_bf16_product(const tern_bf16_shape *shape, const void *a, const void *b, void *c,
                       const void *bias);

/* Rows and columns of C that are one unit of work. */
enum { TERN_PRODUCT_ROWS = 96, TERN_PRODUCT_COLUMNS = 256 };

#endif
