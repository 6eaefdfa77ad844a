/* test_transformer.c -- attention with heads and transformers: PyTorch's
 * numbers, gradients, names. */
#include "support.h"
#include <ctype.h>
#include <stdio.h>

/* ---- PyTorch's numbers --------------------------------------------------------------------- */

typedef tern_multihead_attention_options heads_options;
typedef tern_transformer_layer_options layer_options;

static tern_module *heads(int64_t n, const heads_options *options)
{
    return tern_nn_multihead_attention(4, n, options);
}

static const heads_options extra = {
    .add_bias_kv = true, .add_zero_attn = true, .kdim = 3, .vdim = 2};
static const layer_options post = {.dim_feedforward = 3, .dropout = TERN_ZERO},
                           pre = {.dim_feedforward = 3,
                                  .dropout = TERN_ZERO,
                                  .activation = TERN_ACTIVATION_GELU,
                                  .layer_norm_eps = 1e-3,
                                  .batch_first = true,
                                  .norm_first = true};

static tern_module *self_(void)
{
    return heads(2, NULL);
}
static tern_module *first(void)
{
    return heads(2, &(heads_options){.batch_first = true});
}
static tern_module *memory(void)
{
    return heads(2, &(heads_options){.no_bias = true});
}
static tern_module *extra_(void)
{
    return heads(2, &extra);
}
static tern_module *numbers(void)
{
    return heads(2, &(heads_options){.batch_first = true, .add_bias_kv = true});
}
static tern_module *alone(void)
{
    return heads(1, NULL);
}
static tern_module *encoder_layer(void)
{
    return tern_nn_transformer_encoder_layer(4, 2, &post);
}
static tern_module *encoder_layer_first(void)
{
    return tern_nn_transformer_encoder_layer(4, 2, &pre);
}
static tern_module *decoder_layer(void)
{
    return tern_nn_transformer_decoder_layer(4, 2, &post);
}
static tern_module *decoder_layer_first(void)
{
    return tern_nn_transformer_decoder_layer(4, 2, &pre);
}
static tern_module *encoder(void)
{
    return tern_nn_transformer_encoder(encoder_layer_first(), 2,
                                       tern_nn_layer_norm(TERN_SHAPE(4), NULL));
}
static tern_module *decoder(void)
{
    return tern_nn_transformer_decoder(decoder_layer(), 2, NULL);
}
static tern_module *transformer(void)
{
    return tern_nn_transformer(&(tern_transformer_options){
        .d_model = 4, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1, .layer = post});
}

/* Of golden/transformer.py. inputs[i] is which of its inputs is the i-th here, x for any tensor, -
 * for none. */
typedef struct sample {
    const char *name;
    tern_module *(*make)(void);
    const char *inputs;
    int results;
} sample;

static const sample samples[] = {
    {"self", self_, "000", 2},
    {"first", first, "000-4", 1},
    {"first", first, "000--x", 1},
    {"memory", memory, "01134", 1},
    {"extra", extra_, "01234-x", 2},
    {"numbers", numbers, "01234", 1},
    {"single", self_, "012-4", 2},
    {"alone", alone, "0123", 1},
    {"encoder_layer", encoder_layer, "0-2", 1},
    {"encoder_layer_first", encoder_layer_first, "01", 1},
    {"encoder_layer_first", encoder_layer_first, "0--x", 1},
    {"decoder_layer", decoder_layer, "012--5", 1},
    {"decoder_layer", decoder_layer, "01---5x", 1},
    {"decoder_layer_first", decoder_layer_first, "0123", 1},
    {"encoder", encoder, "0-2", 1},
    {"decoder", decoder, "01", 1},
    {"transformer", transformer, "01-3", 1},
    {"transformer", transformer, "01-------x", 1},
};
enum { SAMPLES = sizeof samples / sizeof *samples, INPUTS = 11 };

