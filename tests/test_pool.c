/* test_pool.c -- pooling: PyTorch's numbers, ties and NaN, gradients of any order, refusals. */
#include "pattern.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8,                                                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define CALL(NAME, ...)                                                                            \
    static tern_tensor *NAME(tern_tensor *x)                                                       \
    {                                                                                              \
        return __VA_ARGS__;                                                                        \
    }
#define MAX(...)                                                                                   \
    &(tern_max_pool_options)                                                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define AVG(...)                                                                                   \
    &(tern_avg_pool_options)                                                                       \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define STRIDE(...)  .stride = TERN_DIMS(__VA_ARGS__)
#define PADDING(...) .padding = TERN_DIMS(__VA_ARGS__)
CALL(max1, tern_max_pool1d(x, TERN_DIMS(3), MAX(STRIDE(2), PADDING(1))))
CALL(max2, tern_max_pool2d(x, TERN_DIMS(2), NULL))
CALL(max2_ceil, tern_max_pool2d(x, TERN_DIMS(3, 2),
                                MAX(STRIDE(2, 3), PADDING(1, 0), .dilation = TERN_DIMS(1, 2),
                                    .ceil_mode = true)))
CALL(max3, tern_max_pool3d(x, TERN_DIMS(2), MAX(STRIDE(1), PADDING(1))))
CALL(avg1, tern_avg_pool1d(x, TERN_DIMS(3), AVG(STRIDE(2), PADDING(1))))
CALL(avg2, tern_avg_pool2d(x, TERN_DIMS(2, 3), AVG(PADDING(1, 0))))
CALL(avg2_ceil,
     tern_avg_pool2d(x, TERN_DIMS(3),
                     AVG(STRIDE(2), PADDING(1), .ceil_mode = true, .no_count_include_pad = true)))
CALL(avg2_count, tern_avg_pool2d(x, TERN_DIMS(3), AVG(STRIDE(3), PADDING(1), .ceil_mode = true)))
CALL(avg3, tern_avg_pool3d(x, TERN_DIMS(2), AVG(.divisor_override = TERN_SOME(3))))
CALL(adaptive_avg1, tern_adaptive_avg_pool1d(x, TERN_DIMS(3)))
CALL(adaptive_avg2, tern_adaptive_avg_pool2d(x, TERN_DIMS(3, -1)))
CALL(adaptive_avg2_one, tern_adaptive_avg_pool2d(x, TERN_DIMS(1)))
CALL(adaptive_avg3, tern_adaptive_avg_pool3d(x, TERN_DIMS(2, 3, 7)))
CALL(adaptive_max1, tern_adaptive_max_pool1d(x, TERN_DIMS(3)))
CALL(adaptive_max2, tern_adaptive_max_pool2d(x, TERN_DIMS(3, 4)))
CALL(adaptive_max3, tern_adaptive_max_pool3d(x, TERN_DIMS(2, 3, 2)))
CALL(lp1, tern_lp_pool1d(x, 2, TERN_DIMS(3), &(tern_lp_pool_options){STRIDE(2)}))
CALL(lp2, tern_lp_pool2d(x, 3, TERN_DIMS(2, 3), &(tern_lp_pool_options){.ceil_mode = true}))

