/* ranks.h -- tensors of which each process (rank of a job) has a part: which part a tensor is, and
 * sums over the ranks, for norms and the like. */
#ifndef TERN_TENSOR_RANKS_H
#define TERN_TENSOR_RANKS_H
#include <tern/tensor.h>

/* A cut of a tensor along a dim, as tern_chunk cuts: this process has part number `part` of
 * `parts`, and other processes of the group have the other parts. dim -1, which only the last cut
 * of a tensor has: the tensor is not cut, and one process has it, this one unless `elsewhere`. */
typedef struct tern_cut {
    int dim, part, parts;
    const void *group; /* NULL: all processes */
    bool elsewhere;
    bool last; /* this process has a pipeline's last stage, which sees the loss */
} tern_cut;
enum { TERN_MOST_CUTS = 3 };

/* The ranks that have parts of a tensor. The struct outlives the tensors for which it is set. All
 * ranks call its functions but cuts, in the same order. */
typedef struct tern_ranks {
    /* Replaces each of the n values by its sum over the ranks, or by the greatest. */
    tern_status (*reduce)(struct tern_ranks *ranks, double *values, int n, bool greatest);
    /* The same pointer in all structs whose reduce is over the same ranks: one call of reduce can
     * take the values of their tensors together. */
    struct tern_ranks *sums;
    int rank; /* this process's number in the job */
    /* check_consistency and first are over all processes, else over those that have parts of the
     * tensor or copies of parts. */
    bool all;
    /* Writes the cuts by which x was cut, one after the other, from a tensor of the shape *whole.
     * Returns their number. */
    int (*cuts)(const struct tern_ranks *ranks, const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                tern_shape *whole);
    /* If status is TERN_OK on all ranks, returns TERN_OK and sets text to that of the first rank;
     * else records an error of function on all ranks. */
    tern_status (*check_consistency)(struct tern_ranks *ranks, tern_status status, char *text,
                                     size_t bytes, const char *function);
    /* Each process has a number from 0 to count - 1. Sets *leads to whether this process is the
     * first of all, *own to whether it is the first with its number, and *all to whether each
     * number is that of a process. */
    tern_status (*first)(struct tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                         bool *all);
} tern_ranks;

/* Makes x this rank's part of a tensor of which the ranks have the other parts. ranks NULL: x is a
 * whole tensor. */
tern_status tern_set_ranks(tern_tensor *x, tern_ranks *ranks);
tern_ranks *tern_ranks_of(const tern_tensor *x);

static inline tern_ranks *tern_sums_of(const tern_tensor *x)
{
    const tern_ranks *ranks = tern_ranks_of(x);
    return ranks ? ranks->sums : NULL;
}

static inline int tern_cuts_of(const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                               tern_shape *whole)
{
    const tern_ranks *ranks = x ? tern_ranks_of(x) : NULL;
    return ranks ? ranks->cuts(ranks, x, cut, whole) : 0;
}

/* Returns the cut that says which stage of a pipeline has x; NULL: x belongs to no stage. Writes
 * x's cuts to cut, their number to *n, and the shape before the cuts to *whole. */
static inline const tern_cut *tern_stage_of(const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                                            tern_shape *whole, int *n)
{
    *n = tern_cuts_of(x, cut, whole);
    return *n && cut[*n - 1].dim < 0 ? &cut[*n - 1] : NULL;
}

/* Returns whether several ranks have parts of x. */
static inline bool tern_is_part(const tern_tensor *x)
{
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape whole;
    return tern_cuts_of(x, cut, &whole) && cut[0].dim >= 0;
}

/* Returns the number of rows in the part of a rank, as tern_chunk cuts, and sets *first to the
 * first of them. */
static inline int64_t tern_rows_of_rank(int64_t rows, int rank, int size, int64_t *first)
{
    const int64_t each = rows / size + (rows % size != 0);
    *first = each * rank < rows ? each * rank : rows;
    return rows - *first < each ? rows - *first : each;
}

#endif
