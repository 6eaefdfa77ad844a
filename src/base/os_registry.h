/* os_registry.h -- Windows' registry. */
#ifndef TERN_BASE_OS_REGISTRY_H
#define TERN_BASE_OS_REGISTRY_H

#ifdef _WIN32
/* Calls found(user, name), with name in UTF-8, for each value with the number 0 of a key below
 * HKEY_LOCAL_MACHINE. In the keys of Khronos other numbers mean that an entry is disabled. */
void tern_os_registered(const char *key, void (*found)(void *user, const char *name), void *user);
#endif

#endif
