/* recording.h -- the inside of a graph: its nodes, and what it holds for them. */
#ifndef TERN_DEVICE_RECORDING_H
#define TERN_DEVICE_RECORDING_H
#include "device/capture.h"
#include "device/chain.h"
#include "device/command.h"
#include <stddef.h>

/* Something to run; what the command points to follows it in memory. */
typedef struct tern_graph_node {
    tern_command command;
    bool is_fused; /* a chain is in its place */
    bool is_chain;
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
    void *executable; /* of vendor->graph_make; NULL: there are none */
} tern_graph_piece;

/* The kernel of a chain, and its name, "add+gelu". */
typedef struct tern_fused_chain {
    tern_kernel_ref ref; /* first: it leads here */
    struct tern_fused_chain *next;
    tern_resolved *kernel;
    tern_chain chain;
    size_t saved; /* bytes that are not moved */
    char name[160];
} tern_fused_chain;

/* Most new kernels of chains in a recording: compilers take tenths of a second for each. */
enum { TERN_MOST_TEXTS = 16 };

/* Why elementwise commands are not in a chain, and how many; others of the last. */
enum { TERN_MOST_REASONS = 10 };
typedef struct tern_apart {
    const char *why; /* a constant */
    int64_t n;
} tern_apart;

struct tern_graph {
    tern_place *place;
    tern_graph *next; /* of all graphs */
    tern_graph_node **nodes;
    int64_t n_nodes, capacity;
    bool recorded, failed; /* failed: what was recorded is of no use */
    bool faults;           /* some kernel reports faults */
    bool elsewhere;        /* while it was recorded the thread launched on other devices */
    bool lists;            /* programs are built, and nothing is recorded: listing.c */
    bool estimates; /* of those that list: nothing is built, and large blocks are addresses */
    int64_t taken;  /* groups of random numbers a replay */
    int64_t drawn;  /* the next of them */
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
    tern_graph_options options;
    size_t reserved;        /* by blocks of the pool, as they were recorded */
    struct tern_plan *plan; /* NULL: values are where they were when they were recorded */
    bool stays; /* blocks that kernels find by their addresses share memory with others */
    tern_graph_node **before; /* chains: the commands as they were recorded; NULL: nodes */
    int64_t n_before;
    tern_fused_chain *chains;
    const char *apart_as; /* why there are no chains; NULL: there may be */
    tern_apart apart[TERN_MOST_REASONS];
    struct tern_chain_kernel *waits[TERN_MOST_TEXTS]; /* other threads make them */
    int n_waits;      /* until all are there, chains are the commands that were recorded */
    int n_texts;      /* new kernels that were wanted */
    bool moves_all;   /* chains are right only where the plan moves what was given back */
    int64_t n_unread; /* commands that were left out, as nobody reads what they make */
};

/* One launch in place of the last that was recorded and one that goes on from it. */
typedef struct tern_pair {
    const tern_kernel_ref *kernel;
    tern_arg args[16];
    int n;
} tern_pair;
/* Whether there is one for this launch of a kernel's (peephole.c); the last is recorded no more
 * then. */
bool tern_record_pair(tern_graph *graph, const tern_command *command, tern_pair *pair);

/* ---- values (values.c) ------------------------------------------------------------------- */

/* Calls use for each buffer that a command has. */
void tern_command_uses(const tern_command *command,
                       void (*use)(void *user, const tern_buffer *buffer, tern_role role),
                       void *user);
/* Whether it may have what no argument says: kernels with a table of addresses, those of a program,
 * calls of the host. */
bool tern_command_has_addresses(const tern_command *command);
/* Blocks begin with their buffer. */
static inline tern_block *tern_block_of(const tern_buffer *buffer)
{
    union {
        const tern_buffer *buffer;
        tern_block *block;
    } at = {buffer};
    return at.block;
}
/* Whether a block of the pool has values that only the recording's commands read. */
static inline bool tern_block_is_inner(const tern_graph *graph, const tern_block *block)
{
    return block->pool == graph && block->is_idle && !block->is_addressed && !block->holds;
}
/* Whether two blocks may share memory where they were recorded: a recording gives memory to later
 * blocks. Of parts without an address nothing is known. */
static inline bool tern_buffers_meet(const tern_buffer *a, const tern_buffer *b)
{
    if (a->address && b->address)
        return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
    return a->handle == b->handle || tern_block_of(a)->is_part || tern_block_of(b)->is_part;
}
/* Makes a kernel not write results that no later command reads (peephole.c). */
void tern_leave_unread(const tern_graph *graph, tern_command *command);
/* Removes commands whose results nobody reads, and stores in each block the first and the last
 * command that use it. */
void tern_values_find(tern_graph *graph);
/* Stores the first and the last command in each block again. */
void tern_values_note(tern_graph *graph);
/* Compiles kernels for the chains of rows that follow each other (chains.c); other threads compile
 * those that take long, which are then in `waits`. */
tern_status tern_chains_want(tern_graph *graph);
/* Replaces the rows of each chain whose kernel is compiled by one command. */
tern_status tern_chains_make(tern_graph *graph);
/* Undoes what tern_chains_make did. */
void tern_chains_undo(tern_graph *graph);
/* Frees what is stored of chains. */
void tern_chains_end(tern_graph *graph);
/* Waits for the kernels of chains that are still compiled, and makes the commands that replays
 * run. */
tern_status tern_graph_finish(const tern_graph *graph);
/* Adds a command to the recording, which owns it then. */
tern_status tern_record_node(tern_graph *graph, tern_graph_node *node);

/* ---- the plan of memory (plan.c) --------------------------------------------------------- */

typedef struct tern_plan tern_plan;
/* Place the inner values in arenas. An error, which names the peak, leaves the recording to
 * tern_plan_end. */
tern_status tern_plan_make(tern_graph *graph);
/* Before the recording is emptied. */
void tern_plan_end(tern_graph *graph);
/* Where keeps_apart: values are where they were before the plan, or where it put them. */
void tern_plan_swap(tern_graph *graph);

/* Replay it planned and as it was recorded; an error where a bit differs (graph_check.c). */
tern_status tern_graph_check(tern_graph *graph, tern_status (*run)(tern_graph *graph));

#endif
