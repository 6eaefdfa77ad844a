/* test_cudnn.c -- convolutions through cuDNN, on the stand-in for it (tests/standin/cudnn.c): which
 * ones it is given, which algorithms are taken, its scratch memory, its failures. Nothing here is a
 * result of a GPU. */
#include "cudnn_runs.h"

static long all_runs(void)
{
    long n = 0;
    for (int pass = 0; pass < 3; pass++)
        for (int algorithm = 0; algorithm < 8; algorithm++)
            n += runs(pass, algorithm);
    return n;
}

static void every_dtype_and_rank_goes_through_it(void **state)
{
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_F16, TERN_BF16};
    static const double tolerance[] = {1e-5, 1e-12, 2e-2, 2e-1};
    static const struct {
        tern_shape x, w;
        int64_t groups, dilation;
    } shapes[] = {
        {{3, {2, 4, 9}}, {3, {6, 2, 3}}, 2, 1},
        {{4, {2, 3, 8, 7}}, {4, {4, 3, 3, 2}}, 1, 2},
        {{4, {1, 4, 6, 6}}, {4, {4, 1, 3, 3}}, 4, 1},
        {{5, {1, 2, 5, 4, 6}}, {5, {3, 2, 2, 3, 3}}, 1, 1},
    };
    (void)state;
    tern_backends_cudnn_set_allow_tf32(false);
    for (size_t d = 0; d < 4; d++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            TERN_SCOPE {
                long y = runs(Y, 1), x = runs(X, 0), w = runs(WEIGHT, 3);
                result on_cuda = run("cuda:0", dtypes[d], shapes[i].x, shapes[i].w,
                                     shapes[i].groups, shapes[i].dilation);
                assert_ok(tern_synchronize("cuda:0"));
                assert_int_equal(runs(Y, 1) - y, 1); /* the heuristics' first, not refused */
                assert_int_equal(runs(X, 0) - x, 1);
                assert_int_equal(runs(WEIGHT, 3) - w, 1);
                result on_cpu = run("cpu", dtypes[d], shapes[i].x, shapes[i].w, shapes[i].groups,
                                    shapes[i].dilation);
                test_tolerance t = {.abs = tolerance[d], .rel = tolerance[d]};
                test_close(on_cuda.y, on_cpu.y, t, "y", __FILE__, __LINE__);
                test_close(on_cuda.dx, on_cpu.dx, t, "dx", __FILE__, __LINE__);
                test_close(on_cuda.dw, on_cpu.dw, t, "dw", __FILE__, __LINE__);
                test_close(on_cuda.db, on_cpu.db, t, "db", __FILE__, __LINE__);
            }
}

static void deterministic_algorithms_are_taken_when_asked_for(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_shape x = TERN_SHAPE(2, 3, 8, 7), w = TERN_SHAPE(4, 3, 3, 3);
        for (int on = 0; on < 3; on++) { /* off, on, off: answers are kept apart */
            long free_x = runs(X, 0), fixed_x = runs(X, 1), free_w = runs(WEIGHT, 3),
                 fixed_w = runs(WEIGHT, 1);
            bool fixed = on == 1;
            tern_use_deterministic(fixed);
            run("cuda:0", TERN_F32, x, w, 1, 1);
            tern_use_deterministic(false);
            assert_int_equal(runs(X, 0) - free_x, !fixed);
            assert_int_equal(runs(X, 1) - fixed_x, fixed);
            assert_int_equal(runs(WEIGHT, 3) - free_w, !fixed);
            assert_int_equal(runs(WEIGHT, 1) - fixed_w, fixed);
        }
    }
}

/* 1 + 2^-12 has 12 bits of mantissa, TensorFloat-32 has 10. */
static double near_one(tern_dtype dtype)
{
    tern_tensor *x = tern_full(TERN_SHAPE(1, 1, 1, 1), TERN_SCALAR(1 + 0x1p-12), dtype, "cuda:0");
    return tern_item(
        tern_conv2d(x, tern_ones(TERN_SHAPE(1, 1, 1, 1), dtype, "cuda:0"), NULL, NULL));
}

static void tf32_is_on_as_in_pytorch_and_can_be_off(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_backends_cudnn_set_allow_tf32(true);
        assert_true(tern_backends_cudnn_allows_tf32());
        assert_true(near_one(TERN_F32) == 1);
        assert_true(near_one(TERN_F64) == 1 + 0x1p-12);
        tern_backends_cudnn_set_allow_tf32(false);
        assert_false(tern_backends_cudnn_allows_tf32());
        assert_true(near_one(TERN_F32) == 1 + 0x1p-12);
        long before = all_runs();
        assert_true(tern_backends_cudnn_is_enabled());
        tern_backends_cudnn_set_enabled(false);
        assert_false(tern_backends_cudnn_is_enabled());
        assert_true(near_one(TERN_F32) == 1 + 0x1p-12);
        assert_int_equal(all_runs(), before);
        tern_backends_cudnn_set_enabled(true);
    }
}

