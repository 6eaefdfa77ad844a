/* test_gguf_write.c -- models and adapters written as GGUF: read and written again, merged, quantized, and beside others' files. */
#include "models.h"
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN TEST_FOLDER "/golden/gguf/"
#define SHARED TEST_FOLDER "/../../shared/models/gguf/"

static tern_module *load(const char *path, const char *device, tern_dtype dtype)
{
    tern_module *m = tern_models_from_pretrained(
        path, &(tern_pretrained_options){.device = device, .dtype = dtype});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
}

static tern_tensor *result(tern_module *m)
{
    const int64_t list[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    tern_model_outputs out = {0};
    tern_tensor *ids = tern_from_data(list, TERN_SHAPE(1, 12), TERN_I64, "cpu");
    TERN_NO_GRAD
        assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids}, &out));
    return out.logits ? out.logits : out.last_hidden_state;
}

static void assert_same_bytes(const char *a, const char *b)
{
    size_t n[2];
    char *bytes[2] = {read_file(a, &n[0]), read_file(b, &n[1])};
    size_t at = 0;
    while (at < n[0] && at < n[1] && bytes[0][at] == bytes[1][at])
        at++;
    if (n[0] != n[1] || at != n[0])
        print_error("%s (%zu bytes) and %s (%zu): the first difference is at %zu\n", a, n[0], b,
                    n[1], at);
    assert_int_equal(n[0], n[1]);
    assert_int_equal(at, n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* ---- models -------------------------------------------------------------------------------- */

static const char *const files[] = {"llama.gguf",  "qwen2.gguf", "qwen3.gguf",
                                    "phi3.gguf",   "gemma.gguf", "gemma2.gguf",
                                    "gemma3.gguf", "gpt2.gguf",  "bert.gguf"};
enum { FILES = sizeof files / sizeof *files };

static void read_and_written_again_a_file_is_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < FILES; i++) {
        char path[512];
        snprintf(path, sizeof path, GOLDEN "%s", files[i]);
        tern_module *m = load(path, "cpu", TERN_DTYPE_DEFAULT);
        const char *again = in_folder("again.gguf");
        assert_ok(tern_models_save_pretrained(m, again, NULL));
        assert_same_bytes(again, path);
        tern_nn_free(m);
    }
}

static void parts_become_one_file(void **state)
{
    (void)state;
    tern_module *m = load(GOLDEN "llama_bias-00003-of-00004.gguf", "cpu", TERN_DTYPE_DEFAULT);
    const char *one = in_folder("one.gguf");
    assert_ok(tern_models_save_pretrained(m, one, NULL));
    tern_module *again = load(one, "cpu", TERN_DTYPE_DEFAULT);
    TERN_SCOPE
        assert_same(result(again), result(m));
    tern_tokenizer *t = tern_tokenizer_from_file(one);
    tern_clear_error(); /* these parts may have no tokenizer */
    tern_tokenizer_free(t);
    tern_nn_free(again);
    tern_nn_free(m);
}

/* The largest difference of what a model gives, over the largest of `like`. */
static double difference(tern_module *m, tern_tensor *like)
{
    double d = 0;
    TERN_SCOPE {
        tern_tensor *y = result(m);
        d = tern_item(tern_max(tern_abs(tern_sub(y, like)))) / tern_item(tern_max(tern_abs(like)));
    }
    return d;
}

