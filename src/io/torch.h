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

/* Where the bytes of a storage are: a part of the file, a place there, and how many there are. */
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
    /* Passes over attributes of objects that hold tensors under another name too, as TorchScript's
     * _flat_weights. */
    bool is_script;
    /* ---- of torch_entries.c ---- */
    char name[4096]; /* of the value that is visited */
    size_t name_length;
    uint64_t visits;    /* of values so far: shared ones can be a tree of any size */
    uint64_t written;   /* bytes of names and metadata so far */
    uint64_t expanded;  /* bytes of tensors that have more elements than their storages */
    tern_text opaque;   /* names that are not known, for the metadata */
    tern_keys noted;    /* these names */
    char **noted_names; /* of the keys */
    int n_noted;
};

/* Puts all tensors of the value into the file, under names joined by dots; numbers and texts become
 * metadata. */
tern_status io_torch_entries(io_checkpoint *c, int root);
void io_torch_free(io_checkpoint *c);

/* Sizes and strides of a tensor. */
typedef struct io_geometry {
    int64_t numbers[2 * TERN_MAX_DIMS]; /* sizes, strides */
    int ndim;
    uint64_t offset; /* in elements */
} io_geometry;
/* An entry of elements of a type in a storage; fails where they do not fit into it. needed: bytes
 * of all tensors so far that have more elements than their storage. */
tern_status io_torch_tensor(tern_file *file, const char *name, const io_torch_type *type,
                            const io_geometry *g, const io_place *storage, uint64_t *needed,
                            io_entry **entry);
tern_status io_torch_bad_tensor(const tern_file *file, const char *name, const char *what);

/* ---- kinds ----------------------------------------------------------------------------------- */
/* An archive: PyTorch's, or NumPy's. */
tern_status io_archive_open(tern_file *file);
/* A stream of pickles, which PyTorch wrote before 1.6, and a tar, which it wrote before 0.1.10. */
tern_status io_torch_stream_open(tern_file *file);
tern_status io_torch_tar_open(tern_file *file);

/* An archive of torch.export.save, which is open: of members by their names, which begin with the
 * stem, "NAME/". */
tern_status io_torch_export_open(tern_file *file, const tern_keys *members, const char *stem);
/* Finds the member "<stem><name>" of an archive; *found is false where there is none. */
tern_status io_torch_member(const tern_file *file, const tern_keys *members, const char *stem,
                            const char *name, io_member_facts *facts, bool *found);

#endif
