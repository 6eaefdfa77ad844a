/* test_empty.c -- batches of no rows and writes at no index: there is a graph, and each input and parameter has a
 * gradient of its shape. tests/parity (set edges) has every operation that PyTorch has samples of; here are modules,
 * and operations of which it has none. */
#include "support.h"
#include <stdio.h>

static tern_tensor *leaf(const char *device, tern_shape shape)
{
    return tern_requires_grad_(test_uniform(device, TERN_F32, shape, -1, 1, 1), true);
}

/* x has a gradient, of its shape, without another number than 0 where `zeros`. */
static bool has_gradient(const char *what, tern_tensor *x, bool zeros)
{
    tern_tensor *g = tern_grad(x);
    bool right = g && tern_same_shape(g, x);
    if (right && zeros && tern_numel(g) > 0)
        right = tern_item(tern_sum(tern_abs(g))) == 0;
    if (!right)
        print_error("%s: %s\n", what, g ? "the gradient is another" : "there is no gradient");
    return right;
}

/* ---- modules ------------------------------------------------------------------------------- */

#define NET(...)                                                                                   \
    tern_nn_sequential(tern_nn_linear(4, 4, NULL), __VA_ARGS__, tern_nn_linear(4, 4, NULL))
#define MODULES                                                                                    \
    MODULE(NET(tern_nn_layer_norm(TERN_SHAPE(4), NULL)), 0, 4)                                     \
    MODULE(NET(tern_nn_rms_norm(TERN_SHAPE(4), NULL)), 0, 4)                                       \
    MODULE(NET(tern_nn_group_norm(2, 4, NULL)), 0, 4)                                              \
    MODULE(NET(tern_nn_batch_norm1d(4, NULL)), 0, 4)                                               \
    MODULE(NET(tern_nn_prelu(NULL)), 0, 4)                                                         \
    MODULE(NET(tern_nn_dropout(NULL)), 0, 4)                                                       \
    MODULE(NET(tern_nn_softmax(-1)), 0, 4)                                                         \
    MODULE(NET(tern_nn_gelu(NULL)), 0, 4)                                                          \
    MODULE(NET(tern_nn_layer_norm(TERN_SHAPE(4), NULL)), 2, 0, 4)                                  \
    MODULE(tern_nn_conv1d(4, 2, TERN_DIMS(3), NULL), 0, 4, 5)                                      \
    MODULE(tern_nn_conv2d(4, 2, TERN_DIMS(3, 3), NULL), 0, 4, 5, 5)                                \
    MODULE(tern_nn_conv3d(4, 2, TERN_DIMS(3, 3, 3), NULL), 0, 4, 5, 5, 5)                          \
    MODULE(tern_nn_conv_transpose2d(4, 2, TERN_DIMS(3, 3), NULL), 0, 4, 5, 5)                      \
    MODULE(tern_nn_batch_norm2d(4, NULL), 0, 4, 5, 5)                                              \
    MODULE(tern_nn_group_norm(2, 4, NULL), 0, 4, 5, 5)                                             \
    MODULE(tern_nn_instance_norm2d(4, &(tern_instance_norm_options){.affine = true}), 0, 4, 5, 5)  \
    MODULE(tern_nn_transformer_encoder_layer(4, 2, NULL), 3, 0, 4)                                 \
    MODULE(tern_nn_transformer_encoder_layer(                                                      \
               4, 2, &(tern_transformer_layer_options){.norm_first = true}),                       \
           3, 0, 4)                                                                                \
    MODULE(tern_nn_transformer_encoder(tern_nn_transformer_encoder_layer(4, 2, NULL), 2, NULL), 3, \
           0, 4)                                                                                   \
    MODULE(tern_nn_rnn(4, 3, NULL), 3, 0, 4)                                                       \
    MODULE(tern_nn_lstm(4, 3, NULL), 3, 0, 4)                                                      \
    MODULE(tern_nn_gru(4, 3, NULL), 3, 0, 4)

static tern_status count_missing(const char *path, tern_tensor *p, void *user)
{
    *(int *)user += !has_gradient(path, p, true);
    return TERN_OK;
}

