/* load_state_dict.c -- copies a state_dict's tensors into a module, all or none. */
#include "base/text.h"
#include "nn/module.h"
#include "nn/state_dict.h"
#include <stdlib.h>
#include <string.h>

/* The state of a load: the entries to copy, and the errors found. */
typedef struct load {
    const tern_state_dict *dict;
    const tern_load_state_dict_options *options;
    char **names;   /* names in m of dict's entries, NULL for entries left out */
    tern_keys keys; /* index of names */
    bool *used;     /* dict's entries whose names m has */
    bool tied;
    const tern_tensor **found; /* if tied: m's tensors that dict has, sorted by address */
    int n_found;
    tern_text missing, unexpected, sizes;
} load;

/* ---- names ------------------------------------------------------------------------------- */

static const char *begins(const char *text, const char *with)
{
    size_t n = strlen(with);
    return strncmp(text, with, n) == 0 ? text + n : NULL;
}

/* Returns the entry's name in m, which the caller frees; NULL if it is left out, or without
 * memory. */
static char *name_of(const load *l, const char *key)
{
    const tern_load_state_dict_options *o = l->options;
    tern_text name = {0};
    if (o->prefix && !(key = begins(key, o->prefix)))
        return NULL;
    for (int i = 0; i < o->n_renames; i++) {
        const char *rest = begins(key, o->renames[i].from);
        if (!rest)
            continue;
        tern_text_add(&name, "%s%s", o->renames[i].to, rest);
        return name.data;
    }
    return tern_copy_text(key);
}

static tern_status name_all(load *l, const char *function)
{
    const uint64_t failures = tern_failures();
    for (int i = 0; i < l->options->n_renames; i++)
        if (!l->options->renames[i].from || !l->options->renames[i].to)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: rename %d has a NULL", function, i);
    for (int i = 0; i < l->dict->count; i++) {
        char *name = l->names[i] = name_of(l, l->dict->entries[i].key);
        TERN_TRY(tern_failed_since(failures));
        if (!name)
            continue;
        int other = tern_keys_find(&l->keys, name);
        if (other >= 0)
            return tern_fail(TERN_ERR_ARGUMENT, "%s: \"%s\" and \"%s\" are both renamed to \"%s\"",
                             function, l->dict->entries[other].key, l->dict->entries[i].key, name);
        TERN_TRY(tern_keys_add(&l->keys, name, i));
    }
    return TERN_OK;
}

/* ---- checks, all before the first copy ------------------------------------------------------- */

static void note(tern_text *keys, const char *key)
{
    tern_text_add(keys, "%s\"%s\"", keys->length ? ", " : "", key);
}

