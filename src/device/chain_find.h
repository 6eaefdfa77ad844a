/* chain_find.h -- which commands of a recording are a chain (chain.h). */
#ifndef TERN_DEVICE_CHAIN_FIND_H
#define TERN_DEVICE_CHAIN_FIND_H
#include "device/recording.h"

/* A chain under way. */
typedef struct tern_finding {
    tern_graph *graph;
    tern_chain chain;
    tern_arg tensors[TERN_CHAIN_TENSORS]; /* arguments */
    int made_by[TERN_CHAIN_TENSORS];      /* the last row that writes it, -1: none does */
    bool stored[TERN_CHAIN_TENSORS];
    const tern_command *slot; /* the kernel with the chain's slot; NULL: none */
    int64_t work, first;      /* the number of its first command */
    tern_dtype dtype;
    bool casts, is_exact; /* it has casts; its rows of float32 are exact in half precision's text */
    char name[160];
} tern_finding;

/* Why a chain is no command. */
extern const char tern_chain_is_full[];

/* The longest chain from command i on, in a kernel with a slot only if that may be; how many
 * commands it has, and why no more. */
int tern_chain_find(tern_finding *f, tern_graph *graph, tern_graph_node *const *nodes, int64_t i,
                    int64_t n, bool in_slots, const char **why);
/* As its kernel has it, before command `end`; false: there are too many results. */
bool tern_chain_complete(tern_finding *f, int64_t end);
/* Whether two tensors of which one is written may share memory otherwise than element by
 * element. */
bool tern_buffers_collide(const tern_graph *graph, const tern_buffer *a, const tern_buffer *b);

/* Whether the plan of memory finds places for all blocks that were given back. */
static inline bool tern_graph_moves(const tern_graph *graph)
{
    return !graph->options.no_plan && !graph->stays;
}

#endif