static const struct {
    const char *name;
    tern_tensor *(*call)(tern_tensor *x);
    tern_shape shape;
    bool linear;
} rows[] = {
    {"max1", max1, S(2, 3, 9), false},
    {"max2", max2, S(2, 3, 6, 8), false},
    {"max2_ceil", max2_ceil, S(1, 2, 7, 9), false},
    {"max3", max3, S(2, 3, 5, 4), false},
    {"avg1", avg1, S(2, 3, 9), true},
    {"avg2", avg2, S(2, 3, 6, 8), true},
    {"avg2_ceil", avg2_ceil, S(1, 2, 7, 8), true},
    {"avg2_count", avg2_count, S(1, 2, 7, 8), true},
    {"avg3", avg3, S(2, 3, 5, 4), true},
    {"adaptive_avg1", adaptive_avg1, S(2, 3, 7), true},
    {"adaptive_avg2", adaptive_avg2, S(2, 3, 7, 5), true},
    {"adaptive_avg2_one", adaptive_avg2_one, S(2, 3, 4, 5), true},
    {"adaptive_avg3", adaptive_avg3, S(2, 3, 4, 5), true},
    {"adaptive_max1", adaptive_max1, S(2, 7), false},
    {"adaptive_max2", adaptive_max2, S(2, 3, 7, 5), false},
    {"adaptive_max3", adaptive_max3, S(2, 3, 4, 5), false},
    {"lp1", lp1, S(2, 3, 9), false},
    {"lp2", lp2, S(1, 2, 5, 6), false},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void assert_golden(test_golden *file, const char *row, const char *part, tern_tensor *x)
{
    test_golden_compare(file, row, part, x, tern_dtype_size(tern_dtype_of(x)) == 2 ? 2e-2 : 2e-5);
}

static void pooling_is_pytorch_s(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    test_golden *file = test_golden_open("pool");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int d = 0; d < (test_thorough(device) ? 4 : 1); d++)
            if (d < 2 || strncmp(rows[i].name, "lp", 2) != 0) /* powers of halves are far off */
                TERN_SCOPE {
                    tern_tensor *x = pattern(device, dtypes[d], rows[i].shape, 7, 31);
                    tern_requires_grad_(x, true);
                    tern_tensor *y = rows[i].call(x);
                    assert_golden(file, rows[i].name, "", y);
                    tern_tensor *weights = pattern(device, dtypes[d], tern_shape_of(y), 3, 5);
                    assert_ok(tern_backward(tern_sum(tern_mul(y, weights))));
                    assert_golden(file, rows[i].name, ".dx", tern_grad(x));
                }
    test_golden_close(file);
}

static tern_tensor *call_row(tern_tensor *const *in, void *user)
{
    int i;
    memcpy(&i, user, sizeof i);
    return rows[i].call(in[0]);
}

static void gradients_of_any_order_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        if (test_thorough(device) || i == 2 || i == 6)
            TERN_SCOPE {
                tern_tensor *x = test_uniform(device, TERN_F64, rows[i].shape, 0.5, 9, 3);
                tern_requires_grad_(x, true);
                gradcheck(call_row, &x, 1, .user = &i, .second = true, .abs = 2e-5);
            }
}

static void the_largest_knows_ties_nan_and_its_place(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("pool");
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_values_indices out;
        tern_tensor *x =
            TENSOR(device, TERN_F32, TERN_SHAPE(1, 6), 2, 2, NAN, 1, -INFINITY, -INFINITY);
        assert_ok(tern_max_pool1d_with_indices(x, TERN_DIMS(2), NULL, &out));
        assert_values(out.values, 2, NAN, -INFINITY);
        assert_values(out.indices, 0, 2, 4);
        tern_requires_grad_(x, true);
        assert_ok(tern_backward(tern_sum(tern_max_pool1d(x, TERN_DIMS(2), NULL))));
        assert_values(tern_grad(x), 1, 0, 1, 0, 1, 0);
        x = pattern(device, TERN_F32, TERN_SHAPE(2, 3, 5, 7), 7, 31);
        assert_ok(tern_max_pool2d_with_indices(x, TERN_DIMS(3), MAX(STRIDE(2), PADDING(1)), &out));
        assert_close(tern_to_dtype(tern_to(out.indices, "cpu"), TERN_F64),
                     test_golden_tensor(file, "places", "cpu"), .abs = 0);
        assert_ok(tern_max_pool2d_with_indices(x, TERN_DIMS(2), NULL, &out));
        tern_tensor *back =
            tern_max_unpool2d(out.values, out.indices, TERN_DIMS(2),
                              &(tern_max_unpool_options){.output_size = TERN_DIMS(5, 7)});
        assert_close(tern_to_dtype(tern_to(back, "cpu"), TERN_F64),
                     test_golden_tensor(file, "unpool", "cpu"), .abs = 0);
    }
    test_golden_close(file);
}

