/* uneven_inputs.c -- TERN_JOIN: ranks of DistributedDataParallel with different numbers of batches.
 *
 * Each step begins with an all-reduce (max) of a number. Ranks that still have batches send one
 * that has their rank and the collectives of the step; ranks without send 0, and take part in the
 * collectives that the maximum names with zeros. The maximum is that of the last active rank. */
#include "dist/ddp.h"
#include <string.h>

enum { BUFFERS = 1, GRADIENTS = 2, RANK = 4 }; /* RANK: multiplied by 1 + the rank */

static tern_status find_sync(const char *path, tern_module *m, void *user)
{
    const tern_module **found = user;
    (void)path;
    if (m->training && strcmp(m->name, "SyncBatchNorm") == 0)
        *found = m;
    return TERN_OK;
}

/* Some ranks have no batches left: records an error if a module needs the rows of all ranks. */
static tern_status check_sync(tern_ddp *d)
{
    const tern_module *found = NULL;
    TERN_TRY(tern_nn_each_module(d->self, find_sync, &found));
    d->torn = found != NULL;
    return !found ? TERN_OK
                  : tern_fail(TERN_ERR_STATE,
                              "TERN_JOIN: a rank has no batches left, and SyncBatchNorm needs the "
                              "rows of all: all ranks stop");
}

static tern_status ask(tern_ddp *d, int own, int *greatest)
{
    double counts[] = {own, own == 0};
    TERN_TRY(tern_dist_reduce_scalars(d->group, "join", counts, 2, true));
    *greatest = (int)counts[0];
    if (*greatest)
        d->last = *greatest / RANK - 1;
    return *greatest && counts[1] > 0 ? check_sync(d) : TERN_OK;
}

tern_status tern_ddp_go_on(tern_ddp *d, bool buffers, bool gradients, int *from)
{
    const int rank = tern_dist_get_rank(d->group);
    int greatest = 0;
    if (d->torn)
        return tern_fail(TERN_ERR_STATE, "TERN_JOIN: the block has ended, as a rank left it");
    if (!buffers && !gradients)
        return TERN_OK;
    TERN_TRY(ask(d, RANK * (rank + 1) + (buffers ? BUFFERS : 0) + (gradients ? GRADIENTS : 0),
                 &greatest));
    *from = d->last;
    return TERN_OK;
}

tern_status tern_ddp_follow(tern_ddp *d)
{
    tern_module *module = d->self->members[0].child;
    for (int heard;;) {
        TERN_TRY(ask(d, 0, &heard));
        if (heard == 0)
            break;
        if (heard & BUFFERS)
            TERN_TRY(
                tern_ddp_broadcast_from(d->last, module, tern_nn_each_buffer, d->group, "buffers"));
        if (heard & GRADIENTS)
            TERN_TRY(tern_ddp_step_with_zeros(d));
    }
    TERN_TRY(
        tern_ddp_broadcast_from(d->last, module, tern_nn_each_parameter, d->group, "parameters"));
    return tern_ddp_broadcast_from(d->last, module, tern_nn_each_buffer, d->group, "buffers");
}
