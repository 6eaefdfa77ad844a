/* thread.h -- the state of a thread: what an operation is told beside its inputs.
 *
 * Of what the layers above keep here this one knows no more than that it is there. Apart from it is
 * what nobody enters or leaves, and one file alone reads: the recorded error (error.c) with room
 * for its message, the tensors of the open scopes (tensor/scope.c), and whether the thread is at
 * work for a parallel loop (parallel.c). */
#ifndef TERN_BASE_THREAD_H
#define TERN_BASE_THREAD_H
#include <tern/tensor.h>

/* ---- the mode: entered and left ---------------------------------------------------------- */

struct tern_op;
struct tern_tracing;

/* Replaces inputs of the operation by casts of them. */
typedef tern_status (*tern_autocast_hook)(const struct tern_op *op, tern_tensor **in, int n);

/* What anomaly detection looks at. */
typedef struct tern_anomaly_state {
    bool on, gradients, results;
} tern_anomaly_state;

/* How operations run now. An operation, a walk back and a checkpoint that computes again have one
 * of their own inside, and leave it for the one that was there. */
typedef struct tern_thread_mode {
    const char *op;             /* the operation that runs: "mul"; NULL where none does */
    tern_autocast_hook cast;    /* NULL: inputs are not cast */
    struct tern_frame *frame;   /* the checkpoint that saves for backward; NULL: nodes do */
    struct tern_tracing *trace; /* where calls are written down (tensor/trace.h); NULL: nowhere */
    bool no_grad;
    tern_anomaly_state anomaly;
} tern_thread_mode;

/* ---- the rest ---------------------------------------------------------------------------- */

enum { TERN_AUTOCAST_KINDS = 4, TERN_DEVICE_KINDS = 8, TERN_MOST_LABELS = 64 };

/* What autocast casts to; where it is a type, the mode has the hook outside of operations. */
typedef struct tern_autocast_kinds {
    struct {
        const char *device; /* a canonical string of the kind */
        tern_dtype dtype;   /* TERN_DTYPE_DEFAULT: nothing is cast there */
    } kind[TERN_AUTOCAST_KINDS];
} tern_autocast_kinds;

/* Casts of leaves, while a block is open. */
typedef struct tern_kept_casts {
    struct tern_kept_cast *slot; /* of capacity, a power of two: found by the leaf's address */
    size_t count, capacity;
    int depth; /* of open blocks */
    bool disabled;
} tern_kept_casts;

/* Where operations are called (TERN_ANOMALY_LABEL), outermost first. */
typedef struct tern_labels {
    const char *open[TERN_MOST_LABELS];
    int depth; /* may go beyond, where labels are left out */
} tern_labels;

/* Nodes of the graph that nobody holds any more: a list, so that freeing one is no recursion. */
typedef struct tern_dead_nodes {
    struct tern_node *first;
    bool draining;
} tern_dead_nodes;

/* What waits for the end of the walk back that runs: called then, however it ended, the last
 * that came first. status is the walk's so far, and what it returns is that from then on. */
typedef struct tern_after_walk {
    tern_status (*call)(struct tern_after_walk *end, tern_status status);
    struct tern_after_walk *next;
} tern_after_walk;

/* A module, and its number: the address alone may be another's by now. */
typedef struct tern_module_ref {
    const struct tern_module *module; /* NULL: none */
    uint64_t number;
} tern_module_ref;

/* The modules that run, between which are others. */
typedef struct tern_modules_running {
    tern_module_ref outermost, innermost;
} tern_modules_running;

/* What errors tell of where they happened. Who calls code of the program's in the middle of an own
 * function puts it back (callback.h). */
typedef struct tern_running {
    struct {
        const char *file; /* NULL: not known */
        int line;
    } at;                 /* of tern_at, tern_where_enter */
    const char *backward; /* the operation whose gradient is computed; NULL */
    tern_modules_running modules;
} tern_running;

/* Where a scope was opened. */
typedef struct tern_scope_place {
    int64_t number; /* of its thread's scopes, from 1 on; 0: the root */
    int depth;
    const char *module; /* the scope is that of a module's call: the module's kind; else NULL */
    const char *file;   /* NULL: not known */
    int line;
} tern_scope_place;

/* Random numbers in place of the devices' generators: those of a data set's item. They count on one
 * for all devices. */
typedef struct tern_random_stream {
    uint64_t seed;
    uint64_t taken;           /* groups of four words */
    uint64_t words[3];        /* what kernels of the host read: seed, 0, 0 */
    struct tern_block *block; /* the same words on a device; NULL: on none yet */
} tern_random_stream;

/* Blocks of memory that a thread keeps for itself while it makes the items of a batch, each of which wants
 * what the one before gave back, so that threads do not wait for each other there. They count as allocated. */
enum { TERN_KEPT_CLASSES = 64 }; /* by size: up to 16 KiB */
typedef struct tern_kept_blocks {
    struct tern_block *of[TERN_KEPT_CLASSES];
    uint64_t taken; /* how often one was used again */
} tern_kept_blocks;

typedef struct tern_thread_state {
    tern_thread_mode mode;
    tern_random_stream *random; /* NULL: the devices' generators */
    tern_running running;
    uint64_t failures;  /* so far, whether they are recorded or not */
    const char *called; /* "tern_zero_": named in errors (error.h); NULL: the function that fails */
    tern_after_walk **after_walk; /* of the walk back that runs; NULL: none does */
    struct tern_graph *graph;     /* what is being recorded; NULL: work runs */
    tern_kept_blocks *blocks;     /* NULL: none are kept */
    bool strict;                  /* within TERN_STRICT */
    /* The innermost stretch of time that a profiler measures, and the run of the profiler it is of. */
    int64_t span, profile_run;
    /* While debugging: what a device does; the scope that ends; NULL: nothing, none. */
    const char *work;
    const tern_scope_place *ending;

    struct tern_place *default_place; /* NULL: the process's */
    int current_device[TERN_DEVICE_KINDS];

    tern_autocast_kinds autocast;
    tern_kept_casts casts;
    tern_labels labels;
    tern_dead_nodes dead;
} tern_thread_state;

extern _Thread_local tern_thread_state tern_thread;

/* *to = *from, member by member: a loop over bytes costs more, and modules run through here. */
static inline void tern_running_copy(tern_running *to, const tern_running *from)
{
    to->at = from->at;
    to->backward = from->backward;
    to->modules.outermost = from->modules.outermost;
    to->modules.innermost = from->modules.innermost;
}

/* end is called once when the walk back that runs has ended, and has to live until then; false
 * where none runs. */
static inline bool tern_await_walk(tern_after_walk *end)
{
    tern_after_walk **ends = tern_thread.after_walk;
    if (!ends)
        return false;
    end->next = *ends;
    *ends = end;
    return true;
}

/* The mode there is, to be given to leave: what is changed in tern_thread.mode holds until then. */
static inline tern_thread_mode tern_thread_enter(void)
{
    return tern_thread.mode;
}
static inline void tern_thread_leave(const tern_thread_mode *outer)
{
    tern_thread.mode = *outer;
}

#endif
