/* test_quantize.c -- linear layers in 4 and 8 bits, beside bitsandbytes' own numbers. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const tern_quantization types[] = {TERN_QUANTIZE_NF4, TERN_QUANTIZE_INT8,
                                          TERN_QUANTIZE_INT4};
/* Of a layer's largest weight: how far others may be off. */
static const double off[] = {0.16, 0.5 / 127 + 1e-6, 1.0 / 15 + 1e-6};

/* ---- bitsandbytes' file ------------------------------------------------------------------------ */

static void nf4_is_bitsandbytes(void **state)
{
    static const char *const names[] = {"plain.weight", "double.weight"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_state_dict *r = models_reference("quantized", "nf4.safetensors", device);
            tern_module *m = tern_quantized_from_state_dict(r, names[i], NULL);
            if (!m)
                fail_msg("%s: %s", names[i], tern_last_error());
            tern_tensor *w = models_get(r, "%s.dequantized", names[i]), *x = models_get(r, "input");
            assert_same(tern_dequantize_weight(m), w);
            assert_near(tern_nn_forward(m, x), tern_linear(x, w, NULL), 1e-6, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void nf4_is_made_and_written_as_bitsandbytes_does(void **state)
{
    static const char *const suffixes[] = {"", ".absmax", ".quant_map",
                                           ".quant_state.bitsandbytes__nf4"};
    (void)state;
    TERN_SCOPE {
        tern_state_dict *r = models_reference("quantized", "nf4.safetensors", "cpu"),
                        *own = tern_state_dict_new();
        tern_module *linear =
            tern_nn_linear(128, 24, &(tern_linear_options){.no_bias = true, .device = "cpu"});
        TERN_NO_GRAD
            assert_non_null(
                tern_copy_(tern_nn_parameter(linear, "weight"), models_get(r, "original")));
        tern_module *m = tern_quantize_linear(linear, TERN_QUANTIZE_NF4);
        assert_non_null(m);
        assert_ok(tern_quantized_to_state_dict(m, own, "plain.weight"));
        assert_int_equal(tern_state_dict_count(own), 4);
        for (int i = 0; i < 4; i++)
            assert_same(models_get(own, "plain.weight%s", suffixes[i]),
                        models_get(r, "plain.weight%s", suffixes[i]));
        tern_nn_free(m);
        m = tern_quantize_linear(linear, TERN_QUANTIZE_INT8);
        assert_ok(tern_quantized_to_state_dict(m, own, "a.weight"));
        assert_non_null(tern_state_dict_get(own, "a.SCB"));
        tern_module *again = tern_quantized_from_state_dict(own, "a.weight", NULL);
        assert_non_null(again);
        assert_same(tern_dequantize_weight(again), tern_dequantize_weight(m));
        tern_nn_free(again);
        tern_nn_free(m);
        tern_nn_free(linear);
        tern_state_dict_free(own);
        tern_state_dict_free(r);
    }
}

/* ---- layers -------------------------------------------------------------------------------------- */

/* Of few rows and many. */
static void products_and_gradients_are_those_of_the_weight(void **state)
{
    const int64_t sizes[][3] = {{24, 64, 3}, {7, 11, 3}, {1, 1, 3}, {40, 96, 20}, {6, 10, 1}};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 15; i++)
        TERN_SCOPE {
            const int64_t *size = sizes[i / 3];
            if (types[i % 3] == TERN_QUANTIZE_INT4 && size[1] % 2)
                continue;
            tern_module *linear =
                tern_nn_linear(size[1], size[0], &(tern_linear_options){.device = device});
            tern_module *m = tern_quantize_linear(linear, types[i % 3]);
            assert_non_null(m);
            tern_tensor *w = tern_dequantize_weight(m), *own = tern_nn_parameter(linear, "weight");
            double most = tern_item(tern_max(tern_abs(own)));
            assert_near(w, tern_detach(own), 0, most * off[i % 3]);
            tern_tensor *x = tern_requires_grad_(
                tern_randn(TERN_SHAPE(2, size[2], size[1]), TERN_F32, device), true);
            tern_tensor *copy = tern_requires_grad_(tern_detach(tern_clone(x)), true);
            tern_tensor *y = tern_nn_forward(m, x);
            tern_tensor *expected = tern_linear(copy, w, tern_nn_parameter(linear, "bias"));
            assert_near(y, tern_detach(expected), 1e-6, 1e-6);
            tern_tensor *g = tern_randn(tern_shape_of(y), TERN_F32, device);
            assert_ok(tern_backward(tern_sum(tern_mul(y, g))));
            assert_ok(tern_backward(tern_sum(tern_mul(expected, g))));
            assert_near(tern_grad(x), tern_grad(copy), 1e-5, 1e-7);
            tern_nn_free(m);
            tern_nn_free(linear);
        }
}

/* Rows and outputs that processors take one, two and four at a time, of halves too, and what is recorded. */
static void few_rows_read_codes_as_they_lie(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int64_t i = 0; i < 27; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            const int64_t rows = i / 3 + 1, outputs = 68 + i % 4;
            tern_module *linear = tern_nn_linear(
                192, outputs, &(tern_linear_options){.no_bias = true, .device = device});
            tern_module *m = tern_quantize_linear(linear, types[i % 3]);
            tern_tensor *x = tern_randn(TERN_SHAPE(rows, 192), TERN_F32, device);
            tern_tensor *part =
                tern_narrow(tern_randn(TERN_SHAPE(rows + 1, 192), TERN_F32, device), 0, 1, rows);
            tern_tensor *w = tern_dequantize_weight(m);
            const uint64_t before = launches(device);
            tern_tensor *y = tern_nn_forward(m, x);
            if (rows <= 8) /* no weight is made: a product, and a copy for it */
                assert_true(launches(device) - before <= 2);
            assert_near(y, tern_linear(x, w, NULL), 2e-6, 0);
            assert_near(tern_nn_forward(m, part), tern_linear(part, w, NULL), 2e-6, 0);
            tern_tensor *half = tern_to_dtype(x, TERN_BF16);
            assert_near(tern_to_dtype(tern_nn_forward(m, half), TERN_F32),
                        tern_linear(tern_to_dtype(half, TERN_F32), w, NULL), 1e-2, 0);
            tern_graph *graph = tern_graph_new(device);
            assert_ok(tern_graph_capture_begin(graph));
            y = tern_nn_forward(m, x);
            assert_ok(tern_graph_capture_end(graph));
            assert_non_null(tern_copy_(x, part));
            assert_ok(tern_graph_replay(graph));
            assert_near(y, tern_linear(part, w, NULL), 2e-6, 0);
            tern_graph_free(graph);
            tern_nn_free(m);
            tern_nn_free(linear);
        }
}

/* Half precision, of which bfloat16 is multiplied as integers, beside numbers that are larger by much, too; what is not finite comes
 * through. Inputs of whole blocks and of none, groups of all sizes, one row and some. */
static void products_of_halves_are_those_of_their_numbers(void **state)
{
    const int64_t inputs[] = {64, 96, 192, 256, 40, 48, 1000, 1088, 2112};
    (void)state;
    for (int i = 0; i < 9 * 2 * 3 * 4; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            const int64_t in = inputs[i / 24], rows = (int64_t[]){1, 2, 5, 1}[i % 4];
            const bool brain = i / 4 % 2;
            tern_module *linear =
                tern_nn_linear(in, 37, &(tern_linear_options){.no_bias = true, .device = "cpu"});
            tern_module *m = tern_quantize_linear(linear, types[i / 8 % 3]);
            tern_tensor *x = tern_randn(TERN_SHAPE(rows, in), TERN_F32, "cpu");
            if (i % 4 == 3)
                assert_non_null(tern_fill_(tern_narrow(x, 1, in / 2, 1), 300));
            x = tern_to_dtype(x, brain ? TERN_BF16 : TERN_F16);
            tern_tensor *w = tern_to_dtype(tern_dequantize_weight(m), TERN_F64);
            tern_tensor *wide = tern_to_dtype(x, TERN_F64), *size = tern_abs(wide);
            tern_tensor *y = tern_linear(wide, w, NULL);
            /* Half of the last place, sums in float32, and integers half a step of the largest beside them off. */
            tern_tensor *most = tern_mul(tern_abs(y), brain ? 0x1p-8 : 0x1p-11);
            most = tern_add(most, tern_mul(tern_linear(size, tern_abs(w), NULL), 0x1p-20));
            size = tern_expand_as(tern_amax(size, TERN_DIMS(1), true), size);
            if (brain)
                most = tern_add(most, tern_mul(tern_linear(size, tern_abs(w), NULL), 0x1p-16));
            tern_tensor *off_by = tern_abs(tern_sub(tern_nn_forward(m, x), y));
            assert_true(tern_item(tern_max(tern_div(off_by, most))) <= 1);
            assert_non_null(tern_fill_(tern_narrow(x, 1, 3, 1), INFINITY));
            assert_true(tern_item_int(tern_any(tern_isfinite(tern_nn_forward(m, x)))) == 0);
            assert_non_null(tern_fill_(tern_narrow(x, 1, 4, 1), NAN));
            assert_true(tern_item_int(tern_all(tern_isnan(tern_nn_forward(m, x)))) == 1);
            tern_nn_free(m);
            tern_nn_free(linear);
        }
}

/* What is decoded in parts: 8 million elements and more. */
static void large_weights_are_multiplied_in_parts(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_module *linear =
                tern_nn_linear(16, 600000, &(tern_linear_options){.device = "cpu"});
            tern_module *m = tern_quantize_linear(linear, types[i]);
            tern_tensor *x =
                tern_requires_grad_(tern_randn(TERN_SHAPE(9, 16), TERN_F32, "cpu"), true);
            tern_tensor *copy = tern_requires_grad_(tern_detach(tern_clone(x)), true);
            tern_tensor *y = tern_nn_forward(m, x);
            tern_tensor *expected =
                tern_linear(copy, tern_dequantize_weight(m), tern_nn_parameter(linear, "bias"));
            assert_near(tern_detach(y), tern_detach(expected), 1e-6, 0);
            assert_ok(tern_backward(tern_sum(y)));
            assert_ok(tern_backward(tern_sum(expected)));
            assert_near(tern_grad(x), tern_grad(copy), 1e-4, 0);
            tern_nn_free(m);
            tern_nn_free(linear);
        }
}

