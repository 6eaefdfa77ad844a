/* test_statistics.c -- what ops/statistics.h has: differences, covariances,
 * vectors, sets, samples. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

#define REFUSED(CALL, STATUS, PART)                                                                \
    do {                                                                                           \
        assert_null(CALL);                                                                         \
        assert_error(STATUS, PART);                                                                \
    } while (0)

/* ---- gradients and values -------------------------------------------------------------------- */

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        (void)user;                                                                                \
        return CALL;                                                                               \
    }
CHECKED(second_difference, tern_diff(in[0], 2, 1, in[1], NULL))
CHECKED(area, tern_trapezoid(in[0], tern_select(in[1], 1, 0), 1, 0))
CHECKED(areas, tern_cumulative_trapezoid(in[0], NULL, 0.5, -1))
CHECKED(covariance, tern_cov(in[0], NULL))
CHECKED(correlation, tern_corrcoef(in[0]))
CHECKED(cross, tern_cross(in[0], in[1], (tern_optional_int){0}))
CHECKED(inner, tern_linalg_vecdot(in[0], in[1], 0))
CHECKED(distance, tern_dist(in[0], in[1], 3))
CHECKED(scaled, tern_renorm(in[0], 2, 0, 0.7))
CHECKED(blocks, tern_kron(in[0], in[1]))
CHECKED(diagonal_blocks, tern_block_diag(in, 2))
CHECKED(chosen, tern_combinations(tern_flatten(in[0], 0, -1), 2, false))
CHECKED(powers, tern_vander(tern_select(in[0], 0, 0), 4, false))
CHECKED(fifth_derivative, tern_polygamma(4, tern_add_scalar(in[0], TERN_SCALAR(3))))
CHECKED(gamma_of_matrices, tern_mvlgamma(tern_add_scalar(in[0], TERN_SCALAR(3)), 3))
CHECKED(with_a_row, tern_select_scatter(in[0], tern_select(in[1], 0, 0), 0, 1))
CHECKED(with_columns, tern_slice_scatter(in[0], tern_narrow(in[1], 1, 0, 2), 1, 0, 3, 2))
CHECKED(with_a_diagonal, tern_diagonal_scatter(in[0], tern_diagonal(in[1], 0, 0, 1), 0, 0, 1))

static void gradients_are_those_of_differences(void **state)
{
    (void)state;
    static const struct {
        tern_tensor *(*call)(tern_tensor *const *in, void *user);
        bool second;
    } rows[] = {{second_difference, true},
                {area, true},
                {areas, true},
                {covariance, true},
                {correlation, true},
                {cross, true},
                {inner, true},
                {distance, true},
                {scaled, true},
                {blocks, true},
                {diagonal_blocks, true},
                {chosen, true},
                {powers, true},
                {gamma_of_matrices, true},
                {fifth_derivative, true},
                {with_a_row, true},
                {with_columns, true},
                {with_a_diagonal, true}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i += test_thorough(device) ? 1 : 4)
        TERN_SCOPE {
            tern_tensor *in[2];
            for (int k = 0; k < 2; k++)
                in[k] = tern_requires_grad_(
                    test_uniform(device, TERN_F64, TERN_SHAPE(3, 3), -1, 1, (uint64_t)k + 3), true);
            gradcheck(rows[i].call, in, 2, .second = rows[i].second);
        }
}

