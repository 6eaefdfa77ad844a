/* test_elementwise_composed.c -- elementwise functions that are made of rows and that PyTorch's samples do not
 * reach: random ones, questions with one answer, second names. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

static void rrelu_draws_its_slopes_from_the_interval(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(1000), TERN_SCALAR(-1), TERN_F32, device);
        tern_requires_grad_(x, true);
        tern_tensor *y = tern_rrelu(x, 0.25, 0.5, true);
        assert_ok(tern_backward(tern_sum(y)));
        double *slopes = test_read(tern_grad(x)), *values = test_read(y), low = 1, high = 0;
        for (int i = 0; i < 1000; i++) {
            assert_true(values[i] == -slopes[i]);
            low = fmin(low, slopes[i]);
            high = fmax(high, slopes[i]);
        }
        assert_true(low >= 0.25 && low < 0.26 && high <= 0.5 && high > 0.49);
        assert_same(tern_rrelu(tern_detach(x), 0.25, 0.75, false),
                    tern_leaky_relu(tern_detach(x), 0.5));
        assert_null(tern_rrelu(x, 0.5, 0.25, false));
        assert_error(TERN_ERR_ARGUMENT, "Lower bound should be less than or equal to the upper");
        free(slopes);
        free(values);
    }
}

static void gumbel_softmax_samples_the_classes(void **state)
{
    (void)state;
    enum { N = 4000 };
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_log(TENSOR(device, TERN_F32, TERN_SHAPE(1, 2), 0.25, 0.75));
        tern_tensor *logits = tern_contiguous(test_expand(x, TERN_SHAPE(N, 2)));
        tern_requires_grad_(logits, true);
        tern_tensor *soft = tern_gumbel_softmax(logits, 0.5, false, -1);
        assert_close(tern_sum_dim(soft, TERN_DIMS(1), false),
                     tern_ones(TERN_SHAPE(N), TERN_F32, device), .abs = 1e-5);
        tern_tensor *hard = tern_gumbel_softmax(logits, 0.5, true, -1);
        double *values = test_read(hard), chosen = 0;
        for (int i = 0; i < N; i++) {
            double first = rint(values[2 * i]), second = rint(values[2 * i + 1]);
            assert_true(first + second == 1 && fabs(values[2 * i] - first) < 1e-6);
            chosen += second;
        }
        assert_true(fabs(chosen / N - 0.75) < 0.04); /* six standard deviations */
        assert_ok(tern_backward(tern_sum(tern_select(hard, 1, 0))));
        assert_true(tern_item(tern_sum(tern_abs(tern_grad(logits)))) > 0);
        free(values);
    }
}

static void closeness_has_one_answer(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, NAN, INFINITY);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(3), 1.000001, NAN, INFINITY);
        assert_true(tern_allclose(x, y, 1e-5, 1e-8, true));
        assert_false(tern_allclose(x, y, 1e-5, 1e-8, false));
        assert_false(tern_allclose(x, y, 1e-7, 1e-8, true));
        assert_false(tern_equal(x, x)); /* NaN */
        tern_tensor *ones = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        assert_true(tern_equal(ones, ones));
        assert_false(tern_equal(ones, tern_ones(TERN_SHAPE(2), TERN_F32, device)));
        assert_false(tern_allclose(x, y, -1, 0, true));
        assert_error(TERN_ERR_ARGUMENT, "must be greater than or equal to zero");
    }
}

static void second_names_work_in_place_too(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2), -2, 6);
        assert_values(tern_divide_scalar(tern_absolute(x), TERN_SCALAR(2)), 1, 3);
        assert_values(tern_greater(x, tern_zeros_like(x)), 0, 1);
        assert_ptr_equal(tern_negative_(x), x);
        assert_ptr_equal(tern_multiply_scalar_(x, TERN_SCALAR(3)), x);
        assert_values(x, 6, -18);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(rrelu_draws_its_slopes_from_the_interval),
    TEST(gumbel_softmax_samples_the_classes),
    TEST(closeness_has_one_answer),
    TEST(second_names_work_in_place_too),
};
TEST_MAIN(tests)
