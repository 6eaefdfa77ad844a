/* recording.h -- struct tern_graph, a recording: its commands, and the memory that it keeps for
 * them. */
#ifndef TERN_DEVICE_RECORDING_H
#define TERN_DEVICE_RECORDING_H
#include "device/capture.h"
#include "device/chain.h"
#include "device/command.h"
#include <stddef.h>

/* A recorded command, followed in memory by what the command points to. */
typedef struct tern_graph_node {
    tern_command command;
    bool is_fused; /* a chain runs in place of this command */
    bool is_chain; /* the command is a chain */
    max_align_t data[];
} tern_graph_node;

/* A function that tern_graph_on_replay added: each replay calls run(user) first. */
typedef struct tern_refresh {
    tern_status (*run)(void *user);
    void *user;
} tern_refresh;

/* The nodes from the end of the previous piece to node `end` - 1, as one graph of the vendor's
 * library. Node `end` is a call on the host, or `end` is the number of nodes. */
typedef struct tern_graph_piece {
    int64_t end;
    void *executable; /* the result of vendor->graph_make; NULL: the piece has no nodes */
} tern_graph_piece;

/* A chain that runs as one command; its name is like "add+gelu". */
typedef struct tern_fused_chain {
    tern_kernel_ref ref; /* the first field, so a pointer to it is one to the struct */
    struct tern_fused_chain *next;
    tern_resolved *kernel;
    tern_chain chain;
    size_t saved; /* bytes that are not read or written, as the chain is one command */
    char name[160];
} tern_fused_chain;

/* A recording compiles no more kernels of chains than this: each takes tenths of a second. */
enum { TERN_MOST_TEXTS = 16 };

/* A reason why elementwise commands are in no chain, and how many commands have this reason. The
 * last element of tern_graph.apart counts all other reasons. */
enum { TERN_MOST_REASONS = 10 };
typedef struct tern_apart {
    const char *why; /* a string constant */
    int64_t n;
} tern_apart;

struct tern_graph {
    tern_place *place;
    tern_graph *next; /* in the list of all graphs */
    tern_graph_node **nodes;
    int64_t n_nodes, capacity;
    bool recorded, failed; /* failed: the recording cannot be replayed */
    bool faults;           /* some kernels report faults */
    bool elsewhere;        /* the thread launched on other devices during the capture */
    bool lists;            /* the capture compiles programs and records nothing (listing.c) */
    /* A capture with `lists` that compiles nothing; large blocks are addresses without memory. */
    bool estimates;
    int64_t taken; /* groups of random numbers that a replay uses */
    int64_t drawn; /* the first of these groups that the capture has not yet used */
    tern_refresh *refreshes;
    int n_refreshes;
    tern_block **held; /* blocks that nodes use and that existed before the capture */
    int64_t n_held, held_capacity;
    tern_block **constants;
    int n_constants;
    tern_block *pool;               /* all blocks of the recording's pool, linked by of_pool */
    tern_block *idle[SIZE_CLASSES]; /* the blocks of the pool that no tensor uses */
    tern_graph_piece *pieces;       /* NULL: nodes run one by one */
    int n_pieces;
    tern_graph_options options;
    size_t reserved;        /* the bytes that blocks of the pool had when they were recorded */
    struct tern_plan *plan; /* NULL: values have the memory that they had when they were recorded */
    bool stays; /* the plan moves no block, as blocks whose addresses kernels have share memory */
    /* The commands as they were recorded, if some are in chains; else NULL. */
    tern_graph_node **before;
    int64_t n_before;
    tern_fused_chain *chains;
    const char *apart_as; /* the reason why there are no chains; NULL: chains are allowed */
    tern_apart apart[TERN_MOST_REASONS];
    struct tern_chain_kernel *waits[TERN_MOST_TEXTS]; /* kernels that other threads compile */
    int n_waits;      /* until all are compiled, a replay runs the commands as they were recorded */
    int n_texts;      /* kernels of chains that were compiled for the recording */
    bool moves_all;   /* a plan must move the blocks: chains rely on it, or their memory is freed */
    int64_t n_unread; /* commands that were removed, as no command reads their results */
};

