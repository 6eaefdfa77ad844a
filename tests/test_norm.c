/* test_norm.c -- normalisation over a batch: PyTorch's numbers, running statistics, gradients,
 * modules. */
#include "support.h"
#include "device/device.h"
#include <math.h>
#include <stdio.h>

/* The golden tensor "<name><suffix>" is x. */
static void golden(test_golden *file, const char *name, const char *suffix, const tern_tensor *x)
{
    test_golden_compare(file, name, suffix, x, 1e-11);
}

static tern_tensor *leaf(test_golden *file, const char *name, const char *device)
{
    return tern_requires_grad_(test_golden_tensor(file, name, device), true);
}

/* y and its gradients with respect to x, w and b (NULL: there are none). */
static void golden_all(test_golden *file, const char *name, tern_tensor *y, tern_tensor *const *in)
{
    static const char *const suffixes[] = {".dx", ".dw", ".db"};
    golden(file, name, "", y);
    assert_ok(tern_backward(tern_sum(tern_mul(y, test_golden_weight(y)))));
    for (int i = 0; i < 3; i++)
        if (in[i])
            golden(file, name, suffixes[i], tern_grad(in[i]));
}

static void batch_norm_is_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("norm");
    FOR_EACH_DEVICE(device)
    for (int ndim = 2; ndim <= 5; ndim++)
        TERN_SCOPE {
            char name[32], x_name[32];
            snprintf(name, sizeof name, "batch%d", ndim);
            snprintf(x_name, sizeof x_name, "batch%d.x", ndim);
            tern_tensor *in[] = {leaf(file, x_name, device), leaf(file, "w", device),
                                 leaf(file, "b", device)};
            tern_tensor *mean = test_golden_tensor(file, "mean", device);
            tern_tensor *var = test_golden_tensor(file, "var", device);
            int64_t version = tern_version(mean);
            golden_all(file, name, tern_batch_norm(in[0], mean, var, in[1], in[2], true, 0.3, 1e-3),
                       in);
            golden(file, name, ".mean", mean);
            golden(file, name, ".var", var);
            assert_true(tern_version(mean) > version && tern_version(var) > version);

            strcat(name, ".plain");
            tern_tensor *plain[] = {leaf(file, x_name, device), NULL, NULL};
            golden_all(file, name,
                       tern_batch_norm(plain[0], NULL, NULL, NULL, NULL, true, 0.1, 1e-5), plain);

            snprintf(name, sizeof name, "batch%d.eval", ndim);
            tern_tensor *again[] = {leaf(file, x_name, device), leaf(file, "w", device),
                                    leaf(file, "b", device)};
            mean = test_golden_tensor(file, "mean", device);
            var = test_golden_tensor(file, "var", device);
            golden_all(file, name,
                       tern_batch_norm(again[0], mean, var, again[1], again[2], false, 0.1, 1e-5),
                       again);
            golden(file, "mean", "", mean);
        }
    test_golden_close(file);
}

/* Sizes beyond a tile and a vector, in every type, against f64. */
static void batch_norm_in_every_type_is_that_of_float64(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        for (int flat = 0; flat < 2; flat++)
            TERN_SCOPE {
                tern_shape shape = flat ? TERN_SHAPE(37, 150) : TERN_SHAPE(5, 7, 3, 11);
                tern_tensor *result[2];
                for (int wide = 0; wide < 2; wide++) {
                    const char *on = wide ? "cpu" : device;
                    tern_tensor *narrow = test_uniform(on, dtypes[i], shape, 1, 4, 1);
                    tern_dtype kept = wide ? TERN_F64 : TERN_F32;
                    tern_shape each = TERN_SHAPE(shape.dims[1]);
                    tern_tensor *x = tern_clone(wide ? tern_to_dtype(narrow, TERN_F64) : narrow);
                    tern_tensor *w = test_uniform(on, TERN_F32, each, 0.5, 2, 2);
                    tern_tensor *mean = tern_zeros(each, kept, on);
                    tern_tensor *var = tern_ones(each, kept, on);
                    w = tern_requires_grad_(tern_to_dtype(w, kept), true);
                    tern_requires_grad_(x, true);
                    tern_tensor *y = tern_batch_norm(x, mean, var, w, NULL, true, 0.1, 1e-5);
                    assert_int_equal(tern_dtype_of(y), tern_dtype_of(x));
                    assert_ok(tern_backward(tern_sum(tern_mul(tern_to_dtype(y, kept), y))));
                    tern_tensor *all[] = {y, tern_grad(x), tern_grad(w), mean, var};
                    for (int k = 0; k < 5; k++)
                        all[k] =
                            tern_flatten(tern_to_dtype(tern_to(all[k], "cpu"), TERN_F64), 0, -1);
                    result[wide] = tern_cat(all, 5, 0);
                }
                double bound = i == 0 ? 2e-5 : i == 1 ? 1e-2 : 5e-2;
                assert_close(result[0], result[1], .abs = bound, .rel = bound);
            }
}

