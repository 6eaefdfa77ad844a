/* test_models.c -- pretrained models beside what PyTorch computes with them: logits, losses, gradients, training,
 * padding, packing, files written back. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Reference models, and the files of config.json that must make the same model. */
static const struct {
    const char *name, *config;
} cases[] = {{"llama", "config.json"},    {"llama", "config.v5.json"}, {"qwen3", "config.json"},
             {"qwen3", "config.v5.json"}, {"gpt2", "config.json"},     {"bert", "config.json"},
             {"vit", "config.json"},      {"resnet18", "config.json"}, {"whisper", "config.json"}};
enum { CASES = sizeof cases / sizeof *cases };

static tern_module *load_case(int i, const char *device)
{
    if (strcmp(cases[i].config, "config.json") == 0)
        return models_load(models_path(cases[i].name, NULL), device);
    char *folder = models_folder(cases[i].name);
    char *text = models_text(models_path(cases[i].name, cases[i].config));
    models_write(folder, "config.json", text);
    tern_module *m = models_load(folder, device);
    free(text);
    models_remove(folder);
    return m;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static void logits_are_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            tern_module *m = load_case(i, device);
            tern_state_dict *r = models_reference(cases[i].name, "reference.safetensors", device);
            tern_model_inputs in = models_inputs(r);
            tern_model_outputs out = {0};
            assert_false(tern_nn_is_training(m));
            TERN_NO_GRAD
                assert_ok(tern_models_call(m, &in, &out));
            assert_near(out.logits, models_get(r, "logits"), 1e-5, 0);
            if (models_get(r, "last_hidden_state"))
                assert_near(out.last_hidden_state, models_get(r, "last_hidden_state"), 1e-5, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

static void checkpointed_layers_give_the_same_gradients(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i += 2)
        TERN_SCOPE {
            tern_module *m = load_case(i, device), *n = tern_nn_copy(m);
            tern_state_dict *r = models_reference(cases[i].name, "reference.safetensors", device);
            tern_model_inputs in = models_inputs(r);
            assert_ok(tern_models_gradient_checkpointing(n, true));
            tern_tensor *a = tern_models_loss(m, &in), *b = tern_models_loss(n, &in);
            assert_same(a, b);
            assert_ok(tern_backward(a));
            assert_ok(tern_backward(b));
            tern_tensor *list[2][256];
            int64_t count = tern_nn_parameters(m, list[0], 256);
            assert_int_equal(tern_nn_parameters(n, list[1], 256), count);
            for (int64_t k = 0; k < count; k++)
                if (tern_grad(list[0][k]))
                    assert_near(tern_grad(list[1][k]), tern_grad(list[0][k]), 1e-6, 1e-7);
            tern_state_dict_free(r);
            tern_nn_free(n);
            tern_nn_free(m);
        }
}

/* ---- training -------------------------------------------------------------------------------- */

static void training_is_pytorchs(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            if (strcmp(cases[i].config, "config.json") != 0)
                continue;
            tern_module *m = load_case(i, device);
            tern_state_dict *r = models_reference(cases[i].name, "reference.safetensors", device);
            const bool residual = strcmp(cases[i].name, "resnet18") == 0;
            tern_state_dict *other =
                residual ? models_read(TEST_FOLDER "/golden/resnet18_other.safetensors", device)
                         : NULL;
            assert_int_equal(other != NULL, residual);
            models_compare_training(m, r, other);
            tern_state_dict_free(other);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* T5 of both kinds: golden/t5.py's own, beside the sources. */
static void t5_is_transformers(void **state)
{
    static const char *const names[] = {"t5", "t5_gated"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            char folder[1024], file[1100];
            snprintf(folder, sizeof folder, TEST_FOLDER "/golden/%s", names[i]);
            snprintf(file, sizeof file, "%s/reference.safetensors", folder);
            tern_module *m = models_load(folder, device);
            tern_state_dict *r = models_read(file, device);
            assert_non_null(r);
            tern_model_inputs in = models_inputs(r);
            tern_model_outputs out;
            assert_ok(tern_models_call(m, &in, &out));
            assert_near(out.logits, models_get(r, "logits"), 1e-5, 0);
            assert_near(out.loss, models_get(r, "loss"), 1e-6, 0);
            assert_ok(tern_backward(out.loss));
            assert_true(models_compare_gradients(m, r) > 10);
            tern_generate_options o = {.no_eos = true, .max_new_tokens = 12};
            tern_tensor *prompt = tern_narrow(in.input_ids, 0, 0, 1);
            assert_same(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            o.no_cache = true;
            assert_same(tern_models_generate(m, prompt, &o), models_get(r, "generated"));
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* ---- padding and packing --------------------------------------------------------------------- */

static void padded_and_packed_rows_are_as_each_alone(void **state)
{
    static const char *const names[] = {"llama", "qwen3", "gpt2"};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            TERN_NO_GRAD_HERE;
            tern_module *m = models_load(models_path(names[i], NULL), device);
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", device);
            tern_model_outputs out;
            tern_tensor *mask = models_get(r, "padded.attention_mask");
            tern_model_inputs padded = {.input_ids = models_get(r, "padded.input_ids"),
                                        .attention_mask = mask,
                                        .position_ids = models_get(r, "padded.position_ids")};
            assert_ok(tern_models_call(m, &padded, &out));
            tern_tensor *logits = tern_mul(out.logits, tern_unsqueeze(mask, -1));
            assert_near(logits, models_get(r, "padded.logits"), 1e-5, 0);
            tern_model_inputs packed = {.input_ids = models_get(r, "packed.input_ids"),
                                        .cu_seqlens = models_get(r, "packed.cu_seqlens"),
                                        .labels = models_get(r, "packed.input_ids")};
            assert_ok(tern_models_call(m, &packed, &out));
            assert_near(out.logits, models_get(r, "packed.logits"), 1e-5, 0);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

/* The loss of packed rows is that of their parts, by their numbers of labels. */
static void packed_loss_stays_within_sequences(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        TERN_NO_GRAD_HERE;
        tern_module *m = models_load(models_path("llama", NULL), device);
        tern_state_dict *r = models_reference("llama", "reference.safetensors", device);
        tern_tensor *ids = models_get(r, "packed.input_ids");
        int64_t ends[] = {0, 9, 14, 21};
        double sum = 0;
        for (int i = 0; i < 3; i++) {
            tern_tensor *part = tern_narrow(ids, 1, ends[i], ends[i + 1] - ends[i]);
            tern_model_inputs in = {.input_ids = part, .labels = part};
            sum += tern_item(tern_models_loss(m, &in)) * (double)(ends[i + 1] - ends[i] - 1);
        }
        tern_model_inputs in = {
            .input_ids = ids, .labels = ids, .cu_seqlens = models_get(r, "packed.cu_seqlens")};
        assert_true(fabs(tern_item(tern_models_loss(m, &in)) - sum / 18) < 1e-5);
        tern_state_dict_free(r);
        tern_nn_free(m);
    }
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
            tern_module *again = tern_models_from_pretrained(folder, NULL);
            assert_non_null(again);
            assert_int_equal(tern_nn_numel(again), tern_nn_numel(m));
            tern_nn_free(again);
            tern_nn_free(m);
            models_remove(folder);
        }
}

static void a_new_head_is_saved_with_its_classes(void **state)
{
    static const char *const names[] = {"bert", "vit", "resnet18"};
    (void)state;
    for (int i = 0; i < 3; i++)
        TERN_SCOPE {
            char *folder = models_folder(NULL);
            tern_module *m = models_load(models_path(names[i], NULL), "cpu");
            tern_module *head = tern_models_reset_classifier(m, 7);
            assert_ptr_equal(head, tern_models_get_classifier(m));
            assert_shape(tern_nn_parameter(head, "bias"), 7);
            assert_ok(tern_models_save_pretrained(m, folder, NULL));
            tern_module *again = models_load(folder, "cpu");
            assert_same(tern_nn_parameter(tern_models_get_classifier(again), "weight"),
                        tern_nn_parameter(head, "weight"));
            tern_nn_free(again);
            again = tern_models_from_pretrained(models_path(names[i], NULL),
                                                &(tern_pretrained_options){.num_labels = 5});
            assert_shape(tern_nn_parameter(tern_models_get_classifier(again), "bias"), 5);
            tern_nn_free(again);
            tern_nn_free(m);
            models_remove(folder);
        }
}

static void refused(const char *name, const char *with, const char *part, tern_status status)
{
    char *folder = models_folder(name), *text = models_text(models_path(name, "config.json"));
    char *changed = calloc(1, strlen(text) + strlen(with) + 8);
    sprintf(changed, "{%s, %s", with, strchr(text, '{') + 1);
    models_write(folder, "config.json", changed);
    assert_null(tern_models_from_pretrained(folder, NULL));
    assert_error(status, part);
    free(changed);
    free(text);
    models_remove(folder);
}

static void fields_that_are_not_known_are_refused_by_name(void **state)
{
    (void)state;
    refused("llama", "\"logit_scale\": 0.5", "`logit_scale`", TERN_ERR_UNSUPPORTED);
    refused("llama", "\"quantization_config\": {}", "`quantization_config`", TERN_ERR_UNSUPPORTED);
    refused("bert", "\"position_embedding_type\": \"relative_key\"", "`position_embedding_type`",
            TERN_ERR_UNSUPPORTED);
    refused("gpt2", "\"n_head\": 3", "", TERN_ERR_IO); /* there twice */
    refused("resnet18", "\"model_args\": {\"output_stride\": 8}", "`model_args`",
            TERN_ERR_UNSUPPORTED);
}

static void missing(const char *key, void *user)
{
    (void)key;
    ++*(int *)user;
}

static void names_of_one_side_alone_are_errors_or_told(void **state)
{
    (void)state;
    int told = 0;
    char *folder = models_folder("llama"), *text = models_text(models_path("llama", "config.json"));
    char *layers = strstr(text, "\"num_hidden_layers\": 2");
    layers[strlen("\"num_hidden_layers\": ")] = '3';
    models_write(folder, "config.json", text);
    assert_null(tern_models_from_pretrained(folder, NULL));
    assert_error(TERN_ERR_STATE, "model.layers.2.");
    tern_module *m = tern_models_from_pretrained(
        folder, &(tern_pretrained_options){.missing = missing, .user = &told});
    assert_non_null(m);
    assert_int_equal(told, 9);
    tern_nn_free(m);
    layers[strlen("\"num_hidden_layers\": ")] = '1';
    models_write(folder, "config.json", text);
    assert_null(tern_models_from_pretrained(folder, NULL));
    assert_error(TERN_ERR_STATE, "model.layers.1.");
    free(text);
    models_remove(folder);
}

static void what_is_no_model_is_refused(void **state)
{
    (void)state;
    tern_module *m = tern_nn_linear(2, 2, NULL);
    tern_model_outputs out;
    assert_int_equal(tern_models_call(m, &(tern_model_inputs){0}, &out), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "Linear is no model");
    tern_nn_free(m);
    assert_null(tern_models_from_pretrained("/nowhere", NULL));
    assert_error(TERN_ERR_IO, "/nowhere/config.json");
    m = models_load(models_path("llama", NULL), "cpu");
    assert_int_equal(tern_models_call(m, &(tern_model_inputs){0}, &out), TERN_ERR_ARGUMENT);
    assert_error(TERN_ERR_ARGUMENT, "input_ids");
    tern_nn_free(m);
    const char *const *names;
    int n = tern_models_architectures(&names);
    assert_true(n > 5);
    assert_non_null(names[n - 1]);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void images_become_what_the_model_sees(void **state)
{
    static const char *const names[] = {"vit", "resnet18"};
    (void)state;
    for (int i = 0; i < 2; i++)
        TERN_SCOPE {
            tern_module *m = models_load(models_path(names[i], NULL), "cpu");
            tern_state_dict *r = models_reference(names[i], "reference.safetensors", "cpu");
            tern_transform *t = tern_models_image_processor(m);
            tern_tensor *image = tern_permute(models_get(r, "processor.image"), TERN_DIMS(2, 0, 1));
            tern_tensor *x = tern_transform_apply(t, image);
            assert_non_null(x);
            assert_near(tern_unsqueeze(x, 0), models_get(r, "processor.pixel_values"), 0,
                        2 / 255.0 / 0.224);
            tern_tensor *grey = tern_transform_apply(t, tern_narrow(image, 0, 0, 1));
            assert_shape(grey, 3, 32, 32);
            tern_transform_free(t);
            tern_state_dict_free(r);
            tern_nn_free(m);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(logits_are_pytorchs),
        TEST(checkpointed_layers_give_the_same_gradients),
        TEST(training_is_pytorchs),
        TEST(t5_is_transformers),
        TEST(padded_and_packed_rows_are_as_each_alone),
        TEST(packed_loss_stays_within_sequences),
        TEST(what_is_saved_is_what_was_loaded),
        TEST(a_new_head_is_saved_with_its_classes),
        TEST(fields_that_are_not_known_are_refused_by_name),
        TEST(names_of_one_side_alone_are_errors_or_told),
        TEST(what_is_no_model_is_refused),
        TEST(images_become_what_the_model_sees),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
