/* suggest.h -- what there is in place of a device that is not, for errors about device strings. */
#ifndef TERN_DEVICE_SUGGEST_H
#define TERN_DEVICE_SUGGEST_H
#include <stddef.h>

/* Write "; there are cpu, opencl:0 (NAME); did you mean \"opencl:0\"?" into text: all devices of
 * this process, and the one that was probably meant by the string, which is left out for NULL.
 * Looks for the devices of all backends. */
void tern_device_suggest(const char *device, char *text, size_t bytes);

#endif
