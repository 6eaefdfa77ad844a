/* mesh.c -- device meshes: the groups of ranks along each dim. */
#include "dist/dist.h"
#include <tern/dist/tensor_parallel.h>

/* Makes the groups along one dim of that size, whose members are `step` ranks apart, and sets *own
 * to this rank's group. */
static tern_status groups_along(int size, int step, int ranks, tern_dist_group **own)
{
    const int rank = tern_dist_get_rank(NULL);
    int members[size];
    for (int first = 0; first < ranks; first++) {
        if (first / step % size)
            continue;
        for (int i = 0; i < size; i++)
            members[i] = first + i * step;
        tern_dist_group *group = tern_dist_new_group(members, size, 0);
        if (!group)
            return tern_last_status();
        if (rank >= first && rank % step == first % step &&
            rank / step / size == first / step / size)
            *own = group;
    }
    return TERN_OK;
}

tern_status tern_dist_init_device_mesh(tern_shape sizes, tern_dist_group **groups)
{
    static const char function[] = "tern_dist_init_device_mesh";
    const int ranks = tern_dist_get_world_size(NULL);
    int64_t product = 1;
    if (!groups)
        return tern_fail_argument_null(function, "groups");
    for (int d = 0; d < sizes.ndim; d++)
        product = sizes.dims[d] > 0 && sizes.dims[d] <= ranks ? product * sizes.dims[d] : 0;
    if (product != ranks)
        return tern_fail(TERN_ERR_SHAPE, "%s: the mesh has %lld ranks, and there are %d", function,
                         (long long)product, ranks);
    for (int d = sizes.ndim - 1, step = 1; d >= 0; step *= (int)sizes.dims[d--])
        TERN_TRY(groups_along((int)sizes.dims[d], step, ranks, &groups[d]));
    return TERN_OK;
}
