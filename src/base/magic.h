/* magic.h -- kinds of files by their first bytes: what messages call them, and which function reads
 * them. */
#ifndef TERN_BASE_MAGIC_H
#define TERN_BASE_MAGIC_H
#include "base/error.h"
#include <stddef.h>

/* Bytes that are enough to know every kind of the table. */
enum { TERN_MAGIC_BYTES = 264 };

typedef struct tern_magic {
    const char *name; /* with its article: "a GIF image" */
    const char *way;  /* a sentence that says how to go on; "" for none */
} tern_magic;

/* The kind of a file that begins with these n bytes; NULL: an unknown one. */
TERN_PRIVATE const tern_magic *tern_magic_of(const void *bytes, size_t n);
/* The same for messages: ": it is a GIF image, ..." of at most 300 bytes; "" for an unknown
 * kind. */
typedef struct tern_magic_text {
    char text[320];
} tern_magic_text;
TERN_PRIVATE tern_magic_text tern_magic_say(const void *bytes, size_t n);

#endif
