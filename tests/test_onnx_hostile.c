/* test_onnx_hostile.c -- ONNX models of one node that asks for what nobody has: an error when it is loaded or run, nothing
 * written outside of memory, nothing left. */
#include "onnx_file.h"
#include "support.h"
#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { INPUTS = 3 };
#define BIG  (INT64_C(1) << 62)
#define WRAP ((INT64_C(1) << 32) + 1) /* 1, if cut to 32 bits */

/* Numbers of an attribute or of an input that the file holds: integers, or reals. */
typedef struct numbers {
    int n; /* -1 of an attribute: one integer, no list; of an input: left out */
    bool real;
    int64_t whole[6];
    double reals[6];
} numbers;

#define INTS(...)                                                                                  \
    {                                                                                              \
        .n = (int)(sizeof((int64_t[]){__VA_ARGS__}) / 8), .whole = { __VA_ARGS__ }                 \
    }
#define REALS(...)                                                                                 \
    {                                                                                              \
        .n = (int)(sizeof((double[]){__VA_ARGS__}) / 8), .real = true, .reals = { __VA_ARGS__ }    \
    }
#define ONE(value)                                                                                 \
    {                                                                                              \
        .n = -1, .whole = { value }                                                                \
    }
#define LEFT_OUT                                                                                   \
    {                                                                                              \
        .n = -1                                                                                    \
    }

typedef struct hostile {
    const char *op, *name; /* name: of the attribute */
    numbers attribute;
    int n_inputs; /* behind x, which is float32 (1, 4, 4, 4) */
    numbers input[INPUTS];
    const char *mode; /* the attribute "mode" */
    bool no_x;
} hostile;