/* A launch that replaces the last recorded one and a new one. */
typedef struct tern_pair {
    const tern_kernel_ref *kernel;
    tern_arg args[16];
    int n;
} tern_pair;
/* Returns whether the command, a launch, and the last recorded one become *pair (peephole.c), and
 * removes the last one from the recording then. */
bool tern_record_pair(tern_graph *graph, const tern_command *command, tern_pair *pair);

/* ---- values (values.c) ------------------------------------------------------------------- */

/* Calls use for each buffer among the arguments of the command. */
void tern_command_uses(const tern_command *command,
                       void (*use)(void *user, const tern_buffer *buffer, tern_role role),
                       void *user);
/* Returns whether the command may use memory that is not among its arguments: kernels with a table
 * of addresses, kernels of the program's own, calls of the host. */
bool tern_command_has_addresses(const tern_command *command);
/* Returns the block of a buffer, which is the block's first field. */
static inline tern_block *tern_block_of(const tern_buffer *buffer)
{
    union {
        const tern_buffer *buffer;
        tern_block *block;
    } at = {buffer};
    return at.block;
}
/* Returns whether the block is of the recording's pool and only the recording's commands use it. */
static inline bool tern_block_is_inner(const tern_graph *graph, const tern_block *block)
{
    return block->pool == graph && block->is_idle && !block->is_addressed && !block->holds;
}
/* Returns whether two blocks may share memory: a recording gives the memory of a freed block to a
 * later one. Parts without an address count as sharing it. */
static inline bool tern_buffers_meet(const tern_buffer *a, const tern_buffer *b)
{
    if (a->address && b->address)
        return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
    return a->handle == b->handle || tern_block_of(a)->is_part || tern_block_of(b)->is_part;
}
/* Changes a launch so that its kernel does not write results that no later command reads
 * (peephole.c). */
void tern_leave_unread(const tern_graph *graph, tern_command *command);
/* Removes commands whose results no command reads, and stores in each block the first and the last
 * command that use the block. */
void tern_values_find(tern_graph *graph);
/* Stores the first and the last command in each block again. */
void tern_values_note(tern_graph *graph);
/* Compiles the kernels of chains of consecutive elementwise rows (chains.c). Kernels that other
 * threads compile are then in graph->waits. */
tern_status tern_chains_want(tern_graph *graph);
/* Replaces the rows of each chain whose kernel is compiled by one command. */
tern_status tern_chains_make(tern_graph *graph);
/* Restores the commands as they were before tern_chains_make. */
void tern_chains_undo(tern_graph *graph);
/* Frees the chains of the recording. */
void tern_chains_end(tern_graph *graph);
/* Waits until the kernels in graph->waits are compiled, and replaces rows by chains. */
tern_status tern_graph_finish(const tern_graph *graph);
/* Adds a node to the recording, which owns the node afterwards. */
tern_status tern_record_node(tern_graph *graph, tern_graph_node *node);

/* ---- the plan of memory (plan.c) --------------------------------------------------------- */

typedef struct tern_plan tern_plan;
/* Moves the inner values to arenas. After an error, whose message has the peak if memory is out,
 * the caller calls tern_plan_end. */
tern_status tern_plan_make(tern_graph *graph);
/* Frees the plan and its arenas; called before the recording is emptied or planned again. */
void tern_plan_end(tern_graph *graph);
/* For plans with `keeps`: switches between the memory from the recording and the arenas. */
void tern_plan_swap(tern_graph *graph);

/* Replays the graph as it was recorded and with its plan; returns an error if a bit of the results
 * differs (graph_check.c). */
tern_status tern_graph_check(tern_graph *graph, tern_status (*run)(tern_graph *graph));

#endif
