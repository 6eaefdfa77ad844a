/* out.h -- writes files that exist completely or not at all.
 *
 *   io_out out = {.function = "tern_save", .path = path};
 *   tern_status status = io_out_open(&out, bytes);
 *   ... io_out_write ...
 *   if (status == TERN_OK)
 *       status = io_out_commit(&out);
 *   io_out_close(&out);
 *
 * The file has no name until it is on the disk; then it replaces the old one. An error before that
 * leaves the old file unchanged, and no other file. */
#ifndef TERN_IO_OUT_H
#define TERN_IO_OUT_H
#include "base/text.h"
#include <tern/tensor.h>

typedef struct io_out {
    const char *function, *path; /* for messages; path as the caller gave it */
    bool fresh;                  /* fail if the name exists */
    /* io_out_open sets the rest. */
    bool is_open, is_renamed;
    int folder, fd;
    char *name;       /* within the folder */
    char *temporary;  /* temporary name in the folder, or NULL if the file has no name */
    uint64_t at;      /* bytes written */
    uint64_t started; /* bytes whose writing to the disk was begun */
} io_out;

/* Opens the output, whose final size is `bytes`, or 0 if unknown. */
TERN_PRIVATE tern_status io_out_open(io_out *out, uint64_t bytes);
TERN_PRIVATE tern_status io_out_write(io_out *out, const void *data, size_t bytes);
/* Overwrites bytes that were written before. */
tern_status io_out_write_at(io_out *out, uint64_t at, const void *data, size_t bytes);
/* Writes all elements of x in row-major order, from any device; by `put`, a piece at a time, unless
 * put is NULL. */
TERN_PRIVATE tern_status io_out_tensor(io_out *out, tern_tensor *x,
                                       tern_status (*put)(void *user, const void *data,
                                                          size_t bytes),
                                       void *user);
/* Waits until the bytes are on the disk. */
TERN_PRIVATE tern_status io_out_sync(io_out *out);
/* Gives the file its name. After a power failure the folder may lack it until
 * io_out_sync_folder. */
TERN_PRIVATE tern_status io_out_rename(io_out *out);
/* Waits until the folder is on the disk. */
tern_status io_out_sync_folder(io_out *out);
/* Calls the last three functions. */
TERN_PRIVATE tern_status io_out_commit(io_out *out);
/* Removes the name of a fresh file again. */
void io_out_undo(io_out *out);
/* Must be called at the end, also after errors. */
TERN_PRIVATE void io_out_close(io_out *out);

/* Records TERN_ERR_IO: "<function>: <path>: <what>: <strerror>". */
tern_status io_fail_system(const char *function, const char *path, const char *what);

#endif
