/* snapshot_shards.c -- snapshots of several ranks, which share tensors out by rows:
 *
 *   step-12.safetensors                       what is whole, and numbers; names the folder; written last, by the first rank
 *   step-12.shards/00001-of-00004.safetensors rows of the first rank, and its generators; and so on
 *
 * A tensor is the same name in all files, cut along its first dim as tern_chunk cuts it. */
#define _GNU_SOURCE
#include "io/file.h"
#include "io/save.h"
#include "io/snapshot.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char function[] = "tern_snapshot_save", rows_of[] = "shards.rows.";

/* ---- what is shared out ---------------------------------------------------------------------- */

/* The parameter that a tensor of this name is, or is a state of, where ranks share it out; NULL. */
static tern_tensor *shared(const tern_state_dict *parameters, const char *key)
{
    char name[1024];
    tern_tensor *x = tern_state_dict_get(parameters, key);
    const char *dot = x ? NULL : strrchr(key, '.');
    if (!dot || dot - key >= (ptrdiff_t)sizeof name)
        return x;
    snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
    return tern_state_dict_get(parameters, name);
}

/* A shape that differs from x's in its rows at most, of which there are so many. */
static bool is_like(const tern_tensor *value, const tern_tensor *x, int64_t rows)
{
    const tern_shape a = tern_shape_of(value), b = tern_shape_of(x);
    bool same = a.ndim == b.ndim && a.ndim > 0 && a.dims[0] == rows;
    for (int d = 1; same && d < a.ndim; d++)
        same = a.dims[d] == b.dims[d];
    return same;
}

tern_status io_shards_parameters(const io_snapshot_part *parts, int count, tern_state_dict **to,
                                 tern_ranks **ranks)
{
    tern_state_dict *all = tern_state_dict_new();
    tern_status status = all ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < count && status == TERN_OK; i++)
        if (parts[i].kind->shared)
            status = parts[i].kind->shared(&parts[i], all);
    *to = all;
    *ranks = tern_state_dict_count(all) ? tern_ranks_of(tern_state_dict_at(all, 0)) : NULL;
    return status;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* A folder that is not there yet: files of another save of this step stay what they are. */
static tern_status make_folder(const char *folder, int64_t step, char name[IO_SHARDS_NAME])
{
    tern_text path = {0};
    tern_status status = TERN_OK;
    for (int version = 1; status == TERN_OK; version++) {
        char more[16] = "";
        if (version > 1)
            snprintf(more, sizeof more, ".%d", version);
        snprintf(name, IO_SHARDS_NAME, "step-%lld%s.shards", (long long)step, more);
        tern_text_free(&path);
        tern_text_add(&path, "%s/%s", folder, name);
        if (path.failed)
            status = TERN_ERR_MEMORY;
        else if (mkdir(path.data, 0777) == 0)
            break;
        else if (errno != EEXIST)
            status = io_fail_system(function, path.data, "the folder can't be made");
    }
    tern_text_free(&path);
    return status;
}

tern_status io_shards_begin(io_shards *s, tern_ranks *ranks, const char *folder, int64_t *step,
                            tern_status status)
{
    char text[IO_SHARDS_NAME + 32] = "";
    s->ranks = ranks;
    ranks->place(ranks, &s->rank, &s->size, &s->copy);
    if (status == TERN_OK && s->rank == 0 && s->copy == 0) {
        status = make_folder(folder, *step, s->name);
        snprintf(text, sizeof text, "%lld %s", (long long)*step, s->name);
    }
    TERN_TRY(ranks->agree(ranks, status, text, sizeof text, function));
    char *name = NULL;
    *step = strtoll(text, &name, 10);
    snprintf(s->name, sizeof s->name, "%s", *name ? name + 1 : "");
    return TERN_OK;
}

