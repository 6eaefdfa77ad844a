/* test_architectures.c -- more architectures beside what transformers and timm compute with them (golden/models.py): logits,
 * losses, gradients, training, texts, files; every scaling of rotary positions; what a model hears. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Reference models, and the files of config.json that must make the same model. */
static const struct {
    const char *name, *config;
} cases[] = {{"roberta", "config.json"},       {"distilbert", "config.json"},
             {"deit", "config.json"},          {"modernbert", "config.json"},
             {"modernbert", "config.v4.json"}, {"gemma", "config.json"},
             {"gemma2", "config.json"},        {"gemma3", "config.json"},
             {"gemma3", "config.v4.json"},     {"phi3", "config.json"},
             {"clip", "config.json"},          {"mobilenetv2", "config.json"},
             {"mobilenetv3", "config.json"},   {"efficientnet", "config.json"}};
enum { CASES = sizeof cases / sizeof *cases };

/* The model of a folder with another config.json. */
static tern_module *load_with(const char *name, const char *config, const char *device)
{
    if (strcmp(config, "config.json") == 0)
        return models_load(models_path(name, NULL), device);
    char *folder = models_folder(name);
    char *text = models_text(models_path(name, config));
    models_write(folder, "config.json", text);
    tern_module *m = models_load(folder, device);
    free(text);
    models_remove(folder);
    return m;
}

