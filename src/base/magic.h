/* magic.h -- file types by their first bytes: their names in messages, and the functions that read
 * them. */
#ifndef TERN_BASE_MAGIC_H
#define TERN_BASE_MAGIC_H
#include "base/error.h"
#include <stddef.h>

/* Enough bytes to recognise every type of the table. */
enum { TERN_MAGIC_BYTES = 264 };

typedef struct tern_magic {
    const char *name; /* with an article: "a GIF image" */
    const char *way;  /* a sentence that says what to do; or "" */
} tern_magic;

/* Returns the type of a file that begins with these n bytes; NULL if unknown. */
TERN_PRIVATE const tern_magic *tern_magic_of(const void *bytes, size_t n);
/* Returns the same for messages: ": it is a GIF image, ...", of at most 300 bytes; "" if
 * unknown. */
typedef struct tern_magic_text {
    char text[320];
} tern_magic_text;
TERN_PRIVATE tern_magic_text tern_magic_say(const void *bytes, size_t n);

#endif
