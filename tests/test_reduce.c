/* test_reduce.c -- reductions against loops over doubles, PyTorch's corner cases, gradients. */
#include "support.h"
#include "tensor/tensor.h"
#include <math.h>
#include <stdlib.h>

/* ---- values ------------------------------------------------------------------------------ */

/* What a reduction gives: from the elements and how many there are. */
typedef struct numbers {
    double sum, mean, variance, largest, smallest;
} numbers;

static numbers reduce(const double *x, int64_t n, int64_t stride)
{
    numbers r = {.largest = x[0], .smallest = x[0]};
    for (int64_t i = 0; i < n; i++) {
        double v = x[i * stride];
        r.sum += v;
        r.largest = v > r.largest ? v : r.largest;
        r.smallest = v < r.smallest ? v : r.smallest;
    }
    r.mean = r.sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        r.variance += (x[i * stride] - r.mean) * (x[i * stride] - r.mean);
    r.variance /= (double)(n - 1);
    return r;
}

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * (1 + fabs(want)))) {
        print_error("%.9g, not %.9g\n", got, want);
        fail();
    }
}

static void every_form_is_right_for(const char *device, tern_dtype dtype, int64_t outer, int64_t n,
                                    int64_t inner, double tolerance)
{
    tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(outer, n, inner), -4, 4, 11);
    bool floating = tern_dtype_is_floating_point(dtype);
    double *v = test_read(x);
    double *sum = test_read(tern_sum_dim(x, TERN_DIMS(1), false));
    double *most = test_read(tern_amax(x, TERN_DIMS(1), false));
    double *least = test_read(tern_amin(x, TERN_DIMS(1), true));
    double *mean = floating ? test_read(tern_mean_dim(x, TERN_DIMS(-2), false)) : NULL;
    double *var = floating ? test_read(tern_var_dim(x, TERN_DIMS(1), 1, false)) : NULL;
    double *place = test_read(tern_argmax_dim(x, 1, false));
    double *last = test_read(tern_argmin_dim(x, 1, false));
    double scale = floating ? sqrt((double)n) : 1;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            const double *column = v + o * n * inner + i;
            numbers want = reduce(column, n, inner);
            int64_t at = o * inner + i, p = (int64_t)place[at], q = (int64_t)last[at];
            near(sum[at] / scale, want.sum / scale, tolerance);
            assert_true(most[at] == want.largest && least[at] == want.smallest);
            assert_true(column[p * inner] == want.largest && column[q * inner] == want.smallest);
            for (int64_t k = 0; k < p; k++)
                assert_true(column[k * inner] < want.largest);
            for (int64_t k = 0; k < q; k++)
                assert_true(column[k * inner] > want.smallest);
            if (floating) {
                near(mean[at], want.mean, tolerance);
                if (n > 1)
                    near(var[at], want.variance, 4 * tolerance);
            }
        }
    double *const all[] = {v, sum, most, least, mean, var, place, last};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void sums_and_extremes_of_all_shapes(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 1, 1},   {1, 5, 1},     {1, 70000, 1}, {3, 1000, 1},
                                        {2, 4, 3},   {1, 1024, 40}, {5, 300, 7},   {1, 20000, 3},
                                        {2, 3, 300}, {70, 9, 1},    {1, 40, 600}};
    static const struct {
        tern_dtype dtype;
        double tolerance;
    } types[] = {{TERN_F32, 2e-6}, {TERN_F64, 1e-14}, {TERN_F16, 1e-3}, {TERN_BF16, 8e-3},
                 {TERN_I32, 0},    {TERN_I64, 0},     {TERN_U8, 0}};
    FOR_EACH_DEVICE(device)
    {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++)
                TERN_SCOPE {
                    every_form_is_right_for(device, types[t].dtype, shapes[s][0], shapes[s][1],
                                            shapes[s][2], types[t].tolerance);
                }
    }
}

static tern_tensor *strided(tern_tensor *x, tern_shape shape, tern_shape stride, int64_t offset)
{
    return tern_scoped(tern_tensor_alias(x, &shape, stride.dims, offset));
}

