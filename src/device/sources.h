/* sources.h -- the files of cl_kernels/ as text inside the library. */
#ifndef TERN_DEVICE_SOURCES_H
#define TERN_DEVICE_SOURCES_H
#include "base/text.h"
#include "device/chain.h"

typedef struct tern_source {
    const char *name; /* "dialect.h" */
    size_t from, bytes;
} tern_source;

/* The text of all files, one after the other; deflated if tern is built with zlib. */
typedef struct tern_source_pack {
    const unsigned char *bytes;
    size_t packed, whole;
} tern_source_pack;

/* Generated at build time by cmake/embed.cmake; the last row is all zeros. */
extern const tern_source tern_sources[];
extern const tern_source_pack tern_packed_sources;

/* The files that are already in a text, so that each is added once. */
typedef struct tern_sources_seen {
    uint64_t bits[4];
    const char
        *kernels; /* the kernels whose rows of .def files are added: " gelu add "; NULL: all rows */
} tern_sources_seen;

/* Appends a file to the text, with the files in place of its #include "..." lines, and #line marks
 * for compilers' messages. An unknown file, which is a bug, becomes an #error. */
void tern_source_add(tern_text *text, tern_sources_seen *seen, const char *name);

/* Appends the kernel of a chain, with the name chain_f32 for the suffix "f32", and the files that
 * the kernel needs besides the dialect and its functions (chain_text.c). */
void tern_chain_text(tern_text *text, tern_sources_seen *seen, const tern_chain *chain,
                     tern_dtype dtype);

#endif
