/* csv.c -- tables of numbers and names. A first pass counts rows and fields, a second reads
 * them. */
#include "base/magic.h"
#include "base/os.h"
#include "base/option.h"
#include "data/file.h"
#include "data/name_lists.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_FIELD = 1 << 20, MOST_COLUMNS = 1 << 16 };

static const char function[] = "tern_datasets_csv";

/* A position in the text, and the last field that was read. */
typedef struct reader {
    const char *path;
    const unsigned char *at, *end;
    char separator, comment; /* comment is '\0' if the file has no comments */
    int64_t line;            /* line of the field, from 1 on */
    int64_t next_line;
    char *field; /* text of the field, LONGEST_FIELD + 1 bytes */
    size_t length;
    bool quoted;
    bool row_ends; /* the field ends its row */
} reader;

static tern_status wrong(const reader *r, const char *what)
{
    return tern_fail(TERN_ERR_IO, "%s: %s, line %lld: %s", function, r->path, (long long)r->line,
                     what);
}

static tern_status put(reader *r, unsigned char c)
{
    if (r->length == LONGEST_FIELD)
        return wrong(r, "a field of more than 1 MiB");
    r->next_line += c == '\n' || (c == '\r' && (r->at + 1 == r->end || r->at[1] != '\n'));
    r->field[r->length++] = (char)c;
    return TERN_OK;
}

static tern_status quoted_part(reader *r)
{
    for (r->at++; r->at < r->end; r->at++) {
        if (*r->at == '"' && (r->at + 1 == r->end || r->at[1] != '"')) {
            r->at++;
            return TERN_OK;
        }
        r->at += *r->at == '"';
        TERN_TRY(put(r, *r->at));
    }
    return wrong(r, "a quote is not closed");
}

/* Returns the length of the line end at r->at (LF, CR LF or CR), or 0 if r->at is not at a line
 * end. */
static int line_end(const reader *r)
{
    if (r->at == r->end || (*r->at != '\n' && *r->at != '\r'))
        return 0;
    return *r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n' ? 2 : 1;
}

static bool is_comment(const reader *r, unsigned char c)
{
    return r->comment && c == (unsigned char)r->comment;
}

static void skip_to_line_end(reader *r)
{
    while (r->at < r->end && !line_end(r))
        r->at++;
}

/* Reads the next field. The end of the text ends a row. */
static tern_status next_field(reader *r)
{
    r->line = r->next_line;
    r->length = 0;
    r->quoted = r->at < r->end && *r->at == '"';
    if (r->quoted)
        TERN_TRY(quoted_part(r));
    while (r->at < r->end && *r->at != (unsigned char)r->separator && !line_end(r) &&
           !is_comment(r, *r->at)) {
        if (r->quoted || *r->at == '"')
            return wrong(r, r->quoted ? "text behind a quoted field"
                                      : "a quote within a field that does not begin with one");
        TERN_TRY(put(r, *r->at++));
    }
    r->field[r->length] = '\0';
    if (strlen(r->field) != r->length)
        return wrong(r, "a NUL in a field");
    r->row_ends = r->at == r->end || *r->at != (unsigned char)r->separator;
    if (!r->row_ends) {
        r->at++;
        return TERN_OK;
    }
    skip_to_line_end(r); /* skips a comment */
    r->next_line += line_end(r) > 0;
    r->at += line_end(r);
    return TERN_OK;
}

/* Skips empty lines and lines with only a comment. Returns whether a row follows. */
static bool more_rows(reader *r)
{
    while (r->at < r->end) {
        const unsigned char *begin = r->at;
        while (r->comment && r->at < r->end && (*r->at == ' ' || *r->at == '\t'))
            r->at++;
        bool comment = r->at < r->end && is_comment(r, *r->at);
        if (!comment && (r->at != begin || !line_end(r))) {
            r->at = begin;
            return true;
        }
        skip_to_line_end(r);
        r->next_line += line_end(r) > 0;
        r->at += line_end(r);
    }
    return false;
}

