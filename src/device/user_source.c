/* user_source.c -- translates OpenCL C to C++, word by word: address spaces, vector literals,
 * swizzles, and OpenCL's names of types and functions, which cl_kernels/user.h defines. A header
 * alone is not enough: neither GCC nor NVRTC accepts swizzles, (float4)(a, b), __local, or a
 * variable whose name is a keyword of C++. */
#include "device/user_source.h"
#include "device/backend.h"
#include "device/user_macros.h"
#include "device/user_words.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STRUCTS = 32 };

typedef struct reader {
    const char *p; /* the rest of the source */
    tern_user_source *made;
    tern_text *to;
    const char *before; /* the last word or sign before p that is no blank */
    size_t before_n;
    int depth;      /* the number of open braces */
    int lists;      /* the number of open parentheses; at depth 0 those of parameter lists */
    bool directive; /* p is in a line that begins with # */
    struct {
        const char *from, *end;
    } structs[MOST_STRUCTS]; /* the bodies of structs, whose members are not swizzles */
    int n_structs;
} reader;

static const char *past_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Returns the length of a comment, string or character constant at p; 0 if there is none. */
static size_t no_code(const char *p)
{
    if (p[0] == '/' && p[1] == '/')
        return strcspn(p, "\n");
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? (size_t)(end + 2 - p) : strlen(p);
    }
    if (*p != '"' && *p != '\'')
        return 0;
    size_t n = 1;
    while (p[n] && p[n] != *p && p[n] != '\n')
        n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    return p[n] == *p ? n + 1 : n;
}

/* ---- structs ----------------------------------------------------------------------------- */

static void find_structs(reader *r, const char *source)
{
    for (const char *p = source; *p && r->n_structs < MOST_STRUCTS;) {
        size_t n = no_code(p), word = tern_word_length(p);
        bool body = tern_word_is(p, word, "struct") || tern_word_is(p, word, "union");
        p += n ? n : word ? word : 1;
        if (!body)
            continue;
        p = past_blanks(p);
        p = past_blanks(p + tern_word_length(p));
        if (*p == '{') {
            r->structs[r->n_structs].from = p;
            r->structs[r->n_structs++].end = tern_closing(p);
        }
    }
}

static bool is_member(const reader *r, const char *word, size_t n)
{
    for (int i = 0; i < r->n_structs; i++)
        for (const char *p = r->structs[i].from; p < r->structs[i].end;) {
            size_t length = tern_word_length(p);
            if (length == n && memcmp(p, word, n) == 0)
                return true;
            p += length ? length : 1;
        }
    return false;
}

/* ---- translation ------------------------------------------------------------------------- */

static void put(reader *r, size_t n)
{
    tern_text_add_bytes(r->to, r->p, n);
    r->p += n;
}

static bool came(const reader *r, const char *word)
{
    return r->before && tern_word_is(r->before, r->before_n, word);
}

/* Returns whether the address space is that of a pointer's target: there is a * in the rest of the
 * declaration or type, or it is a parameter, which may be written as an array. In a macro, where
 * this is not known, a local array without a size counts as a parameter. */
static bool is_pointer(const reader *r, const char *p, bool local)
{
    if (!r->directive && r->depth == 0 && r->lists > 0)
        return true;
    p += strcspn(p, r->directive ? "*,;()=[\n" : "*,;()=[");
    return *p == '*' || (*p == '(' && *past_blanks(p + 1) == '*') ||
           (*p == '[' && *past_blanks(p + 1) == ']' && r->directive && local);
}

/* Translates __local and __constant: for a variable to a storage class, for a pointer's target to
 * nothing, or to const. */
static void put_space(reader *r, bool local, const char *after)
{
    const bool pointer = is_pointer(r, after, local);
    if (local && !pointer)
        tern_text_add(r->to, "TERN_LOCAL");
    else if (!local && pointer) {
        const char *next = past_blanks(after);
        bool has_loop = came(r, "const") || tern_word_is(next, tern_word_length(next), "const");
        tern_text_add(r->to, has_loop ? "" : "const");
    } else if (!local)
        tern_text_add(r->to, r->depth ? "static" : "TERN_CONSTANT");
}

