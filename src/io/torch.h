/* torch.h -- files of torch.save, and other archives. */
#ifndef TERN_IO_TORCH_H
#define TERN_IO_TORCH_H
#include "io/npz.h"

/* An archive: PyTorch's, or NumPy's. */
tern_status io_archive_open(tern_file *file);
/* The archive, which is open, is PyTorch's. */
tern_status io_torch_open(tern_file *file);
/* A stream of pickles, which PyTorch wrote before 1.6, and a tar, which it wrote before 0.1.10. */
tern_status io_torch_stream_open(tern_file *file);
tern_status io_torch_tar_open(tern_file *file);

#endif
