/* option.h -- resolving the fields of options structs. */
#ifndef TERN_NN_OPTION_H
#define TERN_NN_OPTION_H
#include <tern/tensor.h>

/* A number whose default is not zero: the default for 0, and 0 for TERN_ZERO. */
static inline double tern_option(double value, double otherwise)
{
    return value == TERN_ZERO ? 0 : value == 0 ? otherwise : value;
}

#endif
