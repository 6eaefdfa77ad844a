/* test_gguf_tokenizers.c -- tokenizers of GGUF files beside the same ones of tokenizer.json, and ids of reference tokenizers. */
#include "support.h"
#include "folder.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/models.h>

#define GOLDEN TEST_FOLDER "/golden/"
#define SHARED TEST_FOLDER "/../../shared/"

static const char *const texts[] = {
    "",
    " ",
    "Hello, world!",
    "the king  was\n12 caf\u00e9",
    "It was the best of times, it was the worst of times",
    "don't WE'LL they've 1999 12345678 3.14",
    "\u4e16\u754c \U0001f600 e\u0301 A\u030a",
    "  two  spaces   and\ttabs\r\n\n",
    "<|endoftext|>text</s><s>[MASK] [CLS]",
    "...!? __x__ (a+b)*c",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static const struct {
    const char *name;
    bool pairs; /* two texts are put together as the other file does it */
    int but;    /* of what SentencePiece reads "<s>" in a text as text; -1: none */
} tokenizers[] = {
    {"gpt2", true, -1}, {"llama3", false, -1}, {"llama2", false, 8}, {"bert", true, -1}};

static tern_tokenizer *open_tokenizer(const char *format, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, format, name);
    tern_tokenizer *t = tern_tokenizer_from_file(path);
    if (!t)
        print_error("%s\n", tern_last_error());
    assert_non_null(t);
    return t;
}

static void tokenizers_give_the_ids_of_tokenizer_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        tern_tokenizer *a = open_tokenizer(GOLDEN "gguf/tokenizer_%s.gguf", tokenizers[i].name);
        tern_tokenizer *b = open_tokenizer(GOLDEN "tokenizers/%s.json", tokenizers[i].name);
        assert_int_equal(tern_tokenizer_vocab_size(a), tern_tokenizer_vocab_size(b));
        assert_string_equal(tern_tokenizer_chat_template(a), "{{ messages }}");
        assert_null(tern_tokenizer_chat_template(b));
        for (int k = 0; k < TEXTS; k++) {
            if (k == tokenizers[i].but)
                continue;
            TERN_SCOPE {
                tern_encode_options plain = {.no_special_tokens = true};
                tern_tensor *ids = tern_tokenizer_encode(b, texts[k], &plain);
                assert_same(tern_tokenizer_encode(a, texts[k], &plain), ids);
                char *one = tern_tokenizer_decode(a, ids, false);
                char *other = tern_tokenizer_decode(b, ids, false);
                assert_string_equal(one, other);
                tern_free_text(one);
                tern_free_text(other);
                if (!tokenizers[i].pairs)
                    continue;
                tern_encoding x, y;
                assert_ok(tern_tokenizer_call(a, &texts[k], &texts[2], 1, NULL, &x));
                assert_ok(tern_tokenizer_call(b, &texts[k], &texts[2], 1, NULL, &y));
                assert_same(x.input_ids, y.input_ids);
            }
        }
        tern_tokenizer_free(a);
        tern_tokenizer_free(b);
    }
}

/* A list of lists of numbers: [[1, 2], [], ...]. */
static const char *next_list(const char *at, int64_t *ids, int64_t *n)
{
    for (at = strchr(at + 1, '['), *n = 0; *at && *at != ']';) {
        char *end;
        long long x = strtoll(at + 1, &end, 10);
        if (end != at + 1)
            ids[(*n)++] = x;
        at = end == at + 1 ? at + 1 : end;
    }
    return at;
}

