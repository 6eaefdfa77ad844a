/* test_tokenizer_files.c -- tokenizers of files of every kind but tokenizer.json, beside the packages that define them
 * (golden/tokenizer_files.py). */
#include "support.h"
#include "folder.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <tern/models.h>

#define GOLDEN TEST_FOLDER "/golden/tokenizers/"
#define FILES  GOLDEN "files/"
#define SHARED TEST_FOLDER "/../../shared/models/tokenizers/"

static const tern_encode_options plain = {.no_special_tokens = true, .device = "cpu"};

static tern_tokenizer *need(tern_tokenizer *t)
{
    if (!t)
        print_error("%s\n", tern_last_error());
    assert_non_null(t);
    return t;
}

/* Whether ids and their text are what is expected; says which text is not. */
static int is_wrong(const tern_tokenizer *t, const char *name, const json_t *text,
                    const json_t *ids, const json_t *decoded, bool special)
{
    const int64_t n = (int64_t)json_array_size(ids);
    int64_t *list = calloc((size_t)n + 1, sizeof *list);
    for (int64_t i = 0; i < n; i++)
        list[i] = json_integer_value(json_array_get(ids, (size_t)i));
    tern_encode_options o = plain;
    o.no_special_tokens = !special;
    o.text_bytes = (int64_t)json_string_length(text);
    int wrong = 0;
    TERN_SCOPE {
        tern_tensor *have = tern_tokenizer_encode(t, json_string_value(text), &o);
        assert_non_null(have);
        wrong = tern_size(have, 1) != n || memcmp(tern_data(have), list, (size_t)n * sizeof *list);
        if (wrong) {
            print_error("%s: ids of '%s'\n", name, json_string_value(text));
            tern_print(have);
            char *line = json_dumps(ids, 0);
            print_error("%s\n", line);
            free(line);
        }
        tern_tensor *given = tern_from_data(list, TERN_SHAPE(n), TERN_I64, "cpu");
        char *back = decoded ? tern_tokenizer_decode(t, given, false) : NULL;
        if (decoded && strlen(json_string_value(decoded)) == json_string_length(decoded) &&
            strcmp(back, json_string_value(decoded)) != 0) {
            print_error("%s: text of '%s': '%s', expected '%s'\n", name, json_string_value(text),
                        back, json_string_value(decoded));
            wrong = 1;
        }
        tern_free_text(back);
    }
    free(list);
    return wrong;
}

/* Lines of [text, ids, text of the ids]. */
static void compare(tern_tokenizer *t, const char *name, bool special)
{
    char path[512];
    snprintf(path, sizeof path, FILES "%s.ids", name);
    FILE *file = fopen(path, "r");
    static char line[65536];
    int wrong = 0, lines = 0;
    need(t);
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++) {
        json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
        assert_non_null(row);
        wrong += is_wrong(t, name, json_array_get(row, 0), json_array_get(row, 1),
                          json_array_get(row, 2), special);
        json_decref(row);
    }
    fclose(file);
    assert_true(lines >= 75);
    assert_int_equal(wrong, 0);
    tern_tokenizer_free(t);
}

static void sentence_piece_models_give_the_packages_ids(void **state)
{
    static const char *const names[] = {"bpe_bytes", "bpe_user", "unigram", "unigram_bytes"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, FILES "%s.model", names[i]);
        compare(tern_tokenizer_from_file(path), names[i], false);
    }
}

static void tiktoken_files_give_the_packages_ids(void **state)
{
    size_t n;
    char *pattern = read_file(FILES "small.pattern", &n);
    static const char *const special[] = {"<|endoftext|>", "<tag>", NULL};
    static const int64_t ids[] = {430, 425};
    (void)state;
    compare(tern_tokenizer_from_tiktoken(FILES "small.tiktoken",
                                         &(tern_tiktoken_options){.pattern = pattern,
                                                                  .special_tokens = special,
                                                                  .special_ids = ids}),
            "small", true);
    free(pattern);
    compare(tern_tokenizer_from_file(FILES "tekken.json"), "tekken", true);
}

static void word_lists_give_the_packages_ids(void **state)
{
    (void)state;
    compare(tern_tokenizer_from_file(FILES "vocab.txt"), "vocab", true);
    compare(tern_tokenizer_from_file(FILES "roberta-vocab.json"), "roberta", true);
    compare(tern_tokenizer_from_file(FILES "roberta-merges.txt"), "roberta", true);
}