static void matrices_are_of_the_type_that_is_asked_for(void **state)
{
    static const struct {
        const char *type;
        double near;
    } types[] = {{"f32", 0},     {"F16", 2e-3},   {"bf16", 2e-2}, {"Q8_0", 3e-2}, {"q5_1", 0.25},
                 {"q5_0", 0.25}, {"q4_1", 0.5},   {"q4_0", 0.5},  {"q6_k", 3e-2}, {"q5_k", 0.25},
                 {"q4_k", 0.25}, {"iq4_nl", 0.5}, {"q3_k", 0.5},  {"q2_k", 0.5}};
    (void)state;
    for (int k = 0; k < 2; k++)
        TERN_SCOPE {
            const char *const from[] = {GOLDEN "llama.gguf", GOLDEN "gpt2.gguf"};
            tern_module *m = load(from[k], "cpu", TERN_F32);
            tern_tensor *y = result(m);
            double last = -1;
            for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
                const char *path = in_folder("typed.gguf");
                assert_ok(tern_models_save_pretrained(m, path,
                                                      &(tern_save_options){.type = types[i].type}));
                tern_module *again = load(path, "cpu", TERN_DTYPE_DEFAULT);
                const double d = difference(again, y);
                if (!(d <= types[i].near))
                    print_error("%s: %s: %g\n", from[k], types[i].type, d);
                assert_true(d <= types[i].near);
                last = d > last ? d : last;
                tern_nn_free(again);
            }
            assert_true(last > 0); /* they are of other types */
            assert_int_equal(tern_models_save_pretrained(m, in_folder("typed.gguf"),
                                                         &(tern_save_options){.type = "q9_0"}),
                             TERN_ERR_ARGUMENT);
            assert_non_null(strstr(tern_last_error(), "type \"q9_0\" is none of f32"));
            tern_clear_error();
            tern_nn_free(m);
        }
}

static void other_files_are_refused(void **state)
{
    (void)state;
    tern_state_dict *dict = tern_state_dict_new();
    assert_int_equal(
        tern_save(dict, in_folder("x.safetensors"), &(tern_save_options){.type = "f16"}),
        TERN_ERR_ARGUMENT);
    tern_clear_error();
    tern_state_dict_free(dict);
}

/* ---- adapters ------------------------------------------------------------------------------ */

static tern_status randomize(const char *path, tern_tensor *x, void *user)
{
    (void)user;
    if (!strstr(path, "lora_B"))
        return TERN_OK;
    TERN_NO_GRAD
        return tern_normal_(x, 0, 0.1) ? TERN_OK : tern_last_status();
    return TERN_OK;
}

static tern_module *with_adapter(const char *path, const char *const *targets, bool rslora,
                                 tern_dtype dtype)
{
    tern_module *m = load(path, "cpu", dtype);
    tern_lora_options o = {.r = 3, .alpha = 6, .target_modules = targets, .use_rslora = rslora};
    assert_non_null(tern_lora_add(m, &o));
    assert_ok(tern_nn_each_parameter(m, randomize, NULL));
    return m;
}

static void assert_same_dicts(const char *a, const char *b)
{
    tern_state_dict *x = tern_load(a, NULL), *y = tern_load(b, NULL);
    assert_non_null(x);
    assert_non_null(y);
    assert_int_equal(tern_state_dict_count(x), tern_state_dict_count(y));
    for (int i = 0; i < tern_state_dict_count(x); i++)
        assert_same(tern_state_dict_at(x, i), tern_state_dict_get(y, tern_state_dict_key_at(x, i)));
    tern_state_dict_free(x);
    tern_state_dict_free(y);
}

