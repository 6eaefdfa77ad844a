/* tensordot.c -- products over chosen dims (tensordot), of several matrices (multi_dot), and powers
 * of a matrix. */
#include "base/memory.h"
#include "tensor/fields.h"
#include "tensor/op.h"
#include <tern/ops.h>

/* ---- tensordot: one matrix product, whose summed dim is all summed dims -------------------- */

/* Returns x with the chosen dims in front or behind, as a matrix (summed, left) or (left, summed).
 * Appends the sizes of the other dims to *rest, the shape of the result. */
static tern_tensor *as_matrix(tern_tensor *x, const int *dims, int n, bool in_front,
                              tern_shape *rest)
{
    tern_shape order = {.ndim = x->ndim};
    uint32_t mask = 0;
    int64_t summed = 1, left = 1;
    int at = in_front ? n : 0;
    for (int i = 0; i < n; i++) {
        mask |= 1u << dims[i];
        summed *= x->shape[dims[i]];
        order.dims[in_front ? i : x->ndim - n + i] = dims[i];
    }
    for (int d = 0; d < x->ndim; d++)
        if (!(mask >> d & 1)) {
            order.dims[at++] = d;
            rest->dims[rest->ndim++] = x->shape[d];
            left *= x->shape[d];
        }
    return tern_reshape(tern_permute(x, order),
                        in_front ? TERN_SHAPE(summed, left) : TERN_SHAPE(left, summed));
}

/* Returns the sum over dim d, which is kept with size 1, in x's dtype. */
static tern_tensor *sum_over(tern_tensor *x, int d)
{
    return tern_to_dtype(tern_sum_dim(x, TERN_DIMS(d), true), x->dtype);
}

/* Returns y = sum over the pairs of dims (dims_a[i], dims_b[i]) of a b. y has the other dims of a,
 * then those of b. A summed dim of size 1 broadcasts: the sum of products is then the product with
 * a sum, so the other tensor is summed over its dim first. */
tern_tensor *tern_tensordot(tern_tensor *a, tern_tensor *b, tern_shape dims_a, tern_shape dims_b)
{
    TERN_COMPOSED("tensordot", WIDEST, &a, &b);
    static const char function[] = "tern_tensordot";
    int da[TERN_MAX_DIMS], db[TERN_MAX_DIMS];
    if (!a || !b) {
        tern_fail_argument_null(function, a ? "b" : "a");
        return NULL;
    }
    if (dims_a.ndim != dims_b.ndim || dims_a.ndim < 0 || dims_a.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: both dimension lists should have same length, but got %d and %d",
                              function, dims_a.ndim, dims_b.ndim);
    uint32_t seen_a = 0, seen_b = 0;
    for (int i = 0; i < dims_a.ndim; i++) {
        if (tern_wrap_dim(dims_a.dims[i], a->ndim, &da[i], function) != TERN_OK ||
            tern_wrap_dim(dims_b.dims[i], b->ndim, &db[i], function) != TERN_OK)
            return NULL;
        if (a->ndim == 0 || b->ndim == 0 || (seen_a >> da[i] & 1) || (seen_b >> db[i] & 1))
            return tern_fail_null(TERN_ERR_ARGUMENT,
                                  "%s: dim %d appears multiple times in the list of dims", function,
                                  da[i]);
        seen_a |= 1u << da[i];
        seen_b |= 1u << db[i];
        int64_t n = a->shape[da[i]], m = b->shape[db[i]];
        if (n != m && n != 1 && m != 1)
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "%s: contracted dimensions need to match, but first has size "
                                  "%lld in dim %d and second has size %lld in dim %d",
                                  function, (long long)n, da[i], (long long)m, db[i]);
        if (n == 1 && m != 1)
            b = sum_over(b, db[i]);
        else if (m == 1 && n != 1)
            a = sum_over(a, da[i]);
        if (!a || !b)
            return NULL;
    }
    if (a->ndim + b->ndim - 2 * dims_a.ndim > TERN_MAX_DIMS)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: a tensor has at most %d dims", function,
                              TERN_MAX_DIMS);
    tern_shape shape = {.ndim = 0};
    tern_tensor *left = as_matrix(a, da, dims_a.ndim, false, &shape);
    tern_tensor *right = left ? as_matrix(b, db, dims_b.ndim, true, &shape) : NULL;
    tern_tensor *y = right ? tern_mm(left, right) : NULL;
    return y ? tern_view(y, shape) : NULL;
}

/* Returns the product over the last n dims of a and the first n of b. */
tern_tensor *tern_tensordot_n(tern_tensor *a, tern_tensor *b, int n)
{
    TERN_NAMED_IN_ERRORS;
    if (!tern_given(a, __func__, "a") || !tern_given(b, __func__, "b"))
        return NULL;
    if (n < 0 || n > a->ndim || n > b->ndim)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_tensordot_n: tensordot expects dims >= 0 and no more than the "
                              "tensors have, but got dims=%d of %dD and %dD tensors",
                              n, a->ndim, b->ndim);
    tern_shape last = {.ndim = n}, first = {.ndim = n};
    for (int i = 0; i < n; i++) {
        last.dims[i] = a->ndim - n + i;
        first.dims[i] = i;
    }
    return tern_tensordot(a, b, last, first);
}

/* ---- several matrices, in the cheapest order --------------------------------------------- */

enum { MOST_MATRICES = 64 };

