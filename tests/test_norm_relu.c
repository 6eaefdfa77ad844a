/* test_norm_relu.c -- relu behind batch norm, whose kernels do it on devices with work-groups: the
 * numbers of both by themselves, and nothing kept for relu's gradient. */
#include "device/device.h"
#include "support.h"
#include <math.h>
#include <tern/graph.h>

static tern_tensor *leaf(const char *device, tern_dtype dtype, tern_shape shape, uint64_t seed)
{
    return tern_requires_grad_(test_uniform(device, dtype, shape, -1, 1, seed), true);
}

static void close_to(tern_tensor *const *a, tern_tensor *const *b, int n, double near)
{
    for (int i = 0; i < n; i++)
        assert_close(a[i], b[i], .abs = near, .rel = near);
}

static tern_tensor *seen; /* by the hook */
static tern_tensor *see(tern_tensor *gradient, void *user)
{
    (void)user;
    seen = tern_keep(tern_clone(gradient));
    return NULL;
}

enum { ONCE, TWICE, BESIDE, BEFORE, HOOKED, RETAINED, WRITTEN, SAVED_GRAPH, USES };

/* What becomes of y, which a norm made. */
static tern_tensor *use(int how, tern_tensor *y, bool *retains)
{
    tern_tensor *before = how == BEFORE ? tern_sigmoid(y) : NULL;
    if (how == HOOKED)
        tern_register_hook(y, see, NULL);
    if (how == RETAINED)
        assert_ok(tern_retain_grad(y));
    if (how == WRITTEN)
        TERN_NO_GRAD
            tern_add_scalar_(y, TERN_SCALAR(0.5));
    *retains = how == SAVED_GRAPH;
    tern_tensor *z = tern_relu(y);
    if (how == TWICE)
        z = tern_add(z, tern_mul_scalar(tern_relu(y), TERN_SCALAR(3)));
    if (how == BESIDE)
        z = tern_add(z, tern_sigmoid(y));
    return before ? tern_add(z, before) : z;
}

/* The result, the gradients of x, w, b, and of y where they are seen: of the same norm, run `runs` times. */
static void norm_and_relu(const char *device, tern_dtype dtype, tern_shape shape, int how, int runs,
                          tern_tensor **out)
{
    tern_tensor *x = leaf(device, dtype, shape, 10), *y = NULL, *z = NULL;
    tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(shape.dims[1]), 11);
    tern_tensor *b = leaf(device, TERN_F32, TERN_SHAPE(shape.dims[1]), 12);
    tern_tensor *dz = test_uniform(device, dtype, shape, -1, 1, 13);
    seen = NULL;
    for (int i = 0; i < runs; i++) {
        tern_tensor *leaves[] = {x, w, b};
        bool retains;
        for (int k = 0; k < 3; k++)
            assert_ok(tern_set_grad(leaves[k], NULL));
        tern_release(seen);
        seen = NULL;
        y = tern_batch_norm(tern_mul_scalar(x, TERN_SCALAR(2)), NULL, NULL, w, b, true, 0.1, 1e-3);
        z = use(how, y, &retains);
        for (int times = retains ? 2 : 1; times > 0; times--)
            assert_ok(tern_backward_with(
                z, &(tern_backward_options){.gradient = dz, .retain_graph = times > 1}));
    }
    out[0] = z;
    out[1] = tern_grad(x);
    /* Sums of so many numbers of either sign may come to little beside what their rounding is. */
    const double terms = (double)tern_numel(x) / (double)tern_numel(w);
    out[2] = terms < 65536 ? tern_grad(w) : tern_div(tern_grad(w), sqrt(terms));
    out[3] = terms < 65536 ? tern_grad(b) : tern_div(tern_grad(b), sqrt(terms));
    out[4] = how == RETAINED ? tern_grad(y) : seen ? seen : z;
    out[5] = y;
}

/* What one norm of a new weight allocates, before relu of it. */
static uint64_t blocks_of_norm(const char *device, tern_tensor *x)
{
    uint64_t blocks = 0;
    TERN_SCOPE {
        tern_tensor *w = tern_requires_grad_(tern_ones(TERN_SHAPE(6), TERN_F32, device), true);
        tern_counters before, after;
        assert_ok(tern_get_counters(device, &before));
        tern_tensor *y = tern_batch_norm(x, NULL, NULL, w, NULL, true, 0.1, 1e-3);
        assert_ok(tern_get_counters(device, &after));
        tern_relu(y);
        blocks = after.allocations - before.allocations;
    }
    return blocks;
}