static void adapters_go_to_gguf_and_back(void **state)
{
    static const char *const llama[] = {"q_proj", "k_proj", "v_proj", "down_proj", NULL};
    static const char *const gpt2[] = {"c_attn", "c_fc", NULL};
    static const char *const one[] = {"model.layers.0.self_attn.q_proj", NULL};
    static const struct {
        const char *file;
        const char *const *targets;
        bool rslora;
    } rows[] = {{"llama.gguf", llama, false},
                {"qwen3.gguf", llama, false},
                {"gpt2.gguf", gpt2, false},
                {"llama.gguf", one, false},
                {"llama.gguf", llama, true}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        snprintf(path, sizeof path, GOLDEN "%s", rows[i].file);
        tern_module *m = with_adapter(path, rows[i].targets, rows[i].rslora, TERN_DTYPE_DEFAULT);
        assert_ok(tern_lora_save(m, in_folder("a.gguf")));
        assert_ok(tern_lora_save(m, in_folder("peft")));
        tern_module *n = load(path, "cpu", TERN_DTYPE_DEFAULT);
        if (!tern_lora_load(n, in_folder("a.gguf"), false))
            print_error("%s\n", tern_last_error());
        assert_ok(tern_last_status());
        assert_ok(tern_lora_save(n, in_folder("again")));
        assert_ok(tern_lora_save(n, in_folder("b.gguf")));
        assert_same_bytes(in_folder("a.gguf"), in_folder("b.gguf"));
        TERN_SCOPE {
            assert_same_dicts(in_folder("peft/adapter_model.safetensors"),
                              in_folder("again/adapter_model.safetensors"));
            assert_near(result(n), result(m), rows[i].rslora ? 1e-5 : 0, 0);
        }
        tern_nn_free(n);
        tern_nn_free(m);
    }
}

static void a_merged_model_is_written_whole(void **state)
{
    static const char *const targets[] = {"q_proj", "down_proj", NULL};
    (void)state;
    TERN_SCOPE {
        tern_module *m = with_adapter(GOLDEN "llama.gguf", targets, false, TERN_F32);
        const char *path = in_folder("merged.gguf");
        assert_int_equal(tern_models_save_pretrained(m, path, NULL), TERN_ERR_STATE);
        tern_clear_error();
        assert_non_null(tern_lora_merge(m));
        tern_tensor *y = result(m);
        assert_ok(tern_models_save_pretrained(m, path, NULL));
        tern_module *again = load(path, "cpu", TERN_F32);
        assert_same(result(again), y);
        tern_nn_free(again);
        tern_nn_free(m);
    }
}

static void wrong_adapters_are_refused(void **state)
{
    static const char *const llama[] = {"q_proj", NULL};
    (void)state;
    tern_module *m = with_adapter(GOLDEN "llama.gguf", llama, false, TERN_DTYPE_DEFAULT);
    assert_ok(tern_lora_save(m, in_folder("a.gguf")));
    tern_module *other = load(GOLDEN "gpt2.gguf", "cpu", TERN_DTYPE_DEFAULT);
    assert_null(tern_lora_load(other, in_folder("a.gguf"), false));
    assert_non_null(strstr(tern_last_error(), "of architecture llama, and the model of gpt2"));
    tern_clear_error();
    assert_null(tern_lora_load(other, GOLDEN "gpt2.gguf", false));
    assert_non_null(strstr(tern_last_error(), "and adapter is expected"));
    tern_clear_error();
    tern_nn_free(other);
    tern_nn_free(m);
    m = load(GOLDEN "llama.gguf", "cpu", TERN_F32);
    assert_non_null(tern_lora_add(m, &(tern_lora_options){.use_dora = true}));
    assert_int_equal(tern_lora_save(m, in_folder("dora.gguf")), TERN_ERR_UNSUPPORTED);
    assert_non_null(strstr(tern_last_error(), "no place for an adapter with use_dora"));
    tern_clear_error();
    assert_true(access(in_folder("dora.gguf"), F_OK) != 0);
    tern_nn_free(m);
}

/* ---- others' ------------------------------------------------------------------------------- */

static bool shared_is_there(void)
{
    if (access(SHARED "README.md", R_OK) == 0)
        return true;
    printf("SKIP: there are no models in ../shared/models/gguf\n");
    return false;
}

