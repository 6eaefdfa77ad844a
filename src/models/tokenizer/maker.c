/* maker.c -- writes text of tokenizer.json, and the parts of it that several formats share. */
#include "models/tokenizer/maker.h"
#include <stdio.h>
#include <string.h>

/* ---- text of JSON ------------------------------------------------------------------------ */

void tk_out_bytes(tk_out *o, const char *bytes, size_t n)
{
    if (o->status == TERN_OK)
        o->status = tk_reserve((void **)&o->text, &o->capacity, o->n, n + 1, 1);
    if (o->status != TERN_OK)
        return;
    memcpy(o->text + o->n, bytes, n);
    o->n += n;
    o->text[o->n] = 0;
}

void tk_out_text(tk_out *o, const char *text)
{
    tk_out_bytes(o, text, strlen(text));
}

void tk_out_number(tk_out *o, int64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)x);
    tk_out_text(o, text);
}

void tk_out_quoted(tk_out *o, const char *prefix, const char *text, size_t n)
{
    tk_out_text(o, "\"");
    tk_out_text(o, prefix);
    for (size_t i = 0, from = 0; i <= n; i++) {
        unsigned char c = i < n ? (unsigned char)text[i] : 0;
        if (i < n && c >= 0x20 && c != '"' && c != '\\')
            continue;
        tk_out_bytes(o, text + from, i - from);
        from = i + 1;
        char escaped[8];
        snprintf(escaped, sizeof escaped, c < 0x20 ? "\\u%04x" : "\\%c", c);
        if (i < n)
            tk_out_text(o, escaped);
    }
    tk_out_text(o, "\"");
}

/* ---- common parts ------------------------------------------------------------------------ */

void tk_make_token(tk_maker *m, int64_t id)
{
    tk_out_quoted(&m->o, "", m->v.tokens[id].text, m->v.tokens[id].n);
}

void tk_make_added(tk_maker *m, bool named)
{
    bool any = false;
    tk_out_text(&m->o,
                "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    for (size_t i = 0; i < m->v.n; i++) {
        int type = m->v.types[i];
        if ((type != TK_CONTROL && type != TK_USER && type != TK_UNKNOWN) || !m->v.tokens[i].n)
            continue;
        int64_t id = (int64_t)i;
        if (!named && type != TK_USER && (id == m->bos || id == m->eos || id == m->unknown))
            continue;
        tk_out_text(&m->o, any ? ",{\"id\":" : "{\"id\":");
        tk_out_number(&m->o, id);
        tk_out_text(&m->o, ",\"content\":");
        tk_make_token(m, (int64_t)i);
        tk_out_text(&m->o,
                    m->roberta && m->v.tokens[i].n == 6 &&
                            memcmp(m->v.tokens[i].text, "<mask>", 6) == 0
                        ? ",\"single_word\":false,\"lstrip\":true,\"rstrip\":false,\"normalized\":"
                          "false,\"special\":"
                        : ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
                          "false,\"special\":");
        tk_out_text(&m->o, type == TK_USER ? "false}" : "true}");
        any = true;
    }
    tk_out_text(&m->o, "]");
}

static void put_special(tk_maker *m, int64_t id, int type)
{
    tk_out_text(&m->o, "{\"SpecialToken\":{\"id\":");
    tk_make_token(m, id);
    tk_out_text(&m->o, type ? ",\"type_id\":1}}" : ",\"type_id\":0}}");
}

/* Writes key, which ends with "[", then the token, its id and "]". */
static void put_named(tk_maker *m, const char *key, int64_t id)
{
    tk_out_text(&m->o, key);
    tk_make_token(m, id);
    tk_out_text(&m->o, ",");
    tk_out_number(&m->o, id);
    tk_out_text(&m->o, "]");
}

