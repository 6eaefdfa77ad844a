/* vocabulary_lists.c -- reads the vocab and the merges of tokenizer.json, hundreds of thousands of
 * rows, directly from the text; jansson, which allocates an object for each value, reads the rest.
 * If the lists have unusual content (a duplicate key, an invalid number, text that is not UTF-8),
 * jansson reads the whole file and reports the error. */
#include "models/tokenizer/model.h"

/* The range of a list in the text, its first row, the number of rows, and the length of their
 * longest text. */
typedef struct rows_of {
    const char *from, *to, *rows;
    size_t count, longest;
} rows_of;

typedef struct both_lists {
    rows_of vocab, merges;
} both_lists;

/* ---- zero-terminated JSON ------------------------------------------------------------------ */

static const char *blank(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r')
        at++;
    return at;
}

/* A string at *at; *at moves past the string and the blanks after it. */
typedef struct quoted {
    const char *text;
    size_t n;
    bool escaped;
} quoted;

static bool read_quoted(const char **at, quoted *q)
{
    const unsigned char *c = (const unsigned char *)*at;
    unsigned char all = 0;
    bool escaped = false;
    if (*c++ != '"')
        return false;
    const char *text = (const char *)c;
    for (; *c != '"'; c++) {
        if (*c < 0x20)
            return false;
        if (*c == '\\' && (escaped = true, *++c < 0x20))
            return false;
        all |= *c;
    }
    *q = (quoted){text, (size_t)((const char *)c - text), escaped};
    *at = blank((const char *)c + 1);
    return all < 0x80 || tk_utf8_end(text, q->n) == q->n;
}

/* Returns the value of four hexadecimal digits, or -1. */
static int32_t hexadecimal(const char *at)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char c = at[i], low = (char)(c | 32);
        if (!(c >= '0' && c <= '9') && !(low >= 'a' && low <= 'f'))
            return -1;
        value = value * 16 + (c <= '9' ? c - '0' : low - 'a' + 10);
    }
    return value;
}

/* Reads \uXXXX, or a surrogate pair of them, after the backslash; returns 0 if it is no
 * character. */
static uint32_t character(const char **at)
{
    int32_t high = hexadecimal(*at + 1), low;
    *at += 5;
    if (high < 0xd800 || high > 0xdfff)
        return high < 0 ? 0 : (uint32_t)high;
    if (high > 0xdbff || (*at)[0] != '\\' || (*at)[1] != 'u' ||
        (low = hexadecimal(*at + 2)) < 0xdc00 || low > 0xdfff)
        return 0;
    *at += 6;
    return 0x10000 + (((uint32_t)high & 0x3ff) << 10 | ((uint32_t)low & 0x3ff));
}

/* Removes q's escapes; buffer has q->n bytes. Returns false for a wrong escape, and for a zero,
 * which keys cannot contain. */
static bool unescape(quoted *q, char *buffer)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t n = 0;
    for (const char *at = q->text, *end = at + q->n; at < end;) {
        if (*at != '\\') {
            buffer[n++] = *at++;
            continue;
        }
        const char *plain = *++at == 'u' ? NULL : strchr(from, *at);
        const uint32_t c = plain        ? (at++, (uint8_t)to[plain - from])
                           : *at == 'u' ? character(&at)
                                        : 0;
        if (c == 0)
            return false;
        n += tk_put(c, buffer + n);
    }
    q->text = buffer;
    q->n = n;
    return true;
}