/* What a layer keeps beside its state follows what is loaded into it, also in a copy of it. */
static void products_are_those_of_what_was_loaded(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3 * 2; i++)
        TERN_SCOPE {
            const int64_t rows = i / 3 ? 20 : 1;
            tern_module *linear[2], *m[2];
            for (int k = 0; k < 2; k++) {
                linear[k] = tern_nn_linear(128, 24, &(tern_linear_options){.device = device});
                m[k] = tern_quantize_linear(linear[k], types[i % 3]);
                assert_non_null(m[k]);
            }
            tern_tensor *x = tern_randn(TERN_SHAPE(rows, 128), TERN_F32, device);
            TERN_NO_GRAD_HERE;
            assert_non_null(tern_nn_forward(m[1], x));
            tern_state_dict *dict = tern_nn_state_dict(m[0]);
            if (types[i % 3] == TERN_QUANTIZE_NF4) /* another map, as files may have */
                assert_non_null(tern_mul_scalar_(tern_state_dict_get(dict, "quant_map"),
                                                 tern_scalar_real(0.5)));
            assert_ok(tern_nn_load_state_dict(m[1], dict, NULL));
            tern_tensor *w = tern_dequantize_weight(m[1]);
            assert_near(w, tern_dequantize_weight(m[0]), 0, 0);
            assert_near(tern_nn_forward(m[1], x),
                        tern_linear(x, w, tern_nn_parameter(m[1], "bias")), 2e-6, 0);
            tern_state_dict_free(dict);
            for (int k = 0; k < 2; k++) {
                tern_nn_free(linear[k]);
                tern_nn_free(m[k]);
            }
        }
}

