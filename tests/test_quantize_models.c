/* test_quantize_models.c -- whole models in 8 and 4 bits: their heads, and their directories. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct tested {
    const char *name, *head, *embedding, *layer;
    bool tied;
} tested;
static const tested models[] = {
    {"llama", "lm_head", "model.embed_tokens", "model.layers.0.mlp.up_proj", false},
    {"qwen3", "lm_head", "model.embed_tokens", "model.layers.0.mlp.up_proj", true},
    {"gpt2", "lm_head", "transformer.wte", "transformer.h.0.attn.c_attn", true},
};
static const char *const classes[] = {"Linear", "Linear8bitLt", "Linear4bit", "LinearInt4"};
enum { MODELS = 3, TYPES = TERN_QUANTIZE_INT4 + 1 };

static tern_tensor *some_ids(int64_t n, const char *device)
{
    tern_manual_seed(3);
    return tern_randint(3, 60, TERN_SHAPE(2, n), TERN_I64, device);
}

static tern_model_outputs run(tern_module *m, tern_tensor *ids)
{
    tern_model_outputs out;
    assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids}, &out));
    return out;
}

static tern_tensor *weight_of(tern_module *m, const char *path)
{
    return tern_nn_parameter_at(tern_nn_child(m, path), 0);
}

static const char *class_of(tern_module *m, const char *path)
{
    return tern_nn_name(tern_nn_child(m, path));
}

static tern_module *quantized(const tested *t, tern_quantization type, tern_quantization head,
                              const char *device)
{
    tern_module *m = models_load(models_path(t->name, NULL), device);
    assert_ok(tern_quantize_with_(m, type, &(tern_quantize_options){.head = head}));
    return m;
}

/* ---- heads --------------------------------------------------------------------------------------- */

/* All types, tied to an embedding or not: what is asked for, codes of the weight that was there, and logits of these. */
static void heads_are_what_was_asked_for(void **state)
{
    static const double off[] = {0, 0.5 / 127 + 1e-6, 0.16, 1.0 / 15 + 1e-6};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < MODELS * TYPES; i++)
        TERN_SCOPE {
            const tested *t = &models[i / TYPES];
            const tern_quantization type = i % TYPES;
            tern_module *plain = models_load(models_path(t->name, NULL), device);
            tern_module *m = quantized(t, TERN_QUANTIZE_INT4, type, device);
            assert_string_equal(class_of(m, t->head), classes[type]);
            assert_string_equal(class_of(m, t->layer), "LinearInt4");
            assert_same(tern_detach(weight_of(m, t->embedding)),
                        tern_detach(weight_of(plain, t->embedding)));
            assert_int_equal(tern_requires_grad(weight_of(m, t->embedding)), !t->tied || !type);
            tern_tensor *own = tern_detach(weight_of(plain, t->head)), *w = own;
            if (type)
                assert_near(w = tern_dequantize_weight(tern_nn_child(m, t->head)), own, 0,
                            off[type] * tern_item(tern_max(tern_abs(own))));
            tern_model_outputs out = run(m, some_ids(5, device));
            assert_near(tern_detach(out.logits),
                        tern_linear(tern_detach(out.last_hidden_state), w, NULL), 1e-5, 0);
            tern_nn_free(m);
            tern_nn_free(plain);
        }
}

/* A token's logits read the codes as they lie, of one row and of some. */
static void heads_make_no_weight_for_few_rows(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2 * 3; i++)
        TERN_SCOPE {
            const tested *t = &models[1];
            tern_module *m = quantized(t, TERN_QUANTIZE_INT4, TERN_QUANTIZE_INT8 + i / 2, device);
            tern_module *head = tern_nn_child(m, t->head);
            tern_tensor *w = tern_dequantize_weight(head);
            TERN_NO_GRAD {
                tern_tensor *x =
                    tern_randn(TERN_SHAPE(1, i % 2 ? 7 : 1, tern_size(w, 1)), TERN_F32, device);
                const uint64_t before = launches(device);
                tern_tensor *y = tern_nn_forward(head, x);
                /* NF4 needs rows of whole blocks, which a width of 32 is not */
                const bool direct = i / 2 != 1 || tern_size(w, 1) % 64 == 0;
                if (direct && launches(device) - before > 2)
                    fail_msg("%d launches of %s", (int)(launches(device) - before), device);
                assert_near(y, tern_linear(x, w, NULL), 1e-5, 0);
            }
            tern_nn_free(m);
        }
}

