/* calls.h -- calls by name as lines of golden files have them: "<argument>=<value> ...", where values are tensors, each a letter
 * for its kind and its shape ("f3,4", "i2=1"), lists of them ("[f3;f3]"), integers ("(1,2)"), reals ("{0.5}"), texts, None, True,
 * False and numbers. */
#ifndef TERN_TESTS_CALLS_H
#define TERN_TESTS_CALLS_H
#include "support.h"
#include <stdlib.h>

enum { CALL_VALUES = 16, CALL_TENSORS = 32 };

/* make gives the tensor of a kind, in the order of the line; number is what is behind "=", 0 without. */
typedef struct call {
    tern_tensor *(*make)(void *user, char kind, tern_shape shape, int64_t number);
    void *user;
    tern_value value[CALL_VALUES];
    int n;
    tern_tensor *tensor[CALL_TENSORS];
    int64_t integer[CALL_TENSORS];
    double real[CALL_TENSORS];
    int n_tensors, n_integers, n_reals;
} call;

static tern_shape read_shape(char **text)
{
    tern_shape shape = {0};
    for (char *end; shape.ndim < TERN_MAX_DIMS; *text = end + (*end == ',')) {
        long size = strtol(*text, &end, 10);
        if (end == *text)
            break;
        shape.dims[shape.ndim++] = size;
    }
    return shape;
}

static tern_tensor *read_tensor(call *c, char **text)
{
    char kind = *(*text)++;
    tern_shape shape = read_shape(text);
    return c->make(c->user, kind, shape, **text == '=' ? strtoll(*text + 1, text, 10) : 0);
}

static tern_value read_tensors(call *c, char *text)
{
    tern_tensor **list = c->tensor + c->n_tensors;
    int n = 0;
    for (; *text && *text != ']'; n++) {
        assert_in_range(c->n_tensors, 0, CALL_TENSORS - 1);
        c->tensor[c->n_tensors++] = read_tensor(c, &text);
        text += *text == ';';
    }
    return tern_value_tensors(NULL, list, n);
}

static tern_value read_list(call *c, char *text, bool real)
{
    int64_t *integers = c->integer + c->n_integers;
    double *reals = c->real + c->n_reals;
    int n = 0;
    for (char *end; *text && !strchr(")}", *text); text = end + (*end == ','), n++) {
        double number = strtod(text, &end);
        assert_in_range(n, 0, 8);
        reals[n] = number;
        integers[n] = (int64_t)number;
    }
    c->n_integers += n;
    c->n_reals += n;
    return real ? tern_value_reals(NULL, reals, n) : tern_value_ints(NULL, integers, n);
}

static tern_value read_value(call *c, char *text)
{
    if (*text == '[')
        return read_tensors(c, text + 1);
    if (*text == '(' || *text == '{')
        return read_list(c, text + 1, *text == '{');
    if (*text == '\'') {
        text[strlen(text) - 1] = '\0';
        return tern_value_text(NULL, text + 1);
    }
    if (strcmp(text, "None") == 0)
        return tern_value_none(NULL);
    if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        return tern_value_bool(NULL, *text == 'T');
    if (strchr("-0123456789", *text))
        return strchr(text, '.') ? tern_value_real(NULL, strtod(text, NULL))
                                 : tern_value_int(NULL, strtoll(text, NULL, 10));
    return tern_value_tensor(NULL, read_tensor(c, &text));
}

/* The arguments' words become values: text is written to. */
static void read_values(call *c, char *text)
{
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        assert_non_null(value);
        *value = '\0';
        assert_in_range(c->n, 0, CALL_VALUES - 1);
        c->value[c->n] = read_value(c, value + 1);
        c->value[c->n++].name = word;
    }
}

#endif
