/* aliases.c -- PyTorch's second names of elementwise functions. */
#include "ops/elementwise/alias.h"

UNARY(absolute, abs)
UNARY(negative, neg)
UNARY(arccos, acos)
UNARY(arccosh, acosh)
UNARY(arcsin, asin)
UNARY(arcsinh, asinh)
UNARY(arctan, atan)
UNARY(arctanh, atanh)
UNARY(fix, trunc)
BINARY(multiply, mul)
BINARY(subtract, sub)
BINARY(divide, div)
BINARY(true_divide, div)
BINARY(arctan2, atan2)
