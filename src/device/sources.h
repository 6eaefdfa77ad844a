/* sources.h -- the files of cl_kernels/ as text inside the library. */
#ifndef TERN_DEVICE_SOURCES_H
#define TERN_DEVICE_SOURCES_H
#include "base/text.h"

typedef struct tern_source {
    const char *name; /* "dialect.h" */
    const char *text; /* with bytes that stand for words */
    size_t bytes;
} tern_source;

/* Ended by a row of zeros; made at build time by cmake/embed.cmake. */
extern const tern_source tern_sources[];
/* What a byte below 32 stands for; NULL: itself. */
extern const char *const tern_source_words[32];

/* The files already in a text, so that each is there once. */
typedef struct tern_sources_seen {
    uint64_t bits[4];
} tern_sources_seen;

/* Append a file with its #include "..." lines replaced by those files, and #line marks that keep
 * compilers' messages right. An unknown file is a bug: it becomes an #error. */
void tern_source_add(tern_text *text, tern_sources_seen *seen, const char *name);

#endif
