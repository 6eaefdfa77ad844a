/* elementwise.c -- names of the elementwise rows that are called with tensors alone. */
#include "names/rows.h"
#include <tern/ops.h>

#define UNARY(NAME, TYPES, LOW, HIGH, Y, DX) OP(NAME, #NAME, "Tensor input", tern_##NAME(T(0)))
#define UNARY_REAL1(...)
#define UNARY_REAL2(...)
#define UNARY_SCALAR(...)
#define BINARY(NAME, TYPES, LOW, HIGH, Z, DX, DY) COMPARE(NAME, TYPES, Z)
#define TERNARY(...)
#define TERNARY_SCALAR(...)
#define COMPARE(NAME, TYPES, Z)                                                                    \
    OP(NAME, #NAME, "Tensor input, Tensor other", tern_##NAME(T(0), T(1)))                         \
    NUMBER_FORM(NAME)(NAME)

/* Where PyTorch takes no number for the second one. */
#define TENSORS_ONLY_maximum     ~,
#define TENSORS_ONLY_minimum     ~,
#define TENSORS_ONLY_fmax        ~,
#define TENSORS_ONLY_fmin        ~,
#define TENSORS_ONLY_atan2       ~,
#define TENSORS_ONLY_hypot       ~,
#define TENSORS_ONLY_heaviside   ~,
#define TENSORS_ONLY_logaddexp   ~,
#define TENSORS_ONLY_logaddexp2  ~,
#define TENSORS_ONLY_logical_and ~,
#define TENSORS_ONLY_logical_or  ~,
#define TENSORS_ONLY_logical_xor ~,
#define SECOND_(X, Y, ...)       Y
#define SECOND(...)              SECOND_(__VA_ARGS__)
#define NUMBER_FORM(NAME)        SECOND(TENSORS_ONLY_##NAME NO_ROW, NUMBER_ROW, ~)
#define NO_ROW(NAME)
#define NUMBER_ROW(NAME)                                                                           \
    OP(NAME##_scalar, #NAME, "Tensor input, Scalar other", tern_##NAME##_scalar(T(0), S(1)))
#define PREDICATE(NAME, TYPES, Z) UNARY(NAME, TYPES, 0, 0, Z, 0)

#define TABLE  names_elementwise
#define FAMILY "names/every_row.def"
#include "names/expand.h"