/* Leaves out an attribute of OpenCL and returns true; false for other attributes. read_group reads
 * the size of reqd_work_group_size. */
static bool skip_attribute(reader *r)
{
    const char *open = past_blanks(r->p + strlen("__attribute__"));
    const char *end = *open == '(' ? tern_closing(open) : NULL;
    static const char *const known[] = {"reqd_work_group_size", "work_group_size_hint",
                                        "vec_type_hint", "opencl_unroll_hint"};
    for (size_t i = 0; end && i < sizeof known / sizeof *known; i++) {
        const char *at = strstr(open, known[i]);
        if (at && at < end) {
            for (; r->p < end; r->p++)
                if (*r->p == '\n')
                    tern_text_add(r->to, "\n");
            return true;
        }
    }
    return false;
}

static void put_word(reader *r, size_t n)
{
    const char *word = r->p;
    bool local = tern_word_is(word, n, "__local") || tern_word_is(word, n, "local");
    bool constant = tern_word_is(word, n, "__constant") || tern_word_is(word, n, "constant");
    if (tern_word_is(word, n, "__attribute__") && skip_attribute(r))
        return;
    if (tern_word_is(word, n, "barrier") || tern_word_is(word, n, "work_group_barrier"))
        r->made->meets = r->made->groups = true;
    if (local || tern_word_is(word, n, "get_local_id") || tern_word_is(word, n, "get_group_id") ||
        tern_word_is(word, n, "get_local_size") || tern_word_is(word, n, "get_num_groups"))
        r->made->groups = true;
    if (local || constant)
        put_space(r, local, word + n);
    else
        tern_word_add(r->to, word, n);
    r->before = word;
    r->before_n = n;
    r->p += n;
}

/* Translates a swizzle like ".xy" to a function that returns the elements, or if it is assigned to,
 * references to them. Returns false if there is no swizzle. */
static bool put_swizzle(reader *r)
{
    static const char *const halves[] = {"lo", "hi", "even", "odd"};
    char digits[17];
    size_t dot = r->p[0] == '-' ? 2 : 1, n = tern_word_length(r->p + dot);
    const char *word = r->p + dot, *next = past_blanks(word + n);
    bool assigned = (next[0] == '=' && next[1] != '=') ||
                    (strchr("+-*/%&|^", *next) && *next && next[1] == '=');
    if (n == 0 || is_member(r, word, n))
        return false;
    int places = tern_word_swizzle(word, n, digits);
    for (size_t i = 0; i < 4; i++)
        if (tern_word_is(word, n, halves[i])) {
            put(r, dot + n);
            tern_text_add(r->to, "()");
            return true;
        }
    if (places == 0)
        return false;
    put(r, dot);
    if (places == 1)
        tern_text_add(r->to, "s(0x%s)", digits);
    else
        tern_text_add(r->to, "%s<0x1%s>()", assigned ? "put" : "at", digits);
    r->p += n;
    return true;
}

/* Translates (float4)(a, b, c, d) to the vector's constructor and (struct pair){a, b} to
 * pair{a, b}. Returns false if there is no such literal. */
static bool put_literal(reader *r)
{
    const char *type = past_blanks(r->p + 1);
    if (tern_word_is(type, tern_word_length(type), "struct"))
        type = past_blanks(type + 6);
    size_t n = tern_word_length(type);
    const char *close = past_blanks(type + n), *next;
    if (n == 0 || *close != ')')
        return false;
    next = past_blanks(close + 1);
    bool value = !r->before || strchr("=(,+-*/?:{;&|<>!", *r->before) || came(r, "return");
    if ((*next == '(' && tern_word_is_vector(type, n)) || (*next == '{' && value)) {
        tern_word_add(r->to, type, n);
        r->p = next;
        return true;
    }
    return false;
}

