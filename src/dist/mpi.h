/* mpi.h -- what a plugin for an MPI library gives libtern: the only words between the two, without
 * mpi.h.
 *
 * A plugin is lib/tern/libtern_mpi_<family>.so; tern_mpi_plugin gives its table. All functions
 * answer 0 or the library's error code. They are called one at a time (MPI_THREAD_SERIALIZED), on
 * any thread where the level allows it. */
#ifndef TERN_DIST_MPI_H
#define TERN_DIST_MPI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_MPI_VERSION = 1 }; /* of this file */

/* The library's handles, whatever they are there. */
typedef uint64_t tern_mpi_comm;
typedef uint64_t tern_mpi_request;

typedef enum tern_mpi_level {                        /* of MPI_Init_thread */
                              TERN_MPI_FUNNELED = 1, /* or less: the thread that began it */
                              TERN_MPI_SERIALIZED = 2,
                              TERN_MPI_MULTIPLE = 3
} tern_mpi_level;

/* What can be begun. Sizes are counts of elements of one rank. */
typedef enum tern_mpi_kind {
    TERN_MPI_SEND,           /* in to root, with tag */
    TERN_MPI_RECEIVE,        /* out from root (-1: anybody), with tag */
    TERN_MPI_BROADCAST,      /* out, from root's */
    TERN_MPI_ALL_REDUCE,     /* out in place */
    TERN_MPI_REDUCE,         /* out in place at the root, where alone it changes */
    TERN_MPI_REDUCE_SCATTER, /* in: count for each rank; out: count */
    TERN_MPI_ALL_GATHER,     /* in: count, NULL where it is in its place in out */
    TERN_MPI_GATHER,
    TERN_MPI_SCATTER,
    TERN_MPI_ALL_TO_ALL, /* count from each to each */
    /* count elements are shared out: rank i has those from i ceil(count / ranks) on. */
    TERN_MPI_EXCHANGE, /* in: the parts of all; out: what all have for this rank's, by rank */
    TERN_MPI_SPREAD,   /* this rank's part in its place in out; all of them there */
    TERN_MPI_COLLECT   /* in: this rank's part; out at the root: all of them in their places */
} tern_mpi_kind;

typedef struct tern_mpi_call {
    tern_mpi_kind kind;
    const void *in;
    void *out;
    int64_t count; /* at most INT_MAX */
    int dtype;     /* a tern_dtype: one that MPI adds, or an unsigned integer of that size */
    int op;        /* a tern_dist_op, but for the average */
    int root, tag;
    tern_mpi_comm comm;
    int *integers; /* four integers for each rank, until it is done */
} tern_mpi_call;

typedef struct tern_mpi {
    int version; /* TERN_MPI_VERSION */
    const char *family;
    /* MPI_Init_thread, unless the program did so; *ours: it did not. */
    int (*init)(bool *ours, tern_mpi_level *level);
    int (*finalize)(void);
    /* "MPICH 4.0.2"; what an error code means. */
    void (*describe)(char *text, size_t bytes);
    void (*explain)(int error, char *text, size_t bytes);
    /* MPI_COMM_WORLD's rank and size, and copies of it whose errors are returned. */
    int (*world)(int *rank, int *size, tern_mpi_comm *copies, int n);
    /* A part of it: the ranks that say the same color, by key; none for color -1. */
    int (*split)(tern_mpi_comm comm, int color, int key, tern_mpi_comm *part);
    int (*release)(tern_mpi_comm *comm);
    int (*begin)(const tern_mpi_call *call, tern_mpi_request *request);
    /* *request is done with once *done is true. */
    int (*test)(tern_mpi_request *request, bool *done);
} tern_mpi;

typedef const tern_mpi *(*tern_mpi_plugin_function)(void);

#endif
