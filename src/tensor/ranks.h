/* ranks.h -- tensors that the processes (ranks of a job) share out: whose part a tensor is, sums
 * over them for norms and the like, and what else they do together. */
#ifndef TERN_TENSOR_RANKS_H
#define TERN_TENSOR_RANKS_H
#include <tern/tensor.h>

/* A dim that ranks share out, as tern_chunk cuts: this process has number `part` of `parts`, others
 * of the group the rest. dim -1: it is not cut, and one of them has all of it, this one unless it
 * is elsewhere; the last of a tensor's. */
typedef struct tern_cut {
    int dim, part, parts;
    const void *group; /* NULL: all processes */
    bool elsewhere;
    bool last; /* this process has a pipeline's last stage, which sees the loss */
} tern_cut;
enum { TERN_MOST_CUTS = 3 };

/* Those that share tensors out. The struct outlives what it is set for. All but cuts are called by
 * all ranks, in one order. */
typedef struct tern_ranks {
    /* values[i], of n, become their sums over the ranks, or the greatest. */
    tern_status (*reduce)(struct tern_ranks *ranks, double *values, int n, bool greatest);
    struct tern_ranks
        *sums; /* the same for all whose reduce is the same: numbers of theirs are added up
                 together */
    int rank;  /* this process's number in the job */
    bool all; /* agree and first are of all processes, else of those with parts or copies of them */
    /* How x was cut, one after the other, from a tensor of that shape; how many there are. */
    int (*cuts)(const struct tern_ranks *ranks, const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                tern_shape *whole);
    /* TERN_OK where all have it, and text is the first one's; else an error of function on all. */
    tern_status (*agree)(struct tern_ranks *ranks, tern_status status, char *text, size_t bytes,
                         const char *function);
    /* *leads: this process is the first of all; *own: of those with its number, from 0 to count -
     * 1; *all: each of these is somebody's. */
    tern_status (*first)(struct tern_ranks *ranks, int number, int count, bool *leads, bool *own,
                         bool *all);
} tern_ranks;

/* x is this rank's part of a tensor whose other parts are theirs; NULL: it is whole. */
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

/* Where a stage of a pipeline has x, and perhaps another rank's; NULL: none has. cut is room for
 * its cuts, whole for its shape, *n how many there are. */
static inline const tern_cut *tern_stage_of(const tern_tensor *x, tern_cut cut[TERN_MOST_CUTS],
                                            tern_shape *whole, int *n)
{
    *n = tern_cuts_of(x, cut, whole);
    return *n && cut[*n - 1].dim < 0 ? &cut[*n - 1] : NULL;
}

/* Whether ranks have parts of x, and not one of them all. */
static inline bool tern_is_part(const tern_tensor *x)
{
    tern_cut cut[TERN_MOST_CUTS];
    tern_shape whole;
    return tern_cuts_of(x, cut, &whole) && cut[0].dim >= 0;
}

/* The rows of rank's part, as tern_chunk cuts: how many, from *first on. */
static inline int64_t tern_rows_of_rank(int64_t rows, int rank, int size, int64_t *first)
{
    const int64_t each = rows / size + (rows % size != 0);
    *first = each * rank < rows ? each * rank : rows;
    return rows - *first < each ? rows - *first : each;
}

#endif
