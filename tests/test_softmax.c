/* test_softmax.c -- softmax, log_softmax and layer norm: PyTorch's numbers, corners, gradients. */
#include "support.h"
#include <math.h>
#include <stdio.h>

/* The golden tensor "<name><suffix>" is x. */
static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, 1e-12);
}

static tern_tensor *leaf(test_golden *file, const char *name, const char *device)
{
    return tern_requires_grad_(test_golden_tensor(file, name, device), true);
}

static void softmax_is_pytorch_s_over_any_dim(void **state)
{
    (void)state;
    static tern_tensor *(*const functions[])(tern_tensor *, int) = {tern_softmax, tern_log_softmax};
    static const char *const names[] = {"softmax", "log_softmax"};
    test_golden *file = test_golden_open("functional");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            char name[32];
            snprintf(name, sizeof name, "%s%d", names[i % 2], i / 2);
            tern_tensor *x = leaf(file, "x", device);
            tern_tensor *y = functions[i % 2](x, i / 2 - 3);
            golden(file, name, "", y);
            assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
            golden(file, name, ".dx", tern_grad(x));
        }
    test_golden_close(file);
}

static void layer_norm_is_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("functional");
    FOR_EACH_DEVICE(device) TERN_SCOPE
    {
        tern_tensor *x = leaf(file, "x", device), *w = leaf(file, "w", device);
        tern_tensor *b = leaf(file, "b", device), *plain = leaf(file, "x", device);
        tern_tensor *y = tern_layer_norm(x, TERN_SHAPE(3, 4), w, b, 1e-3);
        golden(file, "layer_norm", "", y);
        assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
        golden(file, "layer_norm", ".dx", tern_grad(x));
        golden(file, "layer_norm", ".dw", tern_grad(w));
        golden(file, "layer_norm", ".db", tern_grad(b));
        y = tern_layer_norm(plain, TERN_SHAPE(4), NULL, NULL, 1e-3);
        golden(file, "layer_norm_plain", "", y);
        assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
        golden(file, "layer_norm_plain", ".dx", tern_grad(plain));
    }
    test_golden_close(file);
}

static void softmax_at_the_corners(void **state)
{
    (void)state;
    static const struct {
        double x[2], softmax[2], log_softmax[2];
    } rows[] = {
        {{-INFINITY, -INFINITY}, {NAN, NAN}, {NAN, NAN}},
        {{INFINITY, 1}, {NAN, NAN}, {NAN, NAN}},
        {{-INFINITY, 1}, {0, 1}, {-INFINITY, 0}},
        {{NAN, 1}, {NAN, NAN}, {NAN, NAN}},
        {{10000, 0}, {1, 0}, {0, -10000}},
    };
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tern_tensor *x = test_tensor(device, TERN_F32, TERN_SHAPE(1, 2), rows[i].x);
        assert_values(tern_softmax(x, -1), rows[i].softmax[0], rows[i].softmax[1]);
        assert_values(tern_log_softmax(x, 1), rows[i].log_softmax[0], rows[i].log_softmax[1]);
    }
    FOR_EACH_DEVICE(device)
    {
        assert_shape(tern_softmax(tern_zeros(TERN_SHAPE(2, 0), TERN_F32, device), 1), 2, 0);
        assert_values(tern_softmax(tern_ones(TERN_SHAPE_SCALAR, TERN_F32, device), 0), 1);
    }
}

/* Log2(e) times such a number is infinite in float32. A row's largest stands at `most`, where another is as large, before and
 * after what is kept of it. */