static void weighed_covariances_are_those_of_repeated_observations(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, 2, 4, 3, -1, 0);
        tern_tensor *f = TENSOR(device, TERN_I64, TERN_SHAPE(3), 1, 3, 2);
        tern_tensor *repeated = tern_repeat_interleave_tensor(x, f, tern_some(1));
        assert_close(tern_cov(x, &(tern_cov_options){.fweights = f}), tern_cov(repeated, NULL),
                     .abs = 1e-6);
        tern_tensor *a = TENSOR(device, TERN_F32, TERN_SHAPE(3), 0.5, 1.5, 1);
        tern_cov_options o = {.aweights = a, .correction = TERN_SOME(0)};
        tern_cov_options doubled = {.aweights = tern_mul_scalar(a, TERN_SCALAR(2)),
                                    .correction = TERN_SOME(0)};
        assert_close(tern_cov(x, &o), tern_cov(x, &doubled), .abs = 1e-6);
        assert_null(tern_cov(x, &(tern_cov_options){.fweights = a}));
        assert_error(TERN_ERR_DTYPE, "expected fweights to have integral dtype");
        assert_null(tern_cov(x, &(tern_cov_options){.aweights = tern_neg(a)}));
        assert_error(TERN_ERR_ARGUMENT, "aweights cannot be negative");
        assert_null(tern_cov(x, &(tern_cov_options){.aweights = tern_narrow(a, 0, 0, 2)}));
        assert_error(TERN_ERR_SHAPE,
                     "the same numel as there are observations in the input but got "
                     "2 != 3");
        assert_null(tern_corrcoef(tern_zeros(TERN_SHAPE(1, 1, 1), TERN_F32, device)));
        assert_error(TERN_ERR_SHAPE, "expected input to have two or fewer dimensions");
    }
}

