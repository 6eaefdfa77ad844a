/* io/numpy.h -- NumPy's files: .npy, one array, and .npz, an archive of arrays by name.
 *
 * NumPy has no bfloat16: TERN_ERR_DTYPE. tern_load reads both formats, an array under the name of
 * its file. Archives need libzip, which is opened at run time. */
#ifndef TERN_IO_NUMPY_H
#define TERN_IO_NUMPY_H
#include <tern/io/file.h>

TERN_BEGIN_DECLS

/* Writes x as numpy.save(path, x) does. The file is complete or absent, as with tern_save. */
TERN_API tern_status tern_npy_save(tern_tensor *x, const char *path);
/* Reads an array to device, in either byte order (numpy.load). It belongs to the innermost scope.
 * Errors: TERN_ERR_IO, also for bytes after the array; TERN_ERR_DTYPE for complex numbers, texts,
 * objects and structs. */
TERN_API tern_tensor *tern_npy_load(const char *path, const char *device);

typedef struct tern_npz_options {
    bool compressed; /* write compressed arrays (numpy.savez_compressed); needs zlib, which is
                      * opened at run time */
    uint64_t reserved[4];
} tern_npz_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_npz_options tern_npz_defaults(void);
/* Writes the tensors of dict in their order, as numpy.savez(path, **dict) does. The format has no
 * metadata, so that of dict is not written. Errors: TERN_ERR_IO; TERN_ERR_DTYPE, before anything is
 * written; TERN_ERR_UNSUPPORTED without libzip or zlib. */
TERN_API tern_status tern_npz_save(const tern_state_dict *dict, const char *path,
                                   const tern_npz_options *options);

TERN_END_DECLS
#endif
