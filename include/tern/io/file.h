/* io/file.h -- tensors by name in files: saved, loaded, looked at without loading.
 *
 *   tern_save(dict, "model.safetensors", NULL);
 *   tern_state_dict *back = tern_load("model.safetensors", NULL);
 *
 * What is loaded: safetensors, one file or several with their index; GGUF, whose blocks become
 * float32, one file or several parts (NAME-00001-of-00003.gguf), of which any may be given; NumPy's
 * arrays (.npy, .npz); PyTorch's files of all times (.pt, .pth, .bin, TorchScript, .pt2), their
 * tensors under names joined by dots and their numbers and texts as metadata. A file's kind is read
 * from its first bytes, never from its name; a kind that is not read is refused by its name.
 * Nothing in a file is run, no size in it is believed before it was compared with the file's, and
 * one that is damaged is TERN_ERR_IO with the tensor and the place in the message.
 *
 * What is saved is complete or not there: a file is written under no name, brought to the disk
 * (fsync), and then takes the place of the old one (rename). A failure or the end of the process
 * before that leaves the old file as it was. */
#ifndef TERN_IO_FILE_H
#define TERN_IO_FILE_H
#include <tern/nn.h>

TERN_BEGIN_DECLS

/* ---- saving ---------------------------------------------------------------------------------- */

typedef struct tern_save_options {
    /* Bytes of tensors in a file, of which there are more where they do not fit; a larger tensor
     * has a file of its own. 0: one file. Then path is a folder, which is made where it is not
     * there, for model-00001-of-00002.safetensors and so on, and model.safetensors.index.json; or
     * it ends in .safetensors, and gives the name in place of "model". */
    uint64_t max_shard_size;
    /* Of a model that is written as a GGUF (tern_models_save_pretrained): the type of its matrices,
     * f32, f16, bf16, q8_0, q4_0, q4_1, q5_0, q5_1, q2_k to q6_k or iq4_nl; NULL: each as it is.
     * TERN_ERR_ARGUMENT elsewhere. */
    const char *type;
    uint64_t reserved[4];
} tern_save_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_save_options tern_save_defaults(void);

/* The tensors of dict, from any devices, and its metadata, as safetensors: byte for byte what
 * Python's safetensors writes, where there is at most one text of metadata. Two names of one
 * storage are both written. The file has the old one's mode, else 0666 less the umask. A symbolic
 * link is followed; what is neither absent nor a regular file is not replaced. Refused while an
 * error is recorded. Errors: TERN_ERR_IO; TERN_ERR_ARGUMENT for a name that is empty,
 * "__metadata__" or no UTF-8; TERN_ERR_UNSUPPORTED for names that end as those of other formats,
 * such as .pt, .npz or .h5. */
TERN_API tern_status tern_save(const tern_state_dict *dict, const char *path,
                               const tern_save_options *options);

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct tern_load_options {
    const char *map_location; /* the device that all tensors come to; NULL: the default one */
    const char *prefix;      /* only tensors whose names begin with it, which are left without it */
    const char *const *only; /* only these names, as the file has them; NULL: all */
    int n_only;
    /* Tensors of the cpu lie in the file's pages, which are read when they are first touched: those
     * of safetensors, GGUF and .npy whose elements are as tern has them; others, bools and blocks
     * among them, and those of devices are read as without. Writes stay in memory. A file that is
     * cut short meanwhile ends the process with SIGBUS, as every map does; one that tern_save
     * replaces does not. The header of a GGUF is mapped in any case. */
    bool mmap;
    uint64_t reserved[4];
} tern_load_options;
/* Returns the default options, as TERN_DEFAULTS takes them. */
TERN_API tern_load_options tern_load_defaults(void);

/* All that is in a file, to be freed with tern_state_dict_free: of several files the index
 * ("model.safetensors.index.json") or their folder, in which model.safetensors, its index,
 * pytorch_model.bin, its index and adapter_model are looked for in this order. Needs memory for the
 * tensors, and 16 MiB where they go to a device. What a pickle has besides tensors, numbers and
 * texts is an object that is not understood: metadata lists the names of such classes and functions
 * under "__opaque__". Errors: TERN_ERR_IO; TERN_ERR_DTYPE for types that tern does not have, and
 * tensors that are quantized, sparse, conjugated or without data, unless only leaves them out;
 * TERN_ERR_ARGUMENT where a name of only is not there; TERN_ERR_UNSUPPORTED for an archive without
 * libzip. */
TERN_API tern_state_dict *tern_load(const char *path, const tern_load_options *options);

/* ---- a look inside (safetensors.safe_open) --------------------------------------------------- */

/* A file that is open: names, shapes and types are known, and tensors are read when they are asked
 * for. It may be used on several threads at once. */
typedef struct tern_file tern_file;

/* Of every kind that tern_load reads; to be freed with tern_file_free. NULL after an error. */
TERN_API tern_file *tern_safe_open(const char *path);
/* Closes it; NULL is fine. */
TERN_API void tern_file_free(tern_file *file);
/* How many tensors there are. */
TERN_API int tern_file_count(const tern_file *file);
/* The name of the i-th, in the order of the file, borrowed; NULL and an error outside of
 * 0 .. count - 1. */
TERN_API const char *tern_file_name_at(const tern_file *file, int i);
/* Whether there is a tensor of that name. Records no error. */
TERN_API bool tern_file_has(const tern_file *file, const char *name);
/* The shape of a tensor; one that every function refuses after an error. */
TERN_API tern_shape tern_file_shape(const tern_file *file, const char *name);
/* Its type; TERN_DTYPE_DEFAULT for one that tern does not have, and after an error. */
TERN_API tern_dtype tern_file_dtype(const tern_file *file, const char *name);
/* Its type as safetensors calls it ("BF16", "F4"), of a GGUF as that does ("Q4_K", whose blocks are
 * read as float32), "?" for a tensor that can't be read at all, borrowed; NULL after an error. */
TERN_API const char *tern_file_dtype_name(const tern_file *file, const char *name);
/* Bytes of its elements in the file; 0 after an error. */
TERN_API uint64_t tern_file_nbytes(const tern_file *file, const char *name);
/* A tensor, onto device. It belongs to the innermost scope. */
TERN_API tern_tensor *tern_file_get(tern_file *file, const char *name, const char *device);
/* Its part from start to end along dim 0, x[start:end]; of other parts nothing is read where the
 * file allows it. Errors: TERN_ERR_ARGUMENT unless 0 <= start <= end <= size. */
TERN_API tern_tensor *tern_file_get_slice(tern_file *file, const char *name, int64_t start,
                                          int64_t end, const char *device);
/* The text of metadata under a key, borrowed; NULL where there is none, without an error. */
TERN_API const char *tern_file_metadata(const tern_file *file, const char *key);
/* How many texts there are. */
TERN_API int tern_file_metadata_count(const tern_file *file);
/* The key of the i-th; NULL and an error outside of 0 .. count - 1. */
TERN_API const char *tern_file_metadata_key_at(const tern_file *file, int i);

TERN_END_DECLS
#endif
