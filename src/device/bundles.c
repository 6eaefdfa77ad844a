/* bundles.c -- the rows of bundles.def. */
#include "device/bundles.h"
#include <string.h>

const tern_bundle_row tern_bundles[] = {
#define X(BUNDLE, FILE, KERNEL, OPENS, SHARES) {#BUNDLE, #FILE, #KERNEL, OPENS, SHARES},
#include "device/bundles.def"
#undef X
    {0}};

const tern_bundle_row *tern_bundle_of(const char *file, const char *kernel)
{
    for (const tern_bundle_row *row = tern_bundles; row->bundle; row++)
        if (strcmp(row->kernel, kernel) == 0 && strcmp(row->file, file) == 0)
            return row;
    return NULL;
}
