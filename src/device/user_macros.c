/* user_macros.c -- expands macros in a kernel's parameters. Conditions (#if) are ignored: of
 * several definitions the last one is used. */
#include "device/user_macros.h"
#include <ctype.h>
#include <string.h>

enum { DEEPEST = 16, MOST_PARAMETERS = 16 };

typedef struct piece {
    const char *p;
    size_t n;
} piece;

typedef struct macro {
    piece parameters[MOST_PARAMETERS], body;
    int n; /* parameters; -1: it has no parentheses */
} macro;

typedef struct place {
    const char *source, *before;
    int depth;
} place;

size_t tern_word_length(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

size_t tern_number_length(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.' ||
           (n && strchr("+-", p[n]) && p[n] && strchr("eEpP", p[n - 1]) &&
            !(p[0] == '0' && tolower((unsigned char)p[1]) == 'x' && strchr("eE", p[n - 1]))))
        n++;
    return n;
}

const char *tern_closing(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += (*p == '(' || *p == '[' || *p == '{') - (*p == ')' || *p == ']' || *p == '}');
        if (depth == 0)
            return p + 1;
    }
    return p;
}

static bool is_same(piece a, const char *p, size_t n)
{
    return a.n == n && memcmp(a.p, p, n) == 0;
}

/* Splits the text behind a parenthesis at its commas, up to the one that closes it; returns a
 * pointer behind that one. */
static const char *split(const char *p, piece *to, int *n)
{
    *n = 0;
    for (;;) {
        p += strspn(p, " \t\r\n\\");
        const char *from = p;
        while (*p && *p != ',' && *p != ')')
            p = strchr("([{", *p) ? tern_closing(p) : p + 1;
        if (*n < MOST_PARAMETERS && (p > from || *p == ',' || *n))
            to[(*n)++] = (piece){from, (size_t)(p - from)};
        if (*p != ',')
            return *p ? p + 1 : p;
        p++;
    }
}

/* Sets *found to the last definition of a macro; returns the number of definitions. */
static int find(const place *at, const char *word, size_t n, macro *found)
{
    int times = 0;
    for (const char *p = at->source; (p = strstr(p, "#")) && p < at->before; p++) {
        const char *name = p + 1 + strspn(p + 1, " \t");
        if (strncmp(name, "define", 6) != 0)
            continue;
        name += 6;
        name += strspn(name, " \t");
        if (!is_same((piece){name, tern_word_length(name)}, word, n))
            continue;
        const char *body = name + n;
        found->n = -1;
        if (*body == '(')
            body = split(body + 1, found->parameters, &found->n);
        size_t length = strcspn(body, "\n");
        while (length && body[length - 1] == '\\' && body[length])
            length += 1 + strcspn(body + length + 1, "\n");
        found->body = (piece){body, length};
        times++;
    }
    return times;
}

static void expand(place at, tern_text *to, const char *p, size_t n);

/* Adds the body of macro m with the arguments in place of its parameters. */
static void substitute(place at, tern_text *to, const macro *m, const piece *arguments, int n)
{
    tern_text text = {0};
    for (size_t i = 0; i < m->body.n;) {
        const char *p = m->body.p + i;
        size_t word = tern_word_length(p), length = word ? word : 1;
        piece put = {p, *p == '\\' || *p == '\n' ? 0 : length};
        for (int k = 0; word && k < m->n && k < n; k++)
            if (is_same(m->parameters[k], p, word))
                put = arguments[k];
        tern_text_add_bytes(&text, put.p, put.n);
        i += length;
    }
    if (text.data)
        expand(at, to, text.data, text.length);
    to->failed = to->failed || text.failed;
    tern_text_free(&text);
}

static void expand(place at, tern_text *to, const char *p, size_t n)
{
    const char *end = p + n;
    macro m;
    while (p < end) {
        size_t word = tern_word_length(p);
        piece arguments[MOST_PARAMETERS];
        int given = 0, times = word && at.depth <= DEEPEST ? find(&at, p, word, &m) : 0;
        if (!times) {
            tern_text_add_bytes(to, p, word ? word : 1);
            p += word ? word : 1;
            continue;
        }
        const char *after = p + word, *open = after + strspn(after, " \t\r\n");
        if (m.n >= 0 && *open == '(')
            after = split(open + 1, arguments, &given);
        if (times > 1)
            tern_text_add(to, "?");
        place inner = at;
        inner.depth++;
        substitute(inner, to, &m, arguments, given);
        p = after;
    }
}

void tern_macros_expand(tern_text *to, const char *source, const char *before, const char *bytes,
                        size_t n)
{
    expand((place){source, before, 0}, to, bytes, n);
}
