/* snapshot_shards.c -- snapshots that several ranks write together:
 *
 *   step-12.safetensors                       tensors that are not cut, numbers, the cuts, and the
 *                                             name of the folder; written last, by the first rank
 *   step-12.shards/00001-of-00004.safetensors parts of the first rank, and its generators; the
 *                                             other ranks' files have the next numbers
 *
 * A tensor has the same name in all files that have a part of it. Its metadata text in the first
 * file, "shards.part.NAME", is
 *
 *   12x8 1/2@1 0/3@2      shape (12, 8), cut along dim 1 in 2 parts, and each of these along dim 0
 *                         in 3, as tern_chunk cuts. File f, from 0 on, has part f / 1 % 2 of the
 *                         former and f / 2 % 3 of the latter. If f is not the sum of such digits,
 *                         its part is a copy, which was left out
 *
 * Tensors of one stage of a pipeline, and what an optimizer has gathered for them, are in the files
 * of that stage's rank alone, and so are their metadata texts, which "shards.stages" in the first
 * file records. The cut of a stage is the last:
 *
 *   12x8 0/3@4 1:4@1      File f has the tensor if f / 1 % 4 is 1
 *
 * A tensor without such a text is whole. */
#define _GNU_SOURCE
#include "io/file.h"
#include "base/os.h"
#include "io/save.h"
#include "io/snapshot.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_snapshot_save";

/* ---- parameters that are cut ----------------------------------------------------------------- */

tern_tensor *io_shards_shared(const tern_state_dict *parameters, const char *key)
{
    char name[1024];
    tern_tensor *x = tern_state_dict_get(parameters, key);
    const char *dot = x ? NULL : strrchr(key, '.');
    if (!dot || dot - key >= (ptrdiff_t)sizeof name)
        return x;
    snprintf(name, sizeof name, "%.*s", (int)(dot - key), key);
    return tern_state_dict_get(parameters, name);
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
    *ranks = NULL;
    for (int i = 0; all && i < tern_state_dict_count(all); i++) {
        tern_ranks *own = tern_ranks_of(tern_state_dict_at(all, i));
        if (!*ranks || (own->all && !(*ranks)->all))
            *ranks = own;
    }
    return status;
}

static int place_in(const io_grid *g, const void *group)
{
    int k = 0;
    while (k < g->n && g->group[k] != group)
        k++;
    return k;
}

bool io_shards_grid(const tern_state_dict *parameters, io_grid *g)
{
    const int count = tern_state_dict_count(parameters);
    *g = (io_grid){.count = 1};
    /* stages come first: only the rank of a stage knows its further cuts */
    for (int i = 0; i < 2 * count; i++) {
        tern_cut cut[TERN_MOST_CUTS];
        tern_shape whole;
        const int n = tern_cuts_of(tern_state_dict_at(parameters, i % count), cut, &whole);
        for (int c = 0; c < n; c++) {
            if ((i < count && cut[c].dim >= 0) || place_in(g, cut[c].group) < g->n)
                continue;
            if (g->n == IO_MOST_GROUPS || cut[c].parts > IO_MOST_FILES / g->count) {
                *g = (io_grid){.count = 1};
                return false;
            }
            g->group[g->n] = cut[c].group;
            g->step[g->n++] = g->count;
            g->number += cut[c].part * g->count;
            g->count *= cut[c].parts;
        }
    }
    return true;
}

/* ---- saving ---------------------------------------------------------------------------------- */

/* Makes a folder with a new name, so that files of an earlier save of this step are unchanged. */
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
        else if (tern_os_mkdir(path.data, 0777) == 0)
            break;
        else if (errno != EEXIST)
            status = io_fail_system(function, path.data, "the folder can't be made");
    }
    tern_text_free(&path);
    return status;
}

tern_status io_shards_begin(io_shards *s, tern_ranks *ranks, const tern_state_dict *parameters,
                            const char *folder, int64_t *step, tern_status status)
{
    char text[IO_SHARDS_NAME + 32] = "";
    bool all;
    s->ranks = ranks;
    const bool fits = io_shards_grid(parameters, &s->grid);
    TERN_TRY(ranks->first(ranks, s->grid.number, s->grid.count, &s->leads, &s->writes, &all));
    if (status == TERN_OK && !(all && fits))
        status = tern_fail(TERN_ERR_UNSUPPORTED,
                           "%s: the groups that share parameters out are not those of one mesh, as "
                           "tern_dist_init_device_mesh makes them",
                           function);
    if (status == TERN_OK && s->leads) {
        status = make_folder(folder, *step, s->name);
        snprintf(text, sizeof text, "%lld %s", (long long)*step, s->name);
    }
    TERN_TRY(ranks->check_consistency(ranks, status, text, sizeof text, function));
    char *name = NULL;
    *step = strtoll(text, &name, 10);
    snprintf(s->name, sizeof s->name, "%s", *name ? name + 1 : "");
    return TERN_OK;
}

/* Moves this rank's part of a tensor to s->own, unless another rank writes the same part, and
 * records its cuts; those of a stage's tensor in s->own too, as other ranks do not know them.
 * *taken: the tensor is removed from dict. */
