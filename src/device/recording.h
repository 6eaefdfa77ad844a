/* recording.h -- the inside of a graph: its nodes, and what it holds for them. */
#ifndef TERN_DEVICE_RECORDING_H
#define TERN_DEVICE_RECORDING_H
#include "device/capture.h"
#include "device/work.h"
#include <stddef.h>

/* Something to run; what the work points to follows it in memory. */
typedef struct tern_graph_node {
    tern_work work;
    max_align_t data[];
} tern_graph_node;

typedef struct tern_refresh {
    tern_status (*run)(void *user);
    void *user;
} tern_refresh;

/* Nodes from the end of the one before to this end, where a call of the host's follows, as the
 * vendor has them. */
typedef struct tern_graph_piece {
    int64_t end;
    void *made; /* NULL: there are none */
} tern_graph_piece;

struct tern_graph {
    tern_place *place;
    tern_graph *next; /* of all graphs */
    tern_graph_node **nodes;
    int64_t n_nodes, capacity;
    bool recorded, failed; /* failed: what was recorded is of no use */
    bool faults;           /* some kernel reports faults */
    bool elsewhere;        /* while it was recorded the thread launched on other devices */
    bool lists;            /* programs are built, and nothing is recorded: listing.c */
    int64_t taken;         /* groups of random numbers a replay */
    int64_t drawn;         /* the next of them */
    tern_refresh *refreshes;
    int n_refreshes;
    tern_block **held; /* from outside, used by nodes */
    int64_t n_held, held_capacity;
    tern_block **constants;
    int n_constants;
    tern_block *pool;               /* every block of it, by its `of_pool` */
    tern_block *idle[SIZE_CLASSES]; /* those that no tensor has */
    tern_graph_piece *pieces;       /* NULL: nodes are run one by one */
    int n_pieces;
};

/* One launch in place of the last that was recorded and one that goes on from it. */
typedef struct tern_pair {
    const tern_kernel_ref *kernel;
    tern_arg args[16];
    int n;
} tern_pair;
/* Whether there is one for this launch of a kernel's (peephole.c); the last is recorded no more
 * then. */
bool tern_record_pair(tern_graph *graph, const tern_work *work, tern_pair *pair);
/* A block of the pool has no tensor any more: what was written to it, and not read since, need not
 * be. */
void tern_record_end_of(tern_graph *graph, const tern_block *block);

#endif
