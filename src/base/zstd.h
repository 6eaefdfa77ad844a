/* zstd.h -- libzstd, opened at run time. */
#ifndef TERN_BASE_ZSTD_H
#define TERN_BASE_ZSTD_H
#include "base/error.h"
#include <stddef.h>

/* ZSTD_inBuffer and ZSTD_outBuffer of zstd.h. */
typedef struct tern_zstd_in {
    const void *bytes;
    size_t n, at;
} tern_zstd_in;
typedef struct tern_zstd_out {
    void *bytes;
    size_t n, at;
} tern_zstd_out;

typedef struct tern_zstd {
    void *(*create)(void);
    size_t (*free)(void *stream);
    /* Returns 0 at the end of a frame. */
    size_t (*decompress)(void *stream, tern_zstd_out *to, tern_zstd_in *from);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
} tern_zstd;

/* Returns the functions; NULL after TERN_ERR_UNSUPPORTED if libzstd is missing. The message begins
 * with function and names the package. Thread-safe. */
const tern_zstd *tern_zstd_open(const char *function);

#endif
