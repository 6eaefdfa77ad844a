/* torch.h -- files that PyTorch writes: what all kinds of them share.
 *
 *   torch.c          archives of torch.save, torch.jit.save (a pickle and the bytes of storages),
 *                    and which archive is whose
 *   torch_export.c   archives of torch.export.save
 *   torch_stream.c   the stream of pickles from before 1.6
 *   torch_tar.c      the tar from before 0.1.10
 *   torch_entries.c  the values of a pickle become names, tensors and metadata */
#ifndef TERN_IO_TORCH_H
#define TERN_IO_TORCH_H
#include "io/libzip.h"
#include "io/pickle.h"

enum { IO_TORCH_MOST_PICKLE = 256 << 20 };

/* The place of a storage's bytes: a part of the file, an offset in it, and their number. */
typedef struct io_place {
    int part;
    uint64_t at, bytes;
} io_place;

typedef struct io_checkpoint io_checkpoint;
struct io_checkpoint {
    tern_file *file;
    io_pickle pickle;
    /* Finds the bytes of a storage, for the tensor of that name. */
    tern_status (*find)(io_checkpoint *c, const char *name, const io_value *storage,
                        io_place *place);
    /* Skips attributes that have tensors with other names too, as TorchScript's _flat_weights. */
    bool is_script;
    /* Fields of torch_entries.c: */
    char name[4096]; /* name of the value that is visited */
    size_t name_length;
    uint64_t visits;    /* values visited: shared values can make a tree of any size */
    uint64_t written;   /* bytes of names and metadata */
    uint64_t expanded;  /* bytes of tensors with more elements than their storages */
    tern_text opaque;   /* unknown globals, for the metadata */
    tern_keys noted;    /* index of these names */
    char **noted_names; /* keys of the index */
    int n_noted;
};

/* Adds all tensors of a value to the file, with names joined by dots; numbers and texts become
 * metadata. */
tern_status io_torch_entries(io_checkpoint *c, int root);
void io_torch_free(io_checkpoint *c);

/* Sizes and strides of a tensor. */
typedef struct io_geometry {
    int64_t numbers[2 * TERN_MAX_DIMS]; /* sizes, then strides */
    int ndim;
    uint64_t offset; /* in elements */
} io_geometry;
/* Adds a tensor in a storage; fails if its elements exceed the storage. *needed: bytes of all
 * tensors so far with more elements than their storage. */
tern_status io_torch_tensor(tern_file *file, const char *name, const io_torch_type *type,
                            const io_geometry *g, const io_place *storage, uint64_t *needed,
                            io_entry **entry);
tern_status io_torch_bad_tensor(const tern_file *file, const char *name, const char *what);

/* ---- kinds ----------------------------------------------------------------------------------- */
/* Opens an archive: PyTorch's, or NumPy's. */
tern_status io_archive_open(tern_file *file);
/* Open PyTorch's stream of pickles from before 1.6, and its tar from before 0.1.10. */
tern_status io_torch_stream_open(tern_file *file);
tern_status io_torch_tar_open(tern_file *file);

/* Opens an archive of torch.export.save. members: index of the members by name; stem: "NAME/", with
 * which the names begin. */
tern_status io_torch_export_open(tern_file *file, const tern_keys *members, const char *stem);
/* Finds the member "<stem><name>" of an archive; sets *found to whether it exists. */
tern_status io_torch_member(const tern_file *file, const tern_keys *members, const char *stem,
                            const char *name, io_member_facts *facts, bool *found);

#endif
