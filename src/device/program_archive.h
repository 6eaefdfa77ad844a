/* program_archive.h -- a list of the programs that a device has used, for files of programs
 * (tern/compile.h). */
#ifndef TERN_DEVICE_PROGRAM_ARCHIVE_H
#define TERN_DEVICE_PROGRAM_ARCHIVE_H
#include "device/cache.h"
#include "device/device.h"

/* Adds a program of the device, which was compiled or loaded from the cache, to the list. */
void tern_program_archive_note(const tern_place *place, const tern_cache_key *key);

#endif
