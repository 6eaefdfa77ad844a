/* folder.c -- images in folders whose names are the classes. */
#define _GNU_SOURCE /* for strcasecmp */
#include "base/option.h"
#include "base/os.h"
#include "data/file.h"
#include "data/name_lists.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char function[] = "tern_datasets_image_folder";
enum { DEEPEST = 32 };

typedef struct folder {
    tern_image_options image;
    tern_names files;
    int64_t *label, capacity; /* label is the class of each file */
} folder;

static void free_folder(void *data)
{
    folder *f = data;
    tern_names_free(&f->files);
    tern_free(f->label);
    tern_free(f);
}

static tern_status folder_item(tern_dataset *self, int64_t i, tern_tensor **item)
{
    const folder *f = self->data;
    uint64_t failures = tern_failures();
    item[0] = tern_image_read(f->files.of[i], &f->image);
    if (!item[0])
        return tern_failed_since(failures);
    item[1] = tern_tensor_scalar(TERN_SCALAR(f->label[i]), TERN_I64, NULL);
    return TERN_OK;
}

static bool is_image(const char *name)
{
    const char *end = strrchr(name, '.');
    return end && (!tern_os_strcasecmp(end, ".jpg") || !tern_os_strcasecmp(end, ".jpeg") ||
                   !tern_os_strcasecmp(end, ".png") || !tern_os_strcasecmp(end, ".webp") ||
                   !tern_os_strcasecmp(end, ".bmp"));
}

/* Adds the folders of path, and its images unless files is NULL, in sorted order. Follows links. */
static tern_status list(const char *path, tern_names *folders, tern_names *files)
{
    tern_os_dir *dir = tern_os_opendir(path);
    tern_status status = TERN_OK;
    if (!dir)
        return tern_fail(TERN_ERR_IO, "%s: %s: %s", function, path, strerror(errno));
    for (struct tern_os_dirent *e; status == TERN_OK && (e = tern_os_readdir(dir));) {
        char full[4096];
        struct tern_os_stat about;
        int n = snprintf(full, sizeof full, "%s/%s", path, e->d_name);
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || n < 0 ||
            (size_t)n >= sizeof full || tern_os_stat(full, &about) != 0)
            continue;
        if (S_ISDIR(about.st_mode))
            status = tern_names_add(folders, e->d_name);
        else if (files && S_ISREG(about.st_mode) && is_image(e->d_name))
            status = tern_names_add(files, e->d_name);
    }
    tern_os_closedir(dir);
    tern_names_sort(folders);
    if (files)
        tern_names_sort(files);
    return status;
}

static tern_status add_file(folder *f, const char *path, int64_t label)
{
    if (f->files.n == f->capacity) {
        int64_t capacity = f->capacity ? 2 * f->capacity : 64;
        int64_t *grown = tern_grow(f->label, tern_size_bytes(capacity, sizeof *grown));
        if (!grown)
            return TERN_ERR_MEMORY;
        f->label = grown;
        f->capacity = capacity;
    }
    f->label[f->files.n] = label;
    return tern_names_add(&f->files, path);
}

static tern_status walk(folder *f, const char *path, int64_t label, int depth)
{
    tern_names folders = {0}, files = {0};
    char full[4096];
    if (depth == DEEPEST)
        return tern_fail(TERN_ERR_IO, "%s: %s: folders in folders, %d deep", function, path, depth);
    tern_status status = list(path, &folders, &files);
    for (int64_t i = 0; i < files.n && status == TERN_OK; i++) {
        snprintf(full, sizeof full, "%s/%s", path, files.of[i]);
        status = add_file(f, full, label);
    }
    for (int64_t i = 0; i < folders.n && status == TERN_OK; i++) {
        snprintf(full, sizeof full, "%s/%s", path, folders.of[i]);
        status = walk(f, full, label, depth + 1);
    }
    tern_names_free(&folders);
    tern_names_free(&files);
    return status;
}

static tern_status find(folder *f, const char *root, tern_names *classes, bool allow_empty)
{
    char path[4096], none[512] = "";
    TERN_TRY(list(root, classes, NULL));
    if (!classes->n)
        return tern_fail(TERN_ERR_IO, "%s: Couldn't find any class folder in %s.", function, root);
    for (int64_t i = 0; i < classes->n; i++) {
        int64_t before = f->files.n;
        size_t used = strlen(none);
        int n = snprintf(path, sizeof path, "%s/%s", root, classes->of[i]);
        if (n < 0 || (size_t)n >= sizeof path)
            return tern_fail(TERN_ERR_IO, "%s: the path of class %.80s is too long", function,
                             classes->of[i]);
        TERN_TRY(walk(f, path, i, 0));
        if (f->files.n == before)
            snprintf(none + used, sizeof none - used, "%s%.80s", used ? ", " : "", classes->of[i]);
    }
    if (*none && !allow_empty)
        return tern_fail(TERN_ERR_IO, "%s: Found no valid file for the classes %s.", function,
                         none);
    return TERN_OK;
}

tern_dataset *tern_datasets_image_folder(const char *root, const tern_image_folder_options *options)
{
    static const tern_dataset_type type = {
        .name = "ImageFolder", .item = folder_item, .free_data = free_folder};
    const tern_image_folder_options o = tern_read_image_folder(options);
    tern_names classes = {0};
    tern_dataset *d = NULL;
    if (!root)
        return tern_fail_argument_null(function, "root"), NULL;
    folder *f = tern_alloc(sizeof *f);
    if (!f)
        return NULL;
    f->image = o.image;
    if (find(f, root, &classes, o.allow_empty) == TERN_OK)
        d = tern_data_dataset_of(&type, f->files.n, 2, f);
    if (d) {
        d->classes = classes;
        return d;
    }
    tern_names_free(&classes);
    free_folder(f);
    return NULL;
}

/* ---- classes ----------------------------------------------------------------------------- */

int64_t tern_datasets_class_count(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_datasets_class_count");
    return d ? d->classes.n : 0;
}

int64_t tern_dataset_classes(const tern_dataset *d)
{
    TERN_DATASET_GIVEN(d, "tern_dataset_classes");
    while (d && d->inner)
        d = d->inner;
    return !d ? 0 : d->classes.n ? d->classes.n : d->n_classes;
}

const char *tern_datasets_class_name(const tern_dataset *d, int64_t i)
{
    TERN_DATASET_GIVEN(d, "tern_datasets_class_name");
    return d && i >= 0 && i < d->classes.n ? d->classes.of[i] : NULL;
}
