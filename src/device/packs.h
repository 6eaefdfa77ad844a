/* packs.h -- which programs a device has used, for files of them (tern/compile.h). */
#ifndef TERN_DEVICE_PACKS_H
#define TERN_DEVICE_PACKS_H
#include "device/cache.h"
#include "device/device.h"

/* A program of the device's was built, or loaded from the cache. */
void tern_pack_note(const tern_place *place, const tern_cache_key *key);

#endif
