/* pre_tokenizers.c -- pre-tokenizers, which split a text by patterns, character classes or
 * bytes. */
#include "models/tokenizer/internal.h"

/* ---- splitting ----------------------------------------------------------------------------- */

/* Consecutive parts of a text, matches and the text between them. */
typedef struct part {
    size_t from, to;
    bool match;
} part;
typedef struct parts {
    part *list;
    size_t n, capacity;
} parts;

static tern_status add_part(parts *p, size_t from, size_t to, bool match)
{
    TK_TRY(TK_RESERVE(p->list, p->capacity, p->n, 1));
    p->list[p->n++] = (part){from, to, match};
    return TERN_OK;
}

/* Joins the parts by the behavior; a removed part becomes empty. */
static void join(parts *p, tk_behavior behavior)
{
    size_t n = 0;
    bool before = false;
    if (behavior == TK_MERGED_WITH_NEXT) { /* from the end; the result grows downwards */
        size_t top = p->n;
        for (size_t i = p->n; i-- > 0;) {
            part one = p->list[i];
            if (one.match && !before && top < p->n)
                p->list[top].from = one.from;
            else
                p->list[--top] = one;
            before = one.match;
        }
        n = p->n - top;
        memmove(p->list, p->list + top, n * sizeof *p->list);
    } else
        for (size_t i = 0; i < p->n; i++) {
            part one = p->list[i];
            bool joins = behavior == TK_MERGED_WITH_PREVIOUS ? one.match && !before && n
                         : behavior == TK_CONTIGUOUS         ? one.match == before && n
                                                             : false;
            if (behavior == TK_REMOVED && one.match)
                one.to = one.from;
            if (joins)
                p->list[n - 1].to = one.to;
            else
                p->list[n++] = one;
            before = one.match;
        }
    p->n = n;
}

/* Finds the parts of a piece's text. */
typedef tern_status (*finder)(const tk_step *step, tk_matching *m, const char *text, size_t n,
                              parts *p);

static tern_status cut_piece(const tk_step *step, tk_matching *m, finder find, tk_behavior behavior,
                             const tk_text *text, const tk_piece *piece, parts *p, tk_pieces *out)
{
    p->n = 0;
    TK_TRY(find(step, m, text->data + piece->from, piece->n, p));
    join(p, behavior);
    for (size_t i = 0; i < p->n; i++) {
        size_t from = piece->from + p->list[i].from, n = p->list[i].to - p->list[i].from;
        TK_TRY(tk_pieces_add(out, text, from, n));
    }
    return TERN_OK;
}

static tern_status cut(const tk_step *step, tk_matching *m, finder find, tk_behavior behavior,
                       const tk_pieces *in, tk_pieces *out)
{
    parts p = {0};
    tern_status status = TERN_OK;
    for (size_t i = 0; i < in->n && status == TERN_OK; i++)
        status =
            in->list[i].token >= 0
                ? tk_pieces_add_token(out, in->list[i].token, in->text.origin[in->list[i].from])
                : cut_piece(step, m, find, behavior, &in->text, &in->list[i], &p, out);
    free(p.list);
    return status;
}

/* ---- by a pattern -------------------------------------------------------------------------- */

static tern_status by_pattern(const tk_step *step, tk_matching *m, const char *text, size_t n,
                              parts *p)
{
    bool inverted = step->flags[0];
    size_t done = 0;
    for (size_t at = 0; at < n;) {
        size_t from, to;
        bool found;
        TK_TRY(tk_find(step->pattern, m, text, n, at, &from, &to, &found));
        if (!found || from == n)
            break;
        if (from > done)
            TK_TRY(add_part(p, done, from, inverted));
        TK_TRY(add_part(p, from, to, !inverted));
        done = at = to;
        if (to == from)
            tk_next(text, &at);
    }
    return n > done ? add_part(p, done, n, inverted) : TERN_OK;
}

static tern_status behavior_read(tk_step *step, const char *function, const json_t *json,
                                 tk_behavior otherwise)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    size_t n;
    const char *behavior = tk_string(json, "behavior", &n);
    int i = 0;
    while (i < 5 && behavior && strcmp(names[i], behavior) != 0)
        i++;
    step->behavior = behavior ? (tk_behavior)i : otherwise;
    return i < 5 ? TERN_OK
                 : tern_fail(TERN_ERR_IO, "%s: a behavior of splits is %s", function, behavior);
}

static tern_status split_read(tk_step *step, const char *function, const json_t *json)
{
    TK_TRY(behavior_read(step, function, json, TK_ISOLATED));
    step->flags[0] = tk_bool(json, "invert", false);
    step->pattern = tk_pattern_read(function, json_object_get(json, "pattern"));
    return step->pattern ? TERN_OK : TERN_ERR_IO;
}

