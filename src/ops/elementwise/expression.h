/* expression.h -- evaluates the gradient formulas of elementwise.def by differentiable
 * operations. */
#ifndef TERN_SRC_OPS_EXPRESSION_H
#define TERN_SRC_OPS_EXPRESSION_H
#include "tensor/op.h"

typedef struct tern_variable {
    const char *name;
    tern_tensor *tensor; /* NULL: the value is the number */
    double number;
} tern_variable;

/* Calls the function with that name, such as exp, on n tensors, and returns its result, or NULL
 * after an error. */
typedef tern_tensor *(*tern_function_call)(const char *name, size_t length, tern_tensor **in,
                                           int n);

/* Returns the value of the expression. A number becomes a tensor with the dtype and shape of the
 * first variable. */
tern_tensor *tern_expression(const char *text, const tern_variable *variables, int n,
                             tern_function_call call);
/* Returns whether the expression mentions the variable. */
bool tern_expression_uses(const char *text, const char *name);

#endif