static void logits_are_those_of_the_reference(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            tern_module *m = load_with(cases[i].name, cases[i].config, device);
            tern_state_dict *r = models_reference(cases[i].name, "reference.safetensors", device);
            tern_model_inputs in = models_inputs(r);
            tern_model_outputs out = {0};
            assert_ok(tern_models_call(m, &in, &out));
            assert_near(out.logits, models_get(r, "logits"), 1e-5, 0);
            if (models_get(r, "text_embeds")) {
                assert_near(out.text_embeds, models_get(r, "text_embeds"), 1e-5, 0);
                assert_near(out.image_embeds, models_get(r, "image_embeds"), 1e-5, 0);
            }
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void training_is_that_of_the_reference(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            if (strcmp(cases[i].config, "config.json") != 0 ||
                (!test_thorough(device) && i % 4)) /* slow to compile */
                continue;
            tern_module *m = models_load(models_path(cases[i].name, NULL), device);
            tern_state_dict *r = models_reference(cases[i].name, "reference.safetensors", device);
            models_compare_training(m, r, NULL);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void checkpointed_layers_give_the_same_gradients(void **state)
{
    static const char *const names[] = {"gemma3", "modernbert", "efficientnet"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            tern_module *m = models_load(models_path(names[i], NULL), device);
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            tern_model_inputs in = models_inputs(r);
            assert_ok(tern_models_gradient_checkpointing(m, true));
            tern_nn_train(m, true);
            assert_ok(tern_backward(tern_models_loss(m, &in)));
            models_compare_gradients(m, r);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void classes_of_the_mean_are_those_of_the_reference(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        char *folder = models_folder("modernbert");
        char *text = models_text(models_path("modernbert", "config.json"));
        char *word = strstr(text, "\"classifier_pooling\": \"cls\"");
        assert_non_null(word);
        memcpy(word, "\"classifier_pooling\":\"mean\"", 27);
        models_write(folder, "config.json", text);
        tern_module *m = models_load(folder, device);
        tern_state_dict *r = models_reference("modernbert", "reference.safetensors", device);
        tern_model_inputs in = models_inputs(r);
        tern_model_outputs out;
        assert_ok(tern_models_call(m, &in, &out));
        assert_near(tern_detach(out.logits), models_get(r, "mean.logits"), 1e-5, 0);
        tern_state_dict_free(r);
        tern_nn_free(m);
        free(text);
        models_remove(folder);
    }
}

/* What is written has torchvision's names again, bit for bit. */
static void files_of_torchvision_are_read_and_written(void **state)
{
    static const char *const names[] = {"torchvision_v2", "torchvision_v3", "torchvision_b5"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            char *folder = models_folder(NULL);
            tern_module *m = models_load(models_path(names[i], NULL), device);
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            assert_near(tern_nn_forward(m, models_get(r, "input.pixel_values")),
                        models_get(r, "logits"), 1e-5, 0);
            assert_non_null(tern_nn_to_dtype(m, TERN_BF16));
            assert_ok(tern_models_save_pretrained(m, folder, NULL));
            models_compare_files(folder, models_path(names[i], NULL));
            tern_nn_free(m);
            m = models_load(folder, device);
            assert_near(tern_nn_forward(m, models_get(r, "input.pixel_values")),
                        models_get(r, "logits"), 1e-5, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
            models_remove(folder);
        }
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void texts_are_those_of_the_reference(void **state)
{
    static const char *const names[] = {"gemma", "gemma2", "gemma3", "phi3"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            tern_module *m = models_load(models_path(names[i], NULL), device);
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            tern_tensor *prompt = models_get(r, "generate.prompt");
            tern_generate_options o = {.no_eos = true, .max_new_tokens = 16};
            assert_same(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            o.no_cache = true;
            assert_same(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            tern_model_outputs out;
            tern_tensor *mask = models_get(r, "padded.attention_mask");
            tern_model_inputs padded = {.input_ids = models_get(r, "padded.input_ids"),
                                        .attention_mask = mask,
                                        .position_ids = models_get(r, "padded.position_ids")};
            assert_ok(tern_models_call(m, &padded, &out));
            assert_near(tern_mul(out.logits, tern_unsqueeze(mask, -1)),
                        models_get(r, "padded.logits"), 1e-5, 0);
            tern_model_inputs packed = {.input_ids = models_get(r, "packed.input_ids"),
                                        .cu_seqlens = models_get(r, "packed.cu_seqlens")};
            assert_ok(tern_models_call(m, &packed, &out));
            assert_near(out.logits, models_get(r, "packed.logits"), 1e-5, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void every_scaling_of_rotary_positions_is_the_references(void **state)
{
    static const char *const names[] = {"linear", "dynamic", "yarn", "yarn_mscale", "longrope"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 5; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            char config[64];
            snprintf(config, sizeof config, "config.%s.json", names[i]);
            tern_module *m = load_with("rope", config, device);
            tern_state_dict *r = models_reference("rope", "reference.safetensors", device);
            tern_tensor *ids = models_get(r, "input.input_ids");
            assert_near(tern_nn_forward(m, tern_narrow(ids, 1, 0, 10)),
                        models_get(r, "%s.short", names[i]), 1e-5, 0);
            assert_near(tern_nn_forward(m, ids), models_get(r, "%s.long", names[i]), 1e-5, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* ---- images ---------------------------------------------------------------------------------- */

static void images_become_what_the_model_sees(void **state)
{
    static const char *const names[] = {"clip", "efficientnet"};
    (void)state;
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_module *m = models_load(models_path(names[i], NULL), "cpu");
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", "cpu");
            tern_transform *t = tern_models_image_processor(m);
            tern_tensor *image = tern_permute(models_get(r, "processor.image"), TERN_DIMS(2, 0, 1));
            tern_tensor *x = t ? tern_transform_apply(t, image) : NULL;
            assert_non_null(x);
            assert_near(tern_unsqueeze(x, 0), models_get(r, "processor.pixel_values"), 0,
                        2 / 255.0 / 0.25);
            tern_transform_free(t);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* ---- sound ----------------------------------------------------------------------------------- */

static void features_of_sound_are_those_of_the_reference(void **state)
{
    static const int64_t rates[][2] = {{16000, 11025}, {8000, 16000}, {44100, 16000}};
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_state_dict *r = models_reference("audio", "reference.safetensors", device);
        tern_module *m = tern_models_from_config(models_path("audio", NULL), NULL);
        assert_non_null(m);
        assert_int_equal(tern_models_audio_rate(m), 16000);
        tern_tensor *wave = models_get(r, "wave"), *three[] = {wave, wave, wave};
        tern_tensor *x = tern_models_audio_features(m, wave);
        assert_shape(x, 1, 128, 200);
        tern_tensor *at = tern_arange(0, 120, 4, TERN_I64, device);
        assert_near(tern_index_select(x, 2, at), models_get(r, "features.128"), 0, 1e-4);
        x = tern_models_audio_features(m, tern_cat(three, 3, 0)); /* cut */
        x = tern_index_select(x, 2, tern_arange(0, 200, 20, TERN_I64, device));
        x = tern_index_select(x, 1, tern_arange(0, 128, 16, TERN_I64, device));
        assert_near(x, models_get(r, "cut"), 0, 1e-4);
        for (int i = 0; i < 3; i++) /* torchaudio's filters are of float32 */
            assert_near(
                tern_audio_resample(tern_narrow(wave, 0, 0, 1000), rates[i][0], rates[i][1]),
                models_get(r, "resampled.%d.%d", (int)rates[i][0], (int)rates[i][1]), 3e-5, 0);
        tern_nn_free(m);
        m = tern_models_from_config(models_path("gemma", NULL), NULL);
        assert_null(tern_models_audio_features(m, wave));
        assert_error(TERN_ERR_STATE, "WhisperFeatureExtractor");
        tern_nn_free(m);
        tern_state_dict_free(r);
    }
}

/* Bytes of a file with the head of a WAV: coding, channels, bits, samples. */
static void write_wav(const char *path, int coding, int channels, int bits, const void *x,
                      int bytes, int said)
{
    unsigned char head[44] = "RIFF....WAVEfmt ";
    const struct {
        int at, n;
        unsigned value;
    } fields[] = {{4, 4, 36u + (unsigned)said}, {16, 4, 16},   {20, 2, (unsigned)coding},
                  {22, 2, (unsigned)channels},  {24, 4, 8000}, {34, 2, (unsigned)bits},
                  {40, 4, (unsigned)said}};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < fields[i].n; k++)
            head[fields[i].at + k] = (unsigned char)(fields[i].value >> (8 * k));
    memcpy(head + 36, "data", 4);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(head, 1, 44, f), 44);
    assert_int_equal(fwrite(x, 1, (size_t)bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static void samples_of_every_kind_are_read(void **state)
{
    static const unsigned char pcm8[] = {128, 0, 192, 255},
                               pcm24[] = {0, 0, 0, 0, 0, 128, 0, 0, 64};
    static const int16_t pcm16[] = {0, -32768, 16384, 32767};
    static const float real[] = {0, -1, 0.5f, 0.25f};
    static const double wanted[] = {0, -1, 0.5};
    static const struct {
        int coding, bits, bytes;
        const void *x;
    } kinds[] = {{1, 8, 3, pcm8}, {1, 16, 6, pcm16}, {1, 24, 9, pcm24}, {3, 32, 12, real}};
    char *folder = models_folder(NULL), path[1024];
    (void)state;
    snprintf(path, sizeof path, "%s/a.wav", folder);
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            int64_t rate = 0;
            write_wav(path, kinds[i].coding, 1, kinds[i].bits, kinds[i].x, kinds[i].bytes,
                      kinds[i].bytes);
            tern_tensor *x = tern_audio_load(path, &rate);
            assert_shape(x, 1, 3);
            assert_int_equal(rate, 8000);
            double *values = test_read(x);
            for (int k = 0; k < 3; k++)
                assert_true(values[k] == wanted[k]);
            free(values);
        }
    TERN_SCOPE {
        write_wav(path, 1, 2, 16, pcm16, 8, 8);
        tern_tensor *x = tern_audio_load(path, NULL);
        assert_shape(x, 2, 2);
        assert_true(tern_item(tern_select(tern_select(x, 0, 1), 0, 0)) == -1);
    }
    write_wav(path, 1, 1, 16, pcm16, 6, 8);
    assert_null(tern_audio_load(path, NULL));
    assert_error(TERN_ERR_IO, "cut off");
    write_wav(path, 7, 1, 8, pcm16, 6, 6);
    assert_null(tern_audio_load(path, NULL));
    assert_error(TERN_ERR_UNSUPPORTED, "coding 7");
    models_remove(folder);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void what_is_saved_is_what_was_loaded(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            char *folder = models_folder(NULL);
            tern_module *m = tern_models_from_pretrained(models_path(cases[i].name, NULL), NULL);
            assert_non_null(m);
            assert_ok(tern_models_save_pretrained(m, folder, NULL));
            models_compare_files(folder, models_path(cases[i].name, NULL));
            tern_nn_free(m);
            models_remove(folder);
        }
}

/* A file of a model that was pretrained to fill in words is its base. */
static void a_pretrained_encoder_is_read_as_its_base(void **state)
{
    (void)state;
    char *folder = models_folder("roberta"),
         *text = models_text(models_path("roberta", "config.json"));
    char *word = strstr(text, "RobertaForSequenceClassification");
    assert_non_null(word);
    memcpy(word, "RobertaForMaskedLM\"], \"_\": [\"     ", 32);
    models_write(folder, "config.json", text);
    tern_module *m = tern_models_from_pretrained(folder, NULL);
    assert_null(m); /* classifier.* is of no such file */
    assert_error(TERN_ERR_STATE, "classifier.");
    m = tern_models_from_pretrained(folder, &(tern_pretrained_options){.num_labels = 3});
    assert_non_null(m);
    assert_string_equal(tern_nn_name(m), "RobertaForSequenceClassification");
    tern_nn_free(m);
    free(text);
    models_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logits_are_those_of_the_reference),
        TEST(training_is_that_of_the_reference),
        TEST(checkpointed_layers_give_the_same_gradients),
        TEST(classes_of_the_mean_are_those_of_the_reference),
        TEST(files_of_torchvision_are_read_and_written),
        TEST(texts_are_those_of_the_reference),
        TEST(every_scaling_of_rotary_positions_is_the_references),
        TEST(images_become_what_the_model_sees),
        TEST(features_of_sound_are_those_of_the_reference),
        TEST(samples_of_every_kind_are_read),
        TEST(what_is_saved_is_what_was_loaded),
        TEST(a_pretrained_encoder_is_read_as_its_base),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
