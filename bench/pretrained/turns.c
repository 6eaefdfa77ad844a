/* turns.c -- pretrained models, one thing at a time as lines on stdin ask: run.py takes turns with transformers.
 *
 *   decode KIND N       N tokens behind 16, one by one       KIND: f32, bf16, int8, int4, nf4;
 *                       int8h, int4h: with the head in int8; gguf: as blocks of a GGUF
 *   prefill KIND N      N tokens at once
 *   lora KIND N         a LoRA step with rows of N tokens; KIND c: of f32, checkpointed
 *   full tokens N       an AdamW step of all parameters in float32 with 2 rows of N tokens; images N: of N images of 224 x 224
 *   load DIRECTORY, tokenizer FILE, bytes KIND, save DIRECTORY (in float32)
 *   loss KIND N         the loss of a row of N fixed tokens, and two zeros
 *
 * The models are those of the directory or the GGUF that is the argument, with random weights where it has none. Answers: seconds of this process's processor time, seconds, MiB of memory at most since it began (VmHWM). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models.h>
#include <tern/tern.h>
#include <time.h>
#include <unistd.h>

static const char *config;

static double clock_of(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double most_memory(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kib = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return (double)kib / 1024;
}

/* ---- models -------------------------------------------------------------------------------- */

static const char *const kinds[] = {"f32",   "bf16", "int8", "int4", "int8h",
                                    "int4h", "nf4",  "c",    "gguf"};
enum { F32, BF16, INT8, INT4, INT8_HEAD, INT4_HEAD, NF4, CHECKPOINTED, GGUF, KINDS };

static int kind_of(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i], name) == 0)
            return i;
    return -1;
}

/* Made when it is first asked for; with an adapter for training. */
static tern_module *model_of(int kind, bool lora)
{
    static tern_module *models[2][KINDS];
    static const tern_quantization types[KINDS] = {[INT8] = TERN_QUANTIZE_INT8,
                                                   [INT4] = TERN_QUANTIZE_INT4,
                                                   [INT8_HEAD] = TERN_QUANTIZE_INT8,
                                                   [INT4_HEAD] = TERN_QUANTIZE_INT4,
                                                   [NF4] = TERN_QUANTIZE_NF4};
    tern_module **m = &models[lora][kind];
    if (*m)
        return *m;
    const tern_dtype dtype = kind == GGUF                          ? TERN_DTYPE_DEFAULT
                             : kind == F32 || kind == CHECKPOINTED ? TERN_F32
                                                                   : TERN_BF16;
    tern_manual_seed(1);
    char weights[4096];
    const bool file = strlen(config) > 5 && strcmp(config + strlen(config) - 5, ".gguf") == 0;
    snprintf(weights, sizeof weights, "%s%s", config, file ? "" : "/model.safetensors");
    const tern_pretrained_options o = {.dtype = dtype};
    *m = access(weights, R_OK) == 0 ? tern_models_from_pretrained(config, &o)
                                    : tern_models_from_config(config, &o);
    if (*m && types[kind])
        tern_quantize_with_(*m, types[kind],
                            kind == INT8_HEAD || kind == INT4_HEAD
                                ? &(tern_quantize_options){.head = TERN_QUANTIZE_INT8}
                                : NULL);
    if (*m && lora) {
        tern_lora_add(*m, &(tern_lora_options){.r = 8, .alpha = 16});
        tern_models_gradient_checkpointing(*m, kind == CHECKPOINTED);
    }
    return *m ? tern_nn_train(*m, lora) : NULL;
}

static tern_tensor *some_ids(int64_t rows, int64_t n)
{
    return tern_randint(3, 1000, TERN_SHAPE(rows, n), TERN_I64, NULL);
}

static tern_tensor *step(tern_module *m, tern_tensor *ids, tern_kv_cache *cache)
{
    tern_model_outputs out = {0};
    tern_model_inputs in = {.input_ids = ids, .cache = cache, .logits_to_keep = 1};
    tern_models_call(m, &in, &out);
    return tern_argmax_dim(out.logits, 2, false);
}

static void decode(int kind, int64_t n, bool timed)
{
    tern_kv_cache *cache = tern_models_cache(model_of(kind, false), 0);
    double cpu = 0, wall = 0;
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_tensor *next = step(model_of(kind, false), some_ids(1, 16), cache);
            tern_item_int(next);
            cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
            wall = clock_of(CLOCK_MONOTONIC);
            for (int64_t i = 0; i < n; i++)
                TERN_SCOPE
                    next = tern_escape(step(model_of(kind, false), next, cache));
            tern_item_int(next);
        }
    tern_kv_cache_free(cache);
    if (timed)
        printf("%.6f %.6f %.1f\n", clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               clock_of(CLOCK_MONOTONIC) - wall, most_memory());
}

static void prefill(int kind, int64_t n)
{
    TERN_NO_GRAD
        TERN_SCOPE
            tern_item_int(step(model_of(kind, false), some_ids(1, n), NULL));
}

