/* join.c -- TERN_JOIN: ranks of DistributedDataParallel that have different numbers of batches.
 *
 * Each step begins with a number that those who go on tell, whose greatest is that of the last of them; who has left the
 * block tells 0, and does with zeros what the number says that the others do. */
#include "dist/ddp.h"

enum { BUFFERS = 1, GRADIENTS = 2, RANK = 4 }; /* RANK: times 1 + the rank */

static tern_status ask(tern_ddp *d, int own, int *greatest)
{
    const tern_dist_options o = {.op = TERN_DIST_MAX, .group = d->group, .label = "join"};
    tern_status status = TERN_OK;
    TERN_SCOPE {
        const int32_t told = own;
        tern_tensor *x = tern_from_data(&told, TERN_SHAPE(1), TERN_I32, "cpu");
        status = x ? tern_dist_all_reduce(x, &o) : TERN_ERR_MEMORY;
        if (status == TERN_OK)
            *greatest = *(const int32_t *)tern_data(x);
    }
    if (status == TERN_OK && *greatest)
        d->last = *greatest / RANK - 1;
    return status;
}

tern_status tern_ddp_go_on(tern_ddp *d, bool buffers, bool gradients, int *from)
{
    const int rank = tern_dist_get_rank(d->group);
    int greatest = 0;
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