void tk_make_post(tk_maker *m, int64_t first, int64_t last, bool of_both)
{
    if (m->roberta && first >= 0 && last >= 0) {
        put_named(m, ",\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[", last);
        put_named(m, ",\"cls\":[", first);
        tk_out_text(&m->o, ",\"trim_offsets\":true,\"add_prefix_space\":false}");
        return;
    }
    tk_out_text(&m->o, ",\"post_processor\":{\"type\":\"TemplateProcessing\"");
    for (int pair = 0; pair < 2; pair++) {
        tk_out_text(&m->o, pair ? "],\"pair\":[" : ",\"single\":[");
        for (int k = 0; k <= pair; k++) {
            tk_out_text(&m->o, k ? "," : "");
            if (first >= 0 && !(of_both && k)) {
                put_special(m, first, k);
                tk_out_text(&m->o, ",");
            }
            tk_out_text(&m->o, k ? "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}"
                                 : "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
            if (last >= 0) {
                tk_out_text(&m->o, ",");
                put_special(m, last, k);
            }
        }
    }
    tk_out_text(&m->o, "],\"special_tokens\":{");
    for (int k = 0; k < 2; k++) {
        int64_t id = k ? last : first;
        if (id < 0 || (k && id == first))
            continue;
        tk_out_text(&m->o, k && first >= 0 ? "," : "");
        tk_make_token(m, id);
        tk_out_text(&m->o, ":{\"id\":");
        tk_make_token(m, id);
        tk_out_text(&m->o, ",\"ids\":[");
        tk_out_number(&m->o, id);
        tk_out_text(&m->o, "],\"tokens\":[");
        tk_make_token(m, id);
        tk_out_text(&m->o, "]}");
    }
    tk_out_text(&m->o, "}}");
}

void tk_make_vocab(tk_maker *m)
{
    tk_out_text(&m->o, ",\"vocab\":{");
    bool any = false;
    for (size_t i = 0; i < m->v.n; i++) {
        if (!m->v.tokens[i].text) /* no token has this id */
            continue;
        tk_out_text(&m->o, any ? "," : "");
        tk_make_token(m, (int64_t)i);
        tk_out_text(&m->o, ":");
        tk_out_number(&m->o, (int64_t)i);
        any = true;
    }
    tk_out_text(&m->o, "}");
}

void tk_make_unknown(tk_maker *m)
{
    tk_out_text(&m->o, ",\"unk_token\":");
    if (m->unknown < 0)
        tk_out_text(&m->o, "null");
    else
        tk_make_token(m, m->unknown);
}

void tk_out_merge(tk_out *o, bool first, const tk_text_of *whole, size_t n, size_t gap)
{
    tk_out_text(o, first ? "[" : ",[");
    tk_out_quoted(o, "", whole->text, n);
    tk_out_text(o, ",");
    tk_out_quoted(o, "", whole->text + n + gap, whole->n - n - gap);
    tk_out_text(o, "]");
}

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void tk_out_base64(tk_out *o, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += 3) {
        uint32_t x = (uint32_t)bytes[i] << 16 | (i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0) |
                     (i + 2 < n ? bytes[i + 2] : 0);
        char four[4] = {letters[x >> 18], letters[x >> 12 & 63], letters[x >> 6 & 63],
                        letters[x & 63]};
        four[2] = i + 1 < n ? four[2] : '=';
        four[3] = i + 2 < n ? four[3] : '=';
        tk_out_bytes(o, four, 4);
    }
}

size_t tk_base64(const char *text, size_t n, uint8_t *bytes)
{
    uint32_t bits = 0, held = 0;
    size_t count = 0;
    for (size_t i = 0; i < n && text[i] != '='; i++) {
        const char *at = text[i] ? strchr(letters, text[i]) : NULL;
        if (!at)
            return SIZE_MAX;
        bits = bits << 6 | (uint32_t)(at - letters);
        held += 6;
        if (held >= 8)
            bytes[count++] = (uint8_t)(bits >> (held -= 8));
    }
    return count;
}

void tk_out_split(tk_out *o, const char *pattern)
{
    tk_out_text(o, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
    tk_out_quoted(o, "", pattern, strlen(pattern));
    tk_out_text(o, "},\"behavior\":\"Isolated\",\"invert\":false},");
}

/* ---- vocabularies ------------------------------------------------------------------------ */

void tk_vocabulary_free(tk_vocabulary *v)
{
    free(v->tokens);
    free(v->types);
    free(v->scores);
    free(v->merges);
    free(v->arena);
    tk_vocab_free(&v->table);
    *v = (tk_vocabulary){0};
}

tern_status tk_vocabulary_reserve(const char *where, tk_vocabulary *v, size_t n, bool scores)
{
    v->tokens = calloc(n + 1, sizeof *v->tokens);
    v->types = calloc(n + 1, sizeof *v->types);
    v->scores = scores ? calloc(n + 1, sizeof *v->scores) : NULL;
    if (!v->tokens || !v->types || (scores && !v->scores))
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for %zu tokens", where, n);
    for (size_t i = 0; i < n; i++)
        v->types[i] = TK_NORMAL;
    v->n = n;
    return tk_vocab_reserve(&v->table, n);
}

tern_status tk_vocabulary_set(const char *where, const char *what, tk_vocabulary *v, size_t i,
                              tk_text_of text)
{
    int64_t before = tk_vocab_find(&v->table, text.text, text.n);
    if (before >= 0)
        return tern_fail(TERN_ERR_IO, "%s: %s: tokens %lld and %zu are both '%.*s'", where, what,
                         (long long)before, i, text.n < 80 ? (int)text.n : 80, text.text);
    v->tokens[i] = text;
    return tk_vocab_add(&v->table, text.text, text.n, (uint32_t)i);
}

/* ---- the tokenizer ----------------------------------------------------------------------- */

tern_tokenizer *tk_make(tk_maker *m, tern_status status)
{
    tern_tokenizer *t = NULL;
    if (status == TERN_OK && m->o.status == TERN_OK)
        t = tk_tokenizer_read(m->where, m->o.text, m->o.n);
    if (t) {
        t->bos_id = m->bos;
        t->eos_id = m->eos;
        t->pad_id = m->pad;
    }
    return t;
}

void tk_maker_free(tk_maker *m)
{
    free(m->o.text);
    tk_vocabulary_free(&m->v);
}
