/* registry.h -- the list of places, for the files of this folder. */
#ifndef TERN_DEVICE_REGISTRY_H
#define TERN_DEVICE_REGISTRY_H
#include "base/ending.h"
#include "device/place.h"

int tern_registry_kinds(void);
const char *tern_registry_kind_name(int kind);
/* The number of a kind's name, -1 for an unknown one. */
int tern_registry_kind(const char *kind, size_t length);
int tern_registry_count(int kind);
/* The same without looking for devices that nobody asked for yet. */
int tern_registry_found(int kind);
const char *tern_registry_notes(int kind);
/* NULL beyond the end. */
tern_place *tern_registry_place(int kind, int64_t index);
/* The first device whose backend pins memory of the host; *place is NULL without one. */
tern_status tern_registry_pinning(tern_place **place);
tern_status tern_registry_open(tern_place *place);
/* Around what calls the driver of a place, before a lock of its is taken (base/ending.h). */
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
/* The places were freed. */
void tern_registry_forget(void);
/* Every place found so far, in order of kind and index; NULL beyond the end. */
tern_place *tern_place_at(int i);

#endif
