/* torch_pickles.h -- pickles that lie in a file one after the other, without their lengths. */
#ifndef TERN_IO_TORCH_PICKLES_H
#define TERN_IO_TORCH_PICKLES_H
#include "io/pickle.h"

/* io_pickle's `more`: reads on in the file's first part, from `from` to `end`. */
tern_status io_torch_more(io_pickle *p, size_t n);
/* The dict of the machine that wrote the file: little_endian, protocol_version. */
tern_status io_torch_check_system(const io_pickle *p, int value);

#endif
