/* tokenizer_write.c -- converts a model's tokenizer.json to the keys of a GGUF file, the inverse of
 * tokenizer.c. */
#include "models/gguf/vocabulary.h"
#include "base/os.h"
#include "models/gguf/write.h"
#include <stdio.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name
#define CHAT      "tokenizer.chat_template."

/* The characters of a template's name that its key keeps. */
static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

typedef struct writing {
    gguf_writer *w;
    const json_t *json, *model;
    tk_vocabulary v;
    bool respells; /* WordPiece: "##ing" is written "ing", and a word's start begins with U+2581 */
} writing;

static tern_status unsupported(const writing *t, const char *what)
{
    return tern_fail(TERN_ERR_UNSUPPORTED,
                     "%s: \"%s\": the model's tokenizer.json has %s, which a GGUF has no words for",
                     t->w->function, t->w->path, what);
}

static const char *text_at(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

/* Returns the part with a type: the normalizer or pre-tokenizer itself, or one in its sequence;
 * NULL: there is none. */
static const json_t *part_of(const json_t *part, const char *list, const char *type)
{
    size_t i;
    const json_t *one, *found = NULL;
    if (strcmp(text_at(part, "type"), type) == 0)
        return part;
    json_array_foreach(json_object_get(part, list), i, one) found =
        found ? found : part_of(one, list, type);
    return found;
}

/* Fails with TERN_ERR_UNSUPPORTED for a part of a type that is not in `types`, which ends with
 * NULL; what: for example "normalizer". */
static tern_status check_parts(const writing *t, const char *what, const char *list,
                               const char *const *types)
{
    const json_t *part = json_object_get(t->json, what), *parts = json_object_get(part, list), *one;
    char message[160];
    size_t i;
    if (!json_is_object(part))
        return TERN_OK;
    for (i = 0; i < (parts ? json_array_size(parts) : 1); i++) {
        one = parts ? json_array_get(parts, i) : part;
        size_t k = 0;
        while (types[k] && strcmp(text_at(one, "type"), types[k]))
            k++;
        if (types[k])
            continue;
        snprintf(message, sizeof message, "a %s of type %.60s", what, text_at(one, "type"));
        return unsupported(t, message);
    }
    return TERN_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static tern_status set_token(writing *t, int64_t id, const char *text, size_t n, int32_t type)
{
    if (id < 0 || (size_t)id >= t->v.n)
        return unsupported(t, "a token whose number is none of the model's rows");
    t->v.tokens[id] = (tk_text_of){text, n};
    t->v.types[id] = type;
    return TERN_OK;
}

static bool is_byte(const char *text, size_t n)
{
    return n == 6 && memcmp(text, "<0x", 3) == 0 && text[5] == '>';
}

/* Ids without a token become unused tokens. */
static tern_status read_tokens(writing *t, int64_t rows, bool bytes)
{
    const json_t *added = json_object_get(t->json, "added_tokens"), *one;
    const char *text, *unknown = text_at(t->model, "unk_token");
    json_t *id;
    size_t i;
    if (rows < 1 || rows > INT32_MAX)
        return unsupported(t, "no rows");
    TRY(tk_vocabulary_reserve(t->w->function, &t->v, (size_t)rows, true));
    for (i = 0; i < t->v.n; i++)
        t->v.types[i] = TK_UNUSED;
    json_object_foreach((json_t *)(uintptr_t)json_object_get(t->model, "vocab"), text, id)
    {
        const size_t n = strlen(text);
        TRY(set_token(t, json_is_integer(id) ? json_integer_value(id) : -1, text, n,
                      strcmp(text, unknown) == 0  ? TK_UNKNOWN
                      : bytes && is_byte(text, n) ? TK_BYTE
                                                  : TK_NORMAL));
    }
    json_array_foreach(added, i, one)
    {
        const bool special = json_is_true(json_object_get(one, "special"));
        text = text_at(one, "content");
        TRY(set_token(t, json_integer_value(json_object_get(one, "id")), text, strlen(text),
                      strcmp(text, unknown) == 0 ? TK_UNKNOWN
                      : special                  ? TK_CONTROL
                                                 : TK_USER));
    }
    return TERN_OK;
}

/* Sets half and n to both halves of a merge, "a b" or ["a", "b"]. */
static bool halves_of(const json_t *merge, const char *half[2], size_t n[2])
{
    const char *text = json_string_value(merge), *space = text ? strchr(text, ' ') : NULL;
    for (size_t i = 0; !text && i < 2; i++) {
        half[i] = json_string_value(json_array_get(merge, i));
        n[i] = half[i] ? strlen(half[i]) : 0;
    }
    if (space) {
        half[0] = text;
        n[0] = (size_t)(space - text);
        half[1] = space + 1;
        n[1] = strlen(space + 1);
    }
    return space || (!text && half[0] && half[1]);
}

/* Sets scores: the earlier the first merge that forms a token, the higher its score. */
static tern_status score_by_merges(writing *t)
{
    const json_t *merges = json_object_get(t->model, "merges"), *merge;
    char text[1024];
    size_t i;
    for (i = 0; i < t->v.n; i++)
        if (t->v.tokens[i].n)
            TRY(tk_vocab_add(&t->v.table, t->v.tokens[i].text, t->v.tokens[i].n, (uint32_t)i));
    json_array_foreach(merges, i, merge)
    {
        const char *half[2];
        size_t n[2];
        if (!halves_of(merge, half, n) || n[0] + n[1] >= sizeof text)
            return unsupported(t, "a merge that is none of two tokens");
        memcpy(text, half[0], n[0]);
        memcpy(text + n[0], half[1], n[1]);
        const int64_t id = tk_vocab_find(&t->v.table, text, n[0] + n[1]);
        if (id >= 0 && t->v.scores[id] == 0)
            t->v.scores[id] = -(float)(i + 1);
    }
    return TERN_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Writes the text of token i in the file's spelling. */
static void write_token(writing *t, size_t i)
{
    const tk_text_of *token = &t->v.tokens[i];
    const bool respells = t->respells && t->v.types[i] == TK_NORMAL;
    char unused[32];
    if (t->v.types[i] == TK_UNUSED && !token->n) {
        const int n = snprintf(unused, sizeof unused, "[PAD%zu]", i);
        gguf_write_element(t->w, "", unused, (size_t)n);
    } else if (respells && token->n > 2 && !memcmp(token->text, "##", 2))
        gguf_write_element(t->w, "", token->text + 2, token->n - 2);
    else
        gguf_write_element(t->w, respells ? "\xe2\x96\x81" : "", token->text, token->n);
}

static void write_vocabulary(writing *t, bool scores)
{
    gguf_write_array(t->w, KEY("tokens"), IO_GGUF_TEXT, t->v.n);
    for (size_t i = 0; i < t->v.n; i++)
        write_token(t, i);
    if (scores) {
        gguf_write_array(t->w, KEY("scores"), IO_GGUF_F32, t->v.n);
        for (size_t i = 0; i < t->v.n; i++)
            gguf_write_bits(t->w, &t->v.scores[i], sizeof *t->v.scores);
    }
    gguf_write_array(t->w, KEY("token_type"), IO_GGUF_I32, t->v.n);
    for (size_t i = 0; i < t->v.n; i++)
        gguf_write_bits(t->w, &t->v.types[i], sizeof *t->v.types);
}

static tern_status write_merges(writing *t)
{
    const json_t *merges = json_object_get(t->model, "merges"), *merge;
    char text[2048];
    size_t i;
    gguf_write_array(t->w, KEY("merges"), IO_GGUF_TEXT, json_array_size(merges));
    json_array_foreach(merges, i, merge)
    {
        const char *half[2];
        size_t n[2];
        if (!halves_of(merge, half, n) || n[0] + n[1] + 2 >= sizeof text)
            return unsupported(t, "a merge that is none of two tokens");
        const int all =
            snprintf(text, sizeof text, "%.*s %.*s", (int)n[0], half[0], (int)n[1], half[1]);
        gguf_write_element(t->w, "", text, (size_t)all);
    }
    return TERN_OK;
}

/* ---- kinds ----------------------------------------------------------------------------------- */

/* Whether the model has a non-empty text of this name. */
static bool has_text(const json_t *model, const char *name)
{
    return *text_at(model, name) != 0;
}

/* Returns llama.cpp's name of the split pattern, or NULL if it has none. */
static const char *pre_of(const writing *t)
{
    const json_t *pre = json_object_get(t->json, "pre_tokenizer");
    const json_t *split = part_of(pre, "pretokenizers", "Split");
    const json_t *level = part_of(pre, "pretokenizers", "ByteLevel");
    const json_t *digits = part_of(pre, "pretokenizers", "Digits");
    const bool nfc = part_of(json_object_get(t->json, "normalizer"), "normalizers", "NFC") != NULL;
    if (!level || json_is_true(json_object_get(level, "add_prefix_space")) ||
        json_is_false(json_object_get(level, "use_regex")) != (split != NULL))
        return NULL;
    if (digits && !json_is_true(json_object_get(digits, "individual_digits")))
        return NULL;
    if (split && (strcmp(text_at(split, "behavior"), "Isolated") ||
                  json_is_true(json_object_get(split, "invert"))))
        return NULL;
    return gguf_pre_of(split ? text_at(json_object_get(split, "pattern"), "Regex") : NULL,
                       digits != NULL, json_is_true(json_object_get(t->model, "ignore_merges")),
                       nfc);
}

static tern_status write_byte_pairs(writing *t)
{
    static const char *const normalizers[] = {"NFC", NULL};
    static const char *const pre_tokenizers[] = {"Split", "ByteLevel", "Digits", NULL};
    const char *name = pre_of(t);
    TRY(check_parts(t, "normalizer", "normalizers", normalizers));
    TRY(check_parts(t, "pre_tokenizer", "pretokenizers", pre_tokenizers));
    if (has_text(t->model, "end_of_word_suffix") || has_text(t->model, "continuing_subword_prefix"))
        return unsupported(t, "letters around the parts of a word");
    if (!name)
        return unsupported(t, "a pre_tokenizer");
    gguf_write_text(t->w, KEY("model"), "gpt2");
    gguf_write_text(t->w, KEY("pre"), name);
    write_vocabulary(t, false);
    return write_merges(t);
}

#define MARK "\xe2\x96\x81" /* U+2581, which replaces a space */

/* Checks that the normalizers only do what SentencePiece's BPE models do: replace spaces by U+2581
 * and add one at the start. */
static tern_status check_marks(const writing *t)
{
    static const char *const types[] = {"Prepend", "Replace", NULL};
    const json_t *normalizer = json_object_get(t->json, "normalizer");
    const json_t *list = json_object_get(normalizer, "normalizers");
    TRY(check_parts(t, "normalizer", "normalizers", types));
    for (size_t i = 0; i < (list ? json_array_size(list) : json_is_object(normalizer)); i++) {
        const json_t *one = list ? json_array_get(list, i) : normalizer;
        const bool prepend = strcmp(text_at(one, "type"), "Prepend") == 0;
        if (prepend ? strcmp(text_at(one, "prepend"), MARK)
                    : strcmp(text_at(one, "content"), MARK) ||
                          strcmp(text_at(json_object_get(one, "pattern"), "String"), " "))
            return unsupported(t, "a normalizer that replaces or prepends something else than "
                                  "the space's U+2581");
    }
    return TERN_OK;
}

/* Checks that the pre-tokenizer only splits where no token spans the boundary, because
 * SentencePiece does not split. */
static tern_status check_words(const writing *t, const json_t *spaces)
{
    static const char *const types[] = {"Metaspace", "Split", NULL};
    const json_t *split =
        part_of(json_object_get(t->json, "pre_tokenizer"), "pretokenizers", "Split");
    TRY(check_parts(t, "pre_tokenizer", "pretokenizers", types));
    if (split && strcmp(text_at(json_object_get(split, "pattern"), "String"), " "))
        return unsupported(t, "a pre_tokenizer that splits at something else than spaces");
    if (spaces && strcmp(text_at(spaces, "replacement"), MARK))
        return unsupported(t, "a pre_tokenizer whose replacement is another than U+2581");
    const size_t mark = sizeof MARK - 1;
    for (size_t i = 0; spaces && !json_is_false(json_object_get(spaces, "split")) && i < t->v.n;
         i++)
        for (size_t at = 1; at + mark <= t->v.tokens[i].n; at++)
            if (t->v.types[i] == TK_NORMAL && !memcmp(t->v.tokens[i].text + at, MARK, mark))
                return unsupported(t, "a pre_tokenizer that splits words which a token joins");
    return TERN_OK;
}

static tern_status write_sentence_pieces(writing *t)
{
    const json_t *normalizer = json_object_get(t->json, "normalizer");
    const json_t *spaces =
        part_of(json_object_get(t->json, "pre_tokenizer"), "pretokenizers", "Metaspace");
    const char *scheme = json_string_value(json_object_get(spaces, "prepend_scheme"));
    const bool never = scheme ? strcmp(scheme, "never") == 0
                              : json_is_false(json_object_get(spaces, "add_prefix_space"));
    const bool prefix = part_of(normalizer, "normalizers", "Prepend") || (spaces && !never);
    TRY(check_marks(t));
    TRY(check_words(t, spaces));
    if (!spaces && !part_of(normalizer, "normalizers", "Replace"))
        return unsupported(t, "nothing that makes U+2581 of spaces");
    TRY(score_by_merges(t));
    gguf_write_text(t->w, KEY("model"), "llama");
    gguf_write_text(t->w, KEY("pre"), "default");
    write_vocabulary(t, true);
    gguf_write_bool(t->w, KEY("add_space_prefix"), prefix);
    return TERN_OK;
}

static tern_status write_word_pieces(writing *t)
{
    static const char *const bert[] = {"BertPreTokenizer", NULL};
    const json_t *normalizer = json_object_get(t->json, "normalizer");
    const json_t *prefix = json_object_get(t->model, "continuing_subword_prefix");
    if (strcmp(text_at(normalizer, "type"), "BertNormalizer") ||
        !json_is_true(json_object_get(normalizer, "lowercase")) ||
        json_is_false(json_object_get(normalizer, "strip_accents")) ||
        json_is_false(json_object_get(normalizer, "clean_text")) ||
        json_is_false(json_object_get(normalizer, "handle_chinese_chars")))
        return unsupported(t, "a normalizer that is not BERT's of lower case");
    TRY(check_parts(t, "pre_tokenizer", "pretokenizers", bert));
    if (prefix && strcmp(text_at(t->model, "continuing_subword_prefix"), "##"))
        return unsupported(t, "a continuing_subword_prefix that is not ##");
    t->respells = true;
    gguf_write_text(t->w, KEY("model"), "bert");
    gguf_write_text(t->w, KEY("pre"), "default");
    write_vocabulary(t, false);
    return TERN_OK;
}

/* ---- special tokens -------------------------------------------------------------------------- */

/* Returns the id of a token by its text, or -1. */
static int64_t number_of(const writing *t, const char *text)
{
    for (size_t i = 0; *text && i < t->v.n; i++)
        if (t->v.tokens[i].n == strlen(text) && !memcmp(t->v.tokens[i].text, text, strlen(text)))
            return (int64_t)i;
    return -1;
}

/* Sets *first and *last to the special tokens that a post-processor adds around a text; -1:
 * none. */
static void around(const writing *t, int64_t *first, int64_t *last)
{
    const json_t *post = json_object_get(t->json, "post_processor");
    const json_t *template = part_of(post, "processors", "TemplateProcessing");
    const json_t *bert = part_of(post, "processors", "BertProcessing");
    const json_t *single = json_object_get(template, "single");
    const size_t n = json_array_size(single);
    *first = *last = -1;
    if (bert) {
        *first = json_integer_value(json_array_get(json_object_get(bert, "cls"), 1));
        *last = json_integer_value(json_array_get(json_object_get(bert, "sep"), 1));
    } else if (n) {
        const json_t *from = json_object_get(json_array_get(single, 0), "SpecialToken");
        const json_t *to = json_object_get(json_array_get(single, n - 1), "SpecialToken");
        *first = number_of(t, text_at(from, "id"));
        *last = n > 1 ? number_of(t, text_at(to, "id")) : -1;
    }
}

static void write_id(writing *t, const char *name, int64_t id)
{
    char key[64];
    snprintf(key, sizeof key, KEY("%s_token_id"), name);
    if (id >= 0 && (size_t)id < t->v.n)
        gguf_write_u32(t->w, key, id);
}

/* Returns an id, or the first of a list of ids. */
static int64_t id_in(const json_t *config, const char *name)
{
    const json_t *id = json_object_get(config, name);
    id = json_is_array(id) ? json_array_get(id, 0) : id;
    return json_is_integer(id) ? json_integer_value(id) : -1;
}

static void write_ids(writing *t, const json_t *config)
{
    int64_t first, last;
    around(t, &first, &last);
    const int64_t bos = first >= 0 ? first : id_in(config, "bos_token_id");
    const int64_t eos = id_in(config, "eos_token_id");
    write_id(t, "bos", bos);
    write_id(t, "eos", last >= 0 && !t->respells ? last : eos);
    write_id(t, "unknown", number_of(t, text_at(t->model, "unk_token")));
    write_id(t, "padding", id_in(config, "pad_token_id"));
    if (t->respells)
        write_id(t, "seperator", last); /* spelled so in the format */
    gguf_write_bool(t->w, KEY("add_bos_token"), first >= 0);
    gguf_write_bool(t->w, t->respells ? KEY("add_sep_token") : KEY("add_eos_token"), last >= 0);
}

/* Writes each template other than the default one under its own key, and the list of their
 * names. */
static void write_templates(writing *t, json_t *templates)
{
    const char *name;
    const json_t *text;
    char key[256];
    size_t others = 0, i = 0;
    json_object_foreach(templates, name, text) others += strcmp(name, "default") != 0;
    for (int list = 0; list < 2 && others; list++) {
        if (list)
            gguf_write_array(t->w, "tokenizer.chat_templates", IO_GGUF_TEXT, others);
        json_object_foreach(templates, name, text)
        {
            if (strcmp(name, "default") == 0)
                continue;
            snprintf(key, sizeof key, CHAT "%.200s", name);
            for (i = (sizeof CHAT - 1); key[i]; i++)
                if (!strchr(letters, key[i]))
                    key[i] = '_';
            if (list)
                gguf_write_element(t->w, "", key + (sizeof CHAT - 1),
                                   strlen(key) - (sizeof CHAT - 1));
            else
                gguf_write_text(t->w, key, json_string_value(text));
        }
    }
    text = json_object_get(templates, "default");
    if (text)
        gguf_write_text(t->w, "tokenizer.chat_template", json_string_value(text));
}

static tern_status write_chat(writing *t, const char *directory)
{
    char path[4096];
    struct tern_os_stat is;
    snprintf(path, sizeof path, "%s/tokenizer_config.json", directory);
    const bool there = tern_os_stat(path, &is) == 0;
    json_t *config =
        there ? models_read_json(t->w->function, directory, "tokenizer_config.json") : NULL;
    json_t *templates =
        there && !config ? NULL : tk_chat_templates(t->w->function, directory, config);
    if (templates)
        write_templates(t, templates);
    const tern_status status = templates ? TERN_OK : TERN_ERR_IO;
    json_decref(templates);
    json_decref(config);
    return status;
}

static tern_status write_kind(writing *t, int64_t rows)
{
    const char *type = text_at(t->model, "type");
    const bool bytes = json_is_true(json_object_get(t->model, "byte_fallback"));
    if (strcmp(type, "BPE") && strcmp(type, "WordPiece"))
        return unsupported(t, "a model that is neither BPE nor WordPiece");
    TRY(read_tokens(t, rows, bytes));
    return strcmp(type, "WordPiece") == 0 ? write_word_pieces(t)
           : bytes                        ? write_sentence_pieces(t)
                                          : write_byte_pairs(t);
}

tern_status gguf_write_tokenizer(gguf_writer *w, const models_model *m)
{
    char path[4096];
    struct tern_os_stat is;
    writing t = {.w = w};
    if (!m->directory)
        return TERN_OK;
    snprintf(path, sizeof path, "%s/tokenizer.json", m->directory);
    if (tern_os_stat(path, &is) != 0)
        return TERN_OK;
    json_t *json = models_read_json(w->function, m->directory, "tokenizer.json");
    if (!json)
        return TERN_ERR_IO;
    t.json = json;
    t.model = json_object_get(json, "model");
    tern_status status = write_kind(&t, m->c.vocab);
    if (status == TERN_OK) {
        write_ids(&t, m->json);
        status = write_chat(&t, m->directory);
    }
    tk_vocabulary_free(&t.v);
    json_decref(json);
    return status;
}