static int64_t bytes_of(tern_module *m)
{
    int64_t bytes = 0;
    tern_state_dict *dict = tern_nn_state_dict(m);
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        bytes += tern_numel(tern_state_dict_at(dict, i)) *
                 (int64_t)tern_dtype_size(tern_dtype_of(tern_state_dict_at(dict, i)));
    tern_state_dict_free(dict);
    return bytes;
}

static void four_bits_take_a_third_of_half_precision(void **state)
{
    (void)state;
    tern_module *linear =
        tern_nn_linear(512, 256, &(tern_linear_options){.no_bias = true, .dtype = TERN_BF16});
    for (int i = 0; i < 3; i++) {
        tern_module *m = tern_quantize_linear(linear, types[i]);
        assert_true((double)bytes_of(m) <= (i == 1 ? 0.51 : 0.35) * (double)bytes_of(linear));
        tern_nn_free(m);
    }
    tern_nn_free(linear);
}

/* ---- files of the Hub ---------------------------------------------------------------------------- */

/* Codes of 4 bits (in, out) as GPTQ or AWQ packs them: along the inputs, or along the outputs in the order 0 2 4 6 1 3 5 7. */
static tern_tensor *packed(const uint8_t *codes, int64_t rows, int64_t columns, bool awq,
                           bool by_rows)
{
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    int64_t h = by_rows ? rows / 8 : rows, w = by_rows ? columns : columns / 8;
    int32_t *words = calloc((size_t)(h * w), sizeof *words);
    for (int64_t r = 0; r < h; r++)
        for (int64_t c = 0; c < w; c++)
            for (int k = 0; k < 8; k++) {
                int64_t row = by_rows ? 8 * r + k : r;
                int64_t column = by_rows ? c : 8 * c + (awq ? order[k] : k);
                words[r * w + c] |= (int32_t)((uint32_t)codes[row * columns + column] << (4 * k));
            }
    tern_tensor *x = tern_from_data(words, TERN_SHAPE(h, w), TERN_I32, "cpu");
    free(words);
    return x;
}

