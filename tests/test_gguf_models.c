/* test_gguf_models.c -- models of GGUF files beside the same ones as the Hugging Face Hub has them, and beside what PyTorch computes with
 * the numbers in each file; layers over blocks, and adapters around them. */
#include "models.h"
#include "folder.h"
#include "gguf_file.h"
#include "gguf_hostile.h"
#include "models/gguf/layer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GOLDEN TEST_FOLDER "/golden/"
#define SHARED TEST_FOLDER "/../../shared/"

/* dtype 0: blocks stay blocks. */
static tern_module *load_as(const char *path, const char *device, tern_dtype dtype)
{
    tern_module *m = tern_models_from_pretrained(
        path, &(tern_pretrained_options){.device = device, .dtype = dtype});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
}

static tern_module *load(const char *path, const char *device)
{
    return load_as(path, device, TERN_DTYPE_DEFAULT);
}

/* ---- architectures --------------------------------------------------------------------------- */

static const struct {
    const char *name, *file;
    double tolerance;                       /* of the largest; 0: the same bits */
} cases[] = {{"llama", "llama.gguf", 1e-6}, /* its factors were rounded to float32 */
             {"llama_bias", "llama_bias-00003-of-00004.gguf", 0},
             {"qwen2", "qwen2.gguf", 0},
             {"qwen3", "qwen3.gguf", 0},
             {"phi3", "phi3.gguf", 1e-6},
             {"gemma", "gemma.gguf", 0},
             {"gemma2", "gemma2.gguf", 0},
             {"gemma3", "gemma3.gguf", 0},
             {"gpt2", "gpt2.gguf", 0},
             {"bert", "bert.gguf", 0}};
enum { CASES = sizeof cases / sizeof *cases };

static tern_tensor *result(tern_module *m, tern_tensor *ids)
{
    tern_model_outputs out = {0};
    TERN_NO_GRAD
        assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids}, &out));
    return out.logits ? out.logits : out.last_hidden_state;
}

/* Blocks, and numbers. */
static const tern_dtype ways[] = {TERN_DTYPE_DEFAULT, TERN_F32};

static void models_are_those_of_the_hub(void **state)
{
    (void)state;
    char path[2][512];
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < 2 * CASES; i++)
        TERN_SCOPE {
            const char *name = cases[i / 2].name;
            double tolerance = cases[i / 2].tolerance;
            snprintf(path[0], sizeof path[0], GOLDEN "gguf/%s", name);
            snprintf(path[1], sizeof path[1], GOLDEN "gguf/%s", cases[i / 2].file);
            tern_module *hub = load(path[0], device), *m = load_as(path[1], device, ways[i % 2]);
            assert_string_equal(tern_nn_name(m), tern_nn_name(hub));
            assert_false(tern_nn_is_training(m));
            tern_tensor *ids = tern_from_data(
                (int64_t[]){3,  1, 4, 1, 5, 9, 2, 6, 5, 3,  5,  8,  9,  7,  9,  3,  2,  3,  8, 4,
                            26, 4, 3, 3, 8, 3, 2, 7, 9, 40, 41, 42, 43, 44, 45, 46, 47, 30, 1, 2},
                TERN_SHAPE(1, 40), TERN_I64, device);
            if (tolerance > 0 || !ways[i % 2])
                assert_near(result(m, ids), result(hub, ids), 1e-6, 0);
            else
                test_same(result(m, ids), result(hub, ids), name, __FILE__, __LINE__);
            tern_nn_free(hub);
            tern_nn_free(m);
        }
}

/* Every tensor of `want` is one of `have`, bit for bit. */
static void compare_states(const char *what, tern_state_dict *have, const char *path)
{
    tern_state_dict *want = tern_load(path, NULL);
    assert_non_null(want);
    for (int k = 0; k < tern_state_dict_count(want); k++) {
        const char *name = tern_state_dict_key_at(want, k);
        tern_tensor *x = tern_state_dict_get(have, name);
        if (!x)
            fail_msg("%s: there is no %s", what, name);
        test_same(x, tern_state_dict_at(want, k), name, __FILE__, __LINE__);
    }
    tern_state_dict_free(want);
}

