/* index.c -- names of index.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

#define TABLE  names_index
#define FAMILY "names/index.def"
#include "names/expand.h"
