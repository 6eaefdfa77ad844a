/* gguf_split.c -- models of several GGUF files, NAME-00001-of-00003.gguf and so on: if one of them
 * is given, all are opened. Only the first has the model's metadata; the others have the keys of
 * their part's number. */
#include "base/text.h"
#include "io/file.h"
#include "io/gguf_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool io_gguf_is_head(const char head[4])
{
    static const char *const magics[] = {"GGUF", "lmgg", "fmgg", "tjgg"};
    for (int i = 0; i < 4; i++)
        if (memcmp(head, magics[i], 4) == 0)
            return true;
    return false;
}

/* Reads the part number and count at the end of a path, and the length before them. Returns false
 * if the path has none. */
static bool part_of(const char *path, int *part, int *count, int *stem)
{
    enum { TAIL = 20 };
    size_t n = strlen(path);
    int end = 0;
    if (n < TAIL)
        return false;
    *stem = (int)(n - TAIL);
    for (int i = 1; i < 15; i++) /* only digits, where sscanf would allow signs and blanks */
        if (i != 6 && i != 7 && i != 8 && i != 9 &&
            (path[*stem + i] < '0' || path[*stem + i] > '9'))
            return false;
    return sscanf(path + *stem, "-%5d-of-%5d.gguf%n", part, count, &end) == 2 && end == TAIL &&
           *part >= 1 && *part <= *count;
}

static tern_status check_key(const tern_file *file, const char *key, int64_t expected)
{
    io_gguf_value v;
    int64_t x = -1;
    bool is_there = io_gguf_find(file, key, &v);
    if (is_there && !v.is_array && io_gguf_integer(v.kind, v.bytes, &x) && x == expected)
        return TERN_OK;
    return io_bad(file, 0, "`%s` is %s, and %lld is expected of these files", key,
                  is_there ? IO_SHOW(tern_file_metadata(file, key)) : "not there",
                  (long long)expected);
}

/* Moves the first part of another file to the end of this file's parts. */
static tern_status adopt(tern_file *file, tern_file *from)
{
    io_part *parts = tern_grow(file->parts, sizeof *parts * (size_t)(file->n_parts + 1));
    if (!parts)
        return TERN_ERR_MEMORY;
    file->parts = parts;
    parts[file->n_parts++] = from->parts[0];
    from->n_parts = 0;
    return TERN_OK;
}

/* Copies the entries of a part, and moves its file handle. */
static tern_status take_part(tern_file *file, tern_file *from)
{
    for (int i = 0; i < from->count; i++) {
        const io_entry *e = &from->entries[i];
        if (tern_keys_find(&file->keys, e->name) >= 0)
            return io_bad(from, 0, "tensor `%s` is in a part before this one, too",
                          IO_SHOW(e->name));
        io_entry *to = io_add_entry(file, e->name, e->type, e->dims, e->ndim, false);
        if (!to)
            return tern_last_status();
        memcpy(to->foreign, e->foreign, sizeof to->foreign);
        to->at = e->at;
        to->bytes = e->bytes;
        to->block = e->block;
        to->part = file->n_parts;
    }
    if (!file->gguf) {
        tern_state_dict *notes = file->notes;
        file->notes = from->notes;
        from->notes = notes;
        file->gguf = from->gguf;
        from->gguf = NULL;
    }
    return adopt(file, from);
}

static tern_status open_part(tern_file *file, int stem, int i, int count)
{
    tern_text path = {0};
    tern_text_add(&path, "%.*s-%05d-of-%05d.gguf", stem, file->path, i, count);
    tern_file *part = path.failed ? NULL : io_open_as(file->function, path.data, io_gguf_open_one);
    tern_text_free(&path);
    tern_status status = part ? check_key(part, "split.no", i - 1) : tern_last_status();
    if (status == TERN_OK)
        status = check_key(part, "split.count", count);
    if (status == TERN_OK)
        status = take_part(file, part);
    tern_file_free(part);
    return status;
}

tern_status io_gguf_open(tern_file *file)
{
    int part, count, stem;
    io_gguf_value v;
    if (!part_of(file->path, &part, &count, &stem) || count == 1)
        return io_gguf_open_one(file);
    for (int i = 1; i <= count; i++)
        TERN_TRY(open_part(file, stem, i, count));
    return io_gguf_find(file, "split.tensors.count", &v)
               ? check_key(file, "split.tensors.count", file->count)
               : TERN_OK;
}
