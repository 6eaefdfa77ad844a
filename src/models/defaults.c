/* defaults.c -- the functions tern_x_defaults() for the options structs of libtern_models. */
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
