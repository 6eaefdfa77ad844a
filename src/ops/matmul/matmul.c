/* matmul.c -- matmul, mm and bmm, each as a tern_product. */
#include "ops/matmul/matrix_product.h"
#include <tern/ops.h>

/* A vector a is a row and a vector b a column, and the result drops their dims of size 1. The dims
 * before the last two are batch dims, which broadcast. */
tern_tensor *tern_matmul(tern_tensor *a, tern_tensor *b)
{
    tern_product p = {.alpha = 1};
    if (a && b && (a->ndim == 0 || b->ndim == 0))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_matmul: both arguments to matmul need to be at least 1D, but "
                              "they are %dD and %dD",
                              a->ndim, b->ndim);
    p.insert[0] = a && a->ndim == 1 ? TERN_AS_ROW : 0;
    p.insert[1] = b && b->ndim == 1 ? TERN_AS_COLUMN : 0;
    p.drop = p.insert[0] | p.insert[1];
    return tern_product_of(&p, a, b);
}

/* Returns (n, k) times (k, m), without broadcasting. */
tern_tensor *tern_mm(tern_tensor *a, tern_tensor *b)
{
    TERN_NAMED_IN_ERRORS;
    if (a && b && (a->ndim != 2 || b->ndim != 2))
        return tern_fail_null(TERN_ERR_SHAPE, "tern_mm: %s must be a matrix (shape %s)",
                              a->ndim != 2 ? "self" : "mat2",
                              TERN_TENSOR_TEXT(a->ndim != 2 ? a : b));
    return tern_product_of(&(tern_product){.alpha = 1}, a, b);
}

/* Returns (b, n, k) times (b, k, m), without broadcasting. */
tern_tensor *tern_bmm(tern_tensor *a, tern_tensor *b)
{
    TERN_NAMED_IN_ERRORS;
    if (a && b && (a->ndim != 3 || b->ndim != 3))
        return tern_fail_null(TERN_ERR_SHAPE, "tern_bmm: %s must be a 3D tensor (shape %s)",
                              a->ndim != 3 ? "batch1" : "batch2",
                              TERN_TENSOR_TEXT(a->ndim != 3 ? a : b));
    if (a && b && (a->shape[0] != b->shape[0] || a->shape[2] != b->shape[1]))
        return tern_fail_null(
            TERN_ERR_SHAPE,
            "tern_bmm: Expected size for first two dimensions of batch2 tensor to "
            "be: [%lld, %lld] but got: [%lld, %lld].",
            (long long)a->shape[0], (long long)a->shape[2], (long long)b->shape[0],
            (long long)b->shape[1]);
    return tern_product_of(&(tern_product){.alpha = 1}, a, b);
}
