/* test_lora.c -- adapters beside what PEFT computes with them: its files loaded, trained with, and written back. */
#include "models.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const cases[] = {"llama", "qwen3", "gpt2", "bert", "vit"};
enum { CASES = sizeof cases / sizeof *cases };

static tern_module *load_with(const char *name, const char *device, bool trainable)
{
    char folder[1024];
    snprintf(folder, sizeof folder, "%s", models_path(name, "lora"));
    tern_module *m = models_load(models_path(name, NULL), device);
    if (!tern_lora_load(m, folder, trainable))
        fail_msg("%s: %s", name, tern_last_error());
    return m;
}

static char *read_all(const char *path, size_t *n)
{
    char *bytes = calloc(1, 1 << 20);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    *n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    return bytes;
}

static tern_tensor *logits_of(tern_module *m, tern_state_dict *r)
{
    tern_model_inputs in = models_inputs(r);
    tern_model_outputs out = {0};
    TERN_NO_GRAD
        assert_ok(tern_models_call(m, &in, &out));
    return out.logits;
}

/* ---- what PEFT computes -------------------------------------------------------------------------- */

typedef struct gradients {
    tern_state_dict *reference;
    double largest;
    int compared;
    bool look;
} gradients;

/* The files' name of an adapter's parameter, with transformers 5's names of ViT. */
static void peft_name(const char *path, char *to, size_t n)
{
    static const char *const changes[][2] = {{".default.", "."},
                                             {".modules_to_save.", "."},
                                             {"vit.encoder.layer.", "vit.layers."},
                                             {".attention.attention.query", ".attention.q_proj"},
                                             {".attention.attention.value", ".attention.v_proj"}};
    snprintf(to, n, "grad.base_model.model.%s", path);
    for (int i = 0; i < 5; i++) {
        char *at = strstr(to, changes[i][0]), rest[512];
        if (at && (i != 2 || strstr(to, "model.vit."))) {
            snprintf(rest, sizeof rest, "%s", at + strlen(changes[i][0]));
            sprintf(at, "%s%s", changes[i][1], rest);
        }
    }
}

static tern_status compare_gradient(const char *path, tern_tensor *x, void *user)
{
    gradients *g = user;
    char name[1024];
    if (!tern_requires_grad(x)) {
        assert_null(tern_grad(x));
        return TERN_OK;
    }
    peft_name(path, name, sizeof name);
    tern_tensor *expected = tern_state_dict_get(g->reference, name);
    if (!expected)
        fail_msg("PEFT has no %s", name);
    if (g->look)
        TERN_SCOPE
            g->largest = fmax(g->largest, tern_item(tern_max(tern_abs(expected))));
    else
        models_near(tern_grad(x), expected, 1e-4, 1e-6 * g->largest, path, __FILE__, __LINE__);
    g->compared++;
    return TERN_OK;
}

static void training_is_pefts(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i += test_thorough(device) ? 1 : 2)
        TERN_SCOPE {
            tern_module *m = load_with(cases[i], device, true);
            tern_state_dict *plain = models_reference(cases[i], "reference.safetensors", device);
            tern_state_dict *r = models_reference(cases[i], "lora/reference.safetensors", device);
            tern_model_inputs in = models_inputs(plain);
            gradients g = {.reference = r, .look = true};
            assert_near(logits_of(m, plain), models_get(r, "logits"), 1e-5, 0);
            tern_tensor *loss = tern_models_loss(tern_nn_train(m, true), &in);
            double want = tern_item(models_get(r, "loss"));
            assert_true(fabs(tern_item(loss) - want) <= 1e-6 * fabs(want));
            assert_ok(tern_backward(loss));
            assert_ok(tern_nn_each_parameter(m, compare_gradient, &g));
            g.look = false;
            assert_ok(tern_nn_each_parameter(m, compare_gradient, &g));
            int count = 0;
            for (int k = 0; k < tern_state_dict_count(r); k++)
                count += strncmp(tern_state_dict_key_at(r, k), "grad.", 5) == 0;
            assert_int_equal(g.compared, 2 * count);
            tern_optimizer *optimizer = tern_optim_adamw(m, 1e-3, NULL);
            double *losses = test_read(models_get(r, "losses"));
            for (int step = 0; step < 6; step++)
                TERN_SCOPE {
                    tern_tensor *now = tern_models_loss(m, &in);
                    if (step == 5)
                        assert_true(fabs(tern_item(now) - losses[step]) <=
                                    5e-4 * fabs(losses[step]));
                    tern_optim_zero_grad(optimizer);
                    assert_ok(tern_backward(now));
                    assert_ok(tern_optim_step(optimizer));
                }
            free(losses);
            tern_optim_free(optimizer);
            tern_state_dict_free(r);
            tern_state_dict_free(plain);
            tern_nn_free(m);
        }
}

