/* lamb.c -- LAMB: Adam's direction, as long as the parameter is (You et al. 2020, algorithm 2;
 * https://arxiv.org/abs/1904.00962). Two launches: the first moves the moments and sums the squares
 * of each chunk, the second walks. */
#include "optim/optimizer.h"

/* Columns of the kernel: the moments, and sums. */
enum { SUMS = 2 };

static tern_status prepare(tern_optimizer *o, tern_optim_batch *b, tern_optim_columns *c,
                           tern_foreach_call *call)
{
    static const tern_foreach_kernel kernel = TERN_FOREACH_KERNEL("adam_variants", "lamb_norms");
    int64_t room = 2 * tern_foreach_chunks(b->table) + b->count;
    tern_tensor *sums =
        tern_empty(TERN_SHAPE(room), tern_dtype_of(b->values), tern_device(b->values));
    (void)o;
    for (int i = 0; i < b->count; i++) {
        int64_t from = 2 * tern_foreach_first_chunk(b->table, i) + i;
        int64_t to = 2 * tern_foreach_first_chunk(b->table, i + 1) + i + 1;
        c->state[SUMS][i] = tern_narrow(sums, 0, from, to - from);
        if (!c->state[SUMS][i])
            return tern_last_status();
    }
    tern_foreach_call norms = *call;
    norms.kernel = &kernel;
    norms.writes = false;
    return tern_foreach_launch(b->table, &norms);
}

const tern_optim_parts tern_lamb_parts = {.prepare = prepare};