static const hostile cases[] = {
    {.op = "Pad", .n_inputs = 1, .input = {INTS(BIG, 0, 0, 0, 0)}},
    {.op = "Pad", .n_inputs = 3, .input = {INTS(BIG, 0), LEFT_OUT, INTS(1)}, .mode = "edge"},
    {.op = "Pad", .n_inputs = 3, .input = {INTS(0, BIG), LEFT_OUT, INTS(1)}, .mode = "reflect"},
    {.op = "Pad", .n_inputs = 3, .input = {INTS(BIG, -BIG), LEFT_OUT, INTS(1)}, .mode = "wrap"},
    {.op = "Pad", .n_inputs = 3, .input = {INTS(1, 1), LEFT_OUT, INTS(WRAP)}, .mode = "edge"},
    {.op = "Pad", .n_inputs = 3, .input = {INTS(-9, 0), LEFT_OUT, INTS(1)}, .mode = "edge"},
    {.op = "Resize", .n_inputs = 2, .input = {LEFT_OUT, REALS(1, 1, 1, 1e300)}, .mode = "nearest"},
    {.op = "Resize", .n_inputs = 2, .input = {LEFT_OUT, REALS(1, 1, 1, NAN)}, .mode = "linear"},
    {.op = "Resize", .n_inputs = 2, .input = {LEFT_OUT, REALS(1, 1, 1, -2)}, .mode = "linear"},
    {.op = "Resize", .n_inputs = 2, .input = {LEFT_OUT, REALS(1, 1, 1)}, .mode = "cubic"},
    {.op = "Resize",
     .n_inputs = 3,
     .input = {LEFT_OUT, LEFT_OUT, INTS(1, 4, 4, BIG)},
     .mode = "linear"},
    {.op = "Resize", .n_inputs = 3, .input = {LEFT_OUT, LEFT_OUT, INTS(1, 4, 4, -1)}},
    {.op = "DepthToSpace", .name = "blocksize", .attribute = ONE(INT64_C(1) << 32)},
    {.op = "DepthToSpace", .name = "blocksize", .attribute = ONE(0)},
    {.op = "DepthToSpace", .name = "blocksize", .attribute = ONE(-2)},
    {.op = "SpaceToDepth", .name = "blocksize", .attribute = ONE(INT64_C(1) << 32)},
    {.op = "Reshape", .n_inputs = 1, .input = {INTS(-1, -1)}},
    {.op = "Reshape", .n_inputs = 1, .input = {INTS(BIG, 4)}},
    {.op = "Reshape", .n_inputs = 1, .input = {INTS(-2, 2)}},
    {.op = "Reshape", .n_inputs = 1, .input = {LEFT_OUT}},
    {.op = "Expand", .n_inputs = 1, .input = {INTS(BIG, BIG, 4, 4, 4)}},
    {.op = "Expand", .n_inputs = 1, .input = {INTS(-3)}},
    {.op = "Tile", .n_inputs = 1, .input = {INTS(BIG, BIG, 2, 2)}},
    {.op = "Tile", .n_inputs = 1, .input = {INTS(-1, 1, 1, 1)}},
    {.op = "ConstantOfShape", .n_inputs = 1, .input = {INTS(BIG, 4)}, .no_x = true},
    {.op = "ConstantOfShape", .n_inputs = 1, .input = {INTS(-1)}, .no_x = true},
    {.op = "Range", .n_inputs = 3, .input = {INTS(0), INTS(BIG), INTS(1)}, .no_x = true},
    {.op = "Range", .n_inputs = 3, .input = {INTS(0), INTS(5), INTS(0)}, .no_x = true},
    {.op = "OneHot", .n_inputs = 2, .input = {INTS(BIG), REALS(0, 1)}},
    {.op = "Slice", .n_inputs = 2, .input = {INTS(0), INTS(1, 2)}},
    {.op = "Slice", .n_inputs = 3, .input = {INTS(0), INTS(2), INTS(WRAP)}},
    {.op = "Slice", .n_inputs = 3, .input = {INTS(0), INTS(2), INTS(-5)}},
    {.op = "Split", .name = "axis", .attribute = ONE(WRAP)},
    {.op = "Split", .name = "axis", .attribute = ONE(1), .n_inputs = 1, .input = {INTS(-1)}},
    {.op = "Split", .name = "axis", .attribute = ONE(1), .n_inputs = 1, .input = {INTS(2, 2)}},
    {.op = "Split", .name = "axis", .attribute = ONE(1), .n_inputs = 1, .input = {INTS(5)}},
    {.op = "Squeeze", .n_inputs = 1, .input = {INTS(WRAP - 1)}},
    {.op = "Squeeze", .n_inputs = 1, .input = {INTS(0, 0)}},
    {.op = "Squeeze", .n_inputs = 1, .input = {INTS(1)}},
    {.op = "Unsqueeze", .n_inputs = 1, .input = {INTS(100)}},
    {.op = "Unsqueeze", .n_inputs = 1, .input = {INTS(0, 0)}},
    {.op = "Unsqueeze", .n_inputs = 1, .input = {INTS(-WRAP)}},
    {.op = "Transpose", .name = "perm", .attribute = INTS(0, 0, 1, 2)},
    {.op = "Transpose", .name = "perm", .attribute = INTS(0, 1, 2)},
    {.op = "Transpose", .name = "perm", .attribute = INTS(0, 1, 2, WRAP)},
    {.op = "Concat", .name = "axis", .attribute = ONE(WRAP)},
    {.op = "Concat", .name = "axis", .attribute = ONE(-WRAP)},
    {.op = "Flatten", .name = "axis", .attribute = ONE(-WRAP)},
    {.op = "Gather", .name = "axis", .attribute = ONE(WRAP), .n_inputs = 1, .input = {INTS(0)}},
    {.op = "Gather", .name = "axis", .attribute = ONE(1), .n_inputs = 1, .input = {INTS(4)}},
    {.op = "Gather", .name = "axis", .attribute = ONE(1), .n_inputs = 1, .input = {INTS(-5)}},
    {.op = "Gather",
     .name = "axis",
     .attribute = ONE(1),
     .n_inputs = 1,
     .input = {INTS(INT64_MIN)}},
    {.op = "GatherND", .n_inputs = 1, .input = {INTS(0, 0, 0, 0, 0)}},
    {.op = "GatherND", .n_inputs = 1, .input = {INTS(0, 9)}},
    {.op = "TopK", .n_inputs = 1, .input = {INTS(BIG)}},
    {.op = "TopK", .n_inputs = 1, .input = {INTS(-1)}},
    {.op = "TopK", .name = "axis", .attribute = ONE(WRAP), .n_inputs = 1, .input = {INTS(1)}},
    {.op = "ReduceSum", .n_inputs = 1, .input = {INTS(WRAP)}},
    {.op = "ReduceProd", .n_inputs = 1, .input = {INTS(-5)}},
    {.op = "ArgMax", .name = "axis", .attribute = ONE(WRAP)},
    {.op = "CumSum", .n_inputs = 1, .input = {INTS(WRAP)}},
    {.op = "CumSum", .n_inputs = 1, .input = {INTS(0, 1)}},
    {.op = "Softmax", .name = "axis", .attribute = ONE(WRAP)},
    {.op = "LayerNormalization",
     .name = "axis",
     .attribute = ONE(7),
     .n_inputs = 1,
     .input = {REALS(1)}},
    {.op = "LayerNormalization",
     .name = "axis",
     .attribute = ONE(-WRAP),
     .n_inputs = 1,
     .input = {REALS(1)}},
    {.op = "GroupNormalization",
     .name = "num_groups",
     .attribute = ONE(0),
     .n_inputs = 2,
     .input = {REALS(1), REALS(1)}},
    {.op = "BatchNormalization", .n_inputs = 1, .input = {REALS(1, 1, 1, 1)}},
    {.op = "LRN", .name = "size", .attribute = ONE(-1)},
    {.op = "Conv", .name = "pads", .attribute = INTS(BIG, 0, 0, 0)},
    {.op = "Conv", .name = "strides", .attribute = INTS(0, 1)},
    {.op = "Conv", .name = "dilations", .attribute = INTS(-1, 1)},
    {.op = "Conv", .name = "group", .attribute = ONE(0)},
    {.op = "Conv", .name = "group", .attribute = ONE(BIG)},
    {.op = "Conv", .name = "pads", .attribute = INTS(1, 1)},
    {.op = "ConvTranspose", .name = "output_shape", .attribute = INTS(5)},
    {.op = "ConvTranspose", .name = "output_shape", .attribute = INTS(BIG, BIG)},
    {.op = "ConvTranspose", .name = "output_padding", .attribute = INTS(BIG, 0)},
    {.op = "MaxPool", .name = "kernel_shape", .attribute = INTS(0, 2)},
    {.op = "MaxPool", .name = "kernel_shape", .attribute = INTS(BIG, BIG)},
    {.op = "MaxPool", .name = "kernel_shape", .attribute = INTS(9, 9)},
    {.op = "AveragePool", .name = "kernel_shape", .attribute = INTS(2)},
    {.op = "AveragePool", .name = "kernel_shape", .attribute = INTS(-2, -2)},
    {.op = "Relu", .no_x = true},
    {.op = "Add"},
    {.op = "Gemm"},
    {.op = "MatMul", .n_inputs = 1, .input = {REALS(1, 2, 3)}},
    {.op = "Einsum"},
    {.op = "Cast"},
    {.op = "Cast", .name = "to", .attribute = ONE(99)},
    {.op = "LSTM", .n_inputs = 2, .input = {REALS(1), REALS(1)}},
    {.op = "If"},
    {.op = "If", .n_inputs = 1, .input = {INTS(1, 2)}, .no_x = true},
    {.op = "Loop"},
    {.op = "Loop", .n_inputs = 1, .input = {INTS(BIG)}, .no_x = true},
    {.op = "Scan", .name = "num_scan_inputs", .attribute = ONE(BIG)},
    {.op = "Scan", .name = "num_scan_inputs", .attribute = ONE(1)},
    {.op = "DFT", .name = "axis", .attribute = ONE(WRAP)},
    {.op = "DFT", .name = "axis", .attribute = ONE(3)},
    {.op = "DFT", .n_inputs = 1, .input = {INTS(BIG)}},
    {.op = "DFT", .n_inputs = 1, .input = {INTS(-1)}},
    {.op = "STFT", .n_inputs = 1, .input = {INTS(0)}},
    {.op = "STFT", .n_inputs = 1, .input = {INTS(BIG)}},
    {.op = "HannWindow", .n_inputs = 1, .input = {INTS(BIG)}, .no_x = true},
    {.op = "HammingWindow", .n_inputs = 1, .input = {INTS(-1)}, .no_x = true},
    {.op = "BlackmanWindow",
     .name = "output_datatype",
     .attribute = ONE(WRAP),
     .n_inputs = 1,
     .input = {INTS(4)},
     .no_x = true},
    {.op = "MelWeightMatrix", .n_inputs = 3, .input = {INTS(BIG), INTS(8), INTS(8)}, .no_x = true},
    {.op = "QuantizeLinear"},
    {.op = "QuantizeLinear", .n_inputs = 2, .input = {REALS(1, 1, 1), INTS(1, 1, 1)}},
    {.op = "QuantizeLinear",
     .name = "axis",
     .attribute = ONE(WRAP),
     .n_inputs = 1,
     .input = {REALS(1, 1, 1, 1)}},
    {.op = "DequantizeLinear", .n_inputs = 1, .input = {REALS(1, 1, 1)}},
    {.op = "DynamicQuantizeLinear", .no_x = true},
    {.op = "ConvInteger", .n_inputs = 1, .input = {INTS(1)}},
    {.op = "MatMulInteger", .n_inputs = 1, .input = {INTS(1)}},
    {.op = "QLinearConv", .n_inputs = 3, .input = {REALS(1), INTS(1), INTS(1)}},
    {.op = "QLinearMatMul", .n_inputs = 3, .input = {REALS(1), INTS(1), INTS(1)}},
    {.op = "GridSample", .n_inputs = 1, .input = {REALS(1)}},
};