/* Planes of (planes, rows, columns), or (deep) the slices of one volume, by windows of 2 x 2. */
static void check_halving(const char *device, tern_shape shape, tern_dtype dtype, bool deep)
{
    const bool whole = !tern_dtype_is_floating_point(dtype);
    int64_t planes = shape.dims[0], in1 = shape.dims[1], in2 = shape.dims[2];
    float *x = malloc((size_t)(planes * in1 * in2) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < planes * in1 * in2; i++)
        x[i] = !whole && i % 37 == 5 ? NAN : (float)(i * 7919 % 11 % 4);
    tern_tensor *there = tern_to_dtype(tern_from_data(x, shape, TERN_F32, device), dtype);
    tern_values_indices y;
    if (deep)
        assert_ok(
            tern_max_pool3d_with_indices(tern_unsqueeze(there, 0), TERN_DIMS(1, 2, 2), NULL, &y));
    else
        assert_ok(tern_max_pool2d_with_indices(there, TERN_DIMS(2), NULL, &y));
    double *values = test_read(y.values), *at = test_read(y.indices);
    for (int64_t i = 0; i < planes * (in1 / 2) * (in2 / 2); i++) {
        int64_t plane = i / (in1 / 2 * (in2 / 2)), r = i / (in2 / 2) % (in1 / 2);
        int64_t first = 2 * r * in2 + i % (in2 / 2) * 2, best = first;
        const int64_t places[] = {first + 1, first + in2, first + in2 + 1};
        const float *p = x + plane * in1 * in2;
        for (int k = 0; k < 3; k++)
            if (p[places[k]] > p[best] || isnan(p[places[k]]))
                best = places[k];
        assert_int_equal((int64_t)at[i], best + (deep ? plane * in1 * in2 : 0));
        assert_true(isnan(p[best]) ? isnan(values[i]) : values[i] == (double)p[best]);
    }
    free(values);
    free(at);
    free(x);
}

/* Planes whose windows fill them, in one band of rows, several, and too wide a one: values that are often
 * equal, some NaN, against a walk over each window. */
static void windows_of_two_by_two_are_walked_in_order(void **state)
{
    (void)state;
    const tern_shape shapes[] = {S(3, 2, 2), S(2, 5, 10), S(2, 9, 28), S(1, 70, 66), S(1, 4, 600)};
    const tern_dtype dtypes[] = {TERN_F32, TERN_BF16, TERN_F16, TERN_I32, TERN_U8};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 5 : 2); t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int deep = 0; deep < 2; deep++)
                TERN_SCOPE {
                    check_halving(device, shapes[s], dtypes[t], deep);
                }
}

static tern_tensor *unpool(tern_tensor *const *in, void *user)
{
    return tern_max_unpool1d(in[0], user, TERN_DIMS(2), NULL);
}

static void unpooling_has_gradients_and_checks_its_indices(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F64, TERN_SHAPE(2, 3), -1, 1, 1);
        tern_tensor *places = TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 1, 2, 5, 0, 3, 4);
        tern_requires_grad_(x, true);
        gradcheck(unpool, &x, 1, .user = places, .second = true);
        tern_tensor *wrong = TENSOR(device, TERN_I64, TERN_SHAPE(2, 3), 1, 2, 6, 0, 3, 4);
        tern_max_unpool1d(x, wrong, TERN_DIMS(2), NULL);
        tern_synchronize(device);
        assert_error(TERN_ERR_ARGUMENT, "Found an invalid max index: 6 (output volumes are of size "
                                        "6)");
        assert_null(tern_max_unpool1d(x, tern_to_dtype(places, TERN_I32), TERN_DIMS(2), NULL));
        assert_error(TERN_ERR_DTYPE, "should be type int64 but got: int32");
        assert_null(tern_max_unpool1d(x, places, TERN_DIMS(2),
                                      &(tern_max_unpool_options){.output_size = TERN_DIMS(9)}));
        assert_error(TERN_ERR_SHAPE, "must be between 4 and 8");
    }
}

