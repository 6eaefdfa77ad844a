/* torch.h -- files of torch.save, and other archives. */
#ifndef TERN_IO_TORCH_H
#define TERN_IO_TORCH_H
#include "io/npz.h"

/* An archive: PyTorch's, or NumPy's. */
tern_status io_archive_open(tern_file *file);
/* The archive, which is open, is PyTorch's. */
tern_status io_torch_open(tern_file *file);
/* TERN_ERR_IO for a form that is no longer written. */
tern_status io_refuse_old(const tern_file *file, const char *kind);

#endif