/* A weight that lies where another one did, after many tensors, is not taken for that one. */
static void a_new_weight_is_not_taken_for_an_old_one(void **state)
{
    enum { MANY = 3000 };
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(4, 6), -1, 1, 1);
        const uint64_t first = blocks_of_norm(device, x);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(blocks_of_norm(device, x), first);
    }
}

static void relu_behind_a_norm_is_part_of_it(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F32, TERN_BF16};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < (test_thorough(device) ? 2 : 1); t++)
        for (int i = 0; i < 6; i++)
            for (int how = 0; how < (i < 2 ? USES : TWICE); how++)
                TERN_SCOPE { /* by single elements and by fours, some of which are left; by parts */
                    tern_shape shape = i == 0   ? TERN_SHAPE(9, 6)
                                       : i == 1 ? TERN_SHAPE(3, 6, 7, 5)
                                       : i == 2 ? TERN_SHAPE(3, 2, 8, 12)
                                       : i == 3 ? TERN_SHAPE(5, 2, 50, 42)
                                       : i == 4 ? TERN_SHAPE(9, 1, 90, 81)
                                                : TERN_SHAPE(5, 2, 128, 104);
                    double near = t ? 6e-2 : 2e-5;
                    tern_tensor *here[6], *there[6], *hooked[2];
                    norm_and_relu("cpu", types[t], shape, how, 1, there);
                    hooked[0] = seen;
                    norm_and_relu(device, types[t], shape, how, 3, here);
                    hooked[1] = seen;
                    close_to(here, there, 6, near);
                    tern_release(hooked[0]);
                    tern_release(hooked[1]);
                }
}

/* The first run of a norm keeps relu's result, the third finds its mask again: in halves that
 * differ where relu's result is below the least of them. */
static void relu_behind_a_norm_has_one_result_by_either_mask(void **state)
{
    (void)state;
    static const tern_dtype types[] = {TERN_F32, TERN_F16, TERN_BF16};
    static const tern_shape shapes[] = {{2, {33, 8}},
                                        {3, {4, 6, 50}},
                                        {4, {3, 8, 7, 5}},
                                        {4, {3, 8, 7, 5}}, /* channels last */
                                        {4, {5, 2, 128, 104}}};
    FOR_EACH_DEVICE(device)
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < (test_thorough(device) ? 5 : 4); i++)
            for (int how = 0; how < (i < 4 ? USES : TWICE); how++)
                TERN_SCOPE {
                    tern_tensor *first[4], *third[4];
                    tern_tensor *x = leaf(device, types[t], shapes[i], 10);
                    tern_tensor *dz = test_uniform(device, types[t], shapes[i], -1, 1, 13);
                    x = i == 3 ? tern_to_memory_format(x, TERN_CHANNELS_LAST) : x;
                    x = tern_requires_grad_(tern_detach(x), true);
                    tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(shapes[i].dims[1]), 11);
                    TERN_NO_GRAD
                        tern_mul_scalar_(w, TERN_SCALAR(types[t] == TERN_F32 ? 1 : 1e-7));
                    tern_tensor *b = tern_requires_grad_(tern_zeros_like(w), true);
                    tern_tensor *leaves[] = {x, w, b};
                    for (int run = 0; run < 3; run++) {
                        bool retains;
                        for (int k = 0; k < 3; k++)
                            assert_ok(tern_set_grad(leaves[k], NULL));
                        tern_tensor *z = use(
                            how, tern_batch_norm(x, NULL, NULL, w, b, true, 0.1, 1e-3), &retains);
                        for (int times = retains ? 2 : 1; times > 0; times--)
                            assert_ok(tern_backward_with(
                                z, &(tern_backward_options){.gradient = dz,
                                                            .retain_graph = times > 1}));
                        tern_tensor **out = run == 0 ? first : third;
                        out[0] = z;
                        for (int k = 0; k < 3; k++)
                            out[1 + k] = tern_clone(tern_grad(leaves[k]));
                        tern_release(seen);
                        seen = NULL;
                    }
                    for (int k = 0; k < 4; k++)
                        assert_same(first[k], third[k]);
                }
}

/* Once its readers are gone, relu's result behind a norm takes no memory, and a norm whose input was written
 * to since is refused. */
