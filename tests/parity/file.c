/* file.c -- reads a file of cases, and makes tensors of what it has. */
#include "cases.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static void damaged(const char *path, const char *what)
{
    fprintf(stderr, "parity: %s: %s\n", path, what);
    exit(2);
}

/* Memory that lives as long as the file. */
static void *block(parity_file *file, size_t bytes)
{
    void **head = calloc(1, sizeof *head + bytes);
    if (!head)
        abort();
    *head = file->blocks;
    file->blocks = head;
    return head + 1;
}

static char *read_all(const char *path, size_t *bytes)
{
    gzFile in = gzopen(path, "rb");
    if (!in)
        return NULL;
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room);
    int n;
    while (text && (n = gzread(in, text + used, (unsigned)(room - used - 1))) > 0) {
        used += (size_t)n;
        if (used + 1 == room)
            text = realloc(text, room *= 2);
    }
    if (!text || gzclose(in) != Z_OK)
        damaged(path, "cannot be read");
    text[used] = '\0';
    *bytes = used;
    return text;
}

/* The next word of a line; the line is cut there. */
static char *word(char **line)
{
    char *start = *line;
    *line += strcspn(*line, " ");
    if (**line)
        *(*line)++ = '\0';
    return start;
}

/* "2,3" or "-" into list[room]; returns how many. */
static int read_numbers(const char *text, int64_t *list, int room)
{
    int n = 0;
    while (*text && strcmp(text, "-") != 0 && n < room) {
        char *end;
        list[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

static int commas(const char *text)
{
    int n = 1;
    for (; *text; text++)
        n += *text == ',';
    return n;
}

static const int64_t *number_list(parity_file *file, const char *text, int *n)
{
    int room = commas(text);
    int64_t *list = block(file, (size_t)room * sizeof *list);
    *n = read_numbers(text, list, room);
    return list;
}

static const double *real_list(parity_file *file, const char *text, int *n)
{
    double *list = block(file, (size_t)commas(text) * sizeof *list);
    for (*n = 0; *text;) {
        char *end;
        list[(*n)++] = strtod(text, &end);
        text = *end == ',' ? end + 1 : end;
    }
    return list;
}

static tern_dtype dtype_named(const char *name)
{
    for (int t = 1; tern_dtype_size((tern_dtype)t) > 0; t++)
        if (strcmp(name, tern_dtype_name((tern_dtype)t)) == 0)
            return (tern_dtype)t;
    return TERN_DTYPE_DEFAULT;
}

static void read_argument(parity_file *file, parity_case *c, char *line)
{
    case_argument *a = &c->argument[c->n_arguments++];
    const char *name = word(&line);
    char *text = block(file, strlen(line) + 1);
    strcpy(text, line);
    a->text = text;
    const char *kind = word(&line);
    int n = 0;
    if (strcmp(kind, "tensor") == 0 || strcmp(kind, "tensors") == 0) {
        a->number = number_list(file, line, &a->numbers);
        a->value =
            kind[6] ? tern_value_tensors(name, NULL, a->numbers) : tern_value_tensor(name, NULL);
    } else if (strcmp(kind, "int") == 0) {
        a->value = tern_value_int(name, strtoll(line, NULL, 10));
    } else if (strcmp(kind, "real") == 0) {
        a->value = tern_value_real(name, strtod(line, NULL));
    } else if (strcmp(kind, "bool") == 0) {
        a->value = tern_value_bool(name, *line == '1');
    } else if (strcmp(kind, "ints") == 0) {
        const int64_t *list = number_list(file, line, &n);
        a->value = tern_value_ints(name, list, n);
    } else if (strcmp(kind, "reals") == 0) {
        const double *list = real_list(file, line, &n);
        a->value = tern_value_reals(name, list, n);
    } else if (strcmp(kind, "text") == 0) {
        a->value = tern_value_text(name, line);
    } else if (strcmp(kind, "dtype") == 0) {
        a->value = tern_value_dtype(name, dtype_named(line));
    } else {
        a->value = tern_value_none(name);
    }
}

static void read_tensor(parity_file *file, char *line)
{
    stored_tensor *t = &file->tensor[file->n_tensors++];
    t->dtype = dtype_named(word(&line));
    t->shape.ndim = read_numbers(word(&line), t->shape.dims, TERN_MAX_DIMS);
    t->stride.ndim = read_numbers(word(&line), t->stride.dims, TERN_MAX_DIMS);
    t->offset = strtoll(word(&line), NULL, 10);
    t->count = strtoll(line, NULL, 10);
}

static void read_gradient(case_result *g, char *line)
{
    g->argument = (int)strtol(word(&line), NULL, 10);
    g->item = (int)strtol(word(&line), NULL, 10);
    g->tensor = strtoll(line, NULL, 10);
}

/* What a case has beside arguments and results. */
static void read_rest(parity_case *c, const char *what, char *line)
{
    if (strcmp(what, "grad") == 0 && c->n_grads < CASE_RESULTS) {
        read_gradient(&c->grad[c->n_grads++], line);
    } else if (strcmp(what, "grad2") == 0 && c->n_grads2 < CASE_RESULTS) {
        read_gradient(&c->grad2[c->n_grads2++], line);
    } else if (strcmp(what, "inplace") == 0 && strncmp(line, "refused ", 8) == 0) {
        c->in_place_refused = line + 8;
    } else if (strcmp(what, "inplace") == 0) {
        c->has_in_place = true;
        c->in_place.tensor = strtoll(line, NULL, 10);
    } else if (strcmp(what, "kind") == 0) {
        c->kind = line;
    } else if (strcmp(what, "error") == 0) {
        c->error = line;
    } else if (strcmp(what, "refused") == 0) {
        c->refused = line;
    }
}

static void read_line(parity_file *file, char *line)
{
    const char *what = word(&line);
    parity_case *c = file->n_cases ? &file->cases[file->n_cases - 1] : NULL;
    if (strcmp(what, "tensor") == 0) {
        read_tensor(file, line);
    } else if (strcmp(what, "tolerance") == 0) {
        tern_dtype dtype = dtype_named(word(&line));
        file->tolerance[dtype].absolute = strtod(word(&line), NULL);
        file->tolerance[dtype].relative = strtod(line, NULL);
    } else if (strcmp(what, "case") == 0) {
        file->cases[file->n_cases].dtype = dtype_named(line);
        file->cases[file->n_cases].number = file->n_cases;
        file->cases[file->n_cases].kind = "";
        file->n_cases++;
    } else if (c && strcmp(what, "arg") == 0 && c->n_arguments < CASE_ARGUMENTS) {
        read_argument(file, c, line);
    } else if (c && strcmp(what, "out") == 0 && c->n_outs < CASE_RESULTS) {
        case_result *r = &c->out[c->n_outs++];
        r->tensor = strtoll(word(&line), NULL, 10);
        r->rounding = strtod(line, NULL);
    } else if (c && strcmp(what, "after") == 0 && c->n_afters < 8) {
        c->after[c->n_afters].argument = (int)strtol(word(&line), NULL, 10);
        c->after[c->n_afters++].tensor = strtoll(line, NULL, 10);
    } else if (strcmp(what, "op") == 0) {
        file->op = line;
    } else if (c) {
        read_rest(c, what, line);
    }
}

static int count_lines(const char *text, const char *start)
{
    int n = 0;
    for (const char *s = text; s && strncmp(s, "data\n", 5) != 0; s = strchr(s, '\n')) {
        s += *s == '\n';
        n += strncmp(s, start, strlen(start)) == 0;
    }
    return n;
}

bool parity_open(parity_file *file, const char *folder, const char *op)
{
    char path[1024];
    size_t bytes = 0;
    snprintf(path, sizeof path, "%s/%s.gz", folder, op);
    memset(file, 0, sizeof *file);
    file->text = read_all(path, &bytes);
    if (!file->text)
        return false;
    size_t tensors = (size_t)count_lines(file->text, "tensor "),
           cases = (size_t)count_lines(file->text, "case ");
    file->tensor = block(file, (tensors + 1) * sizeof *file->tensor);
    file->cases = block(file, (cases + 1) * sizeof *file->cases);
    char *line = file->text, *end;
    for (; (end = strchr(line, '\n')) && strncmp(line, "data\n", 5) != 0; line = end + 1) {
        *end = '\0';
        read_line(file, line);
    }
    const unsigned char *data = (const unsigned char *)line + 5;
    for (int64_t i = 0; end && i < file->n_tensors; i++) {
        file->tensor[i].data = data;
        data += (size_t)file->tensor[i].count * tern_dtype_size(file->tensor[i].dtype);
    }
    if (!end || data != (const unsigned char *)file->text + bytes)
        damaged(path, "is damaged");
    return true;
}

void parity_close(parity_file *file)
{
    void **next;
    for (void **head = file->blocks; head; head = next) {
        next = *head;
        free(head);
    }
    free(file->text);
    memset(file, 0, sizeof *file);
}
