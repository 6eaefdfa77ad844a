/* convolution.c -- names of convolution.def, and what its rows need beside the public functions. */
#include "names/rows.h"

/* Returns groups, with -1 for a given 0: zero is the default of tern_conv_function_options, but
 * given here it is an error, as a negative number is. */
static int64_t groups(const names_argument *a)
{
    int64_t n = names_integer(a);
    return n == 0 ? -1 : n;
}

#define TABLE  names_convolution
#define FAMILY "names/convolution.def"
#include "names/expand.h"
