/* registry.h -- the list of all places (devices), for the files of this folder. */
#ifndef TERN_DEVICE_REGISTRY_H
#define TERN_DEVICE_REGISTRY_H
#include "base/ending.h"
#include "device/place.h"

int tern_registry_kinds(void);
const char *tern_registry_kind_name(int kind);
/* Returns the number of a kind ("cuda"), or -1 if there is no such kind. */
int tern_registry_kind(const char *kind, size_t length);
/* Returns the number of devices of a kind; enumerates them if that was not done before. */
int tern_registry_count(int kind);
/* The same, but returns 0 if the devices were not enumerated before. */
int tern_registry_found(int kind);
const char *tern_registry_notes(int kind);
/* Returns a place of this kind, or NULL if there is no such index. */
tern_place *tern_registry_place(int kind, int64_t index);
/* Sets *place to the first device whose backend pins host memory, or to NULL if there is none. */
tern_status tern_registry_pinning(tern_place **place);
tern_status tern_registry_open(tern_place *place);
/* Called before and after calls of a place's driver, and before a lock of the place is taken
 * (base/ending.h). */
static inline void tern_place_enter(const tern_place *place)
{
    if (!place->synchronous)
        tern_foreign_enter();
}
static inline void tern_place_leave(const tern_place *place)
{
    if (!place->synchronous)
        tern_foreign_leave();
}
/* Empties the registry, after the caller has freed the places. */
void tern_registry_forget(void);
/* Returns place i of all that were enumerated so far, by kind and index; NULL if i is too large. */
tern_place *tern_place_at(int i);

#endif
