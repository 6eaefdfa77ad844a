/* suggest.h -- lists devices and suggests one, for errors about device strings. */
#ifndef TERN_DEVICE_SUGGEST_H
#define TERN_DEVICE_SUGGEST_H
#include <stddef.h>

/* Writes "; there are cpu, opencl:0 (NAME); did you mean \"opencl:0\"?" to text: all devices of
 * this process, and unless `device` is NULL, the one that the string probably means. Enumerates the
 * devices of all backends. */
void tern_device_suggest(const char *device, char *text, size_t bytes);

#endif
