/* snapshot_parts.c -- reads this rank's parts of tensors from files whose ranks cut them in other
 * ways (snapshot_shards.c), or from a snapshot with whole tensors. */
#include "base/checked.h"
#include "base/os.h"
#include "io/file.h"
#include "io/snapshot.h"
#include "nn/state_dict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_snapshot_load";

typedef struct source {
    char *folder;
    const char *name;
    tern_file **files; /* `size` files, NULL until opened */
    int size;
} source;

static tern_file *file_of(source *from, int i)
{
    char *path = from->files[i] ? NULL : io_shards_path(from->folder, from->name, i, from->size);
    if (path)
        from->files[i] = io_open(function, path);
    tern_free(path);
    return from->files[i];
}

/* The cuts of a tensor, from its metadata text. */
typedef struct layout {
    tern_shape whole;
    int n;
    struct {
        int dim, parts, step;
        char kind; /* ':': a stage, whose whole tensor the rank with number dim has */
    } cut[TERN_MOST_CUTS];
} layout;

static bool read_layout(const char *text, layout *l)
{
    char *end = NULL, kind[2];
    *l = (layout){.n = 0};
    do {
        if (l->whole.ndim == TERN_MAX_DIMS || *text < '0' || *text > '9')
            return false;
        l->whole.dims[l->whole.ndim++] = strtoll(text, &end, 10);
        text = end + 1;
    } while (*end == 'x');
    for (int used = 0; *end; end += used, l->n++)
        if (l->n == TERN_MOST_CUTS ||
            sscanf(end, " %9d%1[/:]%9d@%9d%n", &l->cut[l->n].dim, kind, &l->cut[l->n].parts,
                   &l->cut[l->n].step, &used) != 4 ||
            l->cut[l->n].dim < 0 || l->cut[l->n].parts < 1 || l->cut[l->n].step < 1 ||
            ((l->cut[l->n].kind = *kind) == '/' && l->cut[l->n].dim >= l->whole.ndim))
            return false;
    return l->n > 0;
}

/* Sets *p to the part in file i. Returns false if the file has none, or has a copy that was not
 * written. */
static bool part_in_file(const layout *l, int i, tern_part *p)
{
    int digits = 0;
    *p = (tern_part){.shape = l->whole};
    for (int c = 0; c < l->n; c++) {
        const int part = i / l->cut[c].step % l->cut[c].parts;
        const bool stage = l->cut[c].kind == ':';
        if (stage && part != l->cut[c].dim)
            return false;
        tern_part_cut(p, stage ? -1 : l->cut[c].dim, part, l->cut[c].parts);
        digits += part * l->cut[c].step;
    }
    return digits == i;
}

/* Sets *both to the intersection of two parts. Returns whether it has elements. */
static bool intersect(const tern_part *a, const tern_part *b, tern_part *both)
{
    bool some = true;
    *both = *a;
    for (int d = 0; d < a->shape.ndim; d++) {
        const int64_t ends[2] = {a->first[d] + a->shape.dims[d], b->first[d] + b->shape.dims[d]};
        if (b->first[d] > a->first[d])
            both->first[d] = b->first[d];
        both->shape.dims[d] = (ends[0] < ends[1] ? ends[0] : ends[1]) - both->first[d];
        some = some && both->shape.dims[d] > 0;
    }
    return some;
}

/* Reads the elements of `wanted` from file i, which has the part p; NULL after an error. */
static tern_tensor *read_part(source *from, int i, const char *key, const tern_part *p,
                              const tern_part *wanted)
{
    tern_file *file = file_of(from, i);
    const int place = file ? tern_keys_find(&file->keys, key) : -1;
    const io_entry *e = place < 0 ? NULL : &file->entries[place];
    bool right = e && e->ndim == p->shape.ndim;
    for (int d = 0; right && d < e->ndim; d++)
        right = e->dims[d] == p->shape.dims[d];
    if (file && !right)
        io_bad(file, 0, "it does not have the part of `%s` that it should", IO_SHOW(key));
    if (!right)
        return NULL;
    tern_part rows = *wanted;
    for (int d = 0; d < e->ndim; d++)
        rows.first[d] -= p->first[d];
    const int64_t first = rows.first[0];
    rows.first[0] = 0;
    return tern_part_take(&rows,
                          io_read(file, e, first, first + rows.shape.dims[0], "cpu", function));
}

/* Returns whether the key is an optimizer's state of a parameter whose stage another rank has,
 * which this rank does not step. */
static bool is_elsewhere(const tern_state_dict *parameters, const char *key)
{
    const tern_tensor *x = io_shards_shared(parameters, key);
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape whole;
    int n;
    const tern_cut *stage = tern_stage_of(x, cut, &whole, &n);
    return stage && stage->elsewhere && x != tern_state_dict_get(parameters, key);
}

static int64_t elements_of(const tern_part *p)
{
    int64_t n = 1;
    for (int d = 0; d < p->shape.ndim; d++)
        n = tern_size_mul(n, p->shape.dims[d]);
    return n;
}

/* Copies x, the part `at` of the whole, into *all, which has the part own; sets *all to x if these
 * are the same part. */
static tern_status put(tern_tensor **all, const tern_part *own, tern_tensor *x, tern_part at)
{
    const int64_t elements = elements_of(&at);
    if (elements == elements_of(own) && elements > 0) {
        *all = x;
        return TERN_OK;
    }
    if (!*all && !(*all = tern_zeros(own->shape, tern_dtype_of(x), "cpu")))
        return TERN_ERR_MEMORY;
    for (int d = 0; d < own->shape.ndim; d++)
        at.first[d] -= own->first[d];
    tern_tensor *to = elements ? tern_part_take(&at, *all) : *all;
    return to && (!elements || tern_copy_(to, x)) ? TERN_OK : tern_last_status();
}

