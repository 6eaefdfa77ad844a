/* every_row.c -- names of the elementwise rows that are called with tensors alone. */
#include "names/rows.h"
#include <tern/ops.h>

#define UNARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Y, DX)                                           \
    OP(NAME, #NAME, "Tensor input", tern_##NAME(T(0)))
#define UNARY_REAL1(...)
#define UNARY_REAL2(...)
#define UNARY_SCALAR(...)
#define BINARY(NAME, TYPES, CAST, RULE, LOW, HIGH, Z, DX, DY) COMPARE(NAME, TYPES, RULE, Z)
#define TERNARY(...)
#define TERNARY_SCALAR(...)
#define COMPARE(NAME, TYPES, RULE, Z)                                                              \
    OP(NAME, #NAME, "Tensor input, Tensor other", tern_##NAME(T(0), T(1)))                         \
    NUMBER_##RULE(NAME)
#define NUMBER_TENSORS(NAME)
#define NUMBER_PLAIN(NAME)                                                                         \
    OP(NAME##_scalar, #NAME, "Tensor input, Scalar other", tern_##NAME##_scalar(T(0), S(1)))
#define NUMBER_SUM                NUMBER_PLAIN
#define NUMBER_DIFFERENCE         NUMBER_PLAIN
#define NUMBER_DIVISION           NUMBER_PLAIN
#define NUMBER_POWER              NUMBER_PLAIN
#define PREDICATE(NAME, TYPES, Z) OP(NAME, #NAME, "Tensor input", tern_##NAME(T(0)))

#define TABLE  names_every_row
#define FAMILY "names/every_row.def"
#include "names/expand.h"
