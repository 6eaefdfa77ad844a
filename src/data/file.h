/* file.h -- files that data sets are read from. */
#ifndef TERN_SRC_DATA_FILE_H
#define TERN_SRC_DATA_FILE_H
#include "data/data.h"

/* A regular file that is open: what is looked at is what was opened. */
typedef struct tern_data_file {
    int fd; /* -1: none */
    int64_t size;
    char *path;
} tern_data_file;
/* TERN_ERR_IO that names function, path and reason. */
tern_status tern_data_file_open(tern_data_file *f, const char *path, const char *function);
void tern_data_file_close(tern_data_file *f);
/* n bytes from `at` on, all of them: a file that was cut short is an error. Any thread. */
tern_status tern_data_file_read(const tern_data_file *f, int64_t at, void *to, int64_t n,
                                const char *function);
/* All of a file of at most `most` bytes, to be freed with tern_free; NULL after an error. */
unsigned char *tern_data_file_all(const tern_data_file *f, int64_t most, const char *function);

/* Whether the file is packed by gzip or zstd, by its first bytes. */
bool tern_data_is_packed(const tern_data_file *f);
/* A stream of the bytes of a file, out of gzip or zstd where it is packed by these. */
typedef struct tern_data_stream {
    const tern_data_file *file;
    int64_t at;                   /* in the file, of what is not gzip's */
    void *gz;                     /* of gzip; NULL: not packed so */
    const struct tern_zlib *zlib; /* that inflates it */
    const struct tern_zstd *zstd; /* NULL: not packed by it */
    void *frames;                 /* its stream */
    unsigned char *piece;         /* of the file; from .. to is still to be unpacked */
    int64_t from, to;
    bool inside; /* of a frame */
} tern_data_stream;
tern_status tern_data_stream_open(tern_data_stream *s, const tern_data_file *f,
                                  const char *function);
void tern_data_stream_close(tern_data_stream *s);
/* Up to n bytes: *got is less at the end alone. */
tern_status tern_data_stream_read(tern_data_stream *s, void *to, int64_t n, int64_t *got,
                                  const char *function);
/* All bytes of a file, out of gzip or zstd where it is packed so, and a zero behind them, to be
 * freed with tern_free; *n of them. NULL after an error. */
unsigned char *tern_data_file_unpacked(const tern_data_file *f, int64_t *n, const char *function);
/* A file that is packed becomes what is packed in it, in memory. */
tern_status tern_data_file_inflate(tern_data_file *f, const char *function);
#endif
