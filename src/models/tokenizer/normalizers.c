/* normalizers.c -- normalizers: Unicode normal forms, lowercase, replacements. */
#include "models/tokenizer/internal.h"

/* Applies a list of changes to a text and frees the list. */
static tern_status changed(tern_status status, const tk_text *in, tk_changes *list, size_t dropped,
                           tk_text *out)
{
    if (status == TERN_OK)
        status = tk_transform(in, list, dropped, out);
    free(list->list);
    return status;
}

/* ---- normal forms -------------------------------------------------------------------------- */

static bool is_ascii(const tk_text *in)
{
    for (size_t i = 0; i < in->n; i++)
        if ((unsigned char)in->data[i] >= 128)
            return false;
    return true;
}

static tern_status normal_form(const tk_text *in, tk_text *out, bool composed, bool compatible)
{
    tk_changes list = {0};
    if (is_ascii(in))
        return tk_text_add(out, in->data, in->n, in->origin);
    return changed(tk_normal_form(in->data, in->n, composed, compatible, &list), in, &list, 0, out);
}

#define FORM(NAME, COMPOSED, COMPATIBLE)                                                           \
    static tern_status NAME(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)  \
    {                                                                                              \
        (void)step, (void)m;                                                                       \
        return normal_form(in, out, COMPOSED, COMPATIBLE);                                         \
    }
FORM(nfd, false, false)
FORM(nfc, true, false)
FORM(nfkd, false, true)
FORM(nfkc, true, true)

/* ---- by character -------------------------------------------------------------------------- */

/* Writes the replacement of a character to to[] and returns its length, 0 if the character is
 * removed. */
typedef int (*char_rule)(const tk_step *step, uint32_t c, uint32_t to[3]);

static tern_status by_character(const tk_step *step, char_rule rule, const tk_text *in,
                                tk_text *out)
{
    for (size_t at = 0; at < in->n;) {
        uint32_t to[3];
        char bytes[4];
        tk_range origin = in->origin[at];
        int n = rule(step, tk_next(in->data, &at), to);
        for (int i = 0; i < n; i++)
            TK_TRY(tk_text_add_at(out, bytes, tk_put(to[i], bytes), origin));
    }
    return TERN_OK;
}

static int lower_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    return tk_lower(c, to);
}

static int no_mark_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    to[0] = c;
    return !tk_is_mark(c);
}

static int no_nonspacing_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    to[0] = c;
    return !tk_is_nonspacing(c);
}

/* Removes control characters and replaces any white space by a space. */
static int clean_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    bool blank = tk_is_white(c);
    to[0] = blank ? ' ' : c;
    return c != 0 && c != 0xfffd && (c == '\t' || c == '\n' || c == '\r' || !tk_is_other(c));
}

