/* elementwise.h -- the host's struct for a row of elementwise.def, special.def or logic.def. */
#ifndef TERN_SRC_OPS_ELEMENTWISE_H
#define TERN_SRC_OPS_ELEMENTWISE_H
#include "ops/elementwise/nd_index.h"
#include "device/device.h"

/* The form of an operation: y = f(x), z = f(x, y), v = f(x, y, z), a comparison of two tensors, or
 * a predicate of one tensor. The last two return bools. */
typedef enum tern_row_kind {
    TERN_ROW_UNARY,
    TERN_ROW_BINARY,
    TERN_ROW_TERNARY,
    TERN_ROW_COMPARE,
    TERN_ROW_PREDICATE
} tern_row_kind;
/* An operation's additions to the usual promotion and checks of its arguments: POWER, for example,
 * refuses integers to negative powers, and BOUNDS keeps integers if the bounds of clamp are
 * integers. */
typedef enum tern_row_rule {
    TERN_RULE_PLAIN,
    TERN_RULE_DIFFERENCE,
    TERN_RULE_NEGATION,
    TERN_RULE_DIVISION,
    TERN_RULE_POWER,
    TERN_RULE_BOUNDS,
    TERN_RULE_ORDERED,
    TERN_RULE_DIVISOR,
    TERN_RULE_SIZE,
    TERN_RULE_SQUARE,
    TERN_RULE_TENSORS,
    TERN_RULE_RECTIFIER,
    TERN_RULE_GELU,
    TERN_RULE_SUM
} tern_row_rule;

/* A row of the table. low and high: the interval from which tests draw the inputs. */
typedef struct tern_row {
    const char *name;
    tern_row_kind kind;
    tern_row_rule rule;
    double low, high;
    const char *value, *dx, *dy, *dz; /* formulas as text */
    tern_kernel_ref kernel, scalar_kernel, gradient_kernel;
    const tern_op *op, *scalar_op; /* scalar_op: y is a number */
} tern_row;

/* Attributes of every elementwise operation: the row's numbers. For a scalar_op, y is a. */
typedef struct tern_row_attributes {
    tern_scalar a, b;
} tern_row_attributes;

/* Return the gradient of relu from its result y, and that of gelu, or gelu_tanh, from its input
 * x. */
tern_tensor *tern_relu_dx(tern_tensor *dy, tern_tensor *y);
tern_tensor *tern_gelu_dx(tern_tensor *dy, tern_tensor *x, bool by_tanh);
/* tern_gelu_again recomputes gelu of x by the operation op. tern_gelu_pair also sets *dx to its
 * gradient for dy. x and dy have the same shape and dtype, and are dense. */
tern_tensor *tern_gelu_again(const tern_op *op, tern_tensor *x);
tern_tensor *tern_gelu_pair(const tern_op *op, tern_tensor *x, tern_tensor *dy, tern_tensor **dx);
/* Return x + a (y - x). z is not used; it has x's shape and no history. */
tern_tensor *tern_lerp_number(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);
tern_tensor *tern_lerp_number_(tern_tensor *x, tern_tensor *y, tern_tensor *z, tern_scalar a);

#endif