/* ---- the model ------------------------------------------------------------------------------------- */

static message input_tensor(const char *name, const numbers *v)
{
    message t = {0};
    float reals[6];
    for (int i = 0; i < v->n; i++)
        reals[i] = (float)v->reals[i];
    put_int(&t, 1, v->n);
    put_int(&t, 2, v->real ? 1 : 7);
    put_text(&t, 8, name);
    if (v->real)
        put_block(&t, 9, reals, sizeof *reals * (size_t)v->n);
    else
        put_block(&t, 9, v->whole, sizeof *v->whole * (size_t)v->n);
    return t;
}

static void put_attribute(message *n, const char *name, const numbers *v)
{
    message a = {0};
    put_text(&a, 1, name);
    put_int(&a, 20, v->n < 0 ? 2 : 7);
    for (int i = 0; i < (v->n < 0 ? 1 : v->n); i++)
        put_int(&a, v->n < 0 ? 3 : 8, v->whole[i]);
    put_message(n, 5, a);
}

static message graph_of(const hostile *h)
{
    message g = {0}, n = {0};
    char name[8];
    bool weighed = !strncmp(h->op, "Conv", 4); /* by 3 x 3 windows of 4 channels */
    static const float weight[4 * 4 * 3 * 3];
    static const int64_t dims[] = {4, 4, 3, 3};
    if (!h->no_x)
        put_text(&n, 1, "x");
    if (weighed) {
        put_text(&n, 1, "w");
        put_message(&g, 5, float_tensor("w", 4, dims, weight));
    }
    for (int i = 0; i < h->n_inputs; i++) {
        snprintf(name, sizeof name, h->input[i].n < 0 ? "" : "in%d", i);
        put_text(&n, 1, name);
        if (*name)
            put_message(&g, 5, input_tensor(name, &h->input[i]));
    }
    put_text(&n, 2, "y");
    put_text(&n, 4, h->op);
    if (h->name)
        put_attribute(&n, h->name, &h->attribute);
    if (h->mode) {
        message a = {0};
        put_text(&a, 1, "mode");
        put_text(&a, 4, h->mode);
        put_int(&a, 20, 3);
        put_message(&n, 5, a);
    }
    put_message(&g, 1, n);
    put_message(&g, 11, named("x"));
    put_message(&g, 12, named("y"));
    return g;
}

