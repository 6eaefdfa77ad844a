/* test_cuda_work.c -- graphs and matrix products of the cuda backend, on the stand-in for NVIDIA's libraries
 * (tests/standin). Nothing here is a result of a GPU. */
#include "again.h"
#include "device/cuda/cuda.h"
#include "heard.h"
#include "support.h"
#include "tensor/tensor.h"

/* ---- graphs ------------------------------------------------------------------------------ */

/* A graph that can't be made leaves nothing behind, and the device goes on. */
static void graphs(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(4), TERN_F32, "cuda:0"), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        TERN_CAPTURE (graph)
            y = tern_exp(x);
        if (tern_last_status() != TERN_OK) {
            assert_error(TERN_ERR_DEVICE, "(999)");
            assert_int_equal(tern_graph_size(graph), 0);
            TERN_CAPTURE (graph)
                y = tern_neg(x);
            assert_no_error();
        }
        tern_status status = tern_graph_replay(graph);
        if (status != TERN_OK) {
            assert_error(TERN_ERR_DEVICE, "cudaGraphLaunch gave");
            assert_ok(tern_graph_replay(graph));
        }
        assert_int_equal(tern_numel(y), 4);
        assert_values(x, 1, 1, 1, 1);
        tern_graph_free(graph);
    }
}

static void a_graph_that_fails_leaves_nothing(void **state)
{
    (void)state;
    static const char *const calls[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture",
                                        "cudaGraphInstantiate", "cudaGraphLaunch"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char plan[96];
        snprintf(plan, sizeof plan, "%s:1:999", calls[i]);
        again("graphs", "TERN_STANDIN_FAIL", plan);
    }
}

/* Additions on a thread of their own; the stand-in's stream holds them until it is waited for. */
static void *add_many(void *user)
{
    TERN_NO_GRAD
        for (int i = 0; i < 5000; i++)
            TERN_SCOPE
                tern_add_(user, tern_ones(TERN_SHAPE(4), TERN_F32, "cuda:0"));
    return NULL;
}

static void what_another_thread_launches_is_not_recorded(void **state)
{
    (void)state;
    TERN_SCOPE {
        pthread_t thread;
        tern_tensor *sum = tern_zeros(TERN_SHAPE(4), TERN_F32, "cuda:0");
        tern_tensor *x = tern_ones(TERN_SHAPE(4), TERN_F32, "cuda:0"), *y = NULL;
        assert_int_equal(pthread_create(&thread, NULL, add_many, sum), 0);
        for (int i = 0; i < 60; i++)
            TERN_SCOPE {
                tern_graph *graph = tern_graph_new("cuda:0");
                TERN_CAPTURE (graph)
                    for (int k = 0; k < 100; k++)
                        y = tern_add(x, x);
                assert_ok(tern_graph_replay(graph));
                assert_values(y, 2, 2, 2, 2);
                tern_graph_free(graph);
            }
        pthread_join(thread, NULL);
        assert_values(sum, 5000, 5000, 5000, 5000);
    }
}

/* ---- products ---------------------------------------------------------------------------- */

static double near_one(void)
{
    tern_tensor *x = tern_full(TERN_SHAPE(1, 1), TERN_SCALAR(1 + 0x1p-12), TERN_F32, "cuda:0");
    return tern_item(tern_matmul(x, tern_ones(TERN_SHAPE(1, 1), TERN_F32, "cuda:0")));
}

/* What cuBLASLt refuses is computed, and told. */
static void refused(void **state)
{
    heard h = {0};
    (void)state;
    tern_on_warning(hear, &h);
    assert_true(near_one() == 1 + 0x1p-12);
    assert_int_equal(h.count, 1);
    assert_non_null(strstr(h.text, "1 x 1 x 1"));
    tern_on_warning(NULL, NULL);
}

static void a_product_that_cublaslt_refuses_is_told(void **state)
{
    (void)state;
    again("refused", "TERN_STANDIN_FAIL", "cublasLtMatmulAlgoGetHeuristic:1:15");
}

