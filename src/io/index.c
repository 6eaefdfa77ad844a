/* index.c -- the index of a model in several files, of safetensors or of torch.save:
 *
 *   {"metadata": ..., "weight_map": {"tensor": "file"}, ...}
 *
 * The files are plain names beside the index; tensors that the map lacks are not part of the
 * model. */
#include "base/os.h"
#include "io/file.h"
#include "io/json.h"
#include <string.h>

enum { MOST_INDEX = 100000000, MOST_NAME = 255 };

typedef struct weight_map {
    tern_file *file;
    const char *text;
    const io_json *json;
    bool is_there;
    tern_keys shard_keys; /* index of the file's shards by name, in order of first use */
} weight_map;

static tern_status bad_json(void *user, size_t at, const char *what)
{
    const weight_map *map = user;
    at += (size_t)(map->json->text - map->text);
    return io_bad(map->file, 0, "invalid JSON in the index: %s at byte %zu", what, at);
}

/* Returns "/folder/shard" for "/folder/index" and "shard"; the caller frees it. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    tern_text text = {0};
    tern_text_add(&text, "%.*s%s", slash ? (int)(slash - path) + 1 : 0, path, name);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return NULL;
}

static tern_status add_shard(weight_map *map, const char *name, int *shard)
{
    tern_file *whole = map->file;
    tern_file **shards = tern_grow(whole->shards, sizeof *shards * (size_t)(whole->n_shards + 1));
    if (!shards)
        return TERN_ERR_MEMORY;
    whole->shards = shards;
    char *path = beside(whole->path, name);
    tern_file *file = path ? io_open_path(whole->function, path) : NULL;
    tern_free(path);
    if (!file)
        return tern_last_status();
    *shard = whole->n_shards;
    shards[whole->n_shards++] = file;
    const char *stays = strrchr(file->path, '/');
    return tern_keys_add(&map->shard_keys, stays ? stays + 1 : file->path, *shard);
}

/* Returns whether name is that of a file in the same folder, and no index, which ends in .json. */
static bool is_shard_name(const char *name)
{
    size_t n = strlen(name);
    return *name && *name != '.' && !strpbrk(name, TERN_OS_NO_NAME) && n <= MOST_NAME &&
           (n < 5 || strcmp(name + n - 5, ".json") != 0);
}

/* Adds a tensor of the map; `in` is the name of its file. */
static tern_status take_tensor(weight_map *map, const char *name, const char *in)
{
    if (!is_shard_name(in))
        return io_bad(map->file, 0,
                      "weight_map: tensor `%s` is in \"%s\", which is no plain name of a file",
                      IO_SHOW(name), IO_SHOW(in));
    int shard = tern_keys_find(&map->shard_keys, in);
    if (shard < 0)
        TERN_TRY(add_shard(map, in, &shard));
    const tern_file *file = map->file->shards[shard];
    int i = tern_keys_find(&file->keys, name);
    if (i < 0)
        return io_bad(map->file, 0, "weight_map: there is no tensor `%s` in \"%s\"", IO_SHOW(name),
                      IO_SHOW(in));
    io_entry *e = io_add_entry(map->file, name, NULL, NULL, 0, false);
    if (!e)
        return tern_last_status();
    e->part = shard;
    e->at = (uint64_t)i;
    return TERN_OK;
}

static tern_status take_pair(void *user, const io_member *m)
{
    weight_map *map = user;
    if (!*m->key || tern_keys_find(&map->file->keys, m->key) >= 0)
        return io_bad(map->file, 0, "weight_map: tensor `%s` is there twice, or has no name",
                      IO_SHOW(m->key));
    json_error_t error;
    json_t *in = m->depth || m->n > 8 * MOST_NAME
                     ? NULL
                     : json_loadb(m->value, m->n, JSON_DECODE_ANY, &error);
    tern_status status =
        json_is_string(in) ? take_tensor(map, m->key, json_string_value(in))
                           : io_bad(map->file, 0, "weight_map: the file of tensor `%s` is no text",
                                    IO_SHOW(m->key));
    json_decref(in);
    return status;
}

static tern_status take_member(void *user, const io_member *m)
{
    weight_map *map = user;
    if (strcmp(m->key, "weight_map") != 0)
        return TERN_OK;
    if (map->is_there)
        return io_bad(map->file, 0, "weight_map is there twice");
    map->is_there = true;
    const io_json *outer = map->json;
    io_json json = {m->value, m->n, bad_json, take_pair, map};
    map->json = &json;
    tern_status status = io_json_walk(&json);
    map->json = outer;
    return status;
}

/* Copies the shards' metadata. */
static tern_status take_notes(weight_map *map)
{
    for (int i = 0; i < map->file->n_shards; i++) {
        const tern_state_dict *notes = map->file->shards[i]->notes;
        for (int k = 0; k < tern_state_dict_metadata_count(notes); k++) {
            const char *key = tern_state_dict_metadata_key_at(notes, k);
            if (!tern_state_dict_metadata(map->file->notes, key))
                TERN_TRY(tern_state_dict_set_metadata(map->file->notes, key,
                                                      tern_state_dict_metadata(notes, key)));
        }
    }
    return TERN_OK;
}

tern_status io_index_open(tern_file *file)
{
    uint64_t n = file->parts[0].size;
    if (n > MOST_INDEX)
        return io_bad(file, 0, "the index is too large: %llu bytes", (unsigned long long)n);
    char *text = tern_grow(NULL, (size_t)n + 1);
    if (!text)
        return TERN_ERR_MEMORY;
    weight_map map = {.file = file, .text = text};
    io_json json = {text, (size_t)n, bad_json, take_member, &map};
    map.json = &json;
    tern_status status = io_read_at(file, 0, 0, text, (size_t)n, "index");
    if (status == TERN_OK)
        status = io_json_walk(&json);
    if (status == TERN_OK && !map.is_there)
        status = io_bad(file, 0, "it has no weight_map and is no index");
    if (status == TERN_OK)
        status = take_notes(&map);
    tern_keys_free(&map.shard_keys);
    tern_free(text);
    return status;
}
