/* elementwise.h -- what a row of elementwise.def, special.def or logic.def is on the host. */
#ifndef TERN_SRC_OPS_ELEMENTWISE_H
#define TERN_SRC_OPS_ELEMENTWISE_H
#include "ops/elementwise/walk.h"

typedef enum tern_row_kind {
    TERN_ROW_UNARY,
    TERN_ROW_BINARY,
    TERN_ROW_TERNARY,
    TERN_ROW_COMPARE,
    TERN_ROW_PREDICATE
} tern_row_kind;
typedef enum tern_row_types {
    TERN_ROW_FLOATS,
    TERN_ROW_NUMBERS,
    TERN_ROW_WHOLES,
    TERN_ROW_INTS,
    TERN_ROW_BOOLS,
    TERN_ROW_ALL
} tern_row_types;

typedef struct tern_row {
    const char *name;
    tern_row_kind kind;
    tern_row_types types;
    double low, high;
    const char *value, *dx, *dy, *dz; /* expressions, as text */
    tern_kernel_ref kernel, scalar_kernel, gradient_kernel;
    const tern_op *op, *scalar_op; /* scalar_op: y is a number */
} tern_row;

/* Attributes of every elementwise op: the row's parameters; y of a scalar op is a. */
typedef struct tern_row_attributes {
    tern_scalar a, b;
} tern_row_attributes;

/* x + a (y - x); z, which is not used, has x's shape and no history. */
tern_tensor *tern_lerp_number(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
tern_tensor *tern_lerp_number_(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);

#endif