/* Returns the product of the matrices first..last. It is the product of two parts, divided after
 * split[first][last], which are computed the same way. */
static tern_tensor *multiply(tern_tensor *const *m, int (*split)[MOST_MATRICES], int first,
                             int last)
{
    if (first == last)
        return m[first];
    int cut = split[first][last];
    return tern_mm(multiply(m, split, first, cut), multiply(m, split, cut + 1, last));
}

/* The matrix chain problem by dynamic programming: the cost of a product i..j is the minimum over k
 * of cost[i][k] + cost[k+1][j] + rows_i columns_k columns_j. (Cormen, Leiserson, Rivest, Stein:
 * Introduction to Algorithms, matrix-chain multiplication.) */
static tern_tensor *in_best_order(tern_tensor *const *m, int n)
{
    int(*split)[MOST_MATRICES] = tern_alloc(sizeof *split * (size_t)n);
    double(*cost)[MOST_MATRICES] = tern_alloc(sizeof *cost * (size_t)n);
    for (int length = 2; length <= n && split && cost; length++)
        for (int i = 0; i + length <= n; i++) {
            int j = i + length - 1;
            for (int k = i; k < j; k++) {
                double now =
                    cost[i][k] + cost[k + 1][j] +
                    (double)m[i]->shape[0] * (double)m[k]->shape[1] * (double)m[j]->shape[1];
                if (k == i || now < cost[i][j]) {
                    cost[i][j] = now;
                    split[i][j] = k;
                }
            }
        }
    tern_tensor *y = split && cost ? multiply(m, split, 0, n - 1) : NULL;
    tern_free(split);
    tern_free(cost);
    return y;
}

tern_tensor *tern_chain_matmul(tern_tensor *const *matrices, int n)
{
    TERN_NAMED_IN_ERRORS;
    for (int i = 0; matrices && i < n; i++)
        if (matrices[i] && matrices[i]->ndim != 2)
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "tern_chain_matmul: Tensor dimension is %d, expected 2 instead.",
                                  matrices[i]->ndim);
    if (n == 1 && matrices)
        return matrices[0];
    return tern_linalg_multi_dot(matrices, n);
}

/* A vector at the beginning is a row, a vector at the end a column. The result drops their dims of
 * size 1. */
tern_tensor *tern_linalg_multi_dot(tern_tensor *const *tensors, int n)
{
    TERN_NAMED_IN_ERRORS;
    const char *const function = __func__;
    tern_tensor *m[MOST_MATRICES];
    if (!tensors || n < 2 || n > MOST_MATRICES)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "%s: multi_dot(): expected 2 to %d tensors but got %d", function,
                              MOST_MATRICES, n);
    for (int i = 0; i < n; i++) {
        if (!(m[i] = tensors[i])) {
            tern_fail_argument_null(function, "a tensor of the list");
            return NULL;
        }
        bool end = i == 0 || i == n - 1;
        if (m[i]->ndim != 2 && !(end && m[i]->ndim == 1))
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "%s: multi_dot(): tensor %d must be %s but got %dD", function, i,
                                  end ? "1D or 2D" : "2D", m[i]->ndim);
        if (m[i]->ndim == 1 && !(m[i] = tern_unsqueeze(m[i], i == 0 ? 0 : 1)))
            return NULL;
        if (i > 0 && m[i - 1]->shape[1] != m[i]->shape[0])
            return tern_fail_null(TERN_ERR_SHAPE,
                                  "%s: multi_dot(): tensors %d and %d with shapes %s and %s cannot "
                                  "be multiplied",
                                  function, i - 1, i, TERN_TENSOR_TEXT(m[i - 1]),
                                  TERN_TENSOR_TEXT(m[i]));
    }
    tern_tensor *y = in_best_order(m, n);
    if (y && tensors[n - 1]->ndim == 1)
        y = tern_squeeze_dim(y, 1);
    return y && tensors[0]->ndim == 1 ? tern_squeeze_dim(y, 0) : y;
}

/* Computes x^n by repeated squaring: x^n is the product of x^(2^i) over the bits i that are set in
 * n, about 2 log2 n products. A negative n uses powers of the inverse. */
tern_tensor *tern_matrix_power(tern_tensor *x, int64_t n)
{
    TERN_NAMED_IN_ERRORS;
    if (!x)
        tern_fail_argument_null(__func__, "x");
    if (x && (x->ndim < 2 || x->shape[x->ndim - 1] != x->shape[x->ndim - 2]))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_matrix_power: A must be batches of square matrices, but they "
                              "are %s",
                              TERN_TENSOR_TEXT(x));
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    tern_tensor *square = x && n < 0 ? tern_linalg_inv(x) : x, *y = NULL;
    if (x && n == 0) {
        int64_t size = x->shape[x->ndim - 1];
        tern_tensor *never = tern_full(TERN_SHAPE_SCALAR, tern_scalar_bool(false), TERN_BOOL,
                                       tern_device(x)); /* x still has a gradient: zeros */
        return tern_where(never, x, tern_eye(size, size, x->dtype, tern_device(x)));
    }
    for (; left > 0 && square; left >>= 1) {
        if (left & 1 && !(y = y ? tern_matmul(y, square) : square))
            return NULL;
        if (left > 1)
            square = tern_matmul(square, square);
    }
    if (!square)
        return NULL;
    return y == x ? tern_clone(y) : y;
}
