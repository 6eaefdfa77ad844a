/* dynlib.h -- libraries opened at run time. */
#ifndef TERN_BASE_DYNLIB_H
#define TERN_BASE_DYNLIB_H
#include "base/error.h"

/* Open the first of names (NULL-ended) that loads; NULL if none does, with the loader's last words
 * in reason. Records no error: an absent library is an ordinary state. */
void *tern_dynlib_open(const char *const names[], char *reason, size_t bytes);

/* NULL is fine. */
void tern_dynlib_close(void *library);

/* The address of a symbol, or NULL. Copy it into a function pointer with memcpy. */
void *tern_dynlib_symbol(void *library, const char *name);

#endif
