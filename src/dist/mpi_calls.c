/* mpi_calls.c -- the MPI calls of a work: their start, their completion, MPI's operations on
 * bools. */
#include "dist/dist.h"

tern_dist_op tern_dist_bits_of(tern_dist_op op)
{
    return op == TERN_DIST_PRODUCT || op == TERN_DIST_MIN || op == TERN_DIST_BAND ? TERN_DIST_BAND
           : op == TERN_DIST_BXOR                                                 ? TERN_DIST_BXOR
                                                                                  : TERN_DIST_BOR;
}

bool tern_dist_is_eager(const tern_dist_work *w)
{
    const bool adds = w->kind == DIST_ALL_REDUCE || w->kind == DIST_REDUCE;
    return w->headers && w->count > 0 && w->count <= DIST_EAGER &&
           (size_t)w->count * tern_dtype_size(w->dtype) <= DIST_EAGER &&
           (adds ? tern_dtype_is_floating_point(w->dtype)
                 : w->kind == DIST_BROADCAST || w->kind == DIST_ALL_GATHER);
}

bool tern_dist_begin(tern_dist_job *job, tern_dist_work *w, tern_mpi_call call)
{
    char text[200];
    int error = job->mpi->begin(&call, &w->request[w->requests]);
    if (!error) {
        w->requests++;
        return true;
    }
    job->mpi->explain(error, text, sizeof text);
    w->state = WORK_STUCK;
    tern_dist_ask(job, w, text);
    return false;
}

bool tern_dist_all_done(tern_dist_job *job, tern_dist_work *w)
{
    while (w->requests > 0) {
        bool done = false;
        char text[200];
        int error = job->mpi->test(&w->request[w->requests - 1], &done);
        if (error) {
            job->mpi->explain(error, text, sizeof text);
            w->state = WORK_STUCK;
            tern_dist_ask(job, w, text);
            return false;
        }
        if (!done)
            return false;
        w->requests--;
    }
    return true;
}
