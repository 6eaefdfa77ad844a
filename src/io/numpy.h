/* numpy.h -- arrays as NumPy writes them. */
#ifndef TERN_IO_NUMPY_INSIDE_H
#define TERN_IO_NUMPY_INSIDE_H
#include "io/file.h"
#include "io/out.h"

/* More is refused, as NumPy does. */
enum { IO_NPY_MOST_HEADER = 10000 };

/* The array that begins with these bytes, of which there are size in all, as an entry called name;
 * its `at` is where its elements begin. NULL after an error. */
io_entry *io_npy_entry(tern_file *file, const char *name, const unsigned char *bytes, size_t n,
                       uint64_t size);
/* What is written before the elements of x; NULL data and an error where NumPy has no such type. */
tern_text io_npy_header(const tern_tensor *x, const char *function);
tern_status io_npy_open(tern_file *file);

#endif