/* ---- sizes ------------------------------------------------------------------------------- */

/* Channels whose mean is far beyond their deviation: one, three and many, of a million elements and of few. */
static const struct {
    tern_shape shape;
    double mean;
    tern_dtype dtype;
    int launches
        [2]; /* where channels are cut into parts, there and back: of two dims on every device */
} sizes[] = {
    {{4, {4, 1, 500, 500}}, 1e4, TERN_F32, {2, 2}}, {{2, {1000003, 1}}, 1e4, TERN_F32, {2, 2}},
    {{4, {5, 3, 110, 131}}, 1e4, TERN_F32, {2, 2}}, {{2, {70000, 3}}, 1e4, TERN_F32, {2, 2}},
    {{3, {1, 2048, 49}}, 1e4, TERN_F32, {1, 1}},    {{4, {3, 2, 128, 256}}, 100, TERN_F16, {2, 2}},
    {{4, {3, 2, 128, 256}}, 8, TERN_BF16, {2, 2}},
};

/* The values, the gradients and the running statistics in one tensor of float64 on the cpu; how many launches. */
static tern_tensor *normed(const char *device, int i, tern_dtype dtype, uint64_t *launched)
{
    tern_shape shape = sizes[i].shape, each = TERN_SHAPE(shape.dims[1]);
    tern_dtype wide = dtype == TERN_F64 ? TERN_F64 : TERN_F32;
    tern_tensor *x = test_uniform("cpu", TERN_F32, shape, -1.7320508, 1.7320508, 20);
    tern_tensor *dy = test_uniform("cpu", TERN_F32, shape, -1, 1, 21);
    x = tern_to_dtype(tern_add(x, sizes[i].mean), sizes[i].dtype);
    x = tern_requires_grad_(tern_to(tern_to_dtype(x, dtype), device), true);
    dy = tern_to(tern_to_dtype(tern_to_dtype(dy, sizes[i].dtype), dtype), device);
    tern_tensor *mean = tern_zeros(each, wide, device), *var = tern_zeros(each, wide, device);
    tern_tensor *w = tern_requires_grad_(tern_full(each, TERN_SCALAR(0.75), wide, device), true);
    tern_tensor *b = tern_requires_grad_(tern_full(each, TERN_SCALAR(0.25), wide, device), true);
    uint64_t before = launches(device);
    tern_tensor *y = tern_batch_norm(x, mean, var, w, b, true, 1, 1e-5);
    launched[0] = launches(device) - before;
    assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
    launched[1] = launches(device) - before - launched[0];
    double count = (double)tern_numel(x) / (double)tern_numel(w);
    tern_tensor *all[] = {y,
                          tern_grad(x),
                          tern_div(tern_grad(w), sqrt(count)),
                          tern_div(tern_grad(b), sqrt(count)),
                          tern_sub(mean, sizes[i].mean),
                          var};
    for (int k = 0; k < 6; k++)
        all[k] = tern_flatten(tern_to_dtype(tern_to(all[k], "cpu"), TERN_F64), 0, -1);
    return tern_cat(all, 6, 0);
}

