/* convolution.c -- names of convolution.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

#define TABLE  names_convolution
#define FAMILY "names/convolution.def"
#include "names/expand.h"