/* The next text of JSON, unescaped. */
static const char *next_text(const char *at, char *text)
{
    at = strchr(at, '"');
    char *end = strdup(at), *close = end + 1;
    while (*close != '"')
        close += *close == '\\' ? 2 : 1;
    *++close = 0;
    /* The library's own reader of JSON is that of metadata. */
    json_t *json = json_loads(end, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    assert_non_null(json);
    snprintf(text, 8192, "%s", json_string_value(json));
    bool zero = strlen(json_string_value(json)) != json_string_length(json);
    at += close - end;
    json_decref(json);
    free(end);
    if (zero)
        text[0] = 1, text[1] = 0; /* no C string: left out by its caller */
    return at;
}

static void compare_ids(const char *gguf, const char *expected)
{
    size_t n_strings, n_expected;
    static char text[8192];
    static int64_t ids[8192];
    int64_t n;
    tern_tokenizer *t = open_tokenizer(SHARED "models/gguf/%s", gguf);
    char path[512];
    snprintf(path, sizeof path, SHARED "models/gguf/%s", expected);
    char *strings = read_file(SHARED "models/tokenizers/strings.json", &n_strings);
    char *lists = read_file(path, &n_expected);
    const char *at = strchr(strings, '['), *list = lists;
    int wrong = 0;
    for (int i = 0; i < 200; i++)
        TERN_SCOPE {
            at = next_text(at, text);
            list = next_list(list, ids, &n);
            if (text[0] == 1 && !text[1])
                continue;
            tern_tensor *have =
                tern_tokenizer_encode(t, text, &(tern_encode_options){.device = "cpu"});
            assert_non_null(have);
            if (tern_size(have, 1) != n || memcmp(tern_data(have), ids, (size_t)n * sizeof *ids))
                print_error("%s: text %d: %s\n", gguf, i, text), wrong++;
        }
    assert_int_equal(wrong, 0);
    free(strings);
    free(lists);
    tern_tokenizer_free(t);
}

/* ---- written ------------------------------------------------------------------------------- */

/* A model of as many rows as the tokenizer has tokens, in the folder "model". */
static void make_model(const char *tokenizer, size_t n)
{
    char config[1024];
    tern_tokenizer *t = NULL;
    const char *path = in_folder("model");
    mkdir(path, 0700);
    write_file(in_folder("model/tokenizer.json"), tokenizer, n);
    t = tern_tokenizer_from_pretrained(path);
    assert_non_null(t);
    const int bytes = snprintf(
        config, sizeof config,
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": "
        "%lld,"
        " \"hidden_size\": 16, \"intermediate_size\": 32, \"num_hidden_layers\": 1,"
        " \"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"max_position_embeddings\": 32,"
        " \"rms_norm_eps\": 1e-5, \"hidden_act\": \"silu\", \"tie_word_embeddings\": false}",
        (long long)tern_tokenizer_vocab_size(t));
    tern_tokenizer_free(t);
    write_file(in_folder("config.json"), config, (size_t)bytes);
    tern_module *m = tern_models_from_config(in_folder("config.json"),
                                             &(tern_pretrained_options){.device = "cpu"});
    assert_ok(tern_models_save_pretrained(m, path, NULL));
    tern_nn_free(m);
}

static tern_status write_gguf(void)
{
    tern_module *m = tern_models_from_pretrained(in_folder("model"),
                                                 &(tern_pretrained_options){.device = "cpu"});
    assert_non_null(m);
    const tern_status status = tern_models_save_pretrained(m, in_folder("out.gguf"), NULL);
    tern_nn_free(m);
    return status;
}

static void written_tokenizers_give_the_same_ids(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
        char path[512];
        size_t n;
        snprintf(path, sizeof path, GOLDEN "tokenizers/%s.json", tokenizers[i].name);
        char *bytes = read_file(path, &n);
        make_model(bytes, n);
        free(bytes);
        assert_ok(write_gguf());
        tern_tokenizer *a = tern_tokenizer_from_file(in_folder("out.gguf"));
        tern_tokenizer *b = tern_tokenizer_from_file(path);
        assert_non_null(a);
        for (int k = 0; k < TEXTS; k++)
            if (k != tokenizers[i].but)
                TERN_SCOPE {
                    const tern_encode_options plain = {.no_special_tokens = true};
                    assert_same(tern_tokenizer_encode(a, texts[k], &plain),
                                tern_tokenizer_encode(b, texts[k], &plain));
                }
        tern_tokenizer_free(a);
        tern_tokenizer_free(b);
        assert_int_equal(unlink(in_folder("out.gguf")), 0);
    }
}

/* bytes with one text in place of another, to be freed. */
static char *with(const char *bytes, const char *from, const char *to)
{
    const char *at = strstr(bytes, from);
    assert_non_null(at);
    char *text = malloc(strlen(bytes) + strlen(to) + 1);
    sprintf(text, "%.*s%s%s", (int)(at - bytes), bytes, to, at + strlen(from));
    return text;
}

