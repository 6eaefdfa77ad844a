/* option.h -- resolving the fields of options structs. */
#ifndef TERN_NN_OPTION_H
#define TERN_NN_OPTION_H
#include <tern/tensor.h>

/* A number whose default is not zero: the default for 0, and 0 for TERN_ZERO. */
static inline double tern_option(double value, double otherwise)
{
    return value == TERN_ZERO ? 0 : value == 0 ? otherwise : value;
}

/* In reserved[0] of an options struct: its fields are read as they are written, zero too. */
#define TERN_OPTIONS_AS_WRITTEN UINT64_C(0x6e65747469727761)

static inline double tern_option_of(const uint64_t reserved[4], double value, double otherwise)
{
    if (reserved[0] == TERN_OPTIONS_AS_WRITTEN && value == 0)
        return 0;
    return tern_option(value, otherwise);
}
/* The number in a field of the struct at o. */
#define TERN_OPTION(o, field, otherwise) tern_option_of((o)->reserved, (o)->field, otherwise)

#endif
