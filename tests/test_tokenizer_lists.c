/* test_tokenizer_lists.c -- the vocab and merges of tokenizer.json read from its text (src/models/tokenizer/vocabulary_lists.c), compared with
 * what jansson reads: files that have an escape in the key "model" go to jansson whole. */
#include "files.h"
#include "support.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/models.h>

enum { MOST = 1 << 16 };
typedef struct text {
    char bytes[MOST];
    size_t n;
} text;

static const char *const names[] = {"bert", "gpt2", "llama2", "llama3", "qwen", "words", "t5"};
enum { NAMES = sizeof names / sizeof *names };

static void add(text *to, const char *bytes, size_t n)
{
    assert_true(to->n + n < MOST);
    memcpy(to->bytes + to->n, bytes, n);
    to->n += n;
    to->bytes[to->n] = 0;
}

static void read_golden(const char *name, text *t)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s.json", TEST_FOLDER, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    t->n = fread(t->bytes, 1, MOST - 1, file);
    t->bytes[t->n] = 0;
    fclose(file);
}

static tern_tokenizer *load(const text *t)
{
    return tern_tokenizer_from_file(test_file("tokenizer.json", t->bytes, t->n));
}

/* The same file, which jansson reads whole. */
static tern_tokenizer *load_by_jansson(const text *t)
{
    static text whole;
    const char *key = strstr(t->bytes, "\"model\"");
    assert_non_null(key);
    whole.n = 0;
    add(&whole, t->bytes, (size_t)(key - t->bytes));
    add(&whole, "\"\\u006dodel\"", 12);
    add(&whole, key + 7, t->n - (size_t)(key - t->bytes) - 7);
    return load(&whole);
}

static void assert_ids_equal(const tern_tokenizer *a, const tern_tokenizer *b, const char *line)
{
    TERN_SCOPE {
        const tern_encode_options o = {.device = "cpu"};
        tern_tensor *x = tern_tokenizer_encode(a, line, &o);
        tern_status status = tern_last_status();
        tern_clear_error();
        tern_tensor *y = tern_tokenizer_encode(b, line, &o);
        assert_int_equal(status, tern_last_status());
        tern_clear_error();
        if (x)
            assert_true(tern_equal(x, y));
    }
}

/* Both ways give the same tokenizer, or the same error. */
static bool compare(const text *t)
{
    char message[1024] = "";
    tern_tokenizer *a = load(t);
    const tern_status status = tern_last_status();
    assert_int_equal(a == NULL, status != TERN_OK);
    if (!a)
        snprintf(message, sizeof message, "%s", tern_last_error());
    tern_clear_error();
    tern_tokenizer *b = load_by_jansson(t);
    if (!b)
        assert_string_equal(message, tern_last_error());
    assert_int_equal(status, tern_last_status());
    assert_int_equal(a == NULL, b == NULL);
    tern_clear_error();
    const bool good = a;
    const int64_t size = good ? tern_tokenizer_vocab_size(b) : 0;
    if (good)
        assert_int_equal(tern_tokenizer_vocab_size(a), size);
    for (int64_t id = 0; id < size + 1100 && good; id++) {
        const char *x = tern_tokenizer_id_to_token(a, id), *y = tern_tokenizer_id_to_token(b, id);
        assert_int_equal(x == NULL, y == NULL);
        if (!x)
            continue;
        assert_string_equal(x, y);
        assert_int_equal(tern_tokenizer_token_to_id(a, x), tern_tokenizer_token_to_id(b, x));
    }
    if (good) {
        assert_ids_equal(a, b,
                         "The wisdom of Tools, it was the best of times: 12 caf\u00e9s\n\u4e16");
        assert_ids_equal(a, b, "don't they've <s> [MASK] \U0001f600 the thing");
    }
    tern_tokenizer_free(a);
    tern_tokenizer_free(b);
    return good;
}

/* ---- files as tools write them ------------------------------------------------------------- */