typedef struct source {
    test_golden *file;
    const char *name, *device;
    int parameters;
} source;

static tern_tensor *read_source(const source *s, const char *name, const char *suffix,
                                const char *device)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s%s", s->name, name, suffix);
    return test_golden_has(s->file, full) ? test_golden_tensor(s->file, full, device) : NULL;
}

static void compare(const source *s, const char *name, const char *suffix, const tern_tensor *x)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s%s on %s", s->name, name, suffix, s->device);
    test_close(x, read_source(s, name, suffix, "cpu"), (test_tolerance){.abs = 1e-9, .rel = 1e-9},
               full, __FILE__, __LINE__);
}

static tern_status load(const char *path, tern_tensor *x, void *user)
{
    source *s = user;
    tern_tensor *value = read_source(s, path, "", s->device);
    assert_non_null(value);
    assert_true(tern_same_shape(x, value));
    assert_non_null(tern_set_data_(x, value));
    s->parameters++;
    return TERN_OK;
}

static tern_status compare_gradient(const char *path, tern_tensor *x, void *user)
{
    compare(user, path, ".d", tern_grad(x));
    return TERN_OK;
}

static int read_inputs(const source *s, const char *which, tern_tensor **in)
{
    char name[8];
    int n = 0;
    for (; which[n]; n++) {
        const char *before = strchr(which, which[n]);
        snprintf(name, sizeof name, "in%c", which[n]);
        if (which[n] == '-')
            in[n] = NULL;
        else if (which[n] == 'x')
            in[n] = in[0];
        else if (before < which + n)
            in[n] = in[before - which];
        else
            in[n] = read_source(s, name, "", s->device);
        if (isdigit((unsigned char)which[n]) && before == which + n &&
            read_source(s, name, ".d", "cpu"))
            tern_requires_grad_(in[n], true);
    }
    return n;
}

static tern_tensor *weighted(tern_tensor *y)
{
    tern_tensor *w = tern_arange(1, (double)tern_numel(y) + 1, 1, TERN_F64, tern_device(y));
    w = tern_view(tern_div_scalar(w, TERN_SCALAR(8)), tern_shape_of(y));
    return tern_sum(tern_mul(y, w));
}

static void run_sample(const sample *c, source *s)
{
    static const char *const results[] = {"out0", "out1"};
    tern_module *m = c->make();
    tern_tensor *in[INPUTS], *out[2], *loss = NULL;
    assert_non_null(m);
    assert_ok(tern_nn_each_parameter(m, load, s));
    assert_int_equal(s->parameters, tern_nn_parameter_count(m));
    int n = read_inputs(s, c->inputs, in);
    assert_ok(tern_nn_call(m, in, n, out, c->results));
    for (int i = 0; i < c->results; i++) {
        compare(s, results[i], "", out[i]);
        loss = loss ? tern_add(loss, weighted(out[i])) : weighted(out[i]);
    }
    assert_ok(tern_backward(loss));
    assert_ok(tern_nn_each_parameter(m, compare_gradient, s));
    for (int i = 0; i < n; i++)
        if (isdigit((unsigned char)c->inputs[i]) && tern_requires_grad(in[i])) {
            char name[8];
            snprintf(name, sizeof name, "in%c", c->inputs[i]);
            compare(s, name, ".d", tern_grad(in[i]));
        }
    tern_nn_free(m);
}

static void modules_are_pytorch_s(void **state)
{
    (void)state;
    test_golden *file = test_golden_open("transformer");
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < SAMPLES; i++)
        TERN_SCOPE {
            source s = {file, samples[i].name, device, 0};
            run_sample(&samples[i], &s);
        }
    test_golden_close(file);
}

/* ---- names and text ------------------------------------------------------------------------ */

static tern_status add_name(const char *path, tern_tensor *x, void *user)
{
    char *text = user;
    (void)x;
    strcat(strcat(text, path), " ");
    return TERN_OK;
}

