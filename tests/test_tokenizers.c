/* test_tokenizers.c -- tokenizers of every kind, compared with Hugging Face's (golden/tokenizers.py). */
#include "files.h"
#include "support.h"
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/models.h>

/* ---- the lines of golden/tokenizers.py ----------------------------------------------------- */

static uint64_t below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

static size_t put(char *to, uint32_t c)
{
    if (c < 0x80)
        return to[0] = (char)c, 1;
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; c >>= 6)
        to[i] = (char)(0x80 | (c & 63));
    to[0] = (char)((n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0) | c);
    return n;
}

static void make_line(uint64_t *state, char line[1024])
{
    static const uint32_t ranges[][2] = {
        {32, 126},          {32, 126},          {32, 126},          {32, 126},
        {0xa0, 0x17f},      {0x391, 0x3a1},     {0x3a3, 0x3c9},     {0x410, 0x44f},
        {0x5d0, 0x5ea},     {0x621, 0x63a},     {0x905, 0x939},     {0xe01, 0xe2e},
        {0xac00, 0xd7a3},   {0x3041, 0x3096},   {0x30a1, 0x30fa},   {0x4e00, 0x9fa5},
        {0x1e00, 0x1eff},   {0x2010, 0x2027},   {0xff01, 0xff5e},   {0x300, 0x345},
        {0x1f600, 0x1f64f}, {0xfb00, 0xfb06},   {0x2460, 0x24ea},   {1, 31},
        {0x7f, 0x9f},       {0x1d400, 0x1d454}, {0x20000, 0x2a6d6}, {0x1100, 0x1112},
        {0x1161, 0x1175},   {0x2153, 0x217f}};
    static const char *const words[] = {"the",
                                        "was",
                                        "it",
                                        "times",
                                        "wisdom,",
                                        "England;",
                                        "don't",
                                        "WE'LL",
                                        "they've",
                                        "<|endoftext|>",
                                        "[MASK]",
                                        "<s>",
                                        "</s>",
                                        "Tool",
                                        "Tools",
                                        "  ",
                                        "\n\n",
                                        "\t",
                                        "\r\n",
                                        "e\u0301",
                                        "\u1e9b\u0323",
                                        "\u0130stanbul",
                                        "a\u0328\u0301",
                                        "\u212b",
                                        "...",
                                        "!?",
                                        "<0x41>",
                                        "__x__",
                                        "\u180e",
                                        "\ufeff",
                                        "\u2581x",
                                        "1999",
                                        "12345678",
                                        "3.14",
                                        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
                                        "\u00a0",
                                        "\u2003",
                                        "\u200b",
                                        "caf\u00e9",
                                        "CAF\u00c9"};
    static const char *const gaps[] = {"", " ", " ", "  "};
    size_t n = 0;
    uint64_t parts = 1 + below(state, 8);
    for (uint64_t i = 0; i < parts; i++) {
        if (i)
            n += (size_t)sprintf(line + n, "%s", gaps[below(state, 4)]);
        if (below(state, 2)) {
            n += (size_t)sprintf(line + n, "%s", words[below(state, sizeof words / sizeof *words)]);
            continue;
        }
        const uint32_t *range = ranges[below(state, sizeof ranges / sizeof *ranges)];
        for (uint64_t k = 1 + below(state, 6); k > 0; k--)
            n += put(line + n, range[0] + (uint32_t)below(state, range[1] - range[0] + 1));
    }
    line[n] = 0;
}

static uint64_t fnv(uint64_t seed, const void *data, size_t n)
{
    for (const unsigned char *c = data; n > 0; n--, c++)
        seed = (seed ^ *c) * UINT64_C(0x100000001b3);
    return seed;
}

/* ---- Hugging Face's numbers ---------------------------------------------------------------- */

static tern_tokenizer *open_golden(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s.json", TEST_FOLDER, name);
    tern_tokenizer *t = tern_tokenizer_from_file(path);
    if (!t)
        fail_msg("%s: %s", name, tern_last_error());
    return t;
}

static void hash_line(const tern_tokenizer *t, const char *line, uint64_t hashes[3])
{
    tern_encoding e;
    const tern_encode_options o = {.device = "cpu"};
    assert_ok(tern_tokenizer_call(t, &line, NULL, 1, &o, &e));
    int64_t n = tern_size(e.input_ids, 1);
    const int64_t *ids = tern_data(e.input_ids), *offsets = tern_data(e.offsets);
    const uint32_t end = UINT32_MAX;
    for (int64_t i = 0; i < 3 * n; i++) {
        uint32_t value = (uint32_t)(i < n ? ids[i] : offsets[i - n]);
        hashes[i >= n] = fnv(hashes[i >= n], &value, 4);
    }
    hashes[0] = fnv(hashes[0], &end, 4);
    char *text = tern_tokenizer_decode(t, e.input_ids, true);
    assert_non_null(text);
    hashes[2] = fnv(hashes[2], text, strlen(text) + 1);
    tern_free_text(text);
}

