/* test_gguf_config.c -- models that came from a config.json written as GGUFs: keys, tensors of factors, tokenizers; and the memory of
 * a step of an adapter around blocks. */
#define _GNU_SOURCE /* memmem */
#include "models.h"
#include "folder.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define GOLDEN TEST_FOLDER "/golden/"

static tern_module *load(const char *path, const char *device, tern_dtype dtype)
{
    tern_module *m = tern_models_from_pretrained(
        path, &(tern_pretrained_options){.device = device, .dtype = dtype});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(text, 1, strlen(text), file);
    fclose(file);
}

static tern_tensor *result(tern_module *m)
{
    const int64_t list[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    tern_model_outputs out = {0};
    tern_tensor *ids = tern_from_data(list, TERN_SHAPE(1, 16), TERN_I64, "cpu");
    TERN_NO_GRAD
        assert_ok(tern_models_call(m, &(tern_model_inputs){.input_ids = ids}, &out));
    return out.logits ? out.logits : out.last_hidden_state;
}

/* ---- architectures ----------------------------------------------------------------------------- */

static void directories_become_files_with_the_same_logits(void **state)
{
    static const char *const names[] = {
        "gguf/llama",    "gguf/llama_bias", "gguf/qwen2",  "gguf/qwen3",  "gguf/gemma",
        "gguf/gemma2",   "gguf/gemma3",     "gguf/phi3",   "gguf/gpt2",   "gguf/bert",
        "models/gemma2", "models/gemma3",   "models/phi3", "models/gemma"};
    (void)state;
    int written = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char from[512];
        struct stat is;
        snprintf(from, sizeof from, GOLDEN "%s", names[i]);
        if (stat(from, &is) != 0)
            continue;
        tern_module *m = load(from, "cpu", TERN_F32);
        const char *path = in_folder("made.gguf");
        const tern_status status =
            tern_models_save_pretrained(m, path, &(tern_save_options){.type = "f32"});
        if (status != TERN_OK) {
            print_message("%s: %s\n", names[i], tern_last_error());
            assert_int_equal(status, TERN_ERR_UNSUPPORTED);
            assert_true(strncmp(names[i], "models/", 7) == 0);
            tern_clear_error();
            tern_nn_free(m);
            continue;
        }
        written++;
        tern_module *again = load(path, "cpu", TERN_F32);
        TERN_SCOPE {
            tern_tensor *a = result(again), *b = result(m);
            const double d =
                tern_item(tern_max(tern_abs(tern_sub(a, b)))) / tern_item(tern_max(tern_abs(b)));
            if (!(d < 1e-5))
                print_error("%s: the logits differ by %g\n", names[i], d);
            assert_true(d < 1e-5);
        }
        tern_nn_free(again);
        tern_nn_free(m);
    }
    assert_true(written >= 10);
}

