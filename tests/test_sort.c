/* test_sort.c -- sorting, places in the order, equals, counts; PyTorch's corners. */
#include "support.h"
#include <math.h>
#include <stdlib.h>

/* ---- sorting ----------------------------------------------------------------------------- */

/* Every slice of the middle of (outer, n, inner) is in order, stable, and a permutation. */
static void sorts(const char *device, tern_dtype dtype, int64_t outer, int64_t n, int64_t inner,
                  bool descending)
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(outer, n, inner), 0, 60, 7);
    tern_values_indices both;
    x = tern_to_dtype(tern_to_dtype(x, TERN_I32), dtype); /* so that many are equal */
    assert_ok(tern_sort(x, 1, descending, &both));
    double *v = test_read(x), *y = test_read(both.values), *places = test_read(both.indices);
    bool *seen = malloc((size_t)n * sizeof *seen);
    assert_non_null(seen);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            memset(seen, 0, (size_t)n * sizeof *seen);
            for (int64_t k = 0; k < n; k++) {
                int64_t at = (o * n + k) * inner + i, place = (int64_t)places[at];
                assert_in_range(place, 0, n - 1);
                assert_false(seen[place]);
                seen[place] = true;
                assert_true(y[at] == v[(o * n + place) * inner + i]);
                if (k == 0)
                    continue;
                double before = y[at - inner];
                assert_true(descending ? before >= y[at] : before <= y[at]);
                assert_true(before != y[at] || (int64_t)places[at - inner] < place);
            }
        }
    free(v);
    free(y);
    free(places);
    free(seen);
}

static void every_shape_is_sorted(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},    {3, 16, 1}, {2, 17, 3},
                                        {1, 1000, 1}, {2, 33, 5}, {1, 20000, 1}};
    static const tern_dtype types[] = {TERN_F32,  TERN_I64, TERN_F64, TERN_F16,
                                       TERN_BF16, TERN_I32, TERN_U8,  TERN_BOOL};
    FOR_EACH_DEVICE(device)
    {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                if (test_thorough(device) || t < 2)
                    TERN_SCOPE {
                        sorts(device, types[t], shapes[s][0], shapes[s][1], shapes[s][2], s % 2);
                    }
    }
}

static void nan_is_the_largest(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
        for (int d = 0; d < (test_thorough(device) ? 4 : 1); d++) {
            tern_values_indices both;
            tern_tensor *x = TENSOR(device, dtypes[d], TERN_SHAPE(5), 1, NAN, 0, NAN, INFINITY);
            assert_ok(tern_sort(x, 0, true, &both));
            assert_values(both.values, NAN, NAN, INFINITY, 1, 0);
            assert_values(both.indices, 1, 3, 4, 0, 2);
            assert_values(tern_argsort(x, -1, false), 2, 0, 4, 1, 3);
            assert_ok(tern_topk(x, 3, 0, true, true, &both));
            assert_values(both.values, NAN, NAN, INFINITY);
            assert_ok(tern_topk(x, 2, 0, false, true, &both));
            assert_values(both.values, 0, 1);
            assert_values(both.indices, 2, 0);
        }
        tern_tensor *zeros = TENSOR(device, TERN_F32, TERN_SHAPE(3), -0.0, 0.0, -0.0);
        assert_values(tern_argsort(zeros, 0, true), 0, 1, 2);
        tern_tensor *ends = tern_from_data((const int64_t[]){INT64_MAX, INT64_MIN, 0},
                                           TERN_SHAPE(3), TERN_I64, device);
        assert_values(tern_argsort(ends, 0, false), 1, 2, 0);
        assert_values(tern_argsort(ends, 0, true), 0, 2, 1);
    }
}

