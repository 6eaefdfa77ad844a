/* test_onnx_kept.c -- what an ONNX model computes of its parameters alone is kept until one is written. */
#include "support.h"
#include "folder.h"
#include "onnx_file.h"
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <tern/dlpack.h>
#include <tern/graph.h>

/* y = x + exp(-w), of a parameter w of two elements. */
static tern_module *model(const char *device)
{
    static const int64_t dims[] = {2};
    static const float w[] = {0, 0};
    message g = {0};
    put_message(&g, 1, node("Neg", "w", "", "", "n"));
    put_message(&g, 1, node("Exp", "n", "", "", "e"));
    put_message(&g, 1, node("Add", "x", "e", "", "y"));
    put_message(&g, 5, float_tensor("w", 1, dims, w));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("kept.onnx"), g, 17);
    tern_module *m = tern_nn_to(tern_onnx_load(in_folder("kept.onnx")), device);
    assert_non_null(m);
    return tern_nn_eval(m);
}

/* How many kernels a call launches, whose results are 1 + exp(-first), 1 + exp(-second). */
static uint64_t call(tern_module *m, const char *device, double first, double second)
{
    uint64_t made = 0;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, device);
        const uint64_t before = launches(device);
        tern_tensor *y = tern_nn_forward(m, x);
        made = launches(device) - before;
        double got[2];
        assert_ok(tern_copy_to_host(tern_to_dtype(y, TERN_F64), got, sizeof got));
        assert_true(fabs(got[0] - 1 - exp(-first)) < 1e-6 &&
                    fabs(got[1] - 1 - exp(-second)) < 1e-6);
    }
    return made;
}

/* ---- what writes a parameter ----------------------------------------------------------------- */

static void fill(tern_module *m, tern_tensor *w)
{
    (void)m;
    assert_non_null(tern_fill_(w, 1));
}

static void write_a_part(tern_module *m, tern_tensor *w)
{
    (void)m;
    assert_non_null(tern_fill_(tern_narrow(tern_detach(w), 0, 0, 1), 1));
    assert_non_null(tern_fill_(tern_narrow(tern_detach(w), 0, 1, 1), 1));
}

static void take_other_elements(tern_module *m, tern_tensor *w)
{
    (void)m;
    assert_non_null(tern_set_data_(w, tern_ones(TERN_SHAPE(2), TERN_F32, tern_device(w))));
}

static void load_a_state(tern_module *m, tern_tensor *w)
{
    tern_state_dict *dict = tern_state_dict_new();
    tern_state_dict_set(dict, "w", tern_ones(TERN_SHAPE(2), TERN_F32, tern_device(w)));
    assert_ok(tern_nn_load_state_dict(m, dict, NULL));
    tern_state_dict_free(dict);
}

/* w -= 1 * grad, and the gradient of y for w is -exp(-w) = -1. */
static void train(tern_module *m, tern_tensor *w)
{
    tern_optimizer *sgd = tern_optim_sgd(m, 1, NULL);
    TERN_ENABLE_GRAD
    {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, tern_device(w));
        assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
        assert_values(tern_grad(w), -1, -1);
    }
    assert_ok(tern_optim_step(sgd));
    tern_optim_free(sgd);
}

/* Replays raise no version. */
static void replay(tern_module *m, tern_tensor *w)
{
    tern_graph *graph = tern_graph_new(tern_device(w));
    assert_ok(tern_graph_capture_begin(graph));
    tern_add_scalar_(w, TERN_SCALAR(0.5));
    assert_ok(tern_graph_capture_end(graph));
    assert_ok(tern_graph_replay(graph));
    call(m, tern_device(w), 0.5, 0.5);
    call(m, tern_device(w), 0.5, 0.5);
    assert_ok(tern_graph_replay(graph));
    tern_graph_free(graph);
}

static void write_by_address(tern_module *m, tern_tensor *w)
{
    if (strcmp(tern_device(w), "cpu") != 0) {
        fill(m, w);
        return;
    }
    float *at = tern_data(w);
    call(m, "cpu", 0, 0);
    at[0] = at[1] = 3;
    call(m, "cpu", 3, 3);
    at[0] = at[1] = 1;
}

static void write_by_dlpack(tern_module *m, tern_tensor *w)
{
    if (strcmp(tern_device(w), "cpu") != 0) {
        fill(m, w);
        return;
    }
    DLManagedTensorVersioned *managed = tern_to_dlpack(tern_detach(w));
    assert_non_null(managed);
    float *at = (float *)((char *)managed->dl_tensor.data + managed->dl_tensor.byte_offset);
    call(m, "cpu", 0, 0);
    at[0] = at[1] = 1;
    managed->deleter(managed);
}