/* Every letter, and what is not ASCII, of the lists' texts as \uXXXX, or two of them. */
static void escape(const text *t, text *to)
{
    const char *vocab = strstr(t->bytes, "\"vocab\"") + 7, *merges = strstr(vocab, "\"merges\"");
    const char *end = merges ? strchr(merges, ']') : strchr(vocab, '}');
    to->n = 0;
    for (const char *at = t->bytes; at < t->bytes + t->n;) {
        const unsigned char c = (unsigned char)*at;
        const bool in_list = at > vocab && at < end && !(merges && at >= merges && at < merges + 8);
        const bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        if (!in_list || (c < 0x80 && (!letter || at[-1] == '\\'))) {
            add(to, at++, 1);
            continue;
        }
        uint32_t value = more ? c & (0x3fu >> more) : c;
        for (int i = 1; i <= more; i++)
            value = value << 6 | ((unsigned char)at[i] & 0x3f);
        char escaped[16];
        if (value < 0x10000)
            snprintf(escaped, sizeof escaped, "\\u%04x", value);
        else
            snprintf(escaped, sizeof escaped, "\\u%04x\\u%04X", 0xd800 + ((value - 0x10000) >> 10),
                     0xdc00 + (value & 0x3ff));
        add(to, escaped, strlen(escaped));
        at += more + 1;
    }
}

static int64_t allocations;

static void *count_malloc(size_t n)
{
    allocations++;
    return malloc(n);
}

static void jansson_makes_no_objects_of_rows(void **state)
{
    static text plain, escaped;
    (void)state;
    json_set_alloc_funcs(count_malloc, free);
    for (int i = 0; i < NAMES - 1; i++)
        for (int form = 0; form < 2; form++) {
            read_golden(names[i], &plain);
            escape(&plain, &escaped);
            assert_true(escaped.n > plain.n);
            const text *t = form ? &escaped : &plain;
            allocations = 0;
            tern_tokenizer_free(load(t));
            const int64_t ours = allocations;
            allocations = 0;
            tern_tokenizer_free(load_by_jansson(t));
            assert_no_error();
            if (3 * ours > allocations)
                fail_msg("%s: %lld allocations of %lld", names[i], (long long)ours,
                         (long long)allocations);
            assert_true(compare(t));
        }
    json_set_alloc_funcs(malloc, free);
}

/* ---- files as no tool writes them ---------------------------------------------------------- */