static void train(int kind, int64_t n)
{
    static tern_optimizer *optimizers[KINDS];
    tern_module *m = model_of(kind, true);
    if (!optimizers[kind])
        optimizers[kind] = tern_optim_adamw(m, 1e-4, NULL);
    TERN_SCOPE {
        tern_tensor *ids = some_ids(2, n);
        tern_tensor *loss =
            tern_models_loss(m, &(tern_model_inputs){.input_ids = ids, .labels = ids});
        tern_optim_zero_grad(optimizers[kind]);
        tern_backward(loss);
        tern_optim_step(optimizers[kind]);
        tern_item(loss);
    }
}

/* Of tokens that the other side has too, so that both are known to have one model. */
static double loss_of(int kind, int64_t n)
{
    double loss = 0;
    TERN_NO_GRAD
        TERN_SCOPE {
            tern_tensor *ids = tern_add(
                tern_remainder(tern_mul(tern_arange(0, (double)n, 1, TERN_I64, NULL), 37), 997), 3);
            ids = tern_unsqueeze(ids, 0);
            loss = tern_item(tern_models_loss(
                model_of(kind, false), &(tern_model_inputs){.input_ids = ids, .labels = ids}));
        }
    return loss;
}

/* Of a model of tokens or of images. */
static void train_all(bool images, int64_t n)
{
    static tern_module *m;
    static tern_optimizer *optimizer;
    if (!m) {
        tern_manual_seed(1);
        m = tern_nn_train(
            tern_models_from_config(config, &(tern_pretrained_options){.dtype = TERN_F32}), true);
        optimizer = tern_optim_adamw(m, 1e-4, NULL);
    }
    TERN_SCOPE {
        tern_tensor *x =
            images ? tern_randn(TERN_SHAPE(n, 3, 224, 224), TERN_F32, NULL) : some_ids(2, n);
        tern_tensor *labels = images ? tern_randint(0, 1000, TERN_SHAPE(n), TERN_I64, NULL) : x;
        const tern_model_inputs in = {
            .input_ids = images ? NULL : x, .pixel_values = images ? x : NULL, .labels = labels};
        tern_tensor *loss = tern_models_loss(m, &in);
        tern_optim_zero_grad(optimizer);
        tern_backward(loss);
        tern_optim_step(optimizer);
        tern_item(loss);
    }
}

static int64_t bytes_of(tern_module *m)
{
    int64_t bytes = 0;
    tern_state_dict *dict = tern_nn_state_dict(m);
    for (int i = 0; i < tern_state_dict_count(dict); i++) {
        const char *key = tern_state_dict_key_at(dict, i);
        tern_tensor *x = tern_state_dict_at(dict, i);
        if (strncmp(key, "model.layers.", 13) == 0)
            bytes += tern_numel(x) * (int64_t)tern_dtype_size(tern_dtype_of(x));
    }
    tern_state_dict_free(dict);
    return bytes;
}

/* ---- turns --------------------------------------------------------------------------------- */

static bool answer(const char *what, const char *name, int64_t n)
{
    int kind = kind_of(name);
    double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID), wall = clock_of(CLOCK_MONOTONIC);
    if (strcmp(what, "decode") == 0) {
        decode(kind, n, true);
        return true;
    }
    if (strcmp(what, "bytes") == 0) {
        printf("%lld\n", (long long)bytes_of(model_of(kind, false)));
        return true;
    }
    if (strcmp(what, "loss") == 0) {
        printf("%.9g 0 0\n", loss_of(kind, n));
        return true;
    }
    if (strcmp(what, "prefill") == 0)
        prefill(kind, n);
    else if (strcmp(what, "lora") == 0)
        train(kind, n);
    else if (strcmp(what, "full") == 0)
        train_all(strcmp(name, "images") == 0, n);
    else if (strcmp(what, "save") == 0)
        tern_models_save_pretrained(model_of(F32, false), name, NULL);
    else if (strcmp(what, "load") == 0)
        tern_nn_free(tern_models_from_pretrained(name, NULL));
    else if (strcmp(what, "tokenizer") == 0)
        tern_tokenizer_free(tern_tokenizer_from_file(name));
    else
        return false;
    printf("%.6f %.6f %.1f\n", clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu,
           clock_of(CLOCK_MONOTONIC) - wall, most_memory());
    return true;
}

int main(int argc, char **argv)
{
    char line[4096], what[32], name[4000];
    config = argc > 1 ? argv[1] : NULL;
    tern_set_error_policy(TERN_ERRORS_ABORT, NULL, NULL);
    while (config && fgets(line, sizeof line, stdin)) {
        long long n = 0;
        if (sscanf(line, "%31s %3999s %lld", what, name, &n) < 2 || !answer(what, name, n))
            return 2;
        fflush(stdout);
    }
    return config ? 0 : 2;
}
