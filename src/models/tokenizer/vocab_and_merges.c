/* vocab_and_merges.c -- vocab.json and merges.txt, the two files in which GPT-2's tokenizer was
 * first published. */
#include "base/os.h"
#include "models/tokenizer/maker.h"
#include <stdio.h>

#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define QWEN2                                                                                      \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| "                          \
    "?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
enum { QWEN2_TOKENS = 151643 };

/* ---- the two files ----------------------------------------------------------------------- */

/* Writes the path of the other file; NAME-vocab.json and NAME-merges.txt are in one folder. */
static bool other_path(const char *path, bool is_vocab, char other[4096])
{
    const char *mine = is_vocab ? "vocab.json" : "merges.txt",
               *its = is_vocab ? "merges.txt" : "vocab.json", *slash = tern_os_last_slash(path);
    const size_t n = strlen(path), tail = strlen(mine);
    size_t stem = slash ? (size_t)(slash - path) + 1 : 0;
    if (n >= stem + tail && strcmp(path + n - tail, mine) == 0)
        stem = n - tail;
    return snprintf(other, 4096, "%.*s%s", (int)stem, path, its) < 4096;
}

static tern_status read_vocab(tk_maker *m, const json_t *json)
{
    const size_t count = json_object_size(json);
    size_t n = 0;
    for (void *i = json_object_iter((json_t *)json); i;
         i = json_object_iter_next((json_t *)json, i)) {
        const json_t *id = json_object_iter_value(i);
        int64_t number = json_is_integer(id) ? json_integer_value(id) : -1;
        if (number < 0 || (uint64_t)number > 4 * (uint64_t)count + 65536)
            return tern_fail(TERN_ERR_IO, "%s: token '%.80s' of %zu has the number %lld", m->where,
                             json_object_iter_key(i), count, (long long)number);
        n = (size_t)number >= n ? (size_t)number + 1 : n;
    }
    TK_TRY(tk_vocabulary_reserve(m->where, &m->v, n, false));
    for (void *i = json_object_iter((json_t *)json); i;
         i = json_object_iter_next((json_t *)json, i)) {
        const size_t id = (size_t)json_integer_value(json_object_iter_value(i));
        const tk_text_of text = {json_object_iter_key(i), json_object_iter_key_len(i)};
        if (m->v.tokens[id].text)
            return tern_fail(TERN_ERR_IO, "%s: two tokens have the number %zu", m->where, id);
        TK_TRY(tk_vocabulary_set(m->where, "vocab.json", &m->v, id, text));
    }
    return TERN_OK;
}

static tern_status read_merges(tk_maker *m, const char *bytes, size_t n)
{
    size_t line = 0, count = 0;
    for (const char *at = bytes, *end = bytes + n, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        next = stop ? stop + 1 : end;
        tk_text_of pair = {at, (size_t)((stop ? stop : end) - at)};
        pair.n -= pair.n && pair.text[pair.n - 1] == '\r';
        if ((line++ == 0 && strncmp(at, "#version", 8) == 0) || !pair.n)
            continue;
        const char *space = memchr(pair.text, ' ', pair.n);
        const size_t first = space ? (size_t)(space - pair.text) : 0;
        if (!first || first + 1 == pair.n || memchr(space + 1, ' ', pair.n - first - 1) ||
            tk_utf8_end(pair.text, pair.n) != pair.n)
            return tern_fail(TERN_ERR_IO, "%s: line %zu of the merges is not \"a b\"", m->where,
                             line);
        tk_out_merge(&m->o, count++ == 0, &pair, first, 1);
    }
    return m->o.status;
}

/* ---- special tokens ------------------------------------------------------------------------ */

static int64_t find(const tk_maker *m, const char *text)
{
    return tk_vocab_find(&m->v.table, text, strlen(text));
}

/* Tokens with known names are special; if there is a mask token, they are RoBERTa's and are put
 * around a text. */
static void find_special(tk_maker *m)
{
    static const char *const names[] = {"<s>", "</s>", "<unk>", "<pad>", "<mask>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (find(m, names[i]) >= 0)
            m->v.types[find(m, names[i])] = TK_CONTROL;
    m->roberta = find(m, "<s>") >= 0 && find(m, "</s>") >= 0 && find(m, "<mask>") >= 0;
    m->bos = find(m, m->roberta ? "<s>" : "<|endoftext|>");
    m->eos = find(m, m->roberta ? "</s>" : "<|endoftext|>");
    m->unknown = find(m, "<unk>");
    m->pad = find(m, "<pad>");
    m->add_bos = m->add_eos = m->roberta;
}

static tern_status check_class(const tk_maker *m, const json_t *config)
{
    static const char *const known[] = {"GPT2", "Roberta", "Bart",    "Longformer",
                                        "LED",  "Whisper", "CodeGen", "Qwen2"};
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    bool is_known = !name;
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        is_known = is_known || strncmp(name, known[i], strlen(known[i])) == 0;
    if (!is_known)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: tokenizer_class is %.80s, whose rules are not in vocab.json and "
                         "merges.txt: its tokenizer.json is expected",
                         m->where, name);
    if (find(m, "!</w>") >= 0 || find(m, "e</w>") >= 0)
        return tern_fail(TERN_ERR_UNSUPPORTED,
                         "%s: </w> stands at the end of words, as in CLIP's tokenizer: its "
                         "tokenizer.json is expected",
                         m->where);
    return TERN_OK;
}

static tern_status make(tk_maker *m, const json_t *vocab, const char *merges, size_t n,
                        const json_t *config)
{
    const char *name = json_string_value(json_object_get(config, "tokenizer_class"));
    TK_TRY(read_vocab(m, vocab));
    TK_TRY(check_class(m, config));
    find_special(m);
    const bool qwen2 = (name && strncmp(name, "Qwen2", 5) == 0) ||
                       (!name && json_object_size(vocab) == QWEN2_TOKENS);
    TK_TRY(tk_make_byte_level(m, qwen2 ? QWEN2 : GPT2, false, qwen2, false));
    tk_out_text(&m->o, ",\"merges\":[");
    TK_TRY(read_merges(m, merges, n));
    tk_out_text(&m->o, "]}}");
    return m->o.status;
}

tern_tokenizer *tk_read_vocab_and_merges(const char *where, const char *path, const char *bytes,
                                         size_t n, const tk_settings *settings)
{
    char other[4096];
    tk_maker m = {.where = where};
    const bool is_vocab = *bytes == '{';
    size_t n_other;
    if (!other_path(path, is_vocab, other))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: the path is too long", where);
    char *more = tk_read_file(where, other, true, &n_other);
    if (!more && !n_other)
        return tern_fail_null(TERN_ERR_IO, "%s: %s, which belongs to it, is not there", where,
                              other);
    json_t *vocab = more ? tk_parse(where, is_vocab ? bytes : more, is_vocab ? n : n_other) : NULL;
    tern_status status =
        vocab ? make(&m, vocab, is_vocab ? more : bytes, is_vocab ? n_other : n, settings->config)
              : TERN_ERR_IO;
    tern_tokenizer *t = tk_make(&m, status);
    tk_maker_free(&m);
    json_decref(vocab);
    free(more);
    return t;
}
