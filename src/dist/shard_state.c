/* shard_state.c -- whole parameters of a sharded model: gathered into a state_dict, and taken out of one. */
#include "dist/shard.h"

/* ---- out of all ranks ------------------------------------------------------------------------------ */

/* Ranks with fewer rows send zeros behind them. */
static tern_tensor *gather_whole(const tern_shard_slot *s, const tern_shard_unit *u)
{
    const int ranks = tern_dist_get_world_size(u->mesh->group);
    const tern_dist_options o = {.group = u->mesh->group, .label = "a parameter for its state"};
    tern_shape part = s->shape, all = s->shape;
    part.dims[0] = s->each;
    all.dims[0] = s->each * ranks;
    tern_tensor *own = tern_to(tern_contiguous(tern_detach(s->x)), "cpu");
    if (own && tern_size(own, 0) < s->each) {
        tern_tensor *padded = tern_zeros(part, tern_dtype_of(s->x), "cpu");
        if (padded && tern_numel(own))
            tern_copy_(tern_narrow(padded, 0, 0, tern_size(own, 0)), own);
        own = padded;
    }
    tern_tensor *whole = own ? tern_empty(all, tern_dtype_of(s->x), "cpu") : NULL;
    if (!whole || tern_dist_all_gather_into_tensor(whole, own, &o) != TERN_OK)
        return NULL;
    const int64_t rows = s->shape.dims[0];
    return rows == all.dims[0] ? whole : tern_clone(tern_narrow(whole, 0, 0, rows));
}

static tern_status add_whole(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_shard_unit *u = NULL;
            const tern_shard_slot *s = tern_shard_find(x, &u);
            tern_tensor *whole =
                s ? gather_whole(s, u) : tern_clone(tern_to(tern_detach(x), "cpu"));
            if (whole)
                tern_state_dict_set(user, path, whole);
        }
    }
    return tern_failed_since(failures);
}

tern_state_dict *tern_dist_full_state_dict(tern_module *module)
{
    TERN_MODULE_GIVEN(module, "tern_dist_full_state_dict");
    if (!module)
        return tern_fail_argument_null("tern_dist_full_state_dict", "module"), NULL;
    tern_state_dict *dict = tern_state_dict_new();
    if (!dict || tern_nn_each_state(module, add_whole, dict) == TERN_OK)
        return dict;
    tern_state_dict_free(dict);
    return NULL;
}

/* ---- back ------------------------------------------------------------------------------------------ */

static tern_status take_rows(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    tern_shard_unit *u = NULL;
    tern_tensor *whole = tern_state_dict_get(user, path);
    const tern_shard_slot *s = whole ? tern_shard_find(x, &u) : NULL;
    if (!s)
        return TERN_OK;
    const tern_shape shape = tern_shape_of(whole);
    bool same = shape.ndim == s->shape.ndim;
    for (int d = 0; same && d < shape.ndim; d++)
        same = shape.dims[d] == s->shape.dims[d];
    if (!same)
        return tern_fail(
            TERN_ERR_SHAPE,
            "tern_dist_load_full_state_dict: size mismatch for %s: %d dims, %lld rows, "
            "in the model %d dims, %lld rows",
            path, shape.ndim, (long long)tern_size(whole, 0), s->shape.ndim,
            (long long)s->shape.dims[0]);
    int64_t first;
    const int64_t rows = tern_rows_of_rank(s->shape.dims[0], tern_dist_get_rank(u->mesh->group),
                                           tern_dist_get_world_size(u->mesh->group), &first);
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_tensor *own = tern_narrow(tern_detach(whole), 0, first, rows);
            if (own)
                tern_state_dict_set(user, path, own);
        }
    }
    return tern_failed_since(failures);
}

tern_status tern_dist_load_full_state_dict(tern_module *module, const tern_state_dict *dict,
                                           const tern_load_state_dict_options *options)
{
    static const char function[] = "tern_dist_load_full_state_dict";
    TERN_MODULE_GIVEN(module, function);
    if (!module || !dict)
        return tern_fail_argument_null(function, module ? "dict" : "module");
    tern_state_dict *parts = tern_state_dict_new();
    tern_status status = parts ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++)
        status = tern_state_dict_set(parts, tern_state_dict_key_at(dict, i),
                                     tern_state_dict_at(dict, i));
    if (status == TERN_OK)
        status = tern_nn_each_state(module, take_rows, parts);
    if (status == TERN_OK)
        status = tern_nn_load_state_dict(module, parts, options);
    tern_state_dict_free(parts);
    return status;
}
