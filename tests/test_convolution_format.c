/* test_convolution_format.c -- images whose channels lie next to each other: what keeps that, and that values and gradients
 * are those of images in rows. */
#include "convolution_rows.h"
#include "tensor/memory_format.h"
#include <math.h>
#include <stdio.h>

static const conv_row rows[] = {
    {"padded", tern_conv2d, NULL, S(3, 8, 9, 7), S(16, 8, 3, 3), {.padding = S(1)}, {0}},
    {"strided",
     tern_conv2d,
     NULL,
     S(2, 6, 9, 8),
     S(10, 3, 3, 2),
     {S(2, 3), S(1, 2), S(2, 1), .groups = 2},
     {0}},
    {"depth", tern_conv2d, NULL, S(2, 4, 6, 5), S(4, 1, 3, 3), {.padding = S(1), .groups = 4}, {0}},
    {"point", tern_conv2d, NULL, S(4, 5, 3, 4), S(7, 5, 1, 1), {.groups = 1}, {0}},
    {"flat", tern_conv2d, NULL, S(2, 5, 1, 9), S(3, 5, 1, 3), {.groups = 1}, {0}},
    {"three dims",
     tern_conv3d,
     NULL,
     S(1, 3, 4, 5, 6),
     S(8, 3, 2, 3, 2),
     {.stride = S(1, 2, 1), .padding = S(0, 1, 1)},
     {0}},
    {"transposed",
     NULL,
     tern_conv_transpose2d,
     S(2, 6, 5, 4),
     S(6, 3, 3, 3),
     {.stride = S(2), .groups = 2},
     {0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static tern_memory_format last_of(const tern_tensor *x)
{
    return tern_dim(x) == 5 ? TERN_CHANNELS_LAST_3D : TERN_CHANNELS_LAST;
}

/* y and the gradients of x, w and bias; last: bits for x and w. Where neither lies by channels alone, as weights of one
 * tap do not, y lies in rows. */
static void compute(const conv_row *r, const char *device, tern_dtype dtype, int last,
                    tern_tensor *got[4])
{
    tern_tensor *in[] = {test_uniform(device, dtype, r->x, -1, 1, 1),
                         test_uniform(device, dtype, r->w, -1, 1, 2),
                         test_uniform(device, dtype, TERN_SHAPE(channels(r)), -1, 1, 3)};
    for (int i = 0; i < 3; i++) {
        if (last >> i & 1)
            in[i] = tern_detach(tern_to_memory_format(in[i], last_of(in[i])));
        tern_requires_grad_(in[i], true);
    }
    got[0] = call(r, in[0], in[1], in[2]);
    if (tern_is_channels_last(in[0]) || tern_is_channels_last(in[1]))
        assert_true(tern_is_contiguous_format(got[0], last_of(got[0])));
    else
        assert_true(tern_is_contiguous(got[0]));
    tern_tensor *dy = test_uniform(device, dtype, tern_shape_of(got[0]), -1, 1, 4);
    assert_ok(tern_backward(tern_sum(tern_mul(tern_relu(got[0]), dy))));
    for (int i = 0; i < 3; i++)
        got[1 + i] = tern_grad(in[i]);
}

static void convolutions_are_those_of_images_in_rows(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F32, TERN_F64, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < ROWS; i++)
        for (int type = 0; type < 3; type++)
            for (int last = 1; last < 4; last++)
                TERN_SCOPE {
                    tern_tensor *expected[4], *got[4];
                    if (type && (i + last) % 3 && !test_thorough(device))
                        continue;
                    double error = types[type] == TERN_BF16 ? 0.05 : 1e-5;
                    test_tolerance t = {.abs = error, .rel = error};
                    compute(&rows[i], device, types[type], 0, expected);
                    compute(&rows[i], device, types[type], last, got);
                    for (int k = 0; k < 4; k++)
                        test_close(got[k], expected[k], t, rows[i].name, __FILE__, __LINE__);
                }
}

/* As PyTorch: the first input of the result's shape decides. */
static void elementwise_results_keep_the_format(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *rows4 = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5, 3, 4), -1, 1, 1);
        tern_tensor *x = tern_to_memory_format(rows4, TERN_CHANNELS_LAST);
        tern_tensor *bias = test_uniform(device, TERN_F32, TERN_SHAPE(5, 1, 1), -1, 1, 2);
        tern_tensor *other = test_uniform(device, TERN_F32, TERN_SHAPE(2, 5, 3, 4), -1, 1, 3);
        assert_false(tern_is_contiguous(x));
        assert_true(tern_is_contiguous_format(x, TERN_CHANNELS_LAST));
        assert_false(tern_is_contiguous_format(x, TERN_CHANNELS_LAST_3D));
        assert_ptr_equal(tern_to_memory_format(x, TERN_CHANNELS_LAST), x);
        const struct {
            tern_tensor *got, *expected;
            bool last;
        } cases[] = {
            {x, rows4, true},
            {tern_relu(x), tern_relu(rows4), true},
            {tern_exp(tern_mul(x, 2)), tern_exp(tern_mul(rows4, 2)), true},
            {tern_add(x, bias), tern_add(rows4, bias), true},
            {tern_add(bias, x), tern_add(bias, rows4), true},
            {tern_mul(x, other), tern_mul(rows4, other), true},
            {tern_mul(other, x), tern_mul(other, rows4), false},
            {tern_gt(x, other), tern_gt(rows4, other), true},
            {tern_to_dtype(x, TERN_F16), tern_to_dtype(rows4, TERN_F16), true},
            {tern_lerp(x, other, bias), tern_lerp(rows4, other, bias), true},
            {tern_to_memory_format(x, TERN_CONTIGUOUS_FORMAT), rows4, false},
            {tern_clone(x), rows4, false},
        };
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            assert_close(cases[i].got, cases[i].expected, .abs = 0, .rel = 0);
            assert_int_equal(tern_is_contiguous_format(cases[i].got, TERN_CHANNELS_LAST),
                             cases[i].last);
        }
        tern_tensor *written = tern_clone(rows4);
        tern_add_(written, x);
        assert_close(written, tern_mul(rows4, 2), .abs = 0, .rel = 0);
        tern_mul_(x, other);
        assert_true(tern_is_contiguous_format(x, TERN_CHANNELS_LAST));
        assert_close(x, tern_mul(rows4, other), .abs = 0, .rel = 0);
    }
}