/* What is this rank's part goes to own, and leaves a note. */
static tern_status take(io_shards *s, const tern_state_dict *parameters, tern_state_dict *dict,
                        const char *key, tern_tensor *value)
{
    char note[1200], rows[32];
    const tern_tensor *x = shared(parameters, key);
    if (!x || !is_like(value, x, tern_size(x, 0)))
        return TERN_OK;
    tern_ranks *ranks = tern_ranks_of(x);
    snprintf(note, sizeof note, "%s%s", rows_of, key);
    snprintf(rows, sizeof rows, "%lld", (long long)ranks->rows(ranks, x));
    TERN_TRY(tern_state_dict_set(s->own, key, value));
    return tern_state_dict_set_metadata(dict, note, rows);
}

tern_status io_shards_divide(io_shards *s, const tern_state_dict *parameters, tern_state_dict *dict)
{
    char count[16];
    snprintf(count, sizeof count, "%d", s->size);
    s->own = tern_state_dict_new();
    if (!s->own)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_state_dict_set_metadata(dict, "shards.folder", s->name));
    TERN_TRY(tern_state_dict_set_metadata(dict, "shards.count", count));
    TERN_TRY(tern_state_dict_set_metadata(s->own, "format", IO_SNAPSHOT_FORMAT ".shard"));
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        TERN_TRY(take(s, parameters, dict, tern_state_dict_key_at(dict, i),
                      tern_state_dict_at(dict, i)));
    for (int i = 0; i < tern_state_dict_count(s->own); i++)
        TERN_TRY(tern_state_dict_remove(dict, tern_state_dict_key_at(s->own, i)));
    return io_save_generators(s->own);
}

static char *path_of(const char *folder, const char *name, int rank, int size)
{
    tern_text path = {0};
    tern_text_add(&path, "%s/%s/%05d-of-%05d.safetensors", folder, name, rank + 1, size);
    if (!path.failed)
        return path.data;
    tern_text_free(&path);
    return NULL;
}

tern_status io_shards_write(const io_shards *s, const char *folder)
{
    if (s->copy > 0)
        return TERN_OK; /* others write the same */
    char *path = path_of(folder, s->name, s->rank, s->size);
    tern_status status = path ? io_save(s->own, path, NULL, function) : TERN_ERR_MEMORY;
    tern_free(path);
    return status;
}

/* ---- folders that no snapshot names ----------------------------------------------------------- */

/* Whether the snapshot in that file is of this folder. */
static bool is_named_by(const char *folder, const char *file, const char *name)
{
    tern_text path = {0};
    tern_text_add(&path, "%s/%s", folder, file);
    const bool there = !path.failed && access(path.data, F_OK) == 0;
    bool named = path.failed;
    tern_error_hold hold;
    if (there && tern_error_hold_begin(&hold) == TERN_OK) {
        tern_file *open = io_open(function, path.data);
        const char *its = open ? tern_state_dict_metadata(open->notes, "shards.folder") : NULL;
        named = !open || (its && strcmp(its, name) == 0);
        tern_file_free(open);
        tern_error_hold_end(&hold, NULL, 0);
    }
    tern_text_free(&path);
    return named;
}

/* "step-12.shards", "step-12.2.shards": the step; -1. */
static int64_t step_of(const char *name)
{
    char *end;
    const size_t n = strlen(name);
    if (strncmp(name, "step-", 5) != 0 || n < 7 || strcmp(name + n - 7, ".shards") != 0)
        return -1;
    const int64_t step = strtoll(name + 5, &end, 10);
    return end > name + 5 && *end == '.' ? step : -1;
}

static void remove_folder(const char *folder, const char *name)
{
    tern_text path = {0};
    tern_text_add(&path, "%s/%s", folder, name);
    DIR *open = path.failed ? NULL : opendir(path.data);
    for (struct dirent *e; open && (e = readdir(open));)
        if (strstr(e->d_name, ".safetensors"))
            unlinkat(dirfd(open), e->d_name, 0);
    if (open)
        closedir(open);
    if (!path.failed)
        rmdir(path.data);
    tern_text_free(&path);
}

