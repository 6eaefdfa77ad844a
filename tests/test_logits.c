/* test_logits.c -- cross entropy of logits that are a training step's largest tensor: rows that begin where the device wants them
 * are read as they lie, and the gradient is written over logits that nobody holds any more. */
#include "ops/loss/cross_entropy.h"
#include "support.h"
#include <math.h>
#include <tern/autograd.h>
#include <tern/graph.h>

enum { ROWS = 35, CLASSES = 5027, LARGE = 1 << 19 }; /* bytes, fewer than ROWS of float32 */

static tern_tensor *targets(const char *device, int64_t rows, int64_t classes)
{
    tern_tensor *t = tern_arange(0, (double)rows, 1, TERN_I64, device);
    return tern_remainder_scalar(tern_mul_scalar(t, TERN_SCALAR(7919)), TERN_SCALAR(classes));
}

static tern_tensor *gradient_of(tern_tensor *x, tern_tensor *target,
                                const tern_cross_entropy_options *o, tern_tensor **loss)
{
    tern_tensor *g = NULL, *sum;
    *loss = tern_cross_entropy(x, target, o);
    sum = tern_sum(*loss);
    assert_ok(tern_autograd_grad(&sum, 1, &x, 1, &g, NULL));
    return g;
}

static void rows_that_lie_apart_are_read_as_they_are(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F64, TERN_BF16, TERN_F16};
    static const tern_reduction reductions[] = {TERN_REDUCTION_MEAN, TERN_REDUCTION_SUM,
                                                TERN_REDUCTION_NONE};
    static const struct {
        int64_t rows, width, first, classes;
    } shapes[] = {{5, 16, 0, 10}, {5, 16, 3, 10}, {300, 264, 0, 257}, {40, 1100, 0, 1003}};
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < 4 * 3 * 4; i++)
        TERN_SCOPE {
            const size_t k = i % 4;
            tern_tensor *all =
                test_uniform(device, dtypes[i / 4 % 4], TERN_SHAPE(shapes[k].rows, shapes[k].width),
                             -4, 4, i + 1);
            tern_tensor *apart = tern_requires_grad_(
                tern_detach(tern_narrow(all, 1, shapes[k].first, shapes[k].classes)), true);
            tern_tensor *dense = tern_requires_grad_(tern_detach(tern_contiguous(apart)), true);
            tern_tensor *target = targets(device, shapes[k].rows, shapes[k].classes);
            tern_cross_entropy_options o = {.reduction = reductions[i / 16],
                                            .label_smoothing = k & 1 ? 0.1 : 0};
            if (k == 1)
                o.weight = tern_narrow(tern_select(tern_abs(all), 0, 1), 0, 0, shapes[k].classes);
            if (k < 2)
                o.ignore_index = TERN_SOME(7919 % shapes[k].classes);
            tern_tensor *loss[2], *g[2] = {gradient_of(apart, target, &o, &loss[0]),
                                           gradient_of(dense, target, &o, &loss[1])};
            assert_true(tern_equal(loss[0], loss[1]));
            assert_close(g[0], g[1], .abs = 1e-6, .ulp = 1);
        }
}

/* Logits as a model's last layer makes them, in a scope of their own with the loss. */
static tern_tensor *loss_of(tern_tensor *leaf, tern_tensor *target, tern_tensor **logits)
{
    tern_tensor *loss = NULL;
    TERN_SCOPE {
        tern_tensor *x = tern_mul_scalar(leaf, TERN_SCALAR(2));
        x = tern_reshape(x, TERN_SHAPE(ROWS, CLASSES));
        loss = tern_escape(tern_cross_entropy(x, target, NULL));
        if (logits)
            *logits = tern_keep(x);
    }
    return loss;
}

/* The most that was allocated beyond what there was before, in logits. */
static double peak_of_backward(const char *device, tern_tensor *loss, bool retain)
{
    tern_memory_stats stats;
    tern_synchronize(device);
    tern_reset_peak_memory_stats(device);
    assert_ok(tern_memory_get_stats(device, &stats));
    const double before = (double)stats.allocated;
    assert_ok(tern_backward_with(loss, &(tern_backward_options){.retain_graph = retain}));
    assert_ok(tern_memory_get_stats(device, &stats));
    return ((double)stats.allocated_peak - before) / (4.0 * ROWS * CLASSES);
}

static void the_gradient_of_logits_that_nobody_holds_is_written_over_them(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *leaf = test_uniform(device, TERN_F32, TERN_SHAPE(ROWS * CLASSES), -2, 2, 3);
        tern_tensor *target = targets(device, ROWS, CLASSES), *logits = NULL, *want;
        tern_requires_grad_(leaf, true);
        /* held: the logits are what they were, and the gradient has its own memory */
        tern_tensor *loss = loss_of(leaf, target, &logits);
        const double held = peak_of_backward(device, loss, false);
        assert_true(held > 1.9);
        want = tern_keep(tern_grad(leaf));
        tern_tensor *again = tern_reshape(tern_mul_scalar(tern_detach(leaf), TERN_SCALAR(2)),
                                          TERN_SHAPE(ROWS, CLASSES));
        assert_true(tern_equal(logits, again));
        tern_release(logits);
        assert_ok(tern_set_grad(leaf, NULL));
        /* a graph that is kept: a second pass finds what the first one found */
        loss = loss_of(leaf, target, NULL);
        for (int i = 0; i < 2; i++) {
            assert_true(peak_of_backward(device, loss, true) > 1.9);
            assert_true(tern_equal(tern_grad(leaf), want));
            assert_ok(tern_set_grad(leaf, NULL));
        }
        /* held by the graph alone */
        loss = loss_of(leaf, target, NULL);
        const double alone = peak_of_backward(device, loss, false);
        if (!(alone < 1.1))
            fail_msg("backward takes %.3f times the logits", alone);
        assert_true(tern_equal(tern_grad(leaf), want));
        tern_release(want);
    }
}