static void go_and_come_back(tern_module *m, tern_tensor *w)
{
    tern_nn_to_dtype(m, TERN_F16);
    fill(m, w);
    tern_nn_to_dtype(m, TERN_F32);
}

static const struct {
    const char *name;
    void (*write)(tern_module *m, tern_tensor *w);
    bool counted; /* what is computed of w is kept again behind it */
} writes[] = {{"fill_", fill, true},
              {"a view", write_a_part, true},
              {"set_data_", take_other_elements, true},
              {"load_state_dict", load_a_state, true},
              {"an optimizer", train, true},
              {"a replay", replay, true},
              {"tern_data", write_by_address, false},
              {"DLPack", write_by_dlpack, false},
              {"another dtype", go_and_come_back, true}};

static void what_was_written_is_computed_anew(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        const int64_t live = tern_live_tensors();
        tern_module *m = model(device);
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *w = tern_nn_parameter(m, "w");
                assert_int_equal(call(m, device, 0, 0), 3);
                assert_int_equal(call(m, device, 0, 0), 1);
                assert_int_equal(call(m, device, 0, 0), 1);
                writes[i].write(m, w);
                print_message("%s on %s\n", writes[i].name, device);
                assert_int_equal(call(m, device, 1, 1), 3);
                assert_int_equal(call(m, device, 1, 1),
                                 writes[i].counted || strcmp(device, "cpu") ? 1 : 3);
            }
        tern_nn_free(m);
        assert_int_equal(tern_live_tensors(), live);
    }
}

/* A parameter in the program's own memory may be written at any time. */
static void the_programs_memory_is_never_kept_of(void **state)
{
    (void)state;
    float own[] = {0, 0};
    tern_module *m = model("cpu");
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *w = tern_nn_parameter(m, "w");
            tern_set_data_(w, tern_from_blob(own, TERN_SHAPE(2), TERN_F32, NULL));
            for (int i = 0; i < 3; i++) {
                own[0] = own[1] = (float)i;
                assert_int_equal(call(m, "cpu", i, i), 3);
            }
        }
    tern_nn_free(m);
}

/* ---- whose results they are ------------------------------------------------------------------ */

/* y = exp(w) of zeros, in the shape that the input says: a view of what is kept. */
static tern_module *view_model(const char *device)
{
    static const int64_t dims[] = {2};
    static const float w[] = {0, 0};
    message g = {0};
    put_message(&g, 1, node("Exp", "w", "", "", "e"));
    put_message(&g, 1, node("Reshape", "e", "shape", "", "y"));
    put_message(&g, 5, float_tensor("w", 1, dims, w));
    put_message(&g, 11, named("shape"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("view.onnx"), g, 17);
    tern_module *m = tern_nn_to(tern_onnx_load(in_folder("view.onnx")), device);
    assert_non_null(m);
    return m;
}

/* The results of one call may be written, also where they look at what is kept for the next. */
static void a_result_is_the_callers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = view_model(device);
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *shape = tern_full(TERN_SHAPE(1), 2, TERN_I64, "cpu");
                for (int i = 0; i < 3; i++) {
                    tern_tensor *y = tern_nn_forward(m, shape);
                    assert_values(y, 1, 1);
                    assert_non_null(tern_fill_(y, 7));
                }
            }
        tern_nn_free(m);
    }
}

typedef struct caller {
    pthread_t thread;
    tern_module *m;
    int others; /* results that another thread wrote */
    atomic_int *running;
} caller;

static void *call_and_write(void *user)
{
    caller *c = user;
    for (int i = 0; i < 5000; i++)
        TERN_SCOPE {
            TERN_NO_GRAD {
                tern_tensor *shape = tern_full(TERN_SHAPE(1), 2, TERN_I64, "cpu");
                tern_tensor *y = tern_nn_forward(c->m, shape);
                c->others += tern_item(tern_sum(y)) != 2;
                tern_fill_(y, 7);
            }
        }
    atomic_fetch_sub(c->running, 1);
    return NULL;
}

/* Threads call one module at once, while replays of a graph that has nothing to do with it make it
 * forget what it kept. */
