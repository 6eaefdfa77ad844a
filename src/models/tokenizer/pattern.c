/* pattern.c -- the patterns of tokenizer.json, written for Oniguruma, matched by PCRE2. */
#include "models/tokenizer/internal.h"
#include <pcre2.h>

struct tk_pattern {
    pcre2_code *code; /* NULL: the pattern is the literal text below */
    char *text;
    size_t n;
};

/* ---- compiling ----------------------------------------------------------------------------- */

typedef struct translation {
    const char *from;
    char *to;
    size_t n;
    bool class; /* within brackets */
    const char *bad;
} translation;

static void put(translation *t, const char *text, size_t n)
{
    memcpy(t->to + t->n, text, n);
    t->n += n;
}

/* Oniguruma's \w; of the numbers that are not digits it includes only those of Latin-1. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\xb2\\xb3\\xb9\\xbc-\\xbe"
enum { LONGEST = sizeof "[^" WORD "]" }; /* maximal length that two characters are translated to */

/* Copies a property's name; PCRE2 needs "sc:" before a script's name, which otherwise includes
 * script extensions. */
static void property(translation *t)
{
    static const char scripts[] =
        "|Han|Hiragana|Katakana|Hangul|Bopomofo|Latin|Greek|Cyrillic|Arabic|Hebrew|Thai|"
        "Devanagari|Bengali|Tamil|Telugu|Armenian|Georgian|Ethiopic|Khmer|Lao|Tibetan|";
    char name[16];
    const char *start = t->from + (t->from[0] == '{') + (t->from[0] == '{' && t->from[1] == '^');
    size_t n = strcspn(start, "}");
    if (start == t->from || n + 3 > sizeof name || !start[n])
        return;
    name[0] = '|';
    memcpy(name + 1, start, n);
    memcpy(name + 1 + n, "|", 2);
    put(t, t->from, (size_t)(start - t->from));
    t->from = start;
    if (n && strstr(scripts, name))
        put(t, "sc:", 3);
}

/* Translates \s, \w, \h and properties, which match other characters in PCRE2. */
static void escape(translation *t)
{
    static const struct {
        char letter;
        const char *in_class, *alone;
    } rows[] = {{'s', "\\p{White_Space}", "\\p{White_Space}"},
                {'S', "\\P{White_Space}", "\\P{White_Space}"},
                {'w', WORD, "[" WORD "]"},
                {'W', NULL, "[^" WORD "]"},
                {'h', "0-9a-fA-F", "[0-9a-fA-F]"},
                {'H', NULL, "[^0-9a-fA-F]"}};
    const char c = t->from[1];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].letter == c) {
            const char *text = t->class ? rows[i].in_class : rows[i].alone;
            if (text)
                put(t, text, strlen(text));
            else
                t->bad = "\\W or \\H in brackets";
            t->from += 2;
            return;
        }
    put(t, t->from, c ? 2 : 1);
    t->from += c ? 2 : 1;
    if (c == 'p' || c == 'P')
        property(t);
}

static void bracket(translation *t)
{
    if (t->class && *t->from == '[' && t->from[1] != ':')
        t->bad = "brackets in brackets";
    else if (*t->from == '[' && t->class) /* a class such as [:alpha:] */
        for (; *t->from && *t->from != ']'; t->from++)
            put(t, t->from, 1);
    else if (*t->from == '[') {
        t->class = true;
        put(t, t->from++, 1);
        if (*t->from == '^')
            put(t, t->from++, 1);
        if (*t->from != ']')
            return;
    } else
        t->class = false;
    if (*t->from)
        put(t, t->from++, 1);
}

/* Returns the pattern in PCRE2's syntax, to be freed; NULL after an error. */
static char *translate(const char *function, const char *regex)
{
    size_t capacity = strlen(regex);
    translation t = {.from = regex};
    t.to = capacity < SIZE_MAX / 64 ? malloc(capacity * LONGEST + 8) : NULL;
    if (!t.to)
        return tern_fail_null(TERN_ERR_MEMORY, "%s: no memory for a pattern", function);
    while (*t.from && !t.bad)
        if (*t.from == '\\')
            escape(&t);
        else if (*t.from == '[' || (*t.from == ']' && t.class))
            bracket(&t);
        else if (t.class && t.from[0] == '&' && t.from[1] == '&')
            t.bad = "&& in brackets";
        else
            put(&t, t.from++, 1);
    t.to[t.n] = 0;
    if (!t.bad)
        return t.to;
    free(t.to);
    return tern_fail_null(TERN_ERR_UNSUPPORTED, "%s: pattern '%s': %s is not supported", function,
                          regex, t.bad);
}

