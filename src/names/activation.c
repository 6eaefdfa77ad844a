/* activation.c -- names of activation.def, and what its rows need beside the public functions. */
#include "names/rows.h"

static tern_tensor *gelu(tern_tensor *x, tern_approximate approximate)
{
    return approximate == TERN_APPROXIMATE_NONE   ? tern_gelu(x)
           : approximate == TERN_APPROXIMATE_TANH ? tern_gelu_tanh(x)
                                                  : NULL;
}

#define TABLE  names_activation
#define FAMILY "names/activation.def"
#include "names/expand.h"