static void any_dims_of_any_strides(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_arange(0, 24, 1, TERN_F32, device);
        x = strided(x, TERN_SHAPE(2, 3, 4), TERN_SHAPE(12, 4, 1), 0);
        tern_tensor *t = strided(x, TERN_SHAPE(4, 2, 3), TERN_SHAPE(1, 12, 4), 0);
        assert_values(tern_sum_dim(x, TERN_DIMS(0, 2), false), 60, 92, 124);
        assert_values(tern_sum_dim(x, TERN_DIMS(0, 1), true), 60, 66, 72, 78);
        assert_shape(tern_sum_dim(x, TERN_DIMS(0, 1), true), 1, 1, 4);
        assert_values(tern_sum_dim(t, TERN_DIMS(0), false), 6, 22, 38, 54, 70, 86);
        assert_values(tern_sum_dim(t, TERN_DIMS(0, 2), false), 66, 210);
        assert_values(tern_sum_dim(t, TERN_DIMS(1, 2), false), 60, 66, 72, 78);
        assert_values(tern_amax(t, TERN_DIMS(1), false), 12, 16, 20, 13, 17, 21, 14, 18, 22, 15, 19,
                      23);
        tern_tensor *wide = strided(x, TERN_SHAPE(3, 2), TERN_SHAPE(1, 0), 2);
        assert_values(tern_sum_dim(wide, TERN_DIMS(1), false), 4, 6, 8);
        assert_values(tern_sum(wide), 18);
        assert_values(tern_argmax(t), 23);
        assert_values(tern_sum_dim(x, TERN_SHAPE_SCALAR, false), 276);
        assert_values(tern_sum_to_size(x, TERN_SHAPE(3, 1)), 60, 92, 124);
        assert_shape(tern_sum_to_size(x, TERN_SHAPE(3, 1)), 3, 1);
        assert_ptr_equal(tern_sum_to_size(x, TERN_SHAPE(2, 3, 4)), x);
    }
}

static void integers_sum_to_int64(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_full(TERN_SHAPE(100000), TERN_SCALAR(2000000000), TERN_I32, device);
        assert_int_equal(tern_item_int(tern_sum(x)), INT64_C(200000000000000));
        tern_tensor *yes = tern_ones(TERN_SHAPE(3, 400), TERN_BOOL, device);
        assert_int_equal(tern_dtype_of(tern_sum_dim(yes, TERN_DIMS(1), false)), TERN_I64);
        assert_values(tern_sum_dim(yes, TERN_DIMS(1), false), 400, 400, 400);
        assert_int_equal(tern_dtype_of(tern_sum(tern_ones(TERN_SHAPE(3), TERN_F16, device))),
                         TERN_F16);
    }
}

/* ---- corners: PyTorch 1.13 gives these --------------------------------------------------- */

static void nan_and_ties(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
        for (int d = 0; d < 4; d++) {
            tern_tensor *x =
                TENSOR(device, dtypes[d], TERN_SHAPE(2, 4), 1, NAN, 2, NAN, 3, 3, -INFINITY, 3);
            tern_values_indices both;
            assert_values(tern_max(x), NAN);
            assert_values(tern_min(x), NAN);
            assert_values(tern_amax(x, TERN_DIMS(1), false), NAN, 3);
            assert_values(tern_amin(x, TERN_DIMS(0), false), 1, NAN, -INFINITY, NAN);
            assert_values(tern_argmax(x), 1);
            assert_values(tern_argmin_dim(x, 1, true), 1, 2);
            assert_ok(tern_max_dim(x, 1, false, &both));
            assert_values(both.values, NAN, 3);
            assert_values(both.indices, 1, 0);
            assert_ok(tern_min_dim(x, 0, false, &both));
            assert_values(both.values, 1, NAN, -INFINITY, NAN);
            assert_values(both.indices, 0, 0, 1, 0);
            assert_values(tern_sum_dim(x, TERN_DIMS(1), false), NAN, -INFINITY);
            assert_values(tern_argmax(TENSOR(device, dtypes[d], TERN_SHAPE(2), -0.0, 0.0)), 0);
        }
        tern_tensor *low = tern_full(TERN_SHAPE(3), TERN_SCALAR(INT64_MIN), TERN_I64, device);
        assert_values(tern_argmax(low), 0);
        assert_int_equal(tern_item_int(tern_max(low)), INT64_MIN);
    }
}

