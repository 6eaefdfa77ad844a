/* tiktoken.c -- BPE defined by the ranks of the merged tokens: .tiktoken files and tekken.json. */
#include "models/tokenizer/maker.h"
#include <stdio.h>

/* ---- patterns, which the files do not contain ---------------------------------------------- */

#define GPT2                                                                                       \
    "'(?:[sdmt]|ll|ve|re)| ?\\p{L}++| ?\\p{N}++| ?[^\\s\\p{L}\\p{N}]++|\\s++$|\\s+(?!\\S)|\\s"
#define CL100K                                                                                     \
    "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| "                         \
    "?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s"
#define O200K_WORD(first, then)                                                                    \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]" first                             \
    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]" then "(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
#define O200K                                                                                      \
    O200K_WORD("*", "+")                                                                           \
    O200K_WORD("+", "*")                                                                           \
    "\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORDS_AND(numbers)                                                                         \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" numbers                          \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef struct special {
    const char *text;
    int64_t from, to; /* range of ids */
    int first;        /* number in the first token's text, before "|>"; -1: the text is complete */
} special;

typedef struct encoding {
    size_t tokens;
    const char *pattern;
    bool bos; /* the first special token is put before a text */
    special special[12];
} encoding;

static const encoding encodings[] = {
    {50256, GPT2, false, {{"<|endoftext|>", 50256, 50256, -1}}},
    {50257, GPT2, false, {{"<|endoftext|>", 50257, 50257, -1}}}, /* Whisper's */
    {50280, GPT2, false, {{"<|endoftext|>", 50256, 50256, -1}}},
    {100256,
     CL100K,
     false,
     {{"<|endoftext|>", 100257, 100257, -1},
      {"<|fim_prefix|>", 100258, 100258, -1},
      {"<|fim_middle|>", 100259, 100259, -1},
      {"<|fim_suffix|>", 100260, 100260, -1},
      {"<|endofprompt|>", 100276, 100276, -1}}},
    {199998,
     O200K,
     false,
     {{"<|endoftext|>", 199999, 199999, -1}, {"<|endofprompt|>", 200018, 200018, -1}}},
    {128000,
     WORDS_AND("\\p{N}{1,3}"),
     true,
     {{"<|begin_of_text|>", 128000, 128000, -1},
      {"<|end_of_text|>", 128001, 128001, -1},
      {"<|reserved_special_token_", 128002, 128003, 0},
      {"<|finetune_right_pad_id|>", 128004, 128004, -1},
      {"<|reserved_special_token_", 128005, 128005, 2},
      {"<|start_header_id|>", 128006, 128006, -1},
      {"<|end_header_id|>", 128007, 128007, -1},
      {"<|eom_id|>", 128008, 128008, -1},
      {"<|eot_id|>", 128009, 128009, -1},
      {"<|python_tag|>", 128010, 128010, -1},
      {"<|reserved_special_token_", 128011, 128255, 3}}},
    {151643,
     WORDS_AND("\\p{N}"),
     false,
     {{"<|endoftext|>", 151643, 151643, -1},
      {"<|im_start|>", 151644, 151644, -1},
      {"<|im_end|>", 151645, 151645, -1},
      {"<|extra_", 151646, 151850, 0}}},
};

/* ---- tokens ------------------------------------------------------------------------------ */

enum { MOST_TOKENS = 1 << 24, MOST_BYTES = 65535 };

typedef struct ranks {
    tk_maker m;
    const char *what;    /* the format, for messages */
    size_t count, arena; /* count: tokens with bytes; arena: used bytes of the arena */
    size_t first;        /* the id of rank 0 */
} ranks;

/* Allocates a vocabulary of n ids whose texts need `bytes` bytes; the scores are ranks, the lowest
 * is the best. */
static tern_status reserve(ranks *r, size_t n, size_t bytes)
{
    TK_TRY(tk_vocabulary_reserve(r->m.where, &r->m.v, n, true));
    r->m.v.arena = malloc(bytes + 1);
    return r->m.v.arena ? TERN_OK
                        : tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu tokens", r->m.where, n);
}

/* Adds a token from n letters of base64, spelled in GPT-2's alphabet; buffer: memory for its
 * bytes. */
static tern_status add_token(ranks *r, size_t id, const char *text, size_t n, uint8_t *buffer)
{
    n = n <= 2 * MOST_BYTES ? tk_base64(text, n, buffer) : SIZE_MAX;
    if (n > MOST_BYTES)
        return tern_fail(TERN_ERR_IO, "%s: %s: token %zu is not base64 of at most %d bytes",
                         r->m.where, r->what, id, MOST_BYTES);
    if (n == 0) /* an id without a token, as in Whisper's files */
        return TERN_OK;
    char *to = r->m.v.arena + r->arena;
    size_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += tk_put(tk_byte_to_char(buffer[i]), to + length);
    r->arena += length;
    r->count++;
    r->m.v.scores[id] = -(float)(id - r->first);
    if (r->m.v.tokens[id].text)
        return tern_fail(TERN_ERR_IO, "%s: %s: rank %zu is there twice", r->m.where, r->what,
                         id - r->first);
    return tk_vocabulary_set(r->m.where, r->what, &r->m.v, id, (tk_text_of){to, length});
}

static tern_status add_special(ranks *r, int64_t id, const char *text)
{
    const size_t n = strlen(text);
    if (id < 0 || (size_t)id >= r->m.v.n || r->m.v.tokens[id].text || !n ||
        tk_utf8_end(text, n) != n)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: special token '%.80s' has the number %lld, which is another's or out "
                         "of range",
                         r->m.where, text, (long long)id);
    r->m.v.types[id] = TK_CONTROL;
    return tk_vocabulary_set(r->m.where, r->what, &r->m.v, (size_t)id, (tk_text_of){text, n});
}

