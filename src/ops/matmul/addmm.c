/* addmm.c -- products of vectors and matrices (dot, outer, inner, mv, bilinear), and products with
 * a scaled tensor added (addmm and its relatives). */
#include "ops/matmul/matrix_product.h"
#include "ops/copy/copy.h"
#include <tern/autograd.h>
#include <tern/ops.h>

/* ---- vectors ----------------------------------------------------------------------------- */

/* Returns sum_i a_i b_i. For floating point types this is the matrix product of a row and a column.
 * For integers the sum is computed in int64 and converted to their dtype at the end. */
tern_tensor *tern_dot(tern_tensor *a, tern_tensor *b)
{
    TERN_COMPOSED("dot", WIDEST, &a, &b);
    if (!a || !b || (a->ndim == 1 && b->ndim == 1 && tern_dtype_is_floating_point(a->dtype)))
        return tern_matmul(a, b);
    if (a->ndim != 1 || b->ndim != 1)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_dot: 1D tensors expected, but got %dD and %dD tensors", a->ndim,
                              b->ndim);
    if (a->dtype != b->dtype)
        return tern_fail_null(TERN_ERR_DTYPE,
                              "tern_dot: dot : expected both vectors to have same dtype, but found "
                              "%s and %s",
                              tern_dtype_name(a->dtype), tern_dtype_name(b->dtype));
    if (a->numel != b->numel)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_dot: inconsistent tensor size, expected tensor [%lld] and src "
                              "[%lld] to have the same number of elements",
                              (long long)a->numel, (long long)b->numel);
    return tern_to_dtype(tern_sum(tern_mul(a, b)), a->dtype);
}

tern_tensor *tern_vdot(tern_tensor *a, tern_tensor *b)
{
    TERN_NAMED_IN_ERRORS;
    return tern_dot(a, b);
}

/* Returns y[i][j] = a[i] b[j], by broadcasting a column against a row. */
static tern_tensor *outer(tern_tensor *a, tern_tensor *b, const char *function)
{
    const tern_tensor *wrong = a && a->ndim != 1 ? a : b && b->ndim != 1 ? b : NULL;
    if (wrong)
        return tern_fail_null(TERN_ERR_SHAPE, "%s: outer: Expected 1-D argument %s, but got %d-D",
                              function, wrong == a ? "self" : "vec2", wrong->ndim);
    return tern_mul(tern_unsqueeze(a, 1), b);
}

tern_tensor *tern_outer(tern_tensor *a, tern_tensor *b)
{
    TERN_NAMED_IN_ERRORS;
    return outer(a, b, __func__);
}

tern_tensor *tern_ger(tern_tensor *a, tern_tensor *b)
{
    TERN_NAMED_IN_ERRORS;
    return outer(a, b, __func__);
}

/* Returns y[..., ...] = sum_k a[..., k] b[..., k], summed over the last dims of a and b. If a or b
 * has no dims, the result is the elementwise product. */
tern_tensor *tern_inner(tern_tensor *a, tern_tensor *b)
{
    TERN_COMPOSED("inner", WIDEST, &a, &b);
    if (!a || !b || a->ndim == 0 || b->ndim == 0)
        return tern_mul(a, b);
    int64_t n = a->shape[a->ndim - 1], m = b->shape[b->ndim - 1];
    if (n != m)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_inner: inner() the last dimension must match on both input "
                              "tensors but got shapes %s and %s",
                              TERN_TENSOR_TEXT(a), TERN_TENSOR_TEXT(b));
    return tern_tensordot(a, b, TERN_DIMS(-1), TERN_DIMS(-1));
}

/* Returns A v; matmul takes the vector v as a column. */
tern_tensor *tern_mv(tern_tensor *a, tern_tensor *v)
{
    TERN_NAMED_IN_ERRORS;
    if (a && v && (a->ndim != 2 || v->ndim != 1))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "tern_mv: vector + matrix @ vector expected, got %d, %d, %d", 1,
                              a->ndim, v->ndim);
    return tern_matmul(a, v);
}

/* ---- beta input + alpha product ---------------------------------------------------------- */

/* Returns factor x. For integers the factor is cast to an integer, for bools to a bool. */
static tern_tensor *scaled(tern_tensor *x, double factor)
{
    if (factor == 1 || !x)
        return x;
    if (x->dtype == TERN_BOOL)
        return tern_mul_scalar(x, tern_scalar_bool(factor != 0));
    bool real = tern_dtype_is_floating_point(x->dtype);
    return tern_mul_scalar(x, real ? tern_scalar_real(factor) : tern_scalar_int((int64_t)factor));
}

