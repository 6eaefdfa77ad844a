/* map.c -- tensors that are views of a mapped file: tern_load's mmap. Each part has one private
 * map, which is unmapped with the last tensor on it. */
#define _GNU_SOURCE
#include "io/file.h"
#include "base/os.h"
#include "io/out.h"
#include <stdatomic.h>
#include <string.h>
#include <tern/interop.h>

struct io_map {
    atomic_int refs;
    char *bytes;
    size_t size;
};

void io_map_release(void *map)
{
    io_map *m = map;
    if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1)
        return;
    tern_os_unmap(m->bytes, m->size);
    tern_free(m);
}

/* Returns the part's map, made on first use, or NULL after an error. */
static io_map *map_of(tern_file *file, int n)
{
    io_part *part = &file->parts[n];
    if (part->map)
        return part->map;
    io_map *m = tern_alloc(sizeof *m);
    if (!m)
        return NULL;
    void *bytes = tern_os_map(part->fd, (size_t)part->size);
    if (!bytes) {
        tern_free(m);
        io_fail_system(file->function, part->path, "mmap");
        return NULL;
    }
    *m = (io_map){.bytes = bytes, .size = (size_t)part->size};
    atomic_init(&m->refs, 1);
    return part->map = m;
}

const unsigned char *io_map_bytes(tern_file *file, int part)
{
    const io_map *m = map_of(file, part);
    return m ? (const unsigned char *)m->bytes : NULL;
}

bool io_map_fits(const tern_file *file, const io_entry *e, const char *device)
{
    return file->is_mapped && file->reader == &io_uncompressed_reader && !strcmp(device, "cpu") &&
           e->bytes && !e->block && !e->is_strided && !e->is_swapped && !e->is_negated &&
           e->type->dtype != TERN_BOOL && e->at % tern_dtype_size(e->type->dtype) == 0;
}

tern_tensor *io_map_tensor(tern_file *file, const io_entry *e, tern_shape shape)
{
    io_map *m = map_of(file, e->part);
    if (!m)
        return NULL;
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    tern_tensor *x =
        tern_from_blob(m->bytes + e->at, shape, e->type->dtype,
                       &(tern_from_blob_options){.deleter = io_map_release, .user = m});
    if (!x)
        io_map_release(m);
    return x;
}