static tern_status check_one(const char *path, tern_tensor *x, void *user)
{
    load *l = user;
    int i = tern_keys_find(&l->keys, path);
    if (i < 0)
        return TERN_OK;
    l->used[i] = true;
    if (l->found)
        l->found[l->n_found++] = x;
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

static int by_address(const void *a, const void *b)
{
    const tern_tensor *x = *(const tern_tensor *const *)a, *y = *(const tern_tensor *const *)b;
    return (x > y) - (x < y);
}

static tern_status check_missing(const char *path, tern_tensor *x, void *user)
{
    load *l = user;
    const tern_tensor *key = x;
    if (tern_keys_find(&l->keys, path) >= 0)
        return TERN_OK;
    if (l->n_found && bsearch(&key, l->found, (size_t)l->n_found, sizeof *l->found, by_address))
        return TERN_OK;
    note(&l->missing, path);
    if (l->options->missing)
        l->options->missing(path, l->options->user);
    return TERN_OK;
}

static void check_unexpected(load *l)
{
    for (int i = 0; i < l->dict->count; i++) {
        if (l->used[i] || !l->names[i])
            continue;
        note(&l->unexpected, l->names[i]);
        if (l->options->unexpected)
            l->options->unexpected(l->names[i], l->options->user);
    }
}

/* ---- search for a prefix, if a whole checkpoint was given instead of a model's state --------- */

typedef struct prefix_search {
    const load *l;
    tern_text name; /* first a missing name of the module, then prefix + name */
    size_t length;  /* length of the prefix */
    int present, absent;
} prefix_search;

static tern_status find_missing(const char *path, tern_tensor *x, void *user)
{
    prefix_search *s = user;
    (void)x;
    if (!s->name.length && tern_keys_find(&s->l->keys, path) < 0)
        tern_text_add(&s->name, "%s", path);
    return TERN_OK;
}

static tern_status count_with_prefix(const char *path, tern_tensor *x, void *user)
{
    prefix_search *s = user;
    (void)x;
    s->name.length = s->length;
    tern_text_add(&s->name, "%s", path);
    bool there = !s->name.failed && tern_keys_find(&s->l->dict->keys, s->name.data) >= 0;
    s->present += there;
    s->absent += !there;
    return TERN_OK;
}

/* Returns the prefix that all of the module's names have in dict, which the caller frees, or NULL.
 * If tied, one name of a tensor is enough. */
static char *find_prefix(const load *l, tern_module *m)
{
    enum { MOST_TRIED = 8 };
    prefix_search s = {.l = l};
    char *prefix = NULL;
    if (tern_nn_each_state(m, find_missing, &s) != TERN_OK || !s.name.length)
        return tern_text_free(&s.name), NULL;
    char *missing = s.name.data;
    const size_t n = s.name.length;
    s.name = (tern_text){0};
    for (int i = 0, tried = 0; i < l->dict->count && tried < MOST_TRIED && !prefix; i++) {
        const char *key = l->dict->entries[i].key;
        const size_t k = strlen(key);
        if (k <= n || strcmp(key + k - n, missing) != 0)
            continue;
        tried++;
        s.present = s.absent = 0;
        tern_text_free(&s.name);
        tern_text_add(&s.name, "%.*s", (int)(k - n), key);
        s.length = k - n;
        if (tern_nn_each_state(m, count_with_prefix, &s) == TERN_OK && !s.name.failed &&
            (!s.absent || (l->tied && s.absent < s.present))) {
            s.name.data[s.length] = '\0';
            prefix = tern_copy_text(s.name.data);
        }
    }
    tern_free(missing);
    tern_text_free(&s.name);
    return prefix;
}

/* Records one error for everything that was found, in PyTorch's words. */
static tern_status report(const load *l, tern_module *m, const char *function)
{
    bool keys = !l->options->no_strict && (l->missing.length || l->unexpected.length);
    if (l->missing.failed || l->unexpected.failed || l->sizes.failed)
        return TERN_ERR_MEMORY;
    if (!keys && !l->sizes.length)
        return TERN_OK;
    bool missing = keys && l->missing.length, unexpected = keys && l->unexpected.length;
    char *prefix = missing ? find_prefix(l, m) : NULL;
    tern_status status = tern_fail(
        TERN_ERR_STATE, "%s: Error(s) in loading state_dict for %s:%s%s%s%s%s%s%s%s%s%s", function,
        m->name, prefix ? "\n\tAll that is missing is there under the prefix \"" : "",
        prefix ? prefix : "", prefix ? "\": the option .prefix takes it away." : "",
        missing ? "\n\tMissing key(s) in state_dict: " : "", missing ? l->missing.data : "",
        missing ? ". " : "", unexpected ? "\n\tUnexpected key(s) in state_dict: " : "",
        unexpected ? l->unexpected.data : "", unexpected ? ". " : "",
        l->sizes.length ? l->sizes.data : "");
    tern_free(prefix);
    return status;
}

static tern_status count_one(const char *path, tern_tensor *x, void *user)
{
    (void)path, (void)x;
    ++*(int *)user;
    return TERN_OK;
}

static tern_status check(load *l, tern_module *m, const char *function)
{
    TERN_TRY(name_all(l, function));
    if (l->tied) {
        int n = 0;
        TERN_TRY(tern_nn_each_state(m, count_one, &n));
        l->found = tern_alloc(sizeof *l->found * ((size_t)n + 1));
        if (!l->found)
            return TERN_ERR_MEMORY;
    }
    TERN_TRY(tern_nn_each_state(m, check_one, l));
    if (l->found)
        qsort(l->found, (size_t)l->n_found, sizeof *l->found, by_address);
    TERN_TRY(tern_nn_each_state(m, check_missing, l));
    check_unexpected(l);
    return report(l, m, function);
}

/* ---- copies ------------------------------------------------------------------------------ */

static tern_status copy(const char *path, tern_tensor *x, void *user)
{
    const load *l = user;
    int i = tern_keys_find(&l->keys, path);
    return i < 0 || tern_copy_(x, l->dict->entries[i].x) ? TERN_OK : tern_last_status();
}

tern_status tern_nn_load_state(tern_module *m, const tern_state_dict *dict,
                               const tern_load_state_dict_options *options, const char *function,
                               bool tied, bool check_only)
{
    static const tern_load_state_dict_options none;
    TERN_MODULE_GIVEN(m, function);
    if (!m || !dict)
        return tern_fail_argument_null(function, m ? "dict" : "m");
    load l = {.dict = dict, .options = options ? options : &none, .tied = tied};
    size_t n = (size_t)dict->count;
    l.used = tern_alloc(sizeof *l.used * (n + 1));
    l.names = tern_alloc(sizeof *l.names * (n + 1));
    tern_status status = l.used && l.names ? check(&l, m, function) : TERN_ERR_MEMORY;
    if (status == TERN_OK && !check_only)
        TERN_SCOPE
            TERN_NO_GRAD
                status = tern_nn_each_state(m, copy, &l);
    for (size_t i = 0; l.names && i < n; i++)
        tern_free(l.names[i]);
    tern_keys_free(&l.keys);
    tern_free(l.names);
    tern_free(l.used);
    tern_free(l.found);
    tern_text_free(&l.missing);
    tern_text_free(&l.unexpected);
    tern_text_free(&l.sizes);
    return status;
}

tern_status tern_nn_load_state_dict(tern_module *m, const tern_state_dict *dict,
                                    const tern_load_state_dict_options *options)
{
    return tern_nn_load_state(m, dict, options, "tern_nn_load_state_dict", false, false);
}
