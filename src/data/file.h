/* file.h -- files that data sets read. */
#ifndef TERN_SRC_DATA_FILE_H
#define TERN_SRC_DATA_FILE_H
#include "data/data.h"

/* An open regular file: later changes of the path don't matter. */
typedef struct tern_data_file {
    int fd; /* file descriptor, or -1 */
    int64_t size;
    char *path;
} tern_data_file;
/* Opens the file. TERN_ERR_IO names the function, the path and the reason. */
tern_status tern_data_file_open(tern_data_file *f, const char *path, const char *function);
void tern_data_file_close(tern_data_file *f);
/* Reads exactly n bytes from offset `at`; a shorter file is an error. Any thread may call it. */
tern_status tern_data_file_read(const tern_data_file *f, int64_t at, void *to, int64_t n,
                                const char *function);
/* Returns the contents of a file of at most `most` bytes, which tern_free frees, or NULL after an
 * error. */
unsigned char *tern_data_file_all(const tern_data_file *f, int64_t most, const char *function);

/* Returns whether the file is compressed by gzip or zstd, from its first bytes. */
bool tern_data_is_packed(const tern_data_file *f);
/* A stream of a file's bytes, decompressed if the file is gzip or zstd. */
typedef struct tern_data_stream {
    const tern_data_file *file;
    int64_t at;                   /* offset in the file, unless it is gzip */
    void *gz;                     /* gzip stream, or NULL */
    const struct tern_zlib *zlib; /* functions that decompress gzip */
    const struct tern_zstd *zstd; /* functions that decompress zstd, or NULL */
    void *frames;                 /* zstd stream */
    unsigned char *piece;         /* bytes of the file; from .. to are not decompressed yet */
    int64_t from, to;
    bool inside; /* inside of a frame of zstd */
} tern_data_stream;
tern_status tern_data_stream_open(tern_data_stream *s, const tern_data_file *f,
                                  const char *function);
void tern_data_stream_close(tern_data_stream *s);
/* Reads up to n bytes; *got is less only at the end. */
tern_status tern_data_stream_read(tern_data_stream *s, void *to, int64_t n, int64_t *got,
                                  const char *function);
/* Returns all bytes of the file, decompressed, with a zero after them, and sets *n to their number.
 * tern_free frees them. Returns NULL after an error. */
unsigned char *tern_data_file_unpacked(const tern_data_file *f, int64_t *n, const char *function);
/* Replaces a compressed file by its decompressed contents in memory. */
tern_status tern_data_file_inflate(tern_data_file *f, const char *function);
#endif
