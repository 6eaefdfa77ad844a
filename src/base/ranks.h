/* ranks.h -- tensors that the processes (ranks of a job) share out by rows: whose part a tensor is, sums over them for norms and
 * the like, and what else they do together. */
#ifndef TERN_BASE_RANKS_H
#define TERN_BASE_RANKS_H
#include <tern/tensor.h>

/* Those that share tensors out. The struct outlives what it is set for. All but place and rows are called by all ranks, in
 * one order. */
typedef struct tern_ranks {
    /* values[i], of n, become their sums over the ranks, or the greatest. */
    tern_status (*reduce)(struct tern_ranks *ranks, double *values, int n, bool greatest);
    /* Which of how many this process is, and of those with the same parts. NULL: parts are not rows, and none of what
     * follows is there; each rank keeps its own. */
    void (*place)(const struct tern_ranks *ranks, int *rank, int *size, int *copy);
    /* Rows of x over all ranks. */
    int64_t (*rows)(const struct tern_ranks *ranks, const tern_tensor *x);
    /* TERN_OK where all have it, and text is the first rank's; else an error of function on all. */
    tern_status (*agree)(struct tern_ranks *ranks, tern_status status, char *text, size_t bytes,
                         const char *function);
} tern_ranks;

/* x is this rank's part of a tensor whose other parts are theirs; NULL: it is whole. */
tern_status tern_set_ranks(tern_tensor *x, tern_ranks *ranks);
tern_ranks *tern_ranks_of(const tern_tensor *x);

/* The rows of rank's part, as tern_chunk cuts: how many, from *first on. */
static inline int64_t tern_rows_of_rank(int64_t rows, int rank, int size, int64_t *first)
{
    const int64_t each = rows / size + (rows % size != 0);
    *first = each * rank < rows ? each * rank : rows;
    return rows - *first < each ? rows - *first : each;
}

#endif
