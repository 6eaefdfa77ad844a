/* dynlib.h -- libraries opened at run time. */
#ifndef TERN_BASE_DYNLIB_H
#define TERN_BASE_DYNLIB_H
#include "base/error.h"
#include "base/libraries.h"

/* Opens the first library of names that loads (TERN_LIBRARY_..., separated by spaces). Returns NULL
 * if none does, with the loader's message in reason: preferably the message about a file that
 * exists. Records no error, because a missing library is normal. */
TERN_PRIVATE void *tern_dynlib_open(const char *names, char *reason, size_t bytes);

/* Does the same for a library whose symbols other libraries of the process may define too: the
 * library uses its own, and no other library sees them. */
void *tern_dynlib_open_apart(const char *names, char *reason, size_t bytes);

/* Does the same for one library, by its path. */
void *tern_dynlib_open_path(const char *path, char *reason, size_t bytes);

/* Returns whether reason says that there is no such file. */
bool tern_dynlib_is_absent(const char *reason);

/* Writes the path of libtern_<name>.so: in tern/ beside the library, or in ../lib/tern beside a
 * program that it is linked into. Returns false, and a sentence in path, if it is in neither. */
bool tern_dynlib_beside(const char *name, char *path, size_t bytes);

/* Closes a library; NULL is fine. */
void tern_dynlib_close(void *library);

/* Returns the address of a symbol, or NULL. Copy it into a function pointer with memcpy. */
TERN_PRIVATE void *tern_dynlib_symbol(void *library, const char *name);

enum { TERN_DYNLIB_MOST = 24 };
/* Opens the first library of names that loads, and copies the addresses of symbols (NULL-ended, at
 * most TERN_DYNLIB_MOST) to the function pointers `to`: all, or none and false with a reason. */
bool tern_dynlib_take(const char *names, const char *const symbols[], void *const to[],
                      char *reason, size_t bytes);

#endif
