/* libzip.h -- libzip, opened at run time: archives that are read. */
#ifndef TERN_IO_LIBZIP_H
#define TERN_IO_LIBZIP_H
#include "io/file.h"

/* A file in an archive. */
typedef struct io_member_facts {
    const char *name; /* the archive's */
    uint64_t index, size;
    bool is_zero_crc; /* none was written, so that none is checked */
} io_member_facts;

/* Opens the file's first part as an archive whose members are consistent with each other, and makes
 * it the file's reader: an entry's member is in its part's place. */
tern_status io_zip_open(tern_file *file);
/* How many members there are. */
int io_zip_count(const tern_file *file);
/* The i-th; refused where it is encrypted, compressed in another way than by deflate, or larger
 * than its bytes could become. */
tern_status io_zip_member(const tern_file *file, int i, io_member_facts *facts);
/* Its first bytes, at most `most`; how many goes to *n. All of it, if whole: then its checksum is
 * compared too. */
tern_status io_zip_read(tern_file *file, const io_member_facts *facts, void *to, size_t most,
                        size_t *n, bool whole);

#endif
