/* test_scan.c -- products and running results against loops over doubles, and PyTorch's corners. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

/* ---- values ------------------------------------------------------------------------------ */

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) {
        print_error("%.9g, not %.9g\n", got, want);
        fail();
    }
}

/* Everything along the middle of (outer, n, inner). */
static void right_for(const char *device, tern_dtype dtype, int64_t outer, int64_t n, int64_t inner,
                      double tolerance)
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(outer, n, inner), 0.5, 1.5, 5);
    bool floating = tern_dtype_is_floating_point(dtype);
    tern_values_indices both;
    double *v = test_read(x), *sums = test_read(tern_cumsum(x, 1));
    double *products = test_read(tern_cumprod(x, -2)), *all = test_read(tern_prod_dim(x, 1, true));
    double *logs = floating ? test_read(tern_logcumsumexp(x, 1)) : NULL;
    assert_ok(tern_cummax(x, 1, &both));
    double *most = test_read(both.values), *places = test_read(both.indices);
    double scale = floating ? sqrt((double)n) : 1;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0, product = 1, high = -INFINITY, weight = 0;
            for (int64_t k = 0; k < n; k++) {
                int64_t at = (o * n + k) * inner + i;
                sum += v[at];
                product *= v[at];
                weight += exp(v[at]);
                high = v[at] > high ? v[at] : high;
                near(sums[at] / scale, sum / scale, 4 * tolerance);
                near(products[at], product, scale * tolerance);
                assert_true(most[at] == high && (int64_t)places[at] <= k);
                assert_true(v[(o * n + (int64_t)places[at]) * inner + i] == high);
                if (floating)
                    near(logs[at], log(weight), scale * tolerance);
            }
            near(all[o * inner + i], product, scale * tolerance);
        }
    double *const read[] = {v, sums, products, all, logs, most, places};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        free(read[i]);
}

static void every_form_is_right(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {2, 5, 1},     {3, 1000, 1}, {2, 4, 3},
                                        {1, 5000, 3}, {1, 40000, 1}, {5, 30, 70}};
    static const struct {
        tern_dtype dtype;
        double tolerance;
    } types[] = {{TERN_F32, 2e-6},  {TERN_F64, 1e-14}, {TERN_F16, 2e-3},
                 {TERN_BF16, 8e-3}, {TERN_I32, 0},     {TERN_U8, 0}};
    FOR_EACH_DEVICE(device)
    {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                if (test_thorough(device) || t == 0 || s == 3)
                    TERN_SCOPE {
                        right_for(device, types[t].dtype, shapes[s][0], shapes[s][1], shapes[s][2],
                                  types[t].tolerance);
                    }
    }
}

static void integers_are_kept_in_int64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_I32, TERN_SHAPE(4), 2000000000, 2, -3, 5);
        assert_int_equal(tern_dtype_of(tern_prod(x)), TERN_I64);
        assert_int_equal(tern_item_int(tern_prod(x)), INT64_C(-60000000000));
        assert_values(tern_cumprod(x, 0), 2000000000, 4000000000, -12000000000, -60000000000);
        tern_tensor *yes = TENSOR(device, TERN_BOOL, TERN_SHAPE(3), 1, 0, 1);
        assert_int_equal(tern_dtype_of(tern_cumsum(yes, 0)), TERN_I64);
        assert_values(tern_cumsum(yes, 0), 1, 1, 2);
        assert_values(tern_prod(yes), 0);
    }
}

/* ---- corners: PyTorch 1.13 gives these --------------------------------------------------- */

static void corners(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_values_indices both;
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(5), 1, NAN, 3, NAN, 2);
        assert_ok(tern_cummax(x, 0, &both));
        assert_values(both.values, 1, NAN, NAN, NAN, NAN);
        assert_values(both.indices, 0, 1, 1, 3, 3);
        assert_values(tern_cumsum(x, 0), 1, NAN, NAN, NAN, NAN);
        assert_ok(tern_cummax(TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 1, 0), 0, &both));
        assert_values(both.indices, 0, 1, 1);
        assert_ok(tern_cummin(TENSOR(device, TERN_BOOL, TERN_SHAPE(2), 1, 0), 0, &both));
        assert_values(both.values, 1, 0);
        assert_int_equal(tern_dtype_of(both.values), TERN_BOOL);
        assert_values_close(
            tern_logcumsumexp(
                TENSOR(device, TERN_F32, TERN_SHAPE(5), -INFINITY, -INFINITY, 1, 100, INFINITY), 0),
            1e-6, -INFINITY, -INFINITY, 1, 100, INFINITY);
        tern_tensor *empty = tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device);
        assert_shape(tern_cumsum(empty, 1), 2, 0);
        assert_values(tern_prod_dim(empty, 1, false), 1, 1);
        assert_values(tern_prod(empty), 1);
        assert_shape(tern_prod_dim(empty, 0, true), 1, 0);
        tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(3.0), TERN_F32, device);
        assert_values(tern_cumprod(scalar, -1), 3);
        assert_values(tern_prod_dim(scalar, 0, true), 3);
        assert_int_equal(tern_dim(tern_prod_dim(scalar, 0, true)), 0);
        assert_ok(tern_cummax(scalar, 0, &both));
        assert_values(both.indices, 0);
    }
}

