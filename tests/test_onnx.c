/* test_onnx.c -- ONNX models as modules: names, gradients, devices, training, and files that lie. */
#include "support.h"
#include "folder.h"
#include "onnx_file.h"
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

static const float weight[] = {1, 2, 3, -1, 0.5f, 0}, bias[] = {0.5f, -0.5f};
static const int64_t weight_dims[] = {2, 3}, bias_dims[] = {2};

/* y = relu(x W^T + b), with W and b under names with dots. */
static message linear_graph(message w, message b)
{
    message g = {0}, gemm = node("Gemm", "x", "fc.1.weight", "fc.1.bias", "h"), trans = {0};
    put_text(&trans, 1, "transB");
    put_int(&trans, 3, 1);
    put_int(&trans, 20, 2);
    put_message(&gemm, 5, trans);
    put_message(&g, 1, gemm);
    put_message(&g, 1, node("Relu", "h", "", "", "y"));
    put_text(&g, 2, "Net");
    put_message(&g, 5, w);
    put_message(&g, 5, b);
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    return g;
}

static message plain_weight(void)
{
    return float_tensor("fc.1.weight", 2, weight_dims, weight);
}

static message plain_bias(void)
{
    return float_tensor("fc.1.bias", 1, bias_dims, bias);
}

static void initializers_are_parameters(void **state)
{
    (void)state;
    write_model(in_folder("net.onnx"), linear_graph(plain_weight(), plain_bias()), 17);
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_to(tern_onnx_load(in_folder("net.onnx")), device);
        assert_non_null(m);
        assert_string_equal(tern_nn_name(m), "Net");
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(1, 3), TERN_F32, device);
            tern_tensor *y = tern_nn_forward(m, x);
            assert_values(y, 6.5, 0);
            assert_ok(tern_backward(tern_sum(y)));
            assert_values(tern_grad(tern_nn_parameter(m, "fc.1.weight")), 1, 1, 1, 0, 0, 0);
            assert_values(tern_grad(tern_nn_parameter(m, "fc.1.bias")), 1, 0);
            tern_optimizer *sgd = tern_optim_sgd(m, 1, NULL);
            assert_ok(tern_optim_step(sgd));
            assert_values(tern_nn_forward(m, x), 2.5, 0);
            tern_optim_free(sgd);
            assert_null(tern_nn_forward(m, tern_ones(TERN_SHAPE(1, 4), TERN_F32, device)));
            assert_error(TERN_ERR_SHAPE, "");
        }
        tern_nn_free(m);
    }
}

static message constant_node(const char *name, message tensor)
{
    message n = node("Constant", "", "", "", name), a = {0};
    put_text(&a, 1, "value");
    put_message(&a, 5, tensor);
    put_int(&a, 20, 4);
    put_message(&n, 5, a);
    return n;
}

