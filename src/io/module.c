/* module.c -- saves a module's parameters and buffers to a file, and loads them. */
#include "base/option.h"
#include "io/file.h"
#include "io/save.h"
#include "nn/module.h"
#include "nn/state_dict.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- saving: one name a tensor, the first when sorted, as safetensors' save_model ------------ */

typedef struct tied {
    tern_tensor *x;
    const char *name;
} tied;

static int by_tensor(const void *a, const void *b)
{
    const tied *x = a, *y = b;
    return x->x != y->x ? (x->x > y->x ? 1 : -1) : strcmp(x->name, y->name);
}

typedef struct collector {
    tern_state_dict *dict; /* written to the file */
    tied *list;            /* count entries */
    int count, capacity;
} collector;

static tern_status collect(const char *path, tern_tensor *x, void *user)
{
    collector *c = user;
    if (c->count == c->capacity) {
        int capacity = c->capacity ? 2 * c->capacity : 64;
        tied *list = tern_grow(c->list, sizeof *list * (size_t)capacity);
        if (!list)
            return TERN_ERR_MEMORY;
        c->list = list;
        c->capacity = capacity;
    }
    char *name = tern_copy_text(path);
    if (!name)
        return TERN_ERR_MEMORY;
    c->list[c->count++] = (tied){x, name};
    return TERN_OK;
}

static tern_status keep_one_name(collector *c)
{
    if (c->count)
        qsort(c->list, (size_t)c->count, sizeof *c->list, by_tensor);
    for (int i = 0, kept = 0; i < c->count; i++) {
        if (!i || c->list[i].x != c->list[kept].x) {
            kept = i;
            continue;
        }
        TERN_TRY(tern_state_dict_remove(c->dict, c->list[i].name));
        TERN_TRY(tern_state_dict_set_metadata(c->dict, c->list[i].name, c->list[kept].name));
    }
    return TERN_OK;
}

tern_status tern_nn_save(tern_module *m, const char *path, const tern_save_options *options)
{
    TERN_MODULE_GIVEN(m, "tern_nn_save");
    if (!m || !path)
        return tern_fail_argument_null("tern_nn_save", m ? "path" : "m");
    TERN_TRY(tern_last_status());
    collector c = {.dict = tern_nn_state_dict(m)};
    tern_status status = c.dict ? tern_nn_each_state(m, collect, &c) : tern_last_status();
    if (status == TERN_OK)
        status = tern_state_dict_set_metadata(c.dict, "format", "pt");
    if (status == TERN_OK)
        status = keep_one_name(&c);
    if (status == TERN_OK)
        status = io_save(c.dict, path, options, "tern_nn_save");
    for (int i = 0; i < c.count; i++)
        tern_free((void *)(uintptr_t)c.list[i].name);
    tern_free(c.list);
    tern_state_dict_free(c.dict);
    return status;
}

/* ---- loading ----------------------------------------------------------------------------- */

/* Sets *device to the device of m's tensors, to which the file's are read directly. */
static tern_status note_device(const char *path, tern_tensor *x, void *user)
{
    (void)path;
    *(const char **)user = tern_device(x);
    return TERN_OK;
}

/* Records TERN_ERR_STATE with the beginnings of the file's names if no name begins with the
 * prefix. */
static tern_status check_prefix(const tern_file *file, const char *prefix)
{
    enum { MOST_LISTED = 6 };
    tern_text begins = {0};
    char last[64] = "";
    for (int i = 0, listed = 0; i < file->count; i++) {
        const char *name = file->entries[i].name;
        const size_t n = strcspn(name, ".");
        if (strncmp(name, prefix, strlen(prefix)) == 0) {
            tern_text_free(&begins);
            return TERN_OK;
        }
        if (n >= sizeof last || (strncmp(last, name, n) == 0 && !last[n]))
            continue;
        snprintf(last, sizeof last, "%.*s", (int)n, name);
        if (listed++ < MOST_LISTED)
            tern_text_add(&begins, "%s%s%s", begins.length ? ", " : "", IO_SHOW(last),
                          name[n] ? "." : "");
    }
    tern_status status =
        tern_fail(TERN_ERR_STATE,
                  "%s: \"%s\": no tensor's name begins with the prefix \"%s\"; names begin with %s",
                  file->function, file->path, IO_SHOW(prefix),
                  begins.data ? begins.data : "nothing: there is no tensor");
    tern_text_free(&begins);
    return status;
}

tern_status tern_nn_load(tern_module *m, const char *path,
                         const tern_load_state_dict_options *options)
{
    TERN_MODULE_GIVEN(m, "tern_nn_load");
    if (!m || !path)
        return tern_fail_argument_null("tern_nn_load", m ? "path" : "m");
    const char *device = "cpu";
    TERN_TRY(tern_nn_each_state(m, note_device, &device));
    tern_load_state_dict_options o = tern_read_load_state_dict(options);
    tern_file *file = io_open("tern_nn_load", path);
    bool fits = file && (!o.prefix || check_prefix(file, o.prefix) == TERN_OK);
    tern_state_dict *dict =
        fits ? io_load(file, &(tern_load_options){.map_location = device, .prefix = o.prefix})
             : NULL;
    tern_file_free(file);
    o.prefix = NULL; /* the loaded names have no prefix */
    tern_status status =
        dict ? tern_nn_load_state(m, dict, &o, "tern_nn_load", true, false) : tern_last_status();
    tern_state_dict_free(dict);
    return status;
}
