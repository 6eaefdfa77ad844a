/* functional.c -- names of functional.def. */
#include "names/rows.h"

#define TABLE  names_functional
#define FAMILY "names/functional.def"
#include "names/expand.h"
