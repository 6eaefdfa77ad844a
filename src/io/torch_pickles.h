/* torch_pickles.h -- pickles that follow each other in a file, without lengths. */
#ifndef TERN_IO_TORCH_PICKLES_H
#define TERN_IO_TORCH_PICKLES_H
#include "io/pickle.h"

/* The function `more` of an io_pickle: reads from the file's first part, between `from` and
 * `end`. */
tern_status io_torch_more(io_pickle *p, size_t n);
/* Checks the dict of the machine that wrote the file: little_endian, protocol_version. */
tern_status io_torch_check_system(const io_pickle *p, int value);

#endif