/* What tern_tokenizer_save writes of them is a tokenizer.json that opens again. */
static void they_are_saved_as_tokenizer_json(void **state)
{
    static const char *const names[] = {"bpe_bytes.model", "unigram.model", "tekken.json",
                                        "vocab.txt", "roberta-vocab.json"};
    static const char *const texts[] = {"it was the best of times", "Hello, times!",
                                        "3.14 caf\u00e9"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        snprintf(path, sizeof path, FILES "%s", names[i]);
        tern_tokenizer *a = need(tern_tokenizer_from_file(path));
        const char *saved = in_folder("saved.json");
        assert_ok(tern_tokenizer_save(a, saved));
        tern_tokenizer *b = need(tern_tokenizer_from_file(saved));
        assert_int_equal(tern_tokenizer_vocab_size(a), tern_tokenizer_vocab_size(b));
        for (int k = 0; k < 3; k++)
            TERN_SCOPE {
                tern_encode_options o = {.device = "cpu"};
                assert_same(tern_tokenizer_encode(a, texts[k], &o),
                            tern_tokenizer_encode(b, texts[k], &o));
            }
        tern_tokenizer_free(a);
        tern_tokenizer_free(b);
    }
}

/* ---- folders ------------------------------------------------------------------------------- */

static void copy_to(const char *from, const char *name)
{
    size_t n;
    char inside[64];
    char *bytes = read_file(from, &n);
    snprintf(inside, sizeof inside, "model/%s", name);
    write_file(in_folder(inside), bytes, n);
    free(bytes);
}

static void empty_folder(void)
{
    remove_tree(in_folder("model"));
    assert_int_equal(mkdir(in_folder("model"), 0755), 0);
}

static void a_folder_may_have_any_of_them(void **state)
{
    static const struct {
        const char *file, *name, *expected;
        bool special;
    } rows[] = {{"bpe_bytes.model", "tokenizer.model", "bpe_bytes", false},
                {"unigram.model", "spiece.model", "unigram", false},
                {"unigram_bytes.model", "sentencepiece.bpe.model", "unigram_bytes", false},
                {"vocab.txt", "vocab.txt", "vocab", true},
                {"tekken.json", "tekken.json", "tekken", true}};
    char path[4200];
    (void)state;
    snprintf(path, sizeof path, "%s/model", folder);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char from[512];
        empty_folder();
        snprintf(from, sizeof from, FILES "%s", rows[i].file);
        copy_to(from, rows[i].name);
        compare(tern_tokenizer_from_pretrained(path), rows[i].expected, rows[i].special);
    }
    empty_folder();
    copy_to(FILES "roberta-vocab.json", "vocab.json");
    assert_null(tern_tokenizer_from_pretrained(path));
    assert_non_null(strstr(tern_last_error(), "model/merges.txt, which belongs to it"));
    tern_clear_error();
    copy_to(FILES "roberta-merges.txt", "merges.txt");
    compare(tern_tokenizer_from_pretrained(path), "roberta", true);
    empty_folder();
    assert_null(tern_tokenizer_from_pretrained(path));
    assert_non_null(strstr(tern_last_error(), "there is no tokenizer.json, tokenizer.model"));
    tern_clear_error();
}

/* tokenizer_config.json beside them: special tokens that are found in a text, what stands around it. */
static void a_config_beside_them_counts(void **state)
{
    static const char config[] =
        "{\"tokenizer_class\": \"LlamaTokenizer\", \"add_bos_token\": false, \"add_eos_token\": "
        "true,"
        " \"pad_token\": \"<unk>\", \"chat_template\": \"{{ x }}\", \"padding_side\": \"left\","
        " \"added_tokens_decoder\": {\"2\": {\"content\": \"</s>\", \"special\": true},"
        " \"900\": {\"content\": \"<|im_end|>\", \"special\": true}}}";
    static const char other[] = "{\"tokenizer_class\": \"XLMRobertaTokenizer\"}";
    char path[4200], file[4200];
    (void)state;
    empty_folder();
    snprintf(path, sizeof path, "%s/model", folder);
    snprintf(file, sizeof file, "%s/model/tokenizer_config.json", folder);
    copy_to(FILES "bpe_bytes.model", "tokenizer.model");
    write_file(file, config, sizeof config - 1);
    tern_tokenizer *t = need(tern_tokenizer_from_pretrained(path));
    assert_string_equal(tern_tokenizer_chat_template(t), "{{ x }}");
    assert_int_equal(tern_tokenizer_special_id(t, TERN_TOKEN_PAD), 0);
    TERN_SCOPE {
        const int64_t *ids;
        tern_tensor *x = tern_tokenizer_encode(t, "the</s>the<|im_end|>",
                                               &(tern_encode_options){.device = "cpu"});
        ids = tern_data(x);
        const int64_t n = tern_size(x, 1);
        assert_int_equal(ids[n - 1], 2); /* added behind the text */
        assert_int_equal(ids[n - 2], 900);
        int found = 0;
        for (int64_t i = 0; i < n - 2; i++)
            found += ids[i] == 2;
        assert_int_equal(found, 1);
        assert_int_not_equal(ids[0], 1);
    }
    tern_tokenizer_free(t);
    write_file(file, other, sizeof other - 1);
    assert_null(tern_tokenizer_from_pretrained(path));
    assert_int_equal(tern_last_status(), TERN_ERR_UNSUPPORTED);
    assert_non_null(strstr(tern_last_error(), "tokenizer_class is XLMRobertaTokenizer"));
    tern_clear_error();
}

