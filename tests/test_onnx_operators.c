/* test_onnx_operators.c -- small graphs of golden/onnx (control flow, spectra, quantised operations) against onnxruntime's
 * results, on every device; what a loop may take; which of their tensors are parameters. */
#include "support.h"
#include "folder.h"
#include "onnx_file.h"
#include <dirent.h>
#include <stdio.h>

#define GRAPHS TEST_FOLDER "/golden/onnx"
enum { MOST = 8 };

static int read_all(const tern_state_dict *dict, char kind, tern_tensor *list[MOST])
{
    char name[8];
    int n = 0;
    for (; n < MOST; n++) {
        snprintf(name, sizeof name, "%c%d", kind, n);
        bool there = false;
        for (int i = 0; i < tern_state_dict_count(dict); i++)
            there = there || !strcmp(tern_state_dict_key_at(dict, i), name);
        if (!there)
            break;
        list[n] = tern_state_dict_get(dict, name);
    }
    return n;
}

/* Reals to 1e-5 of the largest, integers the same. */
static bool is_close(tern_tensor *a, tern_tensor *b)
{
    if (!tern_same_shape(a, b) || tern_dtype_of(a) != tern_dtype_of(b))
        return false;
    bool real = tern_dtype_is_floating_point(tern_dtype_of(b));
    tern_tensor *x = tern_to_dtype(tern_to(a, "cpu"), TERN_F64), *y = tern_to_dtype(b, TERN_F64);
    double largest = tern_item(tern_max(tern_abs(y)));
    return tern_allclose(x, y, 0, real ? 1e-5 * (largest > 1e-3 ? largest : 1e-3) : 0, true);
}

static int differs(const char *name, const char *device)
{
    char path[600];
    tern_tensor *in[MOST], *want[MOST], *got[MOST] = {NULL};
    int failures = 0;
    snprintf(path, sizeof path, "%s/%s.onnx", GRAPHS, name);
    tern_module *m = tern_nn_eval(tern_nn_to(tern_onnx_load(path), device));
    snprintf(path, sizeof path, "%s/%s.npz", GRAPHS, name);
    tern_state_dict *arrays = tern_load(path, NULL);
    int n = arrays ? read_all(arrays, 'i', in) : 0, k = arrays ? read_all(arrays, 'o', want) : 0;
    for (int i = 0; i < n; i++)
        in[i] = tern_to(in[i], device);
    /* twice, as constants are computed by the first call */
    for (int turn = 0; turn < 2 && m; turn++)
        if (tern_nn_call(m, in, n, got, k) == TERN_OK)
            for (int i = 0; i < k; i++)
                failures += !is_close(got[i], want[i]);
    if (failures || !m || k == 0 || tern_last_status() != TERN_OK)
        print_error("%s on %s: %s\n", name, device,
                    tern_last_status() == TERN_OK ? "other results" : tern_last_error());
    failures += !m || k == 0 || tern_last_status() != TERN_OK;
    tern_clear_error();
    tern_state_dict_free(arrays);
    tern_nn_free(m);
    return failures;
}

static void graphs_give_onnxruntimes_results(void **state)
{
    (void)state;
    int failures = 0, count = 0;
    DIR *graphs = opendir(GRAPHS);
    assert_non_null(graphs);
    for (struct dirent *entry; (entry = readdir(graphs));) {
        char *end = strstr(entry->d_name, ".onnx");
        if (!end || end[5])
            continue;
        *end = 0;
        count++;
        FOR_EACH_DEVICE(device)
        TERN_SCOPE
            failures += differs(entry->d_name, device) != 0;
    }
    closedir(graphs);
    assert_int_equal(failures, 0);
    assert_true(count > 40);
}

/* ---- loops --------------------------------------------------------------------------------------------- */

/* y = x after `turns` turns of a body that adds it to itself, or does nothing where it is empty. */
static void write_loop(const char *path, int64_t turns)
{
    message g = {0}, loop = {0}, body = {0}, graph = {0}, n = {0};
    put_int(&n, 2, 7), put_text(&n, 8, "turns");
    put_block(&n, 9, &turns, sizeof turns);
    put_message(&g, 5, n);
    put_message(&body, 1, node("Identity", "go", "", "", "go2"));
    put_message(&body, 1, node("Neg", "s", "", "", "s2"));
    put_message(&body, 11, named("i"));
    put_message(&body, 11, named("go"));
    put_message(&body, 11, named("s"));
    put_message(&body, 12, named("go2"));
    put_message(&body, 12, named("s2"));
    put_text(&loop, 1, "turns"), put_text(&loop, 1, ""), put_text(&loop, 1, "x");
    put_text(&loop, 2, "y"), put_text(&loop, 3, "round"), put_text(&loop, 4, "Loop");
    put_text(&graph, 1, "body");
    put_message(&graph, 6, body);
    put_int(&graph, 20, 5);
    put_message(&loop, 5, graph);
    put_message(&g, 1, loop);
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(path, g, 17);
}