static void files_come_back_bit_for_bit(void **state)
{
    static const char *const files[] = {"adapter_config.json", "adapter_model.safetensors"};
    (void)state;
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            char *folder = models_folder(NULL), path[1024];
            tern_module *m = load_with(cases[i], "cpu", false);
            assert_ok(tern_lora_save(m, folder));
            for (int k = 0; k < 2; k++) {
                size_t n[2];
                char *bytes[2], ours[1024];
                snprintf(path, sizeof path, "%s/lora/%s", models_path(cases[i], NULL), files[k]);
                snprintf(ours, sizeof ours, "%s/%s", folder, files[k]);
                bytes[0] = read_all(path, &n[0]);
                bytes[1] = read_all(ours, &n[1]);
                if (n[0] != n[1] || memcmp(bytes[0], bytes[1], n[0]) != 0)
                    fail_msg("%s: %s is another", cases[i], files[k]);
                free(bytes[0]);
                free(bytes[1]);
            }
            models_remove(folder);
            tern_nn_free(m);
        }
}

/* ---- changing -------------------------------------------------------------------------------- */

static void merging_changes_no_result(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i += test_thorough(device) ? 1 : 2)
        TERN_SCOPE {
            tern_state_dict *r = models_reference(cases[i], "reference.safetensors", device);
            tern_module *m = load_with(cases[i], device, false);
            tern_module *plain = models_load(models_path(cases[i], NULL), device);
            tern_tensor *with = logits_of(m, r), *without = logits_of(plain, r);
            assert_ok(tern_lora_enable(m, false));
            assert_same(logits_of(m, r), without);
            assert_ok(tern_lora_enable(m, true));
            assert_same(logits_of(m, r), with);
            assert_ok(tern_lora_merge_adapter(m));
            assert_near(logits_of(m, r), with, 1e-5, 0);
            assert_ok(tern_lora_unmerge_adapter(m));
            assert_near(logits_of(m, r), with, 1e-5, 0);
            assert_ptr_equal(tern_lora_merge(m), m);
            assert_near(logits_of(m, r), with, 1e-5, 0);
            char *a = tern_nn_to_text(m), *b = tern_nn_to_text(plain);
            assert_string_equal(a, b);
            tern_free_text(a);
            tern_free_text(b);
            tern_state_dict_free(r);
            tern_nn_free(plain);
            tern_nn_free(m);
        }
}

static tern_status make_random(const char *path, tern_tensor *x, void *user)
{
    (void)user;
    if (strstr(path, "lora_B"))
        TERN_NO_GRAD
            tern_nn_init_normal_(x, 0, 0.3);
    return TERN_OK;
}

static void new_adapters_change_nothing_at_first(void **state)
{
    static const char *const all[] = {"all-linear", NULL}, *const one[] = {"mlp.up_proj", "q_proj",
                                                                           NULL};
    static const tern_lora_pattern ranks[] = {{"layers.1.*", 2}, {NULL, 0}};
    const tern_lora_options options[] = {
        {.r = 0},
        {.target_modules = all, .r = 3, .use_rslora = true},
        {.target_modules = one,
         .rank_pattern = ranks,
         .alpha_pattern = ranks,
         .bias = TERN_LORA_BIAS_ALL},
        {.target_pattern = "model\\.layers\\.\\d\\.mlp\\..*", .use_dora = true, .dropout = 0.5},
    };
    const int trained[] = {8, 28, 8, 18};
    (void)state;
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 4; i += test_thorough(device) ? 1 : 3)
        TERN_SCOPE {
            tern_state_dict *r = models_reference("llama", "reference.safetensors", device);
            tern_module *m = models_load(models_path("llama", NULL), device);
            tern_tensor *before = logits_of(m, r);
            if (!tern_lora_add(m, &options[i]))
                fail_msg("case %d: %s", i, tern_last_error());
            assert_near(logits_of(m, r), before, 1e-6, 0);
            tern_tensor *list[128];
            int64_t n = tern_nn_parameters(m, list, 128), count = 0;
            for (int64_t k = 0; k < n; k++)
                count += tern_requires_grad(list[k]);
            assert_int_equal(count, trained[i]);
            assert_ok(tern_nn_each_parameter(m, make_random, NULL));
            tern_tensor *with = logits_of(m, r);
            assert_true(tern_item(tern_max(tern_abs(tern_sub(with, before)))) > 1e-3);
            tern_module *copy = tern_nn_copy(m);
            assert_same(logits_of(copy, r), with);
            assert_ok(tern_lora_merge_adapter(m));
            assert_near(logits_of(m, r), with, 1e-5, 0);
            assert_ok(tern_lora_unmerge_adapter(m));
            assert_near(logits_of(m, r), with, 1e-5, 0);
            char *folder = models_folder(NULL);
            assert_ok(tern_lora_save(m, folder));
            tern_module *again = models_load(models_path("llama", NULL), device);
            if (!tern_lora_load(again, folder, false))
                fail_msg("case %d: %s", i, tern_last_error());
            assert_near(logits_of(again, r), with, 1e-5, 0);
            models_remove(folder);
            tern_state_dict_free(r);
            tern_nn_free(again);
            tern_nn_free(copy);
            tern_nn_free(m);
        }
}

