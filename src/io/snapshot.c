/* snapshot.c -- saves and loads the state of a training as one file. */
#include "io/snapshot.h"
#include "base/os.h"
#include "base/option.h"
#include "base/resumed.h"
#include "io/file.h"
#include "io/out.h"
#include "io/save.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct tern_snapshot {
    io_snapshot_part *parts;
    int count, capacity;
    /* The save in the background. runs says whether its thread was started. */
    bool runs;
    tern_os_thread thread;
    tern_state_dict *dict;
    io_shards shards;
    char *folder;
    tern_snapshot_options options;
    tern_status status;
    char message[1024];
};

tern_snapshot *tern_snapshot_new(void)
{
    return tern_alloc(sizeof(tern_snapshot));
}

/* ---- parts ----------------------------------------------------------------------------------- */

static tern_status add(tern_snapshot *s, const char *name, const io_part_kind *kind,
                       const void *object, const char *function)
{
    static const char *const own[] = {"format", "version", "rng", "shards", "__metadata__"};
    if (!s || !name || !object)
        return tern_fail_argument_null(function, !s ? "snapshot" : name ? "object" : "name");
    bool taken = !*name || strchr(name, '.') || !io_is_utf8(name) || strlen(name) > 200;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        taken = taken || strcmp(own[i], name) == 0;
    for (int i = 0; i < s->count; i++)
        taken = taken || strcmp(s->parts[i].name, name) == 0;
    if (taken)
        return tern_fail(
            TERN_ERR_ARGUMENT,
            "%s: nothing can be called \"%s\": it is empty, has a dot, or is there already",
            function, name);
    if (s->count == s->capacity) {
        int capacity = s->capacity ? 2 * s->capacity : 8;
        io_snapshot_part *parts = tern_grow(s->parts, sizeof *parts * (size_t)capacity);
        if (!parts)
            return TERN_ERR_MEMORY;
        s->parts = parts;
        s->capacity = capacity;
    }
    char *copy = tern_copy_text(name);
    if (!copy)
        return TERN_ERR_MEMORY;
    s->parts[s->count++] = (io_snapshot_part){copy, kind, (void *)(uintptr_t)object};
    return TERN_OK;
}

#define ADD(KIND, TYPE)                                                                            \
    tern_status tern_snapshot_add_##KIND(tern_snapshot *snapshot, const char *name, TYPE *object)  \
    {                                                                                              \
        return add(snapshot, name, &io_part_##KIND, object, "tern_snapshot_add_" #KIND);           \
    }
ADD(module, tern_module)
ADD(optimizer, tern_optimizer)
ADD(lr_scheduler, tern_lr_scheduler)
ADD(scaler, tern_scaler)
ADD(averaged_model, tern_averaged_model)
ADD(loader, tern_loader)
ADD(metric, tern_metric)
ADD(early_stopping, tern_early_stopping)
ADD(tensor, tern_tensor)
ADD(int, int64_t)
ADD(real, double)

/* ---- saving ---------------------------------------------------------------------------------- */

static tern_status collect(const tern_snapshot *s, tern_state_dict *dict)
{
    TERN_TRY(tern_state_dict_set_metadata(dict, "format", IO_SNAPSHOT_FORMAT));
    TERN_TRY(tern_state_dict_set_metadata(dict, "version", "1"));
    for (int i = 0; i < s->count; i++)
        TERN_TRY(s->parts[i].kind->save(&s->parts[i], dict));
    return io_save_generators(dict);
}

/* Replaces the tensors by copies on the host. */
static tern_status to_host(tern_state_dict *dict)
{
    tern_status status = TERN_OK;
    const char *cpu = tern_device_canonical("cpu");
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++)
        TERN_SCOPE {
            tern_tensor *x = tern_state_dict_at(dict, i);
            x = tern_device(x) == cpu ? tern_clone(x) : tern_to(x, cpu);
            status = x ? tern_state_dict_set(dict, tern_state_dict_key_at(dict, i), x)
                       : tern_last_status();
        }
    return status;
}

static tern_status write_snapshot(const tern_state_dict *dict, const char *folder,
                                  const tern_snapshot_options *o)
{
    tern_text path = {0};
    tern_status status = io_snapshot_path(&path, folder, o->step);
    if (status == TERN_OK)
        status = io_save(dict, path.data, NULL, "tern_snapshot_save");
    if (status == TERN_OK && o->is_best)
        status = io_snapshot_make_best(folder, path.data);
    if (status == TERN_OK && o->keep_last > 0)
        status = io_snapshot_keep(folder, o->keep_last, o->step);
    tern_text_free(&path);
    return status;
}

static tern_status write_whole(void *user)
{
    const tern_snapshot *s = user;
    return write_snapshot(s->dict, s->folder, &s->options);
}