/* The number of 4 bytes that a key of a file in the test's folder has; -1: it has no such key. */
static int64_t number_of(const char *name, const char *key)
{
    static char bytes[1 << 20];
    uint32_t number = 0;
    const size_t length = strlen(key);
    FILE *f = fopen(in_folder(name), "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t i = 0; i + length + 8 <= n; i++)
        if (memcmp(bytes + i, key, length) == 0) {
            memcpy(&number, bytes + i + length + 4, sizeof number);
            return number;
        }
    return -1;
}

/* ---- configs ----------------------------------------------------------------------------------- */

static tern_module *model_like(const char *architecture, const char *type, const char *fields)
{
    char text[2048];
    snprintf(text, sizeof text,
             "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", "
             "\"vocab_size\": 512, \"hidden_size\": 32, "
             "\"intermediate_size\": 64, \"num_hidden_layers\": 2, \"num_attention_heads\": 2, "
             "\"max_position_embeddings\": 64, "
             "\"rms_norm_eps\": 1e-5%s}",
             architecture, type, fields);
    write_text(in_folder("config.json"), text);
    tern_module *m = tern_models_from_config(in_folder("config.json"),
                                             &(tern_pretrained_options){.device = "cpu"});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
}

static tern_module *model_of(const char *fields)
{
    return model_like("LlamaForCausalLM", "llama", fields);
}

/* A model that no GGUF has: its error names what. */
static void refuse(tern_module *m, const char *what)
{
    assert_int_equal(tern_models_save_pretrained(m, in_folder("no.gguf"), NULL),
                     TERN_ERR_UNSUPPORTED);
    if (!strstr(tern_last_error(), what))
        print_error("%s\n", tern_last_error());
    assert_non_null(strstr(tern_last_error(), what));
    tern_clear_error();
    assert_true(access(in_folder("no.gguf"), F_OK) != 0);
    tern_nn_free(m);
}

static void what_no_key_says_is_refused_by_its_name(void **state)
{
    static const char *const rows[][2] = {
        {", \"hidden_act\": \"gelu\"", "hidden_act is another than silu"},
        {", \"rope_scaling\": {\"rope_type\": \"dynamic\", \"factor\": 2.0}",
         "rope_scaling is dynamic"},
        {", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
         "\"original_max_position_embeddings\": 8589934592}",
         "llama.rope.scaling.original_context_length is 8589934592"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(model_of(rows[i][0]), rows[i][1]);
}

/* Readers divide by the caps of a Gemma 2, which have no value for none. Those of a Gemma 3 they take as none where no key is. */
static void caps_that_are_none_are_no_zeros(void **state)
{
    (void)state;
    refuse(
        model_like(
            "Gemma2ForCausalLM", "gemma2",
            ", \"query_pre_attn_scalar\": 16, \"head_dim\": 16, \"final_logit_softcapping\": 30.0, "
            "\"attn_logit_softcapping\": null"),
        "attn_logit_softcapping is not above 0");
    refuse(
        model_like(
            "Gemma2ForCausalLM", "gemma2",
            ", \"query_pre_attn_scalar\": 16, \"head_dim\": 16, \"attn_logit_softcapping\": 50.0, "
            "\"final_logit_softcapping\": null"),
        "final_logit_softcapping is not above 0");
    tern_module *m = model_like("Gemma3ForCausalLM", "gemma3_text",
                                ", \"query_pre_attn_scalar\": 16, \"head_dim\": 16");
    assert_ok(tern_models_save_pretrained(m, in_folder("gemma3.gguf"), NULL));
    assert_int_equal(number_of("gemma3.gguf", "gemma3.attn_logit_softcapping"), -1);
    assert_true(number_of("gemma3.gguf", "gemma3.embedding_length") == 32);
    tern_nn_free(m);
}

/* One matrix of float32 among many of bfloat16, whichever it is. */
static void a_file_is_of_the_type_of_most_of_its_numbers(void **state)
{
    (void)state;
    tern_module *m = model_of("");
    int64_t n = tern_nn_parameters(m, NULL, 0), wide = 0;
    tern_tensor *x[64];
    assert_true(n <= 64);
    assert_int_equal(tern_nn_parameters(m, x, n), n);
    for (int64_t i = 0; i < n; i++) {
        if (tern_dim(x[i]) != 2)
            continue;
        TERN_SCOPE {
            assert_non_null(tern_nn_to_dtype(m, TERN_BF16));
            assert_non_null(tern_set_data_(x[i], tern_to_dtype(x[i], TERN_F32)));
            assert_ok(tern_models_save_pretrained(m, in_folder("most.gguf"), NULL));
        }
        assert_int_equal(number_of("most.gguf", "general.file_type"), 32);
        wide++;
    }
    assert_true(wide > 10);
    tern_nn_free(m);
}

static void frequencies_come_back(void **state)
{
    static const char *const fields[] = {
        "",
        ", \"rope_theta\": 500000.0",
        ", \"head_dim\": 32",
        ", \"tie_word_embeddings\": true",
        ", \"attention_bias\": true, \"mlp_bias\": true",
        ", \"num_key_value_heads\": 1",
        ", \"rope_scaling\": {\"rope_type\": \"linear\", \"factor\": 4.0}",
        ", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": "
        "1.0, \"high_freq_factor\": 4.0, "
        "\"original_max_position_embeddings\": 16}",
        ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
        "\"original_max_position_embeddings\": 16}",
        ", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0, "
        "\"original_max_position_embeddings\": 16, "
        "\"attention_factor\": 1.5, \"beta_fast\": 24}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        tern_module *m = model_of(fields[i]);
        assert_ok(tern_models_save_pretrained(m, in_folder("rope.gguf"), NULL));
        tern_module *again = load(in_folder("rope.gguf"), "cpu", TERN_F32);
        TERN_SCOPE {
            tern_tensor *a = result(again), *b = result(m);
            const double d =
                tern_item(tern_max(tern_abs(tern_sub(a, b)))) / tern_item(tern_max(tern_abs(b)));
            if (!(d < 1e-5))
                print_error("%s: the logits differ by %g\n", fields[i], d);
            assert_true(d < 1e-5);
        }
        tern_nn_free(again);
        tern_nn_free(m);
    }
}

/* ---- tokenizers -------------------------------------------------------------------------------- */

static const char *const texts[] = {
    "",
    "the king was there",
    " two  spaces\tand\n\nlines \n",
    "numbers 12345 and 3.14, it's I'll WE'VE",
    "caf\xc3\xa9 na\xc3\xafve \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x98\x80",
    "<s> </s> [MASK] <|endoftext|> [SEP]",
    "unaffable, Hello! (yes) #1 @x"};

enum {
    NAMES_OF_TOKENS = 5
}; /* the text which has some: in a GGUF of kind llama <s> and </s> in a text are text */

static bool same_ids(tern_tokenizer *a, tern_tokenizer *b, const char *text)
{
    bool same = false;
    TERN_SCOPE {
        tern_encoding e[2];
        tern_tokenizer *const both[] = {a, b};
        for (int k = 0; k < 2; k++)
            assert_ok(tern_tokenizer_call(both[k], &text, NULL, 1,
                                          &(tern_encode_options){.device = "cpu"}, &e[k]));
        same = tern_same_shape(e[0].input_ids, e[1].input_ids) &&
               tern_equal(e[0].input_ids, e[1].input_ids);
    }
    return same;
}

static int other_ids(const char *name, tern_tokenizer *a, tern_tokenizer *b)
{
    int other = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (i == NAMES_OF_TOKENS && !strcmp(name, "llama2"))
            continue;
        const bool same = same_ids(a, b, texts[i]);
        if (!same)
            print_error("%s: text %zu has other ids\n", name, i);
        other += !same;
    }
    return other;
}

static void tokenizers_go_along(void **state)
{
    static const char *const names[] = {"gpt2", "llama3", "llama2", "bert"};
    static const char *const refused[] = {"roberta", "t5", "qwen"};
    char directory[512], from[512], to[1024];
    (void)state;
    snprintf(directory, sizeof directory, "%s", in_folder("hub"));
    tern_module *made = model_of(", \"bos_token_id\": 1, \"eos_token_id\": 2");
    assert_ok(tern_models_save_pretrained(made, directory, NULL));
    tern_nn_free(made);
    snprintf(to, sizeof to, "%s/tokenizer.json", directory);
    int other = 0;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < (k ? 3 : 4); i++) {
            const char *name = k ? refused[i] : names[i];
            size_t n;
            snprintf(from, sizeof from, GOLDEN "tokenizers/%s.json", name);
            char *text = read_file(from, &n);
            write_text(to, text);
            free(text);
            tern_module *m = load(directory, "cpu", TERN_F32);
            const tern_status status =
                tern_models_save_pretrained(m, in_folder("tokens.gguf"), NULL);
            tern_nn_free(m);
            if (k) {
                assert_int_equal(status, TERN_ERR_UNSUPPORTED);
                assert_non_null(strstr(tern_last_error(), "tokenizer.json has"));
                tern_clear_error();
                continue;
            }
            assert_ok(status);
            tern_tokenizer *a = tern_tokenizer_from_file(to),
                           *b = tern_tokenizer_from_file(in_folder("tokens.gguf"));
            if (!b)
                print_error("%s\n", tern_last_error());
            assert_non_null(a);
            assert_non_null(b);
            other += other_ids(name, a, b);
            tern_tokenizer_free(a);
            tern_tokenizer_free(b);
        }
    write_text(to, "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 512}, \"merges\": []}}");
    tern_module *m = load(directory, "cpu", TERN_F32);
    assert_int_equal(tern_models_save_pretrained(m, in_folder("no.gguf"), NULL),
                     TERN_ERR_UNSUPPORTED);
    assert_non_null(strstr(tern_last_error(), "none of the model's rows"));
    tern_clear_error();
    tern_nn_free(m);
    assert_int_equal(other, 0);
}

/* The tokenizer.json beside a model, which is written as a GGUF. */
static void write_with(const char *tokenizer)
{
    char to[1024];
    tern_module *made = model_of("");
    assert_ok(tern_models_save_pretrained(made, in_folder("spelled"), NULL));
    snprintf(to, sizeof to, "%s/tokenizer.json", in_folder("spelled"));
    write_text(to, tokenizer);
    tern_module *m = load(in_folder("spelled"), "cpu", TERN_F32);
    assert_ok(tern_models_save_pretrained(m, in_folder("spelled.gguf"), NULL));
    tern_nn_free(m);
    tern_nn_free(made);
}

static void a_token_has_any_length(void **state)
{
    (void)state;
    enum { LONG = 3000 };
    char token[LONG + 1], text[LONG + 512], spelled[LONG + 8];
    size_t n;
    memset(token, 'a', LONG);
    token[LONG] = 0;
    snprintf(text, sizeof text,
             "{\"normalizer\": {\"type\": \"BertNormalizer\", \"lowercase\": true}, \"model\": "
             "{\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", \"vocab\": {\"[UNK]\": 0, "
             "\"%s\": 1}}}",
             token);
    write_with(text);
    snprintf(spelled, sizeof spelled, "\xe2\x96\x81%s", token);
    char *bytes = read_file(in_folder("spelled.gguf"), &n);
    assert_non_null(memmem(bytes, n, spelled, strlen(spelled)));
    free(bytes);
}

/* Files from before prepend_scheme say by add_prefix_space whether a text begins with a blank. */
static void a_blank_comes_before_a_text_as_it_did(void **state)
{
    (void)state;
    for (int prefix = 0; prefix < 2; prefix++) {
        char text[1024], from[1024];
        snprintf(
            text, sizeof text,
            "{\"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", "
            "\"add_prefix_space\": %s}, \"model\": {\"type\": \"BPE\", \"byte_fallback\": true, "
            "\"unk_token\": \"<unk>\", \"vocab\": {\"<unk>\": 0, \"a\": 1, "
            "\"\xe2\x96\x81\": 2, \"\xe2\x96\x81"
            "a\": 3}, "
            "\"merges\": [\"\xe2\x96\x81 a\"]}}",
            prefix ? "true" : "false");
        write_with(text);
        snprintf(from, sizeof from, "%s/tokenizer.json", in_folder("spelled"));
        tern_tokenizer *a = tern_tokenizer_from_file(from),
                       *b = tern_tokenizer_from_file(in_folder("spelled.gguf"));
        assert_non_null(a);
        assert_non_null(b);
        assert_true(same_ids(a, b, "a a"));
        tern_tokenizer_free(a);
        tern_tokenizer_free(b);
    }
}

/* ---- memory ------------------------------------------------------------------------------------ */

/* The most that a step of an adapter had in use, weights and all. */
static double peak_of_a_step(const char *path, const char *device, tern_dtype dtype)
{
    enum { TOKENS = 32 };
    static const char *const targets[] = {"q_proj", "v_proj", NULL};
    tern_memory_stats before = {0}, stats = {0};
    assert_ok(tern_empty_cache(device));
    assert_ok(tern_memory_get_stats(device, &before));
    tern_module *m = load(path, device, dtype);
    assert_ok(tern_synchronize(device));
    assert_ok(tern_reset_peak_memory_stats(device));
    assert_non_null(
        tern_lora_add(m, &(tern_lora_options){.r = 8, .alpha = 16, .target_modules = targets}));
    tern_optimizer *o = tern_optim_adamw(m, 1e-3, NULL);
    for (int step = 0; step < 2; step++)
        TERN_SCOPE {
            tern_tensor *ids = tern_randint(1, 500, TERN_SHAPE(1, TOKENS), TERN_I64, device);
            tern_model_outputs out = {0};
            assert_ok(tern_optim_zero_grad(o));
            assert_ok(
                tern_models_call(m, &(tern_model_inputs){.input_ids = ids, .labels = ids}, &out));
            assert_ok(tern_backward(out.loss));
            assert_ok(tern_optim_step(o));
        }
    assert_ok(tern_memory_get_stats(device, &stats));
    tern_optim_free(o);
    tern_nn_free(m);
    return (double)(stats.allocated_peak - before.allocated);
}

/* Scales of zeros are not searched for. */
static tern_status make_zero(const char *name, tern_tensor *x, void *user)
{
    (void)name, (void)user;
    return tern_nn_init_zeros_(x) ? TERN_OK : TERN_ERR_STATE;
}

/* The shape of a small model, narrower, with as many weights beside its activations: over Q4_K a step has at most 0.35 of what it has over
 * float32. */
static void a_step_over_blocks_has_a_third_of_the_memory(void **state)
{
    (void)state;
    write_text(
        in_folder("config.json"),
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": "
        "2048, \"hidden_size\": 512, "
        "\"intermediate_size\": 1536, \"num_hidden_layers\": 6, \"num_attention_heads\": 8, "
        "\"num_key_value_heads\": 4, "
        "\"max_position_embeddings\": 64, \"rms_norm_eps\": 1e-5, \"tie_word_embeddings\": true}");
    tern_module *made = tern_models_from_config(in_folder("config.json"),
                                                &(tern_pretrained_options){.device = "cpu"});
    assert_non_null(made);
    assert_ok(tern_nn_each_parameter(made, make_zero, NULL));
    assert_ok(tern_models_save_pretrained(made, in_folder("large.gguf"),
                                          &(tern_save_options){.type = "q4_k"}));
    tern_nn_free(made);
    tern_file *file = tern_safe_open(in_folder("large.gguf"));
    assert_string_equal(tern_file_dtype_name(file, "blk.0.ffn_down.weight"), "Q4_K");
    tern_file_free(file);
    FOR_EACH_DEVICE(device)
    {
        const double blocks = peak_of_a_step(in_folder("large.gguf"), device, TERN_DTYPE_DEFAULT);
        const double floats = peak_of_a_step(in_folder("large.gguf"), device, TERN_F32);
        print_message("%s: %.1f and %.1f MiB, %.3f\n", device, blocks / 1048576, floats / 1048576,
                      blocks / floats);
        assert_true(floats > 4.0 * 17e6);
        assert_true(blocks <= 0.35 * floats);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(directories_become_files_with_the_same_logits),
                                       TEST(what_no_key_says_is_refused_by_its_name),
                                       TEST(caps_that_are_none_are_no_zeros),
                                       TEST(a_file_is_of_the_type_of_most_of_its_numbers),
                                       TEST(frequencies_come_back),
                                       TEST(tokenizers_go_along),
                                       TEST(a_token_has_any_length),
                                       TEST(a_blank_comes_before_a_text_as_it_did),
                                       TEST(a_step_over_blocks_has_a_third_of_the_memory)};
    return folder_main(tests, sizeof tests / sizeof *tests);
}