/* Exporters that write no initializers: what is computed with is a parameter, what has one element or is a size is none. */
static void weights_in_constants_are_parameters(void **state)
{
    (void)state;
    static const float factor[] = {2}, shift[] = {1, 1};
    static const int64_t one[] = {1};
    for (int mixed = 0; mixed < 2;
         mixed++) { /* the bias as an initializer: shift is no parameter then */
        message g = {0}, gemm = node("Gemm", "x", "fc.weight", "fc.bias", "h"), trans = {0};
        put_text(&trans, 1, "transB");
        put_int(&trans, 3, 1);
        put_int(&trans, 20, 2);
        put_message(&gemm, 5, trans);
        put_message(&g, 1, constant_node("fc.weight", float_tensor("", 2, weight_dims, weight)));
        if (!mixed)
            put_message(&g, 1, constant_node("fc.bias", float_tensor("", 1, bias_dims, bias)));
        put_message(&g, 1, constant_node("factor", float_tensor("", 1, one, factor)));
        put_message(&g, 1, constant_node("shift", float_tensor("", 1, bias_dims, shift)));
        put_message(&g, 1, gemm);
        put_message(&g, 1, node("Mul", "h", "factor", "", "m"));
        put_message(&g, 1, node("Add", "m", "shift", "", "y"));
        put_text(&g, 2, "Net");
        if (mixed)
            put_message(&g, 5, float_tensor("fc.bias", 1, bias_dims, bias));
        put_message(&g, 11, named("x"));
        put_message(&g, 12, named("y"));
        write_model(in_folder("constants.onnx"), g, 17);
        FOR_EACH_DEVICE(device)
        {
            tern_module *m = tern_nn_to(tern_onnx_load(in_folder("constants.onnx")), device);
            assert_non_null(m);
            assert_non_null(tern_nn_parameter(m, "fc.weight"));
            assert_non_null(tern_nn_parameter(m, "fc.bias"));
            tern_state_dict *dict = tern_nn_state_dict(m);
            assert_int_equal(tern_state_dict_count(dict), mixed ? 2 : 3);
            tern_state_dict_free(dict);
            TERN_SCOPE {
                tern_tensor *x = tern_ones(TERN_SHAPE(1, 3), TERN_F32, device);
                tern_tensor *y = tern_nn_forward(m, x);
                assert_values(y, 14, -1);
                assert_ok(tern_backward(tern_sum(y)));
                assert_values(tern_grad(tern_nn_parameter(m, "fc.weight")), 2, 2, 2, 2, 2, 2);
            }
            tern_nn_free(m);
        }
    }
}

/* A reshape whose sizes are computed from a shape: (2, 3, 4) -> (2, 12), on any device. */
static void shapes_are_computed_by_the_host(void **state)
{
    (void)state;
    message g = {0}, zero = {0}, minus = {0}, concat = node("Concat", "n1", "rest", "", "to"),
            axis = {0};
    const int64_t place[] = {0}, rest[] = {-1};
    put_message(&g, 1, node("Shape", "x", "", "", "shape"));
    put_message(&g, 1, node("Gather", "shape", "zero", "", "n1"));
    put_text(&axis, 1, "axis");
    put_int(&axis, 3, 0);
    put_int(&axis, 20, 2);
    put_message(&concat, 5, axis);
    put_message(&g, 1, concat);
    put_message(&g, 1, node("Reshape", "x", "to", "", "y"));
    put_int(&zero, 1, 1), put_int(&zero, 2, 7), put_text(&zero, 8, "zero");
    put_block(&zero, 9, place, sizeof place);
    put_int(&minus, 1, 1), put_int(&minus, 2, 7), put_text(&minus, 8, "rest");
    put_block(&minus, 9, rest, sizeof rest);
    put_message(&g, 5, zero);
    put_message(&g, 5, minus);
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    write_model(in_folder("shapes.onnx"), g, 13);
    FOR_EACH_DEVICE(device)
    {
        tern_module *m = tern_nn_to(tern_onnx_load(in_folder("shapes.onnx")), device);
        TERN_SCOPE {
            tern_tensor *x = tern_zeros(TERN_SHAPE(2, 3, 4), TERN_F32, device);
            tern_tensor *y = tern_nn_forward(m, x);
            assert_int_equal(tern_dim(y), 2);
            assert_int_equal(tern_size(y, 1), 12);
            assert_string_equal(tern_device(y), device);
        }
        tern_nn_free(m);
    }
}

/* ---- weights beside the model ---------------------------------------------------------------- */

static void entry(message *t, const char *key, const char *value)
{
    message e = {0};
    put_text(&e, 1, key);
    put_text(&e, 2, value);
    put_message(t, 13, e);
}

static message external_weight(const char *location, const char *offset, const char *length)
{
    message t = {0};
    put_int(&t, 1, 2);
    put_int(&t, 1, 3);
    put_int(&t, 2, 1);
    put_text(&t, 8, "fc.1.weight");
    put_int(&t, 14, 1);
    entry(&t, "location", location);
    entry(&t, "offset", offset);
    if (*length)
        entry(&t, "length", length);
    return t;
}