static tern_status check_bytes(const ranks *r)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        char text[4];
        size_t n = tk_put(tk_byte_to_char((uint8_t)byte), text);
        if (tk_vocab_find(&r->m.v.table, text, n) < 0)
            return tern_fail(TERN_ERR_IO, "%s: %s: byte 0x%02x is no token, and all 256 must be",
                             r->m.where, r->what, byte);
    }
    return TERN_OK;
}

/* A word that is a token is not split. */
static tern_status make(ranks *r, const char *pattern)
{
    r->m.unknown = -1;
    TK_TRY(check_bytes(r));
    TK_TRY(tk_make_byte_level(&r->m, pattern, false, false, true));
    return tk_make_scored_merges(&r->m);
}

static tern_tokenizer *finish(ranks *r, tern_status status)
{
    tern_tokenizer *t = tk_make(&r->m, status);
    if (t && tk_rank_by_score(&r->m, t) != TERN_OK) {
        tern_tokenizer_free(t);
        t = NULL;
    }
    tk_maker_free(&r->m);
    return t;
}

/* ---- .tiktoken --------------------------------------------------------------------------- */

/* Reads a line of base64, a space and digits, or an empty one (*n 0); returns false for other
 * lines. */
static bool next_line(const char *bytes, size_t size, size_t *at, const char **text, size_t *n,
                      uint64_t *rank)
{
    const char *end = memchr(bytes + *at, '\n', size - *at), *from = bytes + *at;
    size_t length = end ? (size_t)(end - from) : size - *at;
    *at += length + (end != NULL);
    length -= length && from[length - 1] == '\r';
    *n = 0;
    *rank = 0;
    if (!length)
        return true;
    const char *space = memchr(from, ' ', length);
    if (!space || space == from || space + 1 == from + length || space + 11 < from + length)
        return false;
    for (const char *digit = space + 1; digit < from + length; digit++) {
        if (*digit < '0' || *digit > '9')
            return false;
        *rank = *rank * 10 + (uint64_t)(*digit - '0');
    }
    *text = from;
    *n = (size_t)(space - from);
    return true;
}

bool tk_is_tiktoken(const char *bytes, size_t n)
{
    const char *text;
    size_t at = 0, length = 0;
    uint64_t rank;
    uint8_t buffer[1024];
    return n && next_line(bytes, n, &at, &text, &length, &rank) && length && length <= 1024 &&
           tk_base64(text, length, buffer) <= 1024;
}

/* Counts the tokens, the bytes of base64, and numbers, the largest rank + 1. */
static tern_status count_lines(const ranks *r, const char *bytes, size_t size, size_t *tokens,
                               size_t *numbers, size_t *letters)
{
    const char *text;
    size_t n, line = 0;
    uint64_t rank;
    *tokens = *numbers = *letters = 0;
    for (size_t at = 0; at < size; *tokens += n != 0) {
        line++;
        if (!next_line(bytes, size, &at, &text, &n, &rank) || rank >= MOST_TOKENS)
            return tern_fail(TERN_ERR_IO,
                             "%s: %s: line %zu is not base64, a space and a rank below 2^24",
                             r->m.where, r->what, line);
        *letters += n;
        *numbers = n && rank >= *numbers ? (size_t)rank + 1 : *numbers;
    }
    return *numbers <= 4 * *tokens + 65536
               ? TERN_OK
               : tern_fail(TERN_ERR_IO, "%s: %s: the largest rank of %zu tokens is %zu", r->m.where,
                           r->what, *tokens, *numbers - 1);
}

