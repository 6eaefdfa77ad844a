/* file.c -- files that are open for reading: their entries, and the public functions. */
#define _GNU_SOURCE
#include "io/file.h"
#include "base/os.h"
#include "io/gguf.h"
#include "io/out.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------ */

io_name_text io_show(const char *name, size_t bytes)
{
    io_name_text shown;
    size_t used = 0, n = bytes < 80 ? bytes : 80;
    for (int i = 0; bytes > 80 && i < 3 && ((unsigned char)name[n] & 0xc0) == 0x80; i++)
        n--; /* does not cut a UTF-8 character */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c < 0x20 || c == 0x7f)
            used += (size_t)snprintf(shown.text + used, 5, "\\x%02x", c);
        else
            shown.text[used++] = (char)c;
    }
    if (bytes > 80) {
        memcpy(shown.text + used, "...", 3);
        used += 3;
    }
    shown.text[used] = '\0';
    return shown;
}

tern_status io_bad(const tern_file *file, int part, const char *format, ...)
{
    va_list args;
    char message[1024];
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tern_fail(TERN_ERR_IO, "%s: \"%s\": %s", file->function,
                     part < file->n_parts ? file->parts[part].path : file->path, message);
}

/* ---- bytes ------------------------------------------------------------------------------- */

tern_status io_read_at(const tern_file *file, int part, uint64_t at, void *to, size_t bytes,
                       const char *what)
{
    enum { PIECE = 1 << 30 };
    char *next = to;
    while (bytes) {
        ssize_t n =
            tern_os_pread(file->parts[part].fd, next, bytes < PIECE ? bytes : PIECE, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return io_fail_system(file->function, file->parts[part].path, what);
        if (n == 0)
            return io_bad(file, part, "the file ends at byte %llu, in the middle of %s",
                          (unsigned long long)at, what);
        next += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return TERN_OK;
}

/* ---- entries ----------------------------------------------------------------------------- */

io_entry *io_add_entry(tern_file *file, const char *name, const io_type *type, const int64_t *dims,
                       int ndim, bool is_strided)
{
    if (file->count == file->capacity) {
        int capacity = file->capacity ? file->capacity + file->capacity / 2 : 16;
        io_entry *entries = tern_grow(file->entries, sizeof *entries * (size_t)capacity);
        if (!entries)
            return NULL;
        file->entries = entries;
        file->capacity = capacity;
    }
    size_t numbers = sizeof *dims * (size_t)ndim * (is_strided ? 2 : 1), text = strlen(name) + 1;
    char *memory = tern_alloc(numbers + text);
    if (!memory)
        return NULL;
    io_entry *e = &file->entries[file->count];
    *e = (io_entry){.type = type,
                    .dims = (int64_t *)(void *)memory,
                    .ndim = ndim,
                    .name = memory + numbers,
                    .is_strided = is_strided};
    if (numbers)
        memcpy(e->dims, dims, numbers);
    memcpy(e->name, name, text);
    if (tern_keys_add(&file->keys, e->name, file->count) != TERN_OK) {
        tern_free(memory);
        return NULL;
    }
    file->count++;
    return e;
}

tern_status io_check_readable(const tern_file *file, const io_entry *e, const char *function,
                              const char *advice)
{
    if (e->refused)
        return tern_fail(TERN_ERR_DTYPE, "%s: \"%s\": tensor `%s` is %s%s", function, file->path,
                         IO_SHOW(e->name), e->refused, advice);
    if (!e->type || !e->type->dtype)
        return tern_fail(
            TERN_ERR_DTYPE, "%s: \"%s\": tensor `%s` is of type %s, which tern does not have%s",
            function, file->path, IO_SHOW(e->name), e->type ? e->type->name : e->foreign, advice);
    return TERN_OK;
}

uint64_t io_entry_bytes(const io_entry *e)
{
    const io_block *b = e->block;
    uint64_t n = e->is_strided ? (uint64_t)e->type->bits / 8 : 0;
    for (int i = 0; i < e->ndim && e->is_strided; i++)
        n *= (uint64_t)e->dims[i]; /* no overflow: the file has that many bytes */
    if (e->is_strided)
        return n;
    return b ? e->bytes / sizeof(float) / (uint64_t)b->elements * (uint64_t)b->bytes : e->bytes;
}

void tern_file_free(tern_file *file)
{
    if (!file)
        return;
    if (file->reader && file->reader->close)
        file->reader->close(file);
    for (int i = 0; i < file->n_shards; i++)
        tern_file_free(file->shards[i]);
    tern_free(file->shards);
    for (int i = 0; i < file->n_parts; i++) {
        if (file->parts[i].fd >= 0)
            tern_os_close(file->parts[i].fd);
        io_map_release(file->parts[i].map);
        tern_free(file->parts[i].path);
    }
    for (int i = 0; i < file->count; i++)
        tern_free(file->entries[i].dims); /* the name is in the same allocation */
    tern_keys_free(&file->keys);
    io_gguf_free(file->gguf);
    tern_state_dict_free(file->notes);
    tern_free(file->entries);
    tern_free(file->parts);
    tern_free(file->path);
    tern_free(file);
}

/* ---- public functions ------------------------------------------------------------------------ */

tern_file *tern_safe_open(const char *path)
{
    return io_open("tern_safe_open", path);
}

int tern_file_count(const tern_file *file)
{
    return file ? file->count : 0;
}

const char *tern_file_name_at(const tern_file *file, int i)
{
    if (i < 0 || i >= tern_file_count(file))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_file_name_at: index %d is out of range (of %d)", i,
                              tern_file_count(file));
    return file->entries[i].name;
}

bool tern_file_has(const tern_file *file, const char *name)
{
    return file && name && tern_keys_find(&file->keys, name) >= 0;
}

static const io_entry *find(const tern_file *file, const char *name, const char *function)
{
    if (!file || !name) {
        tern_fail_argument_null(function, file ? "name" : "file");
        return NULL;
    }
    int i = tern_keys_find(&file->keys, name);
    if (i < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: \"%s\": there is no tensor `%s`", function,
                              file->path, IO_SHOW(name));
    return &file->entries[i];
}

/* Returns the entry with its type, dims and bytes, also for an index; NULL after an error. */
static const io_entry *facts_of(const tern_file *file, const char *name, const char *function)
{
    const io_entry *e = find(file, name, function);
    return e ? io_entry_itself(file, e) : NULL;
}

tern_shape tern_file_shape(const tern_file *file, const char *name)
{
    const io_entry *e = facts_of(file, name, "tern_file_shape");
    return e ? tern_shape_from(e->ndim, e->dims) : tern_shape_from(-1, NULL);
}

tern_dtype tern_file_dtype(const tern_file *file, const char *name)
{
    const io_entry *e = facts_of(file, name, "tern_file_dtype");
    return e && e->type ? e->type->dtype : TERN_DTYPE_DEFAULT;
}

const char *tern_file_dtype_name(const tern_file *file, const char *name)
{
    const io_entry *e = facts_of(file, name, "tern_file_dtype_name");
    return !e ? NULL : e->block ? e->block->name : e->type ? e->type->name : e->foreign;
}

uint64_t tern_file_nbytes(const tern_file *file, const char *name)
{
    const io_entry *e = facts_of(file, name, "tern_file_nbytes");
    return e ? io_entry_bytes(e) : 0;
}

tern_tensor *tern_file_get(tern_file *file, const char *name, const char *device)
{
    const io_entry *e = find(file, name, "tern_file_get");
    return e ? io_read(file, e, -1, -1, device, "tern_file_get") : NULL;
}

tern_tensor *tern_file_get_slice(tern_file *file, const char *name, int64_t start, int64_t end,
                                 const char *device)
{
    const io_entry *e = find(file, name, "tern_file_get_slice");
    if (!e)
        return NULL;
    const io_entry *itself = io_entry_itself(file, e);
    int64_t size = itself->ndim ? itself->dims[0] : -1;
    if (size < 0)
        return tern_fail_null(TERN_ERR_ARGUMENT, "tern_file_get_slice: tensor `%s` has no dims",
                              IO_SHOW(name));
    if (start < 0 || start > end || end > size)
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_file_get_slice: tensor `%s` has %lld rows: %lld to %lld are no "
                              "part of them",
                              IO_SHOW(name), (long long)size, (long long)start, (long long)end);
    return io_read(file, e, start, end, device, "tern_file_get_slice");
}

const char *tern_file_metadata(const tern_file *file, const char *key)
{
    return file ? tern_state_dict_metadata(file->notes, key) : NULL;
}

int tern_file_metadata_count(const tern_file *file)
{
    return file ? tern_state_dict_metadata_count(file->notes) : 0;
}

const char *tern_file_metadata_key_at(const tern_file *file, int i)
{
    if (i < 0 || i >= tern_file_metadata_count(file))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_file_metadata_key_at: index %d is out of range (of %d)", i,
                              tern_file_metadata_count(file));
    return tern_state_dict_metadata_key_at(file->notes, i);
}