static void a_large_mean_is_taken_away_first(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        TERN_SCOPE {
            bool grouped = tern_place_is_grouped(tern_place_find(device, "test"));
            uint64_t n[2], none[2];
            tern_tensor *y = normed(device, (int)i, sizes[i].dtype, n);
            tern_tensor *again = normed(device, (int)i, sizes[i].dtype, none);
            double bound = sizes[i].dtype == TERN_F32 ? 1.5e-3 /* of the mean, in the last place */
                           : sizes[i].dtype == TERN_F16 ? 4e-3
                                                        : 3e-2;
            assert_same(y, again);
            assert_close(y, normed("cpu", (int)i, TERN_F64, none), .abs = bound);
            bool flat = sizes[i].shape.ndim == 2 && sizes[i].shape.dims[1] > 1;
            for (int back = 0; back < 2; back++)
                assert_int_equal(n[back], grouped || flat ? sizes[i].launches[back] : 1);
        }
}

static tern_tensor *trained(tern_tensor *const *in, void *user)
{
    (void)user;
    return tern_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.1, 1e-2);
}
static tern_tensor *fixed(tern_tensor *const *in, void *user)
{
    tern_tensor *const *running = user;
    return tern_batch_norm(in[0], running[0], running[1], in[1], in[2], false, 0.1, 1e-2);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int flat = 0; flat < 2; flat++)
        TERN_SCOPE {
            tern_shape shape = flat ? TERN_SHAPE(5, 3) : TERN_SHAPE(2, 3, 2, 2);
            tern_tensor *in[] = {test_uniform(device, TERN_F64, shape, -2, 2, 5),
                                 test_uniform(device, TERN_F64, TERN_SHAPE(3), 0.5, 2, 6),
                                 test_uniform(device, TERN_F64, TERN_SHAPE(3), -1, 1, 7)};
            tern_tensor *running[] = {test_uniform(device, TERN_F64, TERN_SHAPE(3), -1, 1, 8),
                                      test_uniform(device, TERN_F64, TERN_SHAPE(3), 0.5, 2, 9)};
            for (int i = 0; i < 3; i++)
                tern_requires_grad_(in[i], true);
            gradcheck(trained, in, 3, .second = true);
            gradcheck(fixed, in, 3, .user = running, .second = true);
        }
}

static void nothing_in_is_nothing_out(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_tensor *x = tern_zeros(TERN_SHAPE(0, 3, 2), TERN_F32, device);
        tern_tensor *w = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        tern_tensor *mean = tern_ones(TERN_SHAPE(3), TERN_F32, device);
        tern_requires_grad_(x, true);
        tern_requires_grad_(w, true);
        tern_tensor *y = tern_batch_norm(x, mean, mean, w, NULL, true, 0.1, 1e-5);
        assert_shape(y, 0, 3, 2);
        assert_ok(tern_backward(tern_sum(y)));
        assert_values(tern_grad(w), 0, 0, 0);
        assert_shape(tern_grad(x), 0, 3, 2);
        assert_values(mean, 1, 1, 1);
    }
}

/* ---- modules ----------------------------------------------------------------------------- */

static void batch_norm_modules_keep_running_statistics(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_batch_norm_options o = {.device = device};
        tern_module *m = tern_nn_batch_norm1d(2, &o);
        o.cumulative = true;
        tern_module *average = tern_nn_batch_norm1d(2, &o);
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 1, 10, 3, 30);
        tern_tensor *z = TENSOR(device, TERN_F32, TERN_SHAPE(2, 2), 5, 0, 7, 0);
        assert_values_close(tern_nn_forward(m, x), 1e-4, -1, -1, 1, 1);
        assert_values_close(tern_nn_buffer(m, "running_mean"), 1e-6, 0.2, 2);
        assert_values_close(tern_nn_buffer(m, "running_var"), 1e-6, 1.1, 20.9);
        tern_nn_forward(average, x);
        tern_nn_forward(average, z);
        assert_values_close(tern_nn_buffer(average, "running_mean"), 1e-6, 4, 10);
        assert_values_close(tern_nn_buffer(average, "running_var"), 1e-6, 2, 100);
        assert_int_equal(tern_item_int(tern_nn_buffer(average, "num_batches_tracked")), 2);
        tern_nn_eval(average);
        assert_values_close(tern_nn_forward(average, z), 1e-4, sqrt(0.5), -1, 3 * sqrt(0.5), -1);
        assert_int_equal(tern_item_int(tern_nn_buffer(average, "num_batches_tracked")), 2);
        tern_nn_free(m);
        tern_nn_free(average);
    }
}

