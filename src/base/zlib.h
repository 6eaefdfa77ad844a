/* zlib.h -- zlib (gzip and deflate), opened at run time. */
#ifndef TERN_BASE_ZLIB_H
#define TERN_BASE_ZLIB_H
#include "base/error.h"
#ifdef TERN_WITH_ZLIB
#include <zlib.h>
#else
typedef struct gzFile_s *gzFile;
#endif

/* The functions that zlib.h declares. */
typedef struct tern_zlib {
    gzFile (*gzdopen)(int fd, const char *mode);
    int (*gzbuffer)(gzFile file, unsigned size);
    int (*gzread)(gzFile file, void *to, unsigned n);
    const char *(*gzerror)(gzFile file, int *code);
    int (*gzclose)(gzFile file);
#ifdef TERN_WITH_ZLIB
    int (*deflateInit2_)(z_stream *stream, int level, int method, int bits, int memory,
                         int strategy, const char *version, int bytes);
    int (*deflate)(z_stream *stream, int flush);
    int (*deflateEnd)(z_stream *stream);
    int (*inflateInit2_)(z_stream *stream, int bits, const char *version, int bytes);
    int (*inflate)(z_stream *stream, int flush);
    int (*inflateEnd)(z_stream *stream);
#endif
} tern_zlib;

/* Returns the functions; NULL after TERN_ERR_UNSUPPORTED if zlib is missing. The message begins
 * with function and names the option and the package. Thread-safe. */
const tern_zlib *tern_zlib_open(const char *function);

#endif