/* Returns beta input + product. For beta = 0, input is not read, so that a NaN in input does not
 * reach the result. */
static tern_tensor *add_scaled(tern_tensor *input, tern_tensor *product, double beta,
                               const char *function)
{
    if (!input || !product) {
        if (!input)
            tern_fail_argument_null(function, "input");
        return NULL;
    }
    if (input->dtype != product->dtype)
        return tern_fail_null(
            TERN_ERR_DTYPE, "%s: self and mat2 must have the same dtype, but got %s and %s",
            function, tern_dtype_name(input->dtype), tern_dtype_name(product->dtype));
    tern_tensor *wide = tern_expand(input, tern_shape_of(product));
    if (!wide || beta == 0)
        return wide ? product : NULL;
    return tern_add(scaled(wide, beta), product);
}

/* Checks the number of dims of a and of b: 3 for a batch, 2 for a matrix, 1 for a vector. Records
 * an error and returns false if one is wrong. */
static bool check_dims(int dims_a, const tern_tensor *a, const char *name_a, int dims_b,
                       const tern_tensor *b, const char *name_b, const char *function)
{
    const tern_tensor *wrong = a && a->ndim != dims_a ? a : b && b->ndim != dims_b ? b : NULL;
    if (!wrong)
        return true;
    int dims = wrong == a ? dims_a : dims_b;
    tern_fail(TERN_ERR_SHAPE, "%s: %s must be a %s, got %d-D tensor", function,
              wrong == a ? name_a : name_b,
              dims == 1   ? "vector"
              : dims == 2 ? "matrix"
                          : "3D tensor",
              wrong->ndim);
    return false;
}

/* ---- addmm, addmv, baddbmm, addbmm as one operation: gemm adds beta input before it rounds */

/* The operation y = beta input + alpha a b, whose inputs are input, a and b. input broadcasts to
 * the shape of the product and has the same dtype. */
static tern_status added_infer(tern_call *call)
{
    const tern_tensor *input = call->in[0];
    tern_result *r = &call->result[0];
    call->n_out = 1;
    TERN_TRY(tern_product_infer(call->attributes, call->in[1], call->in[2], r, call->op->name));
    if (input->dtype != r->dtype)
        return tern_fail(TERN_ERR_DTYPE,
                         "tern_%s: self and mat2 must have the same dtype, but got %s and %s",
                         call->op->name, tern_dtype_name(input->dtype), tern_dtype_name(r->dtype));
    int front = r->shape.ndim - input->ndim;
    for (int d = 0; d < input->ndim; d++)
        if (front < 0 || (input->shape[d] != 1 && input->shape[d] != r->shape.dims[d + front]))
            return tern_fail(TERN_ERR_SHAPE,
                             "tern_%s: The expanded size of the tensor must match the existing "
                             "size (%lld) at non-singleton dimension %d.  Target sizes: %s.  "
                             "Tensor sizes: %s",
                             call->op->name, (long long)input->shape[d], d,
                             TERN_SHAPE_TEXT(&r->shape), TERN_TENSOR_TEXT(input));
    return TERN_OK;
}

/* Computes product and sum as two operations: for integers, whose gemm has no beta, and if the
 * summed dim is empty. */
static tern_status added_by_parts(tern_call *call)
{
    const tern_product *p = call->attributes;
    tern_product own = *p;
    tern_status status = TERN_OK;
    own.beta = 0;
    TERN_NO_GRAD {
        TERN_SCOPE {
            tern_tensor *product = tern_product_of(&own, call->in[1], call->in[2]);
            product = add_scaled(call->in[0], product, p->beta, call->op->name);
            status = product ? tern_copy_elements(call->out[0], product) : tern_last_status();
        }
    }
    return status;
}

/* Returns whether gemm can add `input` as its bias, without a copy of input into the result: input
 * is a contiguous vector with one element for each column, and beta is 1. */
static bool is_bias(const tern_product *p, const tern_tensor *input, const tern_tensor *out)
{
    return p->beta == 1 && !p->drop && input->contiguous && input->ndim > 0 &&
           input->numel == out->shape[out->ndim - 1] &&
           input->numel == input->shape[input->ndim - 1];
}

/* Copies input, broadcast, to the result, and lets gemm accumulate into it: the result is rounded
 * once. */