static const char *const odd[] = {
    "{\"model\":{\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"a\":3},\"merges\":[\"a b\"]}}",
    "{\"model\":{\"vocab\":{\"a\":0,\"\\u0061\":1}}}",
    "{\"model\":{\"vocab\":{\"a\":0,\"b\":0}}}",
    "{\"model\":{\"vocab\":{\"a\":0,}}}",
    "{\"model\":{\"vocab\":{,\"a\":0}}}",
    "{\"model\":{\"vocab\":{\"a\":00}}}",
    "{\"model\":{\"vocab\":{\"a\":1.0}}}",
    "{\"model\":{\"vocab\":{\"a\":1e0}}}",
    "{\"model\":{\"vocab\":{\"a\":-0}}}",
    "{\"model\":{\"vocab\":{\"a\":99999999999999999999}}}",
    "{\"model\":{\"vocab\":{\"a\":65540}}}",
    "{\"model\":{\"vocab\":{\"a\":65541}}}",
    "{\"model\":{\"vocab\":{\"a\":\"0\"}}}",
    "{\"model\":{\"vocab\":{\"a\" 0}}}",
    "{\"model\":{\"vocab\":{\"\":0,\"a\":1}}}",
    "{\"model\":{\"vocab\":{\"a\\u0000b\":0}}}",
    "{\"model\":{\"vocab\":{\"\\ud83d\":0}}}",
    "{\"model\":{\"vocab\":{\"\\ud83d\\u0041\":0}}}",
    "{\"model\":{\"vocab\":{\"\\udc00\":0}}}",
    "{\"model\":{\"vocab\":{\"\\udc00\\udc00\":0}}}",
    "{\"model\":{\"vocab\":{\"\\uD83D\\ude00\":0}}}",
    "{\"model\":{\"vocab\":{\"\\u00g0\":0}}}",
    "{\"model\":{\"vocab\":{\"\\q\":0}}}",
    "{\"model\":{\"vocab\":{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":0}}}",
    "{\"model\":{\"vocab\":{\"\t\":0}}}",
    "{\"model\":{\"vocab\":{\"\xff\":0}}}",
    "{\"model\":{\"vocab\":{\"\xed\xa0\x80\":0}}}",
    "{\"model\":{\"vocab\":{\"\xc0\x80\":0}}}",
    "{\"model\":{\"vocab\":{\"a\":0},\"vocab\":{\"b\":1}}}",
    "{\"model\":{\"vocab\":{\"a\":0},\"vocab\":[]}}",
    "{\"model\":{\"vocab\":[],\"vocab\":{\"a\":0}}}",
    "{\"model\":{\"vocab\":{\"a\":0},\"voc\\u0061b\":{\"b\":1}}}",
    "{\"model\":{\"vocab\":{\"a\":0}},\"model\":{\"vocab\":{\"b\":1}}}",
    "{\"model\":{\"vocab\":{\"a\":0}},\"model\":3}",
    "{\"model\":{\"vocab\":{\"a\":0}},\"model\":{\"type\":\"BPE\"}}",
    "{\"model\":{\"vocab\":{\"a\":0}},\"x\":[}",
    "{\"model\":{\"vocab\":{\"a\":0}},\"x\":{\"model\":{\"vocab\":{\"b\":1}}}}",
    "{\"model\":{\"vocab\":{\"a\":0}}}}",
    "{\"model\":{\"vocab\":{\"a\":0}}} x",
    "{\"model\":{\"vocab\":{\"a\":0}}",
    "{\"model\":{\"vocab\":{\"a\":0},}}",
    "{\"model\":{\"vocab\":{\"a\":0}},\n\n\"x\":nul}",
    "{\"model\":{\"vocab\":{\"a\":0,\n\n\"b\":x}}}",
    "[{\"model\":{\"vocab\":{\"a\":0}}}]",
    "{\"model\":{\"merges\":[\"a b\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[[\"a\",\"b\"]],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[[\"a\",\"b\",\"c\"]],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[[\"a\",\"b\"],],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[[\"a\",1]],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\"a b c\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\"a b\",\"a b\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\"a\\u0020b\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\"b a\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\"c a\"],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2}}}",
    "{\"model\":{\"merges\":[\" \"],\"vocab\":{\"\":0}}}",
    "{\"model\":{\"merges\":[\"a ##b\"],\"vocab\":{\"a\":0,\"##b\":1,\"ab\":2},"
    "\"continuing_subword_prefix\":\"##\"}}",
    "{\"model\":{\"merges\":null,\"vocab\":{\"a\":0}}}",
    "{\"model\":{\"merges\":{\"a\":\"b\"},\"vocab\":{\"a\":0}}}",
    "{\"model\":{\"vocab\":{}}}",
    "{\"model\":{\"type\":\"Unigram\",\"vocab\":{\"a\":0}}}",
    "{\"model\":{\"type\":\"Magic\",\"vocab\":{\"a\":0}}}",
    "{\"normalizer\":{\"type\":\"Magic\"},\"model\":{\"vocab\":{\"a\":x}}}",
    "{\"normalizer\":{\"type\":\"Magic\"},\"model\":{\"vocab\":{\"a\":-1}}}",
};

static void odd_files_are_as_jansson_has_them(void **state)
{
    static text t;
    int good = 0;
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        t.n = 0;
        add(&t, odd[i], strlen(odd[i]));
        good += compare(&t);
    }
    assert_true(good > 12);
}

static uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

static void altered_files_are_as_jansson_has_them(void **state)
{
    static const char *const pieces[] = {
        "\"", "\\", ",",    ":",       "{",    "}",  "[",  "]", "0",     "-",        ".",       "e",
        " ",  "1",  "\\u0", "\\ud83d", "\xff", "\t", "\n", "a", "\"a\"", "\"a\":1,", "\"a b\","};
    static text from, t;
    uint64_t random = 7;
    int good = 0, runs = 0;
    (void)state;
    for (int i = 0; i < NAMES; i++)
        for (int run = 0; run < 150; run++, runs++) {
            read_golden(names[i], &from);
            const char *first = strstr(from.bytes, "\"model\"") + 7;
            const size_t begin = (size_t)(first - from.bytes);
            const size_t at = begin + below(&random, from.n - begin);
            const char *piece = pieces[below(&random, sizeof pieces / sizeof *pieces)];
            const size_t gone = below(&random, 3);
            t.n = 0;
            add(&t, from.bytes, at);
            add(&t, piece, strlen(piece));
            if (at + gone < from.n)
                add(&t, from.bytes + at + gone, from.n - at - gone);
            good += compare(&t);
        }
    assert_in_range(good, runs / 20, runs - runs / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(jansson_makes_no_objects_of_rows),
        TEST(odd_files_are_as_jansson_has_them),
        TEST(altered_files_are_as_jansson_has_them),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
