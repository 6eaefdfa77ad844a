/* bind.c -- converts the values of a call to the arguments of its operation. */
#include "names/rows.h"
#include "base/os.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the type name of a value for messages. */
static const char *kind_of(const tern_value *value)
{
    static const char *const names[] = {"None",  "Tensor",  "Tensor[]", "",
                                        "int[]", "float[]", "str",      "ScalarType"};
    static const char *const scalars[] = {"float", "int", "bool"};
    if (value->kind == TERN_VALUE_SCALAR)
        return scalars[value->as.scalar.kind];
    return (unsigned)value->kind < sizeof names / sizeof *names ? names[value->kind] : "?";
}

static bool has_scalar(const tern_value *value, tern_scalar_kind kind)
{
    return value->kind == TERN_VALUE_SCALAR && value->as.scalar.kind == kind;
}

/* The type names of parameters for messages. */
static const char *const wanted[] = {
    [TERN_PARAMETER_TENSOR] = "Tensor", [TERN_PARAMETER_TENSORS] = "tuple of Tensors",
    [TERN_PARAMETER_INT] = "int",       [TERN_PARAMETER_INTS] = "tuple of ints",
    [TERN_PARAMETER_REAL] = "float",    [TERN_PARAMETER_REALS] = "tuple of floats",
    [TERN_PARAMETER_BOOL] = "bool",     [TERN_PARAMETER_SCALAR] = "Number",
    [TERN_PARAMETER_TEXT] = "str",      [TERN_PARAMETER_DTYPE] = "ScalarType",
};

/* Binds a list of integers; one number stands for a list, and is repeated to a fixed length. */
static bool bind_ints(const tern_parameter *p, const tern_value *value, names_argument *a)
{
    if (value->kind == TERN_VALUE_INTS) {
        a->ints = value->as.ints;
        a->count = value->count;
    } else if (has_scalar(value, TERN_SCALAR_INT)) {
        a->own_ints[0] = value->as.scalar.value.integer;
        a->ints = a->own_ints;
        a->count = 1;
    } else {
        return false;
    }
    if (p->length > 1 && a->count == 1) {
        int64_t each = a->ints[0];
        a->count = p->length;
        for (int i = 0; i < p->length && i < 4; i++)
            a->own_ints[i] = each;
        a->ints = a->own_ints;
    }
    return true;
}

static bool bind_reals(const tern_value *value, names_argument *a)
{
    if (value->kind == TERN_VALUE_REALS) {
        a->reals = value->as.reals;
        a->count = value->count;
        return true;
    }
    if (value->kind != TERN_VALUE_SCALAR || has_scalar(value, TERN_SCALAR_BOOL))
        return false;
    a->own_real = tern_scalar_to_real(value->as.scalar);
    a->reals = &a->own_real;
    a->count = 1;
    return true;
}

static bool bind_tensors(const tern_value *value, names_argument *a)
{
    a->tensors = value->as.tensors;
    a->count = value->count;
    /* An empty list of integers also is an empty list of tensors. */
    return value->kind == TERN_VALUE_TENSORS || (value->kind == TERN_VALUE_INTS && a->count == 0);
}

/* Returns whether the value fits the parameter, and fills a. */
static bool bind_value(const tern_parameter *p, const tern_value *value, names_argument *a)
{
    memset(a, 0, sizeof *a);
    a->given = value->kind != TERN_VALUE_NONE;
    if (!a->given)
        return p->optional;
    switch (p->kind) {
    case TERN_PARAMETER_TENSOR:
        a->tensor = value->as.tensor;
        return value->kind == TERN_VALUE_TENSOR;
    case TERN_PARAMETER_TENSORS:
        return bind_tensors(value, a);
    case TERN_PARAMETER_INTS:
        return bind_ints(p, value, a);
    case TERN_PARAMETER_REALS:
        return bind_reals(value, a);
    case TERN_PARAMETER_INT:
        a->scalar = value->as.scalar;
        return has_scalar(value, TERN_SCALAR_INT);
    case TERN_PARAMETER_REAL:
        a->scalar = value->as.scalar;
        return value->kind == TERN_VALUE_SCALAR && !has_scalar(value, TERN_SCALAR_BOOL);
    case TERN_PARAMETER_BOOL:
        a->scalar = value->as.scalar;
        return has_scalar(value, TERN_SCALAR_BOOL);
    case TERN_PARAMETER_SCALAR:
        a->scalar = value->as.scalar;
        return value->kind == TERN_VALUE_SCALAR;
    case TERN_PARAMETER_TEXT:
        a->text = value->as.text;
        return value->kind == TERN_VALUE_TEXT;
    case TERN_PARAMETER_DTYPE:
        a->dtype = value->as.dtype;
        return value->kind == TERN_VALUE_DTYPE;
    }
    return false;
}