/* Sets r to the beginning of the text, after the lines to skip. */
static void rewind_to(reader *r, const unsigned char *text, int64_t size, int64_t skip)
{
    bool bom = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;
    r->at = text + (bom ? 3 : 0);
    r->end = text + size;
    r->line = r->next_line = 1;
    for (; skip > 0 && r->at < r->end; skip--, r->next_line++) {
        skip_to_line_end(r);
        r->at += line_end(r);
    }
}

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct table {
    int64_t rows;
    int fields;
    int *to; /* for each field its column of values, -1 for none, -2 for the label */
    int columns;
    tern_names header, labels; /* labels: all texts of the label column, by row */
    float *values;
} table;

static tern_status count(reader *r, table *t, bool header)
{
    for (bool first = true; more_rows(r); first = false) {
        int fields = 0;
        do {
            TERN_TRY(next_field(r));
            if (fields++ == MOST_COLUMNS)
                return wrong(r, "more than 65536 fields");
            if (first && header)
                TERN_TRY(tern_names_add(&t->header, r->field));
        } while (!r->row_ends);
        if (first)
            t->fields = fields;
        if (fields != t->fields)
            return tern_fail(TERN_ERR_IO,
                             "%s: %s, line %lld: %d fields, where the first line has %d", function,
                             r->path, (long long)r->line, fields, t->fields);
        t->rows += !first || !header;
    }
    return TERN_OK;
}

static tern_status find_column(const reader *r, const table *t, const char *name, int *found)
{
    char *end;
    if (t->header.n) {
        *found = (int)tern_names_find(&t->header, name);
    } else {
        long i = strtol(name, &end, 10);
        *found = *name && !*end && i >= 0 && i < t->fields ? (int)i : -1;
    }
    if (*found >= 0)
        return TERN_OK;
    return tern_fail(TERN_ERR_ARGUMENT, "%s: %s has no column %.80s", function, r->path, name);
}

static tern_status choose(const reader *r, table *t, const tern_csv_options *o)
{
    int at;
    t->to = tern_alloc(sizeof *t->to * (size_t)(t->fields + 1));
    if (!t->to)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < t->fields; i++)
        t->to[i] = o->columns ? -1 : 0;
    if (o->label) {
        TERN_TRY(find_column(r, t, o->label, &at));
        t->to[at] = -2;
    }
    for (int i = 0; o->columns && i < o->n_columns; i++) {
        if (!o->columns[i])
            return tern_fail_argument_null(function, "a column");
        TERN_TRY(find_column(r, t, o->columns[i], &at));
        if (t->to[at] != -1)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: column %.80s twice", function, o->columns[i]);
        t->to[at] = t->columns++;
    }
    for (int i = 0; !o->columns && i < t->fields; i++)
        if (t->to[i] == 0)
            t->to[i] = t->columns++;
    if (t->columns == 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: %s has no column of values", function, r->path);
    return TERN_OK;
}

/* ---- numbers ----------------------------------------------------------------------------- */

/* Converts decimal numbers, nan and inf, with blanks around; rejects other forms of strtod
 * (hexadecimal, nan with payload). */
static bool to_number(const char *text, double *x)
{
    char *end;
    while (*text == ' ' || *text == '\t')
        text++;
    const char *digits = text + (*text == '-' || *text == '+');
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return false;
    *x = tern_os_strtod(text, &end);
    if (end == text || strchr(text, '('))
        return false;
    while (*end == ' ' || *end == '\t')
        end++;
    return !*end;
}