static tern_status split(const tk_step *step, tk_matching *m, const tk_pieces *in, tk_pieces *out)
{
    return cut(step, m, by_pattern, step->behavior, in, out);
}

/* Unicode's word characters; \w in a pattern of a file includes more numbers. */
#define WORD "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}"

static tern_status whitespace_read(tk_step *step, const char *function, const json_t *json)
{
    (void)json;
    step->flags[0] = true;
    step->behavior = TK_REMOVED;
    step->pattern = tk_pattern_regex(function, "[" WORD "]+|[^" WORD "\\s]+");
    return step->pattern ? TERN_OK : TERN_ERR_MEMORY;
}

/* ---- by characters ------------------------------------------------------------------------- */

typedef bool (*char_class)(uint32_t c);

static tern_status by_class(char_class class, const char *text, size_t n, parts *p)
{
    size_t done = 0;
    for (size_t at = 0; at < n;) {
        size_t start = at;
        if (!class(tk_next(text, &at)))
            continue;
        if (start > done)
            TK_TRY(add_part(p, done, start, false));
        TK_TRY(add_part(p, start, at, true));
        done = at;
    }
    return n > done ? add_part(p, done, n, false) : TERN_OK;
}

#define BY_CLASS(NAME, CLASS)                                                                      \
    static tern_status NAME(const tk_step *step, tk_matching *m, const char *text, size_t n,       \
                            parts *p)                                                              \
    {                                                                                              \
        (void)step, (void)m;                                                                       \
        return by_class(CLASS, text, n, p);                                                        \
    }
BY_CLASS(at_white, tk_is_white)
BY_CLASS(at_punctuation, tk_is_punctuation)
BY_CLASS(at_numeric, tk_is_numeric)

static tern_status whitespace_split(const tk_step *step, tk_matching *m, const tk_pieces *in,
                                    tk_pieces *out)
{
    return cut(step, m, at_white, TK_REMOVED, in, out);
}

static tern_status bert(const tk_step *step, tk_matching *m, const tk_pieces *in, tk_pieces *out)
{
    tk_pieces words = {0};
    tern_status status = cut(step, m, at_white, TK_REMOVED, in, &words);
    if (status == TERN_OK)
        status = cut(step, m, at_punctuation, TK_ISOLATED, &words, out);
    tk_pieces_free(&words);
    return status;
}

static tern_status digits_read(tk_step *step, const char *function, const json_t *json)
{
    (void)function;
    step->behavior = tk_bool(json, "individual_digits", false) ? TK_ISOLATED : TK_CONTIGUOUS;
    return TERN_OK;
}

static tern_status digits(const tk_step *step, tk_matching *m, const tk_pieces *in, tk_pieces *out)
{
    return cut(step, m, at_numeric, step->behavior, in, out);
}

static tern_status punctuation_read(tk_step *step, const char *function, const json_t *json)
{
    return behavior_read(step, function, json, TK_ISOLATED);
}

static tern_status punctuation(const tk_step *step, tk_matching *m, const tk_pieces *in,
                               tk_pieces *out)
{
    return cut(step, m, at_punctuation, step->behavior, in, out);
}

static tern_status delimiter_read(tk_step *step, const char *function, const json_t *json)
{
    char bytes[4];
    TK_TRY(tk_need_char(function, json, "delimiter", 0, &step->character));
    step->pattern = tk_pattern_literal(bytes, tk_put(step->character, bytes));
    return step->pattern ? TERN_OK : TERN_ERR_MEMORY;
}

/* ---- bytes --------------------------------------------------------------------------------- */

static tern_status byte_level_read(tk_step *step, const char *function, const json_t *json)
{
    static const char regex[] =
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    step->flags[1] = tk_bool(json, "add_prefix_space", true);
    step->behavior = TK_ISOLATED;
    if (!tk_bool(json, "use_regex", true))
        return TERN_OK;
    step->pattern = tk_pattern_regex(function, regex);
    return step->pattern ? TERN_OK : TERN_ERR_MEMORY;
}

/* Rewrites the bytes of a piece. */
typedef tern_status (*rewriter)(const tk_step *step, const tk_text *text, const tk_piece *piece,
                                tk_text *to);

static tern_status rewrite(const tk_step *step, rewriter rule, const tk_pieces *in, tk_pieces *out)
{
    for (size_t i = 0; i < in->n; i++) {
        const tk_piece *piece = &in->list[i];
        if (piece->token >= 0) {
            TK_TRY(tk_pieces_add_token(out, piece->token, in->text.origin[piece->from]));
            continue;
        }
        tk_piece copy = {out->text.n, 0, -1};
        TK_TRY(rule(step, &in->text, piece, &out->text));
        copy.n = out->text.n - copy.from;
        TK_TRY(TK_RESERVE(out->list, out->capacity, out->n, 1));
        out->list[out->n++] = copy;
    }
    return TERN_OK;
}

