/* shard_state.c -- whole parameters of a sharded model: gathered into a state_dict, and taken out of one. */
#include "dist/shard.h"

/* ---- out of all ranks ------------------------------------------------------------------------------ */

/* Ranks with fewer rows send zeros behind them. */
tern_tensor *tern_dist_gather_rows(tern_tensor *own, int64_t rows, tern_dist_group *group)
{
    const int ranks = tern_dist_get_world_size(group);
    const tern_dist_options o = {.group = group, .label = "a parameter for its state"};
    tern_shape part = tern_shape_of(own), all = part;
    part.dims[0] = (rows + ranks - 1) / ranks;
    all.dims[0] = part.dims[0] * ranks;
    own = tern_contiguous(tern_to(own, "cpu"));
    if (own && tern_size(own, 0) < part.dims[0]) {
        tern_tensor *padded = tern_zeros(part, tern_dtype_of(own), "cpu");
        if (padded && tern_numel(own))
            tern_copy_(tern_narrow(padded, 0, 0, tern_size(own, 0)), own);
        own = padded;
    }
    tern_tensor *whole = own ? tern_empty(all, tern_dtype_of(own), "cpu") : NULL;
    if (!whole || tern_dist_all_gather_into_tensor(whole, own, &o) != TERN_OK)
        return NULL;
    return rows == all.dims[0] ? whole : tern_clone(tern_narrow(whole, 0, 0, rows));
}

/* A tensor parallel layer's parameter, of which part is this rank's. */
static tern_tensor *gather_cut(tern_tensor *part, const tern_dist_cut *cut)
{
    double size = (double)tern_size(part, cut->dim);
    if (tern_dist_reduce_numbers(cut->group, "size of a parameter", &size, 1, false) != TERN_OK)
        return NULL;
    tern_tensor *rows = tern_transpose(part, 0, cut->dim);
    tern_tensor *whole = rows ? tern_dist_gather_rows(rows, (int64_t)size, cut->group) : NULL;
    return whole ? tern_contiguous(tern_transpose(whole, 0, cut->dim)) : NULL;
}

static tern_status add_whole(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_shard_unit *u = NULL;
            const tern_shard_slot *s = tern_shard_find(x, &u);
            const tern_dist_cut *cut = tern_dist_cut_of(s ? s->cut : tern_ranks_of(x));
            tern_tensor *whole = tern_detach(x);
            if (whole && s)
                whole = tern_dist_gather_rows(whole, s->shape.dims[0], u->mesh->group);
            if (whole && cut)
                whole = gather_cut(whole, cut);
            if (whole && !s && !cut)
                whole = tern_clone(tern_to(whole, "cpu"));
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

/* Of a tensor parallel layer's parameter this rank's part. */
static tern_tensor *take_cut(tern_tensor *whole, const tern_dist_cut *cut)
{
    int64_t first;
    if (!cut || tern_dim(whole) <= cut->dim)
        return whole;
    const int64_t size =
        tern_rows_of_rank(tern_size(whole, cut->dim), tern_dist_get_rank(cut->group),
                          tern_dist_get_world_size(cut->group), &first);
    return tern_narrow(whole, cut->dim, first, size);
}

static tern_status take_rows(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    tern_shard_unit *u = NULL;
    tern_tensor *whole = tern_state_dict_get(user, path);
    const tern_shard_slot *s = whole ? tern_shard_find(x, &u) : NULL;
    const tern_dist_cut *cut = whole ? tern_dist_cut_of(s ? s->cut : tern_ranks_of(x)) : NULL;
    tern_status status = TERN_OK;
    if (!s && !cut)
        return TERN_OK;
    TERN_SCOPE {
        TERN_NO_GRAD {
            const tern_shape want = s ? s->shape : tern_shape_of(x);
            tern_tensor *own = take_cut(tern_detach(whole), cut);
            const tern_shape shape = own ? tern_shape_of(own) : want;
            bool same = shape.ndim == want.ndim;
            for (int d = 0; same && d < shape.ndim; d++)
                same = shape.dims[d] == want.dims[d];
            if (!same)
                status = tern_fail(
                    TERN_ERR_SHAPE,
                    "tern_dist_load_full_state_dict: size mismatch for %s: %d dims, %lld rows%s, "
                    "in the model %d dims, %lld rows",
                    path, shape.ndim, (long long)tern_size(own, 0), cut ? " for this rank" : "",
                    want.ndim, (long long)want.dims[0]);
            int64_t first;
            const int64_t rows =
                s ? tern_rows_of_rank(want.dims[0], tern_dist_get_rank(u->mesh->group),
                                      tern_dist_get_world_size(u->mesh->group), &first)
                  : 0;
            if (same && own && s)
                own = tern_narrow(own, 0, first, rows);
            if (same && own)
                tern_state_dict_set(user, path, own);
        }
    }
    return status == TERN_OK ? tern_failed_since(failures) : status;
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
