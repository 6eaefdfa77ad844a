/* defaults.c -- tern_x_defaults() of every options struct of options.def; those of optimizers are
 * in optimizers.c. It stands here because what is to the left does not know all structs. */
#include "base/option.h"

#define OPTIONS(NAME)                                                                              \
    tern_##NAME##_options tern_##NAME##_defaults(void)                                             \
    {                                                                                              \
        return tern_read_##NAME(NULL);                                                             \
    }
#include "base/options.def"