/* An embedding that its head does not follow is not trained, also in a copy of the model; adapters are. */
static void a_copied_head_and_its_embedding_are_not_trained_apart(void **state)
{
    static const char *const all[] = {"all-linear", NULL};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < MODELS; i++)
        TERN_SCOPE {
            const tested *t = &models[i];
            tern_module *first = quantized(t, TERN_QUANTIZE_INT4, TERN_QUANTIZE_INT8, device);
            tern_module *m = tern_nn_copy(first);
            tern_nn_free(first);
            tern_tensor *ids = some_ids(6, device), *loss;
            tern_model_inputs in = {.input_ids = ids, .labels = ids};
            double plain = tern_item(tern_models_loss(m, &in));
            assert_true(plain > 0);
            assert_non_null(tern_nn_requires_grad_(m, true));
            if (t->tied) {
                assert_null(tern_models_loss(m, &in));
                assert_error(TERN_ERR_STATE, "is quantized and would not follow");
                TERN_NO_GRAD
                    assert_float_equal(tern_item(tern_models_loss(m, &in)), plain, 1e-5);
                /* Given a weight of its own again, as it was, the head may be trained. */
                tern_module *again = tern_nn_copy(m);
                tern_module *linear =
                    tern_nn_linear(tern_size(weight_of(m, t->embedding), 1),
                                   tern_size(weight_of(m, t->embedding), 0),
                                   &(tern_linear_options){.no_bias = true, .device = device});
                assert_non_null(tern_nn_set_child(again, t->head, linear));
                assert_non_null(loss = tern_models_loss(again, &in));
                assert_ok(tern_backward(loss));
                tern_nn_free(again);
            } else
                assert_ok(tern_backward(tern_models_loss(m, &in)));
            assert_non_null(tern_lora_add(m, &(tern_lora_options){.target_modules = all}));
            assert_string_equal(class_of(m, t->head), "Linear8bitLt");
            tern_optimizer *optimizer = tern_optim_adamw(m, 1e-2, NULL);
            double last = 0;
            for (int step = 0; step < 8; step++)
                TERN_SCOPE {
                    tern_optim_zero_grad(optimizer);
                    assert_ok(tern_backward(loss = tern_models_loss(m, &in)));
                    assert_ok(tern_optim_step(optimizer));
                    last = tern_item(loss);
                }
            assert_true(last < 0.9 * plain);
            tern_optim_free(optimizer);
            tern_nn_free(m);
        }
}

/* ---- directories --------------------------------------------------------------------------------- */

/* What was written is read again to the last bit, also where models are read in half precision, which is not that of scales. */
static void quantized_models_are_saved_and_read(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < MODELS * 4; i++)
        TERN_SCOPE {
            const tested *t = &models[i / 4];
            const tern_quantization type = i % 4 ? i % 4 : TERN_QUANTIZE_INT4;
            const tern_quantization head = i % 4 == 3 ? TERN_QUANTIZE_NONE
                                           : i % 4    ? TERN_QUANTIZE_INT4
                                                      : TERN_QUANTIZE_INT8;
            tern_module *m = quantized(t, type, head, device);
            char *folder = models_folder(NULL);
            assert_ok(tern_models_save_pretrained(
                m, folder, i % 2 ? NULL : &(tern_save_options){.max_shard_size = 20000}));
            tern_module *again = models_load(folder, device);
            assert_string_equal(class_of(again, t->head), classes[head]);
            assert_string_equal(class_of(again, t->layer), classes[type]);
            tern_tensor *ids = some_ids(5, device);
            assert_same(tern_detach(run(again, ids).logits), tern_detach(run(m, ids).logits));
            assert_int_equal(tern_requires_grad(weight_of(again, t->embedding)), !t->tied || !head);
            const tern_pretrained_options o = {.dtype = TERN_BF16, .device = device};
            tern_module *half = tern_models_from_pretrained(folder, &o);
            assert_non_null(half);
            assert_int_equal(tern_dtype_of(weight_of(half, t->embedding)), TERN_BF16);
            assert_same(tern_dequantize_weight(tern_nn_child(half, t->layer)),
                        tern_dequantize_weight(tern_nn_child(m, t->layer)));
            /* And again, of what was read. */
            char *other = models_folder(NULL);
            assert_ok(tern_models_save_pretrained(again, other, NULL));
            tern_module *third = models_load(other, device);
            assert_same(tern_detach(run(third, ids).logits), tern_detach(run(m, ids).logits));
            tern_nn_free(third);
            tern_nn_free(half);
            tern_nn_free(again);
            tern_nn_free(m);
            models_remove(other);
            models_remove(folder);
        }
}

