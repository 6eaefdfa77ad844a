/* vocabulary.c -- reads and checks the arrays of a GGUF file's tokenizer. */
#include "models/gguf/vocabulary.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY(name) "tokenizer.ggml." name

static tern_status no_memory(const gguf_file *g)
{
    return tern_fail(TERN_ERR_MEMORY, "%s: no memory for the tokenizer", g->function);
}

/* ---- arrays ------------------------------------------------------------------------------ */

/* Finds an array with elements of one kind; n: the expected length, SIZE_MAX for any; *is_there is
 * false if the key is absent. */
static tern_status find_array(const gguf_file *g, const char *key, io_gguf_kind kind, size_t n,
                              io_gguf_value *v, bool *is_there)
{
    static const char *const words[IO_GGUF_KINDS] = {
        [IO_GGUF_TEXT] = "texts", [IO_GGUF_I32] = "i32", [IO_GGUF_F32] = "f32"};
    *is_there = io_gguf_find(g->file, key, v);
    if (!*is_there)
        return TERN_OK;
    if (!v->is_array || (v->kind != kind && !(kind == IO_GGUF_I32 && v->kind == IO_GGUF_U32)))
        return gguf_bad(g, "`%s` is %.60s, and an array of %s is expected", key,
                        tern_file_metadata(g->file, key), words[kind]);
    if (n != SIZE_MAX && v->count != n)
        return gguf_bad(g, "`%s` has %llu elements, and `" KEY("tokens") "` %zu", key,
                        (unsigned long long)v->count, n);
    return TERN_OK;
}

static tern_status read_texts(const gguf_file *g, const char *key, tk_text_of **list, size_t *n)
{
    io_gguf_value v;
    bool is_there;
    uint64_t length;
    TRY(find_array(g, key, IO_GGUF_TEXT, SIZE_MAX, &v, &is_there));
    *list = calloc((size_t)v.count + 1, sizeof **list);
    if (!*list)
        return no_memory(g);
    const unsigned char *at = v.bytes;
    for (*n = 0; *n < v.count; ++*n) {
        tk_text_of *t = &(*list)[*n];
        if (!io_gguf_text(&at, v.end, &t->text, &length))
            return gguf_bad(g, "`%s` changed while it was read", key);
        t->n = (size_t)length;
        if (tk_utf8_end(t->text, t->n) != t->n || memchr(t->text, 0, t->n))
            return gguf_bad(g, "`%s`: element %zu is no UTF-8, or has a zero byte in it", key, *n);
    }
    return TERN_OK;
}

static tern_status read_types(const gguf_file *g, tk_vocabulary *v)
{
    io_gguf_value types;
    bool is_there;
    int64_t type;
    TRY(find_array(g, KEY("token_type"), IO_GGUF_I32, v->n, &types, &is_there));
    v->types = calloc(v->n + 1, sizeof *v->types);
    if (!v->types)
        return no_memory(g);
    for (size_t i = 0; i < v->n; i++) {
        type = TK_NORMAL;
        if (is_there)
            io_gguf_integer(types.kind, types.bytes + 4 * i, &type);
        v->types[i] = type >= TK_NORMAL && type <= TK_BYTE ? (int32_t)type : TK_NORMAL;
    }
    return TERN_OK;
}

static tern_status read_scores(const gguf_file *g, tk_vocabulary *v)
{
    io_gguf_value scores;
    bool is_there;
    TRY(find_array(g, KEY("scores"), IO_GGUF_F32, v->n, &scores, &is_there));
    v->scores = is_there ? calloc(v->n + 1, sizeof *v->scores) : NULL;
    if (is_there && !v->scores)
        return no_memory(g);
    for (size_t i = 0; is_there && i < v->n; i++) {
        v->scores[i] = (float)io_gguf_real(scores.kind, scores.bytes + 4 * i);
        if (!isfinite(v->scores[i]))
            return gguf_bad(g, "`" KEY("scores") "`: that of token %zu is not finite", i);
    }
    return TERN_OK;
}

/* ---- checks -------------------------------------------------------------------------------- */

