/* test_reduce_composed.c -- norms, logsumexp, quantiles, and reductions that are made of others. */
#include "support.h"
#include <math.h>

static void norms(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 3, -4, 0, 1, 2, -2);
        assert_values(tern_norm_dim(x, 2, TERN_DIMS(1), false), 5, 3);
        assert_values(tern_norm_dim(x, 1, TERN_DIMS(1), true), 7, 5);
        assert_shape(tern_norm_dim(x, 1, TERN_DIMS(1), true), 2, 1);
        assert_values(tern_norm_dim(x, 0, TERN_DIMS(0), false), 2, 2, 1);
        assert_values(tern_norm(x, INFINITY), 4);
        assert_values(tern_linalg_vector_norm(x, -INFINITY, TERN_DIMS(1), false), 0, 1);
        assert_values_close(tern_norm(x, 3), 1e-6, cbrt(27 + 64 + 1 + 8 + 8));
        tern_tensor *wide = tern_full(TERN_SHAPE(4), TERN_SCALAR(1000.0), TERN_F16, device);
        assert_values(tern_norm(wide, 2), 2000); /* its squares are beyond float16 */
        tern_tensor *none = tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device);
        assert_values(tern_norm(none, 2), 0);
        assert_null(tern_linalg_vector_norm(none, INFINITY, TERN_DIMS(1), false));
        assert_error(TERN_ERR_SHAPE, "cannot compute the inf norm on the dimension 1");
        assert_null(tern_norm(tern_zeros(TERN_SHAPE(2), TERN_I64, device), 2));
        assert_error(TERN_ERR_DTYPE, "Expected a floating point tensor as input. Got int64");
    }
}

/* PyTorch 1.13: 0 at 0 for p = 2 and 3, evenly among the largest. */
static void gradients_of_norms_in_corners(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const struct {
            double p, x[3], dx[3];
        } rows[] = {{2, {0, 0, 0}, {0, 0, 0}},
                    {3, {0, 0, 0}, {0, 0, 0}},
                    {1, {2, 0, -3}, {1, 0, -1}},
                    {INFINITY, {2, -2, 1}, {0.5, -0.5, 0}},
                    {0, {2, 0, 1}, {0, 0, 0}}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].x);
            tern_requires_grad_(x, true);
            assert_ok(tern_backward(tern_norm(x, rows[i].p)));
            tern_tensor *dx = tern_grad(x) ? tern_grad(x) : tern_zeros_like(x);
            assert_same(dx, test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].dx));
        }
    }
}

static void logs_of_sums(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x =
            TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1000, 1000, -INFINITY, -INFINITY);
        assert_values_close(tern_logsumexp(x, TERN_DIMS(1), false), 1e-6, 1000 + log(2), -INFINITY);
        tern_tensor *i = TENSOR(device, TERN_I64, TERN_SHAPE(2), 1, 2);
        assert_values_close(tern_logsumexp(i, TERN_DIMS(0), true), 1e-6, log(exp(1) + exp(2)));
        tern_tensor *none = tern_zeros(TERN_SHAPE(0), TERN_F32, device);
        assert_values(tern_logsumexp(none, TERN_DIMS(0), false), -INFINITY);
    }
}

static void counts_and_pairs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 3, NAN, 0, 1, 2, -2), *two[2];
        assert_values(tern_nansum(x), 4);
        assert_values(tern_nanmean_dim(x, TERN_DIMS(1), false), 1.5, (float)1 / 3);
        assert_values(tern_count_nonzero(x), 5);
        assert_values(tern_count_nonzero_dim(x, TERN_DIMS(1)), 2, 3);
        assert_ok(tern_aminmax_dim(x, 1, false, two));
        assert_values(two[0], NAN, -2);
        assert_values(two[1], NAN, 2);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 2, 3, 6);
        assert_ok(tern_var_mean(y, 0, two));
        assert_values(two[0], 3.5);
        assert_values(two[1], 3);
        assert_ok(tern_aminmax(y, two));
        assert_values(two[1], 6);
        assert_int_equal(tern_aminmax(tern_zeros(TERN_SHAPE(0), TERN_F32, device), two),
                         TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "cannot compute aminmax over an empty dimension");
        tern_tensor *bytes = TENSOR(device, TERN_U8, TERN_SHAPE(2), 1, 2);
        assert_int_equal(tern_dtype_of(tern_all(bytes)), TERN_U8);
    }
}