/* Eighths, whose sums are exact in any order: all devices agree about what is above zero. */
static tern_tensor *eighths(const char *device, tern_shape shape, double most, uint64_t seed)
{
    tern_tensor *x = test_uniform(device, TERN_F32, shape, -8 * most, 8 * most, seed);
    return tern_to_dtype(tern_mul(tern_round(x), 0.125), TERN_BF16);
}

static void train_layers(const char *device, bool gelu, tern_tensor *got[6])
{
    static const char *const names[] = {"0.weight", "0.bias", "2.weight", "2.bias"};
    tern_linear_options o = {.device = device, .dtype = TERN_BF16};
    tern_gelu_options by_tanh = {.approximate = TERN_APPROXIMATE_TANH};
    tern_module *m = tern_nn_sequential(tern_nn_linear(16, 24, &o),
                                        gelu ? tern_nn_gelu(&by_tanh) : tern_nn_relu(),
                                        tern_nn_linear(24, 8, &o));
    tern_tensor *x =
        tern_requires_grad_(tern_detach(eighths(device, TERN_SHAPE(10, 16), 1, 1)), true);
    for (int i = 0; i < 4; i++) {
        tern_tensor *p = tern_nn_parameter(m, names[i]);
        TERN_NO_GRAD
            tern_copy_(p, eighths(device, tern_shape_of(p), 0.3, (unsigned)i + 2));
    }
    got[0] = tern_nn_forward(m, x);
    assert_ok(tern_backward(tern_sum(tern_mul(got[0], got[0]))));
    got[1] = tern_grad(x);
    for (int i = 0; i < 4; i++)
        got[2 + i] = tern_clone(tern_grad(tern_nn_parameter(m, names[i])));
    tern_nn_free(m);
}

/* Whichever product of two layers and their gradients cuBLASLt refuses, it is computed in another way. */
static void layers(void **state)
{
    (void)state;
    for (int gelu = 0; gelu < 2; gelu++)
        TERN_SCOPE {
            tern_tensor *here[6], *there[6];
            train_layers("cuda:0", gelu, here);
            train_layers("cpu", gelu, there);
            for (int i = 0; i < 6; i++)
                assert_close(tern_to(here[i], "cpu"), there[i], .abs = 0.2, .rel = 5e-2);
        }
}

static void any_product_of_layers_may_be_refused(void **state)
{
    (void)state;
    for (int n = 1; n <= 14; n++) {
        char plan[64];
        snprintf(plan, sizeof plan, "cublasLtMatmulAlgoGetHeuristic:%d:15", n);
        again("layers", "TERN_STANDIN_FAIL", plan);
    }
}

/* What tern's own kernel does not make beside a product is an error that names it. */
static void what_no_product_has_is_named(void **state)
{
    static const struct {
        enum tern_gemm_epilogue epilogue;
        const char *words;
    } cases[] = {
        {TERN_GEMM_NO_EPILOGUE, "cuda:0: cuBLASLt has no BGRADB with this product"},
        {TERN_GEMM_RELU, "cuda:0: cuBLASLt has no RELU_BIAS with this product"},
        {TERN_GEMM_GELU, "cuda:0: cuBLASLt has no GELU_AUX_BIAS with this product"},
        {TERN_GEMM_GELU_GRADIENT, "cuda:0: cuBLASLt has no DGELU_BGRAD with this product"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(64), TERN_F32, "cuda:0");
            const tern_buffer *memory = &x->storage->block->buffer;
            tern_gemm g = {.dtype = TERN_F32, .m = 2, .n = 2, .k = 2, .count = {1, 1}, .alpha = 1};
            g.a = (tern_matrix){
                .buffer = memory, .row = 3, .col = 2}; /* neither is next to another */
            g.b = g.c = (tern_matrix){.buffer = memory, .row = 2, .col = 1};
            g.bias_grad = g.mask = memory;
            g.epilogue = cases[i].epilogue;
            assert_int_equal(tern_launch_gemm(tern_tensor_place(x), &g), TERN_ERR_DEVICE);
            assert_error(TERN_ERR_DEVICE, cases[i].words);
        }
}

