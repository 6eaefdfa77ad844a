/* option.h -- tern_read_x(options), which returns an options struct with its defaults filled in,
 * for the rows of options.def. */
#ifndef TERN_BASE_OPTION_H
#define TERN_BASE_OPTION_H
#include <math.h>
#include <tern/tern.h>

/* The value of reserved[0] in an options struct whose fields, also those that are zero, are taken
 * literally. tern_x_defaults() sets it, and so does tern_read_x, whose result may be read again. */
#define TERN_OPTIONS_AS_WRITTEN UINT64_C(0x6e65747469727761)

/* Returns a number whose default is not zero: the default for 0, and 0 for TERN_ZERO. */
static inline double tern_option(double value, double otherwise)
{
    return value == TERN_ZERO ? 0 : value == 0 ? otherwise : value;
}

static inline bool tern_is_as_written(const uint64_t reserved[4])
{
    return reserved[0] == TERN_OPTIONS_AS_WRITTEN;
}

/* The number in a field of the struct at o. */
#define TERN_OPTION(o, FIELD, otherwise)                                                           \
    (tern_is_as_written((o)->reserved) && (o)->FIELD == 0 ? 0 : tern_option((o)->FIELD, otherwise))

/* Copies the struct at from, or the defaults for NULL, and marks the copy. */
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
#define MAYBE(FIELD, DEFAULT)                                                                      \
    if (!o.FIELD.set)                                                                              \
        o.FIELD = (tern_optional_int){true, DEFAULT};
#define SIZES(FIELD, DEFAULT)                                                                      \
    if (o.FIELD.ndim == 0)                                                                         \
        o.FIELD = (tern_shape){1, {DEFAULT}};
#define PART(FIELD, NAME) o.FIELD = tern_read_##NAME(&o.FIELD);
#define END(NAME)                                                                                  \
    o.reserved[0] = TERN_OPTIONS_AS_WRITTEN;                                                       \
    return o;                                                                                      \
    }
#include "base/options.def"

#endif