static void relu_behind_a_norm_is_not_kept(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        const int64_t bytes = 4 * 8 * 64 * 64 * 4;
        tern_tensor *x = leaf(device, TERN_F32, TERN_SHAPE(4, 8, 64, 64), 1);
        tern_tensor *w = leaf(device, TERN_F32, TERN_SHAPE(8), 2);
        uint64_t held[3] = {0};
        for (int run = 0; run < 3; run++)
            TERN_SCOPE {
                tern_memory_stats before, after;
                tern_tensor *loss = NULL;
                assert_ok(tern_memory_get_stats(device, &before));
                TERN_SCOPE {
                    tern_tensor *y = tern_batch_norm(x, NULL, NULL, w, NULL, true, 0.1, 1e-3);
                    loss = tern_escape(tern_sum(tern_max_pool2d(tern_relu(y), TERN_DIMS(2), NULL)));
                }
                assert_ok(tern_memory_get_stats(device, &after));
                held[run] = after.allocated - before.allocated;
                if (run == 2)
                    TERN_NO_GRAD
                        tern_mul_scalar_(x, TERN_SCALAR(2));
                if (run == 2)
                    assert_int_equal(tern_backward(loss), TERN_ERR_STATE);
                else
                    assert_ok(tern_backward(loss));
                tern_clear_error();
            }
        if (tern_place_is_grouped(tern_place_find(device, "test")))
            assert_true(held[0] >= held[2] + (uint64_t)bytes);
    }
}

/* In a recording a norm does not store what nobody reads but relu: the bits of the same step before. */
static void a_recording_leaves_out_what_relu_is_of(void **state)
{
    (void)state;
    static const tern_dtype dtypes[] = {TERN_F32, TERN_F16, TERN_BF16};
    static const int64_t shapes[][4] = {{2, 3, 4, 5}, {3, 700, 2, 2}, {3, 5, 3, 7}, {2, 2, 48, 64}};
    enum { RESULTS = 4, CASES = 3 * sizeof shapes / sizeof *shapes };
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            if (dtypes[i % 3] == TERN_BF16 && test_on_standin(device) && !test_thorough(device)) {
                test_skipped("bfloat16 on %s, which compiles each text as C++", device);
                continue;
            }
            const tern_shape shape = tern_shape_from(4, shapes[i / 3]),
                             each = TERN_SHAPE(shape.dims[1]);
            tern_tensor *in[] = {leaf(device, dtypes[i % 3], shape, 1),
                                 leaf(device, TERN_F32, each, 2), leaf(device, TERN_F32, each, 3)};
            tern_tensor *dz = test_uniform(device, dtypes[i % 3], shape, -1, 1, 4),
                        *out[3][RESULTS];
            tern_graph *graph = tern_graph_new(device);
            for (int run = 0; run < 3; run++) {
                if (run == 2)
                    assert_ok(tern_graph_capture_begin(graph));
                TERN_SCOPE {
                    tern_tensor *z = tern_relu(
                        tern_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.1, 1e-3));
                    out[run][0] = tern_keep(z);
                    assert_ok(tern_autograd_grad(&z, 1, in, 3, &out[run][1],
                                                 &(tern_autograd_grad_options){.gradients = &dz}));
                    for (int k = 1; k < RESULTS; k++)
                        tern_keep(out[run][k]);
                }
            }
            assert_ok(tern_graph_capture_end(graph));
            assert_ok(tern_graph_replay(graph));
            for (int k = 0; k < RESULTS; k++)
                assert_same(out[2][k], out[1][k]);
            tern_graph_free(graph);
            for (int k = 0; k < 3 * RESULTS; k++)
                tern_release(out[k / RESULTS][k % RESULTS]);
        }
}

static tern_tensor *curved(tern_tensor *const *in, void *user)
{
    (void)user;
    tern_tensor *y = tern_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.1, 1e-2);
    return tern_square(tern_relu(y));
}

static void relu_behind_a_norm_has_second_derivatives(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_tensor *in[] = {leaf(device, TERN_F64, TERN_SHAPE(2, 2, 3), 14),
                             leaf(device, TERN_F64, TERN_SHAPE(2), 15),
                             leaf(device, TERN_F64, TERN_SHAPE(2), 16)};
        gradcheck(curved, in, 3, .second = true);
    }
}

static const struct CMUnitTest tests[] = {
    TEST(a_recording_leaves_out_what_relu_is_of),
    TEST(a_new_weight_is_not_taken_for_an_old_one),
    TEST(relu_behind_a_norm_is_part_of_it),
    TEST(relu_behind_a_norm_has_one_result_by_either_mask),
    TEST(relu_behind_a_norm_is_not_kept),
    TEST(relu_behind_a_norm_has_second_derivatives),
};
TEST_MAIN(tests)
