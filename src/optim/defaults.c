/* defaults.c -- tern_x_defaults() of each options struct of options.def; those of optimizers are in
 * optimizers.c. This file is in optim because lower layers do not have all structs. */
#include "base/option.h"

#define OPTIONS(NAME)                                                                              \
    tern_##NAME##_options tern_##NAME##_defaults(void)                                             \
    {                                                                                              \
        return tern_read_##NAME(NULL);                                                             \
    }
#include "base/options.def"