/* cuDNN pads both sides alike, and its loads rely on 16 bytes. */
static void what_it_can_not_is_computed_without_it(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *all = test_uniform("cuda:0", TERN_F32, TERN_SHAPE(65), -1, 1, 1);
        tern_tensor *w = test_uniform("cuda:0", TERN_F32, TERN_SHAPE(2, 1, 2, 2), -1, 1, 2);
        tern_tensor *x = tern_view(tern_narrow(all, 0, 1, 64), TERN_SHAPE(1, 1, 8, 8));
        long before = all_runs();
        tern_tensor *y = tern_conv2d(x, w, NULL, NULL);
        assert_int_equal(all_runs(), before);
        assert_close(y, tern_conv2d(tern_to(x, "cpu"), tern_to(w, "cpu"), NULL, NULL), .abs = 1e-6);
        tern_conv_function_options same = {.named_padding = TERN_PADDING_SAME};
        x = tern_view(tern_narrow(all, 0, 0, 64), TERN_SHAPE(1, 1, 8, 8));
        y = tern_conv2d(x, w, NULL, &same);
        assert_int_equal(all_runs(), before);
        assert_close(y, tern_conv2d(tern_to(x, "cpu"), tern_to(w, "cpu"), NULL, &same),
                     .abs = 1e-6);
        tern_conv2d(x, w, NULL, NULL);
        assert_int_equal(all_runs(), before + 1);
    }
}

