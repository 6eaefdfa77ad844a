/* test_convolution_format.c -- images whose channels lie next to each other: what keeps that, and that values and gradients
 * are those of images in rows. */
#include "convolution_rows.h"
#include "tensor/memory_format.h"
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

static void small_network(const char *device, bool last, tern_tensor *got[2])
{
    tern_manual_seed(5);
    tern_set_default_device(device);
    tern_module *model = tern_nn_sequential(
        tern_nn_conv2d(3, 8, TERN_SHAPE(3), &(tern_conv_options){.padding = {1, {1}}}),
        tern_nn_batch_norm2d(8, NULL), tern_nn_relu(), tern_nn_max_pool2d(TERN_SHAPE(2), NULL),
        tern_nn_conv2d(8, 4, TERN_SHAPE(3), NULL), tern_nn_adaptive_avg_pool2d(TERN_SHAPE(1, 1)),
        tern_nn_flatten());
    tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 3, 12, 12), -1, 1, 6);
    if (last)
        x = tern_detach(tern_to_memory_format(x, TERN_CHANNELS_LAST));
    tern_requires_grad_(x, true);
    got[0] = tern_nn_forward(model, x);
    assert_ok(tern_backward(tern_sum(tern_square(got[0]))));
    got[1] = tern_grad(x);
    tern_nn_free(model);
    tern_set_default_device(NULL);
}

static void a_network_gives_the_same(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *expected[2], *got[2];
        small_network(device, false, expected);
        small_network(device, true, got);
        for (int i = 0; i < 2; i++)
            assert_close(got[i], expected[i], .abs = 1e-5, .rel = 1e-4);
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
    TEST(other_dims_are_refused),
};
TEST_MAIN(tests)