static void ids_offsets_and_texts_are_hugging_faces(void **state)
{
    char name[64], path[1024], line[1024];
    uint64_t want[3];
    int files = 0;
    (void)state;
    snprintf(path, sizeof path, "%s/golden/tokenizers.txt", TEST_FOLDER);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof line, f));
    for (; fscanf(f, "%63s %" SCNx64 " %" SCNx64 " %" SCNx64, name, &want[0], &want[1], &want[2]) ==
           4;
         files++) {
        tern_tokenizer *t = open_golden(name);
        uint64_t random = 1, have[3];
        for (int i = 0; i < 3; i++)
            have[i] = UINT64_C(0xcbf29ce484222325);
        for (int i = 0; i < 10000; i++)
            TERN_SCOPE {
                make_line(&random, line);
                hash_line(t, line, have);
            }
        for (int i = 0; i < 3; i++)
            if (have[i] != want[i])
                fail_msg("%s: %s are others", name, i == 0 ? "ids" : i == 1 ? "offsets" : "texts");
        tern_tokenizer_free(t);
    }
    assert_int_equal(files, 10);
    fclose(f);
}

/* ---- the reference pipelines --------------------------------------------------------------- */

static void check_row(const tern_tokenizer *t, const json_t *row)
{
    const char *text = json_string_value(json_object_get(row, "text"));
    size_t n = json_string_length(json_object_get(row, "text"));
    const char *decoded = json_string_value(json_object_get(row, "decoded"));
    for (int plain = 0; plain < 2 && n; plain++) {
        const json_t *want = json_object_get(row, plain ? "plain" : "ids");
        const tern_encode_options o = {
            .no_special_tokens = plain, .text_bytes = (int64_t)n, .device = "cpu"};
        tern_tensor *ids = tern_tokenizer_encode(t, text, &o);
        const int64_t *have = tern_data(ids);
        assert_int_equal(tern_size(ids, 1), json_array_size(want));
        for (size_t i = 0; i < json_array_size(want); i++)
            assert_int_equal(have[i], json_integer_value(json_array_get(want, i)));
        char *back = tern_tokenizer_decode(t, ids, true);
        assert_string_equal(back, decoded);
        tern_free_text(back);
    }
}

static void references_are_equal(void **state)
{
    static const char *const names[] = {"gpt2", "llama3", "bert", "llama2", "t5"};
    char path[1024];
    (void)state;
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s/../../shared/models/tokenizers/%s.expected.json",
                 TEST_FOLDER, names[i]);
        json_t *rows = json_load_file(path, JSON_ALLOW_NUL, NULL), *row;
        if (!rows) {
            print_message("SKIP: %s is not there\n", path);
            skip();
        }
        size_t k;
        snprintf(path, sizeof path, "%s/../../shared/models/tokenizers/%s.json", TEST_FOLDER,
                 names[i]);
        tern_tokenizer *t = tern_tokenizer_from_file(path);
        assert_non_null(t);
        json_array_foreach(rows, k, row) TERN_SCOPE
        {
            check_row(t, row);
        }
        assert_int_equal(k, 36);
        json_decref(rows);
        tern_tokenizer_free(t);
    }
}

/* ---- batches ------------------------------------------------------------------------------- */

static void batches_are_filled_up(void **state)
{
    const char *const texts[] = {"the king", "it", ""}, *const pairs[] = {"was the", "times", "it"};
    tern_tensor *ids, *mask;
    tern_encoding e;
    (void)state;
    tern_tokenizer *t = open_golden("bert");
    assert_int_equal(tern_tokenizer_vocab_size(t), 300);
    TERN_SCOPE {
        assert_ok(tern_tokenizer_encode_batch(t, texts, 3, &(tern_encode_options){.device = "cpu"},
                                              &ids, &mask));
        assert_values(ids, 2, 96, 140, 3, 2, 100, 3, 0, 2, 3, 0, 0);
        assert_values(mask, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0);
        const tern_encode_options left = {.padding_side = TERN_PADDING_SIDE_LEFT,
                                          .pad_token_id = TERN_SOME(7),
                                          .pad_to_multiple_of = 5,
                                          .no_special_tokens = true,
                                          .device = "cpu"};
        assert_ok(tern_tokenizer_encode_batch(t, texts, 2, &left, &ids, NULL));
        assert_values(ids, 7, 7, 7, 96, 140, 7, 7, 7, 7, 100);
        const tern_encode_options cut = {.max_length = 6, .device = "cpu"};
        assert_ok(tern_tokenizer_call(t, texts, pairs, 2, &cut, &e));
        assert_values(e.input_ids, 2, 96, 3, 101, 96, 3, 2, 100, 3, 190, 3, 0);
        assert_values(e.token_type_ids, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 0);
        assert_values(e.special_tokens_mask, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 1, 1);
        assert_values(e.word_ids, -1, 0, -1, 0, 1, -1, -1, 0, -1, 0, -1, -1);
        const tern_encode_options fixed = {
            .max_length = 4, .pad_to_max_length = true, .device = "cpu"};
        assert_values(tern_tokenizer_encode(t, "it", &fixed), 2, 100, 3, 0);
    }
    tern_tokenizer_free(t);
}

