/* os_registry.h -- Windows' registry. */
#ifndef TERN_BASE_OS_REGISTRY_H
#define TERN_BASE_OS_REGISTRY_H

#ifdef _WIN32
/* Calls found(user, name), in UTF-8, for each value of a key below HKEY_LOCAL_MACHINE whose number
 * is 0, as the keys of Khronos have it: others are switched off. */
void tern_os_registered(const char *key, void (*found)(void *user, const char *name), void *user);
#endif

#endif
