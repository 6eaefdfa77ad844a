/* shards.c -- writes a model in several files, with the names of Hugging Face's libraries:
 *
 *   NAME-00001-of-00003.safetensors ..., NAME.safetensors.index.json
 *
 * The new files have names that no existing file has, and the index, by which the model is read, is
 * written last: at any moment it names files that belong together. Then the files that only the old
 * index names are removed. */
#define _GNU_SOURCE
#include "io/file.h"
#include "base/os.h"
#include "io/json.h"
#include "io/save.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct shards {
    const char *function;
    tern_text folder; /* path with a slash at its end, or empty */
    tern_text name;   /* name of the model, such as "model" */
    io_list *lists;   /* count lists, one for each file */
    io_out *outs;     /* count outputs */
    tern_text *paths, *names;
    int count;
    uint64_t bytes;
    tern_state_dict *old; /* metadata keys: the files that the old index names */
    bool old_is_whole;    /* the old index was read completely */
} shards;

static tern_status text_is(const tern_text *text)
{
    return text->failed ? TERN_ERR_MEMORY : TERN_OK;
}

/* ---- division into files --------------------------------------------------------------------- */

/* Makes the folder, and sets the name in it. */
static tern_status find_folder(shards *s, const char *path)
{
    size_t n = strlen(path), k = strlen(".safetensors");
    if (tern_ends_with(path, ".safetensors")) {
        const char *slash = strrchr(path, '/');
        size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
        tern_text_add(&s->folder, "%.*s", (int)folder, path);
        tern_text_add(&s->name, "%.*s", (int)(n - k - folder), path + folder);
    } else {
        if (tern_os_mkdir(path, 0777) != 0 && errno != EEXIST)
            return io_fail_system(s->function, path, "the folder can't be made");
        tern_text_add(&s->folder, "%s%s", path, n && path[n - 1] == '/' ? "" : "/");
        tern_text_add(&s->name, "model");
    }
    TERN_TRY(text_is(&s->folder));
    return text_is(&s->name);
}

/* Puts as many tensors into each file as fit, in the dict's order. */
static tern_status divide(shards *s, const io_list *all, uint64_t most)
{
    uint64_t used = 0;
    s->lists = tern_alloc(sizeof *s->lists * ((size_t)all->count + 1));
    if (!s->lists)
        return TERN_ERR_MEMORY;
    for (int i = 0; i < all->count; i++) {
        uint64_t bytes = io_tensor_bytes(tern_state_dict_at(all->dict, all->place[i]));
        if (!s->count || (used && bytes > most - used)) {
            s->lists[s->count++] = (io_list){.dict = all->dict, .place = all->place + i};
            used = 0;
        }
        s->lists[s->count - 1].count++;
        used = bytes > most - used ? most : used + bytes;
        s->bytes += bytes;
    }
    if (!s->count)
        s->lists[s->count++] = *all;
    return TERN_OK;
}

/* Finds a generation of names of which none exists. */
static tern_status name_files(shards *s)
{
    size_t n = (size_t)s->count;
    s->outs = tern_alloc(sizeof *s->outs * n);
    s->paths = tern_alloc(sizeof *s->paths * n);
    s->names = tern_alloc(sizeof *s->names * n);
    if (!s->outs || !s->paths || !s->names)
        return TERN_ERR_MEMORY;
    bool taken = true;
    for (int generation = 1; taken; generation++) {
        taken = false;
        for (int i = 0; i < s->count && !taken; i++) {
            char text[64] = "";
            if (generation > 1)
                snprintf(text, sizeof text, "-v%d", generation);
            tern_text_free(&s->names[i]);
            tern_text_free(&s->paths[i]);
            tern_text_add(&s->names[i], "%s%s-%05d-of-%05d.safetensors", s->name.data, text, i + 1,
                          s->count);
            TERN_TRY(text_is(&s->names[i]));
            tern_text_add(&s->paths[i], "%s%s", s->folder.data, s->names[i].data);
            TERN_TRY(text_is(&s->paths[i]));
            taken = tern_os_access(s->paths[i].data, F_OK) == 0;
        }
    }
    return TERN_OK;
}

/* ---- the old index ----------------------------------------------------------------------- */

static tern_status path_of_index(const shards *s, tern_text *path)
{
    tern_text_add(path, "%s%s.safetensors.index.json", s->folder.data, s->name.data);
    return text_is(path);
}

static tern_status note_old_file(void *user, const io_member *m)
{
    shards *s = user;
    json_error_t error;
    json_t *name = m->n < 4096 ? json_loadb(m->value, m->n, JSON_DECODE_ANY, &error) : NULL;
    const char *text = json_string_value(name);
    if (text && *text != '.' && !strpbrk(text, TERN_OS_NO_NAME) &&
        tern_ends_with(text, ".safetensors"))
        tern_state_dict_set_metadata(s->old, text, "");
    json_decref(name);
    return TERN_OK;
}

static tern_status ignore(void *user, size_t at, const char *what)
{
    (void)user, (void)at, (void)what;
    return TERN_ERR_IO; /* an index that can't be read removes nothing */
}

