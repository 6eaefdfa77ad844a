/* ranks.h -- sums over the processes (ranks of a job) that have parts of one tensor, for norms and the like. */
#ifndef TERN_BASE_RANKS_H
#define TERN_BASE_RANKS_H
#include <tern/tensor.h>

/* Those that share a tensor out. The struct outlives what it is set for. */
typedef struct tern_ranks {
    /* values[i], of n, become their sums over the ranks, or the greatest. All ranks call it, in one order. */
    tern_status (*reduce)(struct tern_ranks *ranks, double *values, int n, bool greatest);
} tern_ranks;

/* x is this rank's part of a parameter whose other parts are theirs; NULL: it is whole. */
tern_status tern_set_ranks(tern_tensor *x, tern_ranks *ranks);
tern_ranks *tern_ranks_of(const tern_tensor *x);

#endif