/* What a GGUF has no words for is an error that names it, and no file. */
static void other_tokenizers_are_not_written(void **state)
{
    static const struct {
        const char *name, *from, *to, *message;
    } rows[] = {
        {"llama2", "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}", "{\"type\":\"Lowercase\"}",
         "a normalizer of type Lowercase"},
        {"llama2", "{\"type\":\"Prepend\",\"prepend\":\"\u2581\"}", "{\"type\":\"NFKC\"}",
         "a normalizer of type NFKC"},
        {"llama2", "\"prepend\":\"\u2581\"", "\"prepend\":\"x\"",
         "replaces or prepends something else"},
        {"llama2", "\"content\":\"\u2581\"}", "\"content\":\"_\"}",
         "replaces or prepends something else"},
        {"llama2", "\"pre_tokenizer\":null", "\"pre_tokenizer\":{\"type\":\"Whitespace\"}",
         "a pre_tokenizer of type Whitespace"},
        {"gpt2", "\"normalizer\":null", "\"normalizer\":{\"type\":\"Lowercase\"}",
         "a normalizer of type Lowercase"},
        {"gpt2", "\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
         "letters around the parts of a word"},
        {"bert", "\"strip_accents\":null", "\"strip_accents\":false",
         "a normalizer that is not BERT's of lower case"},
        {"bert", "{\"type\":\"BertPreTokenizer\"}", "{\"type\":\"Whitespace\"}",
         "a pre_tokenizer of type Whitespace"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        size_t n;
        snprintf(path, sizeof path, GOLDEN "tokenizers/%s.json", rows[i].name);
        char *bytes = read_file(path, &n), *other = with(bytes, rows[i].from, rows[i].to);
        make_model(other, strlen(other));
        if (write_gguf() != TERN_ERR_UNSUPPORTED)
            print_error("%s with %s: %s\n", rows[i].name, rows[i].to, tern_last_error());
        assert_int_equal(tern_last_status(), TERN_ERR_UNSUPPORTED);
        assert_non_null(strstr(tern_last_error(), rows[i].message));
        assert_int_not_equal(access(in_folder("out.gguf"), F_OK), 0);
        tern_clear_error();
        free(bytes);
        free(other);
    }
}

static void chat_templates_are_written(void **state)
{
    static const char list[] =
        "{\"chat_template\": [{\"name\": \"tool-use\", \"template\": \"{{ t }}\"},"
        " {\"name\": \"default\", \"template\": \"{{ d }}\"}]}";
    size_t n;
    char *bytes = read_file(GOLDEN "tokenizers/gpt2.json", &n);
    (void)state;
    make_model(bytes, n);
    free(bytes);
    for (int jinja = 0; jinja < 2; jinja++) {
        write_file(in_folder("model/tokenizer_config.json"), list, strlen(list));
        if (jinja)
            write_file(in_folder("model/chat_template.jinja"), "{{ j }}", 7);
        assert_ok(write_gguf());
        tern_file *file = tern_safe_open(in_folder("out.gguf"));
        assert_non_null(file);
        assert_string_equal(tern_file_metadata(file, "tokenizer.chat_template"),
                            jinja ? "{{ j }}" : "{{ d }}");
        const char *named = tern_file_metadata(file, "tokenizer.chat_template.tool_use");
        assert_true(jinja ? named == NULL : named && strcmp(named, "{{ t }}") == 0);
        tern_file_free(file);
        tern_tokenizer *t = tern_tokenizer_from_file(in_folder("out.gguf"));
        assert_string_equal(tern_tokenizer_chat_template(t), jinja ? "{{ j }}" : "{{ d }}");
        tern_tokenizer_free(t);
    }
}

static void ids_are_those_of_the_reference(void **state)
{
    (void)state;
    if (access(SHARED "models/gguf/README.md", R_OK) != 0) {
        printf("SKIP: there are no vocabularies in ../shared/models/gguf\n");
        return;
    }
    compare_ids("llama/llama-f16.gguf", "llama/tokenizer.expected.json");
    compare_ids("qwen3/qwen3-q4_0.gguf", "qwen3/tokenizer.expected.json");
    compare_ids("gpt2/gpt2-q4_0.gguf", "gpt2/tokenizer.expected.json");
    compare_ids("vocab/bert.gguf", "vocab/bert.expected.json");
    compare_ids("vocab/spm.gguf", "vocab/spm.expected.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tokenizers_give_the_ids_of_tokenizer_json),
        TEST(written_tokenizers_give_the_same_ids),
        TEST(other_tokenizers_are_not_written),
        TEST(chat_templates_are_written),
        TEST(ids_are_those_of_the_reference),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
