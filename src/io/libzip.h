/* libzip.h -- reads archives by libzip, which is opened at run time. */
#ifndef TERN_IO_LIBZIP_H
#define TERN_IO_LIBZIP_H
#include "io/file.h"

/* A file in an archive. */
typedef struct io_member_facts {
    const char *name; /* owned by the archive */
    uint64_t index, size;
    bool is_zero_crc; /* the archive has no checksum of it */
} io_member_facts;

/* Opens the file's first part as an archive, whose headers must be consistent, and makes it the
 * file's reader: an entry's part is then the member's number. */
tern_status io_zip_open(tern_file *file);
/* Returns the number of members. */
int io_zip_count(const tern_file *file);
/* Writes the facts of member i. Fails if it is encrypted, compressed by another method than
 * deflate, or larger than its bytes could decompress to. */
tern_status io_zip_member(const tern_file *file, int i, io_member_facts *facts);
/* Reads the first bytes of a member, at most `most`, and sets *n to their number. whole: these are
 * all, and their checksum is compared. */
tern_status io_zip_read(tern_file *file, const io_member_facts *facts, void *to, size_t most,
                        size_t *n, bool whole);

#endif
