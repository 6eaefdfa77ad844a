/* json.c -- reads the outer object of a JSON text member by member.
 *
 * Names and values are parsed by jansson one at a time, which limits the memory for a header that
 * an attacker wrote: jansson's tree takes up to 74 bytes for each byte of text. */
#include "io/json.h"
#include "base/memory.h"
#include <string.h>

typedef struct cursor {
    const io_json *json;
    size_t at;
    char *key; /* memory for a name */
    size_t capacity;
} cursor;

static tern_status bad(const cursor *w, const char *what)
{
    return w->json->bad(w->json->user, w->at, what);
}

static char here(const cursor *w)
{
    return w->at < w->json->n ? w->json->text[w->at] : '\0';
}

static void skip_blanks(cursor *w)
{
    while (w->at < w->json->n && strchr(" \t\r\n", w->json->text[w->at]) && w->json->text[w->at])
        w->at++;
}

static tern_status expect(cursor *w, char c, const char *what)
{
    skip_blanks(w);
    if (w->at >= w->json->n || here(w) != c)
        return bad(w, w->at < w->json->n ? what : "the text ends too early");
    w->at++;
    return TERN_OK;
}

/* Moves behind the string that begins here. *plain: it has no escapes and is ASCII, so that jansson
 * need not parse it. */
static tern_status pass_text(cursor *w, bool *plain)
{
    TERN_TRY(expect(w, '"', "a name in double quotes is expected"));
    for (*plain = true; w->at < w->json->n; w->at++) {
        unsigned char c = (unsigned char)here(w);
        if (c == '"') {
            w->at++;
            return TERN_OK;
        }
        if (c < 0x20)
            return bad(w, "a control character in a text");
        if (c == '\\')
            w->at++;
        *plain = *plain && c != '\\' && c < 0x80;
    }
    return bad(w, "a text without an end");
}

/* Reads the name that begins here. */
static tern_status read_key(cursor *w, io_member *m)
{
    bool plain;
    skip_blanks(w);
    size_t begin = w->at;
    TERN_TRY(pass_text(w, &plain));
    size_t n = w->at - begin;
    if (n > w->capacity) {
        char *key = tern_grow(w->key, 2 * n);
        if (!key)
            return TERN_ERR_MEMORY;
        w->key = key;
        w->capacity = 2 * n;
    }
    m->key = w->key;
    if (plain) {
        memcpy(w->key, w->json->text + begin + 1, n - 2);
        w->key[n - 2] = '\0';
        return TERN_OK;
    }
    json_error_t error;
    json_t *text = json_loadb(w->json->text + begin, n, JSON_DECODE_ANY, &error);
    if (!text)
        return w->json->bad(w->json->user, begin, error.text);
    /* never longer than its JSON form */
    memcpy(w->key, json_string_value(text), json_string_length(text) + 1);
    json_decref(text);
    return TERN_OK;
}

/* Moves to the end of the value that begins here. */
static tern_status pass_value(cursor *w, io_member *m)
{
    skip_blanks(w);
    size_t begin = w->at;
    int depth = 0;
    bool plain;
    m->depth = 0;
    while (w->at < w->json->n) {
        char c = here(w);
        if (!depth && (c == ',' || c == '}'))
            break;
        if (c == '"') {
            TERN_TRY(pass_text(w, &plain));
            continue;
        }
        depth += (c == '[' || c == '{') - (c == ']' || c == '}');
        if (depth < 0)
            break;
        m->depth = depth > m->depth ? depth : m->depth;
        w->at++;
    }
    m->value = w->json->text + begin;
    m->n = w->at - begin;
    return TERN_OK;
}

static tern_status walk_members(cursor *w)
{
    TERN_TRY(expect(w, '{', "an object is expected"));
    skip_blanks(w);
    bool empty = here(w) == '}';
    for (bool first = true; !empty && (first || here(w) == ','); first = false) {
        io_member m;
        w->at += !first;
        TERN_TRY(read_key(w, &m));
        TERN_TRY(expect(w, ':', "':' is expected"));
        TERN_TRY(pass_value(w, &m));
        TERN_TRY(w->json->member(w->json->user, &m));
        skip_blanks(w);
    }
    TERN_TRY(expect(w, '}', "',' or '}' is expected"));
    skip_blanks(w);
    return w->at == w->json->n ? TERN_OK : bad(w, "something behind the end");
}

tern_status io_json_walk(const io_json *json)
{
    cursor w = {.json = json};
    tern_status status = walk_members(&w);
    tern_free(w.key);
    return status;
}

/* Returns whether a number may have a sign, point or exponent, or a word an 'e': jansson would
 * accept -0 as 0 and some reals as integers. */
static bool has_real(const io_member *m)
{
    bool in_text = false;
    for (size_t i = 0; i < m->n; i++) {
        char c = m->value[i];
        if (c == '\\' && in_text)
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (!in_text && strchr("-+.eE", c) && c)
            return true;
    }
    return false;
}

json_t *io_json_value(const io_json *json, const io_member *m)
{
    json_error_t error;
    size_t at = (size_t)(m->value - json->text);
    if (has_real(m)) {
        json->bad(json->user, at, "a number that is not whole, or a word, in a value");
        return NULL;
    }
    json_t *value = json_loadb(m->value, m->n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
    if (!value)
        json->bad(json->user, at + (size_t)(error.position > 0 ? error.position - 1 : 0),
                  error.text);
    return value;
}