static tern_status added_forward(tern_call *call)
{
    const tern_product *p = call->attributes;
    tern_tensor *a = call->in[1], *b = call->in[2];
    if (!tern_dtype_is_floating_point(a->dtype) || !a->numel || !b->numel)
        return added_by_parts(call);
    if (is_bias(p, call->in[0], call->out[0])) {
        tern_product own = *p;
        own.beta = 0;
        return tern_product_run(&own, a, b, call->in[0], call->out[0]);
    }
    if (p->beta != 0) /* for beta = 0 input is not read: it may hold NaN */
        TERN_TRY(tern_copy_elements(call->out[0], call->in[0]));
    return tern_product_run(p, a, b, NULL, call->out[0]);
}

/* dinput = beta dy (which the engine sums to the shape of input), da = alpha dy b^T, db = alpha a^T
 * dy. */
static tern_status added_backward(tern_gradient *g)
{
    const tern_product *p = g->attributes;
    if (g->needs[0] && !(g->din[0] = scaled(g->dout[0], p->beta)))
        return tern_last_status();
    if (g->needs[1] && !(g->din[1] = tern_product_dx(p, g->dout[0], g->in[2])))
        return tern_last_status();
    if (g->needs[2] &&
        !(g->din[2] = tern_product_dy(p, g->dout[0], g->in[1], g->in_shape[2].ndim, NULL)))
        return tern_last_status();
    return TERN_OK;
}

/* Saves each factor only if the gradient of the other factor is needed. */
static uint32_t added_saves(const tern_call *call)
{
    return (call->in[2]->requires_grad ? TERN_SAVE_IN(1) : 0) |
           (call->in[1]->requires_grad ? TERN_SAVE_IN(2) : 0);
}

#define ADDED_OP(NAME)                                                                             \
    static const tern_op NAME##_op = {.name = #NAME,                                               \
                                      .names = TERN_PRODUCT_NAMES,                                 \
                                      .cast = TERN_CAST_LOWER,                                     \
                                      .choose_saves = added_saves,                                 \
                                      .infer = added_infer,                                        \
                                      .forward = added_forward,                                    \
                                      .backward = added_backward}
ADDED_OP(addmm);
ADDED_OP(addmv);
ADDED_OP(baddbmm);
ADDED_OP(addbmm);

/* Returns beta input + alpha mat1 mat2. */
tern_tensor *tern_addmm(tern_tensor *input, tern_tensor *mat1, tern_tensor *mat2, double beta,
                        double alpha)
{
    if (!check_dims(2, mat1, "mat1", 2, mat2, "mat2", "tern_addmm"))
        return NULL;
    tern_product p = {.alpha = alpha, .beta = beta};
    return tern_apply(&addmm_op, (tern_tensor *[]){input, mat1, mat2}, 3, &p, sizeof p);
}

/* Returns beta input + alpha mat vec. vec is a column, whose dim of size 1 the result drops. */
tern_tensor *tern_addmv(tern_tensor *input, tern_tensor *mat, tern_tensor *vec, double beta,
                        double alpha)
{
    tern_product p = {
        .alpha = alpha, .beta = beta, .insert = {0, TERN_AS_COLUMN}, .drop = TERN_AS_COLUMN};
    if (!check_dims(2, mat, "mat", 1, vec, "vec", "tern_addmv"))
        return NULL;
    return tern_apply(&addmv_op, (tern_tensor *[]){input, mat, vec}, 3, &p, sizeof p);
}

/* Returns beta input + alpha vec1 vec2^T. It is composed of other operations: an outer product is
 * elementwise and gains nothing from gemm. */
tern_tensor *tern_addr(tern_tensor *input, tern_tensor *vec1, tern_tensor *vec2, double beta,
                       double alpha)
{
    TERN_COMPOSED("addr", LOWER, &input, &vec1, &vec2);
    if (!check_dims(1, vec1, "vec1", 1, vec2, "vec2", "tern_addr"))
        return NULL;
    tern_dtype dtype = tern_common_type((tern_tensor *[]){input, vec1, vec2}, 3);
    bool half = tern_dtype_is_half(dtype);
    tern_dtype wide = half ? TERN_F32 : dtype; /* the result of half precision is rounded once,
                                                * at the end */
    input = input ? tern_to_dtype(input, wide) : NULL;
    vec1 = vec1 ? tern_to_dtype(vec1, wide) : NULL;
    vec2 = vec2 ? tern_to_dtype(vec2, wide) : NULL;
    tern_tensor *product = scaled(tern_outer(vec1, vec2), alpha);
    product = add_scaled(input, product, beta, "tern_addr");
    return product && half ? tern_to_dtype(product, dtype) : product;
}