static tern_status space_before(const tk_step *step, const tk_text *text, const tk_piece *piece,
                                tk_text *to)
{
    (void)step;
    if (text->data[piece->from] != ' ')
        TK_TRY(tk_text_add_at(to, " ", 1, text->origin[piece->from]));
    return tk_text_add(to, text->data + piece->from, piece->n, text->origin + piece->from);
}

static tern_status bytes_as_chars(const tk_step *step, const tk_text *text, const tk_piece *piece,
                                  tk_text *to)
{
    (void)step;
    for (size_t i = piece->from; i < piece->from + piece->n; i++) {
        char bytes[4];
        TK_TRY(tk_text_add_at(to, bytes, tk_put(tk_byte_to_char((uint8_t)text->data[i]), bytes),
                              text->origin[i]));
    }
    return TERN_OK;
}

static tern_status byte_level(const tk_step *step, tk_matching *m, const tk_pieces *in,
                              tk_pieces *out)
{
    tk_pieces before = {0}, words = {0};
    tern_status status = TERN_OK;
    if (step->flags[1])
        status = rewrite(step, space_before, in, &before);
    const tk_pieces *last = step->flags[1] ? &before : in;
    if (step->pattern && status == TERN_OK) {
        status = cut(step, m, by_pattern, TK_ISOLATED, last, &words);
        last = &words;
    }
    if (status == TERN_OK)
        status = rewrite(step, bytes_as_chars, last, out);
    tk_pieces_free(&before);
    tk_pieces_free(&words);
    return status;
}

/* ---- sentencepiece's ----------------------------------------------------------------------- */

enum { ALWAYS, FIRST, NEVER };

static tern_status metaspace_read(tk_step *step, const char *function, const json_t *json)
{
    static const char *const names[] = {"always", "first", "never"};
    size_t n;
    char bytes[4];
    const char *scheme = tk_string(json, "prepend_scheme", &n);
    TK_TRY(tk_need_char(function, json, "replacement", 0x2581, &step->character));
    step->numbers[0] = tk_bool(json, "add_prefix_space", true) ? ALWAYS : NEVER;
    for (int i = 0; scheme && i < 3; i++)
        if (strcmp(scheme, names[i]) == 0)
            step->numbers[0] = i;
    step->flags[1] = tk_bool(json, "split", true);
    step->n_text = tk_put(step->character, bytes);
    step->text = tk_copy(bytes, step->n_text);
    step->pattern = step->text ? tk_pattern_literal(bytes, step->n_text) : NULL;
    return step->pattern ? TERN_OK : TERN_ERR_MEMORY;
}

static tern_status spaces_as_marks(const tk_step *step, const tk_text *text, const tk_piece *piece,
                                   tk_text *to)
{
    const char *data = text->data + piece->from;
    bool there =
        data[0] == ' ' || (piece->n >= step->n_text && memcmp(data, step->text, step->n_text) == 0);
    if (!there && (step->numbers[0] == ALWAYS ||
                   (step->numbers[0] == FIRST && text->origin[piece->from].from == 0)))
        TK_TRY(tk_text_add_at(to, step->text, step->n_text, text->origin[piece->from]));
    for (size_t i = 0; i < piece->n; i++)
        if (data[i] == ' ')
            TK_TRY(tk_text_add_at(to, step->text, step->n_text, text->origin[piece->from + i]));
        else
            TK_TRY(tk_text_add(to, data + i, 1, text->origin + piece->from + i));
    return TERN_OK;
}

static tern_status metaspace(const tk_step *step, tk_matching *m, const tk_pieces *in,
                             tk_pieces *out)
{
    tk_pieces marked = {0};
    if (!step->flags[1])
        return rewrite(step, spaces_as_marks, in, out);
    tern_status status = rewrite(step, spaces_as_marks, in, &marked);
    if (status == TERN_OK)
        status = cut(step, m, by_pattern, TK_MERGED_WITH_NEXT, &marked, out);
    tk_pieces_free(&marked);
    return status;
}

const tk_kind tk_pre_tokenizers[] = {
    {"ByteLevel", byte_level_read, .split = byte_level},
    {"Split", split_read, .split = split},
    {"BertPreTokenizer", .split = bert},
    {"Metaspace", metaspace_read, .split = metaspace},
    {"Digits", digits_read, .split = digits},
    {"Whitespace", whitespace_read, .split = split},
    {"WhitespaceSplit", .split = whitespace_split},
    {"Punctuation", punctuation_read, .split = punctuation},
    {"CharDelimiterSplit", delimiter_read, .split = split},
    {NULL},
};