static void parameters_are_named_and_ordered_as_in_pytorch(void **state)
{
    (void)state;
    char text[2048] = "";
    tern_module *m = heads(2, &extra);
    assert_ok(tern_nn_each_parameter(m, add_name, text));
    assert_string_equal(text, "q_proj_weight k_proj_weight v_proj_weight in_proj_bias bias_k "
                              "bias_v out_proj.weight out_proj.bias ");
    tern_nn_free(m);
    m = transformer();
    *text = '\0';
    assert_ok(tern_nn_each_parameter(m, add_name, text));
    assert_string_equal(
        text,
        "encoder.layers.0.self_attn.in_proj_weight encoder.layers.0.self_attn.in_proj_bias "
        "encoder.layers.0.self_attn.out_proj.weight encoder.layers.0.self_attn.out_proj.bias "
        "encoder.layers.0.linear1.weight encoder.layers.0.linear1.bias "
        "encoder.layers.0.linear2.weight encoder.layers.0.linear2.bias "
        "encoder.layers.0.norm1.weight encoder.layers.0.norm1.bias encoder.layers.0.norm2.weight "
        "encoder.layers.0.norm2.bias encoder.norm.weight encoder.norm.bias "
        "decoder.layers.0.self_attn.in_proj_weight decoder.layers.0.self_attn.in_proj_bias "
        "decoder.layers.0.self_attn.out_proj.weight decoder.layers.0.self_attn.out_proj.bias "
        "decoder.layers.0.multihead_attn.in_proj_weight "
        "decoder.layers.0.multihead_attn.in_proj_bias "
        "decoder.layers.0.multihead_attn.out_proj.weight "
        "decoder.layers.0.multihead_attn.out_proj.bias decoder.layers.0.linear1.weight "
        "decoder.layers.0.linear1.bias decoder.layers.0.linear2.weight "
        "decoder.layers.0.linear2.bias decoder.layers.0.norm1.weight decoder.layers.0.norm1.bias "
        "decoder.layers.0.norm2.weight decoder.layers.0.norm2.bias decoder.layers.0.norm3.weight "
        "decoder.layers.0.norm3.bias decoder.norm.weight decoder.norm.bias ");
    tern_nn_free(m);
}

static void modules_print_as_in_pytorch(void **state)
{
    (void)state;
    tern_module *m = tern_nn_transformer_encoder(
        tern_nn_transformer_encoder_layer(8, 2, &(layer_options){.dropout = TERN_ZERO}), 1,
        tern_nn_layer_norm(TERN_SHAPE(8), NULL));
    char *text = tern_nn_to_text(m);
    assert_string_equal(
        text, "TransformerEncoder(\n"
              "  (layers): ModuleList(\n"
              "    (0): TransformerEncoderLayer(\n"
              "      (self_attn): MultiheadAttention(\n"
              "        (out_proj): NonDynamicallyQuantizableLinear(in_features=8, out_features=8, "
              "bias=True)\n"
              "      )\n"
              "      (linear1): Linear(in_features=8, out_features=2048, bias=True)\n"
              "      (dropout): Dropout(p=0.0, inplace=False)\n"
              "      (linear2): Linear(in_features=2048, out_features=8, bias=True)\n"
              "      (norm1): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
              "      (norm2): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
              "      (dropout1): Dropout(p=0.0, inplace=False)\n"
              "      (dropout2): Dropout(p=0.0, inplace=False)\n"
              "    )\n"
              "  )\n"
              "  (norm): LayerNorm((8,), eps=1e-05, elementwise_affine=True)\n"
              ")");
    tern_free_text(text);
    tern_nn_free(m);
}

static const struct CMUnitTest tests[] = {
    TEST(modules_are_pytorch_s),
    TEST(parameters_are_named_and_ordered_as_in_pytorch),
    TEST(modules_print_as_in_pytorch),
};

TEST_MAIN(tests)
