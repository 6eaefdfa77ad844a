/* io/file.h -- files of tensors by name: saving, loading, and reading single tensors.
 *
 *   tern_save(dict, "model.safetensors", NULL);
 *   tern_state_dict *back = tern_load("model.safetensors", NULL);
 *
 * These files can be loaded: safetensors, one file or several with their index; GGUF, whose blocks
 * become float32, one file or several parts (NAME-00001-of-00003.gguf), of which any may be named;
 * NumPy's arrays (.npy, .npz); and all of PyTorch's formats (.pt, .pth, .bin, TorchScript, .pt2),
 * whose tensors get names joined by dots, and whose numbers and texts become metadata. The first
 * bytes of a file determine its format, never its name; an unsupported format is refused by its
 * name. Nothing in a file is executed, and every size in it is compared with the size of the file
 * before it is used. A damaged file is TERN_ERR_IO, with the tensor and the position in the
 * message.
 *
 * A saved file is complete or absent: it is written without a name, flushed to the disk (fsync),
 * and then replaces the old file (rename). If saving fails or the process ends before that, the old
 * file is unchanged. */
#ifndef TERN_IO_FILE_H
#define TERN_IO_FILE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct tern_save_options {
    /* The largest number of bytes of tensors in a file; if they do not fit, several files are
     * written, and a larger tensor gets a file of its own. 0: one file. With a limit, path is a
     * folder, which is created if it does not exist, for model-00001-of-00002.safetensors and so on
     * and model.safetensors.index.json; or path ends in .safetensors and gives the name in place of
     * "model". */
    uint64_t max_shard_size;
    /* For a model that is written as a GGUF (tern_models_save_pretrained): the type of its
     * matrices, f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k to q6_k or iq4_nl; NULL keeps
     * the type of each. Elsewhere it is TERN_ERR_ARGUMENT. */
    const char *type;
    uint64_t reserved[4];
} tern_save_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_save_options tern_save_defaults(void);

/* Writes the tensors of dict, from any devices, and its metadata as safetensors. The file is byte
 * for byte what Python's safetensors writes, if there is at most one text of metadata. If two names
 * share a storage, both are written. The file keeps the mode of the old one, or has mode 0666 less
 * the umask. A symbolic link is followed; anything that is not a regular file is not replaced.
 * While an error is recorded nothing is written, and that error is returned. Errors: TERN_ERR_IO;
 * TERN_ERR_ARGUMENT for a name that is empty, "__metadata__" or not UTF-8; TERN_ERR_UNSUPPORTED for
 * a path that ends like other formats', such as .pt, .npz or .h5. */
TERN_API tern_status tern_save(const tern_state_dict *dict, const char *path,
                               const tern_save_options *options);

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct tern_load_options {
    const char *map_location; /* the device to which all tensors are loaded; NULL: the default
                               * one */
    const char *prefix;       /* load only tensors whose names begin with it, and remove it from
                               * the names */
    const char *const *only;  /* load only these names, as they are in the file; NULL: all */
    int n_only;
    /* Tensors on the cpu use the mapped pages of the file, which are read when they are first
     * touched. This applies to the tensors of safetensors, GGUF and .npy whose elements are stored
     * as in tern; all others, such as bools, blocks and tensors for other devices, are read as
     * without mmap. Writes to the tensors stay in memory. If the file is truncated meanwhile, the
     * process ends with SIGBUS, as with every mapped file; a file that tern_save replaces does no
     * harm. The header of a GGUF is always mapped. */
    bool mmap;
    uint64_t reserved[4];
} tern_load_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_load_options tern_load_defaults(void);

/* Loads all tensors of a file as a state dict, which the caller frees with tern_state_dict_free;
 * NULL after an error. For several files path is their index ("model.safetensors.index.json") or
 * their folder, in which model.safetensors, its index, pytorch_model.bin, its index and
 * adapter_model are looked for in this order. It needs memory for the tensors, and 16 MiB more if
 * they go to another device. A pickle's objects that are neither tensors, numbers nor texts are not
 * loaded; metadata lists the names of their classes and functions under "__opaque__". Errors:
 * TERN_ERR_IO; TERN_ERR_DTYPE for dtypes that tern does not have and for tensors that are
 * quantized, sparse, conjugated or without data, unless .only leaves them out; TERN_ERR_ARGUMENT
 * for a name of .only that does not exist; TERN_ERR_UNSUPPORTED for an archive without libzip. */
TERN_API tern_state_dict *tern_load(const char *path, const tern_load_options *options);

/* ---- reading single tensors (safetensors.safe_open) ------------------------------------------ */

/* An open file: names, shapes and dtypes are known, and a tensor is read when it is asked for.
 * Several threads may use it at once. */
typedef struct tern_file tern_file;

/* Opens a file of any format that tern_load reads. The caller closes it with tern_file_free. NULL
 * after an error. */
TERN_API tern_file *tern_safe_open(const char *path);
/* Closes the file; NULL is fine. */
TERN_API void tern_file_free(tern_file *file);
/* Returns the number of tensors. */
TERN_API int tern_file_count(const tern_file *file);
/* Returns the name of the i-th tensor in the order of the file, borrowed; NULL and an error unless
 * i is in 0 .. count - 1. */
TERN_API const char *tern_file_name_at(const tern_file *file, int i);
/* Returns whether there is a tensor of that name. Records no error. */
TERN_API bool tern_file_has(const tern_file *file, const char *name);
/* Returns the shape of a tensor; after an error, a shape that every function refuses. */
TERN_API tern_shape tern_file_shape(const tern_file *file, const char *name);
/* Returns the dtype of a tensor; TERN_DTYPE_DEFAULT for a dtype that tern does not have, and after
 * an error. */
TERN_API tern_dtype tern_file_dtype(const tern_file *file, const char *name);
/* Returns the dtype of a tensor in the words of its format: "BF16" or "F4" in safetensors, "Q4_K"
 * in a GGUF (whose blocks are read as float32), "?" for a tensor that cannot be read. The text is
 * borrowed; NULL after an error. */
TERN_API const char *tern_file_dtype_name(const tern_file *file, const char *name);
/* Returns the size of the tensor's elements in the file, in bytes; 0 after an error. */
TERN_API uint64_t tern_file_nbytes(const tern_file *file, const char *name);
/* Reads a tensor to device. It belongs to the innermost scope. */
TERN_API tern_tensor *tern_file_get(tern_file *file, const char *name, const char *device);
/* Reads the entries start to end of dim 0, x[start:end], and nothing else where the format allows
 * it. Errors: TERN_ERR_ARGUMENT unless 0 <= start <= end <= size. */
TERN_API tern_tensor *tern_file_get_slice(tern_file *file, const char *name, int64_t start,
                                          int64_t end, const char *device);
/* Returns the metadata text under a key, borrowed; NULL, without an error, if there is none. */
TERN_API const char *tern_file_metadata(const tern_file *file, const char *key);
/* Returns the number of metadata texts. */
TERN_API int tern_file_metadata_count(const tern_file *file);
/* Returns the key of the i-th text; NULL and an error unless i is in 0 .. count - 1. */
TERN_API const char *tern_file_metadata_key_at(const tern_file *file, int i);

TERN_END_DECLS
#endif
