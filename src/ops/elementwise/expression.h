/* expression.h -- gradients as elementwise.def writes them, in differentiable operations. */
#ifndef TERN_SRC_OPS_EXPRESSION_H
#define TERN_SRC_OPS_EXPRESSION_H
#include "tensor/op.h"

typedef struct tern_variable {
    const char *name;
    tern_tensor *tensor; /* NULL: a number */
    double number;
} tern_variable;

/* What the function of that name gives of n tensors: the expression has no operations itself. NULL
 * after an error. */
typedef tern_tensor *(*tern_function_call)(const char *name, size_t length, tern_tensor **in,
                                           int n);

/* The expression's value: of the type and shape of the first variable where it is a number. */
tern_tensor *tern_expression(const char *text, const tern_variable *variables, int n,
                             tern_function_call call);
/* Whether the expression mentions the variable. */
bool tern_expression_uses(const char *text, const char *name);

#endif