static void put_sign(reader *r)
{
    char c = *r->p;
    bool value = r->before && (tern_word_length(r->before) || strchr(")]", *r->before));
    bool dot = c == '.' || (c == '-' && r->p[1] == '>');
    if (c == '(' && put_literal(r))
        return;
    if (dot && value && put_swizzle(r)) {
        r->before = "]";
        r->before_n = 1;
        return;
    }
    r->depth += (c == '{') - (c == '}');
    if (!r->directive)
        r->lists = strchr("{};", c) ? 0 : r->lists + (c == '(') - (c == ')');
    if (!isspace((unsigned char)c)) {
        r->before = r->p;
        r->before_n = 1;
    }
    put(r, 1);
}

/* Begins a line of the preprocessor; leaves out OpenCL's pragmas. */
static void begin_directive(reader *r)
{
    const char *word = past_blanks(r->p + 1);
    bool pragma = tern_word_is(word, tern_word_length(word), "pragma");
    word = past_blanks(word + tern_word_length(word));
    if (pragma && tern_word_is(word, tern_word_length(word), "OPENCL"))
        r->p += strcspn(r->p, "\n");
    else
        put(r, 1);
    r->directive = true;
}

static void walk(reader *r)
{
    bool line_begins = true;
    while (*r->p) {
        size_t n = no_code(r->p), word = tern_word_length(r->p);
        if (*r->p == '\n' && (r->p == r->made->source || r->p[-1] != '\\')) {
            line_begins = true;
            r->directive = false;
        } else if (!isspace((unsigned char)*r->p)) {
            if (*r->p == '#' && line_begins) {
                begin_directive(r);
                continue;
            }
            line_begins = false;
        }
        if (n)
            put(r, n);
        else if (word && isdigit((unsigned char)*r->p)) {
            r->before = r->p;
            r->before_n = tern_number_length(r->p);
            put(r, r->before_n);
        } else if (word)
            put_word(r, word);
        else
            put_sign(r);
    }
}

/* ---- the kernel -------------------------------------------------------------------------- */

/* Returns the parenthesis after the kernel's name in its definition; NULL if there is none. */
static const char *find_parameters(const char *source, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = source; *p;) {
        size_t skip = no_code(p), word = tern_word_length(p);
        if (!skip && word == n && memcmp(p, name, n) == 0) {
            const char *open = past_blanks(p + n),
                       *close = *open == '(' ? tern_closing(open) : NULL;
            if (close && *past_blanks(close) == '{')
                return open;
        }
        p += skip ? skip : word ? word : 1;
    }
    return NULL;
}

/* Reads the numbers of reqd_work_group_size between the kernel's name and the definition before
 * it. */
static void read_group(tern_user_source *made, const char *source, const char *open)
{
    static const char word[] = "reqd_work_group_size";
    const char *found = NULL;
    for (const char *p = source; (p = strstr(p, word)) && p < open; p++)
        found = p;
    if (!found || memchr(found, '{', (size_t)(open - found)))
        return;
    tern_text numbers = {0};
    const char *from = past_blanks(found + sizeof word - 1), *end = tern_closing(from);
    tern_macros_expand(&numbers, source, open, from + 1, (size_t)(end - from - 2));
    const char *p = numbers.data;
    for (int i = 0; p && i < 3; i++) {
        char *after;
        p += strspn(p, " ?");
        made->group[i] = strtoll(p, &after, 0);
        p = after + strspn(after, " \t,uU");
    }
    tern_text_free(&numbers);
}

/* Returns the kind of a parameter, which so far is `takes`, with the next word or sign of its
 * declaration. */