static void integers_have_the_largest_and_a_mean_rounded_towards_zero(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_I64, TERN_I32, TERN_U8};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            double low = dtypes[i] == TERN_U8 ? 0 : -40;
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 7, 6), low, 40, 1);
            x = tern_to_dtype(x, dtypes[i]);
            tern_tensor *wide = tern_to_dtype(x, TERN_F32);
            tern_tensor *y = tern_max_pool2d(wide, TERN_DIMS(3), MAX(PADDING(1)));
            assert_same(tern_max_pool2d(x, TERN_DIMS(3), MAX(PADDING(1))),
                        tern_to_dtype(y, dtypes[i]));
            y = tern_trunc(tern_avg_pool2d(wide, TERN_DIMS(3), AVG(PADDING(1))));
            assert_same(tern_avg_pool2d(x, TERN_DIMS(3), AVG(PADDING(1))),
                        tern_to_dtype(y, dtypes[i]));
        }
}

static void misfits_are_refused_in_pytorch_s_words(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 2, 2, 2), TERN_F32, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(1, 2, 4, 4), TERN_I64, "cpu");
    assert_null(tern_max_pool2d(x, TERN_DIMS(3), NULL));
    assert_error(TERN_ERR_SHAPE, "Given input size: (2x2x2). Calculated output size: (2x0x0). "
                                 "Output size is too small");
    assert_null(tern_max_pool2d(x, TERN_DIMS(0), NULL));
    assert_error(TERN_ERR_ARGUMENT, "kernel size should be greater than zero");
    assert_null(tern_max_pool2d(x, TERN_DIMS(2), MAX(STRIDE(0))));
    assert_error(TERN_ERR_ARGUMENT, "stride should be greater than zero");
    assert_null(tern_avg_pool2d(x, TERN_DIMS(2), AVG(PADDING(2))));
    assert_error(TERN_ERR_ARGUMENT, "pad should be at most half of kernel size, but got pad=2 and "
                                    "kernel_size=2");
    assert_null(tern_avg_pool2d(x, TERN_DIMS(2), AVG(PADDING(-1))));
    assert_error(TERN_ERR_ARGUMENT, "pad must be non-negative, but got pad: -1");
    assert_null(tern_max_pool2d(x, TERN_DIMS(1, 2, 3), NULL));
    assert_error(TERN_ERR_ARGUMENT,
                 "kernel_size must either be a single int, or a tuple of 2 ints");
    assert_null(tern_max_pool1d(x, TERN_DIMS(2), NULL));
    assert_error(TERN_ERR_SHAPE, "Expected 2D or 3D (batch mode) tensor");
    assert_null(tern_adaptive_avg_pool2d(whole, TERN_DIMS(2)));
    assert_error(TERN_ERR_DTYPE, "not implemented for int64");
    assert_null(tern_avg_pool2d(tern_to_dtype(whole, TERN_BOOL), TERN_DIMS(2), NULL));
    assert_error(TERN_ERR_DTYPE, "not implemented for bool");
    assert_null(tern_avg_pool2d(x, TERN_DIMS(2), AVG(.divisor_override = TERN_SOME(0))));
    assert_error(TERN_ERR_ARGUMENT, "divisor must be not zero");
    assert_null(tern_adaptive_avg_pool2d(x, TERN_DIMS(-2)));
    assert_error(TERN_ERR_ARGUMENT, "greater than or equal to 0 but received -2");
    assert_null(tern_adaptive_max_pool2d(NULL, TERN_DIMS(1)));
    assert_error(TERN_ERR_ARGUMENT, "input");
    assert_null(tern_lp_pool2d(x, 0, TERN_DIMS(2), NULL));
    assert_error(TERN_ERR_ARGUMENT, "norm_type must be a non-zero value, but got 0");
    tern_tensor *none = tern_zeros(TERN_SHAPE(0, 2, 4, 4), TERN_F32, "cpu");
    assert_shape(tern_max_pool2d(none, TERN_DIMS(2), NULL), 0, 2, 2, 2);
    assert_shape(tern_adaptive_avg_pool2d(none, TERN_DIMS(1)), 0, 2, 1, 1);
}