static void modules_of_an_empty_batch_pass_gradients_on(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_DEVICE (device) {
#define MODULE(CONSTRUCTOR, ...)                                                                   \
    TERN_SCOPE {                                                                                   \
        int missing = 0;                                                                           \
        tern_module *m = CONSTRUCTOR;                                                              \
        assert_non_null(m);                                                                        \
        tern_tensor *x = leaf(device, TERN_SHAPE(__VA_ARGS__));                                    \
        assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));                                 \
        missing += !has_gradient("the input", x, true);                                            \
        assert_ok(tern_nn_each_parameter(m, count_missing, &missing));                             \
        tern_nn_free(m);                                                                           \
        if (missing)                                                                               \
            fail_msg("%d without a gradient: %s", missing, #CONSTRUCTOR);                          \
    }
        MODULES
#undef MODULE
    }
}

/* ---- operations ------------------------------------------------------------------------------ */

static tern_tensor *fractional2d(tern_tensor *const *in)
{
    return tern_fractional_max_pool2d(
        in[0], TERN_DIMS(2), &(tern_fractional_max_pool_options){.output_size = TERN_DIMS(2)});
}

static tern_tensor *fractional3d(tern_tensor *const *in)
{
    return tern_fractional_max_pool3d(
        in[0], TERN_DIMS(2), &(tern_fractional_max_pool_options){.output_size = TERN_DIMS(2)});
}

static tern_tensor *rotary(tern_tensor *const *in)
{
    tern_tensor *cos, *sin;
    assert_ok(tern_rotary_tables(5, 4, 0, TERN_F32, tern_device(in[0]), &cos, &sin));
    return tern_rotary_embedding(in[0], cos, sin, NULL);
}

static tern_tensor *attention(tern_tensor *const *in)
{
    return tern_scaled_dot_product_attention(in[0], in[0], in[1], NULL);
}

static tern_tensor *bag(tern_tensor *const *in)
{
    return tern_embedding_bag(tern_zeros(TERN_SHAPE(0), TERN_I64, tern_device(in[0])), in[0],
                              tern_zeros(TERN_SHAPE(2), TERN_I64, tern_device(in[0])), NULL);
}

static tern_tensor *embedding(tern_tensor *const *in)
{
    return tern_embedding(tern_zeros(TERN_SHAPE(0, 3), TERN_I64, tern_device(in[0])), in[0], NULL);
}

static tern_tensor *nuclear(tern_tensor *const *in)
{
    return tern_linalg_matrix_norm(in[0], TERN_MATRIX_NORM_NUC, TERN_DIMS(-2, -1), false);
}

static tern_tensor *nanmedian(tern_tensor *const *in)
{
    return tern_nanmedian(in[0]);
}

static tern_tensor *median(tern_tensor *const *in)
{
    return tern_median(in[0]);
}

static const struct {
    const char *name;
    tern_tensor *(*f)(tern_tensor *const *in);
    tern_shape shape[2];
    int n;
} functions[] = {
    {"fractional_max_pool2d", fractional2d, {{4, {0, 2, 5, 5}}}, 1},
    {"fractional_max_pool3d", fractional3d, {{5, {0, 2, 5, 5, 5}}}, 1},
    {"rotary_embedding", rotary, {{3, {0, 5, 4}}}, 1},
    {"attention of no keys", attention, {{3, {0, 2, 4}}, {3, {0, 2, 4}}}, 2},
    {"embedding_bag of nothing", bag, {{2, {3, 4}}}, 1},
    {"embedding of nothing", embedding, {{2, {3, 4}}}, 1},
    {"nuclear norm", nuclear, {{2, {0, 3}}}, 1},
    {"nanmedian", nanmedian, {{1, {0}}}, 1},
    {"median", median, {{1, {0}}}, 1},
};

static void functions_of_nothing_have_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        TERN_SCOPE {
            tern_tensor *in[2] = {NULL};
            for (int i = 0; i < functions[k].n; i++)
                in[i] = leaf(device, functions[k].shape[i]);
            if (strstr(functions[k].name, "nuclear") && test_pocl_gpu_form(device))
                continue;
            tern_tensor *y = functions[k].f(in);
            if (!y)
                fail_msg("%s: %s", functions[k].name, tern_last_error());
            assert_ok(tern_backward(tern_sum(y)));
            for (int i = 0; i < functions[k].n; i++)
                assert_true(has_gradient(functions[k].name, in[i], true));
        }
}

/* ---- writes at no index ------------------------------------------------------------------------ */

typedef struct written {
    tern_tensor *x, *index, *source, *mask;
} written;

