/* test_gguf_models.c -- models and tokenizers of GGUF files beside the same ones as the Hugging Face Hub has them, and beside what
 * PyTorch computes with the numbers in each file. */
#include "models.h"
#include "folder.h"
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GOLDEN TEST_FOLDER "/golden/"
#define SHARED TEST_FOLDER "/../../shared/"

static tern_module *load(const char *path, const char *device)
{
    tern_module *m =
        tern_models_from_pretrained(path, &(tern_pretrained_options){.device = device});
    if (!m)
        print_error("%s\n", tern_last_error());
    assert_non_null(m);
    return m;
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

static void models_are_those_of_the_hub(void **state)
{
    (void)state;
    char path[2][512];
    FOR_EACH_DEVICE(device)
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            snprintf(path[0], sizeof path[0], GOLDEN "gguf/%s", cases[i].name);
            snprintf(path[1], sizeof path[1], GOLDEN "gguf/%s", cases[i].file);
            tern_module *hub = load(path[0], device), *m = load(path[1], device);
            assert_string_equal(tern_nn_name(m), tern_nn_name(hub));
            assert_false(tern_nn_is_training(m));
            tern_tensor *ids = tern_from_data(
                (int64_t[]){3,  1, 4, 1, 5, 9, 2, 6, 5, 3,  5,  8,  9,  7,  9,  3,  2,  3,  8, 4,
                            26, 4, 3, 3, 8, 3, 2, 7, 9, 40, 41, 42, 43, 44, 45, 46, 47, 30, 1, 2},
                TERN_SHAPE(1, 40), TERN_I64, device);
            if (cases[i].tolerance > 0)
                assert_near(result(m, ids), result(hub, ids), cases[i].tolerance, 0);
            else
                test_same(result(m, ids), result(hub, ids), cases[i].name, __FILE__, __LINE__);
            tern_nn_free(hub);
            tern_nn_free(m);
        }
}

static void every_parameter_is_the_hubs(void **state)
{
    (void)state;
    char path[512];
    for (int i = 0; i < CASES; i++)
        TERN_SCOPE {
            snprintf(path, sizeof path, GOLDEN "gguf/%s", cases[i].file);
            tern_module *m = load(path, "cpu");
            tern_state_dict *have = tern_nn_state_dict(m);
            snprintf(path, sizeof path, GOLDEN "gguf/%s/model.safetensors", cases[i].name);
            tern_state_dict *want = tern_load(path, NULL);
            for (int k = 0; k < tern_state_dict_count(want); k++) {
                const char *name = tern_state_dict_key_at(want, k);
                tern_tensor *x = tern_state_dict_get(have, name);
                if (!x)
                    fail_msg("%s: there is no %s", cases[i].name, name);
                test_same(x, tern_state_dict_at(want, k), name, __FILE__, __LINE__);
            }
            tern_state_dict_free(have);
            tern_state_dict_free(want);
            tern_nn_free(m);
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

static void compare_shared(const char *name, const char *label, const char *device)
{
    char path[512];
    snprintf(path, sizeof path, SHARED "models/gguf/%s/reference.safetensors", name);
    tern_state_dict *r = models_read(path, device);
    snprintf(path, sizeof path, SHARED "models/gguf/%s/%s-%s.gguf", name, name, label);
    tern_module *m = load(path, device);
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
            TERN_SCOPE
                compare_shared(shared[i].folder, label, device);
    }
}

/* ---- tokenizers ------------------------------------------------------------------------------ */

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

/* ---- files that lie -------------------------------------------------------------------------- */

static void models_that_lie_have_named_errors(void **state)
{
    (void)state;
    char command[9000], line[1024], path[5000];
    if (access(SHARED "hostile/gguf.py", R_OK) != 0) {
        printf("SKIP: ../shared/hostile/gguf.py is not there: no hostile model was tried\n");
        return;
    }
    snprintf(command, sizeof command, "python3 " SHARED "hostile/gguf.py %s >/dev/null",
             in_folder("hostile"));
    if (system(command) != 0) {
        printf("SKIP: there is no Python: no hostile model of ../shared was tried\n");
        return;
    }
    FILE *rows = fopen(in_folder("hostile/expected.tsv"), "r");
    assert_non_null(rows);
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
        TEST(halves_are_what_the_caller_asks_for),
        TEST(logits_and_tokens_are_pytorchs),
        TEST(tokenizers_give_the_ids_of_tokenizer_json),
        TEST(ids_are_those_of_the_reference),
        TEST(models_that_lie_have_named_errors),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
