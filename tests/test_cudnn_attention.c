/* test_cudnn_attention.c -- attention through cuDNN's graphs, on the stand-in for it (tests/standin/cudnn_graph.c): which it is
 * given, what comes of it, its failures. Nothing here is a result of a GPU. */
#include "again.h"
#include "attention_rows.h"
#include "environment.h"
#include "heard.h"
#include <dlfcn.h>

static unsigned long (*attentions)(int), (*descriptors)(void), (*plans)(void);

static void *symbol(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/libcudnn.so.9", getenv("TERN_CUDA_PATH"));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL), *found = NULL;
    assert_non_null(library);
    found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void find_counts(void)
{
    void *found = symbol("standin_attentions");
    memcpy(&attentions, &found, sizeof found);
    found = symbol("standin_descriptors");
    memcpy(&descriptors, &found, sizeof found);
    found = symbol("standin_plans");
    memcpy(&plans, &found, sizeof found);
}

/* Fewer scores than 2^14 are computed in float32 (ops/attention/attention.c). */
static const struct {
    row row;
    bool taken;
} rows[] = {
#define ROW(WHAT, QUERIES, KEYS, WIDTH, VALUES, LAYOUT, TAKEN, ...)                                \
    {                                                                                              \
        {WHAT, QUERIES, KEYS, WIDTH, VALUES, {__VA_ARGS__}, LAYOUT, TERN_DTYPE_DEFAULT}, TAKEN     \
    }
    ROW("all keys", 70, 56, 16, 16, DENSE, true, .scale = 0.2),
    ROW("wider values", 53, 65, 24, 40, DENSE, true, .scale = 0.2),
    ROW("causal", 64, 64, 32, 32, DENSE, true, .is_causal = true),
    ROW("causal, more keys", 40, 80, 32, 8, DENSE, true, .is_causal = true),
    ROW("causal from the lower right", 40, 80, 16, 16, DENSE, true, .is_causal = true,
        .lower_right = true),
    ROW("packed, as a layer has it", 64, 64, 32, 32, PACKED, true, .is_causal = true),
    ROW("width that is not a multiple of 8", 64, 64, 20, 20, DENSE, false, .scale = 0.2),
    ROW("queries without keys", 80, 40, 16, 16, DENSE, false, .is_causal = true,
        .lower_right = true),
    ROW("window", 64, 64, 16, 16, DENSE, false, .is_causal = true, .window = 8),
    ROW("softcap", 64, 64, 16, 16, DENSE, false, .softcap = 3),
    ROW("dropout", 64, 64, 16, 16, DENSE, false, .dropout_p = 0.3),
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

static void compare_given(int i, tern_dtype dtype)
{
    unsigned long onward = attentions(0), back = attentions(1);
    compare(&rows[i].row, "cuda:0", dtype);
    if (attentions(0) - onward != rows[i].taken || attentions(1) - back != rows[i].taken)
        fail_msg("%s: cuDNN was given %lu forward and %lu gradients, not %d", rows[i].row.what,
                 attentions(0) - onward, attentions(1) - back, rows[i].taken);
}

static void it_is_as_on_the_cpu(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS; i++)
        TERN_SCOPE {
            compare_given(i, TERN_F16);
            compare_given(i, TERN_BF16);
        }
}

static void float32_and_what_is_switched_off_are_not_given(void **state)
{
    row r = rows[2].row;
    (void)state;
    TERN_SCOPE {
        unsigned long before = attentions(0) + attentions(1);
        attend(&r, "cuda:0", TERN_F32);
        tern_backends_cudnn_set_enabled(false);
        attend(&r, "cuda:0", TERN_BF16);
        tern_backends_cudnn_set_enabled(true);
        assert_int_equal(attentions(0) + attentions(1), before);
        tern_use_deterministic(true); /* its sums of dq are atomic */
        attend(&r, "cuda:0", TERN_BF16);
        tern_use_deterministic(false);
        assert_int_equal(attentions(1) - before + attentions(0), 1);
    }
}

static void plans_are_kept(void **state)
{
    (void)state;
    TERN_SCOPE {
        compare_given(0, TERN_F16);
        unsigned long before = descriptors();
        compare_given(0, TERN_F16);
        assert_int_equal(descriptors(), before);
    }
}

/* Self-attention of so many queries, and its gradient: two shapes. */
static tern_tensor *attend_to_itself(tern_tensor *q)
{
    tern_set_grad(q, NULL);
    tern_tensor *y = tern_scaled_dot_product_attention(q, q, q, NULL);
    assert_ok(tern_backward(tern_sum(tern_mul(y, y))));
    return y;
}

/* A model has several shapes; which places their hashes name is chance. */
static void shapes_leave_each_others_plans(void **state)
{
    enum { SHAPES = 12 };
    unsigned long made[2];
    (void)state;
    for (int time = 0; time < 2; time++) {
        for (int i = 0; i < SHAPES; i++)
            TERN_SCOPE
                attend_to_itself(dense("cuda:0", TERN_F16, 64 + i, 16, 1));
        made[time] = plans();
    }
    assert_int_equal(made[0], made[1]);
}

/* Its CUDA graph has kernels of theirs, which end with them. */
static void a_recordings_plans_outlive_newer_shapes(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *q = dense("cuda:0", TERN_BF16, 60, 32, 1), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        TERN_CAPTURE (graph)
            y = tern_keep(attend_to_itself(q));
        for (int i = 0; i < 64; i++)
            TERN_SCOPE
                attend_to_itself(dense("cuda:0", TERN_BF16, 64 + i, 8, 1));
        tern_tensor *expected = tern_clone(attend_to_itself(q));
        assert_ok(tern_graph_replay(graph));
        assert_same(y, expected);
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* A replay attends to what is there then. */
static void a_recorded_attention_is_of_every_replay(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_tensor *q = dense("cuda:0", TERN_F16, 64, 32, 1), *y = NULL;
        tern_graph *graph = tern_graph_new("cuda:0");
        unsigned long before = attentions(1);
        TERN_CAPTURE (graph) {
            tern_set_grad(q, NULL);
            y = tern_keep(tern_scaled_dot_product_attention(q, q, q, NULL));
            tern_backward(tern_sum(tern_mul(y, y)));
        }
        for (int i = 0; i < 3; i++) {
            TERN_NO_GRAD
                tern_mul_scalar_(q, tern_scalar_real(0.5));
            assert_ok(tern_graph_replay(graph));
            tern_tensor *p = tern_requires_grad_(tern_detach(tern_to(q, "cpu")), true);
            tern_tensor *expected = tern_scaled_dot_product_attention(p, p, p, NULL);
            assert_ok(tern_backward(tern_sum(tern_mul(expected, expected))));
            assert_close(tern_to(y, "cpu"), expected, .abs = 4e-3, .rel = 4e-3);
            assert_close(tern_to(tern_grad(q), "cpu"), tern_grad(p), .abs = 4e-3, .rel = 4e-3);
        }
        assert_true(attentions(1) > before);
        tern_release(y);
        tern_graph_free(graph);
    }
}

/* ---- where it is the default ----------------------------------------------------------------- */

/* Of 2^29 products and more, with a gradient: the graph alone is looked at, nothing of it runs. */
static void defaults(void **state)
{
    static const struct {
        int64_t length;
        bool trains;
    } cases[] = {{1024, true}, {1024, false}, {128, true}};
    bool hopper = atoi(getenv("TERN_STANDIN_COMPUTE")) >= 90;
    (void)state;
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            unsigned long before = attentions(0);
            tern_tensor *q = tern_zeros(TERN_SHAPE(1, 8, cases[i].length, 64), TERN_BF16, "cuda:0");
            tern_requires_grad_(q, cases[i].trains);
            assert_non_null(tern_scaled_dot_product_attention(q, q, q, NULL));
            assert_int_equal(attentions(0) - before, hopper && i == 0);
        }
}

