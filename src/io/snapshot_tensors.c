/* snapshot_tensors.c -- the parts of a snapshot that consist of tensors: modules, optimizers,
 * averages, metrics. */
#include "io/file.h"
#include "io/snapshot.h"
#include "nn/state_dict.h"
#include <stdio.h>
#include <string.h>
#include <tern/autograd.h>
#include <tern/metrics.h>

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

/* Returns the tensors "<name>.<path>" of from, by path; NULL after an error. */
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

static tern_status share(const char *path, tern_tensor *x, void *user)
{
    const target *t = user;
    if (!tern_ranks_of(x))
        return TERN_OK;
    char *key = join(t->name, path);
    tern_status status = key ? tern_state_dict_set(t->to, key, x) : TERN_ERR_MEMORY;
    tern_free(key);
    return status;
}

static tern_status share_module(const io_snapshot_part *part, tern_state_dict *to)
{
    return tern_nn_each_state(part->object, share, &(target){part->name, to});
}

const io_part_kind io_part_module = {save_module, load_module, share_module};

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

static tern_status share_optimizer(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_tensor *x;
    for (int i = 0; (x = tern_optim_parameter(part->object, i)); i++) {
        char path[32];
        snprintf(path, sizeof path, "state.%d", i);
        TERN_TRY(share(path, x, &(target){part->name, to}));
    }
    return TERN_OK;
}

const io_part_kind io_part_optimizer = {save_optimizer, load_optimizer, share_optimizer};

/* ---- averages -------------------------------------------------------------------------------- */

static tern_status save_averaged_model(const io_snapshot_part *part, tern_state_dict *to)
{
    return add_all(part->name, tern_swa_state_dict(part->object), to);
}

/* Fails unless both have the same names and shapes. */
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

/* Averages are cut as their parameters are. */
static tern_status share_averaged_model(const io_snapshot_part *part, tern_state_dict *to)
{
    tern_state_dict *own = tern_swa_state_dict(part->object);
    tern_status status = own ? TERN_OK : tern_last_status();
    tern_tensor *x;
    for (int i = 0; status == TERN_OK && (x = tern_swa_parameter(part->object, i)); i++)
        status = share(tern_state_dict_key_at(own, i + 1), x, &(target){part->name, to});
    tern_state_dict_free(own);
    return status;
}

const io_part_kind io_part_averaged_model = {save_averaged_model, load_averaged_model,
                                             share_averaged_model};

/* ---- metrics --------------------------------------------------------------------------------- */

static tern_status save_metric(const io_snapshot_part *part, tern_state_dict *to)
{
    int before = tern_state_dict_count(to);
    TERN_TRY(tern_metric_each_state(part->object, add, &(target){part->name, to}));
    return io_note_int(to, part->name, "states", tern_state_dict_count(to) - before);
}

static tern_status own_state(const char *name, tern_tensor *x, void *user)
{
    return tern_state_dict_set(user, name, x);
}

/* Returns whether the metric keeps a list of predictions with that name; false for an unknown
 * name. */
static bool is_list(const tern_metric *metric, const char *name)
{
    tern_error_hold hold;
    if (tern_error_hold_begin(&hold) != TERN_OK)
        return false;
    bool list = tern_metric_state_reduction(metric, name) == TERN_METRIC_CAT;
    tern_error_hold_end(&hold, NULL, 0);
    return list;
}

/* States of one tensor must have the metric's shape and kind of dtype; lists may have any number of
 * rows, or be absent. */
static tern_status check_metric(const io_snapshot_part *part, const tern_state_dict *from,
                                const tern_state_dict *own)
{
    int missing = 0;
    for (int i = 0; i < tern_state_dict_count(own); i++) {
        const char *key = tern_state_dict_key_at(own, i);
        missing += !is_list(part->object, key) && !tern_state_dict_get(from, key);
    }
    for (int i = 0; i < tern_state_dict_count(from); i++) {
        const char *key = tern_state_dict_key_at(from, i);
        const tern_tensor *x = tern_state_dict_at(from, i), *now = tern_state_dict_get(own, key);
        bool real = tern_dtype_is_floating_point(tern_dtype_of(x));
        if (is_list(part->object, key)
                ? tern_dim(x) > 0
                : now && tern_same_shape(x, now) &&
                      real == tern_dtype_is_floating_point(tern_dtype_of(now)))
            continue;
        return tern_fail(TERN_ERR_STATE,
                         "tern_snapshot_load: %s.%s is no state of this metric, or has another "
                         "shape or type",
                         part->name, IO_SHOW(key));
    }
    return missing ? tern_fail(TERN_ERR_STATE,
                               "tern_snapshot_load: the file lacks %d states of metric %s", missing,
                               part->name)
                   : TERN_OK;
}

static tern_status put_metric(const io_snapshot_part *part, const tern_state_dict *from)
{
    TERN_TRY(tern_metric_reset(part->object));
    for (int i = 0; i < tern_state_dict_count(from); i++)
        TERN_TRY(tern_metric_set_state(part->object, tern_state_dict_key_at(from, i),
                                       tern_state_dict_at(from, i)));
    return TERN_OK;
}

static tern_status load_metric(const io_snapshot_part *part, const tern_state_dict *from,
                               bool apply)
{
    int64_t states;
    TERN_TRY(io_read_int(from, part->name, "states", &states));
    tern_state_dict *dict = part_of(from, part->name), *own = dict ? tern_state_dict_new() : NULL;
    tern_status status =
        own ? tern_metric_each_state(part->object, own_state, own) : tern_last_status();
    if (status == TERN_OK && states != tern_state_dict_count(dict))
        status = tern_fail(TERN_ERR_STATE,
                           "tern_snapshot_load: %s has %d states in the file, not "
                           "%lld",
                           part->name, tern_state_dict_count(dict), (long long)states);
    if (status == TERN_OK)
        status = apply ? put_metric(part, dict) : check_metric(part, dict, own);
    tern_state_dict_free(dict);
    tern_state_dict_free(own);
    return status;
}

const io_part_kind io_part_metric = {save_metric, load_metric, NULL};

/* ---- single tensors -------------------------------------------------------------------------- */

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

const io_part_kind io_part_tensor = {save_tensor, load_tensor, NULL};