static tern_tensor *through_formats(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *y = tern_mul(tern_to_memory_format(in[0], TERN_CHANNELS_LAST), in[0]);
    return tern_conv2d(y, in[1], NULL, NULL);
}

static void gradients_are_the_differences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *in[] = {test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 4, 3), -1, 1, 1),
                             test_uniform(device, TERN_F64, TERN_SHAPE(2, 3, 2, 2), -1, 1, 2)};
        for (int i = 0; i < 2; i++)
            tern_requires_grad_(in[i], true);
        gradcheck(through_formats, in, 2, .second = true);
    }
}

static tern_module *small_network(const char *device)
{
    tern_manual_seed(5);
    tern_set_default_device(device);
    tern_module *model = tern_nn_sequential(
        tern_nn_conv2d(3, 8, TERN_SHAPE(3), &(tern_conv_options){.padding = {1, {1}}}),
        tern_nn_batch_norm2d(8, NULL), tern_nn_relu(), tern_nn_max_pool2d(TERN_SHAPE(2), NULL),
        tern_nn_conv2d(8, 4, TERN_SHAPE(3), NULL), tern_nn_adaptive_avg_pool2d(TERN_SHAPE(1, 1)),
        tern_nn_flatten());
    tern_set_default_device(NULL);
    return model;
}

static void run_network(const char *device, bool last, tern_tensor *got[2])
{
    tern_module *model = small_network(device);
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 12, 12), -1, 1, 6);
    if (last)
        x = tern_detach(tern_to_memory_format(x, TERN_CHANNELS_LAST));
    tern_requires_grad_(x, true);
    got[0] = tern_nn_forward(model, x);
    assert_ok(tern_backward(tern_sum(tern_square(got[0]))));
    got[1] = tern_grad(x);
    tern_nn_free(model);
}

static void a_network_gives_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *expected[2], *got[2];
        run_network(device, false, expected);
        run_network(device, true, got);
        for (int i = 0; i < 2; i++)
            assert_close(got[i], expected[i], .abs = 1e-5, .rel = 1e-4);
    }
}

/* ---- modules ----------------------------------------------------------------------------------- */

/* Of four dims and of five, which no format takes both of; of one and two; and a buffer. */
static tern_module *module_of_images(const char *device)
{
    tern_module *m = tern_nn_module("Images", NULL, NULL);
    tern_manual_seed(5);
    tern_set_default_device(device);
    tern_nn_add(m, "flat", tern_nn_conv2d(3, 8, TERN_SHAPE(3), NULL));
    tern_nn_add(m, "deep", tern_nn_conv3d(2, 4, TERN_SHAPE(2), NULL));
    tern_nn_add(m, "linear", tern_nn_linear(3, 2, NULL));
    tern_nn_add_buffer(m, "seen",
                       tern_reshape(tern_arange(0, 24, 1, TERN_I64, NULL), TERN_SHAPE(1, 4, 3, 2)));
    tern_set_default_device(NULL);
    return m;
}

static const char *const parameters[] = {"flat.weight", "flat.bias", "deep.weight",
                                         "linear.weight"};

static tern_tensor *part(tern_module *m, int i)
{
    return i < 4 ? tern_nn_parameter(m, parameters[i]) : tern_nn_buffer(m, "seen");
}