static void every_parameter_is_the_hubs(void **state)
{
    (void)state;
    char path[512];
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            snprintf(path, sizeof path, GOLDEN "gguf/%s", cases[i].file);
            tern_module *m = load_as(path, "cpu", TERN_F32);
            tern_state_dict *have = tern_nn_state_dict(m);
            snprintf(path, sizeof path, GOLDEN "gguf/%s/model.safetensors", cases[i].name);
            compare_states(cases[i].name, have, path);
            tern_state_dict_free(have);
            tern_nn_free(m);
        }
}

static void blocks_are_saved_as_numbers(void **state)
{
    (void)state;
    char path[512];
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            snprintf(path, sizeof path, GOLDEN "gguf/%s", cases[i].file);
            tern_module *m = load(path, "cpu");
            assert_ok(tern_models_save_pretrained(m, in_folder("saved"), NULL));
            tern_state_dict *have = tern_load(in_folder("saved"), NULL);
            snprintf(path, sizeof path, GOLDEN "gguf/%s/model.safetensors", cases[i].name);
            compare_states(cases[i].name, have, path);
            tern_module *again = load(in_folder("saved"), "cpu");
            tern_state_dict_free(have);
            tern_nn_free(again);
            tern_nn_free(m);
        }
}

static void blocks_stay_blocks(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = load(GOLDEN "gguf/llama.gguf", device);
        tern_module *q = tern_nn_child(m, "model.layers.0.self_attn.q_proj");
        assert_string_equal(tern_nn_name(q), "LinearGGUF");
        assert_string_equal(tern_nn_name(tern_nn_child(m, "model.embed_tokens")), "EmbeddingGGUF");
        assert_int_equal(tern_dtype_of(tern_nn_buffer(q, "weight")), TERN_U8);
        assert_shape(tern_nn_buffer(q, "weight"), 32, 18);
        tern_state_dict *want = tern_load(GOLDEN "gguf/llama/model.safetensors", NULL);
        assert_same(tern_dequantize_weight(q),
                    tern_state_dict_get(want, "model.layers.0.self_attn.q_proj.weight"));
        tern_module *copy = tern_nn_copy(m);
        tern_tensor *ids =
            tern_from_data((int64_t[]){1, 2, 3, 4}, TERN_SHAPE(2, 2), TERN_I64, device);
        assert_same(result(copy, ids), result(m, ids));
        assert_null(
            tern_models_from_pretrained(GOLDEN "gguf/llama_bias-00001-of-00002.gguf", NULL));
        assert_error(TERN_ERR_IO, "llama_bias-00001-of-00002.gguf");
        tern_state_dict_free(want);
        tern_nn_free(copy);
        tern_nn_free(m);
    }
}

static void a_tied_head_shares_the_embeddings_blocks(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        tern_module *m = load(GOLDEN "gguf/gpt2.gguf", "cpu");
        tern_tensor *ids = tern_from_data((int64_t[]){1, 2, 3}, TERN_SHAPE(1, 3), TERN_I64, "cpu");
        tern_tensor *before = result(m, ids);
        assert_non_null(tern_nn_to(m, device));
        assert_near(result(m, tern_to(ids, device)), before, 1e-5, 0);
        assert_ptr_equal(tern_nn_buffer(tern_nn_child(m, "lm_head"), "weight"),
                         tern_nn_buffer(tern_nn_child(m, "transformer.wte"), "weight"));
        tern_nn_free(m);
    }
}

static void losses_need_no_logits(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        int64_t labels[2][4] = {{1, 2, -100, 4}, {5, 47, 0, -100}};
        tern_module *m = load(GOLDEN "gguf/llama.gguf", device);
        tern_tensor *ids =
            tern_from_data((int64_t[]){1, 2, 3, 4, 5, 6, 7, 8}, TERN_SHAPE(2, 4), TERN_I64, device);
        tern_model_inputs in = {.input_ids = ids,
                                .labels =
                                    tern_from_data(*labels, TERN_SHAPE(2, 4), TERN_I64, device)};
        tern_model_outputs out;
        assert_ok(tern_models_call(m, &in, &out));
        assert_near(tern_models_loss(m, &in), out.loss, 1e-6, 0);
        labels[0][1] = 48;
        in.labels = tern_from_data(*labels, TERN_SHAPE(2, 4), TERN_I64, device);
        tern_tensor *loss = tern_models_loss(m, &in);
        if (strcmp(device, "cpu") == 0)
            assert_error(TERN_ERR_ARGUMENT, "label 48 is out of range: 0 to 47");
        else {
            double *value = test_read(loss);
            assert_true(isnan(*value));
            free(value);
        }
        tern_nn_free(m);
    }
}