static int hexadecimal(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Fails if a token occurs twice, or if a token of type byte is not named <0x00> to <0xFF>. */
static tern_status check_tokens(const gguf_file *g, tk_vocabulary *v)
{
    TRY(tk_vocab_reserve(&v->table, v->n));
    for (size_t i = 0; i < v->n; i++) {
        const char *t = v->tokens[i].text;
        size_t n = v->tokens[i].n;
        int64_t before = tk_vocab_find(&v->table, t, n);
        if (before >= 0)
            return gguf_bad(g, "`" KEY("tokens") "`: %lld and %zu are both '%.*s'",
                            (long long)before, i, n < 80 ? (int)n : 80, t);
        TRY(tk_vocab_add(&v->table, t, n, (uint32_t)i));
        if (v->types[i] == TK_BYTE && (n != 6 || memcmp(t, "<0x", 3) != 0 || t[5] != '>' ||
                                       hexadecimal(t[3]) < 0 || hexadecimal(t[4]) < 0))
            return gguf_bad(g,
                            "`" KEY("tokens") "`: %zu is '%.*s', and a byte's token is called "
                                              "<0x00> to <0xFF>",
                            i, n < 80 ? (int)n : 80, t);
    }
    return TERN_OK;
}

/* Checks that each merge is "a b"; the first space after the first byte separates the halves. */
static tern_status check_merges(const gguf_file *g, const tk_vocabulary *v)
{
    for (size_t i = 0; i < v->n_merges; i++) {
        const tk_text_of *m = &v->merges[i];
        const char *space = m->n > 2 ? memchr(m->text + 1, ' ', m->n - 1) : NULL;
        if (!space || space == m->text + m->n - 1)
            return gguf_bad(g, "`" KEY("merges") "`: %zu is '%.*s', and \"a b\" is expected", i,
                            m->n < 80 ? (int)m->n : 80, m->text);
    }
    return TERN_OK;
}

tern_status gguf_token_id(const gguf_file *g, const tk_vocabulary *v, const char *name,
                          int64_t absent, int64_t *id)
{
    char key[128];
    snprintf(key, sizeof key, KEY("%s_token_id"), name);
    TRY(gguf_size(g, key, 0, INT32_MAX, id));
    if (*id == INT32_MAX)
        *id = absent >= 0 && (size_t)absent < v->n ? absent : -1;
    else if ((size_t)*id >= v->n)
        return gguf_bad(g, "`%s` is %lld, and there are %zu tokens", key, (long long)*id, v->n);
    return TERN_OK;
}

static tern_status check_ids(const gguf_file *g, const tk_vocabulary *v)
{
    static const char *const names[] = {"bos",  "eos",       "unknown",   "padding",
                                        "mask", "seperator", "separator", "eot"};
    int64_t id;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        TRY(gguf_token_id(g, v, names[i], -1, &id));
    return TERN_OK;
}

tern_status gguf_read_vocabulary(const gguf_file *g, tk_vocabulary *v)
{
    *v = (tk_vocabulary){0};
    TRY(gguf_text(g, KEY("model"), &v->model));
    if (!v->model && !gguf_has(g, KEY("tokens")))
        return TERN_OK;
    if (!v->model)
        return gguf_bad(g, "there is no `" KEY("model") "`");
    if (!gguf_has(g, KEY("tokens")))
        return strcmp(v->model, "none") == 0 ? TERN_OK
                                             : gguf_bad(g, "there is no `" KEY("tokens") "`");
    TRY(read_texts(g, KEY("tokens"), &v->tokens, &v->n));
    TRY(read_types(g, v));
    TRY(read_scores(g, v));
    TRY(read_texts(g, KEY("merges"), &v->merges, &v->n_merges));
    TRY(check_tokens(g, v));
    TRY(check_merges(g, v));
    return check_ids(g, v);
}

tern_status gguf_check_vocabulary(const gguf_file *g)
{
    tk_vocabulary v;
    tern_status status = gguf_read_vocabulary(g, &v);
    tk_vocabulary_free(&v);
    return status;
}
