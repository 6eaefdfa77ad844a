/* models.c -- write FOLDER NAME=DIRECTORY...: models and adapters for transformers and PEFT to read, with what tern computes
 * with them; read FOLDER NAME...: what those have written there. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tern/models.h>

static int failures;

static void check(bool holds, const char *name, const char *what)
{
    if (!holds || tern_last_status() != TERN_OK)
        printf("FAIL %s: %s: %s\n", name, what, tern_last_error());
    failures += !holds || tern_last_status() != TERN_OK;
    tern_clear_error();
}

static tern_tensor *input(const tern_state_dict *dict, const char *name)
{
    char key[64];
    snprintf(key, sizeof key, "input.%s", name);
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        if (strcmp(tern_state_dict_key_at(dict, i), key) == 0)
            return tern_state_dict_at(dict, i);
    return NULL;
}

static tern_model_inputs inputs_of(const tern_state_dict *dict)
{
    return (tern_model_inputs){.input_ids = input(dict, "input_ids"),
                               .attention_mask = input(dict, "attention_mask"),
                               .token_type_ids = input(dict, "token_type_ids"),
                               .pixel_values = input(dict, "pixel_values"),
                               .input_features = input(dict, "input_features"),
                               .labels = input(dict, "labels")};
}

static tern_tensor *logits_of(tern_module *m, const tern_model_inputs *in)
{
    tern_model_outputs out = {0};
    TERN_NO_GRAD
        tern_models_call(m, in, &out);
    return out.logits;
}

static tern_state_dict *load(const char *folder, const char *name, const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s/%s", folder, *name ? "/" : "", name, file);
    return tern_load(path, &(tern_load_options){.map_location = "cpu"});
}

static tern_module *model_of(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s%s", folder, *name ? "/" : "", name);
    return tern_models_from_pretrained(
        path, &(tern_pretrained_options){.dtype = TERN_F32, .device = "cpu"});
}

/* Inputs and logits, as `name`.safetensors beside what is saved. */
static void write_logits(const char *folder, const char *name, const tern_state_dict *reference,
                         tern_tensor *logits)
{
    char path[4096];
    tern_state_dict *dict = tern_state_dict_new();
    for (int i = 0; i < tern_state_dict_count(reference); i++)
        if (strncmp(tern_state_dict_key_at(reference, i), "input.", 6) == 0)
            tern_state_dict_set(dict, tern_state_dict_key_at(reference, i),
                                tern_state_dict_at(reference, i));
    tern_state_dict_set(dict, "logits", logits);
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, name);
    check(tern_save(dict, path, NULL) == TERN_OK, name, "logits");
    tern_state_dict_free(dict);
}

/* ---- adapters -------------------------------------------------------------------------------- */

/* Kinds of adapters, by model. */
static const struct {
    const char *model, *name;
    tern_lora_options options;
} adapters[] = {
    {"llama", "llama-lora", {.r = 4, .alpha = 8}},
    {"llama", "llama-dora", {.r = 3, .alpha = 5, .use_dora = true}},
    {"qwen3",
     "qwen3-lora",
     {.r = 2,
      .alpha = 8,
      .use_rslora = true,
      .target_modules = (const char *const[]){"all-linear", NULL}}},
    {"gpt2", "gpt2-lora", {.r = 4, .alpha = 8}},
    {"bert",
     "bert-lora",
     {.r = 4, .alpha = 8, .modules_to_save = (const char *const[]){"classifier", NULL}}},
    {"gemma3", "gemma3-lora", {.r = 4, .alpha = 4}},
};
enum { ADAPTERS = sizeof adapters / sizeof *adapters };

/* A few steps, so that it changes what comes out. */
static void train(tern_module *m, const tern_model_inputs *in)
{
    tern_optimizer *optimizer = tern_optim_adamw(m, 2e-2, NULL);
    for (int step = 0; step < 4; step++)
        TERN_SCOPE {
            tern_optim_zero_grad(optimizer);
            tern_backward(tern_models_loss(m, in));
            tern_optim_step(optimizer);
        }
    tern_optim_free(optimizer);
}

static void write_adapters(const char *folder, const char *name, const tern_state_dict *reference)
{
    for (int i = 0; i < ADAPTERS; i++) {
        char path[4096];
        if (strcmp(adapters[i].model, name) != 0)
            continue;
        tern_manual_seed(7);
        tern_module *m = model_of(folder, name);
        tern_model_inputs in = inputs_of(reference);
        snprintf(path, sizeof path, "%s/%s", folder, adapters[i].name);
        check(tern_lora_add(m, &adapters[i].options) != NULL, adapters[i].name, "added");
        train(m, &in);
        tern_nn_eval(m);
        check(tern_lora_save(m, path) == TERN_OK, adapters[i].name, "saved");
        write_logits(folder, adapters[i].name, reference, logits_of(m, &in));
        tern_nn_free(m);
    }
}

/* ---- models ---------------------------------------------------------------------------------- */

/* After two steps of training: what is in the files is tern's own. */
static void write_model(const char *folder, const char *name, const char *directory)
{
    char path[4096];
    tern_state_dict *reference = load(directory, "", "reference.safetensors");
    tern_module *m = model_of(directory, "");
    check(reference && m, name, "read");
    if (reference && m) {
        tern_model_inputs in = inputs_of(reference);
        train(tern_nn_train(m, true), &in);
        tern_nn_eval(m);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        check(tern_models_save_pretrained(m, path, NULL) == TERN_OK, name, "saved");
        write_logits(folder, name, reference, logits_of(m, &in));
        write_adapters(folder, name, reference);
    }
    tern_state_dict_free(reference);
    tern_nn_free(m);
}

/* NAME-back is a directory of transformers' or PEFT's, NAME-back.safetensors what they compute. */
static void read_back(const char *folder, const char *name, const char *base)
{
    char file[512], back[512], path[4096];
    snprintf(file, sizeof file, "%s-back.safetensors", name);
    snprintf(back, sizeof back, "%s-back", name);
    tern_state_dict *dict = load(folder, "", file);
    if (!dict) {
        printf("SKIP %s: nothing was written back\n", name);
        tern_clear_error();
        return;
    }
    tern_module *m = model_of(folder, base ? base : back);
    snprintf(path, sizeof path, "%s/%s", folder, back);
    if (base)
        check(m && tern_lora_load(m, path, false), name, "adapter read back");
    tern_model_inputs in = inputs_of(dict);
    tern_tensor *logits = logits_of(m, &in), *wanted = tern_state_dict_get(dict, "logits");
    double apart = logits ? tern_item(tern_max(tern_abs(tern_sub(logits, wanted)))) : INFINITY;
    double most = tern_item(tern_max(tern_abs(wanted)));
    check(apart <= 1e-5 * most, name, "logits of what was written back");
    printf("%s: back, %.1e apart\n", name, apart / most);
    tern_nn_free(m);
    tern_state_dict_free(dict);
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    for (int i = 3; i < argc; i++)
        TERN_SCOPE {
            char *directory = strchr(argv[i], '=');
            if (directory)
                *directory++ = 0;
            if (strcmp(argv[1], "write") == 0)
                write_model(argv[2], argv[i], directory);
            else {
                read_back(argv[2], argv[i], NULL);
                for (int k = 0; k < ADAPTERS; k++)
                    if (strcmp(adapters[k].model, argv[i]) == 0)
                        read_back(argv[2], adapters[k].name, argv[i]);
            }
        }
    return failures != 0;
}
