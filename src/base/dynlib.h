/* dynlib.h -- libraries opened at run time. */
#ifndef TERN_BASE_DYNLIB_H
#define TERN_BASE_DYNLIB_H
#include "base/error.h"
#include "base/libraries.h"

/* Open the first of names that loads (TERN_LIBRARY_..., apart by spaces); NULL if none does, with
 * the loader's words in reason, those on a file that is there before those on one that is not.
 * Records no error: an absent library is an ordinary state. */
TERN_PRIVATE void *tern_dynlib_open(const char *names, char *reason, size_t bytes);

/* The same for a library whose symbols the process may have from elsewhere: it calls its own, and
 * nobody else sees them. */
void *tern_dynlib_open_apart(const char *names, char *reason, size_t bytes);

/* The same for one, by its path. */
void *tern_dynlib_open_path(const char *path, char *reason, size_t bytes);

/* Whether a reason says that there is no such file. */
bool tern_dynlib_is_absent(const char *reason);

/* Where libtern_<name>.so is: in tern/ beside the library, or in ../lib/tern beside a program that
 * it is linked into. False, with a sentence of it in path, where it is in neither. */
bool tern_dynlib_beside(const char *name, char *path, size_t bytes);

/* NULL is fine. */
void tern_dynlib_close(void *library);

/* The address of a symbol, or NULL. Copy it into a function pointer with memcpy. */
TERN_PRIVATE void *tern_dynlib_symbol(void *library, const char *name);

enum { TERN_DYNLIB_MOST = 24 };
/* Open the first of names that loads, and copy the addresses of symbols (NULL-ended, at most
 * TERN_DYNLIB_MOST) to the function pointers `to`, all or none; false with why in reason. */
bool tern_dynlib_take(const char *names, const char *const symbols[], void *const to[],
                      char *reason, size_t bytes);

#endif
