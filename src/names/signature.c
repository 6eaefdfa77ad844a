/* signature.c -- reads the parameters of an operation from the text of its signature. */
#include "names/rows.h"
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *text;
    tern_parameter_kind one, list; /* list 0: no parameter of type T[] */
} kinds[] = {
    {"Tensor", TERN_PARAMETER_TENSOR, TERN_PARAMETER_TENSORS},
    {"int", TERN_PARAMETER_INT, TERN_PARAMETER_INTS},
    {"float", TERN_PARAMETER_REAL, TERN_PARAMETER_REALS},
    {"bool", TERN_PARAMETER_BOOL, 0},
    {"Scalar", TERN_PARAMETER_SCALAR, 0},
    {"str", TERN_PARAMETER_TEXT, 0},
    {"ScalarType", TERN_PARAMETER_DTYPE, 0},
};

static void copy_part(char *to, size_t size, const char *from, size_t length)
{
    if (length >= size)
        length = size - 1;
    memcpy(to, from, length);
    to[length] = '\0';
}

/* Returns the end of a default: the next comma or parenthesis outside of brackets and quotes. */
static const char *value_end(const char *s)
{
    int depth = 0;
    for (bool quoted = false; *s; s++) {
        quoted ^= *s == '\'';
        depth += *s == '[' ? 1 : *s == ']' ? -1 : 0;
        if (!quoted && depth == 0 && (*s == ',' || *s == ')'))
            break;
    }
    return s;
}

/* Reads "int[2]? name=default"; returns its end, or NULL if it is malformed. */
static const char *read_parameter(const char *s, tern_parameter *p)
{
    size_t length = strcspn(s, "[? ");
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strlen(kinds[i].text) == length && memcmp(kinds[i].text, s, length) == 0)
            p->kind = s[length] == '[' ? kinds[i].list : kinds[i].one;
    s += length;
    if (!p->kind)
        return NULL;
    if (*s == '[') {
        char *end;
        p->length = (int)strtol(s + 1, &end, 10);
        s = end + 1;
    }
    if (*s == '?') {
        p->optional = true;
        s++;
    }
    if (*s++ != ' ')
        return NULL;
    length = strcspn(s, ",=)");
    copy_part(p->name, sizeof p->name, s, length);
    s += length;
    p->required = *s != '=';
    if (p->required)
        return s;
    const char *end = value_end(++s);
    bool quoted = *s == '\'';
    copy_part(p->value, sizeof p->value, s + quoted, (size_t)(end - s) - 2 * (size_t)quoted);
    return end;
}

int tern_named_op_parameters(const tern_named_op *op, tern_parameter *parameters, int capacity)
{
    if (!op || (capacity > 0 && !parameters))
        return names_null("tern_named_op_parameters", op ? "parameters" : "op");
    const char *s = strchr(op->signature, '(') + 1;
    int n = 0;
    for (bool by_name = false; *s != ')'; s += strspn(s, ", ")) {
        tern_parameter parameter;
        if (*s == '*') {
            by_name = true;
            s++;
            continue;
        }
        s = read_parameter(s, &parameter);
        if (!s || n == TERN_MAX_PARAMETERS) {
            tern_fail(TERN_ERR_STATE, "tern_named_op_parameters: malformed: %s", op->signature);
            return -1;
        }
        parameter.by_name = by_name;
        if (n < capacity)
            parameters[n] = parameter;
        n++;
    }
    return n;
}