static void halves_near_the_end_of_their_range(void **state)
{
    (void)state;
    static const struct {
        double most, rest, at_most;
        tern_dtype dtype;
    } rows[] = {
        {3.3e38, 3.2e38, 0.5, TERN_BF16}, {3.3e38, -3.3e38, 0.5, TERN_BF16},
        {-2e38, -3e38, 0.5, TERN_BF16},   {1.01e38, 0.98e38, 0.5, TERN_BF16},
        {1, -3e38, 0.5, TERN_BF16},       {3e38, -INFINITY, 0.5, TERN_BF16},
        {INFINITY, 3e38, NAN, TERN_BF16}, {-3e38, NAN, NAN, TERN_BF16},
        {65504, 65000, 0.5, TERN_F16},    {-60000, -65504, 0.5, TERN_F16},
        {1000, -INFINITY, 0.5, TERN_F16},
    };
    static const int64_t lengths[] = {3, 255, 1500, 20000};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            TERN_SCOPE {
                int64_t n = lengths[l];
                tern_tensor *x = tern_full(TERN_SHAPE(1, n), rows[i].rest, rows[i].dtype, device);
                tern_fill_(tern_narrow(x, 1, n / 2, 1), rows[i].most);
                tern_fill_(tern_narrow(x, 1, n - 1, 1), rows[i].most);
                tern_tensor *y = tern_to_dtype(tern_softmax(x, 1), TERN_F32);
                assert_values_close(tern_narrow(y, 1, n - 1, 1), 1e-3, rows[i].at_most);
                assert_values_close(tern_narrow(y, 1, 0, 1), 1e-3, 0 * rows[i].at_most);
            }
}

/* Far from 0 a power's base is rounded by as much as a loss may be wrong. */
static void losses_of_large_halves(void **state)
{
    (void)state;
    static const int64_t classes[] = {200, 3000};
    static const double most[] = {1001, -999, 30000};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            if (test_compiles_cpp(device))
                continue; /* short_rows has these programs compiled */
            const int64_t n = classes[i / 3];
            tern_tensor *x = tern_full(TERN_SHAPE(1, n), most[i % 3], TERN_F16, device);
            tern_requires_grad_(x, true);
            tern_tensor *loss =
                tern_cross_entropy(x, tern_zeros(TERN_SHAPE(1), TERN_I64, device), NULL);
            assert_values_close(tern_to_dtype(loss, TERN_F32), 4e-3, log((double)n));
            assert_ok(tern_backward(loss));
            tern_tensor *dx = tern_to_dtype(tern_grad(x), TERN_F32);
            assert_values_close(tern_mul(tern_narrow(dx, 1, n - 1, 1), (double)n), 4e-3, 1);
        }
}

static void long_rows_sum_to_one(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++) {
        if (!test_has(device, dtypes[i]))
            continue;
        tern_tensor *x = test_uniform(device, dtypes[i], TERN_SHAPE(3, 2500), -8, 8, 4);
        tern_tensor *y = tern_to_dtype(tern_to(tern_softmax(x, 1), "cpu"), TERN_F64);
        tern_tensor *sum = tern_sum_dim(y, TERN_DIMS(1), false);
        assert_values_close(sum, i < 2 ? 1e-5 : 5e-3, 1, 1, 1);
    }
}

