/* chain_find.h -- finds the commands of a recording that make a chain (chain.h). */
#ifndef TERN_DEVICE_CHAIN_FIND_H
#define TERN_DEVICE_CHAIN_FIND_H
#include "device/recording.h"

/* A chain while it is being found. */
typedef struct tern_finding {
    tern_graph *graph;
    tern_chain chain;
    tern_arg tensors[TERN_CHAIN_TENSORS]; /* the tensors as arguments of the rows */
    int made_by[TERN_CHAIN_TENSORS];      /* the last row that writes the tensor; -1: none */
    bool stored[TERN_CHAIN_TENSORS];      /* the chain writes the tensor */
    const tern_command *slot;             /* the kernel with the chain's slot; NULL: none */
    int64_t work, first; /* work: the rows' work; first: the number of the first command */
    tern_dtype dtype;
    bool casts, is_exact; /* casts: there are casts among the rows; is_exact: rows of float32 give
                           * the same bits in a chain of half precision */
    char name[160];
} tern_finding;

/* A reason why a chain is no command, or has no more rows. */
extern const char tern_chain_is_full[];

/* Finds the longest chain from command i on; a kernel with a slot may be part of it only if
 * in_slots. Returns the number of commands, and sets *why to the reason why there are no more. */
int tern_chain_find(tern_finding *f, tern_graph *graph, tern_graph_node *const *nodes, int64_t i,
                    int64_t n, bool in_slots, const char **why);
/* Completes the chain for its kernel: results that no command from `end` on reads are not written,
 * and tensors are renumbered. Returns false if too many results are alive at the same time. */
bool tern_chain_complete(tern_finding *f, int64_t end);
/* Returns whether the two buffers, of which a command writes one, may share memory. */
bool tern_buffers_collide(const tern_graph *graph, const tern_buffer *a, const tern_buffer *b);

/* Returns whether the plan of memory moves all blocks that were freed during the capture. */
static inline bool tern_graph_moves(const tern_graph *graph)
{
    return !graph->options.no_plan && !graph->stays;
}

#endif