/* A part that is missing, or of another shape or dtype. */
static void broken_files_are_errors(void **state)
{
    static const char *const parts[][3] = {{"model.layers.0.mlp.up_proj.codes",
                                            "model.layers.0.mlp.up_proj.scale",
                                            "model.layers.0.mlp.up_proj.zero"},
                                           {"lm_head.weight", "lm_head.absmax", NULL}};
    (void)state;
    TERN_SCOPE {
        tern_module *m = quantized(&models[1], TERN_QUANTIZE_INT4, TERN_QUANTIZE_INT8, "cpu");
        char *folder = models_folder(NULL), file[1024];
        assert_ok(tern_models_save_pretrained(m, folder, NULL));
        snprintf(file, sizeof file, "%s/model.safetensors", folder);
        for (int i = 0; i < 5 * 3; i++) {
            const char *name = parts[i / 3 / 3][i / 3 % 3];
            tern_state_dict *dict = tern_load(file, NULL);
            tern_tensor *x = tern_state_dict_get(dict, name), *other = NULL;
            if (i % 3 == 1)
                other = tern_clone(tern_narrow(x, 0, 0, tern_size(x, 0) - 1));
            if (i % 3 == 2)
                other = tern_to_dtype(x, TERN_F64);
            assert_ok(other ? tern_state_dict_set(dict, name, other)
                            : tern_state_dict_remove(dict, name));
            char *bad = models_folder(NULL), path[1024];
            char config[1024];
            snprintf(config, sizeof config, "%s/config.json", folder);
            char *text = models_text(config);
            models_write(bad, "config.json", text);
            snprintf(path, sizeof path, "%s/model.safetensors", bad);
            assert_ok(tern_save(dict, path, NULL));
            assert_null(tern_models_from_pretrained(bad, NULL));
            assert_int_equal(tern_last_status(), TERN_ERR_STATE);
            tern_clear_error();
            free(text);
            tern_state_dict_free(dict);
            models_remove(bad);
        }
        tern_nn_free(m);
        models_remove(folder);
    }
}

/* ---- errors -------------------------------------------------------------------------------------- */

static void errors_leave_the_model_as_it_was(void **state)
{
    const tern_quantize_options int8 = {.head = TERN_QUANTIZE_INT8}, none = {.head = 9};
    (void)state;
    TERN_SCOPE {
        tern_module *m = models_load(models_path("llama", NULL), "cpu");
        assert_int_equal(tern_quantize_with_(m, TERN_QUANTIZE_INT4, &none), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "of the head 9");
        assert_string_equal(class_of(m, models[0].layer), "Linear");
        assert_ok(tern_quantize_with_(m, TERN_QUANTIZE_INT4, &int8));
        assert_int_equal(tern_quantize_with_(m, TERN_QUANTIZE_INT4, &int8), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "lm_head is Linear8bitLt");
        tern_nn_free(m);
        m = models_load(models_path("llama", NULL), "cpu");
        assert_non_null(
            tern_nn_set_child(m, "lm_head", tern_nn_sequential(tern_nn_linear(32, 320, NULL))));
        assert_int_equal(tern_quantize_with_(m, TERN_QUANTIZE_INT4, &int8), TERN_ERR_STATE);
        assert_error(TERN_ERR_STATE, "lm_head is Sequential");
        assert_string_equal(class_of(m, models[0].layer), "Linear");
        tern_nn_free(m);
        m = tern_nn_sequential(tern_nn_linear(4, 3, NULL), tern_nn_linear(3, 2, NULL));
        assert_int_equal(tern_quantize_with_(m, TERN_QUANTIZE_INT4, &int8), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "Sequential has none");
        assert_int_equal(tern_quantize_(m, TERN_QUANTIZE_INT4), TERN_ERR_UNSUPPORTED);
        assert_error(TERN_ERR_UNSUPPORTED, "INT4 of 1, whose 3 inputs");
        assert_string_equal(class_of(m, "0"), "Linear");
        tern_nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(heads_are_what_was_asked_for),
        TEST(heads_make_no_weight_for_few_rows),
        TEST(a_copied_head_and_its_embedding_are_not_trained_apart),
        TEST(quantized_models_are_saved_and_read),
        TEST(broken_files_are_errors),
        TEST(errors_leave_the_model_as_it_was),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