static void *write_later(void *user)
{
    tern_snapshot *s = user;
    s->status = s->shards.ranks ? io_shards_write(&s->shards, s->folder) : write_whole(s);
    snprintf(s->message, sizeof s->message, "%s", tern_last_error());
    tern_clear_error();
    return NULL;
}

static void forget(tern_snapshot *s)
{
    tern_state_dict_free(s->dict);
    tern_free(s->folder);
    io_shards_end(&s->shards);
    s->dict = NULL;
    s->folder = NULL;
}

/* Ends a save by ranks: all files of parts are written, so the first rank writes the snapshot that
 * names them. Frees the save's data. */
static tern_status settle(tern_snapshot *s, tern_status status)
{
    if (s->shards.ranks)
        status = io_shards_commit(&s->shards, s->folder, status, write_whole, s);
    forget(s);
    return status;
}

static tern_status finish(tern_snapshot *s)
{
    if (!s->runs)
        return TERN_OK;
    tern_os_thread_join(s->thread);
    s->runs = false;
    return settle(s, s->status == TERN_OK ? TERN_OK : tern_fail(s->status, "%s", s->message));
}

tern_status tern_snapshot_wait(tern_snapshot *snapshot)
{
    return snapshot ? finish(snapshot) : tern_fail_argument_null("tern_snapshot_wait", "snapshot");
}

/* Begins the save in the background; its thread writes the files. */
static tern_status start(tern_snapshot *s)
{
    TERN_TRY(to_host(s->dict));
    if (s->shards.own)
        TERN_TRY(to_host(s->shards.own));
    s->runs = tern_os_thread_start(&s->thread, write_later, s);
    return s->runs ? TERN_OK
                   : tern_fail(TERN_ERR_MEMORY,
                               "tern_snapshot_save: no thread for the background could be started");
}

/* Makes the missing folders of a path. */
static tern_status make_folder(const char *folder)
{
    char *path = tern_os_plain_path(tern_copy_text(folder));
    if (!path)
        return TERN_ERR_MEMORY;
    int code = 0;
    for (char *c = path + (*path != '\0'); !code; c++) {
        bool last = !*c;
        if (*c && *c != '/')
            continue;
        *c = '\0';
        code = tern_os_mkdir(path, 0777) != 0 && errno != EEXIST && errno != EISDIR ? errno : 0;
        if (last)
            break;
        *c = '/';
    }
    tern_free(path);
    errno = code;
    return code ? io_fail_system("tern_snapshot_save", folder, "the folder can't be made")
                : TERN_OK;
}

/* Checks the options, makes the folder, sets the step, and collects what is to be saved. */
static tern_status prepare(tern_snapshot *s, const char *folder)
{
    tern_snapshot_options *o = &s->options;
    if (o->step < 0 || o->keep_last < 0)
        return tern_fail(TERN_ERR_ARGUMENT,
                         "tern_snapshot_save: step %lld and keep_last %d should not be negative",
                         (long long)o->step, o->keep_last);
    TERN_TRY(tern_last_status());
    TERN_TRY(make_folder(folder));
    if (!o->step) {
        int count;
        int64_t newest = io_snapshot_newest(folder, &count);
        o->step = newest < 0 ? 1 : newest + 1;
    }
    s->folder = tern_copy_text(folder);
    s->dict = s->folder ? tern_state_dict_new() : NULL;
    return s->dict ? collect(s, s->dict) : TERN_ERR_MEMORY;
}

static tern_status save(tern_snapshot *s, const char *folder, const tern_state_dict *parameters,
                        tern_ranks *ranks)
{
    tern_status status = prepare(s, folder);
    if (ranks) {
        TERN_TRY(io_shards_begin(&s->shards, ranks, parameters, folder, &s->options.step, status));
        status = io_shards_divide(&s->shards, parameters, s->dict);
    }
    if (status == TERN_OK && s->options.background)
        status = start(s);
    else if (status == TERN_OK)
        status = ranks ? io_shards_write(&s->shards, folder) : write_whole(s);
    if (s->runs)
        return status;
    return settle(s, status);
}