static void results_of_threads_are_their_own(void **state)
{
    (void)state;
    atomic_int running = 4;
    caller callers[4] = {{.m = view_model("cpu")}};
    tern_graph *graph = tern_graph_new("cpu");
    TERN_SCOPE {
        tern_tensor *x = tern_zeros(TERN_SHAPE(1), TERN_F32, "cpu");
        assert_ok(tern_graph_capture_begin(graph));
        tern_add_scalar_(x, TERN_SCALAR(1.0));
        assert_ok(tern_graph_capture_end(graph));
        for (int i = 0; i < 4; i++) {
            callers[i].m = callers[0].m;
            callers[i].running = &running;
            assert_int_equal(pthread_create(&callers[i].thread, NULL, call_and_write, &callers[i]),
                             0);
        }
        while (atomic_load(&running) > 0)
            assert_ok(tern_graph_replay(graph));
        for (int i = 0; i < 4; i++)
            pthread_join(callers[i].thread, NULL);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(callers[i].others, 0);
    tern_graph_free(graph);
    tern_nn_free(callers[0].m);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static void gradients_are_not_cut_off(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = model(device);
        tern_tensor *w = tern_nn_parameter(m, "w");
        TERN_NO_GRAD {
            call(m, device, 0, 0);
            assert_int_equal(call(m, device, 0, 0), 1);
        }
        for (int i = 0; i < 2; i++)
            TERN_SCOPE {
                tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, device);
                assert_ok(tern_backward(tern_sum(tern_nn_forward(m, x))));
                assert_values(tern_grad(w), -1 - i, -1 - i);
            }
        assert_int_equal(call(m, device, 0, 0), 3);
        tern_requires_grad_(w, false); /* frozen: kept with gradients of others, too */
        call(m, device, 0, 0);
        assert_int_equal(call(m, device, 0, 0), 1);
        tern_requires_grad_(w, true);
        assert_int_equal(call(m, device, 0, 0), 3);
        tern_nn_free(m);
    }
}

/* A recording computes what it reads. */
static void a_recording_reads_parameters(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = model(device);
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, device), *y;
                call(m, device, 0, 0);
                call(m, device, 0, 0);
                tern_graph *graph = tern_graph_new(device);
                assert_ok(tern_graph_capture_begin(graph));
                y = tern_nn_forward(m, x);
                assert_ok(tern_graph_capture_end(graph));
                tern_fill_(tern_nn_parameter(m, "w"), 1);
                assert_ok(tern_graph_replay(graph));
                assert_true(fabs(tern_item(tern_select(y, 0, 0)) - 1 - exp(-1)) < 1e-6);
                tern_graph_free(graph);
            }
        tern_nn_free(m);
    }
}

/* y = x + exp(c), of an integer c, which is a constant: a recording runs nothing, so that what it
 * would keep has no values. */
static void a_recording_keeps_nothing(void **state)
{
    (void)state;
    message g = {0}, c = {0}, cast = node("Cast", "c", "", "", "f"), a = {0};
    put_int(&c, 1, 1), put_int(&c, 2, 7), put_int(&c, 7, 1), put_text(&c, 8, "c");
    put_text(&a, 1, "to"), put_int(&a, 3, 1), put_int(&a, 20, 2);
    put_message(&cast, 5, a);
    put_message(&g, 1, cast);
    put_message(&g, 1, node("Exp", "f", "", "", "e"));
    put_message(&g, 1, node("Add", "x", "e", "", "y"));
    put_message(&g, 5, c);
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("constant.onnx"), g, 17);
    tern_module *m = tern_onnx_load(in_folder("constant.onnx"));
    assert_non_null(m);
    TERN_SCOPE
        TERN_NO_GRAD {
            tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, "cpu");
            tern_graph *graph = tern_graph_new("cpu");
            assert_ok(tern_graph_capture_begin(graph));
            tern_nn_forward(m, x);
            assert_ok(tern_graph_capture_end(graph));
            const double got = tern_item(tern_select(tern_nn_forward(m, x), 0, 0));
            assert_true(fabs(got - 1 - exp(1)) < 1e-6);
            tern_graph_free(graph);
        }
    tern_nn_free(m);
}

/* What was computed in half precision does not stay. */
static void autocast_keeps_nothing(void **state)
{
    (void)state;
    static const int64_t dims[] = {2, 2};
    static const float w[] = {1.0009765625f, 0, 0, 1.0009765625f};
    message g = {0};
    put_message(&g, 1, node("MatMul", "w", "w", "", "p"));
    put_message(&g, 1, node("MatMul", "x", "p", "", "y"));
    put_message(&g, 5, float_tensor("w", 2, dims, w));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("cast.onnx"), g, 17);
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_to(tern_onnx_load(in_folder("cast.onnx")), device);
        TERN_SCOPE
            TERN_NO_GRAD { /* an input of the host goes where the parameters are */
                tern_tensor *x = tern_ones(TERN_SHAPE(1, 2), TERN_F32, "cpu");
                TERN_AUTOCAST (device, TERN_BF16)
                    assert_int_equal(tern_dtype_of(tern_nn_forward(m, x)), TERN_BF16);
                tern_tensor *y = tern_nn_forward(m, x);
                assert_int_equal(tern_dtype_of(y), TERN_F32);
                assert_true(fabs(tern_item(tern_select(y, 1, 0)) - 1.00195407867) < 1e-6);
            }
        tern_nn_free(m);
    }
}