/* Returns whether the field, without blanks around, is one of n words. */
static bool is_word(const reader *r, const char *const *words, int n)
{
    if (!words || n <= 0)
        return false;
    const char *begin = r->field, *end = r->field + r->length;
    while (begin < end && (*begin == ' ' || *begin == '\t'))
        begin++;
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    for (int i = 0; i < n; i++)
        if (strlen(words[i]) == (size_t)(end - begin) &&
            memcmp(words[i], begin, (size_t)(end - begin)) == 0)
            return true;
    return false;
}

/* The default na_values of pandas. */
static const char *const absent[] = {
    "",     "#N/A", "#N/A N/A", "#NA",  "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A",  "NA",       "NULL", "NaN",     "None",     "n/a",  "nan",  "null"};
enum { ABSENT = sizeof absent / sizeof *absent };

/* Prepares the field for strtod: removes separators of thousands, and writes '.' for the decimal
 * point. */
static void normalize(reader *r, const tern_csv_options *o)
{
    char *to = r->field;
    bool digit = false, whole = true;
    for (const char *at = r->field; *at; at++) {
        bool next = at[1] >= '0' && at[1] <= '9';
        if (whole && o->thousands && *at == o->thousands && digit && next)
            continue;
        digit = *at >= '0' && *at <= '9';
        *to = *at;
        if (o->decimal && *at == o->decimal) {
            *to = '.';
            whole = false;
        } else if (*at == '.' && o->decimal && o->decimal != '.')
            *to = 'x'; /* makes the field no number */
        else if (*at == '.')
            whole = false;
        to++;
    }
    *to = '\0';
}

static tern_status value(reader *r, int field, const tern_csv_options *o, float *to)
{
    double x = NAN;
    char shown[41] = "";
    if (o->thousands || o->decimal) {
        snprintf(shown, sizeof shown, "%.40s", r->field);
        if (!is_word(r, o->na_values, o->n_na_values))
            normalize(r, o);
    }
    if (!is_word(r, o->na_values, o->n_na_values) && !to_number(r->field, &x)) {
        bool word = is_word(r, absent, ABSENT);
        if (!word || !o->empty_is_nan)
            return tern_fail(TERN_ERR_IO, "%s: %s, line %lld, column %d: '%.40s' is not a number%s",
                             function, r->path, (long long)r->line, field,
                             *shown ? shown : r->field,
                             word ? "; with .empty_is_nan such words are NaN" : "");
        x = NAN;
    }
    *to = (float)x;
    return TERN_OK;
}

static tern_status read_rows(reader *r, table *t, const tern_csv_options *o)
{
    for (int64_t row = o->no_header ? 0 : -1; more_rows(r); row++)
        for (int i = 0; i < t->fields; i++) {
            TERN_TRY(next_field(r));
            if (row < 0 || t->to[i] == -1)
                continue;
            if (t->to[i] == -2)
                TERN_TRY(tern_names_add(&t->labels, r->field));
            else
                TERN_TRY(value(r, i, o, t->values + row * t->columns + t->to[i]));
        }
    return TERN_OK;
}

/* ---- labels ------------------------------------------------------------------------------ */

static bool to_whole(const char *text, int64_t *x)
{
    char *end;
    if (!*text)
        return false;
    *x = strtoll(text, &end, 10);
    return !*end && (*text == '-' || (*text >= '0' && *text <= '9'));
}

/* Returns the label column: its integers, or, if some label is none, indices of names, which become
 * classes in sorted order. */
static tern_tensor *label_column(table *t, tern_names *classes)
{
    tern_tensor *y = tern_empty(TERN_SHAPE(t->rows), TERN_I64, "cpu");
    int64_t *to = y ? tern_data(y) : NULL;
    bool whole = true;
    for (int64_t i = 0; to && i < t->rows && whole; i++)
        whole = to_whole(t->labels.of[i], &to[i]);
    if (!to || whole)
        return y;
    for (int64_t i = 0; i < t->rows; i++)
        if (tern_names_add(classes, t->labels.of[i]) != TERN_OK)
            return NULL;
    tern_names_sort(classes);
    for (int64_t i = 0; i < t->rows; i++)
        to[i] = tern_names_find_sorted(classes, t->labels.of[i]);
    return y;
}

