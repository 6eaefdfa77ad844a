/* numpy.h -- arrays as NumPy writes them. */
#ifndef TERN_IO_NUMPY_INSIDE_H
#define TERN_IO_NUMPY_INSIDE_H
#include "io/file.h"
#include "io/out.h"

/* Longer headers are refused, as in NumPy. */
enum { IO_NPY_MOST_HEADER = 10000 };

/* Adds an entry for the array that begins with these n bytes, of `size` in all; entry->at is the
 * offset of its elements in them. Returns NULL after an error. */
io_entry *io_npy_entry(tern_file *file, const char *name, const unsigned char *bytes, size_t n,
                       uint64_t size);
/* Returns the header before the elements of x; its data are NULL after an error if NumPy has no
 * such dtype. */
tern_text io_npy_header(const tern_tensor *x, const char *function);
tern_status io_npy_open(tern_file *file);

#endif