/* As transformers: files of templates go before what tokenizer_config.json has, a text or a list. */
static void chat_templates_are_found(void **state)
{
    static const char list[] =
        "{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"{{ t }}\"},"
        " {\"name\": \"default\", \"template\": \"{{ d }}\"}]}";
    static const char older[] = "{\"chat_template\": \"{{ older }}\"}", jinja[] = "{{ jinja }}\n";
    static const struct {
        const char *name, *bytes, *expected;
    } rows[] = {{"chat_template.json", older, "{{ older }}"},
                {"tokenizer_config.json", list, "{{ d }}"},
                {"chat_template.jinja", jinja, jinja}};
    char path[4200], file[4300];
    (void)state;
    empty_folder();
    snprintf(path, sizeof path, "%s/model", folder);
    copy_to(FILES "bpe_bytes.model", "tokenizer.model");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(file, sizeof file, "%s/%s", path, rows[i].name);
        write_file(file, rows[i].bytes, strlen(rows[i].bytes));
        tern_tokenizer *t = need(tern_tokenizer_from_pretrained(path));
        assert_string_equal(tern_tokenizer_chat_template(t), rows[i].expected);
        tern_tokenizer_free(t);
    }
    assert_int_equal(unlink(file), 0);
#ifndef _WIN32                               /* whose pipes are in no folder */
    assert_int_equal(mkfifo(file, 0600), 0); /* which nobody writes into */
    assert_null(tern_tokenizer_from_pretrained(path));
    assert_int_equal(tern_last_status(), TERN_ERR_IO);
    assert_non_null(strstr(tern_last_error(), "chat_template.jinja: no regular file"));
    tern_clear_error();
#endif
}