static void norms_of_infinite_order_are_the_largest_and_the_least(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 1, 5), 3, -4, 1, 2, -7);
        assert_values(tern_lp_pool1d(x, INFINITY, TERN_DIMS(2), NULL), 4, 2);
        assert_values(tern_lp_pool1d(x, -INFINITY, TERN_DIMS(2), NULL), 3, 1);
        tern_lp_pool_options o = {.ceil_mode = true};
        assert_values(tern_lp_pool1d(x, INFINITY, TERN_DIMS(2), &o), 4, 2, 7);
    }
}

/* Max pools; adaptive: the window is the size of what comes out; wide: a byte does not hold the
 * positions in a window, or a window may have no element. */
static const struct {
    tern_shape shape, window;
    tern_max_pool_options options;
    bool adaptive, last, wide;
} windows[] = {
    {S(2, 3, 9), S(3), .options = {.stride = S(2), .padding = S(1)}},
    {S(3, 11), S(4), .options = {.stride = S(3), .ceil_mode = true}},
    {S(2, 8, 13, 12), S(3, 3), .options = {.stride = S(2), .padding = S(1)}},
    {S(2, 8, 13, 12), S(3, 3), .options = {.stride = S(2), .padding = S(1)}, .last = true},
    {S(2, 8, 12, 12), S(2, 2), .last = false},
    {S(2, 3, 12, 12), S(2, 2), .last = true},
    {S(1, 2, 9, 300), S(3, 2), .options = {.stride = S(1, 5), .padding = S(1), .ceil_mode = true}},
    {S(1, 4, 9, 9), S(5, 5), .options = {.stride = S(1), .padding = S(2)}, .last = true},
    {S(1, 3, 20, 20), S(16, 16), .options = {.stride = S(3), .padding = S(8)}},
    {S(1, 3, 20, 20), S(17, 17), .options = {.stride = S(2)}, .last = true, .wide = true},
    {S(1, 3, 9, 9), S(2, 2), .options = {.stride = S(2), .padding = S(1), .dilation = S(2)},
     .wide = true},
    {S(1, 2, 1), S(2), .options = {.padding = S(1), .dilation = S(2)}, .wide = true},
    {S(2, 3, 5, 6, 7), S(2, 3, 2), .options = {.stride = S(1, 2, 3), .padding = S(1)}},
    {S(2, 7), S(3), .adaptive = true},
    {S(2, 8, 7, 5), S(3, 4), .adaptive = true},
    {S(2, 8, 7, 5), S(3, 5), .adaptive = true, .last = true},
    {S(2, 3, 4, 5), S(2, 3, 2), .adaptive = true},
    {S(1, 2, 40, 40), S(2, 2), .adaptive = true, .wide = true},
};

/* The largest of each window of row i, by the function that gives indices, or that which does not. */
static tern_tensor *largest(size_t i, tern_tensor *x, bool indices)
{
    const tern_shape window = windows[i].window;
    const tern_max_pool_options *o = &windows[i].options;
    const int dims = window.ndim;
    tern_values_indices out = {0};
    if (!indices && windows[i].adaptive)
        return dims == 1   ? tern_adaptive_max_pool1d(x, window)
               : dims == 2 ? tern_adaptive_max_pool2d(x, window)
                           : tern_adaptive_max_pool3d(x, window);
    if (!indices)
        return dims == 1   ? tern_max_pool1d(x, window, o)
               : dims == 2 ? tern_max_pool2d(x, window, o)
                           : tern_max_pool3d(x, window, o);
    if (windows[i].adaptive)
        assert_ok(dims == 1   ? tern_adaptive_max_pool1d_with_indices(x, window, &out)
                  : dims == 2 ? tern_adaptive_max_pool2d_with_indices(x, window, &out)
                              : tern_adaptive_max_pool3d_with_indices(x, window, &out));
    else
        assert_ok(dims == 1   ? tern_max_pool1d_with_indices(x, window, o, &out)
                  : dims == 2 ? tern_max_pool2d_with_indices(x, window, o, &out)
                              : tern_max_pool3d_with_indices(x, window, o, &out));
    assert_int_equal(tern_dtype_of(out.indices), TERN_I64);
    return out.values;
}