/* Returns the end of a value of any kind, or NULL if none is found; jansson checks the value. */
static const char *skip(const char *at)
{
    int64_t depth = 0;
    quoted q;
    do {
        if (*at == '"') {
            if (!read_quoted(&at, &q))
                return NULL;
            continue;
        }
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        if (*at == 0 || depth < 0)
            return NULL;
        at++;
        while (depth == 0 && *at && !strchr(",]} \n\t\r", *at))
            at++;
    } while (depth > 0);
    return blank(at);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Reads "text": number. */
static bool vocab_row(const char **at, quoted *q, uint64_t *number)
{
    if (!read_quoted(at, q) || **at != ':')
        return false;
    const char *digits = blank(*at + 1), *c = digits;
    for (*number = 0; *c >= '0' && *c <= '9' && c - digits < 10; c++)
        *number = *number * 10 + (uint64_t)(*c - '0');
    *at = blank(c);
    return c > digits && (*digits != '0' || c == digits + 1) && (**at == ',' || **at == '}');
}

/* Reads "a b" or ["a", "b"]; second->text is NULL for the former. */
static bool merge_row(const char **at, quoted *first, quoted *second)
{
    const bool both = **at == '[';
    if (both)
        *at = blank(*at + 1);
    *second = (quoted){0};
    if (!read_quoted(at, first))
        return false;
    if (both) {
        if (**at != ',')
            return false;
        *at = blank(*at + 1);
        if (!read_quoted(at, second) || **at != ']')
            return false;
        *at = blank(*at + 1);
    }
    return **at == ',' || **at == ']';
}

/* Counts the rows of a list and returns the text after the list; NULL if a row is unusual. */
static const char *rows(const char *at, bool merges, rows_of *list)
{
    const char end = merges ? ']' : '}';
    quoted a, b = {0};
    uint64_t number;
    *list = (rows_of){.from = at, .rows = blank(at + 1)};
    for (at = list->rows; *at != end; list->count++) {
        at = list->count ? blank(at + 1) : at; /* after the comma */
        if (!(merges ? merge_row(&at, &a, &b) : vocab_row(&at, &a, &number)))
            return NULL;
        list->longest = a.n > list->longest ? a.n : list->longest;
        list->longest = b.n > list->longest ? b.n : list->longest;
    }
    list->to = at + 1;
    return blank(list->to);
}

/* ---- the places of the lists --------------------------------------------------------------- */

typedef const char *(*member)(both_lists *lists, const quoted *key, const char *value);

/* Calls `each` for the members of an object, whose keys have no escapes, and returns the text after
 * the object; NULL if it is unusual. */
static const char *members(const char *at, both_lists *lists, member each)
{
    quoted key;
    for (at = blank(at + 1); *at != '}';) {
        if (!read_quoted(&at, &key) || key.escaped || *at != ':')
            return NULL;
        at = each(lists, &key, blank(at + 1));
        if (!at || (*at != ',' && *at != '}'))
            return NULL;
        if (*at == ',')
            at = blank(at + 1);
    }
    return blank(at + 1);
}

static bool is_key(const quoted *key, const char *name)
{
    return key->n == strlen(name) && memcmp(key->text, name, key->n) == 0;
}

static const char *of_model(both_lists *lists, const quoted *key, const char *value)
{
    const bool merges = is_key(key, "merges");
    rows_of *list = merges ? &lists->merges : &lists->vocab;
    if (!merges && !is_key(key, "vocab"))
        return skip(value);
    return list->from || *value != (merges ? '[' : '{') ? NULL : rows(value, merges, list);
}

static const char *of_file(both_lists *lists, const quoted *key, const char *value)
{
    if (!is_key(key, "model"))
        return skip(value);
    return lists->vocab.from || lists->merges.from || *value != '{'
               ? NULL
               : members(value, lists, of_model);
}

/* Parses the text without the rows of the lists; returns NULL if the rest is no object. */
static json_t *parse_rest(const both_lists *lists, const char *bytes, size_t n)
{
    const bool ahead = lists->merges.from && lists->merges.from < lists->vocab.from;
    const rows_of *const in_order[] = {ahead ? &lists->merges : &lists->vocab,
                                       ahead ? &lists->vocab : &lists->merges};
    const char *at = bytes, *end = bytes + n;
    char *text = malloc(n + 1), *to = text;
    for (int i = 0; text && i < 2; i++)
        if (in_order[i]->from) {
            const size_t ahead_of = (size_t)(in_order[i]->rows - at);
            memcpy(to, at, ahead_of);
            to += ahead_of;
            at = in_order[i]->to - 1; /* the end of the list */
        }
    if (text)
        memcpy(to, at, (size_t)(end - at));
    json_t *json =
        text ? json_loadb(text, (size_t)(to - text) + (size_t)(end - at), JSON_ALLOW_NUL, NULL)
             : NULL;
    free(text);
    return json;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool read_vocab(const rows_of *list, tk_vocab *vocab, char *buffer, tern_status *status)
{
    const char *at = list->rows;
    *status = tk_vocab_reserve(vocab, list->count);
    for (size_t i = 0; i < list->count && *status == TERN_OK; i++, at = blank(at + 1)) {
        quoted q;
        uint64_t number;
        if (!vocab_row(&at, &q, &number) || number > 4 * (uint64_t)list->count + 65536 ||
            (q.escaped && !unescape(&q, buffer)))
            return false;
        *status = tk_vocab_add(vocab, q.text, q.n, (uint32_t)number);
    }
    return *status == TERN_OK && vocab->count == list->count;
}

/* buffer has memory for four texts. */
static bool read_merges(const rows_of *list, tk_model *model, size_t prefix, char *buffer,
                        tern_status *status)
{
    const char *at = list->rows;
    char *other = buffer + list->longest, *whole = other + list->longest;
    *status = tk_pairs_reserve(&model->merges, list->count);
    for (size_t i = 0; i < list->count && *status == TERN_OK; i++, at = blank(at + 1)) {
        quoted a, b;
        uint32_t ids[3];
        if (!merge_row(&at, &a, &b) || (a.escaped && !unescape(&a, buffer)) ||
            (b.escaped && !unescape(&b, other)))
            return false;
        const char *text[2] = {a.text, b.text};
        size_t n[2] = {a.n, b.n};
        if ((!b.text && !tk_merge_split(text, n)) ||
            tk_merge_find(&model->vocab, text, n, prefix, whole, ids) < 3)
            return false;
        tk_pairs_set(&model->merges, ids[0], ids[1], (uint32_t)i, ids[2]);
    }
    return *status == TERN_OK;
}

json_t *tk_lists_read(tk_model *model, const char *bytes, size_t n, tern_status *status)
{
    both_lists lists = {0};
    size_t prefix;
    const char *at = blank(bytes);
    *status = TERN_OK;
    if (*at != '{' || !members(at, &lists, of_file) || !lists.vocab.from)
        return NULL;
    json_t *json = parse_rest(&lists, bytes, n);
    tk_string(json_object_get(json, "model"), "continuing_subword_prefix", &prefix);
    const size_t longest =
        lists.vocab.longest > lists.merges.longest ? lists.vocab.longest : lists.merges.longest;
    char *buffer = json ? malloc(4 * longest + 1) : NULL;
    if (buffer && read_vocab(&lists.vocab, &model->vocab, buffer, status) &&
        (!lists.merges.from || read_merges(&lists.merges, model, prefix, buffer, status))) {
        free(buffer);
        return json;
    }
    free(buffer);
    json_decref(json);
    tk_model_free(model);
    *model = (tk_model){0};
    return NULL;
}
