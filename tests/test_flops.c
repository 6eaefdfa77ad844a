/* test_flops.c -- what a profiler counts of products, forward and on the way back, on every device. */
#include "support.h"

/* A function of up to three inputs; its flops, and those on the way back, where 0 stands for twice as many as forward; and how many
 * more there are where the way back computes again what others keep. */
typedef struct row {
    const char *name;
    tern_tensor *(*run)(tern_tensor *const *in);
    tern_shape in[3];
    double forward, backward, again;
} row;

#define S(...)                                                                                     \
    {                                                                                              \
        sizeof((int64_t[]){__VA_ARGS__}) / 8,                                                      \
        {                                                                                          \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define RUN(NAME, CALL)                                                                            \
    static tern_tensor *NAME(tern_tensor *const *in)                                               \
    {                                                                                              \
        return CALL;                                                                               \
    }

RUN(linear, tern_linear(in[0], in[1], in[2]))
RUN(matmul, tern_matmul(in[0], in[1]))
RUN(turned_left, tern_matmul(tern_t(in[0]), in[1]))
RUN(turned_right, tern_matmul(in[0], tern_t(in[1])))
RUN(turned_both, tern_matmul(tern_t(in[0]), tern_t(in[1])))
RUN(mm, tern_mm(in[0], in[1]))
RUN(bmm, tern_bmm(in[0], in[1]))
RUN(mv, tern_mv(in[0], in[1]))
RUN(inner, tern_inner(in[0], in[1]))
RUN(tensordot, tern_tensordot_n(in[0], in[1], 2))
RUN(einsum, tern_einsum("bij,bkj->bik", in, 2))
RUN(einsum_of_three, tern_einsum("ij,jk,kl->il", in, 3))
RUN(addmm, tern_addmm(in[2], in[0], in[1], 0.5, 2))
RUN(addmm_bias, tern_addmm(in[2], in[0], in[1], 1, 1))
RUN(addmv, tern_addmv(in[2], in[0], in[1], 1, 1))
RUN(baddbmm, tern_baddbmm(in[2], in[0], in[1], 1, 1))
RUN(addbmm, tern_addbmm(in[2], in[0], in[1], 1, 1))

static const tern_conv_function_options wide = {.stride = S(2), .padding = S(1), .groups = 2};
static const tern_conv_transpose_function_options wide_back = {
    .stride = S(2), .padding = S(1), .groups = 2};
RUN(conv1d, tern_conv1d(in[0], in[1], NULL, &wide))
RUN(conv2d, tern_conv2d(in[0], in[1], NULL, NULL))
RUN(conv2d_groups, tern_conv2d(in[0], in[1], in[2], &wide))
RUN(conv2d_last, tern_conv2d(tern_to_memory_format(in[0], TERN_CHANNELS_LAST), in[1], NULL, NULL))
RUN(conv3d, tern_conv3d(in[0], in[1], NULL, &wide))
RUN(conv_transpose1d, tern_conv_transpose1d(in[0], in[1], NULL, &wide_back))
RUN(conv_transpose2d, tern_conv_transpose2d(in[0], in[1], NULL, NULL))
RUN(conv_transpose3d, tern_conv_transpose3d(in[0], in[1], NULL, &wide_back))

RUN(attention, tern_scaled_dot_product_attention(in[0], in[1], in[2], NULL))
RUN(causal_attention,
    tern_scaled_dot_product_attention(
        in[0], in[1], in[2], &(tern_scaled_dot_product_attention_options){.is_causal = true}))

static tern_tensor *recurrent(tern_tensor *const *in, bool bidirectional)
{
    tern_rnn_result r;
    tern_tensor *params[4] = {in[1], in[2], in[1], in[2]};
    tern_status status = tern_gru(
        in[0], NULL, params, bidirectional ? 4 : 2,
        &(tern_rnn_function_options){.no_biases = true, .bidirectional = bidirectional}, &r);
    return status == TERN_OK ? r.output : NULL;
}
static tern_tensor *lstm(tern_tensor *const *in)
{
    tern_rnn_result r;
    tern_status status = tern_lstm(in[0], NULL, NULL, &in[1], 2,
                                   &(tern_rnn_function_options){.no_biases = true}, &r);
    return status == TERN_OK ? r.output : NULL;
}
static tern_tensor *plain_rnn(tern_tensor *const *in)
{
    tern_rnn_result r;
    tern_status status =
        tern_rnn_relu(in[0], NULL, &in[1], 2, &(tern_rnn_function_options){.no_biases = true}, &r);
    return status == TERN_OK ? r.output : NULL;
}
RUN(gru, recurrent(in, false))
RUN(gru_both_ways, recurrent(in, true))

#define PRODUCT(B, N, K, M) (2.0 * (B) * (N) * (K) * (M))
static const row rows[] = {
    {"linear", linear, {S(256, 64), S(32, 64)}, PRODUCT(1, 256, 64, 32), 0, 0},
    {"linear, few rows, bias", linear, {S(2, 3, 5), S(7, 5), S(7)}, PRODUCT(1, 6, 5, 7), 0, 0},
    {"linear, many rows, bias",
     linear,
     {S(300, 40), S(70, 40), S(70)},
     PRODUCT(1, 300, 40, 70),
     0,
     0},
    {"linear of one number", linear, {S(6, 5), S(5)}, PRODUCT(1, 6, 5, 1), 0, 0},
    {"matmul", matmul, {S(4, 5), S(5, 6)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"matmul, x turned", turned_left, {S(5, 4), S(5, 6)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"matmul, y turned", turned_right, {S(4, 5), S(6, 5)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"matmul, both turned", turned_both, {S(5, 4), S(6, 5)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"matmul of batches", matmul, {S(3, 4, 5), S(3, 5, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"matmul, batch and matrix", matmul, {S(3, 4, 5), S(5, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"matmul, matrix and batch", matmul, {S(4, 5), S(3, 5, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"matmul, broadcast", matmul, {S(2, 1, 4, 5), S(3, 5, 6)}, PRODUCT(6, 4, 5, 6), 0, 0},
    {"matmul of vectors", matmul, {S(5), S(5)}, PRODUCT(1, 1, 5, 1), 0, 0},
    {"matmul, matrix and vector", matmul, {S(4, 5), S(5)}, PRODUCT(1, 4, 5, 1), 0, 0},
    {"matmul, vector and matrix", matmul, {S(5), S(5, 6)}, PRODUCT(1, 1, 5, 6), 0, 0},
    {"matmul, batch and vector", matmul, {S(3, 4, 5), S(5)}, PRODUCT(3, 4, 5, 1), 0, 0},
    {"matmul, vector and batch", matmul, {S(5), S(3, 5, 6)}, PRODUCT(3, 1, 5, 6), 0, 0},
    {"mm", mm, {S(4, 5), S(5, 6)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"bmm", bmm, {S(3, 4, 5), S(3, 5, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"mv", mv, {S(4, 5), S(5)}, PRODUCT(1, 4, 5, 1), 0, 0},
    {"inner", inner, {S(4, 5), S(6, 5)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"tensordot", tensordot, {S(4, 5, 2), S(5, 2, 6)}, PRODUCT(1, 4, 10, 6), 0, 0},
    {"einsum", einsum, {S(3, 4, 5), S(3, 6, 5)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"einsum of three",
     einsum_of_three,
     {S(4, 5), S(5, 6), S(6, 7)},
     PRODUCT(1, 4, 5, 6) + PRODUCT(1, 4, 6, 7),
     2 * (PRODUCT(1, 4, 5, 6) + PRODUCT(1, 4, 6, 7)),
     0},
    {"addmm", addmm, {S(4, 5), S(5, 6), S(4, 6)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"addmm of a bias", addmm_bias, {S(4, 5), S(5, 6), S(6)}, PRODUCT(1, 4, 5, 6), 0, 0},
    {"addmv", addmv, {S(4, 5), S(5), S(4)}, PRODUCT(1, 4, 5, 1), 0, 0},
    {"baddbmm", baddbmm, {S(3, 4, 5), S(3, 5, 6), S(3, 4, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"addbmm", addbmm, {S(3, 4, 5), S(3, 5, 6), S(4, 6)}, PRODUCT(3, 4, 5, 6), 0, 0},
    {"conv1d", conv1d, {S(2, 4, 9), S(6, 2, 3)}, 2.0 * (2 * 6 * 5) * (2 * 3), 0, 0},
    {"conv2d", conv2d, {S(2, 3, 8, 8), S(4, 3, 3, 3)}, 2.0 * (2 * 4 * 36) * 27, 0, 0},
    {"conv2d in groups",
     conv2d_groups,
     {S(2, 4, 9, 7), S(6, 2, 3, 3), S(6)},
     2.0 * (2 * 6 * 20) * (2 * 9),
     0,
     0},
    {"conv2d, channels last", conv2d_last, {S(2, 3, 8, 8), S(4, 3, 3, 3)}, 2.0 * 288 * 27, 0, 0},
    {"conv3d", conv3d, {S(1, 4, 5, 5, 5), S(2, 2, 3, 3, 3)}, 2.0 * (2 * 27) * (2 * 27), 0, 0},
    {"conv_transpose1d", conv_transpose1d, {S(2, 4, 9), S(4, 3, 3)}, 2.0 * 72 * (3 * 3), 0, 0},
    {"conv_transpose2d", conv_transpose2d, {S(2, 3, 8, 8), S(3, 4, 3, 3)}, 2.0 * 384 * 36, 0, 0},
    {"conv_transpose3d",
     conv_transpose3d,
     {S(1, 4, 3, 3, 3), S(4, 2, 3, 3, 3)},
     2.0 * 108 * 54,
     0,
     0},
    {"attention",
     attention,
     {S(2, 4, 16, 8), S(2, 4, 12, 8), S(2, 4, 12, 6)},
     PRODUCT(8, 16, 8 + 6, 12),
     2 * PRODUCT(8, 16, 8 + 6, 12),
     PRODUCT(8, 16, 8, 12)},
    {"causal attention", /* counted as a whole, as by PyTorch */
     causal_attention,
     {S(2, 4, 16, 8), S(2, 4, 16, 8), S(2, 4, 16, 8)},
     PRODUCT(8, 16, 8 + 8, 16),
     2 * PRODUCT(8, 16, 8 + 8, 16),
     PRODUCT(8, 16, 8, 16)},
    {"attention of many", /* whose weights are not kept */
     attention,
     {S(1, 1, 1500, 4), S(1, 1, 1500, 4), S(1, 1, 1500, 2)},
     PRODUCT(1, 1500, 4 + 2, 1500),
     PRODUCT(1, 1500, 3 * 4 + 2 * 2, 1500),
     0},
    {"lstm", lstm, {S(3, 2, 4), S(20, 4), S(20, 5)}, 2.0 * 6 * 20 * (4 + 5), 0, 0},
    {"gru", gru, {S(3, 2, 4), S(15, 4), S(15, 5)}, 2.0 * 6 * 15 * (4 + 5), 0, 0},
    {"gru both ways", gru_both_ways, {S(3, 2, 4), S(15, 4), S(15, 5)}, 4.0 * 6 * 15 * 9, 0, 0},
    {"rnn", plain_rnn, {S(3, 2, 4), S(5, 4), S(5, 5)}, 2.0 * 6 * 5 * (4 + 5), 0, 0},
};

static double flops_of(tern_profiler *p, const char *label)
{
    tern_profiler_row found;
    tern_profiler_find(p, label, NULL, &found);
    return found.flops;
}

static void expect(const row *r, const char *device, const char *part, double is, double wanted)
{
    if (is != wanted)
        print_error("%s on %s: %s: %g flops, not %g\n", r->name, device, part, is, wanted);
}

/* Its flops; with `late` the profiler begins before the way back. */
static bool count(const row *r, const char *device, bool late)
{
    tern_tensor *in[3] = {NULL}, *y = NULL;
    tern_profiler *p = tern_profiler_new(NULL);
    for (int i = 0; i < 3 && r->in[i].ndim; i++)
        in[i] = tern_requires_grad_(tern_rand(r->in[i], TERN_F32, device), true);
    if (!late)
        assert_ok(tern_profiler_start(p));
    TERN_PROFILER_LABEL("forward")
    y = r->run(in);
    assert_non_null(y);
    tern_tensor *loss = tern_sum(tern_square(y));
    if (late)
        assert_ok(tern_profiler_start(p));
    TERN_PROFILER_LABEL("backward")
    tern_backward(loss);
    assert_ok(tern_profiler_stop(p));
    double forward = flops_of(p, "forward"), backward = flops_of(p, "backward"),
           wanted = r->backward != 0 ? r->backward : 2 * r->forward;
    tern_profiler_free(p);
    if (!late)
        expect(r, device, "forward", forward, r->forward);
    if (backward == wanted + r->again)
        wanted = backward;
    expect(r, device, "backward", backward, wanted);
    return (late || forward == r->forward) && backward == wanted;
}

static void products_are_counted_both_ways(void **state)
{
    (void)state;
    int wrong = 0;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int late = 0; late < 2; late++)
            TERN_SCOPE
                wrong += !count(&rows[i], device, late);
    assert_int_equal(wrong, 0);
}

/* Two layers with something between, made as one where nobody looks. */
static void pairs_of_layers_are_counted(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int late = 0; late < 2; late++)
        for (int k = 0; k < 3; k++)
            TERN_SCOPE {
                tern_linear_options o = {.device = device};
                tern_module *m = tern_nn_sequential(tern_nn_linear(8, 16, &o),
                                                    k == 0   ? tern_nn_relu()
                                                    : k == 1 ? tern_nn_gelu(NULL)
                                                             : tern_nn_silu(),
                                                    tern_nn_linear(16, 4, &o));
                tern_tensor *x = tern_rand(TERN_SHAPE(10, 8), TERN_F32, device), *y;
                tern_profiler *p = tern_profiler_new(NULL);
                if (!late)
                    assert_ok(tern_profiler_start(p));
                y = tern_sum(tern_nn_forward(m, tern_requires_grad_(x, true)));
                if (late)
                    assert_ok(tern_profiler_start(p));
                TERN_PROFILER_LABEL("backward")
                tern_backward(y);
                assert_ok(tern_profiler_stop(p));
                assert_true(flops_of(p, "backward") ==
                            2 * (PRODUCT(1, 10, 8, 16) + PRODUCT(1, 10, 16, 4)));
                tern_profiler_free(p);
                tern_nn_free(m);
            }
}

/* What is made of others inside is counted once: integers' addmm is a product and a sum. */
static void parts_are_not_counted_again(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *a = tern_ones(TERN_SHAPE(4, 5), TERN_I32, device),
                    *b = tern_ones(TERN_SHAPE(5, 6), TERN_I32, device),
                    *c = tern_ones(TERN_SHAPE(4, 6), TERN_I32, device);
        tern_tensor *x = tern_rand(TERN_SHAPE(3, 8), TERN_F32, device),
                    *codes = tern_ones(TERN_SHAPE(5, 8), TERN_U8, device),
                    *scales = tern_ones(TERN_SHAPE(5, 1), TERN_F32, device);
        tern_profiler *p = tern_profiler_new(NULL);
        assert_ok(tern_profiler_start(p));
        TERN_PROFILER_LABEL("whole")
        tern_addmm(c, a, b, 2, 3);
        TERN_PROFILER_LABEL("packed")
        tern_linear_packed(x, codes, scales, NULL);
        TERN_PROFILER_LABEL("two")
        {
            tern_mm(a, b);
            tern_mm(a, b);
        }
        assert_ok(tern_profiler_stop(p));
        assert_true(flops_of(p, "whole") == PRODUCT(1, 4, 5, 6));
        assert_true(flops_of(p, "packed") == PRODUCT(1, 3, 8, 5));
        assert_true(flops_of(p, "two") == 2 * PRODUCT(1, 4, 5, 6));
        tern_profiler_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(products_are_counted_both_ways),
                                       TEST(pairs_of_layers_are_counted),
                                       TEST(parts_are_not_counted_again)};
    return test_main(tests, sizeof tests / sizeof *tests);
}