static void quantiles(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 4), 3, 1, 4, 1.5, 5, NAN, 2, 6);
        tern_tensor *q = TENSOR(device, TERN_F32, TERN_SHAPE(2), 0.25, 0.9);
        static const struct {
            tern_interpolation how;
            double all[4], valid[4];
        } rows[] = {
            {TERN_INTERPOLATION_LINEAR, {1.375, NAN, 3.7, NAN}, {1.375, 3.5, 3.7, 5.8}},
            {TERN_INTERPOLATION_LOWER, {1, NAN, 3, NAN}, {1, 2, 3, 5}},
            {TERN_INTERPOLATION_HIGHER, {1.5, NAN, 4, NAN}, {1.5, 5, 4, 6}},
            {TERN_INTERPOLATION_MIDPOINT, {1.25, NAN, 3.5, NAN}, {1.25, 3.5, 3.5, 5.5}},
            {TERN_INTERPOLATION_NEAREST, {1.5, NAN, 4, NAN}, {1.5, 2, 4, 6}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tern_quantile_options o = {.dim = TERN_SOME(1), .interpolation = rows[i].how};
            tern_shape shape = TERN_SHAPE(2, 2);
            assert_close(tern_quantile(x, q, &o), test_tensor(device, TERN_F32, shape, rows[i].all),
                         .rel = 1e-6);
            assert_close(tern_nanquantile(x, q, &o),
                         test_tensor(device, TERN_F32, shape, rows[i].valid), .rel = 1e-6);
        }
        tern_quantile_options kept = {.dim = TERN_SOME(0), .keepdim = true};
        assert_shape(tern_nanquantile(x, q, &kept), 2, 1, 4);
        assert_shape(tern_nanquantile(x, q, &(tern_quantile_options){.keepdim = true}), 2, 1, 1);
        tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(0.3), TERN_F32, device);
        assert_values_close(tern_nanquantile(x, scalar, NULL), 1e-6, 1.9);
        assert_null(tern_quantile(x, TENSOR(device, TERN_F32, TERN_SHAPE(1), 1.3), NULL));
        assert_error(TERN_ERR_ARGUMENT, "q values must be in the range [0, 1]");
        assert_null(tern_quantile(tern_to_dtype(x, TERN_F16), q, NULL));
        assert_error(TERN_ERR_DTYPE, "input tensor must be either float or double dtype");
    }
}

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        tern_tensor *x = in[0];                                                                    \
        (void)user;                                                                                \
        return CALL;                                                                               \
    }
CHECKED(euclid, tern_norm_dim(x, 2, TERN_DIMS(1), false))
CHECKED(cubes, tern_norm_dim(x, 3, TERN_DIMS(0, 2), true))
CHECKED(roots, tern_norm_dim(x, 0.5, TERN_DIMS(2), false))
CHECKED(inverse, tern_norm_dim(x, -1.5, TERN_DIMS(2), false))
CHECKED(steep, tern_norm(x, 1.5))
CHECKED(largest, tern_norm_dim(x, INFINITY, TERN_DIMS(1), false))
CHECKED(logs, tern_logsumexp(x, TERN_DIMS(0, 1), false))
CHECKED(means, tern_nanmean_dim(x, TERN_DIMS(1), false))
static tern_tensor *third(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *q = tern_full(TERN_SHAPE(2), TERN_SCALAR(0.3), TERN_F64, tern_device(in[0]));
    return tern_quantile(in[0], q, &(tern_quantile_options){.dim = TERN_SOME(1)});
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    const test_function functions[] = {euclid,  cubes, roots, inverse, steep,
                                       largest, logs,  means, third};
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 4), -2, 2, 3);
            tern_requires_grad_(x, true);
            gradcheck(functions[i], &x, 1, .second = true);
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(norms),        TEST(gradients_of_norms_in_corners),
    TEST(logs_of_sums), TEST(counts_and_pairs),
    TEST(quantiles),    TEST(gradients_are_the_differences),
};
TEST_MAIN(tests)
