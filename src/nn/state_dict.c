/* state_dict.c -- a module's tensors by name: taken out, and copied back. */
#include "base/memory.h"
#include "base/text.h"
#include "nn/module.h"
#include <string.h>

/* A tensor under its path, in the order of the modules. */
typedef struct entry {
    char *key;
    tern_tensor *x;
} entry;

struct tern_state_dict {
    entry *entries;
    int count, capacity;
};

tern_state_dict *tern_state_dict_new(void)
{
    return tern_alloc(sizeof(tern_state_dict));
}

void tern_state_dict_free(tern_state_dict *dict)
{
    for (int i = 0; dict && i < dict->count; i++) {
        tern_free(dict->entries[i].key);
        tern_release(dict->entries[i].x);
    }
    if (dict)
        tern_free(dict->entries);
    tern_free(dict);
}

/* ---- entries ----------------------------------------------------------------------------- */

/* Where key is, or -1. Names are mostly asked for in their order: the search begins at `from`. */
static int find(const tern_state_dict *dict, const char *key, int from)
{
    for (int k = 0; k < dict->count; k++) {
        int i = (from + k) % dict->count;
        if (strcmp(dict->entries[i].key, key) == 0)
            return i;
    }
    return -1;
}

static tern_status append(tern_state_dict *dict, const char *key, tern_tensor *x)
{
    if (dict->count == dict->capacity) {
        int capacity = dict->capacity ? 2 * dict->capacity : 16;
        entry *entries = tern_grow(dict->entries, sizeof *entries * (size_t)capacity);
        if (!entries)
            return TERN_ERR_MEMORY;
        dict->entries = entries;
        dict->capacity = capacity;
    }
    char *copy = tern_copy_text(key);
    if (!copy)
        return TERN_ERR_MEMORY;
    dict->entries[dict->count++] = (entry){copy, tern_keep(x)};
    return TERN_OK;
}

tern_status tern_state_dict_set(tern_state_dict *dict, const char *key, tern_tensor *x)
{
    if (!dict || !key || !x)
        return tern_fail_argument_null("tern_state_dict_set", !dict ? "dict" : !key ? "key" : "x");
    int i = find(dict, key, 0);
    if (i < 0)
        return append(dict, key, x);
    tern_keep(x);
    tern_release(dict->entries[i].x);
    dict->entries[i].x = x;
    return TERN_OK;
}

tern_status tern_state_dict_remove(tern_state_dict *dict, const char *key)
{
    if (!dict || !key)
        return tern_fail_argument_null("tern_state_dict_remove", dict ? "key" : "dict");
    int i = find(dict, key, 0);
    if (i < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_state_dict_remove: there is no \"%s\"", key);
    tern_free(dict->entries[i].key);
    tern_release(dict->entries[i].x);
    dict->count--;
    memmove(&dict->entries[i], &dict->entries[i + 1],
            sizeof *dict->entries * (size_t)(dict->count - i));
    return TERN_OK;
}

tern_tensor *tern_state_dict_get(const tern_state_dict *dict, const char *key)
{
    int i = dict && key ? find(dict, key, 0) : -1;
    return i < 0 ? NULL : dict->entries[i].x;
}

int tern_state_dict_count(const tern_state_dict *dict)
{
    return dict ? dict->count : 0;
}

static const entry *entry_at(const tern_state_dict *dict, int i, const char *function)
{
    if (i < 0 || i >= tern_state_dict_count(dict))
        return tern_fail_null(TERN_ERR_ARGUMENT, "%s: index %d is out of range (of %d)", function,
                              i, tern_state_dict_count(dict));
    return &dict->entries[i];
}

const char *tern_state_dict_key_at(const tern_state_dict *dict, int i)
{
    const entry *e = entry_at(dict, i, "tern_state_dict_key_at");
    return e ? e->key : NULL;
}

tern_tensor *tern_state_dict_at(const tern_state_dict *dict, int i)
{
    const entry *e = entry_at(dict, i, "tern_state_dict_at");
    return e ? e->x : NULL;
}

/* ---- saving ------------------------------------------------------------------------------ */

/* Detached and not copied: the entry shares the parameter's memory, as in PyTorch. */
static tern_status save_one(const char *path, tern_tensor *x, void *user)
{
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *detached = tern_detach(x);
        status = detached ? append(user, path, detached) : tern_last_status();
    }
    return status;
}

