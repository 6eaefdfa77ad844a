/* shard_mesh.c -- the ranks that share parameters out, for norms, steps that are skipped, and snapshots. */
#include "dist/shard.h"
#include <string.h>

static tern_status reduce(tern_ranks *ranks, double *values, int n, bool greatest)
{
    const tern_shard_mesh *mesh = (const tern_shard_mesh *)(void *)ranks;
    TERN_TRY(tern_dist_reduce_numbers(mesh->group, "numbers of all parts", values, n, greatest));
    return mesh->cut ? mesh->cut->reduce(mesh->cut, values, n, greatest) : TERN_OK;
}

static void place(const tern_ranks *ranks, int *rank, int *size, int *copy)
{
    const tern_shard_mesh *mesh = (const tern_shard_mesh *)(const void *)ranks;
    *rank = tern_dist_get_rank(mesh->group);
    *size = tern_dist_get_world_size(mesh->group);
    *copy = mesh->replicate ? tern_dist_get_rank(mesh->replicate) : 0;
}

static int64_t rows(const tern_ranks *ranks, const tern_tensor *x)
{
    const tern_shard_slot *s = tern_shard_find(x, NULL);
    (void)ranks;
    return s ? s->shape.dims[0] : 0;
}

/* In both groups, so that it comes from one rank to all. */
static tern_status agree(tern_ranks *ranks, tern_status status, char *text, size_t bytes,
                         const char *function)
{
    tern_shard_mesh *mesh = (tern_shard_mesh *)(void *)ranks;
    tern_dist_group *groups[] = {mesh->replicate, mesh->group};
    double failed = status == TERN_OK ? 0 : tern_dist_get_rank(NULL) + 1;
    for (int i = 0; i < 2; i++) {
        const tern_dist_options o = {.group = groups[i], .label = function};
        size_t n = bytes;
        if (i == 0 && !groups[i])
            continue;
        TERN_TRY(tern_dist_reduce_numbers(groups[i], function, &failed, 1, true));
        if (bytes == 0)
            continue;
        char *first =
            tern_dist_broadcast_object(text, &n, groups[i] ? groups[i]->members[0] : 0, &o);
        if (!first)
            return TERN_ERR_PEER;
        memcpy(text, first, n < bytes ? n : bytes);
        tern_free_text(first);
    }
    if (status != TERN_OK || failed <= 0)
        return status;
    return tern_fail(TERN_ERR_PEER, "%s: rank %d failed, and so all do", function, (int)failed - 1);
}

/* Those of one pair of groups and cut are one. They stay. */
tern_shard_mesh *tern_shard_mesh_of(tern_dist_group *group, tern_dist_group *replicate,
                                    tern_ranks *cut)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static tern_shard_mesh *meshes;
    pthread_mutex_lock(&lock);
    tern_shard_mesh *mesh = meshes;
    while (mesh && (mesh->group != group || mesh->replicate != replicate || mesh->cut != cut))
        mesh = mesh->next;
    if (!mesh && (mesh = tern_alloc(sizeof *mesh))) {
        *mesh = (tern_shard_mesh){{reduce, place, rows, agree}, group, replicate, cut, 1, meshes};
        meshes = mesh;
    }
    pthread_mutex_unlock(&lock);
    return mesh;
}

tern_status tern_shard_look(const tern_shard_unit *root)
{
    bool any;
    double changed = tern_shard_changed(root->mesh, &any);
    if (!any)
        return TERN_OK;
    TERN_TRY(tern_dist_reduce_numbers(root->mesh->group, "parts that changed", &changed, 1, true));
    root->mesh->epoch += changed > 0;
    return TERN_OK;
}