tern_status tern_snapshot_save(tern_snapshot *snapshot, const char *folder,
                               const tern_snapshot_options *options)
{
    if (!snapshot || !folder)
        return tern_fail_argument_null("tern_snapshot_save", snapshot ? "folder" : "snapshot");
    TERN_TRY(finish(snapshot));
    snapshot->options = tern_read_snapshot(options);
    tern_state_dict *parameters;
    tern_ranks *ranks;
    tern_status status =
        io_shards_parameters(snapshot->parts, snapshot->count, &parameters, &ranks);
    if (status == TERN_OK)
        status = save(snapshot, folder, parameters, ranks);
    if (!snapshot->runs)
        forget(snapshot);
    tern_state_dict_free(parameters);
    return status;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* Records an error unless the part whose name begins the key, up to its first dot, is in the
 * snapshot. */
static tern_status check_key(const tern_snapshot *s, const char *key)
{
    size_t n = strcspn(key, ".");
    for (int i = 0; i < s->count; i++)
        if (strlen(s->parts[i].name) == n && strncmp(s->parts[i].name, key, n) == 0)
            return TERN_OK;
    return tern_fail(
        TERN_ERR_STATE,
        "tern_snapshot_load: the file has %s, and nothing called \"%s\" was added to the snapshot",
        IO_SHOW(key), io_show(key, n).text);
}

static tern_status check(const tern_snapshot *s, const tern_state_dict *dict, const char *path)
{
    const char *format = tern_state_dict_metadata(dict, "format");
    const char *version = tern_state_dict_metadata(dict, "version");
    if (!format || strcmp(format, IO_SNAPSHOT_FORMAT) != 0)
        return tern_fail(TERN_ERR_IO, "tern_snapshot_load: \"%s\": it is no snapshot", path);
    if (!version || strcmp(version, "1") != 0)
        return tern_fail(TERN_ERR_IO, "tern_snapshot_load: \"%s\": version %s is not known, 1 is",
                         path, version ? IO_SHOW(version) : "?");
    for (int i = 0; i < tern_state_dict_count(dict); i++)
        TERN_TRY(check_key(s, tern_state_dict_key_at(dict, i)));
    for (int i = 0; i < tern_state_dict_metadata_count(dict); i++) {
        const char *key = tern_state_dict_metadata_key_at(dict, i);
        if (strcmp(key, "format") != 0 && strcmp(key, "version") != 0 &&
            strncmp(key, "rng.", 4) != 0 && strncmp(key, "shards.", 7) != 0)
            TERN_TRY(check_key(s, key));
    }
    return TERN_OK;
}

static tern_status load(tern_snapshot *s, const tern_state_dict *dict, bool apply)
{
    for (int i = 0; i < s->count; i++)
        TERN_TRY(s->parts[i].kind->load(&s->parts[i], dict, apply));
    return io_load_generators(dict, apply);
}

/* Returns path, or, if it is a folder, its newest snapshot; NULL after an error. */
static const char *find_file(const char *path)
{
    struct tern_os_stat facts;
    if (tern_os_stat(path, &facts) != 0 || !S_ISDIR(facts.st_mode))
        return path;
    const char *file = tern_snapshot_latest(path);
    if (!file)
        tern_fail(TERN_ERR_IO, "tern_snapshot_load: there is no snapshot in \"%s\"", path);
    return file;
}

static tern_status read_and_check(tern_snapshot *s, const char *path,
                                  const tern_state_dict *parameters, tern_state_dict **dict)
{
    const char *file = find_file(path);
    tern_file *open = file ? io_open("tern_snapshot_load", file) : NULL;
    *dict = open ? io_load(open, &(tern_load_options){.map_location = "cpu"}) : NULL;
    tern_status status = *dict ? io_shards_load(open->path, parameters, *dict) : tern_last_status();
    if (status == TERN_OK)
        status = check(s, *dict, open->path);
    tern_file_free(open);
    return status == TERN_OK ? load(s, *dict, false) : status;
}

static bool has_part(const tern_snapshot *s, const io_part_kind *kind)
{
    for (int i = 0; i < s->count; i++)
        if (s->parts[i].kind == kind)
            return true;
    return false;
}

tern_status tern_snapshot_load(tern_snapshot *snapshot, const char *path)
{
    if (!snapshot || !path)
        return tern_fail_argument_null("tern_snapshot_load", snapshot ? "path" : "snapshot");
    TERN_TRY(finish(snapshot));
    tern_state_dict *parameters, *dict = NULL;
    tern_ranks *ranks;
    tern_status status =
        io_shards_parameters(snapshot->parts, snapshot->count, &parameters, &ranks);
    if (status == TERN_OK)
        status = read_and_check(snapshot, path, parameters, &dict);
    if (ranks) /* all ranks load, or no rank does */
        status = ranks->check_consistency(ranks, status, NULL, 0, "tern_snapshot_load");
    if (status == TERN_OK)
        status = load(snapshot, dict, true);
    if (status == TERN_OK)
        tern_resumed_note(has_part(snapshot, &io_part_optimizer) &&
                          !has_part(snapshot, &io_part_loader));
    tern_state_dict_free(parameters);
    tern_state_dict_free(dict);
    return status;
}

void tern_snapshot_free(tern_snapshot *snapshot)
{
    if (!snapshot)
        return;
    finish(snapshot);
    for (int i = 0; i < snapshot->count; i++)
        tern_free(snapshot->parts[i].name);
    tern_free(snapshot->parts);
    tern_free(snapshot);
}
