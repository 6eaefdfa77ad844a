/* convolution.c -- names of convolution.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Zero is the default in tern_conv_function_options; here it was given, and is refused as a
 * negative one is. */
static int64_t groups(const names_argument *a)
{
    int64_t n = names_integer(a);
    return n == 0 ? -1 : n;
}

#define TABLE  names_convolution
#define FAMILY "names/convolution.def"
#include "names/expand.h"