static void large_ones_of_training_are_given_on_hopper(void **state)
{
    (void)state;
    setenv("TERN_STANDIN_IDLE", "1", 1);
    set_variable("TERN_CUDNN_ATTENTION", NULL);
    again("defaults", "TERN_STANDIN_COMPUTE", "90");
    again("defaults", "TERN_STANDIN_COMPUTE", "80");
    set_variable("TERN_CUDNN_ATTENTION", "1");
    unsetenv("TERN_STANDIN_IDLE");
}

/* ---- what fails --------------------------------------------------------------------------- */

/* What cuDNN refuses to describe, plan or run is tern's own kernel's, which is told; another failure of it is an error, and
 * the next call asks anew. */
static void steps(void **state)
{
    const char *plan = getenv("TERN_STANDIN_FAIL");
    bool is_error = strstr(plan, ":4000"), in_gradient = strstr(plan, "Execute:2");
    char told[160];
    row r = rows[2].row;
    heard h = {0};
    (void)state;
    tern_on_warning(hear, &h);
    TERN_SCOPE {
        tern_tensor *q = dense("cuda:0", TERN_F16, 64, 32, 1);
        tern_tensor *y = tern_scaled_dot_product_attention(q, q, q, &r.o);
        assert_int_equal(y != NULL, !is_error || in_gradient);
        assert_int_equal(tern_backward(tern_sum(tern_mul(y, y))),
                         is_error ? TERN_ERR_DEVICE : TERN_OK);
        if (is_error)
            assert_error(TERN_ERR_DEVICE, "(4000)");
    }
    snprintf(told, sizeof told,
             "tern_scaled_dot_product_attention: cuDNN takes no %s of 64 queries and 64 keys, 32 "
             "wide, on cuda:0 (CUDNN_STATUS_NOT_SUPPORTED, 3000)",
             in_gradient ? "gradient of an attention" : "attention");
    assert_int_equal(h.count, !is_error);
    assert_int_equal(strstr(h.text, told) != NULL, !is_error);
    tern_on_warning(NULL, NULL);
    TERN_SCOPE {
        unsigned long onward = attentions(0), back = attentions(1);
        compare(&r, "cuda:0", TERN_F16);
        assert_int_equal(attentions(0) - onward, is_error || in_gradient);
        assert_int_equal(attentions(1) - back, is_error || !in_gradient);
    }
}

