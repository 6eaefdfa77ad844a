/* test_onnx_export.c -- modules written to ONNX: read again they compute the same, on every device. */
#include "base/memory.h"
#include "onnx_models.h"
#include "support.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[200];

static const char *at(const char *name)
{
    static char path[2][400];
    static int next;
    char *p = path[next++ % 2];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

/* What both modules compute of the inputs is the same. */
static void compare(const onnx_model *m, tern_module *again, tern_tensor *const *in)
{
    tern_tensor *a[ONNX_MODEL_OUTPUTS], *b[ONNX_MODEL_OUTPUTS];
    assert_ok(tern_nn_call(m->module, in, m->n_in, a, m->n_out));
    assert_ok(tern_nn_call(again, in, m->n_in, b, m->n_out));
    for (int k = 0; k < m->n_out; k++)
        assert_close(b[k], a[k], .abs = 2e-5, .rel = 1e-4);
}

/* No constant has become a parameter. */
static tern_status is_member(const char *path, tern_tensor *x, void *module)
{
    tern_tensor *y = tern_nn_parameter(module, path);
    if (!y) {
        tern_clear_error();
        y = tern_nn_buffer(module, path);
    }
    assert_non_null(y);
    assert_same(x, y);
    return TERN_OK;
}

static void modules_come_back(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    {
        onnx_model m;
        for (int i = 0;; i++)
            TERN_SCOPE {
                if (!test_thorough(device) && i % 12)
                    continue;
                if (!onnx_model_make(i, device, &m))
                    return;
                tern_tensor *more[ONNX_MODEL_INPUTS];
                tern_onnx_export_options o = {.n_outputs = m.n_out, .dynamic_batch = m.any_batch};
                print_message("  %s\n", m.name);
                assert_ok(tern_onnx_export(m.module, m.in, m.n_in, at("model.onnx"), &o));
                tern_module *again = tern_nn_to(tern_onnx_load(at("model.onnx")), device);
                assert_non_null(again);
                tern_nn_eval(again);
                assert_ok(tern_nn_each_parameter(again, is_member, m.module));
                compare(&m, again, m.in);
                onnx_model_more(&m, more);
                if (m.any_batch)
                    compare(&m, again, more);
                tern_nn_free(again);
                tern_nn_free(m.module);
            }
    }
}

/* ---- what is written ----------------------------------------------------------------------------- */

static tern_module *network(void)
{
    return tern_nn_sequential(tern_nn_linear(6, 16, NULL), tern_nn_batch_norm1d(16, NULL),
                              tern_nn_relu(), tern_nn_dropout(NULL), tern_nn_linear(16, 3, NULL));
}

static tern_tensor *rows(int64_t n)
{
    return tern_randn(TERN_SHAPE(n, 6), TERN_F32, "cpu");
}

static long bytes_of(const char *path)
{
    struct stat is;
    return stat(path, &is) ? -1 : (long)is.st_size;
}

/* Parameters under their names, which are trained again; evaluation, and back to training. */
static void parameters_keep_their_names(void **state)
{
    (void)state;
    tern_module *m = network();
    tern_nn_train(tern_nn_child(m, "1"), false);
    assert_ok(tern_onnx_export(m, (tern_tensor *[]){rows(4)}, 1, at("model.onnx"), NULL));
    assert_true(tern_nn_is_training(m));
    assert_true(tern_nn_is_training(tern_nn_child(m, "3")));
    assert_false(tern_nn_is_training(tern_nn_child(m, "1")));
    tern_module *again = tern_onnx_load(at("model.onnx"));
    static const char *const names[] = {"0.weight", "0.bias", "1.weight", "1.bias", "4.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_same(tern_nn_parameter(again, names[i]), tern_nn_parameter(m, names[i]));
    assert_same(tern_nn_buffer(again, "1.running_var"), tern_nn_buffer(m, "1.running_var"));
    assert_int_equal(tern_nn_parameter_count(again), 6);
    assert_ok(tern_backward(tern_sum(tern_nn_forward(again, rows(4)))));
    assert_non_null(tern_grad(tern_nn_parameter(again, "0.weight")));
    tern_nn_free(again);
    tern_nn_free(m);
}

static tern_status count_parameter(const char *path, tern_tensor *x, void *count)
{
    (void)path, (void)x;
    ++*(int *)count;
    return TERN_OK;
}

/* One weight for two layers is one initializer. */
static void tied_weights_are_written_once(void **state)
{
    (void)state;
    int count = 0;
    tern_module *m =
        tern_nn_sequential(tern_nn_linear(4, 4, &(tern_linear_options){.no_bias = true}),
                           tern_nn_linear(4, 4, &(tern_linear_options){.no_bias = true}));
    tern_nn_set_parameter(m, "1.weight", tern_nn_parameter(m, "0.weight"));
    tern_tensor *x = tern_randn(TERN_SHAPE(2, 4), TERN_F32, "cpu");
    assert_ok(tern_onnx_export(m, &x, 1, at("model.onnx"), NULL));
    tern_module *again = tern_onnx_load(at("model.onnx"));
    assert_ok(tern_nn_each_parameter(again, count_parameter, &count));
    assert_int_equal(count, 1);
    assert_close(tern_nn_forward(again, x), tern_nn_forward(m, x), .abs = 1e-6);
    tern_nn_free(again);
    tern_nn_free(m);
}

static void weights_beside_the_model(void **state)
{
    (void)state;
    tern_module *m = tern_nn_sequential(tern_nn_linear(64, 64, NULL), tern_nn_linear(64, 2, NULL));
    tern_tensor *x = tern_randn(TERN_SHAPE(2, 64), TERN_F32, "cpu");
    assert_ok(tern_onnx_export(m, &x, 1, at("beside.onnx"),
                               &(tern_onnx_export_options){.external_data = true}));
    assert_true(bytes_of(at("beside.onnx")) < 4096);
    assert_int_equal(bytes_of(at("beside.onnx.data")), 64 * 64 * 4 + 0);
    tern_module *again = tern_onnx_load(at("beside.onnx"));
    assert_close(tern_nn_forward(again, x), tern_nn_forward(m, x), .abs = 1e-5);
    tern_nn_free(again);
    tern_nn_free(m);
}

/* ---- what is refused ------------------------------------------------------------------------------- */

static tern_tensor *by_size(tern_tensor *x)
{
    return tern_mul(x, (double)tern_size(x, 0));
}

static tern_tensor *by_rows(tern_tensor *x)
{
    tern_tensor *sum = tern_select(x, 0, 0);
    for (int64_t i = 1; i < tern_size(x, 0); i++)
        sum = tern_add(sum, tern_select(x, 0, i));
    return sum;
}

static tern_tensor *of_three(tern_tensor *x)
{
    return tern_view(x, TERN_SHAPE(3, 2, 3));
}

static tern_tensor *through_a_view(tern_tensor *x)
{
    tern_tensor *y = tern_clone(x);
    tern_add_(tern_narrow(y, 1, 0, 2), tern_narrow(x, 1, 2, 2));
    return tern_mul(y, 2);
}

static tern_tensor *into_a_constant(tern_tensor *x)
{
    return tern_add_(tern_ones(TERN_SHAPE(3, 6), TERN_F32, "cpu"), x);
}

static tern_tensor *noise(tern_tensor *x)
{
    return tern_dropout(x, 0.5, true);
}

static tern_tensor *spectrum(tern_tensor *x)
{
    return tern_fft_rfft(x, 0, -1, TERN_FFT_BACKWARD);
}

typedef tern_tensor *(*own_function)(tern_tensor *x);

static tern_tensor *call_own(tern_module *self, tern_tensor *x)
{
    return (*(own_function *)tern_nn_data(self))(x);
}

static void what_can_not_be_written(void **state)
{
    static struct {
        own_function function;
        bool dynamic;
        const char *error;
    } cases[] = {
        {by_size, true, "mul of module 1 can't be written to ONNX: its numbers follow"},
        {by_rows, true,
         "does something else with a batch of 3 than with 4, so that it can't be dynamic: "
         "operation 7 is not there with the one, select with the other, in module 1"},
        {of_three, true, "does not take a batch of 4, so that it can't be dynamic: tern_view: "},
        {through_a_view, false, "written in place through another view"},
        {into_a_constant, false, "add of module 1 can't be written to ONNX: it writes"},
        {noise, false, "dropout of module 1 can't be written to ONNX"},
        {spectrum, false, "fft of module 1 can't be written to ONNX"}};
    (void)state;
    tern_tensor *x = rows(3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tern_module *m =
            tern_nn_sequential(tern_nn_tanh(), tern_nn_module("Own", call_own, &cases[i].function));
        assert_int_not_equal(
            tern_onnx_export(m, &x, 1, at("refused.onnx"),
                             &(tern_onnx_export_options){.dynamic_batch = cases[i].dynamic}),
            TERN_OK);
        assert_error(cases[i].function == of_three ? TERN_ERR_SHAPE : TERN_ERR_UNSUPPORTED,
                     cases[i].error);
        assert_int_equal(bytes_of(at("refused.onnx")), -1);
        tern_nn_free(m);
    }
}

static void arguments_are_checked(void **state)
{
    (void)state;
    tern_module *m = network();
    tern_tensor *x = rows(4), *both[] = {x, x};
    static const char *const taken[] = {"0.weight"}, *const same[] = {"x"};
    assert_int_not_equal(tern_onnx_export(NULL, &x, 1, at("model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "module");
    assert_int_not_equal(tern_onnx_export(m, &x, 0, at("model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "0 inputs");
    assert_int_not_equal(tern_onnx_export(m, NULL, 1, at("model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "inputs");
    assert_int_not_equal(tern_onnx_export(m, &x, 1, NULL, NULL), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "path");
    assert_int_not_equal(tern_onnx_export(m, both, 2, at("model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "the same tensor");
    assert_int_not_equal(tern_onnx_export(m, &x, 1, at("model.onnx"),
                                          &(tern_onnx_export_options){.input_names = taken}),
                         TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "'0.weight', which is the name of something else");
    assert_int_not_equal(
        tern_onnx_export(m, &x, 1, at("model.onnx"),
                         &(tern_onnx_export_options){.input_names = same, .output_names = same}),
        TERN_OK);
    assert_error(TERN_ERR_ARGUMENT, "output 0 can't be called 'x'");
    tern_tensor *narrow = tern_randn(TERN_SHAPE(4, 5), TERN_F32, "cpu");
    assert_int_not_equal(tern_onnx_export(m, &narrow, 1, at("model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_SHAPE, "");
    assert_int_not_equal(tern_onnx_export(m, &x, 1, at("no/model.onnx"), NULL), TERN_OK);
    assert_error(TERN_ERR_IO, "");
    tern_nn_free(m);
}

/* Each allocation fails in turn: an error, nothing lost, the old file stays. */
static void failures_are_clean(void **state)
{
    (void)state;
    tern_module *m = network();
    tern_tensor *x = rows(4);
    const tern_onnx_export_options o = {.dynamic_batch = true, .external_data = true};
    assert_ok(tern_onnx_export(m, &x, 1, at("kept.onnx"), &o));
    long before = bytes_of(at("kept.onnx"));
    int64_t live = tern_live_tensors();
    for (uint64_t n = 1;; n++) {
        tern_memory_fail_at(n);
        tern_status status = tern_onnx_export(m, &x, 1, at("kept.onnx"), &o);
        bool all = tern_memory_fail_at(0) < n;
        if (status == TERN_OK)
            assert_no_error();
        else
            assert_error(TERN_ERR_MEMORY, "");
        assert_int_equal(bytes_of(at("kept.onnx")), before);
        assert_int_equal(tern_live_tensors(), live);
        assert_true(tern_nn_is_training(m));
        if (all) {
            assert_int_equal(status, TERN_OK);
            break;
        }
    }
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(modules_come_back),
    TEST(parameters_keep_their_names),
    TEST(tied_weights_are_written_once),
    TEST(weights_beside_the_model),
    TEST(what_can_not_be_written),
    TEST(arguments_are_checked),
    TEST(failures_are_clean),
};

int main(void)
{
    if (!tern_onnx_is_available()) {
        printf("test_onnx_export: skipped: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    snprintf(folder, sizeof folder, "onnx_export.XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int failures = test_main(tests, sizeof tests / sizeof *tests);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) ? 1 : failures;
}