/* What backward of the largest reads, as a hook sees it. */
static tern_tensor *note_dtype(tern_tensor *x, void *user)
{
    *(tern_dtype *)user = tern_dtype_of(x);
    return x;
}
static tern_tensor *as_it_is(tern_tensor *x, void *user)
{
    (void)user;
    return x;
}

/* Values, the gradient of x, and that of the gradient by dy, with and without indices. */
static void check_positions(const char *device, size_t i, tern_dtype dtype)
{
    const tern_shape shape = windows[i].shape;
    tern_tensor *results[2][3], *x = test_uniform(device, TERN_F32, shape, -4, 4, 5);
    x = tern_floor(x); /* many are equal */
    x = tern_masked_fill(x, tern_eq_scalar(x, tern_scalar_real(2)), tern_scalar_real(NAN));
    x = tern_masked_fill(x, tern_lt_scalar(x, tern_scalar_real(-2)), tern_scalar_real(-INFINITY));
    x = tern_to_dtype(x, dtype);
    x = windows[i].last ? tern_to_memory_format(x, TERN_CHANNELS_LAST) : x;
    for (int with = 0; with < 2; with++) {
        tern_tensor *leaf = tern_requires_grad_(tern_clone(x), true), *y = NULL;
        tern_dtype saved = TERN_F32;
        TERN_SAVED_TENSORS_HOOKS(note_dtype, as_it_is, &saved)
        y = largest(i, leaf, with);
        assert_int_equal(saved, with || windows[i].wide ? TERN_I64 : TERN_U8);
        results[with][0] = y;
        tern_tensor *dy = test_uniform(device, TERN_F32, tern_shape_of(y), 1, 2, 6);
        dy = tern_requires_grad_(tern_to_dtype(dy, dtype), true);
        for (int order = 1; order < 3; order++) {
            tern_tensor *dx = NULL;
            assert_ok(tern_autograd_grad(
                &y, 1, &leaf, 1, &dx,
                &(tern_autograd_grad_options){
                    .gradients = &dy, .retain_graph = true, .create_graph = order == 2}));
            results[with][order] = dx;
            if (order == 2)
                assert_ok(tern_autograd_grad(&(tern_tensor *){tern_sum(dx)}, 1, &dy, 1,
                                             &results[with][2], NULL));
        }
    }
    for (int k = 0; k < 3; k++)
        assert_same(results[0][k], results[1][k]);
}

/* Without indices a byte says where the largest lies in its window, and nobody can tell. */
static void positions_in_windows_are_as_good_as_places(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
        TERN_SCOPE
            check_positions(device, i, TERN_F32);
        if (i < 5)
            TERN_SCOPE
                check_positions(device, i, TERN_F16);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(pooling_is_pytorch_s),
    TEST(gradients_of_any_order_are_the_differences),
    TEST(the_largest_knows_ties_nan_and_its_place),
    TEST(windows_of_two_by_two_are_walked_in_order),
    TEST(positions_in_windows_are_as_good_as_places),
    TEST(unpooling_has_gradients_and_checks_its_indices),
    TEST(integers_have_the_largest_and_a_mean_rounded_towards_zero),
    TEST(norms_of_infinite_order_are_the_largest_and_the_least),
    TEST(misfits_are_refused_in_pytorch_s_words),
};
TEST_MAIN(tests)
