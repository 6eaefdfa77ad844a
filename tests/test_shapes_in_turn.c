/* test_shapes_in_turn.c -- steps of one model by batches of other shapes in turn: what was kept from one shape changes nothing
 * of the next. Each step is compared with one of a copy of the model that has seen no other shape, and with one whose
 * gradients are computed each by itself. */
#include "support.h"
#include <stdio.h>

static tern_module *rows(void)
{
    return tern_nn_sequential(
        tern_nn_linear(12, 32, NULL), tern_nn_relu(), tern_nn_layer_norm(TERN_SHAPE(32), NULL),
        tern_nn_linear(32, 32, NULL), tern_nn_gelu(NULL), tern_nn_linear(32, 5, NULL));
}

static tern_module *images(void)
{
    return tern_nn_sequential(
        tern_nn_conv2d(3, 8, TERN_SHAPE(3), NULL), tern_nn_batch_norm2d(8, NULL), tern_nn_relu(),
        tern_nn_max_pool2d(TERN_SHAPE(2), NULL), tern_nn_conv2d(8, 4, TERN_SHAPE(3), NULL),
        tern_nn_group_norm(2, 4, NULL), tern_nn_adaptive_avg_pool2d(TERN_SHAPE(1)),
        tern_nn_flatten(), tern_nn_linear(4, 5, NULL));
}

static tern_module *sequences(void)
{
    return tern_nn_sequential(
        tern_nn_transformer_encoder_layer(
            16, 2, &(tern_transformer_layer_options){.dropout = TERN_ZERO, .batch_first = true}),
        tern_nn_linear(16, 5, NULL));
}

static const struct {
    const char *name;
    tern_module *(*make)(void);
    int ndim;
    int64_t sizes[6][4];
} models[] = {
    {"rows", rows, 2, {{8, 12}, {1, 12}, {33, 12}, {8, 12}, {2, 12}, {33, 12}}},
    {"images",
     images,
     4,
     {{2, 3, 10, 10}, {1, 3, 13, 9}, {5, 3, 10, 10}, {2, 3, 17, 11}, {2, 3, 10, 10}, {3, 3, 8, 8}}},
    {"sequences",
     sequences,
     3,
     {{2, 7, 16}, {1, 3, 16}, {4, 16, 16}, {2, 7, 16}, {3, 1, 16}, {4, 16, 16}}},
};

/* All gradients of a step, one behind the other, and the result. */
static tern_tensor *step(tern_module *m, tern_tensor *x)
{
    tern_tensor *list[64], *parts[65];
    int64_t n = tern_nn_parameters(m, list, 64);
    assert_ok(tern_nn_zero_grad(m));
    tern_tensor *y = tern_nn_forward(m, x);
    y = tern_reshape(y, TERN_SHAPE(-1, 5));
    tern_tensor *target = tern_remainder_scalar(
        tern_arange(0, (double)tern_size(y, 0), 1, TERN_I64, tern_device(x)), TERN_SCALAR(5));
    assert_ok(tern_backward(tern_cross_entropy(y, target, NULL)));
    parts[0] = tern_flatten(tern_detach(y), 0, -1);
    for (int64_t i = 0; i < n; i++)
        parts[i + 1] = tern_flatten(tern_grad(list[i]), 0, -1);
    return tern_cat(parts, (int)n + 1, 0);
}

static void compare(int k, const char *device)
{
    tern_manual_seed(3);
    tern_module *m = tern_nn_to(models[k].make(), device);
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            tern_tensor *x =
                test_uniform(device, TERN_F32, tern_shape_from(models[k].ndim, models[k].sizes[i]),
                             -1, 1, (uint64_t)i + 9);
            tern_module *fresh = tern_nn_copy(m), *alone = tern_nn_copy(m);
            tern_tensor *got = step(m, x), *want = step(fresh, x), *each = NULL;
            TERN_DETECT_ANOMALY
                each = step(alone, x);
            assert_close(got, want, .abs = 1e-5, .rel = 1e-5);
            assert_close(got, each, .abs = 2e-5, .rel = 1e-4);
            tern_nn_free(fresh);
            tern_nn_free(alone);
            if (i % 2)
                assert_ok(tern_empty_cache(device));
        }
    tern_nn_free(m);
}

static void a_step_does_not_depend_on_the_shapes_before_it(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < (int)(sizeof models / sizeof *models); k++)
        compare(k, device);
}

static const struct CMUnitTest tests[] = {TEST(a_step_does_not_depend_on_the_shapes_before_it)};
TEST_MAIN(tests)