/* What a file would have to hold is compared with it before there is memory for it. */
static void weights_beside_the_model_that_are_terabytes(void **state)
{
    (void)state;
    message w = external_weight("net.data", "0", "26388279066624");
    message huge = {0};
    put_int(&huge, 1, INT64_C(1) << 40);
    put_bytes(&huge, w.bytes, w.n);
    free(w.bytes);
    FILE *file = fopen(in_folder("net.data"), "wb");
    fclose(file);
    write_model(in_folder("outside.onnx"), linear_graph(huge, plain_bias()), 17);
    assert_null(tern_onnx_load(in_folder("outside.onnx")));
    assert_error(TERN_ERR_IO, "behind the end of net.data (0 bytes)");
    unlink(in_folder("net.data"));
}

static void weights_beside_the_model(void **state)
{
    (void)state;
    FILE *file = fopen(in_folder("net.data"), "wb");
    fwrite("12345678", 1, 8, file);
    fwrite(weight, 1, sizeof weight, file);
    fclose(file);
    assert_int_equal(symlink("net.data", in_folder("link.data")), 0);
    assert_int_equal(mkfifo(in_folder("pipe.data"), 0600), 0);
    static const struct {
        const char *location, *offset, *length, *error;
    } rows[] = {{"net.data", "8", "24", NULL},
                {"net.data", "8", "", NULL},
                {"net.data", "9", "24", "behind the end"},
                {"net.data", "-8", "24", "does not give"},
                {"net.data", "8", "20", "does not give"},
                {"net.data", "8", "24x", "does not give"},
                {"net.data", "9223372036854775807", "24", "behind the end"},
                {"absent.data", "0", "24", "can't be read"},
                {"link.data", "8", "24", "can't be read"},
                {"pipe.data", "8", "24", "can't be read"},
                {"../net.data", "8", "24", "no plain name"},
                {"/etc/passwd", "8", "24", "no plain name"},
                {".", "8", "24", "no plain name"},
                {"", "8", "24", "no plain name"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        write_model(in_folder("outside.onnx"),
                    linear_graph(external_weight(rows[i].location, rows[i].offset, rows[i].length),
                                 plain_bias()),
                    17);
        tern_module *m = tern_onnx_load(in_folder("outside.onnx"));
        if (rows[i].error) {
            assert_null(m);
            assert_error(TERN_ERR_IO, rows[i].error);
            continue;
        }
        TERN_SCOPE
            assert_values(tern_nn_parameter(m, "fc.1.weight"), 1, 2, 3, -1, 0.5, 0);
        tern_nn_free(m);
    }
    unlink(in_folder("link.data"));
    unlink(in_folder("pipe.data"));
    unlink(in_folder("net.data"));
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void refused(message graph, int64_t opset, tern_status status, const char *part)
{
    int64_t live = tern_live_tensors();
    write_model(in_folder("bad.onnx"), graph, opset);
    assert_null(tern_onnx_load(in_folder("bad.onnx")));
    assert_error(status, part);
    assert_int_equal(tern_live_tensors(), live);
}

static message sized(int64_t a, int64_t b, int64_t type)
{
    message t = {0};
    put_int(&t, 1, a);
    put_int(&t, 1, b);
    put_int(&t, 2, type);
    put_text(&t, 8, "fc.1.weight");
    put_block(&t, 9, weight, sizeof weight);
    return t;
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    message g;
    refused(linear_graph(plain_weight(), plain_bias()), 0, TERN_ERR_UNSUPPORTED, "operator set 0");
    refused(linear_graph(plain_weight(), plain_bias()), 99, TERN_ERR_UNSUPPORTED,
            "operator set 99");
    refused(linear_graph(plain_weight(), plain_weight()), 17, TERN_ERR_IO, "defined twice");
    refused(linear_graph(sized(2, 2, 1), plain_bias()), 17, TERN_ERR_IO, "24 bytes");
    refused(linear_graph(sized(INT64_C(1) << 40, INT64_C(1) << 40, 1), plain_bias()), 17,
            TERN_ERR_SHAPE, "overflow");
    refused(linear_graph(sized(-1, 3, 1), plain_bias()), 17, TERN_ERR_SHAPE, "overflow");
    refused(linear_graph(sized(1, 3, 14), plain_bias()), 17, TERN_ERR_DTYPE, "complex64");
    refused(linear_graph(sized(1, 3, 8), plain_bias()), 17, TERN_ERR_DTYPE,
            "reads 'fc.1.weight', which is of type string");
    g = linear_graph(plain_weight(), plain_bias());
    message texts = node("Constant", "", "", "", "texts"), value = {0}, tensor = {0};
    put_int(&tensor, 2, 8);
    put_text(&tensor, 6, "a");
    put_text(&value, 1, "value");
    put_message(&value, 5, tensor);
    put_int(&value, 20, 4);
    put_message(&texts, 5, value);
    put_message(&g, 1, texts);
    refused(g, 17, TERN_ERR_UNSUPPORTED,
            "node 'texts' (Constant, opset 17): a constant of strings");
    g = linear_graph(plain_weight(), plain_bias());
    put_message(&g, 1, node("TfIdfVectorizer", "y", "", "", "z"));
    refused(g, 17, TERN_ERR_UNSUPPORTED, "is TfIdfVectorizer of operator set 17");
    g = linear_graph(plain_weight(), plain_bias());
    put_message(&g, 1, node("Relu", "nowhere", "", "", "z"));
    refused(g, 17, TERN_ERR_IO, "'nowhere'");
    g = linear_graph(plain_weight(), plain_bias());
    put_message(&g, 12, named("elsewhere"));
    refused(g, 17, TERN_ERR_IO, "nothing gives output 1");
    assert_null(tern_onnx_load(in_folder("absent.onnx")));
    assert_error(TERN_ERR_IO, "absent.onnx");
    assert_null(tern_onnx_load(folder));
    assert_error(TERN_ERR_IO, "not a regular file");
    assert_null(tern_onnx_load(NULL));
    assert_error(TERN_ERR_ARGUMENT, "path");
}

/* Every file that is cut off is refused or is a smaller model; none reads beyond its end. */
static void a_file_that_is_cut_off(void **state)
{
    (void)state;
    write_model(in_folder("whole.onnx"), linear_graph(plain_weight(), plain_bias()), 17);
    unsigned char bytes[1000];
    FILE *file = fopen(in_folder("whole.onnx"), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    int refusals = 0;
    for (size_t k = 0; k < n; k++) {
        file = fopen(in_folder("cut.onnx"), "wb");
        fwrite(bytes, 1, k, file);
        fclose(file);
        tern_module *m = tern_onnx_load(in_folder("cut.onnx"));
        refusals += !m;
        tern_clear_error();
        tern_nn_free(m);
    }
    assert_true(refusals > (int)n - 10);
}

static void nesting_and_swelling_have_limits(void **state)
{
    (void)state;
    message inner = {0};
    for (int i = 0; i < 10000;
         i++) { /* an attribute that is a graph with a node with an attribute */
        message attribute = {0}, n = {0}, g = {0};
        put_message(&attribute, 6, inner);
        put_message(&n, 5, attribute);
        put_message(&g, 1, n);
        inner = g;
        if (inner.n > 100000)
            break;
    }
    refused(inner, 17, TERN_ERR_IO, "nested more than 32 deep");
    message many = {0};
    for (int i = 0; i < 400000; i++)
        put_block(&many, 1, "", 0); /* empty nodes, of 2 bytes each */
    refused(many, 17, TERN_ERR_IO, "bytes of memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(initializers_are_parameters),
                                       TEST(weights_in_constants_are_parameters),
                                       TEST(shapes_are_computed_by_the_host),
                                       TEST(weights_beside_the_model),
                                       TEST(weights_beside_the_model_that_are_terabytes),
                                       TEST(what_is_no_model_is_refused),
                                       TEST(a_file_that_is_cut_off),
                                       TEST(nesting_and_swelling_have_limits)};
    if (!tern_onnx_is_available()) {
        printf("test_onnx: skipped: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    return folder_main(tests, sizeof tests / sizeof *tests);
}