static int taken(int takes, const char *p, size_t n)
{
    static const struct {
        char word[9];
        uint8_t takes;
    } words[] = {{"local", TERN_USER_LOCAL},
                 {"__local", TERN_USER_LOCAL},
                 {"*", TERN_USER_TENSOR},
                 {"[", TERN_USER_TENSOR},
                 {"?", TERN_USER_UNKNOWN}, /* a macro that is defined more than once */
                 {"int", 4},
                 {"uint", 4},
                 {"unsigned", 4},
                 {"signed", 4},
                 {"float", 4 | TERN_USER_REAL},
                 {"double", 8 | TERN_USER_REAL},
                 {"half", 2 | TERN_USER_REAL},
                 {"long", 8},
                 {"ulong", 8},
                 {"short", 2},
                 {"ushort", 2},
                 {"char", 1},
                 {"uchar", 1},
                 {"bool", 1}};
    const bool vector = tern_word_is_vector(p, n);
    const size_t length = vector ? strcspn(p, "123468") : n ? n : 1;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (tern_word_is(p, length, words[i].word)) {
            const int own = words[i].takes, had = takes & TERN_USER_BYTES;
            takes |= (own & ~TERN_USER_BYTES) | (vector ? TERN_USER_VECTOR : 0);
            if (had && (own == 4 || had == TERN_USER_UNKNOWN)) /* "short int" keeps 2; ? stays */
                return takes;
            return own & TERN_USER_BYTES ? takes - had + (own & TERN_USER_BYTES) : takes;
        }
    return takes;
}

static bool list_parameters(tern_user_parameters *made, const char *list)
{
    int depth = 0;
    bool any = false;
    for (const char *p = list; *p;) {
        size_t n = tern_word_length(p);
        if (made->n >= TERN_USER_ARGUMENTS)
            return false;
        made->takes[made->n] = (uint8_t)taken(made->takes[made->n], p, n);
        any = any || (n && !tern_word_is(p, n, "void")) || *p == '*';
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
        made->n += *p == ',' && depth == 0;
        p += n ? n : 1;
    }
    made->n += any;
    return true;
}

tern_status tern_user_parameters_read(tern_user_parameters *made, const char *source,
                                      const char *name, const char **open)
{
    tern_text list = {0};
    *made = (tern_user_parameters){0};
    *open = find_parameters(source, name);
    if (!*open)
        return TERN_ERR_ARGUMENT;
    tern_macros_expand(&list, source, *open, *open + 1, (size_t)(tern_closing(*open) - *open - 2));
    tern_status status = list.failed ? TERN_ERR_MEMORY : TERN_OK;
    if (!list.failed && !list_parameters(made, list.data ? list.data : ""))
        status = TERN_ERR_ARGUMENT;
    for (int i = 0; find_parameters(*open + 1, name) && i < made->n; i++)
        made->takes[i] |= TERN_USER_UNKNOWN; /* either of two definitions may be compiled */
    tern_text_free(&list);
    return status;
}

static tern_status read_kernel(tern_user_source *made, const char *source, const char *name)
{
    const char *open;
    tern_status status = tern_user_parameters_read(&made->parameters, source, name, &open);
    if (status == TERN_ERR_ARGUMENT)
        return open
                   ? tern_fail(TERN_ERR_ARGUMENT,
                               "tern_kernel_compile: kernel \"%s\" has more than %d parameters",
                               name, TERN_USER_ARGUMENTS)
                   : tern_fail(TERN_ERR_ARGUMENT,
                               "tern_kernel_compile: the source has no kernel called \"%s\"", name);
    TERN_TRY(status);
    read_group(made, source, open);
    tern_word_add(&made->call, name, strlen(name));
    tern_text_add(&made->call, "(");
    for (int i = 0; i < made->parameters.n; i++)
        tern_text_add(&made->call, "%s%s(%d)", i ? ", " : "",
                      made->parameters.takes[i] & TERN_USER_LOCAL ? "TERN_SHARED" : "TERN_WORD", i);
    tern_text_add(&made->call, ")");
    return TERN_OK;
}

tern_status tern_user_source_read(tern_user_source *made, const char *source, const char *name)
{
    *made = (tern_user_source){.source = source};
    reader r = {.p = source, .made = made, .to = &made->text};
    tern_status status = read_kernel(made, source, name);
    if (status == TERN_OK) {
        tern_text_add(&made->text, "#line 1 \"kernel\"\n");
        find_structs(&r, source);
        walk(&r);
        tern_text_add(&made->text, "\n");
        if (made->text.failed || made->call.failed)
            status = TERN_ERR_MEMORY;
    }
    if (status != TERN_OK)
        tern_user_source_free(made);
    return status;
}

void tern_user_source_free(tern_user_source *made)
{
    tern_text_free(&made->text);
    tern_text_free(&made->call);
}
