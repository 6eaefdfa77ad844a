/* alias.h -- macros for a second name of an elementwise function. */
#ifndef TERN_SRC_OPS_ALIAS_H
#define TERN_SRC_OPS_ALIAS_H
#include "base/error.h"
#include <tern/ops.h>

/* Defines a public function tern_NAME that calls tern_OF. The macros below do so for each form of
 * such a function: allocating, in place, with a tensor or a number on the right. */
#define ALIAS(NAME, OF, PARAMETERS, ...)                                                           \
    tern_tensor *tern_##NAME PARAMETERS                                                            \
    {                                                                                              \
        TERN_NAMED_IN_ERRORS;                                                                      \
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
#endif