/* Of every type, on rows that are tiles of their own, too: x W^T and the gradient of x. */
static void products_over_blocks_are_those_of_numbers(void **state)
{
    (void)state;
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        static const char *const types[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0",   "q2_k",
                                            "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl", "iq4_xs"};
        tern_state_dict *want = tern_load(GOLDEN "gguf/blocks.safetensors", NULL);
        tern_file *file = tern_safe_open(GOLDEN "gguf/blocks.gguf");
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            gguf_layer l = {io_block_named(tern_file_dtype_name(file, types[i])), 3, 512};
            tern_tensor *blocks = io_gguf_blocks(file, types[i], device);
            tern_tensor *w = tern_state_dict_get(want, types[i]);
            assert_same(gguf_decode(&l, blocks, 0, 3), w);
            assert_same(gguf_decode(&l, blocks, 1, 1), tern_narrow(w, 0, 1, 1));
            w = tern_to(w, device);
            for (int many = 0; many < 2; many++) {
                int64_t times = many ? 1000 : 1; /* of more than a tile */
                tern_tensor *b = tern_repeat(blocks, TERN_SHAPE(times, 1));
                tern_tensor *v = tern_repeat(w, TERN_SHAPE(times, 1));
                tern_module *m = gguf_linear((gguf_layer){l.block, 3 * times, 512}, b, NULL);
                tern_tensor *x = test_uniform(device, TERN_F32, TERN_SHAPE(2, 2, 512), -1, 1, 5);
                tern_tensor *z = tern_clone(x);
                tern_requires_grad_(x, true);
                tern_requires_grad_(z, true);
                tern_tensor *y = tern_nn_forward(m, x), *u = tern_linear(z, v, NULL);
                assert_near(y, u, 1e-5, 0);
                tern_tensor *dy = test_uniform(device, TERN_F32, tern_shape_of(y), -1, 1, 6);
                assert_ok(tern_backward(tern_sum(tern_mul(y, dy))));
                assert_ok(tern_backward(tern_sum(tern_mul(u, dy))));
                assert_near(tern_grad(x), tern_grad(z), 1e-5, 0);
                tern_nn_free(m);
            }
        }
        tern_file_free(file);
        tern_state_dict_free(want);
    }
}

static void halves_are_what_the_caller_asks_for(void **state)
{
    (void)state;
    tern_module *m = tern_models_from_pretrained(
        GOLDEN "gguf/qwen3.gguf", &(tern_pretrained_options){.device = "cpu", .dtype = TERN_BF16});
    assert_non_null(m);
    assert_int_equal(tern_dtype_of(tern_nn_parameter(tern_nn_child(m, "model.norm"), "weight")),
                     TERN_BF16);
    tern_nn_free(m);
}

/* ---- what PyTorch computes ------------------------------------------------------------------- */

static const struct {
    const char *folder, *files; /* labels, between blanks */
} shared[] = {{"llama", "f32 f16 bf16 q8_0 q4_0 q5_1"},
              {"qwen3", "f16 q8_0 q4_0"},
              {"gpt2", "f16 q8_0 q4_0"},
              {"llama_k", "q4_k_m q2_k iq4_xs"}};

static tern_tensor *continued(tern_module *m, tern_tensor *prompt)
{
    return tern_models_generate(m, prompt,
                                &(tern_generate_options){.max_new_tokens = 20, .no_eos = true});
}

