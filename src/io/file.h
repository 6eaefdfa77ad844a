/* file.h -- a file that is open for reading: the names of its tensors, where their bytes are, and
 * how they are read. */
#ifndef TERN_IO_FILE_INSIDE_H
#define TERN_IO_FILE_INSIDE_H
#include "base/keys.h"
#include "base/text.h"
#include "io/block.h"
#include "io/types.h"
#include <tern/io/file.h>

/* A tensor in a file. */
typedef struct io_entry {
    char *name;
    const io_type *type; /* NULL for a type that tern does not have */
    char foreign[24];    /* the file's name of that type */
    int64_t *dims;       /* ndim sizes, then ndim strides in elements if is_strided */
    uint64_t at, bytes;  /* offset of the first element in the part; bytes from there to the last */
    int ndim;
    int part;
    bool is_strided, is_swapped; /* is_swapped: the byte order is not the host's */
    bool is_negated;             /* elements must be negated */
    const char *refused;         /* why the tensor can't be read, after "tensor `x` is"; NULL if it
                                    can */
    /* Type of the file's blocks, in which case `bytes` counts the decoded elements, or NULL if the
     * file has elements. */
    const io_block *block;
} io_entry;

/* A sequential read of an entry's bytes. */
typedef struct io_stream {
    tern_file *file;
    const io_entry *entry;
    uint64_t at, left; /* at is the offset in the part, left the number of bytes to read */
    void *handle;
} io_stream;

/* How the bytes of a kind of file are read. All functions may be called on several threads. */
typedef struct io_reader {
    /* Begins to read at byte `skip` of the entry. */
    tern_status (*start)(io_stream *s, uint64_t skip);
    tern_status (*next)(io_stream *s, void *to, size_t bytes);
    /* Ends the read, also after an error. If `whole`, all bytes were read, and a checksum is
     * compared if there is one. */
    tern_status (*finish)(io_stream *s, bool whole);
    void (*close)(tern_file *file);
} io_reader;

/* A memory map of a part (map.c). */
typedef struct io_map io_map;

/* A part: the file itself, or one of several files of a model. */
typedef struct io_part {
    char *path;
    int fd;
    uint64_t size;
    void *zip;   /* an archive's handle */
    io_map *map; /* memory map, or NULL */
} io_part;

struct tern_file {
    const char *function; /* the function that opened the file, for messages */
    char *path;
    const io_reader *reader;
    io_part *parts;
    int n_parts;
    bool is_mapped; /* tensors are views of the mapped file if possible */
    /* An index has files with its tensors: an entry's part is the file's number, `at` the entry in
     * that file; of its other fields only the name is set. */
    tern_file **shards;
    int n_shards;
    io_entry *entries;
    int count, capacity;
    tern_keys keys;         /* index of entries by name */
    tern_state_dict *notes; /* metadata */
    struct io_gguf *gguf;   /* typed metadata of a GGUF (gguf.h), else NULL */
};

/* ---- kinds of files: each function fills a file whose first part is open --------------------- */
tern_status io_safetensors_open(tern_file *file);
tern_status io_index_open(tern_file *file);

/* Reads uncompressed files at offsets. */
extern const io_reader io_uncompressed_reader;

/* ---- memory maps (map.c) --------------------------------------------------------------------- */
/* Returns whether an entry can be a view of the map: mmap was asked for, and the elements are
 * uncompressed and as in memory. */
bool io_map_fits(const tern_file *file, const io_entry *e, const char *device);
/* Returns that view, of the innermost scope, or NULL after an error. */
tern_tensor *io_map_tensor(tern_file *file, const io_entry *e, tern_shape shape);
/* Returns the map of a part, whose bytes are read when first accessed and stay valid as long as the
 * part, or NULL after an error. */
const unsigned char *io_map_bytes(tern_file *file, int part);
/* Releases a map; NULL is allowed. */
void io_map_release(void *map);

/* ---- opening and reading --------------------------------------------------------------------- */
/* io_open opens a file of any kind, or the model in a folder; io_open_path a file only; io_open_as
 * a file of one kind. They return NULL after an error, which names `function`. */
tern_file *io_open(const char *function, const char *path);
tern_file *io_open_path(const char *function, const char *path);
tern_file *io_open_as(const char *function, const char *path, tern_status (*open)(tern_file *));
/* Records TERN_ERR_DTYPE with the advice if the entry's type is unknown to tern, or the entry can't
 * be read. */
tern_status io_check_readable(const tern_file *file, const io_entry *e, const char *function,
                              const char *advice);
/* Returns a new entry with a copy of the name, dims and type, the rest zero; NULL after an
 * error. */
io_entry *io_add_entry(tern_file *file, const char *name, const io_type *type, const int64_t *dims,
                       int ndim, bool is_strided);
/* Returns the entry in the shard for an entry of an index, else e. */
static inline const io_entry *io_entry_itself(const tern_file *file, const io_entry *e)
{
    return file->n_shards ? &file->shards[e->part]->entries[e->at] : e;
}
/* Returns the number of bytes of an entry's elements in the file. */
uint64_t io_entry_bytes(const io_entry *e);
/* Reads exactly that many bytes of a part, or fails. */
tern_status io_read_at(const tern_file *file, int part, uint64_t at, void *to, size_t bytes,
                       const char *what);
/* Returns rows start .. end - 1 of an entry, or all rows if start < 0, on device and in the
 * innermost scope. Returns NULL after an error. */
tern_tensor *io_read(tern_file *file, const io_entry *e, int64_t start, int64_t end,
                     const char *device, const char *function);
/* tern_load of an open file; errors name the function that opened it. */
tern_state_dict *io_load(tern_file *file, const tern_load_options *options);

/* ---- errors ------------------------------------------------------------------------------ */
/* Records TERN_ERR_IO: "<function>: "<path of the part>": ...". Returns the status. */
tern_status io_bad(const tern_file *file, int part, const char *format, ...) TERN_PRINTF_(3, 4);
/* A name for messages: at most 80 bytes of it, without control characters. */
typedef struct io_name_text {
    char text[4 * 80 + 4];
} io_name_text;
io_name_text io_show(const char *name, size_t bytes);
#define IO_SHOW(name) (io_show(name, strlen(name)).text)

#endif
