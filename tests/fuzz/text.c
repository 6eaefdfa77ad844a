/* text.c -- steps as text, printed and read. */
#include "fuzz.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

FILE *fuzz_log;

/* ---- printing ----------------------------------------------------------------------------- */

/* So that it is read as a real again. */
static void print_real(FILE *file, double value)
{
    char text[40];
    snprintf(text, sizeof text, "%.17g", value);
    fprintf(file, "%s%s", text, strpbrk(text, ".en") ? "" : ".0");
}

static void print_scalar(FILE *file, tern_scalar scalar)
{
    if (scalar.kind == TERN_SCALAR_REAL)
        print_real(file, scalar.value.real);
    else if (scalar.kind == TERN_SCALAR_BOOL)
        fputs(scalar.value.integer ? "true" : "false", file);
    else
        fprintf(file, "%lld", (long long)scalar.value.integer);
}

static void print_list(FILE *file, const fuzz_value *v)
{
    fputc('[', file);
    for (int i = 0; i < v->count; i++) {
        if (i)
            fputc(',', file);
        if (v->kind == TERN_VALUE_TENSORS)
            fprintf(file, "x%d", v->slots[i]);
        else if (v->kind == TERN_VALUE_INTS)
            fprintf(file, "%lld", (long long)v->ints[i]);
        else
            print_real(file, v->reals[i]);
    }
    fputc(']', file);
}

static void print_value(FILE *file, const fuzz_value *v)
{
    switch (v->kind) {
    case TERN_VALUE_NONE:
        fputs("None", file);
        break;
    case TERN_VALUE_TENSOR:
        fprintf(file, "x%d", v->slots[0]);
        break;
    case TERN_VALUE_SCALAR:
        print_scalar(file, v->scalar);
        break;
    case TERN_VALUE_TEXT:
        fprintf(file, "'%s'", v->text);
        break;
    case TERN_VALUE_DTYPE:
        fputs(v->dtype ? tern_dtype_name(v->dtype) : "default", file);
        break;
    default:
        print_list(file, v);
    }
}

void fuzz_print_step(FILE *file, const fuzz_step *step)
{
    fprintf(file, "%s(", tern_named_op_name(step->op));
    for (int i = 0; i < step->n; i++) {
        fprintf(file, "%s%s=", i ? ", " : "", step->values[i].name);
        print_value(file, &step->values[i]);
    }
    fputc(')', file);
    if (step->capacity != FUZZ_RESULTS)
        fprintf(file, "@%d", step->capacity);
    fputc('\n', file);
    fflush(file);
}

/* ---- reading: each takes text from *s on, and moves it ------------------------------------ */

static bool read_dtype(const char *word, tern_dtype *dtype)
{
    *dtype = strcmp(word, "?") == 0 ? (tern_dtype)99 : TERN_DTYPE_DEFAULT;
    for (int d = TERN_F32; d <= TERN_F8_E5M2; d++)
        if (strcmp(word, tern_dtype_name((tern_dtype)d)) == 0)
            *dtype = (tern_dtype)d;
    return *dtype || strcmp(word, "default") == 0;
}

static void read_number(const char *word, fuzz_value *v)
{
    v->kind = TERN_VALUE_SCALAR;
    v->scalar = strpbrk(word, ".en") ? tern_scalar_real(strtod(word, NULL))
                                     : tern_scalar_int(strtoll(word, NULL, 10));
}

static bool read_word(const char *word, fuzz_value *v)
{
    if (strcmp(word, "None") == 0)
        v->kind = TERN_VALUE_NONE;
    else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        v->kind = TERN_VALUE_SCALAR, v->scalar = tern_scalar_bool(*word == 't');
    else if (*word == 'x')
        v->kind = TERN_VALUE_TENSOR, v->slots[0] = atoi(word + 1);
    else if (read_dtype(word, &v->dtype))
        v->kind = TERN_VALUE_DTYPE;
    else if (isdigit((unsigned char)*word) || *word == '-' || *word == 'i' || *word == 'n')
        read_number(word, v);
    else
        return false;
    return true;
}

static bool take_word(const char **s, char word[48])
{
    size_t length = strcspn(*s, ",)]\n");
    if (length >= 48)
        return false;
    memcpy(word, *s, length);
    word[length] = '\0';
    *s += length;
    return true;
}

static bool read_list(const char **s, fuzz_value *v)
{
    char word[48];
    v->kind = TERN_VALUE_INTS;
    for (v->count = 0; **s != ']'; v->count++) {
        fuzz_value one;
        if (v->count == FUZZ_LIST || !take_word(s, word) || !read_word(word, &one))
            return false;
        if (one.kind == TERN_VALUE_TENSOR) {
            v->kind = TERN_VALUE_TENSORS;
            v->slots[v->count] = one.slots[0];
        } else {
            if (one.scalar.kind == TERN_SCALAR_REAL)
                v->kind = TERN_VALUE_REALS;
            v->reals[v->count] = tern_scalar_to_real(one.scalar);
            v->ints[v->count] = tern_scalar_to_int(one.scalar);
        }
        *s += **s == ',';
    }
    ++*s;
    return true;
}

static bool read_value(const char **s, fuzz_value *v)
{
    char word[48];
    if (**s == '[') {
        ++*s;
        return read_list(s, v);
    }
    if (**s == '\'') {
        size_t length = strcspn(++*s, "'\n");
        if (length >= sizeof v->text)
            return false;
        memcpy(v->text, *s, length);
        v->text[length] = '\0';
        v->kind = TERN_VALUE_TEXT;
        *s += length + 1;
        return true;
    }
    return take_word(s, word) && read_word(word, v);
}

static bool read_name(const char **s, const char *ends, char *name, size_t size)
{
    size_t length = strcspn(*s, ends);
    if (length >= size || !(*s)[length] || (*s)[length] == '\n')
        return false;
    memcpy(name, *s, length);
    name[length] = '\0';
    *s += length + 1;
    return true;
}

static bool read_step(const char *s, fuzz_step *step)
{
    char name[64];
    step->n = 0;
    step->capacity = FUZZ_RESULTS;
    if (!read_name(&s, "(\n", name, sizeof name) || !(step->op = fuzz_find(name)))
        return false;
    while (*s != ')') {
        if (step->n == TERN_MAX_PARAMETERS)
            return false;
        fuzz_value *v = &step->values[step->n++];
        if (!read_name(&s, "=\n", v->name, sizeof v->name) || !read_value(&s, v))
            return false;
        s += strspn(s, ", ");
    }
    if (s[1] == '@')
        step->capacity = atoi(s + 2);
    return step->capacity >= 0 && step->capacity <= FUZZ_RESULTS;
}

/* ---- programs ----------------------------------------------------------------------------- */

/* "-> x3 -": where the results of the last step go. */
static void move_results(const char *line)
{
    for (int i = 0; i < fuzz_result_count && *(line += strspn(line, " ")); i++) {
        int slot = *line == 'x' ? atoi(line + 1) : -1;
        if (slot >= 0 && slot < FUZZ_SLOTS)
            fuzz_put(slot, fuzz_results[i]);
        line += strcspn(line, " \n");
    }
}

int fuzz_run_text(const char *text)
{
    static fuzz_step step;
    int number = 0;
    for (const char *line = text; *line; line += *line == '\n') {
        number++;
        if (line[0] == '-' && line[1] == '>') {
            move_results(line + 2);
        } else if (*line != '#' && *line != '\n') {
            if (!read_step(line, &step))
                return number;
            fuzz_run(&step);
        }
        line += strcspn(line, "\n");
    }
    return 0;
}