static void compare_shared(const char *name, const char *label, const char *device,
                           tern_dtype dtype)
{
    char path[512];
    snprintf(path, sizeof path, SHARED "models/gguf/%s/reference.safetensors", name);
    tern_state_dict *r = models_read(path, device);
    snprintf(path, sizeof path, SHARED "models/gguf/%s/%s-%s.gguf", name, name, label);
    tern_module *m = load_as(path, device, dtype);
    tern_tensor *ids = models_get(r, "input_ids");
    tern_model_outputs out = {0};
    TERN_NO_GRAD
        assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids, .labels = ids}, &out));
    assert_near(out.logits, models_get(r, "%s.logits", label), 1e-5, 0);
    assert_near(out.loss, models_get(r, "%s.loss", label), 1e-6, 0);
    tern_tensor *prompt = tern_narrow(tern_narrow(ids, 0, 0, 1), 1, 0, 6);
    assert_same(continued(m, prompt), models_get(r, "%s.generated", label));
    tern_state_dict_free(r);
    tern_nn_free(m);
}

static void logits_and_tokens_are_pytorchs(void **state)
{
    (void)state;
    if (access(SHARED "models/gguf/README.md", R_OK) != 0) {
        printf("SKIP: there are no models in ../shared/models/gguf: nothing was compared with "
               "PyTorch\n");
        return;
    }
    FOR_EACH_DEVICE(device)
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        char labels[64];
        snprintf(labels, sizeof labels, "%s", shared[i].files);
        for (char *label = strtok(labels, " "); label; label = strtok(NULL, " "))
            TERN_SCOPE {
                for (int way = 0; way < 2; way++)
                    compare_shared(shared[i].folder, label, device, ways[way]);
            }
    }
}

/* ---- adapters over blocks -------------------------------------------------------------------- */

/* "base_model.model.X.lora_A.weight" of PEFT is X.lora_A.default.weight. */
static tern_tensor *adapter_parameter(tern_module *m, const char *name)
{
    char path[512];
    const char *from = name + strlen("base_model.model."), *at = strstr(from, ".lora_");
    snprintf(path, sizeof path, "%.*s.default%s", (int)(at - from) + 7, from, at + 7);
    return tern_nn_parameter(m, path);
}

static void compare_adapter_gradients(tern_module *m, tern_state_dict *r, const char *label)
{
    char key[64];
    int n = 0;
    snprintf(key, sizeof key, "%s.adapter.grad.", label);
    for (int i = 0; i < tern_state_dict_count(r); i++) {
        const char *full = tern_state_dict_key_at(r, i);
        if (strncmp(full, key, strlen(key)) != 0)
            continue;
        n++;
        assert_near(tern_grad(adapter_parameter(m, full + strlen(key))), tern_state_dict_at(r, i),
                    1e-4, 1e-6);
    }
    assert_true(n > 3);
}

static void compare_adapter(const char *name, const char *label, const char *device)
{
    char path[512];
    snprintf(path, sizeof path, SHARED "models/gguf/%s/reference.safetensors", name);
    tern_state_dict *r = models_read(path, device);
    snprintf(path, sizeof path, SHARED "models/gguf/%s/%s-%s.gguf", name, name, label);
    tern_module *m = load(path, device);
    snprintf(path, sizeof path, SHARED "models/gguf/%s/adapter", name);
    if (!tern_lora_load(m, path, true))
        fail_msg("%s", tern_last_error());
    tern_tensor *ids = models_get(r, "input_ids");
    assert_near(result(m, ids), models_get(r, "%s.adapter.logits", label), 1e-5, 0);
    tern_optimizer *optimizer = tern_optim_adamw(m, 1e-3, NULL);
    double *losses = test_read(models_get(r, "%s.adapter.losses", label));
    for (int step = 0; step <= 5; step++)
        TERN_SCOPE {
            tern_optim_zero_grad(optimizer);
            tern_tensor *loss =
                tern_models_loss(m, &(tern_model_inputs){.input_ids = ids, .labels = ids});
            double *value = test_read(loss);
            if (fabs(*value - losses[step]) > (step ? 5e-4 : 1e-6) * fabs(losses[step]))
                fail_msg("%s: loss %d is %.9g, %.9g is expected", label, step, *value,
                         losses[step]);
            free(value);
            assert_ok(tern_backward(loss));
            if (step == 0)
                compare_adapter_gradients(m, r, label);
            assert_ok(tern_optim_step(optimizer));
        }
    assert_null(tern_lora_merge(m));
    assert_error(TERN_ERR_UNSUPPORTED, "blocks of a GGUF");
    free(losses);
    tern_optim_free(optimizer);
    tern_state_dict_free(r);
    tern_nn_free(m);
}