/* A path as its system writes it leads to the file beside one of another name. */
static void files_beside_are_found(void **state)
{
#ifdef _WIN32
    static const char slash = '\\';
#else
    static const char slash = '/';
#endif
    char path[4300];
    (void)state;
    empty_folder();
    copy_to(FILES "roberta-vocab.json", "words.json");
    copy_to(FILES "roberta-merges.txt", "merges.txt");
    snprintf(path, sizeof path, "%s%cmodel%cwords.json", folder, slash, slash);
    tern_tokenizer_free(need(tern_tokenizer_from_file(path)));
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void wrong_files_are_refused_by_name(void **state)
{
    static const struct {
        const char *name, *bytes, *message;
    } rows[] = {
        {"nothing", "", "none of tokenizer.json, a SentencePiece model"},
        {"prose", "once upon a time there was\n a file", "none of tokenizer.json"},
        {"ranks", "IQ== 0\nIg== 1\n", "a tiktoken file of 2 tokens: its pattern"},
        {"cut", "\x0a\x05\x0a\x01x", "none of tokenizer.json"},
        {"pieces", "\x0a\x03\x0a\x01x", "no piece is of type unknown"},
        {"twice", "\x0a\x05\x0a\x01x\x18\x02\x0a\x03\x0a\x01x", "tokens 0 and 1 are both 'x'"},
        {"two", "\x0a\x05\x0a\x01x\x18\x02\x0a\x05\x0a\x01y\x18\x02",
         "two pieces are of type unknown"},
        {"char", "\x0a\x05\x0a\x01x\x18\x02\x12\x02\x18\x04", "of type char: unigram or bpe"},
        {"words.txt", "[UNK]\nthe\n", "[CLS] is in none of its 2 lines"},
        {"tekken", "{\"config\": {}, \"vocab\": []}", "a tekken.json needs"},
        {"alone.json", "{\"a\": 0}", "merges.txt, which belongs to it, is not there"},
        {"number.json", "{\"a\": -1}", "merges.txt, which belongs to it, is not there"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = in_folder(rows[i].name);
        write_file(path, rows[i].bytes, strlen(rows[i].bytes));
        assert_null(tern_tokenizer_from_file(path));
        if (!strstr(tern_last_error(), rows[i].message) || !strstr(tern_last_error(), path))
            print_error("%s: %s\n", rows[i].name, tern_last_error());
        assert_non_null(strstr(tern_last_error(), rows[i].message));
        assert_non_null(strstr(tern_last_error(), path)); /* the file that was given */
        tern_clear_error();
    }
}

/* Every cut of a file is refused, or is another file of its kind; nothing is read behind its end. */
static void cut_files_are_refused_or_whole(void **state)
{
    static const char *const names[] = {"unigram.model", "small.tiktoken", "tekken.json",
                                        "vocab.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512];
        size_t n;
        snprintf(path, sizeof path, FILES "%s", names[i]);
        char *bytes = read_file(path, &n);
        for (size_t cut = 0; cut < n; cut += cut < 64 ? 1 : n / 23) {
            const char *made = in_folder("cut");
            write_file(made, bytes, cut);
            tern_tokenizer *t = tern_tokenizer_from_file(made);
            if (!t)
                assert_non_null(strstr(tern_last_error(), made));
            tern_tokenizer_free(t);
            tern_clear_error();
        }
        free(bytes);
    }
}

/* ---- others' ------------------------------------------------------------------------------- */

static void compare_shared(tern_tokenizer *t, const char *name, const char *ids_key)
{
    char path[512];
    snprintf(path, sizeof path, SHARED "%s.expected.json", name);
    json_t *expected = json_load_file(path, JSON_ALLOW_NUL, NULL);
    json_t *strings = json_load_file(SHARED "strings.json", JSON_ALLOW_NUL, NULL);
    int wrong = 0;
    need(t);
    for (size_t i = 0; i < 200; i++)
        wrong += is_wrong(t, name, json_array_get(json_object_get(strings, "strings"), i),
                          json_array_get(json_object_get(expected, ids_key), i),
                          strcmp(ids_key, "ids") == 0
                              ? json_array_get(json_object_get(expected, "decoded"), i)
                              : NULL,
                          false);
    assert_int_equal(wrong, 0);
    json_decref(expected);
    json_decref(strings);
    tern_tokenizer_free(t);
}

static void ids_of_200_texts_are_those_of_the_packages(void **state)
{
    static const char *const special[] = {"<|endoftext|>", "<|fim_prefix|>", NULL};
    (void)state;
    if (access(SHARED "README.md", R_OK) != 0) {
        printf("SKIP: there are no tokenizers in ../shared/models\n");
        return;
    }
    compare_shared(tern_tokenizer_from_file(SHARED "sp_bpe.model"), "sp_bpe", "ids");
    compare_shared(tern_tokenizer_from_file(SHARED "sp_unigram.model"), "sp_unigram", "ids");
    json_t *about = json_load_file(SHARED "tt_cl100k.expected.json", JSON_ALLOW_NUL, NULL);
    tern_tiktoken_options o = {.pattern = json_string_value(json_object_get(about, "pattern"))};
    compare_shared(tern_tokenizer_from_tiktoken(SHARED "tt_cl100k.tiktoken", &o), "tt_cl100k",
                   "ids");
    o.special_tokens = special;
    compare_shared(tern_tokenizer_from_tiktoken(SHARED "tt_cl100k.tiktoken", &o), "tt_cl100k",
                   "ids_special");
    json_decref(about);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sentence_piece_models_give_the_packages_ids),
        TEST(tiktoken_files_give_the_packages_ids),
        TEST(word_lists_give_the_packages_ids),
        TEST(they_are_saved_as_tokenizer_json),
        TEST(a_folder_may_have_any_of_them),
        TEST(a_config_beside_them_counts),
        TEST(chat_templates_are_found),
        TEST(files_beside_are_found),
        TEST(wrong_files_are_refused_by_name),
        TEST(cut_files_are_refused_or_whole),
        TEST(ids_of_200_texts_are_those_of_the_packages),
    };
    return folder_main(tests, sizeof tests / sizeof *tests);
}