static tern_state_dict *dict_if(tern_state_dict *dict, tern_status status)
{
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

tern_state_dict *tern_nn_state_dict(tern_module *m)
{
    tern_state_dict *dict = tern_state_dict_new();
    return dict ? dict_if(dict, tern_nn_each_state(m, save_one, dict)) : NULL;
}

tern_state_dict *tern_state_dict_clone(const tern_state_dict *dict)
{
    tern_status status = TERN_OK;
    if (!dict) {
        tern_fail_argument_null("tern_state_dict_clone", "dict");
        return NULL;
    }
    tern_state_dict *clone = tern_state_dict_new();
    for (int i = 0; clone && i < dict->count && status == TERN_OK; i++)
        TERN_SCOPE
            TERN_NO_GRAD {
                tern_tensor *copy = tern_clone(dict->entries[i].x);
                status = copy ? append(clone, dict->entries[i].key, copy) : tern_last_status();
            }
    return clone ? dict_if(clone, status) : NULL;
}

/* ---- loading ----------------------------------------------------------------------------- */

/* What is to be copied, and what is wrong with it. */
typedef struct load {
    const tern_state_dict *dict;
    const tern_load_state_dict_options *options;
    bool *used; /* entries of dict that m has a name for */
    int next;   /* where the search begins */
    tern_text missing, unexpected, sizes;
} load;

static void note(tern_text *keys, const char *key)
{
    tern_text_add(keys, "%s\"%s\"", keys->length ? ", " : "", key);
}

/* Notes keys that are missing and shapes that differ. Nothing is copied until all were checked. */
static tern_status check_one(const char *path, tern_tensor *x, void *user)
{
    load *l = user;
    int i = find(l->dict, path, l->next);
    if (i < 0) {
        note(&l->missing, path);
        if (l->options->missing)
            l->options->missing(path, l->options->user);
        return TERN_OK;
    }
    l->used[i] = true;
    l->next = i + 1;
    const tern_tensor *from = l->dict->entries[i].x;
    if (tern_same_shape(from, x))
        return TERN_OK;
    char shapes[2][256];
    tern_shape shape[2] = {tern_shape_of(from), tern_shape_of(x)};
    for (int k = 0; k < 2; k++)
        tern_format_list(shapes[k], sizeof shapes[k], shape[k].dims, shape[k].ndim);
    tern_text_add(&l->sizes,
                  "\n\tsize mismatch for %s: copying a param with shape torch.Size(%s) from "
                  "checkpoint, the shape in current model is torch.Size(%s).",
                  path, shapes[0], shapes[1]);
    return TERN_OK;
}

static void check_unexpected(load *l)
{
    for (int i = 0; i < l->dict->count; i++) {
        if (l->used[i])
            continue;
        note(&l->unexpected, l->dict->entries[i].key);
        if (l->options->unexpected)
            l->options->unexpected(l->dict->entries[i].key, l->options->user);
    }
}

/* One error for all that was found, in PyTorch's words. */
static tern_status report(const load *l, const tern_module *m)
{
    bool keys = !l->options->no_strict && (l->missing.length || l->unexpected.length);
    if (l->missing.failed || l->unexpected.failed || l->sizes.failed)
        return TERN_ERR_MEMORY;
    if (!keys && !l->sizes.length)
        return TERN_OK;
    bool missing = keys && l->missing.length, unexpected = keys && l->unexpected.length;
    return tern_fail(
        TERN_ERR_STATE,
        "tern_nn_load_state_dict: Error(s) in loading state_dict for %s:%s%s%s%s%s%s%s", m->name,
        missing ? "\n\tMissing key(s) in state_dict: " : "", missing ? l->missing.data : "",
        missing ? ". " : "", unexpected ? "\n\tUnexpected key(s) in state_dict: " : "",
        unexpected ? l->unexpected.data : "", unexpected ? ". " : "",
        l->sizes.length ? l->sizes.data : "");
}

static tern_status copy(const char *path, tern_tensor *x, void *user)
{
    load *l = user;
    int i = find(l->dict, path, l->next);
    if (i < 0)
        return TERN_OK;
    l->next = i + 1;
    return tern_copy_(x, l->dict->entries[i].x) ? TERN_OK : tern_last_status();
}

tern_status tern_nn_load_state_dict(tern_module *m, const tern_state_dict *dict,
                                    const tern_load_state_dict_options *options)
{
    TERN_MODULE_GIVEN(m, "tern_nn_load_state_dict");
    static const tern_load_state_dict_options none;
    if (!m || !dict)
        return tern_fail_argument_null("tern_nn_load_state_dict", m ? "dict" : "m");
    load l = {.dict = dict, .options = options ? options : &none};
    l.used = tern_alloc(sizeof *l.used * ((size_t)dict->count + 1));
    if (!l.used)
        return TERN_ERR_MEMORY;
    tern_status status = tern_nn_each_state(m, check_one, &l);
    if (status == TERN_OK) {
        check_unexpected(&l);
        status = report(&l, m);
    }
    l.next = 0;
    if (status == TERN_OK)
        TERN_SCOPE
            TERN_NO_GRAD
                status = tern_nn_each_state(m, copy, &l);
    tern_free(l.used);
    tern_text_free(&l.missing);
    tern_text_free(&l.unexpected);
    tern_text_free(&l.sizes);
    return status;
}