static tern_status note_old(void *user, const io_member *m)
{
    if (strcmp(m->key, "weight_map") != 0)
        return TERN_OK;
    io_json json = {m->value, m->n, ignore, note_old_file, user};
    return io_json_walk(&json);
}

static void read_old(shards *s, const char *index)
{
    FILE *file = tern_os_fopen(index, "re");
    struct tern_os_stat facts;
    if (!file)
        return;
    if (tern_os_fstat(fileno(file), &facts) == 0 && S_ISREG(facts.st_mode) &&
        facts.st_size < 100000000) {
        size_t n = (size_t)facts.st_size;
        char *text = tern_grow(NULL, n + 1);
        if (text && fread(text, 1, n, file) == n) {
            io_json json = {text, n, ignore, note_old, s};
            s->old_is_whole = io_json_walk(&json) == TERN_OK;
        }
        tern_free(text);
    }
    fclose(file);
}

/* ---- writing ----------------------------------------------------------------------------- */

static tern_text index_text(const shards *s)
{
    tern_text text = {0};
    bool first = true;
    tern_text_add(&text,
                  "{\n  \"metadata\": {\n    \"total_size\": %llu\n  },\n  \"weight_map\": {",
                  (unsigned long long)s->bytes);
    for (int i = 0; i < s->count; i++)
        for (int k = 0; k < s->lists[i].count; k++, first = false) {
            tern_text_add(&text, "%s\n    ", first ? "" : ",");
            io_json_text(&text, tern_state_dict_key_at(s->lists[i].dict, s->lists[i].place[k]));
            tern_text_add(&text, ": ");
            io_json_text(&text, s->names[i].data);
        }
    tern_text_add(&text, "\n  }\n}\n");
    return text;
}

/* Writes all files to the disk before the first has a name. */
static tern_status write_files(shards *s)
{
    for (int i = 0; i < s->count; i++) {
        s->outs[i] = (io_out){.function = s->function, .path = s->paths[i].data, .fresh = true};
        TERN_TRY(io_safetensors_write(&s->outs[i], &s->lists[i]));
        TERN_TRY(io_out_sync(&s->outs[i]));
    }
    return TERN_OK;
}

static tern_status name_all(shards *s, const char *index)
{
    io_out out = {.function = s->function, .path = index};
    tern_text text = index_text(s);
    tern_status status = text_is(&text);
    if (status == TERN_OK)
        status = io_out_open(&out, text.length);
    if (status == TERN_OK)
        status = io_out_write(&out, text.data, text.length);
    if (status == TERN_OK)
        status = io_out_sync(&out);
    for (int i = 0; i < s->count && status == TERN_OK; i++)
        status = io_out_rename(&s->outs[i]);
    if (status == TERN_OK)
        status = io_out_rename(&out);
    for (int i = 0; i < s->count && !out.is_renamed; i++)
        io_out_undo(&s->outs[i]);
    if (status == TERN_OK)
        status = io_out_sync_folder(&out);
    io_out_close(&out);
    tern_text_free(&text);
    return status;
}

/* Removes the files that only the old index named, and a single file with the model's name, which
 * would look current. */
static void remove_old(shards *s)
{
    tern_text path = {0};
    for (int i = 0; i < s->count; i++)
        tern_state_dict_set_metadata(s->old, s->names[i].data, NULL);
    tern_text_add(&path, "%s%s.safetensors", s->folder.data, s->name.data);
    if (!path.failed)
        tern_os_unlink(path.data);
    for (int i = 0; s->old_is_whole && i < tern_state_dict_metadata_count(s->old); i++) {
        tern_text_free(&path);
        tern_text_add(&path, "%s%s", s->folder.data, tern_state_dict_metadata_key_at(s->old, i));
        if (!path.failed)
            tern_os_unlink(path.data);
    }
    tern_text_free(&path);
}

static tern_status save(shards *s, const io_list *all, const char *path, uint64_t most)
{
    tern_text index = {0};
    TERN_TRY(find_folder(s, path));
    TERN_TRY(divide(s, all, most));
    TERN_TRY(name_files(s));
    tern_status status = path_of_index(s, &index);
    if (status == TERN_OK) {
        read_old(s, index.data);
        status = write_files(s);
    }
    if (status == TERN_OK)
        status = name_all(s, index.data);
    if (status == TERN_OK)
        remove_old(s);
    tern_text_free(&index);
    return status;
}

tern_status io_save_shards(const io_list *list, const char *path, uint64_t most,
                           const char *function)
{
    shards s = {.function = function, .old = tern_state_dict_new()};
    char *plain = tern_os_plain_path(tern_copy_text(path));
    tern_status status = s.old && plain ? save(&s, list, plain, most) : TERN_ERR_MEMORY;
    tern_free(plain);
    for (int i = 0; s.outs && i < s.count; i++)
        io_out_close(&s.outs[i]);
    for (int i = 0; s.names && s.paths && i < s.count; i++) {
        tern_text_free(&s.names[i]);
        tern_text_free(&s.paths[i]);
    }
    tern_text_free(&s.folder);
    tern_text_free(&s.name);
    tern_state_dict_free(s.old);
    tern_free(s.lists);
    tern_free(s.outs);
    tern_free(s.paths);
    tern_free(s.names);
    return status;
}