static void adapters_are_switched(void **state)
{
    (void)state;
    TERN_SCOPE {
        tern_state_dict *r = models_reference("bert", "reference.safetensors", "cpu");
        char folder[1024];
        snprintf(folder, sizeof folder, "%s", models_path("bert", "lora"));
        tern_module *m = models_load(models_path("bert", NULL), "cpu");
        tern_tensor *plain = logits_of(m, r);
        assert_non_null(tern_lora_add(m, &(tern_lora_options){.adapter = "mine"}));
        assert_non_null(tern_lora_load_adapter(m, folder, "theirs", false));
        tern_tensor *theirs = logits_of(m, r);
        assert_true(tern_item(tern_max(tern_abs(tern_sub(theirs, plain)))) > 1e-3);
        assert_ok(tern_lora_set_adapter(m, "mine"));
        assert_near(logits_of(m, r), plain, 1e-6, 0);
        assert_ok(tern_lora_set_adapter(m, "theirs"));
        assert_same(logits_of(m, r), theirs);
        assert_int_equal(tern_lora_set_adapter(m, "nobody's"), TERN_ERR_ARGUMENT);
        assert_error(TERN_ERR_ARGUMENT, "no adapter 'nobody's'");
        assert_null(tern_lora_add(m, &(tern_lora_options){.adapter = "mine"}));
        assert_error(TERN_ERR_STATE, "an adapter 'mine' already");
        assert_ok(tern_lora_delete_adapter(m, "theirs"));
        assert_near(logits_of(m, r), plain, 1e-6, 0);
        assert_ok(tern_lora_delete_adapter(m, "mine"));
        tern_module *fresh = models_load(models_path("bert", NULL), "cpu");
        char *a = tern_nn_to_text(m), *b = tern_nn_to_text(fresh);
        assert_string_equal(a, b);
        tern_free_text(a);
        tern_free_text(b);
        tern_state_dict_free(r);
        tern_nn_free(fresh);
        tern_nn_free(m);
    }
}

static void wrong_adapters_leave_the_model_as_it_was(void **state)
{
    static const char *const none[] = {"nothing", NULL}, *const norm[] = {"input_layernorm", NULL};
    static const struct {
        tern_lora_options o;
        tern_status status;
        const char *message;
    } rows[] = {{{.target_modules = none}, TERN_ERR_ARGUMENT, "Target modules not found"},
                {{.target_modules = norm}, TERN_ERR_UNSUPPORTED, "is not supported"},
                {{.r = -1}, TERN_ERR_ARGUMENT, "positive integer"},
                {{.dropout = 1.5}, TERN_ERR_ARGUMENT, "dropout 1.5"},
                {{.target_pattern = "("}, TERN_ERR_ARGUMENT, "no regular expression"},
                {{.adapter = "a.b"}, TERN_ERR_ARGUMENT, "no dot"}};
    (void)state;
    tern_module *m = models_load(models_path("llama", NULL), "cpu");
    tern_module *vit = models_load(models_path("vit", NULL), "cpu");
    char *before = tern_nn_to_text(m);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(tern_lora_add(m, &rows[i].o));
        assert_error(rows[i].status, rows[i].message);
    }
    assert_null(tern_lora_load(m, models_path("qwen3", "lora"), false));
    assert_error(TERN_ERR_STATE, "");
    assert_null(tern_lora_load(m, "/nowhere", false));
    assert_error(TERN_ERR_IO, "/nowhere");
    assert_int_equal(tern_lora_save(m, "/nowhere"), TERN_ERR_STATE);
    assert_error(TERN_ERR_STATE, "no adapter");
    assert_null(tern_lora_add(vit, NULL));
    assert_error(TERN_ERR_ARGUMENT, "Please specify `target_modules`");
    char *after = tern_nn_to_text(m);
    assert_string_equal(before, after);
    tern_free_text(before);
    tern_free_text(after);
    tern_nn_free(vit);
    tern_nn_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(training_is_pefts),         TEST(files_come_back_bit_for_bit),
        TEST(merging_changes_no_result), TEST(new_adapters_change_nothing_at_first),
        TEST(adapters_are_switched),     TEST(wrong_adapters_leave_the_model_as_it_was),
    };
    return models_main(tests, sizeof tests / sizeof *tests);
}
