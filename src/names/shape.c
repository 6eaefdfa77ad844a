/* shape.c -- names of shape.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

#define TABLE  names_shape
#define FAMILY "names/shape.def"
#include "names/expand.h"
