/* rows.h -- what a row of the table of names is, and what its expression may use.
 *
 *   OP(id, name, parameters, expression)             a tensor
 *   OPS(id, name, parameters, results, expression)   a number of tensors, which the expression put
 * into out[capacity]; -1 after an error
 *
 * The expression names the arguments by their places in the signature: T(0) the first one, a
 * tensor. A family is a file that defines FAMILY, the .def file with its rows, TABLE, the name of
 * what it makes, and includes names/expand.h. id is any name that is unique in the family. */
#ifndef TERN_NAMES_ROWS_H
#define TERN_NAMES_ROWS_H
#include <tern/names.h>
#include <tern/nn/activation.h>
#include <tern/ops.h>

/* An argument as its parameter takes it: the members of the parameter's kind are set. */
typedef struct names_argument {
    bool given;   /* neither None nor absent without a default */
    bool too_big; /* was asked for as an int, and is none; the error is recorded */
    tern_tensor *tensor;
    tern_tensor *const *tensors;
    const int64_t *ints;
    const double *reals;
    int count; /* of the list */
    tern_scalar scalar;
    const char *text;
    tern_dtype dtype;
    int64_t own_ints[4]; /* where a number stands for a list, or the default is a list */
    double own_real;
    char own_text[24]; /* the default */
} names_argument;

typedef int (*names_function)(const names_argument *a, tern_tensor **out, int capacity);

struct tern_named_op {
    const char *name, *signature;
    names_function call;
};

typedef struct names_family {
    const tern_named_op *rows;
    int count;
} names_family;

/* Bind values to the parameters of op. Returns the number of parameters; -1 where they do not fit,
 * without recording an error; why then says it (why[n]). */
int names_bind(const tern_named_op *op, const tern_value *values, int n, names_argument *arguments,
               char *why, size_t size);

/* Records that an argument is NULL and gives -1; what went wrong before is its
 * cause, and is kept. */
int names_null(const char *function, const char *argument);

/* ---- for expressions ------------------------------------------------------------------------- */
#define T(i)       (a[i].tensor)
#define TENSORS(i) a[i].tensors, a[i].count
#define N(i)       names_integer(&a[i])
#define D(i)       names_int(&a[i])
#define R(i)       tern_scalar_to_real(a[i].scalar)
#define B(i)       (names_integer(&a[i]) != 0)
#define S(i)       (a[i].scalar)
#define LIST(i)    tern_shape_from(a[i].count, a[i].ints)
#define TEXT(i)    (a[i].text)
#define DTYPE(i)   (a[i].dtype)
#define GIVEN(i)   (a[i].given)
/* An integer that may be absent; a real for a field of options whose zero means the default. */
#define SOME(i)  names_some(&a[i])
#define FIELD(i) names_field(&a[i])
/* x, which may be a result, as the dtype of argument i, if that is given. */
#define AS(x, i) (a[i].given ? tern_to_dtype(x, a[i].dtype) : (x))

static inline int64_t names_integer(const names_argument *a)
{
    return tern_scalar_to_int(a->scalar);
}

/* An integer for a parameter of type int, a dim or a small number. One that does not fit ends the
 * call with an error, and counts as 0 until then. */
int names_int(const names_argument *a);

static inline tern_optional_int names_some(const names_argument *a)
{
    return a->given ? tern_some(names_integer(a)) : (tern_optional_int){0};
}

static inline double names_field(const names_argument *a)
{
    double value = a->given ? tern_scalar_to_real(a->scalar) : 0;
    return a->given && value == 0 ? TERN_ZERO : value;
}

/* The results of a row: one tensor, or n of them after a call that says whether it went well. */
int names_one(tern_tensor *x, tern_tensor **out, int capacity);
int names_several(tern_status status, tern_tensor *const *results, int n, tern_tensor **out,
                  int capacity);

/* Values and indices, after a call that fills pair. */
int names_pair(tern_status status, const tern_values_indices *pair, tern_tensor **out,
               int capacity);
#define PAIR(call) names_pair(call, &pair, out, capacity)

/* 0, 1, ... for the text of argument a among n choices; -1 after an error that quotes it. */
int names_choice(const names_argument *a, const char *what, const char *const *choices, int n);

/* A mode by PyTorch's word for it, MODE(reduction, 2); see modes.def. */
#define MODE(NAME, ENUM, ...) ENUM names_##NAME(const names_argument *a);
#include "names/modes.def"
#undef MODE
#define MODE(name, i) names_##name(&a[i])

#endif
