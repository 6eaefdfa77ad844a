/* sources.h -- the files of cl_kernels/ as text inside the library. */
#ifndef TERN_DEVICE_SOURCES_H
#define TERN_DEVICE_SOURCES_H
#include "base/text.h"
#include "device/chain.h"

typedef struct tern_source {
    const char *name; /* "dialect.h" */
    size_t from, bytes;
} tern_source;

/* All of them, one after the other; deflated where tern is built with zlib. */
typedef struct tern_source_pack {
    const unsigned char *bytes;
    size_t packed, whole;
} tern_source_pack;

/* Made at build time by cmake/embed.cmake; the rows are ended by one of zeros. */
extern const tern_source tern_sources[];
extern const tern_source_pack tern_packed_sources;

/* The files already in a text, so that each is there once. */
typedef struct tern_sources_seen {
    uint64_t bits[4];
    const char
        *kernels; /* of .def files only the rows that make these are wanted: " gelu add "; NULL:
                    all */
} tern_sources_seen;

/* Append a file with its #include "..." lines replaced by those files, and #line marks that keep
 * compilers' messages right. An unknown file is a bug: it becomes an #error. */
void tern_source_add(tern_text *text, tern_sources_seen *seen, const char *name);

/* Append the kernel of a chain, called chain_f32 for the suffix "f32", with what it needs beside
 * the dialect and functions (chain_text.c). */
void tern_chain_text(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                     tern_dtype dtype);

#endif
