/* load.c -- tern_load: loads all tensors of a file, by name. */
#include "io/file.h"
#include "base/option.h"
#include <string.h>

/* Returns whether the options select the entry, and sets *name to its name in the result. */
static bool wanted(const tern_load_options *o, const tern_keys *only, const io_entry *e,
                   const char **name)
{
    *name = e->name;
    if (o->only && tern_keys_find(only, e->name) < 0)
        return false;
    size_t n = o->prefix ? strlen(o->prefix) : 0;
    *name += n;
    return !n || (strncmp(e->name, o->prefix, n) == 0 && e->name[n]);
}

static tern_status check_only(const tern_file *file, const tern_load_options *o, tern_keys *only)
{
    for (int i = 0; i < o->n_only; i++) {
        if (!o->only || !o->only[i])
            return tern_fail_argument_null("tern_load", "only");
        if (tern_keys_find(&file->keys, o->only[i]) < 0)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: \"%s\": there is no tensor `%s`",
                             file->function, file->path, IO_SHOW(o->only[i]));
        if (tern_keys_find(only, o->only[i]) < 0)
            TERN_TRY(tern_keys_add(only, o->only[i], i));
    }
    return TERN_OK;
}

/* Types are checked first: a file that can't be loaded costs only the reading of its header. */
static tern_status check_types(const tern_file *file, const tern_load_options *o,
                               const tern_keys *only)
{
    const char *name;
    for (int i = 0; i < file->count; i++) {
        const io_entry *e = &file->entries[i];
        if (wanted(o, only, e, &name))
            TERN_TRY(io_check_readable(file, io_entry_itself(file, e), file->function,
                                       "; with .only the others can be loaded"));
    }
    return TERN_OK;
}

static tern_status load_all(tern_file *file, const tern_load_options *o, const tern_keys *only,
                            tern_state_dict *dict)
{
    tern_status status = TERN_OK;
    for (int i = 0; i < file->count && status == TERN_OK; i++) {
        const char *name;
        if (!wanted(o, only, &file->entries[i], &name))
            continue;
        TERN_SCOPE {
            tern_tensor *x =
                io_read(file, &file->entries[i], -1, -1, o->map_location, file->function);
            status = x ? tern_state_dict_set(dict, name, x) : tern_last_status();
        }
    }
    for (int i = 0; i < tern_file_metadata_count(file) && status == TERN_OK; i++) {
        const char *key = tern_file_metadata_key_at(file, i);
        status = tern_state_dict_set_metadata(dict, key, tern_file_metadata(file, key));
    }
    return status;
}

tern_state_dict *io_load(tern_file *file, const tern_load_options *options)
{
    tern_load_options o = tern_read_load(options);
    file->is_mapped = o.mmap;
    for (int i = 0; i < file->n_shards; i++)
        file->shards[i]->is_mapped = o.mmap;
    tern_keys only = {0};
    tern_state_dict *dict = tern_state_dict_new();
    tern_status status = dict ? check_only(file, &o, &only) : TERN_ERR_MEMORY;
    if (status == TERN_OK)
        status = check_types(file, &o, &only);
    if (status == TERN_OK)
        status = load_all(file, &o, &only, dict);
    tern_keys_free(&only);
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

tern_state_dict *tern_load(const char *path, const tern_load_options *options)
{
    tern_file *file = io_open("tern_load", path);
    tern_state_dict *dict = file ? io_load(file, options) : NULL;
    tern_file_free(file);
    return dict;
}