/* Checks that batch1 is (b, n, k) and batch2 is (b, k, m). */
static bool check_batches(const tern_tensor *a, const tern_tensor *b, const char *function)
{
    if (!check_dims(3, a, "batch1", 3, b, "batch2", function))
        return false;
    if (!a || !b || (a->shape[0] == b->shape[0] && a->shape[2] == b->shape[1]))
        return true;
    tern_fail(TERN_ERR_SHAPE,
              "%s: Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but "
              "got: [%lld, %lld].",
              function, (long long)a->shape[0], (long long)a->shape[2], (long long)b->shape[0],
              (long long)b->shape[1]);
    return false;
}

/* Returns beta input + alpha batch1[b] batch2[b] for each b. */
tern_tensor *tern_baddbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2, double beta,
                          double alpha)
{
    if (!check_batches(batch1, batch2, "tern_baddbmm"))
        return NULL;
    tern_product p = {.alpha = alpha, .beta = beta};
    return tern_apply(&baddbmm_op, (tern_tensor *[]){input, batch1, batch2}, 3, &p, sizeof p);
}

/* Returns beta input + alpha sum_b batch1[b] batch2[b]. The batch dim is part of the summed dim of
 * one product, (n, b k) times (b k, m). */
tern_tensor *tern_addbmm(tern_tensor *input, tern_tensor *batch1, tern_tensor *batch2, double beta,
                         double alpha)
{
    if (!check_batches(batch1, batch2, "tern_addbmm"))
        return NULL;
    tern_product p = {.alpha = alpha, .beta = beta};
    if (batch1 && batch2) {
        int64_t n = batch1->shape[1], k = batch1->shape[0] * batch1->shape[2];
        batch1 = tern_reshape(tern_permute(batch1, TERN_DIMS(1, 0, 2)), TERN_SHAPE(n, k));
        batch2 = tern_reshape(batch2, TERN_SHAPE(k, batch2->shape[2]));
    }
    return tern_apply(&addbmm_op, (tern_tensor *[]){input, batch1, batch2}, 3, &p, sizeof p);
}

/* Returns y[o] = x1^T W[o] x2 (+ bias[o]) for x1 (*, n), x2 (*, m), W (out, n, m). The first
 * product is x1 times W as one matrix (n, out m); the second is a batched product of each of its
 * rows, as (out, m), with the same row of x2. */
tern_tensor *tern_bilinear(tern_tensor *x1, tern_tensor *x2, tern_tensor *weight, tern_tensor *bias)
{
    TERN_COMPOSED("bilinear", WIDEST, &x1, &x2, &weight, &bias);
    static const char function[] = "tern_bilinear";
    if (!x1 || !x2 || !weight) {
        tern_fail_argument_null(function, !x1 ? "x1" : !x2 ? "x2" : "weight");
        return NULL;
    }
    bool same = x1->ndim == x2->ndim && x1->ndim > 0;
    for (int d = 0; d + 1 < x1->ndim && same; d++)
        same = x1->shape[d] == x2->shape[d];
    if (!same)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: bilinear(): input dimensions do not match: got %s and %s",
                              function, TERN_TENSOR_TEXT(x1), TERN_TENSOR_TEXT(x2));
    int last = x1->ndim - 1;
    int64_t n = x1->shape[last], m = x2->shape[last];
    if (weight->ndim != 3 || weight->shape[1] != n || weight->shape[2] != m)
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: bilinear(): input sizes do not match weight size: got %s and %s "
                              "but expected (out, %lld, %lld), not %s",
                              function, TERN_TENSOR_TEXT(x1), TERN_TENSOR_TEXT(x2), (long long)n,
                              (long long)m, TERN_TENSOR_TEXT(weight));
    int64_t out = weight->shape[0], rows = n ? x1->numel / n : 0;
    if (bias && (bias->ndim != 1 || bias->shape[0] != out))
        return tern_fail_null(TERN_ERR_SHAPE,
                              "%s: bilinear(): bias size does not match weight size: got %s but "
                              "expected %lld",
                              function, TERN_TENSOR_TEXT(bias), (long long)out);
    tern_shape shape = tern_shape_of(x1);
    shape.dims[last] = out;
    tern_tensor *w = tern_reshape(tern_permute(weight, TERN_DIMS(1, 0, 2)), TERN_SHAPE(n, out * m));
    tern_tensor *left = tern_mm(tern_reshape(x1, TERN_SHAPE(rows, n)), w);
    left = left ? tern_view(left, TERN_SHAPE(rows, out, m)) : NULL;
    tern_tensor *y = tern_bmm(left, tern_reshape(x2, TERN_SHAPE(rows, m, 1)));
    y = y ? tern_view(y, shape) : NULL;
    return y && bias ? tern_add(y, bias) : y;
}
