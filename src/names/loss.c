/* loss.c -- names of loss.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

/* An unknown text becomes a value that every loss refuses. */
static tern_reduction reduction_of(const names_argument *a)
{
    static const char *const texts[] = {"mean", "sum", "none", "batchmean"};
    return (tern_reduction)names_choice(a, "reduction", texts, 4);
}

#define RED(i) reduction_of(&a[i])

#define TABLE  names_loss
#define FAMILY "names/loss.def"
#include "names/expand.h"
