/* unsupported.c -- what tern does without, and where it differs: unsupported.txt, fresh.txt, edges.txt, seeds.txt. */
#include "cases.h"
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 512 };

typedef struct line {
    char whole[400];
    char op[64], what[200];
    bool own;
} line;
static line lines[LINES];
static int n_lines;

/* Whether the text is a line of a list: an operation, one of the four words and what follows it, a reason. */
static bool read_line(line *l, const char *text, bool own)
{
    static const char *const words[] = {"dtype ", "arg ", "lacks ", "differs "};
    bool known = false;
    if (sscanf(text, "%63s | %199[^|]", l->op, l->what) != 2 || !strchr(strchr(text, '|') + 1, '|'))
        return false;
    for (size_t n = strlen(l->what); n > 0 && l->what[n - 1] == ' '; n--)
        l->what[n - 1] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        known |= strncmp(l->what, words[i], strlen(words[i])) == 0;
    snprintf(l->whole, sizeof l->whole, "%s", text);
    l->own = own;
    return known;
}

bool parity_read_unsupported(const char *path, bool own)
{
    FILE *in = fopen(path, "r");
    char text[400];
    bool good = in != NULL;
    while (good && fgets(text, sizeof text, in)) {
        text[strcspn(text, "\n")] = '\0';
        if (text[0] == '#' || text[0] == '\0')
            continue;
        good = n_lines < LINES && read_line(&lines[n_lines], text, own);
        n_lines += good;
    }
    if (!good)
        fprintf(stderr, "parity: %s cannot be read%s%s\n", path, in ? " from here on: " : "",
                in ? text : "");
    if (in)
        fclose(in);
    return good;
}

/* What a line's value is compared with: as it was written, or the dtype of a tensor. */
static const char *text_of(const parity_file *file, const case_argument *a)
{
    return a->numbers ? tern_dtype_name(file->tensor[a->number[0]].dtype) : a->text;
}

/* "name" (given), or "name kind value" (of that value). */
static bool has_argument(const parity_file *file, const parity_case *c, const char *what)
{
    for (int i = 0; i < c->n_arguments; i++) {
        const case_argument *a = &c->argument[i];
        size_t length = strlen(a->value.name);
        if (strncmp(what, a->value.name, length) != 0)
            continue;
        if (what[length] == '\0' && a->value.kind != TERN_VALUE_NONE)
            return true;
        if (what[length] == ' ' && fnmatch(what + length + 1, text_of(file, a), 0) == 0)
            return true;
    }
    return false;
}

int parity_unsupported(const parity_file *file, const parity_case *c)
{
    for (int i = 0; i < n_lines; i++) {
        const char *what = lines[i].what;
        if (fnmatch(lines[i].op, file->op, 0) != 0)
            continue;
        if (strncmp(what, "dtype ", 6) == 0 && fnmatch(what + 6, tern_dtype_name(c->dtype), 0) == 0)
            return i;
        if (strncmp(what, "arg ", 4) == 0 && has_argument(file, c, what + 4))
            return i;
    }
    return -1;
}

int parity_listed(const parity_file *file, const parity_case *c, const char *form, const char *text,
                  bool *differs)
{
    char whole[700];
    snprintf(whole, sizeof whole, "%s %s %s: %s", form, tern_dtype_name(c->dtype), c->kind, text);
    for (int i = 0; i < n_lines; i++) {
        const char *what = lines[i].what;
        if (fnmatch(lines[i].op, file->op, 0) != 0)
            continue;
        *differs = strncmp(what, "differs ", 8) == 0;
        if (*differs && fnmatch(what + 8, whole, 0) == 0)
            return i;
        if (strncmp(what, "lacks ", 6) == 0 && fnmatch(what + 6, whole, 0) == 0)
            return i;
    }
    return -1;
}

const char *parity_unsupported_line(int i, bool *own)
{
    if (i >= n_lines)
        return NULL;
    *own = lines[i].own;
    return lines[i].whole;
}