static tern_dataset *data_set(reader *r, table *t, const tern_csv_options *o)
{
    TERN_SCOPE_HERE;
    tern_names classes = {0};
    tern_tensor *x = tern_empty(TERN_SHAPE(t->rows, t->columns), TERN_F32, "cpu"), *y = NULL;
    t->values = x && t->rows ? tern_data(x) : NULL;
    if (!x || read_rows(r, t, o) != TERN_OK)
        return NULL;
    if (o->label && !(y = label_column(t, &classes))) {
        tern_names_free(&classes);
        return NULL;
    }
    tern_tensor *const both[] = {x, y};
    tern_dataset *d = tern_data_tensor_dataset_of(both, y ? 2 : 1);
    if (d)
        d->classes = classes;
    else
        tern_names_free(&classes);
    return d;
}

/* Checks for characters with two meanings, and words that are NULL. */
static tern_status check(const tern_csv_options *o)
{
    const char separator = o->separator ? o->separator : ',';
    for (int i = 0; o->na_values && i < o->n_na_values; i++)
        if (!o->na_values[i])
            return tern_fail_argument_null(function, "a word of na_values");
    if (o->skiprows < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "%s: skiprows is %lld", function,
                         (long long)o->skiprows);
    if (o->comment && (o->comment == separator || o->comment == '"'))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: comment is '%c', as the separator or the quote",
                         function, o->comment);
    if (o->thousands && o->thousands == (o->decimal ? o->decimal : '.'))
        return tern_fail(TERN_ERR_ARGUMENT, "%s: thousands is '%c', as the decimal point", function,
                         o->thousands);
    return TERN_OK;
}

/* Makes the data set in two passes: the first counts rows and fields, the second reads them. */
static tern_dataset *read_text(reader *r, const unsigned char *text, int64_t size,
                               const tern_csv_options *o)
{
    table t = {.rows = 0};
    tern_dataset *d = NULL;
    rewind_to(r, text, size, o->skiprows);
    if (count(r, &t, !o->no_header) == TERN_OK && choose(r, &t, o) == TERN_OK) {
        rewind_to(r, text, size, o->skiprows);
        d = data_set(r, &t, o);
    }
    tern_free(t.to);
    tern_names_free(&t.header);
    tern_names_free(&t.labels);
    return d;
}

/* Returns the kind of a file that is no text (it has a NUL, or is the HTML page of a failed
 * download), or NULL. */
static const tern_magic *other_kind(const unsigned char *text, int64_t size)
{
    const int64_t n = size < TERN_MAGIC_BYTES ? size : TERN_MAGIC_BYTES;
    bool binary = memchr(text, '\0', (size_t)n) || *text == '<';
    return binary ? tern_magic_of(text, (size_t)n) : NULL;
}

tern_dataset *tern_datasets_csv(const char *path, const tern_csv_options *options)
{
    const tern_csv_options o = tern_read_csv(options);
    tern_data_file file;
    tern_dataset *d = NULL;
    int64_t size = 0;
    if (check(&o) != TERN_OK || tern_data_file_open(&file, path, function) != TERN_OK)
        return NULL;
    unsigned char *text = tern_data_file_unpacked(&file, &size, function);
    reader r = {.path = path, .separator = o.separator ? o.separator : ',', .comment = o.comment};
    r.field = text ? tern_alloc(LONGEST_FIELD + 1) : NULL;
    const tern_magic *kind = r.field ? other_kind(text, size) : NULL;
    if (kind)
        tern_fail(TERN_ERR_IO, "%s: %s is no table but %s", function, path, kind->name);
    else if (r.field)
        d = read_text(&r, text, size, &o);
    tern_free(r.field);
    tern_free(text);
    tern_data_file_close(&file);
    return d;
}
