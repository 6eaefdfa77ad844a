/* loss.c -- names of loss.def. */
#include "names/rows.h"

#define TABLE  names_loss
#define FAMILY "names/loss.def"
#include "names/expand.h"