static void batch_norm_without_statistics_or_weights(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = tern_nn_batch_norm2d(
            1, &(tern_batch_norm_options){
                   .no_affine = true, .no_track_running_stats = true, .device = device});
        tern_tensor *x = TENSOR(device, TERN_F32, TERN_SHAPE(1, 1, 1, 2), 1, 3);
        assert_null(tern_nn_parameter(m, "weight"));
        assert_null(tern_nn_buffer(m, "running_mean"));
        assert_int_equal(tern_nn_numel(m), 0);
        assert_values_close(tern_nn_forward(tern_nn_eval(m), x), 1e-4, -1, 1);
        tern_nn_free(m);
    }
}

static void modules_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(
        tern_nn_batch_norm1d(3, NULL),
        tern_nn_batch_norm2d(4, &(tern_batch_norm_options){.cumulative = true, .no_affine = true}),
        tern_nn_batch_norm3d(
            5, &(tern_batch_norm_options){.momentum = TERN_ZERO, .eps = 0.5, .no_bias = true}));
    char *text = tern_nn_to_text(m);
    assert_string_equal(text, "Sequential(\n"
                              "  (0): BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, "
                              "bias=True, track_running_stats=True)\n"
                              "  (1): BatchNorm2d(4, eps=1e-05, momentum=None, affine=False, "
                              "bias=False, track_running_stats=True)\n"
                              "  (2): BatchNorm3d(5, eps=0.5, momentum=0.0, affine=True, "
                              "bias=False, track_running_stats=True)\n"
                              ")");
    tern_free_text(text);
    tern_nn_free(m);
}

/* A module without a bias gives what one whose bias is zero gives, and the same gradients; it has no parameter of that name. */
static void modules_without_a_bias(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int kind = 0; kind < 7; kind++)
        TERN_SCOPE {
            tern_module *m[2];
            tern_tensor *y[2], *dx[2];
            for (int bare = 0; bare < 2; bare++) {
                const tern_batch_norm_options batch = {.no_bias = bare, .device = device};
                const tern_group_norm_options group = {.no_bias = bare, .device = device};
                const tern_instance_norm_options instance = {
                    .affine = true, .no_bias = bare, .device = device};
                m[bare] = kind == 0   ? tern_nn_batch_norm1d(4, &batch)
                          : kind == 1 ? tern_nn_batch_norm2d(4, &batch)
                          : kind == 2 ? tern_nn_batch_norm3d(4, &batch)
                          : kind == 3 ? tern_nn_group_norm(2, 4, &group)
                          : kind == 4 ? tern_nn_instance_norm1d(4, &instance)
                          : kind == 5 ? tern_nn_instance_norm2d(4, &instance)
                                      : tern_nn_instance_norm3d(4, &instance);
                int dims = kind == 0 || kind == 4 ? 3 : kind == 2 || kind == 6 ? 5 : 4;
                tern_shape shape = {dims, {3, 4, 5, 2, 3}};
                tern_tensor *x =
                    tern_requires_grad_(test_uniform(device, TERN_F32, shape, -1, 1, 1), true);
                tern_nn_init_constant_(tern_nn_parameter(m[bare], "weight"), 1.5);
                y[bare] = tern_nn_forward(m[bare], x);
                assert_ok(tern_backward(tern_sum(tern_mul(y[bare], tern_square(y[bare])))));
                dx[bare] = tern_grad(x);
                tern_state_dict *dict = tern_nn_state_dict(m[bare]);
                assert_int_equal(tern_nn_parameter_count(m[bare]), 2 - bare);
                assert_int_equal(tern_state_dict_get(dict, "bias") == NULL, bare);
                tern_state_dict_free(dict);
                y[bare] = tern_add(y[bare], tern_nn_forward(tern_nn_eval(m[bare]), x));
            }
            assert_close(y[1], y[0], .abs = 1e-6);
            assert_close(dx[1], dx[0], .abs = 1e-5);
            assert_close(tern_grad(tern_nn_parameter(m[1], "weight")),
                         tern_grad(tern_nn_parameter(m[0], "weight")), .rel = 1e-5);
            tern_nn_free(m[0]), tern_nn_free(m[1]);
        }
}