/* The stand-in takes no halves whose parts may be added as halves. */
static void products_of_halves_are_added_in_float32(void **state)
{
    heard h = {0};
    (void)state;
    tern_on_warning(hear, &h);
    TERN_SCOPE
        for (int i = 0; i < 2; i++) {
            tern_dtype dtype = i ? TERN_BF16 : TERN_F16;
            tern_tensor *x = tern_ones(TERN_SHAPE(4, 4), dtype, "cuda:0");
            assert_true(tern_item(tern_sum(tern_matmul(x, x))) == 64);
        }
    assert_int_equal(h.count, 0);
    tern_on_warning(NULL, NULL);
}

/* Under autocast the product that makes a weight's gradient, and its bias's, makes it as it is kept, in float32: not rounded
 * to halves on its way, whether the weight is used once, twice, or is an embedding's table too. */
static void gradients_of_cast_weights_are_not_rounded(void **state)
{
    static const tern_dtype types[] = {TERN_BF16, TERN_F16};
    (void)state;
    for (int t = 0; t < 2; t++)
        for (int times = 1; times <= 3; times++)
            TERN_SCOPE {
                const char *device = "cuda:0";
                tern_tensor *w = test_uniform(device, TERN_F32, TERN_SHAPE(96, 64), -1, 1, 1);
                tern_tensor *b = test_uniform(device, TERN_F32, TERN_SHAPE(96), -1, 1, 2);
                tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(80, 64), -1, 1, 3);
                tern_tensor *dy = test_uniform(device, types[t], TERN_SHAPE(80, 96), -1, 1, 4);
                tern_tensor *row = tern_zeros(TERN_SHAPE(1), TERN_I64, device), *y = NULL;
                tern_requires_grad_(w, true);
                tern_requires_grad_(b, true);
                TERN_AUTOCAST (device, types[t]) {
                    tern_tensor *of = times < 3 ? x : tern_add(x, tern_embedding(row, w, NULL));
                    y = tern_linear(of, w, b);
                    if (times == 2)
                        y = tern_add(y, tern_linear(tern_neg(x), w, NULL));
                    x = tern_to_dtype(of, types[t]);
                }
                assert_ok(tern_backward_with(y, &(tern_backward_options){.gradient = dy}));
                tern_tensor *wide = tern_to_dtype(dy, TERN_F32);
                tern_tensor *dw = tern_matmul(tern_t(wide), tern_to_dtype(x, TERN_F32));
                if (times == 2)
                    dw = tern_zeros_like(dw);
                assert_int_equal(tern_dtype_of(tern_grad(w)), TERN_F32);
                assert_close(tern_grad(b), tern_sum_dim(wide, TERN_DIMS(0), false), .abs = 1e-5);
                const int64_t from = times == 3; /* row 0 has the embedding's gradient too */
                assert_close(tern_narrow(tern_grad(w), 0, from, 95), tern_narrow(dw, 0, from, 95),
                             .abs = 1e-5);
            }
}

/* The same shape before and after: what cuBLASLt answered is not mixed up. */
static void tf32_is_a_switch(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = tern_full(TERN_SHAPE(1, 1), TERN_SCALAR(1 + 0x1p-12), TERN_F32, "cuda:0");
        tern_tensor *one = tern_ones(TERN_SHAPE(1, 1), TERN_F32, "cuda:0"), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        assert_true(near_one() == 1 + 0x1p-12);
        assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGH));
        assert_true(near_one() == 1);
        TERN_CAPTURE (graph)
            y = tern_matmul(x, one);
        assert_ok(tern_set_float32_matmul_precision(TERN_MATMUL_PRECISION_HIGHEST));
        assert_true(near_one() == 1 + 0x1p-12);
        assert_ok(tern_graph_replay(graph));
        assert_values(y, 1);
        tern_graph_free(graph);
    }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {TEST(graphs), TEST(refused), TEST(layers)};
    const struct CMUnitTest tests[] = {
        TEST(a_graph_that_fails_leaves_nothing),
        TEST(what_another_thread_launches_is_not_recorded),
        TEST(a_product_that_cublaslt_refuses_is_told),
        TEST(what_no_product_has_is_named),
        TEST(any_product_of_layers_may_be_refused),
        TEST(products_of_halves_are_added_in_float32),
        TEST(gradients_of_cast_weights_are_not_rounded),
        TEST(tf32_is_a_switch),
    };
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