static void nodes_that_ask_for_too_much(void **state)
{
    (void)state;
    char path[] = "onnx-hostile-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    int failures = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hostile *h = &cases[i];
        int64_t live = tern_live_tensors();
        write_model(path, graph_of(h), 18);
        tern_module *m = tern_onnx_load(path);
        TERN_SCOPE {
            tern_tensor *x = tern_ones(TERN_SHAPE(1, 4, 4, 4), TERN_F32, "cpu");
            tern_tensor *y = m ? tern_nn_forward(m, x) : NULL;
            if (y || tern_last_status() == TERN_OK || !*tern_last_error()) {
                print_error("case %zu, %s: %s\n", i, h->op,
                            y ? "a result" : "no result, and no error");
                failures++;
            }
            tern_clear_error();
        }
        tern_nn_free(m);
        assert_int_equal(tern_live_tensors(), live);
    }
    unlink(path);
    assert_int_equal(failures, 0);
}

/* ---- models that are none --------------------------------------------------------------------------- */

static void refused(message model, const char *part)
{
    char path[] = "onnx-hostile-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, model.bytes, model.n), model.n);
    close(fd);
    free(model.bytes);
    assert_null(tern_onnx_load(path));
    assert_error(TERN_ERR_IO, part);
    unlink(path);
}

