/* linear.c -- names of linear.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

#define TABLE  names_linear
#define FAMILY "names/linear.def"
#include "names/expand.h"
