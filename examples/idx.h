/* idx.h -- files of the MNIST database: http://yann.lecun.com/exdb/mnist */
#ifndef EXAMPLES_IDX_H
#define EXAMPLES_IDX_H
#include <stddef.h>
#include <stdint.h>

/* n items of `each` bytes. */
typedef struct idx_file {
    uint8_t *bytes;
    size_t n, each;
} idx_file;

/* Read an IDX file of bytes; one whose name ends in .gz goes through gzip. Returns 0 after a
 * message to stderr. */
int idx_read(idx_file *file, const char *path);
void idx_free(idx_file *file);

#endif
