/* rows.h -- a row of the table of names, and the macros for its expression.
 *
 *   OP(id, name, parameters, expression)              returns a tensor
 *   OPS(id, name, parameters, results, expression)    returns the number of tensors that the
 *                                                     expression wrote to out[capacity], or -1
 *
 * The expression refers to arguments by their index in the signature: T(0) is the first one, a
 * tensor. A family is a file that defines FAMILY, the .def file with its rows, and TABLE, the name
 * of its table, and includes names/expand.h. id is any name that is unique in the family. */
#ifndef TERN_NAMES_ROWS_H
#define TERN_NAMES_ROWS_H
#include <tern/names.h>
#include <tern/nn/activation.h>
#include <tern/ops.h>

/* A bound argument: the members for the kind of its parameter are set. */
typedef struct names_argument {
    bool given;   /* false for None, and if absent without a default */
    bool too_big; /* out of the range of int; the error is recorded */
    tern_tensor *tensor;
    tern_tensor *const *tensors;
    const int64_t *ints;
    const double *reals;
    int count; /* number of entries of the list */
    tern_scalar scalar;
    const char *text;
    tern_dtype dtype;
    int64_t own_ints[4]; /* storage for a number as a list, or a default list */
    double own_real;
    char own_text[24]; /* storage for a default text */
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

/* Binds values to the parameters of op. Returns the number of parameters, or -1 if the values do
 * not fit; no error is recorded then, and why[size] has the reason. */
int names_bind(const tern_named_op *op, const tern_value *values, int n, names_argument *arguments,
               char *why, size_t size);

/* Records that an argument is NULL and returns -1; an earlier error is kept as the cause. */
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
/* An optional integer; a real for a field of options whose zero means the default. */
#define SOME(i)  names_some(&a[i])
#define FIELD(i) names_field(&a[i])
/* x, an argument or a result, converted to the dtype of argument i, if that is given. */
#define AS(x, i) (a[i].given ? tern_to_dtype(x, a[i].dtype) : (x))

static inline int64_t names_integer(const names_argument *a)
{
    return tern_scalar_to_int(a->scalar);
}

/* Returns an integer for a parameter of type int. If the value is out of range, returns 0 and
 * records an error, which ends the call. */
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

/* Write the results of a row to out and return their number, or -1: one tensor, or n tensors after
 * a call with this status. */
int names_one(tern_tensor *x, tern_tensor **out, int capacity);
int names_several(tern_status status, tern_tensor *const *results, int n, tern_tensor **out,
                  int capacity);

/* Writes values and indices to out after a call that fills pair. */
int names_pair(tern_status status, const tern_values_indices *pair, tern_tensor **out,
               int capacity);
#define PAIR(call) names_pair(call, &pair, out, capacity)

/* Returns the index of the text of argument a among n choices, or -1 after an error. */
int names_choice(const names_argument *a, const char *what, const char *const *choices, int n);

/* The enum value for PyTorch's word for a mode, MODE(reduction, 2); see modes.def. */
#define MODE(NAME, ENUM, ...) ENUM names_##NAME(const names_argument *a);
#include "names/modes.def"
#undef MODE
#define MODE(name, i) names_##name(&a[i])

#endif