static void empty_reductions(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device);
        assert_values(tern_sum(x), 0);
        assert_values(tern_mean(x), NAN);
        assert_values(tern_var(x, 1), NAN);
        assert_values(tern_std(x, 1), NAN);
        assert_values(tern_sum_dim(x, TERN_DIMS(1), false), 0, 0);
        assert_shape(tern_sum_dim(x, TERN_DIMS(0), false), 0);
        assert_values(tern_all(x), 1);
        assert_values(tern_any(x), 0);
        assert_values(tern_all_dim(x, 1, false), 1, 1);
        assert_shape(tern_amax(x, TERN_DIMS(0), false), 0);
        assert_null(tern_max(x));
        assert_error(TERN_ERR_SHAPE,
                     "tern_max: Expected reduction dim to be specified for "
                     "input.numel() == 0. Specify the reduction dim with the 'dim'");
        assert_null(tern_argmin(x));
        assert_error(TERN_ERR_SHAPE, "tern_argmin: Expected reduction dim to be specified");
        assert_null(tern_amax(x, TERN_DIMS(1), false));
        assert_error(TERN_ERR_SHAPE, "tern_amax: Expected reduction dim 1 to have non-zero size.");
        tern_tensor *one = tern_ones(TERN_SHAPE(1), TERN_F32, device);
        assert_values(tern_var(one, 1), NAN);
        assert_values(tern_var(one, 0), 0);
        tern_tensor *two = TENSOR(device, TERN_F32, TERN_SHAPE(2), 1, 2);
        assert_values(tern_var(two, 2), INFINITY);
        assert_values(tern_var(two, 5), INFINITY);
        assert_values(tern_var(two, 1.5), 1);
        assert_values(tern_std(two, -6), 0.25);
        /* whose variances are no numbers of half precision */
        tern_tensor *far = TENSOR(device, TERN_F16, TERN_SHAPE(2), 0, 1024);
        tern_tensor *near = TENSOR(device, TERN_F16, TERN_SHAPE(2), 0, 0x1p-14);
        assert_values(tern_std(far, 0), 512);
        assert_values(tern_std(near, 0), 0x1p-15);
    }
}

static void scalars_have_one_dim_to_name(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_tensor_scalar(TERN_SCALAR(3.0), TERN_F32, device);
        assert_values(tern_sum_dim(x, TERN_DIMS(0), false), 3);
        assert_values(tern_argmax_dim(x, -1, false), 0);
        assert_null(tern_sum_dim(x, TERN_DIMS(1), false));
        assert_error(TERN_ERR_ARGUMENT, "expected to be in range of [-1, 0], but got 1");
    }
}

static void all_and_any(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 3), 1, NAN, -2, 0, 5, 0);
        assert_values(tern_all(x), 0);
        assert_values(tern_any(x), 1);
        assert_values(tern_all_dim(x, 1, false), 1, 0);
        assert_values(tern_any_dim(x, 0, true), 1, 1, 1);
        assert_values(tern_all_dim(tern_isnan(x), 0, false), 0, 0, 0);
    }
}

static void what_can_not_be_reduced_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    tern_tensor *i = tern_zeros(TERN_SHAPE(3), TERN_I64, "cpu");
    assert_null(tern_sum_dim(x, TERN_DIMS(0, -2), false));
    assert_error(TERN_ERR_ARGUMENT, "dim 0 appears multiple times in the list of dims");
    assert_null(tern_sum_dim(x, TERN_DIMS(5), false));
    assert_error(TERN_ERR_ARGUMENT, "expected to be in range of [-2, 1], but got 5");
    assert_null(tern_mean(i));
    assert_error(TERN_ERR_DTYPE, "could not infer output dtype");
    assert_null(tern_std(i, 1));
    assert_error(TERN_ERR_DTYPE, "std and var only support floating point");
    assert_null(tern_argmax(tern_zeros(TERN_SHAPE(2), TERN_BOOL, "cpu")));
    assert_error(TERN_ERR_DTYPE, "tern_argmax: not implemented for bool");
    assert_null(tern_sum_to_size(x, TERN_SHAPE(3, 2)));
    assert_error(TERN_ERR_SHAPE, "size {[3, 2]} is not expandable to size {[2, 3]}.");
    assert_null(tern_sum(NULL));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    tern_values_indices both;
    assert_int_equal(tern_max_dim(NULL, 0, false, &both), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_int_equal(tern_max_dim(x, 0, false, NULL), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "NULL");
}

/* ---- gradients --------------------------------------------------------------------------- */

static tern_tensor *gradient_of(tern_tensor *(*f)(tern_tensor *), tern_tensor *x)
{
    tern_requires_grad_(x, true);
    assert_ok(tern_backward(f(x)));
    return tern_grad(x);
}