static message model_of(message graph)
{
    message model = {0}, set = {0};
    put_int(&set, 2, 17);
    put_int(&model, 1, 8);
    put_message(&model, 7, graph);
    put_message(&model, 8, set);
    return model;
}

static void names_that_are_missing(void **state)
{
    (void)state;
    static const float one = 1;
    static const int64_t dims[] = {1};
    message g = {0}, nameless = {0}, typeless = {0};
    put_int(&nameless, 1, 1);
    put_int(&nameless, 2, 1);
    put_block(&nameless, 9, &one, sizeof one);
    put_message(&g, 5, nameless);
    refused(model_of(g), "initializer 0 has no name");
    g = (message){0};
    put_text(&typeless, 2, "y");
    put_message(&g, 1, typeless);
    put_message(&g, 12, named("y"));
    refused(model_of(g), "a node without a type");
    g = (message){0};
    put_message(&g, 5, float_tensor("", 1, dims, &one));
    put_message(&g, 5, float_tensor("", 1, dims, &one));
    refused(model_of(g), "defined twice");
    g = (message){0};
    put_message(&g, 1, node("Relu", "y", "", "", "y"));
    refused(model_of(g), "nothing before it");
    g = (message){0};
    put_message(&g, 12, (message){0});
    refused(model_of(g), "nothing gives output 0");
    message bytes = {0};
    put_bytes(&bytes, "\x08\x09\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13);
    refused(bytes, "longer than what is left");
    bytes = (message){0};
    put_bytes(&bytes, "\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 14);
    refused(bytes, "cut off");
    bytes = (message){0};
    put_bytes(&bytes, "\x0f\x0f", 2);
    refused(bytes, "wire format");
    bytes = (message){0};
    put_int(&bytes, 1, 8);
    refused(bytes, "");
}

static const struct CMUnitTest tests[] = {
    TEST(nodes_that_ask_for_too_much),
    TEST(names_that_are_missing),
};

int main(void)
{
    if (!tern_onnx_is_available()) {
        printf("test_onnx_hostile: skipped: libprotobuf-c.so.1 can't be opened\n");
        return 77;
    }
    return test_main(tests, sizeof tests / sizeof *tests);
}