/* Counted in the same launch, or by an addition where the counter is of another type; not where it failed. */
static void batches_are_counted(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int dims = 2; dims <= 4; dims++)
        TERN_SCOPE {
            tern_shape shape = {dims, {4, 70, 3, 2}};
            tern_tensor *x = test_uniform(device, TERN_F32, shape, -1, 1, 1);
            tern_tensor *n = tern_zeros(TERN_SHAPE_SCALAR, TERN_I64, device);
            tern_tensor *small = tern_zeros(TERN_SHAPE(1), TERN_I32, device);
            tern_tensor *four = tern_zeros(TERN_SHAPE(4), TERN_F32, device);
            tern_tensor *y = tern_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5);
            uint64_t before = launches(device);
            assert_same(tern_batch_norm_counted(x, NULL, NULL, n, NULL, NULL, 0.1, 1e-5), y);
            assert_int_equal(launches(device) - before, 1);
            tern_batch_norm_counted(x, NULL, NULL, n, NULL, NULL, 0.1, 1e-5);
            assert_int_equal(tern_item_int(n), 2);
            assert_non_null(tern_batch_norm_counted(x, NULL, NULL, small, NULL, NULL, 0.1, 1e-5));
            assert_int_equal(tern_item_int(small), 1);
            assert_null(tern_batch_norm_counted(x, four, NULL, n, NULL, NULL, 0.1, 1e-5));
            assert_error(TERN_ERR_SHAPE, "running_mean should contain 70 elements");
            assert_int_equal(tern_item_int(n), 2);
        }
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(1, 3), TERN_F32, "cpu");
    tern_tensor *three = tern_zeros(TERN_SHAPE(3), TERN_F32, "cpu");
    tern_tensor *four = tern_zeros(TERN_SHAPE(4), TERN_F32, "cpu");
    tern_tensor *wide = tern_zeros(TERN_SHAPE(3), TERN_F64, "cpu");
    tern_tensor *whole = tern_zeros(TERN_SHAPE(2, 3), TERN_I64, "cpu");
    tern_module *m = tern_nn_batch_norm2d(3, NULL);
    assert_null(tern_batch_norm(x, three, three, NULL, NULL, true, 0.1, 1e-5));
    assert_error(TERN_ERR_SHAPE,
                 "Expected more than 1 value per channel when training, got input size [1, 3]");
    assert_null(tern_batch_norm(x, four, three, NULL, NULL, false, 0.1, 1e-5));
    assert_error(TERN_ERR_SHAPE, "running_mean should contain 3 elements not 4");
    assert_null(tern_batch_norm(x, three, three, four, NULL, false, 0.1, 1e-5));
    assert_error(TERN_ERR_SHAPE, "weight should contain 3 elements not 4");
    assert_null(tern_batch_norm(x, NULL, three, NULL, NULL, false, 0.1, 1e-5));
    assert_error(TERN_ERR_ARGUMENT, "running_mean must be defined in evaluation mode");
    assert_null(tern_batch_norm(x, three, three, wide, NULL, false, 0.1, 1e-5));
    assert_error(TERN_ERR_DTYPE, "expected scalar type float32 but found float64");
    assert_null(tern_batch_norm(whole, NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    assert_error(TERN_ERR_DTYPE, "not implemented for int64");
    assert_null(tern_batch_norm(NULL, NULL, NULL, NULL, NULL, true, 0.1, 1e-5));
    assert_error(TERN_ERR_ARGUMENT, "NULL");
    assert_null(tern_nn_forward(m, x));
    assert_error(TERN_ERR_SHAPE, "expected 4D input (got 2D input)");
    assert_int_equal(tern_item_int(tern_nn_buffer(m, "num_batches_tracked")), 0);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(batch_norm_is_pytorch_s),
    TEST(batch_norm_in_every_type_is_that_of_float64),
    TEST(a_large_mean_is_taken_away_first),
    TEST(gradients_are_the_differences),
    TEST(nothing_in_is_nothing_out),
    TEST(batch_norm_modules_keep_running_statistics),
    TEST(batch_norm_without_statistics_or_weights),
    TEST(batches_are_counted),
    TEST(modules_without_a_bias),
    TEST(modules_print_as_in_pytorch),
    TEST(what_does_not_fit_is_refused),
};
TEST_MAIN(tests)