static tern_status read_lines(ranks *r, const char *bytes, size_t size)
{
    const char *text;
    size_t n;
    uint64_t rank;
    uint8_t *buffer = malloc(2 * MOST_BYTES);
    tern_status status =
        buffer ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory for a token", r->m.where);
    for (size_t at = 0; at < size && status == TERN_OK;)
        if (next_line(bytes, size, &at, &text, &n, &rank) && n)
            status = add_token(r, (size_t)rank, text, n, buffer);
    free(buffer);
    return status;
}

static const encoding *encoding_of(size_t tokens)
{
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++)
        if (encodings[i].tokens == tokens)
            return &encodings[i];
    return NULL;
}

/* Adds the special tokens of the table; their texts are written to `names`, 32 bytes each. */
static tern_status add_known(ranks *r, const encoding *known, char *names)
{
    for (const special *s = known->special; s->text; s++)
        for (int64_t id = s->from; id <= s->to; id++, names += 32) {
            if (s->first < 0)
                snprintf(names, 32, "%s", s->text);
            else
                snprintf(names, 32, "%s%d|>", s->text, (int)(id - s->from) + s->first);
            TK_TRY(add_special(r, id, names));
        }
    r->m.bos = known->bos ? known->special[0].from : -1;
    r->m.eos = known->bos ? known->special[1].from : known->special[0].from;
    r->m.add_bos = known->bos;
    return TERN_OK;
}

/* Returns the id of the program's special token i; without special_ids the ids follow the ranks. */
static int64_t given_id(const tern_tiktoken_options *o, size_t i, size_t numbers)
{
    return o->special_ids ? o->special_ids[i] : (int64_t)(numbers + i);
}

static tern_status read_tiktoken(ranks *r, const char *bytes, size_t size,
                                 const tern_tiktoken_options *o, char **names)
{
    size_t tokens, numbers, letters, n_special = 0;
    TK_TRY(count_lines(r, bytes, size, &tokens, &numbers, &letters));
    const encoding *known = encoding_of(tokens);
    if (!known && !(o && o->pattern))
        return tern_fail(TERN_ERR_ARGUMENT,
                         "%s: %s of %zu tokens: its pattern, which is not in the file, is known "
                         "for 50256 (gpt2), 50280 (p50k_base), 100256 (cl100k_base), 199998 "
                         "(o200k_base), 128000 (Llama 3) and 151643 (Qwen) tokens; "
                         "tern_tokenizer_from_tiktoken takes one",
                         r->m.where, r->what, tokens);
    const bool is_given = o && (o->special_tokens || o->pattern);
    while (is_given && o->special_tokens && o->special_tokens[n_special])
        n_special++;
    size_t all = numbers;
    for (size_t i = 0; i < n_special; i++) {
        int64_t id = given_id(o, i, numbers);
        all = id >= (int64_t)all && id < MOST_TOKENS ? (size_t)id + 1 : all;
    }
    for (const special *s = is_given ? NULL : known->special; s && s->text; s++)
        all = s->to >= (int64_t)all ? (size_t)s->to + 1 : all;
    TK_TRY(reserve(r, all, 2 * letters));
    TK_TRY(read_lines(r, bytes, size));
    r->m.bos = r->m.eos = r->m.pad = -1;
    for (size_t i = 0; i < n_special; i++)
        TK_TRY(add_special(r, given_id(o, i, numbers), o->special_tokens[i]));
    *names = is_given ? NULL : calloc(256, 32);
    if (!is_given)
        TK_TRY(*names ? add_known(r, known, *names)
                      : tern_fail(TERN_ERR_MEMORY, "%s: no memory for a tokenizer", r->m.where));
    return make(r, o && o->pattern ? o->pattern : known->pattern);
}

tern_tokenizer *tk_read_tiktoken(const char *where, const char *path, const char *bytes, size_t n,
                                 const tk_settings *settings)
{
    ranks r = {.m = {.where = where}, .what = "a tiktoken file"};
    char *names = NULL;
    (void)path;
    tern_tokenizer *t = finish(&r, read_tiktoken(&r, bytes, n, settings->tiktoken, &names));
    free(names);
    return t;
}

