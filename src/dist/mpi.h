/* mpi.h -- the table of functions by which a plugin gives libtern an MPI library. Neither side of
 * it needs the header mpi.h.
 *
 * A plugin is lib/tern/libtern_mpi_<family>.so; its function tern_mpi_plugin returns the table. All
 * functions return 0 or the library's error code. They are called one at a time
 * (MPI_THREAD_SERIALIZED), on any thread where the level allows it. */
#ifndef TERN_DIST_MPI_H
#define TERN_DIST_MPI_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERN_MPI_VERSION = 1 }; /* version of the table below */

/* The MPI library's handles, as integers. */
typedef uint64_t tern_mpi_comm;
typedef uint64_t tern_mpi_request;

typedef enum tern_mpi_level {                        /* thread support of MPI_Init_thread */
                              TERN_MPI_FUNNELED = 1, /* or less: the initializing thread */
                              TERN_MPI_SERIALIZED = 2,
                              TERN_MPI_MULTIPLE = 3
} tern_mpi_level;

/* Nonblocking calls. Counts are elements of one rank. */
typedef enum tern_mpi_kind {
    TERN_MPI_SEND,           /* sends in to root, with tag */
    TERN_MPI_RECEIVE,        /* receives out from root (-1: any rank), with tag */
    TERN_MPI_BROADCAST,      /* out of root to out of all */
    TERN_MPI_ALL_REDUCE,     /* out in place */
    TERN_MPI_REDUCE,         /* out in place; only the root's changes */
    TERN_MPI_REDUCE_SCATTER, /* in: count elements for each rank; out: count elements */
    TERN_MPI_ALL_GATHER,     /* in: count elements, or NULL if they are in their place in out */
    TERN_MPI_GATHER,
    TERN_MPI_SCATTER,
    TERN_MPI_ALL_TO_ALL, /* count elements from each rank to each */
    /* The next three divide count elements: rank i has those from i * ceil(count / ranks) on. */
    TERN_MPI_EXCHANGE, /* in: the parts of all ranks; out: this rank's part from each */
    TERN_MPI_SPREAD,   /* out: this rank's part, in its place; then the parts of all */
    TERN_MPI_COLLECT   /* in: this rank's part; out at the root: all parts in place */
} tern_mpi_kind;

typedef struct tern_mpi_call {
    tern_mpi_kind kind;
    const void *in;
    void *out;
    int64_t count; /* at most INT_MAX */
    int dtype;     /* a tern_dtype that MPI can reduce, or the unsigned integer of the same size */
    int op;        /* a tern_dist_op other than the average */
    int root, tag;
    tern_mpi_comm comm;
    int *integers; /* scratch of four integers a rank, in use until the call is done */
} tern_mpi_call;

typedef struct tern_mpi {
    int version; /* TERN_MPI_VERSION */
    const char *family;
    /* Calls MPI_Init_thread if the program has not. Sets *ours to whether it did. */
    int (*init)(bool *ours, tern_mpi_level *level);
    int (*finalize)(void);
    /* describe writes the library's name, "MPICH 4.0.2"; explain the text of an error code. */
    void (*describe)(char *text, size_t bytes);
    void (*explain)(int error, char *text, size_t bytes);
    /* Writes the rank and size of MPI_COMM_WORLD and n duplicates of it with MPI_ERRORS_RETURN. */
    int (*world)(int *rank, int *size, tern_mpi_comm *copies, int n);
    /* MPI_Comm_split: ranks with one color, ordered by key; color -1 is MPI_UNDEFINED. */
    int (*split)(tern_mpi_comm comm, int color, int key, tern_mpi_comm *part);
    int (*release)(tern_mpi_comm *comm);
    int (*begin)(const tern_mpi_call *call, tern_mpi_request *request);
    /* Sets *done to whether the request is complete; a complete request is freed. */
    int (*test)(tern_mpi_request *request, bool *done);
} tern_mpi;

typedef const tern_mpi *(*tern_mpi_plugin_function)(void);

#endif
