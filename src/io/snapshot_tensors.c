/* snapshot_tensors.c -- what is made of tensors: modules, optimizers, averages. */
#include "io/file.h"
#include "io/snapshot.h"
#include "nn/state_dict.h"
#include <string.h>
#include <tern/autograd.h>

/* ---- names ----------------------------------------------------------------------------------- */

static char *join(const char *name, const char *path)
{
    tern_text text = {0};
    tern_text_add(&text, "%s.%s", name, path);
    if (!text.failed)
        return text.data;
    tern_text_free(&text);
    return NULL;
}

typedef struct target {
    const char *name;
    tern_state_dict *to;
} target;

static tern_status add(const char *path, tern_tensor *x, void *user)
{
    const target *t = user;
    char *key = join(t->name, path);
    tern_status status = key ? TERN_OK : TERN_ERR_MEMORY;
    if (key)
        TERN_SCOPE {
            tern_tensor *detached = tern_detach(x);
            status = detached ? tern_state_dict_set(t->to, key, detached) : tern_last_status();
        }
    tern_free(key);
    return status;
}

static tern_status add_all(const char *name, tern_state_dict *dict, tern_state_dict *to)
{
    tern_status status = dict ? TERN_OK : tern_last_status();
    for (int i = 0; dict && i < tern_state_dict_count(dict) && status == TERN_OK; i++)
        status =
            add(tern_state_dict_key_at(dict, i), tern_state_dict_at(dict, i), &(target){name, to});
    tern_state_dict_free(dict);
    return status;
}

/* The tensors "<name>.<path>" of from, by their paths; NULL after an error. */
static tern_state_dict *part_of(const tern_state_dict *from, const char *name)
{
    size_t n = strlen(name);
    tern_state_dict *dict = tern_state_dict_new();
    tern_status status = TERN_OK;
    for (int i = 0; dict && i < tern_state_dict_count(from) && status == TERN_OK; i++) {
        const char *key = tern_state_dict_key_at(from, i);
        if (strncmp(key, name, n) == 0 && key[n] == '.')
            status = tern_state_dict_set(dict, key + n + 1, tern_state_dict_at(from, i));
    }
    if (status == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

/* ---- modules --------------------------------------------------------------------------------- */

static tern_status save_module(const io_snapshot_part *part, tern_state_dict *to)
{
    return tern_nn_each_state(part->object, add, &(target){part->name, to});
}

static tern_status load_module(const io_snapshot_part *part, const tern_state_dict *from,
                               bool apply)
{
    tern_state_dict *dict = part_of(from, part->name);
    tern_status status =
        dict ? tern_nn_load_state(part->object, dict, NULL, "tern_snapshot_load", false, !apply)
             : tern_last_status();
    tern_state_dict_free(dict);
    return status;
}

const io_part_kind io_part_module = {save_module, load_module};

/* ---- optimizers ------------------------------------------------------------------------------ */

static tern_status save_optimizer(const io_snapshot_part *part, tern_state_dict *to)
{
    return add_all(part->name, tern_optim_state_dict(part->object), to);
}

static tern_status load_optimizer(const io_snapshot_part *part, const tern_state_dict *from,
                                  bool apply)
{
    tern_state_dict *dict = part_of(from, part->name);
    tern_status status = !dict   ? tern_last_status()
                         : apply ? tern_optim_load_state_dict(part->object, dict)
                                 : tern_optim_check_state_dict(part->object, dict);
    tern_state_dict_free(dict);
    return status;
}

const io_part_kind io_part_optimizer = {save_optimizer, load_optimizer};

/* ---- averages -------------------------------------------------------------------------------- */

static tern_status save_averaged_model(const io_snapshot_part *part, tern_state_dict *to)
{
    return add_all(part->name, tern_swa_state_dict(part->object), to);
}

/* The same names and shapes on both sides. */
static tern_status check_same(const char *name, const tern_state_dict *from,
                              const tern_state_dict *to)
{
    for (int i = 0; i < tern_state_dict_count(to); i++) {
        const char *key = tern_state_dict_key_at(to, i);
        const tern_tensor *x = tern_state_dict_get(from, key);
        if (!x || !tern_same_shape(x, tern_state_dict_at(to, i)))
            return tern_fail(TERN_ERR_STATE,
                             "tern_snapshot_load: %s.%s is not in the file, or has another shape",
                             name, IO_SHOW(key));
    }
    if (tern_state_dict_count(from) != tern_state_dict_count(to))
        return tern_fail(TERN_ERR_STATE,
                         "tern_snapshot_load: %s has %d tensors in the file, not %d", name,
                         tern_state_dict_count(from), tern_state_dict_count(to));
    return TERN_OK;
}

static tern_status load_averaged_model(const io_snapshot_part *part, const tern_state_dict *from,
                                       bool apply)
{
    tern_state_dict *dict = part_of(from, part->name), *own = tern_swa_state_dict(part->object);
    tern_status status = dict && own ? check_same(part->name, dict, own) : tern_last_status();
    if (status == TERN_OK && apply)
        status = tern_swa_load_state_dict(part->object, dict);
    tern_state_dict_free(dict);
    tern_state_dict_free(own);
    return status;
}

const io_part_kind io_part_averaged_model = {save_averaged_model, load_averaged_model};

/* ---- a tensor -------------------------------------------------------------------------------- */

static tern_status save_tensor(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_status status = TERN_OK;
    TERN_SCOPE {
        tern_tensor *x = tern_detach(part->object);
        status = x ? tern_state_dict_set(to, part->name, x) : tern_last_status();
    }
    return status;
}

static tern_status load_tensor(const io_snapshot_part *part, const tern_state_dict *from,
                               bool apply)
{
    tern_tensor *x = tern_state_dict_get(from, part->name);
    if (!x || !tern_same_shape(x, part->object))
        return tern_fail(TERN_ERR_STATE,
                         "tern_snapshot_load: %s is not in the file, or has another shape",
                         part->name);
    tern_status status = TERN_OK;
    if (apply)
        TERN_NO_GRAD
            status = tern_copy_(part->object, x) ? TERN_OK : tern_last_status();
    return status;
}

const io_part_kind io_part_tensor = {save_tensor, load_tensor};