static void places_in_the_order(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_values_indices both;
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 4), 3, 1, 4, 1, NAN, 2, 7, 2);
        assert_ok(tern_kthvalue(x, 2, 1, false, &both));
        assert_values(both.values, 1, 2);
        assert_values(both.indices, 3, 3);
        assert_ok(tern_median_dim(x, -1, true, &both));
        assert_values(both.values, 1, NAN);
        assert_shape(both.indices, 2, 1);
        assert_values(both.indices, 3, 0);
        assert_ok(tern_nanmedian_dim(x, 1, false, &both));
        assert_values(both.values, 1, 2);
        assert_ok(tern_mode(x, 1, false, &both));
        assert_values(both.values, 1, 2);
        assert_values(both.indices, 3, 3);
        assert_ok(tern_mode(x, 0, false, &both));
        assert_values(both.values, 3, 1, 4, 1);
        assert_values(tern_median(x), NAN);
        assert_values(tern_nanmedian(x), 2);
        assert_values(tern_msort(x), 3, 1, 4, 1, NAN, 2, 7, 2);
        tern_tensor *i = TENSOR(device, TERN_I64, TERN_SHAPE(4), 5, 1, 9, 3);
        assert_values(tern_median(i), 3);
        tern_tensor *nans = tern_full(TERN_SHAPE(2), TERN_SCALAR(NAN), TERN_F32, device);
        assert_ok(tern_nanmedian_dim(nans, 0, false, &both));
        assert_values(both.values, NAN);
        assert_values(both.indices, 0);
    }
}

static void empty_and_scalar(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_values_indices both;
        tern_tensor *empty = tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device);
        tern_tensor *scalar = tern_tensor_scalar(TERN_SCALAR(3.0), TERN_F32, device);
        assert_ok(tern_sort(empty, 1, false, &both));
        assert_shape(both.values, 2, 0);
        assert_values(tern_median(empty), NAN);
        assert_ok(tern_median_dim(empty, 0, false, &both));
        assert_shape(both.values, 0);
        assert_ok(tern_topk(empty, 0, 1, true, true, &both));
        assert_shape(both.indices, 2, 0);
        assert_ok(tern_sort(scalar, -1, false, &both));
        assert_values(both.values, 3);
        assert_int_equal(tern_dim(both.indices), 0);
        assert_ok(tern_topk(scalar, 1, 0, true, true, &both));
        assert_values(both.values, 3);
        assert_ok(tern_kthvalue(scalar, 1, 0, true, &both));
        assert_values(both.indices, 0);
        assert_values(tern_median(scalar), 3);
    }
}

/* ---- equals ------------------------------------------------------------------------------ */

static void unique_values(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_unique_result u;
        tern_tensor *x = TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 2, 1, 3, 1, 3, 3);
        assert_ok(tern_unique(x, &u));
        assert_values(u.output, 1, 2, 3);
        assert_values(u.inverse, 1, 0, 2, 0, 2, 2);
        assert_shape(u.inverse, 2, 3);
        assert_values(u.counts, 2, 1, 3);
        tern_tensor *nans = TENSOR(device, TERN_F32, TERN_SHAPE(6), NAN, NAN, 1, 1, 2, 1);
        assert_ok(tern_unique(nans, &u));
        assert_values(u.output, 1, 2, NAN, NAN);
        assert_values(u.counts, 3, 1, 1, 1);
        assert_ok(tern_unique_consecutive(nans, &u));
        assert_values(u.output, NAN, NAN, 1, 2, 1);
        assert_values(u.inverse, 0, 1, 2, 2, 3, 4);
        assert_values(u.counts, 1, 1, 2, 1, 1);
        assert_ok(tern_unique(tern_zeros(TERN_SHAPE(0), TERN_F32, device), &u));
        assert_shape(u.output, 0);
        assert_shape(u.counts, 0);
        assert_ok(tern_unique(tern_tensor_scalar(TERN_SCALAR(3.0), TERN_F32, device), &u));
        assert_values(u.output, 3);
        assert_shape(u.output, 1);
        assert_int_equal(tern_dim(u.inverse), 0);
    }
}