/* Logits that were there before the recording: its replays read them, and so do those of another. */
static void logits_that_a_recording_reads_stay(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int recorded = 0; recorded < 2; recorded++)
        TERN_SCOPE {
            tern_tensor *leaf = test_uniform(device, TERN_F32, TERN_SHAPE(64, 100), -2, 2, 3);
            tern_tensor *target = targets(device, 64, 100), *loss[2], *sum = NULL, *want;
            const tern_cross_entropy_options weighted = {
                .weight = test_uniform(device, TERN_F32, TERN_SHAPE(100), 1, 2, 4)};
            tern_graph *graph = tern_graph_new(device);
            tern_requires_grad_(leaf, true);
            TERN_SCOPE {
                for (int i = 0; i < 2; i++) {
                    tern_tensor *x = tern_mul_scalar(leaf, TERN_SCALAR(2));
                    loss[i] = tern_escape(tern_cross_entropy(x, target, &weighted));
                    if (i == 0 || recorded)
                        continue;
                    assert_ok(tern_graph_capture_begin(graph));
                    sum = tern_keep(tern_sum(tern_detach(x)));
                    assert_ok(tern_graph_capture_end(graph));
                }
            }
            assert_ok(tern_backward(loss[0]));
            want = tern_grad(leaf);
            tern_keep(want);
            assert_ok(tern_set_grad(leaf, NULL));
            if (recorded)
                assert_ok(tern_graph_capture_begin(graph));
            assert_ok(tern_backward(loss[1]));
            if (recorded)
                assert_ok(tern_graph_capture_end(graph));
            for (int i = 0; i < 3; i++) {
                assert_ok(tern_graph_replay(graph));
                assert_same(tern_grad(leaf), want);
                if (!recorded)
                    assert_close(tern_to_dtype(sum, TERN_F32),
                                 tern_sum(tern_mul_scalar(leaf, TERN_SCALAR(2))), .abs = 1e-3);
            }
            tern_graph_free(graph);
            tern_release(want);
            tern_release(sum);
        }
}

/* Those of other sizes are computed by other kernels. */
static void large_logits_have_the_gradient_of_small_ones(void **state)
{
    (void)state;
    static const double smoothings[] = {0, 0.1};
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            tern_dtype dtype = i < 2 ? TERN_F32 : TERN_BF16;
            const int64_t rows = i < 2 ? ROWS : 2 * ROWS;
            tern_tensor *x = test_uniform(device, dtype, TERN_SHAPE(rows, CLASSES), -3, 3, 5);
            tern_tensor *target = targets(device, rows, CLASSES), *loss, *some;
            tern_cross_entropy_options o = {.reduction = TERN_REDUCTION_SUM,
                                            .label_smoothing = smoothings[i % 2],
                                            .ignore_index = TERN_SOME(7919 % CLASSES)};
            tern_tensor *g = gradient_of(tern_requires_grad_(x, true), target, &o, &loss);
            tern_tensor *part = tern_detach(tern_contiguous(tern_narrow(tern_detach(x), 0, 0, 9)));
            tern_tensor *want = gradient_of(tern_requires_grad_(part, true),
                                            tern_narrow(target, 0, 0, 9), &o, &some);
            assert_close(tern_narrow(g, 0, 0, 9), want, .rel = dtype == TERN_F32 ? 1e-5 : 0.01,
                         .abs = 1e-7);
            tern_tensor *each = tern_cross_entropy(
                tern_detach(x), target,
                &(tern_cross_entropy_options){.reduction = TERN_REDUCTION_NONE,
                                              .label_smoothing = smoothings[i % 2],
                                              .ignore_index = TERN_SOME(7919 % CLASSES)});
            const double sum = tern_item(tern_sum(tern_to_dtype(each, TERN_F64)));
            assert_true(fabs(tern_item(loss) / sum - 1) < 0.01);
        }
}

static const struct CMUnitTest tests[] = {
    TEST(rows_that_lie_apart_are_read_as_they_are),
    TEST(the_gradient_of_logits_that_nobody_holds_is_written_over_them),
    TEST(logits_that_a_recording_reads_stay), TEST(large_logits_have_the_gradient_of_small_ones)};
int main(void)
{
    tern_entropy_large_from =
        LARGE; /* smaller than programs have it: products of 64 MB take long */
    return test_main(tests, sizeof tests / sizeof *tests);
}
