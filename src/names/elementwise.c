/* elementwise.c -- names of the rows of elementwise.def that are called with tensors alone. */
#include "names/rows.h"
#include <tern/ops.h>

#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX) OP(NAME, #NAME, "Tensor input", tern_##NAME(T(0)))
#define UNARY_REAL1(...)
#define UNARY_REAL2(...)
#define UNARY_SCALAR(...)
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY) COMPARE(NAME, TYPES, Z)
#define COMPARE(NAME, TYPES, Z)                                                                    \
    OP(NAME, #NAME, "Tensor input, Tensor other", tern_##NAME(T(0), T(1)))                         \
    OP(NAME##_scalar, #NAME, "Tensor input, Scalar other", tern_##NAME##_scalar(T(0), S(1)))
#define PREDICATE(NAME, TYPES, Z) UNARY(NAME, TYPES, 0, 0, Z, 0)

#define TABLE  names_elementwise
#define FAMILY "elementwise.def"
#include "names/expand.h"
