/* file.h -- a file that is open for reading: its names, where their bytes are, and how they come
 * in. */
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
    const io_type *type; /* NULL: one that only the file has; then: */
    char foreign[24];    /* what it calls it */
    int64_t *dims;       /* of ndim; behind them as many strides, in elements, where is_strided */
    uint64_t at, bytes;  /* of its first element in its part, and of all elements from there on */
    int ndim;
    int part;
    bool is_strided, is_swapped; /* its bytes stand in the other order */
    bool is_negated;             /* the elements are the negatives of those in the file */
    const char *refused;         /* why it can't be read, behind "tensor `x` is"; NULL: it can */
    /* Its bytes in the file are blocks, and those of `bytes` what they are decoded to; NULL: they
     * are elements. */
    const io_block *block;
} io_entry;

/* Bytes of an entry that come in one after the other. */
typedef struct io_stream {
    tern_file *file;
    const io_entry *entry;
    uint64_t at, left; /* in its part; how many the entry still has */
    void *handle;
} io_stream;

/* How the bytes of a kind of file are read. Safe on several threads. */
typedef struct io_reader {
    /* From the byte `skip` of the entry on. */
    tern_status (*start)(io_stream *s, uint64_t skip);
    tern_status (*next)(io_stream *s, void *to, size_t bytes);
    /* Also after an error. whole: all of it was read, and is as it was written. */
    tern_status (*finish)(io_stream *s, bool whole);
    void (*close)(tern_file *file);
} io_reader;

/* What its bytes are mapped to (map.c). */
typedef struct io_map io_map;

/* A part of it: one of several files, which are one model. */
typedef struct io_part {
    char *path;
    int fd;
    uint64_t size;
    void *zip;   /* an archive's */
    io_map *map; /* NULL: none yet */
} io_part;

struct tern_file {
    const char *function; /* what opens it, for messages */
    char *path;
    const io_reader *reader;
    io_part *parts;
    int n_parts;
    bool is_mapped; /* tensors lie in its pages where they can */
    /* Files that have its tensors, where it is an index: an entry has the number of one as its part
     * and the entry there as `at`, and nothing else but its name. */
    tern_file **shards;
    int n_shards;
    io_entry *entries;
    int count, capacity;
    tern_keys keys;         /* of the entries */
    tern_state_dict *notes; /* metadata */
    struct io_gguf *gguf;   /* that of a GGUF with its types; NULL: it is none (gguf.h) */
};

/* ---- kinds of files: each fills a file whose first part is open ------------------------------ */
tern_status io_safetensors_open(tern_file *file);
tern_status io_index_open(tern_file *file);

/* Regular files at offsets. */
extern const io_reader io_uncompressed_reader;

/* ---- pages of a file (map.c) ----------------------------------------------------------------- */
/* Whether an entry can be a tensor there: asked for, of a plain file, as tern has its elements. */
bool io_map_fits(const tern_file *file, const io_entry *e, const char *device);
/* It is; of the innermost scope. */
tern_tensor *io_map_tensor(tern_file *file, const io_entry *e, tern_shape shape);
/* All bytes of a part, which are read when they are first touched; they live as long as the part.
 * NULL after an error. */
const unsigned char *io_map_bytes(tern_file *file, int part);
/* NULL is fine. */
void io_map_release(void *map);

/* ---- what they use --------------------------------------------------------------------------- */
/* Open a file of any kind, or what a folder has, for function; a file alone; one of one kind. */
tern_file *io_open(const char *function, const char *path);
tern_file *io_open_path(const char *function, const char *path);
tern_file *io_open_as(const char *function, const char *path, tern_status (*open)(tern_file *));
/* TERN_ERR_DTYPE where an entry is of a type that tern does not have, or can't be read; advice is
 * added. */
tern_status io_check_readable(const tern_file *file, const io_entry *e, const char *function,
                              const char *advice);
/* An entry, all zeros but for its name (which is copied), dims and type; NULL after an error. */
io_entry *io_add_entry(tern_file *file, const char *name, const io_type *type, const int64_t *dims,
                       int ndim, bool is_strided);
/* The entry that an entry stands for: of an index a shard's, else itself. */
static inline const io_entry *io_entry_itself(const tern_file *file, const io_entry *e)
{
    return file->n_shards ? &file->shards[e->part]->entries[e->at] : e;
}
/* How many bytes an entry's elements take in the file. */
uint64_t io_entry_bytes(const io_entry *e);
/* Bytes of a part, all or an error. */
tern_status io_read_at(const tern_file *file, int part, uint64_t at, void *to, size_t bytes,
                       const char *what);
/* The elements of rows start .. end of an entry (all of it where start < 0), on device. */
tern_tensor *io_read(tern_file *file, const io_entry *e, int64_t start, int64_t end,
                     const char *device, const char *function);
/* tern_load of a file that is open; errors name its function. */
tern_state_dict *io_load(tern_file *file, const tern_load_options *options);

/* ---- errors ------------------------------------------------------------------------------ */
/* TERN_ERR_IO: "<function>: "<path of the part>": ...". */
tern_status io_bad(const tern_file *file, int part, const char *format, ...) TERN_PRINTF_(3, 4);
/* A name as messages show it: at most 80 bytes of it, nothing that a terminal obeys. */
typedef struct io_name_text {
    char text[4 * 80 + 4];
} io_name_text;
io_name_text io_show(const char *name, size_t bytes);
#define IO_SHOW(name) (io_show(name, strlen(name)).text)

#endif
