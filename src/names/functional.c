/* functional.c -- names of functional.def, and what its rows need beside the public functions. */
#include "names/rows.h"
#include <tern/ops.h>

/* An unknown text becomes a value that every loss refuses. */
static tern_reduction reduction_of(const names_argument *a)
{
    static const char *const texts[] = {"mean", "sum", "none"};
    return (tern_reduction)names_choice(a, "reduction", texts, 3);
}

#define REDUCTION(i) reduction_of(&a[i])

static tern_embedding_bag_mode bag_mode(const names_argument *a)
{
    static const char *const texts[] = {"mean", "sum", "max"};
    return (tern_embedding_bag_mode)names_choice(a, "mode", texts, 3);
}

#define BAG(i) bag_mode(&a[i])

#define TABLE  names_functional
#define FAMILY "names/functional.def"
#include "names/expand.h"
