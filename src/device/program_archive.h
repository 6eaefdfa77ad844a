/* program_archive.h -- which programs a device has used, for files of them (tern/compile.h). */
#ifndef TERN_DEVICE_PROGRAM_ARCHIVE_H
#define TERN_DEVICE_PROGRAM_ARCHIVE_H
#include "device/cache.h"
#include "device/device.h"

/* A program of the device's was built, or loaded from the cache. */
void tern_program_archive_note(const tern_place *place, const tern_cache_key *key);

#endif
