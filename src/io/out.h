/* out.h -- files that are there as a whole or not at all.
 *
 *     io_out out = {.function = "tern_save", .path = path};
 *     tern_status status = io_out_open(&out, bytes);
 *     ... io_out_write ...
 *     if (status == TERN_OK)
 *         status = io_out_commit(&out);
 *     io_out_close(&out);
 *
 * The file has no name until it is on the disk; then it takes the place of the old one. Whatever
 * fails before leaves that as it was, and nothing else behind. */
#ifndef TERN_IO_OUT_H
#define TERN_IO_OUT_H
#include "base/text.h"
#include <tern/tensor.h>

typedef struct io_out {
    const char *function, *path; /* for messages; the path as it was given */
    bool fresh;                  /* the name must not be there yet */
    /* The rest is set by io_out_open. */
    bool is_open, is_renamed;
    int folder, fd;
    char *name;       /* in the folder */
    char *temporary;  /* likewise; NULL: the file has no name */
    uint64_t at;      /* bytes written so far */
    uint64_t started; /* of these, on their way to the disk */
} io_out;

/* bytes: how long it will be; 0: not known. */
TERN_PRIVATE tern_status io_out_open(io_out *out, uint64_t bytes);
TERN_PRIVATE tern_status io_out_write(io_out *out, const void *data, size_t bytes);
/* Bytes that were written before, once more. */
tern_status io_out_write_at(io_out *out, uint64_t at, const void *data, size_t bytes);
/* All bytes of x, densely in row-major order, from any device; put writes each piece, if it is not
 * NULL. */
TERN_PRIVATE tern_status io_out_tensor(io_out *out, tern_tensor *x,
                                       tern_status (*put)(void *user, const void *data,
                                                          size_t bytes),
                                       void *user);
/* The bytes are on the disk. */
TERN_PRIVATE tern_status io_out_sync(io_out *out);
/* The file has its name; the folder may not know it yet after a loss of power. */
TERN_PRIVATE tern_status io_out_rename(io_out *out);
/* It does. */
tern_status io_out_sync_folder(io_out *out);
/* These three. */
TERN_PRIVATE tern_status io_out_commit(io_out *out);
/* Takes the name away again, of a fresh file. */
void io_out_undo(io_out *out);
/* In any case at the end. */
TERN_PRIVATE void io_out_close(io_out *out);

/* TERN_ERR_IO: "<function>: <path>: <what>: <the system's words>". */
tern_status io_fail_system(const char *function, const char *path, const char *what);

#endif
