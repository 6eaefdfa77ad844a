/* option.h -- tern_read_x(options) returns an options struct of libtern_models with defaults filled
 * in. */
#ifndef TERN_MODELS_OPTION_H
#define TERN_MODELS_OPTION_H
#include "base/option.h"
#include <tern/models.h>

/* The macros are those of base/option.h. */
#define OPTIONS(NAME)                                                                              \
    static inline tern_##NAME##_options tern_read_##NAME(const tern_##NAME##_options *from)        \
    {                                                                                              \
        tern_##NAME##_options o = {0};                                                             \
        if (from)                                                                                  \
            o = *from;
#define NUMBER(FIELD, DEFAULT) o.FIELD = TERN_OPTION(&o, FIELD, DEFAULT);
#define COUNT(FIELD, DEFAULT)                                                                      \
    if (o.FIELD == 0 && !tern_is_as_written(o.reserved))                                           \
        o.FIELD = DEFAULT;
#define END(NAME)                                                                                  \
    o.reserved[0] = TERN_OPTIONS_AS_WRITTEN;                                                       \
    return o;                                                                                      \
    }
#include "models/options.def"
#undef OPTIONS
#undef NUMBER
#undef COUNT
#undef END

#endif