/* Rows of every length around those of registers and of what is kept of a row, against float64. */
static void rows_of_every_length(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    static const double near[] = {1e-6, 1e-3, 8e-3};
    static const int64_t lengths[] = {1,  2,  7,   15,  16,  17,   31,  40,
                                      64, 65, 255, 256, 257, 2047, 2048};
    FOR_EACH_DEVICE(device)
    for (int d = 0; d < (test_compiles_cpp(device) ? 2 : 3); d++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            TERN_SCOPE {
                tern_shape shape = TERN_SHAPE(3, lengths[i]);
                tern_tensor *x = test_uniform(device, dtypes[d], shape, -9, 9, i);
                tern_tensor *y = tern_to_dtype(tern_to(tern_softmax(x, 1), "cpu"), TERN_F64);
                x = tern_to_dtype(tern_to(x, "cpu"), TERN_F64);
                assert_close(y, tern_softmax(x, 1), .abs = near[d], .rel = near[d]);
            }
}

/* Enough rows for several parts of the sums over rows. */
static void layer_norm_of_many_rows(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *wide[3], *fine[3];
        for (int d = 0; d < 2; d++) {
            tern_tensor **grads = d ? fine : wide;
            tern_dtype dtype = d ? TERN_F64 : TERN_F32;
            tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(1000, 300), -1, 3, 1);
            tern_tensor *w = test_uniform(device, dtype, TERN_SHAPE(300), 0, 2, 2);
            tern_tensor *b = test_uniform(device, dtype, TERN_SHAPE(300), -1, 1, 3);
            tern_tensor *const all[] = {x, w, b};
            for (int i = 0; i < 3; i++)
                tern_requires_grad_(all[i], true);
            tern_tensor *y = tern_layer_norm(x, TERN_SHAPE(300), w, b, 1e-5);
            assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
            for (int i = 0; i < 3; i++)
                grads[i] = tern_to_dtype(tern_grad(all[i]), TERN_F32);
        }
        for (int i = 0; i < 3; i++)
            assert_close(wide[i], fine[i], .abs = 2e-3, .rel = 1e-4);
    }
}

static tern_tensor *softmax_first(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_softmax(in[0], 0);
}
static tern_tensor *log_softmax_last(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_log_softmax(in[0], -1);
}
static tern_tensor *norm(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_layer_norm(in[0], TERN_SHAPE(4), in[1], in[2], 1e-2);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *in[] = {test_uniform(device, TERN_F64, TERN_SHAPE(3, 4), -2, 2, 5),
                             test_uniform(device, TERN_F64, TERN_SHAPE(4), 0.5, 2, 6),
                             test_uniform(device, TERN_F64, TERN_SHAPE(4), -1, 1, 7)};
        for (int i = 0; i < 3; i++)
            tern_requires_grad_(in[i], true);
        gradcheck(softmax_first, in, 1, .second = true);
        gradcheck(log_softmax_last, in, 1, .second = true);
        gradcheck(norm, in, 3, .second = true);
    }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3), TERN_F32, "cpu");
    tern_tensor *four = tern_zeros(TERN_SHAPE(4), TERN_F32, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(3), TERN_I64, "cpu");
    assert_null(tern_softmax(whole, 0));
    assert_error(TERN_ERR_DTYPE, "tern_softmax: not implemented for int64");
    assert_null(tern_log_softmax(x, 2));
    assert_error(TERN_ERR_ARGUMENT, "expected to be in range of [-2, 1], but got 2");
    assert_null(tern_softmax(NULL, 0));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_null(tern_layer_norm(x, TERN_SHAPE(4), NULL, NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE,
                 "Given normalized_shape=[4], expected input with shape [*, 4], but got "
                 "input of size[2, 3]");
    assert_null(tern_layer_norm(x, TERN_SHAPE(3), four, NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE,
                 "Expected weight to be of same shape as normalized_shape, but got weight "
                 "of shape [4] and normalized_shape = [3]");
    assert_null(tern_layer_norm(x, TERN_SHAPE_SCALAR, NULL, NULL, 1e-5));
    assert_error(TERN_ERR_SHAPE, "Expected normalized_shape to be at least 1-dimensional");
    assert_null(tern_layer_norm(whole, TERN_SHAPE(3), NULL, NULL, 1e-5));
    assert_error(TERN_ERR_DTYPE, "not implemented for int64");
}

static const struct CMUnitTest tests[] = {
    TEST(softmax_is_pytorch_s_over_any_dim),
    TEST(layer_norm_is_pytorch_s),
    TEST(softmax_at_the_corners),
    TEST(halves_near_the_end_of_their_range),
    TEST(losses_of_large_halves),
    TEST(long_rows_sum_to_one),
    TEST(rows_of_every_length),
    TEST(layer_norm_of_many_rows),
    TEST(gradients_are_the_differences),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