enum { IN = 32, MOST_OUT = 320, GROUP = 8, GROUPS = IN / GROUP };

/* The layer at path in 4 bits, the weight (out, IN) that they stand for into w. */
static void put_packed(tern_state_dict *dict, const char *path, int out, bool awq, bool ordered,
                       float *w)
{
    static uint8_t codes[IN * MOST_OUT], zeros[GROUPS * MOST_OUT];
    static float scales[GROUPS * MOST_OUT];
    static int32_t index[IN];
    char name[256];
    for (int i = 0; i < IN * out; i++)
        codes[i] = (uint8_t)((i * 7 + i / 13) % 16);
    for (int i = 0; i < GROUPS * out; i++) {
        zeros[i] = (uint8_t)(5 + i % 6);
        scales[i] = (float)(1 + i % 4) / 64;
    }
    for (int i = 0; i < IN; i++)
        index[i] = (ordered ? i * 5 % IN : i) / GROUP;
    for (int i = 0; i < IN; i++)
        for (int o = 0; o < out; o++) {
            int g = index[i] * out + o;
            w[o * IN + i] = (float)(codes[i * out + o] - zeros[g] - (awq ? 0 : 1)) * scales[g];
        }
    const struct {
        const char *name;
        tern_tensor *x;
    } parts[] = {{"qweight", packed(codes, IN, out, awq, !awq)},
                 {"qzeros", packed(zeros, GROUPS, out, awq, false)},
                 {"scales", tern_from_data(scales, TERN_SHAPE(GROUPS, out), TERN_F32, "cpu")},
                 {"g_idx", tern_from_data(index, TERN_SHAPE(IN), TERN_I32, "cpu")}};
    for (int i = 0; i < (awq ? 3 : 4); i++) {
        snprintf(name, sizeof name, "%s.%s", path, parts[i].name);
        assert_ok(tern_state_dict_set(dict, name,
                                      i == 2 ? tern_to_dtype(parts[i].x, TERN_F16) : parts[i].x));
    }
    snprintf(name, sizeof name, "%s.weight", path);
    assert_ok(tern_state_dict_remove(dict, name));
}

static void gptq_and_awq_are_read(void **state)
{
    static const char *const said[] = {
        "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 8}, ",
        "\"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4, \"group_size\": 8, "
        "\"version\": \"gemm\"}, ",
        "\"quantization_config\": {\"quant_method\": \"gptq\", \"bits\": 4, \"group_size\": 8, "
        "\"desc_act\": true}, "};
    static const char *const paths[] = {"model.layers.0.self_attn.q_proj", "lm_head"};
    static float w[IN * MOST_OUT];
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i++)
        TERN_SCOPE {
            const int form = i % 3, out = i < 3 ? 32 : MOST_OUT;
            const char *path = paths[i / 3];
            char *folder = models_folder("llama"), file[1024], config[1 << 14];
            char *text = models_text(models_path("llama", "config.json"));
            tern_state_dict *dict = tern_load(models_path("llama", NULL), NULL);
            assert_non_null(dict);
            put_packed(dict, path, out, form == 1, form == 2, w);
            snprintf(config, sizeof config, "{%s%s", said[form], strchr(text, '{') + 1);
            models_write(folder, "config.json", config);
            snprintf(file, sizeof file, "%s/model.safetensors", folder);
            assert_ok(tern_save(dict, file, NULL));
            tern_module *m = models_load(folder, device);
            tern_module *layer = tern_nn_child(m, path);
            assert_string_equal(tern_nn_name(layer), "LinearInt4");
            assert_same(tern_dequantize_weight(layer),
                        tern_from_data(w, TERN_SHAPE(out, IN), TERN_F32, device));
            for (int64_t rows = 2; rows < 20; rows += 17) {
                tern_tensor *x =
                    tern_requires_grad_(tern_randn(TERN_SHAPE(rows, IN), TERN_F32, device), true);
                tern_tensor *own = tern_from_data(w, TERN_SHAPE(out, IN), TERN_F32, device);
                tern_tensor *y = tern_nn_forward(layer, x);
                assert_near(tern_detach(y), tern_linear(tern_detach(x), own, NULL), 1e-5, 0);
                assert_ok(tern_backward(tern_sum(y)));
                assert_near(
                    tern_grad(x),
                    tern_expand(tern_sum_dim(own, TERN_DIMS(0), true), TERN_SHAPE(rows, IN)), 1e-5,
                    0);
            }
            tern_tensor *ids = tern_ones(TERN_SHAPE(1, 4), TERN_I64, device);
            assert_shape(tern_nn_forward(m, ids), 1, 4, 320);
            tern_nn_free(m);
            tern_state_dict_free(dict);
            free(text);
            models_remove(folder);
        }
}

