/* inplace.c -- the forms in place of elementwise rows, for cases that have their result. */
#include "cases.h"
#include <string.h>

typedef struct form {
    const char *name;
    tern_tensor *(*unary)(tern_tensor *x);
    tern_tensor *(*binary)(tern_tensor *x, tern_tensor *y);
    tern_tensor *(*scalar)(tern_tensor *x, tern_scalar y);
} form;

#define UNARY(NAME, ...) {.name = #NAME, .unary = tern_##NAME##_},
#define BINARY(NAME, ...)                                                                          \
    {.name = #NAME, .binary = tern_##NAME##_, .scalar = tern_##NAME##_scalar_},
#define UNARY_REAL1(NAME, ...)
#define UNARY_REAL2(NAME, ...)
#define UNARY_SCALAR(NAME, ...)
#define TERNARY(NAME, ...)
#define TERNARY_SCALAR(NAME, ...)
#define COMPARE(NAME, ...)
#define PREDICATE(NAME, ...)
static const form forms[] = {
#include "elementwise.def"
#include "special.def"
#include "logic.def"
};

static const form *form_of(const char *op)
{
    const char *dot = strrchr(op, '.');
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(forms[i].name, dot ? dot + 1 : op) == 0)
            return &forms[i];
    return NULL;
}

/* Numbers beside the first argument and the second: alpha, rounding_mode. */
static bool is_plain(const tern_value *values, int n)
{
    for (int i = 2; i < n; i++)
        if (values[i].kind != TERN_VALUE_NONE)
            return false;
    return n > 0 && values[0].kind == TERN_VALUE_TENSOR;
}

bool parity_in_place(const parity_file *file, const tern_value *values, int n, tern_tensor **out)
{
    const form *f = form_of(file->op);
    if (!f || !is_plain(values, n))
        return false;
    tern_tensor *x = values[0].as.tensor;
    if (f->unary && n == 1)
        *out = f->unary(x);
    else if (f->binary && n >= 2 && values[1].kind == TERN_VALUE_TENSOR)
        *out = f->binary(x, values[1].as.tensor);
    else if (f->scalar && n >= 2 && values[1].kind == TERN_VALUE_SCALAR)
        *out = f->scalar(x, values[1].as.scalar);
    else
        return false;
    return true;
}