static void any_call_may_fail_or_refuse(void **state)
{
    static const char *const calls[] = {
        "cudnnBackendCreateDescriptor:1", "cudnnBackendCreateDescriptor:30",
        "cudnnBackendSetAttribute:1",     "cudnnBackendSetAttribute:60",
        "cudnnBackendFinalize:1",         "cudnnBackendFinalize:30",
        "cudnnBackendGetAttribute:1",     "cudnnBackendGetAttribute:2",
        "cudnnBackendExecute:1",          "cudnnBackendExecute:2"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        for (int refused = 0; refused < 2; refused++) {
            char plan[96];
            snprintf(plan, sizeof plan, "%s:%d", calls[i], refused ? 3000 : 4000);
            again("steps", "TERN_STANDIN_FAIL", plan);
        }
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest scenarios[] = {TEST(defaults), TEST(steps)};
    const struct CMUnitTest tests[] = {
        TEST(it_is_as_on_the_cpu),
        TEST(float32_and_what_is_switched_off_are_not_given),
        TEST(plans_are_kept),
        TEST(shapes_leave_each_others_plans),
        TEST(a_recordings_plans_outlive_newer_shapes),
        TEST(a_recorded_attention_is_of_every_replay),
        TEST(large_ones_of_training_are_given_on_hopper),
        TEST(any_call_may_fail_or_refuse),
    };
    if (getenv("TERN_CUDA_PATH"))
        find_counts();
    return again_main(argc, argv, scenarios, sizeof scenarios / sizeof *scenarios, tests,
                      sizeof tests / sizeof *tests);
}