static void tokens_have_names(void **state)
{
    (void)state;
    tern_tokenizer *t = open_golden("bert");
    assert_int_equal(tern_tokenizer_token_to_id(t, "[SEP]"), 3);
    assert_int_equal(tern_tokenizer_token_to_id(t, "nothing like it"), -1);
    assert_string_equal(tern_tokenizer_id_to_token(t, 2), "[CLS]");
    assert_null(tern_tokenizer_id_to_token(t, 100000));
    assert_int_equal(tern_tokenizer_special_id(t, TERN_TOKEN_PAD), 0);
    assert_int_equal(tern_tokenizer_special_id(t, TERN_TOKEN_EOS), -1);
    tern_tokenizer_free(t);
}

/* ---- streams ------------------------------------------------------------------------------- */

static void a_stream_gives_the_text_of_all(void **state)
{
    static const char *const names[] = {"gpt2", "llama2", "bert", "t5"};
    const char text[] = "it was \u4e16\u754c \U0001f600, caf\u00e9 the";
    (void)state;
    for (int i = 0; i < 4; i++)
        TERN_SCOPE {
            char all[256] = "";
            tern_tokenizer *t = open_golden(names[i]);
            tern_tensor *ids =
                tern_tokenizer_encode(t, text, &(tern_encode_options){.device = "cpu"});
            tern_decode_stream *stream = tern_decode_stream_new(t, true);
            const int64_t *list = tern_data(ids);
            for (int64_t k = 0; k < tern_numel(ids); k++) {
                const char *more = tern_decode_stream_step(stream, list[k]);
                assert_non_null(more);
                strcat(all, more);
            }
            char *whole = tern_tokenizer_decode(t, ids, true);
            assert_string_equal(all, whole);
            tern_free_text(whole);
            tern_decode_stream_free(stream);
            tern_tokenizer_free(t);
        }
}

/* ---- training ------------------------------------------------------------------------------ */

