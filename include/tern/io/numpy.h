/* io/numpy.h -- NumPy's files: .npy, an array, and .npz, an archive of arrays by name.
 *
 * bfloat16 has no type there: TERN_ERR_DTYPE. tern_load reads both, an array under the name of its
 * file; archives need libzip, which is opened at run time. */
#ifndef TERN_IO_NUMPY_H
#define TERN_IO_NUMPY_H
#include <tern/io/file.h>

TERN_BEGIN_DECLS

/* numpy.save(path, x): as complete or not there as what tern_save writes. */
TERN_API tern_status tern_npy_save(tern_tensor *x, const char *path);
/* numpy.load(path), onto device; of the other byte order too. It belongs to the innermost scope.
 * Errors: TERN_ERR_IO, also for bytes behind the array; TERN_ERR_DTYPE for complex numbers, texts,
 * objects and structs. */
TERN_API tern_tensor *tern_npy_load(const char *path, const char *device);

typedef struct tern_npz_options {
    bool compressed; /* numpy.savez_compressed; needs zlib, which is opened at run time */
    uint64_t reserved[4];
} tern_npz_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_npz_options tern_npz_defaults(void);
/* numpy.savez(path, **dict): the tensors, in their order; metadata has no place there and is left
 * out. Errors: TERN_ERR_IO; TERN_ERR_DTYPE before anything is written; TERN_ERR_UNSUPPORTED. */
TERN_API tern_status tern_npz_save(const tern_state_dict *dict, const char *path,
                                   const tern_npz_options *options);

TERN_END_DECLS
#endif