static void unique_entries_along_a_dim(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_unique_result u;
        tern_tensor *x =
            TENSOR(device, TERN_I64, TERN_SHAPE(4, 3), 2, 0, 1, 1, 5, 5, 2, 0, 1, 1, 5, 4);
        assert_ok(tern_unique_dim(x, 0, &u));
        assert_values(u.output, 1, 5, 4, 1, 5, 5, 2, 0, 1);
        assert_values(u.inverse, 2, 1, 2, 0);
        assert_values(u.counts, 1, 1, 2);
        assert_ok(tern_unique_dim(tern_t(x), -1, &u));
        assert_shape(u.output, 3, 3);
        assert_values(u.inverse, 2, 1, 2, 0);
        assert_ok(tern_unique_consecutive_dim(x, 0, &u));
        assert_values(u.inverse, 0, 1, 2, 3);
        tern_tensor *twice = tern_repeat_interleave(x, 2, TERN_SOME(1));
        assert_ok(tern_unique_consecutive_dim(twice, 1, &u));
        assert_true(tern_equal(u.output, x));
        assert_values(u.counts, 2, 2, 2);
        assert_ok(tern_unique_dim(tern_zeros(TERN_SHAPE(0, 3), TERN_F32, device), 0, &u));
        assert_shape(u.output, 0, 3);
        assert_int_equal(tern_unique_dim(tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device), 0, &u),
                         TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "aren't selected, so unique cannot be applied");
        assert_int_equal(
            tern_unique_dim(tern_tensor_scalar(TERN_SCALAR(1), TERN_F32, device), 0, &u),
            TERN_ERR_SHAPE);
        assert_error(TERN_ERR_SHAPE, "tensor has no dimensions");
    }
}

static void places_between_bounds(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *bounds = TENSOR(device, TERN_F32, TERN_SHAPE(4), 1, 2, 2, 3);
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(5), 0, 2, 2.5, 3, NAN);
        assert_values(tern_searchsorted(bounds, x, TERN_SIDE_LEFT), 0, 1, 3, 3, 4);
        assert_values(tern_bucketize(x, bounds, true), 0, 3, 3, 4, 4);
        tern_tensor *rows = TENSOR(device, TERN_I64, TERN_SHAPE(2, 2), 1, 5, 10, 20);
        tern_tensor *v = TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 0, 4, 9, 4, 12, 25);
        assert_values(tern_searchsorted(rows, v, TERN_SIDE_LEFT), 0, 1, 2, 0, 1, 2);
    }
}

static void counts(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_I32, TERN_SHAPE(4), 1, 4, 1, 2);
        assert_values(tern_bincount(x, NULL, 0), 0, 2, 1, 0, 1);
        assert_values(tern_bincount(x, NULL, 7), 0, 2, 1, 0, 1, 0, 0);
        assert_int_equal(tern_dtype_of(tern_bincount(x, NULL, 0)), TERN_I64);
        assert_values(tern_bincount(tern_zeros(TERN_SHAPE(0), TERN_I64, device), NULL, 2), 0, 0);
        tern_tensor *y = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 5, 3, 2);
        assert_values(tern_histc(y, 3, 0, 0), 2, 1, 1);
        assert_values(tern_histc(y, 4, 1, 3), 1, 0, 1, 1);
        assert_values(tern_histc(tern_ones(TERN_SHAPE(2), TERN_F32, device), 3, 0, 0), 0, 2, 0);
        assert_values(tern_histc(TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, NAN), 4, 0, 3), 0, 1, 0,
                      0);
        assert_values(tern_histc(tern_zeros(TERN_SHAPE(0), TERN_F32, device), 2, 0, 0), 0, 0);
    }
}

/* ---- refusals ---------------------------------------------------------------------------- */

