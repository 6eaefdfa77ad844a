/* aliases.c -- the second names that PyTorch has for elementwise functions. */
#include <tern/ops/elementwise.h>
#include <tern/ops/pointwise.h>

#define ALIAS(NAME, OF, PARAMETERS, ...)                                                           \
    tern_tensor *tern_##NAME PARAMETERS                                                            \
    {                                                                                              \
        return tern_##OF(__VA_ARGS__);                                                             \
    }
#define UNARY(NAME, OF)                                                                            \
    ALIAS(NAME, OF, (tern_tensor * x), x) ALIAS(NAME##_, OF##_, (tern_tensor * x), x)
#define COMPARE(NAME, OF)                                                                          \
    ALIAS(NAME, OF, (tern_tensor * x, tern_tensor * y), x, y)                                      \
    ALIAS(NAME##_scalar, OF##_scalar, (tern_tensor * x, tern_scalar y), x, y)
#define BINARY(NAME, OF)                                                                           \
    COMPARE(NAME, OF)                                                                              \
    ALIAS(NAME##_, OF##_, (tern_tensor * x, tern_tensor * y), x, y)                                \
    ALIAS(NAME##_scalar_, OF##_scalar_, (tern_tensor * x, tern_scalar y), x, y)

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
COMPARE(greater, gt)
COMPARE(greater_equal, ge)
COMPARE(less, lt)
COMPARE(less_equal, le)
COMPARE(not_equal, ne)