/* TERN_ONNX_LOOP_LIMIT is 1000 here (main). */
static void loops_end_where_the_limit_is(void **state)
{
    (void)state;
    static const int64_t turns[] = {1000, 1001, INT64_C(1) << 62, INT64_MAX};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        int64_t live = tern_live_tensors();
        write_loop(in_folder("loop.onnx"), turns[i]);
        tern_module *m = tern_onnx_load(in_folder("loop.onnx"));
        assert_non_null(m);
        TERN_SCOPE {
            tern_tensor *y = tern_nn_forward(m, tern_ones(TERN_SHAPE(2), TERN_F32, "cpu"));
            if (turns[i] <= 1000)
                assert_values(y, 1, 1);
            else
                assert_error(TERN_ERR_UNSUPPORTED,
                             "node 'round' (Loop, opset 17): the loops of one "
                             "call have made 1000 turns, the limit "
                             "(TERN_ONNX_LOOP_LIMIT");
        }
        tern_nn_free(m);
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* A sequence of x's elements, each of which a body negates. */
static void write_map(const char *path)
{
    message g = {0}, map = {0}, body = {0}, graph = {0};
    put_message(&body, 1, node("Neg", "s", "", "", "s2"));
    put_message(&body, 11, named("s"));
    put_message(&body, 12, named("s2"));
    put_text(&graph, 1, "body");
    put_message(&graph, 6, body);
    put_int(&graph, 20, 5);
    put_text(&map, 1, "parts"), put_text(&map, 2, "mapped"), put_text(&map, 3, "each");
    put_text(&map, 4, "SequenceMap");
    put_message(&map, 5, graph);
    put_message(&g, 1, node("SplitToSequence", "x", "", "", "parts"));
    put_message(&g, 1, map);
    put_message(&g, 1, node("SequenceLength", "mapped", "", "", "y"));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(path, g, 17);
}

static void items_of_a_map_are_turns(void **state)
{
    (void)state;
    const int64_t live = tern_live_tensors();
    write_map(in_folder("map.onnx"));
    tern_module *m = tern_onnx_load(in_folder("map.onnx"));
    assert_non_null(m);
    TERN_SCOPE {
        assert_true(tern_item(tern_nn_forward(m, tern_ones(TERN_SHAPE(1000), TERN_F32, "cpu"))) ==
                    1000);
        assert_null(tern_nn_forward(m, tern_ones(TERN_SHAPE(1001), TERN_F32, "cpu")));
        assert_error(TERN_ERR_UNSUPPORTED,
                     "node 'each' (SequenceMap, opset 17): the loops of one call have made 1000");
    }
    tern_nn_free(m);
    assert_int_equal(tern_live_tensors(), live);
}

/* Parts of a size that is larger than what is split are one part, whatever it is. */
static void a_part_is_as_large_as_any_number(void **state)
{
    (void)state;
    const int64_t part = INT64_MAX;
    message g = {0}, n = {0};
    put_int(&n, 2, 7), put_text(&n, 8, "part");
    put_block(&n, 9, &part, sizeof part);
    put_message(&g, 5, n);
    put_message(&g, 1, node("SplitToSequence", "x", "part", "", "parts"));
    put_message(&g, 1, node("SequenceLength", "parts", "", "", "y"));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("split.onnx"), g, 17);
    tern_module *m = tern_onnx_load(in_folder("split.onnx"));
    assert_non_null(m);
    TERN_SCOPE
        assert_true(tern_item(tern_nn_forward(m, tern_ones(TERN_SHAPE(4), TERN_F32, "cpu"))) == 1);
    tern_nn_free(m);
}

/* ---- members ------------------------------------------------------------------------------------------- */

/* Weights of both branches are parameters (the attributes stand in the order of their names), and that which is taken is trained. */
static void weights_in_branches_are_parameters(void **state)
{
    (void)state;
    tern_module *m = tern_onnx_load(GRAPHS "/if_10.onnx");
    assert_non_null(m);
    TERN_SCOPE {
        tern_tensor *out[2], *one = tern_tensor_scalar(TERN_SCALAR((int64_t)1), TERN_BOOL, "cpu");
        tern_tensor *in[] = {tern_ones(TERN_SHAPE(2, 5), TERN_F32, "cpu"), one, one};
        assert_non_null(tern_nn_parameter(m, "w"));
        assert_non_null(tern_nn_parameter(m, "w_2"));
        assert_ok(tern_nn_call(m, in, 3, out, 2));
        assert_ok(tern_backward(tern_sum(out[0])));
        /* the else branch came first: w is its own */
        assert_values(tern_grad(tern_nn_parameter(m, "w_2")), 2, 2, 2, 2, 2);
        assert_null(tern_grad(tern_nn_parameter(m, "w")));
    }
    tern_nn_free(m);
}

/* What a module gives is the caller's: writing into it leaves the next call as it was. */
static void results_are_not_the_constants(void **state)
{
    (void)state;
    tern_module *m = tern_onnx_load(GRAPHS "/hann_1.onnx");
    assert_non_null(m);
    tern_nn_free(m);
    message g = {0}, n = {0};
    const int64_t two[] = {2};
    put_int(&n, 1, 1), put_int(&n, 2, 7), put_text(&n, 8, "n");
    put_block(&n, 9, two, sizeof two);
    put_message(&g, 5, n);
    put_message(&g, 1, node("ConstantOfShape", "n", "", "", "z"));
    put_message(&g, 1, node("Identity", "z", "", "", "y"));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("constant.onnx"), g, 17);
    assert_non_null(m = tern_onnx_load(in_folder("constant.onnx")));
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(1), TERN_F32, "cpu");
        for (int i = 0; i < 3; i++) {
            tern_tensor *y = tern_nn_forward(m, x);
            assert_values(y, 0, 0);
            tern_fill_(y, 5);
        }
    }
    tern_nn_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(graphs_give_onnxruntimes_results),   TEST(loops_end_where_the_limit_is),
        TEST(items_of_a_map_are_turns),           TEST(a_part_is_as_large_as_any_number),
        TEST(weights_in_branches_are_parameters), TEST(results_are_not_the_constants),
    };
    setenv("TERN_ONNX_LOOP_LIMIT", "1000", 1);
    if (!tern_onnx_is_available()) {
        printf("test_onnx_operators: skipped: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    return folder_main(tests, sizeof tests / sizeof *tests);
}
