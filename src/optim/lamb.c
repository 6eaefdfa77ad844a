/* lamb.c -- LAMB: Adam's direction u, scaled to the length of the parameter (You et al. 2020,
 * algorithm 2; https://arxiv.org/abs/1904.00962):
 *
 *   p -= lr ||p|| / ||u|| u,   u = m / (sqrt(v) + eps) + weight_decay p   (m, v bias corrected)
 *
 * The norms are needed before any element moves, so there are two launches: the first updates the
 * moments m and v and sums the squares of p and u for each chunk, the second takes the step. */
#include "optim/optimizer.h"

/* States 0 and 1 are the moments; the third column has the sums of squares. */
enum { SUMS = 2 };

/* A tensor of n chunks has 1 + 2 n sums: n itself, and for each chunk the squares of p and of u.
 * The sums of all tensors share one allocation. */
static tern_status prepare(const tern_optimizer *o, tern_optim_batch *b)
{
    int64_t n_sums = 2 * tern_foreach_chunks(b->table) + b->count;
    tern_tensor *sums =
        tern_empty(TERN_SHAPE(n_sums), tern_dtype_of(b->values), tern_device(b->values));
    (void)o;
    for (int i = 0; i < b->count; i++) {
        int64_t from = 2 * tern_foreach_first_chunk(b->table, i) + i;
        int64_t to = 2 * tern_foreach_first_chunk(b->table, i + 1) + i + 1;
        b->columns.state[SUMS][i] = tern_narrow(sums, 0, from, to - from);
        if (!b->columns.state[SUMS][i])
            return tern_last_status();
    }
    return TERN_OK;
}

static const tern_foreach_kernel norms = TERN_FOREACH_KERNEL("adam_variants", "lamb_norms");
const tern_optim_parts tern_lamb_parts = {.prepare = prepare, .before = &norms};