static void adapters_over_blocks_learn_as_pefts(void **state)
{
    (void)state;
    if (access(SHARED "models/gguf/README.md", R_OK) != 0) {
        printf("SKIP: there are no adapters in ../shared/models/gguf\n");
        return;
    }
    FOR_EACH_DEVICE(device)
    TERN_SCOPE {
        compare_adapter("llama", "q4_0", device);
        compare_adapter("gpt2", "q4_0", device);
        compare_adapter("llama_k", "q4_k_m", device);
    }
}

/* ---- files that lie -------------------------------------------------------------------------- */

static void numbers_beyond_a_models_are_named(void **state)
{
    (void)state;
    static const gguf_said rows[] = {
        {"rope.scaling.original_context_length", 2, 4, 0x7149f2ca, 6}, /* 1e30 */
        {"rope.scaling.original_context_length", 2, 4, UINT64_C(0xc6293e5939a08cea),
         12}, /* -1e30 */
        {"rope.scaling.original_context_length", 2, 4, 0, 4},
        {"rope.scaling.original_context_length", 2, 4, 0xffffffff, 5}, /* -1 */
        {"attention.key_length", INT32_MAX, INT32_MAX, 16, 4},
        {"attention.key_length", 65536, 65536, 16, 4},
    };
    static const char *const architectures[] = {"llama", "phi3"}; /* q, k, v apart, and in one */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < (strncmp(rows[i].key, "rope", 4) == 0 ? 1 : 2); k++) {
            char key[128];
            snprintf(key, sizeof key, "`%s.%s` is", architectures[k], rows[i].key);
            gguf_write_said(&rows[i], architectures[k], in_folder("said.gguf"));
            assert_null(tern_models_from_pretrained(in_folder("said.gguf"), NULL));
            assert_error(TERN_ERR_IO, key);
        }
}

static void models_that_lie_have_named_errors(void **state)
{
    (void)state;
    char line[1024], path[5000];
    FILE *rows = gguf_hostile_rows(in_folder("hostile"));
    int count = 0;
    while (fgets(line, sizeof line, rows)) {
        char *id = strtok(line, "\t"), *verdict = strtok(NULL, "\t"), *names = strtok(NULL, "\t");
        snprintf(path, sizeof path, "%s/%s.gguf", in_folder("hostile"), id);
        names = strcmp(verdict, "model") == 0 ? names : "";
        if (tern_models_from_pretrained(path, NULL))
            fail_msg("%s is a model", path);
        if (!strstr(tern_last_error(), names) || !strstr(tern_last_error(), path))
            fail_msg("%s: %s", names, tern_last_error());
        tern_clear_error();
        tern_tokenizer *t = tern_tokenizer_from_file(path);
        assert_null(t);
        if (strcmp(verdict, "model") == 0 && strstr(id, "tok") && !strstr(tern_last_error(), names))
            fail_msg("%s: %s", names, tern_last_error());
        tern_clear_error();
        count += strcmp(verdict, "model") == 0;
    }
    fclose(rows);
    assert_true(count > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(models_are_those_of_the_hub),
        TEST(every_parameter_is_the_hubs),
        TEST(blocks_are_saved_as_numbers),
        TEST(blocks_stay_blocks),
        TEST(a_tied_head_shares_the_embeddings_blocks),
        TEST(losses_need_no_logits),
        TEST(products_over_blocks_are_those_of_numbers),
        TEST(halves_are_what_the_caller_asks_for),
        TEST(logits_and_tokens_are_pytorchs),
        TEST(adapters_over_blocks_learn_as_pefts),
        TEST(numbers_beyond_a_models_are_named),
        TEST(models_that_lie_have_named_errors),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