static void what_can_not_be_done_is_refused(void **state)
{
    (void)state;
    tern_values_indices both;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    tern_tensor *yes = tern_zeros(TERN_SHAPE(3), TERN_BOOL, "cpu");
    tern_tensor *none = tern_zeros(TERN_SHAPE(2, 0), TERN_F32, "cpu");
    tern_tensor *minus = TENSOR("cpu", TERN_I64, TERN_SHAPE(2), 1, -2);
    tern_tensor *vector = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
#define REFUSED(CALL, STATUS, TEXT)                                                                \
    do {                                                                                           \
        assert_int_equal(CALL, STATUS);                                                            \
        assert_error(STATUS, TEXT);                                                                \
    } while (0)
#define NOTHING(CALL, STATUS, TEXT)                                                                \
    do {                                                                                           \
        assert_null(CALL);                                                                         \
        assert_error(STATUS, TEXT);                                                                \
    } while (0)
    REFUSED(tern_sort(x, 2, false, &both), TERN_ERR_ARGUMENT, "range of [-2, 1], but got 2");
    REFUSED(tern_sort(NULL, 0, false, &both), TERN_ERR_ARGUMENT, "NULL");
    REFUSED(tern_sort(x, 0, false, NULL), TERN_ERR_ARGUMENT, "NULL");
    REFUSED(tern_topk(x, 4, 1, true, true, &both), TERN_ERR_ARGUMENT,
            "selected index k out of range");
    REFUSED(tern_topk(yes, 1, 0, true, true, &both), TERN_ERR_DTYPE, "not implemented for bool");
    REFUSED(tern_kthvalue(x, 4, 1, false, &both), TERN_ERR_ARGUMENT,
            "selected number k out of range for dimension 1");
    REFUSED(tern_kthvalue(x, 0, 1, false, &both), TERN_ERR_ARGUMENT,
            "selected number k out of range for dimension 1");
    REFUSED(tern_kthvalue(none, 1, 1, false, &both), TERN_ERR_SHAPE,
            "kthvalue(): Expected reduction dim 1 to have non-zero size.");
    REFUSED(tern_median_dim(none, 1, false, &both), TERN_ERR_SHAPE,
            "median(): Expected reduction dim 1 to have non-zero size.");
    NOTHING(tern_median(yes), TERN_ERR_DTYPE, "tern_median: not implemented for bool");
    NOTHING(tern_bincount(minus, NULL, 0), TERN_ERR_ARGUMENT,
            "bincount only supports 1-d non-negative integral inputs");
    NOTHING(tern_bincount(vector, NULL, 0), TERN_ERR_DTYPE, "not implemented for float32");
    NOTHING(tern_bincount(tern_abs(minus), NULL, -1), TERN_ERR_ARGUMENT,
            "minlength should be >= 0");
    NOTHING(tern_bincount(tern_abs(minus), vector, 0), TERN_ERR_SHAPE,
            "weights should be 1-d and have the same length as input");
    NOTHING(tern_histc(x, 0, 0, 0), TERN_ERR_ARGUMENT, "bins must be > 0");
    NOTHING(tern_histc(x, 2, 2, 1), TERN_ERR_ARGUMENT, "max must be larger than min");
    NOTHING(tern_histc(x, 2, 0, INFINITY), TERN_ERR_ARGUMENT, "range of [0, inf] is not finite");
    NOTHING(tern_searchsorted(x, vector, TERN_SIDE_LEFT), TERN_ERR_SHAPE,
            "boundaries tensor should be 1 dimension");
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *descending(tern_tensor *const *in, void *user)
{
    tern_values_indices both;
    (void)user;
    return tern_sort(in[0], 1, true, &both) == TERN_OK ? both.values : NULL;
}
static tern_tensor *two_largest(tern_tensor *const *in, void *user)
{
    tern_values_indices both;
    (void)user;
    return tern_topk(in[0], 2, -1, true, true, &both) == TERN_OK ? both.values : NULL;
}
static tern_tensor *second(tern_tensor *const *in, void *user)
{
    tern_values_indices both;
    (void)user;
    return tern_kthvalue(in[0], 2, 0, true, &both) == TERN_OK ? both.values : NULL;
}
static tern_tensor *middle(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_median(in[0]);
}

static void gradients_go_to_the_chosen(void **state)
{
    (void)state;
    const test_function functions[] = {descending, two_largest, second, middle};
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
    TEST(every_shape_is_sorted),
    TEST(nan_is_the_largest),
    TEST(places_in_the_order),
    TEST(empty_and_scalar),
    TEST(unique_values),
    TEST(unique_entries_along_a_dim),
    TEST(places_between_bounds),
    TEST(counts),
    TEST(what_can_not_be_done_is_refused),
    TEST(gradients_go_to_the_chosen),
};
TEST_MAIN(tests)
