/* defaults.c -- tern_x_defaults() of the options structs of libtern_models. */
#include "models/option.h"

#define OPTIONS(NAME)                                                                              \
    tern_##NAME##_options tern_##NAME##_defaults(void)                                             \
    {                                                                                              \
        return tern_read_##NAME(NULL);                                                             \
    }
#define NUMBER(FIELD, DEFAULT)
#define COUNT(FIELD, DEFAULT)
#define END(NAME)
#include "models/options.def"