/* A replay's scratch memory belongs to the graph: tensors made in between keep their values. */
static void a_recorded_step_has_its_own_scratch_memory(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cuda:0", TERN_F32, TERN_SHAPE(2, 3, 8, 7), -1, 1, 1);
        tern_tensor *w = uniform("cuda:0", TERN_F32, TERN_SHAPE(4, 3, 3, 3), 2);
        tern_tensor *y = NULL, *ones[40];
        tern_graph *graph = tern_graph_new("cuda:0");
        long before = runs(Y, 1);
        TERN_CAPTURE (graph) {
            y = tern_keep(tern_conv2d(x, w, NULL, NULL));
            tern_backward(tern_sum(y));
        }
        assert_int_equal(runs(Y, 1) - before, 1);
        for (int i = 0; i < 40; i++) /* of the sizes of scratch memory, and others */
            ones[i] = tern_ones(TERN_SHAPE(4 + 16 * i), TERN_F32, "cuda:0");
        for (int i = 0; i < 2; i++)
            assert_ok(tern_graph_replay(graph));
        for (int i = 0; i < 40; i++)
            assert_true(tern_item(tern_mean(ones[i])) == 1);
        tern_tensor *expected =
            tern_conv2d(tern_to(x, "cpu"), tern_to(tern_detach(w), "cpu"), NULL, NULL);
        assert_close(y, expected, .abs = 1e-5);
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* A replay convolves what is there then: it is on the graph's stream, not the device's. */
static void a_recorded_convolution_is_of_every_replay(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *x = test_uniform("cuda:0", TERN_F32, TERN_SHAPE(1, 2, 5, 5), -1, 1, 1);
        tern_tensor *w = test_uniform("cuda:0", TERN_F32, TERN_SHAPE(2, 2, 3, 3), -1, 1, 2);
        tern_tensor *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        TERN_CAPTURE (graph)
            y = tern_keep(tern_conv2d(x, w, NULL, NULL));
        for (int i = 0; i < 3; i++) {
            assert_non_null(tern_add_scalar_(x, tern_scalar_real(1)));
            assert_ok(tern_graph_replay(graph));
            assert_close(y, tern_conv2d(tern_to(x, "cpu"), tern_to(w, "cpu"), NULL, NULL),
                         .abs = 1e-3, .rel = 1e-3);
        }
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* ---- what is missing or fails ------------------------------------------------------------- */

static void too_old(void **state)
{
    (void)state;
    TERN_SCOPE {
        assert_non_null(strstr(tern_device_notes("cuda"), "libcudnn.so.9 is version 7605"));
        assert_true(near_one(TERN_F32) == 1 + 0x1p-12);
        assert_int_equal(all_runs(), 0);
    }
}

static void an_old_one_is_told_and_left_alone(void **state)
{
    (void)state;
    again("too_old", "TERN_STANDIN_CUDNN", "7605");
}

static void no_start(void **state)
{
    (void)state;
    TERN_SCOPE {
        near_one(TERN_F32);
        assert_error(TERN_ERR_DEVICE, "tern_backends_cudnn_set_enabled(false) goes without it");
        tern_backends_cudnn_set_enabled(false);
        assert_true(near_one(TERN_F32) == 1 + 0x1p-12);
    }
}

static void one_that_does_not_start_can_be_switched_off(void **state)
{
    (void)state;
    again("no_start", "TERN_STANDIN_FAIL", "cudnnCreate:1:1001");
}

/* The first step may be an error; a refusal is none, and a later step works. */
static void steps(void **state)
{
    bool refused = strstr(getenv("TERN_STANDIN_FAIL"), ":3000") != NULL;
    (void)state;
    for (int step = 0; step < 2; step++)
        TERN_SCOPE {
            tern_tensor *x = uniform("cuda:0", TERN_F64, TERN_SHAPE(1, 2, 5, 5), 1);
            tern_tensor *w = uniform("cuda:0", TERN_F64, TERN_SHAPE(2, 2, 3, 3), 2);
            tern_tensor *y = tern_conv2d(x, w, NULL, NULL);
            bool ok = y && tern_backward(tern_sum(y)) == TERN_OK;
            assert_true(ok || (step == 0 && !refused));
            if (!ok)
                assert_error(TERN_ERR_DEVICE, "CUDNN status of the stand-in (4000)");
            else
                assert_close(y,
                             tern_conv2d(tern_to(tern_detach(x), "cpu"),
                                         tern_to(tern_detach(w), "cpu"), NULL, NULL),
                             .abs = 1e-12);
        }
}

static void any_call_may_fail_or_refuse(void **state)
{
    static const char *const calls[] = {"cudnnSetStream",
                                        "cudnnCreateTensorDescriptor",
                                        "cudnnSetTensorNdDescriptor",
                                        "cudnnCreateFilterDescriptor",
                                        "cudnnSetFilterNdDescriptor",
                                        "cudnnCreateConvolutionDescriptor",
                                        "cudnnSetConvolutionNdDescriptor",
                                        "cudnnGetConvolutionForwardAlgorithm_v7",
                                        "cudnnGetConvolutionBackwardDataAlgorithm_v7",
                                        "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
                                        "cudnnConvolutionForward",
                                        "cudnnConvolutionBackwardData",
                                        "cudnnConvolutionBackwardFilter"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int refused = 0; refused < 2; refused++) {
            char plan[96];
            snprintf(plan, sizeof plan, "%s:1:%d", calls[i], refused && i ? 3000 : 4000);
            again("steps", "TERN_STANDIN_FAIL", plan);
        }
}

/* The switch and the mode are asked for when a convolution is recorded, not when the capture ends, chains are done or a replay
 * runs. */
static void a_recorded_convolution_is_what_was_chosen_as_it_was_recorded(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                const tern_dtype dtype = i % 2 ? TERN_F16 : TERN_F32;
                const bool enabled = i / 2 % 3 != 0, measures = i / 2 % 3 == 2;
                tern_tensor *in = test_uniform("cuda:0", dtype, TERN_SHAPE(2, 8, 8, 8), -1, 1, 1),
                            *w = test_uniform("cuda:0", dtype, TERN_SHAPE(8, 8, 3, 3), -1, 1, 2),
                            *y = NULL;
                tern_backends_cudnn_set_enabled(enabled);
                tern_backends_cudnn_set_benchmark(measures);
                tern_tensor *expected = tern_conv2d(in, w, NULL, NULL);
                tern_graph *graph = tern_graph_new_with(
                    "cuda:0", &(tern_graph_options){.check = i >= 6}); /* runs all once more */
                assert_ok(tern_graph_capture_begin(graph));
                TERN_SCOPE
                    y = tern_keep(tern_conv2d(in, w, NULL, NULL));
                tern_backends_cudnn_set_enabled(!enabled);
                tern_backends_cudnn_set_benchmark(!measures);
                const long before = all_runs();
                assert_ok(tern_graph_capture_end(graph));
                assert_ok(tern_graph_replay(graph));
                assert_same(y, expected);
                assert_int_equal(all_runs() > before, enabled);
                tern_backends_cudnn_set_enabled(true);
                tern_backends_cudnn_set_benchmark(false);
                tern_graph_free(graph);
                tern_release(y);
            }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {TEST(too_old), TEST(no_start), TEST(steps)};
    const struct CMUnitTest tests[] = {
        TEST(every_dtype_and_rank_goes_through_it),
        TEST(deterministic_algorithms_are_taken_when_asked_for),
        TEST(tf32_is_on_as_in_pytorch_and_can_be_off),
        TEST(what_it_can_not_is_computed_without_it),
        TEST(a_recorded_step_has_its_own_scratch_memory),
        TEST(a_recorded_convolution_is_of_every_replay),
        TEST(a_recorded_convolution_is_what_was_chosen_as_it_was_recorded),
        TEST(an_old_one_is_told_and_left_alone),
        TEST(one_that_does_not_start_can_be_switched_off),
        TEST(any_call_may_fail_or_refuse),
    };
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