/* Reads this rank's part of a tensor from the files that have elements of it. */
static tern_status read_tensor(source *from, const char *key, const char *text,
                               const tern_state_dict *parameters, tern_state_dict *dict)
{
    const uint64_t failures = tern_failures();
    layout l;
    tern_part own, p, both;
    tern_tensor *all = NULL;
    if (is_elsewhere(parameters, key))
        return TERN_OK;
    if (!read_layout(text, &l))
        return tern_fail(TERN_ERR_IO, "%s: %s has parts \"%s\"", function, IO_SHOW(key),
                         IO_SHOW(text));
    TERN_TRY(
        tern_part_find(&own, &l.whole, io_shards_shared(parameters, key), function, IO_SHOW(key)));
    int64_t missing = elements_of(&own);
    const bool none = missing == 0; /* even an empty part needs a file, for the dtype */
    for (int i = 0; i < from->size && (missing > 0 || !all); i++) {
        if (!part_in_file(&l, i, &p) || !(intersect(&own, &p, &both) || none))
            continue;
        if (none) {
            both = p;
            both.shape.dims[0] = 0;
        }
        tern_tensor *x = read_part(from, i, key, &p, &both);
        if (!x || put(&all, &own, x, both) != TERN_OK)
            return tern_failed_since(failures);
        missing -= elements_of(&both);
    }
    if (missing > 0 || !all)
        return tern_fail(TERN_ERR_IO, "%s: %s: %d files don't have all parts of it", function,
                         IO_SHOW(key), from->size);
    return tern_state_dict_set(dict, key, all);
}

/* Reads this rank's generators from its file; the first rank's are in the snapshot too. */
static tern_status read_generators(source *from, const tern_state_dict *parameters,
                                   tern_state_dict *dict)
{
    io_grid grid;
    io_shards_grid(parameters, &grid);
    const int i = grid.number % from->size;
    const tern_file *file = i ? file_of(from, i) : NULL;
    if (!file)
        return i ? TERN_ERR_IO : TERN_OK;
    for (int k = 0; k < tern_state_dict_metadata_count(file->notes); k++) {
        const char *key = tern_state_dict_metadata_key_at(file->notes, k);
        if (strncmp(key, "rng.", 4) == 0)
            TERN_TRY(tern_state_dict_set_metadata(dict, key,
                                                  tern_state_dict_metadata(file->notes, key)));
    }
    return TERN_OK;
}

/* Reads what the first file lacks: metadata of stages' tensors, and tensors that are whole in
 * another file. */
static tern_status read_stages(source *from, const tern_state_dict *parameters,
                               tern_state_dict *dict)
{
    const uint64_t failures = tern_failures();
    char note[1200];
    for (int i = 0; i < from->size; i++) {
        const tern_file *file = file_of(from, i);
        for (int k = 0; file && k < file->count; k++) {
            const char *key = file->entries[k].name, *text;
            snprintf(note, sizeof note, IO_SHARDS_PART "%s", key);
            if ((text = tern_state_dict_metadata(file->notes, note)))
                TERN_TRY(tern_state_dict_set_metadata(dict, note, text));
            else if (!tern_state_dict_metadata(dict, note) && !is_elsewhere(parameters, key))
                TERN_SCOPE {
                    tern_tensor *x = tern_file_get(from->files[i], key, "cpu");
                    if (x)
                        tern_state_dict_set(dict, key, x);
                }
        }
        TERN_TRY(tern_failed_since(failures));
    }
    return TERN_OK;
}

static tern_status read_all(source *from, const tern_state_dict *parameters, tern_state_dict *dict)
{
    const size_t n = sizeof IO_SHARDS_PART - 1;
    tern_status status = tern_state_dict_metadata(dict, "shards.stages")
                             ? read_stages(from, parameters, dict)
                             : TERN_OK;
    for (int i = 0; i < tern_state_dict_metadata_count(dict) && status == TERN_OK; i++) {
        const char *note = tern_state_dict_metadata_key_at(dict, i);
        if (strncmp(note, IO_SHARDS_PART, n) == 0)
            TERN_SCOPE
                status = read_tensor(from, note + n, tern_state_dict_metadata(dict, note),
                                     parameters, dict);
    }
    return status == TERN_OK ? read_generators(from, parameters, dict) : status;
}

/* Reduces tensors that one process saved whole to this rank's parts. */
static tern_status cut(const tern_state_dict *parameters, tern_state_dict *dict)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++) {
        const char *key = tern_state_dict_key_at(dict, i);
        if (is_elsewhere(parameters, key)) {
            status = tern_state_dict_remove(dict, key);
            i--;
            continue;
        }
        const tern_shape whole = tern_shape_of(tern_state_dict_at(dict, i));
        const tern_tensor *x = io_shards_shared(parameters, key);
        tern_part p;
        if (!x || (x != tern_state_dict_get(parameters, key) && !tern_part_is_of(x, &whole)))
            continue;
        status = tern_part_find(&p, &whole, x, function, IO_SHOW(key));
        if (status == TERN_OK)
            TERN_SCOPE {
                tern_tensor *own = tern_part_take(&p, tern_state_dict_at(dict, i));
                status = own ? tern_state_dict_set(dict, key, own) : tern_last_status();
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
    if (!name || io_shards_step(name) < 0 || strpbrk(name, TERN_OS_NO_NAME) || size < 1 ||
        size > IO_MOST_FILES)
        return tern_fail(TERN_ERR_IO, "%s: \"%s\": %s shards in \"%s\"", function, path,
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