static tern_status take(io_shards *s, const tern_state_dict *parameters, tern_state_dict *dict,
                        const char *key, tern_tensor *value, bool *taken)
{
    char note[1200], text[400];
    const tern_tensor *x = io_shards_shared(parameters, key);
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape whole;
    int n = 0, file = 0, cuts;
    const tern_cut *stage = tern_stage_of(x, cut, &whole, &cuts);
    const bool same = x && tern_same_shape(value, x), noted = same && (!stage || whole.ndim);
    *taken = same || stage;
    if (stage)
        TERN_TRY(tern_state_dict_set_metadata(dict, "shards.stages", "1"));
    if (!*taken || (stage && stage->elsewhere))
        return TERN_OK;
    for (int d = 0; d < whole.ndim; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", d ? "x" : "",
                      (long long)whole.dims[d]);
    for (int c = 0; c < cuts; c++) {
        const int step = s->grid.step[place_in(&s->grid, cut[c].group)];
        n += snprintf(text + n, sizeof text - (size_t)n, " %d%c%d@%d",
                      cut[c].dim < 0 ? cut[c].part : cut[c].dim, cut[c].dim < 0 ? ':' : '/',
                      cut[c].parts, step);
        file += cut[c].part * step;
    }
    snprintf(note, sizeof note, IO_SHARDS_PART "%s", key);
    if (file == s->grid.number)
        TERN_TRY(tern_state_dict_set(s->own, key, value));
    return noted ? tern_state_dict_set_metadata(stage ? s->own : dict, note, text) : TERN_OK;
}

tern_status io_shards_divide(io_shards *s, const tern_state_dict *parameters, tern_state_dict *dict)
{
    char count[16];
    snprintf(count, sizeof count, "%d", s->grid.count);
    s->own = tern_state_dict_new();
    if (!s->own)
        return TERN_ERR_MEMORY;
    TERN_TRY(tern_state_dict_set_metadata(dict, "shards.folder", s->name));
    TERN_TRY(tern_state_dict_set_metadata(dict, "shards.count", count));
    TERN_TRY(tern_state_dict_set_metadata(s->own, "format", IO_SNAPSHOT_FORMAT ".shard"));
    for (int i = 0; i < tern_state_dict_count(dict);) {
        const char *key = tern_state_dict_key_at(dict, i);
        bool taken;
        TERN_TRY(take(s, parameters, dict, key, tern_state_dict_at(dict, i), &taken));
        if (taken)
            TERN_TRY(tern_state_dict_remove(dict, key));
        else
            i++;
    }
    return io_save_generators(s->own);
}

char *io_shards_path(const char *folder, const char *name, int rank, int size)
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
    if (!s->writes)
        return TERN_OK;
    char *path = io_shards_path(folder, s->name, s->grid.number, s->grid.count);
    tern_status status = path ? io_save(s->own, path, NULL, function) : TERN_ERR_MEMORY;
    tern_free(path);
    return status;
}

/* ---- folders that no snapshot names ---------------------------------------------------------- */

/* Returns whether the snapshot `file` names the folder of parts `name`. */
static bool is_named_by(const char *folder, const char *file, const char *name)
{
    tern_text path = {0};
    tern_text_add(&path, "%s/%s", folder, file);
    const bool there = path.failed || tern_os_access(path.data, F_OK) == 0 ||
                       (errno != ENOENT && errno != ENOTDIR);
    bool named = there; /* true for a file that can't be read */
    tern_error_hold hold;
    if (there && !path.failed && tern_error_hold_begin(&hold) == TERN_OK) {
        tern_file *open = io_open(function, path.data);
        const char *its = open ? tern_state_dict_metadata(open->notes, "shards.folder") : NULL;
        named = !open || (its && strcmp(its, name) == 0);
        tern_file_free(open);
        tern_error_hold_end(&hold, NULL, 0);
    }
    tern_text_free(&path);
    return named;
}

int64_t io_shards_step(const char *name)
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
    tern_os_dir *open = path.failed ? NULL : tern_os_opendir(path.data);
    for (struct tern_os_dirent *e; open && (e = tern_os_readdir(open));)
        if (strstr(e->d_name, ".safetensors"))
            tern_os_unlinkat(tern_os_dirfd(open), e->d_name, 0);
    if (open)
        tern_os_closedir(open);
    if (!path.failed)
        tern_os_rmdir(path.data);
    tern_text_free(&path);
}

/* Removes folders of snapshots that were removed or never completed. */
static void clean(const char *folder)
{
    tern_os_dir *open = tern_os_opendir(folder);
    for (struct tern_os_dirent *e; open && (e = tern_os_readdir(open));) {
        const int64_t step = io_shards_step(e->d_name);
        char file[64];
        snprintf(file, sizeof file, "step-%lld.safetensors", (long long)step);
        if (step >= 0 && !is_named_by(folder, file, e->d_name) &&
            !is_named_by(folder, "best.safetensors", e->d_name))
            remove_folder(folder, e->d_name);
    }
    if (open)
        tern_os_closedir(open);
}

tern_status io_shards_commit(io_shards *s, const char *folder, tern_status status,
                             tern_status (*write)(void *user), void *user)
{
    TERN_TRY(s->ranks->check_consistency(s->ranks, status, NULL, 0, function));
    if (s->leads) {
        status = write(user);
        if (status == TERN_OK)
            clean(folder);
    }
    return s->ranks->check_consistency(s->ranks, status, NULL, 0, function);
}

void io_shards_end(io_shards *s)
{
    tern_state_dict_free(s->own);
    *s = (io_shards){NULL};
}
