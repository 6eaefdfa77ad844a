/* state_dict.c -- state dicts: named tensors, and metadata. */
#include "nn/state_dict.h"
#include "nn/module.h"
#include <string.h>

typedef tern_state_dict_entry entry;
typedef tern_state_dict_note note;

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
    for (int i = 0; dict && i < dict->n_notes; i++) {
        tern_free(dict->notes[i].key);
        tern_free(dict->notes[i].value);
    }
    if (dict) {
        tern_keys_free(&dict->keys);
        tern_keys_free(&dict->note_keys);
        tern_free(dict->entries);
        tern_free(dict->notes);
    }
    tern_free(dict);
}

/* ---- entries ----------------------------------------------------------------------------- */

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
    if (!copy || tern_keys_add(&dict->keys, copy, dict->count) != TERN_OK) {
        tern_free(copy);
        return TERN_ERR_MEMORY;
    }
    dict->entries[dict->count++] = (entry){copy, tern_keep(x)};
    return TERN_OK;
}

tern_status tern_state_dict_set(tern_state_dict *dict, const char *key, tern_tensor *x)
{
    if (!dict || !key || !x)
        return tern_fail_argument_null("tern_state_dict_set", !dict ? "dict" : !key ? "key" : "x");
    int i = tern_keys_find(&dict->keys, key);
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
    int i = tern_keys_find(&dict->keys, key);
    if (i < 0)
        return tern_fail(TERN_ERR_ARGUMENT, "tern_state_dict_remove: there is no \"%s\"", key);
    tern_free(dict->entries[i].key);
    tern_release(dict->entries[i].x);
    dict->count--;
    memmove(&dict->entries[i], &dict->entries[i + 1],
            sizeof *dict->entries * (size_t)(dict->count - i));
    tern_keys_clear(&dict->keys); /* its capacity suffices for these keys */
    for (int k = 0; k < dict->count; k++)
        TERN_TRY(tern_keys_add(&dict->keys, dict->entries[k].key, k));
    return TERN_OK;
}

tern_tensor *tern_state_dict_get(const tern_state_dict *dict, const char *key)
{
    int i = dict && key ? tern_keys_find(&dict->keys, key) : -1;
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

/* ---- metadata ------------------------------------------------------------------------------ */

static note *note_of(const tern_state_dict *dict, const char *key)
{
    int i = tern_keys_find(&dict->note_keys, key);
    return i < 0 ? NULL : &dict->notes[i];
}

static tern_status add_note(tern_state_dict *dict, const char *key, char *value)
{
    if (dict->n_notes == dict->notes_capacity) {
        int capacity = dict->notes_capacity ? 2 * dict->notes_capacity : 8;
        note *notes = tern_grow(dict->notes, sizeof *notes * (size_t)capacity);
        if (!notes)
            return TERN_ERR_MEMORY;
        dict->notes = notes;
        dict->notes_capacity = capacity;
    }
    char *copy = tern_copy_text(key);
    if (!copy || tern_keys_add(&dict->note_keys, copy, dict->n_notes) != TERN_OK) {
        tern_free(copy);
        return TERN_ERR_MEMORY;
    }
    dict->notes[dict->n_notes++] = (note){copy, value};
    return TERN_OK;
}

static tern_status remove_note(tern_state_dict *dict, note *n)
{
    tern_free(n->key);
    tern_free(n->value);
    dict->n_notes--;
    memmove(n, n + 1, sizeof *n * (size_t)(&dict->notes[dict->n_notes] - n));
    tern_keys_clear(&dict->note_keys);
    for (int k = 0; k < dict->n_notes; k++)
        TERN_TRY(tern_keys_add(&dict->note_keys, dict->notes[k].key, k));
    return TERN_OK;
}

tern_status tern_state_dict_set_metadata(tern_state_dict *dict, const char *key, const char *value)
{
    if (!dict || !key)
        return tern_fail_argument_null("tern_state_dict_set_metadata", dict ? "key" : "dict");
    note *there = note_of(dict, key);
    if (!value)
        return there ? remove_note(dict, there) : TERN_OK;
    char *copy = tern_copy_text(value);
    if (!copy)
        return TERN_ERR_MEMORY;
    if (there) {
        tern_free(there->value);
        there->value = copy;
        return TERN_OK;
    }
    tern_status status = add_note(dict, key, copy);
    if (status != TERN_OK)
        tern_free(copy);
    return status;
}

const char *tern_state_dict_metadata(const tern_state_dict *dict, const char *key)
{
    const note *there = dict && key ? note_of(dict, key) : NULL;
    return there ? there->value : NULL;
}

int tern_state_dict_metadata_count(const tern_state_dict *dict)
{
    return dict ? dict->n_notes : 0;
}

const char *tern_state_dict_metadata_key_at(const tern_state_dict *dict, int i)
{
    if (i < 0 || i >= tern_state_dict_metadata_count(dict))
        return tern_fail_null(TERN_ERR_ARGUMENT,
                              "tern_state_dict_metadata_key_at: index %d is out of range (of %d)",
                              i, tern_state_dict_metadata_count(dict));
    return dict->notes[i].key;
}

/* ---- saving ------------------------------------------------------------------------------ */

/* The entry is detached and not copied: it shares the parameter's memory, as in PyTorch. */
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
    TERN_NAMED_IN_ERRORS;
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
    for (int i = 0; clone && i < dict->n_notes && status == TERN_OK; i++)
        status = tern_state_dict_set_metadata(clone, dict->notes[i].key, dict->notes[i].value);
    return clone ? dict_if(clone, status) : NULL;
}
