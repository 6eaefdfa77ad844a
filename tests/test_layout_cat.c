/* test_layout_cat.c -- cat, stack, tril, triu: values, types, gradients, what they refuse. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

#define SHAPE TERN_SHAPE
#define REFUSED(call, status, words)                                                               \
    do {                                                                                           \
        assert_null(call);                                                                         \
        assert_error(status, words);                                                               \
    } while (0)
#define LIST(...) ((tern_tensor *[]){__VA_ARGS__})

static tern_tensor *counted(const char *device, tern_dtype dtype, tern_shape shape)
{
    int64_t n = 1;
    for (int d = 0; d < shape.ndim; d++)
        n *= shape.dims[d];
    return tern_view(tern_arange(0, (double)n, 1, dtype, device), shape);
}

static void tensors_lie_one_after_the_other(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = counted(device, TERN_F32, SHAPE(2, 2));
        tern_tensor *y = tern_t(counted(device, TERN_F32, SHAPE(2, 2)));
        tern_tensor *z = tern_cat(LIST(x, y, x), 3, 0);
        assert_shape(z, 6, 2);
        assert_values(z, 0, 1, 2, 3, 0, 2, 1, 3, 0, 1, 2, 3);
        z = tern_cat(LIST(x, tern_narrow(y, 1, 0, 0), y), 3, -1);
        assert_shape(z, 2, 4);
        assert_values(z, 0, 1, 0, 2, 2, 3, 1, 3);
        z = tern_stack(LIST(x, y), 2, 0);
        assert_shape(z, 2, 2, 2);
        assert_values(z, 0, 1, 2, 3, 0, 2, 1, 3);
        z = tern_stack(LIST(x, y), 2, -1);
        assert_shape(z, 2, 2, 2);
        assert_values(z, 0, 0, 1, 2, 2, 1, 3, 3);
        tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(5.0), TERN_F32, device);
        assert_values(tern_stack(LIST(scalar, scalar), 2, 0), 5, 5);
    }
}

static void types_promote(void **state)
{
    (void)state;
    static const struct {
        tern_dtype a, b, wanted;
    } types[] = {{TERN_I32, TERN_BOOL, TERN_I32},
                 {TERN_I64, TERN_F16, TERN_F16},
                 {TERN_F16, TERN_BF16, TERN_F32},
                 {TERN_U8, TERN_I32, TERN_I32}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int swapped = 0; swapped < 2; swapped++) {
            tern_tensor *a = tern_ones(SHAPE(1), swapped ? types[i].b : types[i].a, device);
            tern_tensor *b = tern_ones(SHAPE(2), swapped ? types[i].a : types[i].b, device);
            tern_tensor *y = tern_cat(LIST(a, b), 2, 0);
            assert_int_equal(tern_dtype_of(y), types[i].wanted);
            assert_values(y, 1, 1, 1);
            /* an empty one counts, too */
            y = tern_cat(LIST(tern_zeros(SHAPE(0), types[i].a, device), b), 2, 0);
            assert_int_equal(tern_dtype_of(y), swapped ? types[i].a : types[i].wanted);
        }
}

static void empty_vectors_stand_beside_any_shape(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *none = tern_requires_grad_(tern_zeros(SHAPE(0), TERN_F32, device), true);
        tern_tensor *x = counted(device, TERN_F32, SHAPE(2, 3));
        tern_tensor *y = tern_cat(LIST(none, x, none), 3, 1);
        assert_same(y, x);
        assert_ok(tern_backward(tern_sum(y)));
        assert_shape(tern_grad(none), 0);
        assert_shape(tern_cat(LIST(none, none), 2, 5), 0);
        REFUSED(tern_cat(LIST(x, tern_zeros(SHAPE(1, 0), TERN_F32, device)), 2, 1), TERN_ERR_SHAPE,
                "Expected size 2 but got size 1 for tensor number 1 in the list.");
    }
}