static char *read_golden(const char *name)
{
    char path[1024], *text = calloc(1, 1 << 16);
    snprintf(path, sizeof path, "%s/golden/tokenizers/%s", TEST_FOLDER, name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

static void training_learns_hugging_faces_tokens(void **state)
{
    static const char *const special[] = {"<|endoftext|>", NULL}, *const names[] = {"gpt2", "qwen"};
    char *text = read_golden("training.txt"), file[32];
    (void)state;
    for (int i = 0; i < 2; i++) {
        tern_tokenizer *like = i ? open_golden(names[i]) : NULL;
        const tern_bpe_options o = {.vocab_size = 400, .special_tokens = special, .like = like};
        tern_tokenizer *t = tern_tokenizer_train_bpe((const char *const *)&text, 1, &o);
        if (!t)
            fail_msg("%s", tern_last_error());
        assert_ok(tern_tokenizer_save(t, test_path("trained.json")));
        snprintf(file, sizeof file, "%s.json", names[i]);
        char *want = read_golden(file), *have = calloc(1, 1 << 16);
        FILE *f = fopen(test_path("trained.json"), "r");
        assert_true(fread(have, 1, (1 << 16) - 1, f) > 0);
        fclose(f);
        assert_string_equal(have, want);
        free(have);
        free(want);
        tern_tokenizer_free(t);
        tern_tokenizer_free(like);
    }
    tern_tokenizer *bert = open_golden("bert");
    assert_null(
        tern_tokenizer_train_bpe((const char *const *)&text, 1, &(tern_bpe_options){.like = bert}));
    assert_error(TERN_ERR_UNSUPPORTED, "options.like is no BPE");
    assert_null(tern_tokenizer_train_bpe(NULL, 1, NULL));
    assert_error(TERN_ERR_ARGUMENT, "texts NULL");
    tern_tokenizer *small =
        tern_tokenizer_train_bpe((const char *const *)&text, 1,
                                 &(tern_bpe_options){.vocab_size = 1000, .min_frequency = 50});
    assert_int_equal(tern_tokenizer_vocab_size(small), 256);
    tern_tokenizer_free(small);
    tern_tokenizer_free(bert);
    free(text);
}

/* ---- errors -------------------------------------------------------------------------------- */

/* Text that is refused, and a part of the message. */
static const struct {
    const char *json, *message;
    tern_status status;
} bad[] = {
    {"", "is not JSON", TERN_ERR_IO},
    {"[]", "not a JSON object", TERN_ERR_IO},
    {"{}", "no \"model\"", TERN_ERR_IO},
    {"{\"model\":{\"type\":\"Magic\"}}", "of type Magic", TERN_ERR_UNSUPPORTED},
    {"{\"normalizer\":{\"type\":\"Magic\"},\"model\":{\"vocab\":{}}}",
     "normalizer is of type Magic", TERN_ERR_UNSUPPORTED},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"}}}", "parenthesis",
     TERN_ERR_IO},
    {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[a&&b]\"}}}", "&&",
     TERN_ERR_UNSUPPORTED},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}}",
     "the second is not in", TERN_ERR_IO},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a\"]}}", "neither",
     TERN_ERR_IO},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "the number -1",
     TERN_ERR_IO},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4000000000}}}", "the number 4000000000",
     TERN_ERR_IO},
    {"{\"model\":{\"type\":\"WordPiece\",\"vocab\":{},\"unk_token\":\"x\"}}", "unk_token",
     TERN_ERR_IO},
    {"{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\"]]}}", "[text, score]", TERN_ERR_IO},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{}},\"post_processor\":{\"type\":\"Magic\"}}", "Magic",
     TERN_ERR_UNSUPPORTED},
    {"{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"dropout\":0.1}}", "dropout",
     TERN_ERR_UNSUPPORTED},
};

static void malformed_files_say_why(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = test_text("odd.json", bad[i].json);
        assert_null(tern_tokenizer_from_file(path));
        if (!strstr(tern_last_error(), path) || !strstr(tern_last_error(), "from_file: "))
            fail_msg("%s: %s", path, tern_last_error());
        assert_error(bad[i].status, bad[i].message);
    }
    assert_null(tern_tokenizer_from_pretrained("/nowhere"));
    assert_error(TERN_ERR_IO, "/nowhere: No such file");
}

static void wrong_calls_are_errors(void **state)
{
    tern_tensor *ids;
    const char *const two[] = {"a", "a b c"};
    (void)state;
    tern_tokenizer *t = open_golden("gpt2");
    assert_null(tern_tokenizer_encode(t, "a\xff", NULL));
    assert_error(TERN_ERR_ARGUMENT, "not UTF-8: byte 1 is 0xff");
    assert_null(tern_tokenizer_encode(t, NULL, NULL));
    assert_error(TERN_ERR_ARGUMENT, "text is NULL");
    assert_null(tern_tokenizer_encode(NULL, "a", NULL));
    assert_error(TERN_ERR_ARGUMENT, "tokenizer is NULL");
    assert_int_equal(tern_tokenizer_encode_batch(t, two, 2, NULL, &ids, NULL), TERN_ERR_ARGUMENT);
    assert_null(ids);
    assert_error(TERN_ERR_ARGUMENT, "no padding token");
    assert_null(tern_tokenizer_encode(t, "a", &(tern_encode_options){.max_length = -1}));
    assert_error(TERN_ERR_ARGUMENT, "max_length -1");
    TERN_SCOPE {
        assert_null(tern_tokenizer_decode(t, tern_zeros(TERN_SHAPE(2, 2), TERN_I64, "cpu"), true));
        assert_error(TERN_ERR_SHAPE, "(T) or (1, T)");
        assert_null(tern_tokenizer_decode(t, tern_zeros(TERN_SHAPE(2), TERN_F32, "cpu"), true));
        assert_error(TERN_ERR_DTYPE, "float32");
    }
    tern_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ids_offsets_and_texts_are_hugging_faces),
        TEST(references_are_equal),
        TEST(batches_are_filled_up),
        TEST(tokens_have_names),
        TEST(a_stream_gives_the_text_of_all),
        TEST(training_learns_hugging_faces_tokens),
        TEST(malformed_files_say_why),
        TEST(wrong_calls_are_errors),
    };
    return test_main(tests, sizeof tests / sizeof *tests);
}
