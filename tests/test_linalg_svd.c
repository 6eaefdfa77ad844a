/* test_linalg_svd.c -- singular values: what they make up, gradients, norms by them, determinants of singular matrices. */
#include "support.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static tern_tensor *t(tern_tensor *x)
{
    return tern_transpose(x, -1, -2);
}

static void assert_near(tern_tensor *got, tern_tensor *want, double abs)
{
    test_close(got, want, (test_tolerance){.abs = abs}, "matrices", __FILE__, __LINE__);
}

/* x = U diag(S) V^T, with orthonormal columns of U and V, S falling and not negative. */
static void assert_decomposed(tern_tensor *x, bool full, double abs)
{
    tern_tensor *usv[3];
    assert_ok(tern_linalg_svd(x, full, usv));
    int64_t k = tern_size(usv[1], -1), m = tern_size(x, -2), n = tern_size(x, -1);
    assert_int_equal(k, m < n ? m : n);
    assert_int_equal(tern_size(usv[0], -1), full ? m : k);
    assert_int_equal(tern_size(usv[2], -2), full ? n : k);
    tern_tensor *u = tern_narrow(usv[0], -1, 0, k), *vt = tern_narrow(usv[2], -2, 0, k);
    assert_near(tern_matmul(tern_mul(u, tern_unsqueeze(usv[1], -2)), vt), x, abs);
    for (int i = 0; i < 3; i += 2) {
        tern_tensor *q = i == 0 ? t(usv[0]) : usv[2], *product = tern_matmul(q, t(q));
        tern_tensor *one =
            tern_eye(tern_size(q, -2), tern_size(q, -2), tern_dtype_of(x), tern_device(x));
        assert_near(product, tern_expand(one, tern_shape_of(product)), abs);
    }
    assert_true(tern_item(tern_all(tern_ge(usv[1], 0))) == 1);
    if (k > 1)
        assert_true(tern_item(tern_max(tern_diff(usv[1], 1, -1, NULL, NULL))) <= 0);
    assert_near(tern_linalg_svdvals(x), usv[1], abs);
}

static void matrices_are_the_products_of_their_factors(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 3}, {5, 2}, {2, 5}, {20, 17}, {1, 6}, {33, 40}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i += test_thorough(device) ? 1 : 3)
        for (int full = 0; full < 2; full++)
            TERN_SCOPE {
                tern_tensor *x = test_uniform(device, TERN_F32,
                                              TERN_SHAPE(2, sizes[i][0], sizes[i][1]), -2, 2, i);
                assert_decomposed(x, full, 2e-5);
                tern_tensor *low = tern_matmul(tern_narrow(x, 2, 0, 1), tern_narrow(x, 1, 0, 1));
                assert_decomposed(low, full, 2e-5); /* of rank 1 */
                assert_decomposed(tern_zeros_like(x), full, 1e-6);
                assert_decomposed(tern_mul(x, 1e-20), full, 1e-5);
            }
}

static void of_nothing_the_factors_are_identities(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *usv[3];
        assert_ok(tern_linalg_svd(tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device), true, usv));
        assert_values(usv[0], 1, 0, 0, 1);
        assert_shape(usv[1], 0);
        assert_shape(usv[2], 0, 0);
        assert_shape(tern_linalg_svdvals(tern_zeros(TERN_SHAPE(0, 2, 3), TERN_F32, device)), 0, 2);
    }
}

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        tern_tensor *usv[3] = {NULL};                                                              \
        (void)user;                                                                                \
        (void)usv;                                                                                 \
        return CALL;                                                                               \
    }
#define SVD(full) (tern_linalg_svd(in[0], full, usv) == TERN_OK)
CHECKED(values, tern_linalg_svdvals(in[0]))
CHECKED(rotations, SVD(false) ? tern_matmul(usv[0], usv[2]) : NULL)
CHECKED(left,
        SVD(false) ? tern_matmul(tern_mul(usv[0], tern_unsqueeze(usv[1], -2)), t(usv[0])) : NULL)
CHECKED(right, SVD(true)
                   ? tern_matmul(t(usv[2]),
                                 tern_mul(tern_linspace(1, 2, tern_size(usv[2], -2),
                                                        tern_dtype_of(in[0]), tern_device(in[0])),
                                          usv[2]))
                   : NULL)
CHECKED(nuclear, tern_nuclear_norm(in[0], TERN_DIMS(0, 1), true))
CHECKED(largest, tern_linalg_matrix_norm_scalar(in[0], 2, (tern_shape){0}, false))

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    static const struct {
        tern_tensor *(*call)(tern_tensor *const *in, void *user);
        int64_t m, n;
    } rows[] = {{values, 3, 3},    {values, 4, 2}, {rotations, 3, 3}, {rotations, 4, 2},
                {rotations, 2, 4}, {left, 4, 2},   {left, 2, 3},      {nuclear, 3, 2},
                {largest, 3, 3},   {right, 3, 3}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += test_thorough(device) ? 1 : 4)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(rows[i].m, rows[i].n), -1, 1,
                                          (uint64_t)i + 5);
            gradcheck(rows[i].call, (tern_tensor *[]){tern_requires_grad_(x, true)}, 1,
                      .second = true);
        }
}

static void norms_of_matrices(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 3, 0, -4, 0);
        const tern_shape last = {0};
        assert_values_close(tern_nuclear_norm(x, last, false), 1e-6, 5);
        assert_values(tern_linalg_matrix_norm(x, TERN_MATRIX_NORM_FRO, last, true), 5);
        assert_values(tern_linalg_matrix_norm_scalar(x, 1, last, false), 7);
        assert_values(tern_linalg_matrix_norm_scalar(x, -1, last, false), 0);
        assert_values(tern_linalg_matrix_norm_scalar(x, INFINITY, last, false), 4);
        assert_values(tern_linalg_matrix_norm_scalar(x, -INFINITY, last, false), 3);
        assert_null(tern_linalg_matrix_norm_scalar(x, 3, last, false));
        assert_error(TERN_ERR_ARGUMENT, "Order 3 not supported");
        assert_null(tern_nuclear_norm(x, TERN_DIMS(0), false));
        assert_error(TERN_ERR_ARGUMENT, "dim must be a 2-tuple");
        assert_null(tern_nuclear_norm(tern_to_dtype(x, TERN_F16), last, false));
        assert_error(TERN_ERR_DTYPE, "Low precision dtypes not supported");
    }
}

static void determinants_of_singular_matrices_have_gradients(void **state)
{
    (void)state;
    static const float rows[][2][4] = {{{2, 1, 4, 2}, {2, -4, -1, 2}},
                                       {{1, 2, 3, 4}, {4, -3, -2, 1}},
                                       {{0, 0, 0, 0}, {0, 0, 0, 0}}};
    FOR_EACH_DEVICE(device)
    if (test_pocl_gpu_form(device))
        skip(); /* det begins with lu_factor */
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_from_data(rows[i][0], TERN_SHAPE(2, 2), TERN_F32, device);
            tern_requires_grad_(x, true);
            assert_ok(tern_backward(tern_linalg_det(x)));
            const float *want = rows[i][1];
            assert_values_close(tern_grad(x), 1e-5, want[0], want[1], want[2], want[3]);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(matrices_are_the_products_of_their_factors),
    TEST(of_nothing_the_factors_are_identities),
    TEST(gradients_are_those_of_differences),
    TEST(norms_of_matrices),
    TEST(determinants_of_singular_matrices_have_gradients),
};
TEST_MAIN(tests)