#define WRITES                                                                                     \
    WRITE(tern_index_add(w.x, 0, w.index, w.source, TERN_SCALAR(2)))                               \
    WRITE(tern_index_copy(w.x, 0, w.index, w.source))                                              \
    WRITE(tern_index_put(w.x, &w.index, 1, w.source, false))                                       \
    WRITE(tern_index_put(w.x, &w.index, 1, w.source, true))                                        \
    WRITE(tern_index_put(w.x, &w.mask, 1, w.source, true))                                         \
    WRITE(tern_put(w.x, w.index, tern_flatten(w.source, 0, -1), false))                            \
    WRITE(tern_masked_scatter(w.x, w.mask, w.source))                                              \
    WRITE(tern_index_reduce(w.x, 0, w.index, w.source, TERN_REDUCE_MEAN, true))                    \
    WRITE(tern_scatter(w.x, 0, w.index, w.source, TERN_REDUCE_NONE))                               \
    WRITE(tern_scatter_add(w.x, 0, w.index, w.source))                                             \
    WRITE(tern_scatter_reduce(w.x, 0, w.index, w.source, TERN_REDUCE_AMAX, false))                 \
    WRITE(tern_slice_scatter(w.x, w.source, 0, 1, 1, 1))                                           \
    WRITE(tern_index_add_(w.x, 0, w.index, w.source, TERN_SCALAR(2)))                              \
    WRITE(tern_index_copy_(w.x, 0, w.index, w.source))                                             \
    WRITE(tern_index_put_(w.x, &w.index, 1, w.source, false))                                      \
    WRITE(tern_put_(w.x, w.index, tern_flatten(w.source, 0, -1), false))                           \
    WRITE(tern_masked_scatter_(w.x, w.mask, w.source))                                             \
    WRITE(tern_scatter_(w.x, 0, w.index, w.source, TERN_REDUCE_NONE))                              \
    WRITE(tern_scatter_add_(w.x, 0, w.index, w.source))                                            \
    WRITE(tern_scatter_reduce_(w.x, 0, w.index, w.source, TERN_REDUCE_AMAX, false))

/* The source has elements or none; it comes from a leaf through an operation. */
static void writes_at_no_index_pass_zeros_to_the_source(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
#define WRITE(CALL)                                                                                \
    TERN_SCOPE {                                                                                   \
        tern_tensor *own = leaf(device, TERN_SHAPE(3, 4)), *from = leaf(device, TERN_SHAPE(0, 4)); \
        written w = {.x = tern_add_scalar(own, TERN_SCALAR(1)),                                    \
                     .source = tern_add_scalar(from, TERN_SCALAR(1)),                              \
                     .index = tern_zeros(TERN_SHAPE(0), TERN_I64, device),                         \
                     .mask = tern_zeros(TERN_SHAPE(3), TERN_BOOL, device)};                        \
        if (strstr(#CALL, "masked"))                                                               \
            w.mask = tern_zeros(TERN_SHAPE(3, 4), TERN_BOOL, device);                              \
        tern_tensor *before = tern_detach(tern_clone(w.x)), *y = CALL;                             \
        if (!y)                                                                                    \
            fail_msg("%s: %s", #CALL, tern_last_error());                                          \
        assert_same(tern_detach(y), before);                                                       \
        assert_ok(tern_backward(tern_sum(y)));                                                     \
        assert_true(has_gradient(#CALL, from, true));                                              \
        assert_values(tern_grad(own), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);                         \
    }
        WRITES
#undef WRITE
    }
}

/* Scatters read as much of src as index has: of nothing, nothing. */
static void scatters_at_no_index_leave_the_rest_of_src_alone(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < 3; k++)
        TERN_SCOPE {
            tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(3, 4), -1, 1, 1);
            tern_tensor *src = leaf(device, TERN_SHAPE(2, 4));
            tern_tensor *index = tern_zeros(TERN_SHAPE(0, 4), TERN_I64, device);
            tern_tensor *y = k == 0 ? tern_scatter(x, 0, index, src, TERN_REDUCE_NONE)
                             : k == 1
                                 ? tern_scatter_add(x, 0, index, src)
                                 : tern_scatter_reduce(x, 0, index, src, TERN_REDUCE_PROD, true);
            assert_ok(tern_backward(tern_sum(y)));
            assert_true(has_gradient("src", src, true));
        }
}

static const struct CMUnitTest tests[] = {TEST(modules_of_an_empty_batch_pass_gradients_on),
                                          TEST(functions_of_nothing_have_gradients),
                                          TEST(writes_at_no_index_pass_zeros_to_the_source),
                                          TEST(scatters_at_no_index_leave_the_rest_of_src_alone)};
TEST_MAIN(tests)