/* Reads "0,1]" into list and returns the number of entries. */
static int read_list(const char *text, int64_t *list)
{
    int n = 0;
    while (*text != ']' && *text && n < 4) {
        char *end;
        list[n++] = strtoll(text, &end, 10);
        text = *end == ',' ? end + 1 : end;
    }
    return n;
}

/* Fills a with the default of p: None, True, a number, a list of up to four numbers, or a text. */
static void bind_default(const tern_parameter *p, names_argument *a)
{
    const char *text = p->value;
    memset(a, 0, sizeof *a);
    if (strcmp(text, "None") == 0)
        return;
    char *end;
    int64_t list[4] = {0};
    tern_value value = tern_value_int(NULL, strtoll(text, &end, 10));
    if (*text == '[')
        value = tern_value_ints(NULL, list, read_list(text + 1, list));
    else if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0)
        value = tern_value_bool(NULL, *text == 'T');
    else if (*end != '\0')
        value = tern_value_real(NULL, tern_os_strtod(text, NULL));
    if (p->kind == TERN_PARAMETER_TEXT)
        value = tern_value_text(NULL, "");
    bind_value(p, &value, a);
    if (a->ints == list) {
        memcpy(a->own_ints, list, sizeof list);
        a->ints = a->own_ints;
    }
    if (p->kind == TERN_PARAMETER_TEXT) {
        memcpy(a->own_text, p->value, sizeof a->own_text);
        a->text = a->own_text;
    }
}

/* Returns the index of the parameter of a value: by its name, or by its position among values
 * without a name. */
static int place_of(const tern_parameter *parameters, int count, const tern_value *value,
                    int position)
{
    for (int i = 0; i < count; i++)
        if (value->name ? strcmp(parameters[i].name, value->name) == 0
                        : i == position && !parameters[i].by_name)
            return i;
    return -1;
}

/* The parameters of an operation, read from its signature text. */
typedef struct signature {
    const tern_named_op *op;
    int count;
    tern_parameter parameters[];
} signature;

enum { SLOTS = 2048 }; /* a power of two, well above the number of operations */
static _Atomic(signature *) signatures[SLOTS];

static signature *read_signature(const tern_named_op *op)
{
    tern_parameter parameters[TERN_MAX_PARAMETERS];
    const int count = tern_named_op_parameters(op, parameters, TERN_MAX_PARAMETERS);
    const size_t size = sizeof *parameters * (size_t)(count > 0 ? count : 0);
    signature *s = count < 0 ? NULL : malloc(sizeof *s + size);
    if (!s)
        return NULL;
    s->op = op;
    s->count = count;
    memcpy(s->parameters, parameters, size);
    return s;
}

/* Returns the signature of op, which is read once and never freed, or NULL if out of memory. */
static const signature *signature_of(const tern_named_op *op)
{
    for (size_t i = (uintptr_t)op / sizeof *op;; i++) {
        _Atomic(signature *) *slot = &signatures[i % SLOTS];
        signature *s = atomic_load_explicit(slot, memory_order_acquire);
        if (s && s->op == op)
            return s;
        if (s)
            continue;
        signature *read = read_signature(op);
        if (!read || atomic_compare_exchange_strong(slot, &s, read))
            return read;
        free(read); /* another thread has set the slot */
        if (s->op == op)
            return s;
    }
}

int names_bind(const tern_named_op *op, const tern_value *values, int n, names_argument *arguments,
               char *why, size_t size)
{
    bool seen[TERN_MAX_PARAMETERS] = {false};
    const signature *s = signature_of(op);
    if (!s) {
        snprintf(why, size, "there is no memory to read its signature");
        return -1;
    }
    const tern_parameter *parameters = s->parameters;
    const int count = s->count;
    for (int i = 0; i < n; i++) {
        int place = place_of(parameters, count, &values[i], i);
        if (place < 0 && values[i].name)
            snprintf(why, size, "unexpected argument '%s' (position %d)", values[i].name, i + 1);
        else if (place < 0)
            snprintf(why, size, "takes %d arguments, but %d were given", count, n);
        else if (seen[place])
            snprintf(why, size, "argument '%s' is given twice", parameters[place].name);
        if (place < 0 || seen[place])
            return -1;
        seen[place] = true;
        if (!bind_value(&parameters[place], &values[i], &arguments[place])) {
            snprintf(why, size, "argument '%s' (position %d) must be %s, not %s",
                     parameters[place].name, place + 1, wanted[parameters[place].kind],
                     kind_of(&values[i]));
            return -1;
        }
    }
    for (int i = 0; i < count; i++) {
        if (!seen[i] && parameters[i].required) {
            snprintf(why, size, "missing argument '%s'", parameters[i].name);
            return -1;
        }
        if (!seen[i])
            bind_default(&parameters[i], &arguments[i]);
    }
    return count;
}