/* ---- tekken.json ------------------------------------------------------------------------- */

/* Special tokens by id, for files that do not list them. */
static const char *const tekken_special[] = {"<unk>",
                                             "<s>",
                                             "</s>",
                                             "[INST]",
                                             "[/INST]",
                                             "[AVAILABLE_TOOLS]",
                                             "[/AVAILABLE_TOOLS]",
                                             "[TOOL_RESULTS]",
                                             "[/TOOL_RESULTS]",
                                             "[TOOL_CALLS]",
                                             "[IMG]",
                                             "<pad>",
                                             "[IMG_BREAK]",
                                             "[IMG_END]",
                                             "[PREFIX]",
                                             "[MIDDLE]",
                                             "[SUFFIX]",
                                             "[SYSTEM_PROMPT]",
                                             "[/SYSTEM_PROMPT]",
                                             "[TOOL_CONTENT]"};

/* Adds the special tokens; ids without a token are called <SPECIAL_20> and so on. */
static tern_status add_tekken_special(ranks *r, const json_t *list, char *names)
{
    for (size_t i = 0; i < r->first; i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(one, "token_str"));
        if (one && (!text || tk_int(one, "rank", (int64_t)i) != (int64_t)i))
            return tern_fail(TERN_ERR_IO,
                             "%s: %s: special token %zu has no \"token_str\" or another rank",
                             r->m.where, r->what, i);
        if (!list && i < sizeof tekken_special / sizeof *tekken_special)
            text = tekken_special[i];
        snprintf(names + 32 * i, 32, "<SPECIAL_%zu>", i);
        TK_TRY(add_special(r, (int64_t)i, text ? text : names + 32 * i));
    }
    r->m.bos = tk_vocab_find(&r->m.v.table, "<s>", 3);
    r->m.eos = tk_vocab_find(&r->m.v.table, "</s>", 4);
    r->m.pad = tk_vocab_find(&r->m.v.table, "<pad>", 5);
    r->m.add_bos = r->m.bos >= 0;
    return TERN_OK;
}

static tern_status read_tekken(ranks *r, const json_t *json, size_t size, char **names)
{
    const json_t *config = json_object_get(json, "config"), *vocab = json_object_get(json, "vocab"),
                 *one;
    const char *pattern = json_string_value(json_object_get(config, "pattern"));
    int64_t reserved = tk_int(config, "default_num_special_tokens", 1000),
            numbers = tk_int(config, "default_vocab_size", 0);
    size_t i, n = json_array_size(vocab);
    if (!pattern || !n || reserved < 0 || reserved > 65536 || numbers < reserved)
        return tern_fail(TERN_ERR_IO,
                         "%s: %s needs \"vocab\" and a \"config\" with \"pattern\", "
                         "\"default_vocab_size\" and \"default_num_special_tokens\"",
                         r->m.where, r->what);
    n = (uint64_t)(numbers - reserved) < n ? (size_t)(numbers - reserved) : n;
    r->first = (size_t)reserved;
    TK_TRY(reserve(r, n + r->first, 2 * size));
    uint8_t *buffer = malloc(2 * MOST_BYTES);
    *names = calloc(r->first + 1, 32);
    tern_status status =
        buffer && *names ? TERN_OK : tern_fail(TERN_ERR_MEMORY, "%s: no memory", r->m.where);
    json_array_foreach(vocab, i, one)
    {
        size_t length;
        const char *text = tk_string(one, "token_bytes", &length);
        if (i == n || status != TERN_OK)
            break;
        if (!text || tk_int(one, "rank", -1) != (int64_t)i)
            status =
                tern_fail(TERN_ERR_IO, "%s: %s: token %zu has no \"token_bytes\" or another rank",
                          r->m.where, r->what, i);
        else
            status = add_token(r, i + r->first, text, length, buffer);
    }
    free(buffer);
    TK_TRY(status);
    TK_TRY(add_tekken_special(r, json_object_get(json, "special_tokens"), *names));
    return make(r, pattern);
}

tern_tokenizer *tk_read_tekken(const char *where, const char *path, const char *bytes, size_t n,
                               const tk_settings *settings)
{
    ranks r = {.m = {.where = where}, .what = "a tekken.json"};
    char *names = NULL;
    json_t *json = tk_parse(where, bytes, n);
    (void)path, (void)settings;
    tern_tokenizer *t = finish(&r, json ? read_tekken(&r, json, n, &names) : TERN_ERR_IO);
    json_decref(json);
    free(names);
    return t;
}