tk_pattern *tk_pattern_regex(const char *function, const char *regex)
{
    int error = 0;
    PCRE2_SIZE at = 0;
    char *text = translate(function, regex);
    tk_pattern *p = text ? calloc(1, sizeof *p) : NULL;
    pcre2_compile_context *context = p ? pcre2_compile_context_create(NULL) : NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        pcre2_set_max_pattern_length(context, 1 << 16);
        p->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED,
                                PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                &error, &at, context);
        pcre2_compile_context_free(context);
    }
    if (p && p->code) {
        pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* without JIT support the pattern is
                                                           interpreted */
        free(text);
        return p;
    }
    if (error) {
        char message[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        tern_fail(TERN_ERR_IO, "%s: pattern '%s': %s at byte %zu", function, regex, message,
                  (size_t)at);
    } else if (text)
        tern_fail(TERN_ERR_MEMORY, "%s: no memory for a pattern", function);
    free(text);
    free(p);
    return NULL;
}

tk_pattern *tk_pattern_literal(const char *bytes, size_t n)
{
    tk_pattern *p = calloc(1, sizeof *p);
    if (!p)
        return tern_fail_null(TERN_ERR_MEMORY, "tern_tokenizer: no memory for a pattern");
    p->n = n;
    p->text = tk_copy(bytes, n);
    if (p->text)
        return p;
    free(p);
    return NULL;
}

tk_pattern *tk_pattern_read(const char *function, const json_t *json)
{
    size_t n;
    const char *text = tk_string(json, "String", &n);
    if (text)
        return tk_pattern_literal(text, n);
    text = tk_string(json, "Regex", &n);
    if (!text || strlen(text) != n)
        return tern_fail_null(TERN_ERR_IO,
                              "%s: a pattern is {\"Regex\": text} or {\"String\": text}", function);
    return tk_pattern_regex(function, text);
}

void tk_pattern_free(tk_pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    free(p->text);
    free(p);
}

/* ---- matching ------------------------------------------------------------------------------ */

void tk_matching_end(tk_matching *m)
{
    pcre2_match_data_free(m->match);
    pcre2_match_context_free(m->context);
    pcre2_jit_stack_free(m->stack);
    *m = (tk_matching){.function = m->function};
}

static tern_status begin(tk_matching *m)
{
    if (m->match)
        return TERN_OK;
    m->match = pcre2_match_data_create(1, NULL);
    m->context = pcre2_match_context_create(NULL);
    m->stack = pcre2_jit_stack_create(32 << 10, 1 << 20, NULL); /* NULL without JIT support */
    if (!m->match || !m->context) {
        tk_matching_end(m);
        return tern_fail(TERN_ERR_MEMORY, "%s: no memory for a match", m->function);
    }
    pcre2_set_match_limit(m->context, 10000000);
    pcre2_set_heap_limit(m->context, 64 << 10); /* in KiB */
    pcre2_jit_stack_assign(m->context, NULL, m->stack);
    return TERN_OK;
}

static bool find_text(const tk_pattern *p, const char *text, size_t n, size_t *from)
{
    while (p->n && n - *from >= p->n) {
        const char *c = memchr(text + *from, p->text[0], n - *from - p->n + 1);
        if (!c)
            return false;
        *from = (size_t)(c - text);
        if (memcmp(c, p->text, p->n) == 0)
            return true;
        ++*from;
    }
    return false;
}

tern_status tk_find(const tk_pattern *p, tk_matching *m, const char *text, size_t n, size_t at,
                    size_t *from, size_t *to, bool *found)
{
    *from = at;
    *found = false;
    if (!p->code) {
        *found = find_text(p, text, n, from);
        *to = *from + p->n;
        return TERN_OK;
    }
    TK_TRY(begin(m));
    int rc =
        pcre2_match(p->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, m->match, m->context);
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(p->code, (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         m->match, m->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return TERN_OK;
    if (rc < 0) {
        char message[128] = "";
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
        return tern_fail(TERN_ERR_UNSUPPORTED, "%s: a pattern on %zu bytes: %s", m->function, n,
                         message);
    }
    PCRE2_SIZE *ends = pcre2_get_ovector_pointer(m->match);
    *from = ends[0];
    *to = ends[1] < ends[0] ? ends[0] : ends[1]; /* a lookahead with \K can set the start after
                                                    the end */
    *found = true;
    return TERN_OK;
}
