/* npz.h -- archives of arrays. */
#ifndef TERN_IO_NPZ_H
#define TERN_IO_NPZ_H
#include "io/file.h"
#include "io/save.h"

/* Opens the arrays of an archive that is open. */
tern_status io_npz_open(tern_file *file);

#endif