/* Of snapshots that were removed, or never came to their end. */
static void clean(const char *folder)
{
    DIR *open = opendir(folder);
    for (struct dirent *e; open && (e = readdir(open));) {
        const int64_t step = step_of(e->d_name);
        char file[64];
        snprintf(file, sizeof file, "step-%lld.safetensors", (long long)step);
        if (step >= 0 && !is_named_by(folder, file, e->d_name) &&
            !is_named_by(folder, "best.safetensors", e->d_name))
            remove_folder(folder, e->d_name);
    }
    if (open)
        closedir(open);
}

tern_status io_shards_commit(io_shards *s, const char *folder, tern_status status,
                             tern_status (*write)(void *user), void *user)
{
    TERN_TRY(s->ranks->agree(s->ranks, status, NULL, 0, function));
    if (s->rank == 0 && s->copy == 0) {
        status = write(user);
        if (status == TERN_OK)
            clean(folder);
    }
    return s->ranks->agree(s->ranks, status, NULL, 0, function);
}

void io_shards_end(io_shards *s)
{
    tern_state_dict_free(s->own);
    *s = (io_shards){NULL};
}

/* ---- loading --------------------------------------------------------------------------------- */

typedef struct source {
    char *folder;
    const char *name;
    tern_file **files; /* of size; NULL: not open yet */
    int size;
} source;

static tern_file *file_of(source *from, int i)
{
    char *path = from->files[i] ? NULL : path_of(from->folder, from->name, i, from->size);
    if (path)
        from->files[i] = io_open("tern_snapshot_load", path);
    tern_free(path);
    return from->files[i];
}

/* Rows first .. end of those that file i has, which are from..; NULL after an error. */
static tern_tensor *read_rows(source *from, int i, const char *key, int64_t rows, int64_t first,
                              int64_t end)
{
    int64_t at;
    const int64_t n = tern_rows_of_rank(rows, i, from->size, &at);
    tern_file *file = file_of(from, i);
    if (!file)
        return NULL;
    const int place = tern_keys_find(&file->keys, key);
    const io_entry *e = place < 0 ? NULL : &file->entries[place];
    if (!e || e->ndim < 1 || e->dims[0] != n)
        return io_bad(file, 0, "it does not have the %lld rows of `%s` that it should",
                      (long long)n, IO_SHOW(key)),
               NULL;
    const int64_t start = first > at ? first - at : 0, stop = end < at + n ? end - at : n;
    return io_read(file, e, start, stop, "cpu", "tern_snapshot_load");
}

/* This rank's rows of a tensor, out of the files that have some. */
static tern_status read_tensor(source *from, const char *key, const char *text,
                               const tern_state_dict *parameters, tern_state_dict *dict)
{
    const uint64_t failures = tern_failures();
    int rank = 0, size = 1, copy, n = 0;
    char *end = NULL;
    int64_t first;
    const int64_t rows = strtoll(text, &end, 10);
    const tern_tensor *x = shared(parameters, key);
    const tern_ranks *ranks = x ? tern_ranks_of(x) : NULL;
    if (ranks)
        ranks->place(ranks, &rank, &size, &copy);
    if (!*text || *end || rows < 0)
        return tern_fail(TERN_ERR_IO, "tern_snapshot_load: %s has \"%s\" rows", IO_SHOW(key),
                         IO_SHOW(text));
    const int64_t own = tern_rows_of_rank(rows, rank, size, &first);
    const int64_t each = rows / from->size + (rows % from->size != 0);
    const int begin = each && own ? (int)(first / each) : 0;
    const int last = each && own ? (int)((first + own - 1) / each) : 0;
    tern_tensor *parts[last - begin + 1];
    for (int i = begin; i <= last; i++) {
        parts[n] = read_rows(from, i, key, rows, own ? first : 0, own ? first + own : 0);
        if (!parts[n++])
            return tern_failed_since(failures);
    }
    tern_tensor *all = n == 1 ? parts[0] : tern_cat(parts, n, 0);
    return all ? tern_state_dict_set(dict, key, all) : tern_failed_since(failures);
}

