/* shard_mesh.c -- the ranks among which parameters are cut, for norms, skipped steps and
 * snapshots. */
#include "dist/shard.h"
#include "base/lock.h"
#include <string.h>

static tern_status reduce(tern_ranks *ranks, double *values, int n, bool greatest)
{
    const tern_shard_mesh *mesh = (const tern_shard_mesh *)(void *)ranks;
    TERN_TRY(tern_dist_reduce_scalars(mesh->group, "numbers of all parts", values, n, greatest));
    return mesh->cut ? mesh->cut->reduce(mesh->cut, values, n, greatest) : TERN_OK;
}

static int cuts(const tern_ranks *ranks, const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                tern_shape *whole)
{
    const tern_shard_mesh *mesh = (const tern_shard_mesh *)(const void *)ranks;
    const tern_shard_slot *s = tern_shard_find(x, NULL);
    int n = 0;
    if (!s)
        return 0;
    *whole = s->shape;
    if (tern_dist_cut_of(mesh->cut))
        cut[n++] = tern_dist_read_cut(tern_dist_cut_of(mesh->cut), whole);
    cut[n++] = (tern_cut){.part = tern_dist_get_rank(mesh->group),
                          .parts = tern_dist_get_world_size(mesh->group),
                          .group = mesh->group};
    return n;
}

/* One struct exists for each pair of groups and cut; it is never freed. */
tern_shard_mesh *tern_shard_mesh_of(tern_dist_group *group, tern_dist_group *replicate,
                                    tern_ranks *cut)
{
    static tern_mutex lock = TERN_MUTEX_INIT;
    static tern_shard_mesh *meshes;
    tern_mutex_lock(&lock);
    tern_shard_mesh *mesh = meshes;
    while (mesh && (mesh->group != group || mesh->replicate != replicate || mesh->cut != cut))
        mesh = mesh->next;
    if (!mesh && (mesh = tern_alloc(sizeof *mesh))) {
        *mesh = (tern_shard_mesh){.of = {.ranks = {.reduce = reduce,
                                                   .sums = &mesh->of.ranks,
                                                   .all = cut != NULL,
                                                   .cuts = cuts,
                                                   .check_consistency = tern_dist_check_consistency,
                                                   .first = tern_dist_first},
                                         .groups = {replicate, group},
                                         .n = 2},
                                  .group = group,
                                  .replicate = replicate,
                                  .cut = cut,
                                  .epoch = 1,
                                  .next = meshes};
        if (cut || !replicate) /* one group: all processes, or `group` */
            mesh->of = (tern_dist_ranks){mesh->of.ranks, {cut ? NULL : group}, 1};
        for (const tern_shard_mesh *m = meshes; m; m = m->next)
            if (m->group == group && m->replicate == replicate && cut && m->cut &&
                m->cut->sums == cut->sums)
                mesh->of.ranks.sums = m->of.ranks.sums;
        meshes = mesh;
    }
    if (mesh)
        mesh->of.ranks.rank = tern_dist_get_rank(NULL);
    tern_mutex_unlock(&lock);
    return mesh;
}

tern_status tern_shard_look(const tern_shard_unit *root)
{
    bool any;
    double changed = tern_shard_changed(root->mesh, &any);
    if (!any)
        return TERN_OK;
    TERN_TRY(tern_dist_reduce_scalars(root->mesh->group, "parts that changed", &changed, 1, true));
    root->mesh->epoch += changed > 0;
    return TERN_OK;
}