static void sets_and_matrices(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_I64, TERN_SHAPE(3), 4, 5, 6);
        tern_tensor *y = TENSOR(device, TERN_I64, TERN_SHAPE(2), 6, 7), *both[] = {x, y};
        assert_values(tern_combinations(x, 2, false), 4, 5, 4, 6, 5, 6);
        assert_values(tern_combinations(y, 2, true), 6, 6, 6, 7, 7, 7);
        assert_shape(tern_combinations(x, 4, false), 0, 4);
        assert_values(tern_cartesian_prod(both, 2), 4, 6, 4, 7, 5, 6, 5, 7, 6, 6, 6, 7);
        assert_ptr_equal(tern_cartesian_prod(both, 1), x);
        assert_values(tern_block_diag(both, 2), 4, 5, 6, 0, 0, 0, 0, 0, 6, 7);
        assert_values(tern_vander(y, 3, false), 36, 6, 1, 49, 7, 1);
        assert_values(tern_vander(y, -1, true), 1, 6, 1, 7);
        assert_values(tern_isin(x, y, false), 0, 0, 1);
        assert_values(tern_isin(x, y, true), 1, 1, 0);
        assert_values(tern_isin(TENSOR(device, TERN_F32, TERN_SHAPE(3), NAN, 6, 6.5),
                                TENSOR(device, TERN_F32, TERN_SHAPE(2), NAN, 6), false),
                      0, 1, 0);
        assert_values(
            tern_diff(TENSOR(device, TERN_BOOL, TERN_SHAPE(3), 0, 1, 1), 1, 0, NULL, NULL), 1, 0);
        tern_shape shapes[] = {TERN_SHAPE(2, 1), TERN_SHAPE(3), TERN_SHAPE(4, 1, 1)}, shape;
        assert_ok(tern_broadcast_shapes(shapes, 3, &shape));
        assert_int_equal(shape.ndim, 3);
        assert_true(shape.dims[0] == 4 && shape.dims[1] == 2 && shape.dims[2] == 3);
        shapes[0] = TERN_SHAPE(2, 4);
        assert_int_equal(tern_broadcast_shapes(shapes, 2, &shape), TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "tern_broadcast_shapes");
        assert_values_close(tern_logspace(0, 2, 3, 10, TERN_F32, device), 1e-4, 1, 10, 100);
        assert_values_close(tern_polygamma(1, tern_ones(TERN_SHAPE(1), TERN_F32, device)), 1e-6,
                            1.6449341);
        assert_values_close(tern_polygamma(2, TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, -1.5, 0)),
                            1e-6, -2.4041138, -0.23620405, -INFINITY);
        tern_tensor *ten = TENSOR(device, TERN_F32, TERN_SHAPE(1), 10);
        assert_values_close(tern_mul(tern_polygamma(40, ten), 1e-6), 1e-4, -8.32784872);
        assert_values_close(tern_polygamma(3, tern_ones(TERN_SHAPE(1), TERN_I64, device)), 1e-6,
                            6.4939394);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 4), TERN_F32, device);
        tern_tensor *bools = tern_ones(TERN_SHAPE(2), TERN_BOOL, device);
        REFUSED(tern_cross(x, x, (tern_optional_int){0}), TERN_ERR_SHAPE,
                "no dimension of size 3 in input");
        REFUSED(tern_linalg_cross(x, x, -1), TERN_ERR_SHAPE,
                "inputs dimension -1 must have length 3. Got 4 and 4");
        REFUSED(tern_diff(tern_select(tern_select(x, 0, 0), 0, 0), 1, 0, NULL, NULL),
                TERN_ERR_SHAPE, "diff expects input to be at least one-dimensional");
        REFUSED(tern_diff(x, 1, 0, x, tern_ones(TERN_SHAPE(1, 3), TERN_F32, device)),
                TERN_ERR_SHAPE, "input.size(1) = 4, but got tensor.size(1) = 3");
        REFUSED(tern_trapezoid(x, tern_ones(TERN_SHAPE(3), TERN_F32, device), 1, -1),
                TERN_ERR_SHAPE, "There must be one `x` value for each sample point");
        REFUSED(tern_trapezoid(bools, NULL, 1, 0), TERN_ERR_DTYPE, "received a bool input for `y`");
        REFUSED(tern_renorm(x, -1, 0, 1), TERN_ERR_ARGUMENT, "non-positive-norm not supported");
        REFUSED(tern_renorm(tern_select(x, 0, 0), 2, 0, 1), TERN_ERR_SHAPE,
                "input needs at least 2 dimensions, got 1 dimensions");
        REFUSED(tern_isin(bools, bools, false), TERN_ERR_DTYPE, "Unsupported input type");
        REFUSED(tern_combinations(x, 2, false), TERN_ERR_SHAPE,
                "Expect a 1D vector, but got shape");
        REFUSED(tern_vander(x, 2, false), TERN_ERR_SHAPE, "x must be a one-dimensional tensor.");
        REFUSED(tern_polygamma(-1, x), TERN_ERR_ARGUMENT, "does not support negative n");
        REFUSED(tern_mvlgamma(x, 0), TERN_ERR_ARGUMENT, "p has to be greater than or equal to 1");
        REFUSED(tern_logspace(0, 1, -3, 10, TERN_F32, device), TERN_ERR_ARGUMENT,
                "number of steps must be non-negative");
        REFUSED(tern_select_scatter(x, x, 0, 1), TERN_ERR_SHAPE,
                "src size = [2, 4], slice size = [4]");
        REFUSED(tern_index_reduce(x, 0, tern_zeros(TERN_SHAPE(2), TERN_I64, device), x,
                                  TERN_REDUCE_SUM, true),
                TERN_ERR_ARGUMENT, "Expected reduce to be one of prod, mean, amax or amin but got");
        REFUSED(tern_kron(x, NULL), TERN_ERR_ARGUMENT, "y");
    }
}

/* ---- samples --------------------------------------------------------------------------------- */