/* The generators of a rank are in its file, those of the first in the snapshot's too. */
static tern_status read_generators(source *from, const tern_state_dict *parameters,
                                   tern_state_dict *dict)
{
    int rank = 0, size, copy;
    if (tern_state_dict_count(parameters)) {
        const tern_ranks *ranks = tern_ranks_of(tern_state_dict_at(parameters, 0));
        ranks->place(ranks, &rank, &size, &copy);
    }
    const tern_file *file = rank % from->size ? file_of(from, rank % from->size) : NULL;
    if (!file)
        return rank % from->size ? TERN_ERR_IO : TERN_OK;
    for (int i = 0; i < tern_state_dict_metadata_count(file->notes); i++) {
        const char *key = tern_state_dict_metadata_key_at(file->notes, i);
        if (strncmp(key, "rng.", 4) == 0)
            TERN_TRY(tern_state_dict_set_metadata(dict, key,
                                                  tern_state_dict_metadata(file->notes, key)));
    }
    return TERN_OK;
}

static tern_status read_all(source *from, const tern_state_dict *parameters, tern_state_dict *dict)
{
    const size_t n = sizeof rows_of - 1;
    tern_status status = TERN_OK;
    for (int i = 0; i < tern_state_dict_metadata_count(dict) && status == TERN_OK; i++) {
        const char *note = tern_state_dict_metadata_key_at(dict, i);
        if (strncmp(note, rows_of, n) == 0)
            TERN_SCOPE
                status = read_tensor(from, note + n, tern_state_dict_metadata(dict, note),
                                     parameters, dict);
    }
    return status == TERN_OK ? read_generators(from, parameters, dict) : status;
}

/* What one process saved whole. */
static tern_status cut(const tern_state_dict *parameters, tern_state_dict *dict)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++) {
        const char *key = tern_state_dict_key_at(dict, i);
        tern_tensor *value = tern_state_dict_at(dict, i);
        const tern_tensor *x = shared(parameters, key);
        const tern_ranks *ranks = x ? tern_ranks_of(x) : NULL;
        int rank, size, copy;
        int64_t first;
        if (!ranks || !is_like(value, x, ranks->rows(ranks, x)))
            continue;
        ranks->place(ranks, &rank, &size, &copy);
        const int64_t rows = tern_rows_of_rank(tern_size(value, 0), rank, size, &first);
        TERN_SCOPE {
            tern_tensor *own = tern_narrow(value, 0, first, rows);
            status = own ? tern_state_dict_set(dict, key, own) : TERN_ERR_MEMORY;
        }
    }
    return status;
}

tern_status io_shards_load(const char *path, const tern_state_dict *parameters,
                           tern_state_dict *dict)
{
    const char *name = tern_state_dict_metadata(dict, "shards.folder");
    const char *count = tern_state_dict_metadata(dict, "shards.count"), *slash;
    TERN_TRY(cut(parameters, dict));
    if (!name && !count)
        return TERN_OK;
    const long size = count ? strtol(count, NULL, 10) : 0;
    if (!name || step_of(name) < 0 || strchr(name, '/') || size < 1 || size > 1 << 20)
        return tern_fail(TERN_ERR_IO, "tern_snapshot_load: \"%s\": %s shards in \"%s\"", path,
                         count ? IO_SHOW(count) : "no", name ? IO_SHOW(name) : "");
    source from = {.name = name, .size = (int)size};
    from.files = tern_alloc(sizeof *from.files * (size_t)size);
    tern_text folder = {0};
    slash = strrchr(path, '/');
    tern_text_add(&folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
    from.folder = folder.data;
    tern_status status =
        from.files && !folder.failed ? read_all(&from, parameters, dict) : TERN_ERR_MEMORY;
    for (int i = 0; from.files && i < from.size; i++)
        tern_file_free(from.files[i]);
    tern_free(from.files);
    tern_text_free(&folder);
    return status;
}
