/* bundles.h -- kernels that are wanted together, of bundles.def: for drivers that make machine code only when a kernel
 * is first launched, in one program; for others, built ahead by other threads (builds.c). */
#ifndef TERN_DEVICE_BUNDLES_H
#define TERN_DEVICE_BUNDLES_H
#include <stdbool.h>

typedef struct tern_bundle_row {
    const char *bundle, *file, *kernel;
    bool opens;  /* its bundle is wanted when it is */
    bool shares; /* it is in the bundle's one program, where there is such */
} tern_bundle_row;

/* Ended by one without names; a bundle's rows stand together, and those of a file in it need not. */
extern const tern_bundle_row tern_bundles[];
/* The row of a kernel, without its type; NULL: it is in no bundle. */
const tern_bundle_row *tern_bundle_of(const char *file, const char *kernel);

#endif