static tern_tensor *deviation(tern_tensor *x)
{
    return tern_std(x, 1);
}

static tern_tensor *first_largest(tern_tensor *x)
{
    tern_values_indices both;
    return tern_max_dim(x, 0, false, &both) == TERN_OK ? both.values : NULL;
}

static void ties_share_and_places_take_all(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        assert_values(gradient_of(tern_max, TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 1, 0)), 0.5,
                      0.5, 0);
        assert_values(gradient_of(first_largest, TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, 1, 0)),
                      1, 0, 0);
        assert_values(gradient_of(tern_max, TENSOR(device, TERN_F32, TERN_SHAPE(3), 1, NAN, NAN)),
                      0, 0.5, 0.5);
        assert_values(gradient_of(deviation, tern_ones(TERN_SHAPE(3), TERN_F32, device)), 0, 0, 0);
    }
}

#define CHECKED(NAME, CALL)                                                                        \
    static tern_tensor *NAME(tern_tensor *const *in, void *user)                                   \
    {                                                                                              \
        tern_tensor *x = in[0];                                                                    \
        (void)user;                                                                                \
        return CALL;                                                                               \
    }
CHECKED(sum_middle, tern_sum_dim(x, TERN_DIMS(1), false))
CHECKED(sum_ends, tern_sum_dim(x, TERN_DIMS(0, 2), true))
CHECKED(mean_last, tern_mean_dim(x, TERN_DIMS(-1), false))
CHECKED(mean_all, tern_mean(x))
CHECKED(var_middle, tern_var_dim(x, TERN_DIMS(1), 1, false))
CHECKED(std_all, tern_std(x, 0))
CHECKED(largest_ends, tern_amax(x, TERN_DIMS(0, 2), false))
CHECKED(smallest, tern_min(x))
CHECKED(to_size, tern_sum_to_size(x, TERN_SHAPE(3, 1)))
static tern_tensor *smallest_along(tern_tensor *const *in, void *user)
{
    tern_values_indices both;
    (void)user;
    return tern_min_dim(in[0], 1, true, &both) == TERN_OK ? both.values : NULL;
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    const test_function functions[] = {sum_middle, sum_ends,      mean_last,    mean_all,
                                       var_middle, std_all,       largest_ends, smallest,
                                       to_size,    smallest_along};
    FOR_EACH_DEVICE(device)
    {
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
            tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 4), -2, 2, 3);
            tern_requires_grad_(x, true);
            gradcheck(functions[i], &x, 1, .second = true);
        }
    }
}

/* Sums of -2 to 2 are exact in every order, whatever is left over of the vectors of a row. */
static void rows_of_every_length_are_exact(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    enum { ROWS = 5, MOST = 2100 };
    static float x[ROWS * MOST];
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t t = 0; t < 3; t++)
        for (int n = 1; n <= MOST; n += n < 70 ? 1 : 677)
            TERN_SCOPE {
                float sums[ROWS] = {0}, got[ROWS];
                for (int i = 0; i < ROWS * n; i++) {
                    x[i] = (float)(i * 7 % 5 - 2);
                    sums[i / n] += x[i];
                }
                tern_tensor *z = tern_from_data(x, TERN_SHAPE(ROWS, n), TERN_F32, device);
                tern_tensor *y = tern_sum_dim(tern_to_dtype(z, dtypes[t]), TERN_DIMS(1), false);
                assert_ok(tern_copy_to_host(tern_to_dtype(y, TERN_F32), got, sizeof got));
                for (int r = 0; r < ROWS; r++)
                    if (got[r] != sums[r])
                        fail_msg("row %d of %d on %s: %g, not %g", r, n, device, (double)got[r],
                                 (double)sums[r]);
            }
}

static const struct CMUnitTest tests[] = {
    TEST(rows_of_every_length_are_exact),
    TEST(sums_and_extremes_of_all_shapes),
    TEST(any_dims_of_any_strides),
    TEST(integers_sum_to_int64),
    TEST(nan_and_ties),
    TEST(empty_reductions),
    TEST(scalars_have_one_dim_to_name),
    TEST(all_and_any),
    TEST(what_can_not_be_reduced_is_refused),
    TEST(ties_share_and_places_take_all),
    TEST(gradients_are_the_differences),
};
TEST_MAIN(tests)