/* An LSTM's weights in tern's order of gates are kept too: after a write its results are those of a model that was loaded anew. */
static void weights_of_an_lstm_are_ordered_anew(void **state)
{
    (void)state;
    enum { IN = 2, HIDDEN = 3, ROWS = 4 * HIDDEN };
    static const int64_t w_dims[] = {1, ROWS, IN}, r_dims[] = {1, ROWS, HIDDEN},
                         b_dims[] = {1, 2 * ROWS};
    static float numbers[ROWS * HIDDEN];
    for (int i = 0; i < ROWS * HIDDEN; i++)
        numbers[i] = (float)sin(i);
    message g = {0}, lstm = {0}, a = {0};
    for (int i = 0; i < 4; i++)
        put_text(&lstm, 1, (const char *const[]){"x", "w", "r", "b"}[i]);
    put_text(&lstm, 2, "y"), put_text(&lstm, 4, "LSTM");
    put_text(&a, 1, "hidden_size"), put_int(&a, 3, HIDDEN), put_int(&a, 20, 2);
    put_message(&lstm, 5, a);
    put_message(&g, 1, lstm);
    put_message(&g, 5, float_tensor("w", 3, w_dims, numbers));
    put_message(&g, 5, float_tensor("r", 3, r_dims, numbers));
    put_message(&g, 5, float_tensor("b", 2, b_dims, numbers));
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("lstm.onnx"), g, 17);
    FOR_EACH_DEVICE(device)
    for (int k = 0; k < 3; k++) {
        tern_module *m = tern_nn_to(tern_onnx_load(in_folder("lstm.onnx")), device);
        tern_module *fresh = tern_nn_to(tern_onnx_load(in_folder("lstm.onnx")), device);
        const char *name = (const char *const[]){"w", "r", "b"}[k];
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *x = tern_ones(TERN_SHAPE(4, 1, IN), TERN_F32, device);
                tern_tensor *first = tern_nn_forward(m, x);
                assert_true(tern_equal(tern_nn_forward(m, x), first));
                tern_mul_scalar_(tern_nn_parameter(m, name), TERN_SCALAR(-2.0));
                tern_mul_scalar_(tern_nn_parameter(fresh, name), TERN_SCALAR(-2.0));
                tern_tensor *y = tern_nn_forward(m, x);
                assert_true(tern_equal(y, tern_nn_forward(fresh, x)));
                assert_false(tern_equal(y, first));
            }
        tern_nn_free(m);
        tern_nn_free(fresh);
    }
}

/* Weights of the host go to each input's device: what is kept for one is not another's. */
static void inputs_come_from_any_device(void **state)
{
    (void)state;
    tern_module *m = tern_onnx_load(in_folder("lstm.onnx"));
    TERN_SCOPE
        TERN_NO_GRAD
            FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++) {
        const char *const at = i ? "cpu" : device;
        tern_tensor *x = tern_ones(TERN_SHAPE(4, 1, 2), TERN_F32, at);
        tern_tensor *y = tern_nn_forward(m, x);
        assert_non_null(y);
        assert_string_equal(tern_device(y), at);
    }
    tern_nn_free(m);
}

/* Written again as ONNX, parameters stay parameters. */
static void an_export_sees_parameters(void **state)
{
    (void)state;
    tern_module *m = model("cpu"), *again = NULL;
    TERN_SCOPE {
        tern_tensor *x = tern_ones(TERN_SHAPE(2), TERN_F32, "cpu");
        TERN_NO_GRAD {
            call(m, "cpu", 0, 0);
            call(m, "cpu", 0, 0);
        }
        assert_ok(tern_onnx_export(m, &x, 1, in_folder("again.onnx"), NULL));
        assert_non_null(again = tern_onnx_load(in_folder("again.onnx")));
        assert_non_null(tern_nn_parameter(again, "w"));
        assert_ok(tern_last_status());
    }
    tern_nn_free(again);
    tern_nn_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(what_was_written_is_computed_anew),
                                       TEST(the_programs_memory_is_never_kept_of),
                                       TEST(a_result_is_the_callers),
                                       TEST(results_of_threads_are_their_own),
                                       TEST(gradients_are_not_cut_off),
                                       TEST(a_recording_reads_parameters),
                                       TEST(a_recording_keeps_nothing),
                                       TEST(autocast_keeps_nothing),
                                       TEST(weights_of_an_lstm_are_ordered_anew),
                                       TEST(inputs_come_from_any_device),
                                       TEST(an_export_sees_parameters)};
    if (!tern_onnx_is_available()) {
        printf("test_onnx_kept: skipped: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    return folder_main(tests, sizeof tests / sizeof *tests);
}