static void samples_come_as_often_as_they_weigh(void **state)
{
    (void)state;
    enum { DRAWS = 20000 };
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_manual_seed(4);
        tern_tensor *weights = TENSOR(device, TERN_F32, TERN_SHAPE(5), 0, 1, 0, 3, 4);
        tern_tensor *rows = tern_expand(weights, TERN_SHAPE(DRAWS, 5));
        tern_tensor *drawn[2] = {tern_multinomial(weights, DRAWS, true),
                                 tern_flatten(tern_multinomial(rows, 1, false), 0, -1)};
        for (int k = 0; k < 2; k++) {
            double *counts = test_read(tern_bincount(drawn[k], NULL, 5));
            assert_true(counts[0] == 0 && counts[2] == 0);
            assert_true(fabs(counts[1] / DRAWS - 0.125) < 0.01);
            assert_true(fabs(counts[3] / DRAWS - 0.375) < 0.01);
            free(counts);
        }
        /* Without replacement each index comes once, and the heavy ones first as a rule. */
        tern_tensor *all = tern_multinomial(tern_to_dtype(rows, TERN_F16), 3, false);
        assert_shape(all, DRAWS, 3);
        tern_values_indices sorted;
        assert_ok(tern_sort(all, 1, false, &sorted));
        tern_tensor *expected = TENSOR(device, TERN_I64, TERN_SHAPE(3), 1, 3, 4);
        assert_true(tern_equal(sorted.values, tern_expand(expected, TERN_SHAPE(DRAWS, 3))));
        tern_tensor *yes =
            tern_bernoulli(tern_full(TERN_SHAPE(DRAWS), TERN_SCALAR(0.3), TERN_F16, device));
        assert_int_equal(tern_dtype_of(yes), TERN_F16);
        assert_true(fabs(tern_item(tern_mean(tern_to_dtype(yes, TERN_F32))) - 0.3) < 0.015);
        tern_tensor *bits = tern_zeros(TERN_SHAPE(DRAWS), TERN_BOOL, device);
        assert_ptr_equal(tern_bernoulli_(bits, 0.75), bits);
        assert_true(fabs(tern_item(tern_sum(bits)) / DRAWS - 0.75) < 0.015);
        tern_tensor *x = tern_normal(tern_full(TERN_SHAPE(DRAWS), TERN_SCALAR(2.0), 0, device),
                                     tern_full(TERN_SHAPE(1), TERN_SCALAR(0.5), 0, device));
        assert_true(fabs(tern_item(tern_mean(x)) - 2) < 0.02);
        assert_true(fabs(tern_item(tern_std(x, 1)) - 0.5) < 0.02);
        tern_tensor *dice = tern_randint_like(bits, 0, 2);
        assert_int_equal(tern_dtype_of(dice), TERN_BOOL);
    }
}

static void weights_that_are_none_are_refused(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2, 3), TERN_F32, device);
        tern_tensor *minus = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, -1);
        REFUSED(tern_multinomial(x, 4, false), TERN_ERR_ARGUMENT,
                "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
        REFUSED(tern_multinomial(x, 0, true), TERN_ERR_ARGUMENT, "cannot sample n_sample <= 0");
        REFUSED(tern_multinomial(minus, 1, false), TERN_ERR_ARGUMENT,
                "probability tensor contains either `inf`, `nan` or element < 0");
        REFUSED(tern_multinomial(tern_zeros_like(x), 1, true), TERN_ERR_ARGUMENT,
                "invalid multinomial distribution (sum of probabilities <= 0)");
        REFUSED(tern_multinomial(tern_to_dtype(x, TERN_I64), 1, true), TERN_ERR_DTYPE,
                "multinomial only supports floating-point dtypes for input, got: int64");
        REFUSED(tern_multinomial(tern_unsqueeze(x, 0), 1, true), TERN_ERR_SHAPE,
                "prob_dist must be 1 or 2 dim");
        assert_shape(tern_multinomial(tern_zeros(TERN_SHAPE(0, 3), TERN_F32, device), 2, false), 0,
                     2);
        REFUSED(tern_bernoulli_(x, 1.5), TERN_ERR_ARGUMENT, "expects p to be in [0, 1]");
        REFUSED(tern_bernoulli(tern_to_dtype(x, TERN_I64)), TERN_ERR_DTYPE, "not implemented for");
        REFUSED(tern_normal(minus, minus), TERN_ERR_ARGUMENT, "all elements of std >= 0.0");
    }
}

static const struct CMUnitTest tests[] = {
    TEST(gradients_are_those_of_differences),
    TEST(weighed_covariances_are_those_of_repeated_observations),
    TEST(sets_and_matrices),
    TEST(what_does_not_fit_is_refused),
    TEST(samples_come_as_often_as_they_weigh),
    TEST(weights_that_are_none_are_refused),
};
TEST_MAIN(tests)