static int apart_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    bool chinese = (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
                   (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
                   (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
                   (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
    to[0] = to[2] = ' ';
    to[chinese] = c;
    return chinese ? 3 : 1;
}

/* sentencepiece's nmt: removes control characters and replaces blanks by spaces. */
static int nmt_rule(const tk_step *step, uint32_t c, uint32_t to[3])
{
    (void)step;
    bool away = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f ||
                c == 0x8f || c == 0x9f;
    bool blank = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                 (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                 c == 0xfeff || c == 0xfffd;
    to[0] = blank ? ' ' : c;
    return !away;
}

#define BY_CHARACTER(NAME, RULE)                                                                   \
    static tern_status NAME(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)  \
    {                                                                                              \
        (void)m;                                                                                   \
        return by_character(step, RULE, in, out);                                                  \
    }
BY_CHARACTER(lowercase, lower_rule)
BY_CHARACTER(strip_accents, no_mark_rule)
BY_CHARACTER(nmt, nmt_rule)

/* ---- BERT's -------------------------------------------------------------------------------- */

enum { CLEAN, CHINESE, ACCENTS, LOWER };

static tern_status bert_read(tk_step *step, const char *function, const json_t *json)
{
    (void)function;
    step->flags[CLEAN] = tk_bool(json, "clean_text", true);
    step->flags[CHINESE] = tk_bool(json, "handle_chinese_chars", true);
    step->flags[LOWER] = tk_bool(json, "lowercase", true);
    step->flags[ACCENTS] = tk_bool(json, "strip_accents", step->flags[LOWER]);
    return TERN_OK;
}

static tern_status bert(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    static const struct {
        int flag;
        char_rule rule; /* NULL stands for NFD */
    } rows[] = {{CLEAN, clean_rule},
                {CHINESE, apart_rule},
                {ACCENTS, NULL},
                {ACCENTS, no_nonspacing_rule},
                {LOWER, lower_rule}};
    TK_TRY(tk_text_add(out, in->data, in->n, in->origin));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tk_text next = {0};
        if (!step->flags[rows[i].flag])
            continue;
        tern_status status =
            rows[i].rule ? by_character(step, rows[i].rule, out, &next) : nfd(step, m, out, &next);
        tk_text_free(out);
        *out = next;
        TK_TRY(status);
    }
    return TERN_OK;
}

/* ---- texts --------------------------------------------------------------------------------- */

static tern_status prepend_read(tk_step *step, const char *function, const json_t *json)
{
    return tk_need_text(function, json, "prepend", &step->text, &step->n_text);
}

static tern_status prepend(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    (void)m;
    if (in->n == 0)
        return TERN_OK;
    TK_TRY(tk_text_add_at(out, step->text, step->n_text, in->origin[0]));
    return tk_text_add(out, in->data, in->n, in->origin);
}

static tern_status replace_read(tk_step *step, const char *function, const json_t *json)
{
    step->pattern = tk_pattern_read(function, json_object_get(json, "pattern"));
    return step->pattern ? tk_need_text(function, json, "content", &step->text, &step->n_text)
                         : TERN_ERR_IO;
}

/* Replaces matches; the origin of a replacement is that of the match's last character. */
static tern_status replace(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    size_t at = 0, done = 0;
    while (at < in->n) {
        size_t from, to;
        bool found;
        TK_TRY(tk_find(step->pattern, m, in->data, in->n, at, &from, &to, &found));
        if (!found || from == in->n)
            break;
        TK_TRY(tk_text_add(out, in->data + done, from - done, in->origin + done));
        TK_TRY(
            tk_text_add_at(out, step->text, step->n_text, in->origin[to > from ? to - 1 : from]));
        done = at = to;
        if (to == from && at < in->n)
            tk_next(in->data, &at);
    }
    return tk_text_add(out, in->data + done, in->n - done, in->origin + done);
}

static tern_status strip_read(tk_step *step, const char *function, const json_t *json)
{
    (void)function;
    step->flags[0] = tk_bool(json, "strip_left", true);
    step->flags[1] = tk_bool(json, "strip_right", true);
    return TERN_OK;
}

static tern_status strip(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    size_t from = 0, to = 0;
    bool begun = !step->flags[0];
    (void)m;
    for (size_t at = 0; at < in->n;) {
        size_t start = at;
        bool white = tk_is_white(tk_next(in->data, &at));
        if (!begun && !white)
            begun = true, from = start;
        if (!white || !step->flags[1])
            to = at;
    }
    if (!begun)
        return TERN_OK;
    return to > from ? tk_text_add(out, in->data + from, to - from, in->origin + from) : TERN_OK;
}

static tern_status byte_level(const tk_step *step, tk_matching *m, const tk_text *in, tk_text *out)
{
    (void)step, (void)m;
    for (size_t i = 0; i < in->n; i++) {
        char bytes[4];
        size_t n = tk_put(tk_byte_to_char((uint8_t)in->data[i]), bytes);
        TK_TRY(tk_text_add_at(out, bytes, n, in->origin[i]));
    }
    return TERN_OK;
}

const tk_kind tk_normalizers[] = {
    {"NFC", .normalize = nfc},
    {"NFD", .normalize = nfd},
    {"NFKC", .normalize = nfkc},
    {"NFKD", .normalize = nfkd},
    {"Lowercase", .normalize = lowercase},
    {"StripAccents", .normalize = strip_accents},
    {"BertNormalizer", bert_read, .normalize = bert},
    {"Prepend", prepend_read, .normalize = prepend},
    {"Replace", replace_read, .normalize = replace},
    {"Strip", strip_read, .normalize = strip},
    {"Nmt", .normalize = nmt},
    {"ByteLevel", .normalize = byte_level},
    {"Precompiled", tk_precompiled_read, .normalize = tk_precompiled},
    {NULL},
};