/* ---- models -------------------------------------------------------------------------------------- */

static void adapters_train_around_quantized_layers(void **state)
{
    static const char *const names[] = {"llama", "gpt2"};
    static const char *const all[] = {"all-linear", NULL};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 6; i += test_thorough(device) ? 1 : 2)
        TERN_SCOPE {
            tern_state_dict *r = models_reference(names[i / 3], "reference.safetensors", device);
            tern_module *m = models_load(models_path(names[i / 3], NULL), device);
            tern_model_inputs in = models_inputs(r);
            double plain = tern_item(tern_models_loss(m, &in));
            assert_ok(tern_quantize_(m, types[i % 3]));
            double first = tern_item(tern_models_loss(m, &in)), last = 0;
            assert_true(fabs(first - plain) < (i % 3 == 1 ? 0.02 : 0.3) * plain);
            assert_non_null(tern_lora_add(m, &(tern_lora_options){.target_modules = all}));
            assert_int_equal(tern_models_save_pretrained(m, "/nowhere", NULL), TERN_ERR_STATE);
            assert_error(TERN_ERR_STATE, "tern_lora_merge makes it plain");
            tern_optimizer *optimizer = tern_optim_adamw(m, 1e-2, NULL);
            for (int step = 0; step < 8; step++)
                TERN_SCOPE {
                    tern_tensor *loss = tern_models_loss(m, &in);
                    tern_optim_zero_grad(optimizer);
                    assert_ok(tern_backward(loss));
                    assert_ok(tern_optim_step(optimizer));
                    last = tern_item(loss);
                }
            assert_true(last < 0.8 * first);
            tern_optim_free(optimizer);
            tern_tensor *before = tern_models_loss(m, &in);
            assert_non_null(tern_lora_merge(m));
            if (i % 3 == 1) /* what is merged is rounded again */
                assert_near(tern_models_loss(m, &in), before, 0.1, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void what_is_wrong_is_an_error(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *r = models_reference("quantized", "nf4.safetensors", "cpu");
        tern_module *relu = tern_nn_relu();
        assert_null(tern_quantize_linear(relu, TERN_QUANTIZE_NF4));
        assert_error(TERN_ERR_ARGUMENT, "ReLU is neither");
        assert_null(tern_dequantize_weight(relu));
        assert_error(TERN_ERR_ARGUMENT, "ReLU is no quantized layer");
        assert_null(tern_quantized_from_state_dict(r, "nothing", NULL));
        assert_error(TERN_ERR_ARGUMENT, "\"nothing\" is not there");
        assert_null(tern_quantized_from_state_dict(r, "original", NULL));
        assert_error(TERN_ERR_UNSUPPORTED, "no quant_state");
        assert_ok(
            tern_state_dict_set(r, "plain.weight", tern_zeros(TERN_SHAPE(5, 1), TERN_U8, "cpu")));
        assert_null(tern_quantized_from_state_dict(r, "plain.weight", NULL));
        assert_error(TERN_ERR_STATE, "has 5 bytes");
        assert_ok(tern_state_dict_remove(r, "double.weight.nested_absmax"));
        assert_null(tern_quantized_from_state_dict(r, "double.weight", NULL));
        assert_error(TERN_ERR_ARGUMENT, "nested_absmax");
        assert_int_equal(tern_quantize_(relu, TERN_QUANTIZE_NONE), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "type 0");
        tern_nn_free(relu);
        tern_state_dict_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nf4_is_bitsandbytes),
        TEST(nf4_is_made_and_written_as_bitsandbytes_does),
        TEST(products_and_gradients_are_those_of_the_weight),
        TEST(few_rows_read_codes_as_they_lie),
        TEST(products_of_halves_are_those_of_their_numbers),
        TEST(large_weights_are_multiplied_in_parts),
        TEST(products_are_those_of_what_was_loaded),
        TEST(four_bits_take_a_third_of_half_precision),
        TEST(gptq_and_awq_are_read),
        TEST(adapters_train_around_quantized_layers),
        TEST(what_is_wrong_is_an_error),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