static void lists_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    tern_tensor *x = counted("cpu", TERN_F32, SHAPE(2, 3)), *v = counted("cpu", TERN_F32, SHAPE(3));
    tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(1.0), TERN_F32, "cpu");
    REFUSED(tern_cat(NULL, 1, 0), TERN_ERR_ARGUMENT, "expected a non-empty list of Tensors");
    REFUSED(tern_cat(LIST(x), 0, 0), TERN_ERR_ARGUMENT, "expected a non-empty list of Tensors");
    REFUSED(tern_cat(LIST(x, NULL), 2, 0), TERN_ERR_ARGUMENT, "tern_cat: a tensor of the list");
    REFUSED(tern_cat(LIST(scalar, x), 2, 0), TERN_ERR_SHAPE,
            "zero-dimensional tensor (at position 0) cannot be concatenated");
    REFUSED(tern_cat(LIST(x, scalar), 2, 0), TERN_ERR_SHAPE,
            "zero-dimensional tensor (at position 1) cannot be concatenated");
    REFUSED(tern_cat(LIST(x, v), 2, 0), TERN_ERR_SHAPE,
            "Tensors must have same number of dimensions: got 2 and 1");
    REFUSED(tern_cat(LIST(x, tern_t(x)), 2, 0), TERN_ERR_SHAPE,
            "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2 for "
            "tensor number 1 in the list.");
    REFUSED(tern_cat(LIST(x, x), 2, 2), TERN_ERR_ARGUMENT,
            "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    REFUSED(tern_stack(LIST(x), 0, 0), TERN_ERR_ARGUMENT, "non-empty");
    REFUSED(
        tern_stack(LIST(tern_narrow(v, 0, 0, 2), v), 2, 0), TERN_ERR_SHAPE,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1");
    REFUSED(tern_stack(LIST(x, x), 2, 3), TERN_ERR_ARGUMENT,
            "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
}

static void a_hundred_tensors_can_be_joined(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x[100];
        for (int i = 0; i < 100; i++) {
            x[i] = tern_tensor_scalar(TERN_SCALAR((double)i), TERN_F32, device);
            tern_requires_grad_(x[i], true);
        }
        tern_tensor *y = tern_stack(x, 100, 0);
        assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
        assert_values(tern_grad(x[99]), 198);
    }
}

/* ---- triangles --------------------------------------------------------------------------- */

static void triangles_of_batches_of_every_diagonal(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_I64, TERN_BOOL};
    enum { B = 2, N = 3, M = 4 };
    FOR_EACH_DEVICE(device)
    for (size_t t = 0; t < sizeof dtypes / sizeof *dtypes; t++)
        for (int64_t k = -N - 1; k <= M + 1; k++)
            TERN_SCOPE {
                tern_tensor *x = tern_to_dtype(
                    tern_permute(counted(device, TERN_F32, SHAPE(M, B, N)), TERN_DIMS(1, 2, 0)),
                    dtypes[t]);
                double *v = test_read(x);
                double low[B * N * M], high[B * N * M];
                for (int i = 0; i < B * N * M; i++) {
                    int diagonal = i % M - i / M % N;
                    low[i] = diagonal <= k ? v[i] : 0;
                    high[i] = diagonal >= k ? v[i] : 0;
                }
                free(v);
                assert_same(tern_tril(x, k), test_tensor(device, dtypes[t], SHAPE(B, N, M), low));
                assert_same(tern_triu(x, k), test_tensor(device, dtypes[t], SHAPE(B, N, M), high));
            }
}

static void triangles_at_the_ends(void **state)
{
    (void)state;
    tern_tensor *x = tern_ones(SHAPE(2, 2), TERN_F32, "cpu");
    assert_values(tern_tril(x, INT64_MIN), 0, 0, 0, 0);
    assert_values(tern_triu(x, INT64_MIN), 1, 1, 1, 1);
    assert_values(tern_tril(x, INT64_MAX), 1, 1, 1, 1);
    assert_values(tern_triu(x, INT64_MAX), 0, 0, 0, 0);
    x = tern_full(SHAPE(2, 2), TERN_SCALAR((double)NAN), TERN_F32, "cpu");
    assert_values(tern_tril(x, -2), 0, 0, 0, 0);
    assert_shape(tern_triu(tern_ones(SHAPE(2, 0, 3), TERN_F32, "cpu"), 0), 2, 0, 3);
    REFUSED(tern_tril(tern_ones(SHAPE(3), TERN_F32, "cpu"), 0), TERN_ERR_SHAPE,
            "tern_tril: expected a matrix or a batch of matrices, but got shape [3]");
    REFUSED(tern_triu(NULL, 0), TERN_ERR_ARGUMENT, "tern_triu");
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *all(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *y = tern_cat(LIST(in[0], tern_mul(in[1], in[1]), in[0]), 3, 1);
    tern_tensor *z = tern_stack(LIST(in[0], in[0], tern_mul(in[0], in[0])), 3, 1);
    z = tern_add(tern_tril(z, -1), tern_triu(tern_mul(z, z), 1));
    return tern_add(tern_sum(tern_mul(y, y)), tern_sum(tern_mul(z, z)));
}

static void joins_have_first_and_second_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const bool f64 = test_has(device, TERN_F64);
        tern_dtype dtype = f64 ? TERN_F64 : TERN_F32;
        tern_tensor *in[2] = {test_uniform(device, dtype, SHAPE(2, 3), 0.5, 1.5, 1),
                              test_uniform(device, dtype, SHAPE(2, 1), 0.5, 1.5, 2)};
        tern_requires_grad_(in[0], true);
        tern_requires_grad_(in[1], true);
        gradcheck(all, in, 2, .second = true, .abs = f64 ? 1e-4 : 2e-3);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(tensors_lie_one_after_the_other),
    TEST(types_promote),
    TEST(empty_vectors_stand_beside_any_shape),
    TEST(lists_that_do_not_fit_are_refused),
    TEST(a_hundred_tensors_can_be_joined),
    TEST(triangles_of_batches_of_every_diagonal),
    TEST(triangles_at_the_ends),
    TEST(joins_have_first_and_second_gradients),
};

TEST_MAIN(tests)