static void others_files_are_written_again_byte_for_byte(void **state)
{
    static const char *const names[] = {
        "llama/llama-f32",        "llama/llama-f16",      "llama/llama-bf16",
        "llama/llama-q4_0",       "llama/llama-q5_1",     "llama/llama-q8_0",
        "qwen3/qwen3-f16",        "qwen3/qwen3-q4_0",     "qwen3/qwen3-q8_0",
        "gpt2/gpt2-f16",          "gpt2/gpt2-q4_0",       "gpt2/gpt2-q8_0",
        "llama_k/llama_k-q4_k_m", "llama_k/llama_k-q2_k", "llama_k/llama_k-iq4_xs"};
    (void)state;
    if (!shared_is_there())
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, SHARED "%s.gguf", names[i]);
        tern_module *m = load(path, "cpu", TERN_DTYPE_DEFAULT);
        const char *again = in_folder("others.gguf");
        assert_ok(tern_models_save_pretrained(m, again, NULL));
        assert_same_bytes(again, path);
        tern_nn_free(m);
    }
}

/* Encoded of the float32 file, tensors are those of the file of that type: the same bytes at its end. */
static void quantized_as_others_quantize(void **state)
{
    static const char *const rows[][2] = {{"f16", "llama-f16"},
                                          {"bf16", "llama-bf16"},
                                          {"q8_0", "llama-q8_0"},
                                          {"q4_0", "llama-q4_0"},
                                          {"q5_1", "llama-q5_1"}};
    (void)state;
    if (!shared_is_there())
        return;
    tern_module *m = load(SHARED "llama/llama-f32.gguf", "cpu", TERN_DTYPE_DEFAULT);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        size_t n[2];
        snprintf(path, sizeof path, SHARED "llama/%s.gguf", rows[i][1]);
        const char *mine = in_folder("mine.gguf");
        assert_ok(tern_models_save_pretrained(m, mine, &(tern_save_options){.type = rows[i][0]}));
        tern_file *f = tern_safe_open(path);
        size_t data = 0;
        for (int k = 0; k < tern_file_count(f); k++)
            data += ((size_t)tern_file_nbytes(f, tern_file_name_at(f, k)) + 31) / 32 * 32;
        tern_file_free(f);
        char *a = read_file(path, &n[0]), *b = read_file(mine, &n[1]);
        assert_true(data > 10000 && data < n[0] && data < n[1]);
        assert_memory_equal(a + n[0] - data, b + n[1] - data, data);
        free(a);
        free(b);
    }
    tern_nn_free(m);
}

static void others_adapters_are_read_and_written(void **state)
{
    static const char *const names[][2] = {{"llama", "llama-f32"}, {"gpt2", "gpt2-f16"}};
    (void)state;
    if (!shared_is_there())
        return;
    for (int i = 0; i < 2; i++) {
        char base[512], adapter[512], peft[512];
        snprintf(base, sizeof base, SHARED "%s/%s.gguf", names[i][0], names[i][1]);
        snprintf(adapter, sizeof adapter, SHARED "%s/adapter.gguf", names[i][0]);
        snprintf(peft, sizeof peft, SHARED "%s/adapter/adapter_model.safetensors", names[i][0]);
        tern_module *m = load(base, "cpu", TERN_DTYPE_DEFAULT);
        assert_non_null(tern_lora_load(m, adapter, false));
        assert_ok(tern_lora_save(m, in_folder("mine")));
        assert_ok(tern_lora_save(m, in_folder("mine.gguf")));
        TERN_SCOPE {
            assert_same_dicts(in_folder("mine/adapter_model.safetensors"), peft);
            assert_same_dicts(in_folder("mine.gguf"), adapter);
        }
        tern_nn_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(read_and_written_again_a_file_is_the_same),
        TEST(parts_become_one_file),
        TEST(matrices_are_of_the_type_that_is_asked_for),
        TEST(other_files_are_refused),
        TEST(adapters_go_to_gguf_and_back),
        TEST(a_merged_model_is_written_whole),
        TEST(wrong_adapters_are_refused),
        TEST(others_files_are_written_again_byte_for_byte),
        TEST(quantized_as_others_quantize),
        TEST(others_adapters_are_read_and_written),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
