/* shard_state.c -- state dicts of a sharded model with whole parameters: gathering and loading
 * them. */
#include "dist/shard.h"
#include "nn/state_dict.h"

static const char load_function[] = "tern_dist_load_full_state_dict";

/* ---- gathering ------------------------------------------------------------------------------- */

/* Ranks with fewer rows are padded with zeros. */
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

/* Undoes x's cuts from the last to the first: gathers the parts of all ranks along each dim. */
static tern_tensor *gather(tern_tensor *x)
{
    tern_cut cut[TERN_MOST_CUTS];
    tern_part p = {0};
    int64_t size[TERN_MOST_CUTS];
    const int n = tern_cuts_of(x, cut, &p.shape);
    for (int i = 0; i < n && cut[i].dim >= 0; i++) {
        size[i] = p.shape.dims[cut[i].dim];
        tern_part_cut(&p, cut[i].dim, cut[i].part, cut[i].parts);
    }
    tern_tensor *whole = tern_detach(x);
    for (int i = n - 1; i >= 0 && whole; i--) {
        if (cut[i].dim < 0)
            continue;
        whole = tern_transpose(whole, 0, cut[i].dim);
        if (whole)
            whole =
                tern_dist_gather_rows(whole, size[i], (tern_dist_group *)(uintptr_t)cut[i].group);
        whole = whole ? tern_contiguous(tern_transpose(whole, 0, cut[i].dim)) : NULL;
    }
    if (!n || cut[0].dim < 0)
        whole = tern_clone(tern_to(whole, "cpu"));
    return whole && tern_dist_share_stage(x, whole) == TERN_OK ? whole : NULL;
}

static tern_status add_whole(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    TERN_SCOPE {
        TERN_NO_GRAD {
            tern_tensor *whole = gather(x);
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

/* ---- loading --------------------------------------------------------------------------------- */

static tern_status take_part(const char *path, tern_tensor *x, void *user)
{
    const uint64_t failures = tern_failures();
    tern_tensor *whole = tern_state_dict_get(user, path);
    if (!whole || !tern_ranks_of(x))
        return TERN_OK;
    TERN_SCOPE {
        TERN_NO_GRAD {
            const tern_shape shape = tern_shape_of(whole);
            tern_part p;
            tern_tensor *own = NULL;
            if (tern_part_find(&p, &shape, x, load_function, path) == TERN_OK)
                own = tern_part_take(&p, tern_detach(whole));
            if (own)
                tern_state_dict_set(user, path, own);
        }
    }
    return tern_failed_since(failures);
}

tern_status tern_dist_load_full_state_dict(tern_module *module, const tern_state_dict *dict,
                                           const tern_load_state_dict_options *options)
{
    TERN_MODULE_GIVEN(module, load_function);
    if (!module || !dict)
        return tern_fail_argument_null(load_function, module ? "dict" : "module");
    tern_state_dict *parts = tern_state_dict_new();
    tern_status status = parts ? TERN_OK : TERN_ERR_MEMORY;
    for (int i = 0; i < tern_state_dict_count(dict) && status == TERN_OK; i++)
        status = tern_state_dict_set(parts, tern_state_dict_key_at(dict, i),
                                     tern_state_dict_at(dict, i));
    if (status == TERN_OK)
        status = tern_nn_each_state(module, take_part, parts);
    if (status == TERN_OK)
        status = tern_nn_load_state_dict(module, parts, options);
    tern_state_dict_free(parts);
    return status;
}