static void what_can_not_be_done_is_refused(void **state)
{
    (void)state;
    tern_values_indices both;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    assert_null(tern_cumsum(x, 2));
    assert_error(TERN_ERR_ARGUMENT, "expected to be in range of [-2, 1], but got 2");
    assert_null(tern_prod_dim(x, -3, false));
    assert_error(TERN_ERR_ARGUMENT, "expected to be in range of [-2, 1], but got -3");
    assert_null(tern_logcumsumexp(tern_zeros(TERN_SHAPE(2), TERN_I64, "cpu"), 0));
    assert_error(TERN_ERR_DTYPE, "tern_logcumsumexp: not implemented for int64");
    assert_null(tern_prod(NULL));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_int_equal(tern_cummin(NULL, 0, &both), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_int_equal(tern_cummin(x, 0, NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "NULL");
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *gradient_of(tern_tensor *(*f)(tern_tensor *), tern_tensor *x)
{
    tern_requires_grad_(x, true);
    assert_ok(tern_backward(f(x)));
    return tern_grad(x);
}

static tern_tensor *weighted_products(tern_tensor *x)
{
    tern_tensor *y = tern_cumprod(x, 0);
    return tern_sum(
        tern_mul(y, tern_arange(1, (double)tern_numel(x) + 1, 1, TERN_F32, tern_device(x))));
}

/* d prod / dx and d (y0 + 2 y1 + 3 y2) / dx of the running products, by hand. */
static void products_with_zeros(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        static const struct {
            double x[3], prod[3], running[3];
        } rows[] = {{{2, 3, 4}, {12, 8, 6}, {43, 28, 18}},
                    {{2, 0, 4}, {0, 8, 0}, {1, 28, 0}},
                    {{0, 0, 4}, {0, 0, 0}, {1, 0, 0}},
                    {{0, 3, 0}, {0, 0, 0}, {7, 0, 0}}};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].x);
            tern_tensor *want = test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].prod);
            assert_same(gradient_of(tern_prod, x), want);
            x = test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].x);
            want = test_tensor(device, TERN_F32, TERN_SHAPE(3), rows[i].running);
            assert_same(gradient_of(weighted_products, x), want);
        }
    }
}

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        tern_tensor *x = in[0];                                                                    \
        (void)user;                                                                                \
        return CALL;                                                                               \
    }
CHECKED(prod_all, tern_prod(x))
CHECKED(prod_middle, tern_prod_dim(x, 1, false))
CHECKED(prod_kept, tern_prod_dim(x, -1, true))
CHECKED(sums, tern_cumsum(tern_square(x), 1))
CHECKED(products, tern_cumprod(x, 1))
CHECKED(products_last, tern_cumprod(x, -1))
CHECKED(logs, tern_logcumsumexp(x, 0))
static tern_tensor *largest(tern_tensor *const *in, void *user)
{
    tern_values_indices both;
    (void)user;
    return tern_cummax(in[0], 2, &both) == TERN_OK ? both.values : NULL;
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    const test_function functions[] = {prod_all, prod_middle,   prod_kept, sums,
                                       products, products_last, logs,      largest};
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 4), -2, 2, 3);
            tern_zero_(tern_select(x, 2, 1)); /* a zero in every slice */
            if (functions[i] == largest || functions[i] == prod_all)
                x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 4), -2, 2, 3);
            tern_requires_grad_(x, true);
            gradcheck(functions[i], &x, 1, .second = true);
        }
    }
}

static const struct CMUnitTest tests[] = {
    TEST(every_form_is_right),
    TEST(integers_are_kept_in_int64),
    TEST(corners),
    TEST(what_can_not_be_done_is_refused),
    TEST(products_with_zeros),
    TEST(gradients_are_the_differences),
};
TEST_MAIN(tests)