/* As PyTorch's Module.to: handles, values and gradients stay, and only how they lie is another. */
static void a_module_takes_a_format(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = module_of_images(device), *other = module_of_images(device);
        tern_tensor *before[5];
        for (int i = 0; i < 5; i++)
            before[i] = part(m, i);
        tern_tensor *grad = test_uniform(device, TERN_F32, TERN_SHAPE(8, 3, 3, 3), -1, 1, 1);
        assert_ok(tern_set_grad(before[0], grad));
        static const struct {
            tern_memory_format format;
            int last[5];
        } turns[] = {{TERN_CHANNELS_LAST, {1, 0, 0, 0, 1}},
                     {TERN_CHANNELS_LAST_3D, {1, 0, 1, 0, 1}},
                     {TERN_CONTIGUOUS_FORMAT, {0}}};
        for (int turn = 0; turn < 3; turn++) {
            assert_ptr_equal(tern_nn_to_memory_format(m, turns[turn].format), m);
            for (int i = 0; i < 5; i++) {
                assert_ptr_equal(part(m, i), before[i]);
                assert_int_equal(tern_is_channels_last(before[i]), turns[turn].last[i]);
                assert_int_equal(tern_is_contiguous(before[i]), !turns[turn].last[i]);
                assert_same(before[i], part(other, i));
                assert_int_equal(tern_requires_grad(before[i]), i < 4);
                assert_true(tern_is_leaf(before[i]));
            }
            assert_int_equal(tern_is_channels_last(tern_grad(before[0])), turn < 2);
            assert_same(tern_grad(before[0]), grad);
        }
        assert_null(tern_nn_to_memory_format(m, (tern_memory_format)7));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_to_memory_format: format");
        assert_null(tern_nn_to_memory_format(NULL, TERN_CHANNELS_LAST));
        assert_error(TERN_ERR_ARGUMENT, "tern_nn_to_memory_format");
        tern_nn_free(m);
        tern_nn_free(other);
    }
}

/* Optimizers, which had the weights before, step them as they lie. */
static void a_module_of_a_format_trains_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int adam = 0; adam < 2; adam++)
        TERN_SCOPE {
            double loss[2][4];
            tern_tensor *weight[2];
            for (int last = 0; last < 2; last++) {
                tern_module *m = small_network(device);
                tern_optimizer *o =
                    adam ? tern_optim_adam(m, 0.01, &(tern_adam_options){.eps = 0.01})
                         : tern_optim_sgd(m, 0.002, &(tern_sgd_options){.momentum = 0.9});
                if (last)
                    assert_non_null(tern_nn_to_memory_format(m, TERN_CHANNELS_LAST));
                tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 12, 12), -1, 1, 6);
                for (int step = 0; step < 4; step++) {
                    tern_optim_zero_grad(o);
                    tern_tensor *y = tern_sum(tern_square(tern_nn_forward(m, x)));
                    assert_ok(tern_backward(y));
                    assert_ok(tern_optim_step(o));
                    loss[last][step] = tern_item(y);
                }
                weight[last] = tern_clone(tern_nn_parameter(m, "0.weight"));
                assert_int_equal(tern_is_channels_last(tern_nn_parameter(m, "0.weight")), last);
                tern_optim_free(o);
                tern_nn_free(m);
            }
            assert_true(loss[0][3] < loss[0][0]);
            for (int step = 0; step < 4; step++)
                assert_true(fabs(loss[1][step] - loss[0][step]) < 1e-4);
            assert_close(weight[1], weight[0], .abs = 1e-4, .rel = 1e-4);
        }
}

static void other_dims_are_refused(void **state)
{
    (void)state;
    tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3, 4), TERN_F32, "cpu");
    assert_null(tern_to_memory_format(x, TERN_CHANNELS_LAST));
    assert_error(TERN_ERR_SHAPE, "required rank 4 tensor to use channels_last format");
    assert_null(tern_to_memory_format(x, TERN_CHANNELS_LAST_3D));
    assert_error(TERN_ERR_SHAPE, "required rank 5 tensor");
    assert_null(tern_to_memory_format(x, (tern_memory_format)7));
    assert_error(TERN_ERR_ARGUMENT, "format");
    assert_false(tern_is_contiguous_format(x, TERN_CHANNELS_LAST));
    assert_false(tern_is_contiguous_format(NULL, TERN_CHANNELS_LAST));
    tern_clear_error();
}

static const struct CMUnitTest tests[] = {
    TEST(convolutions_are_those_of_images_in_rows),
    TEST(elementwise_results_keep_the_format),
    TEST(gradients_are_the_differences),
    TEST(a_network_gives_the_same),
    TEST(a_module_takes_a_format),
    TEST(a_module_of_a_format_trains_the_same),
    TEST(other_dims_are_refused),
};
TEST_MAIN(tests)
