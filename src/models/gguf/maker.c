/* maker.c -- text of tokenizer.json, and the parts of it that all tokenizers of GGUFs have. */
#include "models/gguf/maker.h"
#include <stdio.h>
#include <string.h>

/* ---- text of JSON ------------------------------------------------------------------------ */

void gguf_put_bytes(gguf_out *o, const char *bytes, size_t n)
{
    if (o->status == TERN_OK)
        o->status = tk_room((void **)&o->text, &o->capacity, o->n, n + 1, 1);
    if (o->status != TERN_OK)
        return;
    memcpy(o->text + o->n, bytes, n);
    o->n += n;
    o->text[o->n] = 0;
}

void gguf_put(gguf_out *o, const char *text)
{
    gguf_put_bytes(o, text, strlen(text));
}

void gguf_put_number(gguf_out *o, int64_t x)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)x);
    gguf_put(o, text);
}

void gguf_put_quoted(gguf_out *o, const char *prefix, const char *text, size_t n)
{
    gguf_put(o, "\"");
    gguf_put(o, prefix);
    for (size_t i = 0, from = 0; i <= n; i++) {
        unsigned char c = i < n ? (unsigned char)text[i] : 0;
        if (i < n && c >= 0x20 && c != '"' && c != '\\')
            continue;
        gguf_put_bytes(o, text + from, i - from);
        from = i + 1;
        char escaped[8];
        snprintf(escaped, sizeof escaped, c < 0x20 ? "\\u%04x" : "\\%c", c);
        if (i < n)
            gguf_put(o, escaped);
    }
    gguf_put(o, "\"");
}

/* ---- parts that all have ----------------------------------------------------------------- */

tern_status gguf_read_ids(gguf_maker *m, const int64_t defaults[5], bool bos, bool eos)
{
    TRY(gguf_token_id(m->g, &m->v, "bos", defaults[0], &m->bos));
    TRY(gguf_token_id(m->g, &m->v, "eos", defaults[1], &m->eos));
    TRY(gguf_token_id(m->g, &m->v, "unknown", defaults[2], &m->unknown));
    TRY(gguf_token_id(m->g, &m->v, "padding", defaults[3], &m->pad));
    TRY(gguf_token_id(m->g, &m->v, "seperator", defaults[4], &m->separator)); /* so it is spelled */
    TRY(gguf_flag(m->g, "tokenizer.ggml.add_bos_token", bos, &m->add_bos));
    return gguf_flag(m->g, "tokenizer.ggml.add_eos_token", eos, &m->add_eos);
}

void gguf_put_token(gguf_maker *m, int64_t id)
{
    gguf_put_quoted(&m->o, "", m->v.tokens[id].text, m->v.tokens[id].n);
}

void gguf_put_added(gguf_maker *m, bool named)
{
    bool any = false;
    gguf_put(&m->o, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[");
    for (size_t i = 0; i < m->v.n; i++) {
        int type = m->v.types[i];
        if ((type != GGUF_CONTROL && type != GGUF_USER && type != GGUF_UNKNOWN) ||
            !m->v.tokens[i].n)
            continue;
        int64_t id = (int64_t)i;
        if (!named && type != GGUF_USER && (id == m->bos || id == m->eos || id == m->unknown))
            continue;
        gguf_put(&m->o, any ? ",{\"id\":" : "{\"id\":");
        gguf_put_number(&m->o, id);
        gguf_put(&m->o, ",\"content\":");
        gguf_put_token(m, (int64_t)i);
        gguf_put(&m->o,
                 ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
                 "\"special\":");
        gguf_put(&m->o, type == GGUF_USER ? "false}" : "true}");
        any = true;
    }
    gguf_put(&m->o, "]");
}

static void put_special(gguf_maker *m, int64_t id, int type)
{
    gguf_put(&m->o, "{\"SpecialToken\":{\"id\":");
    gguf_put_token(m, id);
    gguf_put(&m->o, type ? ",\"type_id\":1}}" : ",\"type_id\":0}}");
}

void gguf_put_post(gguf_maker *m, int64_t first, int64_t last, bool of_both)
{
    gguf_put(&m->o, ",\"post_processor\":{\"type\":\"TemplateProcessing\"");
    for (int pair = 0; pair < 2; pair++) {
        gguf_put(&m->o, pair ? "],\"pair\":[" : ",\"single\":[");
        for (int k = 0; k <= pair; k++) {
            gguf_put(&m->o, k ? "," : "");
            if (first >= 0 && !(of_both && k)) {
                put_special(m, first, k);
                gguf_put(&m->o, ",");
            }
            gguf_put(&m->o, k ? "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}"
                              : "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}");
            if (last >= 0) {
                gguf_put(&m->o, ",");
                put_special(m, last, k);
            }
        }
    }
    gguf_put(&m->o, "],\"special_tokens\":{");
    for (int k = 0; k < 2; k++) {
        int64_t id = k ? last : first;
        if (id < 0 || (k && id == first))
            continue;
        gguf_put(&m->o, k && first >= 0 ? "," : "");
        gguf_put_token(m, id);
        gguf_put(&m->o, ":{\"id\":");
        gguf_put_token(m, id);
        gguf_put(&m->o, ",\"ids\":[");
        gguf_put_number(&m->o, id);
        gguf_put(&m->o, "],\"tokens\":[");
        gguf_put_token(m, id);
        gguf_put(&m->o, "]}");
    }
    gguf_put(&m->o, "}}");
}

void gguf_put_vocab(gguf_maker *m)
{
    gguf_put(&m->o, ",\"vocab\":{");
    for (size_t i = 0; i < m->v.n; i++) {
        gguf_put(&m->o, i ? "," : "");
        gguf_put_token(m, (int64_t)i);
        gguf_put(&m->o, ":");
        gguf_put_number(&m->o, (int64_t)i);
    }
    gguf_put(&m->o, "}");
}

void gguf_put_unknown(gguf_maker *m)
{
    gguf_put(&m->o, ",\"unk_token\":");
    if (m->unknown < 0)
        gguf_put(&m->o, "null");
    else
        gguf_put_token(m, m->unknown);
}

void gguf_put_merge(gguf_out *o, bool first, const gguf_text_of *whole, size_t n, size_t gap)
{
    gguf_put(o, first ? "[" : ",[");
    gguf_put_quoted(o, "", whole->text, n);
    gguf_put(o, ",");
    gguf_put_quoted(o, "", whole->text + n + gap, whole->n - n - gap);
    gguf_put(o, "]");
}
